"""What a scope lists and names when some of its records are damaged, stale or alike."""

import pytest

from coatcheck import Bank, UnknownPointerError
from coatcheck.bank._keys import ScopeKeys
from coatcheck.errors import DamagedRecordError, ExpiredPointerError, StoreFormatError
from coatcheck.stores import Store
from coatcheck.testing import ManualClock

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
KEYS = ScopeKeys.of("default")

DAMAGED = [b"", b"damaged", bytes(200)]


@pytest.mark.parametrize("stored", DAMAGED)
async def test_a_damaged_record_hides_no_other_and_can_be_deleted(
    store: Store, stored: bytes
) -> None:
    good = await Bank(store).put("good", name="g")
    bad = await Bank(store).put("bad", name="b")
    await store.put(KEYS.record(bad.id), stored)
    bank = Bank(store)

    assert [each async for each in bank.list()] == [good]
    with pytest.raises(UnknownPointerError) as unknown:
        await bank.get(UNKNOWN)
    assert unknown.value.nearest == (f"{good.pointer} ('g')",)
    for text in (bad.pointer, bad.id, "b"):
        for call in (bank.find(text), bank.get(text), bank.read(text), bank.search(text, "x")):
            with pytest.raises(DamagedRecordError, match=f"of '{bad.pointer}' is damaged") as told:
                await call
            assert "Delete" in told.value.hint

    assert await bank.delete("b") is True

    assert await bank.find("b") is None
    assert await bank.delete(bad.pointer) is False
    assert [each async for each in bank.list()] == [good]


async def test_a_damaged_record_of_another_scope_is_not_deleted_by_whom_it_was_granted_to(
    store: Store,
) -> None:
    owner, reader = Bank(store, scope="owner"), Bank(store, scope="reader")
    artifact = await owner.put("x")
    await owner.grant(artifact.pointer, to_scope="reader")
    await store.put(f"s/owner/records/{artifact.id}", b"damaged")

    assert await reader.delete(artifact.pointer) is False
    assert await store.get(f"s/owner/records/{artifact.id}") == b"damaged"


async def test_a_record_of_a_later_version_is_passed_over_and_never_deleted(store: Store) -> None:
    good, newer = await Bank(store).put("good"), await Bank(store).put("newer")
    key = KEYS.record(newer.id)
    stored = await store.get(key)
    assert stored is not None
    await store.put(key, stored[:4] + b"\x02" + stored[5:])
    bank = Bank(store)

    assert [each async for each in bank.list()] == [good]
    for call in (bank.get(newer.pointer), bank.delete(newer.pointer)):
        with pytest.raises(StoreFormatError, match="a record of version 2"):
            await call
    assert await store.get(key) is not None


async def test_an_entry_of_an_earlier_writing_stands_for_nothing(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put("x", name="n")
    await store.put(KEYS.listing(5, artifact.id, 1), b"")
    await store.put(KEYS.name("other", 5, artifact.id), b"")

    for reader in (bank, Bank(store)):
        assert [each async for each in reader.list()] == [artifact]
        assert await reader.find("n") == artifact
        assert await reader.find("other") is None


async def test_what_was_put_anew_elsewhere_is_listed_as_it_is_now(store: Store) -> None:
    here, there = Bank(store), Bank(store)
    first = await here.put("x", key="k", label="first")
    assert [each async for each in here.list()] == [first]
    await there.delete(first.pointer)
    second = await there.put("x", key="k", label="second")

    assert [each async for each in here.list()] == [second]


@pytest.mark.parametrize("length", [1, 60, 200])
async def test_the_nearest_name_comes_first_among_fifty(store: Store, length: int) -> None:
    bank = Bank(store)
    wanted = ("wanted-name-" * 20)[:length]
    artifact = await bank.put("x", name=wanted)
    for number in range(49):
        await bank.put("x", name=(f"{number:02}" * 100)[: max(length, 2)])

    with pytest.raises(UnknownPointerError) as caught:
        await bank.get(wanted[:-1] + "~")

    assert len(caught.value.nearest) == 5
    if length > 1:
        assert caught.value.nearest[0].startswith(artifact.pointer)


async def test_a_mistyped_pointer_is_named_among_fifty(store: Store) -> None:
    bank = Bank(store)
    artifacts = [await bank.put("x") for _ in range(50)]

    for artifact in artifacts[::7]:
        swapped = artifact.pointer[:10] + artifact.pointer[10:14][::-1] + artifact.pointer[14:]
        for mistyped in (
            artifact.pointer[:-1],
            swapped,
            artifact.pointer[:24],
            "`art:" + artifact.id,
        ):
            if mistyped != artifact.pointer:
                with pytest.raises(UnknownPointerError) as caught:
                    await bank.get(mistyped)
                assert caught.value.nearest[0] == artifact.pointer


async def test_a_name_that_has_expired_here_is_that_of_what_lives_above(
    store: Store, clock: ManualClock
) -> None:
    parent = Bank(store, clock=clock)
    child = parent.scoped("child", inherit=True)
    expired = await child.put("below", name="plan", ttl_seconds=60)
    clock.advance(61)

    with pytest.raises(ExpiredPointerError):
        await child.get("plan")
    await parent.put("above", name="plan")

    assert await child.get("plan") == "above"
    with pytest.raises(ExpiredPointerError):
        await child.get(expired.pointer)
