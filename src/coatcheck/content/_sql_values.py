"""Rows that no database reads where they lie, written anew: values as JSON, frames as Parquet.

What is written anew has keys that are names of columns, and text that is UTF-8.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from typing import cast

from ..records import dataclass
from ._arrays import Foreign
from ._frame_rows import readable, shown_columns
from ._frames import load_frame
from ._json import dumps, loads
from ._sql_engine import SqlEngine, literal, quoted
from ._sql_names import are_plain, column_names, wanted_keys
from ._sql_types import Loaded

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT = "\ufffd".encode()
_SAMPLED_ROWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Rows as a file that the database reads."""

    payload: bytes
    count: int
    sample: Sequence[object]
    is_all: bool
    """Whether the sample has all rows."""
    keys: Sequence[str]
    """The columns, in order of appearance."""
    renamed: Mapping[str, str]
    """Names of columns by the keys that they had, where the two differ."""


def write_values(values: Sequence[object]) -> Written:
    """Return a list of plain values as JSON. `values` stays as it is.

    Raises:
        UnencodableValueError: They have no JSON.
    """
    keys: list[str] = []
    names: dict[str, str] = {}
    rows = values
    if all(row is None or isinstance(row, dict) for row in values):
        objects = cast("list[Mapping[str, object] | None]", values)
        keys = list(dict.fromkeys(key for row in objects if row is not None for key in row))
        names = column_names(keys)
        if not are_plain(names):
            rows = [
                None if row is None else {names[key]: cell for key, cell in row.items()}
                for row in objects
            ]
    step = max(1, len(rows) // _SAMPLED_ROWS)
    return Written(
        payload=_SURROGATE.sub(_REPLACEMENT, dumps(rows)),
        count=len(rows),
        sample=rows[::step],
        is_all=step == 1,
        keys=[names[key] for key in keys],
        renamed={key: name for key, name in names.items() if key != name},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFrame:
    """Columns of a frame as a Parquet file."""

    payload: bytes
    columns: Sequence[str]
    is_whole: bool
    known: Sequence[str]
    """All columns of the frame."""
    renamed: Mapping[str, str]


def write_frame(payload: bytes, form: str, wanted: Iterable[str] | None) -> WrittenFrame | None:
    """Return those columns of a frame that are wanted as Parquet; None where that would lose some.

    A column of a type that the engine lacks is text, and leaves all others what they are.

    Args:
        payload: Arrow.
        form: Of the frame.
        wanted: Names of columns, None for all.

    Raises:
        InvalidQueryError: All are wanted, and they are too many.
        InvalidArgumentError: The library that reads it is not installed.
        ValueError: The payload is damaged.
    """
    if form.startswith("arrow-polars"):
        frame: Foreign = load_frame(payload, form)
        table = (frame.to_frame() if form != "arrow-polars" else frame).to_arrow()
    else:
        table = import_module("pyarrow").ipc.open_file(payload).read_all()
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    shown = shown_columns(list(table.schema.names))
    names = column_names([name for _, name in shown])
    chosen = wanted_keys(names, wanted, len(payload))
    places = [at for at, name in shown if name in set(chosen)]
    into = BytesIO()
    try:
        parquet.write_table(
            pyarrow.table(
                [_kept(table.column(at), pyarrow) for at in places],
                names=[names[name] for name in chosen],
            ),
            into,
            coerce_timestamps="us",
            allow_truncated_timestamps=False,
        )
    except pyarrow.ArrowException:
        return None
    return WrittenFrame(
        payload=into.getvalue(),
        columns=[names[name] for name in chosen],
        is_whole=len(chosen) == len(shown),
        known=list(names.values()),
        renamed={name: column for name, column in names.items() if name != column},
    )


def load_frame_file(engine: SqlEngine, path: str, frame: WrittenFrame, table: str) -> Loaded:
    """Load the columns of a frame.

    Raises:
        EngineError: The engine does not read it, or there is no time or memory for it.
    """
    engine.run(
        f"CREATE TABLE {quoted(table)} AS SELECT * "
        f"FROM read_parquet({literal(path)}, hive_partitioning = false)"
    )
    columns = dict.fromkeys(frame.columns, "")
    return Loaded(table=table, columns=columns, is_whole=frame.is_whole, known=frame.known)


def _kept(column: Foreign, pyarrow: Foreign) -> Foreign:
    """Return a column as the engine reads it; one of a type that it lacks as rows show it.

    Raises:
        ArrowException: The engine lacks its type, and rows show no text, as of a structure.
    """
    if pyarrow.types.is_float16(column.type):
        return column.cast(pyarrow.float64())
    if not _is_foreign(column.type, pyarrow) and not _is_finer(column, pyarrow):
        return column
    return pyarrow.array(loads(dumps(readable(column, pyarrow))), pyarrow.string())


def _is_finer(column: Foreign, pyarrow: Foreign) -> bool:
    """Return whether a column holds times that microseconds would cut."""
    if not pyarrow.types.is_timestamp(column.type):
        return False
    try:
        column.cast(pyarrow.timestamp("us", column.type.tz))
    except pyarrow.ArrowInvalid:
        return True
    return False


def _is_foreign(kind: Foreign, pyarrow: Foreign) -> bool:
    """Return whether a type would come back as another."""
    types = pyarrow.types
    if types.is_nested(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        return any(_is_foreign(field.type, pyarrow) for field in fields)
    return bool(
        types.is_duration(kind)
        or types.is_interval(kind)
        or types.is_float16(kind)
        or types.is_decimal256(kind)
        or (types.is_time64(kind) and kind.unit == "ns")
    )
