"""Results of MCP tools as a model should see them, for adapters that meet MCP's own blocks."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, cast

from ..content import dumps, encoded_size, loads
from ..errors import UnencodableValueError
from ..mirror import Mirror
from ..records import Envelope

Block = Mapping[str, Any]

_MEMBERS = frozenset({"content", "structuredContent", "isError", "_meta", "meta"})
_KINDS = ("text", "image", "audio", "resource", "resource_link")
_SEVERAL = object()
_MOST_TEXTS = 100
"""Texts of one result that count each for itself. More are rows of one list."""


class Shown(NamedTuple):
    """A result as a model should see it."""

    content: list[object]
    """Blocks as they were given, and in place of others an `Envelope` or a text."""
    structured: object
    """The structured content as it was given, None where the blocks say it."""


def as_block(part: object) -> dict[str, Any]:
    """Return a part of a content as the block that it is, or is the text of."""
    is_text = isinstance(part, str | Envelope)
    return {"type": "text", "text": str(part)} if is_text else cast("dict[str, Any]", part)


def unwritten(text: str) -> object:
    """Return the value that a framework wrote down: one in Python's form of JSON, to the byte."""
    try:
        value: object = json.loads(text) if text.startswith(("[", "{")) else text
        return value if json.dumps(value, ensure_ascii=False) == text else text
    except (ValueError, RecursionError):
        return text


def is_only_text(value: object, text: str, limit_bytes: int) -> bool:
    """Return whether a large text is all that can be kept of a value: it has no encoding."""
    if encoded_size(text) < limit_bytes:
        return False
    try:
        dumps(value)
    except UnencodableValueError:
        return True
    return False


def is_mcp_result(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a result of ``tools/call``, as its JSON, and nothing else."""
    if not isinstance(value, dict):
        return False
    named = cast("dict[str, object]", value)
    content = named.get("content")
    if not isinstance(content, list) or not named.keys() <= _MEMBERS:
        return False
    return all(
        isinstance(block, dict) and cast("Block", block).get("type") in _KINDS
        for block in cast("list[object]", content)
    )


async def shown_content(
    mirror: Mirror,
    tool: str,
    result: Mapping[str, Any],
    *,
    call_id: str | None = None,
    ttl_seconds: float | None = None,
    keyed: bool = True,
    given: Iterable[object] = (),
) -> Shown | None:
    """Return what to show of a result, None where that is the result itself.

    What is one value, as a text or a structured content that the texts repeat, becomes one. Else
    each text stands for itself, and so does a structured content that nothing repeats. Images and
    other blocks are left alone.

    Args:
        mirror: Of the session.
        tool: The name of the tool.
        result: Of ``tools/call``, as its JSON.
        call_id: Of the call, where the framework has one: it names an artifact of one value.
        ttl_seconds: How long other artifacts live; None until they are deleted.
        keyed: Whether to those the same value has the same pointer.
        given: The arguments of the call, of which the journal keeps the pointers.
    """
    content: Sequence[Block] = result["content"]
    structured: object = result.get("structuredContent")
    is_error = result.get("isError") is True
    texts = [text for block in content if (text := _text(block)) is not None]
    repeated = structured is not None and _repeat(texts, structured)
    only = _SEVERAL
    if len(texts) == len(content):
        only = _unwrapped(structured) if repeated else _only(texts, structured)
    if only is not _SEVERAL and call_id is not None:
        shown = await mirror.offload(only, tool, call_id, is_error=is_error, given=given)
        return None if shown is only else Shown([shown], None)
    own = [] if structured is None or repeated else [_unwrapped(structured)]
    values = [*texts, *own] if only is _SEVERAL else [only]
    parts = [
        await mirror.offload_part(
            value, tool, ttl_seconds=ttl_seconds, keyed=keyed, is_error=is_error
        )
        for value in values
    ]
    mirror.note(tool, parts, given=given, is_error=is_error)
    if all(part is value for part, value in zip(parts, values, strict=True)):
        return None
    if only is not _SEVERAL:
        return Shown(parts, None)
    blocks = _with_texts(content, parts)
    if own and parts[-1] is own[0]:
        return Shown(blocks, structured)
    return Shown([*blocks, *parts[len(texts) :]], None)


def _text(block: Block) -> str | None:
    """Return the text of a block, None where it is of another kind."""
    kind = block.get("type")
    holder = block.get("resource") if kind == "resource" else block if kind == "text" else None
    text = cast("Block", holder).get("text") if isinstance(holder, Mapping) else None
    return text if isinstance(text, str) else None


def _with_texts(content: Sequence[Block], parts: Iterable[object]) -> list[object]:
    """Return the blocks, with what is shown of its text in place of each that has another now."""
    shown = iter(parts)
    blocks: list[object] = []
    for block in content:
        text = _text(block)
        part = None if text is None else next(shown)
        blocks.append(block if part is text else part)
    return blocks


def _only(texts: Sequence[str], structured: object) -> object:
    """Return the one value that texts are, `_SEVERAL` where they are several."""
    if structured is not None or not texts:
        return _SEVERAL
    if len(texts) > _MOST_TEXTS:
        return [_read(text) for text in texts]
    return texts[0] if len(texts) == 1 else _SEVERAL


def _unwrapped(structured: object) -> object:
    """Return what stands under ``result`` alone: what is no object is wrapped so on the wire."""
    if not isinstance(structured, dict):
        return structured
    named = cast("dict[str, object]", structured)
    return named["result"] if named.keys() == {"result"} else named


def _repeat(texts: Sequence[str], structured: object) -> bool:
    """Return whether texts say what the structured content says: one all of it, or each an item."""
    said = [_read(text) for text in texts]
    try:
        return not texts or any(
            each in (texts, said)
            for value in (structured, _unwrapped(structured))
            for each in (value, [value])
        )
    except RecursionError:  # nested deeper than Python compares
        return False


def _read(text: str) -> object:
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return text
