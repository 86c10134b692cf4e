r"""What a content type says of bytes: whether they are text, and how they begin."""

import codecs
import re
from functools import cache

from ..errors import InvalidArgumentError, shown
from ._json import is_json

HEAD_BYTES = 65_536
"""How much of a payload is enough to check its type, where it is not all at hand."""

_LONGEST_PARSED_BYTES = 16 * 1024 * 1024
"""JSON over this size is checked by its first and last character only."""

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_DECODED_BYTES = 65_536
_JSON_SPACE = b" \t\n\r"

_EXTENSIONS = {
    "application/gzip": "gz",
    "application/json": "json",
    "application/pdf": "pdf",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.parquet": "parquet",
    "application/x-ndjson": "ndjson",
    "application/x-npy": "npy",
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
    "text/tab-separated-values": "tsv",
    "text/xml": "xml",
    "video/mp4": "mp4",
}

_PLAIN_TEXT = (
    "adoc bash bat c cfg conf cpp css diff env err go gradle h hpp ini java js jsx kt kts less "
    "lock log lua mjs out patch php pl properties proto ps1 py r rb rs rst scala scss sh sql "
    "swift tex text tf ts tsx vue"
)
"""Source code and settings."""

# What the table above does not say already.
_TYPES = {
    "feather": "application/vnd.apache.arrow.file",
    "geojson": "application/geo+json",
    "har": "application/json",
    "htm": "text/html",
    "ipynb": "application/json",
    "jpeg": "image/jpeg",
    "jsonl": "application/x-ndjson",
    "markdown": "text/markdown",
    "tab": "text/tab-separated-values",
    "toml": "application/toml",
    "xml": "application/xml",
    "yml": "application/yaml",
    **dict.fromkeys(_PLAIN_TEXT.split(), "text/plain"),
}

_TEXT_TYPES = frozenset(
    {
        "application/csv",
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/jsonl",
        "application/jsonlines",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/x-jsonl",
        "application/x-jsonlines",
        "application/x-ndjson",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)

_BEGINNINGS = {
    "application/gzip": rb"\x1f\x8b",
    "application/pdf": rb"%PDF-",
    "application/vnd.apache.arrow.file": rb"ARROW1",
    "application/vnd.apache.parquet": rb"PAR1",
    "application/x-npy": rb"\x93NUMPY",
    "application/zip": rb"PK(?:\x03\x04|\x05\x06)",
    "image/gif": rb"GIF8[79]a",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/webp": rb"RIFF.{4}WEBP",
}
"""Patterns, compiled by who needs one: that would take as long as some imports."""

_JSON_STARTS = re.compile(rb'[ \t\n\r]*(?:[\[{"\d-]|true|false|null)')


def media_type(content_type: str) -> str:
    """Return a content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def names_text(content_type: str) -> bool:
    """Return whether a content type is one of text, in an encoding that UTF-8 covers."""
    charset = _CHARSET.search(content_type)
    if charset and charset[1].lower() not in {"utf-8", "utf8", "us-ascii"}:
        return False
    kind = media_type(content_type)
    return (
        kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml", "+yaml"))
    )


def names_json(content_type: str) -> bool:
    """Return whether a content type is JSON, one document of it."""
    kind = media_type(content_type)
    return kind == "application/json" or kind.endswith("+json")


def extension_of(content_type: str) -> str:
    """Return the extension of files of a content type: 1 to 8 of a-z and 0-9."""
    kind = media_type(content_type)
    if kind in _EXTENSIONS:
        return _EXTENSIONS[kind]
    for suffix in ("json", "xml", "yaml"):
        if kind.endswith(f"+{suffix}"):
            return suffix
    return "txt" if names_text(kind) else "bin"


def type_of_name(name: str) -> str | None:
    """Return the content type that a file's name tells, None where it tells none.

    The same on every machine: no table of the system is read.

    >>> type_of_name("a/Orders.CSV"), type_of_name("core.1234")
    ('text/csv', None)
    """
    stem, dot, extension = name.rpartition("/")[2].rpartition(".")
    return _types().get(extension.lower()) if stem and dot else None


def type_of_head(head: bytes) -> str | None:
    """Return the content type of bytes that begin as an image, archive or table does."""
    kinds = (kind for kind, each in _BEGINNINGS.items() if re.match(each, head, re.DOTALL))
    return next(kinds, None)


def check_content_type(content_type: str, head: bytes, *, is_text: bool, is_whole: bool) -> None:
    """Pass where a payload may be what its caller says it is.

    Args:
        content_type: As the caller gave it.
        head: The payload, or at least the first 64 KiB of it.
        is_text: Whether it was given as text, which then needs no check of its encoding.
        is_whole: Whether `head` is all of it.

    Raises:
        InvalidArgumentError: Bytes of a text type that are not UTF-8, JSON that is none, or
            an image, archive or table that does not begin as one.
    """
    beginning = _BEGINNINGS.get(media_type(content_type))
    if beginning is not None and not re.match(beginning, head, re.DOTALL):
        raise _refused(content_type, "it does not begin as one")
    if not is_text and names_text(content_type) and not starts_as_utf8(head, is_whole=is_whole):
        raise _refused(content_type, "it is not UTF-8")
    if names_json(content_type) and not _may_be_json(head, is_whole=is_whole):
        raise _refused(content_type, "it is not JSON")


def starts_as_utf8(head: bytes, *, is_whole: bool) -> bool:
    """Return whether `head` is valid UTF-8; its last character may be cut unless it is whole."""
    if head.isascii():
        return True
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return not is_whole and error.reason == "unexpected end of data"
    return True


def _may_be_json(head: bytes, *, is_whole: bool) -> bool:
    if not _JSON_STARTS.match(head):
        return False
    if not is_whole:
        return True
    if len(head) > _LONGEST_PARSED_BYTES:
        return head[-HEAD_BYTES:].rstrip(_JSON_SPACE)[-1:] in (b"}", b"]", b'"')
    try:
        return is_json(head.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return False


def _refused(content_type: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the value is not {shown(content_type)}: {why}",
        "Leave the content type out, or give the one that the value has.",
    )


@cache
def _types() -> dict[str, str]:
    return {extension: kind for kind, extension in _EXTENSIONS.items()} | _TYPES


def is_utf8(payload: bytes) -> bool:
    """Return whether `payload` is strictly valid UTF-8, without decoding all of it at once."""
    if payload.isascii():
        return True
    # Piece by piece: what one gives is still in the processor's cache when the next overwrites it.
    view = memoryview(payload)
    start = 0
    try:
        while start < len(view):
            stop = start + _DECODED_BYTES
            _, read = codecs.utf_8_decode(view[start:stop], "strict", stop >= len(view))
            start += read
    except UnicodeDecodeError:
        return False
    return True
