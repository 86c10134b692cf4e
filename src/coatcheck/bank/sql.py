"""For a program that knows from its start that it will ask in SQL. Imported by its own name."""

from collections.abc import Iterable

from ._query import language_of
from ._worker import spares


def start_early(expressions: Iterable[str]) -> None:
    """Start the process that a first query needs, where one of these is SQL. Waits for nothing.

    Whoever asks later is told what was wrong, as that DuckDB is not installed.
    """
    if any(language_of(each) == "sql" for each in expressions):
        spares().refill()
