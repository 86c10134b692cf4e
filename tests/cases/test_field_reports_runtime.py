"""Field reports on plans, fan-out, namespaces and pointers, as scripted runs meet them."""

import json
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Bank
from coatcheck.errors import InvalidPlanError
from coatcheck.runtime import (
    Event,
    ParallelTaskExecutor,
    RunContext,
    Step,
    StepExecutor,
    Task,
    TaskExecutor,
    TaskPlan,
    ToolCallUpdate,
)

UNISSUED = "art:00000000-0000-4000-8000-000000000005"


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


@pytest.fixture
def context(bank: Bank) -> RunContext:
    return RunContext(bank)


def task(id_: str, *depends_on: str) -> Task:
    steps = [Step(id=f"{id_}_s", instructions=f"<{id_}>", output_schema={})]
    return Task(id=id_, title=id_, depends_on=list(depends_on), steps=steps)


def one_step(context: RunContext, script: Any, **options: Any) -> StepExecutor:
    step = Step(id="s1", instructions="Do it.", output_schema={})
    own = Task(id="t1", steps=[step])
    return StepExecutor(task=own, step=step, context=context, model=script.model, **options)


async def run(executor: Any) -> list[Event]:
    async with aclosing(executor.execute()) as events:
        return [event async for event in events]


def plan_of(context: RunContext, script: Any, *tasks: Task) -> ParallelTaskExecutor:
    return ParallelTaskExecutor(
        plan=TaskPlan(tasks=list(tasks)), context=context, model=script.model
    )


async def test_br_081_a_plan_with_a_ghost_is_refused_and_both_are_named(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([])

    with pytest.raises(InvalidPlanError, match="'B' depends on 'ghost'"):
        await run(plan_of(context, script, task("A"), task("B", "ghost")))

    assert script.asked == []
    assert await context.memory.size() == 0


async def test_br_083_dependents_of_a_failed_task_are_blocked_with_the_reason(
    context: RunContext, scripted: Any
) -> None:
    script = scripted({"<A>": [RuntimeError("gone")], "<C>": [finish("c")]})
    one = plan_of(context, script, task("A"), task("B", "A"), task("C"), task("D", "B"))

    await run(one)

    state = {each.id: (each.completed, each.failed, each.error) for each in one.plan.tasks}
    assert state["B"] == state["D"] == (False, True, "dependency 'A' failed")
    assert state["C"] == (True, False, None)
    there = [await context.memory.has(f"task:{id_}") for id_ in "ABCD"]
    assert there == [False, False, True, False]


async def test_br_084_one_bad_item_loses_no_result(context: RunContext, scripted: Any) -> None:
    script = scripted(
        {
            "<list>": [finish(["i0", "i1", "i2", "i3", "i4"])],
            "i2": [RuntimeError("raised")],
            **{f"i{n}": [finish(n)] for n in (0, 1, 3, 4)},
        }
    )
    each = Step(
        id="each", instructions="{item}", depends_on=["list"], mode="process", output_schema={}
    )
    steps = [Step(id="list", instructions="<list>", output_schema={}), each]
    one = TaskExecutor(task=Task(id="t", steps=steps), context=context, model=script.model)

    await run(one)

    result: Any = await one.get_result()
    assert [*result[:2], *result[3:]] == [0, 1, 3, 4]
    assert "raised" in result[2]["error"]
    assert (each.completed, each.items, each.items_failed) == (True, 5, 1)


async def test_br_078_a_model_cannot_write_where_executors_do(
    context: RunContext, scripted: Any
) -> None:
    for key in ("task:research", "step:s0", "input:q"):
        await context.memory.set(key, "true")
    keys = [
        *("task:research", "step:s0", "step:s1", "input:q", "shared:x"),
        *(" Task:research", "task\u200b:r", "task:research\n", "a:b", "shared:task:research"),
    ]
    script = scripted(
        [*(("memory_write", {"key": key, "value": "forged"}) for key in keys), finish("mine")]
    )

    await run(one_step(context, script))

    values = {
        entry.key: entry.value
        for entry in await context.memory.list()
        if not entry.key.startswith("shared:")
    }
    assert values == {
        "task:research": "true",
        "step:s0": "true",
        "input:q": "true",
        "step:s1": "mine",
    }
    assert not await context.memory.has("shared:shared:x")


async def test_br_080_ids_and_inputs_with_colons_and_newlines_stay_in_their_place(
    context: RunContext, scripted: Any
) -> None:
    strange = Task(
        id="a:b", title="t", steps=[Step(id="task:x", instructions="<s>", output_schema={})]
    )
    script = scripted([finish("r")])
    one = TaskExecutor(
        task=strange, context=context, model=script.model, inputs={"x\ny": 1, "task:a": 2}
    )

    await run(one)

    entries = await context.memory.list()
    assert {entry.key: (entry.kind, entry.value) for entry in entries} == {
        "input:x\ny": ("input", 1),
        "input:task:a": ("input", 2),
        "step:task:x": ("step_result", "r"),
        "task:a:b": ("task_result", "r"),
    }


async def test_br_036_pointers_deep_in_arguments_are_values_and_the_model_sees_pointers(
    context: RunContext, scripted: Any
) -> None:
    got: list[object] = []

    async def take(q: dict[str, Any], more: list[Any]) -> str:
        got.extend([q, more])
        return "taken"

    pointer = (await context.bank.put([1, 2, 3])).pointer
    arguments = {"q": {"ids": pointer}, "more": [pointer, "lit"]}
    script = scripted([("take", arguments), finish(1)])

    events = await run(one_step(context, script, tools=[take]))

    assert got == [{"ids": [1, 2, 3]}, [[1, 2, 3], "lit"]]
    told = [event for event in events if isinstance(event, ToolCallUpdate)]
    assert told[0].args == arguments == {"q": {"ids": pointer}, "more": [pointer, "lit"]}


async def test_br_038_a_pointer_of_any_origin_is_taken_by_tools_of_a_step(
    context: RunContext, scripted: Any
) -> None:
    def rows() -> list[int]:
        return list(range(20_000))

    async def size(of: list[int]) -> int:
        return len(of)

    banked = (await context.bank.put([0] * 7)).pointer
    entry = await context.memory.set("task:big", list(range(30_000)))

    def use(messages: Any) -> Any:
        shown = json.loads(messages[-1].parts[0].content)["pointer"]
        return [("size", {"of": each}) for each in (banked, entry.pointer, shown)]

    script = scripted([("rows", {}), use, finish(1)])

    await run(one_step(context, script, tools=[rows, size]))

    assert script.returned()[1:] == ["7", "30000", "20000"]


async def test_br_039_only_pointers_that_were_issued_are_followed(
    context: RunContext, scripted: Any
) -> None:
    got: list[str] = []

    def search(query: str) -> str:
        got.append(query)
        return "found"

    calls = [("search", {"query": "art:deco posters"}), ("search", {"query": UNISSUED})]
    script = scripted([*calls, finish(1)])

    await run(one_step(context, script, tools=[search]))

    assert got == ["art:deco posters"]
    assert json.loads(script.returned()[1])["error"] == "unknown-pointer"


async def test_br_040_a_wrong_handle_costs_a_run_nothing_but_its_turns(
    context: RunContext, scripted: Any
) -> None:
    wrong = ("retrieve_context", {"artifactId": "functions.read_tool_result_44.1"})
    script = scripted([*[wrong] * 5, finish("done")])
    one = one_step(context, script)

    await run(one)

    replies = [json.loads(each) for each in script.returned()]
    assert [each["error"] for each in replies] == ["unknown-pointer"] * 5
    assert await one.get_result() == "done"


async def test_every_access_to_memory_is_told(context: RunContext, scripted: Any) -> None:
    calls = [
        ("memory_list", {"kind": ["shared"]}),
        ("memory_read", {"keys": ["task:a"]}),
        ("memory_write", {"key": "x", "value": 1}),
    ]
    script = scripted([*calls, calls, finish(1)])

    events = await run(one_step(context, script))

    told = [event for event in events if isinstance(event, ToolCallUpdate)]
    assert [(each.name, each.args) for each in told] == [*calls, *calls, finish(1)]
    assert [each.message for each in told[:3]] == [
        'Listing memory: kind ["shared"]',
        'Reading memory: ["task:a"]',
        "Writing memory: x",
    ]
