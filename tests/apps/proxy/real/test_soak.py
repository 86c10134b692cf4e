"""Many calls at a time for long: no wrong answer, no growing memory, no process left behind."""

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import mcp
import psutil
import pytest
from mcp_types import TextContent

from coatcheck import Bank
from coatcheck.stores import FileStore

from ..servers.texts import text_of
from .conftest import client_of

SERVER = Path(__file__).parents[1] / "servers" / "texts.py"
AT_A_TIME = 16
SMALLEST, LARGEST = 1_000, 5_000_000
INLINE_BYTES = 51_200
QUOTA_BYTES = 1 << 30
MB = 1 << 20


@dataclass
class Soak:
    """Calls a proxy, checks each answer against what it must be, and kills its server twice."""

    client: mcp.Client
    proxy: psutil.Process
    bank: Bank
    calls: int
    largest: int
    source: Random = field(default_factory=lambda: Random(7))
    done: int = 0
    failed: int = 0
    killed: int = 0
    most_bytes: int = 0
    memory: list[int] = field(default_factory=list[int])

    async def run(self) -> None:
        numbers = iter(range(self.calls))
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_A_TIME):
                tasks.start_soon(self._work, numbers)

    async def _work(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            exponent = self.source.uniform(math.log(SMALLEST), math.log(self.largest))
            await self._check(number, int(math.exp(exponent)))
            self.done += 1
            if self.done in {self.calls // 3, self.calls * 2 // 3}:
                self._kill_server()
            if self.done % max(1, self.calls // 100) == 0:
                self.memory.append(self.proxy.memory_info().rss)
                await self._keep_quota()

    async def _check(self, seed: int, size: int) -> None:
        expected = text_of(seed, size)
        text = await self._said("make", {"seed": seed, "size": size})
        size_bytes = len(expected.encode())
        if size_bytes < INLINE_BYTES:
            assert text == expected
            return
        envelope = json.loads(text)
        assert envelope["sizeBytes"] == size_bytes
        offset = self.source.randrange(size)
        window = {"artifactId": envelope["pointer"], "offset": offset, "limit": 100}
        page = json.loads(await self._said("retrieve_context", window))
        assert page["content"] == expected[offset : offset + 100]
        if seed % 5 == 0:
            digest = await self._said("digest", {"text": envelope["pointer"]})
            assert digest == hashlib.sha256(expected.encode()).hexdigest()

    async def _said(self, tool: str, arguments: Mapping[str, object]) -> str:
        with anyio.fail_after(120):
            while True:
                result = await self.client.call_tool(tool, dict(arguments))
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

    async def _keep_quota(self) -> None:
        """Remove the oldest, as a host would: what is checked is of the moment."""
        artifacts = [each async for each in self.bank.list()]
        self.most_bytes = max(self.most_bytes, sum(each.size_bytes for each in artifacts))
        kept_bytes = 0
        for artifact in artifacts:
            kept_bytes += artifact.size_bytes
            if kept_bytes > QUOTA_BYTES // 2:
                await self.bank.delete(artifact.pointer)


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


async def soaked(proxy: Callable[..., list[str]], folder: Path, calls: int, largest: int) -> Soak:
    """Return a soak that has run, once the client has gone and what it started with it."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    command = proxy("--scope", "soak", "--", sys.executable, str(SERVER))
    async with client_of(command) as client:
        children = psutil.Process().children()
        (own,) = (child for child in children if child.pid not in before)
        bank = Bank(FileStore(folder / "store"), scope="soak")
        soak = Soak(client, own, bank, calls, largest)
        await soak.run()
        started = {child.pid for child in psutil.Process().children(recursive=True)} - before
    with anyio.fail_after(10):
        while living(started):
            await anyio.sleep(0.05)
    return soak


async def test_300_calls_16_at_a_time_and_two_ends_of_the_server_give_no_wrong_answer(
    proxy: Callable[..., list[str]], tmp_path: Path
) -> None:
    soak = await soaked(proxy, tmp_path, 300, 300_000)

    assert (soak.done, soak.killed) == (300, 2)


@pytest.mark.soak
async def test_10_000_calls_of_up_to_5_mb_give_no_wrong_answer_and_memory_stays_flat(
    proxy: Callable[..., list[str]], tmp_path: Path
) -> None:
    soak = await soaked(proxy, tmp_path, 10_000, LARGEST)

    # Caches of 64 MiB have filled long before the middle.
    middle, end = max(soak.memory[25:50]), max(soak.memory[75:])
    assert (soak.done, soak.killed) == (10_000, 2)
    assert QUOTA_BYTES // 2 < soak.most_bytes <= QUOTA_BYTES
    assert end <= middle + 64 * MB, (middle // MB, end // MB)
