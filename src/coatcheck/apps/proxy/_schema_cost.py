"""How much work a schema may make of a value: it is an upstream's, and may be a trap. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_NAMED = ("dependentSchemas", "dependencies")
_FURTHER = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "items",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MOST_CHECKS = 1_000_000
_MOST_LEVELS = 64


class SchemaCost:
    """Says of a value whether a validator of the schema is done with it in time.

    Schemas that refer to one another twice each double the work with every step, so that a few
    lines take for ever. Work is counted from above: what is refused may still have been quick.

    Args:
        schema: The schema; what it refers to by anything but a place in itself is not followed.

    >>> wide = {"$defs": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    >>> cost = SchemaCost({"properties": {"c": {"$ref": "#/$defs/a"}}, **wide})
    >>> cost.is_bearable({"c": {"c": {}}})
    True
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._known: dict[int, tuple[int, int]] = {}
        weights = [self._weigh(node) for node in _nodes(schema)]
        self._visits = max(visits for visits, _ in weights)
        self._branches = max(branches for _, branches in weights)

    def is_bearable(self, value: object) -> bool:
        """Return whether `value` can be checked in reasonable time."""
        if self._branches <= 1:
            return self._visits <= _MOST_CHECKS
        work: int = self._visits * self._branches ** _levels(value)
        return work <= _MOST_CHECKS

    def _weigh(self, node: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many schemas check a value at one place, and how many go on into it."""
        known = self._known.get(id(node))
        if known is not None:
            return known
        goes_on = int(not _FURTHER.isdisjoint(node))
        self._known[id(node)] = 1, goes_on  # what leads back to itself in place is checked once
        inner = [self._weigh(each) for each in self._in_place(node)]
        visits = 1 + sum(each for each, _ in inner)
        branches = goes_on + sum(each for _, each in inner)
        self._known[id(node)] = visits, branches
        return visits, branches

    def _in_place(self, node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        found: list[object] = [node.get(word) for word in _SINGLE]
        for word in _LISTS:
            found += (
                cast("list[object]", node.get(word)) if isinstance(node.get(word), list) else []
            )
        for word in _NAMED:
            named = node.get(word)
            found += cast("Mapping[str, object]", named).values() if isinstance(named, dict) else []
        found.append(self._referred(node.get("$ref")))
        return (cast("Mapping[str, Any]", each) for each in found if isinstance(each, dict))

    def _referred(self, reference: object) -> object:
        if reference == "#":
            return self._root
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        target: object = self._root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict):
                target = cast("dict[str, object]", target).get(name)
            elif isinstance(target, list) and name.isdecimal():
                items = cast("list[object]", target)
                target = items[int(name)] if int(name) < len(items) else None
            else:
                return None
        return target


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            inner = cast("Mapping[str, Any]", node)
            yield inner
            waiting += inner.values()
        elif isinstance(node, list):
            waiting += cast("list[object]", node)


def _levels(value: object) -> int:
    """Return how deep a value is nested, up to what is too deep in any case."""
    level, depth = [value], 0
    while level and depth < _MOST_LEVELS:
        inner: list[object] = []
        for node in level:
            if isinstance(node, Mapping):
                inner += cast("Mapping[str, object]", node).values()
            elif isinstance(node, list):
                inner += cast("list[object]", node)
        level, depth = inner, depth + 1
    return depth
