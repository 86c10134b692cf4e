"""One function tool of OpenAI Agents, mirrored: its arguments, its result, and who checks it."""

import copy
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from agents import (
    FunctionTool,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from agents.tool import ValidToolOutputPydanticModelsTypeAdapter as Output
from agents.tool_context import ToolContext
from pydantic import BaseModel, ValidationError

from ..content import dumps
from ..errors import UnencodableValueError
from ..records import Envelope
from ..tools import Failure, Tool, as_failure
from ._mcp_results import as_block, shown_content
from ._sessions import Session
from ._strict import opened

_Run = Callable[[ToolContext[Any], str], Awaitable[object]]
_OUTPUTS = ("text", "image", "file")


def mirrored(session: Session, tool: FunctionTool) -> FunctionTool:
    """Return a copy of a tool that takes pointers, and shows a large result as one.

    Whoever decides on a call decides on what the tool will get, not on a pointer to it.
    """
    wider = copy.copy(tool)
    call = _Call(session, tool, wider.on_invoke_tool)
    wider.on_invoke_tool = call.invoke
    schema, is_strict = tool.params_json_schema, tool.strict_json_schema
    wider.params_json_schema = opened(session.mirror, schema, is_strict=is_strict)
    wider.output_json_schema = None  # an envelope is not what it says
    if callable(tool.needs_approval):
        wider.needs_approval = call.needs_approval
    if tool.tool_input_guardrails:
        wider.tool_input_guardrails = [call.guarded(each) for each in tool.tool_input_guardrails]
    return wider


class OwnTool(FunctionTool):
    """One of ours, as the SDK's."""


def own(tool: Tool) -> OwnTool:
    """Return a tool of ours as one of the SDK's."""

    async def invoke(_: ToolContext[Any], written: str) -> str:
        return await tool.call(written)

    schema = dict(tool.parameters)
    return OwnTool(tool.name, tool.description, schema, invoke, strict_json_schema=False)


class _Call:
    """Calls of one tool.

    Args:
        session: Whose pointers they take.
        tool: As it was given.
        run: Invokes it.
    """

    def __init__(self, session: Session, tool: FunctionTool, run: _Run) -> None:
        self._session = session
        self._tool = tool
        self._run = run

    async def invoke(self, context: ToolContext[Any], written: str) -> object:
        found = await self._resolved(written)
        if isinstance(found, Failure):
            return str(found)
        result, mirror = await self._run(context, found), self._session.mirror
        name, call_id, given = self._tool.name, context.tool_call_id, (_parsed(written),)
        outputs = _outputs(result)
        if outputs is not None:
            parts = {"content": outputs}
            shown = await shown_content(mirror, name, parts, call_id=call_id, given=given)
            return result if shown is None else [as_block(each) for each in shown.content]
        whole = await mirror.offload(result, name, call_id, given=given)
        return str(whole) if isinstance(whole, Envelope) else whole

    async def needs_approval(
        self, context: RunContextWrapper[Any], given: dict[str, Any], call_id: str
    ) -> bool:
        found = await self._resolved(json.dumps(given))
        if isinstance(found, Failure):
            return True
        # The SDK lets a policy decide only where validation changes nothing.
        prepare = getattr(self._run, "prepare_arguments", None)
        prepared = None if prepare is None else prepare(found, self._tool.name)
        if prepared is not None and not prepared.unchanged:
            return True
        policy = cast("Any", self._tool.needs_approval)
        return bool(await policy(context, _parsed(found), call_id))

    def guarded(self, guardrail: ToolInputGuardrail[Any]) -> ToolInputGuardrail[Any]:
        async def run(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
            found = await self._resolved(data.context.tool_arguments)
            if isinstance(found, str):  # else the tool is not called
                context = copy.copy(data.context)
                context.tool_arguments = found
                data = replace(data, context=context)
            return await guardrail.run(data)

        return ToolInputGuardrail(run, name=guardrail.get_name())

    async def _resolved(self, written: str) -> str | Failure:
        given = _parsed(written)
        schema = self._tool.params_json_schema
        found = await self._session.arguments(self._tool.name, given, schema)
        if found is given:
            return written
        if isinstance(found, Failure):
            return found
        try:
            return dumps(found).decode("utf-8", "surrogatepass")
        except UnencodableValueError as error:  # nested too deep, for one
            return as_failure(error)


def _parsed(written: str) -> dict[str, Any]:
    """Return arguments by name; none where they are no JSON object, which the SDK will say."""
    try:
        given: object = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _outputs(result: object) -> list[Mapping[str, Any]] | None:
    """Return a result in the SDK's own forms as blocks, None where it is a plain value."""
    parts = cast("list[object]", result) if isinstance(result, list | tuple) else [result]
    outputs: list[Mapping[str, Any]] = []
    for part in parts:
        if not isinstance(part, BaseModel | Mapping):
            return None
        if isinstance(part, Mapping) and cast("Any", part).get("type") not in _OUTPUTS:
            return None
        try:
            outputs.append(Output.validate_python(part).model_dump(exclude_none=True))
        except ValidationError:
            return None
    return outputs or None
