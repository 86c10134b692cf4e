"""Mirrored functions as the tools of an agno agent."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
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
    How,
    ScriptedModel,
    Seen,
    Turn,
)
from coatcheck.testing._adapter_tools import Tools
from coatcheck.tools import as_function, retrieval_tools

from .mirrored import MirroredSuite


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


class TestAgno(MirroredSuite):
    cannot: ClassVar[Mapping[str, str]] = {
        **MirroredSuite.cannot,
        "test_tool_with_the_name_of_ours_is_refused": (
            "mirror sees one function, not those beside it"
        ),
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
        agent: Any = Agent(
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

    async def test_schema_takes_a_text_where_an_array_is_asked_for(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(bank, [tools.total], ["done"])

        assert '"items": {"anyOf": [{"type": "array"' in seen.requests[0]
        assert '{"type": "string"}], "description": "Rows with a price."}' in seen.requests[0]
