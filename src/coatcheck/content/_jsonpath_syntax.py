"""The records that a JSONPath query is read into, and what its functions take and give."""

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from ..records import dataclass


class Kind(Enum):
    """What a function takes or gives."""

    VALUE = "one value"
    NODES = "a query"
    TRUTH = "true or false"


FUNCTIONS: dict[str, tuple[tuple[Kind, ...], Kind]] = {
    "length": ((Kind.VALUE,), Kind.VALUE),
    "count": ((Kind.NODES,), Kind.VALUE),
    "value": ((Kind.NODES,), Kind.VALUE),
    "match": ((Kind.VALUE, Kind.VALUE), Kind.TRUTH),
    "search": ((Kind.VALUE, Kind.VALUE), Kind.TRUTH),
}
"""Each with what it takes, and what it gives."""


class Wildcard(Enum):
    """The selector of all children."""

    ALL = "*"


@dataclass(frozen=True, slots=True)
class Filter:
    """The selector of those children for which a condition holds."""

    condition: "Condition"


Selector: TypeAlias = str | int | slice | Wildcard | Filter
"""By name, by index, a range, all, or by a condition."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a query: what is taken of each node, or of all that lies below it too."""

    selectors: tuple[Selector, ...]
    descends: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query that starts at the root, or at the value that a filter looks at."""

    segments: tuple[Segment, ...]
    is_relative: bool

    @property
    def is_singular(self) -> bool:
        """Whether it names one place, whatever the value is."""
        return all(
            not segment.descends
            and len(segment.selectors) == 1
            and isinstance(segment.selectors[0], str | int)
            for segment in self.segments
        )


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out in a query."""

    value: object


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    name: str
    arguments: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values compared."""

    left: "Operand"
    operator: str
    right: "Operand"


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary of a condition."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions that must all hold."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions of which one must hold."""

    conditions: tuple["Condition", ...]


Operand: TypeAlias = Literal | Query | Call
Condition: TypeAlias = AnyOf | AllOf | Not | Comparison | Query | Call
"""A query holds where it finds anything."""


def names_in(part: Query | Condition | Operand) -> Iterator[str]:
    """Yield the keys that a query asks for, those in its conditions too."""
    parts: tuple[Condition | Operand, ...] = ()
    if isinstance(part, Query):
        for selector in (each for segment in part.segments for each in segment.selectors):
            if isinstance(selector, str):
                yield selector
            elif isinstance(selector, Filter):
                yield from names_in(selector.condition)
    elif isinstance(part, Call):
        parts = part.arguments
    elif isinstance(part, Comparison):
        parts = (part.left, part.right)
    elif isinstance(part, AllOf | AnyOf):
        parts = part.conditions
    elif isinstance(part, Not):
        parts = (part.condition,)
    for each in parts:
        yield from names_in(each)
