"""Where the rows of JSON arrays and of NDJSON lie, found while the bytes pass. CSV is in `_csv`."""

import re
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from typing import cast

import orjson
import stringzilla

from ._index import BLOCK_ROWS, BOM, Rows
from ._json import dumps, loads
from ._json_nulls import RowsBefore

_LONGEST_ROW_BYTES = 16 * 1024 * 1024
"""Most bytes that are kept to find the end of one row; a text with a longer one has no rows."""

_STEPS = (BLOCK_ROWS, 32, 1)
"""Rows that one pattern passes at once: the engine of `re` does not come back for each."""

_JSON_SPACE = b" \t\r\n"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*"'
_PLAIN_STRING = rb'"[^"]*+"(?:(?<!\\")|(?:(?<=\\")[^"]*+")+(?<!\\"))'
_DEPTH = 5
"""Containers within each other that the pattern of a row holds; deeper rows are counted through."""


# stringzilla ships no type hints.
_find = cast("Callable[[bytes, bytes], int]", stringzilla.find)


class RowPattern:
    """Passes over whole rows of bytes.

    Args:
        row: A regular expression of one row and what parts it from the next. It may not
            match the head of a row that was cut.
        slow: Finds the end of a row that the expression does not hold, None where it is cut.
    """

    def __init__(self, row: bytes, slow: Callable[[bytes, int], int | None] | None = None) -> None:
        self._steps = [(n, re.compile(b"(?:%b){%d}+" % (row, n), re.DOTALL)) for n in _STEPS]
        self._slow = slow

    def skip(self, text: bytes, rows: int, start: int) -> tuple[int, int]:
        """Return how many whole rows, at most `rows`, follow byte `start`, and where they end."""
        passed = 0
        while passed < rows:
            for step, pattern in self._steps:
                if passed + step <= rows and (match := pattern.match(text, start)):
                    passed, start = passed + step, match.end()
                    break
            else:
                stop = None if self._slow is None else self._slow(text, start)
                if stop is None:
                    break
                passed, start = passed + 1, stop
        return passed, start

    def split(self, text: bytes, rows: int, start: int) -> tuple[list[bytes], int]:
        """Return whole rows from byte `start` on, at most `rows`, and where they end."""
        found: list[bytes] = []
        match_one = self._steps[-1][1].match
        while len(found) < rows:
            match = match_one(text, start)
            if match is not None:
                stop = match.end()
            else:
                passed, stop = self.skip(text, 1, start)
                if not passed:
                    break
            found.append(text[start:stop])
            start = stop
        return found, start


class RowScanner:
    """Finds the rows of a text that is fed to it piece by piece.

    It keeps no more than the row it is in. A subclass says how rows are told.
    """

    format: str

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.watch: Callable[[bytes, Sequence[int]], None] | None = None
        """Given all that was passed, whole rows, and at which of its bytes blocks of rows start."""
        self._count = 0
        self._starts = array("Q")
        self._pieces: list[bytes | memoryview] = []
        self._held = 0
        self._enough = 0
        self._byte = 0
        self._failed = False

    def feed(self, piece: bytes | memoryview) -> None:
        """Look at the next bytes of the payload."""
        if self._failed:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        # A long row is looked at again only when twice as much is there: each byte counts for
        # a bounded number of looks.
        if self._held >= min(self._enough, _LONGEST_ROW_BYTES + 1):
            self._look(final=False)

    def rows(self) -> Rows | None:
        """Return the rows of all that was fed, None where it is no table."""
        if not self._failed:
            self._look(final=True)
        if self._failed:
            return None
        return Rows(
            format=self.format, count=self._count, starts=self._starts, columns=self.columns
        )

    def _look(self, *, final: bool) -> None:
        text = b"".join(self._pieces)
        if self._byte == 0:
            if not final and BOM.startswith(text):
                return
            if text.startswith(BOM):
                text, self._byte = text[len(BOM) :], len(BOM)
        known = len(self._starts)
        try:
            stop = self._scan(text, final=final)
            if self.watch is not None:
                self.watch(text[:stop], [start - self._byte for start in self._starts[known:]])
        except ValueError:
            self._failed = True
            stop = len(text)
        self._byte += stop
        self._held = len(text) - stop
        self._pieces = [text[stop:]] if self._held else []
        self._enough = 2 * self._held
        if self._held > _LONGEST_ROW_BYTES:
            self._failed, self._pieces = True, []

    def _scan(self, text: bytes, *, final: bool) -> int:
        """Count the whole rows at the start of `text`, and return where they end.

        Raises:
            ValueError: It is no table.
        """
        raise NotImplementedError

    def _pass(self, pattern: RowPattern, text: bytes, start: int) -> int:
        while True:
            due = BLOCK_ROWS - self._count % BLOCK_ROWS
            passed, stop = pattern.skip(text, due, start)
            self._passed(passed, start)
            start = stop
            if passed < due:
                return start

    def _passed(self, rows: int, start: int) -> None:
        """Count rows of one block, the first of which starts at byte `start` of the text."""
        if rows and self._count % BLOCK_ROWS == 0:
            self._starts.append(self._byte + start)
        self._count += rows


class JsonRows(RowScanner):
    """Finds the elements of a JSON array. What is fed must be known to be JSON."""

    format = "json"

    def __init__(self) -> None:
        super().__init__()
        self._opened = False

    def _scan(self, text: bytes, *, final: bool) -> int:
        start = 0
        if not self._opened:
            head = text.lstrip(_JSON_SPACE)
            if not head.startswith(b"[") and (head or final):
                raise ValueError("no array")
            start = len(text) - len(head) + len(head[:1])
            self._opened = bool(head)
        stop = self._pass(json_pattern(text), text, start)
        if final and text[stop:].strip(_JSON_SPACE) not in {b"", b"]"}:
            raise ValueError("the array does not end")
        return stop


class LineRows(RowScanner):
    """Finds the lines of NDJSON, each one JSON value; blank lines do not count."""

    format = "ndjson"

    def _scan(self, text: bytes, *, final: bool) -> int:
        start = 0
        stop = len(text) if final else text.rfind(b"\n") + 1
        for line in text[:stop].split(b"\n"):
            if line and not line.isspace():
                _check_json(line)
                self._passed(1, start)
            start += len(line) + 1
        return stop


def dump_rows(rows: Sequence[object]) -> tuple[bytes, Rows]:
    """Return what `dumps` makes of a list or tuple, and where each 1,024th element starts.

    Raises:
        UnencodableValueError: As `dumps`.
    """
    starts = array("Q")
    before = RowsBefore()
    # Grows without a copy, and gives its bytes without one.
    out = BytesIO()
    out.write(b"[")
    for first in range(0, len(rows), BLOCK_ROWS):
        if first:
            out.write(b",")
        starts.append(out.tell())
        out.write(memoryview(dumps(rows[first : first + BLOCK_ROWS], before=before))[1:-1])
    out.write(b"]")
    return out.getvalue(), Rows(format=JsonRows.format, count=len(rows), starts=starts)


def json_pattern(text: bytes | None = None) -> RowPattern:
    """Return the pattern of one element of a JSON array and the comma or bracket behind it.

    Args:
        text: Where it is to be used, if that is known. Most have no two backslashes in a row:
            then a quote behind one is no end of a string, and a pattern that takes it so is
            nearly twice as fast.
    """
    is_plain = text is not None and _find(text, b"\\\\") < 0
    return _json_pattern(_PLAIN_STRING if is_plain else _STRING)


@cache
def _json_pattern(string: bytes) -> RowPattern:
    inside = string
    for _ in range(_DEPTH):
        other = rb'[^][{}"]*+'
        inside = rb"%b|[\[{]%b(?:(?:%b)%b)*[\]}]" % (string, other, inside, other)
    value = rb"(?:[^][{}\",\s]++|%b|%b)" % (string, inside)
    return RowPattern(rb"\s*+%b\s*+[,\]]" % value, _skip_deep)


@cache
def line_pattern() -> RowPattern:
    """Return the pattern of one line that is not blank, with its end."""
    return RowPattern(rb"\s*+[^\n]++\n")


_BRACKET = re.compile(rb"[^][{}\"]*+(?:%b[^][{}\"]*+)*([][{}])" % _STRING, re.DOTALL)
_BEHIND = re.compile(rb"\s*+[,\]]")


def _skip_deep(text: bytes, start: int) -> int | None:
    """Return the end of an array or object and what follows it, None where that is cut."""
    depth = 0
    while bracket := _BRACKET.match(text, start):
        depth += 1 if bracket[1] in b"[{" else -1
        start = bracket.end()
        if depth <= 0:
            behind = _BEHIND.match(text, start) if depth == 0 else None
            return None if behind is None else behind.end()
    return None


def _check_json(line: bytes) -> None:
    try:
        orjson.loads(line)
    except ValueError:  # lone surrogates, or no JSON
        loads(line)
