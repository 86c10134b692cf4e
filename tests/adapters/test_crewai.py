"""Mirrored functions as the tools of a CrewAI agent."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import anyio
import pytest
from pydantic import Field

from coatcheck import Bank, Limits, mirror
from coatcheck.testing import (
    INSTRUCTIONS,
    PROMPT,
    How,
    ScriptedModel,
    Seen,
    Turn,
)
from coatcheck.tools import as_function, retrieval_tools

from .mirrored import MirroredSuite

with warnings.catch_warnings():
    # One of its packages does not let its parts be set as attributes.
    warnings.simplefilter("ignore", ImportWarning)
    from crewai import Agent
    from crewai.llms.base_llm import BaseLLM
    from crewai.tools import tool

pytestmark = [
    # CrewAI reads every field of its own models, those that it deprecates too.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # It writes arguments down as their declared type, which a pointer is not.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
]

NO_PHOTO = "a result is shown as text, an image too"


class Scripted(BaseLLM):
    """A model of CrewAI whose replies are written down."""

    script: ScriptedModel
    kept: list[Any] = Field(default_factory=list)

    def __init__(self, script: ScriptedModel) -> None:
        super().__init__(model="scripted", script=script)

    def call(self, messages: Any, tools: Any = None, *args: Any, **kwargs: Any) -> Any:
        told = [written(each) for each in messages if each["role"] == "system"]
        rest = [each for each in messages if each["role"] != "system"]
        schemas = json.dumps(tools, ensure_ascii=False)
        results = {
            each["tool_call_id"]: str(each["content"]) for each in rest if each["role"] == "tool"
        }
        self.kept = list(messages)
        said = self.script.reply("\n".join([*told, schemas, *map(written, rest)]), results)
        if isinstance(said, str):
            return said
        return [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in said
        ]

    def supports_function_calling(self) -> bool:
        return True


def written(message: Any) -> str:
    calls = message.get("tool_calls")
    return f"{message.get('content') or ''}{json.dumps(calls, default=str) if calls else ''}"


class TestCrewAI(MirroredSuite):
    cannot: ClassVar[Mapping[str, str]] = {
        **MirroredSuite.cannot,
        "test_tool_with_the_name_of_ours_is_refused": (
            "mirror sees one function, not those beside it"
        ),
        "test_injected_parameter_is_left_alone": "CrewAI injects nothing",
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
        agent = Agent(
            role="clerk",
            goal="answer",
            backstory=INSTRUCTIONS,
            llm=model,
            tools=[
                *(tool(mirror(each, own, limits=limits)) for each in tools),
                *(tool(as_function(each, blocking=True)) for each in retrieval_tools(own)),
            ],
        )
        if how == "async":
            done = await agent.kickoff_async(PROMPT)
        else:
            done = await anyio.to_thread.run_sync(agent.kickoff, PROMPT)
        return Seen(
            requests=model.script.requests,
            results=model.script.results,
            history="\n".join(map(written, model.kept)),
            output=str(done.raw),
        )

    def photo(self, text: str, image: bytes) -> object:
        pytest.fail(NO_PHOTO)

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        pytest.fail("CrewAI injects nothing")
