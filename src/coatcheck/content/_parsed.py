"""Payloads as plain values: what selectors and queries pick from. Nothing is picked here."""

from typing import TypeVar, cast

from ._arrays import ARRAY_ROWS, load_array, plain_array
from ._binary_rows import take_rows
from ._content_type import names_json, names_text
from ._csv import DELIMITERS, parse_csv_column, parse_csv_objects
from ._encoding import encode
from ._index import BLOCK_ROWS, BOM, Index, Rows
from ._json import loads
from ._partial import PartialPayload
from ._row_start import row_pattern, row_start
from ._table import format_of, sniffed_type
from ._tabular import is_tabular_form

_SPACE = " \t\r\n"

# What CPython 3.11 takes for parsed JSON, measured; most of a string is its characters.
_OBJECT_BYTES = 184
_ARRAY_BYTES = 64
_VALUE_BYTES = 56
_KEY_BYTES = 24
_ARRAY_GROWTH = 5
_GROWTH = 4
"""Parsed, most payloads take that many times their bytes, or more."""

T = TypeVar("T")


def is_parsed_as(form: str, content_type: str, index: Index, head: str) -> str | None:
    """Return as what a payload is parsed, None for text and bytes that have no structure.

    Args:
        form: As of its `Encoding`.
        content_type: Of the artifact.
        index: Of the payload.
        head: The first characters of it, if it is text.

    Returns:
        ``json``, the format of its rows (``ndjson``, ``csv``, ``tsv``), or its form where it is
        an array or a frame. Text that nobody said to be JSON is taken for that where it begins
        as an object or array.
    """
    if is_tabular_form(form):
        return form
    if form == "json":
        return form
    if index.length_chars is None:
        return None
    if index.rows is not None:
        return index.rows.format
    begins = head.lstrip("\ufeff" + _SPACE)[:1]
    return "json" if names_json(content_type) or begins in {"{", "["} else None


def parse_payload(payload: bytes, parsed_as: str, rows: Rows | None) -> object:
    """Return a payload as plain values.

    JSON is its value, NDJSON the list of its values, CSV and TSV a list of objects whose fields
    are text; a frame is a list of objects, an array nested lists.

    Args:
        payload: All of it.
        parsed_as: What `is_parsed_as` says.
        rows: Of its index.

    Raises:
        ValueError: It cannot be read so.
        InvalidArgumentError: The library that it takes is not installed.
    """
    if parsed_as == ARRAY_ROWS:
        return plain_array(load_array(payload))
    if is_tabular_form(parsed_as) and rows is not None:
        return take_rows(rows, PartialPayload.of(payload), 0, rows.count)
    if parsed_as == "json" or rows is None:
        return loads(payload.removeprefix(BOM))
    return _parse(payload[rows.starts[0] :], rows) if rows.count else []


def rows_of_text(text: str | bytes, content_type: str | None = None) -> list[object] | None:
    r"""Return the rows of NDJSON, CSV or TSV; None of all else.

    Args:
        text: A whole payload, or text.
        content_type: As it was stored, which decides. Where None, what text looks like does.

    >>> rows_of_text("id,name\n1,x\n2,y\n3,z\n")
    [{'id': '1', 'name': 'x'}, {'id': '2', 'name': 'y'}, {'id': '3', 'name': 'z'}]
    >>> rows_of_text("Dear all, there is no table here.")
    """
    if content_type is None:
        is_table = isinstance(text, str) and sniffed_type(text) is not None
    else:
        is_table = names_text(content_type) and format_of(content_type) in {"ndjson", *DELIMITERS}
    if not is_table:
        return None
    encoding = encode(text, content_type)
    payload = encoding.whole()
    rows = encoding.index.rows
    if rows is None:
        return None
    return cast("list[object]", parse_payload(payload, rows.format, rows))


def rows_span(rows: Rows, size_bytes: int, start: int, stop: int) -> tuple[int, int]:
    """Return the bytes that hold rows ``[start, stop)`` of text: whole blocks of 1,024 rows."""
    last = -(-stop // BLOCK_ROWS)
    end = rows.starts[last] if last < len(rows.starts) else size_bytes
    return rows.starts[start // BLOCK_ROWS], end


def parse_rows(rows: Rows, piece: bytes, start: int, stop: int) -> list[object]:
    """Return rows ``[start, stop)`` as plain values; `piece` is what `rows_span` told.

    Raises:
        ValueError: The payload is damaged.
    """
    first = row_start(rows, piece, start)
    passed, end = row_pattern(rows.format, piece).skip(piece, stop - start, first)
    # The last row of a payload needs no end.
    part = piece[first:end] if passed == stop - start else piece[first:]
    return _counted(_parse(part, rows), stop - start)


def is_text_rows(rows: Rows) -> bool:
    """Return whether rows are parts of a text, which an index finds."""
    return rows.format in {"json", "ndjson", *DELIMITERS}


def parse_block(rows: Rows, piece: bytes, first: int, stop: int) -> list[object]:
    """Return the rows of blocks ``[first, stop)`` of 1,024 each; `piece` is all of them.

    Raises:
        ValueError: The payload is damaged.
    """
    return _counted(_parse(piece, rows), min(stop * BLOCK_ROWS, rows.count) - first * BLOCK_ROWS)


def parse_column(rows: Rows, piece: bytes, first: int, stop: int, column: int) -> list[str | None]:
    """Return one column of CSV or TSV as `parse_block` has it; `piece` is all of the blocks.

    Raises:
        ValueError: The payload is damaged.
    """
    found = parse_csv_column(piece.decode("utf-8", "surrogatepass"), rows.format, column)
    return _counted(found, min(stop * BLOCK_ROWS, rows.count) - first * BLOCK_ROWS)


def tree_bytes(payload: bytes, parsed_as: str, value: object) -> int:
    """Return about how much memory a parsed payload takes, rather too much than too little.

    Between 0.5 and 2.5 times what was measured on rows, numbers, texts, and objects of many keys.
    Objects, lists, values and keys of JSON are counted by their signs, whatever else stands in its
    texts; tables by their rows and columns, arrays by their bytes.
    """
    if parsed_as in {"json", "ndjson"}:
        return (
            len(payload)
            + _OBJECT_BYTES * payload.count(b"{")
            + _ARRAY_BYTES * payload.count(b"[")
            + _VALUE_BYTES * payload.count(b",")
            + _KEY_BYTES * payload.count(b":")
        )
    rows = cast("list[dict[str, object]]", value if isinstance(value, list) else [])
    if parsed_as == ARRAY_ROWS:
        return _ARRAY_GROWTH * len(payload) + _ARRAY_BYTES * len(rows)
    return _table_bytes(len(payload), len(rows), len(rows[0]) if rows else 0)


def least_tree_bytes(index: Index) -> int:
    """Return how much memory a payload takes once it is parsed, at least: what its index tells."""
    rows = index.rows
    if rows is not None and rows.format in DELIMITERS:
        return _table_bytes(index.size_bytes, rows.count, len(rows.columns))
    return _GROWTH * index.size_bytes


def _table_bytes(size_bytes: int, rows: int, columns: int) -> int:
    return size_bytes + rows * (_OBJECT_BYTES + _VALUE_BYTES * columns)


def _parse(text: bytes, rows: Rows) -> list[object]:
    """Return all rows of a text that starts with one."""
    if rows.format in DELIMITERS:
        objects = parse_csv_objects(
            text.decode("utf-8", "surrogatepass"), rows.format, rows.columns
        )
        return cast("list[object]", objects)
    if rows.format == "ndjson":
        lines = [line for line in text.split(b"\n") if line and not line.isspace()]
        text = b",".join(lines)
    else:
        # What stands behind the last element is one comma, or the bracket that ends the array.
        text = text.rstrip()
        text = text[:-1] if text.endswith((b",", b"]")) else text
    found = loads(b"[" + text + b"]")
    return cast("list[object]", found)


def _counted(found: list[T], count: int) -> list[T]:
    if len(found) != count:
        message = f"{count} rows were indexed, {len(found)} are there"
        raise ValueError(message)
    return found
