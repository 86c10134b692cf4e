"""Lifetimes where several processes share a store, and any of them may die."""

import io
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from coatcheck import Bank, is_pointer
from coatcheck.bank import store_at
from coatcheck.bank.collection import collect
from coatcheck.errors import ExpiredPointerError
from coatcheck.stores import FileStore, Store, SupportsTtl

LEASE = 900.0

HOLDS = """
import asyncio, sys
from coatcheck import open_bank

async def main(address, pointer):
    async with open_bank(address) as bank, bank.run("dies"):
        await bank.get(pointer)
        own = await bank.put("own", ttl_seconds=60)
        print(own.pointer, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""

WRITES = """
import asyncio, random, sys
from coatcheck import Bank
from coatcheck.bank import store_at

async def write(bank, seed):
    source, kept = random.Random(seed), []
    while True:
        ttl = source.choice([None, None, 0.05])
        text = f"{source.random()} né\\n" * source.randrange(10, 9_000)
        artifact = await bank.put(text, name=source.choice("abc"), ttl_seconds=ttl)
        if ttl is not None:
            continue
        print("put", artifact.pointer, flush=True)
        kept.append(artifact.pointer)
        if len(kept) > 3:
            pointer = kept.pop(0)
            print("deleting", pointer, flush=True)
            await bank.delete(pointer)

async def main(address, seed):
    store = store_at(address)
    await asyncio.gather(*(write(Bank(store), f"{seed}-{number}") for number in range(3)))

asyncio.run(main(*sys.argv[1:]))
"""

COLLECTS = """
import asyncio, sys
from coatcheck.bank import store_at
from coatcheck.bank.collection import collect

async def main(address):
    store = store_at(address)
    print("ready", flush=True)
    while True:
        await collect(store)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["file", "redis", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty store that processes can share."""
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        return url
    if request.param == "s3":
        whole: str = request.getfixturevalue("s3").address(secrets.token_hex(6))
        return whole
    return f"file:{tmp_path / 'store'}"


@pytest.fixture
async def shared(address: str) -> AsyncIterator[Store]:
    store = store_at(address)
    yield store
    await store.close()


@contextmanager
def started(program: str, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Start a program, and kill it at the end where it still runs."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_what_a_killed_process_held_goes_after_its_lease_and_not_before(
    address: str, shared: Store
) -> None:
    artifact = await Bank(shared).put("shown", ttl_seconds=60)
    start = time.time()
    with started(HOLDS, address, artifact.pointer) as process:
        assert isinstance(process.stdout, io.TextIOBase)
        own = process.stdout.readline().strip()
        held_from = time.time()
        process.kill()

    def before() -> float:
        return start + LEASE - 1

    def after() -> float:
        return held_from + LEASE + 1

    assert (await collect(shared, older_than_seconds=0, clock=before)).evicted == 0
    assert await Bank(shared, clock=before).get(artifact.pointer) == "shown"
    assert await Bank(shared, clock=before).get(own) == "own"
    await collect(shared, older_than_seconds=0, clock=after)

    assert [each async for each in Bank(shared, clock=after).list()] == []
    for pointer in (artifact.pointer, own):
        with pytest.raises(ExpiredPointerError):
            await Bank(shared, clock=after).get(pointer)


async def test_collections_beside_writers_tear_nothing_whoever_is_killed(
    address: str, shared: Store
) -> None:
    told: dict[str, set[str]] = {"put": set(), "deleting": set()}
    for number in range(3):
        with ExitStack() as processes:
            writer = processes.enter_context(started(WRITES, address, str(number)))
            collector = processes.enter_context(started(COLLECTS, address))
            assert isinstance(writer.stdout, io.TextIOBase)
            assert isinstance(collector.stdout, io.TextIOBase)
            assert collector.stdout.readline() == "ready\n"
            lines = [writer.stdout.readline() for _ in range(12)]
            (collector if number else writer).kill()
            lines += [] if not number else [writer.stdout.readline() for _ in range(4)]
            writer.kill()
            lines += writer.stdout.readlines()
        for line in lines:
            verb, _, pointer = line.rstrip("\n").partition(" ")
            if is_pointer(pointer):
                told[verb].add(pointer)

    def later() -> float:
        return time.time() + 120

    bank = Bank(shared, clock=later)
    done = await collect(shared, clock=later)

    assert done.damaged == []
    assert (await collect(shared, clock=later)).relisted == 0
    listed = {each.pointer async for each in bank.list()}
    for pointer in listed:
        await bank.payload(pointer)  # read whole, and compared with its digest
    assert told["put"] - told["deleting"] <= listed
    if not isinstance(shared, SupportsTtl):
        records = [key async for key in shared.keys("s/default/records/")]
        assert len(records) == len(listed)


async def test_payloads_of_killed_writers_are_swept_a_day_later(tmp_path: Path) -> None:
    address = f"file:{tmp_path / 'store'}"
    for seed in range(4):
        with started(WRITES, address, str(seed)) as writer:
            assert isinstance(writer.stdout, io.TextIOBase)
            for _ in range(5):
                writer.stdout.readline()
            writer.kill()

    def later() -> float:
        return time.time() + 25 * 3_600

    store = FileStore(tmp_path / "store", clock=later)
    await collect(store, clock=later)

    payloads = [key async for key in store.keys("s/default/payloads/")]
    records = [key async for key in store.keys("s/default/records/")]
    assert len(payloads) == len(records)
    bank = Bank(store, clock=later)
    for key in records:
        payload = await bank.payload(key.rpartition("/")[2])  # compared with its digest
        assert payload.decode().count("né") >= 10
