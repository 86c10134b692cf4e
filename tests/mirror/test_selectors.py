"""Pointers with selectors among the arguments of mirrored tools."""

from typing import Any

import pytest
from pydantic import BaseModel

from coatcheck import Bank, BlockingBank, Kind, Mirror, UnknownPointerError, Verbatim, mirror
from coatcheck.errors import (
    InvalidArgumentError,
    InvalidPointerError,
    InvalidQueryError,
    NothingSelectedError,
)
from coatcheck.stores import MemoryStore

ID = "00000000-0000-4000-8000-000000000005"
UNISSUED = f"art:{ID}"
ROWS: list[Any] = [{"id": number, "name": f"n{number}"} for number in range(2_000)]
LOG = "first\nsecond 2\nthird\n"


class Order(BaseModel):
    id: int
    name: str


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), kinds=[Kind("product set", prefix="ps")])


async def test_a_tool_gets_what_is_selected_as_its_declared_type(bank: Bank) -> None:
    rows, log = (await bank.put(ROWS)).pointer, (await bank.put(LOG)).pointer
    whole = (await bank.put("12", kind="product set")).pointer
    seen: list[object] = []

    def tool(
        ids: list[int],
        order: Order,
        text: str,
        line: str,
        number: int,
        anything: Any = None,
        names: tuple[str, ...] = (),
    ) -> None:
        seen.extend([ids, order, text, line, number, anything, names])

    mirror(tool, bank)(
        f"{rows}#$[*].id",
        order=f"{rows}#/7",
        text=f"{rows}#/7",
        line=f"{log}#L2",
        number=f"{whole}#char=0,1",
        anything=f"{rows}#row=2-3",
        names=f"{rows}#$[0:2].name",
    )

    assert seen == [
        list(range(2_000)),
        Order(id=7, name="n7"),
        '{"id":7,"name":"n7"}',
        "second 2\n",
        1,
        ROWS[1:3],
        ("n0", "n1"),
    ]


async def test_a_selector_stands_wherever_a_pointer_may(bank: Bank) -> None:
    rows, log = (await bank.put(ROWS)).pointer, (await bank.put(LOG)).pointer

    def tool(deep: dict[str, list[object]], *more: object, **named: object) -> object:
        return [deep, more, named]

    async def later(deep: object) -> object:
        return deep

    given = {"a": [f"{rows}#/0/id", f"{log}#L1-L2", "text"], "b": [f"{rows}#$[0:1].name", rows]}
    expected = {"a": [0, "first\nsecond 2\n", "text"], "b": [["n0"], ROWS]}

    assert mirror(tool, bank, inline_bytes=10**9)(given, f"{log}#L1", x=f"{rows}#/1") == [
        expected,
        ("first\n",),
        {"x": ROWS[1]},
    ]
    assert await mirror(later, bank, inline_bytes=10**9)(given) == expected
    assert given["a"][0] == f"{rows}#/0/id"


async def test_each_place_gets_an_object_of_its_own(bank: Bank) -> None:
    rows = (await bank.put(ROWS)).pointer
    deep = (await bank.put({"x": {"y": [1]}})).pointer

    def change(a: list[Any], b: list[Any], c: dict[str, Any]) -> object:
        a[0].clear()
        a.append("more")
        b[0]["id"] = -1
        c["y"].append(2)
        return [a, b, c]

    for _ in range(2):
        changed = mirror(change, bank)(f"{rows}#$[0:2]", f"{rows}#$[0:2]", f"{deep}#/x")
        assert changed == [
            [{}, ROWS[1], "more"],
            [{"id": -1, "name": "n0"}, ROWS[1]],
            {"y": [1, 2]},
        ]
    assert await bank.get(f"{rows}#$[0:2]") == ROWS[:2]
    assert await bank.get(deep) == {"x": {"y": [1]}}


SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "texts": {"type": "array", "items": {"type": "string"}},
        "number": {"type": "integer"},
        "either": {"anyOf": [{"type": "string"}, {"type": "array"}]},
    },
}


async def test_a_schema_says_whether_a_place_gets_the_text_or_the_value(bank: Bank) -> None:
    rows = (await bank.put(ROWS)).pointer
    numbers = (await bank.put("[1, 2]\n7\n", content_type="text/plain")).pointer
    arguments = {
        "text": f"{rows}#$[0:2].id",
        "maybe": f"{rows}#/1",
        "ids": f"{rows}#$[0:2].id",
        "texts": [f"{rows}#/0/id", f"{numbers}#L2"],
        "number": f"{numbers}#L2",
        "either": f"{numbers}#L1",
        "beside": f"{rows}#/0",
    }

    resolved = await Mirror(bank).resolve(arguments, SCHEMA)

    assert resolved == {
        "text": "[0,1]",
        "maybe": '{"id":1,"name":"n1"}',
        "ids": [0, 1],
        "texts": ["0", "7\n"],
        "number": 7,
        "either": "[1, 2]\n",
        "beside": {"id": 0, "name": "n0"},
    }
    bare = await Mirror(bank).resolve(arguments)
    assert bare["text"] == [0, 1]
    assert bare["number"] == "7\n"


@pytest.mark.parametrize(
    "behind", ["#", "#items", "# a comment", "#L0x", "#row", "#\n", "#" + "x" * 5_000]
)
@pytest.mark.parametrize("issued", [True, False])
async def test_a_pointer_with_something_else_behind_it_is_refused_before_the_tool_runs(
    bank: Bank, behind: str, issued: bool
) -> None:
    pointer = (await bank.put(ROWS)).pointer if issued else UNISSUED
    ran: list[object] = []

    def tool(text: str, deep: object = None) -> None:
        ran.append(text)

    async def later(text: str, deep: object = None) -> None:
        ran.append(text)

    for arguments in ({"text": pointer + behind}, {"text": "x", "deep": {"k": [pointer + behind]}}):
        with pytest.raises(InvalidPointerError) as refused:
            mirror(tool, bank)(**arguments)
        with pytest.raises(InvalidPointerError):
            await mirror(later, bank)(**arguments)
        with pytest.raises(InvalidPointerError):
            await Mirror(bank).resolve(arguments)
        assert "selector" in refused.value.hint
        assert len(str(refused.value)) < 200
    assert ran == []


async def test_one_with_a_registered_prefix_is_refused_too(bank: Bank) -> None:
    issued = (await bank.put(["x"], kind="product set")).pointer
    assert issued.startswith("ps-")

    def tool(text: object) -> object:
        return text

    for pointer in (issued, f"ps-{ID.replace('-', '')}", f"plan-{ID.replace('-', '')}"):
        with pytest.raises(InvalidPointerError):
            mirror(tool, bank)(f"{pointer}#everything")
    assert mirror(tool, bank)(f"{issued}#/0") == "x"
    with pytest.raises(UnknownPointerError):
        mirror(tool, bank)(f"plan-{ID.replace('-', '')}#/0")


@pytest.mark.parametrize(
    "text",
    [
        "art:deco posters#x",
        "art:deco posters#/0",
        f"see {UNISSUED}#/0",
        f"{ID}#/0",
        f"sha-{ID.replace('-', '')}#L10-L20",
        f"sha-{ID.replace('-', '')}#anything",
        f"ah-{ID.replace('-', '')}#/0",
        f"{UNISSUED}0#/0",
        f"{UNISSUED} #/0",
        "issue#12",
        "https://example.org/#/0",
    ],
)
async def test_what_names_no_pointer_of_ours_stays_text_whatever_follows(
    bank: Bank, text: str
) -> None:
    def tool(text: str, more: list[str]) -> object:
        return [text, more]

    assert mirror(tool, bank)(text, [text]) == [text, [text]]
    assert await Mirror(bank).resolve({"a": [text]}) == {"a": [text]}


async def test_a_prefix_nobody_registered_is_a_pointer_where_something_stands_behind_it(
    bank: Bank,
) -> None:
    artifact = await bank.put(ROWS)
    other = f"sha-{artifact.id.replace('-', '')}"

    def tool(text: object) -> object:
        return text

    assert mirror(tool, bank)(f"{other}#/3") == ROWS[3]
    with pytest.raises(InvalidPointerError):
        mirror(tool, bank)(f"{other}#what")


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ("/9999", NothingSelectedError),
        ("$[*].nope", NothingSelectedError),
        ("L2", NothingSelectedError),
        ("row=2001", NothingSelectedError),
        ("line=5,5", InvalidArgumentError),
        ("$[", InvalidQueryError),
    ],
)
async def test_a_selector_that_picks_nothing_stops_the_call(
    bank: Bank, selector: str, error: type[Exception]
) -> None:
    rows = (await bank.put(ROWS)).pointer
    ran: list[object] = []

    def tool(a: object, b: object) -> None:
        ran.append(a)

    with pytest.raises(error):
        mirror(tool, bank)(rows, {"k": [f"{rows}#/0", f"{rows}#{selector}"]})
    assert ran == []


async def test_a_verbatim_parameter_gets_the_pointer_with_whatever_follows(bank: Bank) -> None:
    def tool(text: Verbatim[str]) -> str:
        return text

    for text in (f"{UNISSUED}#/0", f"{UNISSUED}#what"):
        assert mirror(tool, bank)(text) == text


async def test_a_selected_value_that_does_not_fit_is_told_by_the_argument(bank: Bank) -> None:
    rows = (await bank.put(ROWS)).pointer

    def tool(ids: list[int]) -> int:
        return len(ids)

    with pytest.raises(InvalidArgumentError, match="ids"):
        mirror(tool, bank)(f"{rows}#$[*].name")


async def test_what_was_selected_is_not_looked_into_for_pointers(bank: Bank) -> None:
    inner = (await bank.put("inner")).pointer
    outer = (await bank.put({"a": [f"{inner}#char=0,1", inner]})).pointer

    def tool(items: list[str]) -> list[str]:
        return items

    assert mirror(tool, bank)(f"{outer}#/a") == [f"{inner}#char=0,1", inner]


async def test_small_parts_of_a_large_artifact_may_be_given_many_times(bank: Bank) -> None:
    rows = (await bank.put([{"id": number, "pad": "x" * 1_000} for number in range(9_000)])).pointer

    def tool(ids: list[int]) -> int:
        return sum(ids)

    assert (
        mirror(tool, bank)([f"{rows}#/{number}/id" for number in range(0, 9_000, 100)]) == 400_500
    )
    assert mirror(tool, bank)([f"{rows}#/8999/id"] * 100) == 899_900


async def test_large_parts_of_an_artifact_may_not(bank: Bank) -> None:
    rows = (await bank.put([["x" * 1_000] * 1_000 for _ in range(9)])).pointer
    text = (await bank.put("x" * 20_000_000)).pointer
    ran: list[object] = []

    def tool(parts: list[object]) -> None:
        ran.append(len(parts))

    mirror(tool, bank)([f"{rows}#/{number}" for number in range(9)])
    mirror(tool, bank)([f"{text}#char=0,{length}" for length in (10_000_000, 19_000_000)])
    for parts in (
        [f"{rows}#$[{number}:9]" for number in range(9)],
        [rows, *(f"{rows}#/{number % 9}" for number in range(40))],
        [f"{text}#char={number}," for number in range(4)],
        [text, text, text],
    ):
        with pytest.raises(InvalidArgumentError, match="repeats may add 33,554,432") as refused:
            mirror(tool, bank)(parts)
        assert "once" in refused.value.hint
    assert ran == [9, 2]


def test_a_sync_tool_resolves_selectors_without_an_event_loop() -> None:
    def total(ids: list[int]) -> int:
        return sum(ids)

    with BlockingBank("memory:") as bank:
        pointer = bank.put(ROWS).pointer

        assert mirror(total, bank)(f"{pointer}#$[*].id") == sum(range(2_000))
        assert bank.get(f"{pointer}#/5/id") == 5
        assert bank.read(f"{pointer}#/5").content == '{"id":5,"name":"n5"}'
        assert bank.search(f"{pointer}#row=6", "n5").total_matches == 1
        assert bank.payload(f"{pointer}#/5/id") == b"5"
