"""The way off the event loop, for work that would hold it up."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import Future

    from anyio import CapacityLimiter

_Result = TypeVar("_Result")


async def in_thread(call: Callable[[], _Result]) -> _Result:
    """Return what `call` returns in a worker thread of the running loop.

    A thread cannot be stopped, so where the caller is cancelled, this ends when `call` has, or
    before it began: nothing is written behind the back of whoever undoes the work.
    """
    return await _in_thread(call, None)


async def in_own_thread(call: Callable[[], _Result]) -> _Result:
    """As `in_thread`, but beside the limit on how many threads work at once.

    For what may wait for others, which may need one of those threads to go on.
    """
    from anyio import CapacityLimiter

    return await _in_thread(call, CapacityLimiter(1))


async def _in_thread(call: Callable[[], _Result], limiter: "CapacityLimiter | None") -> _Result:
    # Here, not above: they take longer to import than all of the stores.
    from concurrent.futures import Future

    from anyio import to_thread

    ended: Future[None] = Future()

    def run() -> _Result | None:
        try:
            return call() if ended.set_running_or_notify_cancel() else None
        finally:
            _settle(ended)

    try:
        return cast("_Result", await to_thread.run_sync(run, limiter=limiter))
    except BaseException:
        if not ended.cancel():
            await _wait(ended)
        raise


def _settle(ended: "Future[None]") -> None:
    if not ended.cancelled():
        ended.set_result(None)


async def _wait(ended: "Future[None]") -> None:
    """Wait for the end of a thread's call, however often the task is cancelled meanwhile."""
    import asyncio
    from contextlib import suppress

    from anyio import CancelScope

    waiting = asyncio.wrap_future(ended)
    with CancelScope(shield=True):  # else anyio cancels the wait again and again
        while not waiting.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({waiting})
