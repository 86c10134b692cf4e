"""The records that travel between layers: frozen, comparable, free of I/O."""

from ._dataclass import dataclass
from ._limits import OWN_TOOLS, Limits
from ._pointers import LONGEST_SELECTOR, Kind, Pointer, is_id, is_pointer, names_pointer
from ._shown import Answer, Artifact, Envelope, Glimpse, Match, Matches, Page, read_back

__all__ = [
    "LONGEST_SELECTOR",
    "OWN_TOOLS",
    "Answer",
    "Artifact",
    "Envelope",
    "Glimpse",
    "Kind",
    "Limits",
    "Match",
    "Matches",
    "Page",
    "Pointer",
    "dataclass",
    "is_id",
    "is_pointer",
    "names_pointer",
    "read_back",
]
