"""Where payloads lie: bytes under keys, in memory or in files. Never what they mean."""

from ._file import FileStore
from ._memory import MemoryStore
from ._protocols import (
    Store,
    SupportsBatch,
    SupportsCopy,
    SupportsCreate,
    SupportsExpiry,
    SupportsPath,
    SupportsRange,
    SupportsStream,
)

__all__ = [
    "FileStore",
    "MemoryStore",
    "Store",
    "SupportsBatch",
    "SupportsCopy",
    "SupportsCreate",
    "SupportsExpiry",
    "SupportsPath",
    "SupportsRange",
    "SupportsStream",
]
