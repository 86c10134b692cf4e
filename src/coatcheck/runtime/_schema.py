"""The schema of a step's result: what a model is shown of it, and whether a value fits."""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Protocol, cast

from ..content import dumps, loads
from ..errors import UnencodableValueError
from ._plan import Schema

_COMBINED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const"})
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
_DEEPEST = 200
_DETAIL_CHARS = 500


class _Validator(Protocol):
    def validate(self, instance: object) -> None: ...


def output_schema(authored: Schema | None, what: str) -> "OutputSchema | None":
    """Return the schema of a step, None where it has none."""
    if authored is None:
        return None
    if isinstance(authored, str):
        return _read_schema(authored, what)
    try:
        return _read_schema(dumps(authored).decode("utf-8", "replace"), what)
    except UnencodableValueError:
        return OutputSchema(authored, what)


class OutputSchema:
    """The schema of a step, as its author wrote it. Nothing is fetched for it.

    One that is no valid JSON Schema, or refers to another document, counts as none: any result
    fits, and `problem` says why.

    Args:
        authored: A JSON schema, or its text. Of another's making: it may be anything.
        what: What it is of, for a description where it has none.

    Raises:
        ImportError: The `agent` extra is missing.

    >>> OutputSchema({"required": ["n"]}, "step result").mistake({"m": 1})
    'it: "n" is a required property'
    """

    def __init__(self, authored: Schema, what: str) -> None:
        self.problem: str | None = None
        self._validator: _Validator | None = None
        schema = _as_object(authored)
        if schema is None:
            self.problem = "it is no JSON object"
        else:
            self._validator, self.problem = _validator(schema)
        self._authored: dict[str, Any] = {} if self._validator is None else cast("Any", schema)
        self.shown = _shown(self._authored, what)
        """The schema as the model is told of it."""
        self.parameters = _parameters(self.shown)
        """JSON schema of the arguments of `finish_step`."""

    @cached_property
    def declares_error(self) -> bool:
        """Whether results, or their items, have a field ``error`` that means what it says."""
        return _declares(self._authored) or _declares(self._authored.get("items"))

    @cached_property
    def allows_null(self) -> bool:
        """Whether null is a result."""
        return self._validator is not None and self.mistake(None) is None

    def mistake(self, value: object) -> str | None:
        """Return what is wrong with a value, by place; None where it fits. Never quotes it."""
        if self._validator is None:
            return None
        try:
            self._validator.validate(value)
        except ValueError as error:
            return _said(error)
        return None


@lru_cache(maxsize=64)  # one schema is that of all items of a list
def _read_schema(authored: str, what: str) -> OutputSchema:
    return OutputSchema(authored, what)


def _declares(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    properties = cast("Mapping[str, object]", schema).get("properties")
    return isinstance(properties, Mapping) and "error" in properties


def _parameters(shown: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(shown)
    # References of the schema count from the root, which is now one further up.
    shared: dict[str, Any] = {
        word: result.pop(word) for word in ("$defs", "definitions") if word in result
    }
    result.pop("$schema", None)
    return {
        "type": "object",
        "properties": {"result": result},
        "required": ["result"],
        **shared,
    }


def _as_object(authored: Schema) -> dict[str, Any] | None:
    schema: object = authored
    if isinstance(authored, str):
        try:
            schema = loads(authored.encode("utf-8", "surrogatepass"))
        except ValueError:
            return None
    return cast("dict[str, Any]", schema) if isinstance(schema, dict) else None


def _validator(schema: Mapping[str, Any]) -> tuple[_Validator | None, str | None]:
    """Return what validates, or why there is nothing."""
    try:
        from jsonschema_rs import validator_for
    except ImportError as error:
        message = "steps with a schema need an extra: pip install 'coatcheck[agent]'"
        raise ImportError(message) from error
    try:
        if _depth(schema) > _DEEPEST:
            return None, f"it is more than {_DEEPEST} levels deep"
        # What it says of a wrong value must not quote that: it may be a whole artifact.
        return validator_for(dict(schema), offline=True, mask="the value"), None
    except ValueError as error:
        return None, _said(error)


def _said(error: ValueError) -> str:
    """Return what is wrong, and where."""
    path = cast("list[object]", getattr(error, "instance_path", []))
    where = "/".join(str(step)[:50] for step in path[:10]) or "it"
    said = str(getattr(error, "message", error)).partition("\n")[0]
    return f"{where}: {said}"[:_DETAIL_CHARS]


def _depth(schema: object) -> int:
    level, depth = [schema], 0
    while level and depth <= _DEEPEST:
        inner: list[object] = []
        for node in level:
            if isinstance(node, Mapping):
                inner.extend(cast("Mapping[str, object]", node).values())
            elif isinstance(node, list):
                inner.extend(cast("list[object]", node))
        level, depth = inner, depth + 1
    return depth


def _shown(authored: Mapping[str, Any], what: str) -> dict[str, Any]:
    shown = cast("dict[str, Any]", _closed(authored))
    if "type" not in shown and not _COMBINED & shown.keys():
        shown = {"type": "object", **shown}
    return {**shown, "description": shown.get("description", what)}


def _closed(node: object) -> object:
    """Return a schema whose plain objects take nothing but what they name."""
    if not isinstance(node, Mapping):
        return node
    closed = dict(cast("Mapping[str, Any]", node))
    for word in _NAMED:
        if isinstance(closed.get(word), Mapping):
            closed[word] = {name: _closed(each) for name, each in closed[word].items()}
    for word in _LISTED:
        if isinstance(closed.get(word), list):
            closed[word] = [_closed(each) for each in closed[word]]
    for word in _SINGLE:
        if word in closed:
            closed[word] = _closed(closed[word])
    if (
        isinstance(closed.get("properties"), Mapping)
        and "additionalProperties" not in closed
        and not _COMBINED & closed.keys()
    ):
        closed["additionalProperties"] = False
    return closed
