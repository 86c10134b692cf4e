"""A stream on its way to a store: its items as bytes, and what is known of these at the end."""

import codecs
from array import array
from collections import deque
from collections.abc import Iterator
from typing import cast

from xxhash import xxh3_128

from ..errors import UnencodableValueError
from ._content_type import HEAD_BYTES, check_content_type, extension_of, names_json, names_text
from ._index import (
    BLOCK_CHARS,
    BLOCK_ROWS,
    Index,
    IndexBuilder,
    Rows,
    binary_index,
    count_chars,
    skip_chars,
)
from ._json import dumps, loads
from ._rows import JsonRows
from ._sample import BlockSample, Sample
from ._table import row_scanner

PIECE_BYTES = 512 * 1024
"""Items are gathered up to this size before they are handed on."""

_KEPT_HEAD_BYTES = 4 * 1024 * 1024
_KEPT_TAIL_BYTES = 1024 * 1024
_LONGEST_CUT_BYTES = 65_536
_MOST_EXACT_ITEMS = 100_000
_BYTES_LIKE = cast("tuple[type[bytes], ...]", (bytes, bytearray, memoryview))


class Items:
    """Makes one payload of items as they come: their bytes or text joined, or a JSON array.

    The first item decides. Bytes are joined, and so is text where the content type is one of
    text; all other items become one array, as a list of them would.

    Args:
        content_type: As the caller gave it, or as a file's name tells; None where nothing did.
        form: ``bytes`` or ``text`` where the items are pieces of a file, and no items at all.
    """

    def __init__(self, content_type: str | None = None, *, form: str | None = None) -> None:
        self._asked = content_type
        self.form = form
        """What `decode` makes of the payload; None before the first item."""
        self.are_counted = form is None
        self.count = 0
        self.size_bytes = 0
        self.row_starts = array("Q")
        """Byte at which each 1,024th item of an array starts."""
        self._sample = Sample()

    @property
    def content_type(self) -> str:
        """The given content type, else that of the form."""
        if self._asked is not None:
            return self._asked
        return "application/octet-stream" if self.form == "bytes" else "application/json"

    def piece(self, item: object) -> bytes:
        """Return what `item` adds to the payload.

        Raises:
            UnencodableValueError: It has no encoding, or is none of bytes or text like the first.
        """
        if self.form is None:
            self.form = self._form_of(item)
        piece = self._array_item(item) if self.form == "json" else self._joined_item(item)
        self.count += 1
        self.size_bytes += len(piece)
        if self.form == "json":
            self._sample.add(piece)
        return piece

    def sample(self) -> list[object]:
        """Return items that are spread over all of an array: up to 20,000, or 4 MiB of them."""
        last = self._sample.last
        pieces = [*self._sample.kept, *(() if last is None else (last,))]
        # Each begins with what parts it from the one before.
        array = b"[%b]" % b",".join(piece[1:] for piece in pieces)
        return cast("list[object]", loads(array))

    def end(self) -> bytes:
        """Return what ends the payload, after the last item."""
        if self.form is None:
            self.form = self._form_of_nothing()
            piece = b"[]" if self.form == "json" else b""
        else:
            piece = b"]" if self.form == "json" else b""
        self.size_bytes += len(piece)
        return piece

    def _form_of(self, item: object) -> str:
        if isinstance(item, _BYTES_LIKE):
            return "bytes"
        is_joined = isinstance(item, str) and self._asked is not None and names_text(self._asked)
        return "text" if is_joined else "json"

    def _form_of_nothing(self) -> str:
        if self._asked is None or names_json(self._asked):
            return "json"
        return "text" if names_text(self._asked) else "bytes"

    def _array_item(self, item: object) -> bytes:
        if self.count % BLOCK_ROWS == 0:
            self.row_starts.append(self.size_bytes + 1)
        return (b"," if self.count else b"[") + dumps(item)

    def _joined_item(self, item: object) -> bytes:
        if self.form == "text" and isinstance(item, str):
            return item.encode("utf-8", "surrogatepass")
        if self.form == "bytes" and isinstance(item, _BYTES_LIKE):
            return bytes(item)
        raise UnencodableValueError(
            f"item {self.count:,} of a stream of {self.form} is of type {type(item).__name__}"
        )


class StreamEncoding:
    """Learns of a payload while it passes: its index, digest, head and tail. Holds no more of it.

    Args:
        form: What `decode` makes of the payload: ``text``, ``bytes`` or ``json``.
        content_type: A MIME type.
        is_claimed: Whether the content type is the caller's word, to be checked on the head.
        items: What made the payload, for an array of items.
    """

    def __init__(
        self, form: str, content_type: str, *, is_claimed: bool = False, items: Items | None = None
    ) -> None:
        self.form = form
        self.content_type = content_type
        self.extension = extension_of(content_type)
        self.size_bytes = 0
        self._items = items if form == "json" else None
        self._is_claimed = is_claimed
        self._digest = xxh3_128()
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        # What was text before it became bytes needs no check of its encoding.
        self._utf8 = None if form != "bytes" else codecs.getincrementaldecoder("utf-8")()
        is_text = form != "bytes" or names_text(content_type)
        self._blocks = _Blocks() if is_text else None
        self._scanner = row_scanner(content_type) if is_text and self._items is None else None
        self._rows_seen: BlockSample | None = None
        if self._scanner is not None:
            self._rows_seen = BlockSample(self._scanner)
            self._scanner.watch = self._rows_seen.add
        self._index: Index | None = None

    def add(self, piece: bytes) -> None:
        """Look at the next piece of the payload.

        Raises:
            InvalidArgumentError: The payload does not begin as its claimed content type does.
        """
        self._digest.update(piece)
        self.size_bytes += len(piece)
        missing = _KEPT_HEAD_BYTES - len(self._head)
        if missing > 0:
            self._head += piece[:missing]
        self._tail.append(piece)
        self._tail_bytes += len(piece)
        while self._tail_bytes - len(self._tail[0]) >= _KEPT_TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())
        if self._is_claimed and self.size_bytes >= HEAD_BYTES:
            self._check(is_whole=False)
        if self._blocks is not None:
            if self._is_text_still(piece):
                self._blocks.add(piece)
                if self._scanner is not None:
                    self._scanner.feed(piece)
            else:
                self._blocks = None

    def end(self) -> None:
        """Take note that all of the payload has passed. Raises as `add`."""
        if self._is_claimed:
            self._check(is_whole=True)
        if self._blocks is not None and not self._is_text_still(b"", final=True):
            self._blocks = None
        if self._blocks is None:
            self._index = binary_index(self.size_bytes)
        else:
            self._index = self._blocks.index(self._rows())

    def passing(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield `pieces` as they are, each looked at before, and the end too."""
        for piece in pieces:
            self.add(piece)
            yield piece
        self.end()

    @property
    def is_complete(self) -> bool:
        """Whether all of the payload has passed."""
        return self._index is not None

    @property
    def index(self) -> Index:
        """Counts and blocks of the payload.

        Raises:
            RuntimeError: The stream has not ended yet.
        """
        if self._index is None:
            raise RuntimeError("the stream has not ended yet")
        return self._index

    @property
    def digest(self) -> str:
        """``xxh3:`` and 32 hex digits over what has passed."""
        return f"xxh3:{self._digest.hexdigest()}"

    @property
    def size_hint(self) -> int:
        """Bytes that have passed."""
        return self.size_bytes

    def head(self, chars: int) -> str | None:
        """Return the first `chars` code points of the payload's text, None where it is no text."""
        if self._blocks is None:
            return None
        head = bytes(self._head[: 4 * chars])
        return head[: skip_chars(head, chars)].decode("utf-8", "surrogatepass")

    @property
    def value(self) -> object:
        """What a glimpse is made of; see `sample`."""
        return self.sample()[0]

    def sample(self) -> tuple[object, int | None]:
        """Return what a glimpse is made of: all of a short payload, else a sample of it.

        Of an array and of a table rows that are spread over all of it, of text its head and its
        tail in one, of anything else its head. Of text also how many characters are its head,
        where all are more.
        """
        if self._items is not None:
            if self.holds_all and self._items.count <= _MOST_EXACT_ITEMS:
                return loads(bytes(self._head)), None
            return self._items.sample(), None
        if self._blocks is None:
            return bytes(self._head), None
        if not self.holds_all:
            rows = self._sampled_rows()
            if rows:
                return rows, None
        head, tail = self._edges()
        length = count_chars(head)
        # Decoded at once, as a single character may make each of them four bytes in memory.
        head += tail
        return _decoded(head), length

    def _sampled_rows(self) -> object:
        """Return rows of a JSON array as values, those of other tables as text; None of no table.

        None too where single rows are longer than a sample may be.
        """
        rows = None if self._index is None else self._index.rows
        if rows is None or self._rows_seen is None:
            return None
        blocks = self._rows_seen.blocks()
        if not any(blocks):
            return None
        if rows.format != JsonRows.format:
            return _decoded(b"".join([self._rows_seen.before, *blocks]))
        # Behind each row stands what parts it from the next, or ends them all.
        parts = [b"[%b]" % block.strip()[:-1] for block in blocks if block]
        return [row for part in parts for row in cast("list[object]", loads(part))]

    @property
    def holds_all(self) -> bool:
        """Whether all of the payload has passed, and is short enough to be held."""
        return self.is_complete and len(self._head) == self.size_bytes

    def whole(self) -> bytes | None:
        """Return the payload where it is held, else None."""
        return bytes(self._head) if self.holds_all else None

    def edges(self) -> tuple[str, str]:
        """Return the first 4 MiB and the last 1 MiB of text: its first part and its last.

        Joined they are all of a text that is not longer. Of a longer one, both are cut to whole
        lines where a line ends nearby.
        """
        head, tail = self._edges()
        return _decoded(head), _decoded(tail)

    def _edges(self) -> tuple[bytes, bytes]:
        tail_bytes = min(_KEPT_TAIL_BYTES, self.size_bytes - len(self._head))
        tail = b"".join(self._tail)
        head, tail = bytes(self._head), tail[len(tail) - tail_bytes :]
        if len(head) + len(tail) < self.size_bytes:
            line_end = head.rfind(b"\n", len(head) - _LONGEST_CUT_BYTES) + 1
            head = head[: line_end or len(head) - _cut_bytes(head)]
            line_start = tail.find(b"\n", 0, _LONGEST_CUT_BYTES) + 1
            tail = tail[line_start or skip_chars(tail, 0) :]
        elif tail:
            # Where they meet, a character may have been cut.
            head, tail = _joined_at_character(head, tail)
        return head, tail

    def _rows(self) -> Rows | None:
        if self._items is not None:
            items = self._items
            return Rows(format=JsonRows.format, count=items.count, starts=items.row_starts)
        return None if self._scanner is None else self._scanner.rows()

    def _check(self, *, is_whole: bool) -> None:
        self._is_claimed = False
        check_content_type(
            self.content_type,
            bytes(self._head),
            is_text=self.form != "bytes",
            is_whole=is_whole and len(self._head) == self.size_bytes,
        )

    def _is_text_still(self, piece: bytes, *, final: bool = False) -> bool:
        if self._utf8 is None:
            return True
        try:
            if not piece.isascii() or self._utf8.getstate()[0] or final:
                self._utf8.decode(piece, final)
        except UnicodeDecodeError:
            return False
        return True


_LEAST_CUT_BYTES = 2 * 4 * BLOCK_CHARS
"""Pieces are put together to this before blocks are cut: a block is at most half of it."""


class _Blocks:
    """Cuts text into blocks of 65,536 characters, to count them."""

    def __init__(self) -> None:
        self._builder = IndexBuilder()
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._waiting_bytes += len(piece)
        if self._waiting_bytes >= _LEAST_CUT_BYTES:
            self._cut()

    def _cut(self) -> None:
        text = memoryview(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))
        start = 0
        # A block ends where the next character starts; until that is seen, it may go on.
        while (stop := skip_chars(text, BLOCK_CHARS, start)) < len(text):
            self._builder.add(text[start:stop], BLOCK_CHARS)
            start = stop
        self._pieces = [bytes(text[start:])]
        self._waiting_bytes = len(text) - start

    def index(self, rows: Rows | None) -> Index:
        self._cut()
        rest = self._pieces[0]
        if rest:
            self._builder.add(rest, count_chars(rest))
        return self._builder.index(rows)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def _cut_bytes(text: bytes) -> int:
    """Return how many bytes at the end of `text` may belong to a character that is cut there."""
    for back in range(1, min(4, len(text)) + 1):
        if text[-back] & 0b1100_0000 != 0b1000_0000:
            return back if text[-back] >= 0b1100_0000 else 0
    return 0


def _joined_at_character(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    start = skip_chars(tail, 0)
    return head + tail[:start], tail[start:]
