"""Requests and answers over one channel, both ways. Knows ids, not what is asked."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, cast

from ._channel import (
    Channel,
    ExpiredError,
    ExpiredSession,
    Received,
    ServerDownError,
    Unanswered,
)
from ._eras import meta_of
from ._messages import (
    INTERNAL_ERROR,
    Json,
    MalformedError,
    Message,
    RequestId,
    RpcError,
    as_id,
    error_line,
    notification_line,
    request_line,
    result_line,
)

Progress = Callable[[Json], Awaitable[None]]

_ENDS_SECONDS = 1.0
"""How long it may take until it is known how a server ended that takes no more."""


class Hears(Protocol):
    """What a server says without being asked goes here."""

    async def heard(self, method: str, params: Json) -> None:
        """Take a notification. Must not raise."""
        ...

    async def asked(self, method: str, params: Json) -> Json:
        """Return the client's answer to a request of the server.

        Raises:
            RpcError: It has none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request, in the era of the server."""

    result: Json
    raw: bytes | None = None
    """Its JSON as it came; None where it is ours, or was changed."""
    size_bytes: int = 0


@dataclass(slots=True)
class _Waiting:
    answer: "asyncio.Future[Message]"
    progress: Progress | None


class Exchange:
    """Requests to a server and from it, over one channel. `run` reads it to its end."""

    def __init__(self, channel: Channel, hears: Hears) -> None:
        self._channel = channel
        self._hears = hears
        self._ids = itertools.count(1)
        self._waiting: dict[RequestId, _Waiting] = {}
        self._asks: dict[RequestId, asyncio.Task[None]] = {}
        self._cancels: set[asyncio.Task[None]] = set()
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether the server is gone."""
        return self._is_over

    async def run(self) -> None:
        """Read all that the server sends; then fail whoever still waits for it."""
        try:
            async for message in self._channel.messages():
                await self._take(message)
        finally:
            self._is_over = True
            for each in self._waiting.values():
                if not each.answer.done():
                    each.answer.set_exception(ServerDownError(self._channel.ended))
            for task in [*self._asks.values(), *self._cancels]:
                task.cancel()

    async def ask(
        self, method: str, params: Json | None, *, progress: Progress | None = None
    ) -> Reply:
        """Return the result of a request; when cancelled, it is cancelled at the server too.

        Raises:
            RpcError: The server answered with an error.
            ServerDownError: It ended before it answered.
        """
        if self._is_over:
            raise ServerDownError(self._channel.ended)
        id_ = next(self._ids)
        if progress is not None:
            meta = {**meta_of(params), "progressToken": id_}
            params = {**(params or {}), "_meta": meta}
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = _Waiting(answer, progress)
        try:
            await self._channel.send(request_line(id_, method, params))
            message = await answer
        except asyncio.CancelledError:
            self._cancel(id_, method)
            raise
        except ConnectionError as error:
            # The reading learns how it ended, a moment later.
            with suppress(TimeoutError):
                await asyncio.wait_for(answer, _ENDS_SECONDS)
            raise ServerDownError(self._channel.ended) from error
        finally:
            del self._waiting[id_]
        if message.error is not None:
            raise RpcError.of_wire(message.error)
        if not isinstance(message.result, dict):
            raise RpcError(INTERNAL_ERROR, "The server's result is no object.")
        return Reply(cast("Json", message.result), message.raw, message.size_bytes)

    async def notify(self, method: str, params: Json | None) -> None:
        """Send a notification, where the server is there."""
        with suppress(ConnectionError):
            await self._channel.send(notification_line(method, params))

    async def _take(self, message: Received) -> None:
        if not isinstance(message, Message):
            self._fail(message.id, _failure_of(message))
            if isinstance(message, ExpiredSession):
                self._is_over = True
                await self._channel.close()
        elif message.method is None:
            waiting = self._waiting_for(message.id)
            # A second answer to one request, or one to none, is no news.
            if waiting is not None and not waiting.answer.done():
                waiting.answer.set_result(message)
        elif message.id is None:
            await self._hear(message.method, message.params or {})
        else:
            task = asyncio.create_task(
                self._be_asked(message.id, message.method, message.params or {})
            )
            self._asks[message.id] = task
            task.add_done_callback(lambda _: self._asks.pop(cast("RequestId", message.id), None))

    def _fail(self, id_: RequestId | None, error: Exception) -> None:
        waiting = self._waiting_for(id_)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_exception(error)

    def _waiting_for(self, id_: RequestId | None) -> _Waiting | None:
        """Return who waits; some servers give a number back as text."""
        if isinstance(id_, str):
            return self._waiting.get(int(id_)) if id_.isascii() and id_.isdecimal() else None
        return None if id_ is None else self._waiting.get(id_)

    async def _hear(self, method: str, params: Json) -> None:
        if method == "notifications/progress":
            waiting = self._waiting_for(as_id(params.get("progressToken")))
            if waiting is not None and waiting.progress is not None:
                await waiting.progress(params)
        elif method == "notifications/cancelled":
            id_ = as_id(params.get("requestId"))
            task = None if id_ is None else self._asks.get(id_)
            if task is not None:
                task.cancel()
            else:  # so a modern server ends a stream of changes
                self._fail(id_, ServerDownError("it ended the request"))
        else:
            await self._hears.heard(method, params)

    async def _be_asked(self, id_: RequestId, method: str, params: Json) -> None:
        if method == "ping":
            line = result_line(id_, {})
        else:
            try:
                line = result_line(id_, await self._hears.asked(method, params))
            except RpcError as error:
                line = error_line(id_, error)
        with suppress(ConnectionError):
            await self._channel.send(line)

    def _cancel(self, id_: int, method: str) -> None:
        # The protocol does not let these two be cancelled.
        if self._is_over or method in {"initialize", "server/discover"}:
            return
        params: Json = {"requestId": id_, "reason": "The client cancelled the request."}
        task = asyncio.create_task(self.notify("notifications/cancelled", params))
        self._cancels.add(task)
        task.add_done_callback(self._cancels.discard)


def _failure_of(received: MalformedError | Unanswered | ExpiredSession) -> Exception:
    if isinstance(received, MalformedError):
        return RpcError(INTERNAL_ERROR, f"The server's answer cannot be read: {received}")
    if isinstance(received, Unanswered):
        return ServerDownError(received.reason)
    return ExpiredError("its session has expired")
