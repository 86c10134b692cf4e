"""Sets of characters in a regular expression: what is in them, their cases, how they are written.

All engines are given the same sets, so that none reads one by tables of its own.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby

from ..records import dataclass

Range = tuple[int, int]
"""Code points from one to another, both included."""

CATEGORIES = frozenset(
    [
        *("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So"),
        *("Z", "Zs", "Zl", "Zp", "Cc", "Cf"),
    ]
)
"""General categories that all engines know."""

_NEWLINE = 10
LAST_CODE = 0x10FFFF
_LAST_CASED = 0x1F000
_CASED = frozenset({"Lu", "Ll", "Lt"})
_CONTROLS = ((0x00, 0x1F), (0x7F, 0x9F))
_PLAIN = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")

Written = Callable[[int], str]
"""Writes one code point as an engine wants it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Characters in any of some ranges and categories, or in none of them. Never a newline."""

    ranges: tuple[Range, ...] = ()
    categories: frozenset[str] = frozenset()
    is_negated: bool = False

    def __contains__(self, char: str) -> bool:
        if char == "\n":
            return False
        category = unicodedata.category(char)
        is_listed = (
            any(first <= ord(char) <= last for first, last in self.ranges)
            or category in self.categories
            or category[0] in self.categories
        )
        return is_listed is not self.is_negated

    def folded(self) -> "Part":
        """Return the same with all cases of what is listed."""
        categories = self.categories
        if categories & _CASED:
            categories |= _CASED
        others = (
            (other, other)
            for first, last in self.ranges
            for code in _cased_codes(first, last)
            for other in _cases(last)[code]
        )
        ranges = merged((*self.ranges, *others))
        return replace(self, ranges=ranges, categories=categories)

    def code_ranges(self) -> tuple[Range, ...]:
        """Return what is in it as ranges alone. The first call for a category is slow: 0.1 s."""
        categories = (
            run
            for category, runs in _category_runs().items()
            if category in self.categories or category[0] in self.categories
            for run in runs
        )
        ranges = merged((*self.ranges, *categories))
        return without_newline(complement(ranges)) if self.is_negated else ranges

    def write(self, write_code: Written, last_code: int) -> str:
        """Write it as a class, of code points up to `last_code`."""
        ranges = [
            (first, min(last, last_code)) for first, last in self.ranges if first <= last_code
        ]
        if self.is_negated:
            ranges.append((_NEWLINE, _NEWLINE))
        elif not ranges and not self.categories:
            return f"[^{write_code(0)}-{write_code(last_code)}]"
        elif not self.categories and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return write_code(ranges[0][0])
        listed = "".join(_write_range(first, last, write_code) for first, last in ranges)
        listed += "".join(f"\\p{{{name}}}" for name in sorted(self.categories))
        return f"[{'^' if self.is_negated else ''}{listed}]"


@dataclass(frozen=True, slots=True)
class CharSet:
    """Characters in any of its parts."""

    parts: tuple[Part, ...]

    def __contains__(self, char: str) -> bool:
        return any(char in part for part in self.parts)

    def folded(self) -> "CharSet":
        """Return the same with all cases of what is listed, as simple case folding pairs them."""
        return CharSet(tuple(part.folded() for part in self.parts))

    def negated(self) -> "CharSet":
        """Return all other characters, newlines excepted."""
        if len(self.parts) == 1:
            return CharSet((replace(self.parts[0], is_negated=not self.parts[0].is_negated),))
        ranges = merged(each for part in self.parts for each in part.code_ranges())
        return CharSet((Part(without_newline(complement(ranges))),))

    def write(self, write_code: Written, last_code: int = LAST_CODE) -> str:
        """Write it as an expression of one character."""
        parts = [part.write(write_code, last_code) for part in self.parts]
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def charset(
    ranges: Iterable[Range], categories: Iterable[str] = (), others: Sequence[Part] = ()
) -> CharSet:
    """Return the set of what is in any of the ranges, categories and other parts."""
    names = frozenset(categories)
    listed = [*ranges, *(_CONTROLS if "Cc" in names else ())]
    part = Part(without_newline(merged(listed)), names - {"Cc"})
    parts = (part, *others) if part.ranges or part.categories or not others else tuple(others)
    return CharSet(parts)


def one(char: str) -> CharSet:
    """Return the set of one character."""
    return CharSet((Part(((ord(char), ord(char)),)),))


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the same code points as ascending ranges that do not touch.

    >>> merged([(5, 6), (1, 2), (3, 3)])
    ((1, 3), (5, 6))
    """
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def complement(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Return all other code points; `ranges` are as `merged` returns them."""
    starts = [0, *(last + 1 for _, last in ranges)]
    stops = [*(first - 1 for first, _ in ranges), LAST_CODE]
    return tuple((start, stop) for start, stop in zip(starts, stops, strict=True) if start <= stop)


def without_newline(ranges: Iterable[Range]) -> tuple[Range, ...]:
    r"""Return the same without ``\n``."""
    pieces = (
        piece
        for first, last in ranges
        for piece in ((first, min(last, _NEWLINE - 1)), (max(first, _NEWLINE + 1), last))
    )
    return merged((first, last) for first, last in pieces if first <= last)


def write_hex(code: int) -> str:
    """Write a code point as RE2 reads it."""
    return chr(code) if chr(code) in _PLAIN else f"\\x{{{code:x}}}"


def write_python(code: int) -> str:
    """Write a code point as Python's engines read it."""
    if chr(code) in _PLAIN:
        return chr(code)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _write_range(first: int, last: int, write_code: Written) -> str:
    if first == last:
        return write_code(first)
    return f"{write_code(first)}-{write_code(last)}"


def _cased_codes(first: int, last: int) -> Sequence[int]:
    """Return the code points of a range that have other cases."""
    codes = list(_cases(last))
    return codes[bisect_left(codes, first) : bisect_right(codes, last)]


def _cases(last: int) -> dict[int, list[int]]:
    """Return code points up to `last` at least, ascending, with their cases, if there are any."""
    return _ascii_cases() if last < 0x80 else _all_cases()


@cache
def _ascii_cases() -> dict[int, list[int]]:
    others = {"k": [0x212A], "s": [0x17F]}  # the signs of Kelvin and of the long s
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return {
        ord(char): [ord(char.upper()), ord(char.lower()), *others.get(char.lower(), ())]
        for char in letters
    }


@cache
def _all_cases() -> dict[int, list[int]]:
    groups: dict[str, list[int]] = {}
    for code in range(_LAST_CASED):
        char = chr(code)
        folded = char.casefold()
        if len(folded) > 1:
            folded = char.lower()
        if folded != char and len(folded) == 1:
            groups.setdefault(folded, [ord(folded)]).append(code)
    return dict(sorted((code, group) for group in groups.values() for code in group))


@cache
def _category_runs() -> dict[str, list[Range]]:
    runs: dict[str, list[Range]] = {}
    code = 0
    categories = map(unicodedata.category, map(chr, range(LAST_CODE + 1)))
    for category, run in groupby(categories):
        first, code = code, code + sum(1 for _ in run)
        runs.setdefault(category, []).append((first, code - 1))
    return runs


# Below what makes them.
DIGIT = charset((), ("Nd",))
SPACE = charset(
    [
        *((code, code) for code in (0x20, 0x85, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000)),
        (0x09, 0x0D),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
    ]
)
WORD = charset([(ord("_"), ord("_"))], ("L", "M", "N"))
ANY = charset(()).negated()
RETURN = one("\r")
