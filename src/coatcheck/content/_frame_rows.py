"""The rows and columns of frames, live or in a payload, and how much of a text they would be."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from typing import cast

from ..errors import UnencodableValueError
from ._arrays import Foreign, library
from ._frames import BATCH_ROWS, INSTALL, LAZY, frame_form, frame_shape, is_range, is_series
from ._json import dumps
from ._partial import PartialPayload

_INDEX_LEVEL = re.compile(r"__index_level_\d+__")
"""A pandas index that has no name."""

# The dtypes of numbers, as pandas, polars and Arrow write them, in lower case.
_NUMBER = re.compile(r"(?:(bool)(?:ean)?|u?int(\d+)|float\d*|double|halffloat)(?:\[pyarrow])?")
_WIDTHS: Mapping[str | None, int] = {"bool": 6, "8": 5, "16": 7, "32": 12, "64": 21, None: 25}
_HEAD_ROWS = 100
_GUESSED_WIDTH = 32
"""Of a cell of any other type, until the cells are looked at."""


def sample_of(value: object, rows: list[int]) -> object:
    """Return a frame of some of the rows of a frame, in this order."""
    frame: Foreign = value
    form = frame_form(value) or ""
    if form.startswith("arrow-pandas"):
        return cast("object", frame.iloc[rows])
    return cast("object", frame[rows] if form.startswith("arrow-polars") else frame.take(rows))


def columns_of(value: object, rows: int) -> dict[str, list[object]]:
    """Return the first `rows` cells of each column, as Python values; missing ones are None.

    A name that stands twice gets a number. An index of pandas that has a name is a column too.
    """
    frame: Foreign = value
    form = frame_form(value) or ""
    if is_series(form):
        frame = frame.to_frame()
    if form.startswith("arrow-pandas"):
        head = _with_index(frame.iloc[:rows])
        columns = [_plain_cells(head.iloc[:, at]) for at in range(head.shape[1])]
        names = [str(name) for name in head.columns]
    elif form.startswith("arrow-polars"):
        head = frame.head(rows)
        columns = [column.to_list() for column in head.get_columns()]
        names = list(frame.columns)
    else:
        pyarrow: Foreign = import_module("pyarrow")
        head = frame.slice(0, rows)
        columns = [readable(column, pyarrow) for column in head.columns]
        names = list(head.schema.names)
    return dict(zip(_distinct(names), columns, strict=True))


def _plain_cells(column: Foreign) -> list[object]:
    cells, missing = column.tolist(), column.isna().tolist()
    return [None if gone is True else cell for cell, gone in zip(cells, missing, strict=True)]


def _with_index(frame: Foreign) -> Foreign:
    """Return a pandas frame with the named levels of its index behind its columns."""
    pandas: Foreign = import_module("pandas")
    if is_range(frame.index):
        return frame
    levels = [
        frame.index.get_level_values(at).to_series(index=frame.index)
        for at, name in enumerate(frame.index.names)
        if name is not None
    ]
    return pandas.concat([frame, *levels], axis=1) if levels else frame


def rows_of(value: object, rows: int | None = None) -> list[dict[str, object]]:
    """Return the rows of a frame, or the first of them, each by column name."""
    count, _ = frame_shape(value)
    columns = columns_of(value, count if rows is None else rows)
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def frame_head(value: object, chars: int) -> str:
    """Return the first rows of a frame as compact JSON, at least as many characters as asked for.

    Less where there is no more, or where a cell has no JSON.
    """
    count, _ = frame_shape(value)
    try:
        rows = [
            dumps(row).decode("utf-8", "surrogatepass")
            for row in rows_of(value, min(count, chars // 2 + 1, _HEAD_ROWS))
        ]
    except UnencodableValueError:
        return ""
    return f"[{','.join(rows)}"[:chars] + ("]" if len(rows) == count else "")


def shown_columns(names: Sequence[str]) -> list[tuple[int, str]]:
    """Return the places of a payload's columns, and what they are called in rows.

    An index of pandas that has no name is left out.
    """
    shown = [(at, name) for at, name in enumerate(names) if not _INDEX_LEVEL.fullmatch(name)]
    distinct = _distinct([name for _, name in shown])
    return [(at, name) for (at, _), name in zip(shown, distinct, strict=True)]


def _distinct(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    distinct: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def frame_text_bound(value: object, limit_bytes: int) -> int:
    """Return a number of bytes that the frame as JSON rows does not exceed, or one over the limit.

    Rows times the widths of the columns, which are their names' and that of the longest number of
    their type (booleans 6, integers 5 to 42, floats 25). Only a frame with other columns, which
    has few rows by that count, is written out to be measured.
    """
    if frame_form(value) == LAZY:
        return limit_bytes
    rows, _ = frame_shape(value)
    widths = [(len(dumps(str(name))) + 2, _width(dtype)) for name, dtype in _dtypes(value)]
    bound = rows * sum(name + (width or _GUESSED_WIDTH) for name, width in widths) + 2 * rows + 2
    if bound >= limit_bytes or all(width for _, width in widths):
        return bound
    try:
        return len(dumps(rows_of(value)))
    except UnencodableValueError:
        return limit_bytes


def _dtypes(value: object) -> list[tuple[object, str]]:
    frame: Foreign = value
    form = frame_form(value) or ""
    if form.startswith("arrow-pyarrow"):
        names, dtypes = frame.schema.names, frame.schema.types
    elif is_series(form):
        names, dtypes = [frame.name], [frame.dtype]
    else:
        names, dtypes = frame.columns, frame.dtypes
    return [(name, str(dtype).lower()) for name, dtype in zip(names, dtypes, strict=True)]


def _width(dtype: str) -> int | None:
    number = _NUMBER.fullmatch(dtype)
    return None if number is None else _WIDTHS.get(number[1] or number[2], 42)


class FrameRows:
    """The rows of an Arrow payload, each by column name.

    A window takes the footer and the batches of 8,192 rows that it lies in.

    Args:
        payload: As much of it as is known.
        count: How many rows there are.
    """

    def __init__(self, payload: PartialPayload, count: int) -> None:
        self.count = count
        self._pyarrow = library("pyarrow", "Rows of a frame are read by pyarrow", INSTALL)
        opened = self._pyarrow.PythonFile(_PartialFile(payload), mode="r")
        try:
            self._file: Foreign = self._pyarrow.ipc.open_file(opened)
        except self._pyarrow.ArrowException as error:
            message = "a damaged Arrow file"
            raise ValueError(message) from error
        self._shown = shown_columns(self._file.schema.names)

    @property
    def least_chars(self) -> int:
        """What a row takes as JSON, at the very least."""
        return 2 + sum(len(name) + 4 for _, name in self._shown)

    def take(self, start: int, stop: int) -> list[object]:
        """Return the rows of a window as plain values."""
        if start == stop:
            return []
        first, last = start // BATCH_ROWS, (stop - 1) // BATCH_ROWS
        batches = [self._file.get_batch(at) for at in range(first, last + 1)]
        table = self._pyarrow.Table.from_batches(batches)
        table = table.slice(start - first * BATCH_ROWS, stop - start)
        names = [name for _, name in self._shown]
        cells = [readable(table.column(at), self._pyarrow) for at, _ in self._shown]
        return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


class PolarsRows:
    """The rows of an Arrow payload that only polars can read; a window takes all of it."""

    def __init__(self, payload: PartialPayload) -> None:
        polars = library("polars", "This artifact is a polars frame", f"polars {INSTALL}")
        whole = payload.read(0, payload.size_bytes)
        try:
            self._frame: Foreign = polars.read_ipc(BytesIO(whole))
        except (polars.exceptions.PolarsError, OSError) as error:
            message = "a damaged Arrow file"
            raise ValueError(message) from error
        self.count, _ = frame_shape(self._frame)
        self.least_chars = 2 + sum(len(name) + 4 for name in self._frame.columns)

    def take(self, start: int, stop: int) -> list[object]:
        """Return the rows of a window as plain values."""
        return cast("list[object]", rows_of(self._frame.slice(start, stop - start)))


class _PartialFile:
    """A payload as the file that pyarrow reads."""

    closed = False

    def __init__(self, payload: PartialPayload) -> None:
        self._payload = payload
        self._at = 0

    def read(self, size: int) -> bytes:
        piece = self._payload.read(self._at, self._at + size)
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._payload.size_bytes)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def readable(column: Foreign, pyarrow: Foreign) -> list[object]:
    """Return Arrow cells as Python values; times in nanoseconds that Python lacks as text."""
    types = pyarrow.types
    kind = column.type
    if getattr(kind, "unit", "") == "ns":
        in_microseconds = (
            pyarrow.timestamp("us", kind.tz)
            if types.is_timestamp(kind)
            else pyarrow.duration("us")
            if types.is_duration(kind)
            else pyarrow.time64("us")
        )
        try:
            column = column.cast(in_microseconds)
        except pyarrow.ArrowInvalid:
            text = column.cast(pyarrow.int64() if types.is_duration(kind) else pyarrow.string())
            return [
                None if cell is None else str(cell).replace(" ", "T", 1)
                for cell in text.to_pylist()
            ]
    return cast("list[object]", column.to_pylist())
