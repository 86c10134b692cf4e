"""What a step ends with: whether it may, and as what it is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..bank import work_on
from ..content import encoded_size
from ..errors import CoatcheckError, InvalidArgumentError, StoreError
from ..records import is_pointer, names_pointer
from ..tools import Failure, as_failure
from ._means import Means
from ._model import Call
from ._schema import OutputSchema
from ._tools import parsed_arguments

_REPORTED_CHARS = 500


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a step."""

    held: object
    """What memory is handed: the value, or the `Artifact` that a pointer names."""
    error: str | None = None
    """What it says went wrong, where it is nothing else than that."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a result is none."""

    reason: str
    """In a few words."""
    reply: str
    """To the model."""


async def finished_result(call: Call, schema: OutputSchema, means: Means) -> Result | Refusal:
    """Return what a call of `finish_step` ends the step with, or why it does not."""
    try:
        payload = _payload(parsed_arguments(call.arguments), schema)
        if names_pointer(payload):
            value, held = await _behind(str(payload), schema, means)
        else:
            value, held = payload, payload
        mistake = await _mistake(value, schema)
        if mistake is not None and not names_pointer(payload):
            resolved = await _resolved(payload, schema, means)
            if await _mistake(resolved, schema) is None:
                value, held, mistake = resolved, resolved, None
    except StoreError:
        raise
    except CoatcheckError as error:
        return Refusal(str(error), str(as_failure(error)))
    if mistake is None and means.accept_result is not None:
        mistake = await means.accept_result(value)
    if mistake is not None:
        hint = "Correct what is named, and call finish_step again."
        failure = Failure("validation-failed", f"finish_step validation failed: {mistake}", hint)
        return Refusal(mistake, str(failure))
    return Result(held, None if schema.declares_error else reported_error(value))


async def text_result(text: str, means: Means) -> Result:
    """Return what a step without a schema ends with: its text, or what that points to."""
    said = text.strip()
    if not is_pointer(said):
        return Result(said)
    bank = means.context.bank
    try:
        # A part of an artifact is a value of its own.
        held = await bank.get(said) if "#" in said else await bank.find(said)
    except StoreError:
        raise
    except CoatcheckError:
        held = None
    return Result(said if held is None else held)


def reported_error(value: object) -> str | None:
    """Return the error that a value tells of: as ``{"error": "…"}``, or a list of only such."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    errors = [_error_in(item) for item in items]
    return None if not errors or None in errors else errors[0]


def _error_in(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return None
    error = cast("Mapping[str, object]", value).get("error")
    return error[:_REPORTED_CHARS] if isinstance(error, str) and error.strip() else None


def _payload(arguments: Mapping[str, Any], schema: OutputSchema) -> object:
    """Return the result among the arguments: the whole of them where it has no name.

    Raises:
        InvalidArgumentError: There are none.
    """
    if not arguments:
        raise InvalidArgumentError(
            "the result is missing", "Call finish_step with the step's result as `result`."
        )
    payload = arguments.get("result")
    if payload is not None or (set(arguments) == {"result"} and schema.allows_null):
        return payload
    return arguments


async def _behind(pointer: str, schema: OutputSchema, means: Means) -> tuple[object, object]:
    """Return the value behind a pointer, and what is held of it: where that does, its artifact.

    Raises:
        CoatcheckError: There is nothing behind it.
    """
    found = await means.context.bank.get(pointer)
    if "#" not in pointer and await _mistake(found, schema) is None:
        return found, await means.context.bank.find(pointer)
    # Text may hold the structure that the schema asks for.
    resolved = await _resolved(pointer, schema, means)
    return resolved, resolved


async def _resolved(payload: object, schema: OutputSchema, means: Means) -> object:
    resolved = await means.mirror.resolve({"result": payload}, schema.parameters)
    return resolved["result"]


async def _mistake(value: object, schema: OutputSchema) -> str | None:
    return await work_on(encoded_size(value), schema.mistake, value)
