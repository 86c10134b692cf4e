"""The glimpse of bytes: what they are, told by their first ones, and how many."""

import re

from ._preview import quoted
from ._tokens import first_within

_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,80}(?:; ?[\w-]{1,20}=[\w.-]{1,40})?", re.ASCII)
_HEADER_BYTES = 65_536
"""How far the header of an image is read: a JPEG has its size behind its metadata."""

_MAGIC = (
    ("PNG image", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("JPEG image", re.compile(rb"\xff\xd8\xff")),
    ("GIF image", re.compile(rb"GIF8[79]a")),
    ("WebP image", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    ("PDF document", re.compile(rb"%PDF-")),
    ("ZIP archive", re.compile(rb"PK(?:\x03\x04|\x05\x06)")),
    ("gzip data", re.compile(rb"\x1f\x8b\x08")),
)
_PNG_SIZE = re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR(.{4})(.{4})", re.DOTALL)
_GIF_SIZE = re.compile(rb"GIF8[79]a(..)(..)", re.DOTALL)
_WEBP_SIZE = re.compile(
    rb"RIFF.{4}WEBP(?:VP8 .{7}\x9d\x01\x2a(..)(..)|VP8X.{8}(...)(...)|VP8L.{4}\x2f(.{4}))",
    re.DOTALL,
)
_JPEG_SEGMENT = re.compile(rb"\xff+([\x01-\xfe])(..)", re.DOTALL)
_JPEG_FRAME = re.compile(rb"\xff+[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]...(..)(..)", re.DOTALL)


def glimpse_blob(
    payload: bytes, content_type: str, size_bytes: int, budget_tokens: int
) -> tuple[str, dict[str, object]] | None:
    """Return what `payload` is and its size, for images with width and height in pixels.

    Source: PNG (ISO/IEC 15948, 11.2.2); GIF89a, 18; ITU-T T.81, B.2.2; RFC 9649, 2.5 to 2.7.
    """
    header = payload[:_HEADER_BYTES]
    kind = next((name for name, magic in _MAGIC if magic.match(header)), None)
    facts: dict[str, object] = {"format": "blob", "sizeBytes": size_bytes}
    size = f"{size_bytes:,} byte{'s' if size_bytes != 1 else ''}"
    texts = [size]
    if kind is None:
        # The name of a type comes from the tool: quoted where it is not one.
        name = content_type if _TYPE.fullmatch(content_type) else quoted(content_type, 40)
        texts.insert(0, f"{name}, {size}")
    else:
        facts["type"] = kind
        texts.insert(0, f"{kind}, {size}")
        pixels = _pixels(header)
        if pixels is not None:
            facts["width"], facts["height"] = pixels
            texts.insert(0, f"{kind}, {pixels[0]:,} x {pixels[1]:,} pixels, {size}")
    shown = first_within(texts, budget_tokens)
    return None if shown is None else (shown, facts)


def _pixels(header: bytes) -> tuple[int, int] | None:
    """Return the width and height that the header of an image tells."""
    if match := _PNG_SIZE.match(header):
        return int.from_bytes(match[1], "big"), int.from_bytes(match[2], "big")
    if match := _GIF_SIZE.match(header):
        return int.from_bytes(match[1], "little"), int.from_bytes(match[2], "little")
    if match := _WEBP_SIZE.match(header):
        if match[1]:  # fourteen bits; the upper two ask for scaling
            lossy = (int.from_bytes(side, "little") & 0x3FFF for side in match.group(1, 2))
            return next(lossy), next(lossy)
        if match[5]:  # twice fourteen bits, each one less than the side
            sides = int.from_bytes(match[5], "little")
            return (sides & 0x3FFF) + 1, (sides >> 14 & 0x3FFF) + 1
        return int.from_bytes(match[3], "little") + 1, int.from_bytes(match[4], "little") + 1
    return _jpeg_pixels(header)


def _jpeg_pixels(header: bytes) -> tuple[int, int] | None:
    if not header.startswith(b"\xff\xd8"):
        return None
    position = 2
    while True:
        if match := _JPEG_FRAME.match(header, position):
            return int.from_bytes(match[2], "big"), int.from_bytes(match[1], "big")
        segment = _JPEG_SEGMENT.match(header, position)
        if segment is None:
            return None
        position = segment.start(2) + max(2, int.from_bytes(segment[2], "big"))
