import asyncio
import json
import threading
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from coatcheck import Bank, Limits
from coatcheck.errors import InvalidPlanError
from coatcheck.mirror import Verbatim
from coatcheck.runtime import RunContext, RunTool, Step, StepExecutor, Task
from coatcheck.runtime._tools import parsed_arguments, step_tools
from coatcheck.tools import Tool

OURS = ["memory_list", "memory_read", "memory_write", "retrieve_context"]


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def search(query: str) -> str:
    """Search for it."""
    return f"found {query}"


def tool_of(given: Any, context: RunContext, limits: Limits | None = None) -> Tool:
    return step_tools([given], context, limits)[0]


async def test_a_step_has_its_callers_tools_then_ours_then_finish_step(
    one_step: Any, scripted: Any, run: Any
) -> None:
    script = scripted([finish(1)])

    await run(one_step(script, tools=[search]))

    offered = [tool.name for tool in script.offers[0].function_tools]
    assert offered == ["search", *OURS, "finish_step"]
    assert script.offers[0].function_tools[0].description == "Search for it."


async def test_a_step_without_schema_has_no_finish_step(
    one_step: Any, scripted: Any, run: Any
) -> None:
    script = scripted(["text"])

    await run(one_step(script, output_schema=None))

    assert [tool.name for tool in script.offers[0].function_tools] == OURS


async def test_a_callers_tool_stands_in_for_ours_of_the_same_name(context: RunContext) -> None:
    def memory_list() -> str:
        return "mine"

    tools = step_tools([memory_list], context)

    assert [tool.name for tool in tools].count("memory_list") == 1
    assert await tools[0].call({}) == "mine"


def test_two_tools_of_one_name_are_refused(context: RunContext) -> None:
    with pytest.raises(ValueError, match="two tools are called 'search'"):
        step_tools([search, RunTool(search)], context)


def test_a_tool_called_finish_step_is_refused(context: RunContext) -> None:
    def finish_step() -> None:
        return

    with pytest.raises(ValueError, match="call the tool something else"):
        step_tools([finish_step], context)


def test_what_is_no_tool_is_refused(context: RunContext) -> None:
    with pytest.raises(TypeError, match="must be a function or Tool, got str"):
        step_tools(["search"], context)  # type: ignore[list-item]


async def test_the_runs_context_and_bank_are_injected_and_hidden(context: RunContext) -> None:
    def look(ctx: RunContext, query: str, bank: Bank) -> str:
        return f"{query} {ctx is context} {bank is context.bank}"

    tool = tool_of(look, context)

    assert await tool.call({"query": "q"}) == "q True True"
    assert set(tool.parameters["properties"]) == {"query"}


async def test_a_sync_tool_runs_in_a_thread_and_an_async_one_on_the_loop(
    context: RunContext,
) -> None:
    threads: list[int] = []

    def sync() -> None:
        threads.append(threading.get_ident())

    async def waiting() -> None:
        threads.append(threading.get_ident())

    await tool_of(sync, context).call({})
    await tool_of(waiting, context).call({})

    assert threads[0] != threading.get_ident() == threads[1]


async def test_a_large_result_is_a_pointer_that_any_tool_takes_for_the_value(
    context: RunContext,
) -> None:
    def rows() -> list[int]:
        return list(range(20_000))

    def total(items: list[int]) -> int:
        return sum(items)

    envelope = json.loads(await tool_of(rows, context).call({}))
    reader = next(tool for tool in step_tools([], context) if tool.name == "retrieve_context")

    assert await tool_of(total, context).call({"items": envelope["pointer"]}) == "199990000"
    read = json.loads(await reader.call({"artifactId": envelope["pointer"], "limit": 10}))
    assert read["content"] == "[0,1,2,3,4"


async def test_a_tool_with_a_schema_is_mirrored_too(context: RunContext) -> None:
    got: list[object] = []

    async def call(arguments: Any) -> str:
        got.append(arguments["items"])
        return "y" * 60_000

    given = Tool(
        "crunch", "Crunch.", {"type": "object", "properties": {"items": {"type": "array"}}}, call
    )
    artifact = await context.bank.put([1, 2, 3])

    shown = json.loads(await tool_of(given, context).call({"items": artifact.pointer}))

    assert got == [[1, 2, 3]]
    assert await context.bank.get(shown["pointer"]) == "y" * 60_000


async def test_replies_of_our_own_tools_are_never_offloaded(
    one_step: Any, context: RunContext, scripted: Any, run: Any
) -> None:
    artifact = await context.bank.put("z" * 200_000)
    script = scripted(
        [("retrieve_context", {"artifactId": artifact.pointer, "limit": 60_000}), finish(1)]
    )

    await run(one_step(script))

    assert json.loads(script.returned()[0])["content"] == "z" * 60_000


async def test_limits_of_a_run_say_when_its_tools_are_offloaded(context: RunContext) -> None:
    small, never = Limits(inline_bytes=10), Limits(inline_bytes=10**9)

    def dump() -> str:
        return "x" * 100_000

    assert "pointer" in json.loads(await tool_of(dump, context, small).call({}))
    assert await tool_of(dump, context, never).call({}) == "x" * 100_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "The tool ran, and returned nothing."),
        ("plain", "plain"),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": {"b": 1.5}}, '{"a":{"b":1.5}}'),
        (True, "true"),
        ("\ud800", "\ufffd"),
    ],
)
async def test_results_are_text(context: RunContext, value: object, text: str) -> None:
    def tool() -> object:
        return value

    assert await tool_of(tool, context).call({}) == text


async def test_what_has_no_text_is_shown_as_python_does(context: RunContext) -> None:
    class Opaque:
        def __repr__(self) -> str:
            return "<opaque>"

    def tool() -> object:
        return Opaque()

    assert "<opaque>" in await tool_of(tool, context).call({})


async def test_a_generator_is_taken_for_what_it_yields(context: RunContext) -> None:
    def lines() -> Iterator[str]:
        yield from ("a\n", "b\n")

    assert await tool_of(lines, context).call({}) == '["a\\n","b\\n"]'


async def test_a_function_that_returns_what_is_to_be_awaited_is_awaited(
    context: RunContext,
) -> None:
    async def later(query: str) -> str:
        return search(query)

    def ask(query: str) -> Awaitable[str]:
        return later(query)

    assert await tool_of(ask, context).call({"query": "x"}) == "found x"


async def test_a_long_error_is_offloaded_with_its_flag(context: RunContext) -> None:
    def fail() -> None:
        raise RuntimeError("e" * 60_000 + " the last words")

    shown = json.loads(await tool_of(fail, context).call({}))

    assert shown["isError"] is True
    assert "the last words" in json.dumps(shown)


async def test_a_failure_of_a_pointer_is_told_and_the_tool_not_run(context: RunContext) -> None:
    ran: list[object] = []

    def take(items: list[int]) -> None:
        ran.append(items)

    pointer = "art:00000000-0000-4000-8000-000000000005"

    reply = json.loads(await tool_of(take, context).call({"items": pointer}))

    assert (reply["error"], ran) == ("unknown-pointer", [])


async def test_calls_of_one_turn_go_on_at_once(one_step: Any, scripted: Any, run: Any) -> None:
    both = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        await both.wait()
        return name

    script = scripted([[("meet", {"name": "a"}), ("meet", {"name": "b"})], finish(1)])

    await asyncio.wait_for(run(one_step(script, tools=[meet])), 30)

    assert script.returned() == ["a", "b"]


async def test_a_tool_that_is_not_parallel_runs_alone_and_in_its_place(
    one_step: Any, scripted: Any, run: Any
) -> None:
    log: list[str] = []

    async def alone(name: str) -> None:
        log.append(f"begin {name}")
        await asyncio.sleep(0)
        log.append(f"end {name}")

    calls = [("alone", {"name": "a"}), ("alone", {"name": "b"})]
    script = scripted([calls, finish(1)])

    await run(one_step(script, tools=[RunTool(alone, parallel=False)]))

    assert log == ["begin a", "end a", "begin b", "end b"]


async def test_what_a_turn_writes_to_memory_its_later_calls_read(
    one_step: Any, scripted: Any, run: Any
) -> None:
    turn = [
        ("memory_write", {"key": "x", "value": 1}),
        ("memory_read", {"keys": ["shared:x"]}),
        ("memory_write", {"key": "x", "value": 2}),
        ("memory_read", {"keys": ["shared:x"]}),
    ]
    script = scripted([turn, finish(1)])

    await run(one_step(script))

    replies = [json.loads(each) for each in script.returned()]
    assert [replies[at]["entries"]["shared:x"]["value"] for at in (1, 3)] == [1, 2]


async def test_a_step_may_be_restricted_to_some_of_its_callers_tools(
    one_step: Any, scripted: Any, run: Any
) -> None:
    def write(text: str) -> str:
        return text

    script = scripted([("write", {"text": "x"}), finish(1)])

    await run(one_step(script, tools=[search, write], only=["search"]))

    offered = [tool.name for tool in script.offers[0].function_tools]
    assert offered == ["search", *OURS, "finish_step"]
    assert "'write' was not found" in script.returned()[0]


async def test_a_restriction_to_an_unknown_tool_is_refused(
    one_step: Any, scripted: Any, run: Any
) -> None:
    script = scripted([])

    with pytest.raises(InvalidPlanError, match="unknown tool 'shout'"):
        await run(one_step(script, tools=[search], only=["shout"]))

    assert script.asked == []


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        (None, {}),
        ("", {}),
        (" ", {}),
        ("null", {}),
        ("{}", {}),
        ({"a": 1}, {"a": 1}),
        ('{"a":1}', {"a": 1}),
    ],
)
def test_arguments_are_read_as_models_write_them(written: Any, parsed: object) -> None:
    assert parsed_arguments(written) == parsed


async def test_background_work_is_started_and_polled(
    one_step: Any, context: RunContext, scripted: Any, run: Any
) -> None:
    async def crawl(site: str, ctx: RunContext) -> str:
        return f"crawled {site} {ctx is context}"

    def poll(messages: Any) -> tuple[str, object]:
        handle = json.loads(messages[-1].parts[0].content)["handle"]
        return "pollResult", {"handle": handle, "waitMs": 10_000}

    script = scripted([("crawl", {"site": "a"}), poll, finish(1)])

    await run(one_step(script, tools=[RunTool(crawl, background=True)]))

    offered = [tool.name for tool in script.offers[0].function_tools]
    assert offered == ["crawl", "pollResult", *OURS, "finish_step"]
    assert json.loads(script.returned()[1]) == {"status": "done", "result": "crawled a True"}


async def test_a_tool_may_run_an_agent_of_its_own_that_reads_every_pointer_it_is_shown(
    one_step: Any, context: RunContext, scripted: Any, run: Any
) -> None:
    def calls(messages: Any) -> tuple[str, object]:
        pointer = str(messages[0].parts[1].content).removeprefix("Sum ")
        return "total", {"items": pointer}

    inner = scripted({"Sum": [calls, finish(7)]})

    def total(items: list[int]) -> int:
        return sum(items)

    async def delegate(pointer: Verbatim[str], ctx: RunContext) -> object:
        step = Step(id="inner", instructions=f"Sum {pointer}", output_schema={})
        own = ctx.copy()
        executor = StepExecutor(
            task=Task(steps=[step]), step=step, context=own, model=inner.model, tools=[total]
        )
        await run(executor)
        return await executor.get_result()

    artifact = await context.bank.put(list(range(20_000)))
    script = scripted([("delegate", {"pointer": artifact.pointer}), finish("done")])
    one = one_step(script, tools=[delegate])

    await run(one)

    assert inner.returned() == ["199990000"]
    assert script.returned() == ["7"]
    assert not await context.memory.has("step:inner")
