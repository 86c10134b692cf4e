"""What `put` takes in: the bytes of a file or of standard input, and what they are."""

import mimetypes
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ...content import Encoding, encode
from ...errors import InvalidArgumentError, shown

STDIN = "-"

_TYPES = {
    ".csv": "text/csv",
    ".jsonl": "application/x-ndjson",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".ndjson": "application/x-ndjson",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

_OF_PROGRAMS = ("application/x-", "audio/", "video/")
"""Types that names of text files have too: shell and TeX are `x-`, TypeScript is a video."""


class WatchedEncoding(Encoding):
    """Bytes on their way to a store, which tell how many of them it has taken.

    Args:
        payload: The bytes.
        content_type: A MIME type.
        tell: Is told the size of each piece.
    """

    __slots__ = ("_tell",)

    def __init__(self, payload: bytes, content_type: str, tell: Callable[[int], object]) -> None:
        super().__init__(payload, form="bytes", content_type=content_type, payload=payload)
        self._tell = tell

    def chunks(self) -> Iterator[bytes | memoryview]:
        for chunk in super().chunks():
            yield chunk
            self._tell(len(chunk))


def read_input(file: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Raises:
        InvalidArgumentError: They cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidArgumentError(
            f"{shown(file)} cannot be read: {reason}.",
            "Give a file that you may read, or - for standard input.",
        ) from error


def is_text(payload: bytes) -> bool:
    """Return whether a payload looks like text: valid UTF-8 without a NUL."""
    if b"\0" in payload:
        return False
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def type_of(payload: bytes, file: str) -> str:
    r"""Return the content type of a file, by its name, and where that says little by its bytes.

    >>> type_of(b"{}", "rows.ndjson"), type_of(b"{}", "-"), type_of(b"a\0", "x.unknown")
    ('application/x-ndjson', 'application/json', 'application/octet-stream')
    """
    path = Path(file)
    if path.suffix.lower() in _TYPES:
        return _TYPES[path.suffix.lower()]
    # Its own table, so that the same file has the same type on every machine.
    named, packed = mimetypes.MimeTypes().guess_type(path.name)
    if packed:
        return "application/gzip" if packed == "gzip" else f"application/x-{packed}"
    if named is None or named.startswith(_OF_PROGRAMS):
        if is_text(payload):
            return encode(payload.decode()).content_type
        return named or "application/octet-stream"
    return named
