"""The journal: one line a call, written beside the work and never in its way."""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, cast

from ..content import dumps, loads
from ..records import dataclass
from ._journal_file import JournalFile, previous

TOOL = "tool"
"""The verb of a call of one of the host's own tools; all others name what read something back."""

LIMIT_BYTES = 64 * 1024 * 1024
"""Of one file: some 200,000 calls."""
_PAUSE_SECONDS = 0.05
_MOST_WAITING = 100_000
_NUMBER_END = 2**63
"""Times from here on have no date."""
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "at_ns": int,
    "verb": str,
    "tool": (str, type(None)),
    "scope": str,
    "run": (str, type(None)),
    "pointers_in": list,
    "pointers_out": list,
    "size_bytes": int,
    "tokens": int,
    "shown_tokens": int,
    "schema_tokens": int,
    "is_error": bool,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, as the journal keeps it. Tokens are estimates."""

    at_ns: int
    """When it ended, in nanoseconds since 1970."""
    verb: str
    """``tool``, or what one of our own tools did: ``read``, ``search``, ``query`` …"""
    tool: str | None = None
    scope: str = "default"
    run: str | None = None
    pointers_in: tuple[str, ...] = ()
    """What it was given, selectors included."""
    pointers_out: tuple[str, ...] = ()
    """What it banked."""
    size_bytes: int = 0
    """Of what the tool returned."""
    tokens: int = 0
    """Of what the tool returned."""
    shown_tokens: int = 0
    """Of what the model was shown for it."""
    schema_tokens: int = 0
    """Of the definitions of our own tools, which a model is sent with every call."""
    is_error: bool = False


class Journal:
    """An append-only file of calls, one JSON object a line.

    `note` only queues: a thread writes what has gathered, each time in one piece, so that
    several processes may share a file and no slow disk holds up a call. A process that is
    killed loses what it noted in the last moment, at most 0.05 s of it. Where the disk falls
    behind by 100,000 calls the oldest are dropped, and counted in `dropped`.

    A file that has reached its limit is renamed, to its name and ``.1``, and a new one begun; the
    one that was called so before is gone. Whoever reads a journal reads both.

    Args:
        path: The file; it is made, readable for its owner only, where it is missing.
        limit_bytes: From this size on a file gets no further line; 64 MiB unless given.
        clock: Seconds since 1970.

    Raises:
        OSError: The file cannot be opened.
        ValueError: `limit_bytes` is not more than 0.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(Path(folder) / "calls.jsonl") as journal:
    ...         journal.note(verb="tool", tool="rows", tokens=9_000, shown_tokens=120)
    ...     [call.tokens for call in read_journal(journal.path)]
    [9000]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limit_bytes: int = LIMIT_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self.dropped = 0
        self.schemas: dict[str, int] = {}
        """Estimated tokens of the definitions of our own tools, by name: sent with every call."""
        self._clock = clock
        self._waiting: deque[Call] = deque()
        self._file = JournalFile(self.path, limit_bytes)
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def note(self, **facts: Any) -> None:  # noqa: ANN401 - the fields of a `Call`
        """Queue one call: the fields of a `Call` but for its time and what `schemas` adds."""
        if self._closed.is_set():
            return
        if self._thread is None or self._process != os.getpid():
            self._start()
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        at_ns, schema_tokens = int(self._clock() * 1_000_000_000), sum(self.schemas.values())
        self._waiting.append(Call(at_ns=at_ns, schema_tokens=schema_tokens, **facts))

    def flush(self) -> None:
        """Write what is queued. A disk that refuses loses it: a journal fails no call."""
        with self._writing:
            # As many as wait now: others may go on noting for ever.
            lines = [_line(self._waiting.popleft()) for _ in range(len(self._waiting))]
            if not lines:
                return
            try:
                self._file.append(b"".join(lines))
            except OSError:
                self.dropped += len(lines)

    def close(self) -> None:
        """Write what is queued, and close the file. A second call does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._thread is not None and self._process == os.getpid():
            self._thread.join()
        self.flush()
        self._file.close()
        atexit.unregister(self._at_exit)

    def _start(self) -> None:
        with self._starting:
            if self._process != os.getpid():
                # What waited in the parent is the parent's to write.
                self._waiting, self._writing = deque(), threading.Lock()
                self._file.open_anew()
                self._process, self._thread = os.getpid(), None
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="coatcheck journal", daemon=True
                )
                self._thread.start()
                atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        # Where nobody closed it: the thread is a daemon and ends with the interpreter.
        if not self._closed.is_set() and self._process == os.getpid():
            self.flush()

    def _run(self) -> None:
        while not self._closed.wait(_PAUSE_SECONDS):
            self.flush()


def read_journal(path: str | os.PathLike[str]) -> Iterator[Call]:
    """Yield the calls of a journal, oldest first. What is no line of one is passed over.

    Args:
        path: Its file. What was renamed because it was full comes before.

    Raises:
        OSError: There is no such file.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(Path(path).open("rb"))]
        # In this order: between the two the file may be renamed, and then is met twice, not lost.
        if (before := previous(path)).is_file():
            files.insert(0, opened.enter_context(before.open("rb")))
        if os.path.sameopenfile(files[0].fileno(), files[-1].fileno()):
            files = files[-1:]
        for file in files:
            yield from filter(None, map(parse_call, file))


def parse_call(line: bytes) -> Call | None:
    """Return the call of one line, None where it is none, or was cut."""
    try:
        facts = loads(line)
    except ValueError:
        return None
    if not isinstance(facts, dict):
        return None
    known = cast("dict[str, Any]", facts)
    for name, kind in _FIELDS.items():
        fact = known.get(name)
        if not isinstance(fact, kind):
            return None
        if isinstance(fact, int) and not 0 <= fact < _NUMBER_END:
            return None
    for name in ("pointers_in", "pointers_out"):
        if not all(isinstance(pointer, str) for pointer in known[name]):
            return None
        known[name] = tuple(known[name])
    return Call(**{name: known[name] for name in _FIELDS})


def _line(call: Call) -> bytes:
    # Not by `asdict`, which copies what is in it, and took three quarters of the time of a line.
    return dumps({name: getattr(call, name) for name in _FIELDS}) + b"\n"
