"""What a collection does in one scope."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field

from ..errors import DamagedRecordError, StoreFormatError
from ..records import dataclass, is_id
from ..stores import SupportsAge
from ._burial import BATCHES_AT_ONCE, Burial, together
from ._cells import is_left_over
from ._each import on_each
from ._handles import is_told
from ._keys import ScopeKeys, due_ns, held_id, is_stamped, listed_id, listed_ns
from ._record import Grant, Record, own_record
from ._removal import WRITTEN_NS, Remover
from ._run import leases
from ._shared import Shared
from ._tombstone import TOLD_NS, Tombstone

_SECOND_NS = 1_000_000_000
_ORPHAN_SECONDS = 24 * 3_600.0
"""A payload without a record that is younger may be of a writer that is not done.

In an object store its age may be that of its upload, and a stream may take hours.
"""
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
    """Stayed, as a live run or an entry of memory holds them."""
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
        went: Ids of what was removed.
        dry_run: Remove nothing; in `went` is what would be.
    """

    def __init__(
        self,
        shared: Shared,
        keys: ScopeKeys,
        done: Collected,
        progress: Progress,
        *,
        held: set[str],
        went: set[str],
        dry_run: bool,
    ) -> None:
        self._shared = shared
        self._store = shared.store
        self._keys = keys
        self._done = done
        self._progress = progress
        self._held = held
        self._went = went
        self._dry_run = dry_run
        self._touched: set[str] = set()
        self._listed_anew: list[str] = []
        self._remover = Remover(shared, keys)
        self._burial = Burial(shared, keys, dry_run=dry_run)
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
            await self._each(await _all(self._store.keys(self._keys.held_folder)), self._drop_hold)
            await self._mend(payloads, listing)  # first: what is listed anew may be due
            now_ns = self._shared.now_ns()
            due = await _all(self._store.keys(self._keys.due_folder))
            ended = {key: id_ for key in due if due_ns(key) <= now_ns and (id_ := listed_id(key))}
            await on_each(together(ended.items()), self._end, at_once=BATCHES_AT_ONCE)
        if older_than_seconds is not None:
            before_ns = self._shared.now_ns() - int(older_than_seconds * _SECOND_NS)
            listing += self._listed_anew
            old = {
                key: id_
                for key in listing
                if listed_ns(key) < before_ns
                and (id_ := listed_id(key)) is not None
                and id_ not in self._went
            }
            self._progress.expect(len(old))
            await on_each(together(old.items()), self._evict, at_once=BATCHES_AT_ONCE)

    async def _mend(self, payloads: list[str], listing: list[str]) -> None:
        records = {_last(key) for key in await _all(self._store.keys(self._keys.record("")))}
        self._progress.expect(len(records))
        listed = {key: id_ for key in listing if (id_ := listed_id(key)) is not None}
        unlisted = records.difference(listed.values())
        await self._each((id_ for id_ in unlisted if is_id(id_)), self._relist)
        await self._each(_doubted(listed, records), self._unlist)
        stored = {key: _last(key)[:36] for key in payloads}
        await self._each(_doubted(stored, records), self._sweep)
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

    async def _end(self, due: Sequence[tuple[str, str]]) -> None:
        """Do what is due for artifacts, or their tombstones: keys that say so, and ids."""
        found = await self._burial.records([id_ for _, id_ in due])
        expired: list[Record] = []
        for key, id_ in due:
            record = found[id_]
            if isinstance(record, StoreFormatError):
                self._pass_over(record)
            elif record is not None and record.expires_ns == due_ns(key):
                expired.append(record)
            else:
                if record is None:
                    await self._end_tombstone(id_)
                await self._delete(key)
        went = await self._bury(expired)
        self._done.expired += went  # not before: others count meanwhile

    async def _end_tombstone(self, id_: str) -> None:
        key = self._keys.gone(id_)
        stored = await self._store.get(key)
        tombstone = None if stored is None else Tombstone.from_bytes(stored)
        is_told = tombstone is not None and self._shared.now_ns() < tombstone.gone_ns + TOLD_NS
        if stored is not None and not is_told:
            self._done.tombstones += 1
            await self._delete(key)

    async def _evict(self, old: Sequence[tuple[str, str]]) -> None:
        """Remove artifacts that are older than asked for: keys that list them, and ids."""
        found = await self._burial.records([id_ for _, id_ in old])
        records: dict[str, Record] = {}
        for key, id_ in old:
            record = found[id_]
            if isinstance(record, StoreFormatError):
                self._pass_over(record)
            elif record is not None and is_stamped(key, record.stored_ns):
                records[id_] = record
        went = await self._bury(list(records.values()))
        self._done.evicted += went
        self._progress.advance(len(old))

    async def _bury(self, records: Sequence[Record]) -> int:
        """Remove artifacts that no live run holds; return how many went."""
        went, held = await self._burial.bury(records)
        self._held.update(record.artifact.id for record in held)
        self._went.update(record.artifact.id for record in went)
        if not self._dry_run:
            touched = [self._keys.touched(record.artifact.id) for record in went]
            await self._shared.delete_each([key for key in touched if key in self._touched])
        self._done.size_bytes += sum(record.artifact.size_bytes for record in went)
        return len(went)

    async def _relist(self, id_: str) -> None:
        record = await self._record_of(id_)
        if record is None or record.stored_ns > self._shared.now_ns() - WRITTEN_NS:
            return
        if self._dry_run or await self._remover.enter(record):
            self._done.relisted += 1
            artifact = record.artifact
            self._listed_anew.append(
                self._keys.listing(record.stored_ns, artifact.id, artifact.size_bytes)
            )

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

    async def _drop_hold(self, key: str) -> None:
        """Remove what says that a cell holds an artifact, where either is gone."""
        stored = await self._store.get(key)
        if stored is not None and (
            await is_left_over(self._shared, key, stored)
            or await self._store.get(self._keys.record(held_id(key))) is None
        ):
            await self._drop(key)

    async def _drop_handle(self, key: str) -> None:
        stored = await self._store.get(key)
        if stored is not None and not is_told(stored, self._shared.now_ns()):
            await self._drop(key)

    async def _drop(self, key: str) -> None:
        self._done.leftovers += 1
        await self._delete(key)

    async def _delete(self, key: str) -> None:
        if not self._dry_run:
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
            except StoreFormatError as error:
                self._pass_over(error)

        await on_each(items, attempt)

    def _pass_over(self, error: StoreFormatError) -> None:
        """Note a record that is damaged: its owner has to delete it.

        One of a later version is for whoever knows that.
        """
        if isinstance(error, DamagedRecordError) and error.pointer not in self._done.damaged:
            self._done.damaged.append(error.pointer)


async def _all(keys: AsyncIterator[str]) -> list[str]:
    return [key async for key in keys]


def _last(key: str) -> str:
    return key.rpartition("/")[2]


def _doubted(ids: Mapping[str, str], records: AbstractSet[str]) -> list[str]:
    """Return the keys that may stand for nothing: their id has no record, or others have it too."""
    counts = Counter(ids.values())
    return [key for key, id_ in ids.items() if id_ not in records or counts[id_] > 1]
