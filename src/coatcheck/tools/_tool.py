"""A tool for a model, free of any framework; and how its arguments are checked."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from ..content import loads
from ..errors import CoatcheckError, InvalidArgumentError, shown
from ..records import dataclass
from ._failure import as_failure

_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "objects": list,
}
_ASKED = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "a list of strings",
    "objects": "a list of objects",
}

Arguments = Mapping[str, Any]
Properties = Mapping[str, str | Mapping[str, Any]]
"""By name the JSON type of an argument, or its whole schema. Lists are of strings, or of objects
where their schema says so, and a schema without a type takes anything."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, an object."""
    call: Callable[[Arguments | str], Awaitable[str]]
    """Takes the arguments by name or as JSON text, and returns the reply, failures included."""
    parallel: bool = True
    """Whether it may run beside the other calls of a turn; else each call of it runs alone."""
    is_bounded: bool = False
    """Whether it takes pointers as text and bounds its replies by itself, as all of ours do: then
    it is not mirrored."""


def tool(
    name: str,
    description: str,
    properties: Properties,
    required: tuple[str, ...],
    work: Callable[[Arguments], Awaitable[str]],
    *,
    is_closed: bool = False,
    parallel: bool = True,
) -> Tool:
    """Return a tool whose `work` gets checked arguments, and whose errors become failures.

    Args:
        name: As the model calls it.
        description: What the model is told.
        properties: JSON types or schemas by argument name.
        required: Arguments that must be there.
        work: Answers a call.
        is_closed: Whether the schema says that there are no other arguments. There never are.
        parallel: Whether it may run beside the other calls of a turn.
    """

    async def call(arguments: Arguments | str) -> str:
        try:
            return await work(_checked(arguments, properties, required))
        except (CoatcheckError, OSError) as error:
            return str(as_failure(error))

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            argument: {"type": asked} if isinstance(asked, str) else dict(asked)
            for argument, asked in properties.items()
        },
    }
    if required:
        schema["required"] = list(required)
    if is_closed:
        schema["additionalProperties"] = False
    return Tool(name, description, schema, call, parallel, is_bounded=True)


def _checked(
    arguments: Arguments | str, properties: Properties, required: tuple[str, ...]
) -> Arguments:
    given = _parsed(arguments)
    unknown = [name for name in given if name not in properties]
    if unknown:
        raise InvalidArgumentError(
            f"there is no argument {shown(unknown[0])}",
            f"The arguments are: {', '.join(properties)}.",
        )
    types = {name: _type(asked) for name, asked in properties.items()}
    # A model that has nothing to say of an argument often says null; where anything goes, that
    # is a value.
    said = {
        name: value for name, value in given.items() if value is not None or types[name] is None
    }
    missing = [name for name in required if name not in said]
    if missing:
        raise InvalidArgumentError(f"{missing[0]} is required", f"Give {missing[0]}.")
    return {name: _fitting(name, value, types[name]) for name, value in said.items()}


def _type(asked: str | Mapping[str, Any]) -> str | None:
    if isinstance(asked, str):
        return asked
    type_ = asked.get("type")
    is_of_objects = type_ == "array" and asked.get("items", {}).get("type") == "object"
    return "objects" if is_of_objects else type_


def _fitting(name: str, value: object, type_: str | None) -> object:
    """Return the value of an argument that is of its type."""
    if type_ is None:
        return value
    wanted = _TYPES[type_]
    if wanted is list:
        of: type = dict if type_ == "objects" else str
        # One item where a list is asked for can mean one thing only.
        items = cast("list[object]", [value] if isinstance(value, of) else value)
        if isinstance(items, list) and all(isinstance(item, of) for item in items):
            return items
    # To Python, true and false are integers.
    elif isinstance(value, wanted) and isinstance(value, bool) is (wanted is bool):
        return value
    asked = _ASKED[type_]
    hint = f"Give {name} as {asked}" + (", without quotes." if wanted is bool else ".")
    raise InvalidArgumentError(f"{name} must be {asked}, got {shown(value)}", hint)


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
