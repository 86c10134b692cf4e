"""JSON, lossless: plain values come back equal, all others as `docs/values.md` promises.

Nothing here measures, indexes or stores.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import NoReturn, cast

import orjson
import stringzilla

from ..errors import UnencodableValueError
from ._json_digits import number_of
from ._json_nulls import RowsBefore, may_hold_non_finite, with_names
from ._json_values import finite, plain
from ._json_writer import write

_OPTIONS = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")

_QUICK_LEVELS = 3
"""Objects within each other that orjson asks about. Each may add 254 containers, and what is
nested more than 1,024 deep it would not read again."""

# Of an integer over 64 bits, once each digit is written as 0.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_INTS = (b"0" * 20, b"-" + b"0" * 19)
_LONG_INT = re.compile(rb"-?0+")
_BEFORE_INT = frozenset(b"[:, \t\n\r")
_AFTER_INT = frozenset(b"]}, \t\n\r")
_MOST_LONG_RUNS = 100_000

# Several times quicker than `in`, on short bytes and on long ones. It has no type hints.
_find = cast("Callable[..., int]", stringzilla.find)


def dumps(value: object, *, before: RowsBefore | None = None) -> bytes:
    r"""Return `value` as compact UTF-8 JSON, by the rule that `docs/values.md` lays down.

    Lone surrogates are written as three bytes each (`surrogatepass`), integers up to a million
    digits long as their digits.

    Args:
        value: Anything.
        before: What is known from other rows, where `value` is a list of them.

    Raises:
        UnencodableValueError: `value` contains itself, a type that has no rule, keys that give
            the same text, or more than 254 nested containers.

    >>> dumps({"é": [1, 1.0, None], 2: {3}})
    b'{"\xc3\xa9":[1,1.0,null],"2":[3]}'
    """
    try:
        payload = _quick(value, before=before)
        return write(value, _within) if payload is None else payload
    except RecursionError as error:  # the caller's own stack was nearly full
        raise UnencodableValueError("the stack is full", endless=True) from error


def _within(part: object, depth: int) -> bytes | None:
    """Return the JSON of a part that stands so many containers deep, None where it is refused."""
    # orjson is to hold its bound on depth.
    wrapped = part
    for _ in range(depth):
        wrapped = [wrapped]
    payload = _quick(wrapped)
    return None if payload is None else payload[depth:-depth]


def _quick(
    value: object, levels: int = _QUICK_LEVELS, *, before: RowsBefore | None = None
) -> bytes | None:
    """Return the JSON of a value that orjson can write, else None."""
    try:
        payload = _written(value, levels, before)
        # orjson writes NaN and infinity as null, without a word.
        if _find(payload, b"null") >= 0 and may_hold_non_finite(value, payload, before):
            return orjson.dumps(with_names(value), _ASKED[levels], _OPTIONS)
    except TypeError:  # some of what it refuses, the slow way can write
        return None
    return payload


def _written(value: object, levels: int, before: RowsBefore | None) -> bytes:
    if before is not None and before.are_plain:
        try:
            return orjson.dumps(value, None, _OPTIONS)
        except TypeError:
            before.are_plain = False
    return orjson.dumps(value, _ASKED[levels], _OPTIONS)


def _asked(levels: int, value: object) -> object:
    """Return what orjson is to write for a value that it does not know."""
    known = plain(value)
    if isinstance(known, float):
        return finite(known)
    if not isinstance(known, list | dict | set | frozenset):
        return known
    # Encoded here, as only here is NaN found in it.
    if isinstance(known, list | dict):
        return orjson.Fragment(_part(cast("object", known), levels))
    items = cast("frozenset[object]", known)
    return orjson.Fragment(b"[" + b",".join(sorted(_part(each, levels) for each in items)) + b"]")


def _part(value: object, levels: int) -> bytes:
    payload = _quick(value, levels - 1) if levels else None
    if payload is None:
        message = "not the quick way"
        raise TypeError(message)
    return payload


_ASKED = [partial(_asked, levels) for levels in range(_QUICK_LEVELS + 1)]


def loads(payload: bytes) -> object:
    """Return the value of JSON in UTF-8, as `dumps` writes it.

    Raises:
        ValueError: The payload is not JSON, or nested deeper than can be parsed.
    """
    try:
        value = orjson.loads(payload)
    except ValueError:  # lone surrogates, or no JSON
        return _loads_slowly(payload.decode("utf-8", "surrogatepass"))
    # orjson reads integers over 64 bits as floats, without a word.
    if _may_hold_long_int(payload):
        return _loads_slowly(payload.decode())
    return cast("object", value)


def is_json(text: str) -> bool:
    """Return whether the whole of `text` is one JSON value."""
    try:
        # Encoded here, as orjson would leave its own copy in the str for as long as that lives.
        orjson.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:  # lone surrogates and numbers out of range are JSON still
        try:
            # The numbers themselves are not needed. Some Pythons parse deeper than others: what
            # is deeper than we encode is text to all.
            dumps(_loads_slowly(text, parse_int=len))
        except ValueError:
            return False
    return True


def has_surrogates(payload: bytes) -> bool:
    """Return whether there is a lone surrogate in a payload of `dumps`."""
    # One byte is looked for first, as that is many times quicker.
    return _find(payload, b"\xed") >= 0 and _SURROGATE.search(payload) is not None


def _may_hold_long_int(payload: bytes) -> bool:
    """Return whether a run of digits may be an integer over 64 bits, and not part of a float."""
    digits = payload.translate(_DIGITS)
    for long_int in _LONG_INTS:
        at = _find(digits, long_int)
        for _ in range(_MOST_LONG_RUNS):
            if at < 0:
                break
            run = cast("re.Match[bytes]", _LONG_INT.match(digits, at))
            before = at - (at > 0 and digits[at - 1] == 0x2D)
            if (before == 0 or digits[before - 1] in _BEFORE_INT) and (
                run.end() == len(digits) or digits[run.end()] in _AFTER_INT
            ):
                return True
            at = _find(digits, long_int, run.end())
        else:
            return True
    return False


def _loads_slowly(text: str, parse_int: Callable[[str], int] = number_of) -> object:
    try:
        return cast("object", json.loads(text, parse_constant=_refuse, parse_int=parse_int))
    except RecursionError as error:
        message = "the JSON text is nested too deeply"
        raise ValueError(message) from error


def _refuse(constant: str) -> NoReturn:
    message = f"{constant} is not JSON"
    raise ValueError(message)
