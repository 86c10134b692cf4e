"""Tools of LangChain and ours in one another's form: for `langchain`, and with its extra only."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..bank import portal
from ..mirror import Mirror
from ..tools import Tool, is_failure
from ._sessions import Session


def own_tool(tool: Tool, session_of: Callable[[RunnableConfig], Session]) -> BaseTool:
    """Return a tool of ours as LangChain's, which answers for the thread that it is called in."""

    async def coroutine(config: RunnableConfig, **arguments: object) -> str:
        reply = await session_of(config).tools[tool.name].call(arguments)
        if is_failure(reply):
            raise ToolException(reply)
        return reply

    def func(config: RunnableConfig, **arguments: object) -> str:
        return portal().run(coroutine(config, **arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        func=func,
        coroutine=coroutine,
        handle_tool_error=True,
    )


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

    def opened(self, tool: BaseTool) -> BaseTool:
        """Return a tool as a model is shown it, open to pointers. It is not the one that runs."""
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
