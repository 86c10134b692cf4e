"""What all searches share: the windows of a payload, and what is kept of the hits in them."""

from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import InvalidArgumentError, shown
from ..records import Match, Matches, dataclass
from ._find import Hits, decoded
from ._index import BLOCK_CHARS, Index, count_chars, count_newlines, skip_chars
from ._preview import LONGEST_CLUSTER, last_clusters, visible, whole_clusters

NEEDLE_CHARS = 200
"""Longest text or pattern that can be searched for."""
MATCHES_PER_CALL = 50
"""Most matches of one search; a higher limit is clamped to it."""
SNIPPET_CHARS = 120
"""Most characters shown on each side of a hit; fewer where a grapheme cluster would be split."""
HIT_CHARS = 600
"""Most characters shown of a hit itself, as many as match the longest literal text."""

_BORDER_CHARS = LONGEST_CLUSTER + 1
"""Characters beyond a snippet, by which is seen whether its end splits a grapheme cluster."""
SNIPPET_BYTES = 4 * (SNIPPET_CHARS + _BORDER_CHARS)
WINDOW_BYTES = 3_932_160
"""About how much is fetched at once: no more than stores read without a thread, and so much that
what it costs to ask hardly counts."""


class Windowed:
    """A search in a payload that is fed to it window by window.

    Args:
        index: Of the payload to search.
        offset: Character from which on to search.
        limit: Most matches to return, 1 or more; above 50 means 50. All are counted, unless a
            pattern takes too long.
        window_blocks: Blocks of the index in one window.
        part_blocks: What the first block of each window, of all blocks, is a multiple of.
        after_bytes: How far a window reaches over the next one.
        block_chars: Characters of a block, other than in tests 65,536.

    Raises:
        InvalidArgumentError: An argument breaks its rule, or the payload is no text.
    """

    leaves_loop = False
    """Whether a window may take so long that an event loop should not wait for it."""

    def __init__(
        self,
        index: Index,
        *,
        offset: int,
        limit: int,
        window_blocks: int,
        after_bytes: int,
        part_blocks: int = 1,
        block_chars: int = BLOCK_CHARS,
    ) -> None:
        _check_whole("offset", offset, 0)
        _check_whole("limit", limit, 1)
        if index.length_chars is None:
            hint = "Pass the pointer to a tool that takes this type."
            raise InvalidArgumentError("A binary payload cannot be searched for text.", hint)
        self._index = index
        self._offset = offset
        self._limit = min(limit, MATCHES_PER_CALL)
        self._after_bytes = after_bytes
        self._block_chars = block_chars
        self._window_blocks = window_blocks
        self._first_block = offset // (block_chars * part_blocks) * part_blocks
        chars_left = index.length_chars - self._first_block * block_chars
        windows = -(-chars_left // (block_chars * window_blocks))
        self._window_count = windows if offset < index.length_chars else 0
        self._fed = 0
        self._next_byte = 0
        self._total = 0
        self._matches: list[Match] = []
        self._next_offset: int | None = None
        self._ended_early = False

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield the byte ranges, half-open, that are to be fed in this order.

        Each reaches over its neighbours by what a snippet and a hit across the border need.
        """
        for window in range(self._window_count):
            if self._ended_early:
                return
            yield self._fetched(*self._core(window))

    def feed(self, piece: bytes) -> None:
        """Search the next window.

        Raises:
            ValueError: `piece` is not as long as the window.
        """
        core_start, core_stop = self._core(self._fed)
        start, stop = self._fetched(core_start, core_stop)
        if len(piece) != stop - start:
            raise ValueError(f"window {self._fed} has {stop - start} bytes, got {len(piece)}")
        block = self._first_block + self._fed * self._window_blocks
        begin, chars = core_start - start, block * self._block_chars
        cursor = _Cursor(piece, begin, chars, self._index.block_lines(block))
        if self._fed == 0:
            begin = skip_chars(piece, self._offset - chars, begin)
        self._look(
            Window(
                piece=piece,
                block=block,
                start=start,
                # A hit of the window before may reach over the border, even over whole windows.
                begin=max(begin, self._next_byte - start),
                core_end=core_stop - start,
                cursor=cursor,
            )
        )
        self._fed += 1

    def result(self) -> Matches:
        """Return what was found.

        Raises:
            RuntimeError: Not all windows were fed.
        """
        if self._fed != self._window_count and not self._ended_early:
            raise RuntimeError(f"{self._fed} of {self._window_count} windows were fed")
        return Matches(
            matches=tuple(self._matches),
            match_count=len(self._matches),
            total_matches=None if self._ended_early else self._total,
            counted_matches=self._total,
            truncated=self._next_offset is not None,
            next_search_offset=self._next_offset,
        )

    def _look(self, window: "Window") -> None:
        """Search the core of a window from `Window.begin` on."""
        raise NotImplementedError

    def _take(
        self, window: "Window", found: Iterable[Hits[Any]], stop: int, origin: int = 0
    ) -> None:
        """Count the hits that begin before byte `stop` of a window, and keep the first ones.

        Their places count from byte `origin` of the window.
        """
        for hits in found:
            count = hits.count_before(stop - origin)
            if count == 0:
                break
            self._total += count
            self._next_byte = window.start + origin + hits.span(count - 1)[1]
            # One more than is returned: the next call starts there.
            wanted = self._limit + 1 - len(self._matches) if self._next_offset is None else 0
            for number in range(min(count, wanted)):
                first, last = hits.span(number)
                self._keep(window.cursor, origin + first, origin + last)

    def _end(self, window: "Window", byte: int) -> bool:
        """End the search before all is searched, if so many hits were found as were asked for.

        Args:
            window: The one that was searched last.
            byte: Of the window. All hits that begin before it were found.

        Returns:
            Whether it has ended.
        """
        if len(self._matches) < self._limit:
            return False
        if self._next_offset is None:
            window.cursor.move(byte)
            self._next_offset = window.cursor.chars
        self._ended_early = True
        return True

    def _keep(self, cursor: "_Cursor", first: int, last: int) -> None:
        cursor.move(first)
        if len(self._matches) == self._limit:
            self._next_offset = cursor.chars
            return
        piece = cursor.piece
        before_start = skip_chars(piece, 0, max(0, first - SNIPPET_BYTES))
        near = decoded(piece[before_start:first])
        before = near[len(near) - len(last_clusters(visible(near), SNIPPET_CHARS)) :]
        stop = min(
            skip_chars(piece, SNIPPET_CHARS, last),
            skip_chars(piece, HIT_CHARS + SNIPPET_CHARS, first),
        )
        snippet = before + decoded(piece[first:stop])
        beyond = decoded(piece[stop : skip_chars(piece, _BORDER_CHARS, stop)])
        snippet = snippet[: len(whole_clusters(visible(snippet + beyond), len(snippet)))]
        match = Match(cursor.chars, cursor.newlines + 1, cursor.chars - len(before), snippet)
        self._matches.append(match)

    def _core(self, window: int) -> tuple[int, int]:
        first = self._first_block + window * self._window_blocks
        stop = self._index.block_byte(first + self._window_blocks)
        return self._index.block_byte(first), stop

    def _fetched(self, core_start: int, core_stop: int) -> tuple[int, int]:
        # Four bytes more, as the reach is widened to whole characters.
        after = self._after_bytes + 4 + SNIPPET_BYTES
        return max(0, core_start - SNIPPET_BYTES), min(self._index.size_bytes, core_stop + after)


class _Cursor:
    """Where in the payload a byte of the window is, counted on from the last place asked for."""

    def __init__(self, piece: bytes, byte: int, chars: int, newlines: int) -> None:
        self.piece = piece
        self.chars = chars
        self.newlines = newlines
        self._byte = byte

    def move(self, byte: int) -> None:
        passed = memoryview(self.piece)[self._byte : byte]
        self.chars += count_chars(passed)
        self.newlines += count_newlines(passed)
        self._byte = byte


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of a payload, as much before and after it as is needed, and where in it to search.

    All places count bytes of `piece`, but `start`.
    """

    piece: bytes
    block: int
    """The first one of its core."""
    start: int
    """Of the piece, in the payload."""
    begin: int
    core_end: int
    cursor: _Cursor


def blocks_of_window(index: Index) -> int:
    """Return how many blocks of a text make a window of the usual size."""
    block_bytes = BLOCK_CHARS * index.size_bytes // max(index.length_chars or 0, 1)
    return max(1, WINDOW_BYTES // max(block_bytes, 1))


def check_needle(what: str, needle: object) -> None:
    """Check what is searched for, which a message calls `what`.

    Raises:
        InvalidArgumentError: It is no text of 1 to 200 characters.
    """
    if isinstance(needle, str) and 1 <= len(needle) <= NEEDLE_CHARS:
        return
    got = f"{len(needle):,}" if isinstance(needle, str) else shown(needle)
    message = f"{what} has 1 to {NEEDLE_CHARS} characters, got {got}."
    raise InvalidArgumentError(message, "Search for a short, distinctive piece of text.")


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return
    message = f"{name} is a whole number, {least} or more, got {shown(value)}."
    raise InvalidArgumentError(message, f"Leave {name} out, or give {least} or more.")
