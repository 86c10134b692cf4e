"""Requests of a client to its servers, and theirs to it, whatever era each is of."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from ._call import Call, Outlet
from ._client import Client
from ._eras import (
    ASKING_METHODS,
    ASKS,
    MODERN_FIELDS,
    Era,
    Opening,
    added_for_modern,
    error_for,
    input_required,
    questions_of,
    reaches,
    result_for,
    urls_asked,
)
from ._exchange import Reply
from ._messages import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError, encode
from ._running import Parked, Running
from ._upstream import Upstream

_MOST_ROUNDS = 16
"""Questions after questions, of one call of a modern server."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_VISIT = "visit"
"""State of a call that is simply made again, once the client has visited an address."""


class Relay:
    """Passes requests of one client on, and lets its servers ask it.

    Args:
        opening: How the client introduced itself.
        client: Its side of the handshake era.
        parked: Where calls wait for answers of a client of the modern era.
    """

    def __init__(self, opening: Opening, client: Client, parked: Parked) -> None:
        self._opening = opening
        self._client = client
        self._parked = parked
        self._calls: dict[str, list[Call]] = {}
        self._running: dict[str, list[Running]] = {}

    async def request(self, call: Call, upstream: Upstream, params: Json) -> Reply:
        """Return the result of a client's request, in the era of the client.

        Args:
            call: The request.
            upstream: The server it is for.
            params: What the server is to be given; as in the request, but for its own names.

        Raises:
            RpcError: The server answered with an error.
            ServerDownError: It is not there, or ended before it answered.
        """
        facts = await upstream.ready()
        with self._in_flight(upstream, call):
            try:
                reply = await self._reply(call, upstream, facts.era, params)
            except RpcError as error:
                urls = urls_asked(error) if facts.era != self._opening.era else None
                if urls is None or self._opening.era == "handshake":
                    raise error_for(self._opening.era, error) from error
                return Reply(input_required(urls, _VISIT))
        return reply

    async def asked(self, upstream: Upstream, method: str, params: Json) -> Json:
        """Return the client's answer to a server's request.

        Raises:
            RpcError: It has none, or cannot be asked now.
        """
        if self._opening.era == "handshake":
            outlet = self.carrier(upstream)
            return await self._client.ask(method, params, outlet=outlet, upstream=upstream)
        running = self._running.get(upstream.name)
        # What a client did not say it can be asked, it is not asked.
        if ASKS.get(method) not in self._opening.capabilities or not running:
            raise RpcError(METHOD_NOT_FOUND, "The client can be asked only while it calls.")
        # A server's request names no call, so any that is under way may carry it.
        return await running[-1].ask(method, params)

    def carrier(self, upstream: Upstream) -> Outlet | None:
        """Return where what a server says belongs: the latest request to it, if there is any."""
        calls = self._calls.get(upstream.name)
        return calls[-1].outlet if calls else None

    def log_reader(self, upstream: Upstream, level: object) -> Call | None:
        """Return a request whose client wants a server's log message, in the modern era."""
        calls = self._calls.get(upstream.name, [])
        return next((call for call in reversed(calls) if reaches(level, call.level)), None)

    @contextmanager
    def _in_flight(self, upstream: Upstream, call: Call) -> Generator[None]:
        calls = self._calls.setdefault(upstream.name, [])
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)

    async def _reply(self, call: Call, upstream: Upstream, era: Era, params: Json) -> Reply:
        if era == "handshake" and self._opening.era == "modern":
            await self._raise_level(call, upstream)
        if era == self._opening.era:
            return await self._ask(call, upstream, params)
        if call.method not in ASKING_METHODS:
            reply = await self._ask(call, upstream, params)
        elif era == "modern":
            reply = await self._in_rounds(call, upstream, params)
        else:
            return await self._parkable(call, upstream, params)
        return self._in_era_of_client(reply, era, call.method)

    async def _raise_level(self, call: Call, upstream: Upstream) -> None:
        """Have a server of the handshake era send what a modern request wants to see logged.

        There it is set for all requests at once, so the most verbose one decides.
        """
        level = call.level
        if level is None or (upstream.level is not None and reaches(level, upstream.level)):
            return
        facts = await upstream.ready()
        if "logging" in facts.capabilities:
            upstream.level = level
            await upstream.request("logging/setLevel", {"level": level})

    async def _ask(self, call: Call, upstream: Upstream, params: Json) -> Reply:
        progress = call.tell_progress if call.wants_progress else None
        return await upstream.request(call.method, params, progress=progress)

    async def _in_rounds(self, call: Call, upstream: Upstream, params: Json) -> Reply:
        """Answer a modern server's questions, as the client's era lets a server ask itself."""
        pause = _FIRST_PAUSE_SECONDS
        sent = params
        for _ in range(_MOST_ROUNDS):
            reply = await self._ask(call, upstream, sent)
            questions = questions_of(reply.result)
            if questions is None:
                return reply
            sent = dict(params)
            if questions:
                answers = await asyncio.gather(
                    *(self._put_question(call, each) for each in questions.values())
                )
                sent["inputResponses"] = dict(zip(questions, answers, strict=True))
            else:  # it wants to be asked again later
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            if "requestState" in reply.result:
                sent["requestState"] = reply.result["requestState"]
        raise RpcError(INTERNAL_ERROR, f"The server asked {_MOST_ROUNDS} times, and was not done.")

    async def _put_question(self, call: Call, question: object) -> Json:
        fields = cast("Json", question) if isinstance(question, dict) else {}
        method, params = fields.get("method"), fields.get("params")
        if not isinstance(method, str) or method not in ASKS:
            raise RpcError(INTERNAL_ERROR, "The server asked what no client is asked.")
        own = cast("Json", params) if isinstance(params, dict) else {}
        return await self._client.ask(method, own, outlet=call.outlet)

    async def _parkable(self, call: Call, upstream: Upstream, params: Json) -> Reply:
        """Make a call whose questions become results, or go on with one of before."""
        state = call.params.get("requestState")
        running = self._parked.take(state)
        if running is not None:
            running.call = call
            running.take_answers(call.params.get("inputResponses"))
        elif state is not None and state != _VISIT:
            raise RpcError(INVALID_PARAMS, "The call is no longer waiting for an answer.")
        else:
            running = self._run(call, upstream, params)
        outcome = await running.next()
        if isinstance(outcome, Reply):
            return self._in_era_of_client(outcome, "handshake", call.method)
        return Reply(self._parked.park(running, outcome))

    def _run(self, call: Call, upstream: Upstream, params: Json) -> Running:
        async def tell_progress(params: Json) -> None:
            await running.call.tell_progress(params)

        async def request() -> Reply:
            among = self._running.setdefault(upstream.name, [])
            among.append(running)
            try:
                progress = tell_progress if call.wants_progress else None
                return await upstream.request(call.method, params, progress=progress)
            finally:
                among.remove(running)

        running = Running(request(), call)
        return running

    def _in_era_of_client(self, reply: Reply, era: Era, method: str) -> Reply:
        own = self._opening.era
        result = result_for(own, era, method, reply.result)
        raw = reply.raw
        if own == "handshake" or raw is None or not reply.result.keys().isdisjoint(MODERN_FIELDS):
            return Reply(result, size_bytes=reply.size_bytes)
        rest = raw[1:].lstrip()
        # What the server sent stays as it is, to the last digit.
        between = b"" if rest == b"}" else b","
        return Reply(
            result, encode(added_for_modern(method))[:-1] + between + rest, reply.size_bytes
        )
