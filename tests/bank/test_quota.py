"""Quotas: the least recently used makes room, what is held or just put does not."""

import logging
from collections.abc import AsyncIterable, Iterator
from pathlib import Path

import pytest

from coatcheck import Artifact, Bank, Envelope, Limits, Mirror, mirror
from coatcheck.bank import Usage
from coatcheck.bank._keys import ScopeKeys
from coatcheck.errors import ExpiredPointerError, QuotaError, StoreUnavailableError
from coatcheck.stores import MemoryStore, ObjectStore, Store
from coatcheck.testing import ManualClock

KEYS = ScopeKeys.of("default")
KB = 1_000
MB = 1_000_000


async def put_many(bank: Bank, clock: ManualClock, count: int, size: int = KB) -> list[Artifact]:
    artifacts: list[Artifact] = []
    for number in range(count):
        artifacts.append(await bank.put(f"{number:04}".ljust(size, "x"), name=f"n{number}"))
        clock.advance(1)
    return artifacts


async def live(bank: Bank, artifacts: list[Artifact]) -> list[int]:
    return [number for number, each in enumerate(artifacts) if await bank.find(each.pointer)]


async def test_the_oldest_goes_once_a_scope_is_over_its_quota_and_is_told_as_expired(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock, limits=Limits(scope_bytes=10 * KB))

    artifacts = await put_many(bank, clock, 10)
    assert await live(bank, artifacts) == list(range(10))  # exactly the quota is not over it
    artifacts += await put_many(bank, clock, 1)

    assert await live(bank, artifacts) == list(range(2, 11))  # down to nine tenths
    assert await bank.usage() == Usage(9, 9 * KB)
    for gone in artifacts[:2]:
        with pytest.raises(ExpiredPointerError) as expired:
            await bank.get(gone.pointer)
        assert (expired.value.name, expired.value.size_bytes) == (gone.name, KB)


async def test_what_was_read_lately_stays_and_what_was_not_goes(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    artifacts = await put_many(bank, clock, 10)

    await bank.read(artifacts[0].pointer)
    artifacts += await put_many(bank, clock, 1)

    assert await live(bank, artifacts) == [0, *range(3, 11)]


async def test_what_has_expired_makes_room_before_anything_that_has_not(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    artifacts = await put_many(bank, clock, 8)
    expired = [await bank.put("x" * KB, ttl_seconds=60) for _ in range(2)]
    await bank.get(expired[0].pointer)  # used last of all, and it helps nothing
    clock.advance(61)

    artifacts += await put_many(bank, clock, 1)

    assert await live(bank, artifacts) == list(range(9))
    for gone in expired:
        with pytest.raises(ExpiredPointerError):
            await bank.get(gone.pointer)


async def test_what_a_run_holds_past_its_time_makes_no_room(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    artifacts = await put_many(bank, clock, 9)

    async with bank.run("r1"):
        held = await bank.put("x" * KB, ttl_seconds=60)
        clock.advance(60)
        artifacts += await put_many(bank, clock, 1)

        assert await bank.get(held.pointer) == "x" * KB
    assert await live(bank, artifacts) == list(range(2, 10))


async def test_what_was_put_anew_is_not_taken_for_what_expired_under_its_key(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    await bank.put("x" * KB, key="k", ttl_seconds=60)
    due = [key async for key in store.keys(KEYS.due_folder)]
    clock.advance(60)
    artifacts = await put_many(bank, clock, 2)
    anew = await bank.put("x" * KB, key="k")
    for key in due:
        await store.put(key, b"")  # of a writer that died over its removal
    artifacts += await put_many(bank, clock, 8)

    assert await bank.get(anew.pointer) == "x" * KB
    assert await live(bank, artifacts) == list(range(2, 10))


async def test_use_is_noted_once_a_minute_and_not_in_a_store_of_objects(clock: ManualClock) -> None:
    limits = Limits(scope_bytes=10 * KB)
    for store, count in ((MemoryStore(), 2), (ObjectStore("memory:"), 0)):
        bank = Bank(store, clock=clock, limits=limits)
        artifact = await bank.put("x")
        times: set[bytes] = set()
        for seconds in (0, 59, 1):
            clock.advance(seconds)
            await bank.get(artifact.pointer)
            noted = await store.get(f"s/default/touched/{artifact.id}")
            times |= set() if noted is None else {noted}
        assert len(times) == count


async def test_without_a_quota_no_use_is_noted(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put("x")

    await bank.get(artifact.pointer)

    assert [key async for key in store.keys("s/default/touched/")] == []


async def test_a_quota_of_the_store_takes_the_oldest_of_any_scope(
    any_store: Store, clock: ManualClock
) -> None:
    one = Bank(any_store, scope="one", clock=clock, limits=Limits(store_bytes=10 * KB))
    two = one.scoped("two")

    first = await put_many(one, clock, 6)
    second = await put_many(two, clock, 6)

    assert await live(one, first) == [2, 3, 4, 5]
    assert await live(two, second) == list(range(6))


async def test_a_quota_of_a_scope_leaves_other_scopes_alone(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    others = await put_many(bank.scoped("other"), clock, 9)

    await put_many(bank, clock, 30)

    assert await live(bank.scoped("other"), others) == list(range(9))
    assert (await bank.usage()).size_bytes <= 10 * KB


async def test_what_live_runs_hold_is_never_evicted_and_goes_when_they_are_over(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    shown = await bank.put("x" * KB)
    unshown = await bank.put("y" * KB)

    async with bank.run("r1"):
        await bank.get(shown.pointer)
        own = await put_many(bank, clock, 15)
        assert await live(bank, own) == list(range(15))
        assert await bank.find(shown.pointer) is not None
        assert await bank.find(unshown.pointer) is None
    await put_many(bank, clock, 2)

    assert (await bank.usage()).size_bytes <= 10 * KB


@pytest.mark.parametrize("count", [49, 50])
async def test_a_minute_after_a_run_is_over_the_smallest_put_makes_room(
    store: Store, clock: ManualClock, count: int
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    async with bank.run("r1"):
        await put_many(bank, clock, count)
    clock.advance(60)

    await bank.put("z")

    assert (await bank.usage()).size_bytes <= 10 * KB


async def test_an_artifact_is_not_evicted_by_its_own_put(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    await put_many(bank, clock, 5)

    large = await bank.put("z" * 10 * KB)

    assert await bank.get(large.pointer) == "z" * 10 * KB
    assert await bank.usage() == Usage(1, 10 * KB)


async def pieces(count: int) -> AsyncIterable[str]:
    for _ in range(count):
        yield "z" * KB


@pytest.mark.parametrize("whose", ["scope", "store"])
async def test_what_alone_is_more_than_the_quota_is_refused_and_nothing_of_it_is_kept(
    any_store: Store, whose: str
) -> None:
    limits = Limits(scope_bytes=10 * KB) if whose == "scope" else Limits(store_bytes=10 * KB)
    bank = Bank(any_store, limits=limits)
    kept = await bank.put("kept")

    for value in ("z" * (10 * KB + 1), "é" * (5 * KB + 1), b"z" * (10 * KB + 1), pieces(11)):
        with pytest.raises(QuotaError, match=f"quota of this {whose} is 10,000 bytes") as refused:
            await bank.put(value)
        assert f"Limits.{whose}_bytes" in refused.value.hint

    assert await bank.usage() == Usage(1, 4)
    for folder in ("payloads", "records", "listing"):
        assert len([key async for key in any_store.keys(f"s/default/{folder}/")]) == 1
    assert await bank.get(kept.pointer) == "kept"


async def test_a_stream_is_refused_once_it_is_more_than_the_quota_and_read_no_further(
    any_store: Store,
) -> None:
    bank = Bank(any_store, limits=Limits(scope_bytes=MB))
    count = 0

    async def long() -> AsyncIterable[str]:
        nonlocal count
        for _ in range(300):
            count += 1
            yield "x" * 100_000

    with pytest.raises(QuotaError, match=r"takes at least .* quota of this scope is 1,000,000"):
        await bank.put(long())

    assert count < 100
    assert [key async for key in any_store.keys("s/default/payloads/")] == []


async def test_a_file_that_is_more_than_the_quota_leaves_nothing(
    any_store: Store, tmp_path: Path
) -> None:
    bank = Bank(any_store, limits=Limits(scope_bytes=MB))
    path = tmp_path / "long.log"
    path.write_bytes(b"x\n" * 2 * MB)

    with pytest.raises(QuotaError, match="quota of this scope is 1,000,000 bytes"):
        await bank.put(path)

    assert [key async for key in any_store.keys("s/default/payloads/")] == []
    assert await bank.usage() == Usage(0, 0)


def test_a_mirrored_stream_over_the_quota_is_read_to_its_end_and_told(
    store: Store,
) -> None:
    count = 0

    def rows() -> Iterator[str]:
        nonlocal count
        for _ in range(40):
            count += 1
            yield "x" * 100_000

    shown = mirror(rows, Bank(store, limits=Limits(scope_bytes=MB)))()

    assert count == 40
    assert not isinstance(shown, Envelope)


async def test_a_mirrored_result_over_the_quota_passes_inline_and_says_it_was_not_kept() -> None:
    bank = Bank(MemoryStore(), limits=Limits(scope_bytes=100 * KB))
    mirror = Mirror(bank)

    assert await mirror.offload("x" * 150 * KB, tool="rows") == "x" * 150 * KB
    shown = await mirror.offload("x" * 300 * KB, tool="rows")

    assert "was not kept" in str(shown)


async def test_what_others_put_is_counted_within_a_minute(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    await bank.put("x")
    await put_many(Bank(store, clock=clock), clock, 20)
    clock.advance(60)

    await bank.put("y")

    assert (await bank.usage()).size_bytes <= 9 * KB


class Refusing(MemoryStore):
    """A store that lists nothing where a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_out = False

    async def delete(self, key: str) -> None:
        if self.is_out:
            raise StoreUnavailableError("the service did not answer")
        await super().delete(key)


async def test_where_no_room_can_be_made_the_put_stands_and_a_later_one_makes_it(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = Refusing()
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    store.is_out = True
    with caplog.at_level(logging.WARNING, "coatcheck.bank"):
        artifacts = await put_many(bank, clock, 12)
    assert "no room was made" in caplog.text
    assert await live(bank, artifacts) == list(range(12))

    store.is_out = False
    await put_many(bank, clock, 1)

    assert (await bank.usage()).size_bytes <= 9 * KB


async def test_a_damaged_record_or_a_foreign_touch_stops_no_eviction(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=10 * KB))
    artifacts = await put_many(bank, clock, 10)
    await store.put(f"s/default/records/{artifacts[0].id}", b"damaged")
    await store.put(f"s/default/touched/{artifacts[1].id}", b"\xffnever")
    await store.delete(f"s/default/records/{artifacts[2].id}")

    artifacts += await put_many(Bank(store, clock=clock, limits=bank.limits), clock, 2)

    assert await live(bank, artifacts[3:]) != []
    assert await bank.find(artifacts[1].pointer) is None
    assert await store.get(f"s/default/records/{artifacts[0].id}") == b"damaged"


async def test_memory_and_store_stay_bounded_over_many_puts(
    any_store: Store, clock: ManualClock
) -> None:
    quota = 64 * KB
    bank = Bank(any_store, clock=clock, limits=Limits(scope_bytes=quota, cache_bytes=quota))

    artifacts = await put_many(bank, clock, 120, 2 * KB)

    sizes = [each.size_bytes async for each in bank.list()]
    assert sum(sizes) <= quota
    payloads = [key async for key in any_store.keys("s/default/payloads/")]
    assert len(payloads) == len(sizes)
    there = await live(bank, artifacts)
    assert there == list(range(120 - len(sizes), 120))
    with pytest.raises(ExpiredPointerError, match="2,000 bytes"):
        await bank.get(artifacts[0].pointer)
