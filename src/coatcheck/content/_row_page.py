"""A page of rows: which bytes to fetch for it, and its rows as one JSON list."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

import orjson

from ..records import Page
from ._csv import parse_csv_objects
from ._index import BLOCK_ROWS, Rows
from ._json import dumps
from ._row_start import Borders, Lines, row_pattern, row_place
from ._rows import RowPattern
from ._tokens import clip_tokens, estimate_tokens

_LONGEST_CHARACTER_BYTES = 4
_ROWS_AT_ONCE = 128
_SPACE = " \t\r\n"
_BLANK = " \t\r\n\v\f"
_ENDS = "\r\n"


def has_row_pages(rows: Rows | None) -> bool:
    """Return whether rows of this format are read here."""
    return rows is not None and rows.format in _RENDERERS


def rows_range(
    rows: Rows, size_bytes: int, offset: int, limit: int, longest_chars: int
) -> tuple[int, int]:
    """Return the bytes that hold a window of rows, from the start of a block of 1,024 on.

    They are one block, and as much of the next ones as a page can hold.
    """
    if offset >= rows.count:
        return size_bytes, size_bytes
    starts = rows.starts
    block = offset // BLOCK_ROWS
    behind = block + 1
    last = (min(offset + limit, rows.count) - 1) // BLOCK_ROWS + 1
    stop = starts[last] if last < len(starts) else size_bytes
    if behind < len(starts):
        stop = min(stop, starts[behind] + _LONGEST_CHARACTER_BYTES * longest_chars)
    return starts[block], max(stop, starts[block])


def cut_rows(
    rows: Rows,
    piece: bytes,
    *,
    offset: int,
    limit: int,
    longest_chars: int,
    budget_tokens: int | None,
    is_end: bool,
) -> Page:
    """Return the page; `piece` is what `rows_range` told, `is_end` whether the payload ends there.

    A page holds whole rows, within its bounds. A first row that alone is over them is shown as
    the head of its text, in one JSON string in place of the list; then `has_more` is true.
    """
    shown, is_cut = _shown_rows(rows, piece, offset, limit, longest_chars, is_end=is_end)
    return page_of(
        shown,
        is_cut=is_cut,
        total=rows.count,
        offset=offset,
        limit=limit,
        longest_chars=longest_chars,
        budget_tokens=budget_tokens,
    )


def page_of(
    shown: list[str],
    *,
    is_cut: bool,
    total: int,
    offset: int,
    limit: int,
    longest_chars: int,
    budget_tokens: int | None,
) -> Page:
    """Return the page of rows that are JSON texts and fit its length; `is_cut`: of one too long."""
    if budget_tokens is not None and shown:
        length = clip_tokens(_joined(shown), budget_tokens)
        ends = list(accumulate(len(row) + 1 for row in shown))
        kept = bisect_left(ends, length)
        while kept and estimate_tokens(_joined(shown[:kept])) > budget_tokens:
            kept -= 1
        is_cut = is_cut or kept == 0
        del shown[max(1, kept) :]
    content = _cut_row(shown[0], longest_chars, budget_tokens) if is_cut else _joined(shown)
    next_offset = offset + len(shown)
    return Page(
        content=content,
        unit="rows",
        offset=offset,
        limit=limit,
        total=total,
        has_more=is_cut or next_offset < total,
        # No row of a damaged payload: no page further on would do better.
        next_offset=next_offset if shown and (is_cut or next_offset < total) else None,
        offset_chars=None,
        next_offset_chars=None,
        line_number=None,
    )


def _shown_rows(
    rows: Rows, piece: bytes, offset: int, limit: int, longest_chars: int, *, is_end: bool
) -> tuple[list[str], bool]:
    """Return rows as JSON, or the text of one and true where it is over the bound."""
    pattern, shown = row_pattern(rows.format, piece), list[str]()
    left = longest_chars - 1  # the bracket in front
    wanted = min(limit, rows.count - offset)
    start, parted = row_place(rows, piece, offset, wanted)
    while len(shown) < wanted:
        count = min(_ROWS_AT_ONCE, wanted - len(shown))
        found, stop = _parted_rows(rows, parted, offset % BLOCK_ROWS + len(shown), count)
        if not found:
            parted = None  # the rows that are left are of the next block, or have no end
            found, stop = _whole_rows(rows, pattern, piece, start, count)
        if not found:
            text, stop = piece[start:].decode("utf-8", "surrogatepass"), len(piece)
            if not text.strip(_ENDS):
                break
            if not is_end:
                return (shown, False) if shown else ([text.strip(_SPACE)], True)
            # The last row of a payload needs no end.
            found = _RENDERERS[rows.format]([text], rows)
        size = sum(map(len, found)) + len(found)
        if size <= left:
            shown += found
            left, start = left - size, stop
            continue
        for row in found:
            left -= len(row) + 1
            if left < 0:
                passed, end = pattern.skip(piece, 1, start)
                text = piece[start : end if passed else stop].decode("utf-8", "surrogatepass")
                return (shown, False) if shown else ([text.strip(_SPACE)], True)
            shown.append(row)
    return shown, False


def _parted_rows(
    rows: Rows, parted: Borders | Lines | None, number: int, count: int
) -> tuple[list[str], int]:
    """Return at most `count` rows of a block as JSON, from one on, and where they end.

    Raises:
        ValueError: They are lines, but not as many rows: no payload that was indexed is so.
    """
    if parted is None:
        return [], 0
    if isinstance(parted, Borders):
        return parted.rows(number, count)
    text, stop = parted.text(number, count)
    if not text:
        return [], stop
    found = _RENDERERS[rows.format]([text], rows)
    if len(found) != min(count, parted.count - number):
        raise ValueError("the payload is not what was indexed")
    return found, stop


def _whole_rows(
    rows: Rows, pattern: RowPattern, piece: bytes, start: int, count: int
) -> tuple[list[str], int]:
    """Return at most `count` rows as JSON, from byte `start` on, and where they end."""
    if rows.format == "json":
        texts, stop = pattern.split(piece, count, start)
    else:
        passed, stop = pattern.skip(piece, count, start)
        texts = [piece[start:stop]] if passed else []
    decoded = [text.decode("utf-8", "surrogatepass") for text in texts]
    return _RENDERERS[rows.format](decoded, rows), stop


def _joined(rows: Sequence[str]) -> str:
    return f"[{','.join(rows)}]"


def _cut_row(text: str, longest_chars: int, budget_tokens: int | None) -> str:
    """Return the head of `text` as a JSON string within the bounds, but one character at least."""
    head = text[:longest_chars]
    content = _json(head)
    while len(head) > 1 and (
        len(content) > longest_chars
        or (budget_tokens is not None and estimate_tokens(content) > budget_tokens)
    ):
        head = head[: len(head) * 7 // 8]
        content = _json(head)
    return content


def _json(value: object) -> str:
    return dumps(value).decode("utf-8", "surrogatepass")


def _json_rows(texts: list[str], _rows: Rows) -> list[str]:
    # Without the comma or bracket behind each.
    return [text.strip(_SPACE)[:-1].rstrip(_SPACE) for text in texts]


def _line_rows(texts: list[str], _rows: Rows) -> list[str]:
    lines = (line for text in texts for line in text.split("\n"))
    return [line.strip(_SPACE) for line in lines if line.strip(_BLANK)]


def _csv_rows(texts: list[str], rows: Rows) -> list[str]:
    objects = [
        record for text in texts for record in parse_csv_objects(text, rows.format, rows.columns)
    ]
    try:
        # Of texts alone orjson writes what `dumps` does, at half the cost.
        return [row.decode() for row in map(orjson.dumps, objects)]
    except TypeError:  # a lone surrogate
        return [_json(each) for each in objects]


_RENDERERS: dict[str, Callable[[list[str], Rows], list[str]]] = {
    "json": _json_rows,
    "ndjson": _line_rows,
    "csv": _csv_rows,
    "csv;": _csv_rows,
    "tsv": _csv_rows,
}
"""How rows of each format are made JSON. Arrays and frames have their own."""
