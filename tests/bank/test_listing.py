"""A listing of artifacts: what it asks of a store that can send many records at once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from coatcheck import Bank, Limits
from coatcheck.stores import MemoryStore


class Gathering:
    """A store in memory that sends many at once, and writes down how many, and what else is got."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.at_once: list[int] = []
        self.got: list[str] = []

    async def put(self, key: str, payload: bytes) -> None:
        await self.store.put(key, payload)

    async def create(self, key: str, payload: bytes) -> bool:
        return await self.store.create(key, payload)

    async def get(self, key: str) -> bytes | None:
        self.got.append(key)
        return await self.store.get(key)

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        self.at_once.append(len(keys))
        return [await self.store.get(key) for key in keys]

    async def delete(self, key: str) -> None:
        await self.store.delete(key)

    async def keys(self, folder: str) -> AsyncIterator[str]:
        async for key in self.store.keys(folder):
            yield key

    async def close(self) -> None:
        await self.store.close()


async def _filled(count: int) -> tuple[Gathering, list[str]]:
    """Return a store and the pointers in it, newest first."""
    store = Gathering()
    bank = Bank(store)
    pointers = [(await bank.put(f"text {number}")).pointer for number in range(count)]
    store.got.clear()
    return store, pointers[::-1]


async def _newest(bank: Bank, count: int) -> list[str]:
    pointers: list[str] = []
    async with aclosing(bank.list()) as artifacts:
        async for artifact in artifacts:
            pointers.append(artifact.pointer)
            if len(pointers) == count:
                break
    return pointers


@pytest.mark.parametrize(
    ("wanted", "at_once"),
    [(1, [4]), (4, [4]), (5, [4, 32]), (36, [4, 32]), (37, [4, 32, 64]), (200, [4, 32, 64, 20])],
)
async def test_records_of_a_listing_are_read_together_and_few_where_few_are_wanted(
    wanted: int, at_once: list[int]
) -> None:
    store, pointers = await _filled(120)

    assert await _newest(Bank(store), wanted) == pointers[:wanted]
    assert store.at_once == at_once
    assert [key for key in store.got if "/records/" in key] == []


async def test_records_that_a_bank_remembers_are_not_read_again() -> None:
    store, pointers = await _filled(10)
    bank = Bank(store)
    await _newest(bank, 10)
    late = (await Bank(store).put("late")).pointer
    store.at_once.clear()

    assert await _newest(bank, 20) == [late, *pointers]
    assert store.at_once == [1]


async def test_a_bank_that_remembers_nothing_lists_the_same() -> None:
    store, pointers = await _filled(50)

    assert await _newest(Bank(store, limits=Limits(cache_bytes=0)), 50) == pointers


async def test_damaged_foreign_and_missing_records_hide_no_other() -> None:
    store, pointers = await _filled(6)
    ids = [pointer.removeprefix("art:") for pointer in pointers]
    whole = await store.store.get(f"s/default/records/{ids[0]}")
    assert whole is not None
    await store.put(f"s/default/records/{ids[1]}", whole[:-1])
    await store.put(f"s/default/records/{ids[2]}", whole)  # of another id
    await store.delete(f"s/default/records/{ids[3]}")
    await store.put("s/default/listing/0-not-an-entry", b"")

    assert await _newest(Bank(store), 6) == [pointers[0], *pointers[4:]]
