"""Another store under a bank: nothing is moved, and nobody's store is closed but its builder's."""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
import redis.asyncio

from coatcheck import Bank, BlockingBank, Envelope, Kind, mirror, open_bank
from coatcheck.errors import UnknownPointerError
from coatcheck.stores import FileStore, MemoryStore
from coatcheck.testing import ManualClock
from coatcheck.tools import retrieval_tools

BARE: Any = redis.asyncio.Redis


class Watched(MemoryStore):
    """A store that counts how often it is closed, and what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0
        self.got: list[str] = []

    async def get(self, key: str) -> bytes | None:
        self.got.append(key)
        return await super().get(key)

    async def close(self) -> None:
        self.closed += 1


async def listed(bank: Bank) -> list[str]:
    return [artifact.pointer async for artifact in bank.list()]


async def test_c43_an_injected_store_is_the_one_that_bank_reads_and_tools_use() -> None:
    store = Watched()
    bank = Bank(MemoryStore())
    await bank.use_store(store)

    pointer = (await bank.put("alpha " * 20_000)).pointer
    (reader,) = retrieval_tools(bank)
    store.got.clear()
    await bank.scoped("default").read(pointer, limit=5)
    assert any("/records/" in key for key in store.got)

    assert '"content":"alpha"' in await reader.call({"artifactId": pointer, "limit": 5})
    assert await store.get(f"s/default/records/{pointer[4:]}") is not None


async def test_c44_after_a_swap_old_pointers_are_unknown_and_new_ones_work() -> None:
    before, after = Watched(), Watched()
    bank = Bank(before)
    inner = bank.scoped("inner", inherit=True)
    old = await bank.put("old", name="n", key="call_0")
    await bank.get(old.pointer)  # whatever is remembered of it is of the store before

    await bank.use_store(after)
    await bank.use_store(after)

    for each in (bank, inner):
        assert await each.find(old.pointer) is None
        assert await each.find("n") is None
        with pytest.raises(UnknownPointerError):
            await each.get(old.pointer)
    assert await listed(bank) == []
    new = await bank.put("new", name="n")
    assert await inner.get("n") == "new"
    assert await listed(bank) == [new.pointer]
    assert before.closed == after.closed == 0

    await bank.use_store(before)
    assert await bank.get("n") == "old"
    assert await bank.find(new.pointer) is None


async def test_c45_a_store_that_was_injected_is_never_closed_and_one_built_here_is_once(
    tmp_path: Path, redis_url: str
) -> None:
    mine, other = Watched(), Watched()
    async with BARE.from_url(redis_url.partition("?")[0]) as server:

        async def settled(count: int) -> None:
            """Wait for that many connections: a server takes a moment to see one end."""
            with anyio.fail_after(5):
                while len(await server.client_list()) != count:
                    await anyio.sleep(0.005)

        idle = len(await server.client_list())
        async with open_bank(redis_url) as bank:
            pointer = (await bank.put("x")).pointer
            await settled(idle + 1)
            await bank.use_store(mine)
            await settled(idle)
            assert await bank.find(pointer) is None
            await bank.use_store(other)
            await bank.use_store(mine)
            await bank.put("y")
        async with open_bank(redis_url) as bank:
            assert await bank.get(pointer) == "x"
            await settled(idle + 1)
        await settled(idle)

    with BlockingBank(tmp_path) as blocking:
        blocking.use_store(mine)
        assert blocking.get(blocking.put("z").pointer) == "z"
    assert mine.closed == other.closed == 0


async def test_c46_a_tools_result_lands_in_the_store_that_is_used_now() -> None:
    bank = Bank(MemoryStore())
    after = MemoryStore()

    async def tool() -> str:
        return "x" * 150_000 + "MARKER-7f3a" + "y" * 50_000

    call = mirror(tool, bank)
    await call()
    await bank.use_store(after)
    shown = await call()

    assert isinstance(shown, Envelope)
    found = await Bank(after).search(shown.pointer, "marker-7F3A")
    assert [match.offset for match in found.matches] == [150_000]
    page = await bank.read(shown.pointer, found.matches[0].offset, 11)
    assert page.content == "MARKER-7f3a"


async def test_work_under_way_ends_where_it_began_and_its_handle_moves_along() -> None:
    before, after = MemoryStore(), MemoryStore()
    bank = Bank(before)
    go = anyio.Event()

    async def work() -> str:
        await go.wait()
        return "done"

    handle = await bank.handles.start(work)
    await bank.use_store(after)
    assert (await bank.handles.poll(handle)).status == "pending"
    go.set()

    assert (await bank.handles.poll(handle, wait_ms=5_000)).result == "done"
    # Any process that has the new store can ask for it.
    assert (await Bank(after).handles.poll(handle)).result == "done"
    await bank.handles.stop()


async def test_a_put_that_a_swap_meets_is_whole_in_one_of_the_two_stores(tmp_path: Path) -> None:
    stores = [FileStore(tmp_path / "a"), FileStore(tmp_path / "b")]
    bank = Bank(stores[0])
    made: list[str] = []

    async def put(number: int) -> None:
        made.append((await bank.put(f"{number}-" * 200_000, name=f"n{number}")).pointer)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(put, number)
        for turn in range(8):
            await anyio.sleep(0)
            await bank.use_store(stores[turn % 2])

    found = [[each.pointer async for each in Bank(store).list()] for store in stores]
    assert sorted(found[0] + found[1]) == sorted(made)
    for store, pointers in zip(stores, found, strict=True):
        for pointer in pointers:
            await Bank(store).payload(pointer)


async def test_a_swap_keeps_clock_kinds_limits_and_a_given_secret() -> None:
    clock = ManualClock()
    kinds = (Kind(name="product set", prefix="ps"),)
    secret = b"s" * 32
    bank = Bank(MemoryStore(), clock=clock, kinds=kinds, secret=secret)
    first = await bank.put("x", key="call_0", kind="product set")

    await bank.use_store(MemoryStore())

    again = await bank.put("x", key="call_0", kind="product set")
    assert again.pointer == first.pointer
    assert again.pointer.startswith("ps-")
    assert again.stored_at == first.stored_at
    assert bank.limits is Bank(MemoryStore(), limits=bank.limits).limits


async def test_without_a_given_secret_each_store_has_its_own() -> None:
    before, after = MemoryStore(), MemoryStore()
    bank = Bank(before)
    first = await bank.put("x", key="call_0")

    await bank.use_store(after)
    again = await bank.put("x", key="call_0")

    assert again.pointer != first.pointer
    assert (await Bank(after).put("x", key="call_0")).pointer == again.pointer


async def test_cleanup_after_a_swap_removes_only_what_was_put_into_this_store() -> None:
    clock = ManualClock()
    before = MemoryStore()
    bank = Bank(before, clock=clock)
    old = await bank.put("old")

    await bank.use_store(MemoryStore())
    await bank.put("new")
    clock.advance(10)

    assert await bank.cleanup(older_than_seconds=5) == 1
    assert await listed(bank) == []
    assert await Bank(before, clock=clock).get(old.pointer) == "old"


def test_a_swap_in_one_thread_is_seen_in_all() -> None:
    with BlockingBank("memory:") as bank:
        after = MemoryStore()
        pointer = bank.put("x").pointer
        seen: list[object] = []
        bank.use_store(after)
        thread = threading.Thread(target=lambda: seen.append(bank.find(pointer)))
        thread.start()
        thread.join()

        assert seen == [None]
