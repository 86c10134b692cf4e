import datetime as dt
import enum
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, computed_field
from typing_extensions import TypeAliasType

from coatcheck import Bank, Mirror, mirror
from coatcheck.bank import StoredValidator
from coatcheck.bank._typed import as_declared
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import MemoryStore


class Blob(BaseModel):
    type: str = "default"
    default: bytes = b""
    schema_: "Blob | None" = Field(default=None, alias="schema")


class Cat(BaseModel):
    kind: Literal["cat"]
    scan: bytes


class Dog(BaseModel):
    kind: Literal["dog"]
    scan: bytes


class Item(BaseModel):
    price: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.price


class Level(enum.Enum):
    LOW = Decimal(1)
    HIGH = Decimal(2)


@dataclass
class Levels:
    now: Level
    all: tuple[Level, ...]


async def stored_as(value: object, declared: Any) -> object:
    bank = Bank(MemoryStore())
    return await bank.get((await bank.put(value)).pointer, as_type=declared)


@pytest.mark.parametrize(
    ("value", "declared"),
    [
        (Blob(default=b"\xff", schema=Blob(default=b"\xfe")), Blob),
        ([Dog(kind="dog", scan=b"\xff")], list[Annotated[Cat | Dog, Field(discriminator="kind")]]),
        (Cat(kind="cat", scan=b"\xff"), Cat | None),
        (Levels(Level.LOW, (Level.HIGH, Level.LOW)), Levels),
        ({"a": [b"x", None]}, dict[str, list[bytes | None]]),
    ],
    ids=str,
)
async def test_types_within_types_are_read_as_they_were_stored(
    value: object, declared: object
) -> None:
    assert await stored_as(value, declared) == value


@pytest.mark.parametrize(
    ("value", "declared", "reason"),
    [
        ([b"x"], list[int], "integer"),
        (["!"], list[Level], "Input should be"),
        ([[{"a": 1}]], list[Levels], "dictionary or"),
        ([["\ud800"]], list[Level], "Input should be"),
        ({"at": "soon"}, dict[str, dt.datetime], "valid datetime"),
        (["x"], tuple[int, int], "integer"),
        ([1], list[Blob], "dictionary or"),
        ([1], list[Item], "dictionary or"),
        ([1j.real, "y"], list[float], "number"),
    ],
)
async def test_what_does_not_fit_is_refused(value: object, declared: object, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason):
        await stored_as(value, declared)


async def test_text_that_is_no_base64_is_taken_as_pydantic_takes_it() -> None:
    assert await stored_as(["é!"], list[bytes]) == ["é!".encode()]


async def test_json_text_follows_pydantic_and_not_our_rule() -> None:
    assert await stored_as('["eA=="]', list[bytes]) == [b"eA=="]
    assert await stored_as(["eA=="], list[bytes]) == [b"x"]


async def test_what_pydantic_takes_beside_our_forms_it_still_takes() -> None:
    assert await stored_as([0], list[dt.datetime]) == [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]
    assert await stored_as(["2026-01-02T03:04Z"], list[dt.datetime]) == [
        dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC)
    ]


async def test_a_decimal_keeps_the_digits_of_text() -> None:
    assert str(await stored_as("10.50", Decimal)) == "10.50"
    assert str(await stored_as('"10.50"', Decimal)) == "10.50"


@pytest.mark.parametrize(
    ("value", "declared"),
    [
        ([{"a": 1}], list[dict]),  # type: ignore[type-arg]
        ([{"a": 1}], list[dict[str, Any]]),
        ([{"a": 1}], list[dict[str, object]]),
        ([{"a": 1}], list[Any]),
        ([{"a": 1}], list),
        ({"a": 1}, dict[str, Any]),
        ({"a": 1}, dict),
        (1, int),
    ],
    ids=str,
)
def test_a_value_that_is_of_its_type_already_is_not_copied(value: object, declared: object) -> None:
    assert as_declared(value, declared) is value


def test_rows_among_which_is_another_type_are_validated() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[1\]"):
        as_declared([{"a": 1}, 2], list[dict[str, Any]])
    assert as_declared({"1": 2}, dict[int, Any]) == {1: 2}
    assert as_declared([1], list[float]) == [1.0]


async def test_a_literal_argument_is_read_as_a_model_wrote_it() -> None:
    given: list[object] = []

    async def tool(scans: list[bytes]) -> str:
        given.append(scans)
        return "done"

    bank = Bank(MemoryStore())
    mirrored: Callable[..., Any] = mirror(tool, bank)
    pointer = (await bank.put([b"x"])).pointer

    await mirrored(["eA=="])
    await mirrored(pointer)

    assert given == [[b"eA=="], [b"x"]]


def test_a_type_whose_schema_is_not_made_yet_is_read_alike() -> None:
    later: TypeAdapter[Any] = TypeAdapter(list[bytes], config=ConfigDict(defer_build=True))

    assert StoredValidator(later).validate_python(["eA=="]) == [b"x"]


async def test_an_alias_is_read_as_what_it_names() -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put("[1, 2]")
    named = cast("Any", TypeAliasType)("named", str | None)

    assert await bank.get(artifact.pointer, as_type=named) == "[1, 2]"


NAMED = [{"id": n, "name": c} for n, c in zip("123", "xyz", strict=True)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "id,name\n1,x\n2,y\n3,z\n",
            NAMED,
        ),
        (
            "id\tname\n1\tx\n2\ty\n3\tz\n",
            NAMED,
        ),
        ('{"id":"1"}\n{"id":"2"}\n{"id":"3"}\n', [{"id": "1"}, {"id": "2"}, {"id": "3"}]),
    ],
    ids=["csv", "tsv", "ndjson"],
)
async def test_text_that_is_a_table_is_its_rows_where_only_a_list_may_stand(
    text: str, rows: list[dict[str, str]]
) -> None:
    bank = Bank(MemoryStore())
    pointer = (await bank.put(text)).pointer

    def either(given: str | list[dict[str, str]]) -> str | list[dict[str, str]]:
        return given

    def listed(given: list[dict[str, str]]) -> list[dict[str, str]]:
        return given

    assert await bank.get(pointer, list[dict[str, str]]) == rows
    assert mirror(listed, bank)(pointer) == rows
    assert mirror(either, bank)(pointer) == text


@pytest.mark.parametrize("put", [str, str.encode], ids=["text", "bytes"])
@pytest.mark.parametrize(
    ("text", "content_type", "rows"),
    [
        ("id,name\n1,x\n", "text/csv", NAMED[:1]),
        ("id\tname\n1\tx\n2\ty\n", "text/tab-separated-values", NAMED[:2]),
        ('{"id":"1","name":"x"}\n', "application/x-ndjson", NAMED[:1]),
        ("note\nNone, of three\n", "text/csv", [{"note": "None", "extra": [" of three"]}]),
        ("1,x\n", "text/csv; header=absent", [{"column_1": "1", "column_2": "x"}]),
    ],
    ids=["csv", "tsv", "ndjson", "ragged", "no header"],
)
async def test_a_table_as_short_as_can_be_is_its_rows_where_its_content_type_says_so(
    put: Callable[[str], str | bytes], text: str, content_type: str, rows: list[Any]
) -> None:
    bank = Bank(MemoryStore())
    pointer = (await bank.put(put(text), content_type=content_type)).pointer

    def listed(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return given

    def nested(given: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        return given["rows"]

    assert await bank.get(pointer, list[dict[str, Any]]) == rows
    assert mirror(listed, bank)(pointer) == rows
    assert mirror(nested, bank)({"rows": pointer}) == rows
    schema = {"properties": {"given": {"type": "array"}}}
    assert await Mirror(bank).resolve({"given": pointer}, schema) == {"given": rows}


async def test_text_that_is_said_to_be_no_table_is_none() -> None:
    bank = Bank(MemoryStore())
    pointer = (await bank.put("id,name\n1,x\n2,y\n3,z\n", content_type="text/markdown")).pointer

    with pytest.raises(InvalidArgumentError, match="valid list"):
        await bank.get(pointer, list[dict[str, str]])
    assert await bank.get(f"{pointer}#line=0,4", list[dict[str, str]]) == NAMED


async def test_prose_given_to_a_list_is_refused() -> None:
    bank = Bank(MemoryStore())
    pointer = (await bank.put("Dear all, there is no table here.")).pointer

    with pytest.raises(InvalidArgumentError, match="valid list"):
        await bank.get(pointer, list[str])
