"""Mirrored functions as the tools of an agno agent."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import anyio
from agno.agent import Agent
from agno.media import Image
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.run import RunContext
from agno.tools.function import ToolResult

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
from coatcheck.testing._adapter_tools import Tools
from coatcheck.tools import as_function, retrieval_tools

NO_CODE = "the model reads the message of the error that mirror raises, without a code"
NO_CALL_ID = "a mirrored function does not learn the id of its call"
NO_ERRORS = "mirror offloads what a function returns, not what it raises"
NO_SYSTEM_TEXT = "what stands in the system text is for the host to say"


@dataclass
class Scripted(Model):
    """A model of agno whose replies are written down."""

    id: str = "scripted"
    script: ScriptedModel = field(default_factory=lambda: ScriptedModel([]))
    images: list[bytes] = field(default_factory=list[bytes])

    def invoke(self, messages: list[Message], **kwargs: Any) -> ModelResponse:
        told = [each for each in messages if each.role == "system"]
        rest = [each for each in messages if each.role != "system"]
        schemas = json.dumps(kwargs.get("tools"), ensure_ascii=False)
        request = "\n".join([*map(written, told), schemas, *map(written, rest)])
        self.images += [each.content for one in rest for each in one.images or () if each.content]
        results = {
            str(each.tool_call_id): str(each.content) for each in rest if each.role == "tool"
        }
        said = self.script.reply(request, results)
        if isinstance(said, str):
            return ModelResponse(role="assistant", content=said)
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in said
        ]
        return ModelResponse(role="assistant", tool_calls=calls)

    async def ainvoke(self, messages: list[Message], **kwargs: Any) -> ModelResponse:
        return self.invoke(messages, **kwargs)

    def invoke_stream(self, messages: list[Message], **kwargs: Any) -> Iterator[ModelResponse]:
        yield self.invoke(messages, **kwargs)

    async def ainvoke_stream(
        self, messages: list[Message], **kwargs: Any
    ) -> AsyncIterator[ModelResponse]:
        yield self.invoke(messages, **kwargs)

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return ModelResponse()

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return ModelResponse()


def written(message: Message) -> str:
    return f"{message.content or ''}{json.dumps(message.tool_calls) if message.tool_calls else ''}"


class TestAgno(AdapterSuite):
    cannot: ClassVar[dict[str, str]] = {
        "test_unknown_pointer_is_an_error_that_the_model_reads": NO_CODE,
        "test_unknown_pointers_one_after_another_do_not_end_the_run": NO_CODE,
        "test_parallel_calls_are_each_served_on_their_own": NO_CODE,
        "test_store_that_is_out_costs_no_result_and_no_run": NO_CODE,
        "test_sessions_cannot_use_or_read_each_others_pointers": NO_CODE,
        "test_envelope_that_was_dropped_is_found_by_the_name_of_its_call": NO_CALL_ID,
        "test_large_error_is_offloaded_and_still_says_that_it_is_one": NO_ERRORS,
        "test_system_text_and_schemas_are_there_once_and_the_same_in_each_request": NO_SYSTEM_TEXT,
        "test_image_is_left_alone_and_the_text_beside_it_offloaded": (
            "a large ToolResult is banked as one value, its image with its text"
        ),
        "test_schema_of_a_structured_parameter_lets_a_pointer_in": (
            "agno shows a text beside the array, without the pattern of a pointer"
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
        own = await self.bank_for(bank, session)
        model = Scripted(script=ScriptedModel(script))
        agent = Agent(
            model=model,
            instructions=INSTRUCTIONS,
            tools=[
                *(mirror(tool, own, limits=limits) for tool in tools),
                *(as_function(tool, blocking=how == "sync") for tool in retrieval_tools(own)),
            ],
            telemetry=False,
        )
        if how == "sync":
            done = await anyio.to_thread.run_sync(lambda: agent.run(PROMPT))
        elif how == "stream":
            events = [
                event async for event in agent.arun(PROMPT, stream=True, yield_run_output=True)
            ]
            done = events[-1]
        else:
            done = await agent.arun(PROMPT)
        return Seen(
            requests=model.script.requests,
            results=model.script.results,
            history="\n".join(map(written, done.messages or [])),
            output=str(done.content),
            images=model.images,
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return bank if session is None else bank.scoped(f"{bank.scope}/{session}")

    def photo(self, text: str, image: bytes) -> object:
        def photo() -> ToolResult:
            """Take a photo."""
            return ToolResult(content=text, images=[Image(content=image)])

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        def inject(run_context: RunContext, items: list[dict[str, int]]) -> str:
            """Take.

            Args:
                items: Rows.
            """
            return take(run_context, items)

        return inject

    async def test_model_reads_of_a_pointer_that_stands_for_nothing_and_goes_on(
        self, bank: Bank, tools: Tools
    ) -> None:
        calls = [
            ModelCall(name="total", arguments={"items": UNKNOWN}, id="c1"),
            ModelCall(name="note", arguments={"text": "x"}, id="c2"),
        ]
        seen = await self.run(bank, [tools.total, tools.note], [calls, "done"])

        assert f"No artifact behind '{UNKNOWN}'" in seen.results["c1"]
        assert seen.results["c2"] == "noted: x"
        assert tools.given("total") == []
        assert seen.output == "done"

    async def test_sessions_have_scopes_of_their_own(self, bank: Bank, tools: Tools) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        one = await self.run(bank, [tools.rows], [[rows], "done"], session="one", limits=LIMITS)
        total = ModelCall(name="total", arguments={"items": pointer_in(one.results["c1"])}, id="c2")
        two = await self.run(bank, [tools.total], [[total], "done"], session="two")

        assert "No artifact behind" in two.results["c2"]
        assert tools.given("total") == []

    async def test_schema_takes_a_text_where_an_array_is_asked_for(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(bank, [tools.total], ["done"])

        assert '"items": {"anyOf": [{"type": "array"' in seen.requests[0]
        assert '{"type": "string"}], "description": "Rows with a price."}' in seen.requests[0]
