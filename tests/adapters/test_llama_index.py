"""Mirrored functions as the tools of a LlamaIndex agent."""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
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
    How,
    ScriptedModel,
    Seen,
    Turn,
)
from coatcheck.tools import as_function, retrieval_tools

from .mirrored import MirroredSuite

# Workflows of LlamaIndex look at all attributes of an agent, those that pydantic deprecates too.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


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
        *_: Any,
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


class TestLlamaIndex(MirroredSuite):
    cannot: ClassVar[Mapping[str, str]] = {
        **MirroredSuite.cannot,
        "test_tool_with_the_name_of_ours_is_refused": (
            "mirror sees one function, not those beside it"
        ),
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
        agent: Any = FunctionAgent(
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
        buffer: Any = ChatMemoryBuffer
        memory = buffer.from_defaults(token_limit=1_000_000, tokenizer_fn=str.split)

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
                if isinstance(block, ImageBlock) and isinstance(block.image, bytes)
            ],
        )

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
