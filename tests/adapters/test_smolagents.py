"""Mirrored functions as the tools of a smolagents agent."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import anyio
import pytest
from smolagents import ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    Model,
    get_tool_json_schema,
)
from smolagents.monitoring import LogLevel

from coatcheck import Bank, Limits, mirror
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
from coatcheck.testing._adapter_driver import LIMITS
from coatcheck.testing._adapter_pointers import UNKNOWN
from coatcheck.testing._adapter_tools import Tools, made_rows
from coatcheck.tools import as_function, retrieval_tools

NO_CODE = "the model reads the message of the error that mirror raises, without a code"
NO_CALL_ID = "a mirrored function does not learn the id of its call"
NO_ERRORS = "mirror offloads what a function returns, not what it raises"
NO_SYSTEM_TEXT = "what stands in the system text is for the host to say"
NO_PHOTO = "a tool returns a text or an image, never both"


class Scripted(Model):
    """A model of smolagents whose replies are written down."""

    def __init__(self, script: ScriptedModel) -> None:
        super().__init__(model_id="scripted")
        self.script = script
        self.asked: list[str] = []

    def generate(
        self, messages: list[ChatMessage], *args: Any, tools_to_call_from: Any = (), **kwargs: Any
    ) -> ChatMessage:
        told, *rest = map(written, messages)
        schemas = json.dumps(list(map(get_tool_json_schema, tools_to_call_from)))
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


class TestSmolagents(AdapterSuite):
    cannot: ClassVar[dict[str, str]] = {
        "test_unknown_pointer_is_an_error_that_the_model_reads": NO_CODE,
        "test_unknown_pointers_one_after_another_do_not_end_the_run": NO_CODE,
        "test_store_that_is_out_costs_no_result_and_no_run": NO_CODE,
        "test_sessions_cannot_use_or_read_each_others_pointers": NO_CODE,
        "test_parallel_calls_are_each_served_on_their_own": (
            "an error of one call takes the place of what the others of its turn returned"
        ),
        "test_envelope_that_was_dropped_is_found_by_the_name_of_its_call": NO_CALL_ID,
        "test_large_error_is_offloaded_and_still_says_that_it_is_one": NO_ERRORS,
        "test_system_text_and_schemas_are_there_once_and_the_same_in_each_request": NO_SYSTEM_TEXT,
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
        agent = ToolCallingAgent(
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

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return bank if session is None else bank.scoped(f"{bank.scope}/{session}")

    def photo(self, text: str, image: bytes) -> object:
        pytest.fail(NO_PHOTO)

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        pytest.fail("smolagents injects nothing")

    async def test_model_reads_of_a_pointer_that_stands_for_nothing_and_goes_on(
        self, bank: Bank, tools: Tools
    ) -> None:
        total = ModelCall(name="total", arguments={"items": UNKNOWN}, id="c1")
        note = ModelCall(name="note", arguments={"text": "x"}, id="c2")
        seen = await self.run(bank, [tools.total, tools.note], [[total], [note], "done"])

        assert f"No artifact behind '{UNKNOWN}'" in seen.results["c1"]
        assert "noted: x" in seen.results["c2"]
        assert tools.given("total") == []
        assert seen.output == "done"

    async def test_sessions_have_scopes_of_their_own(self, bank: Bank, tools: Tools) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        one = await self.run(bank, [tools.rows], [[rows], "done"], session="one", limits=LIMITS)
        total = ModelCall(name="total", arguments={"items": pointer_in(one.results["c1"])}, id="c2")
        two = await self.run(bank, [tools.total], [[total], "done"], session="two")

        assert "No artifact behind" in two.results["c2"]
        assert tools.given("total") == []

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
