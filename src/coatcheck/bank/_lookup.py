"""What stands behind a pointer, an id or a name: in a scope, by grant, and above it."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, suppress
from itertools import chain, repeat

from ..errors import (
    StoreFormatError,
    UnknownPointerError,
    shown,
)
from ..records import Pointer, is_id, is_pointer
from ._holds import Holders, Holds
from ._keys import ScopeKeys, is_name, is_stamped, listed_id, owner_of
from ._nearest import most_alike
from ._quota import touch
from ._record import Grant, Record, own_record
from ._run import current_run, renew_runs
from ._shared import Shared
from ._tombstone import Tombstone

_LOOKED_AT = 50
_FIRST_AT_ONCE, _AT_ONCE = (4, 32), 64
"""How many records of a listing are read together: few at first, as some want the newest only."""


class Lookup:
    """Finds records of one scope, and what another scope granted to it.

    Args:
        shared: What all scopes of the bank share.
        keys: The keys of the scope.
        parent: Where reads go on that miss here, None for nowhere.
    """

    def __init__(self, shared: Shared, keys: ScopeKeys, parent: "Lookup | None") -> None:
        self._shared = shared
        self._keys = keys
        self._parent = parent

    async def found(self, text: str, *, recall: bool = False) -> Record:
        """Return the record behind `text`.

        Raises:
            UnknownPointerError, ExpiredPointerError: Nothing is behind it.
        """
        record = await self.live(text, recall=recall)
        if record is None:
            nearest = await self._nearest(text)
            raise UnknownPointerError(text, nearest, passing=self._shared.is_passing)
        return record

    async def live(self, text: str, *, recall: bool = False) -> Record | None:
        """Return the record behind `text` here or above, None where there is none.

        Raises:
            ExpiredPointerError: There was one, but its time has passed.
        """
        await self._begin()
        run = current_run(self._shared, self._keys)
        lookup: Lookup | None = self
        expired: Record | None = None
        while lookup is not None:
            record = await lookup.here(text, recall=recall)
            if record is not None:
                if not await self.is_live(record):
                    expired = expired or record  # above, the name may stand for what lives
                elif (run is None and self._shared.touched is None) or await self.show(record):
                    return record
            lookup = lookup._parent  # noqa: SLF001 - same class
        if expired is not None:
            raise Tombstone.of(expired, 0).expired(text)
        tombstone = await self._tombstone(text)
        if tombstone is not None:
            raise tombstone.expired(text)
        return None

    async def _begin(self) -> None:
        await self._shared.check_format()
        # First: whatever the clock says, what the runs hold stays.
        await renew_runs(self._shared)

    async def is_live(self, record: Record) -> bool:
        """Return whether an artifact's time has not passed, or a live run or a cell holds it."""
        if not record.is_expired(self._shared.now_ns()):
            return True
        return await Holds(self._shared, owner_of(record.payload_key)).holds(record)

    async def show(self, record: Record) -> bool:
        """Note that an artifact is shown; return whether it still stands."""
        if self._shared.touched is not None:
            await touch(self._shared, record)
        run = current_run(self._shared, self._keys)
        if run is None or not await run.show(record):
            return True
        if await self.stands(record):
            return True
        run.forget(record)
        return False

    async def stands(self, record: Record) -> bool:
        """Return whether an artifact that is held from now on has not gone just before.

        Whoever removes it may have looked for what holds it a moment ago.
        """
        owner, id_ = owner_of(record.payload_key), record.artifact.id
        stored = await self._shared.store.get(owner.gone(id_))
        tombstone = None if stored is None else Tombstone.from_bytes(stored)
        if tombstone is not None and tombstone.is_of_burial(record, self._shared.now_ns()):
            return False
        return await self._shared.store.get(owner.record(id_)) is not None

    async def _tombstone(self, text: str) -> Tombstone | None:
        """Return the tombstone of what stood behind an id, here or above, or by grant."""
        id_ = Pointer.parse(text).id if is_pointer(text) else text
        if not is_id(id_):
            return None
        tombstone = await self._tombstone_in(self._keys, id_)
        if tombstone is not None:
            return tombstone
        grant = await self._grant_of(id_)
        if grant is not None:
            tombstone = await self._tombstone_in(grant.owner, id_)
            if tombstone is not None and tombstone.stored_ns == grant.stored_ns:
                return tombstone
        return None if self._parent is None else await self._parent._tombstone(text)  # noqa: SLF001 - same class

    async def _tombstone_in(self, keys: ScopeKeys, id_: str) -> Tombstone | None:
        """Return the tombstone of what has gone from one scope, whatever the clock says."""
        store, key = self._shared.store, keys.gone(id_)
        stored = await store.get(key)
        tombstone = None if stored is None else Tombstone.from_bytes(stored)
        if tombstone is None or self._shared.expires is None:
            return tombstone
        if tombstone.gone_ns <= self._shared.now_ns():
            return tombstone
        # Not due, it may have been put with its artifact just now, or be of one that is being
        # removed. It is told only where it stays and no record does: that one went by itself, or
        # by another clock.
        is_gone = await store.get(keys.record(id_)) is None and await store.get(key) == stored
        return tombstone if is_gone else None

    async def here(self, text: str, *, recall: bool = False) -> Record | None:
        """Return the record behind `text` in this scope alone: a pointer, an id, else a name."""
        if is_pointer(text):
            return await self.record_of(Pointer.parse(text).id, recall=recall)
        if is_id(text):
            return await self.record_of(text, recall=recall)
        if not is_name(text):
            return None
        last: Record | None = None
        async for key in self._shared.store.keys(self._keys.name_folder(text)):
            record = await self._listed(key, recall=recall)
            if record is not None and await self.is_live(record):
                return record
            last = record or last
        return last

    async def own(self, text: str) -> Record | None:
        """Return the record behind `text` where this scope owns it."""
        await renew_runs(self._shared)
        record = await self.here(text)
        if record is None or not self._keys.is_payload_of(record.artifact.id, record.payload_key):
            return None
        return record

    async def record_of(self, id_: str, *, recall: bool = False) -> Record | None:
        """Return the record of an id in this scope, or of what another scope granted to it.

        With `recall`, one that this bank has seen before will do: records never change, and
        whoever goes on to the payload finds out when it is gone.

        Raises:
            DamagedRecordError: The record is damaged, or planted.
            StoreFormatError: It is of a later version.
        """
        record = await self.own_record_of(id_, recall=recall)
        if record is not None:
            return record
        # Always both look-ups, so that a foreign id costs what an unknown one does.
        grant = await self._grant_of(id_)
        # Never remembered: it may be revoked at any time.
        return None if grant is None else await self._granted_by(grant, id_)

    async def own_record_of(self, id_: str, *, recall: bool = False) -> Record | None:
        """Return the record of an id in this scope alone. Raises as `record_of`."""
        key = self._keys.record(id_)
        if recall:
            seen = self._shared.cache.get(key)
            if isinstance(seen, Record):
                return seen
        stored = await self._shared.store.get(key)
        if stored is None:
            self._shared.cache.drop(key)
            return None
        return self._kept(id_, stored)

    async def granted(self) -> list[Record]:
        """Return the live records that other scopes granted to this one, newest first."""
        await self._begin()
        records: list[Record] = []
        async for key in self._shared.store.keys(self._keys.grant("")):
            id_ = key.rpartition("/")[2]
            grant = await self._grant_of(id_) if is_id(id_) else None
            if grant is None:
                continue
            with suppress(StoreFormatError):  # one damaged record must not hide all others
                record = await self._granted_by(grant, id_)
                if record is not None and await self.is_live(record):
                    records.append(record)
        return sorted(records, key=lambda record: record.stored_ns, reverse=True)

    async def _grant_of(self, id_: str) -> Grant | None:
        stored = await self._shared.store.get(self._keys.grant(id_))
        return None if stored is None else Grant.from_bytes(stored)

    async def _granted_by(self, grant: Grant, id_: str) -> Record | None:
        """Return the record that a grant opens, None where that is gone, or was put anew."""
        stored = await self._shared.store.get(grant.owner.record(id_))
        if stored is None:
            return None
        record = own_record(stored, id_, grant.owner)
        return record if record.stored_ns == grant.stored_ns else None

    async def newest(self) -> AsyncGenerator[Record, None]:
        """Yield the scope's live records, newest first, without those that cannot be read."""
        await self._begin()
        holds = Holds(self._shared, self._keys)
        holders: Holders | None = None
        async for keys in _together(self._shared.store.keys(self._keys.listing_folder)):
            found = await self._look_up(keys)
            for key in keys:
                record = found.get(key)
                if record is None:
                    with suppress(StoreFormatError):  # one damaged record must not hide all others
                        record = await self._listed(key, recall=True)
                if record is None:
                    continue
                if record.is_expired(self._shared.now_ns()):
                    holders = await holds.holders() if holders is None else holders
                    if not await holds.holds(record, holders):
                        continue
                yield record

    async def _look_up(self, keys: Iterable[str]) -> dict[str, Record]:
        """Return what entries of a listing stand for, as far as it is found together."""
        ids = {key: id_ for key in keys if (id_ := listed_id(key)) is not None}
        found: dict[str, Record] = {}
        unseen: list[str] = []
        for key, id_ in ids.items():
            seen = self._shared.cache.get(self._keys.record(id_))
            if isinstance(seen, Record):
                found[key] = seen
            else:
                unseen.append(key)
        stored = await self._shared.gather([self._keys.record(ids[key]) for key in unseen])
        for key, each in zip(unseen, stored, strict=False):
            if each is not None:
                with suppress(StoreFormatError):  # it is read, and told, in its turn
                    found[key] = self._kept(ids[key], each)
        return {key: each for key, each in found.items() if is_stamped(key, each.stored_ns)}

    def _kept(self, id_: str, stored: bytes) -> Record:
        record = own_record(stored, id_, self._keys)
        self._shared.cache.put(self._keys.record(id_), record, len(stored))
        return record

    async def _listed(self, key: str, *, recall: bool) -> Record | None:
        """Return what a listing or name entry stands for, None where that is gone.

        An id may have been written anew, with an entry of its own: each stands for one writing.
        """
        id_ = listed_id(key)
        if id_ is None:
            return None
        record = await self.record_of(id_, recall=recall)
        if recall and record is not None and not is_stamped(key, record.stored_ns):
            record = await self.record_of(id_)  # what we remember may be older than the entry
        return record if record is not None and is_stamped(key, record.stored_ns) else None

    async def _nearest(self, text: str) -> list[str]:
        """Return at most 5 pointers among the newest 50, the most alike to `text` first."""
        looked_at: dict[str, Record] = {}
        async with aclosing(self.newest()) as newest:
            async for record in newest:
                looked_at[record.artifact.id] = record
                if len(looked_at) == _LOOKED_AT:
                    break
        nearest: list[str] = []
        for artifact in most_alike(text, [record.artifact for record in looked_at.values()]):
            await self.show(looked_at[artifact.id])
            name = "" if artifact.name is None else f" ({shown(artifact.name)})"
            nearest.append(artifact.pointer + name)
        return nearest


async def _together(keys: AsyncIterator[str]) -> AsyncGenerator[list[str], None]:
    """Yield keys in batches, the first ones short."""
    counts = chain(_FIRST_AT_ONCE, repeat(_AT_ONCE))
    batch: list[str] = []
    count = next(counts)
    async for key in keys:
        batch.append(key)
        if len(batch) == count:
            yield batch
            batch, count = [], next(counts)
    if batch:
        yield batch
