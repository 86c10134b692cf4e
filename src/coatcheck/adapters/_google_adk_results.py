"""Results of ADK's tools as a model should see them: for `google_adk`, and with its extra only."""

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard, cast

from google.genai import types

from ..mirror import Mirror
from ..records import Envelope
from ._mcp_results import Shown, as_block, is_mcp_result, shown_content

_Container: TypeAlias = dict[str, Any] | list[Any] | tuple[Any, ...]


async def shown_result(
    mirror: Mirror, tool: str, result: object, call_id: str | None, given: Iterable[object] = ()
) -> dict[str, Any] | None:
    """Return what to show of a result, None where that is the result itself.

    Args:
        mirror: Of the session.
        tool: The name of the tool.
        result: Whatever it returned.
        call_id: Of the call.
        given: The arguments of the call, of which the journal keeps the pointers.
    """
    if result is None or isinstance(result, types.Part | types.FunctionResponse):
        return None  # a long-running tool that has nothing to say yet; an image
    if is_mcp_result(result):
        content = await shown_content(mirror, tool, result, call_id=call_id, given=given)
        return None if content is None else _of_mcp(content, result)
    if _is_container(result) and any(map(_is_media, _items(result))):
        return await _beside_media(mirror, tool, result, given)
    value = _unwrapped(result)
    offloaded = await mirror.offload(value, tool, call_id, is_error=_is_error(result), given=given)
    return None if offloaded is value else _named(offloaded)


async def shown_part(mirror: Mirror, part: types.Part) -> types.Part:
    """Return a part of a message, where it is the result of a tool as a model should see it."""
    sent = part.function_response
    if sent is None or not sent.name or sent.name.startswith("adk_"):  # those are ADK's own
        return part
    response = await shown_result(mirror, sent.name, sent.response, sent.id)
    if response is None:
        return part
    return part.model_copy(
        update={"function_response": sent.model_copy(update={"response": response})}
    )


def _unwrapped(result: object) -> object:
    """Return what stands under ``result`` or ``error`` alone: ADK wraps so what is no object."""
    if not isinstance(result, dict):
        return result
    named = cast("dict[str, object]", result)
    return next(iter(named.values())) if [*named] in (["result"], ["error"]) else named


def _is_error(result: object) -> bool:
    error = cast("dict[str, object]", result).get("error") if isinstance(result, dict) else None
    # Not whatever else: an array of errors is neither true nor false.
    return isinstance(error, str | bool | int | dict | list) and bool(cast("object", error))


def _named(result: object) -> dict[str, Any]:
    """Return what is shown as an object, as ADK wants it."""
    return result.to_wire() if isinstance(result, Envelope) else {"result": result}


def _of_mcp(told: Shown, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result of MCP as it is shown; one that is a single value as that alone."""
    if len(told.content) == 1 and not isinstance(told.content[0], dict):
        return _named(told.content[0])
    content = [as_block(block) for block in told.content]
    rest = {key: value for key, value in result.items() if key != "structuredContent"}
    kept = {} if told.structured is None else {"structuredContent": told.structured}
    return {**rest, "content": content, **kept}


async def _beside_media(
    mirror: Mirror, tool: str, result: _Container, given: Iterable[object]
) -> dict[str, Any] | None:
    """Return a result whose images stay, and whose other parts are offloaded each on its own."""
    values = [*_items(result)]
    parts = [each if _is_media(each) else await mirror.offload_part(each, tool) for each in values]
    mirror.note(tool, [part for part in parts if not _is_media(part)], given=given)
    if all(part is each for part, each in zip(parts, values, strict=True)):
        return None
    parts = [part.to_wire() if isinstance(part, Envelope) else part for part in parts]
    return dict(zip(result, parts, strict=True)) if isinstance(result, dict) else {"result": parts}


def _is_media(value: object, *, depth: int = 1) -> bool:
    """Return whether ADK makes an image or the like of it: it looks that deep into a result."""
    if isinstance(value, types.Part):
        return True
    if not depth or not _is_container(value):
        return False
    return any(_is_media(each, depth=depth - 1) for each in _items(value))


def _is_container(value: object) -> TypeGuard[_Container]:
    return isinstance(value, dict | list | tuple)


def _items(result: _Container) -> Iterable[object]:
    return result.values() if isinstance(result, dict) else result
