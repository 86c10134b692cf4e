"""What JSON values at one place have in common: kinds, keys and lengths, from a bounded sample."""

import re
from base64 import urlsafe_b64decode
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import cast

from ..records import dataclass
from ._content_type import type_of_head

SAMPLED_KEYS = 40
"""Keys of an object that are looked at."""
_SAMPLED_VALUES = 2_000
"""Most values that are looked at in all."""
_SAMPLED_ITEMS = 100
"""Most items looked at of all the arrays that stand at one place."""
DEEPEST = 5
"""Containers within each other that are looked into."""
_LONG_TEXT_CHARS = 200
_LEAST_FIELDS = 20
"""Up to so many keys are fields. Of more, alike in what they hold, a name tells nothing."""

_DATA_URI = re.compile(
    r"data:([\w.+-]{1,40}/[\w.+-]{1,60})?(?:;[\w-]{1,20}=[\w.-]{1,40})*(;base64)?,", re.ASCII
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}", re.ASCII)
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[^0-9]*[0-9]", re.ASCII)
"""Letters of both kinds and digits, as neither words nor hex have all along."""
_HEAD_CHARS = 64
"""What tells the type of bytes in base64: whole groups of four characters."""


@dataclass(slots=True)
class Shape:
    """What the values seen at one place have in common."""

    kinds: dict[str, int] = field(default_factory=dict[str, int])
    """Kinds of what is no container, each with the longest seen of it: bytes in base64."""
    alike: bool = True
    """All texts in base64 seen are as long as the longest."""
    objects: int = 0
    fewest_keys: int = 0
    most_keys: int = 0
    keys: "dict[str, Shape]" = field(default_factory=dict)
    present: int = 0
    """How many values were, or are to be, looked at here."""
    arrays: int = 0
    shortest: int = 0
    longest: int = 0
    items: "Shape | None" = None

    @property
    def key_count(self) -> int:
        """Keys of the largest object seen, or all that were seen if they are more."""
        return max(self.most_keys, len(self.keys))

    @property
    def is_map(self) -> bool:
        """Whether the keys of its objects are rather values: there are many, to the same."""
        if self.key_count <= _LEAST_FIELDS:
            return False
        kinds = {child.form for child in self.keys.values()}
        # A settings file has many texts, and each of its names counts.
        least = _LEAST_FIELDS if kinds in ({"object"}, {"array"}) else SAMPLED_KEYS
        return len(kinds) == 1 and self.key_count > least

    @property
    def form(self) -> str:
        """What is here in a word, or in several."""
        containers = ["object"] * bool(self.objects) + ["array"] * bool(self.arrays)
        return "|".join([*containers, *sorted(self.kinds)])


def shape_of(value: object) -> Shape:
    """Return the shape of `value`, level by level, so that no part of it uses up the sample."""
    whole = Shape()
    waiting: deque[tuple[Shape, object, int]] = deque([(whole, value, DEEPEST)])
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


def merged(shapes: Iterable[Shape]) -> Shape:
    """Return the shape of all values of several places taken together."""
    whole = Shape()
    for shape in shapes:
        lengths = [length for length in (*whole.kinds.values(), *shape.kinds.values()) if length]
        whole.alike = whole.alike and shape.alike and len(set(lengths)) <= 1
        for kind, length in shape.kinds.items():
            whole.kinds[kind] = max(length, whole.kinds.get(kind, 0))
        if shape.objects:
            counts = [each.fewest_keys for each in (whole, shape) if each.objects]
            whole.fewest_keys = min(counts)
        if shape.arrays:
            lengths = [each.shortest for each in (whole, shape) if each.arrays]
            whole.shortest = min(lengths)
        whole.most_keys = max(whole.most_keys, shape.most_keys)
        whole.longest = max(whole.longest, shape.longest)
        whole.objects += shape.objects
        whole.arrays += shape.arrays
        whole.present += shape.present
        if shape.items is not None:
            whole.items = merged(filter(None, [whole.items, shape.items]))
        for key, child in shape.keys.items():
            known = whole.keys.get(key)
            whole.keys[key] = merged([child] if known is None else [known, child])
    return whole


def _add_object(
    shape: Shape, value: Mapping[str, object], depth: int
) -> list[tuple[Shape, object, int]]:
    shape.fewest_keys = min(shape.fewest_keys, len(value)) if shape.objects else len(value)
    shape.most_keys = max(shape.most_keys, len(value))
    shape.objects += 1
    if depth < 0:
        return []
    below: list[tuple[Shape, object, int]] = []
    for key, each in islice(value.items(), SAMPLED_KEYS):
        child = shape.keys.setdefault(str(key), Shape())
        child.present += 1
        below.append((child, each, depth))
    return below


def _add_array(
    shape: Shape, value: Sequence[object], depth: int
) -> list[tuple[Shape, object, int]]:
    shape.shortest = min(shape.shortest, len(value)) if shape.arrays else len(value)
    shape.longest = max(shape.longest, len(value))
    shape.arrays += 1
    if depth < 0:
        return []
    items = shape.items = shape.items or Shape()
    sampled = value[: _SAMPLED_ITEMS - items.present]
    items.present += len(sampled)
    return [(items, each, depth) for each in sampled]


def _kind(value: object) -> tuple[str, int]:
    """Return what `value` is called, and of a long one in base64 how many bytes it is."""
    if value is None:
        return "null", 0
    if not isinstance(value, str):
        return type(value).__name__, 0
    return data_kind(value) or ("str", 0)


def data_kind(text: str) -> tuple[str, int] | None:
    """Return the type of a long text in base64 and how many bytes it is; None of other text.

    Of a data URI that is not in base64 it is the characters.
    """
    if len(text) <= _LONG_TEXT_CHARS:
        return None
    data = _DATA_URI.match(text)
    if data and data[2]:
        return data[1] or "data", _decoded_bytes(text, data.end())
    if data:
        return f"{data[1] or 'data'} URI", len(text)
    if not _BASE64.fullmatch(text, 0, 2 * _LONG_TEXT_CHARS):
        return None
    if not (text.endswith("=") or _MIXED.match(text, 0, 2 * _LONG_TEXT_CHARS)):
        return None
    head = urlsafe_b64decode(text[:_HEAD_CHARS].replace("+", "-").replace("/", "_"))
    return type_of_head(head) or "base64", _decoded_bytes(text, 0)


def sized(kind: str, length: int, most: str = "") -> str:
    """Return what `data_kind` found as words."""
    return f"{kind} of {most}{length:,} {'characters' if kind.endswith(' URI') else 'bytes'}"


def _decoded_bytes(text: str, start: int) -> int:
    """Return how many bytes the base64 text from `start` on is. Source: RFC 4648, section 4."""
    digits = len(text) - start - text.count("=", max(start, len(text) - 2))
    return digits * 3 // 4
