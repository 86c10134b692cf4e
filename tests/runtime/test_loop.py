import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from coatcheck.errors import RunCancelledError
from coatcheck.runtime import Chunk, RunContext, Step, StepExecutor, StepResult, Task, TaskUpdate

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def error_of(events: Any) -> str:
    (result,) = [event for event in events if isinstance(event, StepResult)]
    return str(result.error)


def updates(events: Any) -> list[str]:
    return [event.event for event in events if isinstance(event, TaskUpdate)]


def reporting(tokens: list[int], calls: list[list[Any]], **more: Any) -> FunctionModel:
    """Return a model whose provider reports so many tokens for each of its turns."""
    turns = zip(tokens, calls, strict=True)

    async def reply(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        count, parts = next(turns)
        return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=count))

    return FunctionModel(reply, model_name="reporting", **more)


LOOK = [ToolCallPart("memory_list", {})]
DONE = [ToolCallPart("finish_step", {"result": 1})]


def executor(context: RunContext, model: FunctionModel, **options: Any) -> StepExecutor:
    step = Step(id="s1", instructions="Do it.", output_schema=options.pop("output_schema", {}))
    task = Task(id="t1", steps=[step])
    return StepExecutor(task=task, step=step, context=context, model=model, **options)


@pytest.mark.parametrize(("tokens", "concludes"), [(89_999, False), (90_000, True)])
async def test_the_conclusion_begins_at_nine_tenths_of_the_budget(
    context: RunContext, run: Any, tokens: int, concludes: bool
) -> None:
    model = reporting([tokens, 10], [LOOK, DONE])

    events = await run(executor(context, model, max_token_limit=100_000))

    assert ("entered_conclusion_stage" in updates(events)) is concludes
    assert updates(events)[-1] == "step_completed"


@pytest.mark.parametrize(("tokens", "fails"), [(99_999, False), (100_000, True)])
async def test_a_budget_that_is_gone_ends_a_step_that_should_have_concluded(
    context: RunContext, run: Any, tokens: int, fails: bool
) -> None:
    model = reporting([95_000, tokens, 10], [LOOK, LOOK, DONE])

    events = await run(executor(context, model, max_token_limit=100_000))

    assert ("the token budget is gone: 100,000 of 100,000" in error_of(events)) is fails


async def test_a_large_history_counts_where_the_provider_reports_little(
    context: RunContext, run: Any
) -> None:
    def dump() -> str:
        return "word " * 8_000

    model = reporting([1, 1, 1], [[ToolCallPart("dump", {})], LOOK, DONE])

    events = await run(executor(context, model, tools=[dump], max_token_limit=8_000))

    assert updates(events) == ["step_started", "entered_conclusion_stage", "step_completed"]


async def test_the_model_is_told_once_that_only_finish_step_is_left(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted([("memory_list", {}), ("memory_list", {}), finish(1)])

    await run(executor(context, script.model, max_token_limit=1_500, conclusion_at=0.1))

    told = [
        part.content
        for message in script.asked[-1][1:]
        for part in message.parts
        if part.part_kind == "user-prompt"
    ]
    (notice,) = told
    assert notice == (
        "The step's budget of 1,500 tokens is nearly used. "
        "Only `finish_step` is left: call it now, with what you have."
    )


async def test_in_the_conclusion_all_other_calls_are_refused(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted([("memory_list", {}), [("memory_list", {}), finish("bad")], finish({"n": 1})])

    events = await run(
        executor(
            context,
            script.model,
            output_schema=NUMBER,
            max_token_limit=4_000,
            conclusion_at=0.01,
        )
    )

    assert updates(events)[-1] == "step_completed"
    refused = json.loads(script.returned()[1])
    assert refused["error"] == "budget"
    assert "Only `finish_step` is left" in refused["message"]


async def test_a_text_step_in_its_conclusion_has_no_tools_left(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted([("memory_list", {}), "the answer"])
    one = executor(context, script.model, output_schema=None, conclusion_at=0.0001)

    await run(one)

    assert script.offers[1].model_settings == {"tool_choice": "none"}
    assert len(script.offers[1].function_tools) == 4
    assert await one.get_result() == "the answer"


async def test_a_model_that_cannot_be_forced_is_offered_finish_step_alone(
    context: RunContext, run: Any
) -> None:
    offers: list[AgentInfo] = []

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offers.append(info)
        return ModelResponse(parts=LOOK if len(offers) == 1 else DONE)

    model = FunctionModel(reply, profile=ModelProfile(supports_forced_tool_choice=False))

    await run(executor(context, model, conclusion_at=0.0001))

    assert [tool.name for tool in offers[1].function_tools] == ["finish_step"]
    assert "tool_choice" not in (offers[1].model_settings or {})


async def test_finish_step_comes_after_the_other_calls_of_its_turn(
    context: RunContext, scripted: Any, run: Any
) -> None:
    turn = [finish(1), ("memory_write", {"key": "x", "value": 1})]

    events = await run(executor(context, scripted([turn]).model))

    names = [event.name for event in events if event.type == "tool_call_update"]
    assert names == ["memory_write", "finish_step"]
    assert await context.memory.get_value("shared:x") == 1


async def test_three_refusals_in_a_row_end_the_step_and_a_turn_between_begins_anew(
    context: RunContext, scripted: Any, run: Any
) -> None:
    bad = finish({"n": "one"})
    look: tuple[str, object] = ("memory_list", {})

    events = await run(executor(context, scripted([bad, bad, bad]).model, output_schema=NUMBER))
    assert "refused 3 times in a row: n: the value is not of type" in error_of(events)
    assert "'one'" not in error_of(events)

    events = await run(
        executor(
            context,
            scripted([bad, bad, look, bad, bad, finish({"n": 1})]).model,
            output_schema=NUMBER,
        )
    )
    assert updates(events)[-1] == "step_completed"


async def test_of_two_ends_in_one_turn_the_first_that_fits_counts(
    context: RunContext, scripted: Any, run: Any
) -> None:
    turn = [finish({"n": "no"}), finish({"n": 1}), finish({"n": 2})]
    one = executor(context, scripted([turn]).model, output_schema=NUMBER)

    await run(one)

    assert await one.get_result() == {"n": 1}


async def test_a_host_may_refuse_a_result(context: RunContext, scripted: Any, run: Any) -> None:
    async def accept(result: Any) -> str | None:
        return None if result["n"] > 1 else "n is too small"

    script = scripted([finish({"n": 1}), finish({"n": 2})])
    one = executor(context, script.model, output_schema=NUMBER, accept_result=accept)

    await run(one)

    assert "n is too small" in script.returned()[0]
    assert await one.get_result() == {"n": 2}


@pytest.mark.parametrize(
    ("turn", "result"),
    [
        ("  the answer\n", "the answer"),
        ("<think>hm\nhm</think>yes", "yes"),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
async def test_a_step_without_schema_ends_with_its_text(
    context: RunContext, scripted: Any, run: Any, turn: str, result: str
) -> None:
    one = executor(context, scripted([("memory_list", {}), turn]).model, output_schema=None)

    await run(one)

    assert await one.get_result() == result


@pytest.mark.parametrize("turn", ["", "<think>hm</think>", " "])
async def test_a_step_without_schema_and_text_fails(
    context: RunContext, scripted: Any, run: Any, turn: str
) -> None:
    events = await run(executor(context, scripted([turn]).model, output_schema=None))

    assert error_of(events) == "the model gave neither text nor a tool call"


async def test_a_provider_that_is_away_is_named(
    context: RunContext, scripted: Any, run: Any
) -> None:
    events = await run(executor(context, scripted([ConnectionError("no route " * 500)]).model))

    error = error_of(events)
    assert error.startswith("the model 'scripted' failed: ConnectionError: no route")
    assert len(error) < 700


async def test_text_comes_piece_by_piece_where_it_is_streamed(
    context: RunContext, run: Any
) -> None:
    async def pieces(
        _messages: list[ModelMessage], _info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        yield "I have "
        yield "it."
        yield {0: DeltaToolCall(name="finish_step", json_args='{"result":', tool_call_id="c")}
        yield {0: DeltaToolCall(json_args="7}")}

    one = executor(context, FunctionModel(stream_function=pieces), stream=True)

    events = await run(one)

    chunks = [(each.content, each.done) for each in events if isinstance(each, Chunk)]
    assert chunks == [("I have ", False), ("it.", False), ("", True)]
    assert await one.get_result() == 7


async def test_a_text_without_streaming_is_one_chunk(
    context: RunContext, scripted: Any, run: Any
) -> None:
    events = await run(executor(context, scripted([["I have it.", finish(1)]]).model))

    chunks = [(each.content, each.done) for each in events if isinstance(each, Chunk)]
    assert chunks == [("I have it.", False), ("", True)]


async def test_to_cancel_a_run_stops_its_tools(
    context: RunContext, scripted: Any, run: Any
) -> None:
    both = asyncio.Barrier(2)
    ended: list[str] = []

    async def forever(name: str, ctx: RunContext) -> None:
        try:
            await both.wait()
            ctx.cancel("enough")
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    script = scripted([[("forever", {"name": "a"}), ("forever", {"name": "b"})]])

    with pytest.raises(RunCancelledError, match="enough"):
        await run(executor(context, script.model, tools=[forever]))

    assert sorted(ended) == ["a", "b"]
    assert not await context.memory.has("step:s1")


async def test_to_stop_listening_stops_the_model(context: RunContext) -> None:
    stopped = asyncio.Event()
    asked = asyncio.Event()

    async def reply(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ModelResponse(parts=[TextPart("never")])

    async with aclosing(executor(context, FunctionModel(reply)).execute()) as events:
        async for _event in events:
            await asked.wait()
            break

    assert stopped.is_set()


@pytest.mark.parametrize(
    "wrong",
    [{"max_iterations": 0}, {"max_token_limit": 0}, {"conclusion_at": 0}, {"conclusion_at": 1.1}],
)
def test_numbers_outside_their_range_are_refused(
    context: RunContext, scripted: Any, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        executor(context, scripted([]).model, **wrong)
