"""What a selector asks for, read from its text alone. What it picks is decided elsewhere."""

import re
from typing import Literal

from ..errors import InvalidArgumentError, shown
from ..records import LONGEST_SELECTOR, dataclass

Form = Literal["json-pointer", "jsonpath", "chars", "lines", "rows"]

_FORMS = (
    "Forms: /0/id (JSON Pointer), $[*].id (JSONPath), line=10,20 or char=100,200 (from 0, up to "
    "but not with the second), L10-L20 (lines from 1, both included), row=5-7 (from 1, both "
    "included)."
)

_WINDOW = re.compile(r"(line|char)=([0-9]*)(,?)([0-9]*)", re.ASCII)
_LINES = re.compile(r"L([0-9]+)(?:-L([0-9]+))?", re.ASCII)
_ROWS = re.compile(r"row=([0-9]+)(?:-([0-9]+))?", re.ASCII)

_SAFE_DIGITS = 18
_FAR = 10**_SAFE_DIGITS
"""Past the end of anything. Longer numbers become this one: it fits 64 bits, wherever it goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """What follows ``#`` in a pointer. `start` and `stop` belong to chars, lines and rows."""

    text: str
    form: Form
    start: int = 0
    """From 0."""
    stop: int | None = None
    """Half-open, and may lie past the end; None is the end itself."""


def parse_selector(text: str) -> Selector:
    """Return what the text of a selector, without its ``#``, asks for.

    A path is not looked into: that is done by `resolve_pointer` and `compile_jsonpath`.

    Raises:
        InvalidArgumentError: `text` has none of the forms, or names a range that is empty, runs
            backwards, or counts from 0 what counts from 1.

    Source: RFC 6901, RFC 9535, RFC 5147 (``line`` and ``char``), after RFC 7111 (``row``).

    >>> parse_selector("L10-L20")
    Selector(text='L10-L20', form='lines', start=9, stop=20)
    >>> parse_selector("$[*].id").form
    'jsonpath'
    """
    if len(text) > LONGEST_SELECTOR:
        raise _wrong(f"A selector has at most {LONGEST_SELECTOR:,} characters, got {len(text):,}.")
    if text.startswith("/"):
        return Selector(text=text, form="json-pointer")
    if text.startswith("$"):
        return Selector(text=text, form="jsonpath")
    if match := _WINDOW.fullmatch(text):
        return _window(text, match)
    if match := _LINES.fullmatch(text):
        return _counted_from_one(text, "lines", match)
    if match := _ROWS.fullmatch(text):
        return _counted_from_one(text, "rows", match)
    raise _wrong(f"{shown(text)} is no selector.")


def _window(text: str, match: re.Match[str]) -> Selector:
    unit, first, comma, last = match.groups()
    if not comma or not (first or last):
        raise _wrong(
            f"{shown(text)} selects nothing: a window has a start, a stop, or both.",
            f"Write {unit}=10,20, {unit}=10, (to the end) or {unit}=,20 (from the start).",
        )
    if last and _is_before(last, first, or_equal=True):
        raise _wrong(
            f"{shown(text)} selects nothing: a window stops behind its start.",
            f"{unit}=10,20 is from 10 up to but not with 20, counted from 0.",
        )
    form: Form = "lines" if unit == "line" else "chars"
    stop = _number(last) if last else None
    return Selector(text=text, form=form, start=_number(first or "0"), stop=stop)


def _counted_from_one(text: str, form: Form, match: re.Match[str]) -> Selector:
    first, last = match[1], match[2] or match[1]
    if not first.strip("0"):
        raise _wrong(f"{shown(text)} selects nothing: {form} are counted from 1.")
    if _is_before(last, first):
        raise _wrong(
            f"{shown(text)} selects nothing: a range runs forward, from the first to the last."
        )
    return Selector(text=text, form=form, start=_number(first) - 1, stop=_number(last))


def _is_before(digits: str, others: str, *, or_equal: bool = False) -> bool:
    """Compare numbers of any length, as `int` refuses long ones."""
    one, other = ((len(each), each) for each in (digits.lstrip("0"), others.lstrip("0")))
    return one < other or (or_equal and one == other)


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return _FAR if len(significant) > _SAFE_DIGITS else int(significant or "0")


def _wrong(message: str, hint: str = _FORMS) -> InvalidArgumentError:
    return InvalidArgumentError(message, hint)
