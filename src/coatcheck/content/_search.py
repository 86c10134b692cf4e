"""Literal search in a payload's text, window by window. Regular expressions: `_regex`."""

from collections.abc import Callable
from time import thread_time

from ._find import encoded, finders
from ._index import BLOCK_CHARS, Index, skip_chars
from ._windows import MATCHES_PER_CALL, Window, Windowed, blocks_of_window, check_needle

_DENSE_WINDOW_BLOCKS = 4
_SHORT_CHARS = 3
"""Longest needle of which so many hits may stand in a window that it must be smaller."""
_SLICE_BYTES = 1_048_576
_SLOW_SECONDS = 0.04
"""A slice that takes longer is below 26 MB/s, of several GB/s that are usual."""
_HIT_SECONDS = 1e-6
"""What each hit adds, however they are found."""


class Search(Windowed):
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
        check_needle("The text to search for", needle)
        # A character takes up to three times the bytes of its folding: the Kelvin sign and k.
        self._reach_bytes = 3 * max(len(encoded(needle)), len(encoded(needle.casefold()))) + 8
        if _window_blocks is None:
            is_short = len(needle) <= _SHORT_CHARS
            _window_blocks = _DENSE_WINDOW_BLOCKS if is_short else blocks_of_window(index)
        super().__init__(
            index,
            offset=offset,
            limit=limit,
            window_blocks=_window_blocks,
            after_bytes=self._reach_bytes,
            block_chars=_block_chars,
        )
        self._find, self._steady = finders(needle, ignore_case=ignore_case, is_ascii=index.is_ascii)
        self._slice_bytes = _slice_bytes
        self._clock = _clock

    def _look(self, window: Window) -> None:
        begin, core_end = window.begin, window.core_end
        while begin < core_end:
            stop = core_end
            if self._steady is not None:
                end = min(begin + self._slice_bytes, core_end)
                stop = min(core_end, skip_chars(window.piece, 0, end))
            # A hit of the slice before may reach over the border.
            begin = max(begin, self._next_byte - window.start)
            if begin < stop:
                self._scan_timed(window, begin, stop)
            begin = stop

    def _scan_timed(self, window: Window, begin: int, stop: int) -> None:
        """Scan a slice, and give up for good a way to find that is slow on this text."""
        if self._steady is None:
            self._scan(window, begin, stop)
            return
        began, found = self._clock(), self._total
        self._scan(window, begin, stop)
        usual_seconds = _SLOW_SECONDS + (self._total - found) * _HIT_SECONDS
        if self._clock() - began > usual_seconds:
            self._find, self._steady = self._steady, None

    def _scan(self, window: Window, begin: int, stop: int) -> None:
        """Take the hits that begin in ``[begin, stop)``."""
        piece = window.piece
        reach = skip_chars(piece, 0, min(len(piece), stop + self._reach_bytes))
        self._take(window, self._find(memoryview(piece)[begin:reach]), stop, begin)


def search_for(
    index: Index, needle: str, offset: int, limit: int, *, regex: bool, ignore_case: bool
) -> Windowed:
    """Return the search for a text, or for a regular expression.

    Args:
        index: Of the payload to search.
        needle: The text or the expression, 1 to 200 characters.
        offset: Character from which on to search.
        limit: Most matches to return.
        regex: Which of both it is.
        ignore_case: False compares code point by code point.

    Raises:
        InvalidArgumentError: An argument breaks its rule, or the payload is no text.
    """
    if not regex:
        return Search(index, needle, offset, limit, ignore_case)
    from ._regex import RegexSearch

    return RegexSearch(index, needle, offset, limit, ignore_case=ignore_case)
