"""JSON, lossless both ways: what was encoded comes back equal and of the same type, or not at all.

Nothing here measures, indexes or stores.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from math import isfinite
from typing import NoReturn, cast

import orjson
import stringzilla

from ..errors import UnencodableValueError

_OPTIONS = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")

_DEEPEST = 254
"""Most containers within each other. orjson's bound, held on every path."""

_CONTAINERS = frozenset({list, tuple, dict})
_PLAIN = frozenset({str, int, float, bool, type(None)}) | _CONTAINERS

# Of an integer over 64 bits, once each digit is written as 0. Few floats have as many.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_INTS = (b"0" * 20, b"-" + b"0" * 19)

# Several times quicker than `in`, on short bytes and on long ones. It has no type hints.
_find = cast("Callable[[bytes, bytes], int]", stringzilla.find)


def dumps(value: object) -> bytes:
    r"""Return `value` as compact UTF-8 JSON from which `loads` makes an equal value.

    Tuples become arrays. Lone surrogates are written as three bytes each (`surrogatepass`),
    integers of any size as their digits.

    Raises:
        UnencodableValueError: `value` contains itself, a number that is not finite, a key
            that is no string, a type that JSON lacks, or more than 254 nested containers.

    >>> dumps({"é": [1, 1.0, None]})
    b'{"\xc3\xa9":[1,1.0,null]}'
    """
    try:
        payload = orjson.dumps(value, None, _OPTIONS)
    except TypeError:  # some of what it refuses, the slow way can write
        return _dumps_slowly(value)
    # orjson writes NaN and infinity as null, without a word.
    if _find(payload, b"null") >= 0:
        _check_finite(value)
    # It also writes members of an Enum and UUIDs as their text. To find those would take a walk
    # of every value, at several times the cost of the encoding, so they pass.
    return payload


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
    digits = payload.translate(_DIGITS)
    if any(_find(digits, long_int) >= 0 for long_int in _LONG_INTS):
        return _loads_slowly(payload.decode())
    return cast("object", value)


def is_json(text: str) -> bool:
    """Return whether the whole of `text` is one JSON value."""
    try:
        # Encoded here, as orjson would leave its own copy in the str for as long as that lives.
        orjson.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:  # lone surrogates and numbers out of range are JSON still
        try:
            # Some Pythons parse deeper than others: what is deeper than we encode is text to all.
            _check_plain(_loads_slowly(text))
        except ValueError:
            return False
    return True


def has_surrogates(payload: bytes) -> bool:
    """Return whether there is a lone surrogate in a payload of `dumps`."""
    # One byte is looked for first, as that is many times quicker.
    return _find(payload, b"\xed") >= 0 and _SURROGATE.search(payload) is not None


def _dumps_slowly(value: object) -> bytes:
    _check_plain(value)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        # A number that is not finite, one of more digits than Python prints, or a full stack.
        raise UnencodableValueError(str(error)) from error
    return text.encode("utf-8", "surrogatepass")


def _loads_slowly(text: str) -> object:
    try:
        return cast("object", json.loads(text, parse_constant=_refuse))
    except RecursionError as error:
        message = "the JSON text is nested too deeply"
        raise ValueError(message) from error


def _refuse(constant: str) -> NoReturn:
    message = f"{constant} is not JSON"
    raise ValueError(message)


def _check_plain(value: object) -> None:
    """Raise for what the stdlib would write, though not losslessly, or would never end to write."""
    level = [value]
    for _ in range(_DEEPEST + 1):
        foreign = set(map(type, level)) - _PLAIN
        if foreign:
            names = ", ".join(sorted(kind.__name__ for kind in foreign))
            raise UnencodableValueError(f"JSON has no type for {names}")
        dicts = [cast("Mapping[object, object]", each) for each in level if type(each) is dict]
        if set(map(type, chain.from_iterable(dicts))) - {str}:
            raise UnencodableValueError("a key is not a string")
        # Each container once per level: one that holds itself twice would double it each time.
        containers = {id(each): each for each in level if type(each) in _CONTAINERS}
        if not containers:
            return
        level = _inside(containers.values())
    raise UnencodableValueError(
        f"it contains itself, or is nested more than {_DEEPEST} deep", endless=True
    )


def _check_finite(value: object) -> None:
    """Raise for NaN and infinity in a value that orjson has written."""
    values = [value]
    for each in values:  # grows on the way
        kind = type(each)
        if kind is float:
            if not isfinite(cast("float", each)):
                raise UnencodableValueError(f"JSON has no number {each}")
        elif kind is dict:
            values.extend(cast("Mapping[str, object]", each).values())
        elif kind is list or kind is tuple:
            values.extend(cast("Iterable[object]", each))


def _inside(containers: Iterable[object]) -> list[object]:
    inside: list[object] = []
    for each in containers:
        if type(each) is dict:
            inside.extend(cast("Mapping[str, object]", each).values())
        else:
            inside.extend(cast("Iterable[object]", each))
    return inside
