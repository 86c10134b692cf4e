"""What the engines of regular expressions have in common: how they are asked, and their hits."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

from ._find import Hits, encoded

T = TypeVar("T")
Span = tuple[int, int]
"""Where a hit starts and ends."""

_HITS_AT_ONCE = 64
"""After so many a clock can be looked at: some patterns take milliseconds for each hit."""


class Spanned(Protocol):
    """A match as all engines return it."""

    def span(self) -> Span: ...


class Engine(Protocol):
    """Finds a pattern in parts of a text."""

    remedy: ClassVar[str]
    """What, besides another pattern, would make it quicker: a sentence after a space, or none."""

    def hits(self, text: bytes, start: int, stop: int, seconds: float, /) -> Iterator[Hits[Any]]:
        """Yield the hits in bytes ``[start, stop)``, whole characters.

        What stands around them decides whether a line or a word begins and ends there, so
        `text` goes on behind `stop`, unless the payload ends there.

        Raises:
            TimeoutError: It took longer than `seconds`. Only some engines look at a clock.
        """
        ...


def match_hits(matches: Iterator[Spanned]) -> Iterator[Hits[Spanned]]:
    """Yield hits in small numbers. Where they are is asked of the engine only as needed."""
    return (Hits(found, _span) for found in _some(matches))


def span_hits(spans: Iterator[Span]) -> Iterator[Hits[Span]]:
    """Yield hits in small numbers."""
    return (Hits(found, _same) for found in _some(spans))


def byte_spans(text: str, start: int, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield where ascending spans of characters are in bytes, where `text` begins at `start`.

    >>> list(byte_spans("éa\u20ac!", 10, [(0, 1), (2, 4)]))
    [(10, 12), (13, 17)]
    """
    if text.isascii():
        yield from ((start + first, start + last) for first, last in spans)
        return
    char, byte = 0, start
    for first, last in spans:
        begin = byte + len(encoded(text[char:first]))
        char, byte = last, begin + len(encoded(text[first:last]))
        yield begin, byte


def char_before(text: bytes, byte: int) -> int:
    """Return where the character before `byte` starts, 0 where there is none."""
    byte = max(0, byte - 1)
    while byte and text[byte] & 0b1100_0000 == 0b1000_0000:
        byte -= 1
    return byte


def _some(found: Iterator[T]) -> Iterator[list[T]]:
    while True:
        some: list[T] = []
        try:
            some.extend(islice(found, _HITS_AT_ONCE))
        except TimeoutError:
            if some:  # was found in time
                yield some
            raise
        if not some:
            return
        yield some


def _span(match: Spanned) -> Span:
    return match.span()


def _same(span: Span) -> Span:
    return span
