"""The portal, and work that a cancelled task still ends."""

import asyncio
import gc
import threading

import pytest

from coatcheck.bank import portal
from coatcheck.bank._threads import in_daemon_thread, to_end


@pytest.mark.parametrize("cancels", [1, 2, 5])
async def test_work_runs_to_its_end_however_often_its_task_is_cancelled(cancels: int) -> None:
    go, ended = asyncio.Event(), list[bool]()

    async def work() -> None:
        await go.wait()
        ended.append(True)

    task = asyncio.create_task(to_end(work()))
    for _ in range(cancels):
        await asyncio.sleep(0)
        task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    go.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_what_the_work_raises_is_raised() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await to_end(fail())


async def test_what_work_raises_for_which_nobody_waits_any_more_is_no_error_of_the_loop() -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: told.append(about))
    go, failed = threading.Event(), threading.Event()

    def fail() -> None:
        go.wait()
        failed.set()
        raise KeyError("x")

    task = asyncio.create_task(in_daemon_thread(fail))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await asyncio.to_thread(failed.wait)
    await asyncio.sleep(0.05)
    gc.collect()

    assert told == []


def test_a_portal_that_would_wait_for_itself_says_so() -> None:
    async def inner() -> str:
        return "never"

    async def outer() -> str:
        return portal().run(inner())

    with pytest.raises(RuntimeError, match="portal's own thread"):
        portal().run(outer())
