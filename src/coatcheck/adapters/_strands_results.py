"""Results of Strands tools as a model should see them."""

import copy
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic import ValidationError
from strands.tools.decorator import DecoratedFunctionTool
from strands.types.tools import AgentTool, ToolResult, ToolResultContent, ToolSpec

from ..bank import misfit, work_on
from ..content import dumps
from ..errors import UnencodableValueError
from ..mirror import Mirror, with_verbatim_marks
from ..records import Envelope
from ..tools import as_failure
from ._mcp_results import is_only_text, shown_content, unwritten

UNKNOWN = object()
_MADE = "_coatcheck_made"


def schema_in(spec: ToolSpec) -> Mapping[str, Any]:
    """Return the JSON schema of a tool's arguments, as its definition shows it."""
    schema = cast("Mapping[str, Any]", spec["inputSchema"])
    return cast("Mapping[str, Any]", schema.get("json", schema))


def schema_of(tool: AgentTool) -> Mapping[str, Any]:
    """Return the JSON schema of a tool's arguments, with the marks that Strands takes off."""
    function = getattr(tool, "__wrapped__", None)
    schema = schema_in(tool.tool_spec)
    return with_verbatim_marks(schema, function) if callable(function) else schema


def noting(tool: AgentTool) -> AgentTool:
    """Return a copy of a function's tool that notes what the function returns, for `made_by`.

    Strands makes a text of it before any hook sees it.
    """
    if not isinstance(tool, DecoratedFunctionTool):
        return tool
    copied: Any = copy.copy(cast("object", tool))
    wrap: Any = getattr(copied, "_wrap_tool_result", None)

    def wrapped(call_id: str, value: object, *args: object, **named: object) -> object:
        made: Any = wrap(call_id, value, *args, **named)
        copied.__dict__[_MADE] = value, made.tool_result["content"]
        return made

    if wrap is not None:
        copied.__dict__["_wrap_tool_result"] = wrapped
    return cast("AgentTool", copied)


def made_by(tool: object, result: ToolResult) -> object:
    """Return what the function of a copy returned, `UNKNOWN` where a result is not made of that."""
    value, content = getattr(tool, "__dict__", {}).get(_MADE, (UNKNOWN, None))
    is_text = isinstance(value, str) or _is_result(value)
    return UNKNOWN if is_text or content != result["content"] else value


async def shown_result(
    mirror: Mirror, tool: str, result: ToolResult, given: object, made: object = UNKNOWN
) -> ToolResult:
    """Return a tool's result with its texts and values offloaded; the same object where all stay.

    Args:
        mirror: Of the session.
        tool: The name of the tool.
        result: Images and documents in it are left alone.
        given: The arguments of the call, of which the journal keeps the pointers.
        made: What the tool's function returned, where Strands made a text of that.
    """
    if made is not UNKNOWN:
        shown = await mirror.offload(made, tool, result["toolUseId"], given=(given,))
        if shown is not made:
            return {**result, "content": [{"text": _text(shown)}]}
        (only,) = result["content"]
        if not is_only_text(made, only.get("text", ""), mirror.limits.inline_limit(tool)):
            return result
    content, is_error = result["content"], result["status"] == "error"
    blocks = [_block(each) for each in content]
    parts: dict[str, Any] = {"content": blocks, "isError": is_error}
    structured = cast("Mapping[str, object]", result).get("structuredContent")
    if structured is not None:
        parts["structuredContent"] = structured
    elif len(content) == 1 and not is_error:
        parts |= await _whole(mirror, tool, content[0])
    shown = await shown_content(mirror, tool, parts, call_id=result["toolUseId"], given=(given,))
    if shown is None:
        return result
    originals = {id(block): each for block, each in zip(blocks, content, strict=True)}
    told: list[ToolResultContent] = [
        originals[id(each)] if id(each) in originals else {"text": str(each)}
        for each in shown.content
    ]
    rest: dict[str, Any] = {**result, "content": told}
    if shown.structured is None:
        rest.pop("structuredContent", None)
    return cast("ToolResult", rest)


def unquoted(result: ToolResult, error: Exception) -> ToolResult:
    """Return what a call failed with, without what stood behind the pointers of its arguments.

    Args:
        result: What Strands made of the error, in which pydantic quotes what did not fit.
        error: What the call raised.
    """
    reason = error.__cause__
    if not isinstance(reason, ValidationError):
        return result
    failure = as_failure(misfit(reason, "an argument"))
    return {**result, "content": [{"text": str(failure)}]}


def _is_result(value: object) -> bool:
    return isinstance(value, Mapping) and "status" in value and "content" in value


def _text(value: object) -> str:
    """Return the text of an envelope, or of what a generator yielded."""
    try:
        return str(value) if isinstance(value, str | Envelope) else _written(value)
    except UnencodableValueError:
        return str(value)


def _written(value: object) -> str:
    return dumps(value).decode("utf-8", "surrogatepass")


def _block(part: ToolResultContent) -> Mapping[str, Any]:
    """Return a part of a result as a block of MCP's form; what is no text is a block of its own."""
    text = part.get("text")
    if "json" in part:
        with suppress(UnencodableValueError):  # that stays, and is Strands' own to send
            text = _written(part["json"])
    return {"type": "other"} if text is None else {"type": "text", "text": text}


async def _whole(mirror: Mirror, tool: str, part: ToolResultContent) -> Mapping[str, Any]:
    """Return the value that a part is, or that Strands made a text of, as MCP says it."""
    if "json" in part:
        return {"content": [], "structuredContent": {"result": part["json"]}}
    text = part.get("text", "")
    if len(text) < mirror.limits.inline_limit(tool) // 4:
        return {}  # no character takes more bytes
    value = await work_on(len(text), unwritten, text)
    return {} if value is text else {"structuredContent": {"result": value}}
