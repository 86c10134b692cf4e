"""What a log tells in numbers: how many lines of each level, and from when to when it goes."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import contains
from typing import cast

import stringzilla

from ..records import dataclass
from ._statistics import share

_MOST_READ_CHARS = 2_000_000
"""Text up to this length is counted whole."""
_SAMPLED_CHARS = 65_536
"""How much of either end is looked at of a longer one."""
_PIECE_CHARS = 131_072
_EDGE_CHARS = 16_384
"""How far from either end a time is looked for."""
_LAST_CHARS = 512

_WORDS = {
    "FATAL": ("FATAL", "PANIC"),
    "CRITICAL": ("CRITICAL",),
    "ERROR": ("ERROR",),
    "WARN": ("WARN", "WARNING"),
    "INFO": ("INFO",),
    "DEBUG": ("DEBUG",),
    "TRACE": ("TRACE",),
}
"""Levels, the gravest first, and how each is written in capitals."""
_CAPITALS = [(level, f" {word} ".encode()) for level, words in _WORDS.items() for word in words]
_FIELDS = ("level", "severity", "lvl")
"""Names that come before a level in small letters, in logfmt and in JSON."""
_GAPS = (" ", "  ", "   ", "    ")
"""What is between name and level, all marks being spaces: ``=``, ``: ``, ``":"``, ``": "``."""

_IN_WORDS = frozenset(
    byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or chr(byte) == "_"
)
_SPACED = bytes(byte if byte in _IN_WORDS else 0x20 for byte in range(256))
"""Makes a space of all that is no part of a word, so that a word is found with its borders."""
_LINED = _SPACED[:0x0A] + b"\n" + _SPACED[0x0B:]
"""The same, but lines stay lines."""
_NO_CAPITALS = bytes(byte for byte in sorted(_IN_WORDS) if not chr(byte).isupper() or byte >= 0x80)

# stringzilla ships no type hints.
_translate = cast("Callable[[bytes, bytes], bytes]", stringzilla.translate)
_find = cast("Callable[[bytes, bytes], int]", stringzilla.find)
_count = cast("Callable[..., int]", stringzilla.count)

_TIMES = (
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII),
    re.compile(r"\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?", re.ASCII),
    re.compile(r"[A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d\b", re.ASCII),
)
"""ISO 8601 (RFC 3339), the common log format of web servers, syslog (RFC 3164)."""
_LEAST_LINES = 5
_FRACTION = re.compile(r"[.,]\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a log tells. Empty of text that is none."""

    levels: Mapping[str, int]
    """How many lines name each level, the gravest first; of a sample where `sampled` is."""
    sampled: bool
    span: tuple[str, str] | None
    """First and last time, as they are written."""

    def parts(self) -> Sequence[str]:
        """Return the same in words."""
        parts: list[str] = []
        total = sum(self.levels.values())
        if self.sampled and total:
            shares = (f"{level} {share(count, total)}" for level, count in self.levels.items())
            parts.append(f"sampled: {', '.join(shares)}")
        elif total:
            parts.append(", ".join(f"{level} {count:,}" for level, count in self.levels.items()))
        if self.span:
            first, last = (_FRACTION.sub("", each) for each in self.span)
            # Of the same day, said once.
            day = first[:11] if first[:11] == last[:11] and first[4:5] == "-" else ""
            parts.append(f"{first} to {last.removeprefix(day)}")
        return parts


def read_log(text: str, *, is_part: bool = False) -> Log:
    r"""Return what `text` tells as a log: exact up to 2,000,000 characters, else sampled.

    Of a longer one, and of one that is but a part, the first and the last 65,536 characters
    are looked at.

    >>> dict(read_log("INFO a\nERROR b\nINFO ERROR INFO c\nINFO d\nINFO e\n").levels)
    {'ERROR': 2, 'INFO': 4}
    """
    sampled = is_part or len(text) > _MOST_READ_CHARS
    parts = [text]
    if sampled and len(text) > 2 * _SAMPLED_CHARS:
        parts = [text[:_SAMPLED_CHARS], text[-_SAMPLED_CHARS:]]
    counts = dict.fromkeys(_WORDS, 0)
    newlines = 0
    for part in parts:
        for piece in _whole_lines(part):
            raw = piece.encode("utf-8", "surrogatepass")
            newlines += _count(raw, b"\n")
            _add_levels(raw, counts)
    # Of prose that has such a word, it says nothing.
    if sum(counts.values()) < max(_LEAST_LINES, newlines // 10):
        counts = {}
    levels = {level: count for level, count in counts.items() if count}
    return Log(levels=levels, sampled=sampled, span=_span(text, levels))


def _whole_lines(text: str) -> Iterator[str]:
    """Yield `text` in pieces that end with a line: what is made of each stays in the cache."""
    start = 0
    while start < len(text):
        stop = start + _PIECE_CHARS
        if stop < len(text):
            # A line that is longer is not parted.
            stop = text.rfind("\n", start, stop) + 1 or text.find("\n", stop) + 1
        yield text[start : stop or len(text)]
        start = stop or len(text)


def _add_levels(raw: bytes, counts: dict[str, int]) -> None:
    """Count the lines of each level; a line with two words of one level counts twice."""
    spaced = _translate(b" %b " % raw, _SPACED)
    _add_capitals(raw, spaced, counts)
    for field in _FIELDS:
        if _find(spaced, f" {field} ".encode()) < 0:
            continue
        lined = _bordered(_translate(raw, _LINED))
        for level, words in _WORDS.items():
            small = (f" {field}{gap}{word.lower()} " for word in words for gap in _GAPS)
            counts[level] += sum(_lines(lined, each.encode()) for each in small)


def _add_capitals(raw: bytes, spaced: bytes, counts: dict[str, int]) -> None:
    found: list[tuple[str, bytes, int]] = []
    for level, wanted in _CAPITALS:
        if often := _count(spaced, wanted, allowoverlap=True):
            found.append((level, wanted, often))
    if not found:
        return
    # Without what no level is made of, most lines are the same few: each is looked at once. What
    # was parted may stand together then, so that there may be more of a word, but never less.
    short = _bordered(raw.translate(_LINED, _NO_CAPITALS))
    lines = Counter(short.split(b"\n")).items()
    for level, wanted, often in found:
        if often == _count(short, wanted, allowoverlap=True):
            counts[level] += sum(count for line, count in lines if wanted in line)
        else:
            counts[level] += _lines(_bordered(_translate(raw, _LINED)), wanted)


def _bordered(lined: bytes) -> bytes:
    return b" %b " % lined.replace(b"\n", b" \n ")


def _lines(lined: bytes, wanted: bytes) -> int:
    """Return how many lines have a word."""
    # Found first, as that is several times quicker than to split for nothing.
    if _find(lined, wanted) < 0:
        return 0
    _, *behind = lined.split(wanted)
    return 1 + sum(map(contains, behind[:-1], repeat(b"\n")))


def _span(text: str, levels: Mapping[str, int]) -> tuple[str, str] | None:
    head, tail = text[:_EDGE_CHARS], text[-_EDGE_CHARS:]
    for form in _TIMES:
        first = form.search(head)
        if first is None:
            continue
        # The last line mostly has one.
        found = form.findall(tail[-_LAST_CHARS:]) or form.findall(tail)
        # One line in three, or what only mentions dates would be taken for a log.
        is_log = levels or 3 * len(form.findall(head)) >= head.count("\n") > 0
        if found and is_log and first[0] != found[-1]:
            return first[0], found[-1]
    return None
