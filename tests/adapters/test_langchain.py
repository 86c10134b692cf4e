"""LangChain's agents with the middleware: its loop, tools and checkpointers are the real ones."""

# LangChain's types are in part unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false

import asyncio
import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Any

import numpy as np
import pytest
from anyio import to_thread
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import InjectedState, InjectedStore, ToolRuntime, tool
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from coatcheck import Bank, BlockingBank, Limits, mirror
from coatcheck.adapters._sessions import SYSTEM_TEXT
from coatcheck.adapters.langchain import CoatcheckMiddleware
from coatcheck.bank import portal
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


class Scripted(BaseChatModel):
    """A model that says what a script does: `script` is a `ScriptedModel`."""

    script: Any
    images: list[bytes] = Field(default_factory=list[bytes])
    bound: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self.bound = [convert_to_openai_tool(each) for each in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        system = [str(each.content) for each in messages if each.type == "system"]
        rest = [
            json.dumps([each.type, each.content, getattr(each, "tool_calls", [])])
            for each in messages
            if each.type != "system"
        ]
        request = "\n".join([*system, json.dumps(self.bound, ensure_ascii=False), *rest])
        for each in messages:
            self.images += images_of(each)
        said = self.script.reply(request, results_of(messages))
        message = (
            AIMessage(said)
            if isinstance(said, str)
            else AIMessage(
                "",
                tool_calls=[
                    {"name": call.name, "args": dict(call.arguments), "id": call.id}
                    for call in said
                ],
            )
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def results_of(messages: Sequence[BaseMessage]) -> dict[str, str]:
    """Return the tool results among messages, by the id of their call."""
    return {
        each.tool_call_id: each.content
        if isinstance(each.content, str)
        else json.dumps(each.content)
        for each in messages
        if isinstance(each, ToolMessage)
    }


def images_of(message: BaseMessage) -> list[bytes]:
    """Return the images of a message."""
    blocks = [block for block in message.content if isinstance(block, dict)]
    return [base64.b64decode(block["base64"]) for block in blocks if block["type"] == "image"]


LIMITS = Limits(inline_bytes=1_000)
THREAD: Any = {"configurable": {"thread_id": "one"}}


class TestLangChain(AdapterSuite):
    """`create_agent`; a session is a thread of one checkpointer."""

    @cached_property
    def saver(self) -> InMemorySaver:
        return InMemorySaver()

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
        model = Scripted(script=said)
        agent = create_agent(
            model,
            [each if isinstance(each, BaseTool) else tool(each) for each in tools],
            system_prompt=INSTRUCTIONS,
            middleware=[CoatcheckMiddleware(bank, limits=limits)],
            checkpointer=None if session is None else self.saver,
        )
        done: Any = None
        asked: Any = {"messages": [("user", PROMPT)]}
        config: Any = {} if session is None else {"configurable": {"thread_id": session}}
        if how == "stream":
            async for state in agent.astream(asked, config, stream_mode="values"):
                done = state
        elif how == "sync":
            done = await to_thread.run_sync(agent.invoke, asked, config)
        else:
            done = await agent.ainvoke(asked, config)
        kept = done["messages"]
        return Seen(
            requests=said.requests,
            results=said.results,
            history=json.dumps([each.model_dump() for each in kept], ensure_ascii=False),
            output=kept[-1].text,
            images=model.images,
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckMiddleware(bank).bank_for(session)

    def failing(self, text: str) -> BaseTool:
        @tool
        def fail() -> str:
            """Fail."""
            raise ToolException(text)  # any other ends a run

        fail.handle_tool_error = True
        return fail

    def photo(self, text: str, image: bytes) -> BaseTool:
        @tool
        def photo() -> list[dict[str, str]]:
            """Take a photo."""
            coded = base64.b64encode(image).decode()
            return [
                {"type": "text", "text": text},
                {"type": "image", "base64": coded, "mime_type": "image/png"},
            ]

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> BaseTool:
        @tool
        def inject(items: list[dict[str, int]], runtime: ToolRuntime) -> str:
            """Inject."""
            return take(runtime, items)

        return inject


@dataclass
class Ran:
    """A run of an agent: the tools' messages by call, all messages, and what the model was sent."""

    results: dict[str, ToolMessage]
    messages: list[Any]
    model: Scripted


def ask(
    agent_of: Callable[[BaseChatModel], Any], script: Sequence[Turn], config: Any = THREAD
) -> Ran:
    """Run an agent to its end, without an event loop."""
    model = Scripted(script=ScriptedModel(script))
    messages = agent_of(model).invoke({"messages": [("user", PROMPT)]}, config)["messages"]
    results = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    return Ran(results, messages, model)


def agent_with(
    middleware: CoatcheckMiddleware, *tools: Any, **how: Any
) -> Callable[[BaseChatModel], Any]:
    """Return what makes an agent of a model."""
    return lambda model: create_agent(model, [*tools], middleware=[middleware], **how)


def call(tool: str, **arguments: object) -> list[ModelCall]:
    return [ModelCall(name=tool, arguments=arguments, id=tool)]


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


@pytest.fixture
def middleware(bank: Bank) -> CoatcheckMiddleware:
    return CoatcheckMiddleware(bank, limits=LIMITS)


def put(middleware: CoatcheckMiddleware, value: object, name: str | None = None) -> str:
    """Return the pointer of what a host puts into the thread."""
    return portal().run(middleware.bank_for("one").put(value, name=name)).pointer


def banked(middleware: CoatcheckMiddleware, message: ToolMessage) -> object:
    """Return what stands behind the pointer that a message shows."""
    return portal().run(middleware.bank_for("one").get(pointer_in(message)))


def pointer_in(message: ToolMessage) -> str:
    content: Any = message.content
    wire: dict[str, str] = json.loads(content if isinstance(content, str) else content[0]["text"])
    return wire["pointer"]


def test_message_of_a_command_is_offloaded_and_its_other_updates_stay(
    middleware: CoatcheckMiddleware,
) -> None:
    class State(AgentState[Any]):
        seen: str

    @tool
    def hand_over(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over."""
        said = ToolMessage("x" * 2_000, tool_call_id=tool_call_id)
        aside = HumanMessage("z" * 2_000)
        return Command(update={"messages": [said, aside], "seen": "y" * 2_000})

    agent_of = agent_with(middleware, hand_over, state_schema=State)
    model = Scripted(script=ScriptedModel([call("hand_over"), "done"]))
    state = agent_of(model).invoke({"messages": [("user", PROMPT)]}, THREAD)

    *_, message, aside, _ = state["messages"]
    assert banked(middleware, message) == "x" * 2_000
    assert aside.content == "z" * 2_000
    assert state["seen"] == "y" * 2_000


def test_command_without_messages_and_one_with_a_small_one_pass(
    middleware: CoatcheckMiddleware,
) -> None:
    @tool
    def small(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Say little."""
        return Command(update={"messages": [ToolMessage("little", tool_call_id=tool_call_id)]})

    ran = ask(agent_with(middleware, small), [call("small"), "done"])

    assert ran.results["small"].content == "little"


def test_several_messages_of_one_tool_are_each_shown(middleware: CoatcheckMiddleware) -> None:
    @tool
    def several(tool_call_id: Annotated[str, InjectedToolCallId]) -> list[Any]:
        """Say several things."""
        said = ToolMessage("x" * 2_000, tool_call_id=tool_call_id)
        return [Command(update={"messages": [said]}), Command(update={})]

    ran = ask(agent_with(middleware, several), [call("several"), "done"])

    assert banked(middleware, ran.results["several"]) == "x" * 2_000


def test_artifact_of_a_message_stays_and_is_not_what_is_banked(
    middleware: CoatcheckMiddleware,
) -> None:
    documents = [{"secret": number} for number in range(1_000)]

    @tool(response_format="content_and_artifact")
    def look_up() -> tuple[str, list[dict[str, int]]]:
        """Look up."""
        return "found " * 1_000, documents

    ran = ask(agent_with(middleware, look_up), [call("look_up"), "done"])

    assert banked(middleware, ran.results["look_up"]) == "found " * 1_000
    assert ran.results["look_up"].artifact is documents


def test_list_of_texts_is_banked_as_the_list(middleware: CoatcheckMiddleware) -> None:
    @tool
    def names() -> list[str]:
        """List names."""
        return [f"name {number}" for number in range(500)]

    @tool
    def count(items: list[str]) -> int:
        """Count."""
        return len(items)

    script: list[Turn] = [
        call("names"),
        lambda seen: call("count", items=json.loads(seen["names"])["pointer"]),
        "done",
    ]
    ran = ask(agent_with(middleware, names, count), script)

    assert banked(middleware, ran.results["names"]) == [f"name {n}" for n in range(500)]
    assert ran.results["count"].content == "500"


def test_small_texts_that_are_large_together_are_one_list(middleware: CoatcheckMiddleware) -> None:
    rows = [{"id": number, "name": "n" * 50} for number in range(50)]

    @tool
    def listing() -> list[dict[str, str]]:
        """List rows as MCP servers do, each as a block."""
        return [{"type": "text", "text": json.dumps(row)} for row in rows]

    @tool
    def words() -> list[dict[str, str]]:
        """List words."""
        return [
            {"type": "text", "text": f"{word:{word}>40}"} for word in "abcdefghijklmnopqrstuvwxyz"
        ]

    ran = ask(agent_with(middleware, listing, words), [call("listing"), call("words"), "done"])

    assert banked(middleware, ran.results["listing"]) == rows
    assert banked(middleware, ran.results["words"]) == [letter * 40 for letter in ascii_lowercase]


def test_large_text_is_offloaded_alone_and_the_small_one_beside_it_stays(
    middleware: CoatcheckMiddleware,
) -> None:
    @tool
    def report() -> list[dict[str, str]]:
        """Report."""
        return [{"type": "text", "text": "x" * 2_000}, {"type": "text", "text": "a summary"}]

    ran = ask(agent_with(middleware, report), [call("report"), "done"])

    large, small = ran.results["report"].content_blocks
    assert banked(middleware, ran.results["report"]) == "x" * 2_000
    assert (set(large), small) == ({"type", "text"}, {"type": "text", "text": "a summary"})


def test_message_under_the_limit_is_the_one_that_langchain_made(
    middleware: CoatcheckMiddleware,
) -> None:
    made: list[ToolMessage] = []

    @tool
    def short() -> Any:
        """Say little."""
        message = ToolMessage([{"type": "text", "text": "ab"}], tool_call_id="short", name="short")
        made.append(message)
        return message

    ran = ask(agent_with(middleware, short), [call("short"), "done"])

    assert ran.results["short"] is made[0]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"id": number} for number in range(200)], indent=1),
        "[info] started\n" * 200,
        '{"id": 1, "id": 2, "text": "' + "x" * 2_000 + '"}',
        "[" * 200_000,
    ],
    ids=["indented", "log", "double key", "deep"],
)
def test_text_that_langchain_did_not_write_is_banked_byte_for_byte(
    middleware: CoatcheckMiddleware, text: str
) -> None:
    @tool
    def fetch() -> str:
        """Fetch."""
        return text

    ran = ask(agent_with(middleware, fetch), [call("fetch"), "done"])

    assert banked(middleware, ran.results["fetch"]) == text


class Point(BaseModel):
    x: int


DAY = datetime(2026, 1, 1, tzinfo=UTC)
LOST: dict[str, tuple[Callable[[], object], object]] = {
    "dates": (
        lambda: [{"at": DAY, "price": Decimal("1.5")}] * 100,
        [{"at": "2026-01-01T00:00:00+00:00", "price": "1.5"}] * 100,
    ),
    "models": (lambda: [Point(x=1)] * 200, [{"x": 1}] * 200),
    "generator": (lambda: ({"x": number} for number in range(200)), [{"x": n} for n in range(200)]),
    "set": (lambda: {str(number) for number in range(500)}, sorted(map(str, range(500)))),
}
"""Values that LangChain writes as Python does, and what is banked of each."""


@pytest.mark.parametrize("kind", LOST)
@pytest.mark.parametrize("is_async", [True, False])
def test_value_that_langchain_would_write_as_python_does_is_banked_as_the_value(
    middleware: CoatcheckMiddleware, kind: str, *, is_async: bool
) -> None:
    make, expected = LOST[kind]

    async def later(runtime: ToolRuntime) -> Any:
        """Return what is made."""
        return make() if runtime.tool_call_id else None

    def now(runtime: ToolRuntime) -> Any:
        """Return what is made."""
        return make() if runtime.tool_call_id else None

    model = Scripted(script=ScriptedModel([call("give"), "done"]))
    agent = agent_with(middleware, tool("give")(later if is_async else now))(model)
    asked: Any = {"messages": [("user", PROMPT)]}
    done = portal().run(agent.ainvoke(asked, THREAD)) if is_async else agent.invoke(asked, THREAD)
    (message,) = (each for each in done["messages"] if isinstance(each, ToolMessage))

    found: Any = banked(middleware, message)
    assert (sorted(found) if kind == "set" else found) == expected


def test_small_value_that_langchain_writes_as_python_does_is_left_as_it_wrote_it(
    middleware: CoatcheckMiddleware,
) -> None:
    @tool
    def give() -> list[Point]:
        """Give."""
        return [Point(x=1)]

    @tool
    def count() -> Iterator[int]:
        """Count."""
        yield from range(3)

    ran = ask(agent_with(middleware, give, count), [call("give"), call("count"), "done"])

    assert ran.results["give"].content == "[Point(x=1)]"
    assert ran.results["count"].content == "[0,1,2]"  # else nobody would see it


def test_large_value_without_an_encoding_is_banked_as_the_text_of_it(
    middleware: CoatcheckMiddleware,
) -> None:
    value = [object()] * 100

    @tool
    def give() -> Any:
        """Give."""
        return value

    ran = ask(agent_with(middleware, give), [call("give"), "done"])

    assert banked(middleware, ran.results["give"]) == str(value)


def test_content_beside_an_artifact_is_banked_as_the_value(
    middleware: CoatcheckMiddleware,
) -> None:
    @tool(response_format="content_and_artifact")
    def look_up() -> tuple[list[Point], str]:
        """Look up."""
        return [Point(x=1)] * 200, "aside"

    ran = ask(agent_with(middleware, look_up), [call("look_up"), "done"])

    assert banked(middleware, ran.results["look_up"]) == [{"x": 1}] * 200
    assert ran.results["look_up"].artifact == "aside"


def test_result_that_another_middleware_changed_is_what_is_banked(
    middleware: CoatcheckMiddleware,
) -> None:
    class Redact(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            message = handler(request)
            return message.model_copy(update={"content": message.content.replace("ann", "***")})

    @tool
    def give() -> Any:
        """Give."""
        return [{"at": DAY, "name": "ann"}] * 200

    ran = ask(
        lambda model: create_agent(model, [give], middleware=[middleware, Redact()]),
        [call("give"), "done"],
    )

    found = banked(middleware, ran.results["give"])
    assert isinstance(found, str)
    assert "***" in found
    assert "ann" not in found


def test_mirrored_function_that_takes_an_array_finds_it_by_itself(
    bank: Bank, middleware: CoatcheckMiddleware
) -> None:
    def total(numbers: NDArray[np.int64]) -> int:
        """Return the sum of numbers."""
        return int(numbers.sum())

    pointer = put(middleware, np.arange(1_000))
    mirrored = mirror(total, middleware.bank_for("one"))
    ran = ask(agent_with(middleware, tool(mirrored)), [call("total", numbers=pointer), "done"])

    assert ran.results["total"].content == "499500"


def test_what_langchain_injects_is_left_alone(middleware: CoatcheckMiddleware) -> None:
    pointer, taken = put(middleware, [1, 2]), []

    @tool
    def inject(
        items: list[int],
        state: Annotated[dict[str, Any], InjectedState],
        store: Annotated[Any, InjectedStore()],
        runtime: ToolRuntime[Any, Any],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Inject."""
        taken.append((items, state, store, runtime.tool_call_id, tool_call_id))
        return "taken"

    store = InMemoryStore()
    agent_of = agent_with(middleware, inject, store=store)
    ran = ask(agent_of, [call("inject", items=pointer, tool_call_id=pointer), "done"])

    ((items, state, given, runtime_id, call_id),) = taken
    assert (items, given, runtime_id, call_id) == ([1, 2], store, "inject", "inject")
    # The state is the conversation, in which the pointer stands.
    assert state["messages"][1].tool_calls[0]["args"]["items"] == pointer
    (shown,) = [each for each in ran.model.bound if each["function"]["name"] == "inject"]
    assert list(shown["function"]["parameters"]["properties"]) == ["items"]


def test_error_of_langchain_names_the_pointer_and_not_what_it_stands_for(
    middleware: CoatcheckMiddleware,
) -> None:
    pointer = put(middleware, ["seven"])

    @tool
    def add(numbers: list[int]) -> int:
        """Add."""
        return sum(numbers)

    ran = ask(agent_with(middleware, add), [call("add", numbers=pointer), "done"])

    assert ran.results["add"].status == "error"
    assert pointer in ran.results["add"].text
    assert "seven" not in ran.results["add"].text


def test_exception_of_a_tool_ends_the_run_as_ever(middleware: CoatcheckMiddleware) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        ask(agent_with(middleware, fail), [call("fail"), "done"])


def test_failure_has_the_status_of_an_error(middleware: CoatcheckMiddleware) -> None:
    @tool
    def count(items: list[int]) -> int:
        """Count."""
        return len(items)

    unknown = "art:00000000-0000-4000-8000-000000000005"
    script: list[Turn] = [
        call("count", items=unknown),
        call("retrieve_context", artifactId="none"),
        "done",
    ]
    ran = ask(agent_with(middleware, count), script)

    assert {each.status for each in ran.results.values()} == {"error"}
    assert all(json.loads(each.text)["error"] == "unknown-pointer" for each in ran.results.values())


@pytest.mark.parametrize("name", ["self", "config", "run_manager", "arguments", "tool_input"])
@pytest.mark.parametrize("is_async", [False, True])
def test_no_name_of_an_argument_ends_a_run_or_says_which_thread_is_read(
    middleware: CoatcheckMiddleware, name: str, is_async: bool
) -> None:
    other = portal().run(middleware.bank_for("two").put("another's")).pointer
    arguments: dict[str, object] = {name: {"configurable": {"thread_id": "two"}}}
    called = ModelCall(
        name="retrieve_context", arguments={"artifactId": other, **arguments}, id="c1"
    )
    model = Scripted(script=ScriptedModel([[called], "done"]))
    agent, asked = agent_with(middleware)(model), {"messages": [("user", PROMPT)]}
    if is_async:
        asyncio.run(agent.ainvoke(asked, THREAD))
    else:
        agent.invoke(asked, THREAD)

    told = json.loads(model.script.results["c1"])
    assert told["message"] == f"there is no argument '{name}'"


def test_answer_that_goes_to_the_user_directly_is_whole(middleware: CoatcheckMiddleware) -> None:
    @tool(return_direct=True)
    def answer(items: list[int]) -> str:
        """Answer."""
        return "x" * 2_000 + str(items)

    ran = ask(agent_with(middleware, answer), [call("answer", items=put(middleware, [1]))])

    assert ran.messages[-1].content == "x" * 2_000 + "[1]"


def test_argument_that_is_verbatim_gets_the_pointer(bank: Bank) -> None:
    middleware = CoatcheckMiddleware(bank, verbatim={"read": ["path"]})
    pointer = put(middleware, "text")

    @tool
    def read(path: str, encoding: str) -> str:
        """Read."""
        return f"{path} {encoding}"

    script: list[Turn] = [call("read", path=pointer, encoding=pointer), "done"]
    ran = ask(agent_with(middleware, read), script)

    assert ran.results["read"].content == f"{pointer} text"


def test_tools_of_a_provider_and_facts_of_a_tool_pass_to_the_model(
    middleware: CoatcheckMiddleware,
) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}

    @tool(extras={"defer_loading": True})
    def total(items: list[int]) -> int:
        """Total."""
        return sum(items)

    @tool
    def short(text: str) -> str:
        """Short."""
        return text

    request = ModelRequest(
        model=Scripted(script=None), messages=[], tools=[search, total, short, *middleware.tools]
    )
    asked: list[Any] = []

    def handler(request: ModelRequest[Any]) -> ModelResponse[Any]:
        asked.append(request)
        return ModelResponse([])

    middleware.wrap_model_call(request, handler)

    (made,) = asked
    assert made.tools[0] is search
    assert made.tools[2:] == [short, *middleware.tools]
    assert made.tools[1].extras == {"defer_loading": True}
    assert made.tools[1].args_schema != total.args_schema
    assert request.tools[1] is total


def test_system_message_of_blocks_keeps_them_and_gets_one_more(
    middleware: CoatcheckMiddleware,
) -> None:
    block = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    system = SystemMessage([block])
    agent_of = agent_with(middleware, system_prompt=system)
    ran = ask(agent_of, ["done"])

    head = ran.model.script.requests[0]
    assert head.startswith(str([block, {"type": "text", "text": SYSTEM_TEXT}]))
    assert system.content == [block]


def test_run_without_a_system_prompt_has_our_line_alone(middleware: CoatcheckMiddleware) -> None:
    ran = ask(agent_with(middleware), ["done"])

    assert ran.model.script.requests[0].splitlines()[0] == SYSTEM_TEXT


def test_tool_that_was_interrupted_takes_its_pointer_again(middleware: CoatcheckMiddleware) -> None:
    pointer = put(middleware, [1, 2, 3])

    @tool
    def approve(items: list[int]) -> str:
        """Approve."""
        return f"{interrupt('May I?')}: {len(items)}"

    model = Scripted(script=ScriptedModel([call("approve", items=pointer), "done"]))
    agent = agent_with(middleware, approve, checkpointer=InMemorySaver())(model)
    agent.invoke({"messages": [("user", PROMPT)]}, THREAD)
    messages = agent.invoke(Command(resume="yes"), THREAD)["messages"]

    assert messages[-2].content == "yes: 3"


def test_tool_node_of_a_graph_of_ones_own_has_pointers_too(middleware: CoatcheckMiddleware) -> None:
    @tool
    def rows(items: list[int]) -> list[int]:
        """Return rows."""
        return [*items, *range(1_000)]

    node = ToolNode([rows], wrap_tool_call=middleware.wrap_tool_call)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    asked = {"name": "rows", "args": {"items": put(middleware, [7])}, "id": "c1"}
    messages = graph.invoke({"messages": [AIMessage("", tool_calls=[asked])]}, THREAD)["messages"]

    assert banked(middleware, messages[-1]) == [7, *range(1_000)]


async def test_tool_node_of_a_graph_of_ones_own_has_no_tool_with_the_name_of_ours(
    middleware: CoatcheckMiddleware,
) -> None:
    @tool
    def retrieve_context(query: str) -> str:
        """Search."""
        return query

    asked = {"name": "retrieve_context", "args": {"query": "a"}, "id": "c1"}
    told: Any = {"messages": [AIMessage("", tool_calls=[asked])]}
    wraps: Any = {
        "wrap_tool_call": middleware.wrap_tool_call,
        "awrap_tool_call": middleware.awrap_tool_call,
    }

    def graph_of(node: ToolNode) -> Any:
        return StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()

    theirs = graph_of(ToolNode([retrieve_context], **wraps))
    with pytest.raises(ValueError, match="call it another name"):
        theirs.invoke(told, THREAD)
    with pytest.raises(ValueError, match="call it another name"):
        await theirs.ainvoke(told, THREAD)
    ours = graph_of(ToolNode([*middleware.tools], **wraps))
    assert "invalid-argument" in ours.invoke(told, THREAD)["messages"][-1].text


def test_thread_goes_on_in_another_process_with_its_pointers(tmp_path: Path) -> None:
    @tool
    def rows(n: int) -> list[int]:
        """Return rows."""
        return [*range(n)]

    @tool
    def total(items: list[int]) -> int:
        """Add."""
        return sum(items)

    def ask_anew(script: Sequence[Turn]) -> Ran:
        with (
            BlockingBank(f"file:{tmp_path / 'bank'}") as bank,
            SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver,
        ):
            middleware = CoatcheckMiddleware(bank, limits=LIMITS)
            return ask(agent_with(middleware, rows, total, checkpointer=saver), script)

    first = ask_anew([call("rows", n=1_000), "done"])
    second = ask_anew([call("total", items=pointer_in(first.results["rows"])), "done"])

    assert second.results["total"].content == "499500"
    assert second.results["rows"].content == first.results["rows"].content


def talk(store: MemoryStore, saver: Any, turns: Iterable[int], **how: Any) -> list[Ran]:
    """Run turns of one thread, each with a result of 3,000 characters, by new objects each."""

    @tool
    def log(n: int) -> str:
        """Return a log."""
        return str(n) * 3_000

    def turn(n: int) -> Ran:
        middleware = CoatcheckMiddleware(Bank(store), **how)
        script: list[Turn] = [[ModelCall(name="log", arguments={"n": n}, id=f"c{n}")], "ok"]
        return ask(agent_with(middleware, log, checkpointer=saver), script)

    return [turn(n) for n in turns]


def test_old_results_are_sent_as_pointers_and_kept_as_they_were() -> None:
    store = MemoryStore()
    last = talk(store, InMemorySaver(), range(6), history_bytes=5_000, keep_turns=4)[-1]

    sent = last.model.script.results
    assert [name for name, text in sent.items() if len(text) < 3_000] == ["c0", "c1", "c2", "c3"]
    assert all(len(each.text) == 3_000 for each in last.results.values())
    bank = CoatcheckMiddleware(Bank(store)).bank_for("one")
    found = portal().run(bank.find("log_c3"))
    assert found is not None
    assert json.loads(sent["c3"])["pointer"] == found.pointer
    assert portal().run(bank.get(found.pointer)) == "3" * 3_000


def test_requests_of_a_conversation_begin_alike_but_where_results_became_pointers() -> None:
    runs = talk(MemoryStore(), InMemorySaver(), range(10), history_bytes=5_000, keep_turns=4)

    requests = [request for ran in runs for request in ran.model.script.requests]
    breaks = [at for at, (one, two) in enumerate(pairwise(requests)) if not two.startswith(one)]
    # Of ten results eight have grown old, and any two of them are more than 5,000 bytes.
    assert len(breaks) == 4
    assert max(map(len, requests)) < 20_000


def test_old_results_stay_where_nothing_was_asked_for_and_within_the_budget() -> None:
    for how in ({}, {"history_bytes": 30_000}):
        last = talk(MemoryStore(), InMemorySaver(), range(6), **how)[-1]

        assert all(len(text) == 3_000 for text in last.model.script.results.values())


async def test_history_of_async_agents_and_all_forms_of_content_is_served(bank: Bank) -> None:
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    text = {"type": "text", "text": "x" * 3_000}
    contents: list[Any] = [
        json.dumps([{"id": 1}] * 500),
        ["y" * 3_000],
        [text],
        [text, text],
        [text, image],
        "short",
    ]
    history: list[Any] = [("user", PROMPT)]
    for at, content in enumerate(contents):
        asked: Any = {"name": "any", "args": {}, "id": f"c{at}"}
        history += [AIMessage("", tool_calls=[asked]), ToolMessage(content, tool_call_id=f"c{at}")]
    middleware = CoatcheckMiddleware(bank, history_bytes=0, keep_turns=0)
    model = Scripted(script=ScriptedModel(["done"]))

    await agent_with(middleware)(model).ainvoke({"messages": history}, THREAD)

    sent = model.script.results
    own = middleware.bank_for("one")
    values = [await own.get(json.loads(sent[f"c{at}"])["pointer"]) for at in range(4)]
    assert values == [[{"id": 1}] * 500, ["y" * 3_000], "x" * 3_000, ["x" * 3_000] * 2]
    assert json.loads(sent["c4"]) == [text, image]
    assert sent["c5"] == "short"
