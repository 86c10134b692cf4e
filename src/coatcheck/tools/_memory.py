"""`memory_list`, `memory_read`, `memory_write`: what a model sees of agent memory."""

from datetime import datetime
from functools import partial
from typing import cast

from ..errors import InvalidArgumentError, shown
from ..memory import KINDS, SHARED, AgentMemory, Filters, MemoryEntry
from ._memory_read import json_text, read_entries
from ._noted import journaled
from ._tool import Arguments, Tool, tool

_LISTED = 200
_LISTED_CHARS = 50_000
_FRAME_CHARS = 100
_TOLD_CHARS = 240
_LONGEST_TOLD = 1_000
"""Characters of a title or description that a model may give."""


def memory_tools(memory: AgentMemory, *, reader: str | None = "retrieve_context") -> list[Tool]:
    """Return the three tools by which a model finds, reads and shares entries.

    Args:
        memory: What they read and write.
        reader: The tool that reads on behind a pointer, None where the model has none.
    """
    on = f"; {reader} reads on there from nextOffset" if reader is not None else ""
    tools = [
        tool(
            "memory_list",
            "List what is in the memory that all agents of this run share: results of steps and "
            "tasks, inputs, shared facts. Keys, titles and sizes only; memory_read gives values.",
            {
                "kind": {"type": "array", "items": {"type": "string", "enum": list(KINDS)}},
                "key_prefix": "string",
                "sources": {"type": "array", "items": {"type": "string"}},
            },
            (),
            partial(_list, memory),
            is_closed=True,
        ),
        tool(
            "memory_read",
            "Read the values under keys of memory. A long one comes in part, with hasMore and "
            f"the pointer to all of it{on}.",
            {"keys": {"type": "array", "items": {"type": "string"}}},
            ("keys",),
            partial(read_entries, memory),
            is_closed=True,
        ),
        tool(
            "memory_write",
            "Share a value with other agents and steps: they find it under shared:KEY. To write "
            "a key again replaces its value.",
            {
                "key": {"type": "string", "minLength": 1},
                "value": {},
                "title": "string",
                "description": "string",
            },
            ("key", "value"),
            partial(_write, memory),
            is_closed=True,
            # What it writes, the calls after it in the same turn may read.
            parallel=False,
        ),
    ]
    return journaled(memory.bank, tools)


async def _list(memory: AgentMemory, arguments: Arguments) -> str:
    unknown = [kind for kind in arguments.get("kind", ()) if kind not in KINDS]
    if unknown:
        raise InvalidArgumentError(
            f"there is no kind {shown(unknown[0])}", f"The kinds are: {', '.join(KINDS)}."
        )
    entries = await memory.list(**cast("Filters", arguments))
    # From the newest on: what does not fit is old.
    listed: list[str] = []
    left_chars = _LISTED_CHARS - _FRAME_CHARS
    for entry in reversed(entries[-_LISTED:]):
        told = json_text(_told(entry))
        left_chars -= len(told) + 1
        if left_chars < 0:
            break
        listed.append(told)
    head = {"total": len(entries), "returned": len(listed), "truncated": len(listed) < len(entries)}
    return f'{json_text(head)[:-1]},"entries":[{",".join(reversed(listed))}]}}'


async def _write(memory: AgentMemory, arguments: Arguments) -> str:
    # Models write the namespace that they read.
    name = arguments["key"].removeprefix(SHARED)
    if not name:
        raise InvalidArgumentError("key is empty", "Give a name for the value.")
    told = {each: arguments.get(each) for each in ("title", "description")}
    for each, text in told.items():
        if text is not None and len(text) > _LONGEST_TOLD:
            raise InvalidArgumentError(
                f"{each} has at most {_LONGEST_TOLD:,} characters, got {len(text):,}",
                "Put what is long into the value.",
            )
    entry = await memory.set(
        SHARED + name,
        arguments["value"],
        kind="shared",
        source="memory_write",
        title=told["title"] or name,
        description=told["description"],
    )
    facts = {"key": entry.key, "kind": entry.kind, "createdAt": _iso(entry.created_at)}
    return json_text({"ok": True, **facts})


def _told(entry: MemoryEntry) -> dict[str, object]:
    told = {"title": entry.title, "description": entry.description, "source": entry.source}
    return {
        "key": entry.key,
        "kind": entry.kind,
        **{name: _cut(text) for name, text in told.items() if text is not None},
        "valueBytes": entry.size_bytes,
        "createdAt": _iso(entry.created_at),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _TOLD_CHARS else f"{text[:_TOLD_CHARS]}…"


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
