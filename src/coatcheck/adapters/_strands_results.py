"""Results of Strands tools as a model should see them."""

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError
from strands.types.tools import ToolResult, ToolResultContent

from ..bank import misfit, work_on
from ..content import dumps
from ..mirror import Mirror
from ..tools import as_failure
from ._mcp_results import shown_content


async def shown_result(mirror: Mirror, tool: str, result: ToolResult, given: object) -> ToolResult:
    """Return a tool's result with its texts and values offloaded; the same object where all stay.

    Args:
        mirror: Of the session.
        tool: The name of the tool.
        result: Images and documents in it are left alone.
        given: The arguments of the call, of which the journal keeps the pointers.
    """
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


def _block(part: ToolResultContent) -> Mapping[str, Any]:
    """Return a part of a result as a block of MCP's form; what is no text is a block of its own."""
    if "json" in part:
        return {"type": "text", "text": dumps(part["json"]).decode("utf-8", "surrogatepass")}
    return {"type": "text", "text": part["text"]} if "text" in part else {"type": "other"}


async def _whole(mirror: Mirror, tool: str, part: ToolResultContent) -> Mapping[str, Any]:
    """Return the value that a part is, or that Strands made a text of, as MCP says it."""
    if "json" in part:
        return {"content": [], "structuredContent": {"result": part["json"]}}
    text = part.get("text", "")
    if len(text) < mirror.limits.inline_limit(tool) // 4:
        return {}  # no character takes more bytes
    value = await work_on(len(text), _read, text)
    return {} if value is text else {"structuredContent": {"result": value}}


def _read(text: str) -> object:
    """Return the value of a text in Strands' form of JSON, to the byte; else the text."""
    try:
        value: object = json.loads(text) if text.startswith(("[", "{")) else text
        return value if json.dumps(value, ensure_ascii=False) == text else text
    except (ValueError, RecursionError):
        return text
