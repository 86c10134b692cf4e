"""Tools of LangChain and ours in one another's form: for `langchain`, and with its extra only."""

from collections.abc import Callable, Container, Iterable, Sequence
from functools import wraps
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..bank import portal
from ..mirror import Mirror
from ..tools import Tool, is_failure
from ._sessions import Session, check_names

Listed = BaseTool | dict[str, Any]
"""A tool of a request; as a dict, one that the provider runs."""

_MADE = "_coatcheck_made"


def own_tool(tool: Tool, session_of: Callable[[RunnableConfig], Session]) -> BaseTool:
    """Return a tool of ours as LangChain's, which answers for the thread that it is called in."""

    async def coroutine(config: RunnableConfig, arguments: dict[str, object]) -> str:
        reply = await session_of(config).tools[tool.name].call(arguments)
        if is_failure(reply):
            raise ToolException(reply)
        return reply

    def func(config: RunnableConfig, arguments: dict[str, object]) -> str:
        return portal().run(coroutine(config, arguments))

    return OwnTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        func=func,
        coroutine=coroutine,
        handle_tool_error=True,
    )


class OwnTool(StructuredTool):
    """One of ours. Takes all arguments as one: a model may call one of them `self` or `config`."""

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        _, arguments = super()._to_args_and_kwargs(tool_input, tool_call_id)
        return (), {"arguments": arguments}


def noting(tool: BaseTool) -> BaseTool:
    """Return a copy of a tool that notes what its function returns, for `made_by`.

    LangChain makes a text of it before any hook sees it.
    """
    made: list[object] = []
    with_artifact = tool.response_format == "content_and_artifact"
    inner, waiting = tool._run, tool._arun  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what a tool overrides

    def note(value: object) -> None:
        pair = cast("tuple[object, ...]", value if isinstance(value, tuple) else ())
        made[:] = [pair[0] if with_artifact and pair else value]  # of a retry the last

    # Wrapped, as LangChain looks at the signature for what it hands over besides.
    @wraps(inner)
    def run(*args: object, **given: object) -> object:
        value: object = inner(*args, **given)
        note(value)
        return value

    @wraps(waiting)
    async def arun(*args: object, **given: object) -> object:
        value: object = await waiting(*args, **given)
        note(value)
        return value

    copied: Any = tool.model_copy()
    copied.__dict__.update({"_run": run, "_arun": arun, _MADE: made})
    return cast("BaseTool", copied)


def made_by(tool: BaseTool | None) -> Sequence[object]:
    """Return what the function of a copy returned last, if anything: the content of a pair."""
    return () if tool is None else tool.__dict__.get(_MADE, ())


class Schemas:
    """The JSON schemas of tools, each made once: LangChain takes a millisecond for one.

    Args:
        mirror: Opens them to pointers.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._made: WeakKeyDictionary[type, tuple[dict[str, Any], dict[str, Any]]] = (
            WeakKeyDictionary()
        )

    def of(self, tool: BaseTool) -> dict[str, Any]:
        """Return the schema of what a model gives to a tool, without what is injected."""
        return self._both(tool)[0]

    def listed(self, tools: Iterable[Listed], own: Container[object]) -> list[Listed]:
        """Return tools as a model is shown them, open to pointers. They are not those that run.

        Raises:
            ValueError: One has the name of one of ours.
        """
        shown: list[Listed] = []
        for tool in tools:
            if isinstance(tool, OwnTool):
                shown.append(tool)
                continue
            check_names([tool.get("name") if isinstance(tool, dict) else tool.name], own)
            shown.append(tool if isinstance(tool, dict) else self._opened(tool))
        return shown

    def _opened(self, tool: BaseTool) -> BaseTool:
        schema, wider = self._both(tool)
        return tool if wider == schema else tool.model_copy(update={"args_schema": wider})

    def _both(self, tool: BaseTool) -> tuple[dict[str, Any], dict[str, Any]]:
        declared: object = tool.args_schema
        made = self._made.get(declared) if isinstance(declared, type) else None
        if made is None:
            schema = convert_to_openai_tool(tool)["function"]["parameters"]
            made = schema, self._mirror.schema(schema)
            if isinstance(declared, type):  # a dict may be changed
                self._made[declared] = made
        return made
