"""Tools as ADK declares them to a model: for `google_adk`, and with its extra only."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, cast

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ..bank import misfit
from ..content import loads
from ..errors import shown
from ..mirror import Mirror, holds_pointer, with_verbatim_marks
from ..tools import Failure, Tool, as_failure
from ._sessions import Session


class OwnTool(BaseTool):
    """One of our tools as ADK's, which answers for the session it is called in.

    Args:
        tool: Ours.
        session_of: Returns what serves a call.
    """

    def __init__(self, tool: Tool, session_of: Callable[[ToolContext], Session]) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._parameters = dict(tool.parameters)
        self._session_of = session_of

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> object:
        """Return the reply, which is a JSON object, as one: ADK would wrap a text into another."""
        reply = await self._session_of(tool_context).tools[self.name].call(args)
        return loads(reply.encode())


def takes_functions(config: types.GenerateContentConfig) -> bool:
    """Return whether functions may be listed: not beside built-in tools, nor with JSON output."""
    tools = _tools(config)
    if not tools:
        return config.response_mime_type in {None, "text/plain"}
    return any(isinstance(each, types.Tool) and each.function_declarations for each in tools)


def open_to_pointers(
    config: types.GenerateContentConfig, tools: Mapping[str, BaseTool], mirror: Mirror
) -> None:
    """Let pointers into what a request shows of tools, but for our own.

    Args:
        config: Of the request; what it shows is replaced.
        tools: Those that run, by name. They stay as they are.
        mirror: Says where a pointer may stand.
    """
    opened: list[object] = []
    for each in _tools(config):
        if isinstance(each, types.Tool) and each.function_declarations:
            declarations = [
                _opened(known, tools.get(known.name or ""), mirror)
                for known in each.function_declarations
            ]
            opened.append(each.model_copy(update={"function_declarations": declarations}))
        else:
            opened.append(each)
    config.tools = cast("Any", opened)


def parameters_of(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON schema of a tool's arguments, empty where it declares none."""
    declaration = tool._get_declaration()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - ADK has no other
    return {} if declaration is None else _parameters(declaration, tool)


def misfit_of(
    tool: BaseTool, given: Mapping[str, object], found: Mapping[str, object]
) -> Failure | None:
    """Return why a function cannot take what pointers stand for, None where it can.

    ADK hands over whatever it is given, and a function that fails on it would end the run.

    Args:
        tool: Those that are no function are left to check for themselves.
        given: The arguments as the model wrote them.
        found: The same with what pointers stand for.
    """
    if not isinstance(tool, FunctionTool):
        return None
    name = ""
    try:
        for name, parameter in signature(tool.func, eval_str=True).parameters.items():
            if parameter.annotation is not Parameter.empty and holds_pointer([given.get(name)]):
                TypeAdapter[object](parameter.annotation).validate_python(found[name])
    except ValidationError as error:
        return as_failure(misfit(error, f"the argument {shown(name)}"))
    except (NameError, PydanticUserError, TypeError, ValueError):
        return None  # what it declares is for itself to read
    return None


def _tools(config: types.GenerateContentConfig) -> list[object]:
    return cast("list[object]", config.tools or [])  # pyright: ignore[reportUnknownMemberType]


def _opened(
    declaration: types.FunctionDeclaration, tool: BaseTool | None, mirror: Mirror
) -> types.FunctionDeclaration:
    if isinstance(tool, OwnTool):
        return declaration
    # A result may be an envelope, whatever the tool says of it.
    declaration = declaration.model_copy(update={"response": None, "response_json_schema": None})
    known = _parameters(declaration, tool)
    opened = mirror.schema(known)
    if opened == known:
        return declaration
    if declaration.parameters is None:
        return declaration.model_copy(update={"parameters_json_schema": opened})
    nodes = dict(declaration.parameters.properties or {})
    for name, node in opened["properties"].items():
        if node != known["properties"][name]:
            # The API takes `any_of` with nothing beside it.
            pointer = types.Schema.model_validate(node["anyOf"][-1])
            nodes[name] = types.Schema(any_of=[nodes[name], pointer])
    parameters = declaration.parameters.model_copy(update={"properties": nodes})
    return declaration.model_copy(update={"parameters": parameters})


def _parameters(declaration: types.FunctionDeclaration, tool: BaseTool | None) -> Mapping[str, Any]:
    """Return the JSON schema of the arguments, which ADK declares in one of two forms.

    With the marks of `Verbatim`, which some versions lose.
    """
    known: Mapping[str, Any]
    if declaration.parameters is None:
        known = dict(declaration.parameters_json_schema or {})
    else:
        schema = declaration.parameters.json_schema
        known = schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return with_verbatim_marks(known, tool.func) if isinstance(tool, FunctionTool) else known
