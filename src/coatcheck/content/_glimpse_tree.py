"""The glimpse of a JSON value: an outline of its shape, from a bounded sample of it."""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

from ._preview import quoted
from ._statistics import written
from ._tokens import first_within

_SAMPLED_VALUES = 2_000
"""Most values that are looked at in all."""
_SAMPLED_ITEMS = 100
"""Most items looked at of all the arrays that stand at one place."""
_SAMPLED_KEYS = 40
_DEEPEST = 5
_LONG_TEXT_CHARS = 200
_KEY_CHARS = 40
_SHOWN_TEXT_CHARS = 60

_PLAIN_KEY = re.compile(r"[A-Za-z_$@][\w.$@/-]*", re.ASCII)
_DATA_URI = re.compile(
    r"data:([\w.+-]{1,40}/[\w.+-]{1,60})?(?:;[\w-]{1,20}=[\w.-]{1,40})*(;base64)?,", re.ASCII
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}", re.ASCII)

_RENDERINGS = (
    *((5, 40), (5, 20), (5, 12), (4, 12), (4, 8), (3, 40), (3, 20), (3, 12)),
    *((2, 20), (2, 12), (2, 6), (1, 12), (1, 6), (1, 3), (0, 0)),
)
"""Depth in containers, and keys of an object: the first outline that fits is shown."""


@dataclass(slots=True)
class _Shape:
    """What the values seen at one place have in common."""

    kinds: dict[str, int] = field(default_factory=dict[str, int])
    """Kinds of what is no container, each with the longest seen of it: bytes in base64."""
    alike: bool = True
    """All texts in base64 seen are as long as the longest."""
    objects: int = 0
    most_keys: int = 0
    keys: "dict[str, _Shape]" = field(default_factory=dict)
    present: int = 0
    """How many values were, or are to be, looked at here."""
    arrays: int = 0
    shortest: int = 0
    longest: int = 0
    items: "_Shape | None" = None


def glimpse_tree(
    value: object,
    budget_tokens: int,
    *,
    depth: int = _DEEPEST,
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
    shape = _sample(container)
    if isinstance(container, Mapping) and (values or _has_long(shape)):
        _show_values(shape, container)
    if items is not None and shape.arrays:
        shape.shortest = shape.longest = items
    renderings = dict.fromkeys((min(depth, deep), keys) for deep, keys in _RENDERINGS)
    shown = first_within((_outline(shape, *how) for how in renderings), budget_tokens)
    if shown is None:
        return None
    facts: dict[str, object] = {"format": "tree"}
    if isinstance(container, Mapping):
        facts |= {"type": "object", "keys": len(container)}
    else:
        facts |= {"type": "array", "items": len(container) if items is None else items}
    return shown, facts


def _sample(value: object) -> _Shape:
    """Return the shape of `value`, level by level, so that no part of it uses up the sample."""
    whole = _Shape()
    waiting: deque[tuple[_Shape, object, int]] = deque([(whole, value, _DEEPEST)])
    for _ in range(_SAMPLED_VALUES):
        if not waiting:
            break
        shape, each, depth = waiting.popleft()
        if isinstance(each, dict):
            waiting.extend(_add_object(shape, cast("dict[str, object]", each), depth - 1))
        elif isinstance(each, (list, tuple)):
            waiting.extend(_add_array(shape, cast("Sequence[object]", each), depth - 1))
        else:
            kind, length = _kind(each)
            shape.alike = shape.alike and shape.kinds.get(kind, length) == length
            shape.kinds[kind] = max(length, shape.kinds.get(kind, 0))
    return whole


def _has_long(shape: _Shape) -> bool:
    """Return whether an object holds what is in base64, beside which all else is short."""
    return any(length for child in shape.keys.values() for length in child.kinds.values())


def _show_values(shape: _Shape, value: Mapping[str, object]) -> None:
    """Let the outline tell the short values of an object in place of their types."""
    for each, child in zip(value.values(), shape.keys.values(), strict=False):
        if isinstance(each, str) and len(each) <= _SHOWN_TEXT_CHARS:
            child.kinds = {quoted(each, _SHOWN_TEXT_CHARS): 0}
        elif isinstance(each, (int, float)):
            child.kinds = {written(each): 0}


def _add_object(
    shape: _Shape, value: Mapping[str, object], depth: int
) -> list[tuple[_Shape, object, int]]:
    shape.objects += 1
    shape.most_keys = max(shape.most_keys, len(value))
    if depth < 0:
        return []
    below: list[tuple[_Shape, object, int]] = []
    for key, each in islice(value.items(), _SAMPLED_KEYS):
        child = shape.keys.setdefault(str(key), _Shape())
        child.present += 1
        below.append((child, each, depth))
    return below


def _add_array(
    shape: _Shape, value: Sequence[object], depth: int
) -> list[tuple[_Shape, object, int]]:
    shape.shortest = min(shape.shortest, len(value)) if shape.arrays else len(value)
    shape.longest = max(shape.longest, len(value))
    shape.arrays += 1
    if depth < 0:
        return []
    items = shape.items = shape.items or _Shape()
    sampled = value[: _SAMPLED_ITEMS - items.present]
    items.present += len(sampled)
    return [(items, each, depth) for each in sampled]


def outline_of(values: Sequence[object], depth: int, most_keys: int) -> str:
    """Return what `values` are, those looked at taken together: ``object {a: int}``."""
    items = _sample(values).items
    return "" if items is None else _outline(items, depth, most_keys)


def _kind(value: object) -> tuple[str, int]:
    """Return what `value` is called, and of a long one in base64 how many bytes it is."""
    if value is None:
        return "null", 0
    if not isinstance(value, str) or len(value) <= _LONG_TEXT_CHARS:
        return type(value).__name__, 0
    data = _DATA_URI.match(value)
    if data and data[2]:
        return data[1] or "data", _decoded_bytes(value, data.end())
    if data:
        return f"{data[1] or 'data'} URI", len(value)
    if _BASE64.fullmatch(value, 0, 2 * _LONG_TEXT_CHARS):
        return "base64", _decoded_bytes(value, 0)
    return "str", 0


def _decoded_bytes(text: str, start: int) -> int:
    """Return how many bytes the base64 text from `start` on is. Source: RFC 4648, section 4."""
    digits = len(text) - start - text.count("=", max(start, len(text) - 2))
    return digits * 3 // 4


def _outline(shape: _Shape, depth: int, most_keys: int) -> str:
    most = "" if shape.alike else "up to "
    parts = [
        f"{kind} of {most}{length:,} {'characters' if kind.endswith(' URI') else 'bytes'}"
        if length
        else kind
        for kind, length in shape.kinds.items()
    ]
    if shape.objects:
        parts.append(f"object{_braces(shape, depth, most_keys)}")
    if shape.arrays:
        parts.append(_array(shape, depth, most_keys))
    return "|".join(parts) or "…"


def _braces(shape: _Shape, depth: int, most_keys: int) -> str:
    """Return the keys of the objects seen, each with what it holds."""
    if depth == 0 or not shape.keys:
        return f" of {shape.most_keys:,} key{'s' if shape.most_keys != 1 else ''}"
    shown: list[str] = []
    # Where not all keys were looked at, a missing one says nothing.
    all_seen = shape.most_keys <= _SAMPLED_KEYS
    for key, child in islice(shape.keys.items(), most_keys):
        name = key if len(key) <= _KEY_CHARS and _PLAIN_KEY.fullmatch(key) else quoted(key, 40)
        optional = "?" if all_seen and child.present < shape.objects else ""
        shown.append(f"{name}{optional}: {_outline(child, depth - 1, most_keys)}")
    more = max(shape.most_keys, len(shape.keys)) - len(shown)
    if more > 0:
        shown.append(f"+{more:,} more")
    return f" {{{', '.join(shown)}}}"


def _array(shape: _Shape, depth: int, most_keys: int) -> str:
    length = f"{shape.longest:,}"
    if shape.shortest < shape.longest:
        length = f"{shape.shortest:,}-{length}"
    items = shape.items
    if depth == 0 or items is None or not (items.kinds or items.objects or items.arrays):
        return f"array of {length}"
    if items.objects and not items.kinds and not items.arrays:
        return f"array of {length} object{'s' if shape.longest != 1 else ''}" + _braces(
            items, depth - 1, most_keys
        )
    inside = _outline(items, depth - 1, most_keys)
    return f"array of {length} ({inside})" if "|" in inside else f"array of {length} {inside}"
