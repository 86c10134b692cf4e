"""Lines over pipes, both ways, in time that is linear in their length. Nothing here parses."""

import asyncio
import os
import stat
from collections import deque
from contextlib import suppress
from typing import IO, cast

LONGEST_LINE_BYTES = 256 * 1024 * 1024
"""Of a longer line only the head is handed out."""

_HEAD_BYTES = 1_024
_QUEUED_BYTES = 1024 * 1024
"""From here on nothing more is read until lines were taken."""
_READ_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_F_SETPIPE_SZ = 1031
"""Of Linux; Python names it from 3.10 on, but not on every system."""


class LineReader(asyncio.Protocol):
    """What comes over a pipe, line by line, without the newlines; iterate over it once.

    It ends where the pipe does. An unfinished last line is handed out too.
    """

    def __init__(self, *, longest_bytes: int = LONGEST_LINE_BYTES) -> None:
        self._longest_bytes = longest_bytes
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._parts: list[bytes] = []
        self._part_bytes = 0
        self._is_over = False
        self._is_unfinished = False
        self._is_paused = False
        self._waiting: asyncio.Future[None] | None = None
        self._transport: asyncio.ReadTransport | None = None

    @property
    def is_torn(self) -> bool:
        """Whether the pipe ended within the line that was handed out last."""
        return self._is_unfinished and not self._lines

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            self._finish()
            start = end + 1
        self._add(data[start:])
        if self._queued_bytes > _QUEUED_BYTES and self._transport is not None:
            self._transport.pause_reading()
            self._is_paused = True

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self._end()

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()
        self._end()

    def end(self) -> None:
        """Take what is in the pipe by now, and read no more, whoever else may write to it."""
        if self._transport is not None and not self._is_over:
            pipe = cast("IO[bytes]", self._transport.get_extra_info("pipe"))
            taken = 0
            with suppress(OSError):
                while taken < _PIPE_BYTES and (chunk := os.read(pipe.fileno(), _READ_BYTES)):
                    self.data_received(chunk)
                    taken += len(chunk)
        self.close()

    def __aiter__(self) -> "LineReader":
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            if self._is_over:
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        line = self._lines.popleft()
        self._queued_bytes -= len(line)
        if self._is_paused and self._queued_bytes <= _QUEUED_BYTES and self._transport is not None:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return line

    def _add(self, part: bytes) -> None:
        if part and self._part_bytes <= self._longest_bytes:
            self._parts.append(part)
            self._part_bytes += len(part)

    def _finish(self) -> None:
        line = b"".join(self._parts)
        if len(line) > self._longest_bytes:
            line = line[:_HEAD_BYTES]
        self._parts, self._part_bytes = [], 0
        if line and not line.isspace():
            self._lines.append(line)
            self._queued_bytes += len(line)
            self._wake()

    def _end(self) -> None:
        if not self._is_over:
            self._is_unfinished = bool(self._parts)
            self._finish()
            self._is_over = True
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class LineWriter(asyncio.BaseProtocol):
    """Sends lines over a pipe, and waits while too much of them has not been taken."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.is_lost = asyncio.Event()
        """Set once the other side has closed the pipe."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self.is_lost.set()
        self._may_write.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def write(self, line: bytes) -> None:
        """Send a line, newline included, without waiting.

        Raises:
            ConnectionError: The other side has closed the pipe.
        """
        if self._transport is None or self.is_lost.is_set() or self._transport.is_closing():
            raise BrokenPipeError("the pipe is closed")
        self._transport.write(line)

    async def send(self, line: bytes) -> None:
        """Send a line, newline included, and wait until there is room for more.

        Raises:
            ConnectionError: The other side has closed the pipe.
        """
        self.write(line)
        if not self._may_write.is_set():
            await self._may_write.wait()

    @property
    def is_behind(self) -> bool:
        """Whether more is waiting than should."""
        return not self._may_write.is_set()

    def close(self) -> None:
        """Send what is waiting, then close the pipe."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the pipe, whatever is waiting."""
        if self._transport is not None and not self.is_lost.is_set():
            self._transport.abort()


class _FileWriter(LineWriter):
    """Lines into what can be no pipe: a file, or a device."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def write(self, line: bytes) -> None:
        if self._file.closed:
            raise BrokenPipeError("the file is closed")
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        self._file.close()
        self.is_lost.set()

    abort = close


async def read_lines(file: IO[bytes]) -> LineReader:
    """Return the lines of a pipe, terminal or file, which is closed with the reader."""
    loop = asyncio.get_running_loop()
    reader = LineReader()
    if _is_pipe(file):
        _widen(file)
        await loop.connect_read_pipe(lambda: reader, file)
    else:
        loop.run_in_executor(None, _read_file, file, reader, loop)
    return reader


async def write_lines(file: IO[bytes]) -> LineWriter:
    """Return what sends lines into a pipe, terminal or file, which is closed with it."""
    if not _is_pipe(file):
        return _FileWriter(file)
    _widen(file)
    loop = asyncio.get_running_loop()
    _, writer = await loop.connect_write_pipe(LineWriter, file)
    return writer


def _is_pipe(file: IO[bytes]) -> bool:
    mode = os.fstat(file.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file.fileno())


def _widen(file: IO[bytes]) -> None:
    """Let a pipe hold more, so that a long line takes fewer turns. Not all systems can."""
    try:
        import fcntl

        fcntl.fcntl(file.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, OSError):
        return


def _read_file(file: IO[bytes], reader: LineReader, loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # the loop is closed
        with suppress(OSError), file:
            while chunk := os.read(file.fileno(), _READ_BYTES):
                loop.call_soon_threadsafe(reader.data_received, chunk)
        loop.call_soon_threadsafe(reader.eof_received)
