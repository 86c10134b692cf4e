"""Mirrored functions as the tools of a CrewAI agent."""

import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import anyio
import pytest
from pydantic import Field

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

with warnings.catch_warnings():
    # One of its packages does not let its parts be set as attributes.
    warnings.simplefilter("ignore", ImportWarning)
    from crewai import Agent
    from crewai.llms.base_llm import BaseLLM
    from crewai.tools import tool

# CrewAI reads every field of its own models, those that it deprecates too.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NO_CODE = "the model reads the message of the error that mirror raises, without a code"
NO_CALL_ID = "a mirrored function does not learn the id of its call"
NO_ERRORS = "mirror offloads what a function returns, not what it raises"
NO_SYSTEM_TEXT = "what stands in the system text is for the host to say"
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


class TestCrewAI(AdapterSuite):
    cannot: ClassVar[dict[str, str]] = {}

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

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return bank if session is None else bank.scoped(f"{bank.scope}/{session}")

    def photo(self, text: str, image: bytes) -> object:
        pytest.fail(NO_PHOTO)

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        pytest.fail("CrewAI injects nothing")

    async def test_model_reads_of_a_pointer_that_stands_for_nothing_and_goes_on(
        self, bank: Bank, tools: Tools
    ) -> None:
        total = ModelCall(name="total", arguments={"items": UNKNOWN}, id="c1")
        note = ModelCall(name="note", arguments={"text": "x"}, id="c2")
        seen = await self.run(bank, [tools.total, tools.note], [[total], [note], "done"])

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
