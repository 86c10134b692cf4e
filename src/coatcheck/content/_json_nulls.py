"""Numbers that are not finite, which orjson writes as null without a word."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from enum import Enum
from itertools import chain, islice, repeat
from operator import is_
from typing import cast

import stringzilla

from ..records import dataclass
from ._json_values import finite

_SAMPLED_ROWS = 100
_MOST_COLUMNS = 6
"""Columns that are counted one by one; with more, all at once is quicker."""

_SKIPPED = frozenset({str, int, bool, type(None)})
_BEFORE_NULL = (b":null", b",null", b"[null")

Rows = Sequence[dict[str, object]]

# Unbound, as that is quicker than a function of ours for each row.
_values = cast("Callable[[dict[str, object]], Iterable[object]]", dict.values)

_get = cast("Callable[[dict[str, object], str, object], object]", dict.get)

# It has no type hints.
_count = cast("Callable[[bytes, bytes], int]", stringzilla.count)


@dataclass(slots=True)
class RowsBefore:
    """What is known from the blocks of rows that were written before this one."""

    are_plain: bool = True
    """Whether orjson knew all of their types."""
    columns: dict[str, None] = field(default_factory=dict[str, None])
    """Keys that had None."""


def may_hold_non_finite(value: object, payload: bytes, before: RowsBefore | None = None) -> bool:
    """Return whether a NaN or infinity may be in a value that orjson wrote as `payload`.

    Each None is one null. Where they are as many, no null stands for a number; where a text
    says "null", the answer may be True for nothing.

    Args:
        value: What was written; rows, where there is a `before`.
        payload: Its JSON.
        before: What is known from other rows. What these tell is added.
    """
    nulls = _count(payload, b"null")
    # What is None in one block of rows is None in most. No list or text has names.
    if before is not None and before.are_plain and before.columns:
        with suppress(TypeError):
            if _nones_in(cast("Rows", value), before.columns) == nulls:
                return False
    nones = _nones(value, nulls, {} if before is None else before.columns)
    if nones is None:
        return False
    return payload == b"null" or nones != sum(_count(payload, each) for each in _BEFORE_NULL)


def with_names(value: object) -> object:
    """Return a value in which each float that is not finite is a text, the rest as it was.

    What orjson asks about is not looked into. A value that it has written is never too deep.
    """
    kind = type(value)
    if kind is float:
        return finite(cast("float", value))
    if kind is dict:
        return {
            key: item if type(item) in _SKIPPED else with_names(item)
            for key, item in cast("Mapping[str, object]", value).items()
        }
    if kind is list or kind is tuple:
        return [
            item if type(item) in _SKIPPED else with_names(item)
            for item in cast("Iterable[object]", value)
        ]
    # orjson writes members of an Enum by itself.
    return with_names(cast("object", value.value)) if isinstance(value, Enum) else value


def _nones(value: object, nulls: int, columns: dict[str, None]) -> int | None:
    """Return how many None are in plain containers, None where they are as many as `nulls`."""
    found = 0
    level: Sequence[object] = [value]
    while level:
        found += _count_none(level)
        if found == nulls:
            return None
        kinds = set(map(type, level))
        dicts = cast("Rows", _of(level, kinds, {dict}))
        lists = cast("Sequence[Sequence[object]]", _of(level, kinds, {list, tuple}))
        if found + _nones_in_columns(dicts, columns) == nulls:
            return None
        level = [
            *chain.from_iterable(map(_values, dicts)),
            *chain.from_iterable(lists),
        ]
    return found


def _of(level: Sequence[object], kinds: set[type], wanted: set[type]) -> Sequence[object]:
    if kinds <= wanted:
        return level
    return [each for each in level if type(each) in wanted] if kinds & wanted else []


def _nones_in_columns(rows: Rows, columns: dict[str, None]) -> int:
    """Return how many None are in those columns that have one among the first rows."""
    sample = islice(rows, _SAMPLED_ROWS)
    keys = {key: None for row in sample for key, item in row.items() if item is None}
    if len(rows) < _SAMPLED_ROWS or len(keys) > _MOST_COLUMNS:
        return 0
    if len(columns | keys) <= _MOST_COLUMNS:
        columns |= keys
    return _nones_in(rows, keys)


def _nones_in(rows: Rows, keys: Iterable[str]) -> int:
    found = 0
    for key in keys:
        try:
            found += len([1 for row in rows if row[key] is None])
        except KeyError:  # not in every row
            found += len([1 for row in rows if _get(row, key, 0) is None])
    return found


def _count_none(values: Iterable[object]) -> int:
    # By identity: a class may call itself equal to anything.
    return sum(map(is_, values, repeat(None)))
