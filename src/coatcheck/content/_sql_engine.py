"""What loads tables into a database talks to, and what comes back when the engine refuses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

WORKER = str(Path(__file__).with_name("_sql_worker.py"))
"""The program that runs a database."""
MEMORY_EXIT = 77
"""What it ends with when it has taken more memory than it may."""

SqlRows: TypeAlias = list[list[object]]
SqlAnswer: TypeAlias = tuple[list[bytes], dict[str, Any]]
"""Rows as JSON, 1,024 in each list; and how many, their columns, whether they are bare values."""


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
        kind: ``deadline``, ``memory``, ``size``, or the name of the engine's own class.
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
