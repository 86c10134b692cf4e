"""What somebody put into the store who may write there, but not as we would."""

import pytest

from coatcheck import Bank
from coatcheck.bank._keys import ScopeKeys
from coatcheck.errors import DamagedRecordError
from coatcheck.stores import MemoryStore

A, B = ScopeKeys.of("a"), ScopeKeys.of("b")
SECRET = "the secret of A"


async def test_a_record_of_another_scope_opens_no_payload() -> None:
    store = MemoryStore()
    mine, theirs = Bank(store, scope="a"), Bank(store, scope="b")
    artifact = await mine.put(SECRET, name="n")
    record = await store.get(A.record(artifact.id))
    assert record is not None
    (listed,) = [key async for key in store.keys(A.listing_folder)]
    stamp = listed.rpartition("/")[2]

    await store.put(B.record(artifact.id), record)
    await store.put(f"{B.listing_folder}{stamp}", b"")
    await store.put(f"{B.name_folder('n')}{stamp[:53]}", b"")

    for asked in (artifact.pointer, artifact.id, "n"):
        with pytest.raises(DamagedRecordError) as refused:
            await theirs.get(asked)
        assert SECRET not in str(refused.value)
    assert [each async for each in theirs.list(granted=True)] == []
    assert await theirs.delete(artifact.pointer) is True  # what was planted
    assert await mine.get("n") == SECRET


async def test_a_record_of_another_artifact_opens_no_payload() -> None:
    store = MemoryStore()
    bank = Bank(store, scope="a")
    secret, other = await bank.put(SECRET), await bank.put("other")
    record = await store.get(A.record(secret.id))
    assert record is not None

    await store.put(A.record(other.id), record)

    with pytest.raises(DamagedRecordError):
        await Bank(store, scope="a").get(other.pointer)


async def test_a_grant_of_a_scope_that_does_not_own_it_opens_nothing() -> None:
    store = MemoryStore()
    mine, theirs = Bank(store, scope="a"), Bank(store, scope="b")
    artifact, other = await mine.put(SECRET), await theirs.put("own")
    await theirs.grant(other.pointer, to_scope="c")
    grant = await store.get(ScopeKeys.of("c").grant(other.id))
    assert grant is not None

    await store.put(ScopeKeys.of("c").grant(artifact.id), grant)

    assert await Bank(store, scope="c").find(artifact.pointer) is None
    assert await Bank(store, scope="c").get(other.pointer) == "own"
