"""Literal texts without which a pattern cannot match, and where they stand.

They are found several times faster than a pattern is: where they are rare, only the lines that
hold one need be searched for the pattern.
"""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Texts
from time import thread_time

from ..records import dataclass
from ._find import Finder, finders
from ._regex_sets import one
from ._regex_tree import Chars, Choice, Edge, Node, Repeat, Sequence

_MOST_ALTERNATIVES = 6
"""Each is a search of its own."""
_MOST_CHOICES = 4
_BYTES_PER_PLACE = 2_048
"""Where places are nearer to each other than this, they save nothing."""
_LONGEST_PAUSE = 16
_LONGEST_CHARS = 32
"""Of a needle: some long ones are slow to find."""
_SLOW_SECONDS = 0.001
_SLOW_SECONDS_PER_BYTE = 2e-9
"""Slower than this, a pattern itself is found as soon."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A text that stands in a match, as it is or in any case."""

    text: str
    ignores_case: bool


def needles_of(node: Node) -> list[tuple[Needle, ...]]:
    """Return alternatives, each time of which every match holds one; the longest ones first."""
    return sorted(_needles(node), key=_shortest, reverse=True)


def _needles(node: Node) -> list[tuple[Needle, ...]]:
    match node:
        case Chars():
            return _runs((node,))
        case Edge():
            return []
        case Sequence(nodes):
            return _runs(nodes)
        case Choice(nodes):
            found = [max(_needles(each), key=_shortest, default=()) for each in nodes]
            all_of = tuple(dict.fromkeys(needle for needles in found for needle in needles))
            return [all_of] if all(found) and len(all_of) <= _MOST_ALTERNATIVES else []
        case Repeat():
            inner = node.node
            return _runs((node,) if isinstance(inner, Chars) else (inner,)) if node.least else []


def _runs(nodes: Texts[Node]) -> list[tuple[Needle, ...]]:
    """Return the literal texts in a sequence, and what its other parts need."""
    found: list[tuple[Needle, ...]] = []
    text, ignores_case = "", False
    for node in (*_flat(nodes), Edge("^")):
        if isinstance(node, Edge) and node.kind in "bB":
            continue
        if isinstance(node, Chars) and node.literal:
            text += node.literal
            ignores_case |= node.chars != one(node.literal)
            continue
        if text:
            found.append((Needle(text, ignores_case),))
            text, ignores_case = "", False
        if not isinstance(node, Chars):
            found += _needles(node)
    return found


def _flat(nodes: Texts[Node]) -> Iterator[Node]:
    """Yield what a sequence is made of, and what it repeats as often as it has to."""
    for node in nodes:
        match node:
            case Sequence(inner):
                yield from _flat(inner)
            case Repeat(node=Chars() as inner, least=least) if least:
                yield from [inner] * least
                if node.most != least:
                    yield Edge("^")  # what comes next need not follow at once
            case _:
                yield node


def _shortest(needles: tuple[Needle, ...]) -> int:
    return min((len(needle.text) for needle in needles), default=0)


class Places:
    """Finds where a pattern may match, as long as that is a small part of the text, and quick.

    Args:
        node: The pattern.
        is_ascii: Whether all texts to come are ASCII.
        clock: What this thread has had of the processor, in seconds.
    """

    def __init__(
        self, node: Node, *, is_ascii: bool, clock: Callable[[], float] = thread_time
    ) -> None:
        self._choices = [
            [
                finders(
                    needle.text[:_LONGEST_CHARS],
                    ignore_case=needle.ignores_case,
                    is_ascii=is_ascii,
                )[0]
                for needle in needles
            ]
            for needles in needles_of(node)[:_MOST_CHOICES]
        ]
        self._clock = clock
        self._chosen: list[Finder] | None = None
        self._pause = 1
        self._waits = 0

    def find(self, text: memoryview) -> list[int] | None:
        """Return bytes in all lines of `text` that may hold a match; None: look at all of them."""
        if not self._choices:
            return None
        if self._waits:
            self._waits -= 1
            return None
        began = self._clock()
        choices = self._choices if self._chosen is None else [self._chosen]
        most = 1 + len(text) // _BYTES_PER_PLACE
        fewest, chosen = None, None
        for finding in choices:
            places = _places(finding, text, most if fewest is None else len(fewest) - 1)
            if places is not None:
                fewest, chosen = places, finding
        usual_seconds = len(choices) * (_SLOW_SECONDS + len(text) * _SLOW_SECONDS_PER_BYTE)
        if chosen is None or self._clock() - began > usual_seconds:
            chosen = None
            self._waits, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        else:
            self._pause = 1
        self._chosen = chosen
        return fewest


def _places(finding: list[Finder], text: memoryview, most: int) -> list[int] | None:
    """Return where any is found, ascending; None where that are more places than `most`."""
    places: list[int] = []
    for find in finding:
        for hits in find(text):
            if len(places) + len(hits) > most:
                return None
            places += (hits.span(number)[0] for number in range(len(hits)))
    return sorted(places)
