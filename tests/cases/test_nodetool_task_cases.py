"""Seed 002's cases of one task and of fan-out: each test names the case it holds."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Bank
from coatcheck.errors import InvalidPlanError
from coatcheck.memory import MemoryEntry
from coatcheck.runtime import Event, RunContext, Step, StepResult, Task, TaskExecutor, TaskUpdate

ANY: dict[str, object] = {}


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


@pytest.fixture
def context(bank: Bank) -> RunContext:
    return RunContext(bank)


@pytest.fixture
def writes(context: RunContext) -> list[MemoryEntry]:
    heard: list[MemoryEntry] = []
    context.memory.subscribe(heard.append)
    return heard


def step(id_: str, *depends_on: str, **more: Any) -> Step:
    more = {"instructions": f"Work on {id_}.", "output_schema": ANY, **more}
    return Step(id=id_, depends_on=list(depends_on), **more)


def process(id_: str, *depends_on: str, template: str | None = None, **more: Any) -> Step:
    return step(id_, *depends_on, mode="process", per_item_instructions=template, **more)


async def run(executor: Any) -> list[Event]:
    async with aclosing(executor.execute()) as events:
        return [event async for event in events]


def results(events: list[Event]) -> list[StepResult]:
    return [event for event in events if isinstance(event, StepResult)]


def told(events: list[Event], event: str) -> list[str | None]:
    return [each.node_id for each in events if isinstance(each, TaskUpdate) and each.event == event]


def executor(context: RunContext, script: Any, *steps: Step, **options: Any) -> TaskExecutor:
    task = Task(id="t", title="The task", steps=list(steps))
    return TaskExecutor(task=task, context=context, model=script.model, **options)


async def test_b26_inputs_are_entries_and_stand_in_no_message(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([finish(1)])

    await run(executor(context, script, step("s"), inputs={"customer": "Acme", "region": "the-EU"}))

    entries = await context.memory.list(kind="input")
    assert {entry.key: entry.value for entry in entries} == {
        "input:customer": "Acme",
        "input:region": "the-EU",
    }
    assert "Acme" not in script.first()
    assert "the-EU" not in script.first()
    assert "memory_list" in script.system()
    assert "memory_read" in script.system()


async def test_b45_a_step_is_stored_before_the_next_one_begins(
    context: RunContext, scripted: Any, writes: list[MemoryEntry]
) -> None:
    def second(_messages: Any) -> tuple[str, object]:
        assert [entry.key for entry in writes] == ["step:s1"]
        return finish(2)

    one = executor(
        context, scripted({"s1": [finish(1)], "s2": [second]}), step("s1"), step("s2", "s1")
    )

    await run(one)

    assert [entry.key for entry in writes] == ["step:s1", "step:s2", "task:t"]
    assert await one.get_result() == 2


@pytest.mark.parametrize("is_parallel", [False, True])
async def test_b46_the_finish_step_is_the_last_even_without_dependencies(
    context: RunContext, scripted: Any, writes: list[MemoryEntry], is_parallel: bool
) -> None:
    script = scripted({f"s{n}": [finish(n)] for n in (1, 2, 3)})
    steps = [step("s1"), step("s2"), step("s3")]

    await run(executor(context, script, *steps, final_step_id="s1", parallel_execution=is_parallel))

    assert [entry.key for entry in writes][-2:] == ["step:s1", "task:t"]
    assert {entry.key for entry in writes[:2]} == {"step:s2", "step:s3"}
    assert await context.memory.get_value("task:t") == 1


async def test_b47_an_unknown_dependency_is_refused_before_anything_runs(
    context: RunContext, scripted: Any, writes: list[MemoryEntry]
) -> None:
    script = scripted([])
    one = executor(context, script, step("s1"), step("s2", "ghost"), inputs={"x": 1})

    with pytest.raises(InvalidPlanError, match="'s2' depends on 'ghost'"):
        await run(one)

    assert (script.asked, writes) == ([], [])


async def test_b48_a_chain_of_fifteen_steps_completes(context: RunContext, scripted: Any) -> None:
    steps = [step("s0"), *(step(f"s{n}", f"s{n - 1}") for n in range(1, 15))]
    one = executor(context, scripted([finish(n) for n in range(15)]), *steps)

    await run(one)

    assert all(each.completed for each in one.task.steps)
    assert await one.get_result() == 14


async def test_a_chain_of_more_than_max_steps_is_refused(
    context: RunContext, scripted: Any
) -> None:
    steps = [step("s0"), step("s1", "s0"), step("s2", "s1")]
    await run(executor(context, scripted([finish(1)] * 3), *steps, max_steps=3))

    with pytest.raises(InvalidPlanError, match="max_steps=2"):
        await run(executor(context, scripted([]), *steps, max_steps=2))


async def test_b49_an_empty_task_tells_nothing(
    context: RunContext, scripted: Any, writes: list[MemoryEntry]
) -> None:
    assert await run(executor(context, scripted([]), inputs={"x": 1})) == []
    assert writes == []


async def test_b50_an_input_that_is_there_is_not_written_again(
    context: RunContext, scripted: Any
) -> None:
    await context.memory.set("input:region", "EU")
    heard: list[str] = []
    context.memory.subscribe(lambda entry: heard.append(entry.key))

    await run(executor(context, scripted([finish(1)]), step("s"), inputs={"region": "US"}))

    assert await context.memory.get_value("input:region") == "EU"
    assert "input:region" not in heard


@pytest.mark.parametrize("is_given", [True, False])
async def test_b51_a_step_may_depend_on_an_input(
    context: RunContext, scripted: Any, is_given: bool
) -> None:
    if not is_given:
        await context.memory.set("input:region", "EU", title="region")
    script = scripted([finish(1)])
    inputs = {"region": "EU"} if is_given else {}

    await run(executor(context, script, step("s", "region"), inputs=inputs))

    assert "- input:region — region" in script.first()
    assert await context.memory.get_value("task:t") == 1


async def test_b52_a_process_step_without_dependencies_is_done(
    context: RunContext, scripted: Any, writes: list[MemoryEntry]
) -> None:
    one = executor(context, scripted([]), process("p"))

    events = await run(one)

    assert one.task.steps[0].completed
    assert (results(events), writes) == ([], [])


async def test_b53_a_process_step_without_a_source_has_no_items(
    context: RunContext, scripted: Any
) -> None:
    one = executor(context, scripted([]), step("d", completed=True), process("p", "d"))

    await run(one)

    assert await context.memory.get_value("step:p") == []
    assert one.task.steps[1].end_time is not None
    assert one.task.steps[1].items == 0
    assert await one.get_result() == []


async def test_b54_a_source_that_is_no_list_is_one_item(context: RunContext, scripted: Any) -> None:
    script = scripted({"d.": [finish({"name": "solo"})], "Look": [finish("found")]})
    one = executor(context, script, step("d"), process("p", "d", template="Look at {name}!"))

    await run(one)

    assert script.first("Look") == "Look at solo!"
    assert await one.get_result() == ["found"]


async def test_b55_each_object_of_a_list_is_run_for_itself(
    context: RunContext, scripted: Any
) -> None:
    script = scripted(
        {
            "d.": [finish([{"city": "paris"}, {"city": "tokyo"}])],
            "paris": [finish({"is": "paris"})],
            "tokyo": [finish({"is": "tokyo"})],
        }
    )
    template = "Weather in {city}, {unknown}, {city}"
    one = executor(context, script, step("d"), process("p", "d", template=template))

    events = await run(one)

    assert script.first("paris") == "Weather in paris, {unknown}, paris"
    assert script.first("tokyo") == "Weather in tokyo, {unknown}, tokyo"
    assert await one.get_result() == [{"is": "paris"}, {"is": "tokyo"}]
    assert [each.step.id.startswith("p_item_") for each in results(events)] == [False, True, True]


async def test_b56_plain_items_are_rendered_as_item(context: RunContext, scripted: Any) -> None:
    script = scripted(
        {"d.": [finish(["alpha", "beta"])], "alpha": [finish("A")], "beta": [finish("B")]}
    )
    one = executor(context, script, step("d"), process("p", "d", template="See {item}"))

    await run(one)

    assert (script.first("alpha"), script.first("beta")) == ("See alpha", "See beta")
    assert await one.get_result() == ["A", "B"]


async def test_b57_without_a_template_items_take_the_instructions(
    context: RunContext, scripted: Any
) -> None:
    script = scripted({"d.": [finish([1, 2])], "{": [], "Item": [finish("a"), finish("b")]})
    one = executor(
        context, script, step("d"), process("p", "d", instructions="Item {item} of the list")
    )

    await run(one)

    assert script.first("Item 1") == "Item 1 of the list"
    assert await one.get_result() == ["a", "b"]


@pytest.mark.parametrize("is_parallel", [False, True])
async def test_b58_items_end_in_any_order_and_stand_in_theirs(
    context: RunContext, scripted: Any, is_parallel: bool
) -> None:
    order: list[int] = []
    third = asyncio.Event()

    async def slow(n: int) -> int:
        if n == 3:
            third.set()
        await third.wait()
        order.append(n)
        return n

    # The first two wait for the third: they only get on where all three go on at once.
    script = scripted(
        {
            "d.": [finish([1, 2, 3])],
            **{f"Item {n}": [("slow", {"n": n}), finish(n * 10)] for n in (1, 2, 3)},
        }
    )
    one = executor(
        context,
        script,
        step("d"),
        process("p", "d", template="Item {item}"),
        tools=[slow],
        parallel_execution=is_parallel,
    )

    await run(one)

    assert sorted(order) == [1, 2, 3]
    assert await one.get_result() == [10, 20, 30]


async def test_b59_items_have_a_schema_of_their_own(context: RunContext, scripted: Any) -> None:
    script = scripted({"d.": [finish(["x"])], "Item": [finish("no"), finish({"ok": True})]})
    schema = '{"type": "object", "required": ["ok"]}'
    one = executor(
        context,
        script,
        step("d"),
        process("p", "d", template="Item {item}", per_item_schema=schema),
    )

    await run(one)

    assert '"required":["ok"]' in script.system("Item")
    assert await one.get_result() == [{"ok": True}]


async def test_b60_a_provider_that_fails_is_told_and_siblings_run_to_their_end(
    context: RunContext, scripted: Any
) -> None:
    script = scripted(
        {"s1": [RuntimeError("no such route")], "s2": [("memory_list", {}), finish(2)], "s3": []}
    )
    one = executor(
        context, script, step("s1"), step("s2"), step("s3", "s1", "s2"), parallel_execution=True
    )

    events = await run(one)

    told_of = {each.step.id: each for each in results(events)}
    assert "RuntimeError: no such route" in str(told_of["s1"].error)
    assert told_of["s2"].result == 2
    assert told_of["s3"].error == "dependency 's1' failed"
    assert told(events, "step_failed") == ["s1", "s3"]
    assert (one.task.completed, one.task.failed) == (False, True)
    assert await one.get_result() is None
    assert not await context.memory.has("task:t")
