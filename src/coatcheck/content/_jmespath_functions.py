"""The functions of JMESPath, as `jmespath` has them, each at what it costs."""

from collections.abc import Callable
from operator import eq
from typing import Any, Final, cast

from jmespath import exceptions, functions

from ..errors import InvalidQueryError
from ._budget import CHARS_PER_NODE, Budget, is_long, same, spend_size, text_nodes, work_on_text
from ._jmespath_parser import HINT
from ._json_pieces import text_pieces

_library: Final[Any] = functions.Functions()

NAMES = frozenset(_library.FUNCTION_TABLE)

TAKES_EXPRESSION = {"map": 0, "max_by": 1, "min_by": 1, "sort_by": 1}
"""Which argument is an expression that is to be run on each item."""

_CONTAINERS: tuple[type[Any], ...] = (list, dict)

_MAKE_LISTS = frozenset({"keys", "map", "merge", "reverse", "sort", "sort_by", "values"})
_MAKE_TEXTS = frozenset({"reverse", "to_string"})
_COMPARISONS_OF_ONE = 20
"""How often a sort looks at one of a million items."""

_TYPES = {
    "array-number": "an array of numbers",
    "array-string": "an array of texts",
    "bool": "boolean",
    "dict": "object",
    "expref": "an expression after &",
    "float": "number",
    "int": "number",
    "list": "array",
    "NoneType": "null",
    "str": "text",
    "string": "text",
}


class _Expression:
    """An expression after ``&``. It has the name, and the two members, that `jmespath` asks for."""

    def __init__(self, expression: Callable[[object, Budget], object], budget: Budget) -> None:
        self.expression = expression
        self._budget = budget

    def visit(self, expression: Callable[[object, Budget], object], item: object) -> object:
        self._budget.work(1)
        result = expression(item, self._budget)
        work_on_text(result, self._budget)  # a key to sort by
        return result


def as_argument(expression: Callable[[object, Budget], object], budget: Budget) -> object:
    """Return an expression as the functions take it."""
    return _Expression(expression, budget)


def call(name: str, arguments: list[object], budget: Budget) -> object:
    """Return the result of a function.

    Raises:
        DeadlineError: The time is over.
        InvalidQueryError: An argument has a wrong type, or the result is too large.
    """
    _charge(name, arguments, budget)
    if name == "contains" and len(arguments) == 2 and isinstance(arguments[0], str | list):
        return _contains(cast("str | list[object]", arguments[0]), arguments[1], budget)
    # jmespath looks at the first argument alone, and would take pairs for an object.
    if name == "merge" and not all(isinstance(argument, dict) for argument in arguments):
        raise _wrong("merge() takes objects")
    if name == "to_string" and len(arguments) == 1 and isinstance(arguments[0], _CONTAINERS):
        result = _text_of(arguments[0], budget)
    else:
        result = _called(name, arguments)
    if name in _MAKE_LISTS and isinstance(result, _CONTAINERS):
        budget.spend(len(result) + 1)
    elif name in _MAKE_TEXTS and isinstance(result, str):
        budget.spend(text_nodes(result))
    return result


def _text_of(value: object, budget: Budget) -> str:
    # One call would hold the interpreter lock to its end, and not be stopped.
    try:
        return "".join(text_pieces(value, budget.check))
    except ValueError:  # an integer of more digits than CPython writes
        raise _wrong("to_string() has no result for such values") from None


def _called(name: str, arguments: list[object]) -> Any:  # noqa: ANN401 - jmespath has no type hints
    try:
        return _library.call_function(name, arguments)
    except InvalidQueryError:  # a ValueError, of an expression that was run on an item
        raise
    except exceptions.JMESPathTypeError as error:
        wanted = " or ".join(_TYPES.get(each, each) for each in error.expected_types)
        got = _TYPES.get(error.actual_type, error.actual_type)
        if error.expected_types[0].startswith("array-") and isinstance(arguments[0], list):
            raise _wrong(f"{name}() takes {wanted}, and one item is {got}") from None
        raise _wrong(f"{name}() takes {wanted}, and got {got}") from None
    except exceptions.ArityError as error:
        least = "at least " if isinstance(error, exceptions.VariadictArityError) else ""
        raise _wrong(
            f"{name}() takes {least}{error.expected_arity}, and got {error.actual_arity}"
        ) from None
    except (ArithmeticError, TypeError, ValueError):
        # `ceil` of infinity, `max_by` of texts and numbers, a text of more digits than CPython
        # writes.
        raise _wrong(f"{name}() has no result for such values") from None


def _charge(name: str, arguments: list[object], budget: Budget) -> None:
    """Spend what a call is about to cost: once it runs, nothing stops it."""
    budget.work(1)
    for argument in arguments:
        if isinstance(argument, list | dict):
            budget.work(len(cast("list[object]", argument)))
        else:
            work_on_text(argument, budget)
    match name, arguments:
        case "to_string", [list() | dict()]:
            spend_size(arguments[0], budget)
        case "join", [str() as separator, list()]:
            items = cast("list[object]", arguments[1])
            budget.spend((len(separator) * len(items) + _chars_of(items)) // CHARS_PER_NODE)
        case "max" | "min" | "sort", [list()]:
            chars = _chars_of(cast("list[object]", arguments[0]))
            budget.work(chars * _COMPARISONS_OF_ONE // CHARS_PER_NODE)
        case _:
            pass


def _chars_of(items: list[object]) -> int:
    return sum(len(item) for item in items if isinstance(item, str))


def _contains(subject: str | list[object], wanted: object, budget: Budget) -> bool:
    if isinstance(subject, str):
        return isinstance(wanted, str) and wanted in subject
    if not isinstance(wanted, _CONTAINERS) and not is_long(wanted):
        return wanted in subject
    return any(same(item, wanted, budget, eq) for item in subject)


def _wrong(reason: str) -> InvalidQueryError:
    return InvalidQueryError("jmespath", reason, HINT)
