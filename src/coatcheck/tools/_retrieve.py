"""`retrieve_context`: reads and searches what was banked."""

from ..bank import Bank
from ..content import dumps, visible
from ..errors import BinaryPayloadError
from ..records import Matches, Page
from ._tool import Arguments, Tool, tool

_DESCRIPTION = (
    "Read a banked result (offset and limit count characters from 0), or search it for "
    "literal text, any case (lines count from 1; read on at a match's offset)."
)


def retrieval_tools(bank: Bank) -> list[Tool]:
    """Return the tool that reads what is behind a pointer, for any framework."""

    async def retrieve_context(arguments: Arguments) -> str:
        pointer, offset = arguments["artifactId"], arguments.get("offset", 0)
        if "search" in arguments:
            limit = arguments.get("limit", 50)
            return _matches_reply(await bank.search(pointer, arguments["search"], offset, limit))
        limit = arguments.get("limit")
        try:
            page = await bank.read(pointer, offset, limit)
        except BinaryPayloadError:
            # Arrays and frames have rows. Of what has none the same error comes once more.
            page = await bank.read(pointer, offset, limit, unit="rows")
        return page_reply(page)

    return [
        tool(
            "retrieve_context",
            _DESCRIPTION,
            {"artifactId": "string", "offset": "integer", "limit": "integer", "search": "string"},
            ("artifactId",),
            retrieve_context,
        )
    ]


def page_reply(page: Page) -> str:
    """Return a page of text as a model reads it."""
    reply: dict[str, object] = {
        "content": visible(str(page.content)),
        "totalSize": page.total,
        "hasMore": page.has_more,
        "offset": page.offset,
        "limit": page.limit,
    }
    if page.unit == "rows":
        reply["unit"] = page.unit
    if page.next_offset is not None:
        reply["nextOffset"] = page.next_offset
    return dumps(reply).decode()


def _matches_reply(found: Matches) -> str:
    reply: dict[str, object] = {
        "matchCount": found.match_count,
        "totalMatches": found.total_matches,
        "truncated": found.truncated,
    }
    if found.next_search_offset is not None:
        reply["nextSearchOffset"] = found.next_search_offset
    reply["matches"] = [
        {
            "offset": match.offset,
            "line": match.line_number,
            "snippetOffset": match.snippet_offset,
            "snippet": visible(match.snippet),
        }
        for match in found.matches
    ]
    return dumps(reply).decode()
