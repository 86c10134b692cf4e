"""Rows of JSON, from a file into a table: an array, or a line for each.

Most columns are read in one pass as what a sample of the rows makes likely, in a way that fails on
any value of another kind. Where it does, or some text might have been a number, the column is read
once more as JSON and then looked at value by value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from ..records import dataclass
from ._sql_engine import EngineError, SqlEngine, literal, quoted, sql_name
from ._sql_names import are_plain, column_names, wanted_keys
from ._sql_types import Loaded, doubts, expected, read_as, settle, strict

_FORMATS = {"json": "array", "ndjson": "newline_delimited"}
_VALUE = "value"
_KINDS = {"text": "VARCHAR", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "json": "JSON"}
_MOST_LOADS = 3


class UnreadableError(Exception):
    """The engine does not read a payload as we do: it has to be written anew first."""

    table = ""
    """Which one, of several; whoever loads them says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSource:
    """A file of JSON rows, and what is known of them."""

    path: str
    form: str
    """``json`` for an array, ``ndjson`` for lines."""
    size_bytes: int
    count: int | None = None
    sample: Sequence[object] = ()
    """Some rows, the first among them."""
    is_all: bool = False
    """Whether they are all rows."""
    keys: Sequence[str] | None = None
    """Of all rows, in order of appearance; None where they are not known."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of columns by the keys that they had before they were written anew."""


def load_json(
    engine: SqlEngine, source: JsonSource, table: str, wanted: Iterable[str] | None
) -> Loaded:
    """Load those columns that are wanted, all of them for None.

    Raises:
        UnreadableError: It is not as it seems, or has keys that are no names of columns.
        InvalidQueryError: All are wanted, and they are too many.
        EngineError: There is no time or memory for it.
    """
    if source.count == 0:
        return _empty(engine, table, wanted)
    if not all(row is None or isinstance(row, dict) for row in source.sample):
        return _load_values(engine, source, table)
    try:
        return _load_objects(engine, source, table, wanted)
    except EngineError as error:
        if not error.is_content:
            raise
    # Some rows are no objects; or else it is their text that is not as it should be.
    return _load_values(engine, source, table)


def _empty(engine: SqlEngine, table: str, wanted: Iterable[str] | None) -> Loaded:
    """Make a table without rows, which has whatever column is asked for."""
    engine.run(f"CREATE TABLE {quoted(table)} (none INTEGER)")
    names = sorted({sql_name(name): name for name in wanted or ()}.values()) or [_VALUE]
    is_bare = [sql_name(name) for name in names] == [_VALUE]
    columns = dict.fromkeys(names, "NULL")
    return Loaded(
        table=table,
        columns=columns,
        is_whole=False,
        knows_all=False,
        is_bare=is_bare,
        is_empty=True,
    )


def _load_objects(
    engine: SqlEngine, source: JsonSource, table: str, wanted: Iterable[str] | None
) -> Loaded:
    keys, are_all = _keys(engine, source, wanted)
    names = column_names(keys)
    if not are_plain(names):
        raise UnreadableError
    columns = wanted_keys(names, wanted, source.size_bytes)
    if not columns:
        return _load_values(engine, source, table, may_be_objects=True)
    kinds = {key: expected(_cells(source.sample, key)) for key in columns}
    stage = _stage(engine, source, f"{table}_stage", kinds)
    loaded = settle(engine, stage, table, {key: _KINDS[kind] for key, kind in kinds.items()})
    is_whole = are_all and len(columns) == len(keys)
    return replace(loaded, is_whole=is_whole, known=keys, knows_all=are_all)


def _load_values(
    engine: SqlEngine, source: JsonSource, table: str, *, may_be_objects: bool = False
) -> Loaded:
    """Load a list of anything as one column."""
    stage = f"{table}_stage"
    rows = _read(source, {_VALUE: "JSON"}, records=False)
    name = quoted(_VALUE)
    try:
        engine.run(f"CREATE TABLE {quoted(stage)} AS SELECT {name} FROM {rows}")
        ((count, objects, others),) = engine.run(
            f"SELECT count(*), count_if(starts_with({name}, '{{')), "
            f"count_if(NOT starts_with({name}, '{{')) FROM {quoted(stage)}"
        )
    except EngineError as error:
        raise (UnreadableError() if error.is_content else error) from None
    are_objects = bool(objects and not others) and not may_be_objects
    if are_objects or source.count not in {None, count}:
        raise UnreadableError
    return replace(settle(engine, stage, table, {_VALUE: "JSON"}), is_bare=True)


def _keys(
    engine: SqlEngine, source: JsonSource, wanted: Iterable[str] | None
) -> tuple[Sequence[str], bool]:
    """Return the keys of the rows, in order of appearance, and whether these are all."""
    if source.keys is not None:
        return source.keys, True
    rows = cast("list[Mapping[str, object]]", [row for row in source.sample if row is not None])
    keys = list(dict.fromkeys(key for row in rows for key in row))
    if source.is_all:
        return keys, True
    known = {sql_name(key) for key in keys}
    if wanted is not None and known.issuperset(map(sql_name, wanted)):
        return keys, False
    found = engine.run(
        "SELECT key FROM (SELECT row, unnest(keys) AS key, generate_subscripts(keys, 1) AS place "
        f"FROM (SELECT row_number() OVER () AS row, json_keys({quoted(_VALUE)}) AS keys "
        f"FROM {_read(source, {_VALUE: 'JSON'}, records=False)})) "
        "GROUP BY key ORDER BY min(row), min(place)"
    )
    return [str(row[0]) for row in found], True


def _stage(engine: SqlEngine, source: JsonSource, stage: str, kinds: dict[str, str]) -> str:
    """Read columns as what they seem to be, and change `kinds` where they are not."""
    for _ in range(_MOST_LOADS):
        try:
            count = _try_stage(engine, source, stage, kinds)
        except EngineError as error:
            if not error.is_content or set(kinds.values()) == {"json"}:
                raise
            kinds.update(dict.fromkeys(kinds, "json"))
            continue
        if source.count not in {None, count}:
            raise UnreadableError
        # Of rows that were all looked at, nothing is left to doubt.
        wrong = [] if source.is_all else _doubtful(engine, stage, kinds)
        if not wrong:
            return stage
        engine.run(f"DROP TABLE {quoted(stage)}")
        kinds.update(dict.fromkeys(wrong, "json"))
    raise UnreadableError


def _try_stage(
    engine: SqlEngine, source: JsonSource, stage: str, kinds: Mapping[str, str]
) -> object:
    cells = ", ".join(f"{strict(kind, key)} AS {quoted(key)}" for key, kind in kinds.items())
    rows = _read(source, {key: read_as(kind) for key, kind in kinds.items()}, records=True)
    return engine.run(f"CREATE TABLE {quoted(stage)} AS SELECT {cells} FROM {rows}")[0][0]


def _doubtful(engine: SqlEngine, stage: str, kinds: Mapping[str, str]) -> list[str]:
    """Return the columns that may hold something else than they were read as."""
    asked = {key: found for key, kind in kinds.items() if (found := doubts(kind, key))}
    if not asked:
        return []
    questions = ", ".join(f"bool_or({question})" for question in asked.values())
    answers = engine.run(f"SELECT {questions} FROM {quoted(stage)}")[0]
    return [key for key, answer in zip(asked, answers, strict=True) if answer]


def _read(source: JsonSource, columns: Mapping[str, str], *, records: bool) -> str:
    """Return the call that reads columns of the file."""
    named = ", ".join(f"{literal(key)}: '{kind}'" for key, kind in columns.items())
    return (
        f"read_json({literal(source.path)}, columns = {{{named}}}, auto_detect = false, "
        f"format = '{_FORMATS[source.form]}', records = '{str(records).lower()}', "
        "compression = 'uncompressed', hive_partitioning = false)"
    )


def _cells(sample: Sequence[object], key: str) -> list[object]:
    rows = cast("list[Mapping[str, object]]", [row for row in sample if row is not None])
    return [row.get(key) for row in rows]
