"""Server-sent events, read and written. Pure."""

from dataclasses import dataclass

KEEP_ALIVE = b": still here\n\n"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    data: bytes
    id: str | None = None
    retry_ms: int | None = None


class EventReader:
    r"""Makes events of a stream of bytes, in time that is linear in their length.

    >>> reader = EventReader()
    >>> reader.feed(b"id: 7\nda"), reader.feed(b"ta: {}\n\n")
    ([], [Event(data=b'{}', id='7', retry_ms=None)])
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._id: str | None = None
        self._retry_ms: int | None = None
        self._after_return = False
        self.held_bytes = 0
        """Of the event that has not ended yet."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that end in `chunk`."""
        events: list[Event] = []
        if self._after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk[-1:] == b"\r"
        # JSON holds neither of them as they are.
        *whole, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for part in whole:
            line, self._parts = b"".join([*self._parts, part]), []
            if line:
                self._take(line)
            elif self._data or self._id is not None or self._retry_ms is not None:
                events.append(Event(b"\n".join(self._data), self._id, self._retry_ms))
                self._data, self._id, self._retry_ms = [], None, None
        self._parts.append(rest)
        if whole:
            self.held_bytes = sum(len(value) + 1 for value in self._data)
        self.held_bytes += len(rest)
        return events

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self._retry_ms = int(value[:9])


def event_of(line: bytes, id: str = "") -> bytes:  # noqa: A002
    r"""Return a message as an event, under an id that a client may come back with.

    >>> event_of(b'{"id":1}\n')
    b'event: message\ndata: {"id":1}\n\n'
    >>> event_of(b'{"id":1}\n', "7-2")
    b'event: message\nid: 7-2\ndata: {"id":1}\n\n'
    """
    # A result that came over HTTP may hold newlines between its members.
    data = line.rstrip().replace(b"\r", b"").replace(b"\n", b"\ndata: ")
    return b"event: message\n%bdata: %b\n\n" % (b"id: %b\n" % id.encode() if id else b"", data)


def prime_of(id: str) -> bytes:  # noqa: A002
    r"""Return the event without a message that tells a client how to come back.

    >>> prime_of("7-0")
    b'id: 7-0\ndata: \n\n'
    """
    return b"id: %b\ndata: \n\n" % id.encode()
