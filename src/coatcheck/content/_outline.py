"""What a value has, in one clause: said where a selector or a query asked for something else."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from ._index import Index
from ._json_pointer import shown_keys

_LOOKED_AT = 100


def outline(value: object, count: int | None = None) -> str:
    """Return what a plain value is and which keys it has; never one of its values.

    Args:
        value: Any.
        count: Of its items, where `value` is the head of a longer list.

    >>> outline([{"id": 1}, {"id": 2, "late": True}]), outline({"total": 2}), outline("x")
    ("a list of 2 with the keys 'id', 'late'", "an object with the keys 'total'", 'one text')
    """
    if isinstance(value, dict):
        return f"an object{_named('key', list(cast('Mapping[str, object]', value)))}"
    if isinstance(value, list):
        items = cast("Sequence[object]", value)
        keys: dict[str, None] = {}
        for item in islice(items, _LOOKED_AT):
            if isinstance(item, dict):
                keys.update(dict.fromkeys(cast("Mapping[str, object]", item)))
        return f"a list of {len(items) if count is None else count:,}{_named('key', list(keys))}"
    if isinstance(value, str):
        return "one text"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true or false"
    return "one number" if isinstance(value, int | float) else f"one {type(value).__name__}"


def index_outline(index: Index, content_type: str) -> str:
    """Return by its index what a payload has: rows and columns, lines and characters, or bytes."""
    parts: list[str] = []
    if index.rows is not None:
        parts.append(_count(index.rows.count, "row") + _named("column", index.rows.columns))
    if index.length_chars is not None:
        parts += [_count(index.line_count, "line"), _count(index.length_chars, "character")]
    return ", ".join(parts) or f"{_count(index.size_bytes, 'byte')} of {content_type}"


def _named(what: str, names: Sequence[str]) -> str:
    return f" with the {what}s {shown_keys(names)}" if names else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
