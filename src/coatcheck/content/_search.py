"""Literal search in a payload's text, window by window. Regular expressions do not live here."""

from collections.abc import Callable, Iterator
from time import thread_time

from ..errors import InvalidArgumentError, shown
from ..records import Match, Matches
from ._find import decoded, encoded, finders
from ._index import BLOCK_CHARS, Index, count_chars, count_newlines, skip_chars

NEEDLE_CHARS = 200
"""Longest text that can be searched for."""
MATCHES_PER_CALL = 50
"""Most matches of one search; a higher limit is clamped to it."""
SNIPPET_CHARS = 120
"""Most characters shown on each side of a hit."""

_WINDOW_BLOCKS = 16
_DENSE_WINDOW_BLOCKS = 4
_SHORT_CHARS = 3
"""Longest needle of which so many hits may stand in a window that it must be smaller."""
_SLICE_BYTES = 262_144
_SLOW_SECONDS = 0.01
"""A slice that takes longer is below 26 MB/s, of several GB/s that are usual."""
_HIT_SECONDS = 1e-6
"""What each hit adds, however they are found."""
_SNIPPET_BYTES = 4 * SNIPPET_CHARS


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
        _window_blocks: int | None = None,
        _slice_bytes: int = _SLICE_BYTES,
        _clock: Callable[[], float] = thread_time,
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
        self._find, self._steady = finders(needle, ignore_case=ignore_case, is_ascii=index.is_ascii)
        self._slice_bytes = _slice_bytes
        self._clock = _clock
        # A character takes up to three times the bytes of its folding: the Kelvin sign and k.
        self._reach_bytes = 3 * max(len(encoded(needle)), len(encoded(needle.casefold()))) + 8
        self._block_chars = _block_chars
        if _window_blocks is None:
            is_short = len(needle) <= _SHORT_CHARS
            _window_blocks = _DENSE_WINDOW_BLOCKS if is_short else _WINDOW_BLOCKS
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
        while begin < core_end:
            stop = core_end
            if self._steady is not None:
                stop = min(core_end, skip_chars(data, 0, min(begin + self._slice_bytes, core_end)))
            # A hit of the slice before may reach over the border, even over whole windows.
            begin = max(begin, self._next_byte - start)
            if begin < stop:
                self._scan_timed(cursor, begin, stop, start)
            begin = stop
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

    def _scan_timed(self, cursor: "_Cursor", begin: int, stop: int, start: int) -> None:
        """Scan a slice, and give up for good a way to find that is slow on this text."""
        if self._steady is None:
            self._scan(cursor, begin, stop, start)
            return
        began, found = self._clock(), self._total
        self._scan(cursor, begin, stop, start)
        usual_seconds = _SLOW_SECONDS + (self._total - found) * _HIT_SECONDS
        if self._clock() - began > usual_seconds:
            self._find, self._steady = self._steady, None

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
        before = decoded(data[before_start:first])[-SNIPPET_CHARS:]
        after = decoded(data[last : skip_chars(data, SNIPPET_CHARS, last)])
        snippet = before + decoded(data[first:last]) + after
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
