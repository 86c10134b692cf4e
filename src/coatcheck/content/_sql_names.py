"""How keys and headers become names of columns, which SQL does not tell apart by capitals."""

from collections.abc import Iterable, Mapping, Sequence

from ..errors import InvalidQueryError, shown
from ._sql_engine import sql_name
from ._sql_statement import Statement, refused

MOST_COLUMNS = 1_000
"""Of a table that is loaded whole."""
_SMALL_BYTES = 1024 * 1024
_FEW_COLUMNS = 100
"""What has no more of both is loaded whole: the next question may be about another column."""
_SHOWN = 30
_SHOWN_CHARS = 40

# Names that stand for a function where no column has them.
_KEYWORDS = frozenset(
    {
        *("current_catalog", "current_database", "current_query", "current_role"),
        *("current_schema", "current_user", "session_user", "user"),
    }
)


def column_names(keys: Sequence[str]) -> dict[str, str]:
    """Return the name of the column of each key: its own where it is the first of that name.

    >>> column_names(["id", "ID", ""])
    {'id': 'id', 'ID': 'ID_2', '': 'column_3'}
    """
    own = {sql_name(key) for key in keys}
    taken: set[str] = set()
    names: dict[str, str] = {}
    for number, key in enumerate(keys, 1):
        name = _clean(key)
        if not name or sql_name(name) in taken:
            stem, tail = (name, 2) if name else ("column", number)
            name = f"{stem}_{tail}"
            while sql_name(name) in taken or sql_name(name) in own:
                tail += 1
                name = f"{stem}_{tail}"
        taken.add(sql_name(name))
        names[key] = name
    return names


def are_plain(names: Mapping[str, str]) -> bool:
    """Return whether each key is the name of its column."""
    return all(key == name for key, name in names.items())


def wanted_keys(
    names: Mapping[str, str], wanted: Iterable[str] | None, size_bytes: int
) -> list[str]:
    """Return the keys whose columns are to be loaded, in their order: at least one.

    Args:
        names: Of the columns, by key.
        wanted: What a statement names, None for all.
        size_bytes: Of the payload.

    Raises:
        InvalidQueryError: All are wanted, and they are too many.
    """
    if wanted is None and len(names) > MOST_COLUMNS:
        raise refused(
            f"there are {len(names):,} columns, too many to take them all",
            "Name those that you need. " + shown_columns(list(names.values())),
        )
    if wanted is None or (size_bytes <= _SMALL_BYTES and len(names) <= _FEW_COLUMNS):
        return list(names)
    lower = {sql_name(name) for name in wanted}
    # A table needs a column to have rows.
    return [key for key, name in names.items() if sql_name(name) in lower] or list(names)[:1]


def check_names(
    statement: Statement, names: Iterable[str], keys: Mapping[str, str], json_names: frozenset[str]
) -> None:
    """Pass where each name in a statement means what it seems to.

    Args:
        statement: What is asked.
        names: Of all the columns that there are.
        keys: Names of columns by their keys, where the two differ.
        json_names: Columns that hold values of several kinds, as JSON.

    Raises:
        InvalidQueryError: A name means another column, or a function; or JSON is compared.
    """
    columns = {sql_name(name): name for name in names}
    for name in sorted(statement.names):
        if name in keys and columns.get(sql_name(name)) != name:
            raise refused(
                f"{shown(name)} is the column {shown(keys[name])} here",
                f"SQL takes capitals and small letters for the same: write {_quoted(keys[name])}.",
            )
        known = columns.keys() | statement.aliases
        if sql_name(name) in _KEYWORDS and sql_name(name) not in known:
            raise unknown_column(name, list(columns.values()))
    for name in sorted(statement.scalars):
        if sql_name(name) in json_names:
            raise refused(
                f"{shown(name)} holds values of several kinds, as JSON",
                f"Take its text: {_quoted(name)}->>'$', or of a key ->>'$.key'; "
                f"for numbers TRY_CAST({_quoted(name)}->>'$' AS DOUBLE).",
            )


def unknown_column(name: str, columns: Sequence[str]) -> InvalidQueryError:
    """Return the error of a column that is not there."""
    # Models put texts in double quotes, which are for names.
    hint = f"{shown_columns(columns)} A text takes single quotes."
    return refused(f"there is no column {shown(name)}", hint)


def shown_columns(names: Sequence[str]) -> str:
    """Return a sentence that tells the columns, or the first of them."""
    listed = ", ".join(
        _quoted(name if len(name) <= _SHOWN_CHARS else f"{name[:_SHOWN_CHARS]}…")
        for name in names[:_SHOWN]
    )
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"Its columns are {listed}{more}." if listed else "It has no columns."


def _quoted(name: str) -> str:
    if name.isidentifier() and name.isascii():
        return name
    # It is of a payload: nothing in it may end the quotation, or the line.
    shown_name = (char if char.isprintable() else repr(char)[1:-1] for char in name)
    return '"' + "".join(shown_name).replace('"', '""') + '"'


def _clean(key: str) -> str:
    """Return a key without what no identifier can have."""
    return key.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
