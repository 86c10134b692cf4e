"""A run that wakes up, or waits for another one within it, keeps what it was shown."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from coatcheck import Bank
from coatcheck.bank.collection import collect
from coatcheck.errors import ExpiredPointerError, StoreUnavailableError
from coatcheck.records import Artifact
from coatcheck.stores import MemoryStore, Store
from coatcheck.testing import ManualClock

TEN_MINUTES = 600.0
TWO_HOURS = 7_200.0


async def ids_of(bank: Bank) -> list[str]:
    return [artifact.id async for artifact in bank.list()]


async def lists_it(bank: Bank, own: Artifact) -> bool:
    return await ids_of(bank) == [own.id]


async def lists_it_with_what_was_granted(bank: Bank, own: Artifact) -> bool:
    return [artifact.id async for artifact in bank.list(granted=True)] == [own.id]


async def cleans_nothing_up(bank: Bank, own: Artifact) -> bool:
    return await bank.cleanup() == 0


async def puts_the_key_again(bank: Bank, own: Artifact) -> bool:
    return (await bank.put("another value", key="k")).id != own.id


async def puts_the_key_again_as_a_stream(bank: Bank, own: Artifact) -> bool:
    async def pieces() -> AsyncIterator[str]:
        yield "another value"

    return (await bank.put(pieces(), key="k")).id != own.id


async def deletes_its_own_by_name(bank: Bank, own: Artifact) -> bool:
    await bank.delete("n")
    return await bank.find(own.pointer) is None


@pytest.mark.parametrize(
    "holds",
    [
        lists_it,
        lists_it_with_what_was_granted,
        cleans_nothing_up,
        puts_the_key_again,
        puts_the_key_again_as_a_stream,
    ],
)
async def test_whatever_call_wakes_a_run_up_finds_what_it_held(
    clock: ManualClock, holds: Callable[[Bank, Artifact], Awaitable[bool]]
) -> None:
    bank = Bank(MemoryStore(), clock=clock)

    async with bank.run("r1"):
        own = await bank.put("a value", key="k", ttl_seconds=TEN_MINUTES)
        clock.advance(TWO_HOURS)

        assert await holds(bank, own)
        assert await bank.get(own.pointer) == "a value"


async def test_a_name_is_that_of_the_newest_artifact_that_a_woken_run_holds(
    clock: ManualClock,
) -> None:
    bank = Bank(MemoryStore(), clock=clock)
    older = await bank.put("older", name="n")

    async with bank.run("r1"):
        newer = await bank.put("newer", name="n", ttl_seconds=TEN_MINUTES)
        clock.advance(TWO_HOURS)

        assert await deletes_its_own_by_name(bank, newer)
        assert await bank.get(older.pointer) == "older"


@pytest.mark.parametrize("inner_scope", ["default", "worker"])
async def test_a_run_goes_on_while_one_within_it_works(
    any_store: Store, clock: ManualClock, inner_scope: str
) -> None:
    bank = Bank(any_store, clock=clock)
    inner = bank.scoped(inner_scope)

    async with bank.run("outer"):
        own = await bank.put("own", ttl_seconds=TEN_MINUTES)
        async with inner.run("inner"):
            work = await inner.put("work")
            for _ in range(10):
                clock.advance(TEN_MINUTES / 2)
                await inner.get(work.pointer)
            await collect(any_store, clock=clock)

        assert await Bank(any_store, clock=clock).get(own.pointer) == "own"


async def test_a_run_that_is_entered_twice_goes_on_until_its_last_block_ends(
    clock: ManualClock,
) -> None:
    bank = Bank(MemoryStore(), clock=clock)
    run = bank.run("r1")

    async with run:
        own = await bank.put("own", ttl_seconds=TEN_MINUTES)
        async with run:
            pass
        clock.advance(TEN_MINUTES + 1)
        assert bank.current_run == "r1"
        assert await bank.get(own.pointer) == "own"

    assert bank.current_run is None
    with pytest.raises(ExpiredPointerError):
        await bank.get(own.pointer)


class Halting(MemoryStore):
    """A store that halts once a tombstone is written, until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.halted = asyncio.Event()
        self.go_on = asyncio.Event()

    async def put(self, key: str, payload: bytes) -> None:
        await super().put(key, payload)
        if "/gone/" in key:
            self.halted.set()
            await self.go_on.wait()


async def test_what_a_run_is_shown_while_it_is_evicted_stays_or_is_told_as_expired(
    clock: ManualClock,
) -> None:
    store = Halting()
    bank = Bank(store, clock=clock)
    early, late = await bank.put("early"), await bank.put("late", name="late")
    clock.advance(TEN_MINUTES)

    async with bank.run("r1"):
        eviction = asyncio.create_task(collect(store, quota_bytes=0, clock=clock))
        await store.halted.wait()
        answers: list[object] = []
        for artifact in (early, late):
            try:
                answers.append(await bank.get(artifact.pointer))
            except ExpiredPointerError:
                answers.append(None)
        store.go_on.set()
        await eviction

        for artifact, answer in zip((early, late), answers, strict=True):
            if answer is not None:
                assert await bank.get(artifact.pointer) == answer
        assert None in answers


class HaltingLate(MemoryStore):
    """A store that halts before the first listing is deleted, until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.halted = asyncio.Event()
        self.go_on = asyncio.Event()

    async def delete(self, key: str) -> None:
        if "/listing/" in key:
            self.halted.set()
            await self.go_on.wait()
        await super().delete(key)


async def test_what_goes_just_now_is_told_as_expired_however_often_a_run_asks(
    clock: ManualClock,
) -> None:
    store = HaltingLate()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x" * 100)
    clock.advance(TEN_MINUTES)

    async with bank.run("r1"):
        eviction = asyncio.create_task(collect(store, quota_bytes=0, clock=clock))
        await store.halted.wait()
        for _ in range(3):
            with pytest.raises(ExpiredPointerError):
                await bank.get(artifact.pointer)
        store.go_on.set()

        assert (await eviction).evicted == 1


async def test_a_tombstone_of_who_died_over_it_takes_nothing_from_a_run(
    clock: ManualClock,
) -> None:
    store = Halting()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x" * 100)
    clock.advance(TEN_MINUTES)
    killed = asyncio.create_task(collect(store, quota_bytes=0, clock=clock))
    await store.halted.wait()
    killed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await killed
    clock.advance(TEN_MINUTES)

    async with bank.run("r1"):
        shown = await bank.get(artifact.pointer)

    assert shown == "x" * 100


class SlowToLease(MemoryStore):
    """A store in which a lease takes as long as it is told to, or fails."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.fails = False

    async def put(self, key: str, payload: bytes) -> None:
        if "/leases/" in key:
            await self.go_on.wait()
            if self.fails:
                raise StoreUnavailableError("a test took it away")
        await super().put(key, payload)


async def test_of_calls_that_wake_a_run_up_together_none_goes_on_before_the_lease(
    clock: ManualClock,
) -> None:
    store = SlowToLease()
    bank = Bank(store, clock=clock)

    async with bank.run("r1"):
        own = [await bank.put(f"own {n}", ttl_seconds=TEN_MINUTES) for n in range(3)]
        clock.advance(TWO_HOURS)
        store.go_on.clear()
        calls = [asyncio.create_task(bank.get(artifact.pointer)) for artifact in own]
        await asyncio.wait(calls, timeout=0.05)
        store.go_on.set()

        assert await asyncio.gather(*calls) == ["own 0", "own 1", "own 2"]


async def test_calls_that_wait_for_a_lease_that_fails_go_on_without_it(
    clock: ManualClock,
) -> None:
    store = SlowToLease()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x" * 100)

    async with bank.run("r1"):
        clock.advance(TWO_HOURS)
        store.fails = True
        store.go_on.clear()
        calls = [asyncio.create_task(bank.get(artifact.pointer)) for _ in range(3)]
        await asyncio.wait(calls, timeout=0.05)
        store.go_on.set()

        assert await asyncio.gather(*calls) == ["x" * 100] * 3


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
async def test_a_renewal_that_does_not_end_loses_nothing_of_what_was_granted(
    clock: ManualClock, how: str
) -> None:
    store = SlowToLease()
    bank = Bank(store, clock=clock)
    owner = bank.scoped("owner")
    granted = await owner.put("granted", ttl_seconds=TWO_HOURS)
    await owner.grant(granted.pointer, "default")
    other = await bank.put("other")

    async with bank.run("r1"):
        await bank.get(granted.pointer)
        clock.advance(TEN_MINUTES)
        store.fails = how == "fails"
        store.go_on.clear()
        call = asyncio.create_task(bank.get(other.pointer))
        await asyncio.wait({call}, timeout=0.05)
        if how == "is cancelled":
            call.cancel()
        store.go_on.set()
        await asyncio.wait({call})
        store.fails = False
        clock.advance(TWO_HOURS)
        await bank.get(other.pointer)
        await collect(store, clock=clock)

        assert await bank.get(granted.pointer) == "granted"
