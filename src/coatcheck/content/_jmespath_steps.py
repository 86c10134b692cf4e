"""How a JMESPath expression is run: each node of its tree as a function, within a budget.

`jmespath` walks its tree anew for each item, and nothing stops it. This takes half the time.
"""

import operator
from collections.abc import Callable, Collection, Sequence, Sized
from typing import Any, TypeAlias, cast

from ..errors import InvalidQueryError, shown
from ._budget import Budget, same, work_on_text
from ._jmespath_functions import NAMES, TAKES_EXPRESSION, as_argument, call
from ._jmespath_parser import HINT

_DEEPEST = 64
_LOOKED_AT_ONCE = 64
"""Items of a projection between two looks at the clock. What takes long looks for itself."""

_CONTAINERS: tuple[type[Any], ...] = (list, dict)
_ONE_AFTER_ANOTHER = frozenset({"index_expression", "pipe", "subexpression"})

Search: TypeAlias = Callable[[object, Budget], object]
_Node: TypeAlias = dict[str, Any]


def compile_tree(tree: _Node) -> tuple[Search, bool]:
    """Return what runs a syntax tree, and whether its result may hold one part many times.

    Raises:
        InvalidQueryError: It nests too deeply, calls what is no function, or has an ``&`` where
            none can stand.
    """
    compiler = _Compiler()
    return compiler.compile(tree), compiler.may_repeat


class _Compiler:
    def __init__(self) -> None:
        self.may_repeat = False
        self._depth = 0

    def compile(self, node: _Node) -> Search:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _wrong(f"expressions nest at most {_DEEPEST} deep")
        search = self._compiled(node)
        self._depth -= 1
        return search

    def _compiled(self, node: _Node) -> Search:  # noqa: C901, PLR0911, PLR0912 - one line a kind of node
        children: list[_Node] = node["children"] if node["type"] != "slice" else []
        match node["type"]:
            case "identity" | "current":
                return lambda value, _: value
            case "field":
                return _field(node["value"])
            case "index":
                return _index(node["value"])
            case "slice":
                return _slice(*node["children"])
            case "literal":
                return self._literal(node["value"])
            case "pipe" | "subexpression" | "index_expression":
                return _one_after_another(self._all(_spine(node, _ONE_AFTER_ANOTHER)))
            case "or_expression" | "and_expression":
                parts = self._all(_spine(node, {node["type"]}))
                return _first_that_is(parts, wanted=node["type"] == "or_expression")
            case "not_expression":
                negated = self.compile(children[0])
                return lambda value, budget: not _is_true(negated(value, budget))
            case "comparator":
                return self._comparator(node)
            case "projection":
                return _projection(_as_list, *self._all(children))
            case "value_projection":
                return _projection(_as_values, *self._all(children))
            case "filter_projection":
                source, each = self._all(children[:2])
                return _filter(source, each, self._aside(children[2]))
            case "flatten":
                return _flatten(self.compile(children[0]))
            case "multi_select_list":
                self.may_repeat = True
                return _multi_list(self._all(children))
            case "multi_select_dict":
                self.may_repeat = True
                names = [child["value"] for child in children]
                return _multi_dict(names, self._all([child["children"][0] for child in children]))
            case "function_expression":
                return self._function(node["value"], children)
            case _:  # expref, where no function takes it
                takers = ", ".join(f"{name}()" for name in sorted(TAKES_EXPRESSION))
                raise _wrong(f"& stands only before the expression that {takers} take")

    def _all(self, nodes: Sequence[_Node]) -> list[Search]:
        return [self.compile(node) for node in nodes]

    def _aside(self, node: _Node) -> Search:
        """Compile what only decides, and of which nothing gets into the result."""
        may_repeat = self.may_repeat
        search = self.compile(node)
        self.may_repeat = may_repeat
        return search

    def _literal(self, literal: object) -> Search:
        self.may_repeat |= isinstance(literal, str | list | dict)
        return lambda _, __: literal

    def _comparator(self, node: _Node) -> Search:
        left, right = (self._aside(child) for child in node["children"])
        compare = _COMPARERS[node["value"]]
        return lambda value, budget: compare(left(value, budget), right(value, budget), budget)

    def _function(self, name: str, children: list[_Node]) -> Search:
        if name not in NAMES:
            raise _wrong(f"no function is {shown(name)}: there are {', '.join(sorted(NAMES))}")
        self.may_repeat = True
        arguments: list[Search] = []
        for number, child in enumerate(children):
            if child["type"] == "expref" and TAKES_EXPRESSION.get(name) == number:
                arguments.append(_expression(self.compile(child["children"][0])))
            else:
                arguments.append(self.compile(child))
        return lambda value, budget: call(name, [each(value, budget) for each in arguments], budget)


def _spine(node: _Node, kinds: Collection[str]) -> list[_Node]:
    """Return the parts of a chain, which the tree holds as one in another: it may be long."""
    parts: list[_Node] = []
    while node["type"] in kinds:
        parts += reversed(node["children"][1:])
        node = node["children"][0]
    return [node, *reversed(parts)]


def _field(name: str) -> Search:
    def field(value: object, _: Budget) -> object:
        return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None

    return field


def _index(place: int) -> Search:
    def index(value: object, _: Budget) -> object:
        if isinstance(value, list):
            items = cast("list[object]", value)
            if -len(items) <= place < len(items):
                return items[place]
        return None

    return index


def _slice(start: int | None, stop: int | None, step: int | None) -> Search:
    if step == 0:
        raise _wrong("the step of a slice is not 0")
    window = slice(start, stop, step)

    def cut(value: object, budget: Budget) -> object:
        if not isinstance(value, list):
            return None
        items = cast("list[object]", value)[window]
        budget.spend(len(items))
        return items

    return cut


def _one_after_another(parts: Sequence[Search]) -> Search:
    def one_after_another(value: object, budget: Budget) -> object:
        for part in parts:
            value = part(value, budget)
        return value

    return one_after_another


def _first_that_is(parts: Sequence[Search], *, wanted: bool) -> Search:
    def first(value: object, budget: Budget) -> object:
        result: object = None
        for part in parts:
            result = part(value, budget)
            if _is_true(result) is wanted:
                break
        return result

    return first


def _projection(
    items_of: Callable[[object], Collection[object] | None], source: Search, each: Search
) -> Search:
    def projection(value: object, budget: Budget) -> object:
        items = items_of(source(value, budget))
        if items is None:
            return None
        found: list[object] = []
        for number, item in enumerate(items):
            if number % _LOOKED_AT_ONCE == 0:
                budget.check()
            result = each(item, budget)
            if result is not None:
                found.append(result)
        budget.spend(len(found) + 1)
        return found

    return projection


def _filter(source: Search, each: Search, condition: Search) -> Search:
    def kept(value: object, budget: Budget) -> object:
        items = source(value, budget)
        if not isinstance(items, list):
            return None
        found: list[object] = []
        for number, item in enumerate(cast("list[object]", items)):
            if number % _LOOKED_AT_ONCE == 0:
                budget.check()
            left = budget.nodes_left
            holds = _is_true(condition(item, budget))
            budget.nodes_left = left  # what a condition makes is held no longer than it takes
            if holds:
                result = each(item, budget)
                if result is not None:
                    found.append(result)
        budget.spend(len(found) + 1)
        return found

    return kept


def _flatten(source: Search) -> Search:
    def flatten(value: object, budget: Budget) -> object:
        items = source(value, budget)
        if not isinstance(items, list):
            return None
        flat: list[object] = []
        for item in cast("list[object]", items):
            if isinstance(item, list):
                parts = cast("list[object]", item)
                budget.spend(len(parts))
                flat += parts
            else:
                flat.append(item)
        budget.spend(len(cast("list[object]", items)) + 1)
        return flat

    return flatten


def _multi_list(parts: Sequence[Search]) -> Search:
    def multi_list(value: object, budget: Budget) -> object:
        if value is None:
            return None
        budget.spend(len(parts) + 1)
        return [part(value, budget) for part in parts]

    return multi_list


def _multi_dict(names: Sequence[str], parts: Sequence[Search]) -> Search:
    fields = list(zip(names, parts, strict=True))

    def multi_dict(value: object, budget: Budget) -> object:
        if value is None:
            return None
        budget.spend(len(fields) + 1)
        return {name: part(value, budget) for name, part in fields}

    return multi_dict


def _expression(search: Search) -> Search:
    return lambda _, budget: as_argument(search, budget)


def _as_list(value: object) -> Collection[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _as_values(value: object) -> Collection[object] | None:
    return cast("dict[str, object]", value).values() if isinstance(value, dict) else None


def _is_true(value: object) -> bool:
    """Return whether a value counts as true: all do but null, false, and what is empty."""
    if isinstance(value, str | list | dict):
        return len(cast("Sized", value)) > 0
    return value is not None and value is not False


def _equal(left: object, right: object, budget: Budget) -> bool:
    # In Python, True equals 1.
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    if isinstance(left, _CONTAINERS):
        return same(left, right, budget, operator.eq)
    work_on_text(left, budget)
    return left == right


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[object, object, Budget], object]:
    def ordered(left: object, right: object, budget: Budget) -> object:
        if isinstance(left, str) and isinstance(right, str):
            work_on_text(left, budget)
            return compare(left, right)
        if _is_number(left) and _is_number(right):
            return compare(left, right)
        return None  # jmespath fails on a text and a number: one odd row would spoil a query

    return ordered


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(reason: str) -> InvalidQueryError:
    return InvalidQueryError("jmespath", reason, HINT)


_COMPARERS: dict[str, Callable[[object, object, Budget], object]] = {
    "eq": _equal,
    "ne": lambda left, right, budget: not _equal(left, right, budget),
    "lt": _ordering(operator.lt),
    "lte": _ordering(operator.le),
    "gt": _ordering(operator.gt),
    "gte": _ordering(operator.ge),
}
