"""The table of docs/values.md: what is stored, what `get` returns, what a typed `get` returns."""

import collections
import datetime as dt
import enum
import ipaddress
import math
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import GenericAlias
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, computed_field
from typing_extensions import TypedDict

from coatcheck import Bank, mirror
from coatcheck.content import dumps, loads
from coatcheck.stores import MemoryStore, Store


class Color(enum.Enum):
    RED = "red"
    GREY = Decimal("0.50")
    PAIR = (1, b"x")


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Point(NamedTuple):
    x: float
    at: dt.date


@dataclass(frozen=True)
class Order:
    price: Decimal
    scan: bytes
    tags: frozenset[str]
    _hidden: int = 0
    doubled: int = field(default=2, init=False)
    next: "Order | None" = None


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    at: dt.datetime
    price: Decimal
    scan: bytes = b""
    color: Color = Color.RED
    code: str = Field(default="c", alias="itemCode")
    parts: "list[Item]" = Field(default_factory=list["Item"])

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> Decimal:
        return 2 * self.price


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    at: dt.datetime
    id: uuid.UUID
    tags: set[str]


class Row(TypedDict):
    at: dt.datetime
    ok: bool


UTC = dt.UTC
LMT = dt.timezone(dt.timedelta(minutes=19, seconds=32))
AT = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
AT_TEXT = '"2026-01-02T03:04:05.000006+00:00"'
ORDER = Order(
    Decimal("1.50"),
    b"\xfe\x00",
    frozenset({"b", "a"}),
    7,
    next=Order(Decimal("NaN"), b"", frozenset()),
)
ITEM = Item(
    at=AT,
    price=Decimal("2.0"),
    scan=b"\xff",
    color=Color.GREY,
    itemCode="x",
    parts=[Item(at=AT, price=Decimal(1))],
)
HUGE = 10**5_000 + 7

TABLE: list[tuple[object, str | bytes, object]] = [
    ("żółć \ud800", "żółć \ud800", str),
    (b"\xff\x00", b"\xff\x00", bytes),
    (bytearray(b"ab"), b"ab", bytes),
    (None, "null", None),
    (True, "true", bool),
    (-0.0, "-0.0", float),
    (2**64, "18446744073709551616", int),
    (math.nan, '"NaN"', float),
    ([math.inf, -math.inf, 1.5], '["Infinity","-Infinity",1.5]', list[float]),
    ([1, [None]], "[1,[null]]", list),
    ((1, "a"), '[1,"a"]', tuple[int, str]),
    (collections.deque([1, 2]), "[1,2]", collections.deque[int]),
    ({"b", "a"}, '["a","b"]', set[str]),
    (frozenset({10, 9}), "[10,9]", frozenset[int]),
    ({frozenset({1}), frozenset({0})}, "[[0],[1]]", set[frozenset[int]]),
    ({"a": {"b": 1}}, '{"a":{"b":1}}', dict),
    ([{"a": 1}, {"a": None}], '[{"a":1},{"a":null}]', list[dict[str, Any]]),
    ({1: "a", 2: "b"}, '{"1":"a","2":"b"}', dict[int, str]),
    ({True: 1}, '{"true":1}', dict[bool, int]),
    ({dt.date(2026, 1, 2): 1}, '{"2026-01-02":1}', dict[dt.date, int]),
    ({uuid.UUID(int=5): 1}, '{"00000000-0000-0000-0000-000000000005":1}', dict[uuid.UUID, int]),
    ({Color.RED: 1, Color.GREY: 2}, '{"red":1,"0.50":2}', dict[Color, int]),
    ({b"\xff": 1}, '{"/w==":1}', dict[bytes, int]),
    (Point(math.inf, dt.date(2026, 1, 2)), '{"x":"Infinity","at":"2026-01-02"}', Point),
    (
        ORDER,
        (
            '{"price":"1.50","scan":"/gA=","tags":["a","b"],"_hidden":7,"doubled":2,"next":'
            '{"price":"NaN","scan":"","tags":[],"_hidden":0,"doubled":2,"next":null}}'
        ),
        Order,
    ),
    (
        ITEM,
        (
            f'{{"at":{AT_TEXT},"price":"2.0","scan":"/w==","color":"0.50","code":"x","parts":'
            f'[{{"at":{AT_TEXT},"price":"1","scan":"","color":"red","code":"c","parts":[],'
            '"double":"2"}],"double":"4.0"}'
        ),
        Item,
    ),
    ([ITEM], dumps([ITEM]), list[Item]),
    (
        Strict(at=AT, id=uuid.UUID(int=5), tags={"t"}),
        f'{{"at":{AT_TEXT},"id":"00000000-0000-0000-0000-000000000005","tags":["t"]}}',
        Strict,
    ),
    ([{"at": AT, "ok": True}], f'[{{"at":{AT_TEXT},"ok":true}}]', list[Row]),
    (AT, AT_TEXT, dt.datetime),
    (AT.astimezone(LMT), '"2026-01-02T03:23:37.000006+00:19:32"', dt.datetime),
    (dt.datetime.fromisoformat("0001-01-01"), '"0001-01-01T00:00:00"', dt.datetime),
    (dt.date(9999, 12, 31), '"9999-12-31"', dt.date),
    (dt.time(1, 2, tzinfo=LMT), '"01:02:00+00:19:32"', dt.time),
    (dt.timedelta(days=1, hours=2), '"P1DT2H"', dt.timedelta),
    (dt.timedelta.min, '"-P999999999D"', dt.timedelta),
    (dt.timedelta.max, '"P999999999DT23H59M59.999999S"', dt.timedelta),
    (Decimal("10.50"), '"10.50"', Decimal),
    (Decimal("0.1234567890123456789012345678901"), '"0.1234567890123456789012345678901"', Decimal),
    (Decimal("-Infinity"), '"-Infinity"', Decimal),
    (uuid.UUID(int=5), '"00000000-0000-0000-0000-000000000005"', uuid.UUID),
    ([Path("/tmp/x")], '["/tmp/x"]', list[Path]),
    (ipaddress.ip_address("::1"), '"::1"', ipaddress.IPv6Address),
    (Color.RED, '"red"', Color),
    ([Color.GREY, Color.PAIR], '["0.50",[1,"eA=="]]', list[Color]),
    (Flag.A | Flag.B, "3", Flag),
    ([b"\xff", b""], '["/w==",""]', list[bytes]),
    ({"a": (b"x", 1)}, '{"a":["eA==",1]}', dict[str, tuple[bytes, int]]),
    ([b"x", None], '["eA==",null]', list[bytes | None]),
    (np.int64(3), "3", int),
    ([HUGE, 1], f"[1{'0' * 4_999}7,1]", list[int]),
    (
        {"n": HUGE, "at": AT},
        f'{{"n":1{"0" * 4_999}7,"at":{AT_TEXT}}}',
        dict[str, int | dt.datetime],
    ),
]


def plain(payload: bytes, value: object) -> object:
    """Return what `get` promises: text and bytes as put, all else the JSON values."""
    if isinstance(value, bytearray):
        return bytes(value)
    return (
        value if isinstance(value, str | bytes) and type(value) in {str, bytes} else loads(payload)
    )


async def test_an_array_within_json_comes_back_as_a_list(any_store: Store) -> None:
    bank = Bank(any_store)

    pointer = (await bank.put({"v": np.array([1.5, math.nan])})).pointer

    assert await bank.get(pointer) == {"v": [1.5, "NaN"]}
    assert str(await bank.get(pointer, as_type=dict[str, list[float]])) == "{'v': [1.5, nan]}"


def same(one: object, other: object) -> bool:
    """Equal, of the same type, and NaN like NaN."""
    return type(one) is type(other) and (one == other or dumps(one) == dumps(other))


def python(value: object) -> object:
    """Return what a typed `get` promises: the value, of numpy's the Python value."""
    if isinstance(value, np.generic):
        return cast("object", value.item())
    if isinstance(value, bytearray):
        return bytes(value)
    return value


@pytest.mark.parametrize(
    ("value", "stored", "declared"), TABLE, ids=lambda each: type(each).__name__
)
async def test_the_table_holds_on_every_store(
    any_store: Store, value: object, stored: str | bytes, declared: Any
) -> None:
    payload = stored if isinstance(stored, bytes) else stored.encode("utf-8", "surrogatepass")
    bank = Bank(any_store)

    pointer = (await bank.put(value)).pointer

    for reader in (bank, Bank(any_store)):
        assert await reader.payload(pointer) == payload
        assert same(await reader.get(pointer), plain(payload, value))
        assert same(await reader.get(pointer, as_type=declared), python(value))


@pytest.mark.parametrize(
    ("library", "make"), [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")]
)
async def test_a_frame_comes_back_equal_from_every_store(
    any_store: Store, library: str, make: str
) -> None:
    frame: Any = getattr(import_module(library), make)({"a": [1, 2], "s": ["x", None]})

    artifact = await Bank(any_store).put(frame)

    found: Any = await Bank(any_store).get(artifact.pointer)
    assert artifact.content_type == "application/vnd.apache.arrow.file"
    assert type(found) is type(frame)
    assert found.equals(frame)


async def test_an_array_comes_back_with_its_bits_from_every_store(any_store: Store) -> None:
    array = np.array([[1.5, math.nan], [-0.0, math.inf]], dtype=">f4")

    artifact = await Bank(any_store).put(array)

    found: Any = await Bank(any_store).get(artifact.pointer)
    assert artifact.content_type == "application/x-npy"
    assert (found.dtype, found.tobytes()) == (array.dtype, array.tobytes())


@pytest.mark.parametrize("source", ["iterator", "async iterator", "open file", "path"])
async def test_what_was_streamed_comes_back_from_every_store(
    any_store: Store, tmp_path: Path, source: str
) -> None:
    rows = [{"n": number, "s": "ż"} for number in range(1_500)]
    file = tmp_path / "rows.json"
    file.write_bytes(dumps(rows))

    async def later() -> AsyncIterator[object]:
        for row in rows:
            yield row

    with file.open("rb") as opened:
        sources = {
            "iterator": iter(rows),
            "async iterator": later(),
            "open file": opened,
            "path": file,
        }
        artifact = await Bank(any_store).put(sources[source])

    bank = Bank(any_store)
    assert await bank.payload(artifact.pointer) == dumps(rows)
    assert await bank.get(artifact.pointer, as_type=list[dict[str, Any]]) == rows
    page = await bank.read(artifact.pointer, offset=1_499, limit=1, unit="rows")
    assert loads(str(page.content).encode()) == rows[-1:]


@pytest.mark.parametrize(
    ("value", "stored", "declared"), TABLE, ids=lambda each: type(each).__name__
)
async def test_a_typed_parameter_gets_what_a_typed_get_returns(
    value: object, stored: str | bytes, declared: Any
) -> None:
    bank = Bank(MemoryStore())
    arrived: list[object] = []

    async def tool(given: object) -> str:
        arrived.append(given)
        return "done"

    tool.__annotations__["given"] = declared
    pointer = (await bank.put(value)).pointer

    assert await mirror(tool, bank)(pointer) == "done"
    assert same(arrived[0], python(value))


def around(declared: Any, value: object) -> list[tuple[Any, Any]]:
    """Return a type and a value within others."""
    nested = GenericAlias
    return [
        (nested(list, (declared,)), [value, value]),
        (nested(dict, (str, declared)), {"k": value, "null": value}),
        (nested(tuple, (declared, int)), (value, 1)),
        (declared | None, value),
    ]


NESTED: st.SearchStrategy[tuple[Any, Any]] = st.recursive(
    st.sampled_from(
        [
            (int, st.integers(-(2**70), 2**70)),
            (float, st.floats()),
            (str, st.text(max_size=4)),
            (bool, st.booleans()),
            (dt.datetime, st.datetimes(timezones=st.just(UTC) | st.just(LMT))),
            (dt.date, st.dates()),
            (dt.time, st.times()),
            (dt.timedelta, st.timedeltas()),
            (Decimal, st.decimals(allow_nan=False)),
            (uuid.UUID, st.uuids()),
            (bytes, st.binary(max_size=4)),
            (Color, st.sampled_from(Color)),
        ]
    ).flatmap(lambda pair: pair[1].map(lambda value: (pair[0], value))),
    lambda inner: inner.flatmap(lambda pair: st.sampled_from(around(*pair))),
    max_leaves=4,
)


@given(NESTED)
async def test_generated_values_come_back_as_the_table_promises(case: tuple[Any, Any]) -> None:
    declared, value = case
    bank = Bank(MemoryStore())

    pointer = (await bank.put(value)).pointer

    assert same(await bank.get(pointer), plain(dumps(value), value))
    assert same(await bank.get(pointer, as_type=declared), value)
