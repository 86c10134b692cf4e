"""Events of work that goes on at once, as one stream."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

from ._context import RunContext
from ._events import Event

Emit = Callable[[Event], Awaitable[None]]
Produce = Callable[[Emit], Coroutine[object, object, object]]

_AHEAD = 64
"""Events that wait for who reads them; then whoever emits waits."""


async def merged(produce: Produce) -> AsyncGenerator[Event, None]:
    """Yield what `produce` emits, in order, while it goes on.

    What it raises is raised where all that it emitted has been read. A reader who stops cancels
    it; close the generator for that, with `contextlib.aclosing`.

    Args:
        produce: Is handed what emits an event; tasks that it starts may emit too.
    """
    # In place of a Queue, which takes several times as long. One mark is enough: whoever reads
    # waits where nothing is told, and whoever emits where too much is.
    told = deque[Event]()
    changed = asyncio.Event()

    async def emit(event: Event) -> None:
        while len(told) == _AHEAD:
            changed.clear()
            await changed.wait()
        told.append(event)
        changed.set()
        # Work that waits for nothing would else be over before its first event is read.
        await asyncio.sleep(0)

    task = asyncio.create_task(produce(emit))
    task.add_done_callback(lambda _ended: changed.set())
    try:
        while told or not task.done():
            if told:
                event = told.popleft()
                changed.set()
                yield event
            else:
                changed.clear()
                await changed.wait()
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # raised above, or nobody is there to hear of it


def merged_run(
    context: RunContext, produce: Produce, name: str | None = None
) -> AsyncGenerator[Event, None]:
    """As `merged`, in a run of the context's bank: what is put and shown stays until the end.

    Args:
        context: Of the run.
        produce: As for `merged`.
        name: Of the run of the bank; None is that of the context.
    """

    async def held(emit: Emit) -> None:
        # In the task of `merged`: whoever reads the events is not in the run.
        async with context.holding(name):
            await produce(emit)

    return merged(held)
