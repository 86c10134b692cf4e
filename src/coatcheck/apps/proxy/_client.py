"""The client's side of a session: what servers ask it, and its answers."""

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from ._call import Outlet
from ._eras import meta_of
from ._messages import (
    INTERNAL_ERROR,
    SERVER_GONE,
    Json,
    Message,
    RequestId,
    RpcError,
    as_id,
    notification_line,
    request_line,
)
from ._upstream import Upstream


@dataclass(slots=True)
class _Ask:
    answer: "asyncio.Future[Message]"
    upstream: Upstream | None
    token: object
    """Under which the server wants to know how far the client is; None where it does not."""


class Client:
    """A client of the handshake era, which can be asked; outside requests it hears at `outlet`."""

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet
        self.is_initialized = asyncio.Event()
        """Set once the client has said so: before that it is not to be asked."""
        self._ids = itertools.count(1)
        self._asks: dict[RequestId, _Ask] = {}
        self._is_closed = False

    async def ask(
        self,
        method: str,
        params: Json,
        *,
        outlet: Outlet | None = None,
        upstream: Upstream | None = None,
    ) -> Json:
        """Return the client's answer; when cancelled, it is cancelled there too.

        Args:
            method: What is asked.
            params: As the server sent them.
            outlet: Of the request that it belongs to; None is outside any.
            upstream: Whose question it is, where it may want to know how far the client is.

        Raises:
            RpcError: The client answered with an error, or has gone.
        """
        await self.is_initialized.wait()
        if self._is_closed:
            raise RpcError(SERVER_GONE, "The client has gone.")
        id_ = next(self._ids)
        token = meta_of(params).get("progressToken")
        if token is not None:  # those of two servers may be the same
            params = {**params, "_meta": {**meta_of(params), "progressToken": id_}}
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asks[id_] = _Ask(answer, upstream, token)
        try:
            await self._send(request_line(id_, method, params or None), outlet)
            message = await answer
        except asyncio.CancelledError:
            await self.tell("notifications/cancelled", {"requestId": id_}, outlet)
            raise
        except ConnectionError as error:
            raise RpcError(SERVER_GONE, "The client has gone.") from error
        finally:
            del self._asks[id_]
        if message.error is not None:
            raise RpcError.of_wire(message.error)
        if not isinstance(message.result, dict):
            raise RpcError(INTERNAL_ERROR, "The client's result is no object.")
        return cast("Json", message.result)

    def settle(self, message: Message) -> None:
        """Take an answer of the client; one to no question is no news."""
        ask = None if message.id is None else self._asks.get(message.id)
        if ask is not None and not ask.answer.done():
            ask.answer.set_result(message)

    async def progressed(self, params: Mapping[str, object]) -> None:
        """Tell the server that asked how far the client is."""
        token = as_id(params.get("progressToken"))
        ask = None if token is None else self._asks.get(token)
        if ask is not None and ask.upstream is not None and ask.token is not None:
            own = {**params, "progressToken": ask.token}
            await ask.upstream.notify("notifications/progress", own)

    async def tell(self, method: str, params: Json, outlet: Outlet | None = None) -> None:
        """Send a notification."""
        with suppress(ConnectionError):
            await self._send(notification_line(method, params or None), outlet)

    async def _send(self, line: bytes, outlet: Outlet | None) -> None:
        if outlet is not None:
            with suppress(ConnectionError):  # the client took the answer as all there is
                await outlet.send(line)
                return
        await self.outlet.send(line)

    def close(self) -> None:
        """Let nobody wait for it any more, now or later."""
        self._is_closed = True
        for ask in self._asks.values():
            if not ask.answer.done():
                ask.answer.set_exception(RpcError(SERVER_GONE, "The client has gone."))
        self.is_initialized.set()
