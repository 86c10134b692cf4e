"""What all steps of a run are run with: a model, tools, and the bounds of one step."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from ..mirror import Mirror
from ..records import Limits
from ..tools import Tool
from ._context import RunContext
from ._events import Telling
from ._model import Offer, known_as, opened_model
from ._tools import FINISH, StepTool, chosen_tools, step_tools

if TYPE_CHECKING:
    from pydantic_ai.models import Model

Accept = Callable[[object], Awaitable[str | None]]


class StepOptions(TypedDict, total=False):
    """How steps are run. All executors take these by name, and hand them down."""

    tools: Sequence[StepTool]
    """The caller's; memory tools, `retrieve_context` and `finish_step` are there anyway."""
    system_prompt: str | None
    """Comes before each prompt, and never in its place."""
    limits: Limits | None
    """When results of tools are offloaded; None takes the limits of the bank."""
    max_token_limit: int
    """Tokens of one request and its reply, at which a step is ended; 128,000."""
    conclusion_at: float
    """The share of these from which only `finish_step` is left; 0.9."""
    model_settings: Mapping[str, Any] | None
    """Of pydantic-ai, as ``{"temperature": 0}``."""
    stream: bool
    """Whether chunks of text are told as they come, not once a reply; False."""
    accept_result: Accept | None
    """Is handed each result that fits, and returns why it is refused, or None."""
    clock: Callable[[], float]
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """`StepOptions` as steps need them, made once for a run."""

    context: RunContext
    model: "Model"
    mirror: Mirror
    all_tools: tuple[Tool, ...]
    given: int
    """How many of `all_tools` are the caller's: those come first."""
    offers: Mapping[str, Offer]
    """The tools as the model is told of them, by name."""
    system_prompt: str | None
    max_token_limit: int
    conclusion_at: float
    model_settings: Mapping[str, Any] | None
    stream: bool
    accept_result: Accept | None
    clock: Callable[[], float]
    telling: Telling = field(default_factory=Telling)

    @classmethod
    def of(cls, context: RunContext, model: "Model | str", **options: Unpack[StepOptions]) -> Self:
        """Return the means of a run.

        Raises:
            ImportError, ValueError, TypeError: The model, a tool or a bound cannot be used.
        """
        given = tuple(options.get("tools", ()))
        limits = options.get("limits")
        opened = opened_model(model)
        tools = tuple(step_tools(given, context, limits))
        # By the tool, not its name: one of the caller's may stand in for one of ours.
        own = {id(tool): offer for tool, offer in context.own_tools}
        means = cls(
            context=context,
            model=opened,
            mirror=Mirror(context.bank, limits),
            all_tools=tools,
            offers={tool.name: own.get(id(tool)) or Offer.of(tool) for tool in tools},
            given=len(given),
            system_prompt=options.get("system_prompt"),
            max_token_limit=options.get("max_token_limit", 128_000),
            conclusion_at=options.get("conclusion_at", 0.9),
            model_settings=options.get("model_settings"),
            stream=options.get("stream", False),
            accept_result=options.get("accept_result"),
            clock=options.get("clock", time.time),
        )
        at_least("max_token_limit", means.max_token_limit)
        if not 0 < means.conclusion_at <= 1:
            raise ValueError(f"conclusion_at must be over 0 and up to 1, got {means.conclusion_at}")
        return means

    @property
    def model_name(self) -> str:
        """What the model is called, for the hash of a plan."""
        return known_as(self.model)

    @property
    def tool_names(self) -> frozenset[str]:
        """What `Step.tools` may name."""
        return frozenset({*(tool.name for tool in self.all_tools), FINISH})

    def tools(self, names: Sequence[str] | None) -> list[Tool]:
        """Return the tools of a step that names those of the caller's which it may call."""
        return chosen_tools(self.all_tools, self.given, names)

    def now(self) -> datetime:
        """Return the time."""
        return datetime.fromtimestamp(self.clock(), UTC)


def at_least(name: str, number: int, least: int = 1) -> None:
    """Pass a number that is large enough.

    Raises:
        ValueError: It is not.
    """
    if number < least:
        raise ValueError(f"{name} must be {least} or more, got {number}")
