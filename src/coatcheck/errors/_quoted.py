"""How a message quotes what somebody else wrote: short, and whatever it is."""

from collections.abc import Collection, Sized
from typing import cast

_SHOWN_CHARS = 80
_BRIEF_CHARS = 30
_REASON_CHARS = 100
_READ_PARTS = 200
_LONGEST_PART = 4_000
"""Characters of a text, or bits of a number, that are written out to be cut."""


def shown(text: object) -> str:
    """Return `text` quoted for a message, cut to 80 characters. Never raises.

    What is no text is shown as Python does, where that is short work; else by its type and,
    of numbers and collections, its size.

    >>> shown("art:x"), shown([1, 2]), shown(10**5_000)
    ("'art:x'", '[1, 2]', 'an int of 16,610 bits')
    >>> len(shown("x" * 4_000))
    91
    """
    if isinstance(text, str):
        whole = str.__str__(text)  # a subclass may show itself in any way
        if len(whole) <= _SHOWN_CHARS:
            return repr(whole)
    elif _is_soon_written(text):
        whole = repr(text)
        if len(whole) <= _SHOWN_CHARS:
            return whole
    else:
        return _type_and_size(text)
    return f"{whole[:_SHOWN_CHARS]!r}… ({len(whole):,})"


def brief(text: str) -> str:
    """Return the head of `text` quoted, where a message has more to say than that."""
    return shown(text if len(text) <= _BRIEF_CHARS else f"{text[:_BRIEF_CHARS]}…")


def head(text: str) -> str:
    """Return the head of `text`, as a reason that another program gave may be long."""
    return text if len(text) <= _REASON_CHARS else f"{text[:_REASON_CHARS]}…"


def _is_soon_written(value: object) -> bool:
    """Return whether the `repr` of a value is code of Python itself, and short work."""
    waiting, seen = [value], 0
    while waiting:
        part, seen = waiting.pop(), seen + 1
        kind = type(part)
        if kind in {list, tuple, dict}:
            parts = cast("Collection[object]", part)
            if seen + len(waiting) + len(parts) > _READ_PARTS:
                return False
            waiting.extend(parts)
            if kind is dict:
                waiting.extend(cast("dict[object, object]", part).values())
        elif kind is int:
            if cast("int", part).bit_length() > _LONGEST_PART:
                return False
        elif kind in {str, bytes}:
            if len(cast("str", part)) > _LONGEST_PART:
                return False
        elif kind not in {bool, float, type(None)}:
            return False
    return True


def _type_and_size(value: object) -> str:
    kind = type(value)
    name = kind.__name__[:_SHOWN_CHARS]
    article = "an" if name[:1] in "aeiouAEIOU" else "a"
    if kind is int:
        return f"{article} {name} of {cast('int', value).bit_length():,} bits"
    if kind in {list, tuple, dict, set, frozenset, bytes, bytearray}:
        return f"{article} {name} of {len(cast('Sized', value)):,}"
    return f"{article} {name}"
