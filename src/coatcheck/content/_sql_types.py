"""Which SQL type a column of JSON gets: one that holds every value of it exactly, or JSON.

Text stays text, whatever it looks like. Numbers are BIGINT, HUGEINT or DOUBLE, true and false are
BOOLEAN, objects and arrays that are alike are STRUCT and lists. All else stays JSON: a column of
several kinds, objects with a great many keys, numbers that no type of these would hold.
"""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from ..records import dataclass
from ._json import dumps
from ._sql_engine import SqlEngine, literal, quoted, sql_name

_INT64 = 2**63
_EXACT_FLOAT = 2**53
_MOST_KEYS = 100
_MOST_FIELDS = 300
"""Of one object, and of all the objects within a column; what has more is a map: JSON."""
_DEEPEST = 8

# A text that a number, a boolean, an object or an array might have been, once it was made text.
_DOUBTFUL = r"(?s)-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|\{.*\}|\[.*\]"
_DOUBTFUL_TEXT = re.compile(_DOUBTFUL, re.ASCII)
_LONG_INT = r"(^|[^0-9.])[0-9]{16,}([^0-9.eE]|$)"
"""Digits that a float may not hold, in the text of an object or array."""

_READ_AS = {"text": "VARCHAR"}
"""As what the reader of JSON hands a column over, where not as JSON."""

Shape = Mapping[str, object] | list[object] | str
"""As DuckDB tells the structure of JSON: an object, a list of one, or the name of a type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A table in the database."""

    table: str
    columns: Mapping[str, str]
    """The columns that are there, and the type of each; ``NULL`` where it holds nothing, and then
    it is not in the table itself."""
    is_whole: bool
    """Whether all columns are there."""
    known: Sequence[str] = ()
    """Columns that there are, whether they were loaded or not."""
    knows_all: bool = True
    """Whether there are no others."""
    is_bare: bool = False
    """Whether it is a list of plain values, in one column ``value``."""
    is_empty: bool = False
    """Whether it has no rows: then each column is there that a statement may mean."""
    json_names: frozenset[str] = frozenset()
    """Columns, and fields of columns, that are JSON, in lower case."""

    def view(self, name: str, aliases: frozenset[str] = frozenset()) -> str:
        """Return the statement that gives the table a name.

        Args:
            name: As the statement has it.
            aliases: What the statement calls something else; no column of a table without rows.
        """
        columns = self.columns
        if self.is_empty:
            columns = {key: "NULL" for key in columns if sql_name(key) not in aliases} or columns
        shown = ", ".join(
            f"NULL AS {quoted(column)}" if kind == "NULL" else quoted(column)
            for column, kind in columns.items()
        )
        # By its whole name, as the view may have the same.
        table = f"memory.main.{quoted(self.table)}"
        return f"CREATE TEMP VIEW {quoted(name)} AS SELECT {shown} FROM {table}"


def expected(values: Sequence[object]) -> str:
    """Return the type that a column seems to have by some of its values, and has if they are all.

    >>> expected(["a", None]), expected([1, 2]), expected([1, 2.5]), expected(["12"])
    ('text', 'int', 'float', 'json')
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str}:
        texts = cast("list[str]", [value for value in values if value is not None])
        return "json" if any(map(_DOUBTFUL_TEXT.fullmatch, texts)) else "text"
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    if not kinds or not kinds <= {int, float}:
        return "json"
    numbers = cast("list[float]", [value for value in values if value is not None])
    return "json" if any(abs(number) >= _EXACT_FLOAT for number in numbers) else "float"


def read_as(kind: str) -> str:
    """Return the type as which the reader of JSON is to hand over a column."""
    return _READ_AS.get(kind, "JSON")


def strict(kind: str, column: str) -> str:
    """Return the expression of an expected type: an error where a value is of another."""
    name = quoted(column)
    # Compared as it is, JSON would take a literal for JSON too.
    text = f"CAST({name} AS VARCHAR)"
    if kind == "int":
        wrong = f"contains({text}, '.') OR contains({text}, 'e')"
        return f"CASE WHEN {wrong} THEN error('') ELSE CAST({text} AS BIGINT) END"
    if kind == "float":
        return f"CAST({text} AS DOUBLE)"
    if kind == "bool":
        return (
            f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false "
            f"ELSE CASE WHEN {name} IS NOT NULL THEN error('') END END"
        )
    return name


def doubts(kind: str, column: str) -> str | None:
    """Return an expression that is true where a column may not be what it was read as."""
    name = quoted(column)
    if kind == "float":
        # A whole number may have been cut.
        return f"abs({name}) >= {_EXACT_FLOAT}"
    if kind == "text":
        first = f"{name} >= '-' AND {name} < ':' OR {name} >= '[' AND {name} < '\\'"
        more = f"{name} >= '{{' AND {name} < '|' OR {name} IN ('true', 'false')"
        return f"({first} OR {more}) AND regexp_full_match({name}, {literal(_DOUBTFUL)})"
    return None


def settle(engine: SqlEngine, source: str, target: str, columns: Mapping[str, str]) -> Loaded:
    """Make a table of one that has columns of JSON, each of the type that holds all its values.

    Args:
        engine: The database.
        source: The table; it is gone afterwards.
        target: The name of the new one.
        columns: Of the table: ``JSON``, or the type that they have already.

    Returns:
        What was made, said to be whole.
    """
    made = {name: _Found(kind, quoted(name)) for name, kind in columns.items()}
    made |= _looked_at(engine, source, [name for name in columns if columns[name] == "JSON"])
    if any(one.sql != quoted(name) for name, one in made.items()):
        kept = ", ".join(f"{one.sql} AS {quoted(name)}" for name, one in made.items())
        engine.run(f"CREATE TABLE {quoted(target)} AS SELECT {kept} FROM {quoted(source)}")
        engine.run(f"DROP TABLE {quoted(source)}")
    else:
        engine.run(f"ALTER TABLE {quoted(source)} RENAME TO {quoted(target)}")
    json_names = [name for name, one in made.items() if one.kind == "JSON"]
    json_names += [field for one in made.values() for field in one.json_fields]
    return Loaded(
        table=target,
        columns={name: one.kind for name, one in made.items()},
        is_whole=True,
        json_names=frozenset(map(sql_name, json_names)),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The type of a column, and what makes it of the JSON."""

    kind: str
    sql: str
    json_fields: Sequence[str] = ()


def _looked_at(engine: SqlEngine, table: str, names: Sequence[str]) -> dict[str, _Found]:
    """Return the types of columns that are JSON."""
    if not names:
        return {}
    asked = ", ".join(question for name in names for question in _questions(quoted(name)))
    row = engine.run(f"SELECT {asked} FROM {quoted(table)}")[0]
    width = len(row) // len(names)
    found: dict[str, _Found] = {}
    for at, name in enumerate(names):
        answers = row[at * width : (at + 1) * width]
        found[name] = _scalar(answers, quoted(name)) or _nested(engine, table, quoted(name))
    return found


def _questions(name: str) -> list[str]:
    """Return what is asked of all values of a column of JSON."""
    text = f"CAST({name} AS VARCHAR)"
    number = f"{text} >= '-' AND {text} < ':'"
    whole = f"{number} AND NOT contains({text}, '.') AND NOT contains(lower({text}), 'e')"
    value = f"TRY_CAST(CASE WHEN {whole} THEN {text} END AS HUGEINT)"
    is_text = f"starts_with({text}, '\"')"
    is_bool = f"{text} IN ('true', 'false')"
    is_nested = f"starts_with({text}, '{{') OR starts_with({text}, '[')"
    return [
        f"bool_or({is_text})",
        f"bool_or({is_bool})",
        f"bool_or({is_nested})",
        f"bool_or({number} AND NOT ({whole}))",
        f"bool_or({whole})",
        f"min({value})",
        f"max({value})",
        f"bool_or({whole} AND {value} IS NULL)",
        f"bool_or(NOT ({is_text} OR {is_bool} OR {is_nested} OR {number}))",
    ]


def _scalar(answers: Sequence[object], name: str) -> _Found | None:
    """Return the type of a column by what it holds; None where that are objects or arrays."""
    text, boolean, nested, fraction, whole, least, most, huge, other = answers
    kinds = [bool(text), bool(boolean), bool(nested), bool(fraction or whole), bool(other)]
    found: _Found | None = None
    if not any(kinds):
        found = _Found("NULL", name)
    elif sum(kinds) > 1 or huge or other:
        found = _Found("JSON", name)
    elif text:
        found = _Found("VARCHAR", f"{name}->>'$'")
    elif boolean:
        found = _Found("BOOLEAN", f"CAST({name} AS BOOLEAN)")
    elif not nested:
        low, high = (cast("int", each or 0) for each in (least, most))
        kind = "BIGINT" if low >= -_INT64 and high < _INT64 else "HUGEINT"
        if fraction:
            kind = "JSON" if whole and max(-low, high) > _EXACT_FLOAT else "DOUBLE"
        is_kept = kind == "JSON"
        found = _Found(kind, name if is_kept else f"CAST(CAST({name} AS VARCHAR) AS {kind})")
    return found


def _nested(engine: SqlEngine, table: str, name: str) -> _Found:
    """Return the type of a column of objects or arrays."""
    asked = f"json_group_structure({name}), " + ", ".join(
        f"bool_or(regexp_matches({name}, {literal(pattern)}))"
        for pattern in ("[0-9]{19,}", "[0-9]{38,}", _LONG_INT)
    )
    structure, is_long, is_longest, has_long = engine.run(f"SELECT {asked} FROM {quoted(table)}")[0]
    if is_longest:
        return _Found("JSON", name)
    numbers = {"DOUBLE": "JSON" if has_long else "DOUBLE"}
    numbers |= dict.fromkeys(("UBIGINT", "BIGINT", "HUGEINT"), "HUGEINT" if is_long else "BIGINT")
    shaping = _Shaping(numbers)
    shape = shaping.shape(cast("Shape", structure), "", 0)
    if shape == "JSON" or shaping.fields > _MOST_FIELDS:
        return _Found("JSON", name)
    sql = f"json_transform({name}, {literal(dumps(shape).decode())})"
    return _Found("STRUCT", sql, tuple(shaping.json_fields))


class _Shaping:
    """Makes of the structure that was found the one that is asked for."""

    def __init__(self, numbers: Mapping[str, str]) -> None:
        self._numbers = numbers
        self.fields = 0
        self.json_fields: list[str] = []

    def shape(self, shape: Shape, field: str, depth: int) -> Shape:
        """Return the shape of one place; `field` is the name of the field that it is in."""
        made: Shape = "JSON"
        if isinstance(shape, str):
            kind = self._numbers.get(shape, shape)
            made = "JSON" if kind == "NULL" else kind
        elif depth < _DEEPEST and isinstance(shape, list):
            made = [self.shape(cast("Shape", shape[0]), field, depth + 1)] if shape else "JSON"
        elif depth < _DEEPEST and self._may_be_struct(cast("Mapping[str, object]", shape)):
            self.fields += len(shape)
            made = {
                key: self.shape(cast("Shape", below), key, depth + 1)
                for key, below in cast("Mapping[str, object]", shape).items()
            }
        if made == "JSON" and field:
            self.json_fields.append(field)
        return made

    def _may_be_struct(self, shape: Mapping[str, object]) -> bool:
        # SQL does not tell capitals from small letters, and has no empty name. A key with NUL would
        # be cut there, and be another's.
        names = {sql_name(key) for key in shape if key and "\x00" not in key}
        return 0 < len(shape) <= _MOST_KEYS and len(names) == len(shape)
