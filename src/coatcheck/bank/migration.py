"""Copies what one store holds into another: every pointer stays what it is."""

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from xxhash import xxh3_128

from ..content import digest_of
from ..errors import DamagedPayloadError, DamagedRecordError, StoreError
from ..records import Kind, Limits, Pointer, dataclass, is_id
from ..stores import Store, SupportsExpiry, SupportsStream, SupportsTtl
from ._holds import Holds
from ._keys import SECRET, ScopeKeys
from ._record import Grant, Record, as_time, own_record
from ._removal import entries_of
from ._scopes import UnknownScopeError
from ._scopes import scopes as scopes_of
from ._shared import Shared
from ._tombstone import TOLD_NS, Tombstone

if TYPE_CHECKING:
    from anyio.abc import ObjectReceiveStream

__all__ = ["Migrated", "UnknownScopeError", "migrate"]

_AT_ONCE = 8
_WHOLE_BYTES = 4 * 1024 * 1024
"""Up to this size a payload is held in memory; a longer one passes in windows of it."""
_SECOND_NS = 1_000_000_000
_KINDS = "store/kinds/"


@dataclass(slots=True, kw_only=True)
class Migrated:
    """What became of the artifacts of a store that was copied into another."""

    copied: int = 0
    skipped: int = 0
    """Were there already, with the same digest."""
    expired: int = 0
    size_bytes: int = 0
    """Of the payloads that were copied."""
    limited: int = 0
    """Were copied, and go in the target after the time that it gives; in the source they stay."""
    damaged: list[str] = field(default_factory=list[str])
    """Pointers of what could not be copied, as it is not what was stored."""
    kept: list[str] = field(default_factory=list[str])
    """Pointers behind which the target has another content, which stayed."""
    has_own_secret: bool = False
    """Whether the target had a secret of its own: what is put there with a key that was used in
    the source gets another pointer."""

    @property
    def is_whole(self) -> bool:
        """Whether everything that lives in the source is in the target too."""
        return not self.damaged and not self.kept


async def migrate(
    source: Store,
    target: Store,
    *,
    scope: str | None = None,
    verify: bool = False,
    tell: Callable[[int, int], object] = lambda _done, _total: None,
    clock: Callable[[], float] = time.time,
) -> Migrated:
    """Copy a scope or all of them: artifacts, names, grants, handles, memory, kinds, the secret.

    What is in the target with the same digest is skipped, so a copy that was interrupted goes on
    when it is asked for again. Of each artifact the payload goes first and the record last but for
    its listing, so nothing ever points at bytes that are missing. Payloads are compared with their
    digest on the way. A life that only the source's own limit gave ends with it: in the target an
    artifact lives as long as the target lets it.

    Args:
        source: Only read.
        target: May be in use.
        scope: Plain name; None copies all.
        verify: Read back what lies in the target too, and copy it again where it is not right.
        tell: Called with how many artifacts of how many have been looked at.
        clock: Seconds since 1970.

    Raises:
        UnknownScopeError: The source has no such scope.
        StoreError: One of the stores failed. What was copied until then is right.

    >>> import asyncio
    >>> from coatcheck import Bank
    >>> from coatcheck.stores import MemoryStore
    >>> async def example() -> tuple[int, object]:
    ...     source, target = MemoryStore(), MemoryStore()
    ...     pointer = (await Bank(source).put({"a": 1})).pointer
    ...     return (await migrate(source, target)).copied, await Bank(target).get(pointer)
    >>> asyncio.run(example())
    (1, {'a': 1})
    """
    from_store = _shared(source, [], clock)
    await from_store.check_format()
    to_store = _shared(target, [kind async for kind in _kinds(source)], clock)
    await to_store.check_format()
    scopes = {name: keys async for name, keys in scopes_of(source)}
    if scope is not None:
        if scope not in scopes:
            raise UnknownScopeError("the source has no such scope")
        scopes = {scope: scopes[scope]}
    migration = _Migration(from_store, to_store, verify=verify, tell=tell)
    await migration.copy_secret()
    for keys in scopes.values():
        async for _ in source.keys(_records(keys)):
            migration.total += 1
    for name, keys in scopes.items():
        await migration.copy_scope(name, keys)
    return migration.done


class _Migration:
    def __init__(
        self,
        source: Shared,
        target: Shared,
        *,
        verify: bool,
        tell: Callable[[int, int], object],
    ) -> None:
        self.done = Migrated()
        self.total = 0
        self._source = source
        self._target = target
        self._verify = verify
        self._tell = tell
        self._looked_at = 0
        self._failure: Exception | None = None
        self._is_over = False

    async def copy_secret(self) -> None:
        secret = await self._source.store.get(SECRET)
        if secret is not None and not await self._target.create(SECRET, secret):
            self.done.has_own_secret = await self._target.store.get(SECRET) != secret

    async def copy_scope(self, name: str, keys: ScopeKeys) -> None:
        import anyio

        await self._target.mark(name, keys)
        send, receive = anyio.create_memory_object_stream[str]()
        async with anyio.create_task_group() as group, send:
            for _ in range(_AT_ONCE):
                group.start_soon(self._copy_each, keys, receive.clone(), group.cancel_scope.cancel)
            receive.close()
            try:
                async for key in self._source.store.keys(_records(keys)):
                    await send.send(key)
            except StoreError as failure:
                self._fail(failure, group.cancel_scope.cancel)
        if self._failure is not None:
            raise self._failure
        # Last: what they stand for is there.
        for folder in (keys.grant(""), keys.handle(""), keys.held_folder, keys.cell_folder):
            async for key in self._source.store.keys(folder):
                stored = await self._source.store.get(key)
                if stored is not None:
                    await self._target.create(key, stored)
        if self._target.expires is not None:
            await self._keep_grants(keys, self._target.expires)

    async def _keep_grants(self, keys: ScopeKeys, target: SupportsExpiry) -> None:
        """Let grants stay for as long as what they open."""
        async for key in self._source.store.keys(keys.grant("")):
            stored, id_ = await self._source.store.get(key), key.rpartition("/")[2]
            grant = None if stored is None or not is_id(id_) else Grant.from_bytes(stored)
            lies = None if grant is None else await self._source.store.get(grant.owner.record(id_))
            if grant is None or lies is None:
                continue
            with suppress(DamagedRecordError):
                expires_ns = self._relived(own_record(lies, id_, grant.owner)).expires_ns
                if expires_ns is not None:
                    lives_ns = max(expires_ns - self._target.now_ns(), 0) + TOLD_NS
                    await target.keep([key], lives_ns / _SECOND_NS)

    def _fail(self, failure: Exception, cancel: Callable[[], object]) -> None:
        # The first one counts. A group of them would hide what it was.
        self._failure = self._failure or failure
        self._is_over = True
        cancel()

    async def _copy_each(
        self,
        keys: ScopeKeys,
        record_keys: "ObjectReceiveStream[str]",
        cancel: Callable[[], object],
    ) -> None:
        try:
            async with record_keys:
                async for key in record_keys:
                    await self._copy(keys, key)
                    self._looked_at += 1
                    self._tell(self._looked_at, self.total)
        except Exception as failure:  # noqa: BLE001 - raised where all have ended
            self._fail(failure, cancel)
        except BaseException:
            self._is_over = True
            raise

    async def _copy(self, keys: ScopeKeys, key: str) -> None:
        id_ = key.rpartition("/")[2]
        stored = await self._source.store.get(key) if is_id(id_) else None
        if stored is None:  # no record of ours, or deleted meanwhile
            return
        try:
            record = own_record(stored, id_, keys)
            is_expired = record.is_expired(self._source.now_ns())
            if is_expired and not await Holds(self._source, keys).holds(record):
                self.done.expired += 1
                return
            relived = self._relived(record)
            stays = record.expires_ns is None
            if await self._copy_record(keys, relived) and stays and relived.expires_ns is not None:
                self.done.limited += 1
        except (DamagedRecordError, DamagedPayloadError):
            if await self._source.store.get(key) is not None:  # else it was deleted meanwhile
                self.done.damaged.append(str(Pointer(id_)))

    def _relived(self, record: Record) -> Record:
        """Return the record with the life it has in the target."""
        target = self._target.store
        if record.expires_ns is not None and not record.store_decides:
            return record
        expires_ns = None
        if isinstance(target, SupportsTtl):
            expires_ns = self._target.now_ns() + int(target.ttl_seconds * _SECOND_NS)
        expires_at = None if expires_ns is None else as_time(expires_ns)
        artifact = replace(record.artifact, expires_at=expires_at)
        decides = expires_ns is not None
        return replace(record, artifact=artifact, expires_ns=expires_ns, store_decides=decides)

    async def _copy_record(self, keys: ScopeKeys, record: Record) -> bool:
        """Copy an artifact, unless there is one already; return whether that was done."""
        there = await self._there(keys, record.artifact.id)
        if there is not None and (
            there.artifact.digest != record.artifact.digest
            or there.payload_key != record.payload_key
        ):
            self.done.kept.append(record.artifact.pointer)
            return False
        if there is not None and await self._has_payload(there):
            await self._enter(keys, there, None)  # it may not have got as far as its listing
            self.done.skipped += 1
            return False
        payload = await self._send_payload(record)
        await self._enter(keys, record, payload)
        if self._verify and not await self._has_payload(record):
            raise DamagedPayloadError(record.artifact.pointer)
        self.done.copied += 1
        self.done.size_bytes += record.index.size_bytes
        return True

    async def _there(self, keys: ScopeKeys, id_: str) -> Record | None:
        key = keys.record(id_)
        stored = await self._target.store.get(key)
        if stored is None:
            return None
        try:
            return own_record(stored, id_, keys)
        except DamagedRecordError:
            await self._target.store.delete(key)
            return None

    async def _has_payload(self, record: Record) -> bool:
        key, size_bytes = record.payload_key, record.index.size_bytes
        if not self._verify:
            return await self._target.fetch(key, 0, 1) is not None
        digest = xxh3_128()
        for start in range(0, size_bytes, _WHOLE_BYTES):
            window = await self._target.fetch(key, start, start + _WHOLE_BYTES)
            if window is None:
                return False
            digest.update(window)
        is_there = size_bytes > 0 or await self._target.fetch(key, 0, 0) is not None
        return is_there and f"xxh3:{digest.hexdigest()}" == record.artifact.digest

    async def _send_payload(self, record: Record) -> bytes | None:
        """Return the payload, or None where it was long and has been sent."""
        pointer, target = record.artifact.pointer, self._target.store
        if record.index.size_bytes > _WHOLE_BYTES and isinstance(target, SupportsStream):
            await target.put_stream(record.payload_key, self._windows(record))
            return None
        payload = await self._source.store.get(record.payload_key)
        if payload is None or digest_of(payload) != record.artifact.digest:
            raise DamagedPayloadError(pointer)
        return payload

    def _windows(self, record: Record) -> Iterator[bytes]:
        from anyio.lowlevel import current_token

        token = current_token()

        def windows() -> Iterator[bytes]:
            from anyio import from_thread

            digest = xxh3_128()
            for start in range(0, record.index.size_bytes, _WHOLE_BYTES):
                if self._is_over:  # nobody waits for this any more
                    raise DamagedPayloadError(record.artifact.pointer)
                fetch = partial(self._source.fetch, record.payload_key, start, start + _WHOLE_BYTES)
                window = from_thread.run(fetch, token=token)
                if window is None:
                    break
                digest.update(window)
                yield window
            # Before the end of it: then nothing of it is stored.
            if f"xxh3:{digest.hexdigest()}" != record.artifact.digest:
                raise DamagedPayloadError(record.artifact.pointer)

        return windows()

    async def _enter(self, keys: ScopeKeys, record: Record, payload: bytes | None) -> None:
        """Write payload, record, listing and name in this order, or at once where that is safer."""
        target, artifact = self._target, record.artifact
        key, stored = keys.record(artifact.id), record.to_bytes()
        entries = entries_of(target, keys, record)
        if target.batches is None:
            if payload is not None:
                await target.store.put(record.payload_key, payload)
            await target.create(key, stored)
            for entry in entries:
                await target.store.put(entry, b"")
            return
        payloads = {key: stored, **dict.fromkeys(entries, b"")}
        ttl_seconds: dict[str, float] = {}
        if record.expires_ns is not None and target.expires is not None:
            lives_seconds = max((record.expires_ns - target.now_ns()) / _SECOND_NS, 0.001)
            ttl_seconds = dict.fromkeys((*payloads, record.payload_key), lives_seconds)
            tombstone = Tombstone.of(record, record.expires_ns)
            payloads[keys.gone(artifact.id)] = tombstone.to_bytes()
            ttl_seconds[keys.gone(artifact.id)] = lives_seconds + TOLD_NS / _SECOND_NS
        if payload is not None:
            payloads[record.payload_key] = payload
        await target.batches.put_many(payloads, ttl_seconds=ttl_seconds)


def _shared(store: Store, kinds: list[Kind], clock: Callable[[], float]) -> Shared:
    return Shared(store, limits=Limits(), kinds=kinds, secret=None, clock=clock)


def _records(keys: ScopeKeys) -> str:
    return keys.record("")


async def _kinds(store: Store) -> AsyncGenerator[Kind, None]:
    async for key in store.keys(_KINDS):
        name = await store.get(key)
        if name:
            yield Kind(name.decode(), prefix=key.removeprefix(_KINDS))
