"""How much is shown, and when."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import ClassVar

from ._dataclass import dataclass

OWN_TOOLS = frozenset(
    {
        *("retrieve_context", "storeArtifact", "getArtifact", "listArtifacts", "pollResult"),
        *("memory_list", "memory_read", "memory_write"),
    }
)
"""Names of the tools by which a model reads what was kept. Their replies are bounded. Where nobody
says which tools are ours, what has one of these names is never offloaded: else reading an artifact
would make the next one."""


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


def _check_number(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}")
