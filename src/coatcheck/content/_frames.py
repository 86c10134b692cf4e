"""Frames of pandas, polars and pyarrow, to and from Arrow IPC files.

The libraries are imported only once there is a frame of theirs, or a payload of one.
"""

import math
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from typing import Any, cast

from ..errors import UnencodableValueError
from ._arrays import Foreign, is_array, library
from ._json import dumps, loads

ARROW_TYPE = "application/vnd.apache.arrow.file"
FRAME_ROWS = "arrow"
"""Format of the rows of a frame, in its index."""
POLARS_ROWS = "arrow-polars"
"""The same of a polars frame, whose types pyarrow may not know."""

BATCH_ROWS = 8_192
"""Rows of each record batch but the last: a part of the stored form, as windows rely on it."""

INSTALL = "'coatcheck[tables]'"

_WITH_NAN = b"coatcheck.nan"
"""Metadata: which columns of objects have NaN, not None, where nothing is."""

# What a frame is, told by its class alone. Subclasses may hold more than the frame.
_FORMS: Mapping[tuple[str, str], str] = {
    ("pandas", "DataFrame"): "arrow-pandas",
    ("pandas", "Series"): "arrow-pandas-series",
    ("polars", "DataFrame"): "arrow-polars",
    ("polars", "LazyFrame"): "arrow-polars-lazy",
    ("polars", "Series"): "arrow-polars-series",
    ("pyarrow", "Table"): "arrow-pyarrow",
    ("pyarrow", "RecordBatch"): "arrow-pyarrow-batch",
}
LAZY = "arrow-polars-lazy"
"""The form of what holds no rows yet, and is refused."""


def frame_form(value: object) -> str | None:
    """Return the form that a frame is stored in, or None where `value` is no frame."""
    kind = type(value)
    named = (kind.__module__.partition(".")[0], kind.__qualname__)
    form = _FORMS.get(named)
    if form == "arrow-pandas-series" and cast("Any", value).name is None:
        return "arrow-pandas-unnamed"
    return form


def encode_frame(value: object, form: str) -> bytes:
    """Return a frame as an Arrow IPC file, in record batches of 8,192 rows.

    Raises:
        UnencodableValueError: It would not come back equal, or pyarrow is not installed.
    """
    frame: Foreign = value
    if form == LAZY:
        error = UnencodableValueError("a polars LazyFrame holds no rows yet")
        error.hint = "Return frame.collect()."
        raise error
    rows, columns = frame_shape(value)
    if rows and not columns:
        raise UnencodableValueError("a frame of rows without columns")
    if form.startswith("arrow-polars"):
        return _polars_payload(frame.to_frame() if is_series(form) else frame)
    try:
        pyarrow: Foreign = import_module("pyarrow")
    except ImportError:
        error = UnencodableValueError("a frame needs pyarrow to be stored")
        error.hint = f"pip install {INSTALL}"
        raise error from None
    if form.startswith("arrow-pandas"):
        table = _pandas_table(frame.to_frame() if is_series(form) else frame, pyarrow)
    elif form == "arrow-pyarrow-batch":
        table = pyarrow.Table.from_batches([frame])
    else:
        table = frame
    return _table_payload(table, pyarrow)


def _polars_payload(frame: Foreign) -> bytes:
    polars: Foreign = import_module("polars")
    into = BytesIO()
    try:
        frame.rechunk().write_ipc(into, record_batch_size=BATCH_ROWS)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as failure:
        raise UnencodableValueError("a polars column that Arrow has no type for") from failure
    return into.getvalue()


def _table_payload(table: Foreign, pyarrow: Foreign) -> bytes:
    into = pyarrow.BufferOutputStream()
    try:
        table = table.unify_dictionaries()
        with pyarrow.ipc.new_file(into, table.schema) as writer:
            for start in range(0, table.num_rows, BATCH_ROWS):
                # Batches end where chunks do; each of ours is one.
                part = table.slice(start, BATCH_ROWS).combine_chunks()
                writer.write_table(part, max_chunksize=BATCH_ROWS)
    except pyarrow.ArrowException as failure:
        raise UnencodableValueError("an Arrow column that its file format cannot hold") from failure
    return cast("bytes", into.getvalue().to_pybytes())


def _pandas_table(frame: Foreign, pyarrow: Foreign) -> Foreign:
    """Return a pandas frame as an Arrow table that gives it back equal, or refuse."""
    labels = frame.columns
    # pyarrow only warns of these two.
    if labels.nlevels == 1 and labels.inferred_type.startswith("mixed"):
        raise UnencodableValueError("a pandas frame with labels of several types")
    if not all(name is None or isinstance(name, str) for name in frame.index.names):
        raise UnencodableValueError("a pandas frame whose index has labels that are no text")
    try:
        table = pyarrow.Table.from_pandas(frame)
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError, AttributeError):
        # What they say would quote cells.
        at = _refused_column(frame, pyarrow)
        raise UnencodableValueError(f"a pandas frame that Arrow cannot hold: {at}") from None
    empty = table.slice(0, 0).to_pandas()
    ranged = is_range(frame.index)
    if frame.shape[1] and not (
        empty.columns.equals(frame.columns) and (ranged or empty.index.names == frame.index.names)
    ):
        raise UnencodableValueError("a pandas frame whose labels would come back changed")
    with_nan: list[int] = []
    for column, (dtype, back) in enumerate(zip(frame.dtypes, empty.dtypes, strict=True)):
        if str(dtype) == "object":
            if _missing_as_nan(frame.iloc[:, column], table.column(column).to_pylist(), column):
                with_nan.append(column)
        elif dtype != back:
            raise UnencodableValueError(
                f"column {column} of a pandas frame, of dtype {dtype}, would come back as {back}"
            )
    metadata: dict[bytes, bytes] = {**table.schema.metadata, _WITH_NAN: dumps(with_nan)}
    return table.replace_schema_metadata(metadata)


def _missing_as_nan(column: Foreign, back: list[object], at: int) -> bool:
    """Return whether what is missing among objects is NaN, and not None.

    Raises:
        UnencodableValueError: They would not come back equal, each of the same type.
    """
    cells: list[object] = column.tolist()
    gone = {type(cell) for cell, known in zip(cells, back, strict=True) if known is None}
    cells = [None if known is None else cell for cell, known in zip(cells, back, strict=True)]
    if (
        not (gone <= {float} or gone <= {type(None)})
        or list(map(type, cells)) != list(map(type, back))
        or cells != back
    ):
        raise UnencodableValueError(f"column {at} of a pandas frame holds objects of several types")
    return gone == {float}


def is_range(index: Foreign) -> bool:
    """Return whether a pandas index only counts."""
    return type(index).__name__ == "RangeIndex"


def _refused_column(frame: Foreign, pyarrow: Foreign) -> str:
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        try:
            pyarrow.Array.from_pandas(column)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError, AttributeError):
            return f"column {at}, of dtype {column.dtype}"
    return "its labels"


def load_frame(payload: bytes, form: str) -> object:
    """Return the frame of an Arrow payload, in the library and class that it was put as.

    Raises:
        ValueError: The payload is damaged.
        InvalidArgumentError: The library is not installed.
    """
    name = form.split("-")[1]
    what = f"This artifact is a {name} frame"
    frames = library(name, what, f"{name} {INSTALL}")
    if name == "polars":
        try:
            frame = frames.read_ipc(BytesIO(payload))
        except (frames.exceptions.PolarsError, OSError) as error:
            message = "a damaged Arrow file"
            raise ValueError(message) from error
        return cast("object", frame.to_series() if is_series(form) else frame)
    table = _read_table(payload, library("pyarrow", what, INSTALL))
    if name == "pandas":
        frame = _pandas_frame(table)
        if not is_series(form):
            return cast("object", frame)
        series = frame.iloc[:, 0]
        return cast("object", series.rename(None) if form.endswith("-unnamed") else series)
    if form.endswith("batch"):
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else frames.RecordBatch.from_pylist([], schema=table.schema)
    return cast("object", table)


def _read_table(payload: bytes, pyarrow: Foreign) -> Foreign:
    try:
        return pyarrow.ipc.open_file(payload).read_all()
    except pyarrow.ArrowException as error:
        message = "a damaged Arrow file"
        raise ValueError(message) from error


def _pandas_frame(table: Foreign) -> Foreign:
    """Return a pandas frame; what were objects are objects again, not what Arrow made of them."""
    frame = table.to_pandas().copy()  # it may share memory with the payload, read-only
    about: Foreign = table.schema.pandas_metadata["columns"]
    with_nan = cast("list[int]", loads(table.schema.metadata[_WITH_NAN]))
    pandas: Foreign = import_module("pandas")
    for at in range(frame.shape[1]):
        if about[at]["numpy_type"] == "object":
            cells = table.column(at).to_pylist()
            if at in with_nan:
                cells = [math.nan if cell is None else cell for cell in cells]
            frame.isetitem(at, pandas.Series(cells, index=frame.index, dtype=object))
    return frame


def frame_shape(value: object) -> tuple[int, int]:
    """Return how many rows and columns a frame has."""
    frame: Foreign = value
    rows, *columns = frame.shape
    return int(rows), int(columns[0]) if columns else 1


def is_series(form: str) -> bool:
    """Return whether a form is that of one column."""
    return form.endswith(("-series", "-unnamed"))


def is_live_class(kind: object) -> bool:
    """Return whether `kind` is the class of an array or of a frame; imports nothing.

    >>> is_live_class(dict)
    False
    """
    if not isinstance(kind, type):
        return False
    named = (kind.__module__.partition(".")[0], kind.__qualname__)
    return named in _FORMS or named == ("numpy", "ndarray")


_MAKERS = {
    ("numpy", "ndarray"): ("numpy", "asarray"),
    ("pandas", "DataFrame"): ("pandas", "DataFrame"),
    ("polars", "DataFrame"): ("polars", "DataFrame"),
    ("pyarrow", "Table"): ("pyarrow", "Table.from_pylist"),
}
"""What makes an array of a list, or a frame of a list of objects."""


def as_live(value: object, kind: object) -> object:
    """Return a frame, or a plain list, as the class `kind`; any other value as it is."""
    if not isinstance(kind, type) or isinstance(value, kind):
        return value
    form = frame_form(value)
    if form is None:
        return _of_list(cast("list[object]", value), kind) if isinstance(value, list) else value
    wanted = (kind.__module__.partition(".")[0], kind.__qualname__)
    frame: Foreign = value
    if is_series(form):
        frame = frame.to_frame()
    pyarrow = library("pyarrow", "A frame becomes that of another library by Arrow", INSTALL)
    if form.startswith("arrow-pandas"):
        frame = pyarrow.Table.from_pandas(frame)
    elif form.startswith("arrow-polars"):
        frame = frame.to_arrow()
    elif form.endswith("batch"):
        frame = pyarrow.Table.from_batches([frame])
    if wanted == ("pandas", "DataFrame"):
        return cast("object", frame.to_pandas().copy())
    if wanted == ("polars", "DataFrame"):
        return cast(
            "object", library("polars", "A polars frame is asked for", "polars").from_arrow(frame)
        )
    return cast("object", frame) if wanted == ("pyarrow", "Table") else value


def _of_list(items: list[object], kind: type) -> object:
    """Return a list as an array, or its objects as a frame; the list where it is none."""
    make = _MAKERS.get((kind.__module__.partition(".")[0], kind.__qualname__))
    if make is None or (make[1] != "asarray" and not all(isinstance(item, dict) for item in items)):
        return items
    part = library(make[0], "An array or a frame is asked for", make[0])
    for name in make[1].split("."):
        part = getattr(part, name)
    try:
        made = part(items)
    # What each library says to rows that do not go together is its own.
    except Exception:  # noqa: BLE001
        return items
    # An array of objects is a list by another name.
    return items if is_array(made) and made.dtype == object else cast("object", made)
