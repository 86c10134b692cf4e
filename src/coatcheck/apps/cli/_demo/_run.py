"""Runs a job twice: with pointers, and raw, as the same model and tools would go without them."""

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from ....content import dumps, visible
from ....records import dataclass
from ....tools import Tool
from ._jobs import Job, definition
from ._policy import READER, Message, envelope_in, reply
from ._tokens import TokenCounter

WINDOWS = (128_000, 200_000, 1_000_000)
"""Common sizes of context windows, in tokens."""

_SYSTEM = "You answer questions with tools. Call one at a time."


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


class Behind(Protocol):
    """Tools behind a proxy."""

    @property
    def tools(self) -> Sequence[Tool]:
        """As a host sees them, ours too."""
        ...

    @property
    def instructions(self) -> str:
        """What a host tells its model of them."""
        ...

    @property
    def artifacts(self) -> Sequence[Mapping[str, Any]]:
        """What the results so far say of artifacts that stand in for parts of them."""
        ...

    async def payload(self, pointer: str, size_bytes: int) -> str | bytes:
        """Return what stands behind a pointer, whole."""
        ...


async def run_demo(job: Job, behind: Behind, tell: Callable[[Message], object]) -> Outcome:
    """Run a job with tools behind the proxy, then count what it takes without one.

    Args:
        job: What to do.
        behind: A proxy before a server of the job's tools.
        tell: Is told each message of the run with pointers.
    """
    start = time.perf_counter()
    tools = behind.tools
    system = f"{_SYSTEM} {behind.instructions}".rstrip()
    messages = await _converse(job, tools, system, tell)
    seconds = time.perf_counter() - start
    raw_tools = _raw(job, await _source(behind, messages))
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


async def _source(behind: Behind, messages: Sequence[Message]) -> str | bytes:
    """Return what the first tool answered, whole: read back where a pointer stands for it."""
    content = str(next(message for message in messages if message["role"] == "tool")["content"])
    shown = envelope_in(content)
    # A file may look like an envelope, and be none.
    if shown is None or not behind.artifacts:
        return content
    return await behind.payload(shown["pointer"], shown["sizeBytes"])


def _raw(job: Job, source: str | bytes) -> list[Tool]:
    shown = source if isinstance(source, str) else base64.b64encode(source).decode()

    def read(**_: object) -> str:
        return shown

    work = [_tool(job, function, _from_text(function)) for function in job.work]
    return [_tool(job, job.source, read), *work]


def _tool(job: Job, function: Callable[..., object], work: Callable[..., object]) -> Tool:
    name, description, schema = definition(job, function)

    async def call(arguments: Mapping[str, Any] | str) -> str:
        value = work(**cast("Mapping[str, Any]", arguments))
        text = value if isinstance(value, str) else dumps(value).decode("utf-8", "surrogatepass")
        return visible(text)

    return Tool(name, description, schema, call)


def _from_text(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that takes bytes as the base64 that a model has of them."""

    def decoded(**arguments: Any) -> object:  # noqa: ANN401 - whatever the function takes
        if "content" in arguments:
            arguments["content"] = base64.b64decode(arguments["content"])
        return function(**arguments)

    return decoded
