"""Live values and records of a bank, within a budget of bytes, least recently used first."""

from collections import OrderedDict
from threading import Lock


class Cache:
    """A mapping that forgets. Safe for several threads.

    Args:
        limit_bytes: Most that is kept, by the sizes given to `put`; a larger single value
            is not kept at all.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._values: OrderedDict[str, tuple[object, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> object | None:
        """Return what is kept under `key`, or None."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return entry[0]

    def put(self, key: str, value: object, size_bytes: int) -> None:
        """Keep `value`, and forget others until all fits."""
        with self._lock:
            self._drop(key)
            if size_bytes > self._limit_bytes:
                return
            self._values[key] = (value, size_bytes)
            self._held_bytes += size_bytes
            while self._held_bytes > self._limit_bytes:
                _, (_, freed_bytes) = self._values.popitem(last=False)
                self._held_bytes -= freed_bytes

    def drop(self, key: str) -> None:
        """Forget what is kept under `key`."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: str) -> None:  # with the lock held
        entry = self._values.pop(key, None)
        if entry is not None:
            self._held_bytes -= entry[1]
