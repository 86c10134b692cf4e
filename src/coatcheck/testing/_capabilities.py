"""What a store promises beyond the least, as tests: each is skipped where a store lacks it."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..stores import (
    Store,
    SupportsAge,
    SupportsCopy,
    SupportsGather,
    SupportsPurge,
    SupportsRange,
    SupportsStream,
)
from ._conditions import ConditionSuite
from ._lasting import EVERY_BYTE, LARGE, are_equal, listing

# The store of a fixture is used again by each example: none may rely on a key being new.
_property = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


class CapabilitySuite(ConditionSuite):
    """The part of `StoreSuite` that only some stores can pass."""

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
    def gathering(self, store: Store) -> SupportsGather:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsGather):
            pytest.skip("this store has no get_many")
        return store

    @pytest.fixture
    def purging(self, store: Store) -> SupportsPurge:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsPurge):
            pytest.skip("this store has no delete_many")
        return store

    @pytest.fixture
    def ageing(self, store: Store) -> SupportsAge:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsAge):
            pytest.skip("this store has no age_seconds")
        return store

    @pytest.fixture
    def copying(self, store: Store) -> SupportsCopy:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsCopy):
            pytest.skip("this store has no put_copy")
        return store

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
        barrier = threading.Barrier(streams, timeout=10)

        def waiting(number: int) -> Iterator[bytes]:
            yield b"%d" % number
            barrier.wait()
            yield b"!"

        async with anyio.create_task_group() as group:
            for number in range(streams):
                group.start_soon(streaming.put_stream, f"a/{number}", waiting(number))

        assert await store.get("a/7") == b"7!"

    async def test_many_keys_are_read_in_the_order_asked_for_and_missing_ones_are_none(
        self, store: Store, gathering: SupportsGather
    ) -> None:
        payloads = {f"s/a/records/{number}": b"%d" % number for number in range(150)}
        for key, payload in payloads.items():
            await store.put(key, payload)
        await store.put("a/large", LARGE)
        await store.put("a/b/empty", b"")
        asked = ["a/large", *reversed(payloads), "a/none", "c/none", "a", "a/b/empty", "a/large"]

        found = await gathering.get_many(asked)

        assert are_equal(found[0], LARGE)
        assert are_equal(found[-1], LARGE)
        assert found[1:151] == list(reversed(payloads.values()))
        assert found[151:-1] == [None, None, None, b""]
        assert await gathering.get_many([]) == []

    async def test_what_was_just_written_is_young_and_what_is_missing_has_no_age(
        self, store: Store, ageing: SupportsAge
    ) -> None:
        await store.put("a/1", b"1")

        age_seconds = await ageing.age_seconds("a/1")

        assert age_seconds is not None
        assert -60 < age_seconds < 3_600  # another clock may tell, and in whole seconds
        assert await ageing.age_seconds("a/2") is None
        with pytest.raises(ValueError, match="key"):
            await ageing.age_seconds("../etc/passwd")

    async def test_what_is_no_key_is_refused_among_many(self, gathering: SupportsGather) -> None:
        with pytest.raises(ValueError, match="key"):
            await gathering.get_many(["a/1", "../etc/passwd"])

    async def test_many_keys_are_removed_and_no_others_and_missing_ones_are_no_error(
        self, store: Store, purging: SupportsPurge
    ) -> None:
        gone = [f"a/{number}" for number in range(150)] + ["a/b/1", "c/1"]
        for key in [*gone, "a/kept", "a/b/kept", "c/kept"]:
            await store.put(key, b"1")
        await store.put("a/large", LARGE)

        await purging.delete_many([*gone, "a/large", "a/none", "d/none", "a/b", "a/1"])
        await purging.delete_many([])

        assert await listing(store, "a/") == ["a/kept"]
        assert await listing(store, "a/b/") == ["a/b/kept"]
        assert await listing(store, "c/") == ["c/kept"]
        assert await store.get("a/large") is None
        assert await store.get("a/kept") == b"1"

    async def test_what_is_no_key_is_refused_among_many_to_remove_and_none_of_them_goes(
        self, store: Store, purging: SupportsPurge
    ) -> None:
        await store.put("a/1", b"1")

        with pytest.raises(ValueError, match="key"):
            await purging.delete_many(["a/1", "../etc/passwd"])

        assert await store.get("a/1") == b"1"

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
