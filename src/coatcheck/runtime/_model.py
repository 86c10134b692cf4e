"""Conversations with a model, through `pydantic_ai.direct`. Needs the `agent` extra."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from ..content import dumps, visible
from ..errors import ModelError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

Told = Callable[[str], Awaitable[None]]


class Offered(Protocol):
    """A tool as a model is told of it; `coatcheck.tools.Tool` is one."""

    @property
    def name(self) -> str:
        """As the model calls it."""
        ...

    @property
    def description(self) -> str:
        """What the model is told."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of its arguments."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as pydantic-ai takes it, made once for many conversations."""

    definition: "ToolDefinition"
    tokens: int

    @classmethod
    def of(cls, tool: Offered) -> Self:
        """Return the offer of a tool."""
        from pydantic_ai.tools import ToolDefinition

        text = dumps([tool.name, tool.description, tool.parameters]).decode("utf-8", "replace")
        return cls(
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
            ),
            _tokens(text),
        )


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that a model asks for. Nothing of it was checked."""

    name: str
    arguments: str | Mapping[str, Any] | None
    """Parsed, or the JSON text of a model, which may be none."""
    id: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said to one request."""

    text: str
    calls: tuple[Call, ...]
    tokens: int
    """Of the request and this reply: the larger of what the provider reports and our estimate."""


def known_as(model: "Model") -> str:
    """Return what a model is called, with its provider."""
    return f"{model.system}:{model.model_name}"


def opened_model(model: "Model | str") -> "Model":
    """Return a model, by its name where that is given. Nothing is asked.

    Args:
        model: As ``openai:gpt-5``: a provider that pydantic-ai knows, and its name for a model; or
            a model of pydantic-ai.

    Raises:
        ImportError: The extra, or the package of the provider, is missing.
        ValueError: There is no such provider, or its key is not set.
        TypeError: It is neither name nor model.
    """
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import Model, infer_model
    except ImportError as error:
        message = "to ask a model needs an extra: pip install 'coatcheck[agent]'"
        raise ImportError(message) from error
    if isinstance(model, Model):
        return model
    if not isinstance(model, str):
        raise TypeError(f"model must be a name or a pydantic-ai Model, got {type(model).__name__}")
    try:
        return infer_model(model)
    except UserError as error:
        raise ValueError(f"the model {model!r} cannot be used: {error}") from error


class Conversation:
    """What is said between us and one model. It goes to the model whole, with each request.

    Args:
        model: As `opened_model` returns it.
        system: The system prompt.
        user: The first message.
        tools: What the model may call, in this order, in all of the conversation.
        settings: Of pydantic-ai, as ``{"temperature": 0}``.
        streams: Whether replies come piece by piece.
    """

    def __init__(
        self,
        model: "Model",
        *,
        system: str,
        user: str,
        tools: "Sequence[Offered | Offer]" = (),
        settings: Mapping[str, Any] | None = None,
        streams: bool = False,
    ) -> None:
        from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters

        self.model = model
        self._settings: dict[str, Any] = dict(settings or {})
        self._streams = streams
        offers = [tool if isinstance(tool, Offer) else Offer.of(tool) for tool in tools]
        self._parameters: ModelRequestParameters = ModelRequestParameters(
            function_tools=[tool.definition for tool in offers]
        )
        parts: list[ModelRequestPart] = [
            SystemPromptPart(visible(system)),
            UserPromptPart(visible(user)),
        ]
        self._messages: list[ModelMessage] = [ModelRequest(parts=parts)]
        self._waiting: list[ModelRequestPart] = []
        self._estimate = _tokens(system) + _tokens(user)
        self._estimate += sum(tool.tokens for tool in offers)

    def answer(self, call: Call, content: str, *, is_refused: bool = False) -> None:
        """Say what came of a call. All calls of a reply are answered before the next request.

        Args:
            call: Of the last reply.
            content: The result, or failure, as text.
            is_refused: Whether it was not as it has to be, and is to be made again.
        """
        from pydantic_ai.messages import ToolReturnPart

        content = visible(content)
        self._waiting.append(
            ToolReturnPart(
                call.name,
                content,
                tool_call_id=call.id,
                outcome="retried" if is_refused else "success",
            )
        )
        self._estimate += _tokens(content)

    def say(self, text: str) -> None:
        """Say something to the model, after the answers to its calls."""
        from pydantic_ai.messages import UserPromptPart

        # Not as system text: some providers move that to the front, where it ends a cached prefix.
        self._waiting.append(UserPromptPart(visible(text)))
        self._estimate += _tokens(text)

    async def ask(self, *, choice: str | None = None, tell: Told | None = None) -> Reply:
        """Return what the model says next.

        Args:
            choice: ``required`` for any tool, ``none`` for text only, or the name of the one tool
                that is left. A model may disregard it, so look at what it calls.
            tell: Is handed its text as it comes: in pieces, where the conversation streams.

        Raises:
            ModelError: Whatever went wrong at the provider, in its words.
        """
        from pydantic_ai.messages import ModelRequest

        if self._waiting:
            self._messages.append(ModelRequest(parts=self._waiting))
            self._waiting = []
        settings, parameters = self._chosen(choice)
        try:
            response = await self._request(settings, parameters, tell)
        except Exception as error:
            name = getattr(self.model, "model_name", type(self.model).__name__)
            raise ModelError(name, f"{type(error).__name__}: {error}") from error
        return self._taken(response)

    async def _request(
        self, settings: "ModelSettings", parameters: "ModelRequestParameters", tell: Told | None
    ) -> "ModelResponse":
        from pydantic_ai import direct

        if not self._streams:
            response = await direct.model_request(
                self.model,
                self._messages,
                model_settings=settings,
                model_request_parameters=parameters,
            )
            if tell is not None and response.text:
                await tell(response.text)
            return response
        async with direct.model_request_stream(
            self.model, self._messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            async for piece in _text_of(stream):
                if tell is not None and piece:
                    await tell(piece)
        return stream.get()

    def _taken(self, response: "ModelResponse") -> Reply:
        self._messages.append(response)
        calls = tuple(
            Call(part.tool_name, part.args, part.tool_call_id) for part in response.tool_calls
        )
        text = response.text or ""
        self._estimate += _tokens(text)
        for call in calls:
            written = call.arguments
            self._estimate += _tokens(
                written if isinstance(written, str) else dumps(written).decode("utf-8", "replace")
            )
        return Reply(text, calls, max(self._estimate, response.usage.total_tokens))

    def _chosen(self, choice: str | None) -> "tuple[ModelSettings, ModelRequestParameters]":
        """Return settings and tools of a request that is held to `choice`."""
        from pydantic_ai.settings import ModelSettings

        settings, parameters = self._settings, self._parameters
        if choice == "none" or (choice is not None and self._can_be_forced()):
            # All tools stay listed: what providers cache of the request begins with them.
            forced = choice if choice in {"none", "required"} else [choice]
            settings = {**settings, "tool_choice": forced}
        elif choice is not None and choice != "required":
            offered = [tool for tool in parameters.function_tools if tool.name == choice]
            parameters = replace(parameters, function_tools=offered)
        return ModelSettings(**settings), parameters  # type: ignore[typeddict-item]  # the host's

    def _can_be_forced(self) -> bool:
        try:
            profile = self.model.profile
        except NotImplementedError:  # one that hands requests on to others has none
            return False
        return all(
            profile.get(word, True)
            for word in ("supports_forced_tool_choice", "supports_forced_tool_choice_with_thinking")
        )


async def _text_of(stream: AsyncIterable[object]) -> AsyncIterator[str]:
    """Yield the text of a streamed reply, piece by piece."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    async for event in stream:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            yield event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            yield event.delta.content_delta


def _tokens(text: str) -> int:
    """Return about how many tokens a text has, by its bytes: quicker than looking at them."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 4 + 1
