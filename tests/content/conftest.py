"""A database in this process, for what loads tables into one."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

import pytest
from _duckdb import DuckDBPyConnection, Error, connect

from coatcheck.content import EngineError, SqlRows
from coatcheck.content._sql_cells import converted, converter


class LocalEngine:
    """Runs statements as the process of a database does."""

    def __init__(self) -> None:
        self.connection = connection()
        self.statements: list[str] = []

    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
        self.statements.append(sql)
        try:
            result = self.connection.execute(sql, list(parameters))
            kinds = [converter(column[1]) for column in result.description or ()]
            return cast("SqlRows", [list(row) for row in converted(result.fetchall(), kinds)])
        except Error as error:
            raise EngineError(type(error).__name__, str(error)) from None

    def clear(self) -> None:
        """Drop all that a test has made: a new database would take longer than most tests."""
        made = "SELECT 'TABLE', table_name FROM duckdb_tables() UNION ALL "
        made += "SELECT 'VIEW', view_name FROM duckdb_views() WHERE NOT internal"
        for kind, name in self.connection.execute(made).fetchall():
            self.connection.execute(f'DROP {kind} IF EXISTS "{name}" CASCADE')


@cache
def connection() -> DuckDBPyConnection:
    return connect(":memory:", config={"threads": "2"})


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine()
    yield engine
    engine.clear()
