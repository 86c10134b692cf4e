"""Agents of pydantic-ai with the capability: its loop, tools and messages are the real ones."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import to_thread
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel, ConfigDict
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolReturn,
)
from pydantic_ai import Tool as AiTool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset

from coatcheck import Bank, Limits, open_bank
from coatcheck.adapters._sessions import SYSTEM_TEXT
from coatcheck.adapters.pydantic_ai import CoatcheckCapability
from coatcheck.bank import parse_call
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
    chat_server,
    pointer_in,
)

CONVERSATION = "a conversation"


class Model:
    """A model of pydantic-ai that says what a script does."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self.script = ScriptedModel(script)
        self.images: list[bytes] = []
        self.model = FunctionModel(self._reply, stream_function=self._stream)

    def _said(self, messages: list[ModelMessage], info: AgentInfo) -> str | Sequence[ModelCall]:
        offered = [
            {"name": tool.name, "parameters": tool.parameters_json_schema}
            for tool in (*info.function_tools, *info.output_tools)
        ]
        parts = [part for message in messages for part in message.parts]
        returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        self.images += [
            file.data for part in returned for file in part.files if isinstance(file, BinaryContent)
        ]
        request = "\n".join(
            [
                info.instructions or "",
                json.dumps(offered, ensure_ascii=False),
                *(_text(part) for part in parts),
            ]
        )
        return self.script.reply(
            request, {part.tool_call_id: part.model_response_str() for part in returned}
        )

    def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = self._said(messages, info)
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        return ModelResponse(
            parts=[ToolCallPart(call.name, json.dumps(call.arguments), call.id) for call in said]
        )

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        said = self._said(messages, info)
        if isinstance(said, str):
            yield said
            return
        for at, call in enumerate(said):
            written = json.dumps(call.arguments)
            yield {at: DeltaToolCall(call.name, tool_call_id=call.id)}
            for start in range(0, len(written), 9):
                yield {at: DeltaToolCall(json_args=written[start : start + 9])}


def on_own_loop(work: Callable[[], Any]) -> Any:
    """Return `work()`; pydantic-ai opens a loop in a thread that has none, and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return work()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _text(part: Any) -> str:
    if isinstance(part, ToolCallPart):
        return f"{part.tool_name} {part.args_as_json_str()}"
    return part.model_response_str() if isinstance(part, ToolReturnPart) else str(part.content)


class TestPydanticAi(AdapterSuite):
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
        model = Model(script)
        agent = Agent(
            model.model,
            instructions=INSTRUCTIONS,
            tools=tools,
            capabilities=[CoatcheckCapability(bank, limits=limits)],
        )
        id_ = session or CONVERSATION
        if how == "stream":
            async with agent.run_stream(PROMPT, conversation_id=id_) as result:
                output, kept = await result.get_output(), result.all_messages_json()
        elif how == "sync":
            done = await to_thread.run_sync(
                on_own_loop, lambda: agent.run_sync(PROMPT, conversation_id=id_)
            )
            output, kept = done.output, done.all_messages_json()
        else:
            done = await agent.run(PROMPT, conversation_id=id_)
            output, kept = done.output, done.all_messages_json()
        return Seen(
            requests=model.script.requests,
            results=model.script.results,
            history=kept.decode(),
            output=output,
            images=model.images,
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckCapability(bank).bank_for(session or CONVERSATION)

    def failing(self, text: str) -> Any:
        def fail() -> str:
            """Fail."""
            raise ModelRetry(text)

        return fail

    def photo(self, text: str, image: bytes) -> Any:
        def photo() -> list[Any]:
            """Take a photo."""
            return [text, BinaryContent(image, media_type="image/png")]

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> Any:
        def inject(ctx: RunContext[None], items: list[dict[str, int]]) -> str:
            """Take items."""
            return take(ctx, items)

        return AiTool(inject)


LIMITS = Limits(inline_bytes=1_000)
UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ROWS = [{"id": 70_000_000 + number, "price": number} for number in range(100)]
MARK = "70000037"


class Report(BaseModel):
    title: str
    rows: list[dict[str, int]]


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), scope="shop")


def call(name: str, arguments: Mapping[str, object], id_: str = "c1") -> ModelCall:
    return ModelCall(name=name, arguments=arguments, id=id_)


def rows() -> list[dict[str, int]]:
    """Return rows."""
    return ROWS


def total(items: list[dict[str, int]]) -> int:
    """Return the sum of prices."""
    return sum(item["price"] for item in items)


async def test_pointer_in_the_final_output_becomes_its_value(bank: Bank) -> None:
    model = Model(
        [
            [call("rows", {})],
            lambda seen: [
                call("final_result", {"title": "all", "rows": pointer_in(seen["c1"])}, "c2")
            ],
        ]
    )
    agent = Agent(
        model.model,
        output_type=Report,
        tools=[rows],
        capabilities=[CoatcheckCapability(bank, limits=LIMITS)],
    )
    done = await agent.run(PROMPT)

    assert done.output == Report(title="all", rows=ROWS)
    assert MARK not in done.all_messages_json().decode()
    assert "da-f-]{32}" in model.script.requests[0]


async def test_streamed_final_output_with_a_pointer_becomes_its_value(bank: Bank) -> None:
    capability = CoatcheckCapability(bank, limits=LIMITS)
    pointer = (await capability.bank_for("one").put(ROWS)).pointer
    model = Model([[call("final_result", {"rows": pointer, "title": "all orders"})]])
    agent = Agent(model.model, output_type=Report, capabilities=[capability])
    async with agent.run_stream(PROMPT, conversation_id="one") as result:
        outputs = [output async for output in result.stream_output(debounce_by=None)]

    # Before its end the pointer is text, and no partial output is one.
    assert outputs
    assert all(output == Report(title="all orders", rows=ROWS) for output in outputs)


async def test_bad_pointers_in_the_final_output_are_told_within_the_retries_of_the_output(
    bank: Bank,
) -> None:
    capability = CoatcheckCapability(bank)
    pointer = (await capability.bank_for("one").put(ROWS)).pointer
    wrong = [UNKNOWN, f"{pointer}#the first", f"{pointer}#$[*].id"]
    model = Model(
        [
            *[
                [call("final_result", {"title": "all", "rows": each}, f"c{at}")]
                for at, each in enumerate([*wrong, pointer])
            ]
        ]
    )
    agent = Agent(model.model, output_type=Report, capabilities=[capability], retries=3)
    done = await agent.run(PROMPT, conversation_id="one")

    assert done.output == Report(title="all", rows=ROWS)
    assert "unknown-pointer" in model.script.results["c0"]
    assert "selector" in model.script.results["c1"]
    assert "does not fit" in model.script.results["c2"]
    assert MARK not in done.all_messages_json().decode()


async def test_text_that_is_a_pointer_is_a_final_answer_like_any_other(bank: Bank) -> None:
    agent = Agent(Model([UNKNOWN]).model, capabilities=[CoatcheckCapability(bank)])

    assert (await agent.run(PROMPT)).output == UNKNOWN


async def test_conversation_goes_on_with_its_history_and_another_one_knows_nothing_of_it(
    bank: Bank,
) -> None:
    capability = CoatcheckCapability(bank, limits=LIMITS)

    def agent(model: Model) -> Agent[None, str]:
        return Agent(model.model, tools=[rows, total], capabilities=[capability])

    first = Model([[call("rows", {})], "done"])
    began = await agent(first).run(PROMPT)
    pointer = pointer_in(first.script.results["c1"])
    script: list[Turn] = [[call("total", {"items": pointer}, "c2")], "done"]
    second, other = Model(script), Model(script)
    await agent(second).run("And now?", message_history=began.all_messages())
    await agent(other).run("And now?")

    assert second.script.results["c2"] == "4950"
    assert "unknown-pointer" in other.script.results["c2"]
    conversation = began.all_messages()[0].conversation_id
    assert conversation is not None
    assert await capability.bank_for(conversation).get(pointer) == ROWS


async def test_agents_hand_pointers_to_each_other_in_one_conversation(bank: Bank) -> None:
    handed: list[str] = []
    counter = Model([lambda _: [call("total", {"items": pointer_in(handed[0])}, "c9")], "4950"])
    helper = Agent(
        counter.model, tools=[total], capabilities=[CoatcheckCapability(bank, limits=LIMITS)]
    )

    async def ask(ctx: RunContext[None], what: str) -> str:
        """Ask the helper."""
        handed.append(what)
        return (await helper.run(what, conversation_id=ctx.conversation_id)).output

    model = Model(
        [
            [call("rows", {})],
            lambda seen: [call("ask", {"what": f"The total of {pointer_in(seen['c1'])}"}, "c2")],
            "done",
        ]
    )
    agent = Agent(
        model.model, tools=[rows, ask], capabilities=[CoatcheckCapability(bank, limits=LIMITS)]
    )
    await agent.run(PROMPT)

    assert handed[0].startswith("The total of art:")
    assert counter.script.results["c9"] == model.script.results["c2"] == "4950"


async def test_one_capability_serves_many_conversations_at_once(bank: Bank) -> None:
    capability = CoatcheckCapability(bank, limits=LIMITS)

    async def run(number: int) -> str:
        def own() -> list[int]:
            """Return numbers."""
            return [number] * 1_000

        def add(numbers: list[int]) -> int:
            """Add numbers."""
            return sum(numbers)

        model = Model(
            [
                [call("own", {})],
                lambda seen: [call("add", {"numbers": pointer_in(seen["c1"])}, "c2")],
                "done",
            ]
        )
        agent = Agent(model.model, tools=[own, add], capabilities=[capability])
        await agent.run(PROMPT, conversation_id=f"conversation {number}")
        return model.script.results["c2"]

    assert await asyncio.gather(*map(run, range(20))) == [str(1_000 * n) for n in range(20)]


async def test_br_042_metadata_of_a_host_is_the_same_object_beside_the_envelope(bank: Bank) -> None:
    owned = object()

    def look() -> ToolReturn[Any]:
        """Look at rows."""
        return ToolReturn(ROWS, metadata=owned)

    model = Model([[call("look", {})], "done"])
    agent = Agent(
        model.model, tools=[look], capabilities=[CoatcheckCapability(bank, limits=LIMITS)]
    )
    done = await agent.run(PROMPT)

    parts = [part for message in done.all_messages() for part in message.parts]
    (returned,) = [part for part in parts if isinstance(part, ToolReturnPart)]
    assert returned.metadata is owned
    assert pointer_in(model.script.results["c1"])


async def test_what_a_tool_says_beside_its_result_is_offloaded_too_and_metadata_is_left(
    bank: Bank,
) -> None:
    image = BinaryContent(b"\x89PNG", media_type="image/png")

    def look(beside: bool) -> ToolReturn[Any]:
        """Look at rows."""
        content: list[UserContent] = ["seen " * 1_000, TextContent("read " * 1_000), image, "short"]
        return ToolReturn(ROWS, content=content if beside else "all " * 1_000, metadata=ROWS)

    model = Model(
        [[call("look", {"beside": True})], [call("look", {"beside": False}, "c2")], "done"]
    )
    capability = CoatcheckCapability(bank, limits=LIMITS)
    agent = Agent(model.model, tools=[look], capabilities=[capability])
    done = await agent.run(PROMPT, conversation_id="one")

    parts = [part for message in done.all_messages() for part in message.parts]
    returned = [part for part in parts if isinstance(part, ToolReturnPart)]
    said = [part.content for part in parts if isinstance(part, UserPromptPart)]
    own = capability.bank_for("one")
    assert [part.metadata for part in returned] == [ROWS, ROWS]
    assert await own.get(pointer_in(model.script.results["c1"])) == ROWS
    assert isinstance(said[1], list)
    seen, read, kept, short = said[1]
    assert isinstance(seen, str)
    assert isinstance(read, TextContent)
    assert await own.get(pointer_in(seen)) == "seen " * 1_000
    assert await own.get(pointer_in(read.content)) == "read " * 1_000
    assert (kept, short) == (image, "short")
    assert await own.get(pointer_in(str(said[2]))) == "all " * 1_000


async def test_small_result_is_the_very_object_that_the_tool_returned(bank: Bank) -> None:
    results = [
        Report(title="small", rows=[]),
        ToolReturn("short", content=["beside", TextContent("too")], metadata={"a": 1}),
        BinaryContent(b"\x89PNG" * 10_000, media_type="image/png"),
    ]
    capability = CoatcheckCapability(bank, limits=LIMITS)
    part = ToolCallPart("look", "{}", "c1")

    for result in results:
        context: Any = type("Context", (), {"conversation_id": "one"})
        assert await capability.after_tool_execute(context, call=part, result=result) is result


@pytest.mark.parametrize(("kind", "outcome"), [(ModelRetry, "retried"), (ToolFailed, "failed")])
async def test_large_error_keeps_its_outcome(
    bank: Bank, kind: type[ModelRetry | ToolFailed], outcome: str
) -> None:
    def fail() -> str:
        """Fail."""
        raise kind("no such row\n" * 1_000)

    agent = Agent(
        Model([[call("fail", {})], "done"]).model,
        tools=[fail],
        capabilities=[CoatcheckCapability(bank, limits=LIMITS)],
    )
    done = await agent.run(PROMPT)

    (part,) = [
        part
        for message in done.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert part.outcome == outcome
    assert cast("Any", part.content)["isError"] is True


async def test_hook_that_fails_a_call_at_length_is_shown_as_an_envelope(bank: Bank) -> None:
    class Guard(AbstractCapability[Any]):
        async def after_tool_execute(self, ctx: Any, **about: Any) -> Any:
            raise ToolFailed("not allowed\n" * 1_000)

    model = Model([[call("rows", {})], "done"])
    capability = CoatcheckCapability(bank, limits=LIMITS)
    agent = Agent(model.model, tools=[rows], capabilities=[capability, Guard()])
    await agent.run(PROMPT)

    assert "isError" in model.script.results["c1"]


async def test_plain_exception_of_a_tool_ends_the_run_as_ever(bank: Bank) -> None:
    def fail() -> str:
        """Fail."""
        raise ZeroDivisionError

    agent = Agent(
        Model([[call("fail", {})], "done"]).model,
        tools=[fail],
        capabilities=[CoatcheckCapability(bank)],
    )
    with pytest.raises(ZeroDivisionError):
        await agent.run(PROMPT)


@pytest.mark.parametrize(
    "written", ['{"ctx": 1}', '{"self": 1, "arguments": 2}', "{}", '{"artifactId": 5}']
)
async def test_own_tool_answers_whatever_a_model_writes(bank: Bank, written: str) -> None:
    model = Model([[call("retrieve_context", json.loads(written))], "done"])
    agent = Agent(model.model, capabilities=[CoatcheckCapability(bank)])

    assert (await agent.run(PROMPT)).output == "done"
    assert "invalid-argument" in model.script.results["c1"]


@pytest.mark.parametrize("written", ["[1]", "5", '"text"', "null", '{"artifactId":'])
async def test_arguments_that_are_no_object_do_not_reach_our_own_tool(
    bank: Bank, written: str
) -> None:
    replies = iter([ModelResponse(parts=[ToolCallPart("retrieve_context", written, "c1")])])

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return next(replies, ModelResponse(parts=[TextPart("done")]))

    agent = Agent(FunctionModel(reply), capabilities=[CoatcheckCapability(bank)])

    assert (await agent.run(PROMPT)).output == "done"


async def test_store_that_raises_what_it_likes_ends_no_run() -> None:
    class Strange(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise RuntimeError("password=hunter2")

    model = Model(
        [
            [
                call("retrieve_context", {"artifactId": UNKNOWN}),
                call("total", {"items": UNKNOWN}, "c2"),
            ],
            "done",
        ]
    )
    agent = Agent(model.model, tools=[total], capabilities=[CoatcheckCapability(Bank(Strange()))])
    done = await agent.run(PROMPT)

    assert done.output == "done"
    assert "store-unavailable" in model.script.results["c1"]
    assert "store-unavailable" in model.script.results["c2"]
    assert "hunter2" not in done.all_messages_json().decode()


async def test_old_results_are_sent_as_pointers_and_kept_as_they_are(bank: Bank) -> None:
    def page(number: int) -> str:
        """Return a page."""
        return f"page {number} ".ljust(10_000, "x")

    script: list[Turn] = [[call("page", {"number": at}, f"c{at}")] for at in range(8)]
    model = Model([*script, "done"])
    capability = CoatcheckCapability(bank, history_bytes=20_000, keep_turns=1)
    agent = Agent(model.model, tools=[page], capabilities=[capability])
    done = await agent.run(PROMPT, conversation_id="one")

    sent = [
        [f"page {at} ".ljust(10_000, "x") in each for at in range(8)]
        for each in model.script.requests
    ]
    assert [each.count(True) for each in sent] == [0, 1, 2, 3, 1, 2, 3, 1, 2]
    assert sent[-1] == [False] * 6 + [True] * 2
    # What was cached before a boundary is sent again byte for byte until the next one.
    boundaries = {0, 4, 7}
    for at in range(1, len(sent)):
        grew = model.script.requests[at].startswith(model.script.requests[at - 1])
        assert grew == (at not in boundaries)
    kept = done.all_messages_json().decode()
    assert all(f"page {at} xx" in kept and "art:" not in kept for at in range(8))

    again = Model(["done"])
    agent = Agent(again.model, tools=[page], capabilities=[capability])
    await agent.run("And?", message_history=done.all_messages())
    assert again.script.requests[0].startswith(model.script.requests[-1])
    own = capability.bank_for("one")
    assert await own.get("page_c0") == page(0)
    assert (await own.usage()).artifacts == 6


async def test_old_results_become_the_same_pointers_after_they_were_kept_as_json(
    tmp_path: Path,
) -> None:
    class Page(BaseModel):
        written: datetime
        text: str

    def page() -> Page:
        """Return a page."""
        return Page(written=datetime(2026, 11, 30, tzinfo=UTC), text="x" * 10_000)

    requests: list[str] = []
    history: Sequence[ModelMessage] = ()
    scripts: list[list[Turn]] = [
        [[call("page", {})], [call("rows", {}, "c2")], "done"],
        ["again"],
    ]
    for script in scripts:
        async with open_bank(f"file:{tmp_path}") as bank:
            model = Model(script)
            capability = CoatcheckCapability(bank, history_bytes=0, keep_turns=1)
            agent = Agent(model.model, tools=[page, rows], capabilities=[capability])
            done = await agent.run(PROMPT, message_history=history)
            requests.append(model.script.requests[-1])
            history = ModelMessagesTypeAdapter.validate_json(done.all_messages_json())

    first, second = (re.findall(r'^{"pointer".*$', each, re.MULTILINE) for each in requests)
    assert first == second[:1] != []
    assert "2026-11-30T00:00:00Z" in first[0]


async def test_old_results_with_files_and_our_own_replies_are_sent_as_they_are(bank: Bank) -> None:
    image = BinaryContent(b"\x89PNG" * 2_000, media_type="image/png")

    def look() -> list[Any]:
        """Look."""
        return ["seen " * 1_000, image]

    capability = CoatcheckCapability(bank, history_bytes=0, keep_turns=0)
    pointer = (await capability.bank_for("one").put("read " * 1_000)).pointer
    model = Model(
        [
            [call("look", {}), call("retrieve_context", {"artifactId": pointer}, "c2")],
            [call("rows", {}, "c3")],
            "done",
        ]
    )
    agent = Agent(model.model, tools=[look, rows], capabilities=[capability])
    await agent.run(PROMPT, conversation_id="one")

    assert "seen seen" in model.script.results["c1"]
    assert "read read" in model.script.results["c2"]
    assert pointer_in(model.script.results["c3"])


async def test_run_in_a_durable_workflow_is_refused_with_the_remedy(bank: Bank) -> None:
    class Durable(AbstractCapability[Any]):
        in_durable_context = True

    agent = Agent(Model(["done"]).model, capabilities=[CoatcheckCapability(bank), Durable()])

    with pytest.raises(UserError, match=r"coatcheck\.mirror\(function, bank\)"):
        await agent.run(PROMPT)


async def test_tools_of_an_mcp_server_take_pointers_and_are_offloaded(bank: Bank) -> None:
    server: FastMCP[Any] = FastMCP("orders")
    given: list[Any] = []

    @server.tool
    def orders(count: int) -> list[dict[str, int]]:
        """Return orders."""
        return ROWS[:count]

    @server.tool
    def bill(items: list[dict[str, int]]) -> int:
        """Add prices."""
        given.append(items)
        return sum(item["price"] for item in items)

    @server.tool
    def broken() -> str:
        """Fail."""
        raise ToolError("no such shop\n" * 500)

    model = Model(
        [
            [call("orders", {"count": 100})],
            lambda seen: [call("bill", {"items": pointer_in(seen["c1"])}, "c2")],
            [call("broken", {}, "c3")],
            "done",
        ]
    )
    capability = CoatcheckCapability(bank, limits=LIMITS)
    agent = Agent(model.model, toolsets=[MCPToolset(server)], capabilities=[capability])
    done = await agent.run(PROMPT, conversation_id="one")

    assert given == [ROWS]
    assert "4950" in model.script.results["c2"]
    assert re.search(r"isError\W+true", model.script.results["c3"])
    assert MARK not in done.all_messages_json().decode()
    assert await capability.bank_for("one").get(pointer_in(model.script.results["c1"])) == ROWS


async def test_tools_of_wrapped_toolsets_take_pointers_under_the_name_the_model_calls(
    bank: Bank,
) -> None:
    def every(*_: object) -> bool:
        return True

    toolset = FunctionToolset([rows, total]).prefixed("shop").filtered(every)
    model = Model(
        [
            [call("shop_rows", {})],
            lambda seen: [call("shop_total", {"items": pointer_in(seen["c1"])}, "c2")],
            "done",
        ]
    )
    capability = CoatcheckCapability(bank, limits=LIMITS)
    agent = Agent(model.model, toolsets=[toolset], capabilities=[capability])
    await agent.run(PROMPT, conversation_id="one")

    assert model.script.results["c2"] == "4950"
    assert await capability.bank_for("one").get("shop_rows_c1") == ROWS


async def test_call_that_waits_for_approval_shows_its_value_to_who_approves(bank: Bank) -> None:
    seen: list[Any] = []

    def pay(ctx: RunContext[None], items: list[dict[str, int]]) -> int:
        """Pay for items."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"count": len(items)})
        seen.append(items)
        return len(items)

    capability = CoatcheckCapability(bank, limits=LIMITS)
    pointer = (await capability.bank_for("one").put(ROWS)).pointer
    model = Model([[call("pay", {"items": pointer})], "done"])
    agent = Agent(
        model.model,
        tools=[AiTool(pay)],
        output_type=[str, DeferredToolRequests],
        capabilities=[capability],
    )
    asked = await agent.run(PROMPT, conversation_id="one")
    assert isinstance(asked.output, DeferredToolRequests)
    assert asked.output.metadata["c1"] == {"count": 100}
    assert MARK not in asked.all_messages_json().decode()
    done = await agent.run(
        message_history=asked.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"c1": True}),
    )

    assert done.output == "done"
    assert seen == [ROWS]


async def test_capabilities_behind_it_see_the_result_and_those_before_it_the_envelope(
    bank: Bank,
) -> None:
    seen: dict[str, Any] = {}

    class Watching(AbstractCapability[Any]):
        def __init__(self, where: str) -> None:
            self.where = where

        async def after_tool_execute(self, ctx: Any, *, result: Any, **_: Any) -> Any:
            seen[self.where] = result
            return result

    capability = CoatcheckCapability(bank, limits=LIMITS)
    agent = Agent(
        Model([[call("rows", {})], "done"]).model,
        tools=[rows],
        capabilities=[Watching("before"), capability, Watching("behind")],
    )
    await agent.run(PROMPT)

    assert seen["behind"] == ROWS
    assert list(seen["before"])[:3] == ["pointer", "preview", "sizeBytes"]


async def test_arguments_without_pointers_are_validated_as_the_json_they_are(bank: Bank) -> None:
    class Visit(BaseModel):
        model_config = ConfigDict(strict=True)
        at: datetime
        tags: frozenset[str]

    visits: list[Visit] = []

    def book(visit: Visit, note: str) -> str:
        """Book a visit."""
        visits.append(visit)
        return "booked"

    written = {"visit": {"at": "2026-11-30T12:00:00Z", "tags": ["a"]}, "note": "short"}
    agent = Agent(
        Model([[call("book", written)], "done"]).model,
        tools=[book],
        capabilities=[CoatcheckCapability(bank)],
    )
    await agent.run(PROMPT)

    assert visits == [Visit(at=datetime(2026, 11, 30, 12, tzinfo=UTC), tags=frozenset("a"))]


async def test_call_without_the_arguments_it_needs_is_told_as_ever(bank: Bank) -> None:
    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("total", None, "c1")])

    agent = Agent(FunctionModel(reply), tools=[total], capabilities=[CoatcheckCapability(bank)])
    done = await agent.run(PROMPT)

    assert "Field required" in done.all_messages_json().decode()


async def test_journal_is_told_of_each_call_once(tmp_path: Path) -> None:
    async with open_bank("memory:", journal=tmp_path / "calls.jsonl") as bank:
        capability = CoatcheckCapability(bank, limits=LIMITS, history_bytes=0, keep_turns=0)
        pointer = (await capability.bank_for("one").put(ROWS)).pointer
        turns = [
            call("rows", {}),
            call("total", {"items": pointer}, "c2"),
            call("total", {"items": UNKNOWN}, "c3"),
            call("total", {"items": f"{pointer}#$[*].id"}, "c4"),
            call("retrieve_context", {"artifactId": pointer}, "c5"),
        ]
        model = Model([*[[each] for each in turns], "done"])
        agent = Agent(model.model, tools=[rows, total], capabilities=[capability])
        await agent.run(PROMPT, conversation_id="one")

    lines = (tmp_path / "calls.jsonl").read_bytes().splitlines()
    calls = [parse_call(line) for line in lines]
    noted = [(each.tool, each.is_error, len(each.pointers_in)) for each in calls if each]
    assert noted == [
        ("rows", False, 0),
        ("total", False, 1),
        ("total", True, 1),
        ("total", True, 1),
        ("retrieve_context", False, 1),
    ]


async def test_stepping_through_a_run_and_its_events_use_pointers_too(bank: Bank) -> None:
    def agent() -> tuple[Model, Agent[None, str]]:
        model = Model(
            [
                [call("rows", {})],
                lambda seen: [call("total", {"items": pointer_in(seen["c1"])}, "c2")],
                "done",
            ]
        )
        capabilities = [CoatcheckCapability(bank, limits=LIMITS)]
        return model, Agent(model.model, tools=[rows, total], capabilities=capabilities)

    stepped, first = agent()
    async with first.iter(PROMPT) as run:
        async for _ in run:
            pass
    streamed, second = agent()
    async with second.run_stream_events(PROMPT) as events:
        async for _ in events:
            pass

    assert stepped.script.results["c2"] == streamed.script.results["c2"] == "4950"


async def test_own_tool_of_the_same_name_is_told(bank: Bank) -> None:
    def retrieve_context() -> str:
        """Retrieve."""
        return ""

    agent = Agent(
        Model(["done"]).model, tools=[retrieve_context], capabilities=[CoatcheckCapability(bank)]
    )
    with pytest.raises(UserError, match="retrieve_context"):
        await agent.run(PROMPT)


async def test_requests_of_a_real_client_carry_it_all(bank: Bank) -> None:
    def reply(messages: list[dict[str, Any]]) -> Any:
        read = [each["content"] for each in messages if each["role"] == "tool"]
        if not read:
            return [("rows", {})]
        if len(read) == 1:
            return [("total", {"items": pointer_in(read[0])}), ("total", {"items": UNKNOWN})]
        return f"{read[1]}, and not {read[2]}"

    with chat_server(reply) as server:
        model = OpenAIChatModel(
            "scripted", provider=OpenAIProvider(base_url=server.url, api_key="none")
        )
        agent = Agent(
            model,
            instructions=INSTRUCTIONS,
            tools=[rows, total],
            capabilities=[CoatcheckCapability(bank, limits=LIMITS)],
        )
        done = await agent.run(PROMPT)

    assert done.output.startswith("4950, and not ")
    assert "unknown-pointer" in done.output
    assert len({json.dumps([each["tools"], each["messages"][:3]]) for each in server.asked}) == 1
    first = server.asked[0]
    system = [each["content"] for each in first["messages"] if each["role"] == "system"]
    assert "\n".join(system).split("\n") == [INSTRUCTIONS, SYSTEM_TEXT]
    (schema,) = [
        tool["function"]["parameters"]["properties"]["items"]
        for tool in first["tools"]
        if tool["function"]["name"] == "total"
    ]
    assert "da-f-]{32}" in json.dumps(schema)
    assert MARK not in json.dumps(server.asked)
