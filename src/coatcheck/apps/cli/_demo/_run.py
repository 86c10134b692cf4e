"""Runs a job twice: with pointers, and raw, as the same model and tools would go without them."""

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ....bank import Bank
from ....content import dumps, visible
from ....errors import CoatcheckError
from ....mirror import Mirror
from ....records import Envelope
from ....tools import Tool, as_failure, retrieval_tools
from ._jobs import Job
from ._policy import READER, Message, envelope_in, reply
from ._tokens import TokenCounter

WINDOWS = (128_000, 200_000, 1_000_000)
"""Common sizes of context windows, in tokens."""

_SYSTEM = "You answer questions with tools. Call one at a time."
_SYSTEM_POINTERS = " Give tools large results as art:… or art:…#$[*].id."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the model."""

    action: str
    """What it answered: the name of a tool, ``read``, ``search`` or ``answer``."""
    tokens: int
    """What it was sent: schemas and all messages so far."""
    raw_tokens: int | None
    """The same in the raw run; None where that has no such call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a demo showed and measured."""

    messages: Sequence[Message]
    tools: Sequence[Tool]
    """What the model was offered."""
    calls: Sequence[Call]
    raw_answer: str
    tokens: int
    raw_tokens: int
    raw_tokens_once: int
    """Of the raw run, had the model never to write its input out again as an argument."""
    seconds: float
    """Of the run with pointers, tools included."""
    pointers: Sequence[str]
    """What was banked."""

    def overflows_at(self, window_tokens: int, *, raw: bool) -> int | None:
        """Return the number of the first call that does not fit a context window."""
        for number, call in enumerate(self.calls, 1):
            tokens = call.raw_tokens if raw else call.tokens
            if tokens is not None and tokens > window_tokens:
                return number
        return None


async def run_demo(job: Job, bank: Bank, tell: Callable[[Message], object]) -> Outcome:
    """Run a job on a bank, then count what it takes without one.

    Args:
        job: What to do.
        bank: Where large results go.
        tell: Is told each message of the run with pointers.
    """
    start = time.perf_counter()
    tools = [*_mirrored(job, bank), *retrieval_tools(bank)]
    messages = await _converse(job, tools, _SYSTEM + _SYSTEM_POINTERS, tell)
    seconds = time.perf_counter() - start
    raw_tools = _raw(job)
    raw = await _converse(job, raw_tools, _SYSTEM, lambda _: None)

    counter = TokenCounter()
    tokens = dict(_requests(counter, messages, tools))
    raw_tokens = dict(_requests(counter, raw, raw_tools))
    once = dict(_requests(counter, raw, raw_tools, without=job.script.parameter))
    return Outcome(
        messages=messages,
        tools=tools,
        calls=[
            Call(action=action, tokens=sent, raw_tokens=raw_tokens.get(action))
            for action, sent in tokens.items()
        ],
        raw_answer=raw[-1]["content"],
        tokens=sum(tokens.values()),
        raw_tokens=sum(raw_tokens.values()),
        raw_tokens_once=sum(once.values()),
        seconds=seconds,
        pointers=[
            shown["pointer"]
            for message in messages
            if message["role"] == "tool" and (shown := envelope_in(message["content"]))
        ],
    )


def action_of(message: Message) -> str:
    """Return what a message of the model does: calls a tool, reads, searches or answers."""
    if "calls" not in message:
        return "answer"
    call = message["calls"][0]
    if call["name"] != READER:
        return str(call["name"])
    return "search" if "search" in call["arguments"] else "read"


async def _converse(
    job: Job, tools: Sequence[Tool], system: str, tell: Callable[[Message], object]
) -> list[Message]:
    """Return the messages of an agent loop, from the question to the answer."""
    by_name = {tool.name: tool for tool in tools}
    messages: list[Message] = []

    def say(message: Message) -> None:
        messages.append(message)
        tell(message)

    say({"role": "system", "content": system})
    say({"role": "user", "content": job.question})
    while "calls" in messages[-1] or messages[-1]["role"] != "assistant":
        say(reply(job.script, messages, tools))
        for call in messages[-1].get("calls", ()):
            content = await by_name[call["name"]].call(call["arguments"])
            say({"role": "tool", "call": call["id"], "content": content})
    return messages


def _requests(
    counter: TokenCounter,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    *,
    without: str | None = None,
) -> Iterator[tuple[str, int]]:
    """Yield what each call of the model did, and the tokens it was sent."""
    sent = counter.schemas(tools)
    for message in messages:
        if message["role"] == "assistant":
            yield action_of(message), sent
        sent += counter.message(message, without=without)


def _mirrored(job: Job, bank: Bank) -> list[Tool]:
    mirror = Mirror(bank)
    tools = [
        _tool(job.source, mirror.wrap(job.source, inline_bytes=job.inline_bytes), job.source_schema)
    ]
    for function in job.work:
        schema = mirror.schema(_schema(job, function))
        tools.append(_tool(function, mirror.wrap(function), schema))
    return tools


def _raw(job: Job) -> list[Tool]:
    work = [_tool(function, _from_text(function), _schema(job, function)) for function in job.work]
    return [_tool(job.source, job.source, job.source_schema), *work]


def _tool(
    function: Callable[..., object], work: Callable[..., object], schema: Mapping[str, Any]
) -> Tool:
    async def call(arguments: Mapping[str, Any] | str) -> str:
        try:
            return _as_shown(work(**cast("Mapping[str, Any]", arguments)))
        except CoatcheckError as error:
            return str(as_failure(error))

    return Tool(function.__name__, str(function.__doc__).splitlines()[0], schema, call)


def _schema(job: Job, function: Callable[..., object]) -> Mapping[str, Any]:
    parameter, more = job.script.parameter, dict(job.script.work)[function.__name__]
    properties = {parameter: job.parameter_schema, **{name: {"type": "integer"} for name in more}}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _as_shown(value: object) -> str:
    """Return a result as it stands in a message: text as it is, bytes as base64, else JSON."""
    if isinstance(value, str | Envelope):
        return visible(str(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return visible(dumps(value).decode("utf-8", "surrogatepass"))


def _from_text(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that takes bytes as the base64 that a model has of them."""

    def decoded(**arguments: Any) -> object:  # noqa: ANN401 - whatever the function takes
        if "content" in arguments:
            arguments["content"] = base64.b64decode(arguments["content"])
        return function(**arguments)

    return decoded
