"""What all scopes of one bank share: the store, its format and secret, kinds, clock, cache."""

import os
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING

from ..content import Encoding, Items, dumps, loads
from ..errors import StoreError, StoreFormatError, StoreUnavailableError, shown
from ..records import Glimpse, Kind, Limits
from ..stores import (
    MemoryStore,
    Store,
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
)
from ._cache import Cache
from ._each import on_each
from ._ids import keyed_id
from ._journal import Journal
from ._keys import FORMAT, SECRET, ScopeKeys, kind_key
from ._running import Running
from ._source import AwaitedPieces
from ._stream import Stream
from ._tally import Tally
from ._threads import INLINE_BYTES, in_daemon_thread, work_on

if TYPE_CHECKING:
    from ._databases import Databases

_READY_BYTES = 1024 * 1024
_PAUSE_SECONDS = 0.001

_FORMAT = 1
_SECOND_NS = 1_000_000_000
_SECRET_BYTES = 32
_BUILT_IN_PREFIXES = frozenset({"art", "plan"})


class Shared:
    """Everything below the scopes. Holds nothing that is bound to an event loop.

    Args:
        store: Stays the property of whoever built it.
        limits: As given to the bank.
        kinds: Registered kinds; their prefixes are written to the store.
        secret: 32 bytes for keyed ids; None takes the one in the store, or makes it.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        *,
        limits: Limits,
        kinds: Iterable[Kind],
        secret: bytes | None,
        clock: Callable[[], float],
    ) -> None:
        if isinstance(store, str | os.PathLike):
            raise TypeError(f"a bank needs a store, and open_bank opens {shown(store)}")
        if secret is not None and len(secret) != _SECRET_BYTES:
            raise ValueError(f"the secret has {_SECRET_BYTES} bytes, got {len(secret)}")
        self.limits = limits
        self._kinds = {kind.name: kind for kind in kinds}
        self._given_secret = secret
        self._clock = clock
        self._last_ns = 0
        self.running: dict[str, Running[object]] = {}
        """Background work of this process, by the key of its handle, while it goes on."""
        self.journal: Journal | None = None
        self._databases: Databases | None = None
        self._take(store)

    def on(self, store: Store) -> "Shared":
        """Return the same for another store: its limits, kinds, clock and background work."""
        other = copy(self)
        other._take(store)  # noqa: SLF001 - same class
        return other

    def _take(self, store: Store) -> None:
        self.store = store
        # Asked once: of a Protocol, isinstance takes longer than a small read.
        self._ranges = store if isinstance(store, SupportsRange) else None
        self._creates = store if isinstance(store, SupportsCreate) else None
        self._gathers = store if isinstance(store, SupportsGather) else None
        self._compares = store if isinstance(store, SupportsCompare) else None
        self._purges = store if isinstance(store, SupportsPurge) else None
        self._streams = store if isinstance(store, SupportsStream) else None
        self._takes_files = store if isinstance(store, SupportsCopy) else None
        # Where each key stays, the order of the puts is enough. Where each goes with its time, an
        # artifact is put at once, so that no key of it outlives another.
        goes = store if isinstance(store, SupportsTtl) else None
        self._lasts_ns = None if goes is None else int(goes.ttl_seconds * _SECOND_NS)
        self.batches = goes if isinstance(goes, SupportsBatch) else None
        self.expires = goes if isinstance(goes, SupportsExpiry) else None
        self.cache = Cache(self.limits.cache_bytes)
        self._prefixes = {kind.prefix for kind in self._kinds.values()} | _BUILT_IN_PREFIXES
        self._secret = self._given_secret
        self._lock = Lock()
        self._format_seen = False
        self._marked: dict[str, tuple[int, int]] = {}
        self._mark_tries = 0
        self._mark_failure: StoreError | None = None
        self._process = os.getpid()
        self._claimed: set[str] = set()
        self.is_passing = isinstance(store, MemoryStore)
        self.tallies: dict[str, Tally] = {}
        """What scopes take that have a quota, by their segment; the store as a whole by ``""``."""
        self.has_quota = self.limits.scope_bytes is not None or self.limits.store_bytes is not None
        # Where a write costs little. To a store of objects each is a request that is paid for.
        writes_lightly = isinstance(store, SupportsPath | SupportsExpiry)
        self.touched: dict[str, int] | None = {} if self.has_quota and writes_lightly else None
        """When artifacts were last noted as used, by key; None where that is not noted."""

    @property
    def databases(self) -> "Databases":
        """What runs SQL; made when it is first asked for."""
        with self._lock:
            if self._databases is None:
                from ._databases import Databases

                self._databases = Databases()
            return self._databases

    def end_databases(self) -> None:
        """End what runs SQL. The next query starts it again."""
        if self._databases is not None:
            self._databases.close()

    def now_ns(self) -> int:
        """Return the clock's time in nanoseconds."""
        return int(self._clock() * _SECOND_NS)

    def stamp_ns(self) -> int:
        """Return a time after every stamp before: newest-first holds when a clock stalls."""
        with self._lock:
            self._last_ns = max(self.now_ns(), self._last_ns + 1)
            return self._last_ns

    async def check_format(self) -> None:
        """Refuse a store that another major version wrote.

        Raises:
            StoreFormatError: The store says it has another format.
        """
        if self._format_seen:
            return
        stored = await self.store.get(FORMAT)
        if stored is None:
            return
        try:
            known = loads(stored) == {"format": _FORMAT}
        except ValueError:
            known = False
        if not known:
            raise StoreFormatError(f"not format {_FORMAT}")
        self._format_seen = True

    def lives_ns(self, asked_ns: int | None) -> int | None:
        """Return how long what is put now will live, None where it stays."""
        return self._lasts_ns if asked_ns is None else asked_ns

    async def mark(self, scope: str, scope_keys: ScopeKeys, ttl_ns: int | None = None) -> None:
        """Write down the store's format, the registered prefixes and the scope's name.

        Once, but where nothing stays for ever: there they outlive whatever is put.
        """
        # The scope itself is put without a time, so it lives as long as the store has it.
        lives_ns = None if self._lasts_ns is None else max(self._lasts_ns, ttl_ns or 0)
        if self._is_marked(scope, lives_ns):
            return
        tries = self._mark_tries
        # Of many tasks that begin at once, the first does it for all, or fails for all.
        async with self.alone(scope_keys.scope):
            if self._is_marked(scope, lives_ns):
                return
            if self._mark_failure is not None and tries != self._mark_tries:
                raise self._mark_failure
            try:
                await self._mark(scope, scope_keys, lives_ns)
                self._mark_failure = None
            except StoreError as failure:
                self._mark_failure = failure
                raise
            finally:
                self._mark_tries += 1

    def _is_marked(self, scope: str, lives_ns: int | None) -> bool:
        if scope not in self._marked or lives_ns is None:
            return scope in self._marked
        since_ns, lasts_ns = self._marked[scope]  # where it is ahead, the clock was set back
        return 0 <= self.now_ns() - since_ns <= lasts_ns - lives_ns

    async def _mark(self, scope: str, scope_keys: ScopeKeys, lives_ns: int | None) -> None:
        await self.check_format()
        marks = {
            FORMAT: dumps({"format": _FORMAT}),
            scope_keys.scope: scope.encode("utf-8", "surrogatepass"),
        }
        for kind in self._kinds.values():
            if kind.prefix is not None:
                marks[kind_key(kind.prefix)] = kind.name.encode()
        if self._secret is not None and self._given_secret is None:
            marks[SECRET] = self._secret
        for key, payload in marks.items():
            if not (key == FORMAT and self._format_seen and lives_ns is None):
                await self.create(key, payload)
        if lives_ns is None or self.expires is None:
            self._marked[scope] = 0, 0
            return
        await self.expires.keep([*marks, SECRET], 2 * lives_ns / _SECOND_NS)
        if SECRET in marks:  # another one may have been made when ours was gone
            self._secret = await self.store.get(SECRET)
        self._marked[scope] = self.now_ns(), 2 * lives_ns

    def prefix_of(self, kind: str) -> str:
        """Return the pointer prefix of artifacts of this kind."""
        registered = self._kinds.get(kind)
        if registered is not None and registered.prefix is not None:
            return registered.prefix
        return kind if kind in _BUILT_IN_PREFIXES else "art"

    def glimpse_of(self, kind: str) -> Callable[[object], str | Glimpse] | None:
        """Return the function that makes glimpses of this kind, None where the host gave none."""
        registered = self._kinds.get(kind)
        return None if registered is None else registered.glimpse

    async def knows_prefix(self, prefix: str) -> bool:
        """Return whether `prefix` is registered, by this bank or by any other on the store."""
        if prefix not in self._prefixes:
            if await self.store.get(kind_key(prefix)) is None:
                return False
            self._prefixes.add(prefix)
        return True

    async def keyed_id(self, *parts: str) -> str:
        """Return the same id for the same parts, on every machine that shares the secret."""
        if self._secret is None:
            await self.create(SECRET, secrets.token_bytes(_SECRET_BYTES))
            if self.expires is not None and self._lasts_ns is not None:
                await self.expires.keep([SECRET], 2 * self._lasts_ns / _SECOND_NS)
            self._secret = await self.store.get(SECRET)
            if self._secret is None:
                raise StoreFormatError("its secret is gone")
        return keyed_id(self._secret, dumps(list(parts)))

    async def create(self, key: str, payload: bytes) -> bool:
        """Write where nothing is stored; return whether this call wrote it."""
        if self._creates is not None:
            return await self._creates.create(key, payload)
        # A store without it is for one writer at a time, as the docs say.
        if await self.store.get(key) is not None:
            return False
        await self.store.put(key, payload)
        return True

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncGenerator[None, None]:
        """Keep all others of this process who ask for `key` waiting, for the time of a `with`.

        They may run in other threads and loops, so a lock that blocks would hold up the loop of
        its holder, and one of asyncio knows its own loop only.
        """
        from anyio import sleep

        while not self._claim(key):  # noqa: ASYNC110 - an event knows one loop only
            await sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            self._claimed.discard(key)

    def _claim(self, key: str) -> bool:
        with self._lock:
            if self._process != os.getpid():  # a fork: whoever claimed something is not here
                self._process, self._claimed = os.getpid(), set()
            is_free = key not in self._claimed
            self._claimed.add(key)
            return is_free

    async def fetch(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        """Return one range of a payload, or None where no key is."""
        if self._ranges is not None:
            return await self._ranges.get_range(key, start_byte, stop_byte)
        payload = await self.store.get(key)
        return None if payload is None else payload[start_byte:stop_byte]

    async def gather(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return what is stored under keys, nothing where the store sends one after the other."""
        return [] if self._gathers is None or not keys else await self._gathers.get_many(keys)

    async def get_each(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return what is stored under keys, together where the store sends many at once."""
        if self._gathers is not None:
            return await self._gathers.get_many(keys)
        return [await self.store.get(key) for key in keys]

    async def delete_each(self, keys: Sequence[str]) -> None:
        """Remove what is stored under keys, in no order, together where the store can."""
        if self._purges is None:
            for key in keys:
                await self.store.delete(key)
        elif keys:
            await self._purges.delete_many(keys)

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        """Remove what is still as it was read; return the keys that hold something else now."""
        if self._compares is not None:
            return await self._compares.delete_unchanged(payloads)
        # What another process put since the reading goes too: the gap is two calls wide.
        await self.delete_each(list(payloads))
        return set()

    async def put_payload(self, key: str, encoding: Encoding) -> bytes | None:
        """Write an encoded value; afterwards its index and digest are known.

        Where the store can write it together with its record, a short one is returned instead.
        """
        is_long = not _is_quick(encoding) and not encoding.is_shared
        if self.batches is not None and encoding.is_whole:
            is_long = False  # in pieces it would be copied
        if self._streams is not None and is_long:
            await self._streams.put_stream(key, encoding.chunks())
            return None
        work_bytes = 0 if _is_quick(encoding) else encoding.size_hint
        payload = await work_on(work_bytes, encoding.whole)
        if self.batches is not None:
            return payload
        await self.store.put(key, payload)
        return None

    async def put_for(self, key: str, payload: bytes, lives_ns: int) -> None:
        """Write what is of no use after a time, by which the store may forget it."""
        if self.expires is None:
            await self.store.put(key, payload)
        else:
            await self.expires.put_expiring(key, payload, lives_ns / _SECOND_NS)

    async def put_each_for(self, payloads: Mapping[str, bytes], lives_ns: int) -> None:
        """As `put_for`, for several keys, together where the store forgets and can."""
        if self.batches is not None and self.expires is not None and payloads:
            ttl_seconds = dict.fromkeys(payloads, lives_ns / _SECOND_NS)
            await self.batches.put_many(payloads, ttl_seconds=ttl_seconds)
            return
        await on_each(payloads, lambda key: self.put_for(key, payloads[key], lives_ns))

    async def put_stream(self, key: str, stream: Stream) -> None:
        """Write a stream that was begun; afterwards its index and digest are known."""
        if stream.path is not None and self._takes_files is not None:
            await self._takes_files.put_copy(key, stream.path, stream.add)
            stream.encoding.end()
        elif self._streams is not None:
            await self._streams.put_stream(key, stream.chunks())
        else:
            await self.store.put(key, await in_daemon_thread(lambda: b"".join(stream.chunks())))

    async def move(self, from_key: str, to_key: str, size_bytes: int) -> None:
        """Write a payload under another key, window by window, and remove the first one."""

        async def windows() -> AsyncGenerator[bytes, None]:
            for start in range(0, size_bytes, _READY_BYTES):
                window = await self.fetch(from_key, start, start + _READY_BYTES)
                if window is None:
                    raise StoreUnavailableError("a payload is gone that was just written")
                yield window

        moved = Stream(AwaitedPieces(windows(), Items(form="bytes")), None)

        async def write() -> None:
            await moved.begins()
            await self.put_stream(to_key, moved)

        await moved.run(write)
        await self.store.delete(from_key)

    def copies(self, stream: Stream) -> bool:
        """Return whether the store takes a stream without its being read here."""
        return stream.path is not None and self._takes_files is not None


def _is_quick(encoding: Encoding) -> bool:
    """Return whether a value is encoded before a thread would have started.

    Bytes need no encoding but a digest, at some 10 GB/s: 1 MiB of them takes as long as the hop.
    """
    longest = _READY_BYTES if encoding.form == "bytes" else INLINE_BYTES
    return encoding.size_hint <= longest
