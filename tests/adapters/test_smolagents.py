"""Mirrored functions as the tools of a smolagents agent."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import anyio
import pytest
from smolagents import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    ToolCallingAgent,
    tool,  # pyright: ignore[reportUnknownVariableType]
)
from smolagents.models import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    Model,
    get_tool_json_schema,  # pyright: ignore[reportUnknownVariableType]
)
from smolagents.monitoring import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    LogLevel,
)

from coatcheck import Bank, Limits, mirror
from coatcheck.testing import (
    INSTRUCTIONS,
    PROMPT,
    How,
    ModelCall,
    ScriptedModel,
    Seen,
    Turn,
)
from coatcheck.testing._adapter_tools import Tools, made_rows
from coatcheck.tools import as_function, retrieval_tools

from .mirrored import MirroredSuite

NO_PHOTO = "a tool returns a text or an image, never both"


class Scripted(Model):  # type: ignore[misc]
    """A model of smolagents whose replies are written down."""

    def __init__(self, script: ScriptedModel) -> None:
        super().__init__(model_id="scripted")  # pyright: ignore[reportUnknownMemberType]
        self.script = script
        self.asked: list[str] = []

    def generate(
        self, messages: list[ChatMessage], *args: Any, tools_to_call_from: Any = (), **kwargs: Any
    ) -> ChatMessage:
        told, *rest = map(written, messages)
        schema_of = cast("Any", get_tool_json_schema)
        schemas = json.dumps([schema_of(each) for each in tools_to_call_from])
        # What the calls of one turn return is one text.
        seen = [written(each) for each in messages if each.role == MessageRole.TOOL_RESPONSE]
        results = dict(zip(self.asked, seen, strict=False))
        said = self.script.reply("\n".join([told, schemas, *rest]), results)
        calls = (
            [ModelCall(name="final_answer", arguments={"answer": said}, id="last")]
            if isinstance(said, str)
            else said
        )
        self.asked.append(",".join(call.id for call in calls))
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content="",
            tool_calls=[
                ChatMessageToolCall(
                    id=call.id,
                    type="function",
                    function=ChatMessageToolCallFunction(
                        name=call.name, arguments=dict(call.arguments)
                    ),
                )
                for call in calls
            ],
        )

    def generate_stream(
        self, messages: list[ChatMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatMessageStreamDelta]:
        said = self.generate(messages, *args, **kwargs)
        yield ChatMessageStreamDelta(
            content="",
            tool_calls=[
                ChatMessageToolCallStreamDelta(
                    index=index,
                    id=call.id,
                    type="function",
                    function=ChatMessageToolCallFunction(
                        name=call.function.name, arguments=json.dumps(call.function.arguments)
                    ),
                )
                for index, call in enumerate(said.tool_calls or ())
            ],
        )


def written(message: ChatMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(str(part.get("text", "")) for part in message.content or ())


class TestSmolagents(MirroredSuite):
    tells_calls_apart = False
    cannot: ClassVar[Mapping[str, str]] = {
        **MirroredSuite.cannot,
        "test_parallel_calls_are_each_served_on_their_own": (
            "an error of one call takes the place of what the others of its turn returned"
        ),
        "test_schema_of_a_structured_parameter_lets_a_pointer_in": (
            "smolagents shows a text beside the array, without the pattern of a pointer"
        ),
        "test_async_tools_are_offloaded_and_take_pointers": "smolagents takes no async functions",
        "test_injected_parameter_is_left_alone": "smolagents injects nothing",
        "test_image_is_left_alone_and_the_text_beside_it_offloaded": NO_PHOTO,
        "test_image_and_a_short_text_are_left_alone": NO_PHOTO,
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
        own = await self.bank_for(bank, session)
        model = Scripted(ScriptedModel(script))
        agent: Any = ToolCallingAgent(
            model=model,
            instructions=INSTRUCTIONS,
            tools=[
                *(tool(mirror(each, own, limits=limits)) for each in tools),
                *(tool(as_function(each, blocking=True)) for each in retrieval_tools(own)),
            ],
            stream_outputs=how == "stream",
            verbosity_level=LogLevel.OFF,
        )
        if how == "stream":
            steps = await anyio.to_thread.run_sync(lambda: list(agent.run(PROMPT, stream=True)))
            done = steps[-1].output
        else:
            done = await anyio.to_thread.run_sync(agent.run, PROMPT)
        return Seen(
            requests=model.script.requests,
            results=model.script.results,
            history=json.dumps(agent.memory.get_full_steps(), default=str, ensure_ascii=False),
            output=str(done),
        )

    def photo(self, text: str, image: bytes) -> object:
        pytest.fail(NO_PHOTO)

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        pytest.fail("smolagents injects nothing")

    async def test_calls_of_one_turn_each_see_their_own_pointer(
        self, bank: Bank, tools: Tools
    ) -> None:
        pointers = [(await bank.put(made_rows(n))).pointer for n in (100, 60)]
        calls = [
            ModelCall(name="total", arguments={"items": pointer}, id=f"c{number}")
            for number, pointer in enumerate(pointers)
        ]
        seen = await self.run(bank, [tools.total], [calls, "done"])

        assert "4950" in seen.results["c0,c1"]
        assert "1770" in seen.results["c0,c1"]

    async def test_schema_takes_a_text_where_an_array_is_asked_for(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(bank, [tools.total], ["done"])

        assert '"items": {"type": ["array", "string"]' in seen.requests[0]
