"""A JSON array of objects, read block by block: no more of it has to be held than is wanted.

A block ends where an object seems to follow that begins with the same key as the first one. Where
that was within an element, what was cut off is no JSON, and a longer block is tried. Blocks each
of which is JSON in brackets are, one after another, the array: so what passes is JSON.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from ._index import BLOCK_ROWS
from ._json import loads
from ._rows import RowScanner, json_pattern

_BLOCK_BYTES = 64 * 1024
"""What is made of so much is still in the processor's cache when the next block takes its place."""
_MOST_BLOCK_BYTES = 64 * _BLOCK_BYTES
_LONGEST_KEY_BYTES = 64 * 1024
_JSON_SPACE = b" \t\r\n"

_START = re.compile(rb'\s*+\[\s*+(?=\{\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:)', re.DOTALL)

Objects = Sequence[Mapping[object, object]]


def json_blocks(payload: bytes) -> Iterator[Objects]:
    """Yield the elements of a JSON array in order, some hundred at a time. The first is an object.

    Raises:
        ValueError: The payload is no such array, or its blocks would become too long.
    """
    start = _START.match(payload)
    if start is None:
        message = "no array of objects"
        raise ValueError(message)
    view, at, pattern = memoryview(payload), start.end(), _next_object(start[1])
    block_bytes = _BLOCK_BYTES
    while end := pattern.search(payload, at + block_bytes):
        try:
            block = orjson.loads(b"".join((b"[", view[at : end.start(1)], b"]")))
        except ValueError:
            if block_bytes >= _MOST_BLOCK_BYTES:
                raise
            block_bytes *= 2
            continue
        yield cast("Objects", block)
        at, block_bytes = end.end(1), _BLOCK_BYTES
    yield cast("Objects", orjson.loads(b"".join((b"[", view[at:]))))


class CheckedJsonRows(RowScanner):
    """Finds the elements of a JSON array. What is fed may be anything, and is checked."""

    format = "json"

    def __init__(self) -> None:
        super().__init__()
        self._next_object: re.Pattern[bytes] | None = None
        """None where elements are no objects, or more than their beginnings are alike."""
        self._is_open = self._is_closed = False

    def _scan(self, text: bytes, *, final: bool) -> int:
        start = 0
        if not self._is_open:
            start = self._open(text, final=final)
        if self._is_open and self._next_object is not None:
            start = self._pass_objects(text, start, self._next_object, final=final)
        if self._is_open and self._next_object is None:
            start = self._pass_any(text, start)
        rest = text[start:].strip(_JSON_SPACE)
        if rest and self._is_closed:
            raise ValueError("more behind the array")
        if final and not self._is_closed and (rest != b"]" or self._count):
            raise ValueError("the array does not end")
        return start

    def _open(self, text: bytes, *, final: bool) -> int:
        head = text.lstrip(_JSON_SPACE)
        if head and (head[:1] != b"[" or self._byte):
            raise ValueError("no array")
        first = _START.match(text)
        is_cut = first is None and head[1:].lstrip(_JSON_SPACE)[:1] in {b"", b"{"}
        if is_cut and not final and len(head) < _LONGEST_KEY_BYTES:
            return 0
        self._is_open = True
        self._next_object = None if first is None else _next_object(first[1])
        return len(text) - len(head) + len(head[:1])

    def _pass_objects(
        self, text: bytes, start: int, pattern: re.Pattern[bytes], *, final: bool
    ) -> int:
        block_bytes = _BLOCK_BYTES
        while end := pattern.search(text, start + block_bytes):
            try:
                count = _count_elements(text[start : end.start(1)] + b"]")
            except ValueError:
                if block_bytes >= _MOST_BLOCK_BYTES:
                    self._next_object = None
                    return start
                block_bytes *= 2
                continue
            self._passed_checked(text, start, count)
            start, block_bytes = end.end(1), _BLOCK_BYTES
        if final:
            self._passed_checked(text, start, _count_elements(text[start:]))
            self._is_closed = True
            return len(text)
        return start

    def _passed_checked(self, text: bytes, start: int, rows: int) -> None:
        """Count rows that are known to follow byte `start`."""
        while (due := BLOCK_ROWS - self._count % BLOCK_ROWS) < rows:
            _, stop = json_pattern().skip(text, due, start)
            self._passed(due, start)
            rows, start = rows - due, stop
        self._passed(rows, start)

    def _pass_any(self, text: bytes, start: int) -> int:
        stop = self._pass(json_pattern(), text, start)
        if stop > start:
            _count_elements(text[start : stop - 1] + b"]")
            self._is_closed = text[stop - 1 : stop] == b"]"
        return stop


def _next_object(key: bytes) -> re.Pattern[bytes]:
    """Return the pattern of what parts two objects, the second of which begins with this key."""
    return re.compile(rb"\}\s*+(,)\s*+\{\s*+" + re.escape(key) + rb"\s*+:")


def _count_elements(elements: bytes) -> int:
    """Return how many elements there are before the bracket that closes them.

    Raises:
        ValueError: They are no JSON.
    """
    array = b"[" + elements
    try:
        return len(orjson.loads(array))
    except ValueError:  # lone surrogates and numbers out of range, or no JSON
        return len(cast("Sequence[object]", loads(array)))
