"""A server that is reached over streamable HTTP, of either era."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import suppress
from typing import cast

import httpx2
from mcp.shared.inbound import (
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)

from ._channel import ExpiredSession, Log, Received, Unanswered
from ._config import UpstreamSpec
from ._eras import NAMED, VERSION_KEY, meta_of
from ._lines import LONGEST_LINE_BYTES
from ._messages import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Json,
    MalformedError,
    Message,
    RequestId,
    as_id,
    read_message,
)
from ._sse import Event, EventReader

_CONNECT_SECONDS = 30.0
_GOODBYE_SECONDS = 2.0
_AGAIN_SECONDS = 1.0
_LEAST_PAUSE_SECONDS = 0.1
_MOST_MOVES = 5
_MOST_ATTEMPTS = 5
"""To go on with a stream that broke off."""
_EVENTS = "text/event-stream"
_FIELD_BYTES = 16
"""What a line of an event has beside its value, at most."""
_SESSION = "mcp-session-id"
_MOVED, _BAD, _NOT_FOUND = (307, 308), 400, 404
_SIGN_IN = frozenset({401, 403})

_FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, ValueError)
"""The last of what cannot stand in a header: a server's own session id, a client's method."""

_Headers = dict[str, str]


class _TooLongError(ValueError):
    """A message is longer than what is read; over standard output it would be cut as well."""


class HttpChannel:
    """Messages to one server over HTTP. Each request is a POST of its own, and fails alone.

    Args:
        spec: Which server.
        log: Takes what goes wrong beside all requests.
        longest_bytes: Of a message, uncompressed; a longer one is not read to its end.
    """

    def __init__(
        self, spec: UpstreamSpec, log: Log, *, longest_bytes: int = LONGEST_LINE_BYTES
    ) -> None:
        self._longest_bytes = longest_bytes
        self._name = spec.name
        self._url = spec.url or ""
        self._log = log
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
        self._http = httpx2.AsyncClient(headers=dict(spec.headers), timeout=timeout)
        self._got: asyncio.Queue[Received | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts: dict[RequestId, asyncio.Task[None]] = {}
        self._session: str | None = None
        self._version: str | None = None
        """Of the handshake era, once that was agreed on."""
        self._params: dict[str, Mapping[tuple[str, ...], str]] = {}
        """Of each tool, the arguments that are repeated in headers."""
        self._is_closed = False
        self.ended = "it was left"

    async def send(self, line: bytes) -> None:
        message = read_message(line)
        id_, params = message.id, message.params or {}
        if id_ is not None and message.method is not None:
            task = self._begin(self._ask(message, id_, line))
            self._posts[id_] = task
            task.add_done_callback(lambda _: self._posts.pop(id_, None))
            return
        if message.method == "notifications/cancelled":
            post = self._posts.get(as_id(params.get("requestId")) or "")
            if post is not None and self._version is None:
                # In the modern era, which has no session, the end of its stream says so.
                post.cancel()
                return
        await self._tell(message, line)

    async def messages(self) -> AsyncIterator[Received]:
        while (message := await self._got.get()) is not None:
            yield message

    async def close(self) -> None:
        """Say goodbye, where there is a session. The server itself is not ours to end."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        if self._is_closed:
            return
        self._is_closed = True
        if self._session is not None:
            with suppress(*_FAILURES, TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._http.delete(self._url, headers=self._own_headers())
        await self._http.aclose()
        self._got.put_nowait(None)

    def _begin(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _own_headers(self) -> _Headers:
        headers: _Headers = {} if self._session is None else {_SESSION: self._session}
        if self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return headers

    def _headers_of(self, message: Message) -> _Headers:
        """Return the headers of a message; a modern request repeats there what routes it."""
        headers = {
            "accept": f"application/json, {_EVENTS}",
            "content-type": "application/json",
            **self._own_headers(),
        }
        params, method = message.params or {}, message.method or ""
        version = meta_of(params).get(VERSION_KEY)
        if not isinstance(version, str):
            return headers
        headers |= {"mcp-protocol-version": version, "mcp-method": method}
        name = params.get(NAMED.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = encode_header_value(name)
            arguments = params.get("arguments")
            if method == "tools/call" and isinstance(arguments, dict):
                repeated = self._params.get(name, {})
                headers |= mcp_param_headers(repeated, cast("Json", arguments))
        return headers

    async def _tell(self, message: Message, line: bytes) -> None:
        try:
            async with self._http.stream(
                "POST", self._url, content=line, headers=self._headers_of(message)
            ) as response:
                await self._body(response)  # or the connection could not be used again
        except _FAILURES as error:
            self._log(f"{self._name}: {message.method or 'an answer'} was lost: {_why(error)}")
            return
        if message.method == "notifications/initialized" and response.status_code < _BAD:
            self._begin(self._listen())

    async def _ask(self, message: Message, id_: RequestId, line: bytes) -> None:
        try:
            for _ in range(_MOST_MOVES):
                async with self._http.stream(
                    "POST", self._url, content=line, headers=self._headers_of(message)
                ) as response:
                    if not self._moved(response):
                        await self._take_response(message, id_, response)
                        return
            self._got.put_nowait(Unanswered(id_, "it sends us from one address to the next"))
        except _FAILURES as error:
            self._got.put_nowait(Unanswered(id_, _why(error)))

    def _moved(self, response: httpx2.Response) -> bool:
        """Return whether the server answers at another address of its own."""
        if response.status_code not in _MOVED:
            return False
        here = httpx2.URL(self._url)
        there = here.join(response.headers.get("location", ""))
        same = (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)
        if not same or there == here:
            return False
        self._url = str(there)
        return True

    async def _take_response(
        self, message: Message, id_: RequestId, response: httpx2.Response
    ) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if message.method == "initialize":
            self._session = response.headers.get(_SESSION)
        if response.status_code < _BAD and kind == _EVENTS:
            await self._take_events(message, id_, response)
            return
        body = await self._body(response)
        if response.status_code == _NOT_FOUND and self._session is not None:
            self.ended = "its session has expired"
            self._got.put_nowait(ExpiredSession(id_))
        elif kind == "application/json" and response.status_code not in _SIGN_IN:
            self._take(body, message, id_)
        elif response.status_code >= _BAD:
            self._got.put_nowait(_refused(id_, response.status_code))
        else:
            reason = f"it answered with HTTP status {response.status_code} and no message"
            self._got.put_nowait(Unanswered(id_, reason))

    async def _take_events(
        self, message: Message, id_: RequestId, response: httpx2.Response
    ) -> None:
        """Read a stream to the answer; where it breaks off and can be gone on with, go on."""
        last: str | None = None
        pause = _AGAIN_SECONDS
        current = response
        for _ in range(_MOST_ATTEMPTS):
            try:
                async for event in self._events(current):
                    last = event.id or last
                    pause = _pause(event, pause)
                    if event.data and self._take(event.data, message, id_):
                        return
            except httpx2.HTTPError as error:
                if last is None:
                    raise
                self._log(f"{self._name}: a stream broke off: {_why(error)}")
            finally:
                await current.aclose()
            if last is None:
                break
            await asyncio.sleep(pause)
            current = await self._resumed(last)
        self._got.put_nowait(Unanswered(id_, "its stream ended without an answer"))

    async def _resumed(self, last: str) -> httpx2.Response:
        headers = {"accept": _EVENTS, "last-event-id": last, **self._own_headers()}
        request = self._http.build_request("GET", self._url, headers=headers)
        return await self._http.send(request, stream=True)

    async def _listen(self) -> None:
        """Hear what a server of the handshake era says outside all requests, if it says so."""
        last, pause = None, _AGAIN_SECONDS
        while True:
            headers = {"accept": _EVENTS, **self._own_headers()}
            if last is not None:
                headers["last-event-id"] = last
            try:
                async with self._http.stream("GET", self._url, headers=headers) as response:
                    if response.status_code >= _BAD:
                        return
                    async for event in self._events(response):
                        last = event.id or last
                        pause = _pause(event, pause)
                        if event.data:
                            self._put(event.data)
            except _FAILURES:
                pause = min(2 * pause, _CONNECT_SECONDS)
            await asyncio.sleep(pause)

    async def _body(self, response: httpx2.Response) -> bytes:
        parts: list[bytes] = []
        size_bytes = 0
        async for chunk in response.aiter_bytes():
            parts.append(chunk)
            size_bytes += len(chunk)
            self._check_length(size_bytes)
        return b"".join(parts)

    async def _events(self, response: httpx2.Response) -> AsyncIterator[Event]:
        reader = EventReader()
        async for chunk in response.aiter_bytes():
            for event in reader.feed(chunk):
                self._check_length(len(event.data))
                yield event
            self._check_length(reader.held_bytes - _FIELD_BYTES)

    def _check_length(self, size_bytes: int) -> None:
        if size_bytes > self._longest_bytes:
            raise _TooLongError(f"its answer is over {self._longest_bytes} bytes")

    def _take(self, body: bytes, message: Message, id_: RequestId) -> bool:
        """Take a message that came for a request. Return whether it is the answer."""
        got = self._put(body, id_)
        if not isinstance(got, Message) or got.method is not None:
            return isinstance(got, MalformedError)
        if isinstance(got.result, dict):
            self._learn(message, cast("Json", got.result))
        return True

    def _put(self, body: bytes, id_: RequestId | None = None) -> Message | MalformedError:
        try:
            got: Message | MalformedError = read_message(body)
        except MalformedError as error:
            got = error
            self._log(f"{self._name}: no message: {error}")
        # What answers a request is its answer, whatever id it has: some refuse with null.
        if id_ is not None and (isinstance(got, MalformedError) or got.method is None):
            got.id = id_
        self._got.put_nowait(got)
        return got

    def _learn(self, message: Message, result: Json) -> None:
        if message.method == "initialize":
            version = result.get("protocolVersion")
            self._version = version if isinstance(version, str) else None
        elif message.method == "tools/list" and isinstance(result.get("tools"), list):
            for tool in cast("list[object]", result["tools"]):
                fields = cast("Json", tool) if isinstance(tool, dict) else {}
                schema = fields.get("inputSchema")
                if find_invalid_x_mcp_header(schema) is None:
                    self._params[str(fields.get("name"))] = x_mcp_header_map(schema)


def _pause(event: Event, before: float) -> float:
    """Return how long to wait before a stream is gone on with: as its server says, in bounds."""
    if event.retry_ms is None:
        return before
    return min(max(event.retry_ms / 1_000, _LEAST_PAUSE_SECONDS), _CONNECT_SECONDS)


def _refused(id_: RequestId, status: int) -> Received:
    if status in _SIGN_IN:
        return Unanswered(id_, f"it refused us with HTTP status {status}: look at its headers")
    # Those who know only other methods answer so; to whom it means what it says, it does too.
    code = METHOD_NOT_FOUND if status in {400, 404, 405} else INTERNAL_ERROR
    error = {"code": code, "message": f"The server answered with HTTP status {status}."}
    return Message(id=id_, error=error)


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
