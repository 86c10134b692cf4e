"""Where a row of text starts, behind up to 1,023 others of its block: counted, else passed over.

What is counted tells most often where all rows of a block are, and is many times as fast as the
pattern of a row. It is proof, or is not used.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import stringzilla

from ._csv import csv_pattern
from ._find import Hits, finders
from ._index import BLOCK_ROWS, Rows, count_newlines, skip_lines
from ._rows import RowPattern, json_pattern, line_pattern

_FEW_ROWS = 16
"""So many are passed over sooner than all are counted."""
_BORDER = re.compile(
    rb"[ \t\r\n]*+(?:\{[^{}]*+(\}[ \t\r\n]*+,[ \t\r\n]*+\{)|\[[^][]*+(\][ \t\r\n]*+,[ \t\r\n]*+\[))"
)
"""An object or array without others in it, and how the next one follows it."""

_KEY = re.compile(rb'[ \t\r\n]*+(\{[ \t\r\n]*+"[A-Za-z0-9_][^"\\\x80-\xff]*+")')
"""An object and its first key."""
_BETWEEN = re.compile(rb"\}[ \t\r\n]*+,[ \t\r\n]*+\Z")
_MOST_KEYS = 8
"""Objects with this key that may be in the first row."""
_LONGEST_SPACE_BYTES = 64
_NESTED = (b"[{", b" {", b"\t{", b"\r{", b"\n{")
"""What is in a block if an array in it begins with an object, or white space parts the two."""

# stringzilla ships no type hints.
_find = cast("Callable[[memoryview, bytes], int]", stringzilla.find)
_count = cast("Callable[[memoryview, bytes], int]", stringzilla.count)

_PATTERNS: dict[str, Callable[[bytes], RowPattern]] = {
    "json": json_pattern,
    "ndjson": lambda _: line_pattern(),
    "csv": lambda _: csv_pattern("csv"),
    "csv;": lambda _: csv_pattern("csv;"),
    "tsv": lambda _: csv_pattern("tsv"),
}


def row_pattern(form: str, piece: bytes) -> RowPattern:
    """Return the pattern of rows of a format, as it is quickest in `piece`."""
    return _PATTERNS[form](piece)


class Borders:
    """Where rows of one block are parted, all by the same text."""

    def __init__(self, block: memoryview, hits: Hits[Any], border: bytes, begin: bytes) -> None:
        self._block = block
        self._hits = hits
        self._border = border.decode()
        self._begin = begin.decode()
        self._first = _find(block, begin)

    def start(self, number: int) -> int:
        """Return where a row of the block begins."""
        if number == 0:
            return self._first
        return self._hits.span(number - 1)[1] - len(self._begin)

    def rows(self, number: int, count: int) -> tuple[list[str], int]:
        """Return the JSON of rows of the block that others follow there, and where they end."""
        last = min(number + count, len(self._hits))
        if last <= number:
            return [], self.start(number)
        text = self._block[self.start(number) + len(self._begin) : self._hits.span(last - 1)[0]]
        inner = str(text, "utf-8", "surrogatepass").split(self._border)
        begin, end = self._begin, self._border[0]
        return [f"{begin}{each}{end}" for each in inner], self.start(last)


class Lines:
    """Rows of one block, each of which is a line.

    Args:
        block: Its bytes.
        count: How many of its rows end with a newline.
    """

    def __init__(self, block: memoryview, count: int) -> None:
        self.count = count
        self._block = block
        self._number = self._start = 0

    def start(self, number: int) -> int:
        """Return where a row of the block begins; rows are asked for in their order."""
        self._start = skip_lines(self._block, number - self._number, self._start)
        self._number = number
        return self._start

    def text(self, number: int, count: int) -> tuple[str, int]:
        """Return the text of rows of the block that end with a newline, and where they end."""
        wanted = min(count, self.count - number)
        if wanted <= 0:
            return "", self._start
        start, stop = self.start(number), self.start(number + wanted)
        return str(self._block[start:stop], "utf-8", "surrogatepass"), stop


def row_start(rows: Rows, piece: bytes, number: int) -> int:
    """Return the byte at which a row starts, or white space before it.

    Args:
        rows: Of a payload, whose rows are text.
        piece: Of the payload, from the start of the row's block on, with all of that block.
        number: Of the row in the payload, from 0.

    Returns:
        Where the last whole row before it ends, if the payload is damaged.
    """
    return row_place(rows, piece, number, 0)[0]


def row_place(
    rows: Rows, piece: bytes, number: int, count: int
) -> tuple[int, Borders | Lines | None]:
    """Return what `row_start` does, and what parts the rows of its block, where it was counted.

    It is for rows that are to be read from there on, `count` of them.
    """
    block, before = divmod(number, BLOCK_ROWS)
    parted: Borders | Lines | None = None
    if before + count > _FEW_ROWS:
        is_last = block + 1 >= len(rows.starts)
        stop = len(piece) if is_last else rows.starts[block + 1] - rows.starts[block]
        inside = min(BLOCK_ROWS, rows.count - block * BLOCK_ROWS)
        view = memoryview(piece)[:stop]
        if rows.format == "json":
            parted = _flat(view, inside, is_last=is_last) or _keyed(view, inside)
        else:
            parted = _lines(view, inside, is_last=is_last)
    if parted is not None:
        return parted.start(before), parted
    return row_pattern(rows.format, piece).skip(piece, before, 0)[1], None


def _flat(block: memoryview, count: int, *, is_last: bool) -> Borders | None:
    """Return the borders in a block of objects, or of arrays, that hold no others.

    The first one is followed by the next, as is each that ends with the same text: all but the
    last, as there are so many of them. So all rows begin with a bracket, and as there are no more
    brackets than rows, there is one in each.
    """
    first = _BORDER.match(block)
    if first is None:
        return None
    border = first[1] or first[2]
    outer = is_last and border[:1] == b"]"  # the array of all rows ends there too
    if _count(block, border[-1:]) != count or _count(block, border[:1]) != count + outer:
        return None
    return _borders(block, border, border[-1:], count)


def _keyed(block: memoryview, count: int) -> Borders | None:
    """Return the borders in a block of objects with one first key, and none in an array.

    What looks like the border of two rows is one of two objects in an array: no text goes on with
    a letter where it has ended, so the quote before the key begins a text. An array inside of a
    row would begin with a bracket. Where there are some, one that holds an object begins with it,
    or has it behind a comma and something that is none: then there are more commas before objects
    than borders.
    """
    key = _KEY.match(block)
    border = None if key is None else _border_before(block, key[1], key.end())
    if key is None or border is None:
        return None
    if _find(block, b"[") >= 0 and (
        any(_find(block, each) >= 0 for each in _NESTED) or _count(block, b",{") != count - 1
    ):
        return None
    return _borders(block, border, key[1], count)


def _border_before(block: memoryview, key: bytes, start: int) -> bytes | None:
    """Return how the next object with this first key follows on another."""
    for _ in range(_MOST_KEYS):
        found = _find(block[start:], key)
        if found < 0:
            return None
        start += found
        between = _BETWEEN.search(block[max(0, start - _LONGEST_SPACE_BYTES) : start])
        if between is not None:
            return between[0] + key
        start += len(key)
    return None


def _borders(block: memoryview, border: bytes, begin: bytes, count: int) -> Borders | None:
    """Return the borders of rows that all read the same; None if they are not so many."""
    find, _ = finders(border.decode(), ignore_case=False, is_ascii=True)
    hits = next(find(block), None)
    if hits is None or len(hits) != count - 1:
        return None
    return Borders(block, hits, border, begin)


def _lines(block: memoryview, count: int, *, is_last: bool) -> Lines | None:
    r"""Return the lines of a block that has no more of them than rows.

    Each row ends with one newline at least, where none ends with ``\r`` alone; the last may lack
    it.
    """
    ends = count - (is_last and bytes(block[-1:]) != b"\n")
    if count_newlines(block) != ends or _count(block, b"\r") != _count(block, b"\r\n"):
        return None
    return Lines(block, ends)
