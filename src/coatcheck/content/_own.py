"""Copies of plain values, so that whoever is handed one may change it."""

import marshal
from typing import Any, cast

# Before marshal shared what is reached twice, which would tie two parts of a copy together.
_MARSHAL_VERSION = 2
_CONTAINERS = frozenset({dict, list})


def own(value: object) -> object:
    """Return a copy of a plain value; of its parts only lists and dicts are copied.

    >>> rows = [{"id": 1}]
    >>> copy = own(rows)
    >>> copy == rows, copy is rows
    (True, False)
    """
    try:
        return _copy(value)
    except RecursionError:
        # As deep as only parsed JSON is, and that holds nothing marshal does not know.
        packed = marshal.dumps(cast("Any", value), _MARSHAL_VERSION)
        return cast("object", marshal.loads(packed))  # noqa: S302 - our own bytes


def _copy(value: object) -> object:
    if type(value) is dict:
        fields = cast("dict[object, object]", value)
        return {
            key: _copy(part) if type(part) in _CONTAINERS else part for key, part in fields.items()
        }
    if type(value) is list:
        items = cast("list[object]", value)
        return [_copy(part) if type(part) in _CONTAINERS else part for part in items]
    return value
