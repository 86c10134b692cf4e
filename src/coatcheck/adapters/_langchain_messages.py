"""Messages of LangChain as a model should see them: for `langchain`, and with its extra only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.types import Command

from ..bank import work_on
from ..content import dumps, encoded_size, loads
from ..errors import UnencodableValueError
from ..mirror import Mirror
from ..records import Envelope
from ._history import History, PastResult
from ._mcp_results import as_block, is_only_text, shown_content, unwritten
from ._sessions import SYSTEM_TEXT, Session, system_text

_SEVERAL = object()


def told(system: SystemMessage | None) -> SystemMessage:
    """Return the system message of a host with our line behind it."""
    content = "" if system is None else system.content
    if system is None or not content:
        return SystemMessage(SYSTEM_TEXT)
    is_text = isinstance(content, str)
    wider = system_text(content) if is_text else [*content, as_block(SYSTEM_TEXT)]
    return system.model_copy(update={"content": wider})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool."""

    mirror: Mirror
    """Of the session."""
    tool: str
    given: Mapping[str, object]
    """The arguments as the model gave them."""
    resolved: Mapping[str, object]
    """The arguments that the tool was called with."""
    made: Sequence[object] = ()
    """What its function returned last, if it was run."""


async def shown_result(call: Call, result: object) -> object:
    """Return what to show of what a tool node returned: a message, a command, or several of both.

    Args:
        call: Which it is of.
        result: Not changed, and returned itself where that is what to show.
    """
    if isinstance(result, ToolMessage):
        return await _shown_message(call, result)
    if isinstance(result, list):
        return [await shown_result(call, each) for each in cast("list[object]", result)]
    if not isinstance(result, Command):
        return result
    command: Command[Any] = cast("Any", result)
    update = cast("dict[str, Any]", command.update) if isinstance(command.update, dict) else {}
    if "messages" not in update:
        return command
    messages = await shown_result(call, convert_to_messages(update["messages"]))
    return replace(command, update={**update, "messages": messages})


async def _shown_message(call: Call, message: ToolMessage) -> ToolMessage:
    mirror, content, is_error = call.mirror, cast("Any", message.content), message.status == "error"
    if is_error and isinstance(content, str) and call.resolved is not call.given:
        # LangChain quotes the arguments, in which the pointers stand.
        content = content.replace(str(call.resolved), str(call.given))
    limit_bytes = mirror.limits.inline_limit(call.tool)
    is_made = bool(call.made) and not is_error
    if is_made and await work_on(len(content), _is_text_of, content, call.made[-1]):
        value = call.made[-1]
    else:
        is_made = False
        value = await work_on(len(content), _whole, content, limit_bytes)
    how: dict[str, Any] = {"call_id": message.tool_call_id, "given": (call.given,)}
    if value is not _SEVERAL:
        shown = await mirror.offload(value, call.tool, is_error=is_error, **how)
        if shown is not value and isinstance(shown, Envelope | str):
            content = str(shown)
        elif is_made:
            if shown is not value:
                content = _written(shown)  # what a generator yielded
            elif is_only_text(value, content, limit_bytes):
                content = str(await mirror.offload(content, call.tool, **how))
    else:
        result = {"content": [as_block(each) for each in content], "isError": is_error}
        told = await shown_content(mirror, call.tool, result, **how)
        content = content if told is None else [as_block(each) for each in told.content]
    return (
        message if content is message.content else message.model_copy(update={"content": content})
    )


async def shown_history(
    history: History, session: Session, messages: Sequence[AnyMessage]
) -> list[AnyMessage]:
    """Return a conversation with pointers in place of what is old and large.

    Args:
        history: Decides what that is.
        session: Whose conversation it is.
        messages: All of it; they are not changed.
    """
    names: dict[str | None, str] = {}
    results: dict[int, PastResult] = {}
    turn = 0
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            names |= {call["id"]: call["name"] for call in message.tool_calls}
            turn += 1
        elif (
            isinstance(message, ToolMessage) and (value := _whole(message.content)) is not _SEVERAL
        ):
            results[at] = PastResult(
                tool=names.get(message.tool_call_id, message.name or "tool"),
                call_id=message.tool_call_id,
                value=value,
                turn=turn - 1,
                is_error=message.status == "error",
            )
    envelopes = await history.shown(session, [*results.values()], turn)
    shown = [*messages]
    for at, envelope in zip(results, envelopes, strict=True):
        if envelope is not None:
            shown[at] = messages[at].model_copy(update={"content": str(envelope)})
    return shown


def _written(value: object) -> str:
    try:
        return dumps(value).decode("utf-8", "surrogatepass")
    except UnencodableValueError:
        return str(value)


def _is_text_of(content: object, value: object) -> bool:
    """Return whether a content is what LangChain makes of a value, which may be lost in it.

    What another middleware changed is not.
    """
    if isinstance(value, str) or not isinstance(content, str):
        return False
    try:
        return content == json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return content == str(value)


def _whole(content: str | Sequence[object], limit_bytes: int | None = None) -> object:
    """Return what a content is as one value, `_SEVERAL` where it is none, as with an image.

    Several texts are one, as a server may send each item of a list on its own; with a limit, a
    text that reaches it is one alone.
    """
    if isinstance(content, str):
        is_short = limit_bytes is not None and len(content) * 4 < limit_bytes
        return content if is_short else unwritten(content)
    if all(isinstance(each, str) for each in content):
        return content
    texts = [str(block["text"]) for block in map(as_block, content) if block.get("type") == "text"]
    if len(texts) < len(content):
        return _SEVERAL
    if len(texts) == 1:
        return texts[0]
    if limit_bytes is not None and any(encoded_size(text) >= limit_bytes for text in texts):
        return _SEVERAL
    return _items(texts)


def _items(texts: Sequence[str]) -> list[object]:
    """Return texts as the items of a list: parsed where each is a JSON object or array."""
    try:
        items = [loads(text.encode("utf-8", "surrogatepass")) for text in texts]
    except ValueError:
        return [*texts]
    return items if all(isinstance(item, dict | list) for item in items) else [*texts]
