"""How an artifact goes: the reverse of its writing, so that no entry points at nothing."""

from ._keys import ScopeKeys
from ._record import Record, own_record
from ._shared import Shared
from ._tombstone import TOLD_NS, Tombstone

WRITTEN_NS = 60 * 1_000_000_000
"""As long it may take from a record to its listing."""


class Remover:
    """Removes artifacts of one scope.

    Args:
        shared: What all scopes of the bank share.
        keys: The keys of the scope.
    """

    def __init__(self, shared: Shared, keys: ScopeKeys) -> None:
        self._shared = shared
        self._keys = keys

    async def remove(self, record: Record) -> bool:
        """Remove an artifact; return whether it was still there.

        What another writer put under the same id since `record` was read stays.
        """
        await self._shared.store.delete(self._keys.gone(record.artifact.id))
        return await self._take(record)

    async def bury(self, record: Record) -> bool:
        """Remove an artifact and leave its tombstone; return whether it was still there."""
        shared, keys, id_ = self._shared, self._keys, record.artifact.id
        now_ns = shared.now_ns()
        if shared.expires is None:
            await shared.store.put(keys.due(now_ns + TOLD_NS, id_), b"")
        # First: whoever finds the artifact gone is told what it was.
        await shared.put_for(keys.gone(id_), Tombstone.of(record, now_ns).to_bytes(), TOLD_NS)
        return await self._take(record)

    async def enter(self, record: Record) -> bool:
        """List an artifact anew, and name it; return whether it stands."""
        entries = entries_of(self._shared, self._keys, record)
        for entry in entries:
            await self._shared.store.put(entry, b"")
        # Else whoever removes it may not have seen our entries.
        if await self._shared.store.get(self._keys.record(record.artifact.id)) is not None:
            return True
        for entry in entries[::-1]:
            await self._shared.store.delete(entry)
        return False

    async def discard(self, id_: str) -> bool:
        """Remove a record that cannot be read; return whether one was there.

        What it named is unknown: its entries stay, and nobody sees them.
        """
        key = self._keys.record(id_)
        is_there = await self._shared.store.get(key) is not None
        await self._shared.store.delete(key)
        self._shared.cache.drop(key)
        return is_there

    async def _take(self, record: Record) -> bool:
        store, key = self._shared.store, self._keys.record(record.artifact.id)
        entries = entries_of(self._shared, self._keys, record)[::-1]
        for entry in entries:
            await store.delete(entry)
        # A store cannot delete on a condition. Between processes the gap is two calls wide.
        async with self._shared.alone(key):
            stored, id_ = await store.get(key), record.artifact.id
            standing = None if stored is None else own_record(stored, id_, self._keys)
            is_ours = standing is not None and standing.payload_key == record.payload_key
            if is_ours:
                await store.delete(key)
        if is_ours and self._shared.now_ns() - record.stored_ns < WRITTEN_NS:
            # Again: its writer may have listed it meanwhile, and found the record still there.
            for entry in entries:
                await store.delete(entry)
        await store.delete(record.payload_key)
        self._shared.cache.drop(key)
        self._shared.cache.drop(record.payload_key)
        return is_ours


def entries_of(shared: Shared, keys: ScopeKeys, record: Record) -> list[str]:
    """Return the keys of an artifact's end, its listing and its name, as far as it has them."""
    artifact, stored_ns = record.artifact, record.stored_ns
    entries = [keys.listing(stored_ns, artifact.id, artifact.size_bytes)]
    if record.expires_ns is not None and shared.expires is None:  # else it goes by itself
        entries.insert(0, keys.due(record.expires_ns, artifact.id))
    if artifact.name is not None:
        entries.append(keys.name(artifact.name, stored_ns, artifact.id))
    return entries
