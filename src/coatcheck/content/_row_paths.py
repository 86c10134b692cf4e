"""Paths that are answered row by row, without ever parsing a table as a whole."""

import re
from collections.abc import Iterator

from ..errors import NothingSelectedError
from ._arrays import ARRAY_ROWS
from ._budget import Budget
from ._csv import DELIMITERS
from ._index import Rows
from ._json_pointer import resolve_pointer
from ._outline import outline
from ._parsed import is_text_rows, parse_block, parse_column
from ._pick import handed_out, nothing_at, pick
from ._selector import Selector

_FETCHED_BYTES = 8 * 1024 * 1024
_PARSED_BYTES = 256 * 1024
"""Parsed at once: objects that live this shortly stay in the processor's cache."""

_INDEX = r"0|[1-9][0-9]{0,17}"
_FIRST_ROW = {
    "json-pointer": re.compile(rf"/({_INDEX})(?=/|\Z)", re.ASCII),
    "jsonpath": re.compile(r"\$\[(0|-?[1-9][0-9]{0,17})\]", re.ASCII),
}
_COLUMN = re.compile(
    r"""\$(?:\.\*|\[\*\])(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[(?:'([^'"\\]*)'|"([^'"\\]*)")\])"""
)
"""A path to one name of each row."""
_EACH_ROW = re.compile(r"\$(?:\.\*|\[\*\]|\[\?)")


def single_row(selector: Selector, rows: Rows) -> int | None:
    """Return the row, from 0, that alone answers a path; None where there is no such row.

    >>> from ._selector import parse_selector
    >>> rows = Rows(format="json", count=9)
    >>> single_row(parse_selector("/5/id"), rows), single_row(parse_selector("$[-1]"), rows)
    (5, 8)
    """
    first = _FIRST_ROW[selector.form].match(selector.text)
    # Of an array without dimensions the one row is no item.
    if first is None or _looks_elsewhere(selector) or (rows.format, rows.count) == (ARRAY_ROWS, 1):
        return None
    number = int(first[1])
    number += rows.count if number < 0 else 0
    return number if 0 <= number < rows.count else None


def pick_of_row(row: object, number: int, selector: Selector) -> object:
    """Return what a path picks, given the one row that answers it. Raises as `pick`."""
    first = _FIRST_ROW[selector.form].match(selector.text)
    if first is None or selector.form == "json-pointer":
        # Under its number, so that an error names the place as the pointer does.
        return resolve_pointer({str(number): row}, selector.text)
    path = Selector(text=f"$[0]{selector.text[first.end() :]}", form="jsonpath")
    try:
        return pick([row], path, is_shared=False)
    except NothingSelectedError as error:
        hint = f"$[{number}] is {outline(row)}."
        raise NothingSelectedError(selector.text, error.reason, hint) from None


class EachRow:
    """Picks by a JSONPath out of all rows of a text, as they are fed block by block.

    Args:
        selector: One that `is_of` accepts.
        rows: Of the payload.
        size_bytes: Of the payload.

    Raises:
        InvalidQueryError: The path is wrong.
    """

    def __init__(self, selector: Selector, rows: Rows, size_bytes: int) -> None:
        from ._jsonpath import compile_jsonpath

        self._selector = selector
        self._rows = rows
        self._ends = (*rows.starts, size_bytes)
        self._path = compile_jsonpath(selector.text)
        self._budget = Budget()
        self._nodes: list[object] = []
        self._outline = ""
        self._column = _column_of(selector, rows)

    @staticmethod
    def is_of(selector: Selector, rows: Rows) -> bool:
        """Return whether each row answers its part of a path for itself."""
        return (
            selector.form == "jsonpath"
            and is_text_rows(rows)
            and rows.count > 0
            and _EACH_ROW.match(selector.text) is not None
            and not _looks_elsewhere(selector)
        )

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield the blocks to be fed, in this order: numbers ``[first, stop)``."""
        yield from self._grouped(0, len(self._ends) - 1, _FETCHED_BYTES)

    def span_bytes(self, first: int, stop: int) -> tuple[int, int]:
        """Return the bytes of blocks ``[first, stop)``, with what stands before the first one."""
        return self._ends[first] if first else 0, self._ends[stop]

    def feed(self, first: int, stop: int, piece: bytes) -> None:
        """Pick out of blocks ``[first, stop)``.

        Raises:
            DeadlineError, InvalidQueryError: It takes too long, or selects too much.
            ValueError: The payload is damaged.
        """
        start_byte, _ = self.span_bytes(first, stop)
        for begin, end in self._grouped(first, stop, _PARSED_BYTES):
            part = piece[self._ends[begin] - start_byte : self._ends[end] - start_byte]
            if self._column is not None:
                # An object of each record would take twice as long as to read the records.
                self._nodes += parse_column(self._rows, part, begin, end, self._column)
                self._budget.check()
                continue
            found = parse_block(self._rows, part, begin, end)
            if not self._outline:
                self._outline = outline(found, self._rows.count)
            self._nodes += self._path.find(found, self._budget)

    def result(self) -> list[object]:
        """Return the values that were picked, each its receiver's own.

        Raises:
            NothingSelectedError: There are none.
        """
        if not self._nodes:
            raise nothing_at(self._selector.text, self._outline)
        return handed_out(self._nodes, self._selector, is_shared=False)

    def _grouped(self, first: int, stop: int, least_bytes: int) -> Iterator[tuple[int, int]]:
        while first < stop:
            end = first + 1
            while end < stop and self._ends[end] - self._ends[first] < least_bytes:
                end += 1
            yield first, end
            first = end


def _column_of(selector: Selector, rows: Rows) -> int | None:
    """Return which column of CSV or TSV alone a path picks, None where it may pick more."""
    path = _COLUMN.fullmatch(selector.text)
    if path is None or rows.format not in DELIMITERS:
        return None
    name = path[path.lastindex or 0]
    return rows.columns.index(name) if name in rows.columns else None


def _looks_elsewhere(selector: Selector) -> bool:
    """Return whether a JSONPath may look at the whole, or orders its nodes by depth."""
    text = selector.text
    return selector.form == "jsonpath" and ("$" in text[1:] or ".." in text)
