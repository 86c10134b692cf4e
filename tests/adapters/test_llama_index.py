"""Mirrored functions as the tools of a LlamaIndex agent."""

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import anyio
import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from pydantic import PrivateAttr

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

# Workflows of LlamaIndex look at all attributes of an agent, those that pydantic deprecates too.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")

NO_CODE = "the model reads the message of the error that mirror raises, without a code"
NO_CALL_ID = "a mirrored function does not learn the id of its call"
NO_ERRORS = "mirror offloads what a function returns, not what it raises"
NO_SYSTEM_TEXT = "what stands in the system text is for the host to say"


class Scripted(FunctionCallingLLM):
    """A model of LlamaIndex whose replies are written down."""

    _script: ScriptedModel = PrivateAttr()

    def __init__(self, script: ScriptedModel) -> None:
        super().__init__()
        self._script = script

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: Any = None,
        chat_history: list[ChatMessage] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        return {
            "messages": list(chat_history or []),
            "tools": [tool.metadata.to_openai_tool() for tool in tools],
        }

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(
                tool_id=str(block.tool_call_id),
                tool_name=block.tool_name,
                tool_kwargs=dict(block.tool_kwargs),  # type: ignore[arg-type]
            )
            for block in response.message.blocks
            if isinstance(block, ToolCallBlock)
        ]

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        told = [each for each in messages if each.role == "system"]
        rest = [each for each in messages if each.role != "system"]
        schemas = json.dumps(kwargs.get("tools"), ensure_ascii=False)
        request = "\n".join([*map(written, told), schemas, *map(written, rest)])
        results = {
            str(each.additional_kwargs["tool_call_id"]): str(each.content)
            for each in rest
            if each.role == "tool"
        }
        said = self._script.reply(request, results)
        if isinstance(said, str):
            return ChatResponse(message=ChatMessage(role="assistant", content=said), delta=said)
        calls = [
            ToolCallBlock(
                tool_call_id=call.id, tool_name=call.name, tool_kwargs=dict(call.arguments)
            )
            for call in said
        ]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=calls), delta="")

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages, **kwargs)

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        async def replies() -> ChatResponseAsyncGen:
            yield self.chat(messages, **kwargs)

        return replies()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def stream_chat(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def acomplete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def astream_complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def written(message: ChatMessage) -> str:
    return "\n".join(
        f"{block.tool_name} {json.dumps(block.tool_kwargs)}"
        if isinstance(block, ToolCallBlock)
        else block.text
        if isinstance(block, TextBlock)
        else ""
        for block in message.blocks
    )


class TestLlamaIndex(AdapterSuite):
    cannot: ClassVar[dict[str, str]] = {
        "test_unknown_pointer_is_an_error_that_the_model_reads": NO_CODE,
        "test_unknown_pointers_one_after_another_do_not_end_the_run": NO_CODE,
        "test_parallel_calls_are_each_served_on_their_own": NO_CODE,
        "test_store_that_is_out_costs_no_result_and_no_run": NO_CODE,
        "test_sessions_cannot_use_or_read_each_others_pointers": NO_CODE,
        "test_envelope_that_was_dropped_is_found_by_the_name_of_its_call": NO_CALL_ID,
        "test_large_error_is_offloaded_and_still_says_that_it_is_one": NO_ERRORS,
        "test_system_text_and_schemas_are_there_once_and_the_same_in_each_request": NO_SYSTEM_TEXT,
        "test_injected_parameter_is_left_alone": (
            "LlamaIndex finds a Context by its annotation, which mirror widens"
        ),
        "test_image_is_left_alone_and_the_text_beside_it_offloaded": (
            "a large list of blocks is banked as one value, its image with its text"
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
        model = ScriptedModel(script)
        agent = FunctionAgent(
            llm=Scripted(model),
            system_prompt=INSTRUCTIONS,
            tools=[
                *(
                    # By default the description repeats the signature.
                    FunctionTool.from_defaults(
                        mirror(tool, own, limits=limits), description=tool.__doc__
                    )
                    for tool in tools
                ),
                *(FunctionTool.from_defaults(as_function(tool)) for tool in retrieval_tools(own)),
            ],
            streaming=how == "stream",
        )
        memory = ChatMemoryBuffer.from_defaults(token_limit=1_000_000, tokenizer_fn=str.split)

        async def ask() -> object:
            return await agent.run(PROMPT, memory=memory)

        if how == "sync":
            done = await anyio.to_thread.run_sync(lambda: asyncio.run(ask()))
        else:
            done = await ask()
        kept = await memory.aget_all()
        return Seen(
            requests=model.requests,
            results=model.results,
            history="\n".join(map(written, kept)),
            output=str(done),
            images=[
                base64.b64decode(block.image)
                for message in kept
                for block in message.blocks
                if isinstance(block, ImageBlock) and block.image
            ],
        )

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return bank if session is None else bank.scoped(f"{bank.scope}/{session}")

    def photo(self, text: str, image: bytes) -> object:
        def photo() -> list[TextBlock | ImageBlock]:
            """Take a photo."""
            return [TextBlock(text=text), ImageBlock(image=image)]

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        def inject(ctx: Context, items: list[dict[str, int]]) -> str:
            """Take.

            Args:
                items: Rows.
            """
            return take(ctx, items)

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
