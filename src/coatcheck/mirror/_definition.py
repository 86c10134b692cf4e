"""A mirrored tool as it is described to a model: name, description, JSON schema."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ..content import dumps, visible
from ._schema import bare, closed


def definition(
    tool: Callable[..., Any],
    *,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    input_examples: Sequence[Mapping[str, object]] = (),
    strict: bool = False,
) -> dict[str, Any]:
    """Return `name`, `description` and `parameters` of a tool, as a model is told of it.

    Args:
        tool: A mirrored tool, or any function.
        description: None takes the docstring.
        parameters: JSON schema of the arguments; None takes what the signature says.
        input_examples: Arguments of calls, listed at the end of the description.
        strict: Whether the schema takes no other arguments than those it names, in objects
            inside it too; the definition then has ``strict`` beside it.

    Raises:
        UnencodableValueError: An example is no JSON.

    >>> def find(text: str, limit: int = 5) -> list[str]:
    ...     '''Find pages.'''
    ...     return []
    >>> found = definition(find, input_examples=[{"text": "moss"}])
    >>> print(found["description"])
    Find pages.
    <BLANKLINE>
    Examples:
    1. {"text":"moss"}
    >>> found["parameters"]["required"]
    ['text']
    """
    if parameters is None:
        from pydantic import TypeAdapter

        parameters = bare(TypeAdapter(cast("Any", tool)).json_schema())
    said = tool.__doc__ if description is None else description
    defined: dict[str, Any] = {
        "name": tool.__name__,
        "description": _with_examples(inspect.cleandoc(said or ""), input_examples),
        "parameters": closed(parameters) if strict else parameters,
    }
    if strict:
        defined["strict"] = True
    return defined


def _with_examples(description: str, examples: Sequence[Mapping[str, object]]) -> str:
    if not examples:
        return description
    lines = [
        f"{number}. {visible(dumps(example).decode('utf-8', 'surrogatepass'))}"
        for number, example in enumerate(examples, 1)
    ]
    return "\n".join([description, "", "Examples:", *lines]).lstrip()
