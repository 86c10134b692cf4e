"""Where payloads lie: bytes under keys, in memory or in files. Never what they mean."""

from ._file import FileStore
from ._memory import MemoryStore
from ._object import ObjectStore
from ._protocols import (
    Store,
    SupportsBatch,
    SupportsCopy,
    SupportsCreate,
    SupportsExpiry,
    SupportsPath,
    SupportsRange,
    SupportsStream,
    SupportsTtl,
    SupportsVitals,
    Vitals,
)
from ._redis import RedisStore

__all__ = [
    "FileStore",
    "MemoryStore",
    "ObjectStore",
    "RedisStore",
    "Store",
    "SupportsBatch",
    "SupportsCopy",
    "SupportsCreate",
    "SupportsExpiry",
    "SupportsPath",
    "SupportsRange",
    "SupportsStream",
    "SupportsTtl",
    "SupportsVitals",
    "Vitals",
]
