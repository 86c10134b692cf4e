"""Each case runs on a bank in memory and on one in files, and on each way to a model."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coatcheck import Bank, Mirror, mirror
from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock
from coatcheck.tools import retrieval_tools

Show = Callable[[Bank, object], Awaitable[Any]]
ReadWhole = Callable[[Bank, str], Awaitable[str]]


@pytest.fixture
def opening(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str], Callable[[], Store]]]:
    """Return what makes, of the name of a store, what opens that store again and again."""
    opened: list[Store] = []
    memory = MemoryStore()

    def kept(store: Store) -> Store:
        opened.append(store)
        return store

    def opens(name: str) -> Callable[[], Store]:
        if name == "redis":
            url: str = request.getfixturevalue("redis_url")
            return lambda: kept(RedisStore(url))
        if name == "s3":
            address = request.getfixturevalue("s3").address(secrets.token_hex(6))
            return lambda: kept(ObjectStore(address))
        return (lambda: FileStore(tmp_path / "store")) if name == "file" else (lambda: memory)

    yield opens
    for store in opened:
        asyncio.run(store.close())


@pytest.fixture(params=["memory", "file"])
def reopen(
    request: pytest.FixtureRequest, opening: Callable[[str], Callable[[], Store]]
) -> Callable[[], Store]:
    """Return what opens the same store again, as far as that store outlives its object."""
    return opening(request.param)


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Store:
    return reopen()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bank(store: Store, clock: ManualClock) -> Bank:
    return Bank(store, clock=clock)


async def _by_async_tool(bank: Bank, value: object) -> object:
    async def tool() -> object:
        return value

    return await mirror(tool, bank)()


async def _by_sync_tool(bank: Bank, value: object) -> object:
    def tool() -> object:
        return value

    return mirror(tool, bank)()


async def _by_offload(bank: Bank, value: object) -> object:
    return await Mirror(bank).offload(value, tool="tool")


async def _by_offload_of_a_call(bank: Bank, value: object) -> object:
    return await Mirror(bank).offload(value, tool="tool", call_id="call_0")


@pytest.fixture(
    params=[_by_async_tool, _by_sync_tool, _by_offload, _by_offload_of_a_call],
    ids=["async-tool", "sync-tool", "offload", "offload-of-a-call"],
)
def show(request: pytest.FixtureRequest) -> Show:
    """Return what a model is shown of a tool's result, by each of the ways there are."""
    chosen: Show = request.param
    return chosen


@pytest.fixture
def read_whole() -> ReadWhole:
    """Return what reads all windows of an artifact as a model would, and joins them."""

    async def read(bank: Bank, pointer: str) -> str:
        (reader,) = retrieval_tools(bank)
        windows: list[str] = []
        offset: int | None = 0
        while offset is not None:
            reply = json.loads(await reader.call({"artifactId": pointer, "offset": offset}))
            windows.append(reply["content"])
            offset = reply.get("nextOffset")
        return "".join(windows)

    return read
