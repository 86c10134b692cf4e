"""The way off the event loop, for work that would hold it up."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import Future

_Result = TypeVar("_Result")


async def in_thread(call: Callable[[], _Result]) -> _Result:
    """Return what `call` returns in a worker thread of the running loop.

    A thread cannot be stopped, so where the caller is cancelled, this ends when `call` has, or
    before it began: nothing is written behind the back of whoever undoes the work.
    """
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
        return cast("_Result", await to_thread.run_sync(run))
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
