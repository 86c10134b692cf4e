"""Many calls at a time for long: no wrong answer, no growing memory, no process left behind."""

import asyncio
import faulthandler
import hashlib
import json
import math
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import anyio
import httpx2
import mcp
import psutil
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from ..servers.texts import text_of
from .conftest import client_of

SERVER = Path(__file__).parents[1] / "servers" / "texts.py"
AT_A_TIME = 16
SMALLEST, LARGEST = 1_000, 5_000_000
INLINE_BYTES = 51_200
MB = 1 << 20


@dataclass
class Soak:
    """Calls a proxy, checks each answer against what it must be, and kills a server twice."""

    connect: Callable[[], AbstractAsyncContextManager[mcp.Client]]
    proxy: psutil.Process
    store: Path
    calls: int
    largest: int
    session_calls: int
    """After so many a client goes, and another comes."""
    source: Random = field(default_factory=lambda: Random(7))
    begun: int = 0
    done: int = 0
    failed: int = 0
    killed: int = 0
    most_bytes: int = 0
    memory: list[int] = field(default_factory=list[int])

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_A_TIME):
                tasks.start_soon(self._work)

    async def _work(self) -> None:
        while self.begun < self.calls:
            async with self.connect() as client:
                for _ in range(self.session_calls):
                    if self.begun == self.calls:
                        return
                    self.begun += 1
                    await self._call(client, self.begun)

    async def _call(self, client: mcp.Client, number: int) -> None:
        exponent = self.source.uniform(math.log(SMALLEST), math.log(self.largest))
        await self._check(client, number, int(math.exp(exponent)))
        self.done += 1
        if self.done in {self.calls // 3, self.calls * 2 // 3}:
            self._kill_server()
        if self.done % max(1, self.calls // 100) == 0:
            self.memory.append(self.proxy.memory_info().rss)
            self.most_bytes = max(self.most_bytes, await asyncio.to_thread(self.stored_bytes))

    def stored_bytes(self) -> int:
        """Return what all payloads take; a record is smaller than any of them."""
        sizes: list[int] = []
        for file in self.store.rglob("*"):
            try:
                sizes.append(file.stat().st_size if file.is_file() else 0)
            except FileNotFoundError:
                continue  # it has just made room
        return sum(size for size in sizes if size >= INLINE_BYTES)

    async def _check(self, client: mcp.Client, seed: int, size: int) -> None:
        expected = text_of(seed, size)
        text = await self._said(client, "make", {"seed": seed, "size": size})
        size_bytes = len(expected.encode())
        if size_bytes < INLINE_BYTES:
            assert text == expected
            return
        envelope = json.loads(text)
        assert envelope["sizeBytes"] == size_bytes
        offset = self.source.randrange(size)
        window = {"artifactId": envelope["pointer"], "offset": offset, "limit": 100}
        page = json.loads(await self._said(client, "retrieve_context", window))
        assert page["content"] == expected[offset : offset + 100]
        if seed % 5 == 0:
            digest = await self._said(client, "digest", {"text": envelope["pointer"]})
            assert digest == hashlib.sha256(expected.encode()).hexdigest()

    async def _said(self, client: mcp.Client, tool: str, arguments: Mapping[str, object]) -> str:
        with anyio.fail_after(120):
            while True:
                result = await client.call_tool(tool, dict(arguments))
                (block, *_) = result.content
                assert isinstance(block, TextContent)
                if not result.is_error:
                    return block.text
                # Only its end may make a call fail, and that is told.
                assert block.text.startswith(f"Server {Path(sys.executable).name!r} "), block.text
                self.failed += 1
                await anyio.sleep(0.1)

    def _kill_server(self) -> None:
        for child in self.proxy.children(recursive=True):
            if str(SERVER) in child.cmdline():
                child.kill()
                self.killed += 1
                return


def living(pids: set[int]) -> list[str]:
    """Return what of these processes still runs."""
    left: list[str] = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                left.append(" ".join(process.cmdline()))
        except psutil.NoSuchProcess:
            continue
    return left


async def ended(processes: set[int]) -> None:
    with anyio.fail_after(10):
        while living(processes):
            await anyio.sleep(0.05)


async def soaked_over_stdio(
    proxy: Callable[..., list[str]], folder: Path, calls: int, largest: int
) -> Soak:
    """Return a soak that one client has run, once it has gone and what it started with it."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    command = proxy("--scope", "soak", "--", sys.executable, str(SERVER))
    async with client_of(command) as client:
        children = psutil.Process().children()
        (own,) = (child for child in children if child.pid not in before)
        soak = Soak(
            partial(_staying, client), own, folder / "store", calls, largest, session_calls=calls
        )
        await soak.run()
        started = {child.pid for child in psutil.Process().children(recursive=True)} - before
    await ended(started)
    return soak


async def soaked_over_http(
    proxy: Callable[..., list[str]],
    folder: Path,
    calls: int,
    largest: int,
    *,
    quota: str,
    session_calls: int,
) -> Soak:
    """Return a soak that many clients have run, once the proxy has ended."""
    settings = folder / "quota.toml"
    settings.write_text(f'store_bytes = "{quota}"\n')
    options = ("--settings", str(settings), "--http", "127.0.0.1:0")
    with (folder / "log").open("w+b") as log:
        process = await asyncio.create_subprocess_exec(
            *proxy(*options, "--", sys.executable, str(SERVER)), stderr=log
        )
        own = psutil.Process(process.pid)
        soak: Soak | None = None
        try:
            address = await _address(folder / "log")
            connect = partial(_session, address)
            soak = Soak(connect, own, folder / "store", calls, largest, session_calls)
            await soak.run()
            started = {own.pid, *(child.pid for child in own.children(recursive=True))}
        except BaseException as error:
            done = 0 if soak is None else soak.done
            error.add_note(f"after {done} calls; status of the proxy: {process.returncode}")
            error.add_note((folder / "log").read_text()[-4_000:])
            raise
        finally:
            process.terminate()
            await process.wait()
    await ended(started)
    return soak


async def _address(log: Path) -> str:
    with anyio.fail_after(20):
        while True:
            found = re.search(r"http://127\.0\.0\.1:[1-9]\d*/mcp", log.read_text())
            if found is not None:
                return found[0]
            await anyio.sleep(0.05)


@asynccontextmanager
async def _staying(client: mcp.Client) -> AsyncGenerator[mcp.Client]:
    """Yield a client that is not to go."""
    yield client


@asynccontextmanager
async def _session(address: str) -> AsyncGenerator[mcp.Client]:
    async with (
        httpx2.AsyncClient(timeout=120) as http,
        mcp.Client(streamable_http_client(address, http_client=http), mode="legacy") as client,
    ):
        yield client


async def test_300_calls_16_at_a_time_and_two_ends_of_the_server_give_no_wrong_answer(
    proxy: Callable[..., list[str]], tmp_path: Path
) -> None:
    soak = await soaked_over_stdio(proxy, tmp_path, 300, 300_000)

    assert (soak.done, soak.killed) == (300, 2)


async def test_clients_that_come_and_go_keep_what_they_were_shown_within_a_quota(
    proxy: Callable[..., list[str]], tmp_path: Path
) -> None:
    soak = await soaked_over_http(proxy, tmp_path, 160, 300_000, quota="3MB", session_calls=4)

    assert (soak.done, soak.killed) == (160, 2)
    assert 0 < soak.stored_bytes() <= 3_000_000


@pytest.mark.soak
async def test_10_000_calls_of_up_to_5_mb_give_no_wrong_answer_and_memory_stays_flat(
    proxy: Callable[..., list[str]], tmp_path: Path
) -> None:
    faulthandler.cancel_dump_traceback_later()  # it takes longer than a test that hangs may
    soak = await soaked_over_http(proxy, tmp_path, 10_000, LARGEST, quota="1GiB", session_calls=40)

    # Caches of 64 MiB have filled long before the middle.
    middle, end = max(soak.memory[25:50]), max(soak.memory[75:])
    assert (soak.done, soak.killed) == (10_000, 2)
    # Above it is for a moment what 16 calls put at once.
    assert 512 * MB < soak.most_bytes <= 1024 * MB + AT_A_TIME * LARGEST
    assert soak.stored_bytes() <= 1024 * MB
    assert end <= middle + 64 * MB, [each // MB for each in soak.memory]
