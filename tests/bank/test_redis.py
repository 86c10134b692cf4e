"""A bank on Redis: what is written at once, how long it lives, and what becomes of it."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
import redis.asyncio

from coatcheck import Artifact, Bank, Kind, Limits, mirror, open_bank
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank.collection import collect
from coatcheck.errors import ExpiredPointerError, StoreUnavailableError, UnknownPointerError
from coatcheck.stores import RedisStore
from coatcheck.testing import ManualClock, Wire, redis_server

BARE: Any = redis.asyncio.Redis
KEYS = ScopeKeys.of("default")
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[Any]:
    async with BARE.from_url(redis_url.partition("?")[0]) as server:
        yield server


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_url, part_bytes=100_000)
    yield store
    await store.close()


async def held(server: Any, url: str) -> dict[str, int]:
    """Return the server's keys of a store without folders, and the milliseconds each has left."""
    prefix = url.partition("prefix=")[2]
    names = [name.decode() async for name in server.scan_iter(f"{prefix}*")]
    return {
        name.removeprefix(prefix): await server.pttl(name)
        for name in sorted(names)
        if not name.endswith("/")
    }


async def passes(server: Any, url: str, seconds: float) -> None:
    """Take the time from what each key has left, as a server's clock is its own."""
    prefix = url.partition("prefix=")[2]
    for name in [name async for name in server.scan_iter(f"{prefix}*")]:
        await server.pexpire(name, max(await server.pttl(name) - int(seconds * 1_000), 0))


def of(kind: str, keys: dict[str, int]) -> list[str]:
    return [key for key in keys if key.split("/")[2:3] == [kind]]


async def stream_of(text: str) -> AsyncIterator[str]:
    for start in range(0, len(text), 50_000):
        yield text[start : start + 50_000]


async def test_c49_artifact_lies_under_the_prefix_with_a_time_and_no_file_is_made(
    store: RedisStore,
    redis_url: str,
    server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HOME", "TMPDIR", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    text = "line of a report\n" * 5_000

    artifact = await Bank(store, scope="r1").put(text, name="report")

    keys = await held(server, redis_url)
    (payload,) = of("payloads", keys)
    (record,) = of("records", keys)
    assert 0 < keys[payload] <= DAY_MS
    assert 0 < keys[record] <= DAY_MS
    assert await server.get(redis_url.partition("prefix=")[2] + payload) == text.encode()
    assert [*tmp_path.iterdir()] == []
    async with open_bank(redis_url, scope="r1") as other:
        assert (await other.read(artifact.pointer, 17, 16)).content == text[17:33]
        assert await other.get("report") == text
        assert await other.delete(artifact.pointer)
    assert of("payloads", await held(server, redis_url)) == []
    assert of("records", await held(server, redis_url)) == []


async def test_c51_windows_of_text_that_is_not_ascii_join_to_the_text(store: RedisStore) -> None:
    text = ("né 数据 🎟 стр\n" * 10_000)[:100_000]
    pointer = (await Bank(store).put(text)).pointer
    reader = Bank(store)

    windows = [await reader.read(pointer, offset, 30_000) for offset in range(0, 100_000, 30_000)]

    assert "".join(str(page.content) for page in windows) == text
    assert [page.total for page in windows] == [100_000] * 4


async def test_of_an_artifact_whose_writing_was_cut_off_nothing_is_there(
    wire: Wire, store: RedisStore, redis_url: str, server: Any
) -> None:
    way = RedisStore(f"redis://127.0.0.1:{wire.port}/0?{redis_url.partition('?')[2]}")
    bank = Bank(way)
    first = await bank.put("first")
    before = await held(server, redis_url)

    for value in ("x" * 80_000, "x" * 8_000_000, stream_of("x" * 8_000_000)):
        wire.lose(b"EXEC", times=9)
        with pytest.raises(StoreUnavailableError) as failed:
            await bank.put(value, name="n")
        assert failed.value.unsettled

    parts = {key for key in await held(server, redis_url) if "#" in key}
    assert set(await held(server, redis_url)) - parts == set(before)
    assert [each.pointer async for each in Bank(store).list()] == [first.pointer]
    await way.close()


async def test_a_put_whose_answer_was_lost_once_is_one_artifact(
    wire: Wire, store: RedisStore, redis_url: str
) -> None:
    way = RedisStore(f"redis://127.0.0.1:{wire.port}/0?{redis_url.partition('?')[2]}")
    bank = Bank(way)

    for number, value in enumerate(("x" * 80_000, "y" * 800_000, stream_of("z" * 800_000))):
        wire.lose(b"/records/", answer=True)
        keyed = await bank.put(value, key=f"call_{number}")
        wire.lose(b"EXEC", answer=True)
        again = await bank.put(await bank.get(keyed.pointer), key=f"call_{number}")
        assert again == keyed

    assert len([each async for each in Bank(store).list()]) == 3
    assert wire.lost == 3
    await way.close()


async def test_the_first_of_several_writers_of_one_key_wins_and_the_others_leave_nothing(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    made: list[str] = []

    async def put(number: int) -> None:
        artifact = await Bank(store).put("x" * 250_000, key="call_0", name=f"n{number}")
        made.append(artifact.pointer)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(put, number)

    assert len(set(made)) == 1
    keys = await held(server, redis_url)
    kinds = ("records", "payloads", "listing", "names")
    parts = [key for key in of("payloads", keys) if "#" in key]
    assert len(parts) == 3
    assert [len(of(kind, keys)) for kind in kinds] == [1, 1 + 3, 1, 1]


@pytest.mark.parametrize("form", ["small", "in parts", "stream", "stream in parts"])
@pytest.mark.parametrize("ttl_seconds", [None, 60, 30 * 86_400])
async def test_a_record_never_outlives_its_payload_and_leaves_a_tombstone_for_a_week(
    store: RedisStore, redis_url: str, server: Any, form: str, ttl_seconds: float | None
) -> None:
    text = "x" * (400_000 if "parts" in form else 4_000)
    bank = Bank(store)
    value = stream_of(text) if "stream" in form else text.encode()

    artifact = await bank.put(value, name="n", ttl_seconds=ttl_seconds)

    lives_ms = DAY_MS if ttl_seconds is None else int(ttl_seconds * 1_000)
    assert artifact.expires_at is not None
    assert (artifact.expires_at - artifact.stored_at).total_seconds() * 1_000 == lives_ms
    keys = await held(server, redis_url)
    (record,) = of("records", keys)
    for key in (record, *of("listing", keys), *of("names", keys), *of("payloads", keys)):
        assert lives_ms - 20_000 < keys[key] <= lives_ms
    # Asked in turn, so that what was asked first seems to have more left.
    assert min(keys[key] for key in of("payloads", keys)) >= keys[record] - 1_000
    (gone,) = of("gone", keys)
    assert lives_ms + WEEK_MS - 20_000 < keys[gone] <= lives_ms + WEEK_MS


async def test_what_has_expired_is_told_from_what_never_was(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    clock = ManualClock()
    bank = Bank(store, limits=Limits(cache_bytes=0), clock=clock)
    short = await bank.put("x" * 100_000, name="short", ttl_seconds=60)
    long = await bank.put("y" * 100_000, name="long")
    removed = await bank.put("z", ttl_seconds=60)
    await bank.delete(removed.pointer)
    inner = bank.scoped("inner", inherit=True)

    await passes(server, redis_url, 61)
    for seconds in (0, 61):  # the server's clock decides, wherever ours is
        clock.advance(seconds)
        for call in (bank.get, bank.payload, bank.read, inner.get):
            with pytest.raises(ExpiredPointerError):
                await call(short.pointer)
    assert await bank.find(short.pointer) is None
    for unknown in (removed.pointer, "short"):
        with pytest.raises(UnknownPointerError):
            await bank.get(unknown)
    with pytest.raises(UnknownPointerError):
        await bank.scoped("other").get(short.pointer)
    assert [each.pointer async for each in bank.list()] == [long.pointer]
    assert not await bank.delete(short.pointer)

    await passes(server, redis_url, 7 * 86_400)
    with pytest.raises(UnknownPointerError):
        await bank.get(short.pointer)


async def test_an_expired_key_is_written_anew_under_its_pointer(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    bank = Bank(store)
    first = await bank.put("x" * 50_000, key="call_0", ttl_seconds=60)

    await passes(server, redis_url, 61)
    again = await bank.put("x" * 50_000, key="call_0", ttl_seconds=60)

    assert again.pointer == first.pointer
    assert again.stored_at > first.stored_at
    assert await bank.get(first.pointer) == "x" * 50_000


async def test_what_the_store_says_of_itself_outlives_every_artifact(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    clock = ManualClock()
    kinds = (Kind(name="product set", prefix="ps"),)
    bank = Bank(store, scope="Run 1", kinds=kinds, clock=clock)
    marks = ("{store}/format", "{store}/secret", "{store}/kinds/ps", "{store}/scopes/%52un%201")

    first = await bank.put("x", key="call_0")
    keys = await held(server, redis_url)
    assert {key for key in keys if key.startswith("{store}")} == {*marks}
    assert all(keys[mark] >= keys[of("records", keys)[0]] for mark in marks)

    await bank.put("y", ttl_seconds=30 * 86_400)
    keys = await held(server, redis_url)
    assert all(keys[mark] > 30 * DAY_MS for mark in marks)

    # A put every 20 hours: all the time other processes find what they need.
    for hours_back in (0, 365 * 24):  # our clock may be set back, and the server's goes on
        clock.advance(-hours_back * 3_600)
        for _ in range(40):
            clock.advance(20 * 3_600)
            await passes(server, redis_url, 20 * 3_600)
            await bank.put("z")
            keys = await held(server, redis_url)
            assert all(keys.get(mark, 0) > DAY_MS for mark in marks)
    other = Bank(store, scope="Run 1", clock=clock)
    assert (await other.put("x", key="call_0")).pointer == first.pointer
    assert await other.knows_prefix("ps")


async def test_a_secret_that_a_server_lost_comes_back_from_who_knows_it(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock)
    first = await bank.put("x", key="call_0")

    for name in await held(server, redis_url):
        await server.delete(redis_url.partition("prefix=")[2] + name)
    clock.advance(100 * 86_400)
    again = await bank.put("x", key="call_0")

    assert again.pointer == first.pointer
    assert (await Bank(store).put("x", key="call_0")).pointer == first.pointer


async def test_a_bank_whose_secret_was_replaced_takes_over_the_one_that_is_there(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock)
    await bank.put("x", key="call_0")

    await server.set(redis_url.partition("prefix=")[2] + "{store}/secret", b"s" * 32, ex=1_000)
    clock.advance(100 * 86_400)
    await bank.put("y")

    theirs = await Bank(store).put("x", key="call_1")
    assert (await bank.put("x", key="call_1")).pointer == theirs.pointer


async def test_background_work_is_told_as_long_as_it_may_be_asked_for(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    async def work() -> str:
        return "done"

    bank = Bank(store)
    handle = await bank.handles.start(work, ttl_seconds=10 * 86_400)
    assert (await bank.handles.poll(handle, wait_ms=5_000)).result == "done"

    keys = await held(server, redis_url)
    (kept,) = of("handles", keys)
    assert keys[kept] > 10 * DAY_MS
    assert (await Bank(store).handles.poll(handle)).result == "done"


async def test_in_an_outage_results_pass_inline_in_time_and_then_are_banked_again(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path) as own:
        store = RedisStore(own.url)
        bank = Bank(store)

        async def tool(number: int) -> str:
            return f"{number}" * 60_000

        call = mirror(tool, bank)
        before = await call(1)

        own.pause()
        with anyio.fail_after(10):
            assert await call(2) == "2" * 60_000
        with anyio.fail_after(10), pytest.raises(StoreUnavailableError, match="not answer"):
            await bank.get(before.pointer, bytes)
        own.resume()
        after = await call(3)
        assert await bank.get(after.pointer) == "3" * 60_000

        own.kill()
        with anyio.fail_after(10):
            assert await call(4) == "4" * 60_000
        with redis_server(tmp_path, port=own.port):
            again = await call(5)
            assert await bank.get(again.pointer) == "5" * 60_000
            with pytest.raises(UnknownPointerError):
                await bank.payload(before.pointer)
        await store.close()


async def test_server_without_memory_left_lets_results_pass_and_keeps_what_it_has(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path, "--maxmemory", "5mb") as own:
        store = RedisStore(own.url, part_bytes=300_000)
        bank = Bank(store)
        kept = await bank.put("kept" * 20_000, name="kept")

        async def tool() -> str:
            return "x" * 8_000_000

        shown = await mirror(tool, bank)()
        assert "was not kept" in shown
        for value in ("y" * 8_000_000, b"y" * 8_000_000, stream_of("y" * 8_000_000)):
            with pytest.raises(StoreUnavailableError, match="no memory left"):
                await bank.put(value, name="refused")

        assert [each.pointer async for each in bank.list()] == [kept.pointer]
        assert await bank.find("refused") is None
        assert await Bank(store).get("kept") == "kept" * 20_000
        async with BARE.from_url(own.url) as server:
            parts = [name async for name in server.scan_iter("*#*")]
        assert parts == []
        await store.close()


async def test_a_run_keeps_every_key_of_what_it_was_shown_for_as_long_as_it_calls(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock, limits=Limits(cache_bytes=0))
    shown = await bank.put("shown" * 50_000, name="shown", ttl_seconds=60)
    lease_ms = 900_000

    async def keys_of(artifact: Artifact) -> dict[str, int]:
        keys = await held(server, redis_url)
        return {key: left for key, left in keys.items() if artifact.id in key}

    async with bank.run("r1"):
        await bank.read(shown.pointer)
        own = await bank.put("own", ttl_seconds=60)
        for _ in range(6):
            for artifact, count in ((shown, 9), (own, 5)):
                keys = await keys_of(artifact)
                assert len(keys) == count  # a pin too, of the first a name and parts
                assert min(keys.values()) > lease_ms - 20_000
            (gone,) = of("gone", await keys_of(shown))
            assert (await held(server, redis_url))[gone] > WEEK_MS
            clock.advance(300)
            await passes(server, redis_url, 300)
            assert await bank.get(own.pointer) == "own"
            await bank.read(shown.pointer, offset=100_000)

        clock.advance(899)
        await passes(server, redis_url, 880)
        assert await bank.get(shown.pointer) == "shown" * 50_000

    await passes(server, redis_url, 901)
    for artifact in (shown, own):
        with pytest.raises(ExpiredPointerError, match=f"{artifact.size_bytes:,} bytes"):
            await bank.get(artifact.pointer)


@pytest.mark.parametrize("jumps", [[-86_400.0], [-86_400.0, 43_200.0], [86_400.0, -86_400.0]])
async def test_a_clock_that_is_set_takes_nothing_from_a_run_while_the_server_s_goes_on(
    store: RedisStore, redis_url: str, server: Any, jumps: list[float]
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock, limits=Limits(cache_bytes=0))
    shown = await bank.put("shown", ttl_seconds=1_200)
    jumping = iter(jumps)

    async with bank.run("r1"):
        pointers = [shown.pointer]
        for minutes in range(0, 60, 5):
            for pointer in pointers:
                await bank.get(pointer)
            pointers.append((await bank.put(f"{minutes}", ttl_seconds=1_200)).pointer)
            clock.advance(300 + next(jumping, 0))
            await passes(server, redis_url, 300)

        assert [await bank.find(pointer) is not None for pointer in pointers] == [True] * 13


@pytest.mark.parametrize("is_killed", [False, True])
async def test_what_one_holder_of_a_run_put_stays_when_it_leaves_and_another_goes_on(
    store: RedisStore, redis_url: str, server: Any, *, is_killed: bool
) -> None:
    clock = ManualClock()
    first, second = (Bank(store, clock=clock, limits=Limits(cache_bytes=0)) for _ in range(2))
    leaving = first.run("r1")

    async with second.run("r1"):
        await leaving.begin()
        with leaving.current():
            own = await first.put("own", ttl_seconds=60)
        if not is_killed:
            await leaving.end()
        for _ in range(8):
            clock.advance(300)
            await passes(server, redis_url, 300)
            assert await second.find("of no use but to renew") is None

        keys = [key for key in await held(server, redis_url) if own.id in key]
        kinds = sorted(key.split("/")[2] for key in keys)
        assert kinds == ["gone", "listing", "payloads", "pins", "records"]
        assert await second.get(own.pointer) == "own"

    assert of("pins", await held(server, redis_url)) == []
    await passes(server, redis_url, 901)
    with pytest.raises(ExpiredPointerError):
        await second.get(own.pointer)


async def test_a_pin_of_what_is_gone_damaged_or_planted_keeps_no_run_from_going_on(
    store: RedisStore,
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock)
    damaged = await bank.put("damaged")
    async with bank.run("r1"):
        own = [await bank.put(text) for text in ("kept", "damaged", "gone")]
        await store.put(KEYS.record(own[1].id), await store.get(KEYS.record(damaged.id)) or b"")
        await bank.delete(own[2].pointer)
        (pin, *_) = [key async for key in store.keys(KEYS.pin(KEYS.run_segment("r1"), ""))]
        await store.put(f"{pin.rpartition('/')[0]}/planted", b"")
        await store.put(KEYS.record("planted"), await store.get(KEYS.record(own[0].id)) or b"")

        async with Bank(store, clock=clock).run("r1") as other:
            assert other.goes_on

        assert await bank.get(own[0].pointer) == "kept"


class Interrupted(RedisStore):
    """A store where something else happens while something is written."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def put_many(
        self,
        payloads: Mapping[str, bytes],
        *,
        ttl_seconds: Mapping[str, float] | None = None,
        unless: str | None = None,
    ) -> bool:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return await super().put_many(payloads, ttl_seconds=ttl_seconds, unless=unless)


@pytest.mark.parametrize("ttl_seconds", [60, 3_600])
async def test_what_a_run_is_shown_in_the_last_moment_is_told_as_expired_in_its_own_time(
    redis_url: str, server: Any, ttl_seconds: int
) -> None:
    store, clock = Interrupted(redis_url), ManualClock()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x", ttl_seconds=ttl_seconds)
    run = bank.run("r1")

    async def show() -> None:
        await run.begin()
        with run.current():
            await bank.get(artifact.pointer)

    store.meanwhile = show
    clock.advance(1)
    done = await collect(store, older_than_seconds=0, clock=clock)

    assert (done.evicted, done.held) == (0, 1)
    await run.end()
    left_ms = max(ttl_seconds, 900) * 1_000
    (gone,) = of("gone", await held(server, redis_url))
    assert (await held(server, redis_url))[gone] > WEEK_MS + left_ms - 20_000
    assert await bank.get(artifact.pointer) == "x"
    clock.advance(left_ms / 1_000)
    await passes(server, redis_url, left_ms / 1_000 + 1)
    with pytest.raises(ExpiredPointerError):
        await Bank(store, clock=clock).get(artifact.pointer)
    await store.close()


async def test_an_answer_made_of_what_only_a_run_holds_lives_as_long_as_a_lease(
    store: RedisStore,
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock)
    rows = await bank.put([{"id": number} for number in range(20)], ttl_seconds=60)

    async with bank.run("r1"):
        await bank.find(rows.pointer)
        clock.advance(120)
        answer = await bank.query(rows.pointer, "$[*].id", save_as="ids")

    assert answer.artifact is not None
    assert await Bank(store, clock=clock).get(answer.artifact.pointer) == list(range(20))


async def test_a_pin_lives_as_long_as_its_run_beside_what_has_long_to_live(
    store: RedisStore, redis_url: str, server: Any
) -> None:
    clock = ManualClock()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x")

    async with bank.run("r1"):
        for _ in range(10):
            await bank.get(artifact.pointer)
            clock.advance(400)
            await passes(server, redis_url, 400)
        await bank.get(artifact.pointer)

        assert len(of("pins", await held(server, redis_url))) == 1
        done = await collect(store, older_than_seconds=0, clock=clock)
        assert (done.evicted, done.held) == (0, 1)
