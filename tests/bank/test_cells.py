import asyncio

import pytest

from coatcheck import Bank
from coatcheck.errors import StoreFormatError
from coatcheck.stores import MemoryStore, Store


async def test_a_cell_is_what_was_written_last(store: Store) -> None:
    cells = Bank(store).cells

    await cells.put("a", b"first")
    await cells.put("a", b"")
    await cells.put("b", b"other")

    assert await cells.get("a") == b""
    assert await cells.get("c") is None
    assert await cells.count() == 2
    assert sorted([payload async for payload in cells.all()]) == [b"", b"other"]


async def test_a_cell_is_created_once(store: Store) -> None:
    one, other = Bank(store).cells, Bank(store).cells

    won = await asyncio.gather(*(each.create("a", b"x") for each in (one, other) for _ in range(5)))

    assert sum(won) == 1
    await one.delete("a")
    assert await other.create("a", b"again")


async def test_a_cell_that_was_deleted_is_gone_and_a_missing_one_is_no_error(store: Store) -> None:
    cells = Bank(store).cells
    await cells.put("a", b"x")

    await cells.delete("a")
    await cells.delete("a")

    assert await cells.get("a") is None
    assert await cells.count() == 0


async def test_cells_of_scopes_and_artifacts_are_apart(store: Store) -> None:
    bank = Bank(store, scope="a")
    await bank.cells.put("name", b"x")
    await bank.put("value", name="name")

    assert await bank.scoped("b", inherit=True).cells.get("name") is None
    assert await bank.get("name") == "value"
    assert await bank.cells.count() == 1
    assert len([each async for each in bank.list()]) == 1


async def test_many_cells_are_all_told(store: Store) -> None:
    cells = Bank(store).cells
    for number in range(100):
        await cells.put(f"{number}", f"{number}".encode())

    assert {int(payload) async for payload in cells.all()} == set(range(100))


async def test_a_store_of_another_format_is_neither_read_nor_written() -> None:
    store = MemoryStore()
    await store.put("store/format", b'{"format":99}')
    cells = Bank(store).cells

    with pytest.raises(StoreFormatError):
        await cells.get("a")
    with pytest.raises(StoreFormatError):
        await cells.put("a", b"x")
    with pytest.raises(StoreFormatError):
        await cells.create("a", b"x")
    with pytest.raises(StoreFormatError):
        await cells.count()


async def test_a_scope_with_cells_only_is_written_down(store: Store) -> None:
    await Bank(store, scope="Run 1").cells.put("a", b"x")

    assert [await store.get(key) async for key in store.keys("store/scopes/")] == [b"Run 1"]
