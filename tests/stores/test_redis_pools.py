"""Connections of the Redis store: how many, on which loop, how long, and to what."""

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import redis.asyncio

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import RedisStore
from coatcheck.testing import Server, redis_server

BARE: Any = redis.asyncio.Redis


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server to which nobody else connects."""
    with redis_server(tmp_path_factory.mktemp("own")) as server:
        yield server


@pytest.fixture
async def server(own: Server) -> AsyncIterator[Any]:
    async with BARE.from_url(own.url) as server:
        yield server


async def connections(server: Any) -> int:
    """Return how many there are but that of `server` itself."""
    return len(await server.client_list()) - 1


async def settled(server: Any, count: int) -> None:
    """Wait until there are `count` connections, as a server takes a moment to see that one ends."""
    with anyio.fail_after(5):
        while await connections(server) != count:
            await anyio.sleep(0.005)


async def test_it_connects_when_it_is_first_needed_and_not_at_all_once_closed(
    own: Server, server: Any
) -> None:
    store = RedisStore(own.url)
    assert await connections(server) == 0

    await store.put("a/1", b"x")
    await store.get("a/1")
    assert await connections(server) == 1

    await store.close()
    await store.close()
    await settled(server, 0)
    for call in (store.get("a/1"), store.put("a/1", b"x"), store.create("a/1", b"x")):
        with pytest.raises(StoreUnavailableError, match="the store is closed"):
            await call


async def test_c52_a_close_leaves_nothing_behind_of_what_is_just_connecting(
    own: Server, server: Any
) -> None:
    for steps in range(12):
        store = RedisStore(own.url)
        outcomes: list[str] = []

        async def call(store: RedisStore = store, outcomes: list[str] = outcomes) -> None:
            try:
                await store.put("a/1", b"x" * 100_000)
                outcomes.append("done")
            except StoreUnavailableError:
                outcomes.append("refused")

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(call)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            await store.close()

        assert len(outcomes) == 5
        await settled(server, 0)


async def test_a_cancelled_call_leaves_no_connection_with_an_answer_of_its_own(
    own: Server, server: Any
) -> None:
    store = RedisStore(own.url, part_bytes=1_000_000)
    await store.put("a/1", b"1" * 900_000)
    await store.put("a/2", b"2" * 900_000)

    for steps in range(10):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(store.get, "a/1")
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        assert await store.get("a/2") == b"2" * 900_000

    await store.close()
    await settled(server, 0)


async def test_two_hundred_calls_at_once_share_sixty_four_connections(
    own: Server, server: Any
) -> None:
    store = RedisStore(own.url)
    payloads = {f"a/{number}": f"{number}".encode() * 20_000 for number in range(200)}

    async with anyio.create_task_group() as group:
        for key, payload in payloads.items():
            group.start_soon(store.put, key, payload)

    assert 0 < await connections(server) <= 64
    found: dict[str, bytes | None] = {}

    async def get(key: str) -> None:
        found[key] = await store.get(key)

    async with anyio.create_task_group() as group:
        for key in payloads:
            group.start_soon(get, key)
    assert found == payloads
    assert 0 < await connections(server) <= 64
    await store.close()
    await settled(server, 0)


def test_connections_end_with_their_loop_whether_the_store_is_closed_or_not(own: Server) -> None:
    store = RedisStore(own.url)

    async def work() -> int:
        await store.put("a/1", b"x")
        async with BARE.from_url(own.url) as server:
            return await connections(server)

    async def count() -> None:
        async with BARE.from_url(own.url) as server:
            await settled(server, 0)

    # With warnings as errors: a connection that is not closed warns.
    assert [asyncio.run(work()) for _ in range(3)] == [1, 1, 1]
    asyncio.run(count())
    gc.collect()
    asyncio.run(store.close())


async def test_close_closes_what_other_loops_have_open(own: Server, server: Any) -> None:
    store = RedisStore(own.url)
    in_use, closed = threading.Event(), threading.Event()

    async def elsewhere() -> None:
        await store.put("a/1", b"x")
        in_use.set()
        await anyio.to_thread.run_sync(closed.wait)

    thread = threading.Thread(target=anyio.run, args=(elsewhere,))
    thread.start()
    await anyio.to_thread.run_sync(in_use.wait)
    await store.put("a/2", b"x")
    assert await connections(server) == 2

    await store.close()
    await settled(server, 0)
    closed.set()
    thread.join()


def test_close_closes_what_a_loop_that_does_not_run_has_open(own: Server) -> None:
    store = RedisStore(own.url)

    async def count(expected: int) -> int:
        async with BARE.from_url(own.url) as server:
            await settled(server, expected)
            return await connections(server)

    with asyncio.Runner() as runner:
        runner.run(store.put("a/1", b"x"))
        assert asyncio.run(count(1)) == 1
        asyncio.run(store.close())
        assert asyncio.run(count(0)) == 0


async def test_connections_of_a_loop_closed_by_force_are_dropped(own: Server, server: Any) -> None:
    store = RedisStore(own.url)

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(store.put("a/1", b"x"))
        loop.close()

    await anyio.to_thread.run_sync(abandon)
    assert await connections(server) == 1

    with warnings.catch_warnings():
        # asyncio says so of each transport whose loop did not end as `asyncio.run` ends it.
        warnings.simplefilter("ignore", ResourceWarning)
        await store.put("a/2", b"x")
        gc.collect()
    await settled(server, 1)
    await store.close()
    await settled(server, 0)


async def test_a_socket_a_password_and_a_database_are_reached(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    options = ("--unixsocket", str(socket), "--requirepass", "hunter2/@ü")
    quoted = "hunter2%2F%40%C3%BC"
    with redis_server(tmp_path, *options) as own:
        urls = (
            f"redis://:{quoted}@127.0.0.1:{own.port}/3",
            f"redis://default:{quoted}@127.0.0.1:{own.port}/3",
            f"unix://{socket}?db=3&password={quoted}",
        )
        for number, url in enumerate(urls):
            store = RedisStore(url)
            await store.put(f"a/{number}", b"x")
            assert [key async for key in store.keys("a/")] == [f"a/{n}" for n in range(number + 1)]
            await store.close()
        elsewhere = RedisStore(f"redis://:{quoted}@127.0.0.1:{own.port}/4")
        assert await elsewhere.get("a/0") is None
        await elsewhere.close()

        for url in (own.url, f"redis://:hunter3@127.0.0.1:{own.port}"):
            store = RedisStore(url)
            with pytest.raises(StoreUnavailableError) as refused:
                await store.get("a/0")
            told = f"{refused.value} {refused.value.hint}"
            assert "user name or password" in told
            assert "hunter" not in told
            assert "127.0.0.1" not in told
            await store.close()
        store = RedisStore(f"{urls[0].removesuffix('3')}99")
        with pytest.raises(StoreUnavailableError, match=r"answers an error \(ERR\)"):
            await store.get("a/0")
        await store.close()


async def test_an_address_with_tls_greets_in_tls_and_sends_nothing_in_the_clear() -> None:
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(5))
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1") as listening:
        port = listening.sockets[0].getsockname()[1]
        store = RedisStore(f"rediss://:hunter2@127.0.0.1:{port}")
        with pytest.raises(StoreUnavailableError, match="out of reach"):
            await store.get("a/1")
        await store.close()

    assert {greeting[:2] for greeting in heard} == {b"\x16\x03"}  # a handshake of TLS
