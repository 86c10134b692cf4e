"""What of pydantic-ai's messages holds tool results, and what is shown in their place."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, cast

from pydantic_ai.exceptions import ModelRetry, ToolFailed, ToolFailedError, ToolRetryError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    TextContent,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserContent,
    is_multi_modal_content,
    tool_return_ta,
)

from ..records import Envelope
from ._history import History, PastResult
from ._sessions import Session

_Content = str | Sequence[UserContent] | None

ToolError = ModelRetry | ToolFailed | ToolRetryError | ToolFailedError
ToolErrors = (ModelRetry, ToolFailed, ToolRetryError, ToolFailedError)
"""What a failed call is told to the model by."""


async def shown_result(session: Session, call: ToolCallPart, result: object) -> object:
    """Return what a tool returned as the model should see it; images and files are left alone."""
    if isinstance(result, ToolReturn):
        return await _shown_return(session, call, cast("ToolReturn[object]", result))
    if call.tool_name in session.tools or is_multi_modal_content(result):
        return result
    parts = _parts(result)
    if any(map(is_multi_modal_content, parts)):
        return await _shown_parts(session, call, parts)
    shown = await session.mirror.offload(
        result, call.tool_name, call.tool_call_id, given=(call.args_as_dict(),)
    )
    return shown.to_wire() if isinstance(shown, Envelope) else shown


async def shown_error(session: Session, call: ToolCallPart, error: ToolError) -> Exception:
    """Return an error as the model should see it: itself where what it says is short."""
    match error:
        case ToolRetryError():
            said: object = error.tool_retry.content
        case ToolFailedError():
            said = error.tool_failed.content
        case _:
            said = error.message
    shown = await session.mirror.offload(
        said, call.tool_name, call.tool_call_id, is_error=True, given=(call.args_as_dict(),)
    )
    if not isinstance(shown, Envelope):
        return error
    match error:
        case ToolRetryError():
            return ToolRetryError(replace(error.tool_retry, content=cast("Any", shown.to_wire())))
        case ToolFailedError():
            return ToolFailedError(replace(error.tool_failed, content=shown.to_wire()))
        case _:
            return type(error)(str(shown))


async def reduced(
    history: History, session: Session, messages: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """Return the messages of a request, old results as pointers. None of them is changed."""
    turn = sum(message.kind == "response" for message in messages)
    parts = list(_results(messages))
    past = [result for _, result in parts]
    shown = await history.shown(session, past, turn)
    pointers = {
        id(part): replace(part, content=envelope.to_wire())
        for (part, _), envelope in zip(parts, shown, strict=True)
        if envelope is not None
    }
    return [
        replace(message, parts=[pointers.get(id(part), part) for part in message.parts])
        if isinstance(message, ModelRequest) and any(id(part) in pointers for part in message.parts)
        else message
        for message in messages
    ]


def _results(messages: Sequence[ModelMessage]) -> Iterator[tuple[ToolReturnPart, PastResult]]:
    turn = -1
    for message in messages:
        if not isinstance(message, ModelRequest):
            turn += 1
            continue
        for part in message.parts:
            # Of a kind that pydantic-ai reads itself, or with a file in it: that stays.
            if isinstance(part, ToolReturnPart) and part.tool_kind is None and not part.files:
                yield (
                    part,
                    PastResult(
                        tool=part.tool_name,
                        call_id=part.tool_call_id,
                        value=_plain(part.content),
                        turn=turn,
                        is_error=part.outcome in {"failed", "retried"},
                    ),
                )


def _plain(content: object) -> object:
    """Return a result as it is sent, which is the same before and after it was kept as JSON."""
    if isinstance(content, str):
        return content
    return tool_return_ta.dump_python(content, mode="json", by_alias=True)


async def _shown_return(
    session: Session, call: ToolCallPart, returned: ToolReturn[object]
) -> ToolReturn[object]:
    value = await shown_result(session, call, returned.return_value)
    content = await _shown_content(session, call, returned.content)
    if value is returned.return_value and content is returned.content:
        return returned
    return replace(returned, return_value=cast("Any", value), content=content)


async def _shown_content(session: Session, call: ToolCallPart, content: _Content) -> _Content:
    """Return what a tool says beside its result, long texts as envelopes."""
    if content is None or isinstance(content, str):
        return content and await _shown_text(session, call, content)
    items = [await _shown_item(session, call, item) for item in content]
    return content if all(map(is_, items, content)) else items


async def _shown_item(session: Session, call: ToolCallPart, item: UserContent) -> UserContent:
    if isinstance(item, str):
        return await _shown_text(session, call, item)
    if not isinstance(item, TextContent):
        return item
    text = await _shown_text(session, call, item.content)
    return item if text is item.content else replace(item, content=text)


async def _shown_text(session: Session, call: ToolCallPart, text: str) -> str:
    return str(await session.mirror.offload_part(text, call.tool_name))


def _parts(result: object) -> Sequence[object]:
    return cast("Sequence[object]", result) if isinstance(result, list | tuple) else ()


async def _shown_parts(session: Session, call: ToolCallPart, parts: Sequence[object]) -> object:
    """Return the parts of a result in which there are images or files."""
    shown = [
        part
        if is_multi_modal_content(part)
        else await session.mirror.offload_part(part, call.tool_name)
        for part in parts
    ]
    told = [part for part in shown if not is_multi_modal_content(part)]
    session.mirror.note(call.tool_name, told, given=(call.args_as_dict(),))
    return [part.to_wire() if isinstance(part, Envelope) else part for part in shown]
