"""A bank object knows what it put, and forgets what is gone."""

from collections.abc import AsyncIterator

from coatcheck import Bank
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank._own_puts import OwnPuts
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore, Store

KEYS = ScopeKeys.of("default")


async def put_and_note(bank: Bank, own: OwnPuts, count: int) -> list[str]:
    """Put artifacts and note each; return their ids."""
    ids: list[str] = []
    for number in range(count):
        artifact = await bank.put(f"{number}")
        record = await bank._desk.lookup.found(artifact.id)  # noqa: SLF001 - the record behind it
        await own.add(record, bank._shared, KEYS)  # noqa: SLF001 - on the same store
        ids.append(artifact.id)
    return ids


async def test_what_others_removed_is_forgotten_and_what_is_there_is_kept(store: Store) -> None:
    bank, own = Bank(store), OwnPuts(look_after=10)
    ids = await put_and_note(bank, own, 10)
    for id_ in ids[:7]:
        await Bank(store).delete(id_)
    assert len(own) == 10

    ids += await put_and_note(bank, own, 1)

    assert [id_ for id_, _ in own.before(2**63)] == ids[7:]


async def test_it_never_grows_beyond_what_is_there_by_more_than_the_puts_between_two_looks() -> (
    None
):
    bank, own = Bank(MemoryStore()), OwnPuts(look_after=10)
    most = 0

    for _ in range(20):
        for id_ in await put_and_note(bank, own, 5):
            await bank.delete(id_)
        most = max(most, len(own))

    assert most <= 20


async def test_a_look_that_fails_is_left_to_a_later_put() -> None:
    class Unlisted(MemoryStore):
        fails = True

        async def keys(self, folder: str) -> AsyncIterator[str]:
            if self.fails:
                raise StoreUnavailableError("out of reach")
            async for key in super().keys(folder):
                yield key

    store = Unlisted()
    bank, own = Bank(store), OwnPuts(look_after=10)
    ids = await put_and_note(bank, own, 11)
    assert len(own) == 11

    store.fails = False
    for id_ in ids:
        await bank.delete(id_)
    await put_and_note(bank, own, 11)

    assert len(own) == 11


async def test_what_was_put_at_a_time_is_not_before_it(store: Store) -> None:
    bank, own = Bank(store), OwnPuts()
    (id_,) = await put_and_note(bank, own, 1)
    record = await bank._desk.lookup.found(id_)  # noqa: SLF001 - the record behind it

    assert own.before(record.stored_ns) == []
    assert own.before(record.stored_ns + 1) == [(id_, record.stored_ns)]
    own.drop(id_)
    assert len(own) == 0
