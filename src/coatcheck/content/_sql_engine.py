"""What loads tables into a database talks to, and what comes back when the engine refuses."""

from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Protocol, TypeAlias

WORKERS = str(Path(__file__).parent)
"""Where the program lies that runs a database: `_sql_worker`, and what it imports."""
MEMORY_EXIT = 77
"""What it ends with when it has taken more memory than it may."""

SqlRows: TypeAlias = list[list[object]]
SqlAnswer: TypeAlias = tuple[list[bytes], dict[str, Any]]
"""Rows as JSON, 1,024 in each list; and how many, their columns, whether they are bare values."""


_SMALL = {ord(letter): letter.lower() for letter in ascii_uppercase}
_BOUND = frozenset({"BinderException", "CatalogException", "ParserException", "SyntaxException"})


class SqlEngine(Protocol):
    """A database that runs statements of ours. It is not sealed yet."""

    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
        """Return the rows of a statement, as JSON values.

        Raises:
            EngineError: The database refused.
        """
        ...


class EngineError(Exception):
    """The engine refused a statement.

    Args:
        kind: ``deadline``, ``memory``, ``size``, ``ended`` where its process did, or the name of
            the engine's own class.
        text: What the engine said. It may quote values, and name files.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text

    @property
    def is_bound(self) -> bool:
        """Whether it was found before any row was looked at, in the statement alone."""
        return self.kind in _BOUND

    @property
    def is_content(self) -> bool:
        """Whether the reason lies in what was read, and not in time or memory."""
        return self.kind not in {"deadline", "memory", "ended"}


def sql_name(text: str) -> str:
    """Return a name as SQL compares it: only letters of ASCII are the same in both cases.

    >>> sql_name("Id"), sql_name("\u212a") == sql_name("k")
    ('id', False)
    """
    # What Python folds and the engine does not would be two names for one of them.
    return text.lower() if text.isascii() else text.translate(_SMALL)


def quoted(name: str) -> str:
    """Return a name as an identifier.

    >>> quoted("my name")
    '"my name"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a string literal.

    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"
