"""The memory store: the whole suite, and what only a store in memory can get wrong."""

import pytest

from coatcheck.stores import (
    MemoryStore,
    Store,
    SupportsBatch,
    SupportsCompare,
    SupportsCreate,
    SupportsExpiry,
    SupportsRange,
    SupportsStream,
)
from coatcheck.testing import Advance, ManualClock, StoreSuite, check_store


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def store(self, clock: ManualClock) -> MemoryStore:
        return MemoryStore(clock=clock)

    @pytest.fixture
    def advance(self, clock: ManualClock) -> Advance:
        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        return advance


def test_memory_store_behaves_as_a_dict_over_random_steps() -> None:
    check_store(MemoryStore, runs=25, steps=15)


def test_memory_store_has_every_capability() -> None:
    store: Store = MemoryStore()

    for capability in (
        SupportsBatch,
        SupportsCreate,
        SupportsExpiry,
        SupportsCompare,
        SupportsRange,
        SupportsStream,
    ):
        assert isinstance(store, capability)


async def test_listing_costs_what_its_folder_holds_not_what_the_store_holds() -> None:
    class CountedKey(str):
        compared = 0
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            CountedKey.compared += 1
            return str.__lt__(self, other)

    store = MemoryStore()
    for number in range(1_000):
        await store.put(CountedKey(f"s/{number}/records/1"), b"x")
    assert [key async for key in store.keys("s/7/records/")] == ["s/7/records/1"]
    assert CountedKey.compared == 0

    for number in range(100):
        await store.put(CountedKey(f"a/{number}"), b"x")
    first = [key async for key in store.keys("a/")]
    sorted_once = CountedKey.compared
    assert sorted_once > 0

    await store.put("a/7", b"overwritten")
    assert [key async for key in store.keys("a/")] == first
    assert CountedKey.compared == sorted_once


async def test_batch_with_one_bad_key_writes_none() -> None:
    store = MemoryStore()

    with pytest.raises(ValueError, match="a key is"):
        await store.put_many({"a/1": b"x", "../2": b"y"})

    assert await store.get("a/1") is None


async def test_close_can_be_called() -> None:
    store = MemoryStore()
    await store.put("a/1", b"x")

    await store.close()

    assert await store.get("a/1") == b"x"
