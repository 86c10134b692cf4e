"""The program that runs SQL, in a process of its own: started by the bank, one for each database.

It imports nothing of this package, so that it starts quickly. Whatever a statement does to memory
or time, it does to this process, and that can be ended: DuckDB's own limit does not cover what one
function makes, nor can it be interrupted within one.

Messages both ways are a length in four bytes, and JSON. A request is answered by lists of rows,
each one message, and then by one object.
"""

import binascii
import datetime as dt
import json
import os
import resource
import select
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from _duckdb import DuckDBPyConnection

MEMORY_EXIT = 77
"""As `_sql_engine` says it."""

_LENGTH = struct.Struct(">I")
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
_EXACT_DIGITS = 15
"""Decimals of up to so many digits are the same as a float."""

Foreign: TypeAlias = Any
"""A type of DuckDB."""
Converter = Callable[[Any], object]


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

    def __init__(self, limit_bytes: int = 2 * _HEADROOM_BYTES) -> None:
        import _duckdb

        self._engine = _duckdb
        self._connection = _duckdb.connect(
            ":memory:",
            config={
                "threads": str(min(4, os.cpu_count() or 1)),
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
                "allow_community_extensions": "false",
                "python_enable_replacements": "false",
                "temp_directory": "",
                "max_temp_directory_size": "0B",
            },
        )
        self._connection.execute("SET TimeZone = 'UTC'")
        self._running = self._connection
        self._watch = Watch(self._interrupt, limit_bytes)

    def answer(self, request: dict[str, Any]) -> Iterator[bytes]:
        """Yield the messages that answer a request; the last one is an object."""
        engine = self._engine
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
        self, cursor: "DuckDBPyConnection", names: Sequence[str], request: dict[str, Any]
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


def main() -> None:
    """Answer what is asked on the standard input, until that ends or nothing comes for a while."""
    idle_seconds = float(sys.argv[1])
    sys.set_int_max_str_digits(0)
    # Nothing of the host's is of use here.
    os.environ.clear()  # noqa: TID251
    database = Database()
    while select.select([0], [], [], idle_seconds)[0]:
        request = _read()
        if request is None:
            break
        for message in database.answer(json.loads(request)):
            _write(message)
    os._exit(0)


def dumps(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def dumps_many(value: object) -> bytes:
    import orjson  # takes a while, and is worth it where there is much to write

    try:
        return orjson.dumps(value)
    except TypeError:  # a number of over 64 bits
        return dumps(value)


def loads(text: str) -> object:
    return json.loads(text, parse_float=lambda digits: _float(float(digits)), parse_constant=str)


def converted(
    rows: Sequence[Sequence[Any]], converters: "Sequence[Converter | None]"
) -> Sequence[Sequence[Any]]:
    """Return rows as values that JSON has."""
    if not rows or not any(converters):
        return rows
    columns = [
        column if convert is None else [None if each is None else convert(each) for each in column]
        for column, convert in zip(zip(*rows, strict=True), converters, strict=True)
    ]
    return list(zip(*columns, strict=True))


def converter(kind: Foreign) -> Converter | None:
    """Return what makes JSON of the values of a DuckDB type, None where they are JSON already."""
    if str(kind) == "JSON":
        return loads
    make = _NESTED.get(kind.id)
    return _CONVERTERS.get(kind.id, plain) if make is None else make(kind)


def plain(value: object) -> object:
    """Return a value of any type as one that JSON has."""
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_key(plain(key)): plain(each) for key, each in items}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("Sequence[object]", value)]
    for kinds, convert in _PLAIN:
        if isinstance(value, kinds):
            return convert(value)
    return value if value is None or isinstance(value, str) else str(value)


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


def _converted(convert: Converter | None, value: object) -> object:
    return value if convert is None or value is None else convert(value)


def _list(kind: Foreign) -> Converter | None:
    convert = converter(kind.children[0][1])
    if convert is None:
        return list if kind.id == "array" else None  # an array comes as a tuple
    return lambda value: [_converted(convert, each) for each in value]


def _struct(kind: Foreign) -> Converter | None:
    fields = {field: converter(child) for field, child in kind.children}
    if not any(fields.values()):
        return None
    return lambda value: {name: _converted(fields[name], each) for name, each in value.items()}


def _map(kind: Foreign) -> Converter | None:
    keys, values = (converter(child) for _, child in kind.children)
    return lambda value: {
        _key(_converted(keys, key)): _converted(values, each) for key, each in value.items()
    }


def _key(key: object) -> str:
    return key if isinstance(key, str) else dumps(key).decode()


def _float(value: float) -> object:
    if value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124


def _decimal(value: Decimal) -> object:
    return float(value) if len(value.as_tuple().digits) <= _EXACT_DIGITS else str(value)


def _time(value: object) -> str:
    # Years before 1 and after 9999 come as text.
    return value if isinstance(value, str) else cast("dt.date", value).isoformat()


_PLAIN: tuple[tuple[Any, Converter], ...] = (
    (int, lambda value: value),
    (float, _float),
    (Decimal, _decimal),
    (bytes, lambda value: binascii.b2a_base64(value, newline=False).decode()),
    ((dt.date, dt.time), _time),
)
_NESTED: dict[str, Callable[[Any], Converter | None]] = {
    "array": _list,
    "list": _list,
    "map": _map,
    "struct": _struct,
}
_CONVERTERS: dict[str, Converter | None] = {
    **dict.fromkeys(
        (
            *("varchar", "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint"),
            *("usmallint", "uinteger", "ubigint", "hugeint", "uhugeint", "enum", "bit", "null"),
        )
    ),
    "bignum": int,
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
}


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


def _read() -> bytes | None:
    head = _read_bytes(_LENGTH.size)
    return None if head is None else _read_bytes(_LENGTH.unpack(head)[0])


def _read_bytes(size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(message: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[os.write(1, left) :]
