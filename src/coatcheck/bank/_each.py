"""Work on many things, some of them at once."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE = 16
"""As many requests as an object store answers sooner together than in turn."""
_TURN = 32


async def on_each(
    items: Iterable[T], work: Callable[[T], Awaitable[object]], *, at_once: int = _AT_ONCE
) -> None:
    """Await `work` of each item, up to `at_once` at a time; begin no more after a failure.

    Raises:
        Exception: What `work` raised first.
    """
    from anyio import create_task_group
    from anyio.lowlevel import checkpoint

    waiting, failures = iter(items), list[Exception]()

    async def work_on_some() -> None:
        for number, item in enumerate(waiting):
            try:
                await work(item)
            except Exception as failure:  # noqa: BLE001 - raised where all have ended
                failures.append(failure)
            if failures:
                return
            if number % _TURN == 0:  # a store on this machine may never wait
                await checkpoint()

    async with create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(work_on_some)
    if failures:
        raise failures[0]
