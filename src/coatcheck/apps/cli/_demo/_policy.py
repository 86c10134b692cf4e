"""The scripted model: from the messages and tools it is shown to its next message, no more."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ....records import dataclass, is_pointer
from ....tools import Tool

Message = Mapping[str, Any]
"""As chat models take it, but that the arguments of a call are an object, not JSON text."""

Results = Mapping[str, str]
"""What was answered so far, by the name of the tool, or ``read`` and ``search``."""

READER = "retrieve_context"
_WINDOW_CHARS = 400
_LONGEST_NEEDLE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the scripted model is set on doing, fixed before anything has run."""

    source: str
    """The tool that yields the value all others work on."""
    parameter: str
    """Under which those others take it."""
    work: tuple[tuple[str, Mapping[str, object]], ...]
    """Their names and further arguments, in order."""
    look_for: Callable[[Results], str]
    """What to search for, by what was answered; nothing where it is empty."""
    answer: Callable[[Results], str]
    """The last message, by what was answered."""


def reply(script: Script, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
    """Return the model's next message: a call, or its answer."""
    results = _results(messages)
    failed = next((said for name in results if (said := _failure(script, name, results))), None)
    if failed is not None:
        return {"role": "assistant", "content": f"A tool failed: {failed}"}
    call = _next_call(script, results, messages, {tool.name: tool for tool in tools})
    if call is None:
        return {"role": "assistant", "content": script.answer(results)}
    name, arguments = call
    id_ = f"call_{len(results) + 1}"
    return {"role": "assistant", "calls": [{"id": id_, "name": name, "arguments": arguments}]}


def envelope_in(text: str) -> Message | None:
    """Return the envelope that a tool's answer is, None where it is something else."""
    found = _object(text)
    if not is_pointer(found.get("pointer")) or not isinstance(found.get("sizeBytes"), int):
        return None
    return found if isinstance(found.get("note"), str) else None


def _next_call(
    script: Script, results: Results, messages: Sequence[Message], tools: Mapping[str, Tool]
) -> tuple[str, Mapping[str, object]] | None:
    source = results.get(script.source)
    if source is None:
        # The user's message ends in the arguments, where the first tool takes any.
        words = str(messages[1]["content"]).rpartition("\n")[2]
        return script.source, json.loads(words) if words.startswith("{") else {}
    shown = envelope_in(source)
    for name, more in script.work:
        if name not in results:
            value = _argument(source, shown, tools[name], script.parameter)
            return name, {script.parameter: value, **more}
    if shown is None or READER not in tools or not shown["note"].startswith(READER):
        return None
    window = {"artifactId": shown["pointer"]}
    if "read" not in results:
        # A character has at most four bytes, so this is inside whatever the text.
        return READER, {**window, "offset": shown["sizeBytes"] // 4, "limit": _WINDOW_CHARS}
    needle = script.look_for(results)
    if "search" not in results and needle:
        return READER, {**window, "search": needle[-_LONGEST_NEEDLE:], "limit": 1}
    return None


def _argument(source: str, shown: Message | None, tool: Tool, parameter: str) -> object:
    """Return the pointer where one was shown, else the value, written out again."""
    if shown is not None:
        return shown["pointer"]
    return (
        source
        if tool.parameters["properties"][parameter] == {"type": "string"}
        else json.loads(source)
    )


def _results(messages: Sequence[Message]) -> dict[str, str]:
    calls = {call["id"]: call for message in messages for call in message.get("calls", ())}
    results: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            call = calls[message["call"]]
            name = call["name"]
            if name == READER:
                name = "search" if "search" in call["arguments"] else "read"
            results[name] = message["content"]
    return results


def _failure(script: Script, name: str, results: Results) -> str | None:
    # What the source yields is what it is, even where it looks like a failure.
    found = _object("" if name == script.source else results[name])
    return str(found["message"]) if set(found) == {"error", "message", "hint"} else None


def _object(text: str) -> Mapping[str, Any]:
    try:
        return cast("Mapping[str, Any]", json.loads(text if text.startswith("{") else "{}"))
    except ValueError:
        return {}
