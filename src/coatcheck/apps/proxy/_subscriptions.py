"""What a client wants to hear of, and how each of its servers is told so."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from ._call import Call
from ._channel import ServerDownError
from ._client import Client
from ._eras import SUBSCRIPTION_KEY, Opening, meta_of
from ._exchange import Reply
from ._messages import INVALID_PARAMS, Json, RpcError
from ._tasks import EXTENSION, Tasks
from ._upstream import Upstream

_UPDATED = "notifications/resources/updated"
_FLAGS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
CHANGES = frozenset({*_FLAGS, _UPDATED, "notifications/subscriptions/acknowledged"})
_URIS = "resourceSubscriptions"
_TASK_IDS = "taskIds"
_AGAIN_SECONDS = 1.0
"""After which a server that has ended its stream is asked for another."""


@dataclass(slots=True, eq=False)
class _Listener:
    call: Call
    wanted: Json


class Subscriptions:
    """What one client wants to hear of its servers.

    A client of the handshake era hears all changes of lists, and names resources one by one. One
    of the modern era names all of it in a request that stays open.
    """

    def __init__(
        self, opening: Opening, client: Client, upstreams: Sequence[Upstream], tasks: Tasks
    ) -> None:
        self._opening = opening
        self._tasks = tasks
        self._client = client
        self._upstreams = upstreams
        self._listeners: list[_Listener] = []
        self._uris: set[str] = set()
        """Of a client of the handshake era."""
        self._told: dict[str, set[str]] = {}
        """The resources that each server of the handshake era was told of."""
        self._streams: dict[str, tuple[Json, asyncio.Task[None]]] = {}
        self._is_over = asyncio.Event()

    async def listen(self, call: Call) -> Reply:
        """Send what a client of the modern era wants to hear of, until it cancels that, or `end`.

        Raises:
            RpcError: It does not say what.
        """
        asked = call.params.get("notifications")
        if not isinstance(asked, dict):
            raise RpcError(INVALID_PARAMS, "notifications says what the client wants to hear of.")
        wanted = _wanted(cast("Json", asked))
        listener = _Listener(call, wanted)
        own: Json = {SUBSCRIPTION_KEY: call.id}
        acknowledged: Json = {"notifications": wanted, "_meta": own}
        await call.tell("notifications/subscriptions/acknowledged", acknowledged)
        self._listeners.append(listener)
        try:
            await self.refresh()
            await self._is_over.wait()
        finally:
            self._listeners.remove(listener)
            await self.refresh()
        return Reply({"resultType": "complete", "_meta": own})

    async def subscribe(self, call: Call, at_server: Callable[[], Awaitable[Reply]]) -> Reply:
        """Take or drop the wish of a client of the handshake era to hear of a resource.

        Args:
            call: Its request.
            at_server: Makes the same request at a server of the handshake era.
        """
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "uri is the address of a resource.")
        eras = {each.facts.era for each in self._upstreams if each.facts is not None}
        reply = await at_server() if "handshake" in eras else Reply({})
        if call.method == "resources/subscribe":
            self._uris.add(uri)
        else:
            self._uris.discard(uri)
        await self.refresh()
        return reply

    async def changed(self, method: str, params: Json) -> None:
        """Tell the client of a change at a server, where it wants to hear of it."""
        if method not in _FLAGS and method != _UPDATED:
            return
        meta = {key: value for key, value in meta_of(params).items() if key != SUBSCRIPTION_KEY}
        plain = {key: value for key, value in params.items() if key != "_meta"}
        if self._opening.era == "handshake":
            await self._client.tell(method, plain | ({"_meta": meta} if meta else {}))
            return
        for listener in list(self._listeners):
            if _is_wanted(listener.wanted, method):
                own = {**meta, SUBSCRIPTION_KEY: listener.call.id}
                await listener.call.tell(method, {**plain, "_meta": own})

    def of_task(self, task_id: object, params: Json) -> Iterator[tuple[Call, Json]]:
        """Yield the requests that listen to a task, each with what it is to be told."""
        for listener in list(self._listeners):
            if task_id in _texts(listener.wanted, _TASK_IDS):
                own = {**meta_of(params), SUBSCRIPTION_KEY: listener.call.id}
                yield listener.call, {**params, "_meta": own}

    async def refresh(self) -> None:
        """Let each server that is there know what the client wants to hear of now."""
        for upstream in self._upstreams:
            facts = upstream.facts
            if facts is None:
                continue
            if facts.era == "modern":
                self._stream(upstream)
            elif self._opening.era == "modern":
                await self._tell(upstream)

    async def restore(self, upstream: Upstream) -> None:
        """Let a server that has just come up know all that the client wants."""
        self._told.pop(upstream.name, None)
        facts = upstream.facts
        if facts is None:
            return
        if facts.era == "modern":
            self._stream(upstream)
            return
        if upstream.level is not None and "logging" in facts.capabilities:
            with suppress(RpcError, ServerDownError):
                await upstream.request("logging/setLevel", {"level": upstream.level})
        await self._tell(upstream)

    def end(self) -> None:
        """Answer all that listens."""
        self._is_over.set()

    async def close(self) -> None:
        """Hear nothing more."""
        tasks = [task for _, task in self._streams.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _tell(self, upstream: Upstream) -> None:
        """Subscribe at a server of the handshake era to what is wanted, and to nothing else."""
        wanted = self._uris | {
            uri for each in self._listeners for uri in _texts(each.wanted, _URIS)
        }
        told = self._told.setdefault(upstream.name, set())
        for uri in sorted(wanted ^ told):
            method = "resources/subscribe" if uri in wanted else "resources/unsubscribe"
            (told.add if uri in wanted else told.discard)(uri)
            with suppress(RpcError, ServerDownError):  # it may be another server's
                await upstream.request(method, {"uri": uri})

    def _stream(self, upstream: Upstream) -> None:
        """Keep one request open at a modern server, for what is wanted now."""
        wanted = self._wanted_of(upstream)
        before = self._streams.get(upstream.name)
        if before is not None:
            if before[0] == wanted and not before[1].done():
                return
            before[1].cancel()
            del self._streams[upstream.name]
        if wanted:
            task = asyncio.create_task(self._keep_listening(upstream, wanted))
            self._streams[upstream.name] = (wanted, task)

    def _wanted_of(self, upstream: Upstream) -> Json:
        if self._opening.era == "modern":
            merged: Json = {}
            uris: set[str] = set()
            task_ids: set[str] = set()
            for each in self._listeners:
                merged |= {key: True for key in _FLAGS.values() if each.wanted.get(key)}
                uris |= _texts(each.wanted, _URIS)
                task_ids |= _texts(each.wanted, _TASK_IDS)
            if (
                known := self._tasks.may_know(upstream, sorted(task_ids))
                if _knows_tasks(upstream)
                else []
            ):
                merged[_TASK_IDS] = known
        else:
            can = {} if upstream.facts is None else upstream.facts.capabilities
            merged = {
                flag: True
                for method, flag in _FLAGS.items()
                if isinstance(can.get(kind := method.split("/")[1]), dict)
                and cast("Json", can[kind]).get("listChanged")
            }
            uris = self._uris
        return merged | ({_URIS: sorted(uris)} if uris else {})

    async def _keep_listening(self, upstream: Upstream, wanted: Json) -> None:
        params: Json = {"notifications": wanted, "_meta": self._opening.envelope()}
        while True:
            try:
                await upstream.request("subscriptions/listen", params)
            except RpcError:
                return  # it knows no such thing
            except ServerDownError:
                pass
            await asyncio.sleep(_AGAIN_SECONDS)


def _wanted(asked: Json) -> Json:
    wanted: Json = {flag: True for flag in _FLAGS.values() if asked.get(flag) is True}
    named = {key: sorted(_texts(asked, key)) for key in (_URIS, _TASK_IDS)}
    return wanted | {key: texts for key, texts in named.items() if texts}


def _knows_tasks(upstream: Upstream) -> bool:
    can = {} if upstream.facts is None else upstream.facts.capabilities
    extensions = can.get("extensions")
    return isinstance(extensions, dict) and EXTENSION in extensions


def _texts(wanted: Json, key: str) -> set[str]:
    listed = wanted.get(key)
    if not isinstance(listed, list):
        return set()
    return {uri for uri in cast("list[object]", listed) if isinstance(uri, str)}


def _is_wanted(wanted: Json, method: str) -> bool:
    # A server may name a part of what was asked for.
    return bool(_texts(wanted, _URIS)) if method == _UPDATED else bool(wanted.get(_FLAGS[method]))
