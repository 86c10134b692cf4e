"""What names an artifact, and what kinds of artifacts there are."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from ..errors import InvalidPointerError
from ._dataclass import dataclass

if TYPE_CHECKING:
    from ._shown import Glimpse

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PREFIX = r"[a-z][a-z0-9]{1,15}"
_SELECTOR = r"[/$].*|(?:line|char)=[0-9,]+|L[0-9]+(?:-L[0-9]+)?|row=[0-9]+(?:-[0-9]+)?"
_POINTER = re.compile(
    rf"(?:art:({_UUID})|({_PREFIX})-([0-9a-f]{{32}}))(?:#({_SELECTOR}))?", re.ASCII | re.DOTALL
)
_NAMING = re.compile(rf"(?:art:{_UUID}|({_PREFIX})-[0-9a-f]{{32}})(?:#|\Z)", re.ASCII)
_ID = re.compile(_UUID, re.ASCII)
_KIND_PREFIX = re.compile(_PREFIX, re.ASCII)
_RESERVED_PREFIXES = frozenset({"art", "ah"})

LONGEST_SELECTOR = 1_000
"""Most characters of a selector."""

_SHORTEST = 35
"""Characters of the shortest pointer: a prefix of 2, a hyphen, 32 digits. The longest prefix has
16 characters, and ``art:`` with a UUID lies between the two."""
_LONGEST = 49 + len("#") + LONGEST_SELECTOR


@dataclass(frozen=True, slots=True)
class Pointer:
    """Names one artifact. Its text form, ``art:<uuid>``, survives any prompt.

    A `Kind` with a prefix has a typed form of the same id, ``ps-<32 hex digits>``. A selector,
    which picks a part of the artifact, may follow either.

    >>> str(Pointer("00000000-0000-4000-8000-000000000005"))
    'art:00000000-0000-4000-8000-000000000005'
    >>> str(Pointer("00000000-0000-4000-8000-000000000005", "ps", selector="/0/id"))
    'ps-00000000000040008000000000000005#/0/id'
    """

    id: str
    prefix: str = "art"
    selector: str | None = None
    """What follows ``#``, in one of the forms of `docs/selectors.md`."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pointer from text.

        Raises:
            InvalidPointerError: `text` is anything but a whole pointer. Checked before
                any store is touched, as the text may come from a model.
        """
        match = _POINTER.fullmatch(text) if _SHORTEST <= len(text) <= _LONGEST else None
        if match is None or match[2] in _RESERVED_PREFIXES:
            raise InvalidPointerError(text, begins_well=names_pointer(text))
        if match[1]:
            return cls(match[1], selector=match[4])
        digits = match[3]
        id_ = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return cls(id_, match[2], match[4])

    def __str__(self) -> str:
        whole = f"art:{self.id}"
        if self.prefix != "art":
            whole = f"{self.prefix}-{self.id.replace('-', '')}"
        return whole if self.selector is None else f"{whole}#{self.selector}"


def is_pointer(value: object) -> bool:
    """Return whether `value` is a whole pointer, by its form alone.

    >>> is_pointer("art:00000000-0000-4000-8000-000000000005")
    True
    >>> is_pointer("art:deco posters")
    False
    """
    if not isinstance(value, str):
        return isinstance(value, Pointer)
    if not _SHORTEST <= len(value) <= _LONGEST:
        return False
    match = _POINTER.fullmatch(value)
    return match is not None and match[2] not in _RESERVED_PREFIXES


def names_pointer(value: object) -> bool:
    """Return whether `value` is a whole pointer, or one with ``#`` and anything behind it.

    What stands there may be no selector: then the text is no pointer, but was meant as one.

    >>> names_pointer("art:00000000-0000-4000-8000-000000000005#the first")
    True
    >>> names_pointer("art:deco posters#x")
    False
    """
    if not isinstance(value, str):
        return isinstance(value, Pointer)
    match = _NAMING.match(value) if len(value) >= _SHORTEST else None
    return match is not None and match[1] not in _RESERVED_PREFIXES


def is_id(text: str) -> bool:
    """Return whether `text` is the bare id of an artifact: a lower-case UUID."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Kind:
    """Who made an artifact and why. With a prefix, its pointers have a typed form.

    Args:
        name: As given to ``put(kind=…)``.
        prefix: Two to sixteen lower-case letters and digits, a letter first; not ``art`` or ``ah``.
        glimpse: Makes the glimpse of each artifact of this kind, from the value as `get` returns
            it; the text is cut to the budget. Where it raises, the built-in glimpse is taken. Not
            called for what was put as a stream, of which the whole is never in memory.

    Raises:
        ValueError: The name is empty, or the prefix breaks its rule.
    """

    name: str
    prefix: str | None = None
    glimpse: "Callable[[object], str | Glimpse] | None" = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a kind needs a name")
        if self.prefix is None:
            return
        if not _KIND_PREFIX.fullmatch(self.prefix) or self.prefix in _RESERVED_PREFIXES:
            rule = "[a-z][a-z0-9]{1,15}, and not art or ah"
            raise ValueError(f"the prefix of a kind is {rule}, got {self.prefix!r}")
