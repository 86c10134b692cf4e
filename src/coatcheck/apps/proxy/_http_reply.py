"""One answer over HTTP: JSON where the answer is all, a stream where more belongs to it."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ._eras import HEADER_MISMATCH, UNSUPPORTED_VERSION
from ._http_streams import Line, Reading
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
from ._sse import KEEP_ALIVE, event_of, prime_of

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_MISSING_CAPABILITY = -32021
_ALIVE_SECONDS = 15.0
"""After which a stream on which nothing is said says so, as some close it otherwise."""
_PRIMES_SECONDS = 1.0
"""After which a client is told how to come back for an answer that takes long."""
_SHORT_BYTES = 100_000

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
    reading: Reading,
    headers: Headers,
    *,
    opens: Callable[[], object],
    primes: bool,
    tells_status: bool,
) -> None:
    """Send the answer of a request, and before it what belongs to it.

    Args:
        send: Of ASGI.
        reading: Of all that belongs to the request, the last of which is its answer.
        headers: To send along.
        opens: Called where the answer becomes a stream, before its client is told so.
        primes: Whether the client can be told how to come back before there is a message.
        tells_status: Whether an error is told by the status too, as in the modern era.
    """
    first: Line | None = None
    if reading.stream.is_taken:
        try:
            async with asyncio.timeout(_PRIMES_SECONDS if primes else _ALIVE_SECONDS):
                first = await reading.next()
        except TimeoutError:
            pass
    else:
        first = await reading.next()
    if first is not None and reading.is_at_end:
        status = _status_of(first.data) if tells_status else 200
        await send_json(send, status, first.data.rstrip(), headers)
    else:
        opens()
        await send_stream(send, reading, headers, primes=primes, first=first)


async def send_stream(
    send: Send,
    reading: Reading,
    headers: Headers,
    *,
    primes: bool,
    first: Line | None = None,
) -> None:
    """Send messages to a client for as long as there are more, and it listens.

    Args:
        send: Of ASGI.
        reading: Of the messages.
        headers: To send along.
        primes: Whether it can be told how to come back before there is a message.
        first: The first of them, where it was read already.
    """
    start = {"type": "http.response.start", "status": 200, "headers": [*_STREAM, *headers]}
    await send(start)
    name, line = reading.stream.name, first
    part = b"" if line is not None or not (primes and name) else prime_of(f"{name}-{reading.at}")
    while True:
        if line is not None:
            part = event_of(line.data, f"{name}-{line.number}" if name else "")
        if part:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                line = await reading.next()
        except TimeoutError:
            line, part = None, KEEP_ALIVE
        else:
            if line is None:
                break
    await send({"type": "http.response.body", "body": b""})


def _status_of(answer: bytes) -> int:
    if len(answer) > _SHORT_BYTES:
        return 200
    error = read_message(answer).error
    return 200 if error is None else _STATUS.get(RpcError.of_wire(error).code, 200)
