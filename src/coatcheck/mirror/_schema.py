"""JSON schemas of tools: what they say of a parameter, and how a pointer is let in."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard, cast

# As short as it can be and still tell a pointer from other text: it is paid for on every call.
POINTER_PATTERN = r"^\w+[:-][\da-f-]{32}"
POINTER_SCHEMA: Mapping[str, object] = {"type": "string", "pattern": POINTER_PATTERN}
"""JSON schema of a pointer, as it is shown to models beside a parameter's own."""

_STRUCTURES = frozenset({"array", "object"})
_MOST_ALTERNATIVES = 100
"""Parts of one node that are looked at: a schema may refer to itself."""


def widened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's JSON schema whose array and object parameters also take a pointer.

    Title, description and default stay with the parameter; the caller's schema is not
    changed. Scalars accept a pointer too, but say nothing of it: each word is paid for on
    every call.
    """
    properties = _mapping(schema.get("properties"))
    wider = {name: _wider(node, schema) for name, node in properties.items()}
    return {**schema, "properties": wider} if properties else dict(schema)


def schema_types(node: object, root: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema node names, through `anyOf` and local references."""
    types: set[str] = set()
    for part in _alternatives(node, root):
        named = part.get("type")
        several = [named] if isinstance(named, str) else _listed(named)
        types.update(type_ for type_ in several if isinstance(type_, str))
        if "properties" in part:
            types.add("object")
        if "items" in part or "prefixItems" in part:
            types.add("array")
    return types


def schema_at(node: object, path: tuple[object, ...], root: Mapping[str, Any]) -> object:
    """Return the schema of a place inside an argument, {} where it says nothing."""
    for step in path:
        inner: object = {}
        for part in _alternatives(node, root):
            if isinstance(step, int):
                inner = part.get("items", inner)
            else:
                inner = _mapping(part.get("properties")).get(step, inner)
        node = inner
    return node


def takes_structure(node: object, root: Mapping[str, Any]) -> bool:
    """Return whether a schema node takes an array or object."""
    return bool(schema_types(node, root) & _STRUCTURES)


def bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what only repeats names, or is said of every object: fewer tokens."""

    def change(node: dict[str, Any]) -> dict[str, Any]:
        node.pop("title", None)
        if node.get("additionalProperties") is False:
            del node["additionalProperties"]
        return node

    return cast("dict[str, Any]", _changed(schema, change))


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose objects take nothing but what they name."""

    def change(node: dict[str, Any]) -> dict[str, Any]:
        if "properties" in node:
            node["additionalProperties"] = False
        return node

    changed = _changed(schema, change)
    return {**cast("dict[str, Any]", changed), "additionalProperties": False}


def _changed(node: object, change: Callable[[dict[str, Any]], dict[str, Any]]) -> object:
    """Return a copy of a schema node, changed at each node of it; values are left alone."""
    if not isinstance(node, Mapping):
        return node
    copy = dict(cast("Mapping[str, Any]", node))
    for word, inner in copy.items():
        if word in {"properties", "$defs"} and isinstance(inner, Mapping):
            named = cast("Mapping[str, object]", inner)
            copy[word] = {name: _changed(each, change) for name, each in named.items()}
        elif word in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(inner, list):
            copy[word] = [_changed(each, change) for each in cast("list[object]", inner)]
        elif word in {"items", "additionalProperties"}:
            copy[word] = _changed(inner, change)
    return change(copy)


def _alternatives(node: object, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting, seen = [node], 0
    while waiting and seen < _MOST_ALTERNATIVES:
        part, seen = waiting.pop(), seen + 1
        if not isinstance(part, Mapping):
            continue
        known = cast("Mapping[str, Any]", part)
        yield known
        reference = known.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = root
            for step in reference[2:].split("/"):
                target = cast("Any", target).get(step) if isinstance(target, Mapping) else None
            waiting.append(target)
        for word in ("anyOf", "oneOf", "allOf"):
            waiting.extend(_listed(known.get(word)))


def _mapping(value: object) -> Mapping[Any, Any]:
    """Return what should be a mapping, empty where a schema's author wrote something else."""
    return value if _is_mapping(value) else {}


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _wider(node: object, root: Mapping[str, Any]) -> object:
    if not takes_structure(node, root):
        return node
    known = cast("Mapping[str, Any]", node)
    outside = {word: known[word] for word in ("title", "description", "default") if word in known}
    inside = {word: value for word, value in known.items() if word not in outside}
    if set(inside) == {"anyOf"}:
        return {**outside, "anyOf": [*inside["anyOf"], dict(POINTER_SCHEMA)]}
    return {**outside, "anyOf": [inside, dict(POINTER_SCHEMA)]}
