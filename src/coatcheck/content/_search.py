"""Literal search in a payload's text, window by window. Regular expressions do not live here."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, islice
from typing import Any, Generic, Protocol, TypeVar, cast

import stringzilla

from ..errors import InvalidArgumentError, shown
from ..records import Match, Matches
from ._index import BLOCK_CHARS, Index, count_chars, count_newlines, skip_chars

NEEDLE_CHARS = 200
"""Longest text that can be searched for."""
MATCHES_PER_CALL = 50
"""Most matches of one search; a higher limit is clamped to it."""
SNIPPET_CHARS = 120
"""Most characters shown on each side of a hit."""

_WINDOW_BLOCKS = 16
_SNIPPET_BYTES = 4 * SNIPPET_CHARS
_HITS_AT_ONCE = 65_536

# Letters whose case pairs are younger than Unicode 14. stringzilla folds them, `str.casefold`
# does so or not by Python's version: a needle that touches them takes the slow, exact path.
_UNSETTLED = re.compile(
    "[\u019b\u0264\u1c89\u1c8a\ua7cb-\ua7dc\U00010d50-\U00010d85\U00016ea0-\U00016ed3]"
)


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
_translate = cast("Callable[[memoryview, bytes], bytes]", stringzilla.translate)
_split = cast("Callable[[_Piece, bytes], Iterator[_Piece]]", stringzilla.split_iter)


class Search:
    """Finds a literal text in a payload that is fed to it window by window.

    Hits do not overlap and are found from left to right. Without case, text is compared as
    `str.casefold` folds it, and a hit covers every character of which it needs a part: ``s``
    and ``ss`` both find the whole of ``ß``, once, and ``ß`` finds ``ss``.

    Args:
        index: Of the payload to search.
        needle: 1 to 200 characters. None of them is special; lone surrogates are allowed.
        offset: Character from which on to search.
        limit: Most matches to return, 1 or more; above 50 means 50. All are counted.
        ignore_case: False compares code point by code point.

    Raises:
        InvalidArgumentError: An argument breaks its rule, or the payload is no text.

    Source: The Unicode Standard, section 3.13.5, rule R4 and definition D144.

    >>> from coatcheck.content import encode
    >>> encoding = encode("İstanbul İzmir needle")
    >>> payload = b"".join(encoding.chunks())
    >>> search = Search(encoding.index, "NEEDLE")
    >>> for start, stop in search.windows():
    ...     search.feed(payload[start:stop])
    >>> search.result().matches[0].offset
    15
    """

    def __init__(
        self,
        index: Index,
        needle: str,
        offset: int = 0,
        limit: int = MATCHES_PER_CALL,
        ignore_case: bool = True,  # noqa: FBT001, FBT002 - the order of the wire's arguments
        *,
        _block_chars: int = BLOCK_CHARS,
        _window_blocks: int = _WINDOW_BLOCKS,
    ) -> None:
        _check_needle(needle)
        _check_whole("offset", offset, 0)
        _check_whole("limit", limit, 1)
        if index.length_chars is None:
            hint = "Pass the pointer to a tool that takes this type."
            raise InvalidArgumentError("A binary payload cannot be searched for text.", hint)
        self._index = index
        self._offset = offset
        self._limit = min(limit, MATCHES_PER_CALL)
        self._find = _finder(needle, ignore_case=ignore_case, is_ascii=index.is_ascii)
        # A character takes up to three times the bytes of its folding: the Kelvin sign and k.
        self._reach_bytes = 3 * max(len(_encode(needle)), len(_encode(needle.casefold()))) + 8
        self._block_chars = _block_chars
        self._window_blocks = _window_blocks
        self._first_block = offset // _block_chars
        chars_left = index.length_chars - self._first_block * _block_chars
        windows = -(-chars_left // (_block_chars * _window_blocks))
        self._window_count = windows if offset < index.length_chars else 0
        self._fed = 0
        self._next_byte = 0
        self._total = 0
        self._matches: list[Match] = []
        self._next_offset: int | None = None

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield the byte ranges, half-open, that are to be fed in this order.

        Each reaches over its neighbours by what a snippet and a hit across the border need.
        """
        for window in range(self._window_count):
            yield self._fetched(*self._core(window))

    def feed(self, data: bytes) -> None:
        """Search the next window.

        Raises:
            ValueError: `data` is not as long as the window.
        """
        core_start, core_stop = self._core(self._fed)
        start, stop = self._fetched(core_start, core_stop)
        if len(data) != stop - start:
            raise ValueError(f"window {self._fed} has {stop - start} bytes, got {len(data)}")
        block = self._first_block + self._fed * self._window_blocks
        begin, core_end = core_start - start, core_stop - start
        chars, newlines = block * self._block_chars, self._index.block_lines(block)
        cursor = _Cursor(data, begin, chars, newlines)
        if self._fed == 0:
            begin = skip_chars(data, self._offset - chars, begin)
        # A hit of the window before may reach over the border, even over whole windows.
        begin = max(begin, self._next_byte - start)
        if begin < core_end:
            self._scan(cursor, begin, core_end, start)
        self._fed += 1

    def result(self) -> Matches:
        """Return what was found.

        Raises:
            RuntimeError: Not all windows were fed.
        """
        if self._fed != self._window_count:
            raise RuntimeError(f"{self._fed} of {self._window_count} windows were fed")
        return Matches(
            matches=tuple(self._matches),
            match_count=len(self._matches),
            total_matches=self._total,
            truncated=self._next_offset is not None,
            next_search_offset=self._next_offset,
        )

    def _scan(self, cursor: "_Cursor", begin: int, core_end: int, start: int) -> None:
        """Count the hits that begin in ``[begin, core_end)``, and keep the first ones."""
        reach = skip_chars(cursor.data, 0, min(len(cursor.data), core_end + self._reach_bytes))
        for hits in self._find(memoryview(cursor.data)[begin:reach]):
            count = hits.count_before(core_end - begin)
            if count == 0:
                break
            self._total += count
            self._next_byte = start + begin + hits.span(count - 1)[1]
            # One more than is returned: the next call starts there.
            wanted = self._limit + 1 - len(self._matches) if self._next_offset is None else 0
            for number in range(min(count, wanted)):
                first, last = hits.span(number)
                self._keep(cursor, begin + first, begin + last)

    def _keep(self, cursor: "_Cursor", first: int, last: int) -> None:
        cursor.move(first)
        if len(self._matches) == self._limit:
            self._next_offset = cursor.chars
            return
        data = cursor.data
        before_start = skip_chars(data, 0, max(0, first - _SNIPPET_BYTES))
        before = _decode(data[before_start:first])[-SNIPPET_CHARS:]
        after = _decode(data[last : skip_chars(data, SNIPPET_CHARS, last)])
        snippet = before + _decode(data[first:last]) + after
        match = Match(cursor.chars, cursor.newlines + 1, cursor.chars - len(before), snippet)
        self._matches.append(match)

    def _core(self, window: int) -> tuple[int, int]:
        first = self._first_block + window * self._window_blocks
        stop = self._index.block_byte(first + self._window_blocks)
        return self._index.block_byte(first), stop

    def _fetched(self, core_start: int, core_stop: int) -> tuple[int, int]:
        # Four bytes more, as the reach is widened to whole characters.
        after = self._reach_bytes + 4 + _SNIPPET_BYTES
        return max(0, core_start - _SNIPPET_BYTES), min(self._index.size_bytes, core_stop + after)


class _Cursor:
    """Where in the payload a byte of the window is, counted on from the last place asked for."""

    def __init__(self, data: bytes, byte: int, chars: int, newlines: int) -> None:
        self.data = data
        self.chars = chars
        self.newlines = newlines
        self._byte = byte

    def move(self, byte: int) -> None:
        passed = memoryview(self.data)[self._byte : byte]
        self.chars += count_chars(passed)
        self.newlines += count_newlines(passed)
        self._byte = byte


_Found = TypeVar("_Found")


class _Hits(Generic[_Found]):
    """Hits in order. Their places are looked up one by one: most hits are only counted."""

    def __init__(self, found: list[_Found], span: Callable[[_Found], tuple[int, int]]) -> None:
        self._found = found
        self._span = span

    def span(self, number: int) -> tuple[int, int]:
        return self._span(self._found[number])

    def count_before(self, stop: int) -> int:
        """Return how many hits begin before byte `stop`."""
        count = len(self._found)
        while count and self.span(count - 1)[0] >= stop:
            count -= 1
        return count


_Finder = Callable[[memoryview], Iterator[_Hits[Any]]]


def _finder(needle: str, *, ignore_case: bool, is_ascii: bool) -> _Finder:
    if not ignore_case:
        return partial(_find_exact, _encode(needle))
    if is_ascii:
        return partial(_find_lowered, _encode(needle.casefold()))
    if _UNSETTLED.search(needle + needle.casefold()):
        return partial(_find_folded, needle.casefold())
    return partial(_find_uncased, _encode(needle))


def _find_uncased(needle: bytes, text: memoryview) -> Iterator[_Hits[_Piece]]:
    whole = _view(text)

    def span(hit: _Piece) -> tuple[int, int]:
        start = hit.offset_within(whole)
        return start, start + len(hit)

    hits = _uncased_matches(whole, needle)
    while found := list(islice(hits, _HITS_AT_ONCE)):
        yield _Hits(found, span)


def _find_exact(needle: bytes, text: memoryview) -> Iterator[_Hits[_Piece]]:
    whole = _view(text)

    def span(piece: _Piece) -> tuple[int, int]:
        start = piece.offset_within(whole) + len(piece)
        return start, start + len(needle)

    # A hit lies behind each piece but the last.
    pieces = _split(whole, needle)
    found = list(islice(pieces, _HITS_AT_ONCE))
    while found:
        following = list(islice(pieces, _HITS_AT_ONCE))
        yield _Hits(found if following else found[:-1], span)
        found = following


def _find_lowered(needle: bytes, text: memoryview) -> Iterator[_Hits[_Piece]]:
    """Find in ASCII, where folding is lower case: as quick for ``ss`` as for other needles."""
    return _find_exact(needle, memoryview(_translate(text, _LOWER)))


def _find_folded(needle: str, text: memoryview) -> Iterator[_Hits[tuple[int, int]]]:
    """Find by `str.casefold` itself, character by character: exact, and slow."""
    chars = _decode(text)
    folded = [char.casefold() for char in chars]
    fold_starts = list(accumulate(map(len, folded), initial=0))
    byte_starts = list(accumulate((len(_encode(char)) for char in chars), initial=0))
    whole = "".join(folded)
    hits: list[tuple[int, int]] = []
    found = whole.find(needle)
    while found >= 0:
        first = bisect_right(fold_starts, found) - 1
        behind = bisect_left(fold_starts, found + len(needle))
        hits.append((byte_starts[first], byte_starts[behind]))
        found = whole.find(needle, fold_starts[behind])
    yield _Hits(hits, _itself)


def _itself(span: tuple[int, int]) -> tuple[int, int]:
    return span


def _check_needle(needle: object) -> None:
    if isinstance(needle, str) and 1 <= len(needle) <= NEEDLE_CHARS:
        return
    got = f"{len(needle):,}" if isinstance(needle, str) else shown(needle)
    message = f"The text to search for has 1 to {NEEDLE_CHARS} characters, got {got}."
    raise InvalidArgumentError(message, "Search for a short, distinctive piece of text.")


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return
    message = f"{name} is a whole number, {least} or more, got {shown(value)}."
    raise InvalidArgumentError(message, f"Leave {name} out, or give {least} or more.")


def _decode(text: bytes | memoryview) -> str:
    return str(text, "utf-8", "surrogatepass")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
