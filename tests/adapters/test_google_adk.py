"""ADK's runner with the plugin: its loop, tools and sessions are the real ones."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from anyio import to_thread
from google.adk.agents import (
    Agent,
    BaseAgent,
    LiveRequestQueue,
    SequentialAgent,  # pyright: ignore[reportDeprecated] - what follows it has no sub-agents yet
)
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from mcp import StdioServerParameters
from pydantic import BaseModel

from coatcheck import Bank, Limits
from coatcheck.adapters.google_adk import CoatcheckPlugin
from coatcheck.bank import Journal, read_journal
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
)
from coatcheck.testing._adapter_script import pointer_in

APP, USER = "shop", "ann"


class Scripted(BaseLlm):
    """A model that says what a script does: `script` is a `ScriptedModel`."""

    model: str = "scripted"
    script: Any
    images: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = self.script.reply(request_text(llm_request), results_of(llm_request.contents))
        self.images += images_of(llm_request.contents)
        parts = (
            [types.Part(text=said)]
            if isinstance(said, str)
            else [
                types.Part(
                    function_call=types.FunctionCall(
                        name=call.name, args=dict(call.arguments), id=call.id
                    )
                )
                for call in said
            ]
        )
        if stream and isinstance(said, str):
            head = types.Content(role="model", parts=[types.Part(text=said[:1])])
            yield LlmResponse(content=head, partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def request_text(request: LlmRequest) -> str:
    """Return all text of a request: system text, tools, messages."""
    config = request.config.model_dump(
        mode="json", include={"system_instruction", "tools"}, exclude_none=True
    )
    contents = [each.model_dump(mode="json", exclude_none=True) for each in request.contents]
    parts = [config.get("system_instruction"), config.get("tools"), contents]
    return "\n".join(json.dumps(part, ensure_ascii=False) for part in parts)


def results_of(contents: Sequence[types.Content]) -> dict[str, str]:
    """Return the tool results among messages, by the id of their call."""
    return {
        str(part.function_response.id): json.dumps(
            part.function_response.response, ensure_ascii=False
        )
        for content in contents
        for part in content.parts or []
        if part.function_response
    }


def images_of(contents: Sequence[types.Content]) -> list[bytes]:
    """Return the images in the tool results among messages."""
    return [
        image.inline_data.data or b""
        for content in contents
        for part in content.parts or []
        for image in (part.function_response and part.function_response.parts) or []
        if image.inline_data
    ]


async def play(
    agent: BaseAgent,
    plugin: CoatcheckPlugin,
    said: str | types.Part = PROMPT,
    *,
    sessions: InMemorySessionService | None = None,
    app: str = APP,
    user: str = USER,
    session: str = "only",
    how: How = "async",
) -> list[Event]:
    """Let a runner answer one message; return all events that the session then has."""
    service = sessions or InMemorySessionService()
    if await service.get_session(app_name=app, user_id=user, session_id=session) is None:
        await service.create_session(app_name=app, user_id=user, session_id=session)
    runner = Runner(app=App(name=app, root_agent=agent, plugins=[plugin]), session_service=service)
    part = types.Part(text=said) if isinstance(said, str) else said
    asked = types.Content(role="user", parts=[part])
    if how == "sync":

        def run_sync() -> None:
            for _ in runner.run(user_id=user, session_id=session, new_message=asked):
                pass

        await to_thread.run_sync(run_sync)
    else:
        config = RunConfig.model_validate({"streaming_mode": "sse" if how == "stream" else None})
        async for _ in runner.run_async(
            user_id=user,
            session_id=session,
            new_message=asked,
            run_config=config,
        ):
            pass
    await runner.close()
    kept = await service.get_session(app_name=app, user_id=user, session_id=session)
    assert kept is not None
    return kept.events


def clerk(script: ScriptedModel, tools: Sequence[Any] = (), **options: Any) -> Agent:
    """Return an agent whose model says what a script does."""
    model = Scripted(script=script, images=[])
    settings: dict[str, Any] = {"name": "clerk", "model": model, "tools": [*tools], **options}
    return Agent(**settings)


class TestGoogleAdk(AdapterSuite):
    """A `Runner` with an `Agent`; a session is one of ADK's, of one user."""

    @cached_property
    def sessions(self) -> InMemorySessionService:
        return InMemorySessionService()

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
        said = ScriptedModel(script)
        agent = clerk(said, tools, instruction=INSTRUCTIONS)
        plugin = CoatcheckPlugin(bank, limits=limits)
        name = session or "only"
        events = await play(agent, plugin, sessions=self.sessions, session=name, how=how)
        last = events[-1].content
        assert last is not None
        assert last.parts
        return Seen(
            requests=said.requests,
            results=said.results,
            history=json.dumps([each.model_dump(mode="json") for each in events]),
            output=str(last.parts[0].text),
            images=cast("Scripted", agent.model).images,
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckPlugin(bank).bank_for(session or "only", app_name=APP, user_id=USER)

    def failing(self, text: str) -> Any:
        def fail() -> dict[str, str]:
            """Fail."""
            return {"error": text}

        return fail

    def photo(self, text: str, image: bytes) -> Any:
        def photo() -> list[Any]:
            """Take a photo."""
            return [text, types.Part.from_bytes(data=image, mime_type="image/png")]

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> Any:
        def inject(items: list[dict[str, int]], tool_context: ToolContext) -> str:
            """Take what is injected.

            Args:
                items: Rows.
            """
            return take(tool_context, items)

        return inject


LIMITS = Limits(inline_bytes=1_000)


def call(tool: str, **arguments: object) -> ModelCall:
    """Return the one call of a tool in a script."""
    return ModelCall(name=tool, arguments=arguments, id=tool)


def rows(n: int) -> list[dict[str, int]]:
    """Return rows."""
    return [{"id": 70_000_000 + number, "price": number} for number in range(n)]


def total(items: list[dict[str, int]]) -> int:
    """Return the sum of prices."""
    return sum(item["price"] for item in items)


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), scope="shop")


async def test_session_of_another_user_or_app_with_the_same_id_has_a_scope_of_its_own(
    bank: Bank,
) -> None:
    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    script = ScriptedModel([[call("rows", n=100)], "done"])
    await play(clerk(script, [rows]), plugin)
    pointer = pointer_in(script.results["rows"])

    for app, user in (("shop", "ben"), ("bank", "ann")):
        other = ScriptedModel(
            [[call("total", items=pointer), call("retrieve_context", artifactId=pointer)], "done"]
        )
        await play(clerk(other, [total]), plugin, app=app, user=user)
        assert "unknown-pointer" in other.results["total"]
        assert "unknown-pointer" in other.results["retrieve_context"]

    own = plugin.bank_for("only", app_name="shop", user_id="ann")
    assert await own.get(pointer) == rows(100)
    assert own.scope == "shop/session/shop/ann/only"


class Schemas(BaseTool):
    """A tool that declares its arguments as ADK's older `Schema` objects, always the same."""

    def __init__(self) -> None:
        super().__init__(name="count", description="Count.")
        self.calls: list[dict[str, Any]] = []
        self.declaration = types.FunctionDeclaration(
            name="count",
            description="Count.",
            parameters=types.Schema(
                type=types.Type.OBJECT,
                properties={
                    "items": types.Schema(
                        type=types.Type.ARRAY,
                        items=types.Schema(type=types.Type.OBJECT),
                        description="What to count.",
                    ),
                    "text": types.Schema(type=types.Type.STRING),
                },
                required=["items"],
            ),
            response=types.Schema(type=types.Type.ARRAY),
        )

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self.declaration

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> object:
        self.calls.append(args)
        return {"count": len(args["items"])}


async def test_schema_objects_are_opened_and_decide_between_text_and_structure(bank: Bank) -> None:
    plugin, tool = CoatcheckPlugin(bank), Schemas()
    before = tool.declaration.model_copy(deep=True)
    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    pointer = (await own.put([{"id": 1}, {"id": 2}])).pointer
    script = ScriptedModel([[call("count", items=pointer, text=pointer)], "done"])

    await play(clerk(script, [tool]), plugin)

    assert tool.calls == [{"items": [{"id": 1}, {"id": 2}], "text": '[{"id":1},{"id":2}]'}]
    shown = json.loads(script.requests[0].splitlines()[1])[0]["function_declarations"][0]
    items = shown["parameters"]["properties"]["items"]
    assert [each["type"] for each in items["any_of"]] == ["ARRAY", "STRING"]
    assert shown["parameters"]["properties"]["text"] == {"type": "STRING"}
    assert "response" not in shown
    assert tool.declaration == before


# ADK's own way to run an agent as a tool is what it warns of.
@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
async def test_agent_that_another_calls_as_a_tool_shares_its_scope(bank: Bank) -> None:
    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    inner = ScriptedModel([[call("rows", n=100)], lambda read: pointer_in(read["rows"])])
    finder = clerk(inner, [rows], name="finder", description="Finds rows.")
    outer = ScriptedModel(
        [
            [call("finder", request="all rows")],
            lambda read: [
                call("total", items=pointer_in(read["finder"])),
                call("retrieve_context", artifactId=pointer_in(read["finder"]), limit=30),
            ],
            "done",
        ]
    )

    await play(clerk(outer, [AgentTool(finder), total]), plugin)

    assert outer.results["total"] == '{"result": 4950}'
    assert json.loads(outer.results["retrieve_context"])["content"].startswith('[{"id":70000000,')
    assert (await plugin.bank_for("only", app_name=APP, user_id=USER).usage()).artifacts == 1
    # And nothing of it stays: the next session has its own.
    other = ScriptedModel([[call("retrieve_context", artifactId="rows_rows")], "done"])
    await play(clerk(other), plugin, session="next")
    assert "unknown-pointer" in other.results["retrieve_context"]


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
async def test_agent_without_tools_can_read_what_the_one_before_it_was_shown(bank: Bank) -> None:
    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    first = ScriptedModel([[call("rows", n=100)], "see above"])
    second = ScriptedModel([[call("retrieve_context", artifactId="rows_rows", limit=9)], "done"])
    crew = SequentialAgent(  # pyright: ignore[reportDeprecated]
        name="crew", sub_agents=[clerk(first, [rows], name="finder"), clerk(second, name="writer")]
    )

    await play(crew, plugin)

    assert json.loads(second.results["retrieve_context"])["content"] == '[{"id":70'


class Answer(BaseModel):
    """What an agent is to answer."""

    total: int


async def test_agent_that_can_only_answer_in_json_is_given_no_tool_and_told_of_none(
    bank: Bank,
) -> None:
    script = ScriptedModel(['{"total": 3}'])
    await play(clerk(script, output_schema=Answer), CoatcheckPlugin(bank))

    assert "retrieve_context" not in script.requests[0]


async def test_built_in_tools_of_a_model_are_left_alone(bank: Bank) -> None:
    request = LlmRequest(model="gemini-2.5-flash")
    search = types.Tool(google_search=types.GoogleSearch())
    request.config.tools = [search]

    await CoatcheckPlugin(bank).before_model_callback(
        callback_context=cast("Any", None), llm_request=request
    )

    assert request.config.tools == [search]
    assert request.config.system_instruction is None


async def test_late_result_of_a_long_running_tool_is_offloaded_when_the_host_sends_it(
    bank: Bank,
) -> None:
    plugin, sessions = CoatcheckPlugin(bank, limits=LIMITS), InMemorySessionService()

    def export(table: str) -> None:
        """Export a table. It takes hours."""

    tools = [LongRunningFunctionTool(export), total]
    first = ScriptedModel([[call("export", table="orders")], "It has begun."])
    events = await play(clerk(first, tools), plugin, sessions=sessions)
    assert "export" not in first.results
    assert events[1].long_running_tool_ids == {"export"}

    late = types.Part(
        function_response=types.FunctionResponse(
            id="export", name="export", response={"result": rows(100)}
        )
    )
    second = ScriptedModel([lambda read: [call("total", items=pointer_in(read["export"]))], "done"])
    events = await play(clerk(second, tools), plugin, late, sessions=sessions)

    assert second.results["total"] == '{"result": 4950}'
    assert "70000037" not in json.dumps([each.model_dump(mode="json") for each in events])


async def test_small_late_result_and_those_of_adks_own_calls_stay_as_they_are(bank: Bank) -> None:
    plugin = CoatcheckPlugin(bank, limits=Limits(per_tool={"adk_request_confirmation": 0}))
    parts = [
        types.Part(function_response=types.FunctionResponse(name=name, response={"ok": True}))
        for name in ("export", "adk_request_confirmation")
    ]
    session = await InMemorySessionService().create_session(app_name=APP, user_id=USER)
    context = cast("Any", SimpleNamespace(session=session))

    message = types.Content(role="user", parts=[*parts, types.Part(text="go on")])
    shown = await plugin.on_user_message_callback(invocation_context=context, user_message=message)

    assert shown is None


async def test_state_that_a_tool_writes_is_kept_and_none_is_added(bank: Bank) -> None:
    def remember(items: list[dict[str, int]], tool_context: ToolContext) -> list[dict[str, int]]:
        """Remember how many there were."""
        tool_context.state["seen"] = len(items)
        return items

    plugin, sessions = CoatcheckPlugin(bank, limits=LIMITS), InMemorySessionService()
    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    pointer = (await own.put(rows(100))).pointer
    script = ScriptedModel([[call("remember", items=pointer)], "done"])

    await play(clerk(script, [remember]), plugin, sessions=sessions)

    session = await sessions.get_session(app_name=APP, user_id=USER, session_id="only")
    assert session is not None
    assert session.state == {"seen": 100}
    assert await own.get(pointer_in(script.results["remember"])) == rows(100)


async def test_call_that_waits_for_a_yes_keeps_its_pointer_and_runs_on_what_it_stands_for(
    bank: Bank,
) -> None:
    plugin, sessions = CoatcheckPlugin(bank, limits=LIMITS), InMemorySessionService()
    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    pointer = (await own.put(rows(100))).pointer
    tools = [FunctionTool(total, require_confirmation=True)]
    events = await play(
        clerk(ScriptedModel([[call("total", items=pointer)]]), tools), plugin, sessions=sessions
    )
    asked = [each for event in events for each in event.get_function_calls()][-1]
    assert asked.name == "adk_request_confirmation"

    yes = types.Part(
        function_response=types.FunctionResponse(
            id=asked.id, name=asked.name, response={"confirmed": True}
        )
    )
    script = ScriptedModel(["done"])
    events = await play(clerk(script, tools), plugin, yes, sessions=sessions)

    assert script.results["total"] == '{"result": 4950}'
    assert "70000037" not in json.dumps([each.model_dump(mode="json") for each in events])


async def test_exception_of_a_tool_passes_through(bank: Bank) -> None:
    def fail() -> None:
        """Fail."""
        raise ZeroDivisionError("of its own")

    with pytest.raises(ZeroDivisionError, match="of its own"):
        await play(clerk(ScriptedModel([[call("fail")]]), [fail]), CoatcheckPlugin(bank))


async def test_value_that_is_wrapped_by_the_tool_itself_is_banked_without_the_wrapping(
    bank: Bank,
) -> None:
    def wrapped() -> dict[str, Any]:
        """Return rows as ADK's own tools do."""
        return {"result": rows(100)}

    def several() -> dict[str, Any]:
        """Return more than one thing."""
        return {"result": rows(100), "status": "success"}

    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    script = ScriptedModel([[call("wrapped"), call("several")], "done"])
    await play(clerk(script, [wrapped, several]), plugin)

    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    assert await own.get(pointer_in(script.results["wrapped"])) == rows(100)
    assert await own.get(pointer_in(script.results["several"])) == several()


async def test_what_only_looks_like_a_result_of_mcp_is_banked_as_the_value_it_is(
    bank: Bank,
) -> None:
    values: list[dict[str, Any]] = [
        {"content": [], "rows": rows(100)},
        {"content": [{"type": "invoice", "rows": rows(100)}]},
        {"image": {"data": "AAAA" * 500, "mimetype": "image/png"}},
    ]

    def value(number: int) -> dict[str, Any]:
        """Return one of them."""
        return values[number]

    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    calls = [ModelCall(name="value", arguments={"number": n}, id=f"c{n}") for n in range(3)]
    script = ScriptedModel([calls, "done"])
    await play(clerk(script, [value]), plugin)

    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    for number in range(3):
        assert await own.get(pointer_in(script.results[f"c{number}"])) == values[number]


@pytest.mark.parametrize("large", [np.arange(1_000), {"of": rows(100)}, "x" * 3_000])
async def test_whatever_stands_under_error_is_banked_with_the_rest(
    bank: Bank, large: object
) -> None:
    def fit() -> dict[str, Any]:
        """Return how far off it is."""
        return {"error": large, "steps": 3}

    script = ScriptedModel([[call("fit")], "done"])
    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    await play(clerk(script, [fit]), plugin)

    told = json.loads(script.results["fit"])
    assert told.get("isError", False) is not isinstance(large, np.ndarray)
    assert await plugin.bank_for("only", app_name=APP, user_id=USER).find(told["pointer"])


async def test_array_becomes_a_pointer_that_another_tool_takes_as_a_list(bank: Bank) -> None:
    def grid() -> Any:
        """Return an array."""
        return np.arange(1_000)

    def add(numbers: list[int]) -> int:
        """Return the sum."""
        return sum(numbers)

    script = ScriptedModel(
        [[call("grid")], lambda read: [call("add", numbers=pointer_in(read["grid"]))], "done"]
    )
    await play(clerk(script, [grid, add]), CoatcheckPlugin(bank, limits=LIMITS))

    assert script.results["add"] == '{"result": 499500}'


async def test_what_does_not_fit_is_told_without_what_the_pointer_stands_for(bank: Bank) -> None:
    def add(numbers: list[int], scale: int = 1) -> int:
        """Return the sum."""
        return sum(numbers) * scale

    plugin = CoatcheckPlugin(bank)
    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    pointer = (await own.put(rows(100))).pointer
    script = ScriptedModel([[call("add", numbers=pointer)], "done"])

    events = await play(clerk(script, [add]), plugin)

    told = json.loads(script.results["add"])
    assert told["error"] == "invalid-argument"
    assert told["message"].startswith("the argument 'numbers'[0] does not fit its type")
    assert "70000000" not in json.dumps([each.model_dump(mode="json") for each in events])


async def test_journal_keeps_the_pointers_of_a_call_and_not_what_they_stand_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    with Journal(path) as journal:
        bank = Bank(MemoryStore(), journal=journal)
        plugin = CoatcheckPlugin(bank, limits=LIMITS)
        own = plugin.bank_for("only", app_name=APP, user_id=USER)
        pointer = (await own.put(rows(100))).pointer
        script = ScriptedModel([[call("total", items=pointer), call("rows", n=100)], "done"])
        await play(clerk(script, [total, rows]), plugin)

    noted = {each.tool: each for each in read_journal(path)}
    assert noted["total"].pointers_in == (pointer,)
    assert noted["rows"].pointers_out == (pointer_in(script.results["rows"]),)


SERVER = """
try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:  # mcp 1, which older ADKs want
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

from mcp.types import ImageContent, TextContent

server = MCPServer("orders")


@server.tool()
def rows(n: int) -> list[dict[str, int]]:
    return [{"id": 70_000_000 + number, "price": number} for number in range(n)]


@server.tool()
def total(items: list[dict[str, int]]) -> int:
    return sum(item["price"] for item in items)


@server.tool(structured_output=False)
def photo() -> list[TextContent | ImageContent]:
    image = ImageContent(type="image", data="aGVsbG8=", mimeType="image/png")
    return [TextContent(type="text", text="line 70000037 of a log\\n" * 100), image]


@server.tool()
def fail() -> str:
    raise ToolError("line 70000037 of a trace\\n" * 100)


server.run()
"""


# Where FastMCP is imported too, it warns of names of mcp's that ADK tries first.
@pytest.mark.filterwarnings(r"ignore:Accessing `Tool\.\w+` is deprecated")
async def test_tools_of_an_mcp_server_take_pointers_and_are_offloaded(
    bank: Bank, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    toolset = McpToolset(
        connection_params=StdioConnectionParams(
            server_params=StdioServerParameters(
                command=sys.executable, args=[str(tmp_path / "server.py")]
            ),
            timeout=60,
        )
    )
    script = ScriptedModel(
        [
            [call("rows", n=100)],
            lambda read: [
                call("total", items=pointer_in(read["rows"])),
                call("photo"),
                call("fail"),
            ],
            "done",
        ]
    )
    plugin = CoatcheckPlugin(bank, limits=LIMITS)

    events = await play(clerk(script, [toolset]), plugin)

    own = plugin.bank_for("only", app_name=APP, user_id=USER)
    artifact = await own.find("rows_rows")
    assert artifact is not None
    assert json.loads(script.results["rows"])["pointer"] == artifact.pointer
    assert await own.get(artifact.pointer) == rows(100)
    assert json.loads(script.results["total"])["structuredContent"] == {"result": 4950}
    text, image = json.loads(script.results["photo"])["content"]
    assert await own.get(pointer_in(text["text"])) == "line 70000037 of a log\n" * 100
    assert image == {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    failed = json.loads(script.results["fail"])
    assert failed["isError"] is True
    assert "line 70000037 of a trace" in str(await own.get(failed["pointer"]))
    history = json.dumps([each.model_dump(mode="json") for each in events])
    assert "70000042" not in history


async def test_tool_that_the_agent_has_already_is_listed_once(bank: Bank) -> None:
    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    script = ScriptedModel(["done"])

    await play(clerk(script, [*plugin.tools, rows]), plugin)

    assert script.requests[0].count('"name": "retrieve_context"') == 1


class Connection(BaseLlmConnection):
    """What a live model says to each message: the next of a script."""

    def __init__(self, script: ScriptedModel) -> None:
        self._script = script
        self._sent = asyncio.Queue[types.Content]()

    async def send_history(self, history: list[types.Content]) -> None:
        """Take nothing: the session is new."""

    async def send_content(self, content: types.Content) -> None:
        await self._sent.put(content)

    async def send_realtime(self, blob: types.Blob) -> None:
        """Hear nothing."""

    async def close(self) -> None:
        """Close nothing."""

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while True:
            said = self._script.reply("", results_of([await self._sent.get()]))
            if isinstance(said, str):
                parts = [types.Part(text=said)]
                yield LlmResponse(
                    content=types.Content(role="model", parts=parts), turn_complete=True
                )
                return
            parts = [
                types.Part(
                    function_call=types.FunctionCall(
                        name=each.name, args=dict(each.arguments), id=each.id
                    )
                )
                for each in said
            ]
            yield LlmResponse(content=types.Content(role="model", parts=parts))


class Live(BaseLlm):
    """A live model that says what a script does."""

    model: str = "live"
    script: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        raise NotImplementedError("it is live")
        yield LlmResponse()

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        yield Connection(self.script)


async def test_live_agent_that_lists_our_tool_itself_passes_pointers_on_and_reads_them(
    bank: Bank,
) -> None:
    plugin = CoatcheckPlugin(bank, limits=LIMITS)
    script = ScriptedModel(
        [
            [call("rows", n=100)],
            lambda read: [call("total", items=pointer_in(read["rows"]))],
            [call("retrieve_context", artifactId="rows_rows", limit=5)],
            "done",
        ]
    )
    agent = Agent(name="clerk", model=Live(script=script), tools=[rows, total, *plugin.tools])
    runner = InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=[plugin]))
    await runner.session_service.create_session(app_name=APP, user_id=USER, session_id="only")
    queue = LiveRequestQueue()
    queue.send_content(types.Content(role="user", parts=[types.Part(text=PROMPT)]))

    events = runner.run_live(
        user_id=USER,
        session_id="only",
        live_request_queue=queue,
        run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
    )
    async with aclosing(events):
        async for event in events:
            if event.turn_complete:
                queue.close()
                break

    assert script.results["total"] == '{"result": 4950}'
    assert json.loads(script.results["retrieve_context"])["content"] == '[{"id'
