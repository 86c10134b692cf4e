"""Where payloads lie: bytes under keys. Never what they mean."""

from typing import TYPE_CHECKING

from ._file import FileStore
from ._memory import MemoryStore
from ._protocols import (
    EndsWithProcess,
    Store,
    SupportsAge,
    SupportsBatch,
    SupportsCompare,
    SupportsCopy,
    SupportsCreate,
    SupportsExpiry,
    SupportsGather,
    SupportsPath,
    SupportsPurge,
    SupportsRange,
    SupportsStream,
    SupportsTtl,
    SupportsVitals,
    Vitals,
)

if TYPE_CHECKING:
    from ._object import ObjectStore
    from ._redis import RedisStore

__all__ = [
    "EndsWithProcess",
    "FileStore",
    "MemoryStore",
    "ObjectStore",
    "RedisStore",
    "Store",
    "SupportsAge",
    "SupportsBatch",
    "SupportsCompare",
    "SupportsCopy",
    "SupportsCreate",
    "SupportsExpiry",
    "SupportsGather",
    "SupportsPath",
    "SupportsPurge",
    "SupportsRange",
    "SupportsStream",
    "SupportsTtl",
    "SupportsVitals",
    "Vitals",
]


def __getattr__(name: str) -> object:
    # Loaded when they are asked for: few processes need them, and they are many modules.
    if name == "ObjectStore":
        from ._object import ObjectStore

        return ObjectStore
    if name == "RedisStore":
        from ._redis import RedisStore

        return RedisStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
