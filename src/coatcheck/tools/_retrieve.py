"""`retrieve_context`: reads, searches and queries what was banked."""

from ..bank import Bank
from ..content import dumps, visible
from ..errors import BinaryPayloadError, InvalidArgumentError
from ..records import Answer, Envelope, Matches, Page
from ._noted import journaled
from ._tool import Arguments, Tool, tool

_DESCRIPTION = (
    "Read a banked result (characters from 0, arrays by rows), search it (lines count from 1) or "
    "query it (SQL on table data, JSONPath, JMESPath; saveAs banks the answer)."
)


def retrieval_tools(bank: Bank) -> list[Tool]:
    """Return the tool that reads what is behind a pointer, for any framework."""

    async def retrieve_context(arguments: Arguments) -> str:
        _check_mode(arguments)
        pointer, offset = arguments["artifactId"], arguments.get("offset", 0)
        if "query" in arguments:
            return _answer_reply(
                await bank.query(pointer, arguments["query"], save_as=arguments.get("saveAs"))
            )
        if "search" in arguments:
            limit, regex = arguments.get("limit", 50), arguments.get("regex", False)
            found = await bank.search(pointer, arguments["search"], offset, limit, regex=regex)
            return _matches_reply(found)
        limit = arguments.get("limit")
        try:
            page = await bank.read(pointer, offset, limit)
        except BinaryPayloadError:
            # Arrays and frames have rows. Of what has none the same error comes once more.
            page = await bank.read(pointer, offset, limit, unit="rows")
        return page_reply(page)

    tools = [
        tool(
            "retrieve_context",
            _DESCRIPTION,
            {
                "artifactId": "string",
                "offset": "integer",
                "limit": "integer",
                "search": "string",
                "query": "string",
                "regex": "boolean",
                "saveAs": "string",
            },
            ("artifactId",),
            retrieve_context,
        )
    ]
    return journaled(bank, tools)


def _check_mode(arguments: Arguments) -> None:
    """Refuse arguments that contradict each other. What is false or 0 says nothing.

    Raises:
        InvalidArgumentError: The message names the rule.
    """
    if "query" in arguments:
        if "search" in arguments:
            raise InvalidArgumentError(
                "search and query exclude each other.", "Give one of them in a call."
            )
        if arguments.get("offset") or "limit" in arguments:
            raise InvalidArgumentError(
                "offset and limit do not go with query.",
                "Say it in the query: LIMIT and OFFSET in SQL, or $[100:200].",
            )
    elif "saveAs" in arguments:
        raise InvalidArgumentError(
            "saveAs goes with query: it names the answer.", "Give a query too, or leave saveAs out."
        )
    if arguments.get("regex") and "search" not in arguments:
        raise InvalidArgumentError(
            "regex goes with search: it says that the text is a pattern.",
            "Give the pattern as search, or leave regex out.",
        )


def _answer_reply(answer: Answer) -> str:
    if answer.artifact is not None:
        return str(Envelope.of(answer.artifact))
    reply = {"language": answer.language, "rowCount": answer.row_count, "value": answer.value}
    if answer.hint is not None:
        reply["hint"] = answer.hint
    return visible(dumps(reply).decode("utf-8", "surrogatepass"))


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
    if found.total_matches is None:
        reply["countedMatches"] = found.counted_matches
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
