"""What `memory_read` replies: entries in the order they were asked for, within one budget."""

from typing import cast

from ..content import dumps, visible
from ..errors import BinaryPayloadError, InvalidArgumentError, PointerError
from ..memory import SHARED, AgentMemory, MemoryEntry
from ._tool import Arguments

_REPLY_CHARS = 50_000
_FRAME_CHARS = 40
_MOST_KEYS = 100
_KEYS_CHARS = 12_000
_POINTER_ENTRY_CHARS = 200
"""Longest entry that is shown as its pointer alone, without its keys."""
_LEAST_WINDOW_CHARS = 1_000


async def read_entries(memory: AgentMemory, arguments: Arguments) -> str:
    """Answer a call of `memory_read`, with 50,000 characters at most.

    Raises:
        InvalidArgumentError: It asks for so many keys that their pointers alone would not fit.
    """
    keys = cast("list[str]", arguments["keys"])
    if len(keys) > _MOST_KEYS or len(json_text(keys)) > _KEYS_CHARS:
        raise InvalidArgumentError(
            f"one call reads at most {_MOST_KEYS} keys, of {_KEYS_CHARS:,} characters together",
            "Ask for fewer keys in one call.",
        )
    found = {key: await _entry(memory, key) for key in keys}
    missing = json_text([key for key in keys if found[key] is None])
    entries = {key: entry for key, entry in found.items() if entry is not None}
    # Whatever stands first, each that follows has room for its pointer.
    least_chars = {key: _least_chars(key, entry) for key, entry in entries.items()}
    left_chars = _REPLY_CHARS - _FRAME_CHARS - len(missing) - sum(least_chars.values())
    parts: list[str] = []
    for key, entry in entries.items():
        room_chars = left_chars + least_chars[key]
        name = json_text(key)
        part = f"{name}:{await _shown(memory, entry, room_chars - len(name) - 2)}"
        parts.append(part)
        left_chars = room_chars - len(part) - 1
    return f'{{"entries":{{{",".join(parts)}}},"missing":{missing}}}'


async def _entry(memory: AgentMemory, key: str) -> MemoryEntry | None:
    """Return the entry under a key; a name alone is taken for one that was shared."""
    entry = await memory.get(key)
    if entry is None and ":" not in key:
        entry = await memory.get(SHARED + key)
    return entry


async def _shown(memory: AgentMemory, entry: MemoryEntry, room_chars: int) -> str:
    """Return an entry as JSON: whole where it fits, else with the first window of its value."""
    wire = entry.to_wire()
    wire.pop("planHash", None)  # no business of a model's
    if entry.pointer is None:
        whole = json_text(wire)
        if len(whole) <= room_chars:
            return whole
    pointer = await memory.pointer_of(entry)
    window: str | None = None
    try:
        page = await memory.bank.read(pointer)
        window = str(page.content)
        if entry.pointer is not None and not page.has_more:
            whole = json_text({**wire, "value": await memory.value_of(entry)})
            if len(whole) <= room_chars:
                return whole
    except BinaryPayloadError:
        pass  # Whoever takes its type gets the pointer.
    except PointerError as gone:
        return json_text({**_bare(entry, pointer), "error": gone.code})
    return _in_part({**wire, "pointer": pointer}, window, room_chars) or json_text(
        {**_bare(entry, pointer), "hasMore": True, "nextOffset": 0}
    )


def _in_part(wire: dict[str, object], window: str | None, room_chars: int) -> str | None:
    """Return an entry with the head of its value, None where too little of that would fit.

    Args:
        wire: What is known of it, with a value that is replaced.
        window: The first page of its text; of what is no text, None.
        room_chars: Most that the entry may take.
    """
    wire["value"] = ""
    most = {**wire, "hasMore": True, "nextOffset": len(window or "")}
    left_chars = room_chars - len(json_text(most))
    if window is None:
        del most["value"]
        return json_text({**most, "nextOffset": 0}) if left_chars >= 0 else None
    head = _clipped(window, left_chars)
    if len(head) < min(len(window), _LEAST_WINDOW_CHARS):
        return None
    return json_text({**most, "value": head, "nextOffset": len(head)})


def _bare(entry: MemoryEntry, pointer: str) -> dict[str, object]:
    return {"key": entry.key, "kind": entry.kind, "pointer": pointer}


def _least_chars(key: str, entry: MemoryEntry) -> int:
    return _POINTER_ENTRY_CHARS + len(json_text(key)) + len(json_text(entry.key))


def _clipped(text: str, room_chars: int) -> str:
    """Return the longest head of `text` that takes `room_chars` as JSON, without its quotes."""
    text = text[: max(room_chars, 0)]
    fits, over = 0, len(text) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        if len(json_text(text[:middle])) - 2 <= room_chars:
            fits = middle
        else:
            over = middle
    return text[:fits]


def json_text(value: object) -> str:
    """Return a value as JSON that encodes strictly."""
    return visible(dumps(value).decode("utf-8", "surrogatepass"))
