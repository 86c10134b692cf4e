"""How each request of a client is answered: by which server, and what the proxy does to it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from ...errors import CoatcheckError
from ._acts import Acts
from ._call import Call
from ._catalog import KINDS, PROMPTS, TASKS, TEMPLATES, TOOLS, Catalog, Kind, items_of
from ._channel import Log, ServerDownError
from ._client_runs import ClientRuns
from ._config import UpstreamSpec
from ._eras import HEADER_MISMATCH, Opening, result_for
from ._exchange import Reply
from ._greeting import greeting
from ._messages import INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError
from ._relay import Relay
from ._scope import Scope
from ._subscriptions import Subscriptions
from ._tasks import STATUS, Task, Tasks, outcome_of, with_outcome
from ._together import Together
from ._upstream import Facts, Known, StartChannel, Upstream

_LINKS_SINCE = "2025-06-18"
"""The version that brought `resource_link`."""
_MOST_PAGES = 1_000
"""Of lists that are remembered for when their server is not there."""
_OF_RUNS = frozenset({"tools/call", "tasks/get", "tasks/result", "resources/read"})
"""What shows artifacts, or makes them."""
_OF_TASKS = ("tasks/get", "tasks/result", "tasks/update", "tasks/cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """What all sessions of a proxy share."""

    acts: Acts
    specs: tuple[UpstreamSpec, ...]
    prefixed: bool
    start: StartChannel
    log: Log
    known: Mapping[str, Known]
    """Of each server, by name."""
    patience_seconds: float = 15.0
    """How long one of several servers is waited for, where the others can do without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a client is, as far as its transport knows."""

    transport: str = "stdio"
    principal: str | None = None
    session_id: str | None = None
    key: str = field(default="", repr=False)
    """By which the session is found again, in the state of parked calls."""
    runs: ClientRuns | None = field(default=None, repr=False)
    """Keeps what the client was shown; None where nothing would take it away, or nobody can tell
    when the client goes."""


class Answers:
    """Answers the requests of one client.

    Args:
        proxy: What all clients share.
        opening: How the client introduced itself.
        identity: Who it is.
        upstreams: Its servers.
        relay: Passes requests on to them.
        subscriptions: What it wants to hear of.
        tasks: What its calls became.
    """

    def __init__(
        self,
        proxy: Proxy,
        *,
        opening: Opening,
        identity: Identity,
        upstreams: Sequence[Upstream],
        relay: Relay,
        subscriptions: Subscriptions,
        tasks: Tasks,
    ) -> None:
        self._acts = proxy.acts
        self._log = proxy.log
        self._opening = opening
        self._identity = identity
        self._upstreams = upstreams
        self._alone = None if proxy.prefixed else upstreams[0]
        self._relay = relay
        self._subscriptions = subscriptions
        self._pages: dict[tuple[str, str], Json] = {}
        self._tasks = tasks
        self._patience_seconds = proxy.patience_seconds
        self._together = Together(relay, patience_seconds=proxy.patience_seconds)
        self.catalog = Catalog(
            upstreams, proxy.acts, self._ask_for_self, patience_seconds=proxy.patience_seconds
        )
        self._by_method: Mapping[str, Callable[[Call], Awaitable[Reply]]] = {
            "initialize": self._introduce,
            "server/discover": self._introduce,
            "ping": self._pong,
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            **dict.fromkeys(_OF_TASKS, self._of_task),
            TASKS.method: self._list_tasks,
            "subscriptions/listen": subscriptions.listen,
            **dict.fromkeys(KINDS, self._list),
        }

    async def reply(self, call: Call) -> Reply:
        """Return the result of a request.

        Raises:
            RpcError: It is answered with an error.
            ServerDownError: Its server is not there.
            CoatcheckError: What it asks of the proxy itself breaks a rule.
        """
        answer, runs = self._by_method.get(call.method, self._pass_on), self._identity.runs
        is_held = runs is not None and call.method in _OF_RUNS
        with await runs.within(self._scope(call)) if runs and is_held else nullcontext():
            return await answer(call)

    async def _introduce(self, _: Call) -> Reply:
        patience = None if self._alone is not None else self._patience_seconds
        found = await asyncio.gather(
            *(upstream.ready(patience) for upstream in self._upstreams), return_exceptions=True
        )
        facts: dict[str, Facts] = {}
        for upstream, each in zip(self._upstreams, found, strict=True):
            if isinstance(each, Facts):
                facts[upstream.name] = each
            elif not isinstance(each, ServerDownError) or self._alone is not None:
                raise each
            else:
                self._log(str(each))
                self.catalog.miss(upstream)
        return Reply(greeting(self._opening, facts, self._acts.instructions))

    async def _pong(self, _: Call) -> Reply:
        return self._own({})

    async def _list(self, call: Call) -> Reply:
        kind = KINDS[call.method]
        if self._alone is not None:
            return await self._list_of_one(call, kind, self._alone)
        if kind in {TOOLS, PROMPTS}:
            page: Json = {kind.key: await self.catalog.everything(kind)}
            if kind is TOOLS and self.catalog.is_whole:
                self._acts.unmatched.tell(self._log)
        else:
            page = await self.catalog.page(kind, call.params.get("cursor"))
        self._add_own(page, kind)
        return self._own(page, call.method)

    async def _list_of_one(self, call: Call, kind: Kind, upstream: Upstream) -> Reply:
        place = (call.method, str(call.params.get("cursor")))
        try:
            page = await self._page_of_one(call, kind, upstream)
        except ServerDownError:
            # A list that comes and goes with its server would change what a model is told.
            if place not in self._pages:
                raise
            page = self._pages[place]
        else:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            self._pages[place] = page
            is_last, first = page.get("nextCursor") is None, (call.method, str(None))
            if kind is TOOLS and is_last and first in self._pages:
                self._acts.unmatched.tell(self._log)
        return Reply(page)

    async def _page_of_one(self, call: Call, kind: Kind, upstream: Upstream) -> Json:
        facts = await upstream.ready()
        if kind.capability in facts.capabilities or kind is PROMPTS:
            page = dict((await self._relay.request(call, upstream, call.params)).result)
        else:
            page = dict(self._own({kind.key: []}, call.method).result)
        if kind is TOOLS:
            tools = items_of(page, kind)
            page[kind.key] = self._acts.tools(tools, upstream=upstream.name)
        self._add_own(page, kind)
        return page

    def _add_own(self, page: Json, kind: Kind) -> None:
        """Add what the proxy offers itself, behind all else."""
        own = {TOOLS.key: self._acts.own_tools, TEMPLATES.key: self._acts.resource_templates}
        if page.get("nextCursor") is None and kind.key in own:
            listed = cast("list[Json]", page.get(kind.key) or [])
            page[kind.key] = [*listed, *own[kind.key]]

    async def _call_tool(self, call: Call) -> Reply:
        shown, arguments = call.params.get("name"), call.params.get("arguments", {})
        if not isinstance(shown, str):
            raise RpcError(INVALID_PARAMS, "name is the name of a tool.")
        given, scope = _object(arguments), self._scope(call)
        if self._acts.is_own(shown):
            return await self._call_own(call, scope)
        try:
            upstream, tool = await self._owner(TOOLS, shown)
            params = call.params if tool == shown else {**call.params, "name": tool}
            if given:
                resolved = await self._acts.arguments(
                    scope,
                    upstream.name,
                    tool,
                    given,
                    listing=partial(self.catalog.raw_tools, upstream),
                    listed_as=shown,
                )
                if resolved is not given:
                    params = {**params, "arguments": resolved}
            reply = await self._made(call, upstream, params)
        except CoatcheckError as error:
            return self._own(self._acts.failure(error))
        except ServerDownError as error:
            text = {"type": "text", "text": str(error)}
            return self._own({"content": [text], "isError": True})
        made = Task(upstream, tool, shown)
        self._tasks.note(reply.result, made)
        result = await self._shown(call, made, reply.result, given, reply.size_bytes)
        return reply if result is reply.result else Reply(result)

    async def _made(self, call: Call, upstream: Upstream, params: Json) -> Reply:
        try:
            return await self._relay.request(call, upstream, params)
        except RpcError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # Which arguments it wants in headers too stands in its list, which nobody asked for yet.
        await self.catalog.raw_tools(upstream)
        return await self._relay.request(call, upstream, params)

    async def _shown(
        self, call: Call, of: Task, result: Json, given: Json | None, size_bytes: int
    ) -> Json:
        return await self._acts.result(
            self._scope(call),
            of.upstream.name,
            of.tool,
            result,
            given=given,
            listed_as=of.listed_as,
            size_hint=size_bytes or None,
            links=self._opening.version >= _LINKS_SINCE,
        )

    async def _of_task(self, call: Call) -> Reply:
        """Ask the server that a task is of; what came of a call is shown as that of any other."""
        task = self._tasks.find(call.params.get("taskId"))
        if task is not None:
            reply = await self._relay.request(call, task.upstream, call.params)
        else:  # of a client that has come back: whoever knows it
            upstream, reply = await self._together.first(call, self._upstreams, lambda _: True)
            task = Task(upstream, call.method, call.method)
        result = await self._with_outcome(call, task, call.method, reply.result, reply.size_bytes)
        return reply if result is reply.result else Reply(result)

    async def _with_outcome(
        self, call: Call, task: Task, method: str, told: Json, size_bytes: int
    ) -> Json:
        outcome = outcome_of(method, told)
        if outcome is None:
            return told
        shown = await self._shown(call, task, outcome, None, size_bytes)
        return told if shown is outcome else with_outcome(method, told, shown)

    async def _list_tasks(self, call: Call) -> Reply:
        if self._alone is not None:
            return await self._pass_on(call)
        return self._own(await self.catalog.page(TASKS, call.params.get("cursor")), call.method)

    async def tell_of_task(self, upstream: Upstream, params: Json) -> None:
        """Tell those who listen to a task what its server tells of it."""
        task_id = params.get("taskId")
        task = self._tasks.find(task_id) or Task(upstream, STATUS, STATUS)
        if task.upstream is not upstream:
            return  # one of another server's tasks
        for call, own in self._subscriptions.of_task(task_id, params):
            told = await self._with_outcome(call, task, STATUS, own, 0)
            await call.tell(STATUS, told)

    async def _call_own(self, call: Call, scope: Scope) -> Reply:
        further_in = await self._acts.readers_further_in(scope, call.params)
        for upstream in (each for each in self._upstreams if each.name in further_in):
            with suppress(RpcError, ServerDownError):
                reply = await self._relay.request(call, upstream, call.params)
                if reply.result.get("isError") is not True:
                    return reply
        return self._own(await self._acts.call_own(scope, call.params))

    async def _read_resource(self, call: Call) -> Reply:
        uri = call.params.get("uri")
        if isinstance(uri, str):
            own = await self._acts.read_resource(self._scope(call), uri)
            if own is not None:
                return self._own(own, call.method)
        return await self._at_likeliest(call, uri)

    async def _subscribe(self, call: Call) -> Reply:
        return await self._subscriptions.subscribe(
            call, lambda: self._at_likeliest(call, call.params.get("uri"))
        )

    async def _at_likeliest(self, call: Call, uri: object) -> Reply:
        """Ask for a resource where it was seen, then wherever it may be."""
        failed: RpcError | ServerDownError | None = None
        for among in self.catalog.by_address(uri):
            try:
                upstream, reply = await self._together.first(call, among, lambda _: True)
            except (RpcError, ServerDownError) as error:
                failed = failed or error
            else:
                self.catalog.belongs(uri, upstream)
                return reply
        raise failed or RpcError(INVALID_PARAMS, "No server has the resource.")

    async def _get_prompt(self, call: Call) -> Reply:
        shown = call.params.get("name")
        if not isinstance(shown, str):
            raise RpcError(INVALID_PARAMS, "name is the name of a prompt.")
        upstream, name = await self._owner(PROMPTS, shown)
        params = call.params if name == shown else {**call.params, "name": name}
        return await self._relay.request(call, upstream, params)

    async def _complete(self, call: Call) -> Reply:
        reference = _object(call.params.get("ref")) or {}
        if reference.get("type") != "ref/prompt":
            return await self._at_likeliest(call, reference.get("uri"))
        upstream, name = await self._owner(PROMPTS, str(reference.get("name")))
        return await self._relay.request(
            call, upstream, {**call.params, "ref": {**reference, "name": name}}
        )

    async def _set_level(self, call: Call) -> Reply:
        level = call.params.get("level")
        among: list[Upstream] = []
        for upstream in self._upstreams:
            upstream.level = level if isinstance(level, str) else None
            facts = upstream.facts
            if facts is not None and facts.era == "handshake" and "logging" in facts.capabilities:
                among.append(upstream)
        await self._together.every(call, among)
        return self._own({})

    async def _pass_on(self, call: Call) -> Reply:
        """Ask for what is unknown here whoever may know it."""
        try:
            _, reply = await self._together.first(
                call, self._upstreams, lambda error: error.code == METHOD_NOT_FOUND
            )
        except ServerDownError as error:
            if self._alone is not None:
                raise
            raise RpcError(METHOD_NOT_FOUND, "Method not found") from error
        return reply

    async def _owner(self, kind: Kind, shown: str) -> tuple[Upstream, str]:
        if self._alone is not None:
            return self._alone, shown
        return await self.catalog.owner(kind, shown)

    def _scope(self, call: Call) -> Scope:
        return self._acts.scope(
            principal=self._identity.principal,
            meta=call.meta,
            session_id=self._identity.session_id,
            transport=self._identity.transport,
        )

    def _own(self, result: Json, method: str = "") -> Reply:
        """Return a result of the proxy's own, which is made as in the handshake era."""
        return Reply(result_for(self._opening.era, "handshake", method, result))

    async def _ask_for_self(self, upstream: Upstream, method: str, params: Json) -> Json:
        """Return the result of a request that no client made."""
        if self._opening.era == "modern":
            params = {**params, "_meta": self._opening.envelope()}
        facts = await upstream.ready()
        result = (await upstream.request(method, params)).result
        return result_for("handshake", facts.era, method, result)


def _object(value: object) -> Json | None:
    return cast("Json", value) if isinstance(value, dict) else None
