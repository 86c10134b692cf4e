from bisect import bisect_right
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Index, encode
from coatcheck.content._index import (
    BLOCK_CHARS,
    Rows,
    binary_index,
    count_newlines,
    skip_chars,
    skip_lines,
    sum_newlines,
)
from coatcheck.errors import StoreFormatError

ALPHABET = "a\n\r\f\0é\u2028€😀\ud800\udfff"
PIECES = st.text(ALPHABET, max_size=40)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """Texts up to several blocks long, out of a few repeated pieces."""
    parts = draw(st.lists(st.tuples(PIECES, st.integers(0, 5_000)), max_size=3))
    return "".join(piece * times for piece, times in parts)


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def index_of(value: object, content_type: str | None = "text/plain") -> Index:
    encoding = encode(value, content_type)
    for _ in encoding.chunks():
        pass
    return encoding.index


def counts(index: Index) -> tuple[dict[str, object], list[int], list[int]]:
    return index.facts(), list(index.block_starts), list(index.lines_before)


@given(long_texts())
def test_counts_and_blocks_agree_with_python(text: str) -> None:
    index = index_of(text)

    starts = range(0, len(text), BLOCK_CHARS)
    assert index.size_bytes == len(utf8(text))
    assert index.length_chars == len(text)
    assert index.newlines == text.count("\n")
    assert index.line_count == text.count("\n") + (text != "" and not text.endswith("\n"))
    assert index.is_ascii == text.isascii()
    for block, start in enumerate(starts):
        assert index.block_byte(block) == len(utf8(text[:start]))
        assert index.block_lines(block) == text[:start].count("\n")
    assert index.block_byte(len(starts)) == index.size_bytes


@given(long_texts())
def test_the_index_of_text_is_the_index_of_its_bytes(text: str) -> None:
    text = text.replace("\ud800", "x").replace("\udfff", "ÿ")

    assert counts(index_of(text)) == counts(index_of(utf8(text)))


@given(long_texts())
def test_an_index_survives_its_record(text: str) -> None:
    index = index_of(text)

    loaded = Index.load(index.facts(), index.arrays())

    assert counts(loaded) == counts(index)
    assert loaded == index
    assert counts(Index.load(index.facts(), memoryview(index.arrays()))) == counts(index)


@given(st.text(ALPHABET, max_size=40), st.integers(0, 9_000))
def test_newlines_are_counted_alike_by_table_and_by_search(text: str, times: int) -> None:
    payload = utf8(text * times)

    assert sum_newlines(payload) == count_newlines(payload) == payload.count(b"\n")
    assert sum_newlines(memoryview(payload)[1:]) == payload[1:].count(b"\n")


@pytest.mark.parametrize("size", [0, 1, 131_071, 131_072, 131_073, 262_145])
def test_no_newline_is_lost_where_pieces_meet(size: int) -> None:
    assert sum_newlines(b"\n" * size) == count_newlines(b"\n" * size) == size


@pytest.mark.parametrize(
    ("text", "starts", "lines"),
    [
        ("", [], []),
        ("é" * BLOCK_CHARS, [], []),
        ("a" * BLOCK_CHARS, [], []),
        ("a\n" * (BLOCK_CHARS // 2) + "a", [], [0, BLOCK_CHARS // 2]),
        ("é" * BLOCK_CHARS + "\n", [0, 2 * BLOCK_CHARS], [0, 0]),
    ],
)
def test_only_arrays_that_are_needed_are_kept(
    text: str, starts: list[int], lines: list[int]
) -> None:
    index = index_of(text)

    assert list(index.block_starts) == starts
    assert list(index.lines_before) == lines
    assert len(index.arrays()) == 8 * (len(starts) + len(lines))


def test_a_binary_payload_has_no_text_facts() -> None:
    index = index_of(b"\xff\n" * 100_000)

    assert index.facts() == {
        "size_bytes": 200_000,
        "length_chars": None,
        "newlines": 0,
        "line_count": 0,
        "is_ascii": False,
    }
    assert index.arrays() == b""
    assert Index.load(index.facts(), b"") == index


LONG = "é\n" * BLOCK_CHARS


@pytest.mark.parametrize(
    "damage",
    [
        {"size_bytes": None},
        {"size_bytes": "4"},
        {"size_bytes": -1},
        {"size_bytes": True},
        {"size_bytes": 10},
        {"length_chars": 2.0},
        {"length_chars": BLOCK_CHARS},
        {"length_chars": 3 * BLOCK_CHARS},
        {"length_chars": None},
        {"newlines": 0, "line_count": 0},
        {"newlines": 3 * BLOCK_CHARS, "line_count": 3 * BLOCK_CHARS},
        {"line_count": BLOCK_CHARS + 2},
        {"line_count": BLOCK_CHARS - 1},
        {"is_ascii": 0},
        {"is_ascii": True},
    ],
    ids=str,
)
def test_counts_that_do_not_fit_are_a_format_error(damage: dict[str, object]) -> None:
    index = index_of(LONG)

    with pytest.raises(StoreFormatError):
        Index.load({**index.facts(), **damage}, index.arrays())


@pytest.mark.parametrize("stop", [0, 1, 8, -8, -1])
def test_arrays_of_another_length_are_a_format_error(stop: int) -> None:
    index = index_of(LONG)

    with pytest.raises(StoreFormatError, match="length"):
        Index.load(index.facts(), index.arrays()[:stop])
    with pytest.raises(StoreFormatError, match="length"):
        Index.load(index.facts(), index.arrays() + b"\0" * 8)


def test_arrays_that_point_past_the_payload_are_a_format_error() -> None:
    index = index_of(LONG)

    with pytest.raises(StoreFormatError, match="past"):
        Index.load(index.facts(), b"\xff" * len(index.arrays()))


@given(st.text(ALPHABET, max_size=200), st.data())
def test_characters_are_skipped_as_python_slices(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    chars = data.draw(st.integers(0, 250))

    stop = skip_chars(utf8(text), chars, len(utf8(text[:start])))

    assert stop == len(utf8(text[: start + chars]))


@given(st.text(ALPHABET, max_size=200), st.integers(0, 30))
def test_lines_are_skipped_as_python_splits(text: str, lines: int) -> None:
    ends = list(accumulate(len(utf8(line)) + 1 for line in text.split("\n")))

    stop = skip_lines(utf8(text), lines)

    assert stop == (
        0 if lines == 0 else min(([*ends, *ends[-1:] * 30])[lines - 1], len(utf8(text)))
    )
    assert bisect_right(ends, stop) == min(lines, text.count("\n"))


TABLE = "id,né\n" + "1,2\n" * 3_000


def test_rows_survive_their_record() -> None:
    index = index_of(TABLE, "text/csv")

    loaded = Index.load(index.facts(), index.arrays())

    assert loaded == index
    assert loaded.row_count == 3_000
    assert list(loaded.row_starts) == [7, 7 + 4 * 1_024, 7 + 8 * 1_024]
    assert loaded.rows is not None
    assert loaded.rows.format == "csv"
    assert loaded.rows.columns == ("id", "né")
    assert index.facts()["rowCount"] == 3_000


def test_a_record_without_rows_is_an_index_as_before() -> None:
    index = index_of(TABLE, "text/plain")

    loaded = Index.load(index.facts(), index.arrays())

    assert "rowCount" not in index.facts()
    assert loaded.rows is None
    assert loaded.row_count is None
    assert list(loaded.row_starts) == []


def test_rows_of_a_format_that_needs_no_search_keep_no_starts() -> None:
    index = binary_index(80, Rows(format="npy", count=5_000))

    assert index.arrays() == b""
    assert Index.load(index.facts(), b"") == index


@pytest.mark.parametrize(
    "damage",
    [
        {"rowCount": -1},
        {"rowCount": "3000"},
        {"rowCount": 5_000},
        {"rowCount": None},
        {"rowFormat": None},
        {"columns": "id"},
        {"columns": [1]},
    ],
    ids=str,
)
def test_rows_that_do_not_fit_are_a_format_error(damage: dict[str, object]) -> None:
    index = index_of(TABLE, "text/csv")

    with pytest.raises(StoreFormatError):
        Index.load({**index.facts(), **damage}, index.arrays())


def test_rows_past_the_payload_are_a_format_error() -> None:
    index = index_of(TABLE, "text/csv")

    with pytest.raises(StoreFormatError, match="rows"):
        Index.load(index.facts(), index.arrays()[:-8] + b"\xff" * 8)
