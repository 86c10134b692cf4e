"""Messages on their way to a client over HTTP, kept a while for one that comes back for them."""

import asyncio
import itertools
from collections import OrderedDict, deque
from dataclasses import dataclass

_MOST_WAITING = 1_000
"""Messages that wait for a client; of what comes then only requests are kept, up to twice that."""
_KEPT_BYTES = 1024 * 1024
"""Of what one stream was read of; the message that was read last is kept whatever it takes."""
_MOST_STREAMS = 1_000
_MOST_BYTES = 32 * 1024 * 1024
"""Of all streams of a front that nobody reads now."""
_NOTE = b'{"jsonrpc":"2.0","method":'
"""Begins a notification, as this proxy writes it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a stream, and its place in it: 1 is the first."""

    number: int
    data: bytes


class Stream:
    """Messages for a client, until no more come.

    Whoever reads it later than others reads on in their place: a client whose connection broke
    comes back while the old one still seems to be there.

    Args:
        name: Which no other stream has; without one nothing that was read is kept.
        is_taken: Whether the client takes messages here at all.
    """

    def __init__(self, name: str = "", *, is_taken: bool = True) -> None:
        self.name = name
        self.is_taken = is_taken
        self._lines: deque[Line] = deque()
        self._last = 0
        self._read = 0
        self._read_bytes = 0
        self._reader: Reading | None = None
        self._is_closed = False
        self.kept_bytes = 0
        """Of messages that are here, read or not."""

    @property
    def is_read(self) -> bool:
        """Whether someone reads it now."""
        return self._reader is not None

    async def send(self, line: bytes) -> None:
        """Take one message; where too many wait, a notification is dropped.

        Raises:
            ConnectionError: The client listens here no more, or takes none of what waits for it.
        """
        if self._is_closed or not self.is_taken:
            raise BrokenPipeError("the client has gone")
        waiting = self._last - self._read
        if waiting >= _MOST_WAITING and line.startswith(_NOTE):
            return
        if waiting >= 2 * _MOST_WAITING:
            raise BrokenPipeError("the client does not listen")
        self._add(line)

    def finish(self, line: bytes) -> None:
        """Take the last message, after which no more come."""
        if not self._is_closed:
            self._add(line)
            self.close()

    def close(self) -> None:
        """Take no more."""
        self._is_closed = True
        self._wake()

    def drop(self) -> None:
        """Keep nothing for who comes back; take no more where nobody reads it."""
        self.name = ""
        self._trim()
        if self._reader is None:
            self.close()

    def read(self, after: int | None = None) -> "Reading":
        """Return the messages after one, or after what was read of it so far.

        Raises:
            LookupError: There is no such message yet.
        """
        if after is not None and after > self._last:
            raise LookupError(after)
        if self._reader is not None:
            self._reader.is_over = True
            self._wake()
        self._reader = Reading(self, self._read if after is None else after)
        return self._reader

    def next_after(self, number: int) -> Line | None:
        """Return the first message after one, None where it is not there yet."""
        # The next one is mostly the first that nobody has read.
        at = 0 if not self._lines else max(number + 1 - self._lines[0].number, 0)
        return self._lines[at] if at < len(self._lines) else None

    def is_over_after(self, number: int) -> bool:
        """Return whether no message comes after one."""
        return self._is_closed and number >= self._last

    def was_read(self, line: Line) -> None:
        """Take note that a message was handed out."""
        if line.number > self._read:
            self._read = line.number
            self._read_bytes += len(line.data)
            self._trim()

    def left(self, reading: "Reading") -> None:
        """Take note that a reader reads no more."""
        if self._reader is reading:
            self._reader = None

    def _add(self, line: bytes) -> None:
        self._last += 1
        self._lines.append(Line(self._last, line))
        self.kept_bytes += len(line)
        self._wake()

    def _trim(self) -> None:
        most_bytes, kept = (_KEPT_BYTES, 1) if self.name else (0, 0)
        while self._read_bytes > most_bytes and self._lines[0].number <= self._read - kept:
            size_bytes = len(self._lines.popleft().data)
            self._read_bytes -= size_bytes
            self.kept_bytes -= size_bytes

    def _wake(self) -> None:
        if self._reader is not None:
            self._reader.news.set()


class Reading:
    """One client's way through a stream."""

    def __init__(self, stream: Stream, at: int) -> None:
        self.stream = stream
        self.at = at
        """The number of the message that was read last."""
        self.is_over = False
        """Whether another one reads on in its place."""
        self.news = asyncio.Event()

    @property
    def is_at_end(self) -> bool:
        """Whether no message comes after the one that was read last."""
        return self.stream.is_over_after(self.at)

    async def next(self) -> Line | None:
        """Return the next message, None at the end, or where another one reads on."""
        while not self.is_over:
            line = self.stream.next_after(self.at)
            if line is not None:
                self.at = line.number
                self.stream.was_read(line)
                return line
            if self.stream.is_over_after(self.at):
                return None
            self.news.clear()
            await self.news.wait()
        return None

    def close(self) -> None:
        """Read no more."""
        self.stream.left(self)


class Streams:
    """The streams of a front that clients may come back to, each of one session.

    Args:
        most_bytes: Of streams that nobody reads; beyond them the oldest are let go.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._names = itertools.count(1)
        self._kept: OrderedDict[str, tuple[object, Stream]] = OrderedDict()

    def new(self, *, is_taken: bool = True) -> Stream:
        """Return a stream with a name of its own."""
        return Stream(str(next(self._names)), is_taken=is_taken)

    def keep(self, owner: object, stream: Stream) -> None:
        """Let a client come back to a stream, once it was told of it."""
        self._kept[stream.name] = (owner, stream)
        unread = [each for _, each in self._kept.values() if not each.is_read]
        size_bytes = sum(each.kept_bytes for each in unread)
        for each in unread:
            if size_bytes <= self._most_bytes and len(self._kept) <= _MOST_STREAMS:
                break
            size_bytes -= each.kept_bytes
            self._drop(each)

    def find(self, owner: object, name: str) -> Stream | None:
        """Return a stream of a session, None where it has no such stream any more."""
        kept_by, stream = self._kept.get(name, (None, None))
        return stream if kept_by is owner else None

    def forget(self, owner: object) -> None:
        """Let go of all streams of a session that is over."""
        for kept_by, stream in list(self._kept.values()):
            if kept_by is owner:
                self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        del self._kept[stream.name]
        stream.drop()
