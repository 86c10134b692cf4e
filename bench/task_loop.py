"""A loop of model and tools, without a model: a scripted policy, and what it was shown counted.

A policy gets the question, then the text of each tool message, and nothing else.
"""

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rs_bpe.bpe import openai  # pyright: ignore[reportUnknownVariableType]

OVERFLOW_TOKENS = 200_000
"""Window of a model that is taken for a large one."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a policy makes."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


Policy = Callable[[str], Generator[Call, str, str]]
"""Takes the question, yields calls, is sent the text that each was answered with, and returns
the answer."""


class StuckError(Exception):
    """A policy was not shown what it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """A tool as the loop has it: what a model is told of it, and what calls it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[[Mapping[str, object]], Awaitable[str]]

    def definition(self) -> dict[str, object]:
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one task cost."""

    answer: str
    cumulative_tokens: int
    """Over all model calls: system text, tool definitions and all messages until then."""
    peak_tokens: int
    """Of the largest of these calls."""
    calls: int
    shown: tuple[str, ...]
    """The text of each tool message."""
    stuck: str = ""
    """Why there is no answer."""

    @property
    def overflows(self) -> bool:
        return self.peak_tokens > OVERFLOW_TOKENS


async def run(
    policy: Policy,
    question: str,
    tools: Sequence[AgentTool],
    *,
    free_tokens: int = 0,
    system: str | None = None,
) -> Run:
    """Let a policy answer a question, and count what a model would have read.

    Args:
        policy: Stands in for the model.
        question: The one message of the user.
        tools: What it may call.
        free_tokens: Of the definitions, those that are there without us: not counted.
        system: Text of the first message, which is counted; None for no such message.
    """
    by_name = {tool.name: tool for tool in tools}
    fixed = definition_tokens(tools) - free_tokens
    messages = message_tokens({"role": "user", "content": question})
    if system is not None:
        messages += message_tokens({"role": "system", "content": system})
    steps = policy(question)
    shown: list[str] = []
    per_call: list[int] = []
    reply: str | None = None
    answer = stuck = ""
    while True:
        per_call.append(fixed + messages)
        try:
            call = next(steps) if reply is None else steps.send(reply)
        except StopIteration as stop:
            answer = cast("str", stop.value)
            break
        except StuckError as error:
            stuck = str(error)
            break
        reply = await by_name[call.tool].call(call.arguments)
        shown.append(reply)
        asked = {"name": call.tool, "arguments": dict(call.arguments)}
        messages += message_tokens({"role": "assistant", "tool_calls": [asked]})
        messages += message_tokens({"role": "tool", "content": reply})
    return Run(
        answer=answer,
        stuck=stuck,
        cumulative_tokens=sum(per_call),
        peak_tokens=max(per_call),
        calls=len(per_call),
        shown=tuple(shown),
    )


def definition_tokens(tools: Sequence[AgentTool]) -> int:
    """Return the tokens of tool definitions as compact JSON."""
    return count_tokens(compact([tool.definition() for tool in tools])) if tools else 0


def message_tokens(message: Mapping[str, object]) -> int:
    """Return the tokens of a message as compact JSON."""
    return count_tokens(compact(message))


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def count_tokens(text: str) -> int:
    """Return the tokens of o200k that `text` is."""
    return _COUNT(text)


# rs_bpe ships no type hints.
_COUNT: Callable[[str], int] = cast("Any", openai).o200k_base().count
