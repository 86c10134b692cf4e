"""Seed 002's cases of one step: each test names the case it holds. The model is scripted."""

import json
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Bank, memory_keys
from coatcheck.runtime import (
    Event,
    RunContext,
    Step,
    StepExecutor,
    StepResult,
    Task,
    TaskUpdate,
    ToolCallUpdate,
)

VALUE = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


@pytest.fixture
def context(bank: Bank) -> RunContext:
    return RunContext(bank)


def executor(context: RunContext, script: Any, **options: Any) -> StepExecutor:
    step = Step(
        id="s1",
        instructions="Find the value.",
        output_schema=options.pop("output_schema", VALUE),
        depends_on=options.pop("depends_on", []),
    )
    task = Task(id="t1", title="The task", steps=[step])
    return StepExecutor(
        task=task, step=step, context=context, model=script.model, use_finish_task=True, **options
    )


async def run(executor: Any) -> list[Event]:
    async with aclosing(executor.execute()) as events:
        return [event async for event in events]


def outcome(events: list[Event]) -> StepResult:
    (result,) = [event for event in events if isinstance(event, StepResult)]
    return result


def updates(events: list[Event]) -> list[str]:
    return [event.event for event in events if isinstance(event, TaskUpdate)]


async def test_b25_a_finished_step_is_in_memory_as_step_and_task(
    context: RunContext, scripted: Any
) -> None:
    await run(executor(context, scripted([finish({"value": 42})])))

    step, task = [await context.memory.get(key) for key in ("step:s1", "task:t1")]
    assert step is not None
    assert task is not None
    assert (step.value, step.kind, step.source) == ({"value": 42}, "step_result", "s1")
    assert (task.value, task.kind, task.source) == ({"value": 42}, "task_result", "t1")
    assert (step.title, task.title) == ("Find the value.", "The task")


@pytest.mark.parametrize("schema", [None, VALUE])
@pytest.mark.parametrize("is_final", [False, True])
async def test_b28_a_callers_prompt_stands_before_the_whole_contract(
    context: RunContext, scripted: Any, schema: Any, is_final: bool
) -> None:
    script = scripted(["done"] if schema is None else [finish({"value": 1})])
    step = Step(id="s1", instructions="Find the value.", output_schema=schema)

    await run(
        StepExecutor(
            task=Task(id="t1", steps=[step]),
            step=step,
            context=context,
            model=script.model,
            use_finish_task=is_final,
            system_prompt="  MARKER {not a template}\n",
        )
    )

    prompt = script.system()
    assert prompt.startswith("MARKER {not a template}\n\n---\n\n")
    assert "Memory Tools (progressive disclosure)" in prompt
    assert "memory_list" in prompt
    assert "memory_read" in prompt
    assert ("finish_step" in prompt) is (schema is not None)
    assert ('"value":{"type":"integer"}' in prompt) is (schema is not None)


async def test_b28_a_blank_prompt_of_a_caller_is_none(context: RunContext, scripted: Any) -> None:
    script = scripted([finish({"value": 1})])

    await run(executor(context, script, system_prompt=" \n "))

    assert not script.system().startswith("-")


async def test_b29_what_a_model_reads_comes_as_a_tool_result_and_not_before(
    context: RunContext, scripted: Any
) -> None:
    await context.memory.set(memory_keys.task("up"), {"findings": "the-secret"}, title="Found")
    script = scripted(
        [
            ("memory_list", {}),
            ("memory_read", {"keys": ["task:up"]}),
            finish({"value": 7}),
        ]
    )

    one = executor(context, script, upstream_memory_keys=["task:up"])
    events = await run(one)

    assert "the-secret" not in script.first()
    assert "- task:up — Found" in script.first()
    assert "the-secret" not in script.returned()[0]
    assert "the-secret" in script.returned()[1]
    assert await one.get_result() == {"value": 7}
    assert outcome(events).result == {"value": 7}


async def test_b30_what_a_model_shares_is_an_entry(context: RunContext, scripted: Any) -> None:
    share = {"key": "source", "value": "https://example.com", "title": "Top source"}

    await run(executor(context, scripted([("memory_write", share), finish({"value": 1})])))

    entry = await context.memory.get("shared:source")
    assert entry is not None
    assert (entry.kind, entry.title, entry.source) == ("shared", "Top source", "memory_write")


async def test_b32_a_step_tells_what_goes_on_and_what_came_of_it(
    context: RunContext, scripted: Any
) -> None:
    one = executor(context, scripted([["I have it.", finish({"value": 42})]]))

    events = await run(one)

    assert {"task_update", "chunk", "step_result"} <= {event.type for event in events}
    assert outcome(events).step.completed
    assert not outcome(events).step.failed
    assert await one.get_result() == await context.memory.get_value("step:s1") == {"value": 42}


async def test_b33_json_in_prose_is_no_result(context: RunContext, scripted: Any) -> None:
    one = executor(context, scripted(['{"value": 42}'] * 3), max_iterations=3)

    await run(one)

    result: Any = await one.get_result()
    assert set(result) == {"error"}
    assert not await context.memory.has("task:t1")


@pytest.mark.parametrize(
    "schema",
    [
        "not json",
        "",
        "[1]",
        {"type": "nonsense"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/$defs/missing"},
    ],
)
async def test_b34_a_schema_that_cannot_be_used_counts_as_none_with_one_warning(
    context: RunContext, scripted: Any, schema: Any
) -> None:
    one = executor(context, scripted([finish({"any": "thing"})]), output_schema=schema)

    events = await run(one)

    (warning,) = [event for event in events if event.type == "log_update"]
    assert warning.severity == "warning"
    assert "output schema of step 's1' counts as none" in warning.content
    assert await one.get_result() == {"any": "thing"}


async def test_b35_a_tool_gets_its_arguments_and_its_call_is_told(
    context: RunContext, scripted: Any
) -> None:
    got: list[tuple[str, int]] = []

    def search(query: str, limit: int) -> str:
        got.append((query, limit))
        return "found"

    script = scripted([("search", {"query": "moss", "limit": 3}), finish({"value": 1})])

    events = await run(executor(context, script, tools=[search]))

    assert got == [("moss", 3)]
    told = [event for event in events if isinstance(event, ToolCallUpdate)]
    assert [(each.name, each.args) for each in told] == [
        ("search", {"query": "moss", "limit": 3}),
        ("finish_step", {"result": {"value": 1}}),
    ]


async def test_b36_a31_an_unknown_tool_is_an_answer_and_the_run_goes_on(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([("nothing_such", {}), finish({"value": 1})])

    events = await run(executor(context, script))

    assert "'nothing_such' was not found" in script.returned()[0]
    assert outcome(events).step.completed


async def test_a31_an_argument_of_the_wrong_type_is_an_answer(
    context: RunContext, scripted: Any
) -> None:
    calls: list[int] = []

    def double(n: int) -> int:
        calls.append(n)
        return 2 * n

    wrong: list[object] = [{"n": "many"}, {}, {"n": 1, "m": 2}, "no json", "[1]"]
    script = scripted([*(("double", each) for each in wrong), finish({"value": 1})])

    await run(executor(context, script, tools=[double]))

    assert [json.loads(each)["error"] for each in script.returned()] == ["invalid-argument"] * 5
    assert calls == []


async def test_a33_a_call_is_told_before_what_comes_of_it(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([("memory_list", {}), finish({"value": 1})])

    events = await run(executor(context, script))

    assert [event.type for event in events] == [
        "task_update",
        "tool_call_update",
        "tool_call_update",
        "task_update",
        "step_result",
    ]


async def test_b37_a_tool_that_raises_is_an_answer(context: RunContext, scripted: Any) -> None:
    def fetch() -> str:
        raise RuntimeError("the line is dead")

    script = scripted([("fetch", {}), finish({"value": 1})])

    events = await run(executor(context, script, tools=[fetch]))

    assert json.loads(script.returned()[0]) == {
        "error": "tool-failed",
        "message": "RuntimeError: the line is dead",
        "hint": "Try other arguments, or another tool.",
    }
    assert outcome(events).result == {"value": 1}


@pytest.mark.parametrize(("chars", "is_whole"), [(30_000, True), (51_199, True), (51_200, False)])
async def test_b38_a_tool_result_is_whole_below_the_limit_and_from_it_on_a_pointer(
    context: RunContext, scripted: Any, chars: int, is_whole: bool
) -> None:
    def dump() -> str:
        return "x" * chars

    script = scripted([("dump", {}), finish({"value": 1})])

    events = await run(executor(context, script, tools=[dump]))

    shown = script.returned()[0]
    assert (shown == "x" * chars) is is_whole
    assert outcome(events).step.completed
    if not is_whole:
        assert await context.bank.get(json.loads(shown)["pointer"]) == "x" * chars
        assert len(shown) < 1_000


async def test_b39_arguments_without_a_result_are_the_result(
    context: RunContext, scripted: Any
) -> None:
    one = executor(context, scripted([("finish_step", {"value": 42})]))

    await run(one)

    assert await one.get_result() == {"value": 42}


@pytest.mark.parametrize("nothing", [None, "", "null", {}])
async def test_b40_a_missing_result_is_asked_for_again(
    context: RunContext, scripted: Any, nothing: Any
) -> None:
    script = scripted([("finish_step", nothing), finish({"value": 42})])
    one = executor(context, script)

    await run(one)

    assert "the result is missing" in script.returned()[0]
    assert await one.get_result() == {"value": 42}


async def test_b41_a_call_without_arguments_has_none(context: RunContext, scripted: Any) -> None:
    got: list[dict[str, object]] = []

    def tool(**arguments: object) -> str:
        got.append(arguments)
        return "ran"

    await run(executor(context, scripted([("tool", None), finish({"value": 1})]), tools=[tool]))

    assert got == [{}]


async def test_b42_prose_in_place_of_finish_step_fails_the_step_at_once(
    context: RunContext, scripted: Any
) -> None:
    prose = "Here is what I think. " * 50
    one = executor(context, scripted([prose]), max_iterations=2)

    events = await run(one)

    result = outcome(events)
    assert (result.step.completed, result.step.failed) == (False, True)
    assert result.error == result.step.error
    assert "ended after 1 turn without finish_step" in str(result.error)
    assert prose[:200] in str(result.error)
    assert prose[:220] not in str(result.error)
    assert updates(events) == ["step_started", "step_failed"]
    assert await one.get_result() == result.result == {"error": result.error}


async def test_b43_a_step_that_only_calls_tools_ends_with_its_iterations(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([("memory_list", {}), ("memory_list", {})])

    events = await run(executor(context, script, max_iterations=2))

    assert len(script.asked) == 2
    assert "exceeded 2 iterations" in str(outcome(events).error)


async def test_b44_from_nine_tenths_of_the_budget_on_only_finish_step_is_left(
    context: RunContext, scripted: Any
) -> None:
    ran: list[str] = []

    def look() -> str:
        ran.append("look")
        return "seen"

    script = scripted([["x" * 300, ("look", {})], [("look", {}), finish({"value": 1})]])

    events = await run(executor(context, script, tools=[look], max_token_limit=10_000))

    assert updates(events)[-1] == "step_completed"
    assert "entered_conclusion_stage" not in updates(events)

    script = scripted([["x" * 300, ("look", {})], [("look", {}), finish({"value": 1})]])
    ran.clear()
    events = await run(executor(context, script, tools=[look], max_token_limit=50))

    assert updates(events) == ["step_started", "entered_conclusion_stage", "step_completed"]
    assert ran == ["look"]
    assert script.offers[1].model_settings == {"tool_choice": ["finish_step"]}
    assert script.offers[0].function_tools == script.offers[1].function_tools
