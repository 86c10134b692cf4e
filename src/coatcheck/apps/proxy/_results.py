"""Results of upstream tools as a model should see them: their blocks, and what repeats them."""

from collections.abc import Sequence
from typing import Any, cast

from ...content import encoded_size
from ...errors import UnencodableValueError
from ._blocks import STRUCTURED, Blocks, Rule, is_envelope, written
from ._twins import Block, Twin, joined, only_value, text_of, twin_of, unwrapped

META_ARTIFACTS = "coatcheck/artifacts"
"""Key in the `_meta` of a result, under which it says where pointers stand, and to what."""


async def shown_result(result: dict[str, Any], rule: Rule) -> tuple[dict[str, Any], list[object]]:
    """Return a result as a model should see it, and what was measured of it, for the journal.

    It is the same object where nothing in it is offloaded. Else blocks keep their order, and those
    that are small, or no text, stay what they are. What a structured content repeats of a block
    that was offloaded goes with it.
    """
    given: object = result.get("content")
    content = cast("list[object]", given) if isinstance(given, list) else []
    if not all(isinstance(block, dict) for block in content):
        return result, []
    blocks = cast("list[dict[str, object]]", content)
    showing = Blocks(rule, is_error=result.get("isError") is True)
    structured: object = result.get(STRUCTURED)
    twin = None if structured is None else _twin(blocks, structured, rule.limit_bytes)
    items = twin if twin is not None and twin.value is not None else None
    if twin is None and rule.limit_bytes:
        items = joined(blocks, rule.limit_bytes)
    await showing.add(blocks, items)
    keeps_structured = structured is not None and not await _goes(
        structured, twin, blocks, showing, rule.limit_bytes
    )
    if not showing.has_changed:
        return result, showing.measured
    shown = {**result, "content": [*showing.shown, *showing.links]}
    if structured is not None and not keeps_structured:
        del shown[STRUCTURED]
    if showing.artifacts:
        shown["_meta"] = _with_artifacts(result.get("_meta"), showing.artifacts)
    return shown, showing.measured


def without_forged(result: dict[str, Any]) -> dict[str, Any]:
    """Return a server's result without what it says under our key and does not show.

    What a proxy further in says of its envelopes stays, and only that: each entry has to name a
    block of this result, and the pointer of the envelope in it. The same object comes back where
    nothing goes.
    """
    meta: object = result.get("_meta")
    if not isinstance(meta, dict) or META_ARTIFACTS not in meta:
        return result
    rest = {**cast("dict[str, object]", meta)}
    told, content = rest.pop(META_ARTIFACTS), result.get("content")
    entries = cast("list[object]", told) if isinstance(told, list) else []
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    kept = [each for each in entries if _is_shown(each, blocks)]
    if kept and len(kept) == len(entries):
        return result
    if kept:
        rest[META_ARTIFACTS] = kept
    return {**result, "_meta": rest}


def _is_shown(entry: object, blocks: Sequence[object]) -> bool:
    facts = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    at, pointer = facts.get("block"), facts.get("pointer")
    if not isinstance(at, int) or not 0 <= at < len(blocks) or not isinstance(pointer, str):
        return False
    if facts.get("uri") != f"art://{pointer.removeprefix('art:')}":
        return False
    block = blocks[at]
    text = text_of(cast("Block", block)) if isinstance(block, dict) else None
    return text is not None and is_envelope(text) and text.startswith(f'{{"pointer":"{pointer}",')


def _twin(blocks: Sequence[dict[str, object]], structured: object, limit_bytes: int) -> Twin | None:
    """Return what repeats the structured content, looked for only where something is large."""
    texts = [text for block in blocks if (text := text_of(block)) is not None]
    is_large = any(_reaches(text, limit_bytes) for text in texts)
    if not is_large and not _reaches(structured, limit_bytes):
        return None
    return twin_of(blocks, structured)


async def _goes(
    structured: object,
    twin: Twin | None,
    blocks: Sequence[dict[str, object]],
    showing: Blocks,
    limit_bytes: int,
) -> bool:
    """Return whether the structured content goes: with its twin, or into an artifact."""
    if twin is None:
        if not _reaches(structured, limit_bytes):
            return False
        return await showing.add_structured(unwrapped(structured))
    if any(blocks[at] is not showing.by_block.get(at) for at in twin.blocks):
        return True
    if not _reaches(only_value(structured), limit_bytes):
        return False
    # Nothing is lost: blocks that stay say all of it.
    showing.has_changed = True
    return True


def _reaches(value: object, limit_bytes: int) -> bool:
    # A character takes a byte or more: the quick answer for what is large.
    if isinstance(value, str) and len(value) >= limit_bytes:
        return True
    try:
        return encoded_size(value) >= limit_bytes
    except UnencodableValueError:
        return len(written(value)) >= limit_bytes


def _with_artifacts(meta: object, artifacts: Sequence[Block]) -> dict[str, object]:
    """Return the `_meta` of a result with our artifacts behind those of a proxy further in."""
    kept = cast("dict[str, object]", meta) if isinstance(meta, dict) else {}
    inner = kept.get(META_ARTIFACTS)
    before = cast("list[object]", inner) if isinstance(inner, list) else []
    return {**kept, META_ARTIFACTS: [*before, *artifacts]}
