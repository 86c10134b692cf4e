"""A value on its way to a store: how large it is, and its bytes, digest and index in one pass."""

from collections.abc import Iterator, Sequence
from typing import cast

from xxhash import xxh3_128

from ._arrays import ARRAY_ROWS, NpyPayload
from ._content_type import (
    HEAD_BYTES,
    check_content_type,
    extension_of,
    is_utf8,
    names_json,
    names_text,
)
from ._frame_rows import frame_head
from ._frames import FRAME_ROWS
from ._index import (
    BLOCK_CHARS,
    BLOCK_ROWS,
    Index,
    IndexBuilder,
    Rows,
    binary_index,
    skip_chars,
    split_blocks,
)
from ._json import dumps, has_surrogates, is_json, loads
from ._json_values import is_reshaped
from ._rows import JsonRows, RowScanner, dump_rows
from ._table import row_scanner, sniffed_type
from ._tabular import is_tabular, is_tabular_form, load_tabular, tabular, tabular_size, text_bound

_PIECE_BYTES = 512 * 1024
"""A chunk of a binary payload: still in the processor's cache when the store takes it."""

_PARSED_CHARS = {"{}": 64 * 1024 * 1024, "[]": 1024 * 1024}
"""Longest object and array in text that is parsed only to learn whether it is JSON. What a longer
array is, tells the search for its rows; a longer object is text."""

_JSON_SPACE = " \t\n\r"
_EDGE_CHARS = 1_024
"""White space around JSON text that is looked through for its first and last character."""

# All three are taken alike; to a type checker they are bytes.
_BYTES_LIKE = cast("tuple[type[bytes], ...]", (bytes, bytearray, memoryview))

_JSON_TYPES = frozenset({dict, list, tuple, int, float, bool, type(None)})
"""Types of most values, which are neither arrays nor frames."""

_TOO_EARLY = "the payload was not encoded yet: no pass over chunks() was completed"


class Encoding:
    """A value on its way to a store: what it is, and its bytes chunk by chunk.

    Args:
        value: The str, the bytes, the JSON value, the array or the frame.
        form: What `decode` makes of the payload: ``text``, ``bytes``, ``json``, ``npy``, or
            ``arrow-`` and the library of a frame.
        content_type: A MIME type.
        payload: What is stored: text or an array, encoded on the way, or ready bytes.
        rows: Where they are known already; found on the way in JSON, NDJSON, CSV and TSV.
        is_guess: The content type is what text looks like. It becomes ``text/plain`` where a
            completed pass shows that it is no table.
    """

    __slots__ = (
        "_array",
        "_digest",
        "_index",
        "_is_guess",
        "_is_text",
        "_payload",
        "_rows",
        "content_type",
        "extension",
        "form",
        "value",
    )

    def __init__(
        self,
        value: object,
        *,
        form: str,
        content_type: str,
        payload: str | bytes | NpyPayload,
        rows: Rows | None = None,
        is_guess: bool = False,
    ) -> None:
        self.value = value
        self.form = form
        self.content_type = content_type
        self.extension = extension_of(content_type)
        self._array = payload if isinstance(payload, NpyPayload) else None
        self._payload = b"" if isinstance(payload, NpyPayload) else payload
        self._rows = rows
        self._is_guess = is_guess
        self._is_text = (
            isinstance(self._payload, str)
            or form == "json"
            or (names_text(content_type) and is_utf8(self._payload))
        )
        self._index: Index | None = None
        self._digest: str | None = None

    @property
    def index(self) -> Index:
        """Counts and blocks of the payload.

        Raises:
            RuntimeError: No pass over `chunks` was completed yet.
        """
        if self._index is None:
            raise RuntimeError(_TOO_EARLY)
        return self._index

    @property
    def digest(self) -> str:
        """``xxh3:`` and 32 hex digits over the payload.

        Raises:
            RuntimeError: No pass over `chunks` was completed yet.
        """
        if self._digest is None:
            raise RuntimeError(_TOO_EARLY)
        return self._digest

    @property
    def size_hint(self) -> int:
        """The payload's bytes, or for text not yet encoded its characters."""
        return len(self._payload if self._array is None else self._array)

    @property
    def is_shared(self) -> bool:
        """Whether the value is a view of the payload: then a store in memory keeps no second."""
        return self._array is None and self.form == ARRAY_ROWS

    @property
    def is_whole(self) -> bool:
        """Whether the payload lies in memory as it will be stored: then `whole` copies nothing."""
        return self._array is None and not isinstance(self._payload, str)

    def check(self) -> None:
        """Pass where the payload may be what its content type says.

        Raises:
            InvalidArgumentError: It cannot be; see `check_content_type`.
        """
        head = self._payload if self._array is None else next(self._array.pieces())
        if isinstance(head, str):
            if not names_json(self.content_type):
                head = head[:HEAD_BYTES]
            head = head.encode("utf-8", "surrogatepass")
        # What we encoded as JSON needs no parsing to know that it is.
        is_whole = self.form != "json"
        check_content_type(self.content_type, head, is_text=self._is_text, is_whole=is_whole)

    def chunks(self) -> Iterator[bytes | memoryview]:
        """Yield the payload piece by piece. A completed pass sets `index` and `digest`."""
        digest = xxh3_128()
        if self._is_text:
            builder, scanner = IndexBuilder(), self._scanner()
            for block, chars in self._blocks():
                digest.update(block)
                builder.add(block, chars)
                if scanner is not None:
                    scanner.feed(block)
                yield block
            if scanner is not None:
                self._found(scanner.rows())
            self._index = builder.index(self._rows)
        else:
            for piece in self._pieces():
                digest.update(piece)
                yield piece
            self._index = binary_index(self.size_hint, self._rows)
        self._digest = f"xxh3:{digest.hexdigest()}"

    def whole(self) -> bytes:
        """Return the payload in one piece; completes a pass, as `chunks` does."""
        if isinstance(self._payload, str) or self._array is not None:
            return b"".join(self.chunks())
        for _ in self.chunks():
            pass
        return self._payload

    def head(self, chars: int) -> str | None:
        """Return the first `chars` code points of the payload's text, None where it is no text."""
        if isinstance(self._payload, str):
            return self._payload[:chars]
        if self.form.startswith(FRAME_ROWS):
            return frame_head(self.value, chars)
        if not self._is_text:
            return None
        head = self._payload[: 4 * chars]
        return head[: skip_chars(head, chars)].decode("utf-8", "surrogatepass")

    def _scanner(self) -> RowScanner | None:
        """Return what finds the rows, None where they are known or there are none."""
        if self._rows is not None:
            return None
        if self.form == "json":
            return JsonRows() if self._payload[:1] == b"[" else None
        return row_scanner(self.content_type, is_guess=self._is_guess)

    def _found(self, rows: Rows | None) -> None:
        self._rows = rows
        if rows is None and self._is_guess:
            self.content_type = "text/plain"
            self.extension = extension_of(self.content_type)

    def _pieces(self) -> Iterator[bytes | memoryview]:
        if self._array is not None:
            yield from self._array.pieces()
            return
        payload = memoryview(cast("bytes", self._payload))  # text has blocks
        for start in range(0, len(payload), _PIECE_BYTES):
            yield payload[start : start + _PIECE_BYTES]

    def _blocks(self) -> Iterator[tuple[bytes | memoryview, int]]:
        if isinstance(self._payload, bytes):
            yield from split_blocks(self._payload)
            return
        for start in range(0, len(self._payload), BLOCK_CHARS):
            block = self._payload[start : start + BLOCK_CHARS]
            yield block.encode("utf-8", "surrogatepass"), len(block)


def encoded_size(value: object) -> int:
    """Return the bytes of our compact UTF-8 encoding of `value`, as `sizeBytes` shows it.

    Text counts as its UTF-8 bytes, bytes as they are, arrays as their `.npy` file, frames as
    their Arrow IPC file, all else as its JSON.

    Raises:
        UnencodableValueError: `value` has no lossless encoding.

    >>> encoded_size("né"), encoded_size(b"ab"), encoded_size({"a": [1, 2]})
    (3, 2, 11)
    """
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, _BYTES_LIKE):
        return memoryview(value).nbytes
    if type(value) not in _JSON_TYPES and is_tabular(value):
        return tabular_size(value)
    return len(dumps(value))


def weigh(value: object, limit_bytes: int, *, owned: bool = False) -> Encoding | None:
    r"""Return None for what can be shown as it is, else the value ready to be stored.

    That is a value smaller than `limit_bytes` which encodes strictly: of a lone surrogate no
    request could be made. An array or frame counts by a bound of what it is as JSON.

    Raises:
        UnencodableValueError: `value` has no lossless encoding.

    >>> weigh("x" * 9, 10) is None, weigh("x" * 10, 10) is None, weigh("\ud83d", 10) is None
    (True, False, False)
    """
    if isinstance(value, str):
        return None if _is_small_text(value, limit_bytes) else encode(value)
    if isinstance(value, _BYTES_LIKE):
        return None if encoded_size(value) < limit_bytes else encode(value)
    if type(value) not in _JSON_TYPES and is_tabular(value):
        return None if text_bound(value, limit_bytes) < limit_bytes else encode(value, owned=owned)
    payload, rows = _dump(value)
    if len(payload) < limit_bytes and (payload.isascii() or not has_surrogates(payload)):
        return None
    return _json(value, "application/json", payload, rows)


def _is_small_text(text: str, limit_bytes: int) -> bool:
    # A character takes a byte or more: the quick answer for most.
    if len(text) >= limit_bytes:
        return False
    try:
        return text.isascii() or len(text.encode()) < limit_bytes
    except UnicodeEncodeError:
        return False


def encode(value: object, content_type: str | None = None, *, owned: bool = False) -> Encoding:
    """Return `value` ready to be stored. Text and bytes are stored as they are.

    Args:
        value: Text, bytes, or plain JSON values.
        content_type: Where None: of bytes ``application/octet-stream``, of JSON values and of
            text that is a JSON array, or an object of up to 64 MiB, ``application/json``, of text
            that is NDJSON, CSV or TSV throughout the type of that, of other text ``text/plain``, of
            arrays ``application/x-npy``, of frames ``application/vnd.apache.arrow.file``.
        owned: An array is ours now and never changes: no copy is made of it.

    Raises:
        UnencodableValueError: `value` has no lossless encoding.
    """
    if isinstance(value, str):
        value = str.__str__(value)  # of a subclass, as of a str Enum, the text
        if content_type is not None:
            return Encoding(value, form="text", content_type=content_type, payload=value)
        ends = _ends(value)
        if ends in {"{}", "[]"} and len(value) <= _PARSED_CHARS[ends] and is_json(value):
            content_type = "application/json"
            return Encoding(value, form="text", content_type=content_type, payload=value)
        is_long_array = ends == "[]" and len(value) > _PARSED_CHARS[ends]
        content_type = "application/json" if is_long_array else sniffed_type(value)
        return Encoding(
            value,
            form="text",
            content_type=content_type or "text/plain",
            payload=value,
            is_guess=content_type is not None,
        )
    if isinstance(value, _BYTES_LIKE):
        payload = bytes(value)
        content_type = content_type or "application/octet-stream"
        return Encoding(payload, form="bytes", content_type=content_type, payload=payload)
    if type(value) not in _JSON_TYPES and is_tabular(value):
        found = tabular(value, owned=owned)
        return Encoding(
            found.value,
            form=found.form,
            content_type=content_type or found.content_type,
            payload=found.payload,
            rows=found.rows,
        )
    content_type = content_type or "application/json"
    payload, rows = _dump(value)
    return _json(value, content_type, payload, rows)


def digest_of(payload: bytes) -> str:
    """Return ``xxh3:`` and 32 hex digits over `payload`.

    Source: the XXH3 128-bit algorithm of xxHash 0.8. It finds damage, not forgery.
    """
    return f"xxh3:{xxh3_128(payload).hexdigest()}"


def decode(payload: bytes, form: str) -> object:
    """Return the value whose `Encoding` had this `form`.

    Raises:
        ValueError: The payload is damaged.
        InvalidArgumentError: The library that it takes is not installed.
    """
    if form == "text":
        return payload.decode("utf-8", "surrogatepass")
    if is_tabular_form(form):
        return load_tabular(payload, form)
    return loads(payload) if form == "json" else payload


def _json(value: object, content_type: str, payload: bytes, rows: Rows | None) -> Encoding:
    # Of objects that only JSON lays open, a glimpse is made as they are read.
    if is_reshaped(value):
        value = loads(payload)
    return Encoding(value, form="json", content_type=content_type, payload=payload, rows=rows)


def _dump(value: object) -> tuple[bytes, Rows | None]:
    # Lists of fewer rows come by far more often, and their rows may never be asked for.
    if type(value) is list or type(value) is tuple:
        rows = cast("Sequence[object]", value)
        return dump_rows(rows) if len(rows) > BLOCK_ROWS else (dumps(rows), None)
    return dumps(value), None


def _ends(text: str) -> str:
    """Return the first and last character of a text but for white space."""
    # Slices, as strip() would copy the text whole.
    return text[:_EDGE_CHARS].lstrip(_JSON_SPACE)[:1] + text[-_EDGE_CHARS:].rstrip(_JSON_SPACE)[-1:]
