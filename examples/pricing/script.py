"""What stands in for a model: `policy`, over messages as pydantic-ai sends them."""

from ledger import plain
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from .policy import next_turn


def scripted_model() -> FunctionModel:
    """Return a model that follows `policy`."""

    async def reply(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        sent = [part for message in messages for part in plain(message)]
        first = next(each["content"] for each in sent if each["role"] == "user")
        returned = [each["content"] for each in sent if each["role"] == "tool"]
        return ModelResponse(
            [ToolCallPart(name, args) for name, args in next_turn(first, returned)]
        )

    return FunctionModel(reply, model_name="scripted")
