import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from coatcheck.errors import InvalidPlanError, RunCancelledError
from coatcheck.runtime import (
    LogUpdate,
    ParallelTaskExecutor,
    RunContext,
    Step,
    Task,
    TaskPlan,
    TaskUpdate,
)


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def task(id_: str, *depends_on: str, **more: Any) -> Task:
    steps = [Step(id=f"{id_}_s", instructions=f"<{id_}>", output_schema={}, **more)]
    return Task(id=id_, title=f"Title of {id_}", depends_on=list(depends_on), steps=steps)


def executor(context: RunContext, script: Any, *tasks: Task, **options: Any) -> Any:
    plan = TaskPlan(title="The plan", tasks=list(tasks))
    return ParallelTaskExecutor(plan=plan, context=context, model=script.model, **options)


def told(events: Any, event: str) -> list[str]:
    return [each.task.id for each in events if isinstance(each, TaskUpdate) and each.event == event]


def failing(messages: Any) -> str:
    return "I would rather not."


async def test_a_failed_task_blocks_what_depends_on_it_and_nothing_else(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted({"<a>": [failing], "<c>": [finish("c")]})
    one = executor(context, script, task("a"), task("b", "a"), task("c"), task("d", "b"))

    events = await run(one)

    errors = {each.id: each.error for each in one.plan.tasks}
    assert str(errors["a"]).startswith("step 'a_s' failed: the model ended after 1 turn")
    assert errors["b"] == errors["d"] == "dependency 'a' failed"
    assert one.failed_task_ids == ["a", "b", "d"]
    assert told(events, "task_created") == ["a", "c"]
    assert told(events, "task_failed") == ["a", "b", "d"]
    assert await one.get_all_results() == {"c": "c"}
    assert await one.get_final_result() is None


async def test_a_task_may_build_on_an_input(context: RunContext, scripted: Any, run: Any) -> None:
    script = scripted({"<a>": [finish(1)]})

    await run(executor(context, script, task("a", "region"), inputs={"region": "EU"}))

    assert script.first().endswith("\n- input:region — region")


@pytest.mark.parametrize("width", [1, 3])
async def test_as_many_tasks_go_on_as_are_allowed(
    context: RunContext, scripted: Any, run: Any, width: int
) -> None:
    going, most = 0, 0
    full = asyncio.Barrier(width)

    async def work() -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await full.wait()
        going -= 1

    ids = "abcdef"
    script = scripted({f"<{id_}>": [("work", {}), finish(id_)] for id_ in ids})
    one = executor(
        context, script, *(task(id_) for id_ in ids), tools=[work], max_concurrent_agents=width
    )

    await asyncio.wait_for(run(one), 60)

    assert most == width
    assert one.failed_task_ids == []


async def test_a_plan_that_cannot_be_run_is_refused_whole(
    context: RunContext, scripted: Any, run: Any
) -> None:
    for tasks, named in [
        ([], "no tasks"),
        ([task("a", "a")], "'a' depends on itself"),
        ([task("a"), task("a")], "'a' stands 2 times"),
        ([task("a", "b"), task("b", "a")], "in a circle"),
        ([Task(id="a")], "'a' has no steps"),
        ([task("a", tools=["nothing"])], "unknown tool 'nothing'"),
    ]:
        with pytest.raises(InvalidPlanError, match=named):
            await run(executor(context, scripted([]), *tasks, inputs={"x": 1}))

    assert await context.memory.size() == 0


async def test_a_chain_longer_than_max_iterations_is_refused(
    context: RunContext, scripted: Any, run: Any
) -> None:
    tasks = [task("a"), task("b", "a"), task("c", "b")]
    await run(executor(context, scripted([finish(1)] * 3), *tasks, max_iterations=3))

    with pytest.raises(InvalidPlanError, match="max_iterations=2"):
        await run(executor(context, scripted([]), *tasks, max_iterations=2))


def test_a_resumable_run_on_a_store_that_ends_is_refused_at_the_start(
    context: RunContext, scripted: Any
) -> None:
    with pytest.raises(ValueError, match="cannot be resumed"):
        executor(context, scripted([]), task("a"), resumable=True)


async def test_a_run_that_was_broken_off_goes_on_where_it_was(
    tmp_path: Path, scripted: Any, run: Any
) -> None:
    def tasks() -> list[Task]:
        return [task("a"), task("b", "a"), task("c", "b")]

    async with RunContext.open(tmp_path) as context:
        script = scripted({"<a>": [finish({"n": 1})], "<b>": [RuntimeError("no line")]})
        one = executor(context, script, *tasks(), resumable=True)
        await run(one)
        assert one.failed_task_ids == ["b", "c"]

    async with RunContext.open(tmp_path) as context:
        script = scripted({"<b>": [finish(2)], "<c>": [finish(3)]})
        one = executor(context, script, *tasks(), resumable=True)
        events = await run(one)

        assert told(events, "task_created") == ["b", "c"]
        assert [each.node_id for each in events if isinstance(each, LogUpdate)] == ["plan", "a"]
        assert all(each.completed and each.steps[0].completed for each in one.plan.tasks)
        assert await one.get_all_results() == {"a": {"n": 1}, "b": 2, "c": 3}


async def test_without_resumable_all_is_run_again(tmp_path: Path, scripted: Any, run: Any) -> None:
    async with RunContext.open(tmp_path) as context:
        await run(executor(context, scripted([finish(1)]), task("a"), resumable=True))
        again = executor(context, scripted([finish(2)]), task("a"))

        await run(again)

        assert await again.get_final_result() == 2


async def test_a_plan_that_was_changed_is_run_anew(tmp_path: Path, scripted: Any, run: Any) -> None:
    async with RunContext.open(tmp_path) as context:
        await run(executor(context, scripted([finish(1)]), task("a"), resumable=True))
        changed = task("a")
        changed.steps[0].instructions = "<a> with care"
        again = executor(context, scripted([finish(2)]), changed, resumable=True)

        await run(again)

        assert await again.get_final_result() == 2


async def test_results_that_were_there_are_read_and_never_taken_for_the_plans(
    context: RunContext, scripted: Any, run: Any
) -> None:
    await context.memory.set("task:prior", "cached", source="prior", title="Prior research")
    await context.memory.set("task:a", "stale")
    one = executor(context, scripted([finish("fresh")]), task("a"))

    await run(one)

    assert await one.get_all_results() == {"prior": "cached", "a": "fresh"}


async def test_to_stop_listening_stops_all_tasks(context: RunContext, scripted: Any) -> None:
    begun = asyncio.Barrier(3)
    ended: list[str] = []

    async def forever(name: str) -> None:
        try:
            await begun.wait()
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    script = scripted({f"<{id_}>": [("forever", {"name": id_})] for id_ in "ab"})
    one = executor(context, script, task("a"), task("b"), tools=[forever])

    async with aclosing(one.execute()) as events:
        async for event in events:
            if event.type == "tool_call_update" and event.name == "forever":
                await begun.wait()
                break

    assert sorted(ended) == ["a", "b"]


async def test_to_cancel_a_run_ends_it_and_leaves_what_was_done(
    context: RunContext, scripted: Any, run: Any
) -> None:
    def cancels(_messages: Any) -> tuple[str, object]:
        context.cancel("the user left")
        return finish("b")

    script = scripted({"<a>": [finish("a")], "<b>": [cancels], "<c>": []})
    one = executor(context, script, task("a"), task("b", "a"), task("c", "b"))

    with pytest.raises(RunCancelledError, match="the user left"):
        await run(one)

    assert await one.get_all_results() == {"a": "a"}
    assert [each.completed for each in one.plan.tasks] == [True, False, False]
    assert not one.plan.tasks[1].failed


@pytest.mark.parametrize("name", ["max_iterations", "max_step_iterations", "max_concurrent_agents"])
def test_numbers_outside_their_range_are_refused(
    context: RunContext, scripted: Any, name: str
) -> None:
    with pytest.raises(ValueError, match=name):
        executor(context, scripted([]), task("a"), **{name: 0})
