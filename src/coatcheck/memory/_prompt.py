"""Entries as Markdown, for hosts that put them into a prompt themselves."""

import json
import re
from collections.abc import Iterable

from ..content import visible
from ..records import Artifact, Envelope
from ._entry import MemoryEntry

_TITLE = "# Memory of this run"
_TICKS = re.compile("`+")


def as_prompt(entries: Iterable[tuple[MemoryEntry, Artifact | None]]) -> str:
    """Return entries as Markdown, empty text where there are none.

    Args:
        entries: Each with the artifact that holds its value, None where the entry does.
    """
    parts = [_part(entry, artifact) for entry, artifact in entries]
    return visible("\n\n".join([_TITLE, *parts])) if parts else ""


def _part(entry: MemoryEntry, artifact: Artifact | None) -> str:
    value = entry.value if artifact is None else Envelope.of(artifact).to_wire()
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    # Longer than any in the text, which may come from a model.
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=0))
    lines = [f"## [{entry.kind}] {_one_line(entry.title or entry.key)} ({_one_line(entry.key)})"]
    if entry.description:
        lines.append(_one_line(entry.description))
    return "\n\n".join([*lines, f"{fence}\n{text}\n{fence}"])


def _one_line(text: str) -> str:
    return " ".join(text.split())
