"""Cells of a result of DuckDB as values that JSON has: exact, whatever their type.

It runs in the process of a database only; see `_sql_worker`.
"""

import binascii
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, cast

_EXACT_DIGITS = 15
"""Decimals of up to so many digits are the same as a float."""

Foreign: TypeAlias = Any
"""A type of DuckDB."""
Converter = Callable[[Any], object]


def dumps(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def dumps_many(value: object) -> bytes:
    import orjson  # takes a while, and is worth it where there is much to write

    try:
        return orjson.dumps(value)
    except TypeError:  # a number of over 64 bits
        return dumps(value)


def loads(text: str) -> object:
    return json.loads(text, parse_float=lambda digits: _float(float(digits)), parse_constant=str)


def converted(
    rows: Sequence[Sequence[Any]], converters: "Sequence[Converter | None]"
) -> Sequence[Sequence[Any]]:
    """Return rows as values that JSON has."""
    if not rows or not any(converters):
        return rows
    columns = [
        column if convert is None else [None if each is None else convert(each) for each in column]
        for column, convert in zip(zip(*rows, strict=True), converters, strict=True)
    ]
    return list(zip(*columns, strict=True))


def converter(kind: Foreign) -> Converter | None:
    """Return what makes JSON of the values of a DuckDB type, None where they are JSON already."""
    if str(kind) == "JSON":
        return loads
    make = _NESTED.get(kind.id)
    return _CONVERTERS.get(kind.id, plain) if make is None else make(kind)


def plain(value: object) -> object:
    """Return a value of any type as one that JSON has."""
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_key(plain(key)): plain(each) for key, each in items}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("Sequence[object]", value)]
    for kinds, convert in _PLAIN:
        if isinstance(value, kinds):
            return convert(value)
    return value if value is None or isinstance(value, str) else str(value)


def _converted(convert: Converter | None, value: object) -> object:
    return value if convert is None or value is None else convert(value)


def _list(kind: Foreign) -> Converter | None:
    convert = converter(kind.children[0][1])
    if convert is None:
        return list if kind.id == "array" else None  # an array comes as a tuple
    return lambda value: [_converted(convert, each) for each in value]


def _struct(kind: Foreign) -> Converter | None:
    fields = {field: converter(child) for field, child in kind.children}
    if not any(fields.values()):
        return None
    return lambda value: {name: _converted(fields[name], each) for name, each in value.items()}


def _map(kind: Foreign) -> Converter | None:
    keys, values = (converter(child) for _, child in kind.children)
    return lambda value: {
        _key(_converted(keys, key)): _converted(values, each) for key, each in value.items()
    }


def _key(key: object) -> str:
    return key if isinstance(key, str) else dumps(key).decode()


def _float(value: float) -> object:
    if value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124


def _decimal(value: Decimal) -> object:
    return float(value) if len(value.as_tuple().digits) <= _EXACT_DIGITS else str(value)


def _time(value: object) -> str:
    # Years before 1 and after 9999 come as text.
    return value if isinstance(value, str) else cast("dt.date", value).isoformat()


_PLAIN: tuple[tuple[Any, Converter], ...] = (
    (int, lambda value: value),
    (float, _float),
    (Decimal, _decimal),
    (bytes, lambda value: binascii.b2a_base64(value, newline=False).decode()),
    ((dt.date, dt.time), _time),
)
_NESTED: dict[str, Callable[[Any], Converter | None]] = {
    "array": _list,
    "list": _list,
    "map": _map,
    "struct": _struct,
}
_CONVERTERS: dict[str, Converter | None] = {
    **dict.fromkeys(
        (
            *("varchar", "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint"),
            *("usmallint", "uinteger", "ubigint", "hugeint", "uhugeint", "enum", "bit", "null"),
        )
    ),
    "bignum": int,
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
}
