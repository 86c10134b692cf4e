"""What the journal keeps of a call of one of our own tools."""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from ..bank import Bank, Journal
from ..content import dumps, estimate_tokens, loads
from ..records import is_pointer
from ._tool import Arguments, Tool

_VERBS = {
    "storeArtifact": "put",
    "getArtifact": "get",
    "listArtifacts": "list",
    "pollResult": "poll",
    "memory_list": "list",
    "memory_read": "get",
    "memory_write": "set",
    "store_plan": "put",
    "get_plan": "get",
}
_ASKED = ("artifactId", "pointerOrName", "planId")


def journaled(bank: Bank, tools: Iterable[Tool]) -> list[Tool]:
    """Return tools that also note each call, where the bank has a journal."""
    journal = bank.journal
    return list(tools) if journal is None else [_noted(journal, bank, each) for each in tools]


def _noted(journal: Journal, bank: Bank, tool: Tool) -> Tool:
    definition = dumps([tool.name, tool.description, tool.parameters]).decode()
    journal.schemas[tool.name] = estimate_tokens(definition)

    async def call(arguments: Arguments | str) -> str:
        reply = await tool.call(arguments)
        asked = _as_object(arguments)
        # What another tool stored may look like a reply of ours: there nothing is read into it.
        said: Arguments = {} if tool.name == "getArtifact" else _as_object(reply)
        made = said.get("pointer", said.get("planId"))
        journal.note(
            verb=_VERBS.get(tool.name) or _mode(asked),
            tool=tool.name,
            scope=bank.scope,
            run=bank.current_run,
            pointers_in=tuple(str(asked[name]) for name in _ASKED if is_pointer(asked.get(name))),
            pointers_out=(str(made),) if is_pointer(made) else (),
            size_bytes=len(reply.encode()),
            shown_tokens=estimate_tokens(reply),
            is_error="error" in said and "hint" in said,
        )
        return reply

    return replace(tool, call=call)


def _mode(asked: Arguments) -> str:
    return next((mode for mode in ("query", "search") if asked.get(mode) is not None), "read")


def _as_object(text: Arguments | str) -> Arguments:
    if not isinstance(text, str):
        return text
    try:
        value = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return {}
    return cast("Arguments", value) if isinstance(value, dict) else {}
