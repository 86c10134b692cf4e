"""A tool for a model, free of any framework; and how its arguments are checked."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..content import loads
from ..errors import CoatcheckError, InvalidArgumentError, shown
from ._failure import as_failure

_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool}
_ASKED = {"string": "a string", "integer": "an integer", "boolean": "true or false"}

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call. Its replies are bounded, and never offloaded."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, an object."""
    call: Callable[[Arguments | str], Awaitable[str]]
    """Takes the arguments by name or as JSON text, and returns the reply, failures included."""


def tool(
    name: str,
    description: str,
    properties: Mapping[str, str],
    required: tuple[str, ...],
    work: Callable[[Arguments], Awaitable[str]],
) -> Tool:
    """Return a tool whose `work` gets checked arguments, and whose errors become failures.

    Args:
        name: As the model calls it.
        description: What the model is told.
        properties: JSON type by argument name.
        required: Arguments that must be there.
        work: Answers a call.
    """

    async def call(arguments: Arguments | str) -> str:
        try:
            return await work(_checked(arguments, properties, required))
        except (CoatcheckError, OSError) as error:
            return str(as_failure(error))

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument: {"type": type_} for argument, type_ in properties.items()},
    }
    if required:
        schema["required"] = list(required)
    return Tool(name, description, schema, call)


def _checked(
    arguments: Arguments | str, properties: Mapping[str, str], required: tuple[str, ...]
) -> Arguments:
    given = _parsed(arguments)
    unknown = [name for name in given if name not in properties]
    if unknown:
        raise InvalidArgumentError(
            f"there is no argument {shown(unknown[0])}",
            f"The arguments are: {', '.join(properties)}.",
        )
    # A model that has nothing to say of an argument often says null.
    said = {name: value for name, value in given.items() if value is not None}
    missing = [name for name in required if name not in said]
    if missing:
        raise InvalidArgumentError(f"{missing[0]} is required", f"Give {missing[0]}.")
    for name, value in said.items():
        wanted = _TYPES[properties[name]]
        # To Python, true and false are integers.
        if not isinstance(value, wanted) or isinstance(value, bool) is not (wanted is bool):
            asked = _ASKED[properties[name]]
            hint = f"Give {name} as {asked}" + (", without quotes." if wanted is bool else ".")
            raise InvalidArgumentError(f"{name} must be {asked}, got {shown(value)}", hint)
    return said


def _parsed(arguments: Arguments | str) -> Mapping[str, Any]:
    given: object = arguments
    if isinstance(arguments, str):
        try:
            given = loads(arguments.encode("utf-8", "surrogatepass")) if arguments.strip() else {}
        except ValueError:
            given = None
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(
            "the arguments are not a JSON object", "Pass the arguments by name, as one object."
        )
    return cast("Mapping[str, Any]", given)
