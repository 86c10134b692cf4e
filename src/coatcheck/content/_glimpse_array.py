"""The glimpse of a numpy array: shape and type; of numbers and times their range, and the mean."""

import math
import re
import sys
from collections.abc import Iterator
from typing import cast

from ._arrays import Foreign
from ._preview import quoted
from ._statistics import written
from ._tokens import first_within

_MOST_TOKENS = 26
_MOST_TEXT_TOKENS = 16
"""An array is told in a line, whatever the budget: at most 25 tokens of o200k. The estimate is
near for numbers; of random letters it holds half as many."""
_MOST_TEXTS = 100_000
"""Items up to which text is compared, one by one."""
_SHOWN_CHARS = 8
_TIME = re.compile(r"-?\d{4,9}(?:-\d\d){0,2}(?:T[\d:.]{2,30})?|-?\d{1,19} [a-z]{4,12}", re.ASCII)


def glimpse_array(value: object, budget_tokens: int) -> tuple[str, dict[str, object]] | None:
    """Return the glimpse of an array and its facts, at most 25 tokens long.

    Facts: ``shape``, ``type``, and where its items have an order ``min`` and ``max``, of numbers
    ``mean``. What is not finite is counted, and left out of all else. All items count, whatever
    their number: a million take some 2 ms. Only text is left unsorted beyond 100,000 items.
    """
    array: Foreign = value
    shape = [int(side) for side in array.shape]
    facts: dict[str, object] = {
        "format": "array",
        "shape": shape,
        "type": _type_name(array.dtype),
        **_statistics(array),
    }
    what = f"{'x'.join(map(str, shape)) or 'one'} {facts['type']}"
    if "nonFinite" in facts:
        missing = "NaT" if array.dtype.kind in "Mm" else "not finite"
        what += f", {facts['nonFinite']} {missing}"
    most = _MOST_TEXT_TOKENS if array.dtype.kind == "U" else _MOST_TOKENS
    shown = first_within(_texts(what, facts), min(budget_tokens, most))
    return None if shown is None else (shown, facts)


def _texts(what: str, facts: dict[str, object]) -> Iterator[str]:
    """Yield what to say, the fullest first: fewer digits are better than no mean."""
    if "max" in facts:
        ranges = [_range_text(facts, digits) for digits in (None, 3, 2)]
        if "mean" in facts:
            for span, digits in zip(ranges, (3, 3, 2), strict=True):
                yield f"{what}, {span}, mean {_shown(facts['mean'], digits)}"
        for span in ranges:
            yield f"{what}, {span}"
    yield what


def _range_text(facts: dict[str, object], digits: int | None) -> str:
    least, most = facts["min"], facts["max"]
    of_least = of_most = digits
    if isinstance(least, float) and isinstance(most, float):
        # Of the end that is next to nothing beside the other its magnitude is enough.
        of_least = 1 if abs(least) * 1_000 < abs(most) else digits
        of_most = 1 if abs(most) * 1_000 < abs(least) else digits
    return f"{_shown(least, of_least)} to {_shown(most, of_most)}"


def _shown(value: object, digits: int | None) -> str:
    """Return an item with so many digits; None shows whole numbers exactly."""
    if isinstance(value, str):
        return value if _TIME.fullmatch(value) else quoted(value, _SHOWN_CHARS)
    if isinstance(value, bool) or (isinstance(value, int) and digits is None):
        return written(value)
    number = f"{cast('float', value):.{digits or 3}g}"
    return number.replace("e+", "e").replace("e-0", "e-")


def _type_name(dtype: Foreign) -> str:
    if dtype.names is None:
        return str(dtype if dtype.kind in "SUV" else dtype.name)
    return f"{len(dtype.names)}-field"


def _statistics(array: Foreign) -> dict[str, object]:
    numpy = sys.modules["numpy"]
    kind = array.dtype.kind
    if kind in "Mm":
        return _range(array, numpy.isnat(array))
    if kind == "f" and array.size:
        with numpy.errstate(all="ignore"):
            # Either end tells of any item that is not finite.
            ends = float(array.min()), float(array.max())
            gone = None if all(map(math.isfinite, ends)) else ~numpy.isfinite(array)
            return _range(array, gone, numpy.result_type(array.dtype, "f8"))
    if kind in "biu":
        return _range(array, None, "f8")
    if kind == "U" and 0 < array.size <= _MOST_TEXTS:
        texts = cast("list[str]", array.reshape(-1).tolist())
        return {"min": min(texts), "max": max(texts)}
    return {}


def _range(array: Foreign, gone: Foreign, wide: object = None) -> dict[str, object]:
    facts: dict[str, object] = {}
    if gone is not None and gone.any():
        array = array[~gone]
        facts["nonFinite"] = int(gone.sum())
    if not array.size:
        return facts
    facts |= {"min": _plain(array.min()), "max": _plain(array.max())}
    if wide is not None:
        mean = float(array.mean(dtype=wide))
        # The sum of floats may be too great for one.
        facts |= {"mean": mean} if math.isfinite(mean) else {}
    return facts


def _plain(item: Foreign) -> object:
    if item.dtype.kind in "Mm":
        return str(item)
    # Of 32 bits and less with no digits that it lacks.
    return float(str(item)) if item.dtype.kind == "f" else item.item()
