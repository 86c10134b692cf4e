r"""Which payloads are tables, told by content type or by a look at their first lines.

Formats: JSON arrays (rows of anything), NDJSON, CSV and TSV. `read_table` gives rows by column
for a glimpse, `row_scanner` finds where they lie while a payload is encoded.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from ..records import dataclass
from ._content_type import media_type
from ._csv import DELIMITERS, CsvRows, parse_csv
from ._index import BLOCK_ROWS, Rows
from ._json import is_json, loads
from ._json_blocks import CheckedJsonRows
from ._rows import LineRows, RowScanner

_FORMATS = {
    "application/csv": "csv",
    "application/json": "json",
    "application/jsonl": "ndjson",
    "application/jsonlines": "ndjson",
    "application/ndjson": "ndjson",
    "application/x-jsonl": "ndjson",
    "application/x-jsonlines": "ndjson",
    "application/x-ndjson": "ndjson",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/tsv": "tsv",
}
_TYPES = {
    "csv": "text/csv",
    "csv;": "text/csv",
    "tsv": "text/tab-separated-values",
    "ndjson": "application/x-ndjson",
}
_NO_HEADER = re.compile(r";\s*header\s*=\s*\"?absent", re.IGNORECASE)

_PIECE_BYTES = 262_144
_SNIFFED_CHARS = 16_384
_SNIFFED_LINES = 5
"""Lines of NDJSON that are parsed before it is taken for that."""
_LEAST_ROWS = 3
"""Fewest rows, without the header, of text that is taken for a table unasked."""
_NAME = re.compile(r"[^\W\d](?:[\w .()/%#$-]{0,62}[\w)%#$])?")
"""What may be a column's name where nobody said that there are columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Rows read from text: by column for CSV and TSV, as they are for NDJSON.

    With 100,000 rows or fewer all of them, else whole blocks of 1,024 spread evenly, the first
    and the last among them.
    """

    row_count: int
    """Rows of the whole text, exact."""
    read_count: int
    """Rows that were read."""
    columns: Mapping[str, Sequence[str | None]] | None
    """Fields by name, of CSV and TSV: text, whatever it looks like; None where a row is short.
    What stands behind the last column is left out."""
    rows: Sequence[object] | None
    """JSON values, of NDJSON."""


def format_of(content_type: str) -> str | None:
    """Return the row format that a content type names, None where it names no table.

    >>> format_of("text/csv; header=present"), format_of("text/plain")
    ('csv', None)
    """
    kind = media_type(content_type)
    return "json" if kind.endswith("+json") else _FORMATS.get(kind)


def row_scanner(content_type: str, *, is_guess: bool = False) -> RowScanner | None:
    """Return what finds the rows in a payload of this type, None where the type is no table's.

    Args:
        content_type: A MIME type. ``header=absent`` says that CSV has no header (RFC 4180).
        is_guess: The type is what `sniffed_type` made of the text.
    """
    form = format_of(content_type)
    if form is None:
        return None
    if form in DELIMITERS:
        return CsvRows(form, header=has_header(content_type), is_guess=is_guess)
    return CheckedJsonRows() if form == "json" else LineRows()


def has_header(content_type: str) -> bool:
    """Return whether the first record of a table of this type names its columns (RFC 4180)."""
    return _NO_HEADER.search(content_type) is None


def sniffed_type(text: str) -> str | None:
    r"""Return the content type of text that looks like NDJSON, CSV or TSV; None for all else.

    The first lines decide. NDJSON is three or more objects or arrays. A table has two
    columns or more, a header of names, and three or more records, all of its length.

    >>> sniffed_type("id,name\n1,x\n2,y\n3,z\n"), sniffed_type("{}\n{}\n{}\n")
    ('text/csv', 'application/x-ndjson')
    >>> sniffed_type("Dear all,\nthe server, as it is,\nwas down,\nagain,\n")
    """
    head = text[:_SNIFFED_CHARS].removeprefix("\ufeff")
    is_cut = len(text) > _SNIFFED_CHARS
    if head[:1] in {"{", "["}:
        return _TYPES["ndjson"] if _looks_like_ndjson(head, is_cut=is_cut) else None
    header = head.partition("\n")[0]
    for form, delimiter in DELIMITERS.items():
        if delimiter in header and _looks_like_csv(head, form, is_cut=is_cut):
            return _TYPES[form]
    return None


def read_table(
    text: str, content_type: str, *, exact_rows: int = 100_000, sampled_rows: int = 20_000
) -> TextTable | None:
    r"""Return the rows of NDJSON, CSV or TSV; None where the text is none of them.

    Args:
        text: Of any length; a copy of it is made.
        content_type: Of the text, as `encode` found it.
        exact_rows: Most rows of which all are read.
        sampled_rows: About how many are read of more.

    >>> read_table("a,b\n1,2\n3\n", "text/csv").columns
    {'a': ('1', '3'), 'b': ('2', None)}
    """
    scanner = row_scanner(content_type)
    if scanner is None or scanner.format == "json":
        return None
    payload = text.encode("utf-8", "surrogatepass")
    for start in range(0, len(payload), _PIECE_BYTES):
        scanner.feed(payload[start : start + _PIECE_BYTES])
    rows = scanner.rows()
    if rows is None:
        return None
    blocks: Sequence[int] = range(len(rows.starts))
    if rows.count > exact_rows:
        wanted = max(1, sampled_rows // BLOCK_ROWS)
        last = len(blocks) - 1
        blocks = [each * last // max(1, wanted - 1) for each in range(wanted)]
    ends = [*rows.starts, len(payload)]
    parts = [payload[ends[block] : ends[block + 1]] for block in blocks]
    if rows.format == "ndjson":
        lines = (line for part in parts for line in part.split(b"\n"))
        values = [loads(line) for line in lines if line and not line.isspace()]
        return TextTable(row_count=rows.count, read_count=len(values), columns=None, rows=values)
    records = [record for part in parts for record in parse_csv(_decode(part), rows.format)]
    return TextTable(
        row_count=rows.count, read_count=len(records), columns=_by_column(records, rows), rows=None
    )


def _by_column(records: Sequence[Sequence[str]], rows: Rows) -> dict[str, Sequence[str | None]]:
    if not records:
        return dict.fromkeys(rows.columns, ())
    columns = dict(zip(rows.columns, zip_longest(*records), strict=False))
    missing = (None,) * len(records)
    return {name: columns.get(name, missing) for name in rows.columns}


def _looks_like_ndjson(head: str, *, is_cut: bool) -> bool:
    lines = head.split("\n")
    if is_cut:
        del lines[-1]
    values = [line for line in lines if line.strip()][:_SNIFFED_LINES]
    return len(values) >= _LEAST_ROWS and all(line[:1] in "{[" and is_json(line) for line in values)


def _looks_like_csv(head: str, form: str, *, is_cut: bool) -> bool:
    # The first line alone turns most other text away, at little cost.
    header = parse_csv(head.partition("\n")[0], form)[0]
    if len(header) < 2 or len(set(header)) < len(header) or not all(map(_NAME.fullmatch, header)):
        return False
    records = parse_csv(head, form)
    if is_cut:
        del records[-1:]
    return len(records) > _LEAST_ROWS and {len(record) for record in records} == {len(header)}


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
