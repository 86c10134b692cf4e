"""Writing and removing beside others: cancelled, raced, and what heals by itself."""

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from coatcheck import Bank
from coatcheck.errors import DamagedPayloadError, StoreError, StoreUnavailableError
from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.testing import ManualClock


class Pausing(MemoryStore):
    """A store where one task, named "slow", waits before one kind of call on one kind of key."""

    def __init__(self, call: str, part: str) -> None:
        super().__init__()
        self._call, self._part = call, part
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def put(self, key: str, payload: bytes) -> None:
        await self._pause("put", key)
        await super().put(key, payload)

    async def delete(self, key: str) -> None:
        await self._pause("delete", key)
        await super().delete(key)

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        for key in payloads:
            await self._pause("delete", key)
        return await super().delete_unchanged(payloads)

    async def _pause(self, call: str, key: str) -> None:
        task = asyncio.current_task()
        is_slow = task is not None and task.get_name() == "slow"
        if is_slow and call == self._call and self._part in key and not self.go.is_set():
            self.reached.set()
            await self.go.wait()


async def count(store: Store, folder: str) -> int:
    return len([key async for key in store.keys(f"s/default/{folder}/")])


async def counts(store: Store) -> tuple[int, int, int]:
    return (
        await count(store, "records"),
        await count(store, "payloads"),
        await count(store, "listing"),
    )


@pytest.mark.parametrize("cancels", [1, 2])
@pytest.mark.parametrize("nth", range(1, 9))
async def test_a_put_cancelled_at_any_flush_is_whole_or_gone(
    nth: int, cancels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path, durable=True)
    bank = Bank(store)
    await bank.put("makes the folders", name="n")
    await bank.delete("n")
    loop, withdrawn = asyncio.get_running_loop(), threading.Event()
    seen, flushes = [0], os.fsync

    async def cancel() -> None:
        for _ in range(cancels):
            put.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
        withdrawn.set()

    def flush(file: int) -> None:
        seen[0] += 1
        if seen[0] == nth:
            asyncio.run_coroutine_threadsafe(cancel(), loop)
            assert withdrawn.wait(30)
        flushes(file)

    monkeypatch.setattr(os, "fsync", flush)
    put = asyncio.create_task(bank.put("x", name="n", key="k"))
    with pytest.raises(asyncio.CancelledError):
        await put

    assert await counts(store) == (0, 0, 0)
    assert await bank.get((await bank.put("x", name="n", key="k")).pointer) == "x"


@pytest.mark.parametrize("cancels", [1, 2, 5])
@pytest.mark.parametrize("part", ["payloads", "records", "listing"])
async def test_a_put_cancelled_again_and_again_still_takes_back_what_it_wrote(
    part: str, cancels: int
) -> None:
    class Slow(MemoryStore):
        async def put(self, key: str, payload: bytes) -> None:
            await super().put(key, payload)
            if part in key:
                await asyncio.sleep(60)

        async def create(self, key: str, payload: bytes) -> bool:
            created = await super().create(key, payload)
            if part in key:
                await asyncio.sleep(60)
            return created

        async def delete(self, key: str) -> None:
            for _ in range(10):
                await asyncio.sleep(0)
            await super().delete(key)

    store = Slow()
    put = asyncio.create_task(Bank(store).put("x"))
    while not await count(store, part):
        await asyncio.sleep(0)
    for _ in range(cancels):
        put.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await put
    assert await counts(store) == (0, 0, 0)


@pytest.mark.parametrize("value", ["x", "", b"", b"\x00", [], {"a": 1}])
async def test_a_key_whose_payload_is_lost_is_written_anew(store: Store, value: object) -> None:
    bank = Bank(store)
    first = await bank.put(value, key="k", name="n")
    assert await bank.put(value, key="k", name="n") == first
    (payload,) = [key async for key in store.keys("s/default/payloads/")]
    await store.delete(payload)

    again = await Bank(store).put(value, key="k", name="n")

    assert again.pointer == first.pointer
    assert await Bank(store).get("n") == value
    assert await counts(store) == (1, 1, 1)


async def test_a_key_whose_record_is_damaged_is_written_anew(store: Store) -> None:
    bank = Bank(store)
    first = await bank.put("x", key="k")
    await store.put(f"s/default/records/{first.id}", b"damaged")

    again = await bank.put("x", key="k")

    assert again.pointer == first.pointer
    assert await bank.get(again.pointer) == "x"
    assert [each async for each in bank.list()] == [again]


async def test_a_late_delete_leaves_what_was_put_anew_under_the_key() -> None:
    store = Pausing("delete", "listing")
    here, there = Bank(store), Bank(store)
    pointer = (await here.put("result", key="k", name="n")).pointer
    late = asyncio.create_task(there.delete(pointer), name="slow")
    await store.reached.wait()
    await here.delete(pointer)
    again = await here.put("result", key="k", name="n")
    store.go.set()
    await late

    assert await there.get(again.pointer) == "result"
    assert await there.find("n") == again
    assert [each async for each in there.list()] == [again]
    assert await counts(store) == (1, 1, 1)


async def test_a_late_writer_that_found_it_expired_leaves_what_was_put_anew(
    clock: ManualClock,
) -> None:
    store = Pausing("delete", "listing")
    here, there = Bank(store, clock=clock), Bank(store, clock=clock)
    await here.put("v", key="k", ttl_seconds=1)
    clock.advance(2)
    late = asyncio.create_task(there.put("v", key="k", ttl_seconds=99), name="slow")
    await store.reached.wait()
    first = await here.put("v", key="k", ttl_seconds=99, name="n")
    clock.advance(1)
    store.go.set()

    assert await late == first
    assert [each async for each in here.list()] == [first]
    assert await here.find("n") == first
    assert await counts(store) == (1, 1, 1)


async def test_a_writer_whose_record_went_before_it_was_listed_writes_anew() -> None:
    store = Pausing("put", "listing")
    here, there = Bank(store), Bank(store)
    put = asyncio.create_task(here.put("v", key="k", name="n"), name="slow")
    await store.reached.wait()
    assert await there.delete((await there.put("v", key="k")).pointer)
    store.go.set()

    artifact = await put

    assert await there.get(artifact.pointer) == "v"
    assert [each async for each in there.list()] == [artifact]
    assert await counts(store) == (1, 1, 1)


async def test_a_delete_during_the_listing_leaves_no_entry() -> None:
    class Listing(MemoryStore):
        """Lets another delete the record, between its listing and the look back."""

        async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
            go.set()
            await listed.wait()
            return await super().delete_unchanged(payloads)

        async def put(self, key: str, payload: bytes) -> None:
            if "listing" in key:
                reached.set()
                await go.wait()
            await super().put(key, payload)

    reached, go, listed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    store = Listing()
    here, there = Bank(store), Bank(store)
    put = asyncio.create_task(here.put("v", key="k"))
    await reached.wait()
    delete = asyncio.create_task(there.delete((await there.put("v", key="k")).pointer))
    await put
    listed.set()

    assert await delete
    assert await counts(store) == (0, 0, 0)


async def test_a_record_that_expired_and_went_before_it_was_listed_is_not_written_again(
    clock: ManualClock,
) -> None:
    store = Pausing("put", "listing")
    here, there = Bank(store, clock=clock), Bank(store, clock=clock)
    put = asyncio.create_task(here.put("v", key="k", ttl_seconds=1), name="slow")
    await store.reached.wait()
    clock.advance(2)
    other = await there.put("v", key="k")
    store.go.set()

    assert (await put).expires_at is not None
    assert await here.find(other.pointer) == other
    assert await counts(store) == (1, 1, 1)


async def test_threads_that_put_and_delete_one_key_leave_what_the_last_one_put(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)
    bank = Bank(store)

    async def work() -> None:
        for _ in range(40):
            await bank.delete((await bank.put("v", key="k", name="n")).pointer)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    artifact = await bank.put("v", key="k", name="n")

    assert [each async for each in bank.list()] == [artifact]
    assert await counts(store) == (1, 1, 1)


async def test_two_deletes_at_once_take_one_record() -> None:
    store = Pausing("delete", "records")
    bank = Bank(store)
    pointer = (await bank.put("v", key="k")).pointer
    slow = asyncio.create_task(bank.delete(pointer), name="slow")
    await store.reached.wait()
    other = asyncio.create_task(bank.delete(pointer))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not other.done()
    store.go.set()

    assert await slow
    assert await other
    assert await counts(store) == (0, 0, 0)


async def test_a_store_that_forgets_each_record_at_once_is_told() -> None:
    class Forgetful(MemoryStore):
        async def create(self, key: str, payload: bytes) -> bool:
            return "records" in key or await super().create(key, payload)

    store = Forgetful()

    with pytest.raises(StoreUnavailableError, match="hold no record"):
        await Bank(store).put("x", name="n")
    assert await counts(store) == (0, 0, 0)


class Replacing(MemoryStore):
    """A store where, for some reads of a payload, another deletes and puts it anew just before."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.value: object = None

    async def get(self, key: str) -> bytes | None:
        if "payloads" in key and self.times > 0:
            self.times -= 1
            times, self.times = self.times, 0
            other = Bank(self)
            await other.delete((await other.put(self.value, key="k")).pointer)
            await other.put(self.value, key="k")
            self.times = times
        return await super().get(key)


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("value", ["text " * 10, {"rows": [1]}, None])
async def test_a_read_that_races_with_a_new_put_of_the_key_reads_that(
    value: object, times: int
) -> None:
    store = Replacing(0)
    store.value = value
    pointer = (await Bank(store).put(value, key="k")).pointer

    for call in ("get", "payload", "read", "search"):
        bank = Bank(store)
        text = (await bank.payload(pointer)).decode()
        store.times = times
        if call == "get":
            assert await bank.get(pointer) == value
        elif call == "payload":
            assert await bank.payload(pointer) == text.encode()
        elif call == "read":
            assert (await bank.read(pointer)).content == text
        else:
            assert (await bank.search(pointer, text[:3])).counted_matches > 0
        assert store.times == 0


async def test_a_payload_that_is_replaced_for_ever_is_given_up() -> None:
    store = Replacing(0)
    store.value = [1]
    pointer = (await Bank(store).put([1], key="k")).pointer
    store.times = 1_000

    with pytest.raises(StoreError) as caught:
        await Bank(store).get(pointer)
    assert isinstance(caught.value, DamagedPayloadError)
