"""The process in which one database runs: started, asked, and ended where it does not answer."""

import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from ..content import MEMORY_EXIT, WORKERS, EngineError, SqlAnswer, SqlRows, dumps, loads
from ..errors import InvalidArgumentError

_LENGTH = struct.Struct(">I")
_IDLE_SECONDS = 600
"""After which a process ends by itself, and with it what it has loaded."""
_LOAD_SECONDS = 120.0
_GRACE_SECONDS = 1.0
"""For a statement to notice that it was interrupted, before its process is ended."""
_PIECE_BYTES = 1 << 20
_BOOT = (
    # A package of the program's own modules: the one that they are in would be imported whole.
    "import sys; from types import ModuleType; sys.path += sys.argv[3:]; "
    "program = sys.modules['program'] = ModuleType('program'); program.__path__ = [sys.argv[2]]; "
    "from program._sql_worker import main; main()"
)


class Worker:
    """One process with one database. Used by one thread at a time.

    Raises:
        InvalidArgumentError: DuckDB is not installed.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", "-c", _BOOT, str(_IDLE_SECONDS), WORKERS, *_folders()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._owner = os.getpid()
        self._is_closed = False
        weakref.finalize(self, _end, self._process, self._owner)

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked: not after a fork, nor once it has ended."""
        return self._owner == os.getpid() and self._process.poll() is None

    def close(self) -> None:
        """End the process. Whatever waits for it, in another thread, waits no longer."""
        self._is_closed = True
        _kill(self._process, self._owner)

    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
        """Run a statement of ours, as a `SqlEngine` does."""
        return self.do({"sql": [(sql, list(parameters))]})

    def do(self, request: dict[str, object]) -> SqlRows:
        """Run statements of ours, set limits, or seal the database."""
        _, end = self._answer({**request, "seconds": _LOAD_SECONDS}, _LOAD_SECONDS)
        return cast("SqlRows", end["rows"])

    def ask(
        self,
        sql: str,
        *,
        views: Sequence[str],
        seconds: float,
        most_bytes: int,
        bare: bool,
    ) -> SqlAnswer:
        """Run a statement that a model gave.

        Args:
            sql: One statement that was checked.
            views: Statements that give the tables the names that it uses.
            seconds: Until it is stopped.
            most_bytes: Most JSON of its rows.
            bare: Return values in place of rows where ``value`` is the only column.

        Returns:
            The JSON of 1,024 rows each, and how many there are, their columns, and whether they
            are bare.

        Raises:
            EngineError: It failed, took too long, or was too much.
        """
        request: dict[str, object] = {"ask": sql, "views": list(views), "seconds": seconds}
        return self._answer({**request, "most_bytes": most_bytes, "bare": bare}, seconds)

    def _answer(self, request: dict[str, object], seconds: float) -> SqlAnswer:
        chunks: list[bytes] = []
        stop = time.monotonic() + seconds + _GRACE_SECONDS
        try:
            self._write(dumps(request))
            while (message := self._read(stop))[:1] != b"{":
                chunks.append(message)
        except TimeoutError:
            self.close()
            raise EngineError("deadline") from None
        except OSError:
            raise EngineError(self._why()) from None
        end = cast("dict[str, Any]", loads(message))
        if "error" in end:
            if end["error"] in {"FatalException", "InternalException"}:
                self.close()
            raise EngineError(end["error"], end["text"])
        return chunks, end

    def _why(self) -> str:
        """Return why the process has ended."""
        if self._is_closed:
            return "ended"
        try:
            code = self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        # Where memory runs out, the engine may also come down on its own; but who kills it, does so
        # from outside.
        is_down = code is not None and code < 0 and code != -signal.SIGKILL
        return "memory" if code == MEMORY_EXIT or is_down else "ended"

    def _write(self, message: bytes) -> None:
        left = memoryview(_LENGTH.pack(len(message)) + message)
        pipe = cast("Any", self._process.stdin).fileno()
        while left:
            left = left[os.write(pipe, left[:_PIECE_BYTES]) :]

    def _read(self, stop: float) -> bytes:
        (size,) = _LENGTH.unpack(self._read_bytes(_LENGTH.size, stop))
        return self._read_bytes(size, stop)

    def _read_bytes(self, size: int, stop: float) -> bytes:
        """Return so many bytes of what the process writes.

        Raises:
            TimeoutError: They do not come in time.
            BrokenPipeError: The process has ended.
        """
        pipe = cast("Any", self._process.stdout).fileno()
        parts: list[bytes] = []
        while size:
            left = stop - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise TimeoutError
            part = os.read(pipe, min(size, _PIECE_BYTES))
            if not part:
                raise BrokenPipeError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Spares:
    """A process that stands ready, as to start one takes longer than most queries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def take(self) -> Worker:
        """Return a process with an empty database; it is the caller's."""
        with self._lock:
            worker, self._worker = self._ready(), None
        return worker

    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
        """Run a statement of ours that needs no table, as a `SqlEngine` does."""
        with self._lock:
            self._worker = self._ready()
            return self._worker.run(sql, parameters)

    def refill(self) -> None:
        """Start a process where none stands ready, and wait for nothing."""

        def start() -> None:
            # Whoever needs it is told.
            with self._lock, suppress(InvalidArgumentError, OSError):
                self._worker = self._ready()

        threading.Thread(target=start, name="coatcheck spare", daemon=True).start()

    def _ready(self) -> Worker:
        worker = self._worker
        return worker if worker is not None and worker.is_alive else Worker()


def spares() -> Spares:
    """Return the spare process of this process; a forked child gets its own."""
    return _spares_of(os.getpid())


@cache
def _spares_of(_process: int) -> Spares:
    return Spares()


@cache
def _folders() -> tuple[str, ...]:
    """Return where the process finds what it imports.

    Raises:
        InvalidArgumentError: DuckDB is not installed.
    """
    folders: dict[str, None] = {}
    for name in ("_duckdb", "orjson"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise InvalidArgumentError(
                "SQL needs the extra: pip install 'coatcheck[sql]'",
                "Ask in JSONPath or JMESPath, or read and search it.",
            )
        folder = Path(spec.origin).parent
        folders[str(folder if spec.submodule_search_locations is None else folder.parent)] = None
    return tuple(folders)


def _kill(process: "subprocess.Popen[bytes]", owner: int) -> None:
    if owner == os.getpid():
        process.kill()
        process.wait()
    else:  # after a fork it is the parent's
        process.returncode = 0


def _end(process: "subprocess.Popen[bytes]", owner: int) -> None:
    _kill(process, owner)
    # Only now, as no thread waits at one of them any more: a number of a file is soon used again.
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
