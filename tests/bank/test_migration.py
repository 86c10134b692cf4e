"""Copying a store into another: whole, in an order that dangles nowhere, and again and again."""

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest

from coatcheck import AgentMemory, Bank, Kind
from coatcheck.bank.migration import Migrated, UnknownScopeError, migrate
from coatcheck.errors import ExpiredPointerError, StoreFormatError, StoreUnavailableError
from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock, S3Server

REPORT = Kind("report", prefix="rp")
LONG = "zażółć gęślą jaźń 🚀\n" * 300_000  # 9.6 MB

Made = dict[str, object]


async def fill(store: Store) -> Made:
    """Bank some of everything, and return what stands behind each pointer."""
    made: Made = {}
    for scope in ("default", "Review 14/21", "x" * 300):
        bank = Bank(store, scope=scope, kinds=[REPORT])
        for number, value in enumerate([{"a": [1, 2]}, "text", b"\x00\xff", "", None, LONG]):
            name = "twice" if number < 2 else None
            artifact = await bank.put(value, name=name, kind="report", key=f"call {number}")
            made[f"{scope}\n{artifact.pointer}"] = value
    return made


async def check(store: Store, made: Made) -> None:
    """See that each pointer, name and listing is in `store`, and every record has its payload."""
    listed: dict[str, int] = {}
    for text, value in made.items():
        scope, pointer = text.split("\n")
        bank = Bank(store, scope=scope)
        assert (await bank.get(pointer) == value) is True
        listed[scope] = listed.get(scope, 0) + 1
    for scope, count in listed.items():
        bank = Bank(store, scope=scope)
        assert len([artifact async for artifact in bank.list()]) == count
        assert await bank.get("twice") == "text"
    await nothing_dangles(store)


async def nothing_dangles(store: Store) -> None:
    async for scope_key in store.keys("store/scopes/"):
        segment = scope_key.rpartition("/")[2]
        payloads = [key async for key in store.keys(f"s/{segment}/payloads/")]
        async for key in store.keys(f"s/{segment}/records/"):
            id_ = key.rpartition("/")[2]
            assert any(id_ in payload for payload in payloads), key


class Failing:
    """A store that works for some calls, and then is out of reach."""

    def __init__(self, store: Any, calls: int) -> None:
        self.store = store
        self.calls = calls

    def spend(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise StoreUnavailableError("pulled out")

    async def put(self, key: str, payload: bytes) -> None:
        self.spend()
        await self.store.put(key, payload)

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        self.spend()
        await self.store.put_stream(key, chunks)

    async def create(self, key: str, payload: bytes) -> bool:
        self.spend()
        created: bool = await self.store.create(key, payload)
        return created

    async def get(self, key: str) -> bytes | None:
        self.spend()
        found: bytes | None = await self.store.get(key)
        return found

    async def delete(self, key: str) -> None:
        self.spend()
        await self.store.delete(key)

    async def keys(self, folder: str) -> AsyncIterator[str]:
        self.spend()
        async for key in self.store.keys(folder):
            yield key

    async def close(self) -> None:
        await self.store.close()


@pytest.fixture(params=["file", "memory", "objects", "s3", "redis"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    stores: dict[str, Callable[[], Store]] = {
        "file": lambda: FileStore(tmp_path / "target"),
        "memory": MemoryStore,
        "objects": lambda: ObjectStore("memory:"),
        "s3": lambda: ObjectStore(request.getfixturevalue("s3").address(f"to/{tmp_path.name}")),
        "redis": lambda: RedisStore(request.getfixturevalue("redis_url")),
    }
    store = stores[request.param]()
    yield store
    await store.close()


async def test_everything_arrives_under_its_pointer_and_name(target: Store, tmp_path: Path) -> None:
    source = FileStore(tmp_path / "source")
    made = await fill(source)
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    done = await migrate(source, target, verify=True, tell=tell)

    assert (done.copied, done.skipped, done.is_whole) == (18, 0, True)
    assert done.size_bytes > 3 * len(LONG)
    assert told[-1] == (18, 18)
    await check(target, made)
    # The secret went along: the same call is the same pointer there.
    again = await Bank(target, kinds=[REPORT]).put({"a": [1, 2]}, kind="report", key="call 0")
    assert f"default\n{again.pointer}" in made
    assert await Bank(target).knows_prefix("rp")


async def test_objects_come_back_as_files(s3: S3Server, tmp_path: Path) -> None:
    source = ObjectStore(s3.address("migrate/back"))
    made = await fill(source)

    done = await migrate(source, FileStore(tmp_path))

    assert done.copied == 18
    await check(FileStore(tmp_path), made)


async def test_a_second_copy_skips_all_and_a_later_one_takes_what_is_new(target: Store) -> None:
    source = MemoryStore()
    made = await fill(source)
    await migrate(source, target)

    assert await migrate(source, target) == Migrated(skipped=18)
    assert await migrate(source, target, verify=True) == Migrated(skipped=18)

    bank = Bank(source)
    made[f"default\n{(await bank.put([3])).pointer}"] = [3]
    assert (await migrate(source, target)).copied == 1
    await check(target, made)


async def test_one_scope_is_copied_alone_and_an_unknown_one_is_told() -> None:
    source, target = MemoryStore(), MemoryStore()
    made = await fill(source)

    done = await migrate(source, target, scope="Review 14/21")

    assert done.copied == 6
    assert [key async for key in target.keys("store/scopes/")] == [
        "store/scopes/%52eview%2014%2f21"
    ]
    await check(target, {text: value for text, value in made.items() if "Review" in text})
    with pytest.raises(UnknownScopeError):
        await migrate(source, target, scope="Review")


@pytest.mark.parametrize("which", ["source", "target"])
async def test_wherever_a_store_fails_nothing_dangles_and_the_next_run_goes_on(which: str) -> None:
    source, target = MemoryStore(), MemoryStore()
    made = await fill(source)
    failures = copied = 0
    for calls in range(0, 1_000, 9):
        from_store: Any = Failing(source, calls) if which == "source" else source
        to_store: Any = Failing(target, calls) if which == "target" else target
        try:
            copied = (await migrate(from_store, to_store)).copied
            break
        except StoreUnavailableError:
            failures += 1
            await nothing_dangles(target)

    assert failures > 5
    assert copied < 18  # the runs before had copied the rest
    await check(target, made)


async def test_a_run_that_ended_between_record_and_listing_is_made_good() -> None:
    source, target = MemoryStore(), MemoryStore()
    pointer = (await Bank(source).put("x" * 1_000, name="it")).pointer
    await migrate(source, target)
    for folder in ("listing/", "names/"):
        for key in [each async for each in target.keys(f"s/default/{folder}")]:
            await target.delete(key)
    async for key in target.keys("s/default/listing/"):
        await target.delete(key)

    assert (await migrate(source, target)).skipped == 1

    assert [artifact.pointer async for artifact in Bank(target).list()] == [pointer]
    assert await Bank(target).get("it") == "x" * 1_000


@pytest.mark.parametrize("size", [1_000, 6_000_000])
async def test_what_is_damaged_in_the_source_is_named_and_leaves_nothing(
    size: int, tmp_path: Path
) -> None:
    source, target = MemoryStore(), FileStore(tmp_path)
    good = (await Bank(source).put("good")).pointer
    bad = await Bank(source).put("x" * size)
    (payload,) = [key async for key in source.keys("s/default/payloads/") if bad.id in key]
    await source.put(payload, b"y" * size)
    gone = await Bank(source).put("z" * size)
    (payload,) = [key async for key in source.keys("s/default/payloads/") if gone.id in key]
    await source.delete(payload)
    await source.put("s/default/records/00000000-0000-4000-8000-000000000005", b"no record")

    done = await migrate(source, target)

    assert done.copied == 1
    assert not done.is_whole
    assert set(done.damaged) == {
        bad.pointer,
        gone.pointer,
        "art:00000000-0000-4000-8000-000000000005",
    }
    assert [artifact.pointer async for artifact in Bank(target).list()] == [good]
    assert len([key async for key in target.keys("s/default/payloads/")]) == 1


async def test_another_content_in_the_target_stays_and_is_named() -> None:
    source, target = MemoryStore(), MemoryStore()
    secret = bytes(32)
    pointer = (await Bank(source, secret=secret).put("ours", key="call")).pointer
    assert (await Bank(target, secret=secret).put("theirs", key="call")).pointer == pointer

    done = await migrate(source, target)

    assert (done.copied, done.kept, done.is_whole) == (0, [pointer], False)
    assert await Bank(target).get(pointer) == "theirs"


async def test_a_secret_that_the_target_has_stays_and_is_told() -> None:
    source, target = MemoryStore(), MemoryStore()
    pointer = (await Bank(source).put("ours", key="call")).pointer
    await Bank(target).put("theirs", key="call")

    done = await migrate(source, target)

    assert done.has_own_secret
    assert await Bank(target).get(pointer) == "ours"


async def test_a_payload_that_the_target_lost_or_damaged_is_copied_again() -> None:
    source, target = MemoryStore(), MemoryStore()
    artifact = await Bank(source).put("x" * 1_000)
    await migrate(source, target)
    (payload,) = [key async for key in target.keys("s/default/payloads/")]

    await target.delete(payload)
    assert (await migrate(source, target)).copied == 1
    assert await Bank(target).get(artifact.pointer) == "x" * 1_000

    await target.put(payload, b"y" * 1_000)
    assert (await migrate(source, target)).skipped == 1  # seen only where it is read
    assert (await migrate(source, target, verify=True)).copied == 1
    assert await Bank(target).get(artifact.pointer) == "x" * 1_000


async def test_a_record_that_is_damaged_in_the_target_is_copied_again() -> None:
    source, target = MemoryStore(), MemoryStore()
    artifact = await Bank(source).put("x" * 1_000)
    await migrate(source, target)
    await target.put(f"s/default/records/{artifact.id}", b"torn")

    assert (await migrate(source, target)).copied == 1
    assert await Bank(target).get(artifact.pointer) == "x" * 1_000


async def test_what_has_expired_stays_behind_and_what_will_expire_does_so_there(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    source, target = FileStore(tmp_path / "source"), FileStore(tmp_path / "target")
    bank = Bank(source, clock=clock)
    await bank.put("short", ttl_seconds=10)
    long = await bank.put("long", ttl_seconds=100)
    clock.advance(60)

    done = await migrate(source, target, clock=clock)

    assert (done.copied, done.expired) == (1, 1)
    there = Bank(target, clock=clock)
    assert await there.get(long.pointer) == "long"
    clock.advance(41)
    with pytest.raises(ExpiredPointerError):
        await there.get(long.pointer)


class Forgetful(MemoryStore):
    """A store in memory that keeps nothing for longer than a minute."""

    ttl_seconds = 60.0

    async def put_many(self, payloads: Any, *, ttl_seconds: Any = None, unless: Any = None) -> bool:
        lives = dict.fromkeys(payloads, self.ttl_seconds) | dict(ttl_seconds or {})
        return await super().put_many(payloads, ttl_seconds=lives, unless=unless)


async def test_a_life_that_a_store_gives_by_itself_is_not_taken_along() -> None:
    clock = ManualClock()
    forgetful, lasting = Forgetful(clock=clock), MemoryStore(clock=clock)
    bank = Bank(forgetful, clock=clock)
    by_itself, asked = await bank.put("by itself"), await bank.put("asked", ttl_seconds=30)
    assert by_itself.expires_at is not None

    assert (await migrate(forgetful, lasting, clock=clock)).limited == 0

    there = Bank(lasting, clock=clock)
    found = [await there.find(artifact.pointer) for artifact in (by_itself, asked)]
    assert [artifact and artifact.expires_at for artifact in found] == [None, asked.expires_at]

    clock.advance(1_000)
    back = Forgetful(clock=clock)
    assert (await migrate(lasting, back, clock=clock)).limited == 1
    clock.advance(59)
    once_more = MemoryStore(clock=clock)
    await migrate(back, once_more, clock=clock)
    there = Bank(once_more, clock=clock)
    assert [artifact.expires_at async for artifact in there.list()] == [None]
    assert await Bank(back, clock=clock).get(by_itself.pointer) == "by itself"
    clock.advance(2)
    with pytest.raises(ExpiredPointerError):
        await Bank(back, clock=clock).get(by_itself.pointer)


async def test_handles_and_grants_go_along() -> None:
    source, target = MemoryStore(), MemoryStore()
    bank = Bank(source)

    async def work() -> str:
        return "done"

    handle = await bank.handles.start(work)
    assert (await bank.handles.poll(handle, 5_000)).result == "done"
    await source.put("s/default/grants/00000000-0000-4000-8000-000000000005", b"other")

    await migrate(source, target)

    assert (await Bank(target).handles.poll(handle)).result == "done"
    assert await target.get("s/default/grants/00000000-0000-4000-8000-000000000005") == b"other"


async def test_memory_goes_along_with_what_its_entries_hold() -> None:
    source, target = MemoryStore(), MemoryStore()
    memory = AgentMemory(Bank(source, scope="run"))
    await memory.set("task:small", 1, title="Small")
    await memory.set("task:large", "x" * 60_000)
    taken = AgentMemory(Bank(target, scope="run"))
    await taken.set("task:small", "already there")

    await migrate(source, target)

    assert await taken.get_value("task:small") == "already there"
    assert await taken.get_value("task:large") == "x" * 60_000
    assert [entry.key for entry in await memory.list()] == ["task:small", "task:large"]


async def test_a_store_of_another_format_is_not_touched() -> None:
    source, target = MemoryStore(), MemoryStore()
    await Bank(source).put("x")
    await target.put("store/format", b'{"format":99}')

    for one, other in ((source, target), (target, source)):
        with pytest.raises(StoreFormatError):
            await migrate(one, other)
    assert [key async for key in target.keys("store/scopes/")] == []


async def test_a_cancelled_copy_stops_and_dangles_nowhere(s3: S3Server) -> None:
    source = MemoryStore()
    made = await fill(source)
    target = ObjectStore(s3.address("migrate/cancelled"))

    with anyio.move_on_after(0.1):
        await migrate(source, target)
    await nothing_dangles(target)

    await migrate(source, target)
    await check(target, made)


async def test_a_target_that_keeps_something_else_is_found_out_where_it_is_read() -> None:
    class Corrupting(MemoryStore):
        async def put(self, key: str, payload: bytes) -> None:
            await super().put(key, payload[::-1] if "/payloads/" in key else payload)

    source = MemoryStore()
    pointer = (await Bank(source).put("abc")).pointer

    assert (await migrate(source, Corrupting())).copied == 1
    done = await migrate(source, Corrupting(), verify=True)

    assert (done.copied, done.damaged) == (0, [pointer])


@pytest.mark.parametrize("size", [10, 6_000_000])
async def test_what_is_deleted_while_it_is_copied_is_left_out(size: int) -> None:
    class Deleting(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            await self.forget(key)
            return await super().get(key)

        async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
            await self.forget(key)
            return await super().get_range(key, start_byte, stop_byte)

        async def forget(self, key: str) -> None:
            if "/payloads/" in key:
                for folder in ("records/", "payloads/"):
                    for each in [one async for one in self.keys(f"s/default/{folder}")]:
                        await self.delete(each)

    source, target = Deleting(), MemoryStore()
    await Bank(source).put("x" * size)

    done = await migrate(source, target)

    assert done == Migrated()
    await nothing_dangles(target)


async def test_a_source_that_fails_in_its_listing_is_told() -> None:
    class Unlisted(MemoryStore):
        async def keys(self, folder: str) -> AsyncIterator[str]:
            async for key in super().keys(folder):
                yield key
                if "/records/" in folder and self.counted:
                    raise StoreUnavailableError("no further")
            self.counted = self.counted or "/records/" in folder

        counted = False

    source = Unlisted()
    for number in range(3):
        await Bank(source).put(number)

    with pytest.raises(StoreUnavailableError, match="no further"):
        await migrate(source, MemoryStore())


async def test_a_scope_whose_name_is_damaged_is_told_before_anything_is_copied() -> None:
    source, target = MemoryStore(), MemoryStore()
    await Bank(source).put("x")
    await source.put("store/scopes/default", b"\xff\xfe")

    with pytest.raises(StoreFormatError, match="the name of a scope is no text"):
        await migrate(source, target)

    assert [key async for key in target.keys("store/")] == []
