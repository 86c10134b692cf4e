"""One window of a payload: which bytes to fetch for it, and what to cut out of them."""

from bisect import bisect_left

from ..errors import InvalidArgumentError, shown
from ..records import Limits, Page, dataclass
from ._index import (
    BLOCK_CHARS,
    BLOCK_ROWS,
    Index,
    Rows,
    count_chars,
    count_newlines,
    skip_chars,
    skip_lines,
)
from ._row_page import cut_rows, has_row_pages, rows_range
from ._tokens import clip_tokens

_LONGEST_CHARACTER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlan:
    """A checked window, and the one byte range that holds all it needs.

    For text the range holds the border of a block, whose character and line are known: the rest
    is counted from there. It is at most two blocks and the longest page long, whatever the size
    of the payload.
    """

    index: Index
    unit: str
    offset: int
    limit: int
    """As applied, in the unit."""
    longest_chars: int
    budget_tokens: int | None
    """None where a limit was asked for."""
    block: int
    """That starts in the range, or ends with the payload there."""
    start_byte: int
    stop_byte: int

    def cut(self, piece: bytes) -> Page:
        """Return the page; `piece` is the payload's bytes from `start_byte` to `stop_byte`.

        Raises:
            ValueError: They are not those that were indexed.
        """
        if self.unit == "bytes":
            return self._bytes_page(piece)
        if self.unit == "rows":
            return self._rows_page(piece)
        if self.start_byte == self.stop_byte:
            return self._end_page()
        view, length_chars = memoryview(piece), self.index.length_chars or 0
        # What of the block before the border was fetched, which is counted back from there.
        behind = view[: self.index.block_byte(self.block) - self.start_byte]
        first_char = min(self.block * BLOCK_CHARS, length_chars) - count_chars(behind)
        begin, end = self._window(piece, first_char)
        content = str(view[begin:end], "utf-8", "surrogatepass")
        before = view[:begin]
        offset_chars = first_char + count_chars(before)
        if not content or (self.unit == "chars" and offset_chars != self.offset):
            # Whoever reads on from such a page might come back to it for ever.
            raise ValueError("the payload is not what was indexed")
        if self.budget_tokens is not None:
            content = content[: clip_tokens(content, self.budget_tokens)]
        if self.unit == "lines" and offset_chars + len(content) < length_chars:
            # Back to the end of a line, unless not one of them is whole.
            content = content[: content.rfind("\n") + 1] or content
        next_chars = offset_chars + len(content)
        next_offset: int | None = next_chars
        if self.unit == "lines":
            next_offset = self.offset + content.count("\n") if content.endswith("\n") else None
        has_more = next_chars < length_chars
        return Page(
            content=content,
            unit=self.unit,
            offset=self.offset,
            limit=self.limit,
            total=length_chars if self.unit == "chars" else self.index.line_count,
            has_more=has_more,
            next_offset=next_offset if has_more else None,
            offset_chars=offset_chars,
            next_offset_chars=next_chars if has_more else None,
            line_number=self.index.block_lines(self.block)
            - count_newlines(behind)
            + count_newlines(before)
            + 1,
        )

    def _window(self, piece: bytes, first_char: int) -> tuple[int, int]:
        """Return where in `piece` the page begins and, before its bound in tokens, ends."""
        if self.unit == "chars":
            begin = skip_chars(piece, self.offset - first_char)
            return begin, skip_chars(piece, self.limit, begin)
        begin = skip_lines(piece, self.offset - self.index.block_lines(self.block))
        end = skip_chars(piece, self.longest_chars, begin)
        return begin, skip_lines(memoryview(piece)[:end], self.limit, begin)

    def _bytes_page(self, piece: bytes) -> Page:
        next_offset = self.start_byte + len(piece)
        has_more = bool(piece) and next_offset < self.index.size_bytes
        return Page(
            content=bytes(piece),
            unit=self.unit,
            offset=self.offset,
            limit=self.limit,
            total=self.index.size_bytes,
            has_more=has_more,
            next_offset=next_offset if has_more else None,
            offset_chars=None,
            next_offset_chars=None,
            line_number=None,
        )

    def _rows_page(self, piece: bytes) -> Page:
        return cut_rows(
            self.index.rows or Rows(format="json", count=0),
            piece,
            offset=self.offset,
            limit=self.limit,
            longest_chars=self.longest_chars,
            budget_tokens=self.budget_tokens,
            is_end=self.stop_byte == self.index.size_bytes,
        )

    def _end_page(self) -> Page:
        length_chars = self.index.length_chars or 0
        return Page(
            content="",
            unit=self.unit,
            offset=self.offset,
            limit=self.limit,
            total=length_chars if self.unit == "chars" else self.index.line_count,
            has_more=False,
            next_offset=None,
            offset_chars=length_chars,
            next_offset_chars=None,
            line_number=self.index.newlines + 1,
        )


def plan_page(
    index: Index, *, unit: str = "chars", offset: int = 0, limit: int | None = None, limits: Limits
) -> PagePlan:
    """Return what to fetch for one window.

    Args:
        index: Of the payload.
        unit: ``chars``, ``lines``, ``rows`` or ``bytes``; it counts `offset` and `limit`. A page
            of rows is a JSON list of them: of JSON and NDJSON as they were written, of CSV and
            TSV objects of text by column. Where one row alone is longer than a page, it is a
            JSON string instead, the head of that row, and the next page starts with the next.
        offset: Where the window starts; from the end on it is empty.
        limit: Longest window, clamped to the page cap. None: the default page, which is bounded
            in estimated tokens too.
        limits: Bounds of a page.

    Raises:
        InvalidArgumentError: The payload is not counted in `unit`, `offset` is no whole number
            from 0 on, or `limit` none from 1 on.
        ValueError: A text unit was asked of a binary payload.
    """
    _check_unit(index, unit)
    _check_number("offset", offset, 0)
    if limit is not None:
        _check_number("limit", limit, 1)
    longest_chars = limits.page_chars if limit is None else limits.page_cap_chars
    longest = longest_chars
    if unit == "bytes" and limit is not None:
        longest *= _LONGEST_CHARACTER_BYTES
    applied = longest if limit is None else min(limit, longest)
    if unit == "bytes":
        block, start_byte, stop_byte = _bytes_range(index, offset, applied)
    elif unit == "rows" and index.rows is not None:
        block = offset // BLOCK_ROWS
        start_byte, stop_byte = rows_range(
            index.rows, index.size_bytes, offset, applied, longest_chars
        )
    elif unit == "lines":
        block, start_byte, stop_byte = _lines_range(index, offset, applied, longest_chars)
    else:
        block, start_byte, stop_byte = _chars_range(index, offset, applied)
    return PagePlan(
        index=index,
        unit=unit,
        offset=offset,
        limit=applied,
        longest_chars=longest_chars,
        budget_tokens=limits.page_tokens if limit is None else None,
        block=block,
        start_byte=start_byte,
        stop_byte=stop_byte,
    )


def _check_unit(index: Index, unit: str) -> None:
    units = ("bytes",) if index.length_chars is None else ("chars", "lines", "bytes")
    if has_row_pages(index.rows):
        units = (*units, "rows")
    if unit in units:
        return
    if unit in {"chars", "lines"}:
        message = f"a binary payload has no {unit}"
        raise ValueError(message)
    what = "This artifact has no rows" if unit == "rows" else f"{shown(unit)} is no unit"
    raise InvalidArgumentError(f"{what}.", f"Use one of its units: {', '.join(units)}.")


def _check_number(name: str, number: object, least: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidArgumentError(
            f"{name} must be a whole number, got {type(number).__name__}.",
            f"Give a number from {least} on.",
        )
    if number < least:
        raise InvalidArgumentError(
            f"{name} must be {least} or more.", f"Give a number from {least} on."
        )


def _bytes_range(index: Index, offset: int, limit: int) -> tuple[int, int, int]:
    start_byte = min(offset, index.size_bytes)
    return 0, start_byte, min(start_byte + limit, index.size_bytes)


def _chars_range(index: Index, offset: int, limit: int) -> tuple[int, int, int]:
    if offset >= (index.length_chars or 0):
        return 0, index.size_bytes, index.size_bytes
    block = offset // BLOCK_CHARS
    start_byte, stop_byte = index.block_byte(block), _stop_byte(index, block, offset + limit)
    # The window may lie nearer to the next border, or reach over it.
    border_byte = index.block_byte(block + 1)
    border_char = min((block + 1) * BLOCK_CHARS, index.length_chars or 0)
    near_byte = max(
        start_byte + offset - block * BLOCK_CHARS,
        border_byte - _LONGEST_CHARACTER_BYTES * (border_char - offset),
    )
    far_byte = max(stop_byte, border_byte)
    if far_byte - near_byte < stop_byte - start_byte:
        return block + 1, near_byte, far_byte
    return block, start_byte, stop_byte


def _lines_range(index: Index, offset: int, limit: int, longest_chars: int) -> tuple[int, int, int]:
    if offset >= index.line_count:
        return 0, index.size_bytes, index.size_bytes
    block = _block_of_newline(index, offset)
    # The line starts in this block, or with the next.
    stop_char = (block + 1) * BLOCK_CHARS + longest_chars
    if offset + limit <= index.newlines:
        stop_char = min(stop_char, (_block_of_newline(index, offset + limit) + 1) * BLOCK_CHARS)
    return block, index.block_byte(block), _stop_byte(index, block, stop_char)


def _block_of_newline(index: Index, number: int) -> int:
    """Return the block that holds the newline with this number, from 1; 0 for number 0."""
    return max(0, bisect_left(index.lines_before, number) - 1)


def _stop_byte(index: Index, block: int, stop_char: int) -> int:
    """Return a byte by which `stop_char` is reached, near to it: a character has 1 to 4 bytes."""
    length_chars = index.length_chars or 0
    stop_char = min(stop_char, length_chars)
    next_block = -(-stop_char // BLOCK_CHARS)
    next_char = min(next_block * BLOCK_CHARS, length_chars)
    return min(
        index.block_byte(block) + _LONGEST_CHARACTER_BYTES * (stop_char - block * BLOCK_CHARS),
        index.block_byte(next_block) - (next_char - stop_char),
    )
