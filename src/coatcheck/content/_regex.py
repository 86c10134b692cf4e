"""Search for a regular expression in a payload's text, window by window and line by line."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from time import monotonic
from typing import Any

from ..errors import DeadlineError
from ._find import Hits
from ._index import BLOCK_CHARS, Index, skip_chars
from ._regex_hits import Engine
from ._regex_needles import Places
from ._regex_syntax import parse_regex
from ._regex_tree import Node, has_borders
from ._windows import MATCHES_PER_CALL, Window, Windowed, blocks_of_window, check_needle

DEADLINE_SECONDS = 10.0
"""How long a pattern may be looked for in one payload; to fetch it does not count."""
REACH_BYTES = 65_536
"""Longest line that is never cut. In a longer one, no hit that is longer is found whole."""
PART_BLOCKS = 4
"""Blocks of the index after which a longer line is cut."""


class RegexSearch(Windowed):
    r"""Finds a regular expression in a payload that is fed to it window by window.

    A hit lies within one line, is not empty, and overlaps no other; they are found from left to
    right. ``^`` and ``$`` match where lines start and end, before ``\n`` or ``\r\n``. ``\w``,
    ``\d``, ``\s`` and ``\b`` are those of Unicode. Without case, characters are equal that simple
    case folding makes equal, one for one.

    A line of more than 65,536 bytes is cut after each 262,144 characters of the text: behind that,
    as many bytes are looked at for hits that began before it. So one that is longer may be cut.

    Args:
        index: Of the payload to search.
        pattern: 1 to 200 characters, as `parse_regex` reads them.
        offset: Character from which on to search.
        limit: Most matches to return, 1 or more; above 50 means 50. Where these are found, the
            rest is only counted, as long as there is time.
        ignore_case: Whether case counts where the pattern does not say.
        seconds: How long the windows may take in all.

    Raises:
        InvalidArgumentError: An argument breaks its rule, the payload is no text, or the pattern
            is none that all engines understand.

    >>> from coatcheck.content import encode
    >>> encoding = encode("id=7\nid=42 done")
    >>> payload = b"".join(encoding.chunks())
    >>> search = RegexSearch(encoding.index, r"^ID=\d\d")
    >>> for start, stop in search.windows():
    ...     search.feed(payload[start:stop])
    >>> search.result().matches[0].line_number
    2
    """

    leaves_loop = True

    def __init__(
        self,
        index: Index,
        pattern: str,
        offset: int = 0,
        limit: int = MATCHES_PER_CALL,
        *,
        ignore_case: bool = True,
        seconds: float = DEADLINE_SECONDS,
        _engine: Callable[[Node, bool], Engine] | None = None,
        _block_chars: int = BLOCK_CHARS,
        _window_blocks: int | None = None,
        _reach_bytes: int = REACH_BYTES,
        _clock: Callable[[], float] = monotonic,
    ) -> None:
        check_needle("The regular expression", pattern)
        blocks = _window_blocks or blocks_of_window(index)
        super().__init__(
            index,
            offset=offset,
            limit=limit,
            window_blocks=-(-blocks // PART_BLOCKS) * PART_BLOCKS,
            after_bytes=_reach_bytes,
            part_blocks=PART_BLOCKS,
            block_chars=_block_chars,
        )
        node = parse_regex(pattern, ignore_case=ignore_case)
        self._engine = (_engine or engine_for)(node, index.is_ascii)
        self._places = Places(node, is_ascii=index.is_ascii)
        self._reach_bytes = _reach_bytes
        self._clock = _clock
        self._seconds = seconds
        self._left_seconds = seconds
        self._stops_at = 0.0
        self._at = 0

    def _look(self, window: Window) -> None:
        self._stops_at = self._clock() + self._left_seconds
        begin = max(window.begin, self._at - window.start)
        end = min(len(window.piece), window.core_end + self._reach_bytes)
        places = self._places.find(memoryview(window.piece)[begin:end])
        if places is not None:
            places = [begin + place for place in places]
        # The part before the first block ends behind its start, if a line goes on there.
        for block in range(window.block, window.block + self._window_blocks + 1):
            cut, stop = self._part(window, block)
            if begin < cut and (cut == stop or block % PART_BLOCKS == 0):
                hits = self._found(window.piece, begin, cut, stop, places)
                try:
                    self._take(window, self._in_time(hits), cut)
                except TimeoutError:
                    if not self._end(window, max(begin, self._next_byte - window.start)):
                        raise self._late() from None
                    return
                begin = max(cut, self._next_byte - window.start)
        self._at = window.start + begin
        self._left_seconds = self._stops_at - self._clock()

    def _part(self, window: Window, block: int) -> tuple[int, int]:
        """Return where the part of the text before a block ends, and how far its hits may reach.

        Parts end with lines, each soon behind a border of two blocks. Where the line does not end
        soon, the part may end at the border itself. It does not hang on where a search begins.
        """
        border = self._index.block_byte(block) - window.start
        size = self._index.size_bytes - window.start
        if border <= 0 or border >= size:
            return min(border, size), min(border, size)
        stop = border + self._reach_bytes
        newline = window.piece.find(b"\n", border - 1, stop)
        if newline >= 0:
            return newline + 1, newline + 1
        if stop >= size:
            return size, size
        return border, skip_chars(window.piece, 0, stop)

    def _found(
        self, piece: bytes, begin: int, cut: int, stop: int, places: list[int] | None
    ) -> Iterator[Hits[Any]]:
        """Yield the hits that begin in ``[begin, cut)`` and end before `stop`, perhaps more."""
        if places is None:
            yield from self._hits(piece, begin, stop)
            return
        first, behind = bisect_left(places, begin), bisect_left(places, stop)
        if first == behind:
            return
        if cut < stop:
            yield from self._hits(piece, begin, stop)
            return
        head, lines = _lines_of(piece, begin, cut, places[first:behind])
        if head:
            yield from self._hits(piece, begin, head)
        if lines:
            excerpt = _Excerpt(piece, lines)
            for hits in self._hits(excerpt.text, 0, len(excerpt.text)):
                yield excerpt.placed(hits)

    def _hits(self, text: bytes, start: int, stop: int) -> Iterator[Hits[Any]]:
        # A clock that is asked for no time at all would not stop.
        seconds = max(self._stops_at - self._clock(), 0.001)
        return self._engine.hits(text, start, stop, seconds)

    def _in_time(self, found: Iterator[Hits[Any]]) -> Iterator[Hits[Any]]:
        for hits in found:
            yield hits
            self._check_time()
        self._check_time()

    def _check_time(self) -> None:
        if self._clock() > self._stops_at:
            raise TimeoutError

    def _late(self) -> DeadlineError:
        hint = "Search for a rarer pattern, one with more literal text, or from a later offset."
        hint += self._engine.remedy
        return DeadlineError("The search", self._seconds, hint)


def _lines_of(
    piece: bytes, begin: int, stop: int, places: list[int]
) -> tuple[int, list[tuple[int, int]]]:
    """Return where the lines are that hold any of some places, in a part that ends with a line.

    The first line may have begun before the part: then where it ends comes first, else 0.
    """
    head, end = 0, begin
    lines: list[tuple[int, int]] = []
    for place in places:
        if place < end:
            continue  # in the same line as the one before
        newline = piece.find(b"\n", place, stop)
        before = piece.rfind(b"\n", max(0, begin - 1), place)
        start, end = before + 1, stop if newline < 0 else newline + 1
        if before < 0 and begin > 0:
            head = end
        else:
            lines.append((start, end))
    return head, lines


class _Excerpt:
    """Some lines of a text as one, so that an engine is asked once for all of them."""

    def __init__(self, piece: bytes, lines: list[tuple[int, int]]) -> None:
        self.text = b"".join(piece[start:stop] for start, stop in lines)
        self._origins = [start for start, _ in lines]
        self._starts = list(accumulate((stop - start for start, stop in lines[:-1]), initial=0))

    def placed(self, hits: Hits[Any]) -> Hits[int]:
        """Return the same hits where they are in the text."""

        def span(number: int) -> tuple[int, int]:
            first, last = hits.span(number)
            line = bisect_right(self._starts, first) - 1
            shift = self._origins[line] - self._starts[line]
            return first + shift, last + shift

        return Hits(list(range(len(hits))), span)


def engine_for(node: Node, is_ascii: bool) -> Engine:  # noqa: FBT001 - so engines are made
    """Return the engine that there is for a pattern: RE2, or else `regex`.

    Args:
        node: The pattern.
        is_ascii: Whether all texts to come are ASCII.

    Raises:
        InvalidArgumentError: The pattern is too large for it.
    """
    try:
        from ._regex_re2 import BorderedRe2Engine, Re2Engine
    except ImportError:
        from ._regex_timed import TimedEngine

        return TimedEngine(node, is_ascii=is_ascii)
    if has_borders(node) and not is_ascii:
        return BorderedRe2Engine(node)
    return Re2Engine(node, is_ascii=is_ascii)
