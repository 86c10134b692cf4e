"""A store in this process's memory. It forgets everything when the process ends."""

import heapq
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping

from ..errors import StoreUnavailableError
from ._keys import check_batch, check_ttl, check_window, split_folder, split_key
from ._thread import in_own_thread


class MemoryStore:
    """Payloads in memory, with ranges, streams, create-if-absent, expiry and batches.

    Nothing is evicted but what has passed its time; that goes with the next call of any kind.

    Args:
        clock: Seconds since any fixed moment.
    """

    ends_with_process = True

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._folders: dict[str, dict[str, tuple[bytes, float]]] = {}
        # Only for folders that were listed and have neither gained nor lost a key since.
        self._listings: dict[str, list[str]] = {}
        # A heap of when which key goes. An overwritten key leaves its old line behind.
        self._due: list[tuple[float, str]] = []

    async def put(self, key: str, payload: bytes) -> None:
        await self.put_many({key: payload})

    async def put_many(
        self,
        payloads: Mapping[str, bytes],
        *,
        ttl_seconds: Mapping[str, float] | None = None,
        unless: str | None = None,
    ) -> bool:
        """As the Protocol says.

        Raises:
            ValueError: A time is not more than 0.
            StoreUnavailableError: A key whose time was to begin anew is not there.
        """
        lives = ttl_seconds or {}
        check_batch(payloads, lives, unless)
        now = self._clock()
        with self._lock:
            self._forget()
            if unless is not None and self._find(unless) is not None:
                return False
            kept = {key: self._find(key) for key in lives if key not in payloads}
            if None in kept.values():
                raise StoreUnavailableError("a key is gone that was to be kept")
            for key, payload in payloads.items():
                self._set(key, payload, now + lives.get(key, math.inf))
            for key, found in kept.items():
                if found is not None:
                    self._set(key, found[0], now + lives[key])
        return True

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        split_key(key)
        await self.put(key, await in_own_thread(lambda: b"".join(chunks)))

    async def put_expiring(self, key: str, payload: bytes, ttl_seconds: float) -> None:
        """As the Protocol says.

        Raises:
            ValueError: `ttl_seconds` is not more than 0.
        """
        await self.put_many({key: payload}, ttl_seconds={key: ttl_seconds})

    async def keep(self, keys: Collection[str], ttl_seconds: float) -> None:
        """As the Protocol says.

        Raises:
            ValueError: `ttl_seconds` is not more than 0.
        """
        for key in keys:
            split_key(key)
        check_ttl(ttl_seconds)
        until = self._clock() + ttl_seconds
        with self._lock:
            self._forget()
            for key in keys:
                found = self._find(key)
                if found is not None and found[1] < until:
                    self._set(key, found[0], until)

    async def create(self, key: str, payload: bytes) -> bool:
        split_key(key)
        with self._lock:
            self._forget()
            if self._find(key) is not None:
                return False
            self._set(key, payload, math.inf)
            return True

    async def get(self, key: str) -> bytes | None:
        split_key(key)
        with self._lock:
            self._forget()
            found = self._find(key)
        return None if found is None else found[0]

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        check_window(start_byte, stop_byte)
        payload = await self.get(key)
        return None if payload is None else payload[start_byte:stop_byte]

    async def delete(self, key: str) -> None:
        split_key(key)
        with self._lock:
            self._forget()
            self._drop(key)

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        others: set[str] = set()
        for key in payloads:
            split_key(key)
        with self._lock:
            self._forget()
            for key, payload in payloads.items():
                found = self._find(key)
                if found is not None and found[0] != payload:
                    others.add(key)
                elif found is not None:
                    self._drop(key)
        return others

    async def keys(self, folder: str) -> AsyncIterator[str]:
        split_folder(folder)
        with self._lock:
            self._forget()
            listing = self._listings.get(folder)
            if listing is None:
                listing = sorted(self._folders.get(folder, ()))
                if listing:
                    self._listings[folder] = listing
        for key in listing:
            yield key

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of before the store itself goes."""

    # What follows is called with the lock held.

    def _forget(self) -> None:
        if not self._due:
            return
        now = self._clock()
        while self._due and self._due[0][0] <= now:
            expires_at, key = heapq.heappop(self._due)
            found = self._find(key)
            if found is not None and found[1] == expires_at:
                self._drop(key)

    def _find(self, key: str) -> tuple[bytes, float] | None:
        return self._folders.get(_folder(key), {}).get(key)

    def _set(self, key: str, payload: bytes, expires_at: float) -> None:
        cells = self._folders.setdefault(_folder(key), {})
        if key not in cells:
            self._listings.pop(_folder(key), None)
        cells[key] = (payload, expires_at)
        if expires_at < math.inf:
            heapq.heappush(self._due, (expires_at, key))

    def _drop(self, key: str) -> None:
        folder = _folder(key)
        cells = self._folders.get(folder, {})
        if cells.pop(key, None) is None:
            return
        self._listings.pop(folder, None)
        if not cells:
            del self._folders[folder]


def _folder(key: str) -> str:
    return key[: key.rfind("/") + 1]
