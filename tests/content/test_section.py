"""A section is read exactly as the same text would be, banked for itself."""

from collections.abc import Callable
from itertools import accumulate
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Limits
from coatcheck.content import (
    Encoding,
    MissingRangeError,
    PartialPayload,
    PieceIndexer,
    Section,
    chars_section,
    encode,
    lines_section,
    plan_page,
    section_page,
)
from coatcheck.errors import InvalidArgumentError
from coatcheck.records import Page

T = TypeVar("T")

LIMITS = Limits(page_chars=50, page_cap_chars=100, page_tokens=20)
TEXTS = st.text(alphabet="ab é€🚀\ud800\n", min_size=1, max_size=300)
BLOCK = 65_536


class Stored:
    """A text as a store has it, and how much of it was asked for."""

    def __init__(self, text: str) -> None:
        encoding = encode(text, "text/plain")
        self.payload = encoding.whole()
        self.index = encoding.index
        self.fetched: list[int] = []

    def ask(self, ask: Callable[[PartialPayload], T]) -> T:
        known = PartialPayload(len(self.payload))
        while True:
            try:
                return ask(known)
            except MissingRangeError as gap:
                data = self.payload[gap.start_byte : gap.stop_byte]
                self.fetched.append(len(data))
                known.add(gap.start_byte, data)

    def chars(self, start: int, stop: int | None) -> Section | None:
        return self.ask(lambda payload: chars_section(self.index, payload, start, stop))

    def lines(self, start: int, stop: int | None) -> Section | None:
        return self.ask(lambda payload: lines_section(self.index, payload, start, stop))

    def page(self, section: Section, unit: str, offset: int, limit: int | None) -> Page:
        return self.ask(
            lambda payload: section_page(
                section, payload, unit=unit, offset=offset, limit=limit, limits=LIMITS
            )
        )


def split_lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def own_page(encoding: Encoding, unit: str, offset: int, limit: int | None) -> Page:
    payload = encoding.whole()
    plan = plan_page(encoding.index, unit=unit, offset=offset, limit=limit, limits=LIMITS)
    return plan.cut(payload[plan.start_byte : plan.stop_byte])


@given(TEXTS, st.booleans(), st.integers(0, 310), st.none() | st.integers(1, 310), st.data())
def test_any_page_of_a_section_is_that_of_the_same_text_alone(
    text: str, by_line: bool, start: int, length: int | None, data: st.DataObject
) -> None:
    stored = Stored(text)
    stop = None if length is None else start + length
    if by_line:
        section, expected = stored.lines(start, stop), "".join(split_lines(text)[start:stop])
    else:
        section, expected = stored.chars(start, stop), text[start:stop]

    if not expected:
        assert section is None
        return
    assert section is not None
    alone = encode(expected, "text/plain")
    payload = alone.whole()
    assert stored.payload[section.start.byte : section.stop.byte] == payload
    assert section.length_chars == len(expected)
    assert section.size_bytes == len(payload)
    assert section.line_count == alone.index.line_count
    for unit in ("chars", "lines", "bytes"):
        offset = data.draw(st.integers(0, 320))
        limit = data.draw(st.none() | st.integers(1, 320))
        assert stored.page(section, unit, offset, limit) == own_page(alone, unit, offset, limit)


@pytest.mark.parametrize("filler", ["a", "é", "🚀\n"])
@pytest.mark.parametrize("edge", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_a_section_that_meets_a_block_s_edge_is_found(filler: str, edge: int) -> None:
    text = (filler * (2 * BLOCK + 7))[: 2 * BLOCK + 7]
    stored = Stored(text)

    for start, stop in ((edge - 3, edge), (edge, edge + 3), (edge - 1, edge + 1), (edge, None)):
        section = stored.chars(start, stop)
        assert section is not None
        assert stored.page(section, "chars", 0, 100).content == text[start:stop][:100]
        assert str(stored.page(section, "lines", 0, 1).content) in text[start:stop]
    lines = split_lines(text)
    line = lines.index(lines[-1]) if len(lines) == 1 else edge // 2
    found = stored.lines(line, line + 2)
    assert found is not None
    assert stored.page(found, "chars", 0, 100).content == "".join(lines[line : line + 2])[:100]


def test_a_window_far_inside_takes_two_blocks_and_its_own_length() -> None:
    text = "".join(f"line {number} é\n" for number in range(100_000))
    starts = [0, *accumulate(map(len, split_lines(text)))]
    stored = Stored(text)

    section = stored.lines(60_000, 60_010)
    assert section is not None
    page = stored.page(section, "lines", 3, 2)

    assert page.content == text[starts[60_003] : starts[60_005]]
    assert (page.line_number, page.total, page.next_offset) == (4, 10, 5)
    assert sum(stored.fetched) < 4 * 1.2 * BLOCK


def test_a_section_has_no_rows_and_its_windows_keep_the_rules() -> None:
    stored = Stored("a,b\n" * 10)
    section = stored.lines(2, 4)
    assert section is not None

    for unit, offset, limit in (
        ("rows", 0, 1),
        ("words", 0, 1),
        ("lines", -1, 1),
        ("chars", 0, 0),
        ("bytes", 0, 0),
    ):
        with pytest.raises(InvalidArgumentError):
            stored.page(section, unit, offset, limit)


def test_a_section_that_is_not_what_was_indexed_is_told() -> None:
    stored = Stored("é" * BLOCK * 2)
    section = stored.chars(10, BLOCK + 10)
    assert section is not None
    stored.payload = b"\x80" * len(stored.payload)

    with pytest.raises(ValueError, match="not what was indexed"):
        stored.page(section, "chars", 5, 20)


@given(TEXTS, st.integers(1, 12))
def test_an_index_made_piece_by_piece_is_the_text_s(text: str, piece_bytes: int) -> None:
    whole = encode(text, "text/plain")
    payload = whole.whole()
    indexer = PieceIndexer()

    for start in range(0, len(payload), piece_bytes):
        indexer.add(payload[start : start + piece_bytes])

    assert indexer.index() == whole.index


@pytest.mark.parametrize("text", ["", "a" * BLOCK, "é" * (BLOCK + 1), "a\n" * BLOCK + "é"])
def test_an_index_made_of_long_pieces_is_the_text_s(text: str) -> None:
    whole = encode(text, "text/plain")
    payload = whole.whole()
    indexer = PieceIndexer()

    for start in range(0, len(payload), 100_001):
        indexer.add(payload[start : start + 100_001])

    assert indexer.index() == whole.index
