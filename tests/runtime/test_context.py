import asyncio
from pathlib import Path

import pytest

from coatcheck import AgentMemory, Bank
from coatcheck.errors import RunCancelledError
from coatcheck.runtime import InProcess, RunContext
from coatcheck.stores import MemoryStore

LARGE = "x" * 60_000


async def test_bank_and_memory_lie_on_one_store_that_the_next_process_opens(
    tmp_path: Path,
) -> None:
    async with RunContext.open(tmp_path, scope="run-1") as context:
        entry = await context.memory.set("task:t", LARGE)

    async with RunContext.open(tmp_path, scope="run-1") as again:
        assert await again.memory.get_value("task:t") == LARGE
        assert await again.bank.get(entry.pointer or "") == LARGE
    async with RunContext.open(tmp_path, scope="run-2") as other:
        assert await other.memory.list() == []
        assert await other.bank.find(entry.pointer or "") is None


async def test_the_store_is_closed_with_the_run(redis_url: str) -> None:
    async with RunContext.open(redis_url) as context:
        await context.memory.set("shared:x", 1)

    with pytest.raises(Exception, match="closed"):
        await context.memory.get("shared:x")


async def test_a_copy_has_a_memory_of_its_own_and_the_same_artifacts() -> None:
    context = RunContext(Bank(MemoryStore(), scope="run"))
    await context.memory.set("shared:x", "of the run")
    artifact = await context.bank.put("seen by both")

    one, other = context.copy(), context.copy()
    entry = await one.memory.set("shared:x", LARGE)

    assert await context.memory.get_value("shared:x") == "of the run"
    assert await other.memory.list() == []
    assert await one.bank.get(artifact.pointer) == "seen by both"
    assert await context.bank.get(entry.pointer or "") == LARGE
    assert one.engine is context.engine


async def test_a_copy_of_a_name_finds_its_memory_again(tmp_path: Path) -> None:
    async with RunContext.open(tmp_path, scope="run") as context:
        await context.copy("part").memory.set("shared:x", 1)

    async with RunContext.open(tmp_path, scope="run") as again:
        assert await again.copy("part").memory.get_value("shared:x") == 1
        assert await again.copy("other").memory.size() == 0
        assert await again.memory.size() == 0


async def test_a_memory_or_an_engine_may_be_given() -> None:
    memory, engine = AgentMemory(), InProcess(2)

    context = RunContext(memory=memory, engine=engine)

    assert context.memory is memory
    assert context.bank is memory.bank
    assert context.engine is engine


async def test_run_returns_and_raises_what_its_call_does() -> None:
    context = RunContext()

    async def answer() -> int:
        return 42

    async def fail() -> int:
        raise LookupError

    assert await context.run(answer) == 42
    with pytest.raises(LookupError):
        await context.run(fail)
    assert not context.is_cancelled
    context.check()


async def test_to_cancel_a_run_stops_what_it_waits_for_and_its_children() -> None:
    context = RunContext()
    began: list[str] = []
    stopped: list[str] = []

    async def wait(name: str) -> None:
        began.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(name)

    async def parent() -> None:
        await asyncio.gather(wait("child"), context.copy().run(lambda: wait("copy")))

    runs = [
        asyncio.create_task(context.run(lambda: wait("one"))),
        asyncio.create_task(context.run(parent)),
    ]
    while len(began) < 3:
        await asyncio.sleep(0)
    context.cancel("the user left")

    for run in runs:
        with pytest.raises(RunCancelledError, match="The run was cancelled: the user left"):
            await run
    assert sorted(stopped) == ["child", "copy", "one"]


async def test_nothing_begins_in_a_run_that_was_cancelled() -> None:
    context = RunContext()
    before = context.copy()
    began = False

    async def begin() -> None:
        nonlocal began
        began = True

    context.cancel()

    for each in (context, before, context.copy()):
        assert each.is_cancelled
        with pytest.raises(RunCancelledError, match=r"^The run was cancelled\.$"):
            each.check()
        with pytest.raises(RunCancelledError):
            await each.run(begin)
    assert not began


async def test_to_cancel_a_copy_leaves_the_run() -> None:
    context = RunContext()

    context.copy().cancel()

    assert not context.is_cancelled


async def test_what_was_done_when_the_run_was_cancelled_counts() -> None:
    context = RunContext()

    async def last() -> str:
        context.cancel()
        return "done"

    assert await context.run(last) == "done"


async def test_a_task_that_is_cancelled_by_others_is_no_cancelled_run() -> None:
    context = RunContext()
    waiting = asyncio.create_task(context.run(asyncio.Event().wait))
    await asyncio.sleep(0)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not context.is_cancelled
