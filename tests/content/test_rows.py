import json
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content import Index, dumps, encode
from coatcheck.content._index import BLOCK_ROWS, Rows
from coatcheck.content._rows import JsonRows, LineRows, RowScanner, dump_rows, json_pattern

SCALARS = st.none() | st.booleans() | st.integers() | st.text('a"\\{}[],\n é', max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab]}", max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
PARTS = st.integers(1, 7) | st.sampled_from([64, 1_000, 10**6])


def scan(scanner: RowScanner, payload: bytes, part: int) -> Rows | None:
    for start in range(0, len(payload), part):
        scanner.feed(payload[start : start + part])
    return scanner.rows()


def index_of(value: object, content_type: str | None = None) -> Index:
    encoding = encode(value, content_type)
    for _ in encoding.chunks():
        pass
    return encoding.index


def nested(depth: int) -> object:
    value: object = "]}"
    for level in range(depth):
        value = [value] if level % 2 else {"{[": value}
    return value


@given(st.lists(VALUES, max_size=8), PARTS, st.sampled_from([None, 1]))
def test_elements_of_a_json_array_are_counted_however_it_is_cut(
    rows: list[object], part: int, indent: int | None
) -> None:
    text = json.dumps(rows, ensure_ascii=False, indent=indent)

    found = scan(JsonRows(), f" {text}\n".encode(), part)

    assert found is not None
    assert found.count == len(rows)


@given(st.lists(VALUES, min_size=1, max_size=5), st.integers(400, 1_100))
@settings(max_examples=30)
def test_each_1024th_row_is_where_the_index_says(rows: list[object], times: int) -> None:
    rows = rows * times
    payload = dumps(rows)

    joined, known = dump_rows(rows)
    found = scan(JsonRows(), payload, 65_536)

    assert joined == payload
    assert found is not None
    assert (found.count, list(found.starts)) == (known.count, list(known.starts))
    assert len(found.starts) == -(-len(rows) // BLOCK_ROWS)
    for number, start in enumerate(found.starts):
        row = dumps(rows[number * BLOCK_ROWS])
        assert payload[start : start + len(row)] == row


@pytest.mark.parametrize("depth", [0, 1, 5, 6, 7, 250])
@pytest.mark.parametrize("part", [3, 10**6])
def test_rows_of_any_depth_are_counted(depth: int, part: int) -> None:
    rows = [nested(depth), 1, nested(depth)]

    found = scan(JsonRows(), dumps(rows), part)

    assert found is not None
    assert found.count == 3


def test_a_deep_row_that_is_cut_has_no_end_yet() -> None:
    row = dumps(nested(20))

    assert json_pattern().skip(row, 1, 0) == (0, 0)
    assert json_pattern().skip(row[:-3], 1, 0) == (0, 0)
    assert json_pattern().skip(row + b" ,", 1, 0) == (1, len(row) + 2)
    assert json_pattern().skip(b"]", 1, 0) == (0, 0)


@pytest.mark.parametrize("text", ['{"a": [1]}', "3", "", " ", "[1, 2"])
def test_json_that_is_no_whole_array_has_no_rows(text: str) -> None:
    assert scan(JsonRows(), text.encode(), 2) is None


@given(st.lists(VALUES, max_size=8), PARTS, st.sampled_from(["\n", "\r\n", "\n\n", "\n \r\n"]))
def test_lines_of_ndjson_are_counted_without_blank_ones(
    rows: list[object], part: int, end: str
) -> None:
    text = end.join(json.dumps(row, ensure_ascii=False) for row in rows)

    for tail in ("", end):
        for mark in (b"", b"\xef\xbb\xbf"):
            found = scan(LineRows(), mark + (text + tail).encode(), part)
            assert found is not None
            assert found.count == len(rows)


@pytest.mark.parametrize("line", ["x", '{"a":1', "1 2", "NaN", '{"a":1}{"a":2}'])
def test_one_line_that_is_no_json_value_makes_text_no_ndjson(line: str) -> None:
    text = '{"a":1}\n' * 2_000

    assert index_of(text + line, "application/x-ndjson").row_count is None
    assert index_of(line + "\n" + text, "application/x-ndjson").row_count is None
    assert index_of(text, "application/x-ndjson").row_count == 2_000


def test_numbers_and_surrogates_that_orjson_refuses_are_rows_too() -> None:
    text = '1e999\n"\ud800"\n' + "9" * 400

    assert index_of(text, "application/jsonl").row_count == 3


def test_a_row_over_the_bound_leaves_a_text_without_rows() -> None:
    row = b'"' + b"x" * 18_000_000 + b'"'

    assert scan(LineRows(), row + b"\n1\n", 10**6) is None
    assert scan(LineRows(), row[3_000_000:-1], 10**6) is None


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([], 0),
        ([1], 1),
        ([None] * BLOCK_ROWS, BLOCK_ROWS),
        ([None] * (BLOCK_ROWS + 1), BLOCK_ROWS + 1),
        (tuple(range(3_000)), 3_000),
        ([2**70, *range(2_000)], 2_001),
        ({"a": []}, None),
        ("[1,\n2]", 2),
        (b"[1]", None),
        ("text", None),
        (7, None),
    ],
    ids=str,
)
def test_what_is_a_list_has_rows(value: object, count: int | None) -> None:
    index = index_of(value)

    assert index.row_count == count
    assert len(index.row_starts) == -(-(count or 0) // BLOCK_ROWS)
    encoding = encode(value)
    if isinstance(value, list | tuple):
        assert encoding.whole() == dumps(cast("object", value))


@pytest.mark.parametrize("value", ["[1,[2]]", b"[1,[2]]"])
def test_a_given_json_type_is_believed_only_where_it_is_json(value: str | bytes) -> None:
    broken = value[:-1]

    assert index_of(value, "application/json").row_count == 2
    assert index_of(value, "application/vnd.x+json; charset=utf-8").row_count == 2
    assert index_of(broken, "application/json").row_count is None
    assert index_of(value, "text/plain").row_count is None


def test_json_of_any_size_has_rows() -> None:
    text = f'["{"x" * (9 * 1024 * 1024)}","{"y" * (9 * 1024 * 1024)}"]'

    assert index_of(text, "application/json").row_count == 2
    assert index_of(text + ",", "application/json").row_count is None
