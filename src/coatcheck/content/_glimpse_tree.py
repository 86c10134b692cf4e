"""The glimpse of a JSON value: an outline of its shape, opened level by level within the budget."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import cast

from ..records import dataclass
from ._preview import quoted
from ._shape import DEEPEST, SAMPLED_KEYS, Shape, merged, shape_of, sized
from ._statistics import written
from ._tokens import estimate_tokens, weigh_text

_KEY_CHARS = 40
_SHOWN_TEXT_CHARS = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_$@][\w.$@/-]*", re.ASCII)

_FIRST_KEYS = (40, 20, 12, 6, 3)
_KEYS = (12, 6, 3)
"""Keys that are shown of an object: as many as fit, of the outermost and of any other."""
_EXAMPLES = 3
"""Keys shown of an object that has many, all to the same."""
_DEEP_PART = 0.7
"""Part of the budget for what lies in three containers or more: it tells less, and each token is
paid for in every later call."""
_MOST_OPENED = 100


@dataclass(slots=True)
class _Node:
    """A place in the outline, and how much of it is shown."""

    shape: Shape
    depth: int
    """In how many more containers the outline may go."""
    most_keys: int = 0
    """Of its objects; 0 only counts them."""
    is_open: bool = False
    """Whether it says what is in its arrays."""
    keys: "dict[str, _Node]" = field(default_factory=dict)
    each: "_Node | None" = None
    """What all keys hold, where names of keys tell nothing."""
    items: "_Node | None" = None

    def open(self, most_keys: int) -> None:
        """Show what its objects and arrays hold."""
        shape, depth = self.shape, self.depth - 1
        self.is_open, self.most_keys = True, most_keys
        if shape.items is not None and self.items is None:
            self.items = _Node(shape.items, depth)
        if not shape.keys or self.keys or self.each is not None:
            return
        if shape.is_map:
            self.each = _Node(merged(shape.keys.values()), depth)
        else:
            self.keys = {key: _Node(child, depth) for key, child in shape.keys.items()}

    def close(self) -> None:
        self.is_open, self.most_keys = False, 0

    def shown(self) -> Iterator["_Node"]:
        """Yield what is shown within, of all that could be opened."""
        inside = [self.items, self.each, *islice(self.keys.values(), self.most_keys)]
        for node in filter(None, inside):
            if node.depth > 0 and (node.shape.keys or node.shape.items):
                yield node


def glimpse_tree(
    value: object,
    budget_tokens: int,
    *,
    depth: int = DEEPEST,
    values: bool = False,
    items: int | None = None,
) -> tuple[str, dict[str, object]] | None:
    """Return the outline of a JSON value and its facts, None where it is no object or array.

    Args:
        value: The whole value.
        budget_tokens: Most estimated tokens.
        depth: In how many containers the outline goes at most.
        values: Show short values that stand directly in an object, in place of their types.
        items: Of an array, where `value` has but some of them.

    At most 2,000 values are looked at, level by level, the first hundred at each place: the
    size of `value` itself is exact, keys and types are those of the sample.
    """
    if not isinstance(value, (dict, list, tuple)):
        return None
    container = cast("Mapping[str, object] | Sequence[object]", value)
    shape = shape_of(container)
    if isinstance(container, Mapping) and (values or _has_long(shape)):
        _show_values(shape, container)
    if items is not None and shape.arrays:
        shape.shortest = shape.longest = items
    shown = _fitted(_Node(shape, depth), budget_tokens)
    if shown is None:
        return None
    facts: dict[str, object] = {"format": "tree"}
    if isinstance(container, Mapping):
        facts |= {"type": "object", "keys": len(container)}
    else:
        facts |= {"type": "array", "items": len(container) if items is None else items}
        kind = _kind_within(shape)
        if kind is not None:
            facts["values"] = {"type": kind}
    return shown, facts


def outline_of(values: Sequence[object], depth: int, most_keys: int) -> str:
    """Return what `values` are, those looked at taken together: ``object {a: int}``."""
    items = shape_of(values).items
    if items is None:
        return ""
    waiting = [_Node(items, depth)]
    whole = waiting[0]
    for node in waiting:  # grows on the way
        node.open(most_keys)
        waiting += node.shown()
    return _outline(whole)


def _kind_within(shape: Shape) -> str | None:
    """Return what arrays of arrays hold at last, None where that is more than one thing."""
    inner: Shape | None = shape
    while inner is not None and inner.arrays and not (inner.objects or inner.kinds):
        inner = inner.items
    if inner is None or inner.objects or inner.arrays:
        return None
    kinds = inner.kinds.keys() - ({"int"} if "float" in inner.kinds else set())
    return next(iter(kinds)) if len(kinds) == 1 else None


def _has_long(shape: Shape) -> bool:
    """Return whether an object holds what is in base64, beside which all else is short."""
    return any(length for child in shape.keys.values() for length in child.kinds.values())


def _show_values(shape: Shape, value: Mapping[str, object]) -> None:
    """Let the outline tell the short values of an object in place of their types."""
    for each, child in zip(value.values(), shape.keys.values(), strict=False):
        if isinstance(each, str) and len(each) <= _SHOWN_TEXT_CHARS:
            child.kinds = {quoted(each, _SHOWN_TEXT_CHARS): 0}
        elif isinstance(each, (int, float)):
            child.kinds = {written(each): 0}


def _fitted(whole: _Node, budget_tokens: int) -> str | None:
    """Return the outline, opened as far as the budget goes; None where it holds not even the size.

    Level by level, each place with as many keys as fit, so that no part uses up the budget.
    """
    left = budget_tokens - weigh_text(_outline(whole))
    opened: list[_Node] = []
    level = [whole] if whole.depth > 0 else []
    options: Sequence[int] = _FIRST_KEYS
    spare = 0.0
    for deep in range(whole.depth):
        if deep > 1:
            spare = (1 - _DEEP_PART) * budget_tokens
        for node in level:
            price = _open(node, options, left - spare)
            if node.is_open:
                opened.append(node)
            left -= price
        level = [inside for node in level if node.is_open for inside in node.shown()]
        level = level[: _MOST_OPENED - len(opened)]
        options = _KEYS
    text = _outline(whole)
    # The parts weigh about what the whole does.
    while estimate_tokens(text) > budget_tokens:
        if not opened:
            return None
        opened.pop().close()
        text = _outline(whole)
    return text


def _open(node: _Node, options: Sequence[int], most_tokens: float) -> float:
    """Open a place with the most keys that are not too dear; return what that costs."""
    before = weigh_text(f" {_outline(node)}")
    for keys in options:
        node.open(keys)
        price = weigh_text(f" {_outline(node)}") - before
        if price <= most_tokens:
            return price
    node.close()
    return 0


def _outline(node: _Node) -> str:
    shape = node.shape
    most = "" if shape.alike else "up to "
    kinds = shape.kinds.items()
    parts = [
        sized(kind, length, most) if length else kind
        for kind, length in kinds
        if not (kind == "int" and "float" in shape.kinds)
    ]
    if shape.objects:
        parts.append(f"object{_braces(node)}")
    if shape.arrays:
        parts.append(_array(node))
    return "|".join(parts) or "…"


def _braces(node: _Node) -> str:
    """Return the keys of the objects seen, each with what it holds."""
    shape = node.shape
    if not node.most_keys or not shape.keys:
        count = _span(shape.fewest_keys, shape.most_keys)
        return f" of {count} key{'s' if shape.most_keys != 1 else ''}"
    if node.each is not None:
        plain = islice(filter(_PLAIN_KEY.fullmatch, shape.keys), min(node.most_keys, _EXAMPLES))
        names = list(map(_key, plain)) or [_key(next(iter(shape.keys)))]
        names.append(f"+{shape.key_count - len(names):,} more")
        return f" {{{', '.join(names)}, each {_outline(node.each)}}}"
    shown: list[str] = []
    # Where not all keys were looked at, a missing one says nothing.
    all_seen = shape.most_keys <= SAMPLED_KEYS
    for key, child in islice(node.keys.items(), node.most_keys):
        optional = "?" if all_seen and child.shape.present < shape.objects else ""
        shown.append(f"{_key(key)}{optional}: {_outline(child)}")
    more = shape.key_count - len(shown)
    if more > 0:
        shown.append(f"+{more:,} more")
    return f" {{{', '.join(shown)}}}"


def _key(key: str) -> str:
    is_plain = len(key) <= _KEY_CHARS and _PLAIN_KEY.fullmatch(key)
    return key if is_plain else quoted(key, _KEY_CHARS)


def _array(node: _Node) -> str:
    shape, items = node.shape, node.items
    length = _span(shape.shortest, shape.longest)
    if not node.is_open or items is None:
        return f"array of {length}"
    inside = items.shape
    if not (inside.kinds or inside.objects or inside.arrays):
        return f"array of {length}"
    if inside.objects and not inside.kinds and not inside.arrays:
        return f"array of {length} object{'s' if shape.longest != 1 else ''}{_braces(items)}"
    text = _outline(items)
    return f"array of {length} ({text})" if "|" in text else f"array of {length} {text}"


def _span(least: int, most: int) -> str:
    return f"{least:,}-{most:,}" if least < most else f"{most:,}"
