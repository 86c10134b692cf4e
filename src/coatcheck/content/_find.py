"""How a needle is found in one window of text: three engines that all find the same hits."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate, islice, pairwise
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar, cast

import stringzilla

from ._index import count_chars, skip_chars

_HITS_AT_ONCE = 65_536
_PIECE_BYTES = 1_024
_SLICE_BYTES = 524_288
_USUAL_SECONDS_PER_BYTE = 0.3e-9
_USUAL_SECONDS_PER_HIT = 0.2e-6
_SLOW_TIMES = 3

# Letters whose case pairs are younger than Unicode 14. stringzilla folds them, `str.casefold`
# does so or not by Python's version: a needle that touches them is folded by Python.
UNSETTLED = re.compile(
    "[\u019b\u0264\u1c89\u1c8a\ua7cb-\ua7dc\U00010d50-\U00010d85\U00016ea0-\U00016ed3]"
)

# All characters that fold to several are in here, from the sharp s to the Armenian ligatures.
FOLDS_LONGER = range(0xDF, 0xFB18)

_LOWER = bytes(range(256)).lower()


class _Piece(Protocol):
    """A part of a text, as stringzilla gives it: a view, whose place is known by its address."""

    def __len__(self) -> int: ...
    def offset_within(self, larger: "_Piece", /) -> int: ...


# stringzilla ships no type hints.
_view = cast("Callable[[memoryview], _Piece]", stringzilla.Str)
_uncased_matches = cast(
    "Callable[[_Piece, bytes], Iterator[_Piece]]", stringzilla.utf8_uncased_matches
)
_index = cast("Callable[[memoryview, bytes], int]", stringzilla.find)
_translate = cast("Callable[..., None]", stringzilla.translate)
_split = cast("Callable[[_Piece, bytes], Iterator[_Piece]]", stringzilla.split_iter)
_fold = cast("Callable[[bytes | memoryview], bytes]", stringzilla.utf8_uncased_fold)


_Found = TypeVar("_Found")


class Hits(Generic[_Found]):
    """Hits in order. Their places are looked up one by one: most hits are only counted."""

    def __init__(self, found: list[_Found], span: Callable[[_Found], tuple[int, int]]) -> None:
        self._found = found
        self._span = span

    def __len__(self) -> int:
        return len(self._found)

    def span(self, number: int) -> tuple[int, int]:
        return self._span(self._found[number])

    def count_before(self, stop: int) -> int:
        """Return how many hits begin before byte `stop`."""
        count = len(self._found)
        while count and self.span(count - 1)[0] >= stop:
            count -= 1
        return count


Finder = Callable[[memoryview], Iterator[Hits[Any]]]
_Fold = Callable[[bytes | memoryview], bytes]


def finders(needle: str, *, ignore_case: bool, is_ascii: bool) -> tuple[Finder, Finder | None]:
    """Return how to find, and with what to go on where that is slow: both find the same."""
    if not ignore_case:
        return partial(_find_exact, encoded(needle)), None
    if is_ascii:
        return _Lowered(encoded(needle.casefold())).find, None
    if UNSETTLED.search(needle + needle.casefold()):
        return partial(_find_folded, needle.casefold(), _casefold), None
    steady = partial(_find_folded, needle.casefold(), _fold)
    if needle.casefold().isascii():
        return AsciiFinder(needle).find, steady
    return partial(_find_uncased, encoded(needle)), steady


class AsciiFinder:
    """Finds letters of ASCII in any text, on another way once the usual one has been slow.

    stringzilla takes ten times as long for some short words, as ``list``. Text without a letter
    that folds to one of the needle's, such as the sharp s, is then searched as if it was ASCII.

    Args:
        needle: Its folding is ASCII.
        clock: In seconds.
    """

    def __init__(self, needle: str, clock: Callable[[], float] = perf_counter) -> None:
        self._needle = encoded(needle)
        self._clock = clock
        self._slow_times = 0
        self._lowered: _Lowered | None = None
        self._others: tuple[bytes, ...] = ()

    def find(self, text: memoryview) -> Iterator[Hits[_Piece]]:
        """Yield the hits in `text`."""
        if self._lowered is not None and not any(_index(text, each) >= 0 for each in self._others):
            yield from self._lowered.find(text)
            return
        uncased = _find_uncased(self._needle, text)
        left_seconds = len(text) * _USUAL_SECONDS_PER_BYTE
        while True:
            began = self._clock()
            hits = next(uncased, None)
            left_seconds -= self._clock() - began
            if hits is None:
                break
            left_seconds += len(hits) * _USUAL_SECONDS_PER_HIT
            yield hits
        # Not once: others may have had the processor.
        self._slow_times = self._slow_times + 1 if left_seconds < 0 else 0
        if self._slow_times == _SLOW_TIMES and self._lowered is None:
            needle = decoded(self._needle).casefold()
            self._others = _others_of(needle)
            self._lowered = _Lowered(encoded(needle))


def _find_uncased(needle: bytes, text: memoryview) -> Iterator[Hits[_Piece]]:
    whole = _view(text)

    def span(hit: _Piece) -> tuple[int, int]:
        start = hit.offset_within(whole)
        return start, start + len(hit)

    hits = _uncased_matches(whole, needle)
    while found := list(islice(hits, _HITS_AT_ONCE)):
        yield Hits(found, span)


def _find_exact(needle: bytes, text: memoryview, origin: int = 0) -> Iterator[Hits[_Piece]]:
    whole = _view(text)

    def span(piece: _Piece) -> tuple[int, int]:
        start = origin + piece.offset_within(whole) + len(piece)
        return start, start + len(needle)

    # A hit lies behind each piece but the last.
    pieces = _split(whole, needle)
    found = list(islice(pieces, _HITS_AT_ONCE))
    while found:
        following = list(islice(pieces, _HITS_AT_ONCE))
        yield Hits(found if following else found[:-1], span)
        found = following


class _Lowered:
    """Finds in ASCII, where folding is lower case: as quick for ``ss`` as for other needles.

    The text is lowered slice by slice, in memory that stays in the processor's cache: new
    memory takes ten times as long as the work.
    """

    def __init__(self, needle: bytes) -> None:
        self._needle = needle
        self._lowered = bytearray(_SLICE_BYTES + len(needle))

    def find(self, text: memoryview) -> Iterator[Hits[_Piece]]:
        begin = 0
        while begin < len(text):
            stop = begin + _SLICE_BYTES
            part = text[begin : stop + len(self._needle) - 1]
            lowered = memoryview(self._lowered)[: len(part)]
            lowered[:] = part
            _translate(lowered, _LOWER, inplace=True)
            behind = stop
            for hits in _find_exact(self._needle, lowered, begin):
                if len(hits):
                    behind = max(stop, hits.span(len(hits) - 1)[1])
                    yield hits
            begin = behind


def _others_of(needle: str) -> tuple[bytes, ...]:
    """Return how all letters begin, outside of ASCII, that fold to a letter of the needle."""
    letters = [
        encoded(char) for char, folding in _folding_to_ascii().items() if set(folding) & set(needle)
    ]
    heads = Counter(letter[:2] for letter in letters)
    return tuple({letter if heads[letter[:2]] == 1 else letter[:2] for letter in letters})


@cache
def _folding_to_ascii() -> dict[str, str]:
    folding = {chr(code): chr(code).casefold() for code in (*FOLDS_LONGER, 0x212A, 0x17F)}
    return {char: folded for char, folded in folding.items() if re.search("[a-z]", folded)}


def _find_folded(needle: str, fold: _Fold, text: memoryview) -> Iterator[Hits[int]]:
    """Find in the folded text, at a speed that hangs on neither needle nor text."""
    folded = _Folded(text, fold)
    wanted = encoded(needle)
    inside: tuple[bytes, ...] = ()
    if not folded.is_even:
        inside = tuple(encoded(pair[1]) for pair in _inner_pairs() if pair[0] == needle[-1])

    def span(hit: int) -> tuple[int, int]:
        return folded.first(hit), folded.behind(hit + len(wanted))[1]

    start = 0
    find = partial(folded.parted_hits, inside=inside) if inside else folded.hits
    while found := find(wanted, start):
        yield Hits(found, span)
        start = folded.behind(found[-1] + len(wanted))[0]


class _Folded:
    """A text folded piece by piece, and which character each folded byte came from."""

    def __init__(self, text: memoryview, fold: _Fold) -> None:
        self._text = text
        self._fold = fold
        self._starts = [0]
        pieces: list[bytes] = []
        while self._starts[-1] < len(text):
            start = self._starts[-1]
            stop = skip_chars(text, 0, min(start + _PIECE_BYTES, len(text)))
            pieces.append(fold(text[start:stop]))
            self._starts.append(stop)
        self._folded = b"".join(pieces)
        self._folded_starts = list(accumulate(map(len, pieces), initial=0))
        self._piece = -1
        self._places: tuple[list[int], list[int]] = ([], [])

    @property
    def is_even(self) -> bool:
        """Whether each character folds to one."""
        return count_chars(self._folded) == count_chars(self._text)

    def hits(self, needle: bytes, start: int) -> list[int]:
        """Return where hits begin from byte `start` on, no two of which share a byte."""
        whole = _view(memoryview(self._folded)[start:])
        found = [
            start + piece.offset_within(whole) + len(piece)
            for piece in islice(_split(whole, needle), _HITS_AT_ONCE)
        ]
        if found[-1] == len(self._folded):
            del found[-1]  # what lies behind the last hit
        return found

    def parted_hits(self, needle: bytes, start: int, inside: tuple[bytes, ...]) -> list[int]:
        """Return the same where a hit may end inside of a character, which no other then shares.

        Args:
            needle: Folded.
            start: Byte to begin at.
            inside: What may follow inside of one character on the needle's last one.
        """
        found: list[int] = []
        hit = self._folded.find(needle, start)
        while hit >= 0 and len(found) < _HITS_AT_ONCE:
            found.append(hit)
            stop = hit + len(needle)
            if self._folded.startswith(inside, stop):
                stop = self.behind(stop)[0]
            hit = self._folded.find(needle, stop)
        return found

    def first(self, byte: int) -> int:
        """Return where in the text the character of a folded byte begins."""
        folded, places = self._characters(byte)
        return places[bisect_right(folded, byte) - 1]

    def behind(self, byte: int) -> tuple[int, int]:
        """Return the first border of characters at a folded byte or behind: folded, and in text."""
        folded, places = self._characters(byte - 1)
        border = bisect_left(folded, byte)
        return folded[border], places[border]

    def _characters(self, byte: int) -> tuple[list[int], list[int]]:
        piece = bisect_right(self._folded_starts, byte) - 1
        if piece != self._piece:
            start, stop = self._starts[piece], self._starts[piece + 1]
            text = decoded(self._text[start:stop])
            sizes = {char: len(encoded(char)) for char in set(text)}
            folded_sizes = {char: len(self._fold(encoded(char))) for char in sizes}
            self._places = (
                list(
                    accumulate(
                        map(folded_sizes.__getitem__, text), initial=self._folded_starts[piece]
                    )
                ),
                list(accumulate(map(sizes.__getitem__, text), initial=start)),
            )
            self._piece = piece
        return self._places


@cache
def _inner_pairs() -> frozenset[str]:
    """Return the pairs of characters between which one character's folding may go on."""
    foldings = (chr(code).casefold() for code in FOLDS_LONGER)
    return frozenset("".join(pair) for folding in foldings for pair in pairwise(folding))


def _casefold(text: bytes | memoryview) -> bytes:
    return encoded(decoded(text).casefold())


def decoded(text: bytes | memoryview) -> str:
    return str(text, "utf-8", "surrogatepass")


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
