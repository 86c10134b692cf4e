"""JSON Pointer: one value by its place, and a plain word where there is none."""

import re
from collections.abc import Sequence
from typing import NoReturn, cast

from ..errors import InvalidArgumentError, NothingSelectedError, shown

_MOST_KEYS = 10
_LONGEST_KEYS = 400
_SAFE_DIGITS = 18

_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}", re.ASCII)


def resolve_pointer(value: object, text: str) -> object:
    """Return the part of a JSON value that a JSON Pointer names.

    Args:
        value: Of plain JSON: lists, objects with text keys, and leaves.
        text: Empty for the whole, else a slash before each name or index.

    Raises:
        InvalidArgumentError: `text` is no JSON Pointer.
        NothingSelectedError: There is no such part. It says how far the pointer came, and the
            hint what is there.

    Source: RFC 6901.

    >>> resolve_pointer({"items": [{"a/b": 1}]}, "/items/0/a~1b")
    1
    """
    try:
        return _resolve(value, text)
    except NothingSelectedError:
        # RFC 6901, section 6: in a URI fragment a pointer is percent-encoded, and who has learnt
        # that encodes. What is written here is no URI, so the text is taken as it stands first:
        # a key may well contain %20.
        decoded = _decoded(text)
        if decoded is None:
            raise
        try:
            return _resolve(value, decoded)
        except (InvalidArgumentError, NothingSelectedError):
            pass
        raise


def _decoded(text: str) -> str | None:
    if _PERCENT.search(text) is None:
        return None
    from urllib.parse import unquote

    try:
        return unquote(text, errors="strict")
    except ValueError:
        return None


def _resolve(value: object, text: str) -> object:
    if not text:
        return value
    if not text.startswith("/"):
        raise InvalidArgumentError(
            f"{shown(text)} is no JSON Pointer: it starts with a slash.",
            "Write a slash before each name or index, as in /items/0/id.",
        )
    if _BAD_ESCAPE.search(text):
        raise InvalidArgumentError(
            f"{shown(text)} is no JSON Pointer: ~ stands only before 0 or 1.",
            "In a name write ~0 for ~, and ~1 for /.",
        )
    tokens = text.split("/")[1:]
    part = value
    for count, token in enumerate(tokens):
        name = token.replace("~1", "/").replace("~0", "~")
        place = "/".join(["", *tokens[:count]])
        if isinstance(part, dict):
            fields = cast("dict[str, object]", part)
            if name not in fields:
                _refuse_name(text, place, name, list(fields))
            part = fields[name]
        elif isinstance(part, list):
            items = cast("list[object]", part)
            part = items[_index(text, place, name, len(items))]
        else:
            _refuse(
                text,
                f"{_named(place)} is {_kind(part)}, which has no parts",
                f"{_named(place).capitalize()} is the end of this path.",
            )
    return part


def _index(text: str, place: str, token: str, count: int) -> int:
    array = f"{_named(place)} is an array of {count:,}"
    if _INDEX.fullmatch(token) is None:
        hint = "Its items are counted from 0, in plain digits without a leading zero."
        if token.startswith("-"):
            hint += " From the end counts JSONPath: $[-1] is the last."
        _refuse(text, f"{array}, and {shown(token)} is no index", hint)
    if len(token) > _SAFE_DIGITS or int(token) >= count:
        hint = f"Its items are 0 to {count - 1:,}." if count else "It is empty."
        _refuse(text, f"{array}, and has no item {shown(token)}", hint)
    return int(token)


def _refuse_name(text: str, place: str, name: str, names: Sequence[str]) -> NoReturn:
    hint = f"Its keys: {shown_keys(names)}." if names else "It is empty."
    _refuse(text, f"{_named(place)} is an object without {shown(name)}", hint)


def _refuse(text: str, reason: str, hint: str) -> NoReturn:
    raise NothingSelectedError(text, reason, hint)


def shown_keys(names: Sequence[str]) -> str:
    """Return the first keys of an object, quoted, and how many more there are.

    >>> shown_keys(["id", "name"])
    "'id', 'name'"
    """
    quoted: list[str] = []
    size = 0
    for name in names[:_MOST_KEYS]:
        quoted.append(shown(name))
        size += len(quoted[-1])
        if size > _LONGEST_KEYS:
            break
    more = len(names) - len(quoted)
    return ", ".join(quoted) + (f" and {more:,} more" if more else "")


def _named(place: str) -> str:
    return shown(place) if place else "the whole"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a text"
    return "a number"
