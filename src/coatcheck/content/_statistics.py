"""What the values of one column have in common: types, nulls, range, mean, and the most frequent.

Column by column, as the loops are then C's: one pass of a builtin for each question.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import compress, pairwise
from math import fsum, isfinite
from typing import cast

from ..records import dataclass
from ._preview import plain
from ._shape import data_kind, sized

_TOP = 12
"""Most values that are told with how often they come, of a choice among few."""
_TOP_OF_MANY = 3
_FEW = 20
"""Distinct values up to which a column is a choice among some, and its top is worth telling."""
_FEW_NUMBERS = 8
_FIRST = 1_000
_FIRST_TEXTS = 100
STANDS_OUT = 20
"""A value is worth telling where one in this many is it."""
_FACT_CHARS = 60
_NAME_CHARS = 200
_LONG_INT_BITS = 64

_NAMES: Mapping[type, str] = {
    str: "str",
    bool: "bool",
    int: "int",
    float: "float",
    dict: "object",
    list: "array",
    tuple: "array",
    type(None): "null",
    Decimal: "decimal",
    datetime: "date",
    date: "date",
    time: "time",
    bytes: "bytes",
}
# To a type checker a class of one argument, as each takes its own subclasses.
_BASES = cast("tuple[type[str], ...]", (str, int, float, dict, list, tuple))
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_INT = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_NOT_FINITE = frozenset({"nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"})
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column in numbers. Rows where its key is missing count as null.

    Over a sample, `nulls` and `type` are still those of all rows where they were counted.
    """

    name: str
    type: str
    """``int``, ``float``, ``str``, ``date``, ``object``, …; of several ``int|str``. Of long texts
    in base64 what they are, and how large."""
    nulls: int
    non_finite: int
    """How many are NaN or infinite: they are in no other number here but `values`."""
    empty: int
    """How many are text of no length."""
    values: int
    """How many values that are not null the rest is computed from."""
    minimum: object
    """Of numbers and of ISO 8601 dates; else None."""
    maximum: object
    mean: float | None
    """Sum, rounded once, divided by the count: of `math.fsum` for floats, exact for integers."""
    distinct: int | None
    """None where values cannot be compared: objects and arrays."""
    top: tuple[tuple[object, int], ...]
    """Most frequent first, ties in order of appearance."""

    @property
    def is_choice(self) -> bool:
        """Whether the values are few, and repeat."""
        few = _FEW if self.mean is None else _FEW_NUMBERS
        return self.distinct is not None and self.distinct <= min(few, self.values // 2)

    @property
    def is_nested(self) -> bool:
        """Whether there are objects or arrays in it."""
        return not {"object", "array"}.isdisjoint(self.type.split("|"))

    def facts(self) -> dict[str, object]:
        """Return the same as JSON values."""
        facts: dict[str, object] = {
            "name": plain(self.name, _NAME_CHARS),
            "type": self.type,
            "nulls": self.nulls,
        }
        if self.non_finite:
            facts["nonFinite"] = self.non_finite
        if self.empty:
            facts["empty"] = self.empty
        if self.minimum is not None:
            facts |= {"min": _plain(self.minimum), "max": _plain(self.maximum)}
        if self.mean is not None:
            facts["mean"] = self.mean
        if self.distinct is not None:
            facts["distinct"] = self.distinct
        if self.top and self.top[0][1] > 1:
            facts["top"] = [
                {"value": _plain(value), "count": count, "share": count / self.values}
                for value, count in self.top[: None if self.is_choice else _TOP_OF_MANY]
            ]
        return facts


def describe(
    name: str,
    values: Sequence[object],
    *,
    types: AbstractSet[type] | None = None,
    nulls: int | None = None,
) -> Column:
    """Return the statistics of a column.

    Args:
        name: Of the column.
        values: All of its values, or a sample of them; None where there is none.
        types: Of all values, where `values` is a sample.
        nulls: How many of all values are None, where `values` is a sample.

    >>> describe("x", [3, 1, None, 2]).mean
    2.0
    """
    own = set(map(type, values))
    names = dict.fromkeys(sorted(map(_name, own if types is None else types)))
    own_nulls = 0
    if type(None) in own:
        own_nulls = values.count(None)
        values = [value for value in values if value is not None]
        own.discard(type(None))
    if not own <= _NAMES.keys():
        values = [_common(value) for value in values]
        own = set(map(type, values))
    not_finite = 0
    if float in own:
        finite = _finite(values, mixed=len(own) > 1)
        not_finite = len(values) - len(finite)
        values = finite
    names.pop("null", None)
    if names.keys() == {"int", "float"}:
        del names["int"]
    minimum, maximum, mean = _range(values, own)
    if names.keys() == {"str"} and minimum is not None:
        names = {"date": None}
    distinct, top = _frequencies(values, own)
    data = _data_type(cast("Sequence[str]", values)) if names.keys() == {"str"} else None
    if data is not None:
        names, top = {data: None}, ()
    return Column(
        name=name,
        type="|".join(names) or "null",
        nulls=own_nulls if nulls is None else nulls,
        non_finite=not_finite,
        empty=values.count("") if str in own else 0,
        values=len(values),
        minimum=minimum,
        maximum=maximum,
        mean=mean,
        distinct=distinct,
        top=top,
    )


def parsed(texts: Sequence[str | None]) -> Sequence[object]:
    """Return the values of a column of CSV: numbers or booleans if all of them are, else text.

    Empty text becomes None among numbers and booleans, else it stays. Integers with leading
    zeros or more than 18 digits stay text, as they are names rather than numbers.

    >>> parsed(["1", "", "2.5"]), parsed(["007", "1"])
    ([1.0, None, 2.5], ['007', '1'])
    """
    present = [text for text in set(texts) if text]
    if not present:
        return [None] * len(texts)
    read: dict[str | None, object]
    # One value first, as most columns are text: it settles that at once.
    if _INT.fullmatch(present[0]) and all(map(_INT.fullmatch, present)):
        read = {text: int(text) for text in present}
    elif _is_number(present[0]) and all(map(_is_number, present)):
        read = {text: float(text) for text in present}
    elif all(text.lower() in _BOOLEANS for text in present):
        read = {text: _BOOLEANS[text.lower()] for text in present}
    else:
        return texts
    return list(map(read.get, texts))


def _is_number(text: str) -> bool:
    if text.lower() in _NOT_FINITE:
        return True
    is_name = text.lstrip("+-").isdigit() and not _INT.fullmatch(text)
    return not is_name and _FLOAT.fullmatch(text) is not None


def _name(kind: type) -> str:
    return _NAMES.get(kind) or next(
        (name for base, name in _NAMES.items() if issubclass(kind, base)), kind.__name__[:40]
    )


def _common(value: object) -> object:
    """Return a value of a subclass, or a library's scalar, as one of the types that are counted."""
    if type(value) in _NAMES:
        return value
    if isinstance(value, Enum):
        return _common(value.value)
    for base in _BASES:
        if isinstance(value, base):
            return base(value)
    item = getattr(value, "item", None)
    if type(value).__module__ == "numpy" and callable(item):
        return item()
    return value


def _finite(values: Sequence[object], *, mixed: bool) -> Sequence[object]:
    if not mixed:
        numbers = cast("Sequence[float]", values)
        # A sum is finite where all of its parts are, but for one that overflows.
        if isfinite(sum(numbers)):
            return values
        return list(compress(numbers, map(isfinite, numbers)))
    return [value for value in values if type(value) is not float or isfinite(value)]


def _range(
    values: Sequence[object], types: AbstractSet[type]
) -> tuple[object, object, float | None]:
    """Return the least and the greatest value, and of numbers the mean."""
    if not values:
        return None, None, None
    if types <= {int, float}:
        numbers = cast("Sequence[float]", values)
        return min(numbers), max(numbers), _mean(numbers, types)
    if types == {Decimal}:
        exact = [value for value in cast("Sequence[Decimal]", values) if value.is_finite()]
        return (min(exact), max(exact), _mean(exact, types)) if exact else (None, None, None)
    if types == {str}:
        first = next(filter(None, cast("Sequence[str]", values)), "")
        # Texts of one form, so that their order is that of time.
        if _DATE.fullmatch(first):
            present = set(cast("Sequence[str]", values)) - {""}
            if len(set(map(len, present))) == 1 and all(map(_DATE.fullmatch, present)):
                return min(present), max(present), None
    elif types in ({date}, {datetime}):
        times = cast("Sequence[datetime]", values)
        with suppress(TypeError):  # with and without an offset
            return min(times), max(times), None
    return None, None, None


def _mean(numbers: Sequence[float] | Sequence[Decimal], types: AbstractSet[type]) -> float | None:
    try:
        if types == {int}:
            return cast("int", sum(numbers)) / len(numbers)
        return fsum(numbers) / len(numbers)
    except OverflowError:
        try:
            return fsum(float(number) / len(numbers) for number in numbers)
        except OverflowError:  # an integer beyond any float
            return None


def _data_type(texts: Sequence[str]) -> str | None:
    """Return what texts are that all are long and in base64, and their size; None of others."""
    if not texts or data_kind(texts[0]) is None:
        return None
    longest, shortest = max(texts, key=len), min(texts, key=len)
    found = [data_kind(each) for each in (longest, shortest, *texts[:_FIRST_TEXTS])]
    if found[0] is None or {each and each[0] for each in found} != {found[0][0]}:
        return None
    return sized(*found[0], "" if found[0] == found[1] else "up to ")


def _frequencies(
    values: Sequence[object], types: AbstractSet[type]
) -> tuple[int | None, tuple[tuple[object, int], ...]]:
    try:
        if len(types) > 1 and types != {int, float}:
            # 1, True and 1.0 are equal, and not the same.
            typed = Counter(zip(map(type, values), values, strict=True))
            return len(typed), tuple((each, count) for (_, each), count in typed.most_common(_TOP))
        if _may_be_distinct(values) and len(set(values)) == len(values):
            return len(values), ()
        counts = Counter(values)
    except TypeError:  # not hashable
        return None, ()
    # Of a great many none of which stands out, to sort them would take longer than all else.
    if len(counts) > _FEW and max(counts.values()) * STANDS_OUT < len(values):
        return len(counts), ()
    return len(counts), tuple(counts.most_common(_TOP))


def _may_be_distinct(values: Sequence[object]) -> bool:
    """Return whether it is worth the time to see if no value comes twice."""
    return len(values) > _FIRST and len(set(values[:_FIRST])) == _FIRST


def _plain(value: object) -> object:
    """Return a value as one that any JSON parser takes, and that is short."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < _LONG_INT_BITS else written(value)
    data = data_kind(value) if isinstance(value, str) else None
    return plain(written(value) if data is None else sized(*data), _FACT_CHARS)


def share(count: int, total: int) -> str:
    """Return a part in per cent, which are 0 and 100 only where it is none and all.

    >>> share(1, 999), share(1, 4), share(998, 999), share(9, 9)
    ('<1%', '25%', '>99%', '100%')
    """
    if 0 < count * 100 < total:
        return "<1%"
    percent = f"{100 * count / total:.0f}%"
    return ">99%" if count < total and percent == "100%" else percent


def written(value: object) -> str:
    """Return a value as text, as short as it may be without misleading.

    >>> written(2.0), written(0.1 + 0.2), written(10**30), written(True)
    ('2', '0.3', 'about 1e30', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        exact = repr(value).removesuffix(".0")
        return exact if len(exact) <= 10 else f"{value:.6g}"
    if isinstance(value, int):
        if value.bit_length() < _LONG_INT_BITS:
            return str(value)
        # Turning it to decimal digits takes quadratic time, and is refused beyond 4,300.
        return f"{'-' * (value < 0)}about 1e{value.bit_length() * 30_103 // 100_000}"
    if isinstance(value, (date, time)):  # a datetime is a date
        return value.isoformat()
    return str(value) if isinstance(value, (str, Decimal)) else type(value).__name__


def spread(total: int, wanted: int) -> Iterable[int]:
    """Return `wanted` places of `total`, one at random in each of as many equal parts.

    The same each time; not evenly spaced, as rows often have a period.
    """
    borders = (at * total // wanted for at in range(wanted + 1))
    # Fibonacci hashing: multiples of the golden ratio, without their whole part.
    return (
        start + ((at * 2_654_435_769 % 2**32) * (stop - start) >> 32)
        for at, (start, stop) in enumerate(pairwise(borders))
    )
