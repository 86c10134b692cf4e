"""Artifacts as MCP resources, as they go over the wire."""

from base64 import b64encode

from ...bank import Bank
from ...records import Page
from ...tools import RESOURCE_DESCRIPTION, RESOURCE_TEMPLATE, read_artifact_resource

TEMPLATE: dict[str, object] = {
    "uriTemplate": RESOURCE_TEMPLATE,
    "name": "artifact",
    "title": "Banked result",
    "description": RESOURCE_DESCRIPTION,
}
META_WINDOW = "coatcheck/window"
"""Key in the `_meta` of the contents that were read, under which a window says where it lies."""


async def read_artifact(bank: Bank, uri: str) -> dict[str, object] | None:
    """Return the answer to ``resources/read`` of an artifact, None of any other address.

    Raises:
        CoatcheckError: As `read_artifact_resource`.
    """
    read = await read_artifact_resource(bank, uri)
    if read is None:
        return None
    contents: dict[str, object] = {"uri": uri, "mimeType": read.content_type}
    if read.page is not None:
        contents["_meta"] = {META_WINDOW: _where(read.page)}
    if isinstance(read.content, bytes):
        contents["blob"] = b64encode(read.content).decode()
    else:
        contents["text"] = read.content
    return {"contents": [contents]}


def _where(page: Page) -> dict[str, object]:
    facts: dict[str, object] = {
        "unit": page.unit,
        "offset": page.offset,
        "limit": page.limit,
        "totalSize": page.total,
        "hasMore": page.has_more,
    }
    if page.next_offset is not None:
        facts["nextOffset"] = page.next_offset
    return facts
