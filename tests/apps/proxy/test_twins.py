"""Which blocks say what the structured content says."""

import json
from typing import Any

import pytest

from coatcheck.apps.proxy._twins import Twin, joined, only_value, twin_of, unwrapped

ROWS = [{"id": 1, "name": "é"}, {"id": 2, "name": None}]


def texts(*given: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in given]


IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "structured", "blocks"),
    [
        # A text that parses to it, however it is written.
        (texts(json.dumps(ROWS)), ROWS, (0,)),
        (texts(json.dumps({"a": ROWS}, indent=4)), {"a": ROWS, "b": 1}, None),
        (texts(json.dumps({"a": ROWS, "b": 1}, indent=4)), {"a": ROWS, "b": 1}, (0,)),
        (texts("first", json.dumps({"a": ROWS, "b": 1})), {"a": ROWS, "b": 1}, (1,)),
        # Its only value: as the text itself, or as what the text parses to.
        (texts("plain"), {"result": "plain"}, (0,)),
        (texts("plain"), {"content": "plain"}, (0,)),
        (texts("[1, 2]"), {"result": "[1, 2]"}, (0,)),
        (texts(json.dumps(ROWS, indent=2)), {"result": ROWS}, (0,)),
        (texts(json.dumps(ROWS)), {"entities": ROWS}, (0,)),
        (texts("5"), {"result": 5}, (0,)),
        (texts("plain"), {"result": "plain", "more": 1}, None),
        (texts("plain"), {"result": "plan"}, None),
        (texts("# A table"), {"rows": ROWS}, None),
        (texts("{broken"), {"a": 1}, None),
        (texts("{broken"), 5, None),
        ([], ROWS, None),
        ([IMAGE], {"result": ROWS}, None),
    ],
)
def test_a_text_block_is_found_in_each_form(
    content: list[dict[str, Any]], structured: object, blocks: tuple[int, ...] | None
) -> None:
    twin = twin_of(content, structured)

    assert (None if twin is None else twin.blocks) == blocks
    assert twin is None or twin.value is None


@pytest.mark.parametrize("wrapped", [False, True])
def test_texts_that_are_the_items_of_a_list_are_found_together(wrapped: bool) -> None:
    items: list[object] = [*ROWS, "plain", 5, [1]]
    content = texts(*(each if isinstance(each, str) else json.dumps(each) for each in items))

    twin = twin_of([IMAGE, *content], {"result": items} if wrapped else items)

    assert twin == Twin((1, 2, 3, 4, 5), items)


def test_texts_that_are_other_items_are_not() -> None:
    assert twin_of(texts('{"id": 1}', '{"id": 3}'), {"result": [{"id": 1}, {"id": 2}]}) is None
    assert twin_of(texts('{"id": 1}'), {"result": [{"id": 1}, {"id": 2}]}) is None


def test_blocks_that_are_repeated_whole_are_found() -> None:
    content = [IMAGE, *texts("caption")]

    assert twin_of(content, {"content": [dict(each) for each in content]}) == Twin(())
    assert twin_of(content, {"content": [IMAGE]}) is None


def test_what_is_wrapped_is_told() -> None:
    assert unwrapped({"result": [1]}) == [1]
    assert unwrapped({"result": [1], "more": 2}) == {"result": [1], "more": 2}
    assert unwrapped({"rows": [1]}) == {"rows": [1]}
    assert unwrapped([1]) == [1]
    assert only_value({"rows": [1]}) == [1]
    assert only_value({}) == {}


@pytest.mark.parametrize(("count", "is_one"), [(100, False), (101, True)])
def test_more_than_a_hundred_texts_are_one_list(count: int, is_one: bool) -> None:
    rows = [json.dumps({"id": number, "price": 1.50}) for number in range(count)]

    together = joined([IMAGE, *texts(*rows)], 1_000)

    assert (together is not None) == is_one
    if together is not None:
        assert together.blocks == tuple(range(1, count + 1))
        assert together.value == f"[{','.join(rows)}]"


def test_texts_that_are_no_json_are_a_list_of_texts() -> None:
    lines = [f"line {number}" for number in range(200)]

    together = joined(texts(*lines), 1_000)

    assert together is not None
    assert together.value == lines
    assert joined(texts(*lines), 10_000) is None
