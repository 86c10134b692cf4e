"""What a collection removes, mends and leaves alone, in every store."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coatcheck import Bank
from coatcheck.bank import Usage
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank.collection import Collected, UnknownScopeError, collect
from coatcheck.errors import ExpiredPointerError, StoreFormatError, UnknownPointerError
from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock, S3Server

KEYS = ScopeKeys.of("default")
DAY = 86_400.0


async def keys_of(store: Store) -> list[str]:
    """Return all keys of the scope ``default`` in folders without folders of their own."""
    folders = ("records", "payloads", "listing", "due", "gone", "touched", "leases", "handles")
    return [
        key for folder in (*folders, "grants") async for key in store.keys(f"s/default/{folder}/")
    ]


async def test_an_empty_store_has_nothing_to_collect(any_store: Store) -> None:
    assert await collect(any_store) == Collected()


async def test_what_has_expired_goes_and_is_told_for_a_week(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    short = await bank.put("x" * 100, name="short", tool="rows", ttl_seconds=60)
    long = await bank.put("y" * 100, ttl_seconds=120)
    kept = await bank.put("z")

    assert (await collect(store, clock=clock)).expired == 0
    clock.advance(61)
    done = await collect(store, clock=clock)

    assert (done.expired, done.size_bytes, done.artifacts, done.scopes) == (1, 100, 3, 1)
    assert [each.id async for each in bank.list()] == [kept.id, long.id]
    for text in (short.pointer, short.id):
        with pytest.raises(ExpiredPointerError) as expired:
            await bank.get(text)
        told = expired.value
        assert (told.name, told.size_bytes, told.tool) == ("short", 100, "rows")
    clock.advance(60)
    assert (await collect(store, clock=clock)).expired == 1
    clock.advance(7 * DAY)
    assert (await collect(store, clock=clock)).tombstones == 2
    with pytest.raises(UnknownPointerError):
        await bank.get(short.pointer)
    assert len(await keys_of(store)) == 3


async def test_a_store_that_forgets_by_itself_is_left_to_it(
    redis_url: str, clock: ManualClock
) -> None:
    store = RedisStore(redis_url)
    bank = Bank(store, clock=clock)
    await bank.put("x", ttl_seconds=60)
    clock.advance(61)

    done = await collect(store, clock=clock)

    assert done == Collected(scopes=1, artifacts=1)
    await store.close()


async def test_what_is_older_than_asked_for_goes(any_store: Store, clock: ManualClock) -> None:
    bank = Bank(any_store, clock=clock)
    old = await bank.put("old", name="n")
    clock.advance(7 * DAY)
    young = await bank.put("young", name="n")

    assert (await collect(any_store, older_than_seconds=7 * DAY, clock=clock)).evicted == 0
    clock.advance(1)
    done = await collect(any_store, older_than_seconds=7 * DAY, clock=clock)

    assert (done.evicted, done.size_bytes, done.artifacts) == (1, 3, 2)
    assert [each.id async for each in bank.list()] == [young.id]
    assert await bank.get("n") == "young"
    with pytest.raises(ExpiredPointerError, match="named 'n', 3 bytes"):
        await bank.get(old.pointer)


@pytest.mark.parametrize("asked", ["expired", "older_than_seconds", "quota_bytes"])
async def test_of_many_that_go_at_once_each_is_counted(
    store: Store, clock: ManualClock, asked: str
) -> None:
    bank = Bank(store, clock=clock)
    for _ in range(200):
        await bank.put("xx", ttl_seconds=60)
    clock.advance(61 if asked == "expired" else 1)

    options: dict[str, int] = {} if asked == "expired" else {asked: 0}
    done = await collect(store, clock=clock, **options)  # type: ignore[arg-type] # as named

    assert (done.expired + done.evicted, done.size_bytes) == (200, 400)
    assert await bank.usage() == Usage(0, 0)


async def test_above_a_quota_the_oldest_go_of_a_scope_or_of_the_store(
    any_store: Store, clock: ManualClock
) -> None:
    one = Bank(any_store, scope="one", clock=clock)
    two = one.scoped("two")
    for bank in (one, two):
        for number in range(10):
            await bank.put(f"{number}" * 100)
            clock.advance(1)

    assert (await collect(any_store, scope="two", quota_bytes=700, clock=clock)).evicted == 3
    assert (await one.usage(), await two.usage()) == (Usage(10, 1_000), Usage(7, 700))
    assert (await collect(any_store, quota_bytes=1_000, clock=clock)).evicted == 7
    assert (await one.usage(), await two.usage()) == (Usage(3, 300), Usage(7, 700))
    assert [each.preview[0] async for each in one.list()] == ["9", "8", "7"]
    assert (await collect(any_store, quota_bytes=0, clock=clock)).evicted == 10


async def test_what_a_live_run_holds_stays_whatever_is_asked_for(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    shown, unshown = await bank.put("x" * 100, ttl_seconds=60), await bank.put("y" * 100)
    asked: list[dict[str, float]] = [{}, {"older_than_seconds": 0}, {"quota_bytes": 0}]

    async with bank.run("r1"):
        await bank.get(shown.pointer)
        own = await bank.put("z" * 100)
        clock.advance(120)
        for each in asked:
            done = await collect(any_store, clock=clock, **each)  # type: ignore[arg-type] # as named
            assert done.held >= (0 if isinstance(any_store, RedisStore) else 1) or each
        assert [each.id async for each in bank.list()] == [own.id, shown.id]
        assert await bank.find(unshown.pointer) is None

    await collect(any_store, older_than_seconds=0, clock=clock)
    assert await bank.usage() == Usage(0, 0)


async def test_a_dry_run_counts_and_changes_nothing(any_store: Store, clock: ManualClock) -> None:
    bank = Bank(any_store, clock=clock)
    for number in range(5):
        await bank.put(f"{number}" * 100, ttl_seconds=60 if number < 2 else None)
    clock.advance(61)
    before = [(key, await any_store.get(key)) for key in await keys_of(any_store)]
    forgets = isinstance(any_store, RedisStore)

    done = await collect(
        any_store, quota_bytes=100, older_than_seconds=3_600, dry_run=True, clock=clock
    )

    # Each is counted once: two expired, none old, and of the other three two over the quota.
    assert (done.expired, done.evicted) == ((0, 4) if forgets else (2, 2))
    assert [(key, await any_store.get(key)) for key in await keys_of(any_store)] == before


async def test_one_scope_is_collected_alone_and_an_unknown_one_is_an_error(
    store: Store, clock: ManualClock
) -> None:
    one, two = Bank(store, scope="one", clock=clock), Bank(store, scope="Two/2", clock=clock)
    for bank in (one, two):
        await bank.put("x", ttl_seconds=60)
    clock.advance(61)

    assert (await collect(store, scope="Two/2", clock=clock)).expired == 1
    assert (await one.usage(), await two.usage()) == (Usage(1, 1), Usage(0, 0))
    with pytest.raises(UnknownScopeError):
        await collect(store, scope="three", clock=clock)


@pytest.mark.parametrize("asked", [{"older_than_seconds": -1}, {"quota_bytes": -1}])
async def test_a_negative_age_or_quota_is_refused(store: Store, asked: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        await collect(store, **asked)  # type: ignore[arg-type] # as named


async def test_an_artifact_that_its_writer_could_not_list_is_listed_once_that_is_done(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    lost = await bank.put("lost", name="n", ttl_seconds=3_600)
    for folder in ("listing", "due", f"names/{KEYS.name_folder('n').split('/')[3]}"):
        async for key in store.keys(f"s/default/{folder}/"):
            await store.delete(key)
    assert await bank.find("n") is None

    clock.advance(59)
    assert (await collect(store, clock=clock)).relisted == 0  # its writer may be at it
    clock.advance(2)
    assert (await collect(store, clock=clock)).relisted == 1

    assert [each.id async for each in bank.list()] == [lost.id]
    assert await bank.get("n") == "lost"
    clock.advance(3_600)
    assert (await collect(store, clock=clock)).expired == 1


async def test_entries_of_what_is_gone_or_was_put_anew_go(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock)
    first = await bank.put("x", key="k", ttl_seconds=60)
    stale = await listing(store)
    clock.advance(61)
    again = await bank.put("x", key="k", ttl_seconds=3_600)
    gone = await bank.put("gone")
    await store.put(stale[0], b"")
    await store.delete(KEYS.record(gone.id))
    await store.put(KEYS.touched(gone.id), b"1")
    await store.put(f"{KEYS.listing_folder}something", b"of another program")

    done = await collect(store, clock=clock)

    assert first.id == again.id
    assert done.leftovers == 3
    assert [each.id async for each in bank.list()] == [again.id]
    assert len(await listing(store)) == 2


async def listing(store: Store) -> list[str]:
    return [key async for key in store.keys(KEYS.listing_folder)]


async def orphaned(store: Store) -> list[str]:
    """Leave payloads that no record names: of an id without one, and beside that of another."""
    bank = Bank(store)
    artifact = await bank.put("kept")
    orphans = [
        KEYS.payload(f"{artifact.id}-00000000.txt"),
        KEYS.payload("00000000-0000-4000-8000-000000000005-00000000.txt"),
    ]
    for key in orphans:
        await store.put(key, b"of a writer that died")
    await store.put(KEYS.payload("readme.txt"), b"of another program")
    assert (await collect(store)).payloads == 0  # they are young
    return orphans


async def check_swept(store: Store, orphans: list[str]) -> None:
    assert (await collect(store)).payloads == 2
    assert [await store.get(key) for key in orphans] == [None, None]
    assert await store.get(KEYS.payload("readme.txt")) is not None
    (artifact,) = [each async for each in Bank(store).list()]
    assert await Bank(store).get(artifact.pointer) == "kept"


async def test_payloads_of_writers_that_died_are_swept_once_they_are_a_day_old(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)
    orphans = await orphaned(store)

    def age(seconds: float) -> None:
        old = time.time() - seconds
        for folder, _, names in os.walk(tmp_path):
            for name in names:
                os.utime(Path(folder, name), (old, old))

    age(DAY - 60)
    assert (await collect(store)).payloads == 0
    age(DAY + 1)
    await check_swept(store, orphans)


async def test_in_an_object_store_a_stream_may_take_hours_from_its_upload_to_its_record(
    s3: S3Server,
) -> None:
    address = s3.address("orphans")
    orphans = await orphaned(ObjectStore(address))

    assert (await collect(ObjectStore(address, clock=lambda: time.time() + DAY - 60))).payloads == 0
    await check_swept(ObjectStore(address, clock=lambda: time.time() + DAY + 5), orphans)


async def test_a_store_that_does_not_know_ages_keeps_what_might_be_young() -> None:
    store = MemoryStore()

    orphans = await orphaned(store)

    assert (await collect(store, clock=lambda: time.time() + DAY)).payloads == 0
    assert await store.get(orphans[0]) is not None


async def test_lapsed_leases_go_with_their_pins_an_hour_later(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x")
    dead = bank.run("dead")
    await dead.begin()
    with dead.current():
        await bank.get(artifact.pointer)

    clock.advance(900 + 3_599)
    assert (await collect(store, clock=clock)).leftovers == 0
    async with bank.run("alive"):
        await bank.get(artifact.pointer)
        clock.advance(1)
        assert (await collect(store, clock=clock)).leftovers == 2
        assert len([key async for key in store.keys("s/default/leases/")]) == 1
    assert [key async for key in store.keys(f"s/default/pins/{dead.segment}/")] == []


async def test_a_grant_stays_as_long_as_something_is_told_of_its_artifact(
    store: Store, clock: ManualClock
) -> None:
    owner = Bank(store, scope="owner", clock=clock)
    reader = owner.scoped("reader")
    artifact = await owner.put("x" * 100, ttl_seconds=60)
    await owner.grant(artifact.pointer, to_scope="reader")
    await reader.put("own")

    clock.advance(61)
    await collect(store, clock=clock)
    with pytest.raises(ExpiredPointerError, match="100 bytes"):
        await reader.get(artifact.pointer)
    clock.advance(7 * DAY)
    await collect(store, clock=clock)
    await collect(store, clock=clock)

    with pytest.raises(UnknownPointerError):
        await reader.get(artifact.pointer)
    assert [key async for key in store.keys("s/reader/grants/")] == []


async def test_handles_go_when_they_have_nothing_to_tell_any_more(
    store: Store, clock: ManualClock
) -> None:
    async def work() -> str:
        return "done"

    bank = Bank(store, clock=clock)
    handle = await bank.handles.start(work, ttl_seconds=600)
    assert (await bank.handles.poll(handle, wait_ms=5_000)).status == "done"

    clock.advance(2 * 600 + DAY - 1)
    assert (await collect(store, clock=clock)).leftovers == 0
    clock.advance(2)
    assert (await collect(store, clock=clock)).leftovers == 1

    assert (await Bank(store, clock=clock).handles.poll(handle)).status == "not-found"


@pytest.mark.parametrize("asked", ["expired", "old", "much", "unlisted"])
async def test_a_damaged_record_is_named_and_stays_and_all_others_are_collected(
    store: Store, clock: ManualClock, asked: str
) -> None:
    bank = Bank(store, clock=clock)
    bad, good = [await bank.put("x" * 100, ttl_seconds=60) for _ in range(2)]
    await store.put(KEYS.record(bad.id), b"damaged")
    if asked == "unlisted":
        await store.delete(next(key for key in await listing(store) if bad.id in key))
    options: dict[str, dict[str, int]] = {
        "old": {"older_than_seconds": 0},
        "much": {"quota_bytes": 0},
    }
    clock.advance(1 if asked in options else 120)

    done = await collect(store, clock=clock, **options.get(asked, {}))  # type: ignore[arg-type] # as named

    assert done.expired + done.evicted == 1
    assert done.damaged == ([] if asked == "much" else [bad.pointer])
    assert await store.get(KEYS.record(bad.id)) == b"damaged"
    assert await bank.find(good.pointer) is None


async def test_a_store_of_another_format_is_refused(store: Store) -> None:
    await Bank(store).put("x")
    await store.put("store/format", b'{"format":2}')

    with pytest.raises(StoreFormatError):
        await collect(store)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("older_than_seconds", "quota_bytes"), [(None, None), (0, None), (None, 0)]
)
async def test_progress_never_goes_back_and_ends_at_the_whole(
    any_store: Store,
    clock: ManualClock,
    *,
    older_than_seconds: int | None,
    quota_bytes: int | None,
    dry_run: bool,
) -> None:
    bank = Bank(any_store, clock=clock)
    for number in range(40):
        await bank.put(f"{number}", ttl_seconds=60 if number % 2 else 86_400)
    clock.advance(61)
    told: list[tuple[int, int]] = []

    await collect(
        any_store,
        older_than_seconds=older_than_seconds,
        quota_bytes=quota_bytes,
        dry_run=dry_run,
        clock=clock,
        tell=lambda done, total: told.append((done, total)),
    )

    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert all(done <= total for done, total in told)
    assert all(done == total for done, total in told[-1:])
    # Where keys go by themselves, only an age or a quota gives something to do.
    is_asked_of = older_than_seconds is not None or quota_bytes is not None
    assert told or (isinstance(any_store, RedisStore) and not is_asked_of)


async def test_while_a_quota_is_made_room_for_what_is_still_to_go_is_told(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    for number in range(100):
        await bank.put(f"{number:010}")
    told: list[tuple[int, int]] = []

    await collect(
        store, quota_bytes=0, clock=clock, tell=lambda done, total: told.append((done, total))
    )

    # All were looked at, and then go in batches.
    assert {(100, 200), (132, 200), (200, 200)} <= set(told)


async def test_an_artifact_put_anew_under_its_key_is_not_told_as_expired_after_its_delete(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    await bank.put("x", key="k", ttl_seconds=60)
    clock.advance(61)
    await collect(store, clock=clock)

    again = await bank.put("x", key="k")
    assert await bank.get(again.pointer) == "x"
    await bank.delete(again.pointer)

    with pytest.raises(UnknownPointerError):
        await bank.get(again.pointer)


@pytest.mark.parametrize("seed", range(4))
async def test_random_lives_end_when_they_should_and_leave_nothing_behind(
    store: Store, clock: ManualClock, seed: int
) -> None:
    source = random.Random(seed)
    bank = Bank(store, clock=clock)
    ends: dict[str, float] = {}
    steps: list[Callable[[], float]] = [lambda: source.choice([1, 30, 300, 3_000])]
    for _ in range(60):
        seconds = steps[0]()
        artifact = await bank.put("x" * source.randrange(200), ttl_seconds=seconds)
        ends[artifact.pointer] = clock() + seconds
        clock.advance(source.choice([0.5, 10.5, 100.5]))
        if source.random() < 0.3:
            await collect(store, clock=clock)
    alive = {pointer for pointer, end in ends.items() if end > clock()}
    assert {each.pointer async for each in bank.list()} == alive

    clock.advance(3_001)
    await collect(store, clock=clock)
    clock.advance(8 * DAY)
    await collect(store, clock=clock)

    assert await keys_of(store) == []


async def test_what_is_held_is_counted_once_however_often_it_could_have_gone(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    async with bank.run("r1"):
        await bank.put("x" * 100, ttl_seconds=60)
        clock.advance(120)

        done = await collect(store, older_than_seconds=60, quota_bytes=0, clock=clock)

    assert (done.held, done.expired, done.evicted) == (1, 0, 0)


@pytest.mark.parametrize("lease", [b"", b"[]", b"{}", b'{"until":"x"}', b"\xff"])
async def test_a_lease_that_is_none_holds_nothing_and_goes(
    store: Store, clock: ManualClock, lease: bytes
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x", ttl_seconds=60)
    key = KEYS.lease(KEYS.run_segment("r1"), "00")
    await store.put(key, lease)
    await store.put(KEYS.pin(KEYS.run_segment("r1"), artifact.id), b"")
    clock.advance(61)

    done = await collect(store, clock=clock)

    assert (done.expired, done.held, done.leftovers) == (1, 0, 2)
    assert await store.get(key) is None


async def test_two_leases_of_one_run_keep_its_pins_until_both_are_over(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x", ttl_seconds=60)
    dead, alive = bank.run("r1"), bank.run("r1")
    await dead.begin()
    with dead.current():
        await bank.get(artifact.pointer)
    clock.advance(5_000)
    await alive.begin()

    done = await collect(store, clock=clock)

    assert (done.held, done.leftovers) == (1, 1)
    await alive.end()
    assert (await collect(store, clock=clock)).expired == 1


async def test_a_record_of_a_later_version_is_left_to_whoever_knows_it(
    store: Store, clock: ManualClock
) -> None:
    artifact = await Bank(store, clock=clock).put("x", ttl_seconds=60)
    stored = await store.get(KEYS.record(artifact.id))
    assert stored is not None
    later = stored[:4] + b"\x02" + stored[5:]
    await store.put(KEYS.record(artifact.id), later)
    clock.advance(61)

    done = await collect(store, older_than_seconds=0, quota_bytes=0, clock=clock)

    assert (done.expired, done.evicted, done.damaged) == (0, 0, [])
    assert await store.get(KEYS.record(artifact.id)) == later


async def test_a_tombstone_that_is_none_goes_and_a_grant_that_is_none(
    store: Store, clock: ManualClock
) -> None:
    await Bank(store, clock=clock).put("x")
    id_ = "00000000-0000-4000-8000-000000000005"
    await store.put(KEYS.due(1, id_), b"")
    await store.put(KEYS.gone(id_), b"never one")
    await store.put(KEYS.grant(id_), b"never one")

    done = await collect(store, clock=clock)

    assert (done.tombstones, done.leftovers) == (1, 1)
    assert len(await keys_of(store)) == 3


async def test_a_scope_whose_name_is_damaged_is_collected_as_any_other(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    await bank.put("x", ttl_seconds=60)
    await bank.scoped("other").put("y", ttl_seconds=60)
    await store.put("store/scopes/default", b"\xff\xfe")
    clock.advance(61)

    assert (await collect(store, clock=clock)).expired == 2


async def test_a_scope_is_found_by_its_name_though_what_is_written_there_is_damaged(
    store: Store, clock: ManualClock
) -> None:
    await Bank(store, clock=clock).put("x", ttl_seconds=60)
    await store.put("store/scopes/default", b"\xff\xfe")
    clock.advance(61)

    assert (await collect(store, scope="default", clock=clock)).expired == 1
