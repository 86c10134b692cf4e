"""The adapter for OpenAI Agents, driven by the SDK's own scripted model, runner and sessions."""

import asyncio
import copy
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio
import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolOutputImage,
    ToolOutputText,
    default_tool_error_function,
    function_tool,
    handoff,
    set_tracing_disabled,
    tool_input_guardrail,
)
from agents.mcp import MCPServerStdio, MCPServerStdioParams
from agents.testing import ModelCall as Request
from agents.testing import ModelStep
from agents.testing import ScriptedModel as FakeModel
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import BaseModel

from coatcheck import Bank, Limits, Verbatim
from coatcheck.adapters._sessions import SYSTEM_TEXT
from coatcheck.adapters.openai_agents import CoatcheckAgents
from coatcheck.stores import MemoryStore
from coatcheck.testing import (
    INSTRUCTIONS,
    PROMPT,
    AdapterSuite,
    How,
    ModelCall,
    ScriptedModel,
    Seen,
    Turn,
    pointer_in,
)
from coatcheck.testing._adapter_pointers import UNKNOWN

SERVER = Path(__file__).with_name("mcp_server.py")


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Keep the SDK from sending what it traces."""
    set_tracing_disabled(disabled=True)


class Conversation:
    """A fake model's side of one run, with what it was sent."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self.script = ScriptedModel(script)
        self.images: list[bytes] = []
        self.model = FakeModel([ModelStep.respond(self.reply) for _ in script])

    def reply(self, request: Request) -> list[Any]:
        """Answer a request with the next turn of the script."""
        tools = [
            {"name": tool.name, "description": tool.description, "schema": tool.params_json_schema}
            for tool in request.tools
            if isinstance(tool, FunctionTool)
        ]
        given: Any = request.input
        items = cast("list[object]", given) if isinstance(given, list) else [given]
        written = [json.dumps(part, ensure_ascii=False) for part in (tools, *items)]
        text = "\n".join([request.system_instructions or "", *written])
        said = self.script.reply(text, dict(self._results(items)))
        if isinstance(said, str):
            content = ResponseOutputText(annotations=[], text=said, type="output_text")
            return [
                ResponseOutputMessage(
                    id="m", content=[content], role="assistant", status="completed", type="message"
                )
            ]
        return [
            ResponseFunctionToolCall(
                call_id=call.id,
                name=call.name,
                arguments=json.dumps(call.arguments, ensure_ascii=False),
                type="function_call",
            )
            for call in said
        ]

    def _results(self, items: Sequence[Any]) -> Iterator[tuple[str, str]]:
        for item in items:
            kind = cast("Any", item).get("type") if isinstance(item, Mapping) else None
            if kind != "function_call_output":
                continue
            output: Any = cast("Any", item)["output"]
            plain = [{"type": "input_text", "text": output}]
            blocks: list[Any] = plain if isinstance(output, str) else output
            texts = [block["text"] for block in blocks if block["type"] == "input_text"]
            for block in blocks:
                if block["type"] == "input_image":
                    self.images.append(b64decode(block["image_url"].partition("base64,")[2]))
            yield cast("Any", item)["call_id"], "".join(texts)


def blocking(agent: Agent[Any], session: SQLiteSession | None) -> Any:
    """Run an agent from a thread without a loop; the SDK leaves the one that it makes open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, PROMPT, session=session)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def ran(agent: Agent[Any], session: SQLiteSession | None, how: How) -> Any:
    """Run an agent to its end, in one of the three ways."""
    if how == "sync":
        return await anyio.to_thread.run_sync(blocking, agent, session)
    if how == "stream":
        streamed = Runner.run_streamed(agent, PROMPT, session=session)
        async for _ in streamed.stream_events():
            pass
        return streamed
    return await Runner.run(agent, PROMPT, session=session)


class TestOpenAIAgents(AdapterSuite):
    cannot: ClassVar[Mapping[str, str]] = {
        "test_large_error_is_offloaded_and_still_says_that_it_is_one": (
            "the SDK makes a failure the text of the result, and has no flag for it"
        ),
    }

    async def run(
        self,
        bank: Bank,
        tools: Sequence[Any],
        script: Sequence[Turn],
        *,
        session: str | None = None,
        limits: Limits | None = None,
        how: How = "async",
    ) -> Seen:
        conversation = Conversation(script)
        agent = Agent(
            name="Clerk",
            instructions=INSTRUCTIONS,
            tools=[each if isinstance(each, FunctionTool) else _open(each) for each in tools],
            model=conversation.model,
        )
        kept = None if session is None else SQLiteSession(session)
        agent = CoatcheckAgents(bank, limits=limits).agent(agent, kept)
        result = await ran(agent, kept, how)
        items = result.to_input_list() if kept is None else await kept.get_items()
        return Seen(
            requests=conversation.script.requests,
            results=conversation.script.results,
            history=json.dumps(items, ensure_ascii=False),
            output=result.final_output,
            images=conversation.images,
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckAgents(bank).bank_for(session)

    def failing(self, text: str) -> object:
        def fail() -> str:
            """Fail."""
            raise ValueError(text)

        # Left to itself, the SDK tells a model nothing of what went wrong.
        return function_tool(fail, failure_error_function=lambda _, error: str(error))

    def photo(self, text: str, image: bytes) -> object:
        @function_tool
        def photo() -> list[ToolOutputText | ToolOutputImage]:
            """Return a photo."""
            url = f"data:image/png;base64,{b64encode(image).decode()}"
            return [ToolOutputText(text=text), ToolOutputImage(image_url=url)]

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        def inject(context: RunContextWrapper[Any], items: list[dict[str, int]]) -> str:
            """Take rows.

            Args:
                items: Rows.
            """
            return take(context, items)

        return _open(inject)


def _open(fn: Callable[..., Any]) -> FunctionTool:
    """Return a tool whose rows may have any keys: of those no strict schema can be made."""
    return function_tool(fn, strict_mode=False)


def rows(n: int) -> list[dict[str, int]]:
    """Return rows."""
    return [{"id": number, "price": number} for number in range(n)]


class Line(BaseModel):
    """A line of an order."""

    price: int


def add(lines: list[Line], note: str | None = None) -> int:
    """Return the sum of prices."""
    assert all(isinstance(line, Line) for line in lines)
    return sum(line.price for line in lines)


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), limits=Limits(inline_bytes=1_000))


def call(name: str, arguments: Mapping[str, object] | None = None, call_id: str = "c1") -> Turn:
    """Return a turn with one call."""
    return [ModelCall(name=name, arguments=arguments or {}, id=call_id)]


async def test_strict_schema_stays_strict_and_takes_a_pointer_without_a_pattern(bank: Bank) -> None:
    tool, _ = CoatcheckAgents(bank).tools([function_tool(add)])

    assert isinstance(tool, FunctionTool)
    lines = tool.params_json_schema["properties"]["lines"]
    assert lines["anyOf"][0] == {"type": "array", "items": {"$ref": "#/$defs/Line"}}
    assert lines["anyOf"][1] == {"type": "string", "description": "a pointer"}
    assert "pattern" not in json.dumps(tool.params_json_schema)
    assert tool.strict_json_schema
    assert copy.copy(tool).params_json_schema == tool.params_json_schema


async def test_strict_tool_gets_models_from_a_pointer(bank: Bank) -> None:
    pointer = (await bank.put([{"price": 40}, {"price": 2}])).pointer
    talk = Conversation([call("add", {"lines": pointer, "note": None}), "done"])
    agent = Agent(name="Clerk", tools=[function_tool(add)], model=talk.model)

    await Runner.run(CoatcheckAgents(bank).agent(agent), PROMPT)

    assert talk.script.results == {"c1": "42"}


async def test_agent_that_was_given_is_not_changed(bank: Bank) -> None:
    tool = function_tool(rows)
    other = Agent(name="Other")
    agent = Agent(name="Clerk", instructions="Be brief.", tools=[tool], handoffs=[other])

    mirrored = CoatcheckAgents(bank).agent(agent)

    assert (agent.tools, agent.handoffs, agent.instructions) == ([tool], [other], "Be brief.")
    assert other.tools == []
    assert isinstance(mirrored, Agent)
    assert [each.name for each in mirrored.tools] == ["rows", "retrieve_context"]
    assert tool.params_json_schema == function_tool(rows).params_json_schema


@pytest.mark.parametrize("is_async", [False, True])
async def test_instructions_that_are_computed_are_computed_for_each_request(
    bank: Bank, *, is_async: bool
) -> None:
    asked: list[str] = []

    def instructions(context: RunContextWrapper[str], agent: Agent[str]) -> str:
        asked.append(agent.name)
        return f"You serve {context.context}."

    async def later(context: RunContextWrapper[str], agent: Agent[str]) -> str:
        return instructions(context, agent)

    talk = Conversation([call("rows", {"n": 1}), "done"])
    told = later if is_async else instructions
    agent = Agent[str](name="Clerk", instructions=told, tools=[_open(rows)], model=talk.model)

    await Runner.run(CoatcheckAgents(bank).agent(agent), PROMPT, context="Ada")

    assert asked == ["Clerk", "Clerk"]
    assert [each.system_instructions for each in talk.model.calls] == [
        f"You serve Ada.\n\n{SYSTEM_TEXT}"
    ] * 2


async def test_agents_that_hand_off_to_each_other_share_pointers(bank: Bank) -> None:
    first = Conversation(
        [call("rows", {"n": 100}), call("transfer_to_second", call_id="h1"), "end"]
    )
    pointers: list[str] = []

    def total(results: Mapping[str, str]) -> Sequence[ModelCall]:
        pointers.append(pointer_in(results["c1"]))
        return [ModelCall(name="add", arguments={"lines": pointers[0], "note": None}, id="c2")]

    second = Conversation([total, call("transfer_to_first", call_id="h2")])
    one = Agent(name="first", tools=[_open(rows)], model=first.model)
    two = Agent(name="second", tools=[function_tool(add)], model=second.model, handoffs=[one])
    one.handoffs.append(handoff(two))

    result = await Runner.run(CoatcheckAgents(bank).agent(one), PROMPT)

    assert second.script.results["c1"].startswith(f'{{"pointer":"{pointers[0]}"')
    assert first.script.results["c2"] == "4950"
    assert result.final_output == "end"
    assert result.last_agent is not one
    assert SYSTEM_TEXT in str(second.model.calls[0].system_instructions)


async def test_agent_as_a_tool_takes_and_returns_pointers(bank: Bank) -> None:
    coat = CoatcheckAgents(bank)
    inner = Conversation(["x" * 5_000])
    helper = coat.agent(Agent(name="helper", model=inner.model))
    tool = helper.as_tool(tool_name="ask", tool_description="Ask the helper.")
    outer = Conversation([call("ask", {"input": "Write a long text."}), "done"])
    agent = Agent(name="Clerk", tools=[tool], model=outer.model)

    await Runner.run(coat.agent(agent), PROMPT)

    assert await bank.get(pointer_in(outer.script.results["c1"])) == "x" * 5_000


async def test_approval_and_guardrail_decide_on_what_a_pointer_stands_for(bank: Bank) -> None:
    seen: list[tuple[str, object]] = []

    async def policy(_: RunContextWrapper[Any], given: dict[str, Any], call_id: str) -> bool:
        seen.append(("approval", given["text"]))
        return "secret" in given["text"]

    @tool_input_guardrail
    def guard(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        seen.append(("guardrail", json.loads(data.context.tool_arguments)["text"]))
        return ToolGuardrailFunctionOutput.allow()

    def send(text: str) -> str:
        """Send a text."""
        return "sent"

    tool = function_tool(send, needs_approval=policy, tool_input_guardrails=[guard])
    open_one = (await bank.put("the weather")).pointer
    secret = (await bank.put("a secret")).pointer
    script = [call("send", {"text": open_one}), call("send", {"text": secret}, "c2"), "done"]
    talk = Conversation(script)
    agent = Agent(name="Clerk", tools=[tool], model=talk.model)

    mirrored = CoatcheckAgents(bank).agent(agent)
    result = await Runner.run(mirrored, PROMPT)

    assert talk.script.results == {"c1": "sent"}
    (interruption,) = result.interruptions
    assert json.loads(str(interruption.arguments)) == {"text": secret}
    assert ("guardrail", "the weather") in seen
    assert ("approval", "a secret") in seen
    assert not any(str(text).startswith("art:") for _, text in seen)
    state = result.to_state()
    state.reject(interruption)
    again = await Runner.run(mirrored, state)
    assert again.final_output == "done"


async def test_approval_is_asked_for_a_pointer_that_stands_for_nothing(bank: Bank) -> None:
    async def policy(_: RunContextWrapper[Any], given: dict[str, Any], call_id: str) -> bool:
        raise AssertionError(given)

    def send(text: str) -> str:
        """Send a text."""
        raise AssertionError(text)

    tool = function_tool(send, needs_approval=policy)
    talk = Conversation([call("send", {"text": UNKNOWN}), "done"])
    mirrored = CoatcheckAgents(bank).agent(Agent(name="Clerk", tools=[tool], model=talk.model))

    result = await Runner.run(mirrored, PROMPT)
    (interruption,) = result.interruptions
    state = result.to_state()
    state.approve(interruption)
    await Runner.run(mirrored, state)

    assert "unknown-pointer" in talk.script.results["c1"]


async def test_strict_tool_gets_the_pointer_itself_where_it_asks_for_that(bank: Bank) -> None:
    kept: list[tuple[str, str | None]] = []

    @function_tool
    def keep(note: Verbatim[str], other: Verbatim[str] | None, names: Verbatim[list[str]]) -> str:
        kept.append((note, other))
        return "kept"

    pointer = (await bank.put(rows(100))).pointer
    talk = Conversation([call("keep", {"note": pointer, "other": pointer, "names": []}), "done"])
    agent = CoatcheckAgents(bank).agent(Agent(name="Clerk", tools=[keep], model=talk.model))

    await Runner.run(agent, PROMPT)

    shown = agent.tools[0]
    assert isinstance(shown, FunctionTool)
    assert kept == [(pointer, pointer)]
    # Nothing that a strict host does not take, and no place for a pointer beside the list.
    assert shown.params_json_schema == keep.params_json_schema
    assert _words(shown.params_json_schema) <= {
        *("type", "properties", "required", "additionalProperties"),
        *("title", "anyOf", "items", "description"),
    }


async def test_failure_function_of_the_user_can_tell_that_a_value_does_not_fit(bank: Bank) -> None:
    def told(_: RunContextWrapper[Any], error: Exception) -> str:
        return "does not fit" if isinstance(error, ModelBehaviorError) else "broke"

    pointer = (await bank.put("no rows")).pointer
    said: list[str] = []
    for tool in (function_tool(add), function_tool(add, failure_error_function=told)):
        talk = Conversation([call("add", {"lines": pointer, "note": None}), "done"])
        agent = Agent(name="Clerk", tools=[tool], model=talk.model)

        await Runner.run(CoatcheckAgents(bank).agent(agent), PROMPT)

        said.append(talk.script.results["c1"])

    assert said == [default_tool_error_function(cast("Any", None), ValueError()), "does not fit"]


def _words(schema: Mapping[str, Any]) -> set[str]:
    """Return the words that the nodes of a schema say."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    inner = [*properties.values(), *schema.get("anyOf", ())]
    inner += [schema["items"]] if "items" in schema else []
    return {*schema}.union(*map(_words, inner))


async def test_policy_is_asked_where_the_sdk_would_ask_it_without_us(bank: Bank) -> None:
    async def policy(_: RunContextWrapper[Any], given: dict[str, Any], call_id: str) -> bool:
        return False

    # A model is made of each line: of such arguments newer versions of the SDK ask no policy.
    tool = function_tool(add, needs_approval=policy)
    lines = [{"price": 1}]
    waiting: list[int] = []
    for mirrors in (True, False):
        asked = (await bank.put(lines)).pointer if mirrors else lines
        talk = Conversation([call("add", {"lines": asked, "note": None}), "done"])
        agent = Agent(name="Clerk", tools=[tool], model=talk.model)

        coat = CoatcheckAgents(bank)
        result = await Runner.run(coat.agent(agent) if mirrors else agent, PROMPT)

        waiting.append(len(result.interruptions))

    assert waiting[0] == waiting[1]


async def test_arguments_that_are_nested_too_deep_for_a_pointer_are_a_failure(bank: Bank) -> None:
    def take(items: list[dict[str, int]], rest: Any) -> str:
        """Take rows."""
        return f"{len(items)} taken"

    pointer = (await bank.put(rows(100))).pointer
    deep: list[Any] = [pointer]
    deeper: list[Any] = [pointer]
    for _ in range(200):
        deep = [deep]
    for _ in range(300):
        deeper = [deeper]
    turn: list[ModelCall] = [
        ModelCall(name="take", arguments={"items": pointer, "rest": rest}, id=call_id)
        for call_id, rest in (("c1", deep), ("c2", deeper))
    ]
    talk = Conversation([turn, "done"])
    agent = Agent(name="Clerk", tools=[_open(take)], model=talk.model)

    await Runner.run(CoatcheckAgents(bank).agent(agent), PROMPT)

    assert talk.script.results["c1"] == "100 taken"
    assert "nested" in json.loads(talk.script.results["c2"])["message"]


async def test_arguments_that_are_no_json_are_left_to_the_sdk(bank: Bank) -> None:
    said: list[str] = []
    for mirrors in (True, False):
        broken = ResponseFunctionToolCall(
            call_id="c1", name="rows", arguments="{", type="function_call"
        )
        talk = Conversation(["done"])
        model = FakeModel([[broken], ModelStep.respond(talk.reply)])
        agent = Agent(name="Clerk", tools=[_open(rows)], model=model)

        await Runner.run(CoatcheckAgents(bank).agent(agent) if mirrors else agent, PROMPT)

        said.append(talk.script.results["c1"])

    assert said[0] == said[1]
    assert "error" in said[0]


async def test_tools_of_an_mcp_server_take_and_return_pointers(bank: Bank) -> None:
    params: MCPServerStdioParams = {"command": sys.executable, "args": [str(SERVER)]}
    talk = Conversation(
        [
            call("rows", {"n": 200}),
            lambda results: [
                ModelCall(name="total", arguments={"items": pointer_in(results["c1"])}, id="c2")
            ],
            call("total", {"items": UNKNOWN}, "c3"),
            "done",
        ]
    )
    async with MCPServerStdio(params, client_session_timeout_seconds=60) as server:
        agent = Agent(name="Clerk", mcp_servers=[server], model=talk.model)
        result = await Runner.run(CoatcheckAgents(bank).agent(agent), PROMPT)

    assert await bank.get(pointer_in(talk.script.results["c1"])) == rows(200)
    assert (await bank.find("rows_c1")) is not None
    assert talk.script.results["c2"] == "19900"
    assert "unknown-pointer" in talk.script.results["c3"]
    assert '"id": 150' not in json.dumps(result.to_input_list())


async def test_sqlite_session_keeps_pointers_alone(bank: Bank, tmp_path: Path) -> None:
    session = SQLiteSession("review", tmp_path / "talk.db")
    talk = Conversation([call("rows", {"n": 2_000}), "done"])
    coat = CoatcheckAgents(bank)
    agent = coat.agent(Agent(name="Clerk", tools=[_open(rows)], model=talk.model), session)

    await Runner.run(agent, PROMPT, session=session)

    items = json.dumps(await session.get_items())
    assert len(items) < 3_000
    assert coat.bank_for(session).scope == coat.bank_for("review").scope
    assert await coat.bank_for("review").get("rows_c1") == rows(2_000)
    assert await bank.find("rows_c1") is None
    session.close()
