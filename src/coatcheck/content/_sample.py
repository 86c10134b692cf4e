"""A sample of what passes, spread over all of it: in bounded memory, and the same each time."""

from collections.abc import Sequence

from ._index import BLOCK_ROWS
from ._row_start import row_pattern
from ._rows import RowScanner

_MOST_UNITS = 20_000
_MOST_BLOCKS = 20
_MOST_BYTES = 4 * 1024 * 1024
_BLOCK_BYTES = 256 * 1024
"""What is kept of a block of rows."""
_WHOLE = 1 << 64
_GOLDEN = 0x9E37_79B9_7F4A_7C15
"""The golden ratio's fractional part, of `_WHOLE`."""
_HELD_BYTES = 8 * 1024 * 1024
"""Most that is held of the block that is passing."""


class Sample:
    """Some of the units that pass, evenly spread over all of them, and the last one.

    Unit `n` is kept where the fractional part of `n` times the golden ratio is below a bound,
    which is halved when too many are kept. So their distances are nearly equal, and yet in step
    with nothing that repeats: every second row of two kinds would be of one kind.

    Source: Knuth, The Art of Computer Programming 3, section 6.4, on Fibonacci hashing.

    Args:
        most: Most units that are kept. Of more than 4 MiB in all, fewer are; a single unit of
            more is none.
    """

    def __init__(self, most: int = _MOST_UNITS) -> None:
        self._most = most
        self._bound = _WHOLE
        self._count = self._kept_bytes = 0
        self._kept: list[tuple[int, bytes]] = []
        self.last: bytes | None = None
        """The last unit, where it is none of those that are kept."""

    @property
    def kept(self) -> list[bytes]:
        """The units, in the order in which they came, without `last`."""
        return [unit for _, unit in self._kept]

    @property
    def keeps_next(self) -> bool:
        """Whether the next unit is more than the last one."""
        return self._count * _GOLDEN % _WHOLE < self._bound

    def add(self, unit: bytes) -> None:
        """Take note of the next unit."""
        if len(unit) > _MOST_BYTES:
            return
        self.last = unit
        place = self._count * _GOLDEN % _WHOLE
        self._count += 1
        if place < self._bound:
            self._kept.append((place, unit))
            self._kept_bytes += len(unit)
            self.last = None
        while len(self._kept) > self._most or self._kept_bytes > _MOST_BYTES:
            self._thin()

    def _thin(self) -> None:
        self._bound //= 2
        place, unit = self._kept[-1]
        if self.last is None and place >= self._bound:
            self.last = unit
        self._kept = [each for each in self._kept if each[0] < self._bound]
        self._kept_bytes = sum(len(unit) for _, unit in self._kept)


class BlockSample:
    """Some of the blocks of 1,024 rows that pass, and what stands before the first.

    Args:
        scanner: Finds the rows, and knows their format once it has seen the first.
    """

    def __init__(self, scanner: RowScanner) -> None:
        self.before = b""
        self._scanner = scanner
        self._sample = Sample(_MOST_BLOCKS)
        self._block = bytearray()
        self._is_begun = False

    def add(self, rows: bytes, starts: Sequence[int]) -> None:
        """Take the rows that come next, each whole, and at which of their bytes blocks start."""
        at, view = 0, memoryview(rows)
        for start in starts:
            self._hold(view[at:start])
            self._end_block()
            at = start
        self._hold(view[at:])

    def blocks(self) -> list[bytes]:
        """Return rows of the blocks that were kept, after the last rows have come."""
        self._end_block()
        last = self._sample.last
        return [*self._sample.kept, *(() if last is None else (self._cut(last),))]

    def _hold(self, rows: memoryview) -> None:
        self._block += rows[: _HELD_BYTES - len(self._block)]

    def _end_block(self) -> None:
        block = bytes(self._block)
        self._block.clear()
        if not self._is_begun:
            self.before, self._is_begun = block, True
        elif block:
            is_cut = self._sample.keeps_next or len(block) > _MOST_BYTES
            self._sample.add(self._cut(block) if is_cut else block)

    def _cut(self, block: bytes) -> bytes:
        """Return the block, of a large one rows that are spread over it."""
        if len(block) <= _BLOCK_BYTES:
            return block
        rows, _ = row_pattern(self._scanner.format, block).split(block, BLOCK_ROWS, 0)
        return b"".join(rows[:: -(-len(block) // _BLOCK_BYTES)])
