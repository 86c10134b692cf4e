"""Artifacts as MCP resources: ``art://{id}``, whole or in windows."""

from base64 import b64encode
from urllib.parse import parse_qsl, urlsplit

from ...bank import Bank
from ...content import visible
from ...errors import InvalidArgumentError, UnknownPointerError, shown
from ...records import Artifact, is_id

SCHEME = "art"
TEMPLATE: dict[str, object] = {
    "uriTemplate": "art://{id}{?offset,limit}",
    "name": "artifact",
    "title": "Banked result",
    "description": "What a pointer stands for: offset and limit count characters, of binary bytes.",
}
META_WINDOW = "coatcheck/window"
"""Key in the `_meta` of the contents that were read, under which a window says where it lies."""

_WHOLE_BYTES = 32 * 1024 * 1024


async def read_artifact(bank: Bank, uri: str) -> dict[str, object] | None:
    """Return the answer to ``resources/read`` of an artifact, None of any other address.

    Raises:
        UnknownPointerError, ExpiredPointerError: There is none.
        InvalidArgumentError: It is over 32 MiB and asked for whole, or the window is none.
        StoreError: The store failed.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != SCHEME:
        return None
    id_ = parts.netloc
    if not is_id(id_) or parts.path not in {"", "/"} or parts.fragment:
        raise UnknownPointerError(uri)
    window = _window(parts.query)
    artifact = await bank.find(id_)
    if artifact is None:
        await bank.payload(id_)  # which raises, and tells unknown from expired
        raise UnknownPointerError(uri)
    contents = await (_part(bank, artifact, window) if window else _whole(bank, artifact))
    return {"contents": [{"uri": uri, **contents}]}


def _window(query: str) -> dict[str, int]:
    """Return the offset and limit that an address asks for."""
    window: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in {"offset", "limit"} or not (value.isascii() and value.isdigit()):
            raise InvalidArgumentError(
                f"{shown(f'{name}={value}')} is no part of a window.",
                "Ask for art://ID?offset=0&limit=50000: whole numbers from 0 and 1 on.",
            )
        window[name] = int(value[:20])
    return window


async def _whole(bank: Bank, artifact: Artifact) -> dict[str, object]:
    if artifact.size_bytes > _WHOLE_BYTES:
        raise InvalidArgumentError(
            f"The artifact has {artifact.size_bytes:,} bytes; up to {_WHOLE_BYTES:,} are sent"
            " whole.",
            f"Read it in windows: art://{artifact.id}?offset=0&limit=200000.",
        )
    payload = await bank.payload(artifact.pointer)
    if artifact.length_chars is None:
        return {"mimeType": artifact.content_type, "blob": b64encode(payload).decode()}
    text = visible(payload.decode("utf-8", "surrogatepass"))
    return {"mimeType": artifact.content_type, "text": text}


async def _part(bank: Bank, artifact: Artifact, window: dict[str, int]) -> dict[str, object]:
    unit = "bytes" if artifact.length_chars is None else "chars"
    page = await bank.read(
        artifact.pointer, window.get("offset", 0), window.get("limit"), unit=unit
    )
    facts: dict[str, object] = {
        "unit": unit,
        "offset": page.offset,
        "limit": page.limit,
        "totalSize": page.total,
        "hasMore": page.has_more,
    }
    if page.next_offset is not None:
        facts["nextOffset"] = page.next_offset
    contents: dict[str, object] = {"mimeType": artifact.content_type, "_meta": {META_WINDOW: facts}}
    if isinstance(page.content, bytes):
        return {**contents, "blob": b64encode(page.content).decode()}
    return {**contents, "text": visible(page.content)}
