"""A large payload on its way to a service: a slow way is no outage, a silent service is."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..errors import StoreUnavailableError
from ._answers import AbsentError, answer_of, is_answer, no_answer, no_place

if TYPE_CHECKING:
    from asyncio import Future as Waiting
    from concurrent.futures import Future

    from obstore.store import ObjectStore as Client

_Result = TypeVar("_Result")

PART_BYTES = 5 * 1024 * 1024
"""The least that S3 takes as a part. It takes 10,000 of them, so payloads end at 50 GB."""
_MOST_PARTS_AT_ONCE = 4
_PATIENCE_SECONDS = 2.0
_LOOK_SECONDS = 0.5


class Upload:
    """One payload, sent from a thread of its own. Seen whole under its key, or not at all.

    Args:
        client: Waits long for each request.
        path: Where it goes.
        ask: Asks the service for anything small, or None where there is none to fall silent.
            A `StoreUnavailableError` says that it did.
    """

    def __init__(
        self, client: "Client", path: str, ask: Callable[[], Awaitable[object]] | None
    ) -> None:
        self._client = client
        self._path = path
        self._ask = ask
        self._waits_since: float | None = None
        self._is_abandoned = False

    def put(self, payload: bytes, mode: Literal["create", "overwrite"] = "overwrite") -> None:
        """Send all of `payload`; to be called inside `run`, and so is `put_stream`.

        Raises:
            TakenError: `mode` is ``create``, and a payload is there.
            StoreUnavailableError: It is not stored.
        """
        if len(payload) > PART_BYTES and mode == "overwrite":
            self.put_stream((payload,))
            return
        import obstore

        self._wait(
            partial(obstore.put, self._client, self._path, payload, mode=mode, use_multipart=False)
        )

    def put_stream(self, chunks: Iterable[bytes | memoryview]) -> None:
        """Send the joined `chunks`, and hold some 25 MB of them at most.

        Raises:
            BaseException: Whatever `chunks` raises. Then nothing is stored.
            StoreUnavailableError: It is not stored.
        """
        parts = _parts(chunks)
        first, second = next(parts, b""), next(parts, None)
        if second is None:
            self.put(bytes(first))
            return
        import obstore

        writer = obstore.open_writer(
            self._client,
            self._path,
            buffer_size=PART_BYTES,
            max_concurrency=_MOST_PARTS_AT_ONCE,
        )
        try:
            for part in chain((first, second), parts):
                self._wait(partial(writer.write, part))
            self._wait(writer.close)
        except BaseException as error:
            self._abort(writer, error)
            raise

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Return what `work` returns in a thread of its own.

        A thread cannot be stopped: where the caller is cancelled, this ends when `work` has. Only
        one that waits for a silent service is left alone, and nothing that it still sends counts.
        """
        import asyncio
        from concurrent.futures import Future
        from contextvars import copy_context

        from anyio import CancelScope

        done: Future[_Result] = Future()
        context = copy_context()
        # A daemon: the end of the interpreter does not wait for a silent service.
        threading.Thread(
            target=lambda: context.run(lambda: _settle(work, done)),
            name="coatcheck upload",
            daemon=True,
        ).start()
        waiting = asyncio.wrap_future(done)
        cancelled: asyncio.CancelledError | None = None
        with CancelScope(shield=True):
            while not waiting.done():
                try:
                    await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
                    await self._look()
                except asyncio.CancelledError as error:
                    cancelled = error
                except StoreUnavailableError:
                    self._is_abandoned = True
                    waiting.add_done_callback(_forget)
                    if cancelled is not None:
                        raise cancelled from None
                    raise
        if cancelled is not None:
            _forget(waiting)
            raise cancelled
        return waiting.result()

    async def _look(self) -> None:
        since = self._waits_since
        if self._ask is None or since is None or time.monotonic() - since < _PATIENCE_SECONDS:
            return
        try:
            await self._ask()
        except StoreUnavailableError as failure:
            if not is_answer(failure):
                raise
        except AbsentError:
            pass
        # It answers, so what is slow is the way there. Look again later.
        if self._waits_since == since:
            self._waits_since = time.monotonic()

    def _wait(self, call: Callable[[], object]) -> None:
        if self._is_abandoned:
            raise no_answer()
        self._waits_since = time.monotonic()
        try:
            answer_of(call)
        except AbsentError:
            raise no_place() from None
        finally:
            self._waits_since = None

    def _abort(self, writer: Any, error: BaseException) -> None:  # noqa: ANN401 - untyped there
        self._waits_since = time.monotonic()
        # What cannot be aborted now is left to the bucket's own rule for unfinished uploads.
        with suppress(Exception):
            writer.__exit__(type(error), error, error.__traceback__)
        self._waits_since = None


def _settle(work: Callable[[], _Result], done: "Future[_Result]") -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
        done.set_exception(error)


def _forget(waiting: "Waiting[Any]") -> None:
    """Take an outcome that nobody waits for any more, so that nobody misses it."""
    with suppress(BaseException):
        waiting.result()


def _parts(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield the joined chunks in pieces of `PART_BYTES`, the last one shorter."""
    gathered: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        while size + len(view) >= PART_BYTES:
            cut = PART_BYTES - size
            yield b"".join([*gathered, view[:cut]]) if gathered else view[:cut]
            gathered, size, view = [], 0, view[cut:]
        if view:
            gathered.append(view)
            size += len(view)
    if gathered:
        yield b"".join(gathered)
