"""What one client is answered: each request goes to its server, and each answer back."""

import asyncio
from typing import cast

from ...errors import CoatcheckError
from ._answers import Answers, Identity, Proxy
from ._call import Call, Outlet
from ._channel import ServerDownError
from ._client import Client
from ._eras import Opening
from ._messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    SERVER_GONE,
    Json,
    Message,
    RequestId,
    RpcError,
    as_id,
    error_line,
    result_line,
)
from ._relay import Relay
from ._running import Parked
from ._subscriptions import CHANGES, Subscriptions
from ._tasks import STATUS, Tasks
from ._upstream import Upstream

_MOST_TELLING = 1_000
"""Notifications of the client that wait for servers to read them; more are dropped."""


class Session:
    """One client, its servers, and all that goes between them.

    Args:
        proxy: What all sessions share.
        opening: How the client introduced itself; so it is introduced to servers.
        outlet: Where the client listens outside its requests.
        identity: Who it is.
    """

    def __init__(
        self, proxy: Proxy, *, opening: Opening, outlet: Outlet, identity: Identity
    ) -> None:
        self._proxy = proxy
        self._opening = opening
        self._client = Client(outlet)
        self._parked = Parked(key=identity.key)
        self._relay = Relay(opening, self._client, self._parked)
        self._upstreams = [
            Upstream(
                spec,
                opening=opening,
                start=proxy.start,
                listens=self,
                known=proxy.known[spec.name],
            )
            for spec in proxy.specs
        ]
        tasks = Tasks(proxy.log)
        self._subscriptions = Subscriptions(opening, self._client, self._upstreams, tasks)
        self._answers = Answers(
            proxy,
            opening=opening,
            identity=identity,
            upstreams=self._upstreams,
            relay=self._relay,
            subscriptions=self._subscriptions,
            tasks=tasks,
        )
        self._tasks: dict[RequestId, asyncio.Task[bytes]] = {}
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def opening(self) -> Opening:
        """How the client introduced itself."""
        return self._opening

    @property
    def is_waiting(self) -> bool:
        """Whether a call waits for an answer of the client."""
        return len(self._parked) > 0

    def answer(self, request: Message, outlet: Outlet) -> "asyncio.Task[bytes]":
        """Return the task whose result is the response to a request, as a line.

        It is cancelled where the client cancels the request.

        Args:
            request: Of the client.
            outlet: Where goes what belongs to the request.
        """
        id_ = cast("RequestId", request.id)
        call = Call(id_, cast("str", request.method), request.params or {}, outlet)
        task = asyncio.create_task(self._line(call))
        # Before it runs, as the very next message may cancel it.
        self._tasks[id_] = task
        task.add_done_callback(lambda _: self._forget(id_, task))
        return task

    def _forget(self, id_: RequestId, task: "asyncio.Task[bytes]") -> None:
        if self._tasks.get(id_) is task:  # else the client has used the id again
            del self._tasks[id_]

    async def _line(self, call: Call) -> bytes:
        id_ = call.id
        try:
            reply = await self._answers.reply(call)
        except RpcError as error:
            return error_line(id_, error)
        except ServerDownError as error:
            return error_line(id_, RpcError(SERVER_GONE, str(error)))
        except CoatcheckError as error:
            return error_line(id_, RpcError(INVALID_PARAMS, f"{error} {error.hint}".strip()))
        except Exception as error:  # noqa: BLE001 - one request may fail, the proxy may not
            self._proxy.log(f"{call.method} failed: {type(error).__name__}: {error}")
            return error_line(id_, RpcError(INTERNAL_ERROR, "The proxy failed on this request."))
        return result_line(id_, reply.result, reply.raw)

    async def hear(self, method: str, params: Json) -> None:
        """Take a notification of the client."""
        if method == "notifications/initialized":
            self._client.is_initialized.set()
            await self._subscriptions.refresh()
        elif method == "notifications/cancelled":
            id_ = as_id(params.get("requestId"))
            task = None if id_ is None else self._tasks.get(id_)
            if task is not None:
                task.cancel()
        elif method == "notifications/progress":
            await self._client.progressed(params)
        else:
            for upstream in self._upstreams:
                # No modern server is told of roots: it asks for them each time.
                if upstream.facts is not None and upstream.facts.era == self._opening.era:
                    self._tell(upstream, method, params)

    def _tell(self, upstream: Upstream, method: str, params: Json) -> None:
        """Notify a server, without waiting: one that reads nothing holds up no other."""
        if len(self._telling) < _MOST_TELLING:
            task = asyncio.create_task(upstream.notify(method, params or None))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def settle(self, response: Message) -> None:
        """Take an answer of the client to a server's request."""
        self._client.settle(response)

    def hear_no_more(self) -> None:
        """Take note that the client sends nothing more, though it may still read.

        What waits for its answers, or tells it of changes for as long as it listens, is over.
        """
        self._client.close()
        self._subscriptions.end()

    async def close(self) -> None:
        """End the servers, and whatever waits for them or for the client."""
        for task in [*self._tasks.values(), *self._telling]:
            task.cancel()
        self._client.close()
        self._parked.close()
        await self._subscriptions.close()
        await asyncio.gather(*(upstream.close() for upstream in self._upstreams))

    async def heard(self, upstream: Upstream, method: str, params: Json) -> None:
        """Take a notification of a server."""
        if method in CHANGES:
            await self._subscriptions.changed(method, params)
        elif method == STATUS:
            await self._answers.tell_of_task(upstream, params)
        elif self._opening.era == "handshake":
            await self._client.tell(method, params, self._relay.carrier(upstream))
        elif method == "notifications/message":
            reader = self._relay.log_reader(upstream, params.get("level"))
            if reader is not None:
                await reader.tell(method, params)
        elif upstream.facts is not None and upstream.facts.era == "modern":
            await self._client.tell(method, params, self._relay.carrier(upstream))

    async def asked(self, upstream: Upstream, method: str, params: Json) -> Json:
        """Return the client's answer to a request of a server."""
        return await self._relay.asked(upstream, method, params)

    async def came_up(self, upstream: Upstream, *, is_first: bool) -> None:
        """Take note that a server is there."""
        await self._subscriptions.restore(upstream)
        # What it lists now may be something else, or was not listed at all.
        if self._answers.catalog.was_missing(upstream) or not is_first:
            await self._subscriptions.changed("notifications/tools/list_changed", {})
