"""A store that falls silent may still do what it was asked for: no record may lack its payload."""

from collections.abc import Awaitable, Callable

import pytest

from coatcheck import Bank
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore


class LateStore:
    """A store that answers nothing to a `create` of a record, and obeys it later."""

    def __init__(self, *, unsettled: bool) -> None:
        self.inner = MemoryStore()
        self.put, self.get, self.delete = self.inner.put, self.inner.get, self.inner.delete
        self.keys, self.close = self.inner.keys, self.inner.close
        self.late: list[Callable[[], Awaitable[object]]] = []
        self.unsettled = unsettled

    async def create(self, key: str, payload: bytes) -> bool:
        if "/records/" not in key:
            return await self.inner.create(key, payload)
        self.late.append(lambda: self.inner.create(key, payload))
        raise StoreUnavailableError("no answer", unsettled=self.unsettled)


async def keys(store: LateStore, kind: str) -> list[str]:
    return [key async for key in store.keys(f"s/default/{kind}/")]


@pytest.mark.parametrize("key", [None, "call"])
async def test_a_record_that_comes_late_has_its_payload(key: str | None) -> None:
    store = LateStore(unsettled=True)
    with pytest.raises(StoreUnavailableError, match="no answer"):
        await Bank(store).put("x" * 100_000, key=key)

    for create in store.late:
        await create()

    (record,) = await keys(store, "records")
    assert await Bank(store).get(record.rpartition("/")[2]) == "x" * 100_000


async def test_a_stream_whose_record_comes_late_has_its_payload() -> None:
    store = LateStore(unsettled=True)
    with pytest.raises(StoreUnavailableError, match="no answer"):
        await Bank(store).put(str(number) for number in range(1_000))

    for create in store.late:
        await create()

    (record,) = await keys(store, "records")
    assert await Bank(store).get(record.rpartition("/")[2])


async def test_what_was_refused_for_good_leaves_no_payload() -> None:
    store = LateStore(unsettled=False)
    with pytest.raises(StoreUnavailableError, match="no answer"):
        await Bank(store).put("x" * 100_000)

    assert await keys(store, "payloads") == []
