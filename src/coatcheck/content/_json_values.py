"""The rule by which a Python value becomes JSON, one level at a time. docs/values.md has the table.

What a value is made of is left as it is: whoever writes the outer level applies the rule again.
"""

import base64
import dataclasses
import datetime as dt
from collections import UserString
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from itertools import islice
from math import isfinite
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from ..errors import UnencodableValueError

# To a type checker all three are bytes.
_BYTES_LIKE = cast("tuple[type[bytes], ...]", (bytes, bytearray, memoryview))
_AS_TEXT = (Decimal, UUID, PurePath, UserString)
_TEXT_MODULES = frozenset({"ipaddress"})
"""Of these all classes are text. They are not imported only to look at a value."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = frozenset({list, tuple, dict})
_RESHAPED = frozenset({*_CONTAINERS, set, frozenset})
_MOST_LOOKED_AT = 100
_DAY_MICROSECONDS = 24 * 3_600 * 1_000_000


def plain(value: object) -> object:
    """Return what `value` is written as, one level down: a str, int, float, list, dict or set.

    An Enum gives its value, whatever that is; so do a pydantic model with a root, and a numpy
    scalar. Plain JSON values are not handed in.

    Raises:
        UnencodableValueError: No rule covers its type, or its own code failed.

    >>> import datetime
    >>> plain(datetime.timedelta(hours=36)), plain(b"ab"), plain(range(2))
    ('P1DT12H', 'YWI=', [0, 1])
    """
    if isinstance(value, Enum):
        return cast("object", value.value)
    try:
        for kinds, rule in _RULES:
            if isinstance(value, kinds):
                return rule(value)
        return _by_shape(value)
    except UnencodableValueError:
        raise
    except Exception as error:
        # The class is the tool's own, and may raise anything.
        name, failure = type(value).__name__, type(error).__name__
        raise UnencodableValueError(f"to read {name} raised {failure}") from error


def is_reshaped(value: object) -> bool:
    """Return whether JSON gives an object or list of `value` another shape than it has here.

    The first hundred items of the first hundred containers are looked at.

    >>> import collections
    >>> is_reshaped([{"at": dt.date.today()}]), is_reshaped([collections.deque("ab")])
    (False, True)
    """
    kinds: dict[type, object] = {}
    waiting = [value]
    for each in islice(waiting, _MOST_LOOKED_AT):  # grows on the way
        kind = type(each)
        items: Iterable[object] = ()
        if kind is dict:
            items = cast("dict[object, object]", each).values()
        elif kind is list or kind is tuple:
            items = cast("list[object]", each)
        else:
            kinds.setdefault(kind, each)
        for item in islice(items, _MOST_LOOKED_AT):
            if type(item) in _CONTAINERS:
                waiting.append(item)
            else:
                kinds.setdefault(type(item), item)
    return any(
        kind not in _SCALARS and type(plain(each)) in _RESHAPED for kind, each in kinds.items()
    )


def finite(number: float) -> float | str:
    """Return a float, or the name of one that JSON cannot hold."""
    if isfinite(number):
        return number
    if number != number:  # noqa: PLR0124 - only NaN differs from itself
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def duration(delta: dt.timedelta) -> str:
    """Return a time span in days, hours, minutes and seconds, to the microsecond.

    Source: ISO 8601-1:2019, 5.5.2.

    >>> duration(dt.timedelta(days=-1, microseconds=1)), duration(dt.timedelta())
    ('-PT23H59M59.999999S', 'PT0S')
    """
    microseconds = delta // dt.timedelta(microseconds=1)
    sign = "-" if microseconds < 0 else ""
    days, rest = divmod(abs(microseconds), _DAY_MICROSECONDS)
    minutes, rest = divmod(rest, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds, fraction = divmod(rest, 1_000_000)
    second = f"{seconds}.{fraction:06}".rstrip("0") if fraction else str(seconds)
    clock = "".join(
        f"{count}{unit}"
        for count, unit in ((hours, "H"), (minutes, "M"), (second, "S"))
        if count not in (0, "0")
    )
    day = f"{days}D" if days else ""
    if not day and not clock:
        return "PT0S"
    return f"{sign}P{day}{'T' if clock else ''}{clock}"


def _isoformat(value: dt.datetime | dt.date | dt.time) -> str:
    return value.isoformat()


def _base64(value: bytes) -> str:
    return base64.b64encode(bytes(value)).decode()


def _tuple(value: tuple[object, ...]) -> object:
    names = getattr(value, "_fields", None)
    return list(value) if names is None else dict(zip(names, value, strict=True))


def _mapping(value: Mapping[Any, Any]) -> object:
    return dict(value.items())


_RULES: tuple[tuple[Any, Callable[[Any], object]], ...] = (
    (str, str.__str__),
    (int, int.__index__),
    (float, float.__float__),
    ((dt.datetime, dt.date, dt.time), _isoformat),
    (dt.timedelta, duration),
    (_AS_TEXT, str),
    (_BYTES_LIKE, _base64),
    (tuple, _tuple),
    (Mapping, _mapping),
    (AbstractSet, frozenset),
    (Sequence, list),
)
"""Types, and what becomes of them. The first that fits counts."""


def _by_shape(value: object) -> object:
    """Return what is known by what a class has, so that no library need be there."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(kind)}
    if hasattr(kind, "__pydantic_core_schema__") and hasattr(kind, "model_dump"):
        return _model(value)
    if kind.__module__ in _TEXT_MODULES:
        return str(value)
    if kind.__module__ == "numpy" and hasattr(kind, "tolist"):
        return _numpy(value)
    raise UnencodableValueError(f"JSON has no type for {kind.__name__}")


def _model(value: object) -> object:
    model = cast("Any", value)
    # Its own serializers and exclusions count: they may be there to keep a secret.
    try:
        return cast("object", model.model_dump(serialize_as_any=True, warnings=False))
    except ValueError as error:
        if "Circular reference" not in str(error):
            raise
        raise UnencodableValueError("it contains itself", endless=True) from error


def _numpy(value: object) -> object:
    array = cast("Any", value)
    if array.dtype.kind == "M":  # as whole numbers their unit would be lost
        array = array.astype(str)
    listed: object = array.tolist()
    if type(listed) is type(array) or array.dtype.kind == "m":
        raise UnencodableValueError(f"JSON has no type for numpy {array.dtype}")
    return listed
