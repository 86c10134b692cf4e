"""What a collection does in one scope."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import DamagedRecordError, StoreFormatError
from ..records import is_id
from ..stores import SupportsAge
from ._each import on_each
from ._handles import is_told
from ._holds import Holds
from ._keys import ScopeKeys, due_ns, is_stamped, listed_id, listed_ns
from ._record import Grant, Record, own_record
from ._removal import WRITTEN_NS, Remover
from ._run import leases
from ._shared import Shared
from ._tombstone import TOLD_NS, Tombstone

_SECOND_NS = 1_000_000_000
_ORPHAN_SECONDS = 3_600.0
"""A payload without a record that is younger may be of a writer that is not done."""
_LAPSED_NS = 3_600 * _SECOND_NS
"""A run that comes back sooner after its lease has lapsed finds its pins."""


@dataclass(slots=True, kw_only=True)
class Collected:
    """What a collection removed, or with `dry_run` would have removed."""

    scopes: int = 0
    artifacts: int = 0
    """Looked at."""
    expired: int = 0
    """Removed, as their time had passed."""
    evicted: int = 0
    """Removed, as they were older than asked for, or had to make room."""
    size_bytes: int = 0
    """Of the payloads of artifacts that were removed."""
    held: int = 0
    """Stayed, as a live run holds them."""
    relisted: int = 0
    """Stood, but were not listed."""
    payloads: int = 0
    """Without a record, removed."""
    tombstones: int = 0
    """Removed after their week."""
    leftovers: int = 0
    """Other keys that were of no use any more: lapsed leases, pins, grants, handles, entries."""
    damaged: list[str] = field(default_factory=list[str])
    """Pointers of artifacts whose record cannot be read; they stay."""


class Progress:
    """Tells how much of how much work is done."""

    def __init__(self, tell: Callable[[int, int], object]) -> None:
        self._tell = tell
        self._done = self._total = 0

    def expect(self, count: int) -> None:
        """Note that so much more is to be done."""
        self._total += count
        self._tell(self._done, self._total)

    def advance(self, count: int = 1) -> None:
        """Note that so much is done."""
        self._done = min(self._done + count, self._total)
        self._tell(self._done, self._total)


class Collecting:
    """What is done in one scope.

    Args:
        shared: What all scopes share.
        keys: Those of the scope.
        done: What is counted.
        progress: What is told.
        held: Ids of what stays, as a live run holds it.
        would_go: Where nothing is to be removed, ids of what would be; else None.
    """

    def __init__(
        self,
        shared: Shared,
        keys: ScopeKeys,
        done: Collected,
        progress: Progress,
        *,
        held: set[str],
        would_go: set[str] | None,
    ) -> None:
        self._shared = shared
        self._store = shared.store
        self._keys = keys
        self._done = done
        self._progress = progress
        self._held = held
        self._would_go = would_go
        self._touched: set[str] = set()
        self._remover = Remover(shared, keys)
        self._holds = Holds(shared, keys)
        self._ages = shared.store if isinstance(shared.store, SupportsAge) else None

    async def run(self, older_than_seconds: float | None) -> None:
        """Mend the scope, then remove what is due and, where that is asked for, what is old."""
        forgets = self._shared.expires is not None
        # Payloads first and records last: what is written meanwhile is never without a record.
        payloads = [] if forgets else await _all(self._store.keys(self._keys.payload("")))
        listing = await _all(self._store.keys(self._keys.listing_folder))
        self._done.artifacts += len(listing)
        if not forgets:
            await self._drop_leases()
            await self._mend(payloads, listing)  # first: what is listed anew may be due
            await self._each(await _all(self._store.keys(self._keys.due_folder)), self._end)
        if older_than_seconds is not None:
            before_ns = self._shared.now_ns() - int(older_than_seconds * _SECOND_NS)
            listing = await _all(self._store.keys(self._keys.listing_folder))
            old = [key for key in listing if listed_id(key) and listed_ns(key) < before_ns]
            self._progress.expect(len(old))
            await self._each(old, self._evict)

    async def _mend(self, payloads: list[str], listing: list[str]) -> None:
        records = {_last(key) for key in await _all(self._store.keys(self._keys.record("")))}
        self._progress.expect(len(records))
        listed = Counter(id_ for key in listing if (id_ := listed_id(key)) is not None)
        await self._each((id_ for id_ in records if id_ not in listed and is_id(id_)), self._relist)
        doubted = [key for key in listing if _is_doubted(listed_id(key), records, listed)]
        await self._each(doubted, self._unlist)
        stored = Counter(_last(key)[:36] for key in payloads)
        orphans = [key for key in payloads if _is_doubted(_last(key)[:36], records, stored)]
        await self._each(orphans, self._sweep)
        self._touched = set(await _all(self._store.keys(self._keys.touched(""))))
        await self._each([key for key in self._touched if _last(key) not in records], self._drop)
        await self._each(await _all(self._store.keys(self._keys.grant(""))), self._drop_grant)
        await self._each(await _all(self._store.keys(self._keys.handle(""))), self._drop_handle)
        self._progress.advance(len(records))

    async def _drop_leases(self) -> None:
        """Remove the leases of runs that are long over, and what those had pinned."""
        found = [lease async for lease in leases(self._shared, self._keys, since_ns=_LAPSED_NS)]
        live = {segment for segment, _, is_live in found if is_live}
        for segment, key, is_live in found:
            if is_live:
                continue
            if segment not in live:
                pins = await _all(self._store.keys(self._keys.pin(segment, "")))
                await self._each(pins, self._drop)
            await self._drop(key)  # last, as it leads to them

    async def _end(self, key: str) -> None:
        """Do what is due for an artifact, or its tombstone."""
        id_ = listed_id(key)
        if id_ is None or due_ns(key) > self._shared.now_ns():
            return
        record = await self._record_of(id_)
        if record is None:
            await self._end_tombstone(id_)
        elif record.expires_ns == due_ns(key):
            went = await self._bury(record)
            self._done.expired += went
            return
        await self._delete(key)

    async def _end_tombstone(self, id_: str) -> None:
        key = self._keys.gone(id_)
        stored = await self._store.get(key)
        tombstone = None if stored is None else Tombstone.from_bytes(stored)
        is_told = tombstone is not None and self._shared.now_ns() < tombstone.gone_ns + TOLD_NS
        if stored is not None and not is_told:
            self._done.tombstones += 1
            await self._delete(key)

    async def _evict(self, key: str) -> None:
        record = await self._record_of(listed_id(key) or "")
        if record is not None and is_stamped(key, record.stored_ns):
            went = await self._bury(record)
            self._done.evicted += went
        self._progress.advance()

    async def _bury(self, record: Record) -> int:
        """Remove an artifact that no live run holds; return how many went."""
        if await self._holds.holds(record):
            self._held.add(record.artifact.id)
            return 0
        if self._would_go is None:
            went = await self._remover.bury(record)
            if (touched := self._keys.touched(record.artifact.id)) in self._touched:
                await self._store.delete(touched)
        else:  # it may have expired and be old too
            went = record.artifact.id not in self._would_go
            self._would_go.add(record.artifact.id)
        self._done.size_bytes += record.artifact.size_bytes if went else 0
        return int(went)

    async def _relist(self, id_: str) -> None:
        record = await self._record_of(id_)
        if record is None or record.stored_ns > self._shared.now_ns() - WRITTEN_NS:
            return
        stands = self._would_go is not None or await self._remover.enter(record)
        self._done.relisted += stands

    async def _unlist(self, key: str) -> None:
        record = await self._record_of(listed_id(key) or "")
        if record is None or not is_stamped(key, record.stored_ns):
            await self._drop(key)

    async def _sweep(self, key: str) -> None:
        """Remove a payload that no record names, once no writer can be about to name it."""
        id_ = _last(key)[:36]
        if self._ages is None or not is_id(id_) or not self._keys.is_payload_of(id_, key):
            return
        age_seconds = await self._ages.age_seconds(key)
        if age_seconds is None or age_seconds < _ORPHAN_SECONDS:
            return
        record = await self._record_of(id_)
        if record is None or record.payload_key != key:
            self._done.payloads += 1
            await self._delete(key)

    async def _drop_grant(self, key: str) -> None:
        """Remove a grant of what is gone, and of which nothing is told any more."""
        stored, id_ = await self._store.get(key), _last(key)
        grant = None if stored is None else Grant.from_bytes(stored)
        if grant is not None:
            for there in (grant.owner.record(id_), grant.owner.gone(id_)):
                if await self._store.get(there) is not None:
                    return
        await self._drop(key)

    async def _drop_handle(self, key: str) -> None:
        stored = await self._store.get(key)
        if stored is not None and not is_told(stored, self._shared.now_ns()):
            await self._drop(key)

    async def _drop(self, key: str) -> None:
        self._done.leftovers += 1
        await self._delete(key)

    async def _delete(self, key: str) -> None:
        if self._would_go is None:
            await self._store.delete(key)

    async def _record_of(self, id_: str) -> Record | None:
        """Return the record of an id, None where there is none.

        Raises:
            StoreFormatError: It cannot be read.
        """
        stored = await self._store.get(self._keys.record(id_))
        return None if stored is None else own_record(stored, id_, self._keys)

    async def _each(self, items: Iterable[str], work: Callable[[str], Awaitable[object]]) -> None:
        async def attempt(item: str) -> None:
            try:
                await work(item)
            except DamagedRecordError as error:  # its owner has to delete it
                if error.pointer not in self._done.damaged:
                    self._done.damaged.append(error.pointer)
            except StoreFormatError:  # of a later version, which knows what to do with it
                return

        await on_each(items, attempt)


async def _all(keys: AsyncIterator[str]) -> list[str]:
    return [key async for key in keys]


def _last(key: str) -> str:
    return key.rpartition("/")[2]


def _is_doubted(id_: str | None, records: set[str], counts: Mapping[str, int]) -> bool:
    """Return whether a key may stand for nothing: its id has no record, or others have it too."""
    return id_ is not None and (id_ not in records or counts[id_] > 1)
