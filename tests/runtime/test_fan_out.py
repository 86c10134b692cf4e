import asyncio
import json
from contextlib import aclosing
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from coatcheck.content import dumps
from coatcheck.errors import RunCancelledError
from coatcheck.runtime import (
    LogUpdate,
    RunContext,
    Step,
    StepResult,
    Task,
    TaskExecutor,
    TaskUpdate,
)


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def fan_out(context: RunContext, script: Any, template: str = "Item {item}", **more: Any) -> Any:
    options = {name: more.pop(name) for name in ("tools", "inputs") if name in more}
    more = {"output_schema": {}, "depends_on": ["list"], **more}
    steps = [
        Step(id="list", instructions="<list>", output_schema={}),
        Step(id="each", mode="process", per_item_instructions=template, **more),
    ]
    task = Task(id="t", title="T", steps=steps)
    return TaskExecutor(task=task, context=context, model=script.model, **options)


async def test_one_failed_item_is_one_record_in_its_place(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted(
        {
            "<list>": [finish([0, 1, 2, 3, 4])],
            **{f"Item {n}": [finish(n * n)] for n in (0, 1, 3, 4)},
            "Item 2": [RuntimeError("bad luck")],
        }
    )
    one = fan_out(context, script)

    await run(one)

    result: Any = await one.get_result()
    assert [result[at] for at in (0, 1, 3, 4)] == [0, 1, 9, 16]
    assert set(result[2]) == {"error"}
    assert "bad luck" in result[2]["error"]
    step = one.task.steps[1]
    assert (step.completed, step.items, step.items_failed) == (True, 5, 1)
    assert one.task.completed


async def test_identical_items_are_steps_of_their_own(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted(
        {"<list>": [finish(["same", "same", "same"])], "same": [finish(n) for n in (1, 2, 3)]}
    )
    one = fan_out(context, script)

    events = await run(one)

    ids = [each.step.id for each in events if isinstance(each, StepResult)][1:]
    assert len(set(ids)) == 3
    result: Any = await one.get_result()
    assert sorted(result) == [1, 2, 3]
    assert [await context.memory.get_value(f"step:{id_}") for id_ in sorted(ids)] == [1, 2, 3]


async def test_eight_items_go_on_at_once_and_no_more(
    context: RunContext, scripted: Any, run: Any
) -> None:
    going, most = 0, 0
    eight = asyncio.Barrier(8)

    async def work() -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await eight.wait()
        going -= 1

    items = list(range(10, 26))
    script = scripted(
        {
            "<list>": [finish(items)],
            **{f"Item {n}": [("work", {}), finish(n)] for n in items},
        }
    )

    one = fan_out(context, script, tools=[work])
    await asyncio.wait_for(run(one), 60)

    assert most == 8
    assert await one.get_result() == items


async def test_a_failed_discover_step_blocks_the_process_step(
    context: RunContext, scripted: Any, run: Any
) -> None:
    one = fan_out(context, scripted({"<list>": ["prose"], "Item": []}))

    events = await run(one)

    step = one.task.steps[1]
    assert (step.failed, step.error) == (True, "dependency 'list' failed")
    failed = [each.node_id for each in events if getattr(each, "event", "") == "step_failed"]
    assert failed == ["list", "each"]
    assert await context.memory.get_value("step:each") == {"error": "dependency 'list' failed"}
    assert not await context.memory.has("task:t")


async def test_an_input_may_be_the_list(context: RunContext, scripted: Any, run: Any) -> None:
    script = scripted({"<list>": [finish(0)], "Item a": [finish(1)], "Item b": [finish(2)]})
    one = fan_out(context, script, depends_on=["names"], inputs={"names": ["a", "b"]})

    await run(one)

    assert await one.get_result() == [1, 2]


async def test_what_is_put_into_a_template_is_not_looked_at_again(
    context: RunContext, scripted: Any, run: Any
) -> None:
    item = {"a": "{b}", "b": "{a}", "deep": {"x": [1]}, "nothing": None}
    script = scripted({"<list>": [finish([item])], "Do": [finish(1)]})

    await run(fan_out(context, script, "Do {a} {b} {deep} {nothing} {c} {} {{a}}"))

    assert script.first("Do") == 'Do {b} {a} {"x":[1]} null {c} {} {{b}}'


async def test_an_object_is_an_item_too_where_no_field_has_that_name(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted({"<list>": [finish([{"a": 1}])], "Do": [finish(1)]})

    await run(fan_out(context, script, "Do {item}"))

    assert script.first("Do") == 'Do {"a":1}'


async def test_a_large_item_reaches_its_step_as_a_pointer(
    context: RunContext, scripted: Any, run: Any
) -> None:
    text = "event " * 20_000
    await context.memory.set("input:logs", [text])
    script = scripted({"<list>": [finish(0)], "Read": [finish(1)]})

    await run(fan_out(context, script, "Read {item}", depends_on=["logs"]))

    said = script.first("Read")
    assert len(said) < 1_500
    pointer = json.loads(said.removeprefix("Read "))["pointer"]
    assert await context.bank.get(pointer) == text


async def test_a_large_item_has_the_pointer_that_it_had_before_where_a_run_begins_anew(
    context: RunContext, scripted: Any, run: Any
) -> None:
    said: list[str] = []
    for again in (context, context.copy()):
        await again.memory.set("input:logs", ["event " * 20_000])
        script = scripted({"<list>": [finish(0)], "Read": [finish(1)]})
        await run(fan_out(again, script, "Read {item}", depends_on=["logs"]))
        said.append(script.first("Read"))

    assert said[0] == said[1]


async def test_a_large_result_of_an_item_stands_in_the_list_as_its_pointer(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted({"<list>": [finish([1, 2])], "Item 1": ["y" * 60_000], "Item 2": ["short"]})
    one = fan_out(context, script, output_schema=None)

    await run(one)

    result: Any = await one.get_result()
    assert result[1] == "short"
    assert await context.bank.get(result[0]) == "y" * 60_000


async def test_a_bad_schema_of_items_is_warned_of_once(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted({"<list>": [finish([1, 2, 3])], "Item": [finish(n) for n in (1, 2, 3)]})
    one = fan_out(context, script, per_item_schema="nonsense")

    events = await run(one)

    warnings = [each.node_id for each in events if isinstance(each, LogUpdate)]
    assert warnings == ["each"]
    assert len(await one.get_result()) == 3


async def test_an_empty_list_gives_an_empty_one(
    context: RunContext, scripted: Any, run: Any
) -> None:
    one = fan_out(context, scripted({"<list>": [finish([])]}))

    events = await run(one)

    assert await one.get_result() == []
    assert one.task.steps[1].items == 0
    assert [each.step.id for each in events if isinstance(each, StepResult)] == ["list"]


async def test_all_items_failed_is_a_failed_step_that_is_told(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted({"<list>": [finish([1, 2])], "Item": ["prose", "prose"]})
    one = fan_out(context, script)

    events = await run(one)

    step = one.task.steps[1]
    assert (step.failed, step.completed) == (True, False)
    assert str(step.error).startswith("all 2 items failed: the model ended after 1 turn")
    assert await context.memory.get_value("step:each") == {"error": step.error}
    told = [
        each.node_id
        for each in events
        if isinstance(each, TaskUpdate) and each.event == "step_failed"
    ]
    assert told[-1] == "each"
    assert len(told) == 3


async def test_to_cancel_stops_all_items(context: RunContext, scripted: Any, run: Any) -> None:
    ended: list[int] = []
    all_there = asyncio.Barrier(3)

    async def forever(n: int, ctx: RunContext) -> None:
        try:
            await all_there.wait()
            ctx.cancel()
            await asyncio.Event().wait()
        finally:
            ended.append(n)

    script = scripted(
        {
            "<list>": [finish([1, 2, 3])],
            **{f"Item {n}": [("forever", {"n": n})] for n in (1, 2, 3)},
        }
    )

    with pytest.raises(RunCancelledError):
        await run(fan_out(context, script, tools=[forever]))

    assert sorted(ended) == [1, 2, 3]


async def test_an_item_never_takes_the_place_of_a_step(
    context: RunContext, scripted: Any, run: Any
) -> None:
    digest = sha256(b'"x"').hexdigest()[:12]
    script = scripted(
        {"<list>": [finish(["x"])], "<other>": [finish("kept")], "Item": [finish("item")]}
    )
    one = fan_out(context, script)
    other = Step(id=f"each_item_{digest}", instructions="<other>", output_schema={})
    one.task.steps.insert(1, other)

    await run(one)

    assert await context.memory.get_value(f"step:{other.id}") == "kept"
    assert await one.get_result() == ["item"]


# No object has a field `item`, and hypothesis draws no lone surrogates.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.hypothesis
@given(items=st.lists(JSON, max_size=12))
def test_whatever_the_items_are_each_result_stands_in_its_place(items: list[Any]) -> None:
    async def reply(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        said = str(messages[0].parts[1].content)  # type: ignore[union-attr]
        shown = said.removeprefix("Item: ")
        return ModelResponse(parts=[ToolCallPart("finish_step", {"result": ["saw", shown]})])

    async def results() -> Any:
        context = RunContext()
        await context.memory.set("input:items", items)
        step = Step(
            id="each",
            mode="process",
            instructions="Item: {item}",
            depends_on=["items"],
            output_schema={},
        )
        executor = TaskExecutor(
            task=Task(id="t", steps=[step]), context=context, model=FunctionModel(reply)
        )
        async with aclosing(executor.execute()) as events:
            async for _event in events:
                pass
        return await executor.get_result()

    def shown(item: Any) -> str:
        return item if isinstance(item, str) else dumps(item).decode()

    assert asyncio.run(results()) == [["saw", shown(item)] for item in items]
