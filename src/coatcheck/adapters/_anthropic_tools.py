"""One tool of the Anthropic SDK's runner, mirrored: its arguments, its result and its errors."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from anthropic.lib.tools import (
    BetaAsyncBuiltinFunctionTool,
    BetaAsyncFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionTool,
    ToolError,
    beta_async_tool,
    beta_tool,
)
from pydantic import ValidationError

from ..bank import misfit, portal
from ..records import Envelope
from ..tools import Failure, Tool, as_failure, is_failure
from ._mcp_results import as_block, shown_content
from ._sessions import Session
from ._strict import opened

SYNC = (BetaFunctionTool, BetaBuiltinFunctionTool)
ASYNC = (BetaAsyncFunctionTool, BetaAsyncBuiltinFunctionTool)

_TEXTS: Mapping[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
"""What the tools that Anthropic defines take, of which no schema is said."""


def mirrored(session: Session, tool: object) -> object:
    """Return a tool of the same kind; what is none that runs here, or is ours, as it is."""
    inner = cast("Any", tool)
    if not isinstance(tool, SYNC + ASYNC):
        return inner
    if getattr(inner, "is_bounded", False):
        return inner
    call = _Call(session, inner.name, inner.to_dict())

    async def run_async(_: object, given: object) -> object:
        arguments = await call.arguments(given)
        try:
            result = await inner.call(arguments)
        except Exception as error:
            failed = await call.failed(error, given, arguments)
            if failed is error:
                raise
            raise failed from error
        return await call.shown(result, given)

    def run(_: object, given: object) -> object:
        arguments = portal().run(call.arguments(given))
        try:
            result = inner.call(arguments)
        except Exception as error:
            failed = portal().run(call.failed(error, given, arguments))
            if failed is error:
                raise
            raise failed from error
        return portal().run(call.shown(result, given))

    def to_dict(_: object) -> Mapping[str, Any]:
        return call.definition(inner.to_dict())

    kind = cast("type[object]", type(inner))
    changed = {"call": run_async if isinstance(tool, ASYNC) else run, "to_dict": to_dict}
    copied: object = object.__new__(type(kind.__name__, (kind,), changed))
    # One state for both: what the tool opens, a runner closes on either.
    copied.__dict__ = inner.__dict__
    return copied


def name_of(tool: object) -> object:
    """Return the name of a tool, or of a definition; None where it has none, as a toolset."""
    if isinstance(tool, Mapping):
        return cast("Mapping[str, object]", tool).get("name")
    return getattr(tool, "name", None)


def own(tool: Tool, *, is_async: bool) -> object:
    """Return a tool of ours as one of the SDK's."""

    async def call(**given: object) -> str:
        reply = await tool.call(given)
        if is_failure(reply):
            raise ToolError(reply)
        return reply

    def blocking(**given: object) -> str:
        return portal().run(call(**given))

    name, told, schema = tool.name, tool.description, dict(tool.parameters)
    if is_async:
        return beta_async_tool(call, name=name, description=told, input_schema=schema)
    return beta_tool(blocking, name=name, description=told, input_schema=schema)


def _blocks(tool: str, result: object) -> list[dict[str, Any]]:
    """Return the content blocks that a tool returned.

    Raises:
        ToolError: They are none, which the API would refuse.
    """
    kind = type(result).__name__
    several = isinstance(result, Iterable) and not isinstance(result, Mapping)
    blocks: list[Any] = list(cast("Iterable[Any]", result)) if several else [result]
    if several and all(isinstance(each, Mapping) and "type" in each for each in blocks):
        return blocks
    raise ToolError(
        f"{tool} returned a {kind}. A tool has to return text, as json.dumps"
        " writes of a value, or content blocks."
    )


class _Call:
    """What is done before and after each call of the tool of a name and a definition."""

    def __init__(self, session: Session, name: str, definition: Mapping[str, Any]) -> None:
        self._session = session
        self._name = name
        self._schema: Mapping[str, Any] = definition.get("input_schema", _TEXTS)

    def definition(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the API is told of the tool, its parameters open to pointers."""
        if "input_schema" not in given:
            return given
        schema, is_strict = given["input_schema"], bool(given.get("strict"))
        return {**given, "input_schema": opened(self._session.mirror, schema, is_strict=is_strict)}

    async def arguments(self, given: object) -> object:
        """Return what the tool is called with.

        Raises:
            ToolError: There is nothing behind a pointer.
        """
        if not isinstance(given, Mapping):
            return given
        named = cast("Mapping[str, object]", given)
        found = await self._session.arguments(self._name, named, self._schema)
        if isinstance(found, Failure):
            raise ToolError(str(found))
        return found

    async def shown(self, result: object, given: object, *, is_error: bool = False) -> object:
        """Return a result as the model should see it; the same object where it stays."""
        if result is None or isinstance(result, Envelope):
            return result and str(result)
        is_text = isinstance(result, str)
        blocks = [as_block(result)] if is_text else _blocks(self._name, result)
        parts = {"content": blocks, "isError": is_error}
        shown = await shown_content(self._session.mirror, self._name, parts, given=(given,))
        if shown is None:
            return cast("object", result) if isinstance(result, str | list) else blocks
        if is_text:
            return str(shown.content[0])
        return [as_block(each) for each in shown.content]

    async def failed(self, error: Exception, given: object, found: object) -> Exception:
        """Return an error as the runner should see it; the same where it is small."""
        reason = error.__cause__
        if found is not given and isinstance(reason, ValidationError):
            # The runner would log it, and its own words quote what a pointer stands for.
            failure = as_failure(misfit(reason, "the arguments"))
            return ToolError(str(await self.shown(str(failure), given, is_error=True)))
        if isinstance(error, ToolError):
            content = await self.shown(error.content, given, is_error=True)
            return error if content is error.content else ToolError(cast("Any", content))
        # The runner would cut what is long.
        text = f"{type(error).__name__}: {error}"
        content = await self.shown(text, given, is_error=True)
        return error if content is text else ToolError(str(content))
