"""What is told of an artifact, and shown of it: its facts, envelopes, pages, matches, answers."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Self

from ._dataclass import dataclass

_ARRAY_TYPE = "application/x-npy"


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A computed, bounded summary of a payload. `str()` renders it.

    Args:
        text: What a model reads, within its token budget.
        facts: The same as plain JSON values, for programs.
    """

    text: str
    facts: Mapping[str, object]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One stored payload and its facts. Immutable; a change makes a new artifact."""

    pointer: str
    id: str
    name: str | None
    label: str | None
    kind: str
    content_type: str
    size_bytes: int
    length_chars: int | None
    """None where the payload is no text."""
    row_count: int | None = None
    """None where the payload is no table and no array."""
    preview: str
    """Head of the payload, without a mark where it was cut."""
    shown_preview: str
    """The head as an envelope shows it, with a count of what follows."""
    glimpse: Glimpse | None
    stored_at: datetime
    expires_at: datetime | None
    digest: str
    """``xxh3:`` and 32 hex digits over the payload. Finds damage, proves no authorship."""
    source: Mapping[str, object] | None
    """Where a derived artifact comes from, as the host gave it."""
    tool: str | None
    run: str | None

    @property
    def read_back(self) -> str:
        """The literal call that reads the payload."""
        return read_back(self.pointer)


def read_back(pointer: str, reader: str | None = "retrieve_context") -> str:
    """Return the literal call that reads what is behind `pointer`."""
    return f'{reader}({{"artifactId":{json.dumps(pointer, ensure_ascii=False)}}})'


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a model reads in place of a payload. `str()` is its JSON.

    Renders the same bytes for ever: no clock, no counter, nothing random but the pointer.
    """

    pointer: str
    preview: str
    size_bytes: int
    note: str
    content_type: str | None = None
    glimpse: str | None = None
    is_error: bool = False

    @classmethod
    def of(
        cls, artifact: Artifact, *, reader: str | None = "retrieve_context", is_error: bool = False
    ) -> Self:
        """Return the envelope of an artifact.

        Args:
            artifact: What it stands in for.
            reader: The read tool that the model was given, None where it has none.
            is_error: Whether the payload is the text of a failure.
        """
        has_parts = artifact.length_chars is not None or artifact.row_count is not None
        readable = has_parts and reader is not None
        # The glimpse of an array says what it is.
        is_array = artifact.content_type == _ARRAY_TYPE
        return cls(
            pointer=artifact.pointer,
            preview=artifact.shown_preview,
            size_bytes=artifact.size_bytes,
            note=read_back(artifact.pointer, reader) if readable else "pass the pointer to a tool",
            content_type=None if is_array else artifact.content_type,
            glimpse=None if artifact.glimpse is None else str(artifact.glimpse),
            is_error=is_error,
        )

    def to_wire(self) -> dict[str, object]:
        """Return the envelope as its wire form, a JSON object with fixed key order."""
        wire: dict[str, object] = {
            "pointer": self.pointer,
            "preview": self.preview,
            "sizeBytes": self.size_bytes,
            "note": self.note,
        }
        if self.content_type is not None:
            wire["contentType"] = self.content_type
        if self.glimpse is not None:
            wire["glimpse"] = self.glimpse
        if self.is_error:
            wire["isError"] = True
        return wire

    def __str__(self) -> str:
        return json.dumps(self.to_wire(), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One window of a payload, in its unit: ``chars``, ``lines``, ``rows`` or ``bytes``."""

    content: str | bytes
    """Bytes for the unit ``bytes``, else text. Lines keep their ends; rows are a JSON list, or
    the head of one as a JSON string where that alone is longer than the page."""
    unit: str
    offset: int
    limit: int
    """The limit that was applied, which may be less than was asked for."""
    total: int
    has_more: bool
    next_offset: int | None
    """None at the end; None too where one line was longer than the page: go on by
    characters at `next_offset_chars`."""
    offset_chars: int | None
    """Where the window starts, in characters; None for rows and bytes."""
    next_offset_chars: int | None
    """Where to go on, in characters; None at the end, and for rows and bytes."""
    line_number: int | None
    """Line in which the window starts, from 1; None for rows and bytes."""


@dataclass(frozen=True, slots=True)
class Match:
    """One place found by a search. Offsets in characters, lines from 1."""

    offset: int
    line_number: int
    snippet_offset: int
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What a search found, from its offset on."""

    matches: tuple[Match, ...]
    match_count: int
    total_matches: int | None
    """None where the time was over before all were counted."""
    counted_matches: int
    """How many were counted: all, or as many as there was time for."""
    truncated: bool
    next_search_offset: int | None
    """Offset of the first match that was not returned, None when all were. Where none is known
    and the time was over, how far the search came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a query: its value where that is small, else the artifact it was banked as."""

    language: str
    """What the expression was read as: ``sql``, ``jsonpath`` or ``jmespath``."""
    value: object = None
    """Rows of SQL are a list of objects. None where there is an artifact."""
    artifact: Artifact | None = None
    row_count: int
    """Rows of SQL, nodes of JSONPath, items of a list; 1 for any other value."""
    truncated: bool = False
    """Always False: an answer is whole, or refused."""
    hint: str | None = None
    """Where a path found nothing, and asks for keys that are nowhere: which, and what is there."""
