"""Work that goes on in this process, on the event loop where it was started."""

import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from ..errors import StoreError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Running(Generic[T]):
    """One piece of work, and the task that looks after it.

    Args:
        call: Does the work.
        renew: Says, from time to time, that it still goes on.
        renew_seconds: How often.
        end: Is given the work once it has ended, however that was; returns its outcome.
    """

    def __init__(
        self,
        call: Callable[[], Coroutine[object, object, object]],
        renew: Callable[[], Awaitable[object]],
        renew_seconds: float,
        end: "Callable[[asyncio.Task[object]], Awaitable[T]]",
    ) -> None:
        import asyncio
        from concurrent.futures import Future

        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        # Not bound to a loop: the work may be waited for on another one.
        self._outcome: Future[T] = Future()
        self._task = self._loop.create_task(self._look_after(call, renew, renew_seconds, end))

    def is_alive(self) -> bool:
        """Return whether it has ended here, or will: not after a fork, nor on a dead loop."""
        if self._process != os.getpid():
            return False
        return self._outcome.done() or self._loop.is_running()

    async def wait(self, seconds: float) -> T | None:
        """Return the outcome, None where there is none after that time. On any event loop."""
        import asyncio

        if seconds > 0 and not self._outcome.done():
            await asyncio.wait({asyncio.wrap_future(self._outcome)}, timeout=seconds)
        return self._outcome.result() if self._outcome.done() else None

    async def stop(self) -> None:
        """Cancel the work, and wait until that is written down."""
        import asyncio

        if self.is_alive() and not self._outcome.done():
            self._loop.call_soon_threadsafe(self._task.cancel)
            await asyncio.wait({asyncio.wrap_future(self._outcome)})

    async def _look_after(
        self,
        call: Callable[[], Coroutine[object, object, object]],
        renew: Callable[[], Awaitable[object]],
        renew_seconds: float,
        end: "Callable[[asyncio.Task[object]], Awaitable[T]]",
    ) -> None:
        import asyncio

        work = self._loop.create_task(call())
        try:
            # One task renews and ends, in turn: no late renewal can undo the end.
            while not (await asyncio.wait({work}, timeout=renew_seconds))[0]:
                with suppress(StoreError):
                    await renew()
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
        self._outcome.set_result(await end(work))
