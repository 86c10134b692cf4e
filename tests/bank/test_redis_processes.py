"""A bank on Redis that several processes share, of which any may die."""

import io
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from coatcheck import Bank, is_pointer
from coatcheck.errors import UnknownPointerError
from coatcheck.stores import RedisStore

WRITERS = """
import asyncio, random, sys
from coatcheck import Bank
from coatcheck.stores import RedisStore

async def stream(text):
    for start in range(0, len(text), 40_000):
        yield text[start : start + 40_000]

async def write(bank, seed):
    source, kept = random.Random(seed), []
    while True:
        text = f"{source.random()} né 数据\\n" * source.randrange(1_000, 40_000)
        value = stream(text) if source.random() < 0.5 else text
        artifact = await bank.put(value, name=source.choice("abc"))
        print("put", artifact.pointer, flush=True)
        kept.append(artifact.pointer)
        if len(kept) > 2:
            pointer = kept.pop(0)
            print("deleting", pointer, flush=True)
            await bank.delete(pointer)

async def main(url, seed):
    store = RedisStore(url, part_bytes=50_000)
    await asyncio.gather(*(write(Bank(store), f"{seed}-{number}") for number in range(3)))

asyncio.run(main(*sys.argv[1:]))
"""

HUNDRED = """
import asyncio, sys
from coatcheck import Bank
from coatcheck.stores import RedisStore

async def write(store, bank, name, number):
    await store.put(f"shared/{number}", f"{name} ".encode() * 3_000)
    artifact = await bank.put(f"{name}-{number} " * 3_000, name=f"{name}-{number}")
    keyed = await bank.put(name * 20_000, key=f"call_{number}")
    return artifact.pointer, keyed.pointer, await store.create(f"raced/{number}", name.encode())

async def main(url, name):
    store = RedisStore(url)
    print("ready", flush=True)
    sys.stdin.readline()
    bank = Bank(store)
    done = await asyncio.gather(*(write(store, bank, name, number) for number in range(100)))
    await store.close()
    print(sum(won for *_, won in done))
    for pointer, keyed, _ in done:
        print(pointer, keyed)

asyncio.run(main(*sys.argv[1:]))
"""

MADE = """
import sys
from coatcheck import BlockingBank
with BlockingBank(sys.argv[1], scope="run") as bank:
    print(bank.put({"rows": [1, 2, 3]}, name="rows").pointer)
"""


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_url, part_bytes=50_000)
    yield store
    await store.close()


async def test_killed_writers_leave_nothing_torn_dangling_or_lost(
    store: RedisStore, redis_url: str
) -> None:
    told: set[str] = set()
    deleting: set[str] = set()
    for kill in range(3):
        command = [sys.executable, "-c", WRITERS, redis_url, str(kill)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writers:
            assert writers.stdout is not None
            lines = [writers.stdout.readline() for _ in range(5 + 7 * kill)]
            writers.kill()
            lines += writers.stdout
        for line in lines:
            verb, _, pointer = line.strip().partition(" ")
            if is_pointer(pointer):
                (told if verb == "put" else deleting).add(pointer)

    bank = Bank(store)
    for pointer in told - deleting:
        await bank.payload(pointer)  # compares the digest
    records = {key.rpartition("/")[2] async for key in store.keys("s/default/records/")}
    for id_ in records:
        await bank.payload(id_)
    # All of an artifact is written at once. A removal takes it from the listing first.
    listed = {artifact.id async for artifact in bank.list()}
    assert listed <= records
    assert records - listed <= {pointer.removeprefix("art:") for pointer in deleting}
    assert len(listed) >= len(told - deleting) > 0


async def test_two_hundred_writers_in_two_processes_lose_nothing(
    store: RedisStore, redis_url: str
) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", HUNDRED, redis_url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = [writer.communicate()[0].splitlines() for writer in writers]

    bank = Bank(store)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sum(int(won) for won, *_ in said) == 100
    keyed: list[list[str]] = []
    for name, (_, *lines) in zip(("one", "two"), said, strict=True):
        pointers = [line.split() for line in lines]
        for number, (pointer, _) in enumerate(pointers):
            assert await bank.get(pointer) == f"{name}-{number} " * 3_000
        keyed.append([pointer for _, pointer in pointers])
    for number, pair in enumerate(zip(*keyed, strict=True)):
        # Of one key, but of two values: the first has the key's own id, the other one beside it.
        assert [await bank.get(pointer) for pointer in pair] == ["one" * 20_000, "two" * 20_000]
        assert await store.get(f"shared/{number}") in {b"one " * 3_000, b"two " * 3_000}
        assert await store.get(f"raced/{number}") in {b"one", b"two"}
    assert len([artifact async for artifact in bank.list()]) == 400


async def test_a_reader_sees_an_id_that_is_written_as_unknown_or_whole(
    store: RedisStore, redis_url: str
) -> None:
    other = RedisStore(redis_url, part_bytes=50_000)
    writing, reading = Bank(store), Bank(other)
    text = "whole " * 30_000
    pointer = (await writing.put(text, key="call")).pointer
    seen: set[object] = set()
    done = anyio.Event()

    async def look() -> None:
        while not done.is_set():
            try:
                seen.add(await reading.get(pointer) == text)
                page = await reading.read(pointer, 100_000, 12)
                seen.add(page.content == text[100_000:100_012])
            except UnknownPointerError:
                seen.add("unknown")

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        group.start_soon(look)
        for number in range(30):
            await writing.delete(pointer)
            value = text if number % 2 else io.StringIO(text)
            assert (await writing.put(value, key="call")).pointer == pointer
        done.set()

    assert seen == {True, "unknown"}
    await other.close()


async def test_a_pointer_made_by_another_process_resolves(
    store: RedisStore, redis_url: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", MADE, redis_url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)

    bank = Bank(store, scope="run")
    assert await bank.get(done.stdout.strip()) == {"rows": [1, 2, 3]}
    assert await bank.get("rows") == {"rows": [1, 2, 3]}
