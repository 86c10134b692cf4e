"""Agent memory: named entries that agents, tasks and steps of one run share."""

from ._entry import KINDS, Kinds, MemoryEntry
from ._keys import SHARED, MemoryKeys, memory_keys
from ._memory import AgentMemory, Filters

__all__ = [
    "KINDS",
    "SHARED",
    "AgentMemory",
    "Filters",
    "Kinds",
    "MemoryEntry",
    "MemoryKeys",
    "memory_keys",
]
