"""Quotas: what may lie in a scope, or a store; the least recently used makes room for others."""

import re
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from heapq import heapify, heappop, heappush

from ..errors import QuotaError, StoreError, StoreFormatError
from ..records import dataclass
from ._burial import BATCHES_AT_ONCE, Burial, together
from ._each import on_each
from ._keys import ScopeKeys, due_ns, is_stamped, listed_bytes, listed_id, listed_ns, owner_of
from ._record import Record, own_record
from ._scopes import scope_keys
from ._shared import Shared
from ._tally import Tally
from ._tombstone import TOLD_NS

_GOAL_SHARE = 0.9
"""Made room for at once, so that not each put has to look for some."""
_TOUCH_NS = 60 * 1_000_000_000
_MOST_TOUCHED = 10_000
_EXPIRED_NS = -1
"""Before any time of use."""
_TIME = re.compile(rb"[0-9]{1,20}")


def check_quota(shared: Shared, size_bytes: int, *, is_all: bool = True) -> None:
    """Pass where a payload may be kept at all, or `size_bytes` that are not all of it.

    Raises:
        QuotaError: It is larger than all that a scope or the store may hold.
    """
    if not shared.has_quota:
        return
    limits = shared.limits
    for whose, quota_bytes in (("scope", limits.scope_bytes), ("store", limits.store_bytes)):
        if quota_bytes is not None and size_bytes > quota_bytes:
            raise QuotaError(size_bytes, quota_bytes, whose, is_all=is_all)


async def touch(shared: Shared, record: Record) -> None:
    """Write down that an artifact is used, at most once a minute. A store that fails loses that."""
    key, now_ns = owner_of(record.payload_key).touched(record.artifact.id), shared.now_ns()
    touched = shared.touched
    if touched is None or 0 <= now_ns - touched.get(key, 0) < _TOUCH_NS:
        return
    if len(touched) >= _MOST_TOUCHED:
        touched.clear()
    touched[key] = now_ns
    with suppress(StoreError):
        await shared.put_for(key, str(now_ns).encode(), TOLD_NS)


async def make_room(shared: Shared, keys: ScopeKeys, record: Record) -> list[str]:
    """Bring a scope and the store below their quotas, after an artifact was put, which stays.

    Returns the ids of what went. A store that fails leaves that to the next put: this one is done.
    """
    limits = shared.limits
    went: list[str] = []
    try:
        if limits.scope_bytes is not None:
            went += await _hold(shared, keys, limits.scope_bytes, record)
        if limits.store_bytes is not None:
            went += await _hold(shared, None, limits.store_bytes, record)
    except StoreError as failure:
        import logging

        logging.getLogger("coatcheck.bank").warning("no room was made for a quota: %s", failure)
    return went


async def _hold(
    shared: Shared, scope: ScopeKeys | None, quota_bytes: int, put: Record
) -> list[str]:
    place = "" if scope is None else scope.segment
    async with shared.alone(f"quota {place}"):
        tally = shared.tallies.get(place)
        if tally is not None:
            tally.add(put.artifact.size_bytes)
        if tally is None or tally.is_stale(shared.now_ns(), quota_bytes):
            # Without what was held: the runs may be over.
            tally = Tally(await _size_bytes(shared, scope), shared.now_ns())
            shared.tallies[place] = tally
        if not tally.is_over(quota_bytes):
            return []
        goal_bytes, spared = int(quota_bytes * _GOAL_SHARE), put.artifact.id
        room = await evict(shared, await _scopes(shared, scope), goal_bytes, spared=spared)
        held_bytes = room.left_bytes if room.left_bytes > quota_bytes else 0
        shared.tallies[place] = Tally(room.left_bytes, shared.now_ns(), held_bytes=held_bytes)
        return room.evicted


async def _size_bytes(shared: Shared, scope: ScopeKeys | None) -> int:
    scopes = await _scopes(shared, scope)
    return sum([each.size_bytes for keys in scopes async for each in listed(shared, keys)])


async def _scopes(shared: Shared, scope: ScopeKeys | None) -> list[ScopeKeys]:
    return [scope] if scope is not None else [keys async for keys in scope_keys(shared.store)]


@dataclass(frozen=True, slots=True)
class Listed:
    """One artifact, as a listing tells of it."""

    stored_ns: int
    id: str
    size_bytes: int
    key: str


async def listed(shared: Shared, keys: ScopeKeys) -> AsyncGenerator[Listed, None]:
    """Yield what a scope lists, newest first."""
    async for key in shared.store.keys(keys.listing_folder):
        id_ = listed_id(key)
        if id_ is not None:
            yield Listed(listed_ns(key), id_, listed_bytes(key), key)


@dataclass(slots=True)
class Room:
    """What was made, and what is left."""

    left_bytes: int
    evicted: list[str] = field(default_factory=list[str])
    """Ids."""
    evicted_bytes: int = 0
    held: list[str] = field(default_factory=list[str])
    """Ids of what could have gone, but live runs hold it."""


async def evict(
    shared: Shared,
    scopes: Sequence[ScopeKeys],
    goal_bytes: int,
    *,
    spared: str | None = None,
    without: Container[str] = (),
    dry_run: bool = False,
    expect: Callable[[int], object] = lambda _count: None,
    advance: Callable[[int], object] = lambda _count: None,
) -> Room:
    """Remove artifacts of some scopes until what is left fits: the expired, then the least used.

    What a live run holds stays, whatever it takes.

    Args:
        shared: What all scopes share.
        scopes: Of which artifacts may go.
        goal_bytes: What may be left of them together.
        spared: The id of one that stays.
        without: Ids of what is as good as gone, and takes no room.
        dry_run: Only count.
        expect: Called with how many more are looked at, as they may go.
        advance: Called with how many of them are done with.
    """
    queue = _Queue(shared)
    for keys in scopes:
        await queue.add(keys, without)
    room = Room(queue.size_bytes)

    async def remove(batch: tuple[ScopeKeys, list[Listed]]) -> None:
        keys, some = batch
        burial = Burial(shared, keys, dry_run=dry_run)
        going = await _standing(burial, some, room)
        going.pop(spared or "", None)
        went, held = await burial.bury(list(going.values()))
        room.held += [record.artifact.id for record in held]
        # What another one has removed meanwhile takes no room either.
        left = going.keys() - {record.artifact.id for record in held}
        room.left_bytes -= sum(going[id_].artifact.size_bytes for id_ in left)
        await queue.forget([keys.touched(each.artifact.id) for each in went], dry_run=dry_run)
        for record in went:
            room.evicted.append(record.artifact.id)
            room.evicted_bytes += record.artifact.size_bytes
        advance(len(some))

    while room.left_bytes > goal_bytes:
        some = await queue.take(room.left_bytes - goal_bytes)
        if not some:
            break
        expect(len(some))
        await on_each(_by_scope(some), remove, at_once=BATCHES_AT_ONCE)
    return room


def _by_scope(
    artifacts: Iterable[tuple[Listed, ScopeKeys]],
) -> Iterator[tuple[ScopeKeys, list[Listed]]]:
    """Yield artifacts by as many of one scope as are buried at once."""
    of_scope: dict[ScopeKeys, list[Listed]] = {}
    for each, keys in artifacts:
        of_scope.setdefault(keys, []).append(each)
    for keys, some in of_scope.items():
        for batch in together(some):
            yield keys, batch


async def _standing(burial: Burial, listed: Sequence[Listed], room: Room) -> dict[str, Record]:
    """Return the records of listed artifacts, by id.

    One that is gone, or was put anew, takes no room. What one names that cannot be read is
    unknown, and stays.
    """
    found = await burial.records([each.id for each in listed])
    standing: dict[str, Record] = {}
    for each in listed:
        record = found[each.id]
        if record is None or (
            isinstance(record, Record) and not is_stamped(each.key, record.stored_ns)
        ):
            room.left_bytes -= each.size_bytes
        elif isinstance(record, Record):
            standing[each.id] = record
    return standing


class _Queue:
    """Artifacts: those whose time has passed, then the others, the least recently used first."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._waiting: list[tuple[int, int, str, Listed, ScopeKeys]] = []
        self._touched: set[str] = set()
        self._due: set[str] = set()
        self._looked_up: set[str] = set()
        self.size_bytes = 0

    async def add(self, keys: ScopeKeys, without: Container[str]) -> None:
        """Add all artifacts of a scope."""
        due = await _due_ids(self._shared, keys)
        async for each in listed(self._shared, keys):
            if each.id in without:
                continue
            used_ns = each.stored_ns
            if each.id in due:
                self._due.add(each.key)
                used_ns = _EXPIRED_NS
            self._waiting.append((used_ns, each.stored_ns, each.key, each, keys))
            self.size_bytes += each.size_bytes
        self._touched |= {key async for key in self._shared.store.keys(keys.touched(""))}
        heapify(self._waiting)

    async def take(self, size_bytes: int) -> list[tuple[Listed, ScopeKeys]]:
        """Return those that come first and take that much together, or all there are."""
        taken: list[tuple[Listed, ScopeKeys]] = []
        while size_bytes > 0 and self._waiting:
            used_ns, stored_ns, key, each, keys = heappop(self._waiting)
            told_ns = await self._used_ns(used_ns, each, keys)
            if told_ns != used_ns:
                heappush(self._waiting, (told_ns, stored_ns, key, each, keys))
                continue
            taken.append((each, keys))
            size_bytes -= each.size_bytes
        return taken

    async def _used_ns(self, used_ns: int, each: Listed, keys: ScopeKeys) -> int:
        """Return when one was used, by what is read only of those whose turn has come."""
        touched = keys.touched(each.id)
        is_touched = touched in self._touched
        if is_touched:
            self._touched.remove(touched)
            self._looked_up.add(touched)
        if each.key in self._due:
            self._due.remove(each.key)
            if await self._is_expired(each, keys):
                return _EXPIRED_NS
            used_ns = each.stored_ns
        if is_touched:
            used_ns = max(used_ns, _time_ns(await self._shared.store.get(touched)))
        return used_ns

    async def _is_expired(self, each: Listed, keys: ScopeKeys) -> bool:
        """Return whether it has expired: what is due may be the tombstone of an earlier one."""
        stored = await self._shared.store.get(keys.record(each.id))
        if stored is None:
            return True
        try:
            return own_record(stored, each.id, keys).is_expired(self._shared.now_ns())
        except StoreFormatError:
            return False

    async def forget(self, touched: Sequence[str], *, dry_run: bool) -> None:
        """Remove what says when artifacts were used that have gone, where there are such keys."""
        if not dry_run:
            await self._shared.delete_each([key for key in touched if key in self._looked_up])


async def _due_ids(shared: Shared, keys: ScopeKeys) -> set[str]:
    """Return the ids of a scope for which something is due, where that is not done by itself."""
    due: set[str] = set()
    if shared.expires is not None:
        return due
    now_ns = shared.now_ns()
    async for key in shared.store.keys(keys.due_folder):
        if due_ns(key) > now_ns:
            break
        due.add(listed_id(key) or "")
    return due


def _time_ns(stored: bytes | None) -> int:
    return int(stored) if stored is not None and _TIME.fullmatch(stored) else 0
