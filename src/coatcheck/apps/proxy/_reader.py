"""`retrieve_context`, as an MCP tool of the proxy's own."""

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import cast

from ...bank import Bank
from ...errors import CoatcheckError, InvalidArgumentError
from ...memory import AgentMemory
from ...records import OWN_TOOLS
from ...stores import MemoryStore
from ...tools import (
    Tool,
    artifact_tools,
    as_failure,
    check_unnamed,
    is_failure,
    memory_tools,
    poll_tools,
    retrieval_tools,
    without_neighbours,
)

READER = "retrieve_context"

_MOST_RESULT_CHARS = 500_000
"""What a host should let through whole: the longest page there is, written as JSON."""
_ASKING = ("query", "search")


def definition(tool: Tool) -> dict[str, object]:
    """Return the tool as ``tools/list`` has it: the same bytes for ever."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.parameters),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"anthropic/maxResultSizeChars": _MOST_RESULT_CHARS},
    }


def is_ours(tool: Mapping[str, object]) -> bool:
    """Return whether a tool of an upstream is one of Coatcheck's, as of a proxy further in.

    Told by its name and parameters: others call their tools `memory_read` too.
    """
    name, schema = str(tool.get("name")), tool.get("inputSchema")
    if name not in OWN_TOOLS or not isinstance(schema, Mapping):
        return False
    listed = cast("Mapping[str, object]", schema).get("properties")
    if not isinstance(listed, Mapping):
        return False
    properties = cast("Mapping[str, object]", listed)
    if name == READER:  # of another version it may take more, or less
        return "artifactId" in properties
    # Where there are none, the description has to tell.
    known = _definitions()[name]
    alike = frozenset(properties) == frozenset(known.parameters["properties"])
    return alike and (bool(properties) or tool.get("description") == known.description)


@cache
def _definitions() -> Mapping[str, Tool]:
    """Return our tools by name."""
    bank = Bank(MemoryStore())
    tools = [
        *retrieval_tools(bank),
        *artifact_tools(bank),
        *poll_tools(bank),
        *memory_tools(AgentMemory(bank)),
    ]
    return {tool.name: tool for tool in tools}


def failed(error: CoatcheckError | OSError) -> dict[str, object]:
    """Return a failure as the result of a tool, which a model reads; no protocol error is."""
    return _result(str(as_failure(error)), is_error=True)


async def answer(
    bank: Bank, tool: Tool, params: Mapping[str, object], *, shows_images: bool, is_anonymous: bool
) -> dict[str, object]:
    """Return what the tool replies to a call, failures included.

    Args:
        bank: What it reads.
        tool: The tool, on that bank.
        params: Of the call: its arguments, if any.
        shows_images: Whether an image is answered with an image block.
        is_anonymous: Whether nothing tells the caller from others: then there are no names, and
            no failure tells of another pointer.
    """
    given = params.get("arguments")
    arguments: object = {} if given is None else given
    try:
        if not isinstance(arguments, Mapping):
            raise InvalidArgumentError(
                "the arguments are not a JSON object", "Pass the arguments by name, as one object."
            )
        asked = cast("Mapping[str, object]", arguments)
        if is_anonymous:
            check_unnamed(asked)
        image = await _image(bank, asked) if shows_images else None
    except (CoatcheckError, OSError) as error:
        return failed(error)
    if image is not None:
        return image
    reply = await tool.call(asked)
    if not is_failure(reply):
        return _result(reply, is_error=False)
    return _result(without_neighbours(reply, asked) if is_anonymous else reply, is_error=True)


async def _image(bank: Bank, asked: Mapping[str, object]) -> dict[str, object] | None:
    """Return an image as a block, None where something else is asked for."""
    text = asked.get("artifactId")
    if not isinstance(text, str) or any(asked.get(name) is not None for name in _ASKING):
        return None
    artifact = await bank.find(text)
    if artifact is None or not artifact.content_type.startswith("image/"):
        return None
    if artifact.length_chars is not None:  # an SVG is text
        return None
    coded = b64encode(await bank.payload(artifact.pointer)).decode()
    block = {"type": "image", "data": coded, "mimeType": artifact.content_type}
    return {"content": [block], "isError": False}


def _result(text: str, *, is_error: bool) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
