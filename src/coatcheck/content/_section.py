"""A part of a text, found through the index and read as if it was a text of its own."""

from bisect import bisect_left
from dataclasses import replace

from ..records import Limits, Page, dataclass
from ._index import (
    BLOCK_CHARS,
    Index,
    IndexBuilder,
    binary_index,
    count_chars,
    count_newlines,
    skip_chars,
    skip_lines,
    split_blocks,
)
from ._page import plan_page
from ._partial import PartialPayload

_LONGEST_CHARACTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Place:
    """One place in a text, told in three ways."""

    char: int
    byte: int
    newlines: int
    """How many stand before it."""


_BEGINNING = Place(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a text that is not empty."""

    index: Index
    """Of the whole text."""
    start: Place
    stop: Place
    ends_line: bool
    """Whether its last character ends a line."""

    @property
    def length_chars(self) -> int:
        return self.stop.char - self.start.char

    @property
    def size_bytes(self) -> int:
        return self.stop.byte - self.start.byte

    @property
    def line_count(self) -> int:
        r"""Lines, ended by ``\n`` only; a first or last one that is cut counts."""
        return self.stop.newlines - self.start.newlines + (not self.ends_line)


def chars_section(
    index: Index, payload: PartialPayload, start: int, stop: int | None
) -> Section | None:
    """Return characters ``[start, stop)`` of a text, clipped to it; None where there are none.

    Args:
        index: Of the text.
        payload: As much of it as is known. Two blocks of 65,536 characters are all it takes.
        start: Characters before it.
        stop: Where it ends; None is the end of the text.

    Raises:
        MissingRangeError: A range of the payload is needed that is not known.
    """
    length = index.length_chars or 0
    stop = length if stop is None else min(stop, length)
    if start >= stop:
        return None
    return _section(
        index, payload, _place_of_char(index, payload, start), _place_of_char(index, payload, stop)
    )


def lines_section(
    index: Index, payload: PartialPayload, start: int, stop: int | None
) -> Section | None:
    """Return lines ``[start, stop)`` of a text, counted from 0, as `chars_section` does."""
    stop = index.line_count if stop is None else min(stop, index.line_count)
    if start >= stop:
        return None
    return _section(
        index, payload, _place_of_line(index, payload, start), _place_of_line(index, payload, stop)
    )


def section_page(
    section: Section,
    payload: PartialPayload,
    *,
    unit: str,
    offset: int,
    limit: int | None,
    limits: Limits,
) -> Page:
    """Return one window of a section, as `plan_page` does of a whole text.

    All that is counted is counted from the start of the section.

    Raises:
        MissingRangeError: A range of the payload is needed that is not known.
        InvalidArgumentError: As `plan_page`.
        ValueError: The payload is not what was indexed.
    """
    if unit == "bytes":
        plan = plan_page(
            binary_index(section.size_bytes), unit=unit, offset=offset, limit=limit, limits=limits
        )
        first = section.start.byte
        return plan.cut(payload.read(first + plan.start_byte, first + plan.stop_byte))
    # What can be asked of a text without characters can be asked of any.
    asked = plan_page(_index_of(b""), unit=unit, offset=offset, limit=limit, limits=limits).limit
    by_line = unit == "lines"
    begin = _begin(section, payload, offset, by_line=by_line)
    longest = limits.page_chars if limit is None else limits.page_cap_chars
    # One more than a page can hold: then it is seen that more follows.
    chars = (longest if by_line else min(longest, asked)) + 1
    stop_byte = min(section.stop.byte, begin.byte + _LONGEST_CHARACTER_BYTES * chars)
    if by_line:
        stop_byte = min(stop_byte, _byte_behind(section.index, begin.newlines + asked))
    piece = payload.read(begin.byte, stop_byte)
    piece = piece[: skip_chars(piece, chars)]
    plan = plan_page(_index_of(piece), unit=unit, offset=0, limit=limit, limits=limits)
    page = plan.cut(piece[plan.start_byte : plan.stop_byte])
    content = str(page.content)
    offset_chars = begin.char - section.start.char
    next_chars = offset_chars + len(content)
    next_offset: int | None = next_chars
    if by_line:
        next_offset = offset + content.count("\n") if content.endswith("\n") else None
    has_more = next_chars < section.length_chars
    if has_more and not content:
        raise ValueError("the payload is not what was indexed")
    return replace(
        page,
        offset=offset,
        total=section.line_count if by_line else section.length_chars,
        has_more=has_more,
        next_offset=next_offset if has_more else None,
        offset_chars=offset_chars,
        next_offset_chars=next_chars if has_more else None,
        line_number=begin.newlines - section.start.newlines + 1,
    )


class PieceIndexer:
    r"""Makes the `Index` of a text that is fed piece by piece, wherever those are cut.

    >>> indexer = PieceIndexer()
    >>> for piece in (b"na\xc3", b"\xaf\n", b"ve"):
    ...     indexer.add(piece)
    >>> index = indexer.index()
    >>> index.length_chars, index.line_count
    (6, 2)
    """

    def __init__(self) -> None:
        self._builder = IndexBuilder()
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Count the next bytes."""
        text, start = memoryview(self._rest + piece), 0
        while (stop := skip_chars(text, BLOCK_CHARS, start)) < len(text):
            self._builder.add(text[start:stop], BLOCK_CHARS)
            start = stop
        self._rest = bytes(text[start:])

    def index(self) -> Index:
        """Return the index of all that was added."""
        if self._rest:
            self._builder.add(self._rest, count_chars(self._rest))
        return self._builder.index()


def _section(index: Index, payload: PartialPayload, start: Place, stop: Place) -> Section:
    last = payload.read(stop.byte - 1, stop.byte)
    return Section(index=index, start=start, stop=stop, ends_line=last == b"\n")


def _place_of_char(index: Index, payload: PartialPayload, char: int) -> Place:
    if char == 0:
        return _BEGINNING
    if char == index.length_chars:
        return Place(char, index.size_bytes, index.newlines)
    block, rest = divmod(char, BLOCK_CHARS)
    start, stop = index.block_byte(block), index.block_byte(block + 1)
    if index.is_ascii:
        stop = min(stop, start + rest)
    head = payload.read(start, stop)
    head = head[: skip_chars(head, rest)]
    return Place(char, start + len(head), index.block_lines(block) + count_newlines(head))


def _place_of_line(index: Index, payload: PartialPayload, line: int) -> Place:
    """Return where a line starts, counted from 0; from the last one on the end of the text."""
    if line == 0:
        return _BEGINNING
    if line > index.newlines:
        return Place(index.length_chars or 0, index.size_bytes, index.newlines)
    block = _block_of_newline(index, line)
    start = index.block_byte(block)
    head = payload.read(start, index.block_byte(block + 1))
    head = head[: skip_lines(head, line - index.block_lines(block))]
    return Place(block * BLOCK_CHARS + count_chars(head), start + len(head), line)


def _begin(section: Section, payload: PartialPayload, offset: int, *, by_line: bool) -> Place:
    """Return where a window of a section begins."""
    if offset == 0:
        return section.start
    if offset >= (section.line_count if by_line else section.length_chars):
        return section.stop
    if by_line:
        return _place_of_line(section.index, payload, section.start.newlines + offset)
    return _place_of_char(section.index, payload, section.start.char + offset)


def _byte_behind(index: Index, newline: int) -> int:
    """Return the end of the block that holds the newline with this number, from 1."""
    if newline > index.newlines:
        return index.size_bytes
    return index.block_byte(_block_of_newline(index, newline) + 1)


def _block_of_newline(index: Index, number: int) -> int:
    """Return the block that holds the newline with this number, from 1."""
    return max(0, bisect_left(index.lines_before, number) - 1)


def _index_of(text: bytes) -> Index:
    builder = IndexBuilder()
    for block, chars in split_blocks(text):
        builder.add(block, chars)
    return builder.index()
