"""A Redis server that hangs, dies, is full or refuses: it is told in time, and is got over."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import redis.asyncio
from redis.exceptions import OutOfMemoryError

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import RedisStore
from coatcheck.testing import Server, redis_server

from .ways import slow_way

BARE: Any = redis.asyncio.Redis
TOLD_SECONDS = 10


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """Return a server that a test may do to what it likes."""
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
async def store(own: Server) -> AsyncIterator[RedisStore]:
    store = RedisStore(own.url, part_bytes=100_000)
    yield store
    await store.close()


async def listing(store: RedisStore) -> list[str]:
    return [key async for key in store.keys("a/")]


async def refusal(reason: str, call: Any) -> StoreUnavailableError:
    """Return the error of a call that fails in time, and says nothing of where the server is."""
    with anyio.fail_after(TOLD_SECONDS), pytest.raises(StoreUnavailableError) as failed:
        await call
    told = f"{failed.value} {failed.value.hint}"
    assert reason in told
    assert "127.0.0.1" not in told
    return failed.value


async def test_server_that_hangs_is_told_in_time_and_got_over_when_it_goes_on(
    own: Server, store: RedisStore
) -> None:
    await store.put("a/1", b"x" * 250_000)
    own.pause()
    told: list[StoreUnavailableError] = []

    async def call(waiting: Any) -> None:
        told.append(await refusal("The store is unavailable", waiting))

    async with anyio.create_task_group() as group:
        group.start_soon(call, store.put_many({"a/2": b"y" * 250_000}, unless="a/2"))
        await anyio.lowlevel.checkpoint()
        for _ in range(200):  # more than there may be connections
            group.start_soon(call, store.get("a/1"))
    # A call of a bank makes several, and is to be told in time too.
    with anyio.fail_after(TOLD_SECONDS / 5):
        await refusal("does not answer", store.get("a/1"))
    own.resume()

    assert len(told) == 201
    assert any(failure.unsettled for failure in told)
    assert await store.get("a/1") == b"x" * 250_000
    # What was under way then may have been done since, but never in part.
    assert await store.get("a/2") in {None, b"y" * 250_000}
    assert await store.put_many({"a/4": b"y"}, unless="a/4")
    assert await store.get("a/4") == b"y"


async def test_server_that_hangs_in_the_middle_of_a_large_put_is_told_in_time(own: Server) -> None:
    store = RedisStore(own.url)
    async with BARE.from_url(own.url) as server, anyio.create_task_group() as group:
        group.start_soon(
            refusal, "does not answer", store.put_many({"a/1": bytes(50_000_000)}, unless="a/1")
        )
        while not await server.dbsize():  # the first parts
            await anyio.lowlevel.checkpoint()
        own.pause()
    own.resume()

    assert await store.get("a/1") is None
    await store.put("a/1", b"x")
    assert await listing(store) == ["a/1"]
    await store.close()


async def test_a_slow_line_is_no_outage(own: Server) -> None:
    payload = bytes(range(250)) * 18_000  # 4.5 MB
    near = RedisStore(own.url, part_bytes=len(payload))
    await near.put("a/1", payload)
    with slow_way(own.port, bytes_per_second=1_000_000) as port:
        store = RedisStore(own.url.replace(str(own.port), str(port)), part_bytes=1_500_000)
        await store.put("a/2", payload)  # three parts, which go together
        assert await store.get("a/1") == payload  # one value
        await store.close()

    assert await near.get("a/2") == payload
    await near.close()


async def test_server_that_died_is_told_at_once_and_used_again_when_it_is_back(
    own: Server, store: RedisStore, tmp_path: Path
) -> None:
    await store.put("a/1", b"x")
    own.kill()

    await refusal("out of reach", store.put("a/1", b"y"))
    failed = await refusal("out of reach", store.put("a/1", b"y"))
    assert not failed.unsettled

    with redis_server(tmp_path, port=own.port) as again:
        assert await listing(store) == []
        await store.put("a/2", b"y")
        again.kill()
    with redis_server(tmp_path, port=own.port):
        # Nothing failed meanwhile, so all connections seem to be good.
        await store.put("a/3", b"z")
        assert await listing(store) == ["a/3"]


async def test_call_during_a_short_restart_waits_for_it(
    own: Server, store: RedisStore, tmp_path: Path
) -> None:
    await store.put("a/1", b"x")
    own.kill()

    async with anyio.create_task_group() as group:
        group.start_soon(store.put, "a/2", b"y")
        with redis_server(tmp_path, port=own.port):
            with anyio.fail_after(TOLD_SECONDS):
                while await store.get("a/2") != b"y":
                    await anyio.sleep(0.01)
            assert await listing(store) == ["a/2"]


async def test_server_without_memory_left_refuses_whole_and_lets_read_and_delete(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path, "--maxmemory", "6mb") as own:
        store = RedisStore(own.url, part_bytes=500_000)
        await store.put("a/1", b"x" * 1_200_000)
        await store.put("a/2", b"y" * 400_000)
        full = b"z" * 8_000_000

        def chunks() -> Iterator[bytes]:
            yield from (full[start : start + 300_000] for start in range(0, len(full), 300_000))

        for call in (
            store.put("a/3", full),
            store.put_many({"a/3": b"small", "a/4": full}),
            store.put_stream("a/3", chunks()),
            store.create("a/3", full),
        ):
            await refusal("no memory left", call)
        await fill(own.url)
        for call in (
            store.put("a/3", b"s"),
            store.create("a/3", b"s"),
            store.put_many({"a/3": b"s"}, unless="a/3"),
        ):
            await refusal("no memory left", call)

        assert await listing(store) == ["a/1", "a/2"]
        assert await store.get("a/1") == b"x" * 1_200_000
        await store.delete("a/1")
        assert await listing(store) == ["a/2"]
        async with BARE.from_url(own.url) as server:
            await server.delete("filling")
        await store.put("a/3", b"z")
        assert await store.get("a/3") == b"z"
        await store.close()


async def fill(url: str) -> None:
    """Take what memory there is, to the last kilobyte."""
    async with BARE.from_url(url) as server:
        with suppress(OutOfMemoryError):
            while True:
                await server.append("filling", b"x" * 4_000)


async def test_refusals_of_a_server_are_told_in_words_without_its_own(
    own: Server, store: RedisStore
) -> None:
    await store.put("a/1", b"x")
    async with BARE.from_url(own.url) as server:
        await server.execute_command(
            "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+get", "+exists"
        )
        reader = RedisStore(own.url.replace("//", "//reader:pw@"))
        assert await reader.get("a/1") == b"x"
        await refusal("does not permit", reader.put("a/1", b"y"))
        await reader.close()

        await server.execute_command("REPLICAOF", "127.0.0.1", "1")
        await refusal("only be read", store.put("a/1", b"y"))
        await server.execute_command("REPLICAOF", "NO", "ONE")
        await store.put("a/1", b"z")
        assert await store.get("a/1") == b"z"

        await server.lpush("coatcheck:{a}/2", b"of another program")
        await refusal("another program", store.get("a/2"))
