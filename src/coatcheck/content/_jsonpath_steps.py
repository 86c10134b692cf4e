"""How a JSONPath query is run: each segment is a step from one list of nodes to the next."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias, cast

from ._budget import Budget
from ._jsonpath_filter import Run, Test, Walk, compile_condition
from ._jsonpath_syntax import Query, Segment, Selector, Wildcard

_PIECE_NODES = 65_536
"""Nodes that a plain loop runs over between two looks at the clock: some milliseconds."""
_FILTERED_AT_ONCE = 64
_WALKED_AT_ONCE = 1_024

_CONTAINERS: tuple[type[Any], ...] = (list, dict)
"""A tuple, as `isinstance` takes twice as long for `list | dict`."""

_Object: TypeAlias = dict[str, object]
_Step: TypeAlias = Callable[[list[object], Run], list[object]]
_Pick: TypeAlias = Callable[[object, Run], Collection[object]]


def compile_search(query: Query) -> Callable[[object, Budget], list[object]]:
    """Return what runs a query over a whole value."""
    walk = compile_query(query)
    return lambda value, budget: walk(value, Run(value, budget))


def compile_query(query: Query) -> Walk:
    """Return what runs a query from a node on. Its list is new, whatever it found."""
    steps: list[_Step] = []
    may_repeat = False
    for segment in query.segments:
        may_repeat = may_repeat or _may_repeat(segment)
        steps.append(_step(segment, may_repeat=may_repeat))
    if steps and steps[-1] is _by_wildcard:
        steps.append(lambda nodes, _: nodes.copy())

    def walk(start: object, run: Run) -> list[object]:
        nodes = [start]
        for step in steps:
            nodes = step(nodes, run)
        return nodes

    return walk


def may_repeat(query: Query) -> bool:
    """Return whether a query may find one value twice, or with another that is in it."""
    return any(map(_may_repeat, query.segments))


def _may_repeat(segment: Segment) -> bool:
    return segment.descends or len(segment.selectors) > 1


def _step(segment: Segment, *, may_repeat: bool) -> _Step:
    if _may_repeat(segment):
        picks = [_pick(selector) for selector in segment.selectors]
        return _descending(picks) if segment.descends else _by_each(picks)
    selector = segment.selectors[0]
    if isinstance(selector, str):
        return _by_name(selector)
    if isinstance(selector, int):
        return _by_index(selector)
    # What cannot repeat has no more nodes than there are values, and only its time is counted.
    if selector is Wildcard.ALL and not may_repeat:
        return _by_wildcard
    return _by_each([_pick(selector)], is_counted=may_repeat)


def _by_name(name: str) -> _Step:
    of_name = itemgetter(name)

    def by_name(nodes: list[object], run: Run) -> list[object]:
        found: list[object] = []
        for piece in _pieces(nodes):
            run.budget.work(len(piece))
            kept = len(found)
            try:
                # As quick as a comprehension over objects that all have the name. What has no
                # names raises TypeError, a text too.
                found.extend(map(of_name, cast("list[_Object]", piece)))
            except (KeyError, TypeError):
                del found[kept:]
                objects = cast("list[_Object]", [node for node in piece if isinstance(node, dict)])
                found.extend([node[name] for node in objects if name in node])
        return found

    return by_name


def _by_index(index: int) -> _Step:
    def by_index(nodes: list[object], run: Run) -> list[object]:
        found: list[object] = []
        for piece in _pieces(nodes):
            run.budget.work(len(piece))
            arrays = cast("list[list[object]]", [node for node in piece if isinstance(node, list)])
            found.extend([node[index] for node in arrays if -len(node) <= index < len(node)])
        return found

    return by_index


def _by_wildcard(nodes: list[object], run: Run) -> list[object]:
    if len(nodes) == 1 and isinstance(nodes[0], list):
        return cast("list[object]", nodes[0])  # the array itself, which no step changes
    found: list[object] = []
    for piece in _pieces(nodes):
        run.budget.work(len(piece))
        found.extend(chain.from_iterable(map(_children, piece)))
    return found


def _by_each(picks: Sequence[_Pick], *, is_counted: bool = True) -> _Step:
    def by_each(nodes: list[object], run: Run) -> list[object]:
        found: list[object] = []
        for node in nodes:
            for pick in picks:
                picked = pick(node, run)
                run.budget.work(len(picked) + 1)
                if is_counted:
                    run.budget.spend(len(picked))
                found.extend(picked)
        return found

    return by_each


def _descending(picks: Sequence[_Pick]) -> _Step:
    def descending(nodes: list[object], run: Run) -> list[object]:
        found: list[object] = []
        seen = counted = 0
        for node in nodes:
            # A list of what waits, not recursion: JSON may be deeper than the stack.
            waiting = [node]
            while waiting:
                part = waiting.pop()
                children = _children(part)
                for pick in picks:
                    found.extend(pick(part, run))
                below = [child for child in children if isinstance(child, _CONTAINERS)]
                below.reverse()  # the first child waits last, and is next
                waiting.extend(below)
                seen += len(children) + 1
                if seen > _WALKED_AT_ONCE or len(found) - counted > _WALKED_AT_ONCE:
                    run.budget.work(seen)
                    run.budget.spend(len(found) - counted)
                    seen, counted = 0, len(found)
        run.budget.work(seen)
        run.budget.spend(len(found) - counted)
        return found

    return descending


def _pick(selector: Selector) -> _Pick:
    match selector:
        case str() as name:
            return lambda value, _: _member(value, name)
        case int() as index:
            return lambda value, _: _item(value, index)
        case slice() as window:
            return lambda value, _: _window(value, window)
        case Wildcard():
            return lambda value, _: _children(value)
        case _:
            return _filtering(compile_condition(selector.condition, compile_query))


def _member(value: object, name: str) -> tuple[object, ...]:
    if isinstance(value, dict):
        members = cast("_Object", value)
        if name in members:
            return (members[name],)
    return ()


def _item(value: object, index: int) -> tuple[object, ...]:
    if isinstance(value, list):
        items = cast("list[object]", value)
        if -len(items) <= index < len(items):
            return (items[index],)
    return ()


def _window(value: object, window: slice) -> Collection[object]:
    if isinstance(value, list) and window.step != 0:
        return cast("list[object]", value)[window]
    return ()


def _filtering(test: Test) -> _Pick:
    def filtering(value: object, run: Run) -> list[object]:
        found: list[object] = []
        for number, child in enumerate(_children(value)):
            if number % _FILTERED_AT_ONCE == 0:
                run.budget.check()
            if test(child, run):
                found.append(child)
        return found

    return filtering


def _children(value: object) -> Collection[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    if isinstance(value, dict):
        return cast("_Object", value).values()
    return ()


def _pieces(nodes: list[object]) -> Iterator[list[object]]:
    if len(nodes) <= _PIECE_NODES:
        yield nodes
        return
    for start in range(0, len(nodes), _PIECE_NODES):
        yield nodes[start : start + _PIECE_NODES]
