"""Cells hold artifacts: whatever else would remove one, it lives as long as the cell."""

from collections.abc import AsyncIterator

import pytest

from coatcheck import Artifact, Bank, Limits
from coatcheck.bank.collection import collect
from coatcheck.bank.migration import migrate
from coatcheck.errors import ExpiredPointerError, UnknownPointerError
from coatcheck.stores import MemoryStore, Store
from coatcheck.testing import ManualClock

TEN_MINUTES = 600.0
DAY = 86_400.0
LARGE = "x" * 5_000


async def held(store: Store, scope: str = "default") -> list[str]:
    return [key async for key in store.keys(f"s/{scope}/held/")]


class Killed(BaseException):
    """Ends a writer where it stands."""


class Dying(MemoryStore):
    """A store whose writer is killed before it writes the first key with `word` in it."""

    def __init__(self) -> None:
        super().__init__()
        self.word: str | None = None

    def _pass(self, key: str) -> None:
        if self.word is not None and self.word in key:
            raise Killed

    async def put(self, key: str, payload: bytes) -> None:
        self._pass(key)
        await super().put(key, payload)

    async def create(self, key: str, payload: bytes) -> bool:
        self._pass(key)
        return await super().create(key, payload)

    async def delete(self, key: str) -> None:
        self._pass(key)
        await super().delete(key)


async def test_an_artifact_outlives_its_time_in_a_cell_and_not_after_it(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    kept, other = [await bank.put(LARGE, ttl_seconds=TEN_MINUTES) for _ in range(2)]
    await bank.cells.create("a", b"x", kept)

    clock.advance(TEN_MINUTES + 1)
    await collect(any_store, clock=clock)
    assert await bank.get(kept.pointer) == LARGE
    assert [each.id async for each in Bank(any_store, clock=clock).list()] == [kept.id]
    with pytest.raises(ExpiredPointerError):
        await bank.get(other.pointer)

    assert await bank.cells.delete("a")
    await collect(any_store, clock=clock)
    with pytest.raises(ExpiredPointerError):
        await bank.get(kept.pointer)
    assert await held(any_store) == []


async def test_neither_a_collection_by_age_nor_one_by_size_takes_what_a_cell_holds(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    kept, other = [await bank.put(LARGE) for _ in range(2)]
    await bank.cells.put("a", b"x", kept)
    clock.advance(10)

    by_age = await collect(any_store, older_than_seconds=5, clock=clock)
    by_size = await collect(any_store, quota_bytes=0, clock=clock)

    assert (by_age.evicted, by_age.held, by_size.evicted, by_size.held) == (1, 1, 0, 1)
    assert await bank.get(kept.pointer) == LARGE
    with pytest.raises(ExpiredPointerError):
        await bank.get(other.pointer)


async def test_a_quota_takes_others_before_what_a_cell_holds(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, limits=Limits(scope_bytes=20_000), clock=clock)
    kept = await bank.put(LARGE)
    await bank.cells.put("a", b"x", kept)
    others: list[Artifact] = []
    for _ in range(10):
        clock.advance(1)
        others.append(await bank.put(LARGE))

    assert (await bank.usage()).size_bytes <= 20_000
    assert await bank.get(kept.pointer) == LARGE
    assert await bank.find(others[0].pointer) is None


async def test_cleanup_leaves_what_a_cell_holds(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock)
    kept, _ = [await bank.put(LARGE) for _ in range(2)]
    await bank.cells.put("a", b"x", kept)
    clock.advance(10)

    assert await bank.cleanup(older_than_seconds=5) == 1
    assert await bank.get(kept.pointer) == LARGE


async def test_a_cell_that_is_overwritten_holds_what_it_has_now_alone(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    before, after = [await bank.put(LARGE, ttl_seconds=TEN_MINUTES) for _ in range(2)]
    await bank.cells.put("a", b"x", before)
    await bank.cells.put("b", b"x", before)
    await bank.cells.put("a", b"y", after)
    await bank.cells.put("b", b"y")

    clock.advance(TEN_MINUTES + 1)

    assert len(await held(any_store)) == 1
    assert await bank.get(after.pointer) == LARGE
    with pytest.raises(ExpiredPointerError):
        await bank.get(before.pointer)


async def test_two_cells_hold_the_same_until_the_last_one_goes(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    artifact = await bank.put(LARGE, ttl_seconds=TEN_MINUTES)
    for name in ("a", "b"):
        await bank.cells.create(name, b"x", artifact)
    clock.advance(TEN_MINUTES + 1)

    await bank.cells.delete("a")
    assert await bank.get(artifact.pointer) == LARGE
    await bank.cells.delete("b")

    with pytest.raises(ExpiredPointerError):
        await bank.get(artifact.pointer)


async def test_the_cell_of_a_scope_holds_what_its_bank_reads_above(
    any_store: Store, clock: ManualClock
) -> None:
    above = Bank(any_store, scope="above", clock=clock)
    artifact = await above.put(LARGE, ttl_seconds=TEN_MINUTES)
    below = above.scoped("below", inherit=True)
    await below.cells.put("a", b"x", artifact)

    clock.advance(TEN_MINUTES + 1)
    await collect(any_store, clock=clock)

    assert await below.get(artifact.pointer) == LARGE
    assert len(await held(any_store, "above")) == 1


async def test_a_cell_that_is_there_keeps_what_it_holds_when_another_is_not_created(
    any_store: Store,
) -> None:
    bank = Bank(any_store)
    one, other = [await bank.put(LARGE) for _ in range(2)]
    await bank.cells.create("a", b"x", one)

    assert not await bank.cells.create("a", b"y", other)

    (key,) = await held(any_store)
    assert one.id in key


async def test_no_cell_is_written_for_what_is_gone(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock)
    deleted, expired = await bank.put("x"), await bank.put("y", ttl_seconds=1)
    await bank.delete(deleted.pointer)
    clock.advance(2)

    with pytest.raises(UnknownPointerError):
        await bank.cells.put("a", b"x", deleted)
    with pytest.raises(ExpiredPointerError):
        await bank.cells.create("a", b"x", expired)

    assert await bank.cells.count() == 0
    assert await held(store) == []


@pytest.mark.parametrize("word", ["/memory/", "/held/"])
async def test_a_writer_that_is_killed_while_it_creates_leaves_nothing_that_gc_does_not_mend(
    word: str, clock: ManualClock
) -> None:
    store = Dying()
    bank = Bank(store, clock=clock)
    artifact = await bank.put(LARGE, ttl_seconds=TEN_MINUTES)
    store.word = word
    with pytest.raises(Killed):
        await bank.cells.create("a", b"x", artifact)
    store.word = None
    assert await bank.cells.get("a") is None

    clock.advance(TEN_MINUTES + 1)
    await collect(store, clock=clock)

    assert await held(store) == []
    with pytest.raises(ExpiredPointerError):
        await bank.get(artifact.pointer)


async def test_a_hold_whose_cell_is_still_to_come_is_not_taken_for_a_killed_writers(
    clock: ManualClock,
) -> None:
    store = Dying()
    bank = Bank(store, clock=clock)
    artifact = await bank.put(LARGE, ttl_seconds=1)
    store.word = "/memory/"
    with pytest.raises(Killed):
        await bank.cells.create("a", b"x", artifact)
    store.word = None

    await collect(store, clock=lambda: clock() - 1)  # on another machine
    clock.advance(59.9)
    assert (await collect(store, clock=clock)).expired == 0
    assert await bank.get(artifact.pointer) == LARGE
    clock.advance(0.1)

    assert (await collect(store, clock=clock)).expired == 1


async def test_a_writer_that_is_killed_while_it_overwrites_leaves_one_of_both_held(
    clock: ManualClock,
) -> None:
    store = Dying()
    bank = Bank(store, clock=clock)
    before, after = [await bank.put(LARGE, ttl_seconds=TEN_MINUTES) for _ in range(2)]
    await bank.cells.create("a", b"before", before)
    clock.advance(100)
    store.word = before.id  # the last it does: to let go of what was in the cell
    with pytest.raises(Killed):
        await bank.cells.put("a", b"after", after)
    store.word = None
    clock.advance(TEN_MINUTES)

    done = await collect(store, clock=clock)

    assert await bank.cells.get("a") == b"after"
    assert await bank.get(after.pointer) == LARGE
    assert (done.expired, done.held) == (1, 1)


async def test_gc_takes_no_notice_of_holds_that_others_wrote(clock: ManualClock) -> None:
    store = MemoryStore()
    bank = Bank(store, clock=clock)
    artifact = await bank.put(LARGE, ttl_seconds=1)
    for number, stored in enumerate((b"", b"x", b"9 s/default/memory/none", b"\xff 1")):
        await store.put(f"s/default/held/{artifact.id}-{number:016x}", stored)
    clock.advance(100)

    done = await collect(store, clock=clock)

    assert (done.leftovers, done.expired) == (4, 1)


async def test_what_a_deleted_artifact_was_held_by_goes_with_a_collection(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put(LARGE)
    await bank.cells.put("a", b"x", artifact)

    assert await bank.delete(artifact.pointer)  # goes before any hold
    clock.advance(60)
    await collect(store, clock=clock)

    assert await held(store) == []
    assert await bank.cells.get("a") == b"x"


async def test_a_migration_takes_along_what_cells_hold(clock: ManualClock) -> None:
    source, target = MemoryStore(), MemoryStore()
    bank = Bank(source, clock=clock)
    artifact = await bank.put(LARGE, ttl_seconds=1)
    await bank.cells.put("a", b"x", artifact)
    clock.advance(DAY)

    await migrate(source, target, clock=clock)
    await collect(target, clock=clock)

    assert await Bank(target, clock=clock).get(artifact.pointer) == LARGE


class Counting(MemoryStore):
    """A store that counts what it is asked for in folders of holds."""

    asked = 0

    async def keys(self, folder: str) -> AsyncIterator[str]:
        self.asked += "/held/" in folder
        async for key in super().keys(folder):
            yield key


async def test_nobody_asks_for_holds_but_of_what_is_to_go(clock: ManualClock) -> None:
    store = Counting()
    bank = Bank(store, clock=clock)

    artifact = await bank.put(LARGE, ttl_seconds=TEN_MINUTES)
    await bank.get(artifact.pointer)
    await bank.read(artifact.pointer)
    assert [each.id async for each in bank.list()] == [artifact.id]
    await bank.cells.put("a", b"x", artifact)

    assert store.asked == 0
