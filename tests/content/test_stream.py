"""A stream's encoding knows of a payload what `Encoding` knows, without holding it."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Encoding, Items, StreamEncoding, digest_of, dumps, encode, loads
from coatcheck.errors import InvalidArgumentError, UnencodableValueError

HEAD = 4 * 1024 * 1024
TAIL = 1024 * 1024


def passed(
    pieces: list[bytes], form: str = "text", content_type: str = "text/plain"
) -> StreamEncoding:
    encoding = StreamEncoding(form, content_type)
    assert b"".join(encoding.passing(iter(pieces))) == b"".join(pieces)
    return encoding


def of_items(values: list[object], content_type: str | None = None) -> tuple[bytes, StreamEncoding]:
    items = Items(content_type)
    pieces = [items.piece(value) for value in values] + [items.end()]
    assert items.size_bytes == sum(map(len, pieces))
    encoding = StreamEncoding(items.form or "", items.content_type, items=items)
    return b"".join(encoding.passing(iter(pieces))), encoding


def cut(payload: bytes, size: int) -> list[bytes]:
    return [payload[at : at + size] for at in range(0, len(payload), size)]


def whole(text: str) -> Encoding:
    encoding = encode(text, "text/plain")
    encoding.whole()
    return encoding


@given(
    text=st.text(st.characters(codec="utf-8"), max_size=40),
    times=st.sampled_from([1, 100, 20_000]),
    size=st.integers(min_value=1, max_value=200_000),
)
def test_index_and_digest_are_those_of_the_whole_text_however_it_is_cut(
    text: str, times: int, size: int
) -> None:
    payload = (text * times).encode()
    expected = whole(text * times)

    for form in ("text", "bytes"):
        encoding = passed(cut(payload, max(size, len(payload) // 50)), form)
        assert encoding.index.facts() == expected.index.facts()
        assert encoding.index.arrays() == expected.index.arrays()
        assert encoding.digest == expected.digest == digest_of(payload)
        assert encoding.size_hint == len(payload)
        assert encoding.head(30) == (text * times)[:30]


@pytest.mark.parametrize("size", [1, 3, 65_536])
def test_text_around_a_block_of_wide_characters_is_cut_into_the_same_blocks(size: int) -> None:
    for length in (65_535, 65_536, 65_537, 131_072):
        text = "🎟" * (length - 1) + "\n"
        encoding = passed(cut(text.encode(), size))
        assert encoding.index == whole(text).index


def test_bytes_of_a_text_type_that_are_no_utf8_are_binary_whatever_comes_after() -> None:
    for pieces in ([b"ok", b"\xff", b"ok"], [b"ok \xc3", b" "], [b"cut \xe2\x82"]):
        encoding = passed(pieces, "bytes")
        assert encoding.index.length_chars is None
        assert encoding.index.size_bytes == len(b"".join(pieces))
        assert encoding.head(10) is None
        assert encoding.value == b"".join(pieces)


def test_characters_that_pieces_cut_are_still_text() -> None:
    encoding = passed(cut("né🎟\n".encode() * 3, 1), "bytes")

    assert encoding.index.length_chars == 12
    assert encoding.value == "né🎟\n" * 3


def test_a_type_that_is_not_text_stays_binary_and_text_with_surrogates_stays_text() -> None:
    assert passed([b"text"], "bytes", "application/octet-stream").index.length_chars is None
    assert passed([b"text"], "bytes", "text/plain; charset=latin-1").index.length_chars is None
    assert passed([b"\xed\xa0\xbd"]).value == "\ud83d"


def test_nothing_is_told_before_the_end() -> None:
    encoding = StreamEncoding("text", "text/plain")
    encoding.add(b"abc")

    with pytest.raises(RuntimeError, match="not ended"):
        _ = encoding.index
    assert not encoding.is_complete
    assert encoding.whole() is None
    assert encoding.head(2) == "ab"


@pytest.mark.parametrize("piece", [1, 1_000, 700_000])
@pytest.mark.parametrize("size", [HEAD - 1, HEAD, HEAD + 1, HEAD + TAIL])
def test_head_and_tail_joined_are_all_of_a_text_that_is_not_longer(piece: int, size: int) -> None:
    payload = b"x" * (size - 10) + b"0123456789"
    pieces = cut(payload, 500_000) if piece == 1 else cut(payload, piece)
    encoding = passed(pieces)
    head, tail = encoding.edges()

    assert head + tail == payload.decode()
    assert encoding.value == payload.decode()
    assert (encoding.whole() == payload) is (size <= HEAD)


def test_head_and_tail_of_a_longer_text_are_whole_lines() -> None:
    payload = b"".join(b"line %07d\n" % number for number in range(500_000))
    head, tail = passed(cut(payload, 123_457)).edges()

    assert payload.startswith(head.encode())
    assert payload.endswith(tail.encode())
    assert HEAD - 13 <= len(head) <= HEAD
    assert TAIL - 13 <= len(tail) <= TAIL
    assert head.endswith("\n")
    assert tail.startswith("line ")


@pytest.mark.parametrize("shift", range(4))
def test_head_and_tail_split_no_character(shift: int) -> None:
    for extra in (1_000_000, 200_000):
        payload = b"x" * shift + "🎟".encode() * (HEAD // 4 + extra)
        head, tail = passed(cut(payload, 99_999)).edges()

        assert head.strip("x🎟") == tail.strip("🎟") == ""
        assert len((head + tail).encode()) <= len(payload)


@given(
    st.lists(
        st.none() | st.integers(-9, 9) | st.text(max_size=3) | st.dictionaries(st.text(), st.none())
    )
)
def test_items_become_the_array_that_their_list_would(values: list[object]) -> None:
    payload, encoding = of_items(values)

    assert payload == dumps(values)
    assert loads(payload) == values
    assert (encoding.form, encoding.content_type) == ("json", "application/json")
    assert encoding.value == values
    assert encoding.index.row_count == len(values)


@pytest.mark.parametrize("count", [0, 1, 1_023, 1_024, 1_025, 3_000])
def test_rows_of_items_are_found_as_in_a_list(count: int) -> None:
    values: list[object] = [
        {"n": number, "text": 'a "[{,' * (number % 3)} for number in range(count)
    ]
    payload, encoding = of_items(values)

    assert len(encoding.index.row_starts) == -(-count // 1_024)
    for block, start in enumerate(encoding.index.row_starts):
        row, _ = json.JSONDecoder().raw_decode(payload.decode()[start:].lstrip())
        assert row == values[block * 1_024]


def test_of_many_items_the_sample_is_spread_over_all() -> None:
    values: list[object] = [{"n": number} for number in range(100_001)]
    _, encoding = of_items(values)
    found = cast("list[dict[str, int]]", encoding.value)
    numbers = [row["n"] for row in found]
    assert 10_000 <= len(found) <= 20_001
    assert (numbers[0], numbers[-1]) == (0, 100_000)
    assert max(after - before for before, after in pairwise(numbers)) <= 20

    _, encoding = of_items(values[:-1])
    assert encoding.value == values[:-1]

    _, encoding = of_items(["x" * 1_000_000] * 6)
    assert encoding.value == ["x" * 1_000_000] * 4

    _, encoding = of_items(["x" * 5_000_000])
    assert encoding.value == []


def test_the_first_item_and_the_content_type_decide_the_form() -> None:
    assert of_items([b"ab", bytearray(b"c"), memoryview(b"d")])[0] == b"abcd"
    assert of_items(["a", "é"])[0] == '["a","é"]'.encode()
    assert of_items(["a\n", "é"], "text/plain")[0] == "a\né".encode()
    assert of_items([1, 2], "text/plain")[0] == b"[1,2]"
    assert of_items([])[0] == of_items([], "application/json")[0] == b"[]"
    assert of_items([], "text/plain")[0] == of_items([], "image/png")[0] == b""
    assert of_items([b""])[1].form == "bytes"
    assert of_items(["a"])[1].form == of_items([])[1].form == "json"
    assert of_items([], "text/csv")[1].form == "text"
    assert of_items([], "image/png")[1].form == "bytes"
    assert of_items([b"a"])[1].content_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("values", "content_type"),
    [([b"a", "b"], None), (["a", b"b"], "text/plain"), (["a", 1], "text/x")],
)
def test_an_item_unlike_the_first_is_refused(
    values: list[object], content_type: str | None
) -> None:
    with pytest.raises(UnencodableValueError, match="item 1 of a stream"):
        of_items(values, content_type)


@pytest.mark.parametrize(
    ("content_type", "payload", "rows"),
    [
        ("text/csv", b"a,b\r\n" + b"1,2\r\n" * 3_000, 3_000),
        ("application/x-ndjson", b'{"a":1}\n' * 3_000, 3_000),
        ("application/json", b" [1, 2, 3] ", 3),
        ("application/json", b"[1, 2, 3", None),
        ("application/json", b'{"a": 1}', None),
        ("application/json", b"[" + b"1," * (HEAD // 2) + b"1]", HEAD // 2 + 1),
        ("application/json", b"[" + b"1," * (HEAD // 2) + b"1,", None),
        ("text/plain", b"a,b\n1,2\n", None),
    ],
)
def test_rows_of_a_text_are_found_on_the_way(
    content_type: str, payload: bytes, rows: int | None
) -> None:
    assert passed(cut(payload, 4_096), "bytes", content_type).index.row_count == rows


def numbered(content_type: str, count: int, padding: int) -> tuple[bytes, int]:
    """Return rows of numbers and text as a payload, and about how long one row is."""
    text = "x" * padding
    if content_type == "application/json":
        rows = [{"id": number, "text": text} for number in range(count)]
        return dumps(rows), padding + 25
    if content_type == "application/x-ndjson":
        lines = [f'{{"id":{number},"text":"{text}"}}\n' for number in range(count)]
    else:
        lines = ["id,text\n", *(f'{number},"{text}\n,"\n' for number in range(count))]
    return "".join(lines).encode(), padding + 12


@pytest.mark.parametrize("content_type", ["application/json", "application/x-ndjson", "text/csv"])
@pytest.mark.parametrize("padding", [30, 3_000, 9_000])
@pytest.mark.parametrize("is_short", [True, False])
def test_of_a_long_table_the_sample_is_spread_over_all(
    content_type: str, padding: int, *, is_short: bool
) -> None:
    count = int(1.1 * HEAD) // padding if is_short else 3 * HEAD // padding
    payload, row_bytes = numbered(content_type, count, padding)

    encoding = passed(cut(payload, 99_999), "bytes", content_type)
    value, head_length = encoding.sample()
    text = value if isinstance(value, str) else dumps(value).decode()
    numbers = [int(number) for number in re.findall(r'(?:^|"id":)(\d+),', text, re.MULTILINE)]

    assert encoding.index.row_count == count
    assert head_length is None
    assert len(text) <= 5 * 1024 * 1024
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert count - numbers[-1] <= max(40, 256 * 1024 // row_bytes)
    assert len(numbers) >= 25


@pytest.mark.parametrize("content_type", ["application/json", "application/x-ndjson", "text/csv"])
def test_a_sample_is_the_same_however_the_stream_is_cut(content_type: str) -> None:
    payload, _ = numbered(content_type, 100_000, 60)

    samples = [passed(cut(payload, size), "bytes", content_type).value for size in (7_001, 600_000)]

    assert samples[0] == samples[1]


def test_a_long_stream_of_other_json_tells_of_all_its_elements() -> None:
    encoding = passed([b"[" + b"1," * HEAD + b"2]"], "bytes", "application/json")

    found = cast("list[int]", encoding.value)
    assert encoding.index.row_count == HEAD + 1
    assert 10_000 <= len(found) <= 21 * 1_024
    assert set(found[:-1]) == {1}
    assert found[-1] == 2


def claimed(pieces: list[bytes], content_type: str, form: str = "bytes") -> Iterator[bytes]:
    return StreamEncoding(form, content_type, is_claimed=True).passing(iter(pieces))


@pytest.mark.parametrize(
    ("content_type", "pieces"),
    [
        ("image/png", [b"GIF89a"]),
        ("image/png", []),
        ("text/plain", [b"\xff" * 70_000]),
        ("application/json", [b"{", b"]"]),
        ("application/json", [b"<html>" * 20_000]),
    ],
)
def test_a_claimed_type_is_checked_on_the_head(content_type: str, pieces: list[bytes]) -> None:
    with pytest.raises(InvalidArgumentError, match=content_type):
        list(claimed(pieces, content_type))


def test_a_claimed_type_is_refused_before_the_first_piece_is_passed_on() -> None:
    with pytest.raises(InvalidArgumentError):
        next(claimed([b"x" * 65_536], "image/png"))


@pytest.mark.parametrize(
    ("content_type", "pieces"),
    [
        ("image/png", [b"\x89PN", b"G\r\n\x1a\n"]),
        ("text/plain", ["né".encode() * 30_000, b"\xff"]),
        ("text/plain", [b"x" + "é".encode() * 40_000]),
        ("application/json", [b"[" + b"1," * 40_000, b"oops"]),
        ("application/json", [b"{}"]),
    ],
)
def test_a_claimed_type_that_the_head_allows_passes(content_type: str, pieces: list[bytes]) -> None:
    assert list(claimed(pieces, content_type)) == pieces
