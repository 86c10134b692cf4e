import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import GenericAlias
from typing import Annotated, Any, Literal, Optional, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, field_validator
from pydantic_core import PydanticCustomError

from coatcheck import (
    Bank,
    BlockingBank,
    Envelope,
    Kind,
    Limits,
    Mirror,
    UnknownPointerError,
    Verbatim,
    mirror,
)
from coatcheck.errors import InvalidArgumentError, StoreUnavailableError
from coatcheck.mirror._slots import Argument
from coatcheck.mirror._written import written
from coatcheck.stores import MemoryStore

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ROWS = [{"id": number} for number in range(10_000)]


class Full:
    """A store with no room left."""

    async def put(self, key: str, payload: bytes) -> None:
        raise StoreUnavailableError("No space left on device")

    async def get(self, key: str) -> bytes | None:
        return None

    async def delete(self, key: str) -> None:
        """Nothing is here."""

    async def keys(self, folder: str) -> AsyncIterator[str]:
        nothing: list[str] = []
        for key in nothing:
            yield key

    async def close(self) -> None:
        """Nothing is held."""


class Item(BaseModel):
    id: int


class Foreign:
    """A class that pydantic has no schema for."""


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


async def artifacts(bank: Bank) -> int:
    return len([artifact async for artifact in bank.list()])


@pytest.mark.parametrize(
    "result",
    ["x" * 51_199, "", 0, None, True, 1.5, [1], {"a": 1}, b"x" * 51_199, "漢" * 17_066],
)
async def test_a_result_under_the_limit_is_the_very_same(bank: Bank, result: object) -> None:
    async def later() -> object:
        return result

    def now() -> object:
        return result

    assert await mirror(later, bank)() is result
    assert mirror(now, bank)() is result
    assert await artifacts(bank) == 0


@pytest.mark.parametrize("result", ["x" * 51_200, b"x" * 51_200, "漢" * 17_067, ["x" * 51_196]])
async def test_a_result_of_the_limit_or_more_is_offloaded_whole(bank: Bank, result: object) -> None:
    async def later() -> object:
        return result

    def now() -> object:
        return result

    for shown in (await mirror(later, bank)(), mirror(now, bank)()):
        assert isinstance(shown, Envelope)
        assert shown.size_bytes >= 51_200
        assert await bank.get(shown.pointer) == result


async def test_an_offloaded_result_knows_its_tool(bank: Bank) -> None:
    def read_log() -> str:
        return "x" * 60_000

    artifact = await bank.find(mirror(read_log, bank)().pointer)

    assert artifact is not None
    assert (artifact.tool, artifact.kind, artifact.name) == ("read_log", "tool-output", None)


async def test_limits_hold_by_tool_by_call_and_not_at_all(bank: Bank) -> None:
    def rows() -> str:
        return "x" * 1_000

    by_tool = Limits(per_tool={"rows": 1_000})

    assert isinstance(mirror(rows, bank, limits=by_tool)(), Envelope)
    assert mirror(rows, bank, limits=Limits(per_tool={"rows": 1_001}))() == "x" * 1_000
    assert isinstance(mirror(rows, bank, inline_bytes=1_000)(), Envelope)
    assert mirror(rows, bank, inline_bytes=1_001)() == "x" * 1_000
    assert (
        mirror(rows, bank, limits=Limits(inline_bytes=1, never=frozenset({"rows"})))()
        == "x" * 1_000
    )


async def test_a_limit_of_0_shows_a_pointer_even_to_a_small_set(bank: Bank) -> None:
    def rows() -> list[int]:
        return [1, 2]

    shown = mirror(rows, bank, inline_bytes=0)()

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == [1, 2]


@given(st.text(max_size=3_000), st.integers(1, 50))
async def test_an_envelope_is_smaller_than_what_it_replaces(text: str, limit: int) -> None:
    shown = await Mirror(Bank(MemoryStore()), Limits(inline_bytes=limit)).offload(text)

    if isinstance(shown, Envelope):
        assert len(str(shown).encode()) < len(text.encode("utf-8", "surrogatepass"))
    else:
        assert shown is text


async def test_a_result_that_no_envelope_could_undercut_is_not_banked(bank: Bank) -> None:
    shown = await Mirror(bank, Limits(inline_bytes=10)).offload("x" * 100)

    assert shown == "x" * 100
    assert await artifacts(bank) == 0


async def test_an_envelope_gives_up_its_glimpse_before_its_preview(bank: Bank) -> None:
    text = "".join(f"line {number} of a log\n" for number in range(30))
    glimpsed = await bank.put(text)
    whole = Envelope.of(glimpsed)
    assert whole.glimpse is not None

    shown = await Mirror(bank, Limits(inline_bytes=10)).offload(text)

    assert isinstance(shown, Envelope)
    assert len(str(shown)) < len(text)
    assert shown.glimpse is None or shown.preview == whole.preview


async def test_the_preview_of_a_mirrored_tool_has_the_length_asked_for(bank: Bank) -> None:
    def rows() -> str:
        return "x" * 60_000

    assert mirror(rows, bank, preview_chars=5)().preview == "xxxxx … (59,995 more characters)"
    assert mirror(rows, bank)().preview == "x" * 200 + " … (59,800 more characters)"


@pytest.mark.parametrize("shrink", ["sync", "async"])
async def test_a_result_is_shrunk_before_its_size_is_checked(bank: Bank, shrink: str) -> None:
    async def later(result: str) -> str:
        return f"summary: {result[:8]}"

    def now(result: str) -> str:
        return f"summary: {result[:8]}"

    async def big_async() -> str:
        return "x" * 200_000

    def big() -> str:
        return "x" * 200_000

    to_model_output = later if shrink == "async" else now
    assert mirror(big, bank, to_model_output=to_model_output)() == "summary: xxxxxxxx"
    assert await mirror(big_async, bank, to_model_output=to_model_output)() == "summary: xxxxxxxx"
    assert await artifacts(bank) == 0


async def test_an_artifact_the_tool_banked_itself_is_shown_as_its_envelope(bank: Bank) -> None:
    async def report(bank: Bank) -> object:
        return await bank.put("y" * 5_000, name="report")

    shown = await mirror(report, bank)()

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == "y" * 5_000
    assert len(shown.preview) < 250
    assert await artifacts(bank) == 1


async def test_an_envelope_is_never_offloaded_again(bank: Bank) -> None:
    owner = Mirror(bank, Limits(inline_bytes=1))
    envelope = await owner.offload("x" * 1_000)

    assert await owner.offload(envelope) is envelope


async def test_the_exception_of_a_tool_passes_untouched(bank: Bank) -> None:
    failure = KeyError("mine")

    def broken() -> None:
        raise failure

    async def broken_later() -> None:
        raise failure

    with pytest.raises(KeyError) as caught:
        mirror(broken, bank)()
    assert caught.value is failure
    with pytest.raises(KeyError) as caught:
        await mirror(broken_later, bank)()
    assert caught.value is failure


@pytest.mark.parametrize("chars", [199_999, 200_000])
async def test_a_result_that_was_not_kept_passes_whole(
    chars: int, caplog: pytest.LogCaptureFixture
) -> None:
    text = "x" * chars

    with caplog.at_level(logging.WARNING, "coatcheck.mirror"):
        shown = await Mirror(Bank(Full())).offload(text, tool="rows")

    assert shown is text
    assert "a result of rows was not kept" in caplog.text


@pytest.mark.parametrize("value", ["x" * 200_001, ["y" * 300_000]])
async def test_a_longer_result_that_was_not_kept_passes_in_part_and_says_so(value: object) -> None:
    shown = await Mirror(Bank(Full())).offload(value)

    assert isinstance(shown, str)
    assert 50_000 < len(shown) < 50_200
    assert "was not kept" in shown
    assert "art:" not in shown
    left_out = len(value) - 50_000 if isinstance(value, str) else 300_004 - 50_000
    assert f"{left_out:,} of" in shown


@pytest.mark.parametrize(("size", "is_whole"), [(200_000, True), (200_001, False)])
async def test_binary_that_was_not_kept_passes_whole_or_is_counted(
    size: int, is_whole: bool
) -> None:
    payload = b"\x00" * size

    shown = await Mirror(Bank(Full())).offload(payload)

    assert (shown is payload) is is_whole
    if not is_whole:
        assert shown == "[200,001 bytes of binary output, not shown; they were not kept]"


def circle() -> object:
    value: dict[str, object] = {"pad": "x" * 60_000}
    value["self"] = value
    return value


def deep() -> object:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("endless", [circle, deep])
async def test_a_result_without_an_end_is_shown_in_part_with_a_notice(
    bank: Bank, endless: Callable[[], object]
) -> None:
    shown = mirror(endless, bank)()

    assert isinstance(shown, str)
    assert len(shown) < 2_000
    assert "was not kept" in shown
    assert await artifacts(bank) == 0


async def test_a_result_of_a_foreign_type_passes_unless_it_is_very_long(bank: Bank) -> None:
    class Big:
        def __repr__(self) -> str:
            return "r" * 300_000

    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    rude, plain = Rude(), Foreign()
    owner = Mirror(bank)

    assert await owner.offload(plain) is plain
    assert await owner.offload(rude) is rude
    shown = await owner.offload(Big())
    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == "r" * 300_000


async def test_a_failure_is_offloaded_with_its_flag_and_its_end_in_sight(bank: Bank) -> None:
    text = "trace\n" * 40_000 + "ValueError: boom 42"

    shown = await Mirror(bank).offload(text, tool="t", is_error=True)

    assert isinstance(shown, Envelope)
    assert shown.to_wire()["isError"] is True
    assert "ValueError: boom 42" in str(shown)
    assert await bank.get(shown.pointer) == text


@pytest.mark.parametrize(
    "tool", ["retrieve_context", "storeArtifact", "getArtifact", "listArtifacts"]
)
async def test_the_reply_of_a_tool_that_reads_is_never_offloaded(bank: Bank, tool: str) -> None:
    assert await Mirror(bank).offload("x" * 60_000, tool) == "x" * 60_000
    assert await artifacts(bank) == 0


@pytest.mark.parametrize("name", ["memory_read", "getArtifact", "pollResult"])
async def test_a_function_that_is_called_like_one_of_our_tools_is_mirrored_as_any(
    bank: Bank, name: str
) -> None:
    def read() -> str:
        return "x" * 60_000

    read.__name__ = name

    assert isinstance(mirror(read, bank)(), Envelope)


@pytest.mark.parametrize("call_id", ["a\nb", "x" * 300, "\ud83d", ""])
async def test_a_call_id_that_makes_no_name_loses_nothing(bank: Bank, call_id: str) -> None:
    shown = await Mirror(bank).offload("x" * 60_000, "rows", call_id)

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == "x" * 60_000


async def test_whatever_a_strangers_store_raises_the_result_is_not_lost() -> None:
    class Broken(MemoryStore):
        async def put(self, key: str, payload: bytes) -> None:
            raise OSError(28, "No space left on device")

    assert await Mirror(Bank(Broken())).offload("x" * 60_000) == "x" * 60_000


async def test_a_small_failure_is_untouched(bank: Bank) -> None:
    assert await Mirror(bank).offload("boom", is_error=True) == "boom"
    assert await artifacts(bank) == 0


async def test_a_replayed_call_shows_the_same_bytes(bank: Bank) -> None:
    owner = Mirror(bank)
    first = await owner.offload("x" * 60_000, "rows", "call_0")
    again = await owner.offload("x" * 60_000, "rows", "call_0")
    other = await owner.offload("y" * 60_000, "rows", "call_0")

    assert str(first) == str(again) != str(other)
    assert await bank.get("rows_call_0") == "y" * 60_000


async def test_a_note_names_no_reader_that_the_model_lacks(bank: Bank) -> None:
    shown = await Mirror(bank, reader=None).offload("x" * 60_000)

    assert isinstance(shown, Envelope)
    assert shown.note == "pass the pointer to a tool"


async def test_a_sync_function_that_returns_an_awaitable_is_awaited(bank: Bank) -> None:
    async def later() -> str:
        return "x" * 60_000

    def starts() -> Awaitable[str]:
        return later()

    assert isinstance(await mirror(starts, bank)(), Envelope)
    shrunk = mirror(starts, bank, to_model_output=len)
    assert await shrunk() == 60_000


async def test_a_pointer_is_replaced_by_its_value_at_any_depth(bank: Bank) -> None:
    seen: list[Any] = []

    def tool(q: dict[str, Any], more: list[Any]) -> None:
        seen.append((q, more))

    pointer = (await bank.put(ROWS)).pointer
    q, more = {"q": {"ids": pointer}}, [pointer, "lit", [[pointer]]]

    mirror(tool, bank)(q, more=more)

    assert seen == [({"q": {"ids": ROWS}}, [ROWS, "lit", [[ROWS]]])]
    assert q == {"q": {"ids": pointer}}
    assert more == [pointer, "lit", [[pointer]]]
    places = [seen[0][0]["q"]["ids"], seen[0][1][0], seen[0][1][2][0][0]]
    assert len({id(place) for place in places}) == 3


async def test_text_is_handed_on_byte_for_byte(bank: Bank) -> None:
    text = '{"a":1,"a":2,"f":1.0}' + "\r\n\ufeff" * 30_000

    def update_page(body: str) -> bool:
        return body == text

    assert mirror(update_page, bank)((await bank.put(text)).pointer) is True


@pytest.mark.parametrize(
    "query",
    [
        "art:deco posters",
        "plan-b",
        "ps-1",
        "art:",
        UNKNOWN[:-1],
        f"see {UNKNOWN}",
        "zz-" + "0" * 32,
    ],
)
async def test_what_only_looks_like_a_pointer_is_text(bank: Bank, query: str) -> None:
    def search(query: str, more: list[str]) -> tuple[str, list[str]]:
        return query, more

    assert mirror(search, bank)(query, [query]) == (query, [query])


@pytest.mark.parametrize("unknown", [UNKNOWN, "ps-" + "0" * 32, "plan-" + "0" * 32])
async def test_an_unissued_pointer_is_an_error_and_the_tool_does_not_run(unknown: str) -> None:
    bank = Bank(MemoryStore(), kinds=[Kind("product set", "ps")])
    ran: list[str] = []

    def tool(items: list[int], n: int, text: str) -> None:
        ran.append("ran")

    calls: list[tuple[object, ...]] = [
        (unknown, 1, "x"),
        ([unknown], 1, "x"),
        ([1], unknown, "x"),
        ([1], 1, unknown),
    ]
    for arguments in calls:
        with pytest.raises(UnknownPointerError):
            mirror(tool, bank)(*arguments)
    assert ran == []


async def test_an_unregistered_prefix_is_a_pointer_where_something_stands_behind(
    bank: Bank,
) -> None:
    artifact = await bank.put([1, 2])
    typed = f"zz-{artifact.id.replace('-', '')}"

    assert mirror(sum, bank)(typed) == 3


@pytest.mark.parametrize(
    ("banked", "declared", "arrives"),
    [
        ([1, 2], list[int], [1, 2]),
        ("[1, 2]", list[int], [1, 2]),
        (["1"], list[int], [1]),
        ([{"id": 1}], list[Item], [Item(id=1)]),
        ({"id": 1}, Item, Item(id=1)),
        ("12", int, 12),
        (12, int, 12),
        (1.5, float, 1.5),
        (True, bool, True),
        ([1, 2], str, "[1,2]"),
        ("[1, 2]", str, "[1, 2]"),
        ("[1, 2]", str | None, "[1, 2]"),
        ("[1, 2]", Any, "[1, 2]"),
        ("[1, 2]", str | list[int], [1, 2]),
        ("plain", str | list[int], "plain"),
        ("żółć", bytes, "żółć".encode()),
        (b"\xff", bytes, b"\xff"),
    ],
)
async def test_a_pointer_arrives_as_the_declared_type(
    bank: Bank, banked: object, declared: Any, arrives: object
) -> None:
    def tool(value: object) -> object:
        return value

    tool.__annotations__["value"] = declared
    pointer = (await bank.put(banked)).pointer

    received = mirror(tool, bank)(pointer)

    assert received == arrives
    assert type(received) is type(arrives)


async def test_text_inside_a_list_is_parsed_only_where_it_would_not_fit(bank: Bank) -> None:
    def texts(values: list[str]) -> list[str]:
        return values

    def lists(values: list[list[int]]) -> list[list[int]]:
        return values

    text, rows = (await bank.put("[1, 2]")).pointer, (await bank.put([3])).pointer

    assert mirror(texts, bank)([text, "lit"]) == ["[1, 2]", "lit"]
    assert mirror(texts, bank)([rows]) == ["[3]"]
    assert mirror(lists, bank)([text, rows, [4]]) == [[1, 2], [3], [4]]


async def test_a_value_that_does_not_fit_is_refused_unquoted_and_the_tool_does_not_run(
    bank: Bank,
) -> None:
    ran: list[str] = []

    def tool(items: list[int]) -> None:
        ran.append("ran")

    pointer = (await bank.put(["secret"])).pointer
    for argument in (pointer, ["secret"], "secret"):
        with pytest.raises(InvalidArgumentError, match="argument 'items'") as caught:
            mirror(tool, bank)(argument)
        assert "secret" not in str(caught.value)
    assert ran == []


async def test_arguments_without_pointers_are_validated_too(bank: Bank) -> None:
    def tool(items: list[Item], scale: int = 1) -> object:
        return items, scale

    assert mirror(tool, bank)([{"id": 1}], scale="2") == ([Item(id=1)], 2)


async def test_objects_a_framework_built_are_left_alone(bank: Bank) -> None:
    item = Item(id=1)

    def tool(item: Item) -> Item:
        return item

    assert mirror(tool, bank)(item) is item


async def test_a_verbatim_parameter_gets_the_pointer_as_text(bank: Bank) -> None:
    def keep(note: Verbatim[str], many: Verbatim[list[str]], items: list[int]) -> object:
        return note, many, items

    pointer = (await bank.put([1])).pointer

    assert mirror(keep, bank)(pointer, [pointer], items=pointer) == (pointer, [pointer], [1])
    assert mirror(keep, bank)(UNKNOWN, [], items=[]) == (UNKNOWN, [], [])


async def test_a_verbatim_parameter_that_may_be_none_gets_the_pointer_too(bank: Bank) -> None:
    def keep(note: Verbatim[str] | None = None, other: Optional[Verbatim[str]] = None) -> object:  # noqa: UP045 - it is of a kind of its own
        return note, other

    pointer = (await bank.put([1])).pointer

    assert mirror(keep, bank)(pointer, pointer) == (pointer, pointer)
    assert mirror(keep, bank)() == (None, None)


async def test_starred_arguments_take_pointers(bank: Bank) -> None:
    def tool(first: int, *rest: list[int], **named: list[int]) -> object:
        return first, rest, named

    pointer = (await bank.put([1])).pointer

    assert mirror(tool, bank)(1, pointer, [2], a=pointer) == (1, ([1], [2]), {"a": [1]})


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2), {}), ((1,), {"b": 2}), ((1,), {"a": 2})]
)
async def test_wrong_arguments_are_a_type_error_as_ever(
    bank: Bank, args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    def tool(a: int) -> int:
        return a

    with pytest.raises(TypeError):
        mirror(tool, bank)(*args, **kwargs)


async def test_an_injected_bank_is_hidden_and_handed_over(bank: Bank) -> None:
    def tool(bank: Bank, items: list[int]) -> object:
        return bank, items

    mirrored = mirror(tool, bank)

    assert list(inspect.signature(mirrored).parameters) == ["items"]
    assert "bank" not in mirrored.__annotations__
    assert mirrored([1]) == (bank, [1])


def test_a_blocking_bank_will_do() -> None:
    def rows() -> list[dict[str, int]]:
        return ROWS

    with BlockingBank("memory:") as bank:
        assert bank.get(mirror(rows, bank)().pointer) == ROWS


async def test_a_host_injects_its_own_type(bank: Bank) -> None:
    @dataclass
    class Context:
        user: str

    def tool(user: str, context: Context) -> str:
        return f"{user} {context.user}"

    wrapped = Mirror(bank, inject={Context: Context("u")}).wrap(tool)

    assert wrapped("x") == "x u"


async def test_methods_partials_and_callable_objects_can_be_mirrored(bank: Bank) -> None:
    class Tool:
        def method(self, items: list[int]) -> int:
            return sum(items)

        async def __call__(self, items: list[int]) -> int:
            return sum(items)

    def scaled(items: list[int], scale: int) -> int:
        return sum(items) * scale

    pointer = (await bank.put([1, 2])).pointer

    assert mirror(Tool().method, bank)(pointer) == 3
    assert await mirror(Tool(), bank)(pointer) == 3
    assert mirror(Tool(), bank).__name__ == "Tool"
    assert mirror(functools.partial(scaled, scale=2), bank)(pointer) == 6
    assert mirror(sum, bank)(pointer) == 3


@pytest.mark.parametrize("name", ["inline_bytes", "preview_chars"])
def test_a_negative_number_of_a_host_is_refused(bank: Bank, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be 0 or more, got -1"):
        mirror(sum, bank, **{name: -1})  # type: ignore[arg-type]


async def test_a_built_in_without_a_signature_is_refused_by_the_remedy(bank: Bank) -> None:
    with pytest.raises(TypeError, match="wrap it in a function of your own"):
        mirror(dict, bank)


async def test_annotations_that_do_not_resolve_say_nothing(bank: Bank) -> None:
    def tool(items: object) -> object:
        return items

    tool.__annotations__.update(items="NoSuchType")
    pointer = (await bank.put([1])).pointer

    assert mirror(tool, bank)(pointer) == [1]


async def test_a_type_without_a_schema_takes_its_own_and_pointers(bank: Bank) -> None:
    def tool(thing: Foreign) -> object:
        return thing

    thing = Foreign()
    mirrored = mirror(tool, bank)

    assert mirrored(thing) is thing
    assert mirrored((await bank.put([1])).pointer) == [1]
    advertised: Any = mirrored.__annotations__["thing"]
    schema = TypeAdapter(advertised).json_schema()
    assert schema["anyOf"][0] == {}
    assert schema["anyOf"][1]["type"] == "string"


async def test_arguments_nested_deeper_than_python_recurses_are_walked(bank: Bank) -> None:
    nested: list[Any] = [(await bank.put("found")).pointer]
    for _ in range(5_000):
        nested = [nested]

    seen: list[Any] = []

    def tool(value: Any) -> None:
        seen.append(value)

    mirror(tool, bank)(nested)
    inner = seen[0]
    while inner != "found":
        (inner,) = inner

    assert inner == "found"


async def test_an_argument_that_contains_itself_is_walked_once(bank: Bank) -> None:
    loop: dict[str, Any] = {"p": (await bank.put("found")).pointer}
    loop["self"] = loop

    seen: list[Any] = []

    def tool(value: Any) -> None:
        seen.append(value)

    mirror(tool, bank)(loop)

    assert seen[0]["self"] is seen[0]
    assert seen[0]["p"] == "found"
    assert loop["p"] != "found"


async def test_a_mirrored_function_looks_like_the_function(bank: Bank) -> None:
    def total(items: list[int], note: str, scale: int = 1) -> int:
        """Add up."""
        return sum(items) * scale + len(note)

    mirrored = mirror(total, bank)

    assert mirrored.__name__ == "total"
    assert mirrored.__doc__ == "Add up."
    assert mirrored.__qualname__ == total.__qualname__
    assert mirrored.__module__ == __name__
    assert not hasattr(mirrored, "__wrapped__")
    signature = inspect.signature(mirrored)
    assert signature.return_annotation is Any
    assert signature.parameters["scale"].default == 1
    assert mirrored.__annotations__["return"] is Any
    assert not inspect.iscoroutinefunction(mirrored)


async def test_an_async_function_stays_async(bank: Bank) -> None:
    async def later() -> None:
        """Wait."""

    assert inspect.iscoroutinefunction(mirror(later, bank))


async def test_pointers_are_advertised_on_arrays_and_objects_and_accepted_everywhere(
    bank: Bank,
) -> None:
    def tool(
        items: list[Item],
        one: Item,
        count: int,
        text: str,
        short: Annotated[str, Field(max_length=5)],
        described: Annotated[list[int], Field(description="what it is")],
    ) -> None: ...

    schemas = {
        name: TypeAdapter(parameter.annotation).json_schema()
        for name, parameter in inspect.signature(mirror(tool, bank)).parameters.items()
    }

    pattern = r"^\w+[:-][\da-f-]{32}"
    pointer = {"type": "string", "pattern": pattern}
    assert pointer in schemas["items"]["anyOf"]
    assert "Item" in schemas["items"]["$defs"]
    assert pointer in schemas["one"]["anyOf"]
    assert schemas["count"] == {"type": "integer"}
    assert schemas["text"] == {"type": "string"}
    assert schemas["short"] == {"type": "string", "maxLength": 5}
    assert schemas["described"]["description"] == "what it is"
    for parameter in inspect.signature(mirror(tool, bank)).parameters.values():
        assert TypeAdapter(parameter.annotation).validate_python(UNKNOWN) == UNKNOWN


async def test_a_sync_tool_reaches_the_bank_inside_a_running_loop(bank: Bank) -> None:
    def rows() -> list[dict[str, int]]:
        return ROWS

    assert asyncio.get_running_loop().is_running()
    assert isinstance(mirror(rows, bank)(), Envelope)


@pytest.mark.parametrize("is_async", [False, True])
async def test_sync_tools_and_a_blocking_bank_can_be_used_to_shrink_a_result(
    *, is_async: bool
) -> None:
    def big() -> str:
        return "x" * 60_000

    async def big_later() -> str:
        return "x" * 60_000

    async def later(text: str) -> str:
        return text

    with BlockingBank("memory:") as blocking:
        inner = mirror(big, blocking)

        def shrink(result: str) -> object:
            text = f"{inner().size_bytes} {blocking.put(result).size_bytes}"
            return later(text) if is_async else text

        assert mirror(big, blocking, to_model_output=shrink)() == "60000 60000"
        assert inspect.iscoroutinefunction(mirror(big_later, blocking, to_model_output=shrink))


async def test_a_pointer_repeated_to_fill_memory_is_refused_and_nothing_is_fetched() -> None:
    fetched: list[str] = []

    class Counting(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            payload = await super().get(key)
            if payload is not None and len(payload) > 1_000_000:
                fetched.append(key)
            return payload

    bank = Bank(Counting(), limits=Limits(cache_bytes=0))
    once = 32 * 1024 * 1024 // 15
    rows = [0] * (once // 2 - 1)  # its JSON: two bytes for each, and two brackets
    pointer = (await bank.put(rows)).pointer
    id_ = pointer.removeprefix("art:").replace("-", "")
    other = (await bank.put("y" * once)).pointer

    def tool(first: object, *more: object) -> int:
        return len(str(first)) and len(more)

    mirrored = mirror(tool, bank)

    for arguments in ([pointer] * 17, [[pointer] * 17], [pointer, {"a": [f"zz-{id_}"] * 16}]):
        with pytest.raises(InvalidArgumentError, match="repeats may add 33,554,432"):
            mirrored(*arguments)
    with pytest.raises(InvalidArgumentError, match="repeats may add 33,554,432"):
        await Mirror(bank).resolve({"a": [pointer] * 10, "b": {"c": [other] * 8}})
    assert fetched == []
    assert mirrored([other] * 16, pointer) == 1
    assert len(fetched) == 2


@pytest.mark.parametrize("payload", ["text " * 300_000, b"\x00" * 1_500_000])
async def test_what_no_tool_can_change_is_fetched_and_held_once(payload: object) -> None:
    bank = Bank(MemoryStore(), limits=Limits(cache_bytes=0))
    pointer = (await bank.put(payload)).pointer
    seen: list[Any] = []

    def tool(*items: Any) -> None:
        seen.extend(items)

    mirror(tool, bank)(pointer, pointer, pointer)

    assert seen == [payload] * 3
    assert seen[0] is seen[1] is seen[2]


def shared(leaf: object, depth: int) -> object:
    value = [leaf]
    for _ in range(depth):
        value = [value, value]
    return value


async def test_a_shared_structure_without_an_encoding_is_not_written_to_its_end(bank: Bank) -> None:
    shown = await Mirror(bank).offload(shared(Foreign(), 60))

    assert isinstance(shown, str)
    assert len(shown) < 2_000
    assert "The head of the output, which has no encoding" in shown
    assert await artifacts(bank) == 0


async def test_what_has_no_encoding_is_kept_as_text_where_it_is_very_long(bank: Bank) -> None:
    value = [Foreign()] * 10_000

    shown = await Mirror(bank).offload(value, "rows", "call_1")

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == repr(value)
    not_kept = await Mirror(Bank(Full())).offload(value)
    assert isinstance(not_kept, str)
    assert 50_000 < len(not_kept) < 50_200
    assert "was not kept" in not_kept


@pytest.mark.parametrize("raised", [SystemExit, RuntimeError, RecursionError])
async def test_what_a_repr_raises_is_not_raised_by_the_tool(
    bank: Bank, raised: type[BaseException]
) -> None:
    class Rude:
        def __repr__(self) -> str:
            raise raised

    value = [Rude(), {"k": Rude()}]

    assert await Mirror(bank).offload(value) is value


async def test_ctrl_c_in_a_repr_passes(bank: Bank) -> None:
    class Stopped:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mirror(lambda: [Stopped()], bank)()


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.binary(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=3), inner, max_size=4)
            | st.lists(inner, max_size=3).map(tuple)
            | st.sets(st.integers(), max_size=3)
            | st.frozensets(st.text(max_size=2), max_size=3)
        ),
        max_leaves=30,
    ),
    st.integers(0, 300),
)
def test_what_is_written_of_a_value_is_its_repr_up_to_the_limit(value: object, limit: int) -> None:
    loop: list[object] = [value]
    loop.append({"again": loop, "value": (value,)})

    for each in (value, loop):
        assert written(each, 1_000_000) == (repr(each), True)
        assert written(each, limit) == (repr(each)[:limit], len(repr(each)) <= limit)


@pytest.mark.parametrize(
    "odd",
    [
        "Nowhere",
        "not valid !!",
        "typing.Missing",
        "nomod.X",
        "1/0",
        "",
        ...,
        3,
        [1, 2],
        GenericAlias(list, ("No",)),
    ],
    ids=str,
)
async def test_a_hint_that_says_nothing_takes_nothing_from_its_neighbours(
    bank: Bank, odd: object
) -> None:
    def tool(b: Bank, x: object, y: Verbatim[str], n: int) -> object:
        return b, x, y, n

    tool.__annotations__["x"] = odd
    pointer = (await bank.put([1])).pointer
    mirrored = mirror(tool, bank)

    assert list(inspect.signature(mirrored).parameters) == ["x", "y", "n"]
    assert mirrored(pointer, pointer, "7") == (bank, [1], pointer, 7)


async def test_a_return_hint_that_does_not_resolve_is_of_no_account(bank: Bank) -> None:
    def tool(n: int) -> object:
        return n

    tool.__annotations__["return"] = "Nowhere"

    assert mirror(tool, bank)("7") == 7


async def test_a_type_whose_hooks_fail_is_taken_as_it_is(bank: Bank) -> None:
    class Failing:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: object, of: object) -> Any:
            raise ZeroDivisionError

    def tool(thing: Failing, n: int) -> object:
        return thing, n

    thing = Failing()

    assert mirror(tool, bank)(thing, "7") == (thing, 7)


async def test_a_name_of_a_positional_only_parameter_is_free_for_another(bank: Bank) -> None:
    def tool(a: str, /, *args: str, **kw: int) -> object:
        return a, args, kw

    mirrored = mirror(tool, bank)
    pointer = (await bank.put(5)).pointer

    assert mirrored("x", a="5") == ("x", (), {"a": 5})
    assert mirrored("x", a=pointer) == ("x", (), {"a": 5})
    assert mirrored("x", args="5", kw="6") == ("x", (), {"args": 5, "kw": 6})
    with pytest.raises(InvalidArgumentError, match="argument 'a'"):
        mirrored("x", a="no number")


async def test_a_positional_only_parameter_is_injected_behind_ones_left_out(bank: Bank) -> None:
    unset: Any = None

    def tool(a: int = 1, bank: Bank = unset, b: int = 2, /, c: int = 3, *, d: int = 4) -> object:
        return a, bank, b, c, d

    mirrored = mirror(tool, bank)

    assert mirrored() == (1, bank, 2, 3, 4)
    assert mirrored("5") == (5, bank, 2, 3, 4)
    assert mirrored("5", "6") == (5, bank, 6, 3, 4)
    assert mirrored(c="7") == (1, bank, 2, 7, 4)
    assert mirrored(5, 6, 7, d=8) == (5, bank, 6, 7, 8)


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Checked(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def refuse(cls, text: str) -> str:
        if text.startswith("own"):
            raise PydanticCustomError("own_kind", text)  # pyright: ignore[reportArgumentType]
        if text.startswith("assert"):
            raise AssertionError(text)
        raise ValueError(f"bad {text}")


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (dict[str, int], {"key " + "SECRET" * 100_000: "x"}),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "SECRET" * 100_000}),
        (Checked, {"text": "SECRET" * 100_000}),
        (Checked, {"text": "assert SECRET"}),
        (Checked, {"text": "own SECRET"}),
        (list[Checked], [{"text": "SECRET"}]),
        (Literal[tuple(f"choice {number}" for number in range(1_000))], "x"),
    ],
)
async def test_a_refusal_is_short_and_quotes_no_value(
    bank: Bank, declared: Any, value: object
) -> None:
    def tool(x: object) -> object:
        return x

    tool.__annotations__["x"] = declared

    with pytest.raises(InvalidArgumentError, match="argument 'x'") as caught:
        mirror(tool, bank)(value)

    said = str(caught.value)
    assert len(said) < 900
    assert said.count("SECRET") <= 80 // 6  # the head of a key tells where


async def test_the_name_of_an_argument_is_cut_where_it_is_refused(bank: Bank) -> None:
    def tool(**named: int) -> object:
        return named

    with pytest.raises(InvalidArgumentError) as caught:
        mirror(tool, bank)(**{"n" * 100_000: "no number"})

    assert len(str(caught.value)) < 300


async def test_a_place_knows_the_keys_that_lead_to_it() -> None:
    nested: list[Any] = [UNKNOWN]
    for _ in range(50_000):
        nested = [nested]

    (slot,) = Argument(nested).slots
    flat = Argument({"a": [1, {"b": (UNKNOWN,), "c": UNKNOWN}], "d": UNKNOWN})

    assert slot.path == (0,) * 50_001
    assert {slot.path for slot in flat.slots} == {("a", 1, "c"), ("d",)}
    assert Argument(UNKNOWN).slots[0].path == ()


async def test_only_what_a_host_names_as_ours_passes_whole(bank: Bank) -> None:
    large = "x" * 51_200
    host = Mirror(bank, own=["retrieve_context"])

    assert isinstance(await host.offload(large, "memory_read"), Envelope)
    assert isinstance(await host.offload_part(large, "memory_read"), Envelope)
    assert await host.offload(large, "retrieve_context") is large
    assert await Mirror(bank).offload(large, "memory_read") is large


async def test_pointers_stay_where_a_schema_says_that_they_are_taken_as_text(bank: Bank) -> None:
    def pin(ref: Verbatim[str], more: Verbatim[list[str]], rows: list[int]) -> None: ...

    schema = TypeAdapter[Any](cast("Any", pin)).json_schema()
    pointer = (await bank.put([1, 2])).pointer

    found = await Mirror(bank).resolve({"ref": pointer, "more": [pointer], "rows": pointer}, schema)

    assert found == {"ref": pointer, "more": [pointer], "rows": [1, 2]}


def test_a_function_of_the_readers_name_is_what_envelopes_name_and_never_offloaded(
    bank: Bank,
) -> None:
    def retrieve_context(artifactId: str) -> str:  # noqa: N803 - as ours
        return artifactId * 60_000

    assert mirror(retrieve_context, bank)("x") == "x" * 60_000


@pytest.mark.parametrize("text", ["id,v\n1,2\n3,\n", '{"a":1}\n{"a":""}\n'])
async def test_of_rows_that_do_not_fit_the_hint_says_how_they_are_had(
    bank: Bank, text: str
) -> None:
    def total(rows: list[dict[str, int]]) -> int:
        return len(rows)

    def count(rows: list[dict[str, Any]]) -> int:
        return len(rows)

    kind = "text/csv" if text.startswith("id") else "application/x-ndjson"
    pointer = (await bank.put(text, content_type=kind)).pointer

    with pytest.raises(InvalidArgumentError) as caught:
        mirror(total, bank)(pointer)
    assert "`#$` behind the pointer gives the rows" in caught.value.hint
    with pytest.raises(InvalidArgumentError, match="valid integer"):
        mirror(total, bank)(f"{pointer}#$")
    assert mirror(count, bank)(pointer) == mirror(count, bank)(f"{pointer}#$") == 2
