"""The adapter for Strands: the SDK's own agent, tools, hooks and session managers."""

import json
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent, ToolContext, tool  # pyright: ignore[reportUnknownVariableType]
from strands.hooks import (
    AfterToolCallEvent,
    BeforeToolCallEvent,
    HookOrder,
    HookProvider,
    HookRegistry,
)
from strands.models import Model
from strands.session import FileSessionManager
from strands.tools.decorator import DecoratedFunctionTool
from strands.tools.mcp import MCPClient
from strands.vended_plugins.context_offloader import ContextOffloader

from coatcheck import Bank, Limits, mirror
from coatcheck.adapters._sessions import SYSTEM_TEXT
from coatcheck.adapters.strands import CoatcheckHooks
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


class FakeModel(Model):
    """A model that says what a script says, as a stream of events."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self.script = ScriptedModel(script)
        self.images: list[bytes] = []
        self.systems: list[Any] = []
        self.config: dict[str, Any] = {"model_id": "scripted"}

    def update_config(self, **model_config: Any) -> None:
        """Take no configuration."""

    def get_config(self) -> Any:
        """Return the configuration."""
        return self.config

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Not asked for."""
        raise NotImplementedError

    async def stream(
        self,
        messages: Any,
        tool_specs: Any = None,
        system_prompt: str | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Answer a request with the next turn of the script."""
        blocks: list[Any] | None = kwargs.get("system_prompt_content")
        self.systems.append(blocks)
        parts: list[Any] = blocks or []
        told = system_prompt or "\n".join(each.get("text", "") for each in parts)
        parts = [
            json.dumps(each, ensure_ascii=False, default=_plain) for each in (tool_specs, messages)
        ]
        said = self.script.reply("\n".join([told, *parts]), dict(self._results(messages)))
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(said, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": said}}}
            yield {"contentBlockStop": {}}
        else:
            for call in said:
                start = {"toolUse": {"name": call.name, "toolUseId": call.id}}
                written = json.dumps(call.arguments, ensure_ascii=False)
                yield {"contentBlockStart": {"start": start}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": written}}}}
                yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(said, str) else "tool_use"}}

    def _results(self, messages: Any) -> Iterator[tuple[str, str]]:
        for message in messages:
            for block in message["content"]:
                result = block.get("toolResult")
                if result is None:
                    continue
                for part in result["content"]:
                    if "image" in part:
                        self.images.append(part["image"]["source"]["bytes"])
                texts = [part["text"] for part in result["content"] if "text" in part]
                yield result["toolUseId"], "".join(texts)


def _plain(value: object) -> str:
    assert isinstance(value, bytes)
    return b64encode(value).decode()


class TestStrands(AdapterSuite):
    cannot: ClassVar[Mapping[str, str]] = {
        "test_parameter_that_is_a_pydantic_model_gets_one": (
            "Strands validates a model, and hands the tool its fields as a mapping"
        ),
        "test_arguments_without_pointers_reach_the_tool_as_ever": (
            "Strands validates a model, and hands the tool its fields as a mapping"
        ),
    }

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

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
        model = FakeModel(script)
        manager = (
            None if session is None else FileSessionManager(session, storage_dir=str(self.tmp_path))
        )
        agent = Agent(
            model=model,
            system_prompt=INSTRUCTIONS,
            tools=[
                each if isinstance(each, DecoratedFunctionTool) else tool(each) for each in tools
            ],
            hooks=[CoatcheckHooks(bank, limits=limits)],
            session_manager=manager,
            callback_handler=None,
        )
        if how == "sync":
            result = await anyio.to_thread.run_sync(agent, PROMPT)
        elif how == "stream":
            result = None
            async for event in agent.stream_async(PROMPT):
                result = event.get("result", result)
        else:
            result = await agent.invoke_async(PROMPT)
        return Seen(
            requests=model.script.requests,
            results=model.script.results,
            history=json.dumps(agent.messages, ensure_ascii=False, default=_plain),
            output=str(result).strip(),
            images=model.images,
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckHooks(bank).bank_for(session)

    def photo(self, text: str, image: bytes) -> object:
        @tool
        def photo() -> dict[str, Any]:
            """Return a photo."""
            source = {"format": "png", "source": {"bytes": image}}
            return {"status": "success", "content": [{"text": text}, {"image": source}]}

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        @tool(context=True)
        def inject(items: list[dict[str, int]], tool_context: ToolContext) -> str:
            """Take rows.

            Args:
                items: Rows.
            """
            return take(tool_context, items)

        return inject


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), limits=Limits(inline_bytes=1_000))


def call(name: str, arguments: Mapping[str, object] | None = None, call_id: str = "c1") -> Turn:
    """Return a turn with one call."""
    return [ModelCall(name=name, arguments=arguments or {}, id=call_id)]


def rows(n: int) -> list[dict[str, int]]:
    """Return rows."""
    return [{"id": number, "price": number} for number in range(n)]


def total(items: list[dict[str, int]]) -> int:
    """Return the sum of prices."""
    return sum(item["price"] for item in items)


def made(bank: Bank, script: Sequence[Turn], tools: Sequence[Any], **given: Any) -> Agent:
    """Return an agent with the hooks, and a model with a script."""
    hooks: list[Any] = [CoatcheckHooks(bank), *given.pop("hooks", [])]
    kept: dict[str, Any] = {"system_prompt": INSTRUCTIONS, "callback_handler": None, **given}
    return Agent(model=FakeModel(script), tools=[*tools], hooks=hooks, **kept)


def model_of(agent: Agent) -> FakeModel:
    assert isinstance(agent.model, FakeModel)
    return agent.model


async def test_other_hooks_see_values_and_the_conversation_keeps_the_pointer(bank: Bank) -> None:
    class Audit(HookProvider):
        def register_hooks(self, registry: HookRegistry, **_: object) -> None:
            registry.add_callback(BeforeToolCallEvent, self.before)

        def before(self, event: BeforeToolCallEvent[Any]) -> None:
            seen.append(event.tool_use["input"])

    seen: list[object] = []
    pointer = (await bank.put(rows(100))).pointer
    agent = made(bank, [call("total", {"items": pointer}), "done"], [tool(total)], hooks=[Audit()])

    await agent.invoke_async(PROMPT)

    assert seen == [{"items": rows(100)}]
    (use,) = cast("Any", agent.messages[1])["content"]
    assert use["toolUse"]["input"] == {"items": pointer}


async def test_call_that_a_hook_tries_again_gets_the_same_values(bank: Bank) -> None:
    class Again(HookProvider):
        def register_hooks(self, registry: HookRegistry, **_: object) -> None:
            registry.add_callback(AfterToolCallEvent, self.after)

        def after(self, event: AfterToolCallEvent[Any]) -> None:
            event.retry = event.result["status"] == "error"

    @tool
    def flaky(items: list[dict[str, int]]) -> str:
        """Fail once."""
        taken.append(items)
        if len(taken) == 1:
            raise OSError("not yet")
        return "done"

    taken: list[object] = []
    pointer = (await bank.put(rows(100))).pointer
    agent = made(bank, [call("flaky", {"items": pointer}), "end"], [flaky], hooks=[Again()])

    await agent.invoke_async(PROMPT)

    assert taken == [rows(100), rows(100)]
    assert model_of(agent).script.results == {"c1": "done"}


async def test_value_in_a_json_block_is_banked_as_the_value(bank: Bank) -> None:
    @tool
    def facts() -> dict[str, Any]:
        """Return facts."""
        return {"status": "success", "content": [{"json": {"result": rows(100)}}]}

    agent = made(bank, [call("facts"), "done"], [facts])

    await agent.invoke_async(PROMPT)

    pointer = pointer_in(model_of(agent).script.results["c1"])
    assert await bank.get(pointer) == {"result": rows(100)}
    assert await bank.find("facts_c1") is not None


async def test_block_that_no_bank_can_keep_ends_no_call(bank: Bank) -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    beside = [{"json": deep}, {"text": "short"}]
    contents: dict[str, Any] = {"alone": [{"json": deep}], "beside": beside}

    @tool
    def give(which: str) -> dict[str, Any]:
        """Return what is nested deep."""
        return {"status": "success", "content": contents[which]}

    turn = [ModelCall(name="give", arguments={"which": each}, id=each) for each in contents]
    agent = made(bank, [turn, "done"], [give])

    await agent.invoke_async(PROMPT)

    results = [block["toolResult"] for block in cast("Any", agent.messages[2])["content"]]
    assert [each["status"] for each in results] == ["success", "success"]
    ((alone,), second) = (each["content"] for each in results)
    assert "has no encoding" in alone["text"]
    assert second == beside


async def test_blocks_of_a_result_are_each_offloaded_or_left_as_they_are(bank: Bank) -> None:
    small = {"json": {"a": 1}}

    @tool
    def several() -> dict[str, Any]:
        """Return several blocks."""
        content = [{"text": "x" * 2_000}, small, {"json": rows(100)}, {"text": "short"}]
        return {"status": "success", "content": content}

    agent = made(bank, [call("several"), "done"], [several])

    await agent.invoke_async(PROMPT)

    (block,) = cast("Any", agent.messages[2])["content"]
    first, second, third, fourth = block["toolResult"]["content"]
    assert await bank.get(pointer_in(first["text"])) == "x" * 2_000
    assert second == small
    assert await bank.get(pointer_in(third["text"]), list[dict[str, int]]) == rows(100)
    assert fourth == {"text": "short"}


async def test_what_strands_can_only_write_as_text_is_banked_as_the_value(bank: Bank) -> None:
    def days() -> list[date]:
        """Return days."""
        return [date(2026, 1, 1) + timedelta(days=number) for number in range(200)]

    plain = made(bank, [call("days"), "done"], [tool(days)])
    mirrored = made(bank, [call("days"), "done"], [tool(mirror(days, bank))])

    await plain.invoke_async(PROMPT)
    await mirrored.invoke_async(PROMPT)

    written = await bank.get(pointer_in(model_of(plain).script.results["c1"]))
    kept = await bank.get(pointer_in(model_of(mirrored).script.results["c1"]), list[date])
    assert written == [str(day) for day in days()]
    assert kept == days()


async def test_small_value_is_left_as_strands_wrote_it_and_what_is_yielded_is_read(
    bank: Bank,
) -> None:
    @tool
    def days() -> list[date]:
        """Return a day."""
        return [date(2026, 1, 1)]

    @tool
    def count(upto: int) -> Iterator[int]:
        """Count.

        Args:
            upto: Where to stop.
        """
        yield from range(upto)

    turns = [call("days"), call("count", {"upto": 3}, "c2"), call("count", {"upto": 900}, "c3")]
    agent = made(bank, [*turns, "done"], [days, count])

    await agent.invoke_async(PROMPT)

    results = model_of(agent).script.results
    assert results["c1"] == "[datetime.date(2026, 1, 1)]"
    assert results["c2"] == "[0,1,2]"
    assert await bank.get(pointer_in(results["c3"])) == [*range(900)]


async def test_large_value_without_an_encoding_is_banked_as_the_text_of_it(bank: Bank) -> None:
    value = [object()] * 100

    @tool
    def give() -> Any:
        """Give."""
        return value

    agent = made(bank, [call("give"), "done"], [give])

    await agent.invoke_async(PROMPT)

    assert await bank.get(pointer_in(model_of(agent).script.results["c1"])) == str(value)


async def test_result_that_another_hook_changed_is_what_is_banked(bank: Bank) -> None:
    class Redact(HookProvider):
        def register_hooks(self, registry: HookRegistry, **_: object) -> None:
            registry.add_callback(AfterToolCallEvent, self.after, order=HookOrder.SDK_FIRST - 1)

        def after(self, event: AfterToolCallEvent[Any]) -> None:
            event.result = {**event.result, "content": [{"text": "redacted " * 200}]}

    @tool
    def days() -> list[date]:
        """Return days."""
        return [date(2026, 1, 1)] * 200

    agent = made(bank, [call("days"), "done"], [days], hooks=[Redact()])

    await agent.invoke_async(PROMPT)

    shown = model_of(agent).script.results["c1"]
    assert await bank.get(pointer_in(shown)) == "redacted " * 200


async def test_prompt_in_blocks_keeps_what_is_cached_and_the_agent_its_own(bank: Bank) -> None:
    blocks: list[Any] = [{"text": INSTRUCTIONS}, {"cachePoint": {"type": "default"}}]
    agent = made(bank, ["done"], [], system_prompt=blocks)

    await agent.invoke_async(PROMPT)

    (asked,) = model_of(agent).systems
    assert asked == [*blocks, {"text": SYSTEM_TEXT}]
    assert agent.system_prompt_content == blocks


async def test_agent_without_a_prompt_is_told_of_pointers(bank: Bank) -> None:
    agent = made(bank, ["done"], [], system_prompt=None)

    await agent.invoke_async(PROMPT)

    assert model_of(agent).script.requests[0].startswith(SYSTEM_TEXT)
    assert agent.system_prompt is None


async def test_specs_of_tools_stay_as_they_are(bank: Bank) -> None:
    given = tool(total)
    before = json.dumps(given.tool_spec)
    agent = made(bank, ["done"], [given])

    await agent.invoke_async(PROMPT)

    assert json.dumps(given.tool_spec) == before
    assert "da-f-]{32}" in model_of(agent).script.requests[0]


async def test_hooks_serve_several_agents_and_their_sessions(bank: Bank, tmp_path: Path) -> None:
    hooks = CoatcheckHooks(bank)
    agents = [
        Agent(
            model=FakeModel([call("rows", {"n": 100}), "done"]),
            tools=[tool(rows)],
            hooks=[hooks],
            session_manager=FileSessionManager(name, storage_dir=str(tmp_path)),
            callback_handler=None,
        )
        for name in ("one", "two")
    ]

    for agent in agents:
        await agent.invoke_async(PROMPT)

    artifacts = [await hooks.bank_for(name).find("rows_c1") for name in ("one", "two", None)]
    assert [artifact is not None for artifact in artifacts] == [True, True, False]
    assert artifacts[0] != artifacts[1]


async def test_offloader_of_strands_gets_what_we_leave(bank: Bank) -> None:
    @tool
    def word(times: int) -> str:
        """Return a word several times."""
        return "word " * times

    agent = made(
        bank,
        [call("word", {"times": 150}), call("word", {"times": 2_000}, "c2"), "done"],
        [word],
        plugins=[ContextOffloader(max_result_tokens=50, preview_tokens=10)],
    )

    await agent.invoke_async(PROMPT)

    results = model_of(agent).script.results
    assert "Offloaded" in results["c1"]
    assert "art:" not in results["c1"]
    assert await bank.find("word_c1") is None
    assert await bank.get("word_c2") == "word " * 2_000


async def test_tools_of_an_mcp_server_take_and_return_pointers(bank: Bank) -> None:
    params = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    script: list[Turn] = [
        call("rows", {"n": 200}),
        lambda results: [
            ModelCall(name="total", arguments={"items": pointer_in(results["c1"])}, id="c2")
        ],
        call("total", {"items": UNKNOWN}, "c3"),
        "done",
    ]
    with MCPClient(lambda: cast("Any", stdio_client(params))) as client:
        agent = made(bank, script, client.list_tools_sync())
        await agent.invoke_async(PROMPT)

    results = model_of(agent).script.results
    assert await bank.get(pointer_in(results["c1"])) == rows(200)
    assert "19900" in results["c2"]
    assert "unknown-pointer" in results["c3"]
    assert '"id": 150' not in json.dumps(agent.messages)
