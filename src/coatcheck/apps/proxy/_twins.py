"""Which content blocks say what `structuredContent` says, so that it is banked once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...content import loads

Block = Mapping[str, object]

_MOST_BLOCKS = 100
"""Texts of one result that count each for itself. More are rows of one list."""


@dataclass(frozen=True, slots=True)
class Twin:
    """What says the same as the structured content of a result.

    Args:
        blocks: Where the blocks stand. More than one are the items of one list; none where the
            structured content repeats the list of blocks itself.
        value: What the blocks say together, where they are items.
    """

    blocks: tuple[int, ...]
    value: object = None


def text_of(block: Block) -> str | None:
    """Return the text of a text block, None of any other."""
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def unwrapped(structured: object) -> object:
    """Return what stands under ``result`` alone: what is no object is wrapped so on the wire."""
    named = _named(structured)
    return named["result"] if named.keys() == {"result"} else structured


def only_value(structured: object) -> object:
    """Return what stands under the only key of an object; all else as it is."""
    named = _named(structured)
    return next(iter(named.values())) if len(named) == 1 else structured


def twin_of(content: Sequence[Block], structured: object) -> Twin | None:
    """Return what of `content` repeats the structured content, None where nothing does.

    That is a text that parses to it, or to the only value in it, or is that value; texts that
    are the items of a list in it, one each; or all blocks, which it repeats in a list.
    """
    readings = [structured]
    if (inner := only_value(structured)) is not structured:
        readings.append(inner)
    texts = [(at, text) for at, block in enumerate(content) if (text := text_of(block)) is not None]
    for value in readings:
        if _equal(value, list(content)):
            return Twin(())
        if _are_items(texts, value):
            return Twin(tuple(at for at, _ in texts), value)
    others = [value for value in readings if not isinstance(value, str)]
    for at, text in texts:
        if text in (value for value in readings if isinstance(value, str)):
            return Twin((at,))
        # Parsed once: it may be large.
        parsed = _json_of(text) if others and _may_be(text, others) else None
        if parsed is not None and any(_equal(value, parsed[0]) for value in others):
            return Twin((at,))
    return None


def joined(content: Sequence[Block], limit_bytes: int) -> Twin | None:
    """Return the texts of a result as one list, where they are many and reach the limit together.

    Servers send a list of rows as one block for each. JSON texts become one JSON text of them, in
    which each stands as it was sent; other texts a list of texts.
    """
    texts = [(at, text) for at, block in enumerate(content) if (text := text_of(block)) is not None]
    if len(texts) <= _MOST_BLOCKS or sum(len(text) for _, text in texts) < limit_bytes:
        return None
    rows = [text for _, text in texts]
    value = f"[{','.join(rows)}]" if all(_structure_of(row) is not None for row in rows) else rows
    return Twin(tuple(at for at, _ in texts), value)


def _named(value: object) -> dict[str, object]:
    """Return what is an object, empty where it is none."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _are_items(texts: Sequence[tuple[int, str]], value: object) -> bool:
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    if not texts or len(items) != len(texts):
        return False
    return all(_says(text, item) for (_, text), item in zip(texts, items, strict=True))


def _says(text: str, value: object) -> bool:
    if isinstance(value, str):
        return text == value
    parsed = _json_of(text)
    return parsed is not None and _equal(parsed[0], value)


def _equal(one: object, other: object) -> bool:
    try:
        return one == other
    except RecursionError:  # nested deeper than Python compares
        return False


def _may_be(text: str, values: Sequence[object]) -> bool:
    is_structure = text.lstrip()[:1] in {"{", "["}
    return any(isinstance(value, dict | list) is is_structure for value in values)


def _structure_of(text: str) -> tuple[object] | None:
    """Return what a text says that is a JSON object or array."""
    return _json_of(text) if text.lstrip()[:1] in {"{", "["} else None


def _json_of(text: str) -> tuple[object] | None:
    try:
        return (loads(text.encode("utf-8", "surrogatepass")),)
    except ValueError:
        return None
