"""The front over streamable HTTP: many clients, of both eras, at one path."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, cast

import uvicorn

from ._answers import Proxy
from ._config import HttpFront
from ._eras import ASKING_METHODS, MODERN_VERSIONS, is_modern, opening_of
from ._http_reply import Headers, Receive, Send, send_error, send_json, send_reply, send_stream
from ._http_request import (
    EVENTS,
    RefusedError,
    body_of,
    check_origin,
    check_routing,
    gone,
    principal_of,
    takes_events,
)
from ._http_sessions import FULL, HttpSessions, Seat
from ._http_streams import Reading, Stream
from ._messages import (
    INVALID_REQUEST,
    MalformedError,
    Message,
    RequestId,
    RpcError,
    error_line,
    read_message,
)

PATH = "/mcp"
_SESSION = "mcp-session-id"
_LAST_EVENT = "last-event-id"
_PRIMED_SINCE = "2025-11-25"
"""The version whose clients take an event without a message."""
_CANCELLED = -32800
_IDLE_SECONDS = 120
"""After which a connection without requests is closed: longer than clients keep theirs (5 to 90
seconds), or one would send a request just as it is closed here, and lose it."""
_DIGITS = 15
"""Of the number of an event, at most."""


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
        except RefusedError as refused:
            await send_error(send, refused.status, refused.error, headers=refused.headers)

    async def _serve(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        if scope["path"].rstrip("/") != PATH:
            raise RefusedError(404, RpcError(INVALID_REQUEST, f"The path is {PATH}."))
        check_origin(headers, self._front)
        principal = principal_of(headers, self._front)
        if scope["method"] == "POST":
            await self._post(headers, principal, receive, send)
        elif scope["method"] == "GET":
            await self._get(headers, principal, receive, send)
        elif scope["method"] == "DELETE":
            await self._delete(headers, principal, send)
        else:
            raise RefusedError(405, RpcError(INVALID_REQUEST, "POST, GET or DELETE."))

    async def _post(
        self, headers: Mapping[str, str], principal: str | None, receive: Receive, send: Send
    ) -> None:
        try:
            message = read_message(await body_of(receive))
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
            raise RefusedError(400, RpcError(INVALID_REQUEST, "A client sends no answers here."))
        if message.id is None:
            await send_json(send, 202)
            return
        try:
            check_routing(message, headers)
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
            raise RefusedError(400, RpcError(INVALID_REQUEST, f"{_SESSION} is missing."))
        seat = self.sessions.find(id_, principal)
        if seat is None:
            raise RefusedError(404, RpcError(INVALID_REQUEST, "There is no such session."))
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
        """Answer one request; that its client goes ends it in the modern era, and only there.

        In the handshake era the client may come back for what it missed, where it was told how.
        """
        id_, streams = cast("RequestId", message.id), self.sessions.streams
        is_taken = takes_events(headers)
        stream = Stream(is_taken=is_taken) if modern else streams.new(is_taken=is_taken)
        reading = stream.read()
        answering = seat.session.answer(message, stream)
        self.sessions.touch(seat, 1)

        def finish(task: "asyncio.Task[bytes]") -> None:
            stream.finish(_answer_of(task, id_))
            self.sessions.touch(seat, -1)

        answering.add_done_callback(finish)
        replying = send_reply(
            send,
            reading,
            own or [],
            opens=lambda: None if modern else streams.keep(seat, stream),
            primes=_is_primed(seat),
            tells_status=modern,
        )
        try:
            await self._until_gone(seat, replying, reading, receive)
        finally:
            if modern:
                answering.cancel()
            if streams.find(seat, stream.name) is not stream:
                stream.close()

    async def _get(
        self, headers: Mapping[str, str], principal: str | None, receive: Receive, send: Send
    ) -> None:
        """Send what a client is told outside requests, or all after the event that it names."""
        if headers.get("mcp-protocol-version") in MODERN_VERSIONS:
            raise RefusedError(405, RpcError(INVALID_REQUEST, "POST subscriptions/listen."))
        seat = self._seat(headers, principal)
        if not takes_events(headers):
            raise RefusedError(406, RpcError(INVALID_REQUEST, f"Accept {EVENTS}."))
        reading = self._reading(seat, headers.get(_LAST_EVENT))
        sending = send_stream(send, reading, [], primes=_is_primed(seat))
        only_listens = reading.stream is seat.stream
        await self._until_gone(seat, sending, reading, receive, only_listens=only_listens)

    def _reading(self, seat: Seat, last_event: str | None) -> Reading:
        """Return what a client is to be sent after an event of a stream of its session.

        Raises:
            RefusedError: There is no such event, or its stream is no longer kept.
        """
        if last_event is None:
            return seat.stream.read()
        name, _, number = last_event.rpartition("-")
        own = seat.stream if name == seat.stream.name else None
        stream = own or self.sessions.streams.find(seat, name)
        if stream is not None and number.isascii() and number.isdecimal():
            try:
                return stream.read(int(number[:_DIGITS]))
            except LookupError:
                pass
        what = "What came after that event is not kept: send the request again."
        raise RefusedError(400, RpcError(INVALID_REQUEST, what))

    async def _until_gone(
        self,
        seat: Seat,
        sending: Coroutine[None, None, None],
        reading: Reading,
        receive: Receive,
        *,
        only_listens: bool = False,
    ) -> None:
        """Send until there is no more, or the client goes; meanwhile it uses its session."""
        with self._using(seat, only_listens=only_listens):
            tasks = {asyncio.create_task(sending), asyncio.create_task(gone(receive))}
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                reading.close()
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _delete(self, headers: Mapping[str, str], principal: str | None, send: Send) -> None:
        self._seat(headers, principal)
        await self.sessions.end(headers[_SESSION])
        await send_json(send, 200)

    @contextmanager
    def _using(self, seat: Seat, *, only_listens: bool) -> Generator[None]:
        self.sessions.touch(seat, 1, only_listens=only_listens)
        try:
            yield
        finally:
            self.sessions.touch(seat, -1, only_listens=only_listens)


class _Server(uvicorn.Server):
    """Leaves signals to the program."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def server_of(app: HttpApp) -> uvicorn.Server:
    """Return what serves an application."""
    return _Server(
        uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=_IDLE_SECONDS,
        )
    )


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
    server = server_of(app)
    sessions = asyncio.create_task(app.sessions.run())
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        sessions.cancel()
        await asyncio.wait({serving, sessions})
        listening.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _is_primed(seat: Seat) -> bool:
    return seat.session.opening.era == "handshake" and (
        seat.session.opening.version >= _PRIMED_SINCE
    )


def _answer_of(answering: "asyncio.Task[bytes]", id_: RequestId) -> bytes:
    if answering.cancelled():
        return error_line(id_, RpcError(_CANCELLED, "The request was cancelled."))
    return answering.result()
