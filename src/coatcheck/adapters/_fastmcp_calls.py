"""FastMCP's requests and results, read and written: for `fastmcp`, and with its extra only."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as mt
from fastmcp.exceptions import ResourceError, ValidationError
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.server.context import Context
from fastmcp.server.sessions import current_principal
from fastmcp.tools.base import Tool, ToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..errors import CoatcheckError
from ..mirror import Mirror
from ..records import Envelope, Pointer
from ..tools import Tool as OwnTool
from ..tools import as_failure, read_artifact_resource
from ._mcp_callers import Caller, caller_of
from ._mcp_results import shown_content
from ._sessions import Sessions

META_OUTPUT = "coatcheck/outputSchema"
"""Key in the `_meta` of a listed tool, under which its own `outputSchema` is kept."""


def calling(sessions: Sessions, context: Context | None, anonymous_ttl_seconds: float) -> Caller:
    """Return what serves whoever sent a request.

    Raises:
        ValidationError: The scope that it names is none.
    """
    asked = None if context is None else context.request_context
    over_http = asked is not None and asked.request is not None
    try:
        return caller_of(
            sessions,
            principal=current_principal(),
            meta=None if asked is None else asked.meta,
            session_id=_session_id(context) if context is not None and over_http else None,
            is_local=not over_http,
            anonymous_ttl_seconds=anonymous_ttl_seconds,
        )
    except CoatcheckError as error:
        raise ValidationError(str(as_failure(error))) from None


def listing(
    given: Sequence[Tool], mirror: Mirror, own: Mapping[str, OwnTool], warned: set[str]
) -> list[Tool]:
    """Return tools open to pointers, and our own behind them.

    Args:
        given: Those of the server. One with the name of ours is left out, as calls of it are
            answered by ours; the log tells so once.
        mirror: Opens schemas.
        own: Ours, by name.
        warned: The names that the log was told of.
    """
    for name in {tool.name for tool in given}.intersection(own) - warned:
        warned.add(name)
        logging.getLogger("coatcheck.adapters").warning(
            "the server has a tool %s of its own, which is not listed: ours is. Call it another"
            " name, or mount what has it under a namespace.",
            name,
        )
    return [
        *(_opened(tool, mirror) for tool in given if tool.name not in own),
        *map(_listed, own.values()),
    ]


async def read_resource(caller: Caller, uri: str) -> ResourceResult | None:
    """Return what an address of an artifact reads, None of any other.

    Raises:
        ResourceError: There is none, or it is too large to be read whole.
    """
    try:
        read = await read_artifact_resource(caller.session.bank, uri)
    except (CoatcheckError, OSError) as error:
        raise ResourceError(str(caller.failure(error))) from None
    if read is None:
        return None
    return ResourceResult([ResourceContent(read.content, mime_type=read.content_type)])


async def shown_result(
    caller: Caller, tool: str, result: ToolResult, given: Mapping[str, object]
) -> ToolResult:
    """Return a result as a model should see it; the same object where that is the result itself.

    Args:
        caller: Who called.
        tool: The name of the tool.
        result: What it returned.
        given: The arguments of the call, of which the journal keeps the pointers.
    """
    wire = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]
    blocks = {id(each): block for each, block in zip(wire, result.content, strict=True)}
    shown = await shown_content(
        caller.session.mirror,
        tool,
        {
            "content": wire,
            "structuredContent": result.structured_content,
            "isError": result.is_error,
        },
        ttl_seconds=caller.ttl_seconds,
        keyed=not caller.is_anonymous,
        given=[given],
    )
    if shown is None:
        return result
    content = [
        blocks.get(id(part)) or mt.TextContent(type="text", text=str(part))
        for part in shown.content
    ]
    links = [_link(part) for part in shown.content if isinstance(part, Envelope)]
    return result.model_copy(
        update={"content": [*content, *links], "structured_content": shown.structured}
    )


async def shown_error(
    caller: Caller, tool: str, text: str, given: Mapping[str, object]
) -> str | None:
    """Return what to show of the text of an error, None where that is the text itself."""
    wire = {"content": [{"type": "text", "text": text}], "isError": True}
    shown = await shown_content(
        caller.session.mirror,
        tool,
        wire,
        ttl_seconds=caller.ttl_seconds,
        keyed=not caller.is_anonymous,
        given=[given],
    )
    return None if shown is None else str(shown.content[0])


def _session_id(context: Context) -> str | None:
    """Return the session of the handshake era; later eras have none."""
    asked = context.request_context
    if asked is None or asked.request is None:
        return None
    if asked.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return None
    if context.transport == "sse":
        return context.session_id
    return asked.request.headers.get("mcp-session-id")


def _link(envelope: Envelope) -> mt.ResourceLink:
    """Return where programs read what an envelope stands for."""
    return mt.ResourceLink(
        type="resource_link",
        uri=f"art://{Pointer.parse(envelope.pointer).id}",
        name=envelope.pointer,
        mime_type=envelope.content_type,
        size=envelope.size_bytes,
        # What a model needs stands in the envelope, and would be paid for twice.
        annotations=mt.Annotations(audience=["user"]),
    )


def _opened(tool: Tool, mirror: Mirror) -> Tool:
    """Return a tool as it is listed. The one that runs is another."""
    changes: dict[str, Any] = {"parameters": mirror.schema(tool.parameters)}
    if tool.output_schema is not None and tool.name not in mirror.limits.never:
        # An envelope is not what the tool says that it returns, and clients check that.
        meta = {**(tool.meta or {}), META_OUTPUT: tool.output_schema}
        changes |= {"output_schema": None, "meta": meta}
    return tool.model_copy(update=changes)


def _listed(tool: OwnTool) -> Tool:
    """Return one of our own tools as it is listed. The middleware answers its calls."""
    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        annotations=mt.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
