"""What a store promises of time, and of several keys at once, as tests."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from ..errors import StoreUnavailableError
from ..stores import Store, SupportsBatch, SupportsCreate, SupportsExpiry

Advance = Callable[[float], Awaitable[None]]
"""Lets so many seconds pass for the store: an injected clock, or a real wait."""

EVERY_BYTE = bytes(range(256))
LARGE = bytes(range(251)) * 12_000


def are_equal(found: bytes | None, expected: bytes) -> bool:
    """Return whether payloads are equal; of a bare ``==`` pytest draws megabytes of difference."""
    return found == expected


async def listing(store: Store, folder: str) -> list[str]:
    """Return the keys of a folder in the order the store yields them."""
    return [key async for key in store.keys(folder)]


class LastingSuite:
    """The part of `StoreSuite` for stores that forget, or write several keys at once."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def store(self) -> Store:
        """Return a fresh, empty store."""
        raise NotImplementedError("return a fresh, empty store")

    @pytest.fixture
    def advance(self) -> Advance | None:
        """Return what lets time pass for the store of this test; None where nothing can."""
        return None

    @pytest.fixture
    def creating(self, store: Store) -> SupportsCreate:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsCreate):
            pytest.skip("this store has no create")
        return store

    @pytest.fixture
    def expiring(self, store: Store) -> SupportsExpiry:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsExpiry):
            pytest.skip("this store has no put_expiring")
        return store

    @pytest.fixture
    def batching(self, store: Store) -> SupportsBatch:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsBatch):
            pytest.skip("this store has no put_many")
        return store

    @pytest.fixture
    def wait(self, advance: Advance | None) -> Advance:
        """Return what lets time pass where there is such a thing."""
        if advance is None:
            pytest.skip("this suite has no advance fixture")
        return advance

    async def test_expiring_key_is_there_before_its_time_and_gone_after(
        self, store: Store, wait: Advance, expiring: SupportsExpiry
    ) -> None:
        await expiring.put_expiring("a/1", b"x", 10)
        await store.put("a/2", b"y")

        await wait(9)
        assert await store.get("a/1") == b"x"
        assert await listing(store, "a/") == ["a/1", "a/2"]

        await wait(1)
        assert await store.get("a/1") is None
        assert await listing(store, "a/") == ["a/2"]

    async def test_put_over_an_expiring_key_stays_and_the_other_way_round_goes(
        self, store: Store, wait: Advance, expiring: SupportsExpiry
    ) -> None:
        await expiring.put_expiring("a/1", b"x", 10)
        await store.put("a/1", b"y")
        await store.put("a/2", b"x")
        await expiring.put_expiring("a/2", b"y", 5)
        await expiring.put_expiring("a/3", b"x", 5)
        await expiring.put_expiring("a/3", b"y", 30)
        await expiring.put_expiring("a/4", b"x", 5)
        await store.delete("a/4")

        await wait(10)

        assert await store.get("a/1") == b"y"
        assert await listing(store, "a/") == ["a/1", "a/3"]

    async def test_expired_key_can_be_created_again(
        self, store: Store, wait: Advance, expiring: SupportsExpiry, creating: SupportsCreate
    ) -> None:
        await expiring.put_expiring("a/1", b"x", 10)
        assert not await creating.create("a/1", b"y")

        await wait(10)

        assert await creating.create("a/1", b"y")
        assert await store.get("a/1") == b"y"

    @pytest.mark.parametrize("ttl_seconds", [0, -1, float("nan")])
    async def test_time_to_live_of_nothing_is_a_value_error(
        self, store: Store, expiring: SupportsExpiry, ttl_seconds: float
    ) -> None:

        with pytest.raises(ValueError, match="ttl_seconds"):
            await expiring.put_expiring("a/1", b"x", ttl_seconds)
        assert await store.get("a/1") is None

    async def test_folder_lists_what_lives_longest_in_whatever_order_it_came(
        self, store: Store, wait: Advance, expiring: SupportsExpiry
    ) -> None:
        for folder, lives in (("a", (10, 100)), ("b", (100, 10)), ("c", (10, 10))):
            for number, seconds in enumerate(lives):
                await expiring.put_expiring(f"{folder}/{number}", b"x", seconds)

        await wait(50)

        assert await listing(store, "a/") == ["a/1"]
        assert await listing(store, "b/") == ["b/0"]
        assert await listing(store, "c/") == []

    async def test_kept_key_stays_that_long_and_never_less_than_before(
        self, store: Store, wait: Advance, expiring: SupportsExpiry
    ) -> None:
        await expiring.put_expiring("a/1", b"x", 10)
        await expiring.put_expiring("a/2", LARGE, 10)
        await expiring.put_expiring("a/3", b"x", 100)
        await expiring.keep(["a/1", "a/2", "a/3", "a/missing"], 50)
        await expiring.keep([], 50)
        await store.put("b/1", b"x")
        await expiring.keep(["b/1"], 10)

        await wait(40)
        assert await store.get("a/1") == b"x"
        assert are_equal(await store.get("a/2"), LARGE)
        assert await listing(store, "a/") == ["a/1", "a/2", "a/3"]
        assert await store.get("a/missing") is None

        await wait(20)
        assert await listing(store, "a/") == ["a/3"]
        assert await listing(store, "b/") == ["b/1"]

    @pytest.mark.parametrize("ttl_seconds", [0, -1, float("nan")])
    async def test_key_cannot_be_kept_for_nothing(
        self, expiring: SupportsExpiry, ttl_seconds: float
    ) -> None:
        with pytest.raises(ValueError, match="ttl_seconds"):
            await expiring.keep(["a/1"], ttl_seconds)

    async def test_batch_writes_all_its_keys(self, store: Store, batching: SupportsBatch) -> None:
        await store.put("a/1", b"before")
        payloads = {"a/1": b"one", "b/c/2": b"", "3": EVERY_BYTE}
        await batching.put_many(payloads)
        await batching.put_many({})

        assert {key: await store.get(key) for key in payloads} == payloads

    async def test_batch_is_never_seen_in_part(self, store: Store, batching: SupportsBatch) -> None:
        keys = [f"a/{number}" for number in range(20)]
        done = anyio.Event()
        counts: set[int] = set()

        async def look() -> None:
            while not done.is_set():
                counts.add(len(await listing(store, "a/")))
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(look)
            await anyio.lowlevel.checkpoint()
            await batching.put_many(dict.fromkeys(keys, b"x"))
            await anyio.lowlevel.checkpoint()
            done.set()

        assert counts <= {0, 20}
        assert await listing(store, "a/") == sorted(keys)

    async def test_batch_gives_each_key_its_own_time(
        self, store: Store, wait: Advance, batching: SupportsBatch
    ) -> None:
        payloads = {"a/1": b"one", "a/2": LARGE, "a/3": b"three"}
        await batching.put_many(payloads, ttl_seconds={"a/1": 10, "a/2": 30})
        await batching.put_many({"a/4": b"x"}, ttl_seconds={"a/4": 10})
        await batching.put_many({"a/4": b"x"})

        await wait(10)
        assert await store.get("a/1") is None
        assert are_equal(await store.get("a/2"), LARGE)
        assert await listing(store, "a/") == ["a/2", "a/3", "a/4"]

        await wait(20)
        assert await store.get("a/2") is None
        assert await listing(store, "a/") == ["a/3", "a/4"]

    async def test_batch_begins_the_time_of_stored_keys_anew(
        self, store: Store, wait: Advance, batching: SupportsBatch
    ) -> None:
        await batching.put_many({"a/1": LARGE, "a/2": b"x"}, ttl_seconds={"a/1": 10})
        await batching.put_many({"a/3": b"y"}, ttl_seconds={"a/1": 30, "a/2": 5, "a/3": 50})

        await wait(20)
        assert are_equal(await store.get("a/1"), LARGE)
        assert await listing(store, "a/") == ["a/1", "a/3"]

        await wait(10)
        assert await listing(store, "a/") == ["a/3"]

    async def test_batch_that_is_to_keep_a_missing_key_writes_nothing(
        self, store: Store, batching: SupportsBatch
    ) -> None:
        with pytest.raises(StoreUnavailableError):
            await batching.put_many({"a/1": b"x"}, ttl_seconds={"a/gone": 10})

        assert await listing(store, "a/") == []

    async def test_batch_writes_only_where_a_key_is_free(
        self, store: Store, batching: SupportsBatch
    ) -> None:
        assert await batching.put_many({"a/1": b"x", "a/2": LARGE}, unless="a/1")
        assert not await batching.put_many({"a/1": b"y", "a/2": b"y", "a/3": LARGE}, unless="a/1")
        assert not await batching.put_many({"a/3": b"z"}, unless="a/2")
        assert await batching.put_many({"a/4": b"z"}, unless="a/3")

        assert await store.get("a/1") == b"x"
        assert are_equal(await store.get("a/2"), LARGE)
        assert await listing(store, "a/") == ["a/1", "a/2", "a/4"]

    @pytest.mark.parametrize("size", [10, 300_000])
    async def test_one_of_twenty_batches_at_once_wins_and_only_its_keys_are_there(
        self, store: Store, batching: SupportsBatch, size: int
    ) -> None:
        won: list[int] = []

        async def race(number: int) -> None:
            payloads = {"a/key": bytes([number]) * size, f"b/{number}": b"x"}
            if await batching.put_many(payloads, unless="a/key"):
                won.append(number)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(race, number)

        assert len(won) == 1
        assert are_equal(await store.get("a/key"), bytes(won) * size)
        assert await listing(store, "b/") == [f"b/{won[0]}"]

    @pytest.mark.parametrize("ttl_seconds", [0, -1, float("nan")])
    async def test_batch_with_a_time_of_nothing_or_a_bad_key_writes_nothing(
        self, store: Store, batching: SupportsBatch, ttl_seconds: float
    ) -> None:
        with pytest.raises(ValueError, match="ttl_seconds"):
            await batching.put_many({"a/1": b"x"}, ttl_seconds={"a/1": ttl_seconds})
        with pytest.raises(ValueError, match="a key is"):
            await batching.put_many({"a/1": b"x", "../2": b"y"})
        with pytest.raises(ValueError, match="a key is"):
            await batching.put_many({"a/1": b"x"}, unless="../2")

        assert await listing(store, "a/") == []
