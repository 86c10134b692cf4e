"""What the process of a database answers: statements of the bank, and those of models.

It runs in that process only; see `_sql_worker`.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import _duckdb as engine

from ._sql_cells import converted, converter, dumps, dumps_many

MEMORY_EXIT = 77
"""As `_sql_engine` says it."""

_CHUNK_ROWS = 1_024
_TICK_SECONDS = 0.02
_HEADROOM_BYTES = 1 << 30
"""Beside DuckDB's own limit: the engine itself, what single functions make, rows on their way."""
_ADDRESS_BYTES = 3 << 30
"""Beside all that: address space that is only reserved."""
_SEAL = (
    "SET enable_external_access = false",
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET lock_configuration = true",
)
_ROUNDED = ("INTERVAL", "TIMESTAMP_NS", "TIME_NS")
"""Types that Python would only give back rounded; their text is exact."""
_DATES = ("DATE", "TIMESTAMP")
"""Types whose infinity Python would give back as its first or last day."""
_ASKED = '"\x01asked"'
"""The view of a statement, as no table is called."""


class Watch:
    """Ends what takes too long, and the process when it takes too much memory or is orphaned."""

    def __init__(self, interrupt: Callable[[], None], limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._interrupt = interrupt
        self._stop_at: float | None = None
        self._parent = os.getppid()
        self._begun = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def begin(self, seconds: float) -> None:
        self._stop_at = time.monotonic() + seconds
        self._begun.set()

    def end(self) -> None:
        self._stop_at = None
        self._begun.clear()

    def is_late(self) -> bool:
        stop_at = self._stop_at
        return stop_at is not None and time.monotonic() >= stop_at

    def _run(self) -> None:
        while self._begun.wait():
            if _resident_bytes() > self.limit_bytes:
                os._exit(MEMORY_EXIT)
            if os.getppid() != self._parent:
                os._exit(0)
            if self.is_late():
                self._interrupt()
            time.sleep(_TICK_SECONDS)


class Database:
    """One DuckDB database in memory. First tables are loaded, then it is sealed and asked."""

    def __init__(
        self, connection: engine.DuckDBPyConnection, limit_bytes: int = 2 * _HEADROOM_BYTES
    ) -> None:
        self._connection = connection
        self._connection.execute("SET TimeZone = 'UTC'")
        self._running = self._connection
        self._watch = Watch(self._interrupt, limit_bytes)

    def answer(self, request: dict[str, Any]) -> Iterator[bytes]:
        """Yield the messages that answer a request; the last one is an object."""
        self._watch.begin(request["seconds"])
        try:
            if "ask" in request:
                yield from self._ask(request)
            else:
                yield dumps({"rows": self._run(request)})
        except (engine.InterruptException, TimeoutError):
            yield _error("deadline")
        except (engine.OutOfMemoryException, MemoryError):
            yield _error("memory")
        except (engine.Error, RuntimeError, ValueError, TypeError) as error:
            # Of memory that ran out deep inside, nothing but this name may be left.
            name = "memory" if "bad_alloc" in str(error) else type(error).__name__
            yield _error(name, str(error))
        finally:
            self._watch.end()

    def _run(self, request: dict[str, Any]) -> object:
        """Run statements of the bank, and return the rows of the last one."""
        if "limit" in request:
            self._limit(request["limit"])
        if "seal" in request:
            for setting in _SEAL:
                self._connection.execute(setting)
        rows: Sequence[Sequence[Any]] = []
        for sql, parameters in request.get("sql", ()):
            result = self._connection.execute(sql, parameters)
            kinds = [column[1] for column in result.description or ()]
            rows = converted(result.fetchall(), [converter(kind) for kind in kinds])
        return rows

    def _interrupt(self) -> None:
        self._running.interrupt()

    def _limit(self, limit_bytes: int) -> None:
        self._connection.execute(f"SET memory_limit = '{limit_bytes // 1024}KiB'")
        self._watch.limit_bytes = limit_bytes + _HEADROOM_BYTES
        if sys.platform.startswith("linux"):  # elsewhere it is not kept
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            most = self._watch.limit_bytes + _ADDRESS_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (hard if 0 <= hard < most else most, hard))

    def _ask(self, request: dict[str, Any]) -> Iterator[bytes]:
        """Run the statement of a model."""
        # On a connection of its own: the next statement finds nothing that one may leave behind.
        cursor = self._connection.cursor()
        self._running = cursor
        try:
            for view in request["views"]:
                cursor.execute(view)
            # Nothing is run for that.
            columns = cursor.execute(f"DESCRIBE {request['ask']}").fetchall()
            names, kinds = unique([column[0] for column in columns]), [each[1] for each in columns]
            if any(_is_rounded(kind) or kind.startswith(_DATES) for kind in kinds):
                cursor.execute(f"CREATE TEMP VIEW {_ASKED} AS {request['ask']}")
                cursor.execute(_exact(kinds))
            else:
                cursor.execute(request["ask"])
            yield from self._rows(cursor, names, request)
        finally:
            self._running = self._connection
            cursor.close()

    def _rows(
        self, cursor: engine.DuckDBPyConnection, names: Sequence[str], request: dict[str, Any]
    ) -> Iterator[bytes]:
        converters = [converter(column[1]) for column in cursor.description]
        dates = [int(column[0]) for column in cursor.description[len(names) :]]
        is_bare = request["bare"] and [name.lower() for name in names] == ["value"]
        count, size = 0, 0
        while fetched := cursor.fetchmany(_CHUNK_ROWS):
            if self._watch.is_late():
                raise TimeoutError
            rows = converted(fetched, converters)
            if dates:
                rows = [_with_infinity(row, dates) for row in rows]
            encode = dumps_many if count else dumps
            if is_bare:
                chunk = encode([row[0] for row in rows])
            else:
                chunk = encode([dict(zip(names, row, strict=True)) for row in rows])
            count, size = count + len(rows), size + len(chunk)
            if size > request["most_bytes"]:
                yield _error("size")
                return
            yield chunk
        yield dumps({"count": count, "names": names, "bare": is_bare})


def unique(names: Sequence[str]) -> list[str]:
    """Return a name for each column of a result: its own where it is the first of that name.

    >>> unique(["id", "id", "id_2"])
    ['id', 'id_3', 'id_2']
    """
    own, numbers = set(names), dict[str, int]()
    found: dict[str, None] = {}
    for name in names:
        free = name
        while free in found or (free != name and free in own):
            number = numbers.get(name, 2)  # what is below is taken
            free, numbers[name] = f"{name}_{number}", number + 1
        found[free] = None
    return list(found)


def _is_rounded(kind: str) -> bool:
    return any(each in kind for each in _ROUNDED)


def _exact(kinds: Sequence[str]) -> str:
    """Return a statement whose columns of types that Python rounds are text.

    Behind them is the text of each date that is infinite, called by the number of its column.
    """
    columns = [
        f"CAST(c{at} AS {_text_of(kind)})" if _is_rounded(kind) else f"c{at}"
        for at, kind in enumerate(kinds)
    ]
    columns += [
        f'CASE WHEN isinf(c{at}) THEN CAST(c{at} AS VARCHAR) END AS "{at}"'
        for at, kind in enumerate(kinds)
        if kind.startswith(_DATES) and not (_is_rounded(kind) or kind.endswith("]"))
    ]
    listed = ", ".join(f"c{at}" for at in range(len(kinds)))
    return f"SELECT {', '.join(columns)} FROM {_ASKED} AS asked({listed})"


def _text_of(kind: str) -> str:
    name, bracket, rest = kind.partition("[")
    return "VARCHAR" + bracket + rest if name in _ROUNDED else "VARCHAR"


def _with_infinity(row: Sequence[Any], dates: Sequence[int]) -> Sequence[Any]:
    cells, texts = list(row[: -len(dates)]), row[-len(dates) :]
    for at, text in zip(dates, texts, strict=True):
        cells[at] = text or cells[at]
    return cells


def _error(name: str, text: str = "") -> bytes:
    return dumps({"error": name, "text": text})


def _resident_bytes() -> int:
    """Return the memory that this process has, or where that is not told the most it has had."""
    if sys.platform.startswith("linux"):
        # The most it has had would there be at first what the process had that started it.
        with open("/proc/self/statm", "rb") as counts:  # noqa: PTH123 - imports take time
            return int(counts.read().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
