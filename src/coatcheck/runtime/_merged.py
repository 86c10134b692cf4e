"""Events of work that goes on at once, as one stream."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from anyio import create_memory_object_stream

from ._context import RunContext
from ._events import Event

Emit = Callable[[Event], Awaitable[None]]

_AHEAD = 64
"""Events that wait for who reads them; then whoever emits waits."""


async def merged(produce: Callable[[Emit], Awaitable[object]]) -> AsyncGenerator[Event, None]:
    """Yield what `produce` emits, in order, while it goes on.

    What it raises is raised where all that it emitted has been read. A reader who stops cancels
    it; close the generator for that, with `contextlib.aclosing`.

    Args:
        produce: Is handed what emits an event; tasks that it starts may emit too.
    """
    send, receive = create_memory_object_stream[Event](_AHEAD)

    async def work() -> None:
        async with send:
            await produce(send.send)

    task = asyncio.create_task(work())
    try:
        async for event in receive:
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # raised above, or nobody is there to hear of it
        send.close()  # a task that was cancelled before it began has not
        receive.close()


async def merged_run(
    context: RunContext, produce: Callable[[Emit], Awaitable[object]], name: str | None = None
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

    async with aclosing(merged(held)) as events:
        async for event in events:
            yield event
