"""What a log tells in numbers: how many lines of each level, and from when to when it goes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import stringzilla

_MOST_READ_CHARS = 2_000_000
"""Text up to this length is counted whole."""
_SAMPLED_CHARS = 250_000
"""How much of either end is looked at of a longer one."""
_EDGE_CHARS = 16_384
"""How far from either end a time is looked for."""

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
_FIELDS = ("level", "severity", "lvl")
"""Names that come before a level in small letters, in logfmt and in JSON."""
_GAPS = (" ", "  ", "   ", "    ")
"""What is between name and level, all marks being spaces: ``=``, ``: ``, ``":"``, ``": "``."""

_SPACED = bytes(
    byte if byte >= 0x80 or byte == ord("\n") or chr(byte).isalnum() or chr(byte) == "_" else 0x20
    for byte in range(256)
)
"""Makes a space of all that is no part of a word, so that a word is found with its borders."""

# stringzilla ships no type hints.
_translate = cast("Callable[[bytes, bytes], bytes]", stringzilla.translate)
_find = cast("Callable[[bytes, bytes], int]", stringzilla.find)

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
            shares = (f"{level} {_share(count, total)}" for level, count in self.levels.items())
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

    Of a longer one, and of one that is but a part, the first and the last 250,000 characters
    are looked at.

    >>> dict(read_log("INFO a\nERROR b\nINFO ERROR INFO c\nINFO d\nINFO e\n").levels)
    {'ERROR': 2, 'INFO': 4}
    """
    sampled = is_part or len(text) > _MOST_READ_CHARS
    part = text
    if sampled and len(text) > 2 * _SAMPLED_CHARS:
        part = text[:_SAMPLED_CHARS] + "\n" + text[-_SAMPLED_CHARS:]
    spaced = _translate(part.encode("utf-8", "surrogatepass"), _SPACED)
    spaced = b" " + spaced.replace(b"\n", b" \n ") + b" "
    counts = {level: _lines(spaced, words) for level, words in _WORDS.items()}
    for field in _FIELDS:
        if _find(spaced, f" {field} ".encode()) >= 0:
            for level, words in _WORDS.items():
                small = [f"{field}{gap}{word.lower()}" for word in words for gap in _GAPS]
                counts[level] += _lines(spaced, small)
    # Of prose that has such a word, it says nothing.
    if sum(counts.values()) < max(_LEAST_LINES, part.count("\n") // 10):
        counts = {}
    levels = {level: count for level, count in counts.items() if count}
    return Log(levels=levels, sampled=sampled, span=_span(text, levels))


def _lines(spaced: bytes, words: Iterable[str]) -> int:
    """Return how many lines have one of the words; a line with two of them counts as two."""
    count = 0
    for word in words:
        # Found first, as that is several times quicker than to split for nothing.
        wanted = f" {word} ".encode()
        if _find(spaced, wanted) >= 0:
            _, *behind = spaced.split(wanted)
            count += 1 + sum(b"\n" in between for between in behind[:-1])
    return count


def _span(text: str, levels: Mapping[str, int]) -> tuple[str, str] | None:
    head, tail = text[:_EDGE_CHARS], text[-_EDGE_CHARS:]
    for form in _TIMES:
        first = form.search(head)
        if first is None:
            continue
        found = form.findall(tail)
        stamped = len(form.findall(head))
        # One line in three, or what only mentions dates would be taken for a log.
        if found and (levels or 3 * stamped >= head.count("\n") > 0) and first[0] != found[-1]:
            return first[0], found[-1]
    return None


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.0f}%" if count * 100 >= total else "<1%"
