"""Results of MCP tools, block by block, as adapters show them."""

import json
from typing import Any

import pytest

from coatcheck import Bank, Envelope, Limits, Mirror
from coatcheck.adapters._mcp_results import is_mcp_result, shown_content
from coatcheck.stores import MemoryStore

ROWS = [{"id": number, "price": number} for number in range(100)]
LOG = "line of a log\n" * 100
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


def text(content: object) -> dict[str, Any]:
    told = content if isinstance(content, str) else json.dumps(content, indent=1)
    return {"type": "text", "text": told}


@pytest.fixture
def mirror() -> Mirror:
    return Mirror(Bank(MemoryStore()), Limits(inline_bytes=1_000))


async def banked(mirror: Mirror, shown: object) -> object:
    assert isinstance(shown, Envelope)
    return await mirror.bank.get(shown.pointer)


@pytest.mark.parametrize(
    "result",
    [
        {"content": [text(ROWS)], "structuredContent": {"result": ROWS}},
        {"content": [text({"result": ROWS})], "structuredContent": {"result": ROWS}},
        {"content": [text(row) for row in ROWS], "structuredContent": {"result": ROWS}},
        {"content": [], "structuredContent": {"result": ROWS}},
    ],
    ids=["the value", "all of it", "its items", "nothing"],
)
async def test_structured_content_that_the_texts_repeat_is_banked_once(
    mirror: Mirror, result: dict[str, Any]
) -> None:
    shown = await shown_content(mirror, "rows", result, call_id="c1")

    assert shown is not None
    (only,) = shown.content
    assert await banked(mirror, only) == ROWS
    assert shown.structured is None
    assert await mirror.bank.find("rows_c1") is not None
    assert (await mirror.bank.usage()).artifacts == 1


async def test_text_that_is_repeated_is_known_beside_an_image_too(mirror: Mirror) -> None:
    result = {"content": [IMAGE, text(ROWS)], "structuredContent": {"result": ROWS}}

    shown = await shown_content(mirror, "rows", result)

    assert shown is not None
    image, envelope = shown.content
    assert image is IMAGE
    assert json.loads(str(await banked(mirror, envelope))) == ROWS
    assert shown.structured is None


async def test_each_part_that_is_small_stays_the_very_object_it_was(mirror: Mirror) -> None:
    small, structured = text("short"), {"rows": 100}
    result = {"content": [small, text(LOG), IMAGE], "structuredContent": structured}

    shown = await shown_content(mirror, "rows", result)

    assert shown is not None
    assert (shown.content[0], shown.content[2]) == (small, IMAGE)
    assert await banked(mirror, shown.content[1]) == LOG
    assert shown.structured is structured


@pytest.mark.parametrize(
    "result",
    [
        {"content": [text("short")]},
        {"content": [text("short"), IMAGE], "structuredContent": {"rows": 1}},
        {"content": [IMAGE]},
        {"content": []},
        {"content": [{"type": "resource_link", "uri": "file:///" + "a" * 2_000, "name": "a"}]},
    ],
)
async def test_result_of_which_nothing_is_large_is_shown_as_it_is(
    mirror: Mirror, result: dict[str, Any]
) -> None:
    assert await shown_content(mirror, "rows", result) is None
    assert await shown_content(mirror, "rows", result, call_id="c1") is None
    assert (await mirror.bank.usage()).artifacts == 0


async def test_hundred_texts_count_each_for_itself_and_more_are_rows(mirror: Mirror) -> None:
    for count in (100, 101):
        shown = await shown_content(mirror, "rows", {"content": [text("x" * 20)] * count})
        assert (shown is None) is (count == 100)


@pytest.mark.parametrize("depth", [900, 1_000, 5_000])
async def test_what_is_nested_deeper_than_python_compares_costs_no_call(
    mirror: Mirror, depth: int
) -> None:
    deep: list[Any] = []
    for _ in range(depth - 1):
        deep = [deep]
    result = {"content": [text("[" * depth + "]" * depth)], "structuredContent": {"result": deep}}

    assert await shown_content(mirror, "rows", result) is not None


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"content": [text("a"), IMAGE], "isError": False, "_meta": {}}, True),
        ({"content": []}, True),
        ({"content": "a"}, False),
        ({"content": [], "rows": ROWS}, False),
        ({"content": [{"type": "invoice"}]}, False),
        ({"content": ["a"]}, False),
        ([text("a")], False),
    ],
)
def test_result_of_mcp_has_its_members_and_blocks_and_no_others(
    value: object, is_one: bool
) -> None:
    assert is_mcp_result(value) is is_one
