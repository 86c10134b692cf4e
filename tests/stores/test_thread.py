"""Work off the loop, and who waits for it when its task is cancelled."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import anyio
import pytest

from coatcheck.stores._thread import in_thread


class Gate:
    """A call that runs in a thread until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()
        self.ended = False

    def __call__(self) -> None:
        self.begun.set()
        assert self.go.wait(30)
        self.ended = True


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def begin(call: Callable[[], None], begun: threading.Event) -> asyncio.Task[None]:
    task = asyncio.create_task(in_thread(call))
    while not begun.is_set():
        await asyncio.sleep(0)
    return task


async def test_the_result_and_the_error_of_a_call_come_back() -> None:
    assert await in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(KeyError, match="x"):
        await in_thread(partial(dict[str, int]().pop, "x"))


@pytest.mark.parametrize("cancels", [1, 2, 5])
async def test_a_cancelled_task_ends_when_its_call_has_ended(cancels: int) -> None:
    gate = Gate()
    task = await begin(gate, gate.begun)

    for _ in range(cancels):
        task.cancel()
        await turns()
        assert not task.done()
    gate.go.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.ended


async def test_a_cancelled_scope_waits_for_its_call_too() -> None:
    gate = Gate()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, gate)
            while not gate.begun.is_set():
                await asyncio.sleep(0)
            scope.cancel()
            asyncio.get_running_loop().call_soon(gate.go.set)

    assert gate.ended


async def test_a_call_that_fails_after_its_task_was_cancelled_is_a_cancellation() -> None:
    gate = Gate()

    def fail() -> None:
        gate()
        raise OSError

    task = await begin(fail, gate.begun)
    task.cancel()
    await turns()
    gate.go.set()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("steps", [0, 1])
async def test_what_was_cancelled_before_it_began_never_runs(steps: int) -> None:
    ran: list[bool] = []
    task = asyncio.create_task(in_thread(lambda: ran.append(True)))
    await turns(steps)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await in_thread(threading.get_ident)  # by then the first would have run
    assert ran == []
