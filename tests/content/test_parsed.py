"""Payloads parsed whole, by row and by block give the same values."""

import json
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Encoding, encode, is_parsed_as, parse_payload, parse_rows, rows_span
from coatcheck.content._index import BLOCK_ROWS
from coatcheck.content._parsed import (
    is_text_rows,
    least_tree_bytes,
    parse_block,
    tree_bytes,
)

pd: Any = import_module("pandas")

ROWS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
CELLS = st.text(alphabet='ab ",\n\ré€', max_size=6)


def parsed_as(encoding: Encoding) -> str | None:
    head = encoding.head(1_000) or ""
    return is_parsed_as(encoding.form, encoding.content_type, encoding.index, head)


def parsed(encoding: Encoding) -> object:
    payload = encoding.whole()
    kind = parsed_as(encoding)
    assert kind is not None
    return parse_payload(payload, kind, encoding.index.rows)


def window(encoding: Encoding, start: int, stop: int) -> list[object]:
    payload, rows = encoding.whole(), encoding.index.rows
    assert rows is not None
    first, last = rows_span(rows, len(payload), start, stop)
    return parse_rows(rows, payload[first:last], start, stop)


def blocks(encoding: Encoding) -> list[object]:
    payload, rows = encoding.whole(), encoding.index.rows
    assert rows is not None
    assert is_text_rows(rows)
    ends = [*rows.starts, len(payload)]
    return [
        row
        for block in range(len(rows.starts))
        for row in parse_block(rows, payload[ends[block] : ends[block + 1]], block, block + 1)
    ]


@given(st.lists(ROWS, min_size=1, max_size=20), st.data())
def test_rows_of_json_and_ndjson_are_the_same_alone_and_within_the_whole(
    rows: list[object], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    spaced = json.dumps(rows, indent=2, ensure_ascii=False)

    for encoding in (
        encode(rows),
        encode(spaced, "application/json"),
        encode(f" {spaced}\n", "application/json"),
        encode(lines, "application/x-ndjson"),
        encode(f"\n{lines}\n \n".rstrip("\n"), "application/x-ndjson"),
    ):
        assert parsed(encoding) == rows
        assert window(encoding, start, stop) == rows[start:stop]
        assert blocks(encoding) == rows


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=20), st.data())
def test_rows_of_csv_are_the_same_alone_and_within_the_whole(
    records: list[list[str]], data: st.DataObject
) -> None:
    text = "a,b,c\r\n" + "".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in record) + "\r\n"
        for record in records
    )
    start = data.draw(st.integers(0, len(records) - 1))
    stop = data.draw(st.integers(start + 1, len(records)))
    expected = [
        dict(zip("abc", [*record, None, None], strict=False))
        | ({"extra": record[3:]} if len(record) > 3 else {})
        for record in records
    ]

    for encoding in (encode(text, "text/csv"), encode(f"\ufeff{text}".rstrip(), "text/csv")):
        assert parsed(encoding) == expected
        assert window(encoding, start, stop) == expected[start:stop]
        assert blocks(encoding) == expected


@pytest.mark.parametrize("count", [1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS])
def test_windows_across_the_edge_of_a_block_hold_their_rows(count: int) -> None:
    rows: list[object] = [{"id": number, "tags": [number, "]"]} for number in range(count)]
    texts = [f'{number},"x,{number}"' for number in range(count)]
    records = [{"id": f"{number}", "x": f"x,{number}"} for number in range(count)]
    lines = "\n".join(json.dumps(row) for row in rows)

    for start, stop in ((0, 1), (0, count), (count - 1, count), (count // 2, count)):
        assert window(encode(rows), start, stop) == rows[start:stop]
        assert window(encode(lines, "application/jsonl"), start, stop) == rows[start:stop]
        table = encode("id,x\n" + "\n".join(texts), "text/csv")
        assert window(table, start, stop) == records[start:stop]


def test_nothing_of_csv_is_guessed_to_be_a_number() -> None:
    assert parsed(encode("id,at\n007,true\n1e3,\n", "text/csv")) == [
        {"id": "007", "at": "true"},
        {"id": "1e3", "at": ""},
    ]
    assert parsed(encode("id\tat\n", "text/tab-separated-values")) == []
    bare = encode("7,8\n", "text/csv; header=absent")
    assert parsed(bare) == [{"column_1": "7", "column_2": "8"}]


def test_numbers_of_any_length_stay_exact() -> None:
    big = 2**64 + 1

    assert parsed(encode([big, -(10**30)])) == [big, -(10**30)]
    assert window(encode([0, big]), 1, 2) == [big]
    assert parsed(encode(f"[{big}]\n[1]\n[2]\n")) == [[big], [1], [2]]


def test_arrays_and_frames_are_plain_rows() -> None:
    array = np.arange(6).reshape(3, 2)
    frame = pd.DataFrame({"id": [1, 2], "name": ["x", None]})

    assert parsed(encode(array)) == [[0, 1], [2, 3], [4, 5]]
    assert parsed(encode(np.array(7))) == 7
    assert parsed(encode(frame)) == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        (encode("plain words"), None),
        (encode("123"), None),
        (encode("123", "application/json"), "json"),
        (encode('{"a":1}'), "json"),
        (encode('\ufeff{"a":1}', "text/plain"), "json"),
        (encode(" \n[1]", "text/plain"), "json"),
        (encode("[2026-01-01] started", "text/plain"), "json"),
        (encode(b"[1]"), None),
        (encode(b'{"a":1}', "application/json"), "json"),
        (encode("a,b\n1,2\n1,2\n1,2\n"), "csv"),
        (encode("{}\n{}\n{}\n"), "ndjson"),
        (encode(7), "json"),
        (encode(b"\xff"), None),
    ],
)
def test_what_a_payload_is_parsed_as_hangs_on_its_type_and_beginning(
    encoding: Encoding, expected: str | None
) -> None:
    encoding.whole()

    assert parsed_as(encoding) == expected


def test_a_mark_of_byte_order_is_no_part_of_json() -> None:
    assert parse_payload(b'\xef\xbb\xbf{"a":1}', "json", None) == {"a": 1}


@pytest.mark.parametrize("text", ["[2026-01-01] started", "{", "[1,]", '{"a":NaN}'])
def test_text_that_only_begins_like_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_payload(text.encode(), "json", None)


def test_rows_that_are_not_where_the_index_says_are_damage() -> None:
    encoding = encode([{"id": number} for number in range(2_000)])
    payload, rows = encoding.whole(), encoding.index.rows
    assert rows is not None
    first, last = rows_span(rows, len(payload), 1_500, 1_600)
    data = payload[first:last]

    for damaged in (data[:5_000], data.replace(b"{", b" "), b"", b"\xff" * len(data)):
        with pytest.raises(ValueError, match=r"."):
            parse_rows(rows, damaged, 1_500, 1_600)
    with pytest.raises(ValueError, match="were indexed"):
        parse_block(rows, data, 0, 1)


@pytest.mark.parametrize(
    "encoding",
    [
        encode([{"id": number, "name": f"n{number}", "ok": True} for number in range(500)]),
        encode(list(range(10_000))),
        encode([number / 7 for number in range(2_000)]),
        encode(json.loads("[" + ",".join(["[]"] * 2_000) + "]")),
        encode({f"key{number}": number for number in range(2_000)}),
        encode("".join(f'{{"id":{number}}}\n' for number in range(2_000))),
        encode("id,a,b,c\n" + "".join(f"{number},x,yy,zzz\n" for number in range(2_000))),
        encode(np.arange(20_000.0).reshape(100, 200)),
        encode(np.arange(20_000).reshape(20_000, 1)),
        encode(pd.DataFrame({"id": range(2_000), "at": [number / 7 for number in range(2_000)]})),
    ],
    ids=["rows", "numbers", "floats", "lists", "keys", "lines", "csv", "array", "column", "frame"],
)
def test_the_memory_of_a_tree_is_estimated_within_a_factor(encoding: Encoding) -> None:
    import tracemalloc

    payload = encoding.whole()
    kind = parsed_as(encoding) or ""
    parse_payload(payload, kind, encoding.index.rows)  # what is imported late is imported now
    tracemalloc.start()
    tree = parse_payload(payload, kind, encoding.index.rows)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0.5 <= tree_bytes(payload, kind, tree) / taken <= 2.5


def test_a_single_item_of_an_array_is_estimated_too() -> None:
    assert tree_bytes(b"x" * 200, "npy", 7) < 2_000
    assert tree_bytes(b"a,b\n", "csv", []) < 100


def test_an_index_tells_how_much_a_table_takes_before_it_is_parsed() -> None:
    text = "a,b\n" + "1,2\n" * 3_000
    encoding = encode(text, content_type="text/csv")
    payload = encoding.whole()
    rows = encoding.index.rows
    assert rows is not None

    tree = parse_payload(payload, "csv", rows)

    assert least_tree_bytes(encoding.index) == tree_bytes(payload, "csv", tree)
    text_encoding = encode("x" * 500)
    text_encoding.whole()
    assert least_tree_bytes(text_encoding.index) == 2_000
