"""What a scope takes, and what a bank takes back of what it put."""

import pytest

from coatcheck import Bank, BlockingBank, Limits
from coatcheck.bank import Usage
from coatcheck.bank.collection import collect
from coatcheck.errors import DamagedRecordError, ExpiredPointerError, UnknownPointerError
from coatcheck.stores import Store
from coatcheck.testing import ManualClock


async def test_usage_counts_the_artifacts_and_payload_bytes_of_the_scope(any_store: Store) -> None:
    bank = Bank(any_store, scope="a")
    assert await bank.usage() == Usage(0, 0)

    artifact = await bank.put("né" * 50, name="n")
    await bank.put(b"")
    await bank.scoped("b").put("other")
    assert await bank.usage() == Usage(2, 150)

    await bank.delete(artifact.pointer)
    assert await bank.usage() == Usage(1, 0)


async def test_usage_counts_what_has_expired_until_it_is_removed(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    await bank.put("x", ttl_seconds=1)

    clock.advance(2)

    assert await bank.usage() == Usage(1, 1)


async def test_cleanup_takes_what_this_object_put_over_an_hour_ago(
    any_store: Store, clock: ManualClock
) -> None:
    bank, other = Bank(any_store, clock=clock), Bank(any_store, clock=clock)
    mine, theirs = await bank.put("mine"), await other.put("theirs")

    clock.advance(3_600)
    assert await bank.cleanup() == 0
    clock.advance(1)
    young = await bank.put("young")
    assert await bank.cleanup() == 1

    assert {each.id async for each in bank.list()} == {theirs.id, young.id}
    with pytest.raises(UnknownPointerError):
        await bank.get(mine.pointer)
    assert await bank.cleanup() == 0


async def test_cleanup_leaves_what_a_live_run_holds_to_a_later_call(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    shown, unshown = await bank.put("shown"), await bank.put("unshown")

    async with bank.run("r1"):
        own = await bank.put("own")
        await bank.get(shown.pointer)
        clock.advance(1)
        assert await bank.cleanup(older_than_seconds=0) == 1
        assert {each.id async for each in bank.list()} == {shown.id, own.id}

    assert await bank.find(unshown.pointer) is None
    assert await bank.cleanup(older_than_seconds=0) == 2


async def test_cleanup_passes_over_what_was_put_anew_or_is_damaged(
    store: Store, clock: ManualClock
) -> None:
    bank, other = Bank(store, clock=clock), Bank(store, clock=clock)
    first = await bank.put("x", key="k")
    await other.delete(first.pointer)
    clock.advance(1)
    again = await other.put("x", key="k")
    damaged = await bank.put("y")
    await store.put(f"s/default/records/{damaged.id}", b"damaged")
    clock.advance(1)

    assert await bank.cleanup(older_than_seconds=0) == 1

    assert [each.id async for each in bank.list()] == [again.id]
    assert await store.get(f"s/default/records/{damaged.id}") is None


async def test_a_delete_takes_even_what_a_run_holds(store: Store) -> None:
    bank = Bank(store)
    async with bank.run("r1"):
        artifact = await bank.put("x")

        assert await bank.delete(artifact.pointer) is True

        with pytest.raises(UnknownPointerError):
            await bank.get(artifact.pointer)


async def test_a_damaged_artifact_can_be_deleted(any_store: Store) -> None:
    bank = Bank(any_store)
    artifact = await bank.put("x")
    await any_store.put(f"s/default/records/{artifact.id}", b"damaged")
    with pytest.raises(DamagedRecordError):
        await Bank(any_store).get(artifact.pointer)

    assert await bank.delete(artifact.pointer) is True
    with pytest.raises(UnknownPointerError):
        await Bank(any_store).get(artifact.pointer)


async def test_what_went_is_told_as_expired_wherever_the_clock_is_set_afterwards(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock, limits=Limits(scope_bytes=100))
    evicted = await bank.put("x" * 80, name="first", tool="dump")
    await bank.put("y" * 80)
    expired = await bank.put("z", ttl_seconds=60)
    clock.advance(61)
    await collect(any_store, clock=clock, older_than_seconds=0)

    for seconds in (0, -86_400, 3 * 86_400):
        clock.advance(seconds)
        for gone in (evicted, expired):
            with pytest.raises(ExpiredPointerError) as told:
                await bank.get(gone.pointer)
            assert (told.value.name, told.value.tool) == (gone.name, gone.tool)
            assert told.value.size_bytes == gone.size_bytes


async def test_what_is_put_after_a_clock_was_set_back_lives_no_longer_for_it(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    clock.advance(365 * 86_400)
    ahead = await bank.put("ahead")
    clock.advance(-365 * 86_400)

    artifact = await bank.put("x", ttl_seconds=60)

    assert artifact.expires_at is not None
    assert artifact.expires_at.timestamp() == clock() + 60
    assert [each.id async for each in bank.list()] == [artifact.id, ahead.id]
    clock.advance(60)
    with pytest.raises(ExpiredPointerError):
        await bank.get(artifact.pointer)


def test_blocking_banks_tell_usage_and_clean_up_too() -> None:
    with BlockingBank("memory:") as bank:
        bank.put("x" * 10)

        assert bank.usage() == Usage(1, 10)
        assert bank.cleanup() == 0
        assert bank.cleanup(older_than_seconds=0) == 1
        assert bank.usage() == Usage(0, 0)
