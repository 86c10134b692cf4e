"""JSONPath over plain JSON values, in bounded time and memory."""

from collections.abc import Callable
from dataclasses import field

from ..errors import InvalidQueryError
from ..records import dataclass
from ._budget import Budget, check_result

_HINT = "Put fewer conditions into each other."


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A query that was read and checked. It can be run any number of times, from any thread."""

    expression: str
    is_singular: bool
    """Whether it is of names and indices alone, and so names one place in any value."""
    names: tuple[str, ...]
    """Keys that it asks for, each once."""
    _search: Callable[[object, Budget], list[object]] = field(repr=False)
    _may_repeat: bool = field(repr=False)

    def find(self, value: object, budget: Budget) -> list[object]:
        """Return the values of the nodes that the query selects, in the order of RFC 9535.

        Args:
            value: Plain JSON: lists, dicts with text keys, and leaves. What is found is parts of
                it, not copies; the list is new.
            budget: Made for this run.

        Raises:
            DeadlineError: It took too long.
            InvalidQueryError: It selects too much.
        """
        budget.language = "jsonpath"
        try:
            nodes = self._search(value, budget)
            budget.check()
        except RecursionError:  # the caller's own stack was nearly full
            raise InvalidQueryError("jsonpath", "it nests too deeply", _HINT) from None
        if self._may_repeat:
            check_result(nodes, value, budget)
        return nodes


def compile_jsonpath(expression: str) -> JsonPath:
    """Return a JSONPath query, ready to run.

    Plain paths run at the speed of a comprehension. Two things differ from RFC 9535: a pattern
    that is written out and no I-Regexp is an error, as it could match nothing; and in patterns
    ``^`` and ``$`` are the start and the end.

    Args:
        expression: At most 10,000 characters.

    Raises:
        InvalidQueryError: It is no JSONPath. It says why, and where.

    Source: RFC 9535.

    >>> rows = [{"id": 1}, {"id": 2}, {}]
    >>> compile_jsonpath("$[*].id").find(rows, Budget())
    [1, 2]
    """
    from ._jsonpath_parser import parse_jsonpath
    from ._jsonpath_steps import compile_search, may_repeat
    from ._jsonpath_syntax import names_in

    try:
        query = parse_jsonpath(expression)
        search, repeats = compile_search(query), may_repeat(query)
        names = tuple(dict.fromkeys(names_in(query)))
        return JsonPath(expression, query.is_singular, names, search, repeats)
    except RecursionError:  # as in `find`
        raise InvalidQueryError("jsonpath", "it nests too deeply", _HINT) from None
