"""Where work runs: on the event loop, in a thread, or on the portal's loop.

anyio and asyncio are imported where they are used: they take longer than all the rest of
the core, and a host that awaits anything has them already.
"""

import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar, TypeVarTuple

INLINE_BYTES = 256 * 1024
"""Work on more than this leaves the event loop: a hop to a thread costs 0.1 ms."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def work_on(size_bytes: int, work: Callable[[*Ts], T], *args: *Ts) -> T:
    """Return `work(*args)`, run here for up to 256 KiB of payload, else in a thread."""
    if size_bytes <= INLINE_BYTES:
        return work(*args)
    from anyio import to_thread

    return await to_thread.run_sync(work, *args)


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Return `work()`, run in a thread of its own.

    For work of any length: it takes no place from the threads that stores share, and does not
    keep the interpreter from its end.
    """
    import asyncio
    from concurrent.futures import Future

    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=run, name="coatcheck work", daemon=True).start()
    waiting = asyncio.wrap_future(done)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # What it raises now is nobody's any more, and not to be told as an error of the loop.
        waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise


def shielded() -> AbstractContextManager[object]:
    """Return a block that runs to its end although its task was cancelled."""
    from anyio import CancelScope

    return CancelScope(shield=True)


async def to_end(waiting: Coroutine[object, object, None]) -> None:
    """Wait until `waiting` has ended, although this task was cancelled, and may be again.

    Raises:
        asyncio.CancelledError: It was cancelled meanwhile.
    """
    import asyncio

    from anyio import CancelScope

    # anyio's shield holds against its own scopes, a task of its own against `Task.cancel`.
    task = asyncio.ensure_future(waiting)
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


class Portal:
    """One daemon thread with an event loop, where code without a loop of its own waits.

    anyio's blocking portal keeps a worker thread that interpreter exit waits for; a host
    that never closes a mirrored function would hang, so this thread is a daemon.
    """

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="coatcheck", daemon=True
        )
        self._thread.start()

    def run(self, waiting: Coroutine[object, object, T]) -> T:
        """Wait for `waiting` on the portal thread and return its result, or raise its error.

        Raises:
            RuntimeError: This is the portal thread, which would wait for itself.
        """
        import asyncio

        if threading.current_thread() is self._thread:
            waiting.close()
            raise RuntimeError(
                "blocking code was called on the portal's own thread, which would wait for "
                "itself: await the bank's methods there, or call it in a thread"
            )
        future = asyncio.run_coroutine_threadsafe(waiting, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C in the caller ends the work too.
            raise


def portal() -> Portal:
    """Return the portal of this process; a forked child gets its own."""
    return _portal_of(os.getpid())


@cache
def _portal_of(_process: int) -> Portal:
    return Portal()
