"""JSON schemas of tools: what they say of a parameter, and how a pointer is let in."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeGuard, cast
from urllib.parse import unquote

# As short as it can be and still tell a pointer from other text: it is paid for on every call.
POINTER_PATTERN = r"^\w+[:-][\da-f-]{32}"
POINTER_SCHEMA: Mapping[str, object] = {"type": "string", "pattern": POINTER_PATTERN}
"""JSON schema of a pointer, as it is shown to models beside a parameter's own."""

_VERBATIM = "taken as it is, a pointer too"
"""Marks a node that gets pointers as text. A description, as that may say anything: a keyword
that they do not know providers refuse."""

_STRUCTURES = frozenset({"array", "object"})
_MOST_ALTERNATIVES = 100
"""Parts of one node that are looked at: a schema may refer to itself."""

_PROPERTIES = "#/properties/"
_NAMED_NODES = frozenset(
    {"properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"}
)
_LISTED_NODES = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_SINGLE_NODES = frozenset(
    {
        "items",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "contentSchema",
        "not",
        "if",
        "then",
        "else",
    }
)


def widened(schema: Mapping[str, Any], *, in_defs: bool = False) -> dict[str, Any]:
    """Return a tool's JSON schema whose array and object parameters also take a pointer.

    Title, description and default stay with the parameter; the caller's schema is not
    changed. Scalars accept a pointer too, but say nothing of it: each word is paid for on
    every call. References to what a parameter was go where that stands now.

    Args:
        schema: Of the arguments, an object.
        in_defs: Whether what a pointer is stands once under ``$defs``.
    """
    properties = _mapping(schema.get("properties"))
    structures = [
        name
        for name, node in properties.items()
        if takes_structure(node, schema)
        # As it does where the tool is one that was mirrored already.
        and POINTER_PATTERN not in schema_words(node, schema, "pattern")
        and not is_verbatim(node, schema)
    ]
    if not structures:
        return dict(schema)
    wider, referred = _redirected(schema, structures)
    pointer = dict(POINTER_SCHEMA)
    if in_defs and _is_mapping(wider.get("$defs", {})):
        defs = _mapping(wider.get("$defs"))
        name = next(each for each in _names_of_pointer() if each not in defs)
        wider["$defs"] = {**defs, name: pointer}
        pointer = {"$ref": f"#/$defs/{name}"}
    wider["properties"] = {
        name: _wider(node, pointer, moves=name in referred) if name in structures else node
        for name, node in _mapping(wider["properties"]).items()
    }
    return wider


def marked_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema node marked as one that gets pointers as the text they are.

    The mark stands inside: what a framework says of a parameter it writes outside, over what is
    there.
    """
    outside, inside = _parted(node)
    return {**outside, "anyOf": [{**inside, "description": _VERBATIM}]}


def is_verbatim(node: object, root: Mapping[str, Any]) -> bool:
    """Return whether a schema node is marked by `marked_node`, or one of its alternatives is."""
    return _VERBATIM in schema_words(node, root, "description")


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


def schema_words(node: object, root: Mapping[str, Any], word: str) -> set[str]:
    """Return the texts that a schema node says under one word, as `schema_types` looks."""
    said = (part.get(word) for part in _alternatives(node, root))
    return {each for each in said if isinstance(each, str)}


def schema_at(node: object, path: tuple[object, ...], root: Mapping[str, Any]) -> object:
    """Return the schema of a place inside an argument, {} where it says nothing."""
    for step in path:
        inner: object = {}
        for part in _alternatives(node, root):
            if isinstance(step, int):
                firsts = _listed(part.get("prefixItems"))
                inner = firsts[step] if step < len(firsts) else part.get("items", inner)
            else:
                others = part.get("additionalProperties")
                inner = others if _is_mapping(others) else inner
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
        if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
            waiting.append(_referred(reference, root))
        for word in ("anyOf", "oneOf", "allOf"):
            waiting.extend(_listed(known.get(word)))


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    """Return what a local reference leads to, None where that is nothing."""
    target: object = root
    for step in reference.split("/")[1:]:
        places: Mapping[Any, object] = _mapping(target)
        if items := _listed(target):
            places = {str(at): item for at, item in enumerate(items)}
        target = places.get(_unescaped(step))
    return target


def _mapping(value: object) -> Mapping[Any, Any]:
    """Return what should be a mapping, empty where a schema's author wrote something else."""
    return value if _is_mapping(value) else {}


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _names_of_pointer() -> Iterator[str]:
    yield "pointer"
    number = 2
    while True:
        yield f"pointer{number}"
        number += 1


def _unescaped(step: str) -> str:
    """Return the key that a step of a reference names. Source: RFC 6901, sections 4 and 6."""
    return unquote(step).replace("~1", "/").replace("~0", "~")


def _redirected(
    schema: Mapping[str, Any], moved: Collection[str]
) -> tuple[dict[str, Any], set[str]]:
    """Return a copy of a schema for parameters that are to stand one level deeper.

    References into them are changed; the parameters that have any are returned too, and are
    then to be moved. Walked with a stack, as a schema may be nested deeper than Python recurses.
    """
    root = dict(schema)
    waiting, referred = [root], set[str]()
    while waiting:
        node = waiting.pop()
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_PROPERTIES):
            step, slash, rest = reference.removeprefix(_PROPERTIES).partition("/")
            if _unescaped(step) in moved:
                node["$ref"] = f"{_PROPERTIES}{step}/anyOf/0{slash}{rest}"
                referred.add(_unescaped(step))
        for word in node:
            waiting.extend(_copied_nodes(node, word))
    return root, referred


def _copied_nodes(node: dict[str, Any], word: str) -> Iterator[dict[str, Any]]:
    """Put copies in place of the schemas under one word of a node, and yield them.

    But for those with an address of their own: to that their references are relative.
    """
    inner = node[word]
    places: list[tuple[Any, Any]] = []
    if word in _NAMED_NODES and _is_mapping(inner):
        node[word] = named = dict(inner)
        places = [(named, name) for name in named]
    elif word in _LISTED_NODES and (given := _listed(inner)):
        node[word] = listed = given.copy()
        places = [(listed, at) for at in range(len(listed))]
    elif word in _SINGLE_NODES:
        places = [(node, word)]
    for container, key in places:
        if _is_mapping(container[key]) and "$id" not in container[key]:
            container[key] = copy = dict(container[key])
            yield copy


def _wider(node: object, pointer: Mapping[str, Any], *, moves: bool) -> object:
    """Return a node that a pointer may stand for; with `moves` as the first of two alternatives."""
    outside, inside = _parted(cast("Mapping[str, Any]", node))
    if set(inside) == {"anyOf"} and not moves:
        return {**outside, "anyOf": [*inside["anyOf"], dict(pointer)]}
    return {**outside, "anyOf": [inside, dict(pointer)]}


def _parted(node: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a node says of a parameter as a whole, and what it says of values."""
    outside = {word: node[word] for word in ("title", "description", "default") if word in node}
    return outside, {word: value for word, value in node.items() if word not in outside}
