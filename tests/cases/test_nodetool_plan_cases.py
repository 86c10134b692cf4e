"""Seed 002's cases of plans: each test names the case it holds. The model is scripted."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Bank
from coatcheck.errors import InvalidPlanError
from coatcheck.memory import MemoryEntry
from coatcheck.runtime import (
    Event,
    LogUpdate,
    ParallelTaskExecutor,
    RunContext,
    Step,
    Task,
    TaskPlan,
    TaskUpdate,
)

ANY: dict[str, object] = {}
HEADING = "# Required upstream memory (call `memory_read` with these keys):"


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


@pytest.fixture
def context(bank: Bank) -> RunContext:
    return RunContext(bank)


def task(id_: str, *depends_on: str, steps: list[Step] | None = None, **more: Any) -> Task:
    """Return a task; of one without steps the only step is named as it is."""
    schema = more.pop("schema", ANY)
    if steps is None:
        steps = [Step(id=f"{id_}_s", instructions=f"Work on <{id_}>.", output_schema=schema)]
    return Task(id=id_, title=f"Title of {id_}", depends_on=list(depends_on), steps=steps, **more)


def executor(context: RunContext, script: Any, *tasks: Task, **options: Any) -> Any:
    plan = TaskPlan(title="The plan", tasks=list(tasks))
    return ParallelTaskExecutor(plan=plan, context=context, model=script.model, **options)


async def run(executor: Any) -> list[Event]:
    async with aclosing(executor.execute()) as events:
        return [event async for event in events]


def told(events: list[Event], event: str) -> list[str]:
    return [each.task.id for each in events if isinstance(each, TaskUpdate) and each.event == event]


def errors(events: list[Event]) -> list[str]:
    return [
        each.node_id for each in events if isinstance(each, LogUpdate) and each.severity == "error"
    ]


async def test_b27_what_a_task_builds_on_is_named_by_key_and_read_by_tool(
    context: RunContext, scripted: Any
) -> None:
    script = scripted(
        {
            "<research>": [finish({"findings": "the-secret"})],
            "<report>": [
                ("memory_read", {"keys": ["task:task_research"]}),
                finish("done"),
            ],
        }
    )
    first = task("task_research", steps=[Step(instructions="<research>", output_schema=ANY)])
    second = task(
        "report", "task_research", steps=[Step(instructions="<report>", output_schema=ANY)]
    )

    await run(executor(context, script, first, second))

    assert script.first("<research>") == "<research>"
    assert script.first("<report>") == (
        f"<report>\n\n{HEADING}\n- task:task_research — Title of task_research"
    )
    assert "the-secret" in script.returned("<report>")[0]
    assert await context.memory.get_value("task:task_research") == {"findings": "the-secret"}


async def test_b61_a_diamond_starts_with_its_start_and_ends_with_its_merge(
    context: RunContext, scripted: Any
) -> None:
    ids = ("start", "left", "right", "merge")
    script = scripted({f"<{id_}>": [finish(id_)] for id_ in ids})
    one = executor(
        context,
        script,
        task("start"),
        task("left", "start"),
        task("right", "start"),
        task("merge", "left", "right"),
    )

    events = await run(one)

    completed = told(events, "task_completed")
    assert completed[0] == "start"
    assert completed[-1] == "merge"
    assert set(completed) == set(ids)
    assert await one.get_all_results() == {id_: id_ for id_ in ids}
    assert one.failed_task_ids == []


async def test_b62_an_unknown_dependency_of_a_task_is_refused_before_anything_runs(
    context: RunContext, scripted: Any
) -> None:
    heard: list[MemoryEntry] = []
    context.memory.subscribe(heard.append)
    script = scripted([])
    one = executor(context, script, task("a"), task("b", "ghost"), inputs={"x": 1})

    with pytest.raises(InvalidPlanError, match="'b' depends on 'ghost'"):
        await anext(one.execute())

    assert (script.asked, heard) == ([], [])


async def test_b63_a_task_whose_step_never_completes_fails(
    context: RunContext, scripted: Any
) -> None:
    one = executor(context, scripted([("memory_list", {})]), task("a"), max_step_iterations=1)

    events = await run(one)

    assert told(events, "task_failed") == ["a"] == errors(events) == one.failed_task_ids
    assert told(events, "task_completed") == []
    assert not one.plan.tasks[0].completed
    assert await one.get_final_result() is None


async def test_b64_a_task_fails_where_all_items_do(context: RunContext, scripted: Any) -> None:
    steps = [
        Step(id="d", instructions="<list>", output_schema=ANY),
        Step(
            id="p",
            instructions="Item {item}",
            depends_on=["d"],
            mode="process",
            output_schema=ANY,
        ),
    ]
    script = scripted({"<list>": [finish([1, 2])], "Item": ["prose", finish({"error": "broken"})]})
    one = executor(context, script, task("a", steps=steps), task("b", "a"))

    events = await run(one)

    assert told(events, "task_failed") == ["a", "b"]
    assert "all 2 items failed" in str(steps[1].error)
    assert (steps[1].items, steps[1].items_failed) == (2, 2)
    assert not await context.memory.has("task:a")


@pytest.mark.parametrize("is_declared", [True, False])
async def test_b65_an_error_is_a_result_only_where_the_schema_declares_it(
    context: RunContext, scripted: Any, is_declared: bool
) -> None:
    schema = {"type": "object", "properties": {"error": {"type": "string"}, "ok": {}}}
    result = {"error": "no errors found", "ok": True}
    script = scripted({"<a>": [finish(result)], "<b>": [finish("ran")]})
    one = executor(context, script, task("a", schema=schema if is_declared else {}), task("b", "a"))

    await run(one)

    assert one.failed_task_ids == ([] if is_declared else ["a", "b"])
    assert await one.get_task_result("a") == (result if is_declared else None)
    assert await one.get_task_result("b") == ("ran" if is_declared else None)


async def test_b66_a_dependent_starts_before_a_long_sibling_ends(
    context: RunContext, scripted: Any
) -> None:
    follower = asyncio.Event()

    async def wait() -> str:
        await follower.wait()
        return "it came"

    def begins(_messages: Any) -> tuple[str, object]:
        follower.set()
        return finish("b")

    # With a barrier between rounds this would never end.
    script = scripted(
        {"<short>": [finish("a")], "<long>": [("wait", {}), finish("l")], "<next>": [begins]}
    )
    one = executor(
        context, script, task("short"), task("long"), task("next", "short"), tools=[wait]
    )

    events = await run(one)

    assert told(events, "task_completed") == ["short", "next", "long"]


async def test_b67_events_come_in_the_order_of_the_work(context: RunContext, scripted: Any) -> None:
    script = scripted({f"<{id_}>": [finish(id_)] for id_ in ("s_a1", "s_a2", "s_b1")})
    steps = {
        id_: Step(id=id_, instructions=f"<{id_}>", output_schema=ANY)
        for id_ in ("s_a1", "s_a2", "s_b1")
    }
    steps["s_a2"].depends_on = ["s_a1"]
    one = executor(
        context,
        script,
        task("t_a", steps=[steps["s_a1"], steps["s_a2"]]),
        task("t_b", "t_a", steps=[steps["s_b1"]]),
    )

    events = await run(one)

    def of_step(id_: str) -> list[tuple[str, str | None]]:
        return [
            ("step_started", id_),
            ("tool_call_update", id_),
            ("step_completed", id_),
            ("step_result", id_),
        ]

    assert [_named(each) for each in events if each.type not in {"chunk", "log_update"}] == [
        ("task_created", "t_a"),
        *of_step("s_a1"),
        *of_step("s_a2"),
        ("task_completed", "t_a"),
        ("task_created", "t_b"),
        *of_step("s_b1"),
        ("task_completed", "t_b"),
    ]


def _named(event: Any) -> tuple[str, str | None]:
    if event.type == "task_update":
        return event.event, event.node_id
    return event.type, event.step.id if event.type == "step_result" else event.node_id


async def test_b68_the_final_result_is_that_of_the_last_task(
    context: RunContext, scripted: Any
) -> None:
    script = scripted({"<a>": [finish({"n": 1})], "<b>": [finish({"n": 2})]})
    one = executor(context, script, task("a"), task("b"))

    await run(one)

    assert await one.get_final_result() == {"n": 2}
    assert await one.get_task_result("a") == {"n": 1}
    assert await one.get_task_result("nothing") is None
