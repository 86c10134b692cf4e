"""How artifacts go: the reverse of their writing, so that no entry points at nothing."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from ..errors import StoreFormatError
from ._keys import ScopeKeys, owner_of
from ._record import Record, own_record
from ._shared import Shared
from ._tombstone import TOLD_NS, Tombstone

WRITTEN_NS = 60 * 1_000_000_000
"""As long it may take from a record to its listing."""
AT_ONCE = 500
"""Keys whose time is changed in one call."""
_SECOND_NS = 1_000_000_000


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
        return bool(await self.take([record]))

    async def tell(self, records: Sequence[Record]) -> dict[str, tuple[str, str]]:
        """Write the tombstones of artifacts that are to go; return their keys by id.

        Before they go: whoever finds one gone is told what it was.
        """
        shared, keys, now_ns = self._shared, self._keys, self._shared.now_ns()
        told: dict[str, tuple[str, str]] = {}
        tombstones: dict[str, bytes] = {}
        for record in records:
            id_ = record.artifact.id
            tombstones[keys.gone(id_)] = Tombstone.of(record, now_ns).to_bytes()
            told[id_] = (keys.gone(id_), keys.due(now_ns + TOLD_NS, id_))
        if shared.expires is None:
            await shared.put_each_for({due: b"" for _, due in told.values()}, TOLD_NS)
        await shared.put_each_for(tombstones, TOLD_NS)
        return told

    async def take(self, records: Sequence[Record]) -> list[Record]:
        """Remove artifacts; return those that were still there.

        What another writer put under the same id since a record was read stays.
        """
        shared = self._shared
        by_key = {self._keys.record(record.artifact.id): record for record in records}
        entries = {
            key: entries_of(shared, self._keys, record)[::-1] for key, record in by_key.items()
        }
        await shared.delete_each([entry for each in entries.values() for entry in each])
        async with AsyncExitStack() as alone:
            for key in sorted(by_key):  # in one order, as others may wait for some of the same
                await alone.enter_async_context(shared.alone(key))
            stored = await shared.get_each(list(by_key))
            ours = {
                key: each
                for (key, record), each in zip(by_key.items(), stored, strict=True)
                if each is not None and self._is_ours(each, record)
            }
            others = await shared.delete_unchanged(ours)
            standing = [key for key in ours if key not in others]
        young_ns = shared.now_ns() - WRITTEN_NS
        # Again: its writer may have listed one meanwhile, and found the record still there.
        young = [key for key in standing if by_key[key].stored_ns > young_ns]
        await shared.delete_each([entry for key in young for entry in entries[key]])
        await shared.delete_each([record.payload_key for record in records])
        for key, record in by_key.items():
            shared.cache.drop(key)
            shared.cache.drop(record.payload_key)
        return [by_key[key] for key in standing]

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
        await self._shared.store.delete(self._keys.gone(id_))  # one may be put with an artifact
        stored = await self._shared.store.get(key)
        if stored is not None:
            await self._shared.delete_unchanged({key: stored})
        self._shared.cache.drop(key)
        return stored is not None

    def _is_ours(self, stored: bytes, record: Record) -> bool:
        """Return whether what is stored under an id is still what we know of it."""
        try:
            standing = own_record(stored, record.artifact.id, self._keys)
        except StoreFormatError:  # of another writer, as ours could be read
            return False
        return standing.payload_key == record.payload_key


def entries_of(shared: Shared, keys: ScopeKeys, record: Record) -> list[str]:
    """Return the keys of an artifact's end, its listing and its name, as far as it has them."""
    artifact, stored_ns = record.artifact, record.stored_ns
    entries = [keys.listing(stored_ns, artifact.id, artifact.size_bytes)]
    if record.expires_ns is not None and shared.expires is None:  # else it goes by itself
        entries.insert(0, keys.due(record.expires_ns, artifact.id))
    if artifact.name is not None:
        entries.append(keys.name(artifact.name, stored_ns, artifact.id))
    return entries


async def prolong(shared: Shared, records: Sequence[Record], lives_ns: int) -> None:
    """Let artifacts of a store that forgets stay for at least so long, and a week what is told."""
    if shared.expires is None:
        return
    keys: list[str] = []
    gone: list[str] = []
    for record in records:
        owner, id_ = owner_of(record.payload_key), record.artifact.id
        # In the order of a put: what names others never stays for longer than they do.
        keys += [owner.record(id_), *entries_of(shared, owner, record), record.payload_key]
        gone.append(owner.gone(id_))
    for each, until_ns in ((keys, lives_ns), (gone, lives_ns + TOLD_NS)):
        for start in range(0, len(each), AT_ONCE):
            await shared.expires.keep(each[start : start + AT_ONCE], until_ns / _SECOND_NS)
