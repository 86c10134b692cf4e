"""The slow way to JSON: value by value, for what orjson refuses. It says where it had to stop."""

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import orjson

from ..errors import UnencodableValueError, shown
from ._json_digits import MOST_DIGITS, digits_of
from ._json_values import finite, plain

DEEPEST = 254
"""Most containers within each other. orjson's bound, held on every path."""

_MOST_UNWRAPPED = 8
"""Steps by which a value may become plain, as an Enum whose value is an Enum."""
_QUICK_DEPTH = 6
"""Above this, containers are tried whole, each of which may be read to its end in vain."""
_LONGEST_PATH_CHARS = 200

_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
_PLAIN = frozenset({str, int, float, bool, type(None)})

Quick = Callable[[object, int], bytes | None]


class _Frame:
    """One container that is being written."""

    __slots__ = ("ends", "id", "items", "parts", "place", "prefix", "sorts")

    def __init__(self, value: object, identity: int) -> None:
        self.id = identity
        self.parts: list[bytes] = []
        self.prefix = b""
        self.place: object = None
        self.sorts = isinstance(value, set | frozenset)
        self.items: Iterator[tuple[bytes, object, object]]
        if isinstance(value, dict):
            self.ends = b"{", b"}"
            mapping = cast("dict[object, object]", value)
            keys = _keys(mapping)
            self.items = (
                (key, place, item) for key, (place, item) in zip(keys, mapping.items(), strict=True)
            )
        else:
            self.ends = b"[", b"]"
            items = cast("list[object]", value)
            self.items = ((b"", place, item) for place, item in enumerate(items))

    def closed(self) -> bytes:
        parts = sorted(self.parts) if self.sorts else self.parts
        return self.ends[0] + b",".join(parts) + self.ends[1]


def write(value: object, quick: Quick) -> bytes:
    """Return the JSON of `value`, by the rule of `plain`.

    Args:
        value: Anything.
        quick: Returns the JSON of a part that stands so many containers deep, or None where
            it has to be written here.

    Raises:
        UnencodableValueError: A part has no rule, keys that collide, or no end.
    """
    frames: list[_Frame] = []
    try:
        done = _begin(value, frames, quick)
        while frames:
            frame = frames[-1]
            if done is not None:
                frame.parts.append(frame.prefix + done)
            for prefix, place, item in frame.items:
                frame.prefix, frame.place = prefix, place
                done = _begin(item, frames, quick)
                if done is None:
                    break
                frame.parts.append(prefix + done)
            else:
                done = frames.pop().closed()
    except UnencodableValueError as error:
        where = _path(frames)
        if not where or error.endless:
            raise
        raise UnencodableValueError(f"{error.reason} at {where}") from error
    return cast("bytes", done)


def _begin(value: object, frames: list[_Frame], quick: Quick) -> bytes | None:
    """Return the JSON of a value, None where a frame for what it holds was opened instead."""
    identity = id(value)
    for _ in range(_MOST_UNWRAPPED):
        kind = type(value)
        if kind in _PLAIN:
            return _leaf(value)
        if kind in _CONTAINERS:
            break
        value = plain(value)
    else:
        raise UnencodableValueError(f"JSON has no type for {type(value).__name__}")
    if any(frame.id == identity for frame in frames):
        raise UnencodableValueError("it contains itself", endless=True)
    if len(frames) >= DEEPEST:
        raise UnencodableValueError(
            f"it is nested more than {DEEPEST} deep, or contains itself", endless=True
        )
    # The value as a whole was tried before.
    if 0 < len(frames) < _QUICK_DEPTH:
        payload = quick(value, len(frames))
        if payload is not None:
            return payload
    frames.append(_Frame(value, identity))
    return None


def _leaf(value: object) -> bytes:
    if type(value) is int:
        digits = digits_of(value)
        if digits is None:
            raise UnencodableValueError(f"a number has more than {MOST_DIGITS:,} digits")
        return digits.encode()
    if type(value) is float:
        value = finite(value)
    if type(value) is str:
        return _quoted(value)
    return orjson.dumps(value)


def _quoted(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:  # lone surrogates
        from json.encoder import encode_basestring

        return encode_basestring(text).encode("utf-8", "surrogatepass")


def _keys(mapping: Mapping[object, object]) -> list[bytes]:
    """Return the keys as JSON text, each with its colon.

    Raises:
        UnencodableValueError: A key is no single value, or two give the same text.
    """
    keys = [_key(key) for key in mapping]
    if len(set(keys)) < len(keys):
        raise UnencodableValueError("two keys give the same text")
    return keys


def _key(key: object) -> bytes:
    named: object = key
    for _ in range(_MOST_UNWRAPPED):
        if type(named) in _PLAIN:
            text = _leaf(named)
            return (text if text.startswith(b'"') else b'"' + text + b'"') + b":"
        if type(named) in _CONTAINERS:
            break
        named = plain(named)
    raise UnencodableValueError(f"a key is of type {type(key).__name__}")


def _path(frames: list[_Frame]) -> str:
    path = "".join("[…]" if frame.sorts else f"[{_place(frame.place)}]" for frame in frames)
    return path if len(path) <= _LONGEST_PATH_CHARS else f"{path[:_LONGEST_PATH_CHARS]}…"


def _place(place: object) -> str:
    return str(place) if type(place) is int else shown(place).replace("'", '"')
