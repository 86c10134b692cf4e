"""The glimpse of a JSON value: a table where it is rows, a column where it is a list, else a tree.

An object that carries rows, as replies of most services do, is outlined and its rows described.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ._glimpse_table import Table, glimpse_table, table_of_objects, table_of_values
from ._glimpse_tree import glimpse_tree, outline_of
from ._json_blocks import json_blocks
from ._object_rows import ObjectRows, Rows
from ._preview import plain, quoted
from ._tokens import estimate_tokens

_LEAST_ROWS = 5
"""Of fewer, an outline says as much."""
_LEAST_NUMBERS = 3
_LOOKED_INTO = 200
"""Values looked at to find the longest list within objects."""
_DEEPEST = 3
_INSIDE = (2, 8)
"""Depth, and keys of each object, of what a column holds."""

_Rendered = tuple[str, dict[str, object]] | None


def glimpse_json(value: object, budget_tokens: int, *, row_count: int | None = None) -> _Rendered:
    """Return the glimpse of a JSON value and its facts, None where it is no object or array.

    Args:
        value: The value, or of an array a sample of its items.
        budget_tokens: Most estimated tokens.
        row_count: Items of the whole array, where `value` may be a sample of them.
    """
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        table = table_of(items)
        count = len(items) if row_count is None else row_count
        if table is None:
            return glimpse_tree(items, budget_tokens, items=count)
        if count > len(items):
            label = None if table.label is None else f"array of {count:,}"
            sampled = table.sampled or len(items)
            table = replace(table, rows=count, sampled=sampled, is_partial=True, label=label)
        render = glimpse_table if table.label is None else _glimpse_list
        return render(table, budget_tokens)
    if isinstance(value, dict):
        return _glimpse_object(cast("Mapping[str, object]", value), budget_tokens)
    return None


def table_of(items: Sequence[object]) -> Table | None:
    """Return the table that `items` are, None where an outline says more of them."""
    if len(items) < _LEAST_NUMBERS:
        return None
    if isinstance(items[0], dict):
        return _table_of_objects(ObjectRows.of, items) if len(items) >= _LEAST_ROWS else None
    if isinstance(items[0], (list, tuple)):
        return None
    table = table_of_values(items)
    column = table.columns[0]
    enough = len(items) >= _LEAST_ROWS or column.mean is not None
    return table if enough and not column.is_nested else None


def glimpse_json_bytes(payload: bytes, budget_tokens: int) -> _Rendered:
    """Return the glimpse of a JSON array of objects that is read block by block.

    None where it is none, or does not show where its elements end, or an outline says more.
    """
    table = _table_of_objects(_read, payload)
    return None if table is None else glimpse_table(table, budget_tokens)


def _read(payload: bytes) -> ObjectRows:
    found = ObjectRows()
    for block in json_blocks(payload):
        found.add(block)
    return found


def _table_of_objects(look: Callable[[Any], ObjectRows], items: object) -> Table | None:
    try:
        found = look(items)
    except (TypeError, ValueError):  # not all are objects
        return None
    table = table_of_objects(found)
    return _with_insides(table, found.first) if table is not None and table.is_flat else None


def _with_insides(table: Table, first: Rows) -> Table:
    insides = {
        column.name: outline_of([row[column.name] for row in first if column.name in row], *_INSIDE)
        for column in table.columns
        if column.is_nested
    }
    return replace(table, insides=insides)


def _glimpse_list(table: Table, budget_tokens: int) -> _Rendered:
    rendered = glimpse_table(table, budget_tokens)
    if rendered is None:
        return None
    column = {key: fact for key, fact in table.columns[0].facts().items() if key != "name"}
    facts = {"format": "tree", "type": "array", "items": table.rows}
    return rendered[0], {**facts, "sampled": table.sampled or False, "values": column}


def _glimpse_object(value: Mapping[str, object], budget_tokens: int) -> _Rendered:
    path, items = _longest_list(value)
    table = None if items is None else table_of(items)
    if table is None:
        return glimpse_tree(value, budget_tokens)
    # Half for what is around, and what that leaves for the rows.
    tree = glimpse_tree(value, budget_tokens // 2, depth=len(path), values=True)
    if tree is None:
        return glimpse_tree(value, budget_tokens)
    where = ".".join(path)
    start = f"{tree[0]}; {where if where.isidentifier() else quoted(where, 40)}: "
    inside = glimpse_table(table, budget_tokens - estimate_tokens(start) - 1)
    if inside is None:
        return glimpse_tree(value, budget_tokens)
    return start + inside[0], tree[1] | {"path": list(path), "table": inside[1]}


def _longest_list(
    value: Mapping[str, object],
) -> tuple[tuple[str, ...], Sequence[object] | None]:
    """Return the keys to the longest list that lies in objects only, and the list."""
    best: tuple[tuple[str, ...], Sequence[object] | None] = ((), None)
    waiting: list[tuple[tuple[str, ...], object]] = [((), value)]
    for path, each in waiting:  # grows on the way
        if isinstance(each, dict) and len(path) < _DEEPEST:
            below = cast("Mapping[str, object]", each).items()
            room = _LOOKED_INTO - len(waiting)
            waiting += [
                ((*path, plain(str(key), 200)), inside)
                for key, inside in list(below)[: max(0, room)]
            ]
        elif isinstance(each, (list, tuple)):
            items = cast("Sequence[object]", each)
            if best[1] is None or len(items) > len(best[1]):
                best = path, items
    return best
