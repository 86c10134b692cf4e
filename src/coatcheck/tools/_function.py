"""A tool as a plain function, of which any framework makes a tool of its own."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from ..bank import portal
from ._tool import Tool

_TYPES = {"string": str, "integer": int, "boolean": bool}


def as_function(tool: Tool, *, blocking: bool = False) -> Callable[..., Any]:
    """Return a tool as a function with typed parameters and a docstring.

    With it, an agent whose tools are mirrored functions reads on in what was banked.

    Args:
        tool: One whose arguments are texts, integers and flags.
        blocking: For frameworks whose tools are called without an event loop: a function that
            is not awaited.

    Raises:
        ValueError: An argument of the tool is of another type.

    >>> from coatcheck import Bank
    >>> from coatcheck.stores import MemoryStore
    >>> from coatcheck.tools import retrieval_tools
    >>> [tool] = retrieval_tools(Bank(MemoryStore()))
    >>> read = as_function(tool, blocking=True)
    >>> read(artifactId="report")[:28]
    '{"error":"unknown-pointer","'
    """

    async def function(**arguments: object) -> str:
        return await tool.call(arguments)

    def waiting(**arguments: object) -> str:
        return portal().run(function(**arguments))

    made: Any = waiting if blocking else function
    parameters = _parameters(tool)
    made.__name__ = made.__qualname__ = tool.name
    # Some frameworks refuse a parameter that the docstring does not name.
    told = "".join(f"    {name}: See above.\n" for name in parameters)
    made.__doc__ = f"{tool.description}\n\nArgs:\n{told}"
    made.__signature__ = inspect.Signature(list(parameters.values()), return_annotation=str)
    annotations = {name: parameter.annotation for name, parameter in parameters.items()}
    made.__annotations__ = {**annotations, "return": str}
    return cast("Callable[..., Any]", made)


def _parameters(tool: Tool) -> dict[str, inspect.Parameter]:
    required = tool.parameters.get("required", ())
    parameters: dict[str, inspect.Parameter] = {}
    for name, schema in tool.parameters["properties"].items():
        type_ = _TYPES.get(schema.get("type"))
        if type_ is None:
            raise ValueError(f"{tool.name} takes more than texts, integers and flags: {name}")
        parameters[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in required else None,
            annotation=type_ if name in required else type_ | None,
        )
    return parameters
