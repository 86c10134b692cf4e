"""Counts what passes through a model, and keeps it, so that it can be looked at."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from scripted import tokens


class Ledger(WrapperModel):
    """A model with a book: what it was sent and what it wrote, in o200k tokens and characters."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.requests: list[int] = []
        self.firsts: list[str] = []
        """The first message of a user in each request, which tells the steps apart."""
        self.tokens_out = 0
        self.chars_out = 0
        self.passed: list[str] = []
        """All text that went in or out."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        sent = [part for message in messages for part in plain(message)]
        offered: list[dict[str, Any]] = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            }
            for tool in model_request_parameters.function_tools
        ]
        self.requests.append(sum(tokens(each) for each in [*offered, *sent]))
        self.firsts.append(next(each["content"] for each in sent if each["role"] == "user"))
        response = await super().request(messages, model_settings, model_request_parameters)
        said = plain(response)
        self.tokens_out += sum(tokens(each) for each in said)
        self.chars_out += sum(len(json.dumps(each)) for each in said)
        self.passed += [json.dumps(each) for each in (*sent, *said)]
        return response


def plain(message: ModelMessage) -> list[dict[str, Any]]:
    """Return a message as most providers take it."""
    if isinstance(message, ModelResponse):
        said: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, TextPart) and part.content:
                said.append({"role": "assistant", "content": part.content})
            elif isinstance(part, ToolCallPart):
                call = {"name": part.tool_name, "arguments": part.args_as_dict()}
                said.append({"role": "assistant", "tool_calls": [call]})
        return said
    roles = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool"}
    parts: Sequence[Any] = message.parts
    return [
        {"role": roles[part.part_kind], "content": part.content}
        for part in parts
        if part.part_kind in roles
    ]
