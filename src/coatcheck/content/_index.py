"""Where characters and lines of a payload lie, block by block, so that no window needs a scan.

The arrays are little-endian u64, as in the host's memory: big-endian hosts are not supported.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Self, cast

import stringzilla

from ..errors import StoreFormatError
from ..records import dataclass

BLOCK_CHARS = 65_536
"""Code points per block."""

BLOCK_ROWS = 1_024
"""Rows per entry of `Rows.starts`."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark that may stand before text; it belongs to no row."""

_SEARCHED = frozenset({"json", "ndjson", "csv", "csv;", "tsv"})
"""Formats whose rows differ in length, so that `Rows.starts` is needed to find one."""

_U64_BYTES = 8
_CONTINUES = 0b1000_0000
_NEWLINE = ord("\n")


# stringzilla ships no type hints. Both hold for lone surrogates too: what is counted as a
# character is every byte that does not continue one.
count_chars = cast("Callable[[bytes | memoryview], int]", stringzilla.utf8_count)
_count = cast("Callable[[bytes | memoryview, bytes], int]", stringzilla.count)
_translate = cast("Callable[[bytes | memoryview, bytes], bytes]", stringzilla.translate)
_sum = cast("Callable[[bytes], int]", stringzilla.bytesum)

_ONE_FOR_NEWLINE = bytes(byte == _NEWLINE for byte in range(256))
_SUMMED_BYTES = 128 * 1024
"""What is made of a piece is still in the processor's cache when it is summed."""
_HAS_QUICK_TABLES = "icelake" in cast("tuple[str, ...]", stringzilla.__capabilities__)
"""Whether the processor looks 64 bytes up at once: no other is as quick so as by search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of a payload that is a table."""

    format: str
    """Which functions read them: ``json``, ``ndjson``, ``csv``, ``tsv``, or one of arrays."""
    count: int
    """A header is no row."""
    starts: Sequence[int] = field(default_factory=lambda: array("Q"))
    """Byte at or just before which each 1,024th row starts; white space may lie between.
    Empty where rows need no search."""
    columns: tuple[str, ...] = ()
    """Names that stand in the payload's header, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Counts of a payload, and what stands before each block of 65,536 code points.

    Text of one block keeps no arrays, ASCII text no `block_starts`, a binary payload neither.
    """

    size_bytes: int
    length_chars: int | None
    """None where the payload is no text."""
    newlines: int
    line_count: int
    r"""Lines end at ``\n`` only; a last line without one counts."""
    is_ascii: bool
    block_starts: Sequence[int]
    """Byte at which each block starts."""
    lines_before: Sequence[int]
    """Newlines before each block."""
    rows: Rows | None = None
    """None where the payload is no table."""

    @property
    def row_count(self) -> int | None:
        """How many rows the payload has, None where it is no table."""
        return None if self.rows is None else self.rows.count

    @property
    def row_starts(self) -> Sequence[int]:
        """Bytes at which each 1,024th row starts."""
        return array("Q") if self.rows is None else self.rows.starts

    def facts(self) -> dict[str, object]:
        """Return the counts as plain JSON values."""
        facts: dict[str, object] = {
            "size_bytes": self.size_bytes,
            "length_chars": self.length_chars,
            "newlines": self.newlines,
            "line_count": self.line_count,
            "is_ascii": self.is_ascii,
        }
        if self.rows is not None:
            facts |= {"rowCount": self.rows.count, "rowFormat": self.rows.format}
            if self.rows.columns:
                facts["columns"] = list(self.rows.columns)
        return facts

    def arrays(self) -> bytes:
        """Return all arrays joined: u64, little-endian."""
        joined = (self.block_starts, self.lines_before, self.row_starts)
        return b"".join(array("Q", numbers).tobytes() for numbers in joined)

    @classmethod
    def load(cls, facts: Mapping[str, object], arrays: bytes | memoryview) -> Self:
        """Make an index of what `facts` and `arrays` returned. Does not copy the arrays.

        Raises:
            StoreFormatError: The two do not fit each other, or are no index.
        """
        size = _number(facts, "size_bytes")
        length = None if facts.get("length_chars") is None else _number(facts, "length_chars")
        newlines, lines = _number(facts, "newlines"), _number(facts, "line_count")
        is_ascii = facts.get("is_ascii")
        if (
            not isinstance(is_ascii, bool)
            or is_ascii is not (length == size)
            or (length or 0) > size
            or newlines > (length or 0)
            or not newlines <= lines <= newlines + 1
        ):
            raise StoreFormatError("the counts of an index contradict each other")
        entries = _entries(length)
        starts = 0 if is_ascii else entries
        rows = _rows(facts)
        behind = starts + entries
        stop = behind + (_row_entries(rows) if rows else 0)
        if len(arrays) != stop * _U64_BYTES:
            raise StoreFormatError("the arrays of an index have another length than its counts say")
        numbers = memoryview(arrays).cast("B").cast("Q")
        index = cls(
            size_bytes=size,
            length_chars=length,
            newlines=newlines,
            line_count=lines,
            is_ascii=is_ascii,
            block_starts=numbers[:starts],
            lines_before=numbers[starts:behind],
            rows=replace(rows, starts=numbers[behind:]) if rows else None,
        )
        if rows and stop > behind and numbers[-1] >= size:
            raise StoreFormatError("the rows of an index lie past its payload")
        if entries and (index.block_byte(entries - 1) >= size or index.lines_before[-1] > newlines):
            raise StoreFormatError("the arrays of an index point past its payload")
        return index

    def block_byte(self, block: int) -> int:
        """Return the byte at which `block` starts, the payload's size from its end on."""
        if self.block_starts:
            return self.block_starts[block] if block < len(self.block_starts) else self.size_bytes
        # One block, or ASCII; both start and end here.
        return (
            min(block * BLOCK_CHARS, self.size_bytes)
            if self.is_ascii or not block
            else self.size_bytes
        )

    def block_lines(self, block: int) -> int:
        """Return the newlines before `block`, all from the payload's end on."""
        if block < len(self.lines_before):
            return self.lines_before[block]
        return self.newlines if block else 0


class IndexBuilder:
    """Makes an `Index` from the blocks of a text as they pass."""

    def __init__(self) -> None:
        self._starts = array("Q")
        self._lines = array("Q")
        self._size_bytes = 0
        self._length_chars = 0
        self._newlines = 0
        self._ends_in_line = False

    def add(self, block: bytes | memoryview, chars: int) -> None:
        """Count the next block; `chars` is less than 65,536 in the last one only."""
        self._starts.append(self._size_bytes)
        self._lines.append(self._newlines)
        self._size_bytes += len(block)
        self._length_chars += chars
        self._newlines += count_newlines(block)
        self._ends_in_line = block[-1] != _NEWLINE

    def index(self, rows: Rows | None = None) -> Index:
        """Return the index of all that was added, which is a table where it has `rows`."""
        is_ascii = self._size_bytes == self._length_chars
        one_block = self._length_chars <= BLOCK_CHARS
        return Index(
            size_bytes=self._size_bytes,
            length_chars=self._length_chars,
            newlines=self._newlines,
            line_count=self._newlines + self._ends_in_line,
            is_ascii=is_ascii,
            block_starts=array("Q") if is_ascii or one_block else self._starts,
            lines_before=array("Q") if one_block else self._lines,
            rows=rows,
        )


def binary_index(size_bytes: int, rows: Rows | None = None) -> Index:
    """Return the index of a payload that is no text, but may be a table."""
    return Index(
        size_bytes=size_bytes,
        length_chars=None,
        newlines=0,
        line_count=0,
        is_ascii=False,
        block_starts=array("Q"),
        lines_before=array("Q"),
        rows=rows,
    )


def split_blocks(payload: bytes) -> Iterator[tuple[memoryview, int]]:
    """Yield views of the blocks of UTF-8 text, each with its length in characters."""
    view = memoryview(payload)
    start = 0
    while start < len(view):
        stop = skip_chars(view, BLOCK_CHARS, start)
        block = view[start:stop]
        yield block, BLOCK_CHARS if stop < len(view) else count_chars(block)
        start = stop


def count_newlines(text: bytes | memoryview) -> int:
    r"""Return how many ``\n`` are in UTF-8 text."""
    return sum_newlines(text) if _HAS_QUICK_TABLES else _count(text, b"\n")


def sum_newlines(text: bytes | memoryview) -> int:
    r"""Return how many ``\n`` are in UTF-8 text, in the same time however many there are."""
    if len(text) <= _SUMMED_BYTES:
        return _sum(_translate(text, _ONE_FOR_NEWLINE))
    view = memoryview(text)
    return sum(
        sum_newlines(view[start : start + _SUMMED_BYTES])
        for start in range(0, len(view), _SUMMED_BYTES)
    )


def skip_chars(text: bytes | memoryview, chars: int, start: int = 0) -> int:
    """Return the byte `chars` characters after byte `start`, or the end.

    `start` is the first byte of a character. Reads each byte once.

    Source: RFC 3629, section 3: every byte but a character's first is `0b10xxxxxx`.

    >>> skip_chars("né€x".encode(), 3)
    6
    """
    view, size = memoryview(text), len(text)
    while chars > 0 and start < size:
        # No character is shorter than a byte, so this never goes too far.
        stop = start + chars
        chars -= count_chars(view[start:stop])
        start = stop
    while start < size and view[start] & 0b1100_0000 == _CONTINUES:
        start += 1
    return min(start, size)


def skip_lines(text: bytes | memoryview, lines: int, start: int = 0) -> int:
    r"""Return the byte after the next `lines` newlines from byte `start` on, or the end."""
    view = memoryview(text)
    stop = len(view)
    if lines == 0:
        return start
    if count_newlines(view[start:]) < lines:
        return stop
    while stop - start > 1:
        middle = (start + stop) // 2
        found = count_newlines(view[start:middle])
        if found >= lines:
            stop = middle
        else:
            lines -= found
            start = middle
    return stop


def _entries(length_chars: int | None) -> int:
    if length_chars is None or length_chars <= BLOCK_CHARS:
        return 0
    return -(-length_chars // BLOCK_CHARS)


def _row_entries(rows: Rows) -> int:
    return -(-rows.count // BLOCK_ROWS) if rows.format in _SEARCHED else 0


def _rows(facts: Mapping[str, object]) -> Rows | None:
    if facts.get("rowCount") is None:
        return None
    form, columns = facts.get("rowFormat"), facts.get("columns", [])
    if not isinstance(form, str) or not isinstance(columns, list):
        raise StoreFormatError("an index has rows of no format")
    names = cast("list[object]", columns)
    if not all(isinstance(name, str) for name in names):
        raise StoreFormatError("an index has columns without names")
    return Rows(
        format=form, count=_number(facts, "rowCount"), columns=tuple(cast("list[str]", names))
    )


def _number(facts: Mapping[str, object], name: str) -> int:
    number = facts.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise StoreFormatError(f"an index has no {name}")
    return number
