"""First glimpses: what a payload is, computed once, within a token budget.

One function per format returns the text and its facts; each but the smallest has its own module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import orjson

from ..records import Glimpse
from ._arrays import is_array
from ._content_type import names_json, names_text
from ._frame_rows import columns_of, sample_of
from ._frames import frame_form, frame_shape
from ._glimpse_array import glimpse_array
from ._glimpse_blob import glimpse_blob
from ._glimpse_json import glimpse_json, glimpse_json_bytes, table_of
from ._glimpse_table import glimpse_table, table_of_columns
from ._glimpse_text import SEARCHED_HEAD_CHARS, SEARCHED_TAIL_CHARS, glimpse_text
from ._glimpse_tree import glimpse_tree
from ._index import skip_chars
from ._json import dumps, loads
from ._object_rows import EXACT_ROWS, SAMPLED_ROWS
from ._preview import visible, whole_clusters
from ._statistics import parsed, spread
from ._table import format_of, read_table
from ._tokens import clip_tokens, estimate_tokens

_MOST_PARSED_BYTES = 256 * 1024 * 1024
"""Text over this size is not parsed only to glimpse it."""

_MOST_EXACT_BYTES = 16 * 1024 * 1024
_MOST_DECODED_BYTES = 4 * (SEARCHED_HEAD_CHARS + SEARCHED_TAIL_CHARS)
"""Of longer text only the ends are decoded."""


_Rendered = tuple[str, dict[str, object]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of the whole payload, where only part of it is looked at."""

    size_bytes: int
    lines: int | None
    chars: int | None
    rows: int | None
    head_length: int | None
    is_error: bool


def glimpse(
    value: object,
    *,
    content_type: str,
    size_bytes: int,
    budget_tokens: int,
    is_error: bool = False,
    line_count: int | None = None,
    length_chars: int | None = None,
    row_count: int | None = None,
    head_length: int | None = None,
) -> Glimpse | None:
    """Return a bounded summary of `value`, the same each time.

    Args:
        value: Text, bytes, a JSON value, an array of numpy, or a frame.
        content_type: Decides what text and bytes are taken for.
        size_bytes: Of the payload.
        budget_tokens: Most estimated tokens of the text; 0 gives no glimpse.
        is_error: Show the last lines of text.
        line_count: Lines of the whole text where they are known; counted otherwise.
        length_chars: Characters of the whole text, where `value` is its head and its tail.
        row_count: Rows of the whole array or table, where `value` has but the first of them.
        head_length: Characters of `value` that are the head of a text, where the rest is its tail.

    Returns:
        None where the budget holds nothing, or there is nothing to say: of a number, or of text
        that any preview shows whole.

    >>> str(glimpse([{"id": 7}], content_type="application/json", size_bytes=10, budget_tokens=50))
    'array of 1 object {id: int}'
    """
    if budget_tokens <= 0:
        return None
    known = _Known(
        size_bytes=size_bytes,
        lines=line_count,
        chars=length_chars,
        rows=row_count,
        head_length=head_length,
        is_error=is_error,
    )
    rendered: _Rendered
    if isinstance(value, bytes):
        rendered = _of_bytes(value, content_type, budget_tokens, known)
    elif isinstance(value, str):
        rendered = _of_text(value, content_type, budget_tokens, known)
    elif is_array(value):
        rendered = glimpse_array(value, budget_tokens)
    elif frame_form(value) is not None:
        rendered = _of_frame(value, budget_tokens)
    else:
        rendered = glimpse_json(value, budget_tokens, row_count=row_count)
    return None if rendered is None else Glimpse(*rendered)


def host_glimpse(
    make: Callable[[object], str | Glimpse], value: object, budget_tokens: int
) -> Glimpse | None:
    """Return the glimpse that a host's own function makes of `value`, clipped to the budget.

    Args:
        make: `Kind.glimpse`. It may raise anything.
        value: What `get` will return.
        budget_tokens: Most estimated tokens; 0 gives no glimpse, and nothing is called.

    Raises:
        TypeError: It returned neither text nor a `Glimpse`.
        UnencodableValueError: Its facts are no JSON values.
    """
    if budget_tokens <= 0:
        return None
    made = cast("object", make(value))
    if isinstance(made, str):
        made = Glimpse(made, {"format": "host"})
    if not isinstance(made, Glimpse):
        message = f"a kind's glimpse is a str or a Glimpse, got {type(made).__name__}"
        raise TypeError(message)
    facts = cast("Mapping[str, object]", loads(dumps(dict(made.facts))))
    return Glimpse(_clipped(visible(made.text), budget_tokens), facts)


def _clipped(text: str, budget_tokens: int) -> str:
    if estimate_tokens(text) <= budget_tokens:
        return text
    end = clip_tokens(text, budget_tokens)
    while end:
        clipped = whole_clusters(text, end).rstrip() + "…"
        if estimate_tokens(clipped) <= budget_tokens:
            return clipped
        end -= 1
    return ""


def _of_text(text: str, content_type: str, budget_tokens: int, known: _Known) -> _Rendered:
    if len(text) <= _MOST_PARSED_BYTES:
        form = format_of(content_type)
        rendered: _Rendered = None
        if form == "json":
            rendered = _of_json(text.encode("utf-8", "surrogatepass"), budget_tokens)
        elif form is not None:
            rendered = _of_rows(text, content_type, budget_tokens, known)
        if rendered is not None:
            return rendered
    return glimpse_text(
        text,
        budget_tokens,
        line_count=known.lines,
        length_chars=known.chars,
        head_length=known.head_length,
        is_error=known.is_error,
    )


def _of_json(payload: bytes, budget_tokens: int) -> _Rendered:
    if len(payload) <= _MOST_EXACT_BYTES:
        return _of_value(loads, payload, budget_tokens)
    # The look for integers of over 64 bits takes a fifth of the time: of much, a float will do.
    rendered = glimpse_json_bytes(payload, budget_tokens)
    return rendered or _of_value(orjson.loads, payload, budget_tokens)


def _of_value(parse: Callable[[bytes], object], payload: bytes, budget_tokens: int) -> _Rendered:
    try:
        value = parse(payload)
    except ValueError:
        return None
    return glimpse_json(value, budget_tokens)


def _of_rows(text: str, content_type: str, budget_tokens: int, known: _Known) -> _Rendered:
    """Return the glimpse of CSV, TSV or NDJSON, None of text that is none of them."""
    if known.head_length is not None and known.head_length < len(text):
        text = text[: text.rfind("\n", 0, known.head_length) + 1]
    read = read_table(text, content_type, exact_rows=EXACT_ROWS, sampled_rows=SAMPLED_ROWS)
    if read is None or not read.row_count:
        return None
    count = max(known.rows or 0, read.row_count)
    sampled = read.read_count if read.read_count < count else None
    if read.columns is not None:
        columns = {name: parsed(fields) for name, fields in read.columns.items()}
        return glimpse_table(table_of_columns(columns, rows=count, sampled=sampled), budget_tokens)
    rows = read.rows or ()
    table = table_of(rows)
    if table is None or table.label is not None:
        return glimpse_tree(rows, budget_tokens, items=count)
    return glimpse_table(replace(table, rows=count, sampled=sampled), budget_tokens)


def _of_frame(frame: object, budget_tokens: int) -> _Rendered:
    rows, _ = frame_shape(frame)
    sampled = SAMPLED_ROWS if rows > EXACT_ROWS else None
    part = frame if sampled is None else sample_of(frame, list(spread(rows, sampled)))
    columns = cast("Mapping[str, Sequence[object]]", columns_of(part, sampled or rows))
    return glimpse_table(table_of_columns(columns, rows=rows, sampled=sampled), budget_tokens)


def _of_bytes(payload: bytes, content_type: str, budget_tokens: int, known: _Known) -> _Rendered:
    if not names_text(content_type):
        return glimpse_blob(payload, content_type, known.size_bytes, budget_tokens)
    is_counted = known.lines is not None and known.chars is not None
    if is_counted and len(payload) > _MOST_DECODED_BYTES and format_of(content_type) is None:
        payload, known = _ends(payload, known)
    if len(payload) <= _MOST_PARSED_BYTES:
        if names_json(content_type):
            rendered = _of_json(payload, budget_tokens)
            if rendered is not None:
                return rendered
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            pass
        else:
            return _of_text(text, content_type, budget_tokens, known)
    return glimpse_blob(payload, content_type, known.size_bytes, budget_tokens)


def _ends(payload: bytes, known: _Known) -> tuple[bytes, _Known]:
    """Return the head and the tail of a text, in one: of more, no glimpse tells."""
    head = payload[: skip_chars(payload, SEARCHED_HEAD_CHARS)]
    start = len(payload) - 4 * SEARCHED_TAIL_CHARS
    tail = payload[skip_chars(payload, 0, start) :]
    return head + tail, replace(known, head_length=SEARCHED_HEAD_CHARS)
