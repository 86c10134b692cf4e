"""The records that travel between layers: frozen, comparable, free of I/O."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar, Self

from .errors import InvalidPointerError

_ARRAY_TYPE = "application/x-npy"

OWN_TOOLS = frozenset(
    {
        *("retrieve_context", "storeArtifact", "getArtifact", "listArtifacts", "pollResult"),
        *("memory_list", "memory_read", "memory_write"),
    }
)
"""Names of the tools by which a model reads what was kept. Their replies are bounded, and
never offloaded: else reading an artifact would make the next one."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PREFIX = r"[a-z][a-z0-9]{1,15}"
_SELECTOR = r"[/$].*|(?:line|char)=[0-9,]+|L[0-9]+(?:-L[0-9]+)?|row=[0-9]+(?:-[0-9]+)?"
_POINTER = re.compile(
    rf"(?:art:({_UUID})|({_PREFIX})-([0-9a-f]{{32}}))(?:#({_SELECTOR}))?", re.ASCII | re.DOTALL
)
_NAMING = re.compile(rf"(?:art:{_UUID}|({_PREFIX})-[0-9a-f]{{32}})(?:#|\Z)", re.ASCII)
_ID = re.compile(_UUID, re.ASCII)
_KIND_PREFIX = re.compile(_PREFIX, re.ASCII)
_RESERVED_PREFIXES = frozenset({"art", "ah"})

LONGEST_SELECTOR = 1_000
"""Most characters of a selector."""

_SHORTEST = 35
"""Characters of the shortest pointer: a prefix of 2, a hyphen, 32 digits. The longest prefix has
16 characters, and ``art:`` with a UUID lies between the two."""
_LONGEST = 49 + len("#") + LONGEST_SELECTOR


@dataclass(frozen=True, slots=True)
class Pointer:
    """Names one artifact. Its text form, ``art:<uuid>``, survives any prompt.

    A `Kind` with a prefix has a typed form of the same id, ``ps-<32 hex digits>``. A selector,
    which picks a part of the artifact, may follow either.

    >>> str(Pointer("00000000-0000-4000-8000-000000000005"))
    'art:00000000-0000-4000-8000-000000000005'
    >>> str(Pointer("00000000-0000-4000-8000-000000000005", "ps", selector="/0/id"))
    'ps-00000000000040008000000000000005#/0/id'
    """

    id: str
    prefix: str = "art"
    selector: str | None = None
    """What follows ``#``, in one of the forms of `docs/selectors.md`."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pointer from text.

        Raises:
            InvalidPointerError: `text` is anything but a whole pointer. Checked before
                any store is touched, as the text may come from a model.
        """
        match = _POINTER.fullmatch(text) if _SHORTEST <= len(text) <= _LONGEST else None
        if match is None or match[2] in _RESERVED_PREFIXES:
            raise InvalidPointerError(text, begins_well=names_pointer(text))
        if match[1]:
            return cls(match[1], selector=match[4])
        digits = match[3]
        id_ = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return cls(id_, match[2], match[4])

    def __str__(self) -> str:
        whole = f"art:{self.id}"
        if self.prefix != "art":
            whole = f"{self.prefix}-{self.id.replace('-', '')}"
        return whole if self.selector is None else f"{whole}#{self.selector}"


def is_pointer(value: object) -> bool:
    """Return whether `value` is a whole pointer, by its form alone.

    >>> is_pointer("art:00000000-0000-4000-8000-000000000005")
    True
    >>> is_pointer("art:deco posters")
    False
    """
    if not isinstance(value, str):
        return isinstance(value, Pointer)
    if not _SHORTEST <= len(value) <= _LONGEST:
        return False
    match = _POINTER.fullmatch(value)
    return match is not None and match[2] not in _RESERVED_PREFIXES


def names_pointer(value: object) -> bool:
    """Return whether `value` is a whole pointer, or one with ``#`` and anything behind it.

    What stands there may be no selector: then the text is no pointer, but was meant as one.

    >>> names_pointer("art:00000000-0000-4000-8000-000000000005#the first")
    True
    >>> names_pointer("art:deco posters#x")
    False
    """
    if not isinstance(value, str):
        return isinstance(value, Pointer)
    match = _NAMING.match(value) if len(value) >= _SHORTEST else None
    return match is not None and match[1] not in _RESERVED_PREFIXES


def is_id(text: str) -> bool:
    """Return whether `text` is the bare id of an artifact: a lower-case UUID."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Kind:
    """Who made an artifact and why. With a prefix, its pointers have a typed form.

    Args:
        name: As given to ``put(kind=…)``.
        prefix: Two to sixteen lower-case letters and digits, a letter first; not ``art`` or ``ah``.
        glimpse: Makes the glimpse of each artifact of this kind, from the value as `get` returns
            it; the text is cut to the budget. Where it raises, the built-in glimpse is taken. Not
            called for what was put as a stream, of which the whole is never in memory.

    Raises:
        ValueError: The name is empty, or the prefix breaks its rule.
    """

    name: str
    prefix: str | None = None
    glimpse: "Callable[[object], str | Glimpse] | None" = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a kind needs a name")
        if self.prefix is None:
            return
        if not _KIND_PREFIX.fullmatch(self.prefix) or self.prefix in _RESERVED_PREFIXES:
            rule = "[a-z][a-z0-9]{1,15}, and not art or ah"
            raise ValueError(f"the prefix of a kind is {rule}, got {self.prefix!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is shown, and when. Sizes in UTF-8 bytes, lengths in code points.

    Raises:
        ValueError: A number is negative, or a page or inline limit is not positive.
        TypeError: Something is of another type.
    """

    inline_bytes: int = 51_200
    """From this size on a result is offloaded."""
    preview_chars: int = 200
    """Longest preview in an envelope."""
    banked_preview_chars: int = 1_000
    """Longest `Artifact.preview` when a host banks without asking for a length."""
    glimpse_tokens: int = 150
    """Budget of a glimpse by our own estimate; 0 switches glimpses off."""
    page_chars: int = 50_000
    """Longest page where none is asked for."""
    page_cap_chars: int = 200_000
    """Longest page on request; more is clamped to it and echoed."""
    page_tokens: int = 20_000
    """Most estimated tokens of a page where no length is asked for."""
    cache_bytes: int = 64 * 1024 * 1024
    """Memory for live values and records, per bank."""
    turn_bytes: int | None = None
    """Most that the results of one turn take together; None sets no limit."""
    scope_bytes: int | None = None
    """Most that the payloads of one scope take; beyond it the least recently used go. None sets
    no limit."""
    store_bytes: int | None = None
    """As `scope_bytes`, of all scopes of a store together."""
    per_tool: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Inline limits by tool name, in bytes; 0 means always a pointer."""
    never: frozenset[str] = frozenset()
    """Tools whose results are never offloaded."""

    _POSITIVE: ClassVar[tuple[str, ...]] = (
        "inline_bytes",
        "page_chars",
        "page_cap_chars",
        "page_tokens",
    )
    _NOT_NEGATIVE: ClassVar[tuple[str, ...]] = (
        "preview_chars",
        "banked_preview_chars",
        "glimpse_tokens",
        "cache_bytes",
    )

    def __post_init__(self) -> None:
        for name in self._POSITIVE:
            _check_number(name, getattr(self, name), 1)
        for name in self._NOT_NEGATIVE:
            _check_number(name, getattr(self, name), 0)
        for name in ("turn_bytes", "scope_bytes", "store_bytes"):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name), 1)
        if isinstance(self.never, str):
            raise TypeError(f"never is a set of tool names, got {self.never!r}")
        for tool, limit in self.per_tool.items():
            _check_number(f"per_tool[{tool!r}]", limit, 0)

    def inline_limit(self, tool: str | None) -> int:
        """Return the size in bytes from which on a result of `tool` is offloaded."""
        return self.inline_bytes if tool is None else self.per_tool.get(tool, self.inline_bytes)


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
    total_matches: int
    truncated: bool
    next_search_offset: int | None
    """Offset of the first match that was not returned, None when all were."""


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


def _check_number(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}")
