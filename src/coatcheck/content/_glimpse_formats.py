"""Which glimpse a payload gets. Each format but the smallest has a module of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import orjson

from ..records import dataclass
from ._arrays import is_array
from ._content_type import names_json, names_text
from ._frame_rows import columns_of, sample_of
from ._frames import frame_form, frame_shape
from ._glimpse_array import glimpse_array
from ._glimpse_blob import glimpse_blob
from ._glimpse_json import glimpse_json, glimpse_json_bytes, table_of
from ._glimpse_table import Table, glimpse_table, table_of_columns
from ._glimpse_text import SEARCHED_HEAD_CHARS, SEARCHED_TAIL_CHARS, glimpse_text
from ._glimpse_tree import glimpse_tree
from ._index import skip_chars
from ._json import loads
from ._object_rows import EXACT_ROWS, SAMPLED_ROWS
from ._statistics import parsed, spread
from ._table import format_of, read_table

_MOST_PARSED_BYTES = 256 * 1024 * 1024
"""Text over this size is not parsed only to glimpse it."""

_MOST_EXACT_BYTES = 16 * 1024 * 1024
_MOST_DECODED_BYTES = 4 * (SEARCHED_HEAD_CHARS + SEARCHED_TAIL_CHARS)
"""Of longer text only the ends are decoded."""


Rendered = tuple[str, dict[str, object]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of the whole payload, where only part of it is looked at."""

    size_bytes: int
    lines: int | None
    chars: int | None
    rows: int | None
    head_length: int | None
    is_error: bool


def render(value: object, content_type: str, budget_tokens: int, known: Known) -> Rendered:
    """Return the text of a glimpse and its facts; see `glimpse`."""
    if isinstance(value, bytes):
        return _of_bytes(value, content_type, budget_tokens, known)
    if isinstance(value, str):
        return _of_text(value, content_type, budget_tokens, known)
    if is_array(value):
        return glimpse_array(value, budget_tokens)
    if frame_form(value) is not None:
        return _of_frame(value, budget_tokens)
    return glimpse_json(value, budget_tokens, row_count=known.rows)


def _of_text(text: str, content_type: str, budget_tokens: int, known: Known) -> Rendered:
    if len(text) <= _MOST_PARSED_BYTES:
        form = format_of(content_type)
        rendered: Rendered = None
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


def _of_json(payload: bytes, budget_tokens: int) -> Rendered:
    if len(payload) <= _MOST_EXACT_BYTES:
        return _of_value(loads, payload, budget_tokens)
    # The look for integers of over 64 bits takes a fifth of the time: of much, a float will do.
    rendered = glimpse_json_bytes(payload, budget_tokens)
    return rendered or _of_value(orjson.loads, payload, budget_tokens)


def _of_value(parse: Callable[[bytes], object], payload: bytes, budget_tokens: int) -> Rendered:
    try:
        value = parse(payload)
    except ValueError:
        return None
    return glimpse_json(value, budget_tokens)


def _of_rows(text: str, content_type: str, budget_tokens: int, known: Known) -> Rendered:
    """Return the glimpse of CSV, TSV or NDJSON, None of text that is none of them."""
    if known.head_length is not None and known.head_length < len(text):
        if known.rows is None:
            return None  # The whole is no table, whatever its head may be.
        text = text[: text.rfind("\n", 0, known.head_length) + 1]
    read = read_table(text, content_type, exact_rows=EXACT_ROWS, sampled_rows=SAMPLED_ROWS)
    if read is None or not read.row_count:
        return None
    count = max(known.rows or 0, read.row_count)
    sampled = read.read_count if read.read_count < count else None
    if read.columns is not None:
        columns = {name: parsed(fields) for name, fields in read.columns.items()}
        table: Table | None = table_of_columns(columns, rows=count)
    else:
        table = table_of(read.rows or ())
    if table is None or table.label is not None:
        return glimpse_tree(read.rows or (), budget_tokens, items=count)
    table = replace(table, rows=count, sampled=sampled, is_partial=sampled is not None)
    return glimpse_table(table, budget_tokens)


def _of_frame(frame: object, budget_tokens: int) -> Rendered:
    rows, _ = frame_shape(frame)
    sampled = SAMPLED_ROWS if rows > EXACT_ROWS else None
    part = frame if sampled is None else sample_of(frame, list(spread(rows, sampled)))
    columns = cast("Mapping[str, Sequence[object]]", columns_of(part, sampled or rows))
    return glimpse_table(table_of_columns(columns, rows=rows, sampled=sampled), budget_tokens)


def _of_bytes(payload: bytes, content_type: str, budget_tokens: int, known: Known) -> Rendered:
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


def _ends(payload: bytes, known: Known) -> tuple[bytes, Known]:
    """Return the head and the tail of a text, in one: of more, no glimpse tells."""
    head = payload[: skip_chars(payload, SEARCHED_HEAD_CHARS)]
    start = len(payload) - 4 * SEARCHED_TAIL_CHARS
    tail = payload[skip_chars(payload, 0, start) :]
    return head + tail, replace(known, head_length=SEARCHED_HEAD_CHARS)
