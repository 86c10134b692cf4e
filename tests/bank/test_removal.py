"""How an artifact goes: in an order that no crash can turn into a false answer."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from coatcheck import Artifact, Bank
from coatcheck.bank._burial import Burial
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank._removal import Remover
from coatcheck.bank._shared import Shared
from coatcheck.bank.collection import collect
from coatcheck.errors import ExpiredPointerError, StoreUnavailableError, UnknownPointerError
from coatcheck.records import Limits
from coatcheck.stores import FileStore, MemoryStore, RedisStore
from coatcheck.testing import ManualClock

KEYS = ScopeKeys.of("default")


class Dying(MemoryStore):
    """A store that refuses everything after some changes, as if its writer was killed."""

    def __init__(self) -> None:
        super().__init__()
        self.changes_left: float = float("inf")

    def _change(self) -> None:
        if self.changes_left <= 0:
            raise StoreUnavailableError("killed")
        self.changes_left -= 1

    async def put(self, key: str, payload: bytes) -> None:
        self._change()
        await super().put(key, payload)

    async def delete(self, key: str) -> None:
        self._change()
        await super().delete(key)

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        self._change()
        return await super().delete_unchanged(payloads)


class Between:
    """Lets something happen just before a record goes, as in another process."""

    happens: Callable[[], Awaitable[object]] | None = None

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        happens, self.happens = self.happens, None  # what happens may remove too
        if happens is not None:
            await happens()
        return await super().delete_unchanged(payloads)  # type: ignore[misc, no-any-return]


class BetweenInMemory(Between, MemoryStore): ...


class BetweenInFiles(Between, FileStore): ...


class BetweenOnRedis(Between, RedisStore): ...


@pytest.fixture(params=["memory", "files", "redis"])
async def between(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    store: Any
    if request.param == "redis":
        store = BetweenOnRedis(request.getfixturevalue("redis_url"))
    else:
        store = BetweenInMemory() if request.param == "memory" else BetweenInFiles(tmp_path)
    yield store
    await store.close()


@pytest.mark.parametrize("how", ["delete", "gc"])
async def test_what_is_put_again_while_another_process_removes_it_stays(
    between: Any, how: str
) -> None:
    clock = ManualClock(time.time())
    here, there = Bank(between, clock=clock), Bank(between, clock=clock)
    first = await here.put("one", key="k", name="n")
    anew: list[Artifact] = []

    async def removed_and_put_again() -> None:
        assert await there.delete(first.pointer)
        anew.append(await there.put("one", key="k", name="n"))

    between.happens = removed_and_put_again
    if how == "delete":
        await here.delete(first.pointer)
    else:
        clock.advance(100)
        await collect(between, older_than_seconds=50, clock=clock)

    assert [each.pointer for each in anew] == [first.pointer]
    assert await there.get(first.pointer) == "one"
    assert await Bank(between, clock=clock).get("n") == "one"
    assert [each.pointer async for each in there.list()] == [first.pointer]


async def answer(bank: Bank, pointer: str) -> str:
    """Return what is behind a pointer, or what is told of it once it has expired."""
    try:
        return await bank.get(pointer, str)
    except ExpiredPointerError as expired:
        return f"{expired.name}, {expired.size_bytes} bytes"


@pytest.mark.parametrize("ttl_seconds", [None, 1_000])
@pytest.mark.parametrize("changes", range(9))
async def test_killed_at_any_step_an_artifact_is_whole_or_told_as_expired(
    changes: int, ttl_seconds: float | None
) -> None:
    store, clock = Dying(), ManualClock()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x" * 100, name="n", ttl_seconds=ttl_seconds)
    clock.advance(120)

    store.changes_left = changes
    try:
        await collect(store, older_than_seconds=60, clock=clock)
    except StoreUnavailableError:
        pass
    else:
        assert changes >= 5
    store.changes_left = float("inf")

    assert await answer(Bank(store, clock=clock), artifact.pointer) in {"x" * 100, "n, 100 bytes"}
    await collect(store, older_than_seconds=60, clock=clock)
    with pytest.raises(ExpiredPointerError, match="named 'n', 100 bytes"):
        await bank.get(artifact.pointer)
    assert await bank.find("n") is None
    assert [key async for key in store.keys(KEYS.record(""))] == []


async def test_what_another_writer_put_meanwhile_under_the_same_id_stays() -> None:
    store, clock = MemoryStore(), ManualClock()
    bank = Bank(store, clock=clock)
    first = await bank.put("x", key="k")
    record = await bank._desk.lookup.found(first.pointer)  # noqa: SLF001 - the record behind it
    await bank.delete(first.pointer)
    clock.advance(1)
    again = await bank.put("x", key="k")
    shared = Shared(store, limits=Limits(), kinds=[], secret=None, clock=clock)

    assert await Burial(shared, KEYS).bury([record]) == ([], [])

    assert first.id == again.id
    assert await Bank(store, clock=clock).get(again.pointer) == "x"
    assert [each async for each in bank.list()] == [again]


async def test_a_removal_leaves_no_tombstone_and_a_burial_does() -> None:
    store = MemoryStore()
    bank = Bank(store)
    removed, buried = await bank.put("x"), await bank.put("y")
    shared = Shared(store, limits=Limits(), kinds=[], secret=None, clock=time.time)
    remover, burial = Remover(shared, KEYS), Burial(shared, KEYS)
    first, second = [
        await bank._desk.lookup.found(each.pointer)  # noqa: SLF001 - the record behind it
        for each in (removed, buried)
    ]

    assert [await remover.remove(first) for _ in range(2)] == [True, False]
    assert [await burial.bury([second]) for _ in range(2)] == [([second], []), ([], [])]

    assert await store.get(KEYS.gone(removed.id)) is None
    assert await store.get(KEYS.gone(buried.id)) is not None
    with pytest.raises(UnknownPointerError):
        await bank.get(removed.pointer)


async def test_an_artifact_that_is_deleted_while_it_is_listed_anew_leaves_no_entries() -> None:
    store = MemoryStore()
    bank = Bank(store)
    artifact = await bank.put("x", name="n")
    record = await bank._desk.lookup.found(artifact.pointer)  # noqa: SLF001 - the record behind it
    await bank.delete(artifact.pointer)
    remover = Remover(bank._shared, KEYS)  # noqa: SLF001 - on the same store

    assert await remover.enter(record) is False

    assert [key async for key in store.keys(KEYS.listing_folder)] == []
    assert [key async for key in store.keys(KEYS.name_folder("n"))] == []
