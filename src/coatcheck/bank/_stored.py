"""Validation of what was stored: the table of `docs/values.md`, read from right to left.

Pydantic reads ISO times, UUIDs and the like from text by itself. It does not know that bytes lie in
JSON as base64 text, nor what a member of an Enum was written as; here its schema is told.
"""

import base64
import binascii
import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from ..content import dumps

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import CoreSchema, SchemaValidator

_BUILDING = Lock()

_OPAQUE = frozenset(
    {
        *("cls", "computed_fields", "config", "default", "expected", "function"),
        *("members", "metadata", "ref", "serialization", "type"),
    }
)
"""Parts of a schema that hold no schema of a value, though they may look like one."""
_NAMED = frozenset({"choices", "fields"})
"""Parts that hold schemas under names of the user's own."""


class StoredValidator:
    """Validates what we encoded as the type of a pydantic adapter.

    Models are read by the names of their fields, as they are stored, or by their aliases.
    """

    def __init__(self, adapter: "TypeAdapter[Any]") -> None:
        # A copy, as that of a type whose schema is made when it is first used is made now.
        schema = _schema(dict(cast("Mapping[str, object]", adapter.core_schema)))
        self._validator = _built(cast("CoreSchema", schema))

    def validate_python(self, value: object) -> object:
        """Return a decoded value as the type. Raises as pydantic does."""
        return cast("object", self._validator.validate_python(value, by_alias=True, by_name=True))

    def validate_json(self, payload: bytes) -> object:
        """Return the value of JSON as the type. Raises as pydantic does."""
        return cast("object", self._validator.validate_json(payload, by_alias=True, by_name=True))


def _part(part: object) -> object:
    if isinstance(part, dict):
        return _schema(cast("Mapping[str, object]", part))
    if isinstance(part, list | tuple):
        parts = cast("list[object] | tuple[object, ...]", part)
        return type(parts)([_part(each) for each in parts])
    return part


def _schema(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema in which stored forms are read first."""
    changed: dict[str, object] = {}
    for key, part in schema.items():
        if key in _NAMED and isinstance(part, dict):
            named = cast("Mapping[str, object]", part)
            changed[key] = {name: _part(each) for name, each in named.items()}
        else:
            changed[key] = part if key in _OPAQUE else _part(part)
    reads = _reader(changed)
    if reads is None:
        return changed
    before: dict[str, object] = {
        "type": "function-before",
        "function": {"type": "no-info", "function": reads},
        "schema": changed,
    }
    # Others refer to the whole of it.
    if "ref" in changed:
        before["ref"] = changed.pop("ref")
    return before


def _reader(schema: dict[str, object]) -> Callable[[Any], object] | None:
    """Return what reads the stored form of a schema, None where pydantic does."""
    kind = schema.get("type")
    if kind == "bytes":
        return _bytes
    if kind == "datetime":
        return partial(_iso, dt.datetime.fromisoformat)
    if kind == "time":
        return partial(_iso, dt.time.fromisoformat)
    if kind == "decimal":
        schema.setdefault("allow_inf_nan", True)
    if kind == "enum":
        members = cast("list[Enum]", schema["members"])
        if any(type(member.value) not in (str, int) for member in members):
            return partial(_member, {dumps(member): member for member in members})
    computed = cast("list[dict[str, str]]", schema.get("computed_fields") or [])
    if computed:
        return partial(_given, {field["property_name"] for field in computed})
    return None


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value


def _iso(read: Callable[[str], object], value: object) -> object:
    """Return a time that was written with more than pydantic reads: seconds of an offset."""
    if not isinstance(value, str):
        return value
    try:
        return read(value)
    except ValueError:
        return value


def _member(members: Mapping[bytes, Enum], value: object) -> object:
    return members.get(dumps(value), value)


def _given(computed: set[str], value: object) -> object:
    """Return what was given to make a model, without what it computes of it."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, object]", value)
    return {name: each for name, each in fields.items() if name not in computed}


def _built(schema: "CoreSchema") -> "SchemaValidator":
    """Return a validator of a schema, without what a model's class has ready for its own schema."""
    from pydantic_core import SchemaValidator

    try:
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:
        # Before pydantic 2.13 only a class that is not complete has nothing ready.
        classes = set(_classes(schema))
        with _BUILDING:
            for each in classes:
                each.__pydantic_complete__ = False
            try:
                return SchemaValidator(schema)
            finally:
                for each in classes:
                    each.__pydantic_complete__ = True


def _classes(part: object) -> Iterator[Any]:
    """Yield the classes in a schema that are complete."""
    if isinstance(part, Mapping):
        named = cast("Mapping[str, object]", part)
        each = named.get("cls")
        if isinstance(each, type) and vars(each).get("__pydantic_complete__") is True:
            yield each
        for within in named.values():
            yield from _classes(within)
    elif isinstance(part, list | tuple):
        for within in cast("Sequence[object]", part):
            yield from _classes(within)
