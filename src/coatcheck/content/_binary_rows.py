"""Pages of payloads that are no text but have rows: arrays and frames. Rows are shown as JSON."""

from typing import Protocol

from ..errors import InvalidArgumentError
from ..records import Limits, Page
from ._arrays import ARRAY_ROWS, ArrayRows
from ._frame_rows import FrameRows, PolarsRows
from ._frames import FRAME_ROWS, POLARS_ROWS
from ._index import Index, Rows
from ._json import dumps
from ._partial import PartialPayload
from ._row_page import page_of

_FORMATS = frozenset({ARRAY_ROWS, FRAME_ROWS, POLARS_ROWS})


class _Reader(Protocol):
    count: int

    @property
    def least_chars(self) -> int:
        """What a row takes as JSON, at the very least."""
        ...

    def take(self, start: int, stop: int) -> list[object]:
        """Return the rows of a window as plain values."""
        ...


def has_binary_rows(index: Index) -> bool:
    """Return whether a payload is read by row, and not by character."""
    return index.rows is not None and index.rows.format in _FORMATS


def binary_page(
    rows: Rows, payload: PartialPayload, *, offset: int, limit: int | None, limits: Limits
) -> Page:
    """Return one window of an array or a frame: a JSON list of its rows.

    Rows of an array are numbers, text, or nested lists; of a frame objects by column name. Where
    one row alone is longer than a page, it is a JSON string, the head of that row.

    Args:
        rows: Of the payload.
        payload: As much of it as is known.
        offset: First row, from 0.
        limit: Most rows; the page ends earlier where it reaches `Limits.page_cap_chars`. None: a
            page of `Limits.page_chars` and `page_tokens`.
        limits: Bounds of a page.

    Raises:
        MissingRangeError: A range of the payload is needed that is not known.
        InvalidArgumentError: `offset` is no whole number from 0 on, or `limit` none from 1 on,
            or the library that reads the payload is not installed.
        ValueError: The payload is damaged.
    """
    _check("offset", offset, 0)
    if limit is not None:
        _check("limit", limit, 1)
    reader = _reader(rows, payload)
    longest = limits.page_chars if limit is None else limits.page_cap_chars
    applied = longest if limit is None else min(limit, longest)
    start = min(offset, reader.count)
    # No more than a page could hold is fetched, and at least one row.
    most = min(applied, longest // reader.least_chars + 1)
    taken = [_text(row) for row in reader.take(start, min(start + most, reader.count))]
    fitting = _fitting(taken, longest)
    return page_of(
        taken[: max(fitting, 1)],
        is_cut=bool(taken) and not fitting,
        total=reader.count,
        offset=offset,
        limit=applied,
        longest_chars=longest,
        budget_tokens=limits.page_tokens if limit is None else None,
    )


def take_rows(rows: Rows, payload: PartialPayload, start: int, stop: int) -> list[object]:
    """Return rows ``[start, stop)`` of an array or a frame as plain values.

    Raises:
        MissingRangeError: A range of the payload is needed that is not known.
        InvalidArgumentError: The library that reads the payload is not installed.
        ValueError: The payload is damaged.
    """
    return _reader(rows, payload).take(start, stop)


def _reader(rows: Rows, payload: PartialPayload) -> _Reader:
    if rows.format == ARRAY_ROWS:
        return ArrayRows(payload)
    try:
        return FrameRows(payload, rows.count)
    except ValueError:  # no pyarrow, or types of polars only
        if rows.format != POLARS_ROWS:
            raise
    return PolarsRows(payload)


def _text(row: object) -> str:
    return dumps(row).decode("utf-8", "surrogatepass")


def _fitting(texts: list[str], longest_chars: int) -> int:
    """Return how many of the rows a list of that length holds."""
    left = longest_chars - 1  # the bracket in front
    for count, text in enumerate(texts):
        left -= len(text) + 1
        if left < 0:
            return count
    return len(texts)


def _check(name: str, number: object, least: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise InvalidArgumentError(
            f"{name} must be a whole number, {least} or more.", f"Give a number from {least} on."
        )
