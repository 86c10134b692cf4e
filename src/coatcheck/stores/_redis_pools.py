"""Connections to one Redis server: a pool for each event loop, time-outs, retries, plain reasons.

Imported by its own name, as asyncio and redis take long to import.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from ..errors import StoreUnavailableError
from ._redis_commands import Command
from ._redis_line import Connect, Line, LostError, connector

T = TypeVar("T")

_MOST_CONNECTIONS = 64
"""In one pool. Who needs one more waits for one of them."""
_ANSWER_SECONDS = 2.0
_QUICK_SECONDS = 1.0
"""How long an answer is waited for, and for how long in doubt."""
_DOUBT_SECONDS = 5.0
"""How long after an outage was told all calls get one quick try, as several may follow it."""
_PAUSES_SECONDS = (0.05, 0.4)
_MOST_SILENCES = 2
_LOOK_SECONDS = 0.005
_PLACE_SECONDS = 5.0
"""How long a place in the pool is waited for while nobody else gets an answer."""


class Exchange(Protocol):
    """Sends commands over one connection, all at once, and returns what each was answered."""

    async def __call__(self, *commands: Command) -> list[Any]:
        """Raise `StoreUnavailableError` where one is an error, but for `WRONG_TYPE`."""
        ...


Talk: TypeAlias = Callable[[Exchange, bool], Awaitable[T]]
"""Exchanges over one connection, with whether an earlier try may already have done the work."""


class Pools:
    """The connections of one store, for any number of threads and event loops at once.

    A pool is made where a loop first needs one, and closed when that loop ends. A call is tried
    anew after a lost connection and after a first silence, within some 6 seconds in all.

    Args:
        url: Of the server.

    Raises:
        ValueError: It is no such URL.
    """

    def __init__(self, url: str) -> None:
        self._connect = connector(url)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()
        self._lock = Lock()
        self._is_closed = False
        self._doubt_until = 0.0

    async def ask(self, *commands: Command) -> list[Any]:
        """Return what each command was answered. Raises as `talk`."""
        return await self.talk(lambda exchange, _: exchange(*commands))

    async def talk(self, work: Talk[T]) -> T:
        """Return what `work` returns over some connection; it may be called more than once.

        Raises:
            StoreUnavailableError: The server is out of reach, did not answer in time, or refused.
        """
        pool = await self._pool()
        await pool.enter()
        try:
            return await self._talk(pool, work)
        finally:
            pool.leave()

    async def close(self) -> None:
        """Close every connection, once what goes on over it has ended. Nothing works afterwards."""
        with self._lock:
            self._is_closed = True
            pools = dict(self._pools)
            self._pools.clear()
        here = asyncio.get_running_loop()
        for loop, pool in pools.items():
            if loop is here:
                await pool.close()
            elif not loop.is_running():
                pool.abort()
            else:
                elsewhere = asyncio.run_coroutine_threadsafe(pool.close(), loop)
                with suppress(TimeoutError, asyncio.CancelledError):  # that loop ended meanwhile
                    await asyncio.wait_for(asyncio.wrap_future(elsewhere), _ANSWER_SECONDS * 2)

    async def _pool(self) -> "_Pool":
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None and not self._is_closed:
            return pool
        with self._lock:
            if self._is_closed:
                raise StoreUnavailableError("the store is closed")
            for other, left in list(self._pools.items()):
                if other.is_closed():  # by force: else its pool would have been closed before it
                    del self._pools[other]
                    left.abort()
            pool = self._pools[loop] = _Pool(self._connect)
        await pool.open()
        return pool

    async def _talk(self, pool: "_Pool", work: Talk[T]) -> T:
        in_doubt = time.monotonic() < self._doubt_until
        seconds = _QUICK_SECONDS if in_doubt else _ANSWER_SECONDS
        pauses = iter(() if in_doubt else _PAUSES_SECONDS)
        silences = 0
        is_retry = is_sent = False
        while True:
            is_known = bool(pool.idle)
            try:
                done = await pool.use(partial(_over, work, seconds, is_retry))
            except LostError as lost:
                is_retry = True
                is_sent = is_sent or lost.is_sent
                if is_known and not lost.is_silence:
                    # It was lost while nobody used it, as all of them are when a server restarts.
                    pool.drop()
                    continue
                silences += lost.is_silence
                pause = None if lost.is_final or silences == _MOST_SILENCES else next(pauses, None)
                if pause is None:
                    if not in_doubt:
                        self._doubt_until = time.monotonic() + _DOUBT_SECONDS
                    raise StoreUnavailableError(str(lost), unsettled=is_sent) from lost.__cause__
                await asyncio.sleep(pause)
            except StoreUnavailableError as error:
                # What this try was refused, an earlier one may have done.
                error.unsettled = error.unsettled or is_sent
                raise
            else:
                self._doubt_until = 0.0
                return done


async def _over(work: Talk[T], seconds: float, is_retry: bool, line: Line) -> T:  # noqa: FBT001
    return await work(partial(line.exchange, seconds), is_retry)


class _Pool:
    """The connections of one event loop, used on that loop only."""

    def __init__(self, connect: Connect) -> None:
        self.idle: list[Line] = []
        self._connect = connect
        self._places = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._used: set[Line] = set()
        self._is_closed = False
        self._answered_at = 0.0
        self._end: AsyncGenerator[None, None] | None = None

    async def open(self) -> None:
        """See to it that the pool is closed with its loop: `asyncio.run` ends all generators."""
        self._end = self._until_the_end()
        await anext(self._end)

    async def _until_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.close()

    async def enter(self) -> None:
        """Wait for one of the places, while others get answers.

        Raises:
            StoreUnavailableError: None became free, and none will.
        """
        if not self._places.locked():
            await self._places.acquire()
            return
        began_at = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(_QUICK_SECONDS):
                    await self._places.acquire()
            except TimeoutError:
                if time.monotonic() - max(self._answered_at, began_at) > _PLACE_SECONDS:
                    raise StoreUnavailableError("all connections wait for the server") from None
            else:
                return

    def leave(self) -> None:
        """Give the place to who waits for one."""
        self._places.release()

    async def use(self, work: Callable[[Line], Awaitable[T]]) -> T:
        """Return what `work` returns over an idle connection, or a new one.

        Raises:
            LostError: There is no connection, or not any more.
        """
        line = self.idle.pop() if self.idle else Line()
        self._used.add(line)
        try:
            await line.open(self._connect)
            done = await work(line)
        except BaseException:
            line.abort()  # What is still to be read from it belongs to nobody.
            raise
        finally:
            self._used.discard(line)
        self._answered_at = time.monotonic()
        if self._is_closed:
            await line.close()
        else:
            self.idle.append(line)
        return done

    def drop(self) -> None:
        """Let go of the idle connections at once."""
        while self.idle:
            self.idle.pop().abort()

    def abort(self) -> None:
        """Let go of all connections at once. The loop does not run."""
        self._is_closed = True
        self.drop()
        for line in self._used:
            line.abort()

    async def close(self) -> None:
        """Close all connections, those in use once they are not, or after a while."""
        self._is_closed = True
        while self.idle:
            await self.idle.pop().close()
        deadline = time.monotonic() + _ANSWER_SECONDS
        while self._used and time.monotonic() < deadline:  # noqa: ASYNC110 - seldom, and short
            await asyncio.sleep(_LOOK_SECONDS)
        for line in self._used:
            line.abort()
