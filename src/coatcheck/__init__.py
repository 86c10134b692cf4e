"""Keeps large tool results out of an agent's context: banked whole, shown as a pointer."""

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

__all__ = [
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
    "mirror",
    "open_bank",
]
