"""A value on its way to a store: how large it is, and its bytes, digest and index in one pass."""

import codecs
import re
from collections.abc import Iterator
from typing import cast

from xxhash import xxh3_128

from ._index import BLOCK_CHARS, Index, IndexBuilder, binary_index, skip_chars, split_blocks
from ._json import dumps, has_surrogates, is_json, loads

_PIECE_BYTES = 1024 * 1024
"""A chunk of a binary payload: still in the processor's cache when the store takes it."""

_LONGEST_PARSED_CHARS = 16 * 1024 * 1024
"""Longest text that is parsed only to learn whether it is JSON."""

_JSON_SPACE = " \t\n\r"
_EDGE_CHARS = 1_024
"""White space around JSON text that is looked through for its first and last character."""

# All three are taken alike; to a type checker they are bytes.
_BYTES_LIKE = cast("tuple[type[bytes], ...]", (bytes, bytearray, memoryview))

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)

_TOO_EARLY = "the payload was not encoded yet: no pass over chunks() was completed"

_EXTENSIONS = {
    "application/gzip": "gz",
    "application/json": "json",
    "application/pdf": "pdf",
    "application/x-ndjson": "ndjson",
    "application/xml": "xml",
    "application/yaml": "yaml",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/xml": "xml",
    "video/mp4": "mp4",
}

_TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/jsonl",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)


class Encoding:
    """A value on its way to a store: what it is, and its bytes chunk by chunk.

    Args:
        value: The str, the bytes, or the JSON value.
        form: What `decode` makes of the payload: ``text``, ``bytes`` or ``json``.
        content_type: A MIME type.
        payload: What is stored: text, which is encoded on the way, or ready bytes.
    """

    __slots__ = (
        "_digest",
        "_index",
        "_is_text",
        "_payload",
        "content_type",
        "extension",
        "form",
        "value",
    )

    def __init__(
        self, value: object, *, form: str, content_type: str, payload: str | bytes
    ) -> None:
        self.value = value
        self.form = form
        self.content_type = content_type
        self.extension = _extension(content_type)
        self._payload = payload
        self._is_text = (
            isinstance(payload, str)
            or form == "json"
            or (_names_text(content_type) and _is_utf8(payload))
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
        return len(self._payload)

    def chunks(self) -> Iterator[bytes | memoryview]:
        """Yield the payload piece by piece. A completed pass sets `index` and `digest`."""
        digest = xxh3_128()
        if self._is_text:
            builder = IndexBuilder()
            for block, chars in self._blocks():
                digest.update(block)
                builder.add(block, chars)
                yield block
            self._index = builder.index()
        else:
            for piece in self._pieces():
                digest.update(piece)
                yield piece
            self._index = binary_index(len(self._payload))
        self._digest = f"xxh3:{digest.hexdigest()}"

    def whole(self) -> bytes:
        """Return the payload in one piece; completes a pass, as `chunks` does."""
        if isinstance(self._payload, str):
            return b"".join(self.chunks())
        for _ in self.chunks():
            pass
        return self._payload

    def head(self, chars: int) -> str | None:
        """Return the first `chars` code points of the payload's text, None where it is no text."""
        if isinstance(self._payload, str):
            return self._payload[:chars]
        if not self._is_text:
            return None
        head = self._payload[: 4 * chars]
        return head[: skip_chars(head, chars)].decode("utf-8", "surrogatepass")

    def _pieces(self) -> Iterator[memoryview]:
        payload = memoryview(cast("bytes", self._payload))  # text has blocks
        for start in range(0, len(payload), _PIECE_BYTES):
            yield payload[start : start + _PIECE_BYTES]

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        if isinstance(self._payload, bytes):
            yield from split_blocks(self._payload)
            return
        for start in range(0, len(self._payload), BLOCK_CHARS):
            block = self._payload[start : start + BLOCK_CHARS]
            yield block.encode("utf-8", "surrogatepass"), len(block)


def encoded_size(value: object) -> int:
    """Return the bytes of our compact UTF-8 encoding of `value`, as `sizeBytes` shows it.

    Text counts as its UTF-8 bytes, bytes as they are, all else as its JSON.

    Raises:
        UnencodableValueError: `value` has no lossless encoding.

    >>> encoded_size("né"), encoded_size(b"ab"), encoded_size({"a": [1, 2]})
    (3, 2, 11)
    """
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, _BYTES_LIKE):
        return memoryview(value).nbytes
    return len(dumps(value))


def weigh(value: object, limit_bytes: int) -> Encoding | None:
    r"""Return None for what can be shown as it is, else the value ready to be stored.

    That is a value smaller than `limit_bytes` which encodes strictly: of a lone surrogate no
    request could be made.

    Raises:
        UnencodableValueError: `value` has no lossless encoding.

    >>> weigh("x" * 9, 10) is None, weigh("x" * 10, 10) is None, weigh("\ud83d", 10) is None
    (True, False, False)
    """
    if isinstance(value, str):
        return None if _is_small_text(value, limit_bytes) else encode(value)
    if isinstance(value, _BYTES_LIKE):
        return None if encoded_size(value) < limit_bytes else encode(value)
    payload = dumps(value)
    if len(payload) < limit_bytes and (payload.isascii() or not has_surrogates(payload)):
        return None
    return Encoding(value, form="json", content_type="application/json", payload=payload)


def _is_small_text(text: str, limit_bytes: int) -> bool:
    # A character takes a byte or more: the quick answer for most.
    if len(text) >= limit_bytes:
        return False
    try:
        return text.isascii() or len(text.encode()) < limit_bytes
    except UnicodeEncodeError:
        return False


def encode(value: object, content_type: str | None = None) -> Encoding:
    """Return `value` ready to be stored. Text and bytes are stored as they are.

    Args:
        value: Text, bytes, or plain JSON values.
        content_type: Where None: of bytes ``application/octet-stream``, of JSON values and of
            text up to 16 MiB that is a JSON object or array ``application/json``, of other text
            ``text/plain``.

    Raises:
        UnencodableValueError: `value` has no lossless encoding.
    """
    if isinstance(value, str):
        if content_type is None:
            content_type = "application/json" if _looks_like_json(value) else "text/plain"
        return Encoding(value, form="text", content_type=content_type, payload=value)
    if isinstance(value, _BYTES_LIKE):
        payload = bytes(value)
        content_type = content_type or "application/octet-stream"
        return Encoding(payload, form="bytes", content_type=content_type, payload=payload)
    content_type = content_type or "application/json"
    return Encoding(value, form="json", content_type=content_type, payload=dumps(value))


def digest_of(payload: bytes) -> str:
    """Return ``xxh3:`` and 32 hex digits over `payload`.

    Source: the XXH3 128-bit algorithm of xxHash 0.8. It finds damage, not forgery.
    """
    return f"xxh3:{xxh3_128(payload).hexdigest()}"


def decode(payload: bytes, form: str) -> object:
    """Return the value whose `Encoding` had this `form`.

    Raises:
        ValueError: The payload is damaged.
    """
    if form == "text":
        return payload.decode("utf-8", "surrogatepass")
    return loads(payload) if form == "json" else payload


def _looks_like_json(text: str) -> bool:
    if len(text) > _LONGEST_PARSED_CHARS:
        return False
    # Slices, as strip() would copy the text whole.
    ends = text[:_EDGE_CHARS].lstrip(_JSON_SPACE)[:1] + text[-_EDGE_CHARS:].rstrip(_JSON_SPACE)[-1:]
    return ends in {"{}", "[]"} and is_json(text)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _names_text(content_type: str) -> bool:
    charset = _CHARSET.search(content_type)
    if charset and charset[1].lower() not in {"utf-8", "utf8", "us-ascii"}:
        return False
    media_type = _media_type(content_type)
    return (
        media_type.startswith("text/")
        or media_type in _TEXT_TYPES
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def _is_utf8(payload: bytes) -> bool:
    """Return whether `payload` is strictly valid UTF-8, without decoding all of it at once."""
    if payload.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(payload)
    try:
        for start in range(0, len(view), _PIECE_BYTES):
            decoder.decode(view[start : start + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _extension(content_type: str) -> str:
    media_type = _media_type(content_type)
    if media_type in _EXTENSIONS:
        return _EXTENSIONS[media_type]
    for suffix in ("json", "xml", "yaml"):
        if media_type.endswith(f"+{suffix}"):
            return suffix
    return "txt" if _names_text(media_type) else "bin"
