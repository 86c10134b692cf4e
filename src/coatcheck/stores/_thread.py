"""The way off the event loop, for work that would hold it up."""

from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(call: Callable[[], _Result]) -> _Result:
    """Return what `call` returns in a worker thread of the running loop.

    A thread cannot be stopped: where the caller is cancelled, `call` still runs to its end.
    """
    # Here, not above: it takes longer to import than all of the stores.
    from anyio import to_thread

    return await to_thread.run_sync(call)
