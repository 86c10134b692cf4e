"""The tools of a pydantic-ai agent: ours, and what the model is shown of the others."""

from dataclasses import replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import RunContext, Tool, ToolDefinition
from pydantic_ai.exceptions import ModelRetry, ToolFailed, UserError
from pydantic_ai.messages import ToolCallPart

from ..bank import misfit
from ..content import loads
from ..mirror import Mirror, holds_pointer
from ..tools import Failure, as_failure
from ..tools import Tool as OwnTool
from ._sessions import Session, Sessions

_SCHEMA = "coatcheck.schema"
"""In the metadata of a tool: its own schema, before it was widened."""

Written = str | dict[str, Any]
"""Arguments as a model wrote them: as JSON text, or parsed by its provider."""

Told = type[ToolFailed] | type[ModelRetry]


def own_tool(sessions: Sessions, tool: OwnTool) -> Tool[Any]:
    """Return one of our tools, which serves the conversation that a call belongs to."""

    # A model may call an argument what it likes, `ctx` too.
    async def call(ctx: RunContext[Any], /, **arguments: object) -> str:
        return await sessions.of(ctx.conversation_id).tools[tool.name].call(arguments)

    schema = dict(tool.parameters)
    return Tool.from_schema(call, tool.name, tool.description, schema, takes_ctx=True)


def widened(mirror: Mirror, tool_def: ToolDefinition) -> ToolDefinition:
    """Return a tool's definition whose schema lets pointers in; the same where it has no place."""
    schema = tool_def.parameters_json_schema
    wider = mirror.schema(schema)
    if wider == schema:
        return tool_def
    metadata = {_SCHEMA: schema, **(tool_def.metadata or {})}
    return replace(tool_def, parameters_json_schema=wider, metadata=metadata)


def check_run(ctx: RunContext[Any]) -> None:
    """Check that hooks may do work of their own in a run.

    Raises:
        UserError: It is part of a durable workflow.
    """
    if any(getattr(each, "in_durable_context", False) for each in ctx.capabilities.values()):
        raise UserError(
            "CoatcheckCapability reaches its store from hooks, which a durable workflow would do"
            " again at each replay. Leave it out, and give the agent mirrored tools that run as"
            " steps or activities: coatcheck.mirror(function, bank)."
        )


def unquoted(
    session: Session, error: Exception, kind: Told, call: ToolCallPart | None, read: object
) -> Exception:
    """Return what is told of arguments that do not fit, of which pydantic quotes the values.

    Args:
        session: Whose journal is told of the call.
        error: What validation raised.
        kind: How it is told instead, where pointers were resolved.
        call: What the model wrote.
        read: The arguments that were validated.
    """
    if call is None or read is call.args or not read or not isinstance(error, ValidationError):
        return error
    session.mirror.note(call.tool_name, (), given=(call.args_as_dict(),), is_error=True)
    return kind(str(as_failure(misfit(error, "the argument"))))


async def resolved(
    session: Session, tool_def: ToolDefinition, written: Written, kind: Told
) -> Written:
    """Return a call's arguments with what pointers stand for; the same where there are none.

    Those of our own tools, which nothing else checks, are returned where they are an object.

    Raises:
        ModelRetry, ToolFailed: A pointer stands for nothing; `kind` says which.
    """
    given = _parsed(written)
    own = session.tools.get(tool_def.name)
    if own is not None and not isinstance(given, dict):
        raise kind(await own.call(written))
    # Where it is no object, what is wrong with it is told as ever.
    if own is not None or not isinstance(given, dict) or not holds_pointer(cast("object", given)):
        return written
    schema = (tool_def.metadata or {}).get(_SCHEMA, tool_def.parameters_json_schema)
    found = await session.arguments(tool_def.name, cast("dict[str, object]", given), schema)
    if isinstance(found, Failure):
        raise kind(str(found))
    return dict(found)


def _parsed(written: Written) -> object:
    """Return what JSON text holds; None where it is none."""
    if not isinstance(written, str):
        return written
    try:
        return loads(written.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
