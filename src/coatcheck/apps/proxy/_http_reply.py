"""One answer over HTTP: JSON where the answer is all, a stream where more belongs to it."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ._eras import HEADER_MISMATCH, UNSUPPORTED_VERSION
from ._messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RequestId,
    RpcError,
    error_line,
    read_message,
)
from ._sse import KEEP_ALIVE, event_of

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

CANCELLED = -32800
_MISSING_CAPABILITY = -32021
_ALIVE_SECONDS = 15.0
"""After which a stream on which nothing is said says so, as some close it otherwise."""
_MOST_WAITING = 1_000
"""Messages that wait for a client; of what comes then only requests are kept."""
_SHORT_BYTES = 100_000
_NOTE = b'{"jsonrpc":"2.0","method":'
"""Begins a notification, as this proxy writes it."""

_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    _MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
_JSON = (b"content-type", b"application/json")
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class Stream:
    """Messages for a client, until it listens no more.

    Args:
        is_taken: Whether the client takes messages here at all.
    """

    def __init__(self, *, is_taken: bool = True) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_taken = is_taken
        self._is_closed = False

    async def send(self, line: bytes) -> None:
        """Take one message; where too many wait, a notification is dropped.

        Raises:
            ConnectionError: The client listens here no more.
        """
        if self._is_closed or not self.is_taken:
            raise BrokenPipeError("the client has gone")
        if self._lines.qsize() < _MOST_WAITING or not line.startswith(_NOTE):
            self._lines.put_nowait(line)

    def close(self) -> None:
        """Take no more."""
        self._is_closed = True
        self._lines.put_nowait(None)

    async def next(self) -> bytes | None:
        """Return the next message, None at the end."""
        if self._is_closed and self._lines.empty():
            return None
        return await self._lines.get()


async def send_json(
    send: Send, status: int, body: bytes = b"", headers: Headers | None = None
) -> None:
    """Send an answer that is one JSON text, or nothing."""
    own = [*(headers or []), *([_JSON] if body else [])]
    own.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": own})
    await send({"type": "http.response.body", "body": body})


async def send_error(
    send: Send,
    status: int,
    error: RpcError,
    id: RequestId | None = None,  # noqa: A002
    *,
    headers: Headers | None = None,
) -> None:
    """Refuse a request before anyone has looked at it."""
    await send_json(send, status, error_line(id, error).rstrip(), headers)


async def send_reply(
    send: Send,
    answering: "asyncio.Task[bytes]",
    stream: Stream,
    *,
    id: RequestId,  # noqa: A002
    headers: Headers,
    tells_status: bool,
) -> None:
    """Send the answer of a request, and before it what belongs to it.

    Args:
        send: Of ASGI.
        answering: Its result is the answer.
        stream: Takes what belongs to the request.
        id: Of the request.
        headers: To send along.
        tells_status: Whether an error is told by the status too, as in the modern era.
    """
    answering.add_done_callback(lambda _: stream.close())
    is_open = False
    while True:
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                line = await stream.next()
        except TimeoutError:
            part = KEEP_ALIVE
        else:
            if line is None:
                break
            part = event_of(line)
        if stream.is_taken:
            if not is_open:
                await _open(send, headers)
                is_open = True
            await send({"type": "http.response.body", "body": part, "more_body": True})
    answer = _answer_of(answering, id)
    if is_open:
        await send({"type": "http.response.body", "body": event_of(answer)})
    else:
        status = _status_of(answer) if tells_status else 200
        await send_json(send, status, answer.rstrip(), headers)


async def send_stream(send: Send, stream: Stream, headers: Headers) -> None:
    """Send what a client is told outside its requests, for as long as it listens."""
    await _open(send, headers)
    while True:
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                line = await stream.next()
        except TimeoutError:
            part = KEEP_ALIVE
        else:
            if line is None:
                break
            part = event_of(line)
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _open(send: Send, headers: Headers) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [*_STREAM, *headers]}
    await send(start)


def _answer_of(answering: "asyncio.Task[bytes]", id_: RequestId) -> bytes:
    if answering.cancelled():
        return error_line(id_, RpcError(CANCELLED, "The request was cancelled."))
    return answering.result()


def _status_of(answer: bytes) -> int:
    if len(answer) > _SHORT_BYTES:
        return 200
    error = read_message(answer).error
    return 200 if error is None else _STATUS.get(RpcError.of_wire(error).code, 200)
