"""A database in this process, for what loads tables into one."""

from collections.abc import Sequence
from typing import cast

import pytest
from _duckdb import DuckDBPyConnection, Error, connect

from coatcheck.content import EngineError, SqlRows
from coatcheck.content._sql_worker import converted, converter


class EngineSession:
    """Runs statements as the process of a database does."""

    def __init__(self) -> None:
        self.connection: DuckDBPyConnection = connect(":memory:", config={"threads": "2"})
        self.statements: list[str] = []

    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
        self.statements.append(sql)
        try:
            result = self.connection.execute(sql, list(parameters))
            kinds = [converter(column[1]) for column in result.description or ()]
            return cast("SqlRows", [list(row) for row in converted(result.fetchall(), kinds)])
        except Error as error:
            raise EngineError(type(error).__name__, str(error)) from None


@pytest.fixture
def session() -> EngineSession:
    return EngineSession()
