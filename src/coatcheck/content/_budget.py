"""What one query may spend, in time and in values, and the walks that must keep to it."""

import time
from collections.abc import Callable
from typing import Literal, NoReturn, cast

from ..errors import DeadlineError, InvalidQueryError

_SECONDS = 10.0
_NODES = 10_000_000
_STEPS = 4_096
"""Steps between two looks at the clock: some tenths of a millisecond."""

CHARS_PER_NODE = 32
_LONG_CHARS = 4_096

_TOO_MUCH_HINT = "Filter first, take fewer fields, or name the path instead of using `..`."


class Budget:
    """What one query may spend. It is made when the query starts, and is for that one alone.

    Args:
        seconds: Until it is stopped.
        nodes: Most values that it may select or make along the way, and that its result may have.
            A list or object counts one and its items one each, a text one more for each 32
            characters. Ten million are two to five seconds of JMESPath, and at most a gigabyte.
        clock: Gives seconds that only grow.
    """

    def __init__(
        self,
        seconds: float = _SECONDS,
        nodes: int = _NODES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self.nodes = nodes
        self.nodes_left = nodes
        self.result_nodes = 0
        """Of all that `check_result` has seen."""
        self.language: Literal["jsonpath", "jmespath"] = "jsonpath"
        """Of the query, for its errors. Whoever runs one says which it is."""
        self._clock = clock
        self._stop = clock() + seconds
        self._steps_left = _STEPS

    def spend(self, nodes: int) -> None:
        """Take note of values selected or made.

        Raises:
            DeadlineError: The time is over.
            InvalidQueryError: They are too many.
        """
        self.nodes_left -= nodes
        if self.nodes_left < 0:
            self.refuse_size()
        self.work(nodes)

    def work(self, steps: int) -> None:
        """Take note of steps done, and look at the clock every few thousand.

        Raises:
            DeadlineError: The time is over.
        """
        self._steps_left -= steps
        if self._steps_left < 0:
            self._steps_left = _STEPS
            self.check()

    def check(self) -> None:
        """Look at the clock.

        Raises:
            DeadlineError: The time is over.
        """
        if self._clock() >= self._stop:
            self.refuse_time()

    def seconds_left(self) -> float:
        """Return the time that is left: more than nothing.

        Raises:
            DeadlineError: The time is over.
        """
        left = self._stop - self._clock()
        if left <= 0:
            self.refuse_time()
        return left

    def refuse_time(self) -> NoReturn:
        """Say that the time is over."""
        name = "JSONPath" if self.language == "jsonpath" else "JMESPath"
        raise DeadlineError(f"The {name} query", self.seconds, _TOO_MUCH_HINT)

    def refuse_size(self) -> NoReturn:
        """Say that the values are too many."""
        reason = f"it selects or makes more than {self.nodes:,} values"
        raise InvalidQueryError(self.language, reason, _TOO_MUCH_HINT)


def check_result(result: object, source: object, budget: Budget) -> None:
    """Refuse a result that would be far larger written out than it is in memory.

    Parts that stand in a result many times are one object each. Written out, nine lists of two
    parts within each other are 512 copies.

    Args:
        result: Of a query.
        source: What was queried: a result may be twice as large, whatever the budget.
        budget: Of the query, which may be run on one part after another.

    Raises:
        DeadlineError: The time is over.
        InvalidQueryError: The result is too large.
    """
    free = max(budget.nodes - budget.result_nodes, 0)
    size = _size_of(result, budget, free)
    if size > free:
        most = 2 * _size_of(source, budget, None)
        size = _size_of(result, budget, most)
        if size > most:
            budget.refuse_size()
    budget.result_nodes += size


def spend_size(value: object, budget: Budget) -> None:
    """Spend what `value` would be written out.

    Raises:
        DeadlineError: The time is over.
        InvalidQueryError: It is too large.
    """
    budget.spend(_size_of(value, budget, budget.nodes_left))


def _size_of(value: object, budget: Budget, most: int | None) -> int:
    """Return how many nodes `value` has written out. Past `most` the counting stops."""
    waiting = [value]
    size = seen = 0
    while waiting:
        part = waiting.pop()
        size += 1
        if isinstance(part, str):
            size += len(part) // CHARS_PER_NODE
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
        elif isinstance(part, dict):
            waiting += cast("dict[str, object]", part).values()
        if size - seen >= _STEPS:
            budget.work(size - seen)
            seen = size
            if most is not None and size + len(waiting) > most:
                break
    return size + len(waiting)


def text_nodes(text: str) -> int:
    """Return what a text counts as, besides being one value."""
    return len(text) // CHARS_PER_NODE


def is_long(value: object) -> bool:
    """Return whether `value` is a text so long that to compare it takes time."""
    return isinstance(value, str) and len(value) > _LONG_CHARS


def work_on_text(value: object, budget: Budget) -> None:
    """Take note of work that grows with a text, where it is long enough to matter."""
    if isinstance(value, str) and len(value) > _LONG_CHARS:
        budget.work(text_nodes(value))


def same(
    left: object, right: object, budget: Budget, leaves_equal: Callable[[object, object], bool]
) -> bool:
    """Return whether two values are equal, part by part: in time, and at any depth.

    `==` would do neither. It cannot be stopped, it takes 2ⁿ steps on two values of n lists that
    hold the next one twice, and it has no stack for deep ones.

    Args:
        left: Any JSON value.
        right: Another.
        budget: Of the query.
        leaves_equal: Compares two parts that are not both lists, nor both objects.

    Raises:
        DeadlineError: The time is over.
    """
    pairs = [(left, right)]
    while pairs:
        pair = pairs.pop()
        if pair[0] is pair[1]:
            continue
        if all(isinstance(each, list) for each in pair):
            one, other = cast("tuple[list[object], list[object]]", pair)
            if len(one) != len(other):
                return False
            budget.work(len(one) + 1)
            pairs += zip(one, other, strict=True)
        elif all(isinstance(each, dict) for each in pair):
            members, others = cast("tuple[dict[str, object], dict[str, object]]", pair)
            if members.keys() != others.keys():
                return False
            budget.work(len(members) + 1)
            pairs += ((members[name], others[name]) for name in members)
        else:
            work_on_text(pair[0], budget)
            if not leaves_equal(*pair):
                return False
    return True
