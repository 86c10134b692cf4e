"""One server as one client sees it: kept running, introduced, and asked."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, cast

from ._channel import Channel, ExpiredError, ServerDownError
from ._config import UpstreamSpec
from ._eras import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
    SERVER_KEY,
    UNSUPPORTED_VERSION,
    Era,
    Opening,
    meta_of,
    params_for,
)
from ._exchange import Exchange, Progress, Reply
from ._messages import METHOD_NOT_FOUND, Json, RpcError

DISCOVER_SECONDS = 10.0
"""After which a server that does not answer `server/discover` is taken for one of the handshake
era: that need not answer before `initialize`."""
_OPENING_SECONDS = 60.0
_STEADY_SECONDS = 10.0
"""A server that was up for so long is restarted at once when it ends."""
_LONGEST_PAUSE_SECONDS = 60.0

StartChannel = Callable[[UpstreamSpec], Awaitable[Channel]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How a server introduced itself."""

    era: Era
    version: str
    capabilities: Json
    server: Json
    instructions: str | None


@dataclass(slots=True)
class Known:
    """What is known of a server from before: it saves trying, and outlives its restarts."""

    only: Era | None = None
    """The era that it speaks, where it was seen to refuse the other."""


class Listens(Protocol):
    """Whose server it is: takes what the server says without being asked."""

    async def heard(self, upstream: "Upstream", method: str, params: Json) -> None:
        """Take a notification. Must not raise."""
        ...

    async def asked(self, upstream: "Upstream", method: str, params: Json) -> Json:
        """Return the client's answer to a request of the server.

        Raises:
            RpcError: It has none.
        """
        ...

    async def came_up(self, upstream: "Upstream", *, is_first: bool) -> None:
        """Take note that the server is there, for the first time or again. Must not raise."""
        ...


class Upstream:
    """One server behind the proxy, for one client. Started when first needed.

    It is introduced to the client exactly as the client introduced itself. When it ends, whoever
    waits for it gets a `ServerDownError`, and it is started again: at once where it had been up
    for a while, else after a pause that doubles.

    Args:
        spec: Which server it is.
        opening: How the client introduced itself.
        start: Returns a channel to the server, or raises `ServerDownError`.
        listens: Takes what the server says.
        known: What is known of it from before.
        clock: Seconds, from anywhere.
        discover_seconds: How long it may take to say whether it is of the modern era.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        *,
        opening: Opening,
        start: StartChannel,
        listens: Listens,
        known: Known,
        clock: Callable[[], float] = time.monotonic,
        discover_seconds: float = DISCOVER_SECONDS,
    ) -> None:
        self.spec = spec
        self.level: str | None = None
        """From which severity on the client wants log messages, once it said so."""
        self._opening = opening
        self._start = start
        self._listens = listens
        self._known = known
        self._clock = clock
        self._discover_seconds = discover_seconds
        self._exchange: Exchange | None = None
        self._facts: asyncio.Future[Facts] | None = None
        self._expected_since = 0.0
        self._running: asyncio.Task[None] | None = None
        self._was_up = False
        self._up_since: float | None = None

    @property
    def name(self) -> str:
        """As its configuration has it."""
        return self.spec.name

    @property
    def facts(self) -> Facts | None:
        """How it introduced itself; None while it is not there."""
        facts = self._facts
        if facts is None or not facts.done() or facts.exception() is not None:
            return None
        return facts.result()

    async def ready(self, within_seconds: float | None = None) -> Facts:
        """Return how the server introduced itself; start it where that has not been done.

        Args:
            within_seconds: How long its start may take in all, whoever waits for it.

        Raises:
            ServerDownError: It did not start, or not in time, or has ended and is not back yet.
        """
        if self._running is None:
            self._expect()
            self._running = asyncio.create_task(self._run())
        if self._exchange is not None and self._exchange.is_over and self.facts is not None:
            # It has ended just now. Nothing is sent to it any more: who asks waits for the next.
            self._expect()
        facts = cast("asyncio.Future[Facts]", self._facts)
        if facts.done():
            return facts.result()
        until = None if within_seconds is None else self._expected_since + within_seconds
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(facts)
        except TimeoutError:
            raise ServerDownError(f"Server {self.name!r} is still starting.") from None

    async def request(
        self, method: str, params: Json | None, *, progress: Progress | None = None
    ) -> Reply:
        """Return the result of a request; when cancelled, it is cancelled at the server too.

        Args:
            method: What is asked for.
            params: As the client sent them.
            progress: Takes the parameters of each progress notification.

        Raises:
            RpcError: The server answered with an error.
            ServerDownError: It is not there, or ended before it answered.
        """
        try:
            return await self._ask(method, params, progress)
        except ExpiredError:
            return await self._ask(method, params, progress)

    async def _ask(self, method: str, params: Json | None, progress: Progress | None) -> Reply:
        facts = await self.ready()
        own = params_for(facts.era, params, self._opening, self.level)
        try:
            return await cast("Exchange", self._exchange).ask(method, own, progress=progress)
        except ServerDownError as error:
            if isinstance(error, ExpiredError):
                raise
            raise ServerDownError(f"Server {self.name!r} did not answer: {error}.") from error

    async def notify(self, method: str, params: Json | None) -> None:
        """Send a notification, where the server is there."""
        if self._exchange is not None and self.facts is not None:
            await self._exchange.notify(method, params)

    async def close(self) -> None:
        """End the server."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        facts = self._facts
        if facts is not None and not facts.done():
            facts.set_exception(ServerDownError(f"Server {self.name!r} was left."))
            facts.exception()  # that nobody waits for it is no fault

    async def _run(self) -> None:
        """Keep the server running."""
        failures = 0
        while True:
            self._up_since, known = None, self._known.only
            reason = await self._run_once()
            since = self._up_since
            if since is not None and self._clock() - since >= _STEADY_SECONDS:
                failures = 0
            failures += 1
            # Some end where they are asked what they do not know: then it is another question.
            again_at_once = (failures == 1 and since is not None) or self._known.only != known
            pause = 0.0 if again_at_once else pause_seconds(failures)
            await self._stay_down(reason, pause, was_up=since is not None)

    async def _stay_down(self, reason: str, pause: float, *, was_up: bool) -> None:
        facts = cast("asyncio.Future[Facts]", self._facts)
        if pause:
            what = "ended" if was_up else "did not start"
            error = ServerDownError(
                f"Server {self.name!r} {what}: {reason}. "
                f"It is tried again within {pause:g} seconds."
            )
            if facts.done():
                facts = self._expect()
            facts.set_exception(error)
            facts.exception()  # whoever asks gets it; that nobody does is no fault
            await asyncio.sleep(pause)
        if facts.done():
            self._expect()

    def _expect(self) -> "asyncio.Future[Facts]":
        """Let who asks for the server from now on wait for its next introduction."""
        loop = asyncio.get_running_loop()
        self._facts, self._expected_since = loop.create_future(), loop.time()
        return self._facts

    async def _run_once(self) -> str:
        """Start the server, and read what it sends until it ends. Return why it ended."""
        try:
            channel = await self._start(self.spec)
        except ServerDownError as error:
            return str(error)
        exchange = Exchange(channel, self)
        reading = asyncio.create_task(exchange.run())
        try:
            facts = await self._introduce(exchange)
            self._exchange = exchange
            cast("asyncio.Future[Facts]", self._facts).set_result(facts)
            await self._listens.came_up(self, is_first=not self._was_up)
            self._was_up, self._up_since = True, self._clock()
            await reading
        except ServerDownError as error:
            return str(error)
        except RpcError as error:
            return f"it refused the connection: {error.message}"
        except TimeoutError:
            return f"it did not answer within {_OPENING_SECONDS:g} seconds"
        except Exception as error:  # noqa: BLE001 - a server may surprise us, and is started anew
            return f"the proxy failed on it: {type(error).__name__}: {error}"
        else:
            return channel.ended
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            await channel.close()

    async def heard(self, method: str, params: Json) -> None:
        """Take a notification of the server."""
        await self._listens.heard(self, method, params)

    async def asked(self, method: str, params: Json) -> Json:
        """Return the client's answer to a request of the server."""
        return await self._listens.asked(self, method, params)

    async def _introduce(self, exchange: Exchange) -> Facts:
        """Introduce the client to the server, in the client's own era where both know it."""
        if (self._known.only or self._opening.era) == "modern":
            found = await self._discover(exchange)
            if found is not None:
                return found
        try:
            facts = await self._initialize(exchange)
        except RpcError as error:
            # Of the modern era alone; or it was asked so before, and slow to answer.
            if error.code != UNSUPPORTED_VERSION:
                raise
            found = await self._discover(exchange)
            if found is None:
                raise
            self._known.only = "modern"
            return found
        if self._opening.era == "modern":
            self._known.only = "handshake"
        return facts

    async def _discover(self, exchange: Exchange) -> Facts | None:
        """Return how a server of the modern era introduces itself, None where it is of the other.

        Raises:
            ServerDownError: It ended; the next time it is taken for one of the handshake era.
        """
        params: Json = {"_meta": self._opening.envelope()}
        try:
            async with asyncio.timeout(self._discover_seconds):
                result = (await exchange.ask("server/discover", params)).result
        except (RpcError, TimeoutError):
            return None
        except ServerDownError:
            if exchange.is_over:
                self._known.only = "handshake"
            raise
        versions = result.get("supportedVersions")
        known = [
            each for each in MODERN_VERSIONS if isinstance(versions, list) and each in versions
        ]
        if not known:
            return None
        return Facts(
            era="modern",
            version=known[-1],
            capabilities=_object(result.get("capabilities")),
            server=_object(meta_of(result).get(SERVER_KEY)),
            instructions=_text(result.get("instructions")),
        )

    async def _initialize(self, exchange: Exchange) -> Facts:
        async with asyncio.timeout(_OPENING_SECONDS):
            result = (await exchange.ask("initialize", self._opening.handshake())).result
        version = result.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            raise RpcError(METHOD_NOT_FOUND, f"it speaks version {version!r}, which is unknown")
        await exchange.notify("notifications/initialized", None)
        return Facts(
            era="handshake",
            version=version,
            capabilities=_object(result.get("capabilities")),
            server=_object(result.get("serverInfo")),
            instructions=_text(result.get("instructions")),
        )


def pause_seconds(failures: int) -> float:
    """Return how long a server that failed so often in a row is left alone.

    >>> [pause_seconds(failures) for failures in (1, 2, 6, 7, 10_000)]
    [1.0, 2.0, 32.0, 60.0, 60.0]
    """
    doublings = min(failures - 1, 10)  # a power of any number of failures is no float
    return min(2.0**doublings, _LONGEST_PAUSE_SECONDS)


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
