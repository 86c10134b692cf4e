"""One connection to a Redis server, made by redis-py: what is sent, answered, and goes wrong.

Imported by its own name, as asyncio and redis take long to import.
"""

import asyncio
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, cast

from redis import exceptions
from redis.asyncio import ConnectionPool

from ..errors import StoreUnavailableError
from ._redis_commands import WRONG_TYPE, Command

_CONNECT_SECONDS = 1.0
_SLOWEST_BYTES_PER_SECOND = 2 * 1024 * 1024
"""What has to come through while no progress is seen, beyond the time for an answer."""
_MOST_UNSEEN_BYTES = 2 * 1024 * 1024
"""How much that may be: of what is sent the system takes some before any is on its way."""
_LOOKS = 8
"""How often a watchdog looks for progress within its time."""
_JOINED_BYTES = 64 * 1024
"""Up to so much is sent by one call of the system; to join more costs more than further calls."""

_NO_ANSWER = "the Redis server does not answer"
_OUT_OF_REACH = "the Redis server is out of reach"
_REFUSED = "the Redis server refuses the user name or password"
_REASONS: Mapping[str, str] = {
    "BUSY": "the Redis server is busy with a script",
    "CLUSTERDOWN": "the Redis cluster is down",
    "CROSSSLOT": "this Redis server is a cluster, which is not supported",
    "LOADING": "the Redis server is still loading",
    "MASTERDOWN": "the Redis server has lost its master",
    "MISCONF": "the Redis server cannot write to its disk",
    "MOVED": "this Redis server is a cluster, which is not supported",
    "NOAUTH": _REFUSED,
    "NOPERM": "the Redis server does not permit this user to do that",
    "OOM": "the Redis server has no memory left",
    "READONLY": "the Redis server can only be read",
    "TRYAGAIN": "the Redis cluster moves its keys",
    "WRONGPASS": _REFUSED,
}
_PASSING = frozenset({"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "TRYAGAIN"})
_CODE = re.compile(r"[A-Z]{2,20}")


class LostError(Exception):
    """There is no connection, or not any more. Its text is the reason, for who reads errors."""

    def __init__(self, reason: str, *, is_silence: bool = False, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_silence = is_silence
        """Whether the server took too long."""
        self.is_final = is_final
        """Whether another try is of no use."""
        self.is_sent = False
        """Whether commands were under way, so that the server may have done them, or yet will."""


class Line:
    """One connection, opened when it is first needed."""

    def __init__(self) -> None:
        self._link: _Link | None = None
        self._watchdog: _Watchdog | None = None

    async def open(self, connect: "Connect") -> None:
        """Connect, where that has not been done yet.

        Raises:
            LostError: It did not work.
            StoreUnavailableError: The server is there, and does not let us in.
        """
        if self._link is not None:
            return
        link = self._link = connect()
        self._watchdog = _Watchdog(link)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await link.connect()
        except exceptions.ResponseError as error:
            _answers([error])
        except _LOST as error:
            raise _lost(error) from error

    async def exchange(self, seconds: float, *commands: Command) -> list[Any]:
        """Send all commands at once, and return what each was answered.

        A slow line is no silence: the time begins anew as often as bytes move, either way.

        Raises:
            LostError: The connection broke, or nothing moved for `seconds`.
            StoreUnavailableError: One is an error. Then no command of a transaction was done.
        """
        link, watchdog = cast("_Link", self._link), cast("_Watchdog", self._watchdog)
        packed = link.pack_commands(commands)
        seconds += min(max(map(len, packed)), _MOST_UNSEEN_BYTES) / _SLOWEST_BYTES_PER_SECOND
        watchdog.begin(seconds)
        try:
            await link.send(packed)
            replies = [await _reply(link) for _ in commands]
        except _LOST as error:
            lost = LostError(_NO_ANSWER, is_silence=True) if watchdog.has_cut else _lost(error)
            lost.is_sent = True
            raise lost from error
        finally:
            watchdog.end()
        return _answers(replies)

    def abort(self) -> None:
        """Cut the connection: what was not sent yet will not be."""
        if self._link is not None:
            self._link.abort()

    async def close(self) -> None:
        """Close the connection, and wait until it is."""
        if self._link is not None:
            with suppress(*_LOST):
                await self._link.disconnect()
            self._link.abort()


async def _reply(link: "_Link") -> object:
    try:
        return await link.read_response(disconnect_on_error=False)
    except exceptions.ResponseError as error:
        return error


class _Watchdog:
    """Cuts a connection over which no bytes move while an answer is waited for.

    Args:
        link: The connection.
    """

    def __init__(self, link: "_Link") -> None:
        self.has_cut = False
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._seconds = 0.0
        self._moved, self._moved_at = 0, 0.0
        # One timer for many exchanges: most have ended long before it is due.
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """Watch from now on; `seconds` may pass in which no bytes move."""
        self._seconds = seconds
        self._moved, self._moved_at = self._link.moved_bytes(), self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(seconds / _LOOKS, self._look)

    def end(self) -> None:
        """Watch no longer."""
        self._seconds = 0.0

    def _look(self) -> None:
        self._timer = None
        if not self._seconds:
            return
        moved, now = self._link.moved_bytes(), self._loop.time()
        if moved != self._moved:
            self._moved, self._moved_at = moved, now
        if now - self._moved_at >= self._seconds:
            self.has_cut = True
            self._link.abort()
        else:
            self._timer = self._loop.call_later(self._seconds / _LOOKS, self._look)


class _Link(Protocol):
    """What is used of a connection of redis-py, and of what is beside it."""

    async def connect(self) -> None: ...
    async def send(self, packed: list[bytes]) -> None: ...
    async def read_response(self, *, disconnect_on_error: bool) -> object: ...
    async def disconnect(self) -> None: ...
    def pack_commands(self, commands: Iterable[Command]) -> list[bytes]: ...
    def moved_bytes(self) -> int: ...
    def abort(self) -> None: ...


Connect: TypeAlias = Callable[[], _Link]


class _Direct:
    """Beside a connection of redis-py, which joins what it sends, and sends all before it ends."""

    _reader: asyncio.StreamReader | None
    _writer: asyncio.StreamWriter | None
    _transport: asyncio.WriteTransport | None
    _received_bytes = 0

    async def _connect(self) -> None:
        self._transport = None
        await cast("Any", super())._connect()  # noqa: SLF001 - of the class beside
        if self._writer is not None:
            self._transport = self._writer.transport
        if self._reader is not None:
            self._count(self._reader)

    def _count(self, reader: asyncio.StreamReader) -> None:
        """Count what comes in: a reader tells only when all is there that was asked of it."""
        take = reader.feed_data

        def feed_data(piece: bytes) -> None:
            self._received_bytes += len(piece)
            take(piece)

        cast("Any", reader).feed_data = feed_data

    def moved_bytes(self) -> int:
        """Return what changes whenever bytes come in or go out."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._received_bytes - waiting

    async def send(self, packed: list[bytes]) -> None:
        if self._writer is None:
            raise exceptions.ConnectionError
        if sum(map(len, packed)) <= _JOINED_BYTES:
            packed = [b"".join(packed)]
        for piece in packed:
            self._writer.write(piece)
        await self._writer.drain()

    def abort(self) -> None:
        transport: asyncio.WriteTransport | None = getattr(self, "_transport", None)
        if transport is not None:
            with suppress(OSError):
                # At once: a transport waits for its loop, which may not be running.
                transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            with suppress(RuntimeError):  # its loop was closed by force
                transport.abort()
        self._reader = self._writer = self._transport = None


def connector(url: str) -> Connect:
    """Return what makes connections to the server at `url`, not connected yet.

    Raises:
        ValueError: It is no URL of a Redis server.
    """
    pool = cast("Any", ConnectionPool).from_url(
        url,
        protocol=2,
        driver_info=None,  # else a server of version 6 is told what it does not know
        socket_timeout=None,  # an exchange as a whole has its time
        socket_connect_timeout=_CONNECT_SECONDS,
    )
    kind = type("Link", (_Direct, pool.connection_class), {})
    return lambda: kind(**pool.connection_kwargs)


_LOST = (exceptions.RedisError, OSError, EOFError)


def _lost(error: BaseException) -> LostError:
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return LostError(_NO_ANSWER, is_silence=True)
    if isinstance(error, exceptions.AuthenticationError):
        return LostError(_REFUSED, is_final=True)
    if isinstance(error, exceptions.BusyLoadingError):
        return LostError(_REASONS["LOADING"])
    return LostError(_OUT_OF_REACH)


def _answers(replies: list[Any]) -> list[Any]:
    """Return replies, of which the last may be that of a transaction, without error replies."""
    last: Any = replies[-1]
    together: list[Any] = replies + last if isinstance(last, list) else replies
    for number, reply in enumerate(together):
        if not isinstance(reply, exceptions.ResponseError):
            continue
        code = _code(reply)
        if code in _PASSING:
            raise LostError(_REASONS[code]) from reply
        # A transaction may not write in part: what it does fits whatever is there.
        if code != "WRONGTYPE" or number >= len(replies):
            told = f"the Redis server answers an error ({code or 'unknown'})"
            raise StoreUnavailableError(_REASONS.get(code, told)) from reply
        replies[number] = WRONG_TYPE
    return replies


def _code(error: exceptions.ResponseError) -> str:
    """Return the word in capitals with which an error begins; what follows may quote keys."""
    code = error.status_code or str(error).partition(" ")[0]
    return code if _CODE.fullmatch(code) else ""
