"""Artifacts whose time has come go together, and none that a run is shown meanwhile."""

import time
from collections.abc import Awaitable, Callable

import pytest

from coatcheck import Bank
from coatcheck.bank._burial import Burial, together
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank._record import Record
from coatcheck.bank._shared import Shared
from coatcheck.errors import DamagedRecordError
from coatcheck.records import Limits
from coatcheck.stores import MemoryStore, Store

KEYS = ScopeKeys.of("default")


def shared_on(store: Store) -> Shared:
    return Shared(store, limits=Limits(), kinds=[], secret=None, clock=time.time)


class Interrupted(MemoryStore):
    """A store where something else happens once a tombstone is written."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def put(self, key: str, payload: bytes) -> None:
        await super().put(key, payload)
        if "/gone/" in key and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()


async def test_what_a_run_is_shown_while_tombstones_are_written_stays_and_all_others_go() -> None:
    store = Interrupted()
    bank = Bank(store)
    artifacts = [await bank.put(f"{number}") for number in range(5)]
    shown, run = artifacts[2], bank.run("r1")

    async def show() -> None:
        await run.begin()
        with run.current():
            await bank.get(shown.pointer)

    store.meanwhile = show
    burial = Burial(shared_on(store), KEYS)
    found = await burial.records([each.id for each in artifacts])
    records = [each for each in found.values() if isinstance(each, Record)]
    went, held = await burial.bury(records)

    assert [each.artifact.id for each in held] == [shown.id]
    assert {each.artifact.id for each in went} == {each.id for each in artifacts} - {shown.id}
    assert [each.id async for each in bank.list()] == [shown.id]
    assert await store.get(KEYS.gone(shown.id)) is None
    assert len([key async for key in store.keys(KEYS.due_folder)]) == 4
    await run.end()


async def test_records_are_told_by_id_with_those_that_are_missing_or_cannot_be_read(
    any_store: Store,
) -> None:
    bank = Bank(any_store)
    there, gone, damaged = [await bank.put(text) for text in "xyz"]
    await bank.delete(gone.id)
    await any_store.put(KEYS.record(damaged.id), b"damaged")

    found = await Burial(shared_on(any_store), KEYS).records([there.id, gone.id, damaged.id])

    record = found[there.id]
    assert isinstance(record, Record)
    assert record.artifact == there
    assert found[gone.id] is None
    assert isinstance(found[damaged.id], DamagedRecordError)


async def test_on_every_store_many_go_at_once_with_all_their_keys(any_store: Store) -> None:
    bank = Bank(any_store)
    artifacts = [await bank.put("x", name="n") for _ in range(40)]
    burial = Burial(shared_on(any_store), KEYS)
    found = await burial.records([each.id for each in artifacts])

    went, held = await burial.bury([each for each in found.values() if isinstance(each, Record)])

    assert (len(went), held) == (40, [])
    for folder in (KEYS.listing_folder, KEYS.record(""), KEYS.payload(""), KEYS.name_folder("n")):
        assert [key async for key in any_store.keys(folder)] == []
    assert len([key async for key in any_store.keys(KEYS.gone(""))]) == 40


async def test_a_dry_run_tells_what_would_go_and_changes_nothing(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put("x")
    burial = Burial(shared_on(store), KEYS, dry_run=True)
    record = (await burial.records([artifact.id]))[artifact.id]
    assert isinstance(record, Record)

    assert await burial.bury([record]) == ([record], [])

    assert await bank.get(artifact.pointer) == "x"
    assert await store.get(KEYS.gone(artifact.id)) is None


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 100])
def test_together_leaves_nothing_out_and_makes_no_batch_too_large(count: int) -> None:
    batches = list(together(range(count)))

    assert [item for batch in batches for item in batch] == list(range(count))
    assert all(0 < len(batch) <= 32 for batch in batches)
