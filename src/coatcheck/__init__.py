"""Keeps large tool results out of an agent's context: banked whole, shown as a pointer."""

from typing import TYPE_CHECKING

from .bank import Bank, BlockingBank, open_bank
from .content import encoded_size
from .errors import CoatcheckError, UnknownPointerError
from .mirror import Mirror, Verbatim, mirror
from .records import (
    Answer,
    Artifact,
    Envelope,
    Glimpse,
    Kind,
    Limits,
    Matches,
    Page,
    Pointer,
    is_pointer,
)

if TYPE_CHECKING:
    from .memory import AgentMemory, memory_keys

__all__ = [
    "AgentMemory",
    "Answer",
    "Artifact",
    "Bank",
    "BlockingBank",
    "CoatcheckError",
    "Envelope",
    "Glimpse",
    "Kind",
    "Limits",
    "Matches",
    "Mirror",
    "Page",
    "Pointer",
    "UnknownPointerError",
    "Verbatim",
    "encoded_size",
    "is_pointer",
    "memory_keys",
    "mirror",
    "open_bank",
]


def __getattr__(name: str) -> object:
    # Loaded when it is asked for: to mirror a tool takes no memory.
    if name in {"AgentMemory", "memory_keys"}:
        from . import memory

        return getattr(memory, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
