"""JSON of a large value, written piece by piece: no call holds the interpreter lock for long."""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import cast

from ..records import dataclass
from ._index import BLOCK_ROWS, Rows
from ._json import dumps, loads

_PIECE_BYTES = 256 * 1024
"""About what one call writes. Escapes may make it six times as much."""
_NODE_BYTES = 4
_MOST_NODES = _PIECE_BYTES // _NODE_BYTES

_ascii = json.JSONEncoder(separators=(",", ":"), default=str).encode


class TooLargeError(Exception):
    """The JSON is larger than it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A value as JSON, and as it comes back from that."""

    payload: bytes
    value: object
    """A copy: it shares no list and no object with what was written."""
    rows: Rows | None
    """Where the elements of a list start in the payload."""


class PieceWriter:
    """Writes plain JSON values.

    Args:
        most_bytes: Most that is written.
        check: Called before each piece; it may raise.
    """

    def __init__(self, most_bytes: int, check: Callable[[], None]) -> None:
        self._most_bytes = most_bytes
        self._check = check
        # Grows without a copy, and gives its bytes without one.
        self._out = BytesIO()

    def written(self, value: object) -> Written:
        """Return the JSON that `dumps` makes of a value, and a copy. For one value only.

        Raises:
            TooLargeError: It is too large.
            UnencodableValueError: As `dumps`.
        """
        if not isinstance(value, list):
            copied = self._value(value, 0)
            return Written(payload=self._out.getvalue(), value=copied, rows=None)
        elements = cast("list[object]", value)
        starts, copy = array("Q"), list[object]()
        self._put(b"[")
        for first in range(0, len(elements), BLOCK_ROWS):
            if first:
                self._put(b",")
            starts.append(self._out.tell())
            copy += self._elements(elements[first : first + BLOCK_ROWS], 1)
        self._put(b"]")
        rows = Rows(format="json", count=len(elements), starts=starts)
        return Written(payload=self._out.getvalue(), value=copy, rows=rows)

    def _value(self, value: object, depth: int) -> object:
        """Write a value that stands so many containers deep; return its copy."""
        if _weight(value) <= _PIECE_BYTES:
            return self._piece(value, depth)
        if isinstance(value, str):
            dumps(_within("", depth))
            self._text(value)
            return value
        if isinstance(value, list):
            self._put(b"[")
            copy = self._elements(cast("list[object]", value), depth + 1)
            self._put(b"]")
            return copy
        if isinstance(value, dict):
            return self._object(cast("dict[str, object]", value), depth + 1)
        return self._piece(value, depth)

    def _elements(self, elements: Sequence[object], depth: int) -> list[object]:
        copy: list[object] = []
        for light in _grouped(elements):
            if copy:
                self._put(b",")
            if len(light) == 1:
                copy.append(self._value(light[0], depth))
            else:
                copy += cast("list[object]", self._piece(light, depth - 1, is_bare=True))
        return copy

    def _object(self, value: dict[str, object], depth: int) -> dict[str, object]:
        copy: dict[str, object] = {}
        items = iter(value.items())
        self._put(b"{")
        for light in _grouped(value.values()):
            if copy:
                self._put(b",")
            names = [name for name, _ in islice(items, len(light))]
            if len(light) == 1:
                self._text(names[0])
                self._put(b":")
                copy[names[0]] = self._value(light[0], depth)
            else:
                part = dict(zip(names, light, strict=True))
                piece = self._piece(part, depth - 1, is_bare=True)
                copy |= cast("dict[str, object]", piece)
        self._put(b"}")
        return copy

    def _piece(self, value: object, depth: int, *, is_bare: bool = False) -> object:
        self._check()
        payload = dumps(_within(value, depth))
        payload = payload[depth : len(payload) - depth]
        self._put(memoryview(payload)[1:-1] if is_bare else payload)
        return loads(payload)

    def _text(self, text: str) -> None:
        if len(text) > self._most_bytes:
            raise TooLargeError
        self._put(b'"')
        for first in range(0, len(text), _PIECE_BYTES):
            self._check()
            self._put(memoryview(dumps(text[first : first + _PIECE_BYTES]))[1:-1])
        self._put(b'"')

    def _put(self, piece: bytes | memoryview) -> None:
        self._out.write(piece)
        if self._out.tell() > self._most_bytes:
            raise TooLargeError


def text_pieces(value: object, check: Callable[[], None]) -> Iterator[str]:
    """Yield the text of a value piece by piece, as `jmespath` writes it: in ASCII.

    Args:
        value: Plain JSON values.
        check: Called before each piece; it may raise.
    """
    if not isinstance(value, list | dict) or _weight(cast("object", value)) <= _PIECE_BYTES:
        check()
        yield _ascii(value)
    elif isinstance(value, list):
        yield "["
        comma = ""
        for light in _grouped(cast("list[object]", value)):
            yield comma
            if len(light) == 1:
                yield from text_pieces(light[0], check)
            else:
                check()
                yield _ascii(light)[1:-1]
            comma = ","
        yield "]"
    else:
        comma = "{"
        for name, item in cast("dict[str, object]", value).items():
            yield f"{comma}{_ascii(name)}:"
            yield from text_pieces(item, check)
            comma = ","
        yield "}"


def _within(value: object, depth: int) -> object:
    """Return a value within so many lists: `dumps` is to hold its bound on depth."""
    for _ in range(depth):
        value = [value]
    return value


def _grouped(values: Iterable[object]) -> Iterator[list[object]]:
    """Yield values in groups that are light together; a heavy one stands alone."""
    group: list[object] = []
    weight = 0
    for value in values:
        more = _weight(value)
        if group and weight + more > _PIECE_BYTES:
            yield group
            group, weight = [], 0
        group.append(value)
        weight += more
    if group:
        yield group


def _weight(value: object) -> int:
    """Return about how many bytes a value is as JSON; past a piece the counting stops."""
    waiting = [value]
    weight = 0
    for part in waiting:
        weight += _NODE_BYTES
        if isinstance(part, str):
            weight += len(part)
        elif isinstance(part, int):
            weight += part.bit_length() // 3
        elif isinstance(part, list):
            items = cast("list[object]", part)
            # Not even the list of what waits is to grow by millions at once.
            waiting += items[:_MOST_NODES]
        elif isinstance(part, dict):
            members = cast("dict[str, object]", part)
            weight += sum(map(len, islice(members, _MOST_NODES)))
            waiting += islice(members.values(), _MOST_NODES)
        if weight > _PIECE_BYTES or len(waiting) >= _MOST_NODES:
            return _PIECE_BYTES + 1
    return weight
