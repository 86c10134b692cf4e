"""Tokens, estimated without a tokenizer: quick, and rather too many than too few."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from math import ceil
from typing import cast

import stringzilla

_STEP_CHARS = 1_024

_CONTINUATION = bytes(range(0x80, 0xC0))


def _table(default: bytes, groups: Iterable[tuple[Iterable[int], bytes]]) -> bytes:
    table = bytearray(default * 256)
    for members, name in groups:
        for member in members:
            table[member] = name[0]
    return bytes(table)


# One byte for each code point, by its kind: ASCII by class, all else by the first byte of its
# UTF-8, which tells the script.
_KINDS = _table(
    b".",
    [
        (range(0x20), b"c"),
        (b"\x7f", b"c"),
        (b"\t", b"t"),
        (b"\n\r", b"n"),
        (b" ", b"_"),
        (b"0123456789", b"0"),
        (range(ord("A"), ord("Z") + 1), b"A"),
        (range(ord("a"), ord("z") + 1), b"a"),
        (b"\xc2\xe2\xef", b"s"),  # signs, typographic marks, box drawing, full width
        (range(0xC3, 0xCD), b"l"),  # Latin with marks
        (range(0xCD, 0xD0), b"g"),  # Greek
        (range(0xD0, 0xD4), b"k"),  # Cyrillic
        (range(0xD4, 0xE0), b"h"),  # Armenian, Hebrew, Arabic
        (b"\xe0", b"i"),  # Indic, Thai
        (b"\xe1", b"v"),  # Georgian, Ethiopic; Latin of Vietnamese
        (b"\xe3", b"j"),  # Kana
        (range(0xE4, 0xEA), b"z"),  # Han
        (range(0xEA, 0xEE), b"o"),  # Hangul
        (b"\xee", b"f"),  # private use
        (range(0xF0, 0x100), b"e"),  # emoji, rare scripts
    ],
)
_WORDS = _table(b" ", [(b"aAlgkhiv", b"x")])
_NUMBERS = _table(b" ", [(b"0", b"x")])
_MARKS = _table(b" ", [(b".c", b"x")])
_RUN = b" x"
"""Start of a run of letters, digits or marks, once all else was made a space."""

# Tokens that each of these adds, fitted to counts of o200k over files of many kinds.
_RUN_WEIGHTS = ((_WORDS, 0.8), (_NUMBERS, 0.85), (_MARKS, 0.4))
_KIND_WEIGHTS = (
    (b"a", 0.04),
    (b"A", 0.19),
    (b"aA", 0.95),
    (b"a" * 24, 12.0),
    (b"0", 0.33),
    (b"0a", 0.5),
    (b"0A", 0.5),
    (b".", 0.3),
    (b"c", 0.8),
    (b"n", 1.2),
    (b"__", 0.1),
    (b"_0", 1.35),
    (b"_.", 0.4),
    (b"s", 1.0),
    (b"l", 1.2),
    (b"g", 0.32),
    (b"k", 0.18),
    (b"h", 0.26),
    (b"i", 0.34),
    (b"v", 0.27),
    (b"j", 0.68),
    (b"z", 0.72),
    (b"o", 0.54),
    (b"f", 3.0),
    (b"e", 1.3),
)
_RULE_WEIGHTS = ((b"----", -1.15), (b"====", -1.15), (b"****", -1.15), ("────".encode(), -1.7))

# stringzilla ships no type hints.
_count = cast("Callable[[bytes, bytes], int]", stringzilla.count)
_translate = cast("Callable[[bytes, bytes], bytes]", stringzilla.translate)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens of o200k `text` has, within some 30 % for usual text.

    Random letters cost a tokenizer more, long runs of one character less.

    >>> estimate_tokens("The server does not respond.")
    6
    """
    return ceil(max(1.0, weigh_text(text))) if text else 0


def clip_tokens(text: str, budget: int) -> int:
    """Return the length, in code points, of about the longest head within `budget` tokens.

    At least 1 for text that is not empty, so that reading on gets on.
    """
    length = 0
    left = float(budget)
    while length < len(text):
        step = text[length : length + _STEP_CHARS]
        weight = weigh_text(step)
        if weight > left:
            fits = range(len(step))
            length += bisect_right(fits, left, key=lambda chars: weigh_text(step[:chars]))
            break
        length += len(step)
        left -= weight
    # Steps weigh a little less than the whole where a border parts what belongs together.
    while length > 1 and (over := estimate_tokens(text[:length]) - budget) > 0:
        length = max(1, length - over)
    return max(length, 1) if text else 0


def first_within(texts: Iterable[str], budget: int) -> str | None:
    """Return the first of `texts` that is within `budget` tokens, None where none is."""
    return next((text for text in texts if estimate_tokens(text) <= budget), None)


def weigh_text(text: str) -> float:
    """Return the estimate before it is rounded up, so that it adds up over parts."""
    encoded = text.encode("utf-8", "surrogatepass")
    # The mark in front lets a run that starts the text be counted as any other.
    kinds = b"|" + (
        _translate(encoded, _KINDS)
        if text.isascii()
        else encoded.translate(_KINDS, delete=_CONTINUATION)
    )
    weight = sum(weight * _count(kinds, kind) for kind, weight in _KIND_WEIGHTS)
    weight += sum(weight * _count(_translate(kinds, runs), _RUN) for runs, weight in _RUN_WEIGHTS)
    return weight + sum(weight * _count(encoded, rule) for rule, weight in _RULE_WEIGHTS)
