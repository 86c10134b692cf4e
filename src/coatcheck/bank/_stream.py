"""A stream on its way to a store: read ahead by two pieces at most, and never held whole."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast

from ..content import PIECE_BYTES, StreamEncoding, decode
from ..errors import UnencodableValueError
from ._source import AwaitedPieces, Pieces, source_of
from ._threads import in_daemon_thread, shielded, to_end

if TYPE_CHECKING:
    from asyncio import Future, Task

    from anyio.lowlevel import EventLoopToken
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

T = TypeVar("T")

PLAIN_TYPES = frozenset({str, bytes, dict, list, int, float, bool, type(None)})
"""Types of most values, which are no streams: to look closer at these takes time for nothing."""

_READ_AHEAD = 2
"""Pieces that wait between who reads and who stores. One more is in the hands of each."""
_ITEMS_PER_PAUSE = 1_024
_LONGEST_CLOSING_SECONDS = 1.0


class StreamStoppedError(RuntimeError):
    """The reading of a stream was cancelled."""


class Stream:
    """A stream that is being stored, and what is known of it.

    A sync source is read from its first item to its last, and closed, in one thread of its
    own; an async one in one task. The store takes the pieces in a thread of the store.

    Args:
        source: Where it comes from.
        content_type: As the caller gave it; checked against the head.
        closes: Whether an open file is closed at the end. What can be closed without being a
            file always is.
    """

    def __init__(
        self, source: Pieces | AwaitedPieces, content_type: str | None, *, closes: bool = False
    ) -> None:
        self.items = source.items
        self.path = source.path
        self.failure: BaseException | None = None
        """What the source raised, or what was wrong with one of its items."""
        self.first_items: list[object] = []
        """What was read before the limit of `begins`."""
        self.is_unencodable = False
        """Whether `failure` is that an item has no encoding, and not what the source raised."""
        self.is_begun = False
        """Whether the source is being read, or was."""
        self.check: Callable[[int], object] = lambda _size_bytes: None
        """Given how many bytes have come, before a store has them; what it raises ends that."""
        self._source = source
        self._is_claimed = content_type is not None
        self._closes = closes
        self._encoding: StreamEncoding | None = None
        self._limit_bytes = 0
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._is_over = self._is_stopped = self._is_abandoned = False
        self._chunks: Iterator[bytes] = iter(())
        self._reading: Task[None] | None = None

    @classmethod
    def of(
        cls, value: object, content_type: str | None = None, *, is_result: bool = False
    ) -> "Stream | None":
        """Return a stream of a path, an open file or an iterator; None of anything else.

        Args:
            value: What to store.
            content_type: As the caller gave it, None where it gave none.
            is_result: Whether a tool returned it: then a path is data, and a file that was
                left open is closed.
        """
        source = source_of(value, content_type, with_paths=not is_result)
        return None if source is None else cls(source, content_type, closes=is_result)

    @property
    def encoding(self) -> StreamEncoding:
        """What is known of the payload, so far or at the end."""
        if self._encoding is None:
            items = self.items
            self._encoding = StreamEncoding(
                items.form or "json", items.content_type, is_claimed=self._is_claimed, items=items
            )
        return self._encoding

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns; the source is read only while it runs.

        Raises:
            Exception: What `work` raised, with a note of how far the stream came.
        """
        import asyncio

        import anyio
        from anyio.lowlevel import checkpoint, current_token

        self._token: EventLoopToken = current_token()
        self._send: MemoryObjectSendStream[bytes]
        self._receive: MemoryObjectReceiveStream[bytes]
        self._send, self._receive = anyio.create_memory_object_stream[bytes](_READ_AHEAD)
        # A task of its own: a store's thread cannot be stopped, so where this one is cancelled,
        # the pieces end first, and the store with them.
        working = asyncio.ensure_future(work())
        try:
            await asyncio.wait({working})
        finally:
            await to_end(self._end(working))
        failure = working.exception()
        if failure is None:
            return working.result()
        if isinstance(failure, StreamStoppedError):
            await checkpoint()  # Where this task was cancelled, that is what is raised.
        if isinstance(failure, Exception):
            failure.add_note(f"banked nothing: {self._progress(failure)}")
        raise failure

    async def _end(self, working: "Future[T]") -> None:
        import asyncio

        await self._stop()
        await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # Else asyncio says of a cancelled put that nobody asked for it.

    async def _stop(self) -> None:
        """See to it that nothing of the source is read any more, and that it is closed."""
        import asyncio

        self._is_stopped = self._is_abandoned = True
        if self._reading is not None and not self._reading.done():
            # Once, and not as a scope of anyio would: what is closed may have to wait for that.
            self._reading.cancel()
            with shielded():
                await asyncio.wait({self._reading})
        self._send.close()
        self._receive.close()

    async def begins(self, limit_bytes: int = 0) -> bool:
        """Start to read; return whether there is something to store.

        False where the stream ended before its payload had `limit_bytes`: then `first_items`
        are all of them.

        Raises:
            BaseException: What the source raised before that.
        """
        import asyncio

        from anyio import EndOfStream

        self._limit_bytes = limit_bytes
        self.is_begun = True
        self._reading = asyncio.create_task(self._read())
        try:
            first = await self._receive.receive()
        except EndOfStream:
            self._check()
            return False
        self._chunks = self.encoding.passing(self._pieces(first))
        return True

    def value(self) -> object:
        """Return the whole value of a stream that ended before its limit: list, text or bytes."""
        if self.items.form == "json":
            return self.first_items
        return decode(b"".join(self._gathered), self.items.form or "bytes")

    async def drain(self) -> None:
        """Read on to the end, although no store takes the pieces.

        Raises:
            BaseException: What the source raised.
        """
        await in_daemon_thread(lambda: deque(self._chunks, maxlen=0))

    def chunks(self) -> Iterator[bytes]:
        """Yield the payload's pieces, each once however often this is called; in a thread."""
        for piece in self._chunks:
            self.check(self.encoding.size_bytes)
            yield piece

    def add(self, piece: bytes) -> None:
        """Take a piece that the store read of the file at `path`."""
        self.encoding.add(piece)
        self.check(self.encoding.size_bytes)

    def _pieces(self, piece: bytes) -> Iterator[bytes]:
        from anyio import EndOfStream, from_thread

        while True:
            yield piece
            if self._is_abandoned:  # the loop may be gone
                raise StreamStoppedError("the reading of a stream was stopped")
            try:
                piece = from_thread.run(self._receive.receive, token=self._token)
            except EndOfStream:
                break
            except BaseException as error:
                raise StreamStoppedError("the reading of a stream was stopped") from error
        self._check()

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
        if not self._is_over:
            raise StreamStoppedError("the reading of a stream was cancelled")

    async def _read(self) -> None:
        """Read the source to its end, and close it."""
        try:
            if isinstance(self._source, AwaitedPieces):
                await self._read_awaited(self._source.pieces)
            else:
                await self._read_blocking(self._source)
            self._is_over = True
        except Exception as error:  # noqa: BLE001 - raised where the pieces are taken
            self.failure = error
        finally:
            self._is_stopped = True
            self._send.close()

    async def _read_awaited(self, source: AsyncIterator[object]) -> None:
        from anyio.lowlevel import checkpoint

        try:
            async for item in source:
                for piece in self._taken(item):
                    await self._send.send(piece)
                if self.items.count % _ITEMS_PER_PAUSE == 0:
                    await checkpoint()  # A source that never waits would hold up the loop.
            for piece in self._rest():
                await self._send.send(piece)
        finally:
            close = getattr(source, "aclose", None)
            if callable(close):
                with shielded(), suppress(Exception):
                    await cast("Awaitable[object]", close())

    async def _read_blocking(self, source: Pieces) -> None:
        import anyio
        from anyio import from_thread

        closed = anyio.Event()
        token, send = self._token, self._send

        def read() -> None:
            try:
                for item in source.pieces:
                    for piece in self._taken(item):
                        from_thread.run(send.send, piece, token=token)
                    if self._is_stopped:
                        return
                for piece in self._rest():
                    from_thread.run(send.send, piece, token=token)
            except Exception:
                if not self._is_stopped:  # else there is nobody to tell
                    raise
            finally:
                self._close(source)
                from_thread.run_sync(closed.set, token=token)

        try:
            await in_daemon_thread(read)
        finally:
            if not closed.is_set():  # this task was cancelled, the thread goes on
                self._is_stopped = True
                send.close()
                self._receive.close()  # This wakes whoever waits to send.
                # What blocks in its next item for long is left alone: it is closed after that.
                with anyio.move_on_after(_LONGEST_CLOSING_SECONDS, shield=True):
                    await closed.wait()

    def _close(self, source: Pieces) -> None:
        for each in (source.pieces, source.file if self._closes else None):
            close = getattr(each, "close", None)
            if callable(close):
                with suppress(Exception):
                    close()

    def _taken(self, item: object) -> Iterator[bytes]:
        """Take one item, and yield the pieces that are ready to be stored."""
        if self._limit_bytes:
            self.first_items.append(item)
        try:
            self._gather(self.items.piece(item))
        except UnencodableValueError:
            self.is_unencodable = True
            raise
        if self.items.size_bytes < self._limit_bytes:
            return
        self._limit_bytes = 0
        if self._gathered_bytes >= PIECE_BYTES:
            yield from self._ready()

    def _rest(self) -> Iterator[bytes]:
        self._gather(self.items.end())
        if self.items.size_bytes >= self._limit_bytes:
            yield from self._ready()

    def _gather(self, piece: bytes) -> None:
        self._gathered.append(piece)
        self._gathered_bytes += len(piece)

    def _ready(self) -> Iterator[bytes]:
        """Yield what was gathered, one large item in several pieces."""
        self.first_items.clear()
        gathered = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        if len(gathered) <= 2 * PIECE_BYTES:
            yield gathered
            return
        for start in range(0, len(gathered), PIECE_BYTES):
            yield gathered[start : start + PIECE_BYTES]

    def _progress(self, failure: Exception) -> str:
        size = f"{max(self.items.size_bytes, self.encoding.size_bytes):,} bytes"
        if self.items.are_counted:
            count = self.items.count
            size = f"{count:,} item{'s' if count != 1 else ''}, {size}"
        if failure is self.failure:
            return f"the stream failed after {size}"
        return f"{size} of the stream had been read"
