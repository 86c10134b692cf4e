"""What a store promises beyond the least, as tests: each is skipped where a store lacks it."""

import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..stores import (
    Store,
    SupportsBatch,
    SupportsCopy,
    SupportsCreate,
    SupportsExpiry,
    SupportsRange,
    SupportsStream,
)

Advance = Callable[[float], Awaitable[None]]
"""Lets so many seconds pass for the store: an injected clock, or a real wait."""

EVERY_BYTE = bytes(range(256))
LARGE = bytes(range(251)) * 12_000

# The store of a fixture is used again by each example: none may rely on a key being new.
_property = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def are_equal(found: bytes | None, expected: bytes) -> bool:
    """Return whether payloads are equal; of a bare ``==`` pytest draws megabytes of difference."""
    return found == expected


async def listing(store: Store, folder: str) -> list[str]:
    """Return the keys of a folder in the order the store yields them."""
    return [key async for key in store.keys(folder)]


class CapabilitySuite:
    """The part of `StoreSuite` that only some stores can pass."""

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
    def ranged(self, store: Store) -> SupportsRange:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsRange):
            pytest.skip("this store has no get_range")
        return store

    @pytest.fixture
    def streaming(self, store: Store) -> SupportsStream:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsStream):
            pytest.skip("this store has no put_stream")
        return store

    @pytest.fixture
    def copying(self, store: Store) -> SupportsCopy:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsCopy):
            pytest.skip("this store has no put_copy")
        return store

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

    # --- range ---

    async def test_range_agrees_with_slice_at_both_ends(
        self, store: Store, ranged: SupportsRange
    ) -> None:
        await store.put("k", b"0123456789")

        assert await ranged.get_range("k", 0, 10) == b"0123456789"
        assert await ranged.get_range("k", 0, 1) == b"0"
        assert await ranged.get_range("k", 9, 10) == b"9"
        assert await ranged.get_range("k", 8, 99) == b"89"
        assert await ranged.get_range("k", 3, 3) == b""
        assert await ranged.get_range("k", 10, 12) == b""
        assert await ranged.get_range("k", 2**40, 2**70) == b""

    @given(
        payload=st.binary(max_size=64),
        start=st.integers(min_value=0, max_value=80),
        length=st.integers(min_value=0, max_value=80),
    )
    @_property
    async def test_range_agrees_with_slice(
        self, store: Store, ranged: SupportsRange, payload: bytes, start: int, length: int
    ) -> None:
        await store.put("a/1", payload)

        window = await ranged.get_range("a/1", start, start + length)
        assert window == payload[start : start + length]

    async def test_large_range_of_a_large_payload_agrees_with_slice(
        self, store: Store, ranged: SupportsRange
    ) -> None:
        await store.put("a/1", LARGE)

        window = await ranged.get_range("a/1", 7, 1_999_999)
        assert are_equal(window, LARGE[7:1_999_999])
        end = await ranged.get_range("a/1", 2_999_990, 4_000_000)
        assert are_equal(end, LARGE[2_999_990:])

    async def test_range_of_a_missing_key_is_none(self, ranged: SupportsRange) -> None:
        assert await ranged.get_range("a/1", 0, 0) is None
        assert await ranged.get_range("a/1", 0, 10) is None

    @pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (-2, -1)])
    async def test_range_that_is_no_window_is_a_value_error(
        self, store: Store, ranged: SupportsRange, start: int, stop: int
    ) -> None:
        await store.put("k", b"0123456789")

        with pytest.raises(ValueError, match=r"start"):
            await ranged.get_range("k", start, stop)

    # --- stream ---

    @given(chunks=st.lists(st.binary(max_size=20), max_size=8))
    @_property
    async def test_stream_equals_its_chunks_joined(
        self, store: Store, streaming: SupportsStream, chunks: list[bytes]
    ) -> None:
        await streaming.put_stream("a/1", iter(chunks))

        assert await store.get("a/1") == b"".join(chunks)

    async def test_stream_of_many_chunks_overwrites(
        self, store: Store, streaming: SupportsStream
    ) -> None:
        await store.put("a/1", b"before")
        await streaming.put_stream(
            "a/1", (LARGE[at : at + 65_536] for at in range(0, 3_012_000, 65_536))
        )

        assert are_equal(await store.get("a/1"), LARGE)

    @pytest.mark.parametrize("error", [RuntimeError, OSError, KeyError])
    async def test_stream_that_fails_passes_its_error_on_and_leaves_nothing(
        self, store: Store, streaming: SupportsStream, error: type[Exception]
    ) -> None:
        await store.put("a/old", b"before")
        raised = error("no more")

        def failing() -> Iterator[bytes]:
            yield LARGE
            raise raised

        for key in ("a/new", "a/old"):
            with pytest.raises(error) as caught:
                await streaming.put_stream(key, failing())
            assert caught.value is raised

        assert await store.get("a/new") is None
        assert await store.get("a/old") == b"before"
        assert await listing(store, "a/") == ["a/old"]

    async def test_any_number_of_streams_may_wait_at_once(
        self, store: Store, streaming: SupportsStream
    ) -> None:
        # As many as no pool of threads has by default; each waits for all the others.
        streams = 48
        barrier = threading.Barrier(streams, timeout=60)

        def waiting(number: int) -> Iterator[bytes]:
            yield b"%d" % number
            barrier.wait()
            yield b"!"

        async with anyio.create_task_group() as group:
            for number in range(streams):
                group.start_soon(streaming.put_stream, f"a/{number}", waiting(number))

        assert await store.get("a/7") == b"7!"

    # --- copy ---

    @pytest.mark.parametrize("payload", [b"", EVERY_BYTE, LARGE])
    async def test_copy_stores_what_the_file_holds_and_shows_it_before(
        self, store: Store, copying: SupportsCopy, tmp_path: Path, payload: bytes
    ) -> None:
        path = tmp_path / "source"
        path.write_bytes(payload)
        await store.put("a/1", b"before")
        pieces: list[bytes] = []
        await copying.put_copy("a/1", path, pieces.append)

        assert are_equal(await store.get("a/1"), payload)
        assert are_equal(b"".join(pieces), payload)
        assert are_equal(path.read_bytes(), payload)

    async def test_copy_of_a_file_without_a_size_stores_what_it_gives(
        self, store: Store, copying: SupportsCopy, tmp_path: Path
    ) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(LARGE,))
        writer.start()
        await copying.put_copy("a/1", pipe, len)
        writer.join()

        assert are_equal(await store.get("a/1"), LARGE)

    async def test_copy_that_fails_passes_its_error_on_and_leaves_nothing(
        self, store: Store, copying: SupportsCopy, tmp_path: Path
    ) -> None:
        path = tmp_path / "source"
        path.write_bytes(LARGE)
        await store.put("a/old", b"before")
        raised = OSError("not this one")

        def refuse(_: bytes) -> None:
            raise raised

        for key in ("a/new", "a/old"):
            with pytest.raises(OSError, match="not this one") as caught:
                await copying.put_copy(key, path, refuse)
            assert caught.value is raised
            with pytest.raises(FileNotFoundError):
                await copying.put_copy(key, tmp_path / "missing", len)
            with pytest.raises(IsADirectoryError):
                await copying.put_copy(key, tmp_path, len)

        assert await store.get("a/new") is None
        assert await store.get("a/old") == b"before"
        assert await listing(store, "a/") == ["a/old"]

    # --- create ---

    async def test_create_writes_where_nothing_is_and_nowhere_else(
        self, store: Store, creating: SupportsCreate
    ) -> None:
        assert await creating.create("a/1", b"first")
        assert not await creating.create("a/1", b"second")
        assert await store.get("a/1") == b"first"

        await store.delete("a/1")
        assert await creating.create("a/1", b"third")
        assert await store.get("a/1") == b"third"

    async def test_create_does_not_replace_what_was_put_and_put_replaces(
        self, store: Store, creating: SupportsCreate
    ) -> None:
        await store.put("a/1", b"")

        assert not await creating.create("a/1", b"second")
        assert await store.get("a/1") == b""

        await store.put("a/1", b"third")
        assert await store.get("a/1") == b"third"

    @pytest.mark.parametrize("size", [10, 1_100_000])
    async def test_one_of_twenty_that_create_at_once_wins(
        self, store: Store, creating: SupportsCreate, size: int
    ) -> None:
        payloads = [bytes([number]) * size for number in range(20)]
        won: list[bytes] = []

        async def race(payload: bytes) -> None:
            if await creating.create("a/1", payload):
                won.append(payload)

        async with anyio.create_task_group() as group:
            for payload in payloads:
                group.start_soon(race, payload)

        assert len(won) == 1
        assert await store.get("a/1") == won[0]

    # --- expiry ---

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

    # --- batch ---

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
