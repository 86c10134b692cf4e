"""What every store promises, as tests to inherit. How one store does it is tested beside it."""

import threading

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from ..stores import Store
from ._lasting import EVERY_BYTE, LARGE, are_equal, listing
from ._paths import PathSuite

_PAYLOADS = (b"", b"x", EVERY_BYTE, "né 🎟".encode(), b"\r\n\0\x1a", LARGE)
_KEYS = ("k", "s/a%2fb~0c/records/1-2_3.txt", "s/%c3%a9/names/0f/00", "-/~/_/%/0")


class StoreSuite(PathSuite):
    """Inherit from this in a class named ``Test…`` and give it a `store` fixture.

    A store with `SupportsExpiry` gives an `advance` fixture too. What a store has no capability
    for is skipped. The tests run under anyio's pytest plugin, which comes with Coatcheck.
    """

    @pytest.mark.parametrize("payload", _PAYLOADS, ids=len)
    async def test_get_returns_what_was_put(self, store: Store, payload: bytes) -> None:
        await store.put("s/a/payloads/1.bin", payload)

        assert are_equal(await store.get("s/a/payloads/1.bin"), payload)

    @pytest.mark.parametrize("key", _KEYS)
    async def test_key_of_any_allowed_character_is_kept_as_it_is(
        self, store: Store, key: str
    ) -> None:
        await store.put(key, key.encode())

        assert await store.get(key) == key.encode()
        folder, slash, _ = key.rpartition("/")
        if slash:
            assert await listing(store, folder + slash) == [key]

    async def test_missing_key_is_none_whether_its_folder_is_there_or_not(
        self, store: Store
    ) -> None:
        await store.put("a/1", b"x")

        assert await store.get("a/2") is None
        assert await store.get("b/c/2") is None
        assert await store.get("a") is None

    async def test_keys_that_differ_in_one_character_are_two(self, store: Store) -> None:
        await store.put("a/1", b"one")
        await store.put("a/10", b"ten")
        await store.put("a/1.txt", b"text")

        assert await store.get("a/1") == b"one"
        assert await store.get("a/10") == b"ten"

    @pytest.mark.parametrize("payload", _PAYLOADS, ids=len)
    async def test_put_overwrites_with_longer_and_shorter(
        self, store: Store, payload: bytes
    ) -> None:
        await store.put("a/1", b"before")
        await store.put("a/1", payload)

        assert are_equal(await store.get("a/1"), payload)
        assert await listing(store, "a/") == ["a/1"]

    async def test_deleted_key_is_gone_and_can_be_put_again(self, store: Store) -> None:
        await store.put("a/1", b"x")
        await store.put("a/2", b"y")
        await store.delete("a/1")

        assert await store.get("a/1") is None
        assert await store.get("a/2") == b"y"
        assert await listing(store, "a/") == ["a/2"]

        await store.put("a/1", b"z")
        assert await store.get("a/1") == b"z"

    async def test_delete_of_a_missing_key_is_no_error(self, store: Store) -> None:
        await store.put("a/1", b"x")
        await store.delete("a/1")
        await store.delete("a/1")
        await store.delete("b/c/1")
        await store.delete("a")

        assert await listing(store, "a/") == []

    async def test_keys_of_an_empty_or_missing_folder_are_none(self, store: Store) -> None:
        await store.put("a/b/1", b"x")
        await store.delete("a/b/1")

        assert await listing(store, "a/b/") == []
        assert await listing(store, "c/") == []

    async def test_keys_are_those_directly_in_the_folder(self, store: Store) -> None:
        for key in ("a/1", "a/b/2", "a/b/c/3", "a/bc/4", "a/b.d", "ab/5", "6"):
            await store.put(key, b"x")

        assert await listing(store, "a/") == ["a/1", "a/b.d"]
        assert await listing(store, "a/b/") == ["a/b/2"]
        assert await listing(store, "a/bc/") == ["a/bc/4"]
        assert await listing(store, "ab/") == ["ab/5"]

    async def test_keys_ascend_in_ascii_order_whatever_order_they_came_in(
        self, store: Store
    ) -> None:
        keys = [
            f"a/{name}" for name in ("~", "z", "_", "a", "Z", "9", "10", "1", "0.x", "%41", "-")
        ]
        for key in keys:
            await store.put(key, b"x")
        assert await listing(store, "a/") == sorted(keys)

        await store.put("a/B", b"x")
        await store.delete("a/z")
        assert await listing(store, "a/") == sorted({*keys, "a/B"} - {"a/z"})

    async def test_folder_of_many_keys_is_listed_whole(self, store: Store) -> None:
        keys = [f"a/{number:04}" for number in range(300)]
        for key in reversed(keys):
            await store.put(key, b"")

        assert await listing(store, "a/") == keys

    async def test_keys_can_be_deleted_while_they_are_listed(self, store: Store) -> None:
        for number in range(20):
            await store.put(f"a/{number}", b"x")

        async for key in store.keys("a/"):
            await store.delete(key)

        assert await listing(store, "a/") == []

    async def test_fifty_puts_at_once_are_all_kept_apart(self, store: Store) -> None:
        payloads = {f"a/{number:02}": f"{number}-".encode() * 3_000 for number in range(50)}
        async with anyio.create_task_group() as group:
            for key, payload in payloads.items():
                group.start_soon(store.put, key, payload)

        assert {key: await store.get(key) for key in payloads} == payloads
        assert await listing(store, "a/") == list(payloads)

    async def test_readers_never_see_half_of_an_overwritten_payload(self, store: Store) -> None:
        whole = (b"a" * 1_500_000, b"b" * 1_700_000)
        await store.put("a/1", whole[0])
        seen: set[bytes | None] = set()
        done = anyio.Event()

        async def read() -> None:
            while not done.is_set():
                seen.add(await store.get("a/1"))
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
            for number in range(1, 11):
                await store.put("a/1", whole[number % 2])
                await anyio.lowlevel.checkpoint()
            done.set()

        assert seen <= set(whole)

    async def test_two_event_loops_in_two_threads_share_the_store(self, store: Store) -> None:
        start = threading.Barrier(2)

        async def work(worker: int) -> None:
            start.wait()
            for number in range(40):
                key = f"a/{worker}-{number}"
                await store.put(key, key.encode())
                assert await store.get(key) == key.encode()
                await store.put("b/shared", key.encode() * 100)
                assert len(await listing(store, "a/")) > number

        def run(worker: int) -> None:
            anyio.run(work, worker)

        async with anyio.create_task_group() as group:
            for worker in range(2):
                group.start_soon(anyio.to_thread.run_sync, run, worker)

        assert len(await listing(store, "a/")) == 80
        assert await store.get("b/shared") in {b"a/0-39" * 100, b"a/1-39" * 100}
