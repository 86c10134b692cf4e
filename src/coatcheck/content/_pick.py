"""What a path selector picks out of a parsed payload, as values that may be handed on."""

from typing import cast

from ..errors import NothingSelectedError
from ._budget import Budget
from ._json_pointer import resolve_pointer
from ._outline import outline
from ._own import own
from ._selector import Selector

_DESCENDS = ".."
_CONTAINERS = frozenset({dict, list})


def pick(value: object, selector: Selector, *, is_shared: bool) -> object:
    """Return what a JSON Pointer or JSONPath selects: the one value, or a list of values.

    A JSONPath of names and indices alone can select one value only, and gives that.

    Args:
        value: A parsed payload.
        selector: One of the two.
        is_shared: Others read `value` too. Then what is returned has no part of it that can be
            changed. In no case do two values that were selected share one.

    Raises:
        NothingSelectedError: Nothing is selected.
        InvalidArgumentError, InvalidQueryError: The selector is wrong.
        DeadlineError: It takes too long.

    >>> from ._selector import parse_selector
    >>> pick([{"id": 1}, {"id": 2}], parse_selector("$[*].id"), is_shared=True)
    [1, 2]
    """
    if selector.form == "json-pointer":
        found = resolve_pointer(value, selector.text)
        return own(found) if is_shared else found
    from ._jsonpath import compile_jsonpath

    path = compile_jsonpath(selector.text)
    nodes = path.find(value, Budget())
    if not nodes:
        raise nothing_at(selector.text, outline(value))
    if path.is_singular:
        return own(nodes[0]) if is_shared else nodes[0]
    return handed_out(nodes, selector, is_shared=is_shared)


def nothing_at(path: str, outlined: str) -> NothingSelectedError:
    """Return the error of a JSONPath that finds nothing in what has this outline."""
    return NothingSelectedError(path, "no part of it is at this path", f"It is {outlined}.")


def handed_out(nodes: list[object], selector: Selector, *, is_shared: bool) -> list[object]:
    """Return the values of a JSONPath's nodes as their receiver's own, copied where they must be.

    Args:
        nodes: What was found.
        selector: The JSONPath.
        is_shared: Others may hold them too.
    """
    containers = [id(node) for node in nodes if type(node) in _CONTAINERS]
    # Without descendants all nodes lie equally deep, so that none lies within another.
    is_apart = _DESCENDS not in selector.text and len(set(containers)) == len(containers)
    if not containers or (is_apart and not is_shared):
        return nodes
    return [own(node) for node in nodes]


def slice_rows(value: object, start: int, stop: int | None, *, is_shared: bool) -> list[object]:
    """Return items ``[start, stop)`` of a parsed payload, as `pick` does; none of no list."""
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)[start:stop]
    return [own(item) for item in items] if is_shared else items
