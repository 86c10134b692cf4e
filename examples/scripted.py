"""An agent loop with a scripted model, and what it costs: shared by the examples beside it.

The model is a function from the messages it was shown to its next message. It reaches no value
but through a message, as a real one would; it proves mechanics and arithmetic, not skill.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
from rs_bpe.bpe import openai  # pyright: ignore[reportUnknownVariableType]

from coatcheck import Bank, Envelope, Mirror
from coatcheck.mirror import definition
from coatcheck.tools import retrieval_tools

WINDOW_TOKENS = 200_000

Message = Mapping[str, Any]
Model = Callable[[Sequence[Message]], Message]


@dataclass(frozen=True, slots=True)
class Function:
    """One tool of the agent: what runs, and what a model is told of it."""

    run: Callable[..., object]
    description: str
    properties: Mapping[str, object]
    """JSON schemas of its arguments, all required."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.properties),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, in o200k tokens."""

    answer: str | None
    """None where a call did not fit the window."""
    calls_in: Sequence[int]
    """What each call of the model was sent: definitions of tools, and all messages so far."""
    tokens_out: int
    """What the model wrote."""

    @property
    def tokens_in(self) -> int:
        """What all calls were sent together, the one that did not fit included."""
        return sum(self.calls_in)


async def converse(
    model: Model,
    functions: Sequence[Function],
    *,
    system: str,
    question: str,
    bank: Bank | None = None,
    reader: bool = False,
    window_tokens: int | None = WINDOW_TOKENS,
) -> Run:
    """Run an agent until it answers, or overflows.

    Args:
        model: What writes the next message.
        functions: The tools it has.
        system: The first message.
        question: The second.
        bank: Where large results go; None shows them raw.
        reader: Whether the model is also given `retrieve_context`.
        window_tokens: What a call may be sent; None sets no bound, to see what it would cost.
    """
    mirror = None if bank is None else Mirror(bank, reader="retrieve_context" if reader else None)
    by_name = {function.run.__name__: function for function in functions}
    tools = [_defined(function, mirror) for function in functions]
    if bank is not None and reader:
        tools += [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in retrieval_tools(bank)
        ]
    messages: list[Message] = [
        {"role": "system", "content": system},
        {"role": "user", "content": question},
    ]
    sent = sum(tokens(each) for each in [*tools, *messages])
    calls_in: list[int] = []
    tokens_out = 0
    while True:
        calls_in.append(sent)
        if window_tokens is not None and sent > window_tokens:
            return Run(answer=None, calls_in=calls_in, tokens_out=tokens_out)
        said = model(messages)
        new = [said]
        tokens_out += tokens(said)
        for call in said.get("tool_calls", ()):
            content = await _called(call, by_name[call["name"]], mirror)
            new.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        messages += new
        sent += sum(tokens(message) for message in new)
        if "tool_calls" not in said:
            return Run(answer=said["content"], calls_in=calls_in, tokens_out=tokens_out)


def calls(*each: tuple[str, Mapping[str, object]], after: Sequence[Message]) -> Message:
    """Return a message that calls tools: names and arguments, numbered on from those before."""
    number = sum(message["role"] == "tool" for message in after)
    return {
        "role": "assistant",
        "tool_calls": [
            {"id": f"call_{number + at}", "name": name, "arguments": dict(arguments)}
            for at, (name, arguments) in enumerate(each)
        ],
    }


def says(content: str) -> Message:
    """Return a message that answers."""
    return {"role": "assistant", "content": content}


def results(messages: Sequence[Message]) -> list[str]:
    """Return what the tools answered so far, in the order of the calls."""
    return [message["content"] for message in messages if message["role"] == "tool"]


def handed_on(content: str, *, is_text: bool = False) -> object:
    """Return what a model gives a tool as the result it was shown.

    Where it was shown an envelope that is the pointer, else the whole value, written out again.
    """
    try:
        shown: Any = orjson.loads(content)
    except ValueError:
        return content
    if isinstance(shown, dict) and "pointer" in shown:
        return cast("object", shown["pointer"])
    return content if is_text else cast("object", shown)


def tokens(value: object) -> int:
    """Return the o200k tokens of a value's compact JSON."""
    return int(_COUNT(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def table(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as text, each column as wide as its widest cell."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )


def _defined(function: Function, mirror: Mirror | None) -> dict[str, Any]:
    parameters = function.parameters
    return definition(
        function.run,
        description=function.description,
        parameters=parameters if mirror is None else mirror.schema(parameters),
    )


async def _called(call: Mapping[str, Any], function: Function, mirror: Mirror | None) -> str:
    arguments: Mapping[str, Any] = call["arguments"]
    if mirror is None:
        return _as_text(function.run(**arguments))
    found = await mirror.resolve(arguments, function.parameters)
    value = function.run(**found)
    return _as_text(await mirror.offload(value, tool=call["name"], call_id=call["id"]))


def _as_text(value: Any) -> str:  # noqa: ANN401 - whatever a tool returns
    if isinstance(value, str | Envelope):
        return str(value)
    # As most frameworks do it.
    return json.dumps(value.tolist() if hasattr(value, "tolist") else value)


# rs_bpe ships no type hints.
_COUNT: Callable[[str], int] = cast("Any", openai).o200k_base().count
