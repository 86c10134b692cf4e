"""How a large result is shown: as an envelope that is smaller, or, not kept, in part."""

from dataclasses import replace

from ..content import (
    Encoding,
    StreamEncoding,
    decode,
    dumps,
    encode,
    encoded_size,
    has_surrogates,
    head_chars,
    is_tabular,
    loads,
    shown_preview,
    text_bound,
    visible,
)
from ..errors import UnencodableValueError
from ..records import Envelope
from ._written import written

WHOLE_CHARS = 200_000
"""Longest text that is shown whole where it could not be kept."""

_EDGE_CHARS = 25_000
_REPR_EDGE_CHARS = 400
_ENDLESS_CHARS = 20_000
_WRITTEN_CHARS = 16_000_000
"""Longest text that is written of a value without an encoding."""

_FLOOR = Envelope(
    pointer="art:00000000-0000-4000-8000-000000000000",
    preview="",
    size_bytes=1_000,
    note='retrieve_context({"artifactId":"art:00000000-0000-4000-8000-000000000000"})',
    content_type="text/plain",
)


def must_be_kept(value: object, encoding: Encoding, limit_bytes: int) -> bool:
    """Return whether a weighed value reaches the limit, and an envelope could be smaller."""
    if not limit_bytes:
        return True
    least_bytes = max(limit_bytes, _size(_FLOOR) + 1)
    # A character takes a byte or more: the quick answer for most.
    return encoding.size_hint >= least_bytes or shown_size(value, least_bytes) >= least_bytes


def shown_size(value: object, limit_bytes: int) -> int:
    """Return the UTF-8 bytes a value takes where it is shown: of a table a bound, maybe cut.

    Raises:
        UnencodableValueError: It has no encoding.
    """
    if isinstance(value, Envelope):
        return _size(value)
    return text_bound(value, limit_bytes) if is_tabular(value) else encoded_size(value)


def fitted(
    envelope: Envelope, encoding: Encoding | StreamEncoding, length_chars: int | None
) -> Envelope:
    """Return an envelope smaller than what it replaces: without glimpse, then with less preview."""
    size_bytes = envelope.size_bytes
    if _size(envelope) < size_bytes:
        return envelope
    envelope = replace(envelope, glimpse=None)
    chars = len(envelope.preview)
    while _size(envelope) >= size_bytes and chars and length_chars is not None:
        chars //= 2
        head = encoding.head(head_chars(chars)) or ""
        envelope = replace(envelope, preview=shown_preview(head, length_chars, chars))
    return envelope


def readable(value: object) -> object:
    """Return a result with each lone surrogate shown as U+FFFD, as no request could carry it."""
    if isinstance(value, str):
        return visible(value)
    if is_binary(value) or is_tabular(value):
        return value
    try:
        payload = dumps(value)
    except UnencodableValueError:
        return value
    if not has_surrogates(payload):
        return value
    return loads(visible(payload.decode("utf-8", "surrogatepass")).encode())


def unkept(value: object) -> object:
    """Return a result that could not be kept, whole up to 200,000 characters, else in part."""
    if is_binary(value) or is_tabular(value):
        if shown_size(value, WHOLE_CHARS + 1) <= WHOLE_CHARS:
            return value
        size_bytes = encoded_size(value)
        return f"[{size_bytes:,} bytes of binary output, not shown; they were not kept]"
    try:
        text = value if isinstance(value, str) else dumps(value).decode("utf-8", "surrogatepass")
    except UnencodableValueError:
        text, _ = written(value, _WRITTEN_CHARS)
    return in_part(text, _EDGE_CHARS, "The output") if len(text) > WHOLE_CHARS else value


def unkept_stream(encoding: StreamEncoding) -> object:
    """Return what was read of a stream that could not be kept: as `unkept`, but less is held."""
    size_bytes = encoding.size_bytes
    payload = encoding.whole()
    if payload is not None:
        return readable(unkept(decode(payload, encoding.form)))
    head, tail = encoding.edges()
    if encoding.head(0) is None:
        return f"[{size_bytes:,} bytes of binary output, not shown; they were not kept]"
    head, tail = head[:_EDGE_CHARS], tail[-_EDGE_CHARS:]
    shown_bytes = sum(len(part.encode("utf-8", "surrogatepass")) for part in (head, tail))
    left_out = f"{size_bytes - shown_bytes:,} of {size_bytes:,} bytes"
    notice = f"[The output was not kept. {left_out} that were read are left out here.]"
    return visible(f"{head}\n{notice}\n{tail}")


def unencodable(value: object, error: UnencodableValueError) -> object:
    """Return what to show of a result that has no encoding.

    Itself; above 200,000 characters, what Python writes of it, to be kept as text; in part
    what has no end.
    """
    text, is_whole = written(value, _ENDLESS_CHARS if error.endless else _WRITTEN_CHARS)
    what = f"The output has no encoding ({error.reason}) and"
    if not is_whole:
        what = f"The head of the output, which has no encoding ({error.reason}),"
    elif not error.endless:
        return value if len(text) <= WHOLE_CHARS else encode(text, "text/plain")
    return in_part(text, _REPR_EDGE_CHARS, what)


def in_part(text: str, edge_chars: int, what: str) -> str:
    """Return head and tail of `text`, with a notice that counts what was left out."""
    left_out = max(len(text) - 2 * edge_chars, 0)
    if not left_out:
        return visible(f"[{what} was not kept.]\n{text}")
    notice = f"[{what} was not kept. {left_out:,} of {len(text):,} characters are left out here.]"
    return visible(f"{text[:edge_chars]}\n{notice}\n{text[-edge_chars:]}")


def is_smaller(envelope: Envelope) -> bool:
    """Return whether the envelope is smaller than what it replaces."""
    return _size(envelope) < envelope.size_bytes


def _size(envelope: Envelope) -> int:
    return len(str(envelope).encode())


def is_binary(value: object) -> bool:
    """Return whether a value is stored as the bytes it is."""
    return isinstance(value, bytes | bytearray | memoryview)
