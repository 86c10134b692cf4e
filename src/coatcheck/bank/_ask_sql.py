"""SQL on artifacts: loads what a statement names, runs it, and joins what comes back."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..content import EngineError, Rows, SqlAnswer, sql_name
from ..content.sql import (
    Loaded,
    Statement,
    UnreadableError,
    check_names,
    check_words,
    engine_refusal,
    refused,
)
from ..errors import CoatcheckError, UnknownPointerError, shown
from ..records import is_id, names_pointer
from ._databases import Database, Prepared, Wanted
from ._derived import MOST_BYTES, Asked, Result, found, kept_of_sql
from ._lookup import Lookup
from ._reader import Reader
from ._record import Record
from ._shared import Shared
from ._tables import Tables
from ._threads import in_daemon_thread
from ._worker import spares

SECONDS = 10.0
_MOST_TRIES = 4
_CHUNK_ROWS = 1_024


class SqlQueries:
    """Runs statements.

    Args:
        shared: What all scopes of the bank share.
        reader: Reads payloads.
        lookup: Finds the records.
        tables: Prepares them to be loaded.
        seconds: Until a statement is stopped; loading comes on top.
        most_bytes: Most JSON of a result.
    """

    def __init__(
        self,
        shared: Shared,
        reader: Reader,
        lookup: Lookup,
        tables: Tables,
        *,
        seconds: float = SECONDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._databases = shared.databases
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._reader = reader
        self._lookup = lookup
        self._tables = tables

    async def statement(self, sql: str) -> Statement:
        """Return what a statement does, if it may.

        Raises:
            InvalidQueryError: It may not, or is none.
            InvalidArgumentError: DuckDB is not installed.
        """
        check_words(sql)
        try:
            return await in_daemon_thread(lambda: self._databases.statement(sql))
        except EngineError as error:
            raise self._refusal(error) from None

    async def tables_of(
        self, statement: Statement, targets: Mapping[str, Asked]
    ) -> dict[str, Asked]:
        """Return what stands behind each table of a statement.

        Raises:
            InvalidQueryError: One is neither banked nor named.
            UnknownPointerError, ExpiredPointerError: One is a pointer to nothing.
        """
        given = {sql_name(name): asked for name, asked in targets.items()}
        tables: dict[str, Asked] = {}
        for table in statement.tables:
            asked = given.get(sql_name(table))
            if asked is None:
                asked = await self._banked(table, targets)
            twins = [other for other in tables if sql_name(other) == sql_name(table)]
            if twins and tables[twins[0]].key != asked.key:
                raise refused(
                    f"{shown(twins[0])} and {shown(table)} are one table in SQL",
                    "Capitals and small letters are the same there: use their pointers.",
                )
            tables[table] = asked
        return tables

    async def _banked(self, table: str, targets: Iterable[str]) -> Asked:
        if names_pointer(table) or is_id(table):
            return await found(self._lookup, table)
        try:
            return await found(self._lookup, table)
        except UnknownPointerError as error:
            there = ", ".join(targets)
            hint = f"Here the tables are: {there}. Others are banked, by their pointer or name in "
            hint += 'double quotes: FROM "art:…".'
            if error.nearest:
                hint += f" Nearest: {', '.join(error.nearest)}."
            raise refused(f"there is no table {shown(table)}", hint) from None

    async def run(self, statement: Statement, tables: Mapping[str, Asked]) -> Result:
        """Run a statement.

        Args:
            statement: What is asked.
            tables: What stands behind each of its tables.

        Raises:
            InvalidQueryError: It fails, or takes too much.
            DeadlineError: It takes too long.
            CoatcheckError: An artifact cannot be read as a table.
        """
        wanted: dict[str, Wanted] = {asked.key: statement.names for asked in tables.values()}
        wanted |= {asked.key: None for table, asked in tables.items() if statement.tables[table]}
        asked_by_key = {asked.key: asked for asked in tables.values()}
        database = self._databases.take(frozenset(wanted))
        try:
            return await self._run_on(database, statement, tables, asked_by_key, wanted)
        except EngineError as error:
            known = [table.known or list(table.columns) for table in database.tables.values()]
            columns = list(dict.fromkeys(name for names in known for name in names))
            raise self._refusal(error, columns) from None
        finally:
            self._databases.give_back(database)

    async def _run_on(
        self,
        database: Database,
        statement: Statement,
        tables: Mapping[str, Asked],
        asked: Mapping[str, Asked],
        wanted: Mapping[str, Wanted],
    ) -> Result:
        anew: frozenset[str] = frozenset()
        for last in range(_MOST_TRIES - 1, -1, -1):
            prepared: dict[str, Prepared] | None = None
            needed = wanted
            if not database.has(wanted):
                needed = database.wanted_too(wanted)
                prepared = await self._prepared(asked, needed, anew)
            try:
                load = None if prepared is None else partial(database.load, prepared, needed)
                result = await _in_thread(
                    database, load, partial(self._ask, database, statement, tables), wanted
                )
            except UnreadableError as error:
                if error.table in anew:
                    hint = "Ask in JSONPath ($…) or JMESPath, or search it."
                    raise refused("an artifact cannot be read as a table", hint) from None
                anew |= {error.table}
                continue
            except EngineError as error:
                # The process may have been idle for too long, or ended for another's sake.
                if error.kind != "ended" or not last:
                    raise
                continue
            finally:
                for each in (prepared or {}).values():
                    each.close()
            if result is not None:
                return result
        raise EngineError("ended")

    async def _prepared(
        self, asked: Mapping[str, Asked], wanted: Mapping[str, Wanted], anew: frozenset[str]
    ) -> dict[str, Prepared]:
        prepared: dict[str, Prepared] = {}
        try:
            for key, each in asked.items():
                prepared[key] = await self._one_prepared(each, wanted[key], anew=key in anew)
        except BaseException:
            for done in prepared.values():
                done.close()
            raise
        return prepared

    async def _one_prepared(self, asked: Asked, wanted: Wanted, *, anew: bool) -> Prepared:
        async def prepare(record: Record) -> Prepared:
            return await self._tables.prepare(
                record, selector=asked.selector, wanted=wanted, anew=anew
            )

        return await self._reader.found(asked.record.artifact.id, prepare)

    def _ask(self, database: Database, statement: Statement, tables: Mapping[str, Asked]) -> Result:
        there = database.tables
        if not all(asked.key in there for asked in tables.values()):  # closed meanwhile
            raise EngineError("ended")
        loaded = {table: there[asked.key] for table, asked in tables.items()}
        renamed = [database.renamed[asked.key] for asked in tables.values()]
        keys = {key: name for names in renamed for key, name in names.items()}
        columns = [name for table in loaded.values() for name in table.columns]
        json_names = frozenset[str]().union(*(table.json_names for table in loaded.values()))
        check_names(statement, columns, keys, json_names)
        try:
            chunks, end = self._run_views(database, statement, loaded, statement.aliases)
        except EngineError as error:
            is_open = error.is_bound and any(table.is_empty for table in loaded.values())
            if not is_open:
                raise
            # What is an alias may have been meant as a column of the table without rows too.
            chunks, end = self._run_views(database, statement, loaded, frozenset())
        return _result(chunks, end, list(loaded.values()))

    def _run_views(
        self,
        database: Database,
        statement: Statement,
        tables: Mapping[str, Loaded],
        aliases: frozenset[str],
    ) -> SqlAnswer:
        views = {sql_name(name): table.view(name, aliases) for name, table in tables.items()}
        return database.ask(
            statement,
            list(views.values()),
            seconds=self._seconds,
            most_bytes=self._most_bytes,
            bare=bool(tables) and all(table.is_bare for table in tables.values()),
        )

    def _refusal(self, error: EngineError, columns: Sequence[str] = ()) -> CoatcheckError:
        return engine_refusal(
            error, seconds=self._seconds, most_bytes=self._most_bytes, columns=columns
        )


async def _in_thread(
    database: Database,
    load: Callable[[], None] | None,
    ask: Callable[[], Result],
    wanted: Mapping[str, Wanted],
) -> Result | None:
    """Load what is missing, and ask; None where it is missing and cannot be loaded."""
    import asyncio

    def work() -> Result | None:
        with database.lock:
            if database.has(wanted):
                return ask()
            if load is None:
                return None
            load()
            result = ask()
            # This one had to wait for a process to start; the next artifact need not.
            spares().refill()
            return result

    try:
        return await in_daemon_thread(work)
    except asyncio.CancelledError:
        # Nobody waits for the answer any more; who else asks this database, loads it again.
        database.close()
        raise


def _result(chunks: Sequence[bytes], end: Mapping[str, Any], tables: Sequence[Loaded]) -> Result:
    """Return chunks of 1,024 rows as one JSON array."""
    starts, size = array("Q"), 1
    for chunk in chunks:
        starts.append(size)
        size += len(chunk) - 1
    whole = [table.columns if table.is_whole else None for table in tables]
    return Result(
        payload=b"[" + b",".join(chunk[1:-1] for chunk in chunks) + b"]",
        count=end["count"],
        rows=Rows(format="json", count=end["count"], starts=starts),
        keeps=kept_of_sql(end["names"], whole, is_bare=end["bare"]),
    )
