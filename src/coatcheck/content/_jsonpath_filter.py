"""The conditions of JSONPath's filters, as functions that test one value."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

from ..errors import InvalidQueryError
from ._budget import Budget, same, work_on_text
from ._iregexp import as_regex
from ._jsonpath_syntax import (
    AllOf,
    AnyOf,
    Call,
    Comparison,
    Condition,
    Literal,
    Not,
    Operand,
    Query,
)

_MOST_PATTERNS = 16
"""Compiled ones that one run keeps: a payload may bring any number, and each takes up to 3 MB."""

_LONGEST_TEXT = 1_000_000
"""Characters: going back over a text takes `regex` some fifty bytes for each."""

_CONTAINERS: tuple[type[Any], ...] = (list, dict)

_TEXT_HINT = "Filter by other fields first, or search the artifact for plain text."


class Run:
    """One run of a query over one value."""

    def __init__(self, root: object, budget: Budget) -> None:
        self.root = root
        self.budget = budget
        self._patterns: dict[str, Any] = {}

    def pattern(self, text: str) -> Any:  # noqa: ANN401 - regex has no type hints
        """Return a pattern that the payload brought, compiled; None where it is none."""
        if text not in self._patterns:
            if len(self._patterns) >= _MOST_PATTERNS:
                self._patterns.clear()
            self.budget.check()
            self._patterns[text] = _compiled(text)
        return self._patterns[text]


Walk: TypeAlias = Callable[[object, Run], list[object]]
"""From one value to the values that a query finds from there."""
Test: TypeAlias = Callable[[object, Run], bool]
_Value: TypeAlias = Callable[[object, Run], object]
_Comparer: TypeAlias = Callable[[object, object, Budget], bool]


class _Nothing:
    """What a query gives that finds nothing, and a function that has no answer."""


NOTHING: Final = _Nothing()


def compile_condition(condition: Condition, walk_of: Callable[[Query], Walk]) -> Test:
    """Return the test that a condition is.

    Args:
        condition: As it was read.
        walk_of: Compiles a query inside of it.
    """
    match condition:
        case AnyOf():
            return _any_of([compile_condition(each, walk_of) for each in condition.conditions])
        case AllOf():
            return _all_of([compile_condition(each, walk_of) for each in condition.conditions])
        case Not():
            test = compile_condition(condition.condition, walk_of)
            return lambda current, run: not test(current, run)
        case Comparison():
            return _comparison(condition, walk_of)
        case Call():
            return _pattern_test(condition, walk_of)
        case _:
            return _existence(condition, walk_of)


def _any_of(tests: Sequence[Test]) -> Test:
    def any_of(current: object, run: Run) -> bool:
        for test in tests:  # noqa: SIM110 - a generator takes half as long again
            if test(current, run):
                return True
        return False

    return any_of


def _all_of(tests: Sequence[Test]) -> Test:
    def all_of(current: object, run: Run) -> bool:
        for test in tests:  # noqa: SIM110 - a generator takes half as long again
            if not test(current, run):
                return False
        return True

    return all_of


def _existence(query: Query, walk_of: Callable[[Query], Walk]) -> Test:
    if query.is_singular:
        place = _place(query)
        return lambda current, run: place(current, run) is not NOTHING
    nodes = _nodes(query, walk_of)
    return lambda current, run: bool(nodes(current, run))


def _comparison(comparison: Comparison, walk_of: Callable[[Query], Walk]) -> Test:
    left, right = _value(comparison.left, walk_of), _value(comparison.right, walk_of)
    compare = _COMPARERS[comparison.operator]
    return lambda current, run: compare(left(current, run), right(current, run), run.budget)


def _pattern_test(call: Call, walk_of: Callable[[Query], Walk]) -> Test:
    text_of, pattern_of = (_value(argument, walk_of) for argument in call.arguments)
    method = "fullmatch" if call.name == "match" else "search"
    written = call.arguments[1].value if isinstance(call.arguments[1], Literal) else None
    own = _compiled(written) if isinstance(written, str) else None

    def pattern_test(current: object, run: Run) -> bool:
        text, pattern = text_of(current, run), pattern_of(current, run)
        if not isinstance(text, str) or not isinstance(pattern, str):
            return False
        compiled = own or run.pattern(pattern)
        if compiled is None:
            return False
        if len(text) > _LONGEST_TEXT:
            reason = f"{call.name}() takes texts of at most {_LONGEST_TEXT:,} characters"
            raise InvalidQueryError("jsonpath", reason, _TEXT_HINT)
        try:
            return getattr(compiled, method)(text, timeout=run.budget.seconds_left()) is not None
        except TimeoutError:
            run.budget.refuse_time()

    return pattern_test


def _compiled(pattern: str) -> Any:  # noqa: ANN401 - regex has no type hints
    import regex

    written = as_regex(pattern)
    return None if written is None else regex.compile(written, cache_pattern=False)


def _value(operand: Operand, walk_of: Callable[[Query], Walk]) -> _Value:
    match operand:
        case Literal():
            value = operand.value
            return lambda _, __: value
        case Query():
            return _place(operand)
        case Call(name="length"):
            argument = _value(operand.arguments[0], walk_of)
            return lambda current, run: _length(argument(current, run))
        case _:
            nodes = _nodes(cast("Query", operand.arguments[0]), walk_of)
            if operand.name == "count":
                return lambda current, run: len(nodes(current, run))
            return lambda current, run: _only(nodes(current, run))


def _nodes(query: Query, walk_of: Callable[[Query], Walk]) -> Walk:
    walk = walk_of(query)
    is_relative = query.is_relative

    def nodes(current: object, run: Run) -> list[object]:
        left = run.budget.nodes_left
        found = walk(current if is_relative else run.root, run)
        run.budget.nodes_left = left  # they are held no longer than this test takes
        return found

    return nodes


def _place(query: Query) -> _Value:
    """Return what finds the one value that a query of names and indices stands for."""
    path = cast("list[str | int]", [segment.selectors[0] for segment in query.segments])
    is_relative = query.is_relative

    def place(current: object, run: Run) -> object:
        value = current if is_relative else run.root
        for key in path:
            if isinstance(key, str):
                if not isinstance(value, dict):
                    return NOTHING
                value = cast("dict[str, object]", value).get(key, NOTHING)
            else:
                if not isinstance(value, list):
                    return NOTHING
                items = cast("list[object]", value)
                value = items[key] if -len(items) <= key < len(items) else NOTHING
        return value

    return place


def _length(value: object) -> object:
    if isinstance(value, str | list | dict):
        return len(cast("list[object]", value))
    return NOTHING


def _only(nodes: list[object]) -> object:
    return nodes[0] if len(nodes) == 1 else NOTHING


def _equal(left: object, right: object, budget: Budget) -> bool:
    if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS):
        return same(left, right, budget, _leaves_equal)
    work_on_text(left, budget)
    return _leaves_equal(left, right)


def _leaves_equal(left: object, right: object) -> bool:
    # In Python, True equals 1.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def _less(left: object, right: object, budget: Budget) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        work_on_text(left, budget)
        return left < right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left < right and not isinstance(left, bool) and not isinstance(right, bool)
    return False


_COMPARERS: dict[str, _Comparer] = {
    "==": _equal,
    "!=": lambda left, right, budget: not _equal(left, right, budget),
    "<": _less,
    ">": lambda left, right, budget: _less(right, left, budget),
    "<=": lambda left, right, budget: _less(left, right, budget) or _equal(left, right, budget),
    ">=": lambda left, right, budget: _less(right, left, budget) or _equal(left, right, budget),
}
