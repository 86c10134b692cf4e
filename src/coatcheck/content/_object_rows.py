"""Objects as the rows of a table: their columns, counted one by one, and a sample of the values.

Rows come in blocks, so that a table can be described that is never held whole.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import cast

from ._statistics import Column, describe

EXACT_ROWS = 100_000
"""Rows up to which all statistics are exact."""
SAMPLED_ROWS = 20_000
MOST_COLUMNS = 100
"""Columns described; all of them are counted."""
_BLOCK_ROWS = 65_536
"""Rows looked at in one loop of C code, so that other threads come to run in between."""
_LEAST_FILLED = 0.2
"""Below this part of rows times columns that is there, rows are no table."""
_FIRST_ROWS = 100
_PLACES = 1_000
_GOLDEN = 2_654_435_769
"""The golden ratio's fractional part, of 2 to the power of 32."""
_WORD = (1 << 32) - 1

Rows = Sequence[Mapping[object, object]]
_KEYS = cast("Callable[[Mapping[object, object]], Iterable[object]]", dict.keys)
_VALUES = cast("Callable[[Mapping[object, object]], Iterable[object]]", dict.values)


class ObjectRows:
    """What rows have in common. Up to 100,000 are held; of more, a sample of 20,000.

    Number of rows, names, types and nulls are of all rows.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: Rows = ()
        """The first hundred."""
        self._names: dict[object, None] = {}
        self._filled = 0
        self._are_uniform = True
        self._held: list[Mapping[object, object]] = []
        self._sample: _Sample | None = None
        self._types: dict[object, Counter[type]] = {}

    @classmethod
    def of(cls, rows: Rows) -> "ObjectRows":
        """Return what rows in hand have in common. Raises as `add`."""
        made = cls()
        for block in _blocks(rows):
            made.add(block)
        return made

    def add(self, block: Rows) -> None:
        """Look at the next rows.

        Raises:
            TypeError: One of them is no dict.
        """
        if not self.count:
            self.first = block[:_FIRST_ROWS]
        self.count += len(block)
        is_uniform = self._add_names(block)
        if self._sample is not None:
            self._sample.add(block)
            self._add_types(block, is_uniform=is_uniform)
            return
        self._held += block
        if self.count > EXACT_ROWS:
            self._sample = _Sample()
            self._sample.add(self._held)
            for each in _blocks(self._held):
                self._add_types(each, is_uniform=_are_uniform(each, list(self._names)))
            self._held = []

    @property
    def are_filled(self) -> bool:
        """Whether rows have enough of the same keys to be a table."""
        columns = len(self._names)
        return columns > 0 and self._filled >= _LEAST_FILLED * self.count * columns

    @property
    def column_count(self) -> int:
        """How many keys there are."""
        return len(self._names)

    @property
    def sampled(self) -> int | None:
        """How many rows the statistics are from, None where from all."""
        return None if self._sample is None else SAMPLED_ROWS

    def columns(self) -> list[Column]:
        """Return the first hundred columns."""
        rows = self._held if self._sample is None else self._sample.rows()
        names = list(islice(self._names, MOST_COLUMNS))
        if self._are_uniform:
            flat = list(chain.from_iterable(map(_VALUES, rows)))
            columns = (flat[at :: len(self._names)] for at in range(len(names)))
        else:
            columns = (_column(rows, name) for name in names)
        describes = self._sampled_column if self._sample else _whole_column
        return [describes(name, values) for name, values in zip(names, columns, strict=True)]

    def _sampled_column(self, name: object, values: Sequence[object]) -> Column:
        types = self._types[name]
        missing = self.count - sum(types.values())
        if missing:  # it came only with later blocks
            types[type(None)] += missing
        return describe(str(name), values, types=types.keys(), nulls=types[type(None)])

    def _add_names(self, block: Rows) -> bool:
        """Count the keys of the next rows; return whether each row has all there are, in order."""
        names = list(self._names or _KEYS(block[0]))
        if names and _are_uniform(block, names):
            self._names = self._names or dict.fromkeys(names)
            self._filled += len(block) * len(names)
            return True
        self._names.update(dict.fromkeys(chain.from_iterable(map(_KEYS, block))))
        self._filled += sum(map(len, block))
        self._are_uniform = False
        return False

    def _add_types(self, block: Rows, *, is_uniform: bool) -> None:
        names = list(self._names)
        for name in names[len(self._types) : MOST_COLUMNS]:
            self._types[name] = Counter()
        if not is_uniform:
            for name, counter in self._types.items():
                counter.update(map(type, _column(block, name)))
            return
        # Row by row, so that every so many stand in the same column.
        types = list(map(type, chain.from_iterable(map(_VALUES, block))))
        for at, counter in enumerate(self._types.values()):
            own = types[at :: len(names)]
            alike = own.count(own[0])
            # Quicker than to count each, as most columns are of one type.
            if alike == len(own):
                counter[own[0]] += alike
            else:
                counter.update(own)


def _whole_column(name: object, values: Sequence[object]) -> Column:
    return describe(str(name), values)


class _Sample:
    """Keeps some of the rows that pass, spread evenly over all, however many those will be.

    One row of each group is kept, at a place in it that only looks random. Where the groups have
    become too many, each two of them become one. So it is the same rows each time, in whatever
    blocks they come.
    """

    def __init__(self) -> None:
        self._kept: list[Mapping[object, object]] = []
        self._level = 0
        """A group has two to the power of this rows."""
        self._passed = 0
        self._due: Sequence[int] = ()
        """Rows to keep of the next groups, in order."""

    def add(self, block: Rows) -> None:
        """Look at the next rows."""
        first = self._passed
        self._passed += len(block)
        while True:
            if not self._due:
                self._due = self._next_places()
            covered = bisect_left(self._due, self._passed)
            self._kept += [block[place - first] for place in self._due[:covered]]
            self._due = self._due[covered:]
            if self._due:
                return

    def _next_places(self) -> Sequence[int]:
        kept = self._kept
        if len(kept) == 2 * SAMPLED_ROWS:
            self._level += 1
            self._kept = kept = [kept[at] for at in _places(range(SAMPLED_ROWS), 1)]
        groups = range(len(kept), min(len(kept) + _PLACES, 2 * SAMPLED_ROWS))
        return _places(groups, self._level)

    def rows(self) -> Rows:
        """Return 20,000 of the rows that passed, in order."""
        # Each as likely as any other: of what repeats, one of every so many would favour some.
        drawn = sorted(range(len(self._kept)), key=_lot)[:SAMPLED_ROWS]
        return [self._kept[at] for at in sorted(drawn)]


def _places(groups: Iterable[int], level: int) -> Sequence[int]:
    """Return one place in each group of two to the power of `level`.

    Source: Knuth, The Art of Computer Programming 3, section 6.4, on Fibonacci hashing: the upper
    bits of multiples of the golden ratio are spread evenly, and in step with nothing that repeats.
    """
    if not level:
        return list(groups)
    return [(each << level) + ((each * _GOLDEN & _WORD) >> (32 - level)) for each in groups]


def _lot(number: int) -> int:
    """Return a number that only looks random, and owes nothing to `_places`: bits of a square."""
    return (number * _GOLDEN) ** 2 >> 24 & _WORD


def _blocks(rows: Rows) -> Iterator[Rows]:
    return (rows[start : start + _BLOCK_ROWS] for start in range(0, len(rows), _BLOCK_ROWS))


def _are_uniform(rows: Rows, names: list[object]) -> bool:
    """Return whether each row has exactly these keys in this order, a few times quicker than all.

    No row has a key twice, so that keys in a row cannot be shared out among rows differently.
    """
    return list(chain.from_iterable(map(_KEYS, rows))) == names * len(rows)


def _column(rows: Rows, name: object) -> list[object]:
    try:
        return list(map(itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]
