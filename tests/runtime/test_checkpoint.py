from pathlib import Path

import pytest

from coatcheck import AgentMemory, Bank
from coatcheck.memory import MemoryEntry
from coatcheck.runtime import Checkpoint, RunContext, Step, Task, TaskPlan
from coatcheck.stores import FileStore, ObjectStore
from coatcheck.tools import memory_tools


def plan(instructions: str = "Search.") -> TaskPlan:
    steps = [Step(id="s1", instructions=instructions)]
    return TaskPlan(tasks=[Task(id="t", title="T", description="D", steps=steps)])


async def test_a_finished_step_is_finished_in_the_next_process(tmp_path: Path) -> None:
    async with RunContext.open(tmp_path) as context:
        checkpoint = Checkpoint.of(context, plan(), model="m")
        assert await checkpoint.finished("step:s1") is None
        written = await checkpoint.finish_step("s1", {"n": 1}, title="Search.")

    async with RunContext.open(tmp_path) as again:
        finished = await Checkpoint.of(again, plan(), model="m").finished("step:s1")

    assert finished == written
    assert written.value == {"n": 1}
    assert (written.kind, written.source, written.title) == ("step_result", "s1", "Search.")


@pytest.mark.parametrize(
    ("changed", "model", "prompt"),
    [(plan("Search more."), "m", None), (plan(), "other", None), (plan(), "m", "Be brief.")],
)
async def test_what_another_plan_model_or_prompt_finished_is_not(
    tmp_path: Path, changed: TaskPlan, model: str, prompt: str | None
) -> None:
    async with RunContext.open(tmp_path) as context:
        await Checkpoint.of(context, plan(), model="m").finish_step("s1", 1)

        other = Checkpoint.of(context, changed, model=model, system_prompt=prompt)
        assert await other.finished("step:s1") is None


async def test_a_failed_step_has_an_error_and_is_not_finished(tmp_path: Path) -> None:
    async with RunContext.open(tmp_path) as context:
        checkpoint = Checkpoint.of(context, plan())
        entry = await checkpoint.fail_step("s1", "no answer", title="Failed: Search.")

        assert entry.value == {"error": "no answer"}
        assert await checkpoint.finished("step:s1") is None
        await checkpoint.finish_step("s1", 1)
        assert await checkpoint.finished("step:s1") is not None
        await checkpoint.fail_step("s1", "broken after all")
        assert await checkpoint.finished("step:s1") is None


async def test_what_a_host_or_a_model_wrote_is_not_finished(tmp_path: Path) -> None:
    async with RunContext.open(tmp_path) as context:
        await context.memory.set("step:s1", 1)
        await context.memory.set("shared:step:s1", 1)

        checkpoint = Checkpoint.of(context, plan())
        assert await checkpoint.finished("step:s1") is None
        assert await checkpoint.finished("shared:step:s1") is None


async def test_a_task_is_finished_with_its_title_and_description(tmp_path: Path) -> None:
    (task,) = plan().tasks
    async with RunContext.open(tmp_path) as context:
        checkpoint = Checkpoint.of(context, plan())
        entry = await checkpoint.finish_task(task, "result")
        again = await checkpoint.finish_task(task, "fallback", only_if_absent=True)

        assert (entry.kind, entry.source, entry.title, entry.description) == (
            *("task_result", "t"),
            *("T", "D"),
        )
        assert again == entry == await checkpoint.finished("task:t")
        assert (await checkpoint.finish_task(task, "newer")).value == "newer"


async def test_an_ordinary_run_counts_nothing_as_finished() -> None:
    checkpoint = Checkpoint(AgentMemory())

    entry = await checkpoint.finish_step("s1", 1)

    assert entry.plan_hash is None
    assert await checkpoint.finished("step:s1") is None


async def test_a_run_that_ends_with_its_process_cannot_be_resumed() -> None:
    for context in (RunContext(), RunContext(Bank(ObjectStore("memory:")))):
        with pytest.raises(ValueError, match="cannot be resumed"):
            Checkpoint.of(context, plan())
        assert await context.memory.size() == 0


async def test_a_store_of_files_outlives_the_process(tmp_path: Path) -> None:
    for store in (FileStore(tmp_path / "a"), ObjectStore(f"file:{tmp_path / 'b'}")):
        assert not Bank(store).ends_with_process
        await store.close()


async def test_a_snapshot_carries_what_is_finished(tmp_path: Path) -> None:
    async with RunContext.open(tmp_path / "one") as context:
        await Checkpoint.of(context, plan()).finish_step("s1", "x" * 60_000)
        wires = [entry.to_wire() for entry in await context.memory.snapshot(inline=True)]

    async with RunContext.open(tmp_path / "other") as other:
        await other.memory.restore(MemoryEntry.from_wire(wire) for wire in wires)
        finished = await Checkpoint.of(other, plan()).finished("step:s1")

        assert finished is not None
        assert await other.memory.value_of(finished) == "x" * 60_000


async def test_the_hash_of_a_plan_is_not_shown_to_models(tmp_path: Path) -> None:
    async with RunContext.open(tmp_path) as context:
        entry = await Checkpoint.of(context, plan()).finish_step("s1", 1)
        listing, read, _ = memory_tools(context.memory)
        shown = await listing.call({}) + await read.call({"keys": ["step:s1"]})

    assert entry.plan_hash is not None
    assert entry.plan_hash not in shown
