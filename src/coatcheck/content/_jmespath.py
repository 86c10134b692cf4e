"""JMESPath over plain JSON values, in bounded time and memory."""

from collections.abc import Callable
from dataclasses import field

from ..errors import InvalidQueryError
from ..records import dataclass
from ._budget import Budget, check_result

_HINT = "Put one expression after the other by | instead of into it."


@dataclass(frozen=True, slots=True)
class JmesPath:
    """An expression that was read and checked. It can be run any number of times, by any thread."""

    expression: str
    names: tuple[str, ...]
    """Keys that it asks for, each once."""
    _search: Callable[[object, Budget], object] = field(repr=False)
    _may_repeat: bool = field(repr=False)

    def search(self, value: object, budget: Budget) -> object:
        """Return what the expression makes of a value, as `jmespath` would.

        Args:
            value: Plain JSON: lists, dicts with text keys, and leaves. The result may hold parts
                of it, which are not copies.
            budget: Made for this run.

        Raises:
            DeadlineError: It took too long.
            InvalidQueryError: A function got an argument of a wrong type, or the result is too
                large.
        """
        budget.language = "jmespath"
        try:
            result = self._search(value, budget)
            budget.check()
        except RecursionError:  # the caller's own stack was nearly full, or a value is too deep
            reason = "it, or what it looks at, nests too deeply"
            raise InvalidQueryError("jmespath", reason, _HINT) from None
        if self._may_repeat:
            check_result(result, value, budget)
        return result


def compile_jmespath(expression: str) -> JmesPath:
    """Return a JMESPath expression, ready to run.

    The language is that of the package `jmespath`, but that a text compared with a number by
    ``<`` is null instead of an error, and that unknown functions are found before it runs.

    Args:
        expression: At most 10,000 characters.

    Raises:
        InvalidQueryError: It is no JMESPath. It says why, and where.

    >>> rows = [{"id": 1, "price": 5}, {"id": 2, "price": 12}]
    >>> compile_jmespath("[?price > `9`].id").search(rows, Budget())
    [2]
    """
    from ._jmespath_parser import names_in, parse_jmespath
    from ._jmespath_steps import compile_tree

    try:
        tree = parse_jmespath(expression)
        search, may_repeat = compile_tree(tree)
    except RecursionError:
        raise InvalidQueryError("jmespath", "it nests too deeply", _HINT) from None
    return JmesPath(expression, names_in(tree), search, may_repeat)
