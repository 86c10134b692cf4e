"""The databases that stand ready: one for each set of artifacts, the least recently asked go."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path

from ..content import EngineError, SqlAnswer, SqlEngine, sql_name
from ..content.sql import Loaded, Statement, UnreadableError, read_statement
from ..records import dataclass
from ._worker import Worker, spares

_MOST = 4
_MOST_BYTES = 1 << 30
_BASE_BYTES = 1 << 30
"""Memory of a database beside what it holds."""
_GROWTH = 3
"""Tables take at most about so many times their payload."""
_STATEMENTS = 64
_MOST_SPARES = 2
"""How many spare processes may end over one statement before that is given up."""
_TREE = (
    "SELECT CAST(json_serialize_sql($1, skip_null := true, skip_empty := true, "
    "skip_default := true) AS VARCHAR)"
)


Wanted = frozenset[str] | None
"""Names of columns; None for all."""
Load = Callable[[SqlEngine, str, Wanted], Loaded]


@dataclass(slots=True)
class Prepared:
    """A table that can be loaded: in a thread, and once."""

    load: Load
    size_bytes: int
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of columns by the keys that they have in the payload, where the two differ."""
    folder: Path | None = None

    def close(self) -> None:
        """Remove what was written for it."""
        if self.folder is not None:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)


class Database:
    """The tables of some artifacts, in a process of their own.

    All its methods may block, and are for threads.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tables: dict[str, Loaded] = {}
        """By the artifact, or part of one, that each is."""
        self.renamed: dict[str, Mapping[str, str]] = {}
        """Of each, names of columns by their keys, where the two differ."""
        self._wanted: dict[str, Wanted] = {}
        self.size_bytes = 0
        self.users = 0
        self._worker: Worker | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its tables are still there."""
        worker = self._worker  # another thread may close it at any time
        return worker is not None and worker.is_alive

    def has(self, wanted: Mapping[str, Wanted]) -> bool:
        """Return whether it has these columns of these tables."""
        return self.is_alive and all(self._has(name, columns) for name, columns in wanted.items())

    def wanted_too(self, wanted: Mapping[str, Wanted]) -> dict[str, Wanted]:
        """Return what is wanted together with what is there, as all is loaded at once."""
        together = dict(wanted)
        for name, columns in wanted.items():
            there = self._wanted.get(name)
            if self.is_alive and name in self.tables and columns is not None and there is not None:
                together[name] = columns | there
        return together

    def load(self, prepared: Mapping[str, Prepared], wanted: Mapping[str, Wanted]) -> None:
        """Load tables into a new process, and seal it.

        Raises:
            UnreadableError, EngineError, InvalidQueryError: One of them cannot be loaded.
        """
        self.close()
        worker = spares().take()
        size_bytes = sum(each.size_bytes for each in prepared.values())
        try:
            worker.do({"limit": _BASE_BYTES + _GROWTH * size_bytes})
            tables: dict[str, Loaded] = {}
            for name, each in prepared.items():
                try:
                    tables[name] = each.load(worker, f"t{len(tables)}", wanted[name])
                except UnreadableError as error:
                    error.table = name
                    raise
            worker.do({"seal": True})
        except BaseException:
            worker.close()
            raise
        self._wanted = dict(wanted)
        self._worker, self.tables, self.size_bytes = worker, tables, size_bytes
        self.renamed = {name: each.renamed for name, each in prepared.items()}

    def ask(
        self,
        statement: Statement,
        views: Sequence[str],
        *,
        seconds: float,
        most_bytes: int,
        bare: bool,
    ) -> SqlAnswer:
        """Run a statement. Raises as `Worker.ask`."""
        worker = self._worker
        if worker is None:
            raise EngineError("ended")
        return worker.ask(
            statement.sql, views=views, seconds=seconds, most_bytes=most_bytes, bare=bare
        )

    def parse(self, sql: str) -> str | None:
        """Return the syntax tree of a statement, None where that would have to wait.

        Raises:
            EngineError: It failed, or the process ended meanwhile.
        """
        if not self.lock.acquire(blocking=False):
            return None
        try:
            worker = self._worker
            return None if worker is None or not worker.is_alive else _tree(worker, sql)
        finally:
            self.lock.release()

    def close(self) -> None:
        """End the process, and with it all that runs there."""
        worker, self._worker, self.tables = self._worker, None, {}
        if worker is not None:
            worker.close()

    def _has(self, name: str, wanted: Wanted) -> bool:
        table = self.tables.get(name)
        if table is None:
            return False
        there = self._wanted[name]
        if table.is_whole or there is None or wanted is None:
            return table.is_whole or there is wanted
        loaded = {sql_name(each) for each in (*there, *table.columns)}
        missing = {sql_name(each) for each in wanted} - loaded
        # Names of something else than columns are not missing.
        return not missing or (table.knows_all and missing.isdisjoint(map(sql_name, table.known)))


class Databases:
    """The databases of a bank. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._kept: OrderedDict[frozenset[str], Database] = OrderedDict()
        self._statements: OrderedDict[str, Statement] = OrderedDict()

    @property
    def alive_count(self) -> int:
        """How many stand ready."""
        with self._lock:
            return sum(each.is_alive for each in self._kept.values())

    def statement(self, sql: str) -> Statement:
        """Return what a statement does. Raises as `read_statement`, and `EngineError`."""
        with self._lock:
            known = self._statements.get(sql)
            databases = [*self._kept.values()]
        if known is None:
            known = read_statement(_parsed(sql, databases), sql)
            with self._lock:
                self._statements[sql] = known
                while len(self._statements) > _STATEMENTS:
                    self._statements.popitem(last=False)
        return known

    def take(self, key: frozenset[str]) -> Database:
        """Return the database of these artifacts, which may be empty. Give it back afterwards."""
        with self._lock:
            if self._owner != os.getpid():  # after a fork they are the parent's
                self._owner, self._kept = os.getpid(), OrderedDict()
            database = self._kept.setdefault(key, Database())
            self._kept.move_to_end(key)
            database.users += 1
            return database

    def give_back(self, database: Database) -> None:
        """Let go of a database, and of those that are too many."""
        with self._lock:
            database.users -= 1
            size_bytes = sum(each.size_bytes for each in self._kept.values())
            count = len(self._kept)
            for key, each in [*self._kept.items()]:
                is_empty = not each.is_alive
                if each.users or not (is_empty or count > _MOST or size_bytes > _MOST_BYTES):
                    continue
                count, size_bytes = count - 1, size_bytes - each.size_bytes
                del self._kept[key]
                each.close()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            for database in self._kept.values():
                database.close()
            self._kept.clear()


def _parsed(sql: str, databases: Sequence[Database]) -> str:
    """Return the syntax tree of a statement, from the first database that has time for it."""
    parsers: list[Callable[[], str | None]] = [
        *(partial(database.parse, sql) for database in reversed(databases)),
        *(partial(_tree, spares(), sql) for _ in range(_MOST_SPARES)),
    ]
    for parse in parsers:
        try:
            tree = parse()
        except EngineError as error:
            # Others may close a database at any time, and a spare one ends by itself.
            if error.kind != "ended":
                raise
            continue
        if tree is not None:
            return tree
    raise EngineError("ended")


def _tree(engine: SqlEngine, sql: str) -> str:
    return str(engine.run(_TREE, [sql])[0][0])
