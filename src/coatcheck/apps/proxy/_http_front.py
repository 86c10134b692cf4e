"""The front over streamable HTTP: many clients, of both eras, at one path."""

import asyncio
import hmac
import socket
import time
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import uvicorn

from ._answers import Proxy
from ._config import HttpFront
from ._eras import (
    ASKING_METHODS,
    HEADER_MISMATCH,
    MODERN_VERSIONS,
    VERSION_KEY,
    is_modern,
    meta_of,
    opening_of,
)
from ._http_reply import (
    Headers,
    Receive,
    Send,
    Stream,
    send_error,
    send_json,
    send_reply,
    send_stream,
)
from ._http_sessions import FULL, HttpSessions, Seat
from ._messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    MalformedError,
    Message,
    RequestId,
    RpcError,
    read_message,
)

PATH = "/mcp"
_LARGEST_BYTES = 128 * 1024 * 1024
_SESSION = "mcp-session-id"
_EVENTS = "text/event-stream"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CODED = "=?base64?"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class _RefusedError(Exception):
    """A request is answered before its message is looked at."""

    def __init__(self, status: int, error: RpcError, headers: Headers | None = None) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers or []


class HttpApp:
    """Serves clients over HTTP, as an ASGI application.

    Args:
        proxy: What all sessions share.
        front: Where it is reached, and who may.
        clock: Seconds, from anywhere.
    """

    def __init__(
        self, proxy: Proxy, front: HttpFront, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._front = front
        self._proxy = proxy
        self.sessions = HttpSessions(proxy, clock)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            await self._serve(scope, headers, receive, send)
        except _RefusedError as refused:
            await send_error(send, refused.status, refused.error, headers=refused.headers)

    async def _serve(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        if scope["path"].rstrip("/") != PATH:
            raise _RefusedError(404, RpcError(INVALID_REQUEST, f"The path is {PATH}."))
        self._check_origin(headers)
        principal = self._principal(headers)
        if scope["method"] == "POST":
            await self._post(headers, principal, receive, send)
        elif scope["method"] == "GET":
            await self._get(headers, principal, receive, send)
        elif scope["method"] == "DELETE":
            await self._delete(headers, principal, send)
        else:
            raise _RefusedError(405, RpcError(INVALID_REQUEST, "POST, GET or DELETE."))

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse what a page in a browser sends: it may have been led here by a name of its own.

        Raises:
            _RefusedError: The request does not come from here.
        """
        host = _host_of(f"//{headers.get('host', '')}")
        origin = headers.get("origin")
        if self._front.host in _LOOPBACK and host not in _LOOPBACK:
            raise _RefusedError(421, RpcError(INVALID_REQUEST, "The host is not this one."))
        if origin is not None and _host_of(origin) != host:
            raise _RefusedError(403, RpcError(INVALID_REQUEST, "The origin is not this host."))

    def _principal(self, headers: Mapping[str, str]) -> str | None:
        """Return who signed in, None where nobody has to.

        Raises:
            _RefusedError: Someone has to, and did not.
        """
        if not self._front.principals:
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        found = None
        for known, principal in self._front.principals.items():
            if hmac.compare_digest(known.encode(), token.strip().encode()):
                found = principal
        if found is None or kind.lower() != "bearer":
            error = RpcError(INVALID_REQUEST, "A bearer token is needed.")
            raise _RefusedError(401, error, [(b"www-authenticate", b"Bearer")])
        return found

    async def _post(
        self, headers: Mapping[str, str], principal: str | None, receive: Receive, send: Send
    ) -> None:
        try:
            message = read_message(await _body(receive))
        except MalformedError as error:
            await send_error(send, 400, RpcError(error.code, str(error)), error.id)
            return
        version = headers.get("mcp-protocol-version")
        modern = is_modern(message.params) if message.method is not None else False
        if modern or version in MODERN_VERSIONS:
            await self._modern(message, headers, principal, receive, send)
        else:
            await self._handshake(message, headers, principal, receive, send)

    async def _modern(
        self,
        message: Message,
        headers: Mapping[str, str],
        principal: str | None,
        receive: Receive,
        send: Send,
    ) -> None:
        if message.method is None:
            raise _RefusedError(400, RpcError(INVALID_REQUEST, "A client sends no answers here."))
        if message.id is None:
            await send_json(send, 202)
            return
        try:
            _check_routing(message, headers)
            seat = self.sessions.share(
                opening_of(message.method, message.params),
                principal,
                (message.params or {}).get("requestState"),
                may_ask=message.method in ASKING_METHODS,
            )
        except RpcError as error:
            await send_error(send, 503 if error.code == FULL else 400, error, message.id)
            return
        await self._answer(seat, message, headers, receive, send, modern=True)

    async def _handshake(
        self,
        message: Message,
        headers: Mapping[str, str],
        principal: str | None,
        receive: Receive,
        send: Send,
    ) -> None:
        own: Headers = []
        if message.method == "initialize" and message.id is not None:
            try:
                id_, seat = self.sessions.begin(opening_of("initialize", message.params), principal)
            except RpcError as error:
                await send_error(send, 503, error, message.id)
                return
            own.append((_SESSION.encode(), id_.encode()))
        else:
            seat = self._seat(headers, principal)
        if message.method is None:
            seat.session.settle(message)
            await send_json(send, 202)
        elif message.id is None:
            await send_json(send, 202)
            await seat.session.hear(message.method, message.params or {})
        else:
            await self._answer(seat, message, headers, receive, send, own=own)

    def _seat(self, headers: Mapping[str, str], principal: str | None) -> Seat:
        id_ = headers.get(_SESSION)
        if id_ is None:
            raise _RefusedError(400, RpcError(INVALID_REQUEST, f"{_SESSION} is missing."))
        seat = self.sessions.find(id_, principal)
        if seat is None:
            raise _RefusedError(404, RpcError(INVALID_REQUEST, "There is no such session."))
        return seat

    async def _answer(
        self,
        seat: Seat,
        message: Message,
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
        *,
        own: Headers | None = None,
        modern: bool = False,
    ) -> None:
        """Answer one request; that its client goes ends it in the modern era, and only there."""
        stream = Stream(is_taken=_takes_events(headers))
        answering = seat.session.answer(message, stream)
        with self._using(seat):
            replying = asyncio.create_task(
                send_reply(
                    send,
                    answering,
                    stream,
                    id=cast("RequestId", message.id),
                    headers=own or [],
                    tells_status=modern,
                )
            )
            gone = asyncio.create_task(_gone(receive))
            try:
                await asyncio.wait({replying, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stream.close()
                gone.cancel()
                if modern and not answering.done():
                    answering.cancel()
                if not replying.done():
                    replying.cancel()
                await asyncio.wait({replying, gone})

    async def _get(
        self, headers: Mapping[str, str], principal: str | None, receive: Receive, send: Send
    ) -> None:
        if headers.get("mcp-protocol-version") in MODERN_VERSIONS:
            raise _RefusedError(405, RpcError(INVALID_REQUEST, "POST subscriptions/listen."))
        seat = self._seat(headers, principal)
        if not _takes_events(headers):
            raise _RefusedError(406, RpcError(INVALID_REQUEST, f"Accept {_EVENTS}."))
        if seat.is_heard:
            raise _RefusedError(409, RpcError(INVALID_REQUEST, "The session has a stream already."))
        seat.is_heard = True
        with self._using(seat):
            streaming = asyncio.create_task(send_stream(send, seat.stream, []))
            gone = asyncio.create_task(_gone(receive))
            try:
                await asyncio.wait({streaming, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                seat.is_heard = False
                for task in (streaming, gone):
                    task.cancel()
                await asyncio.wait({streaming, gone})

    async def _delete(self, headers: Mapping[str, str], principal: str | None, send: Send) -> None:
        self._seat(headers, principal)
        await self.sessions.end(headers[_SESSION])
        await send_json(send, 200)

    @contextmanager
    def _using(self, seat: Seat) -> Generator[None]:
        self.sessions.touch(seat, 1)
        try:
            yield
        finally:
            self.sessions.touch(seat, -1)


class _Server(uvicorn.Server):
    """Leaves signals to the program."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve_http(proxy: Proxy, front: HttpFront) -> None:
    """Serve until cancelled, then end all sessions.

    Raises:
        OSError: The port is taken, or the host is not this one.
    """
    app = HttpApp(proxy, front)
    listening = socket.create_server((front.host, front.port), family=_family(front.host))
    # Connections inherit it. asyncio sets it only where a socket says that it is TCP, which this
    # one does not; without it an answer in two pieces waits 40 ms for the client's system.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if front.port == 0:
        proxy.log(f"coatcheck proxy: http://{front.host}:{listening.getsockname()[1]}{PATH}")
    server = _Server(
        uvicorn.Config(
            app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
    )
    sessions = asyncio.create_task(app.sessions.run())
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        sessions.cancel()
        await asyncio.wait({serving, sessions})
        listening.close()


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # it is no address
        return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _check_routing(message: Message, headers: Mapping[str, str]) -> None:
    """Check that the headers of a modern request say what its message says.

    Raises:
        RpcError: They do not, so what routed it may have been deceived.
    """
    params = message.params or {}
    said = {"mcp-protocol-version": meta_of(params).get(VERSION_KEY), "mcp-method": message.method}
    for name, value in said.items():
        if headers.get(name) != value:
            raise RpcError(HEADER_MISMATCH, f"{name} is not what the message says.")
    named = params.get(_NAMED.get(message.method or "", ""))
    if isinstance(named, str) and _decoded(headers.get("mcp-name")) != named:
        raise RpcError(HEADER_MISMATCH, "mcp-name is not what the message says.")


def _decoded(value: str | None) -> str | None:
    if value is None or not value.startswith(_CODED):
        return value
    from mcp.shared.inbound import decode_header_value  # half a second, for what is rare

    return decode_header_value(value)


def _takes_events(headers: Mapping[str, str]) -> bool:
    accepted = {each.partition(";")[0].strip() for each in headers.get("accept", "").split(",")}
    return not accepted.isdisjoint({_EVENTS, "text/*", "*/*"})


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise _RefusedError(400, RpcError(PARSE_ERROR, "The request ended early."))
        parts.append(event.get("body", b""))
        size_bytes += len(parts[-1])
        if size_bytes > _LARGEST_BYTES:
            raise _RefusedError(413, RpcError(INVALID_REQUEST, "The message is over 128 MiB."))
        if not event.get("more_body", False):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
