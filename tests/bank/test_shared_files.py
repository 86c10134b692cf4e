"""What holds on services holds on files and in memory: many writers, and readers beside them."""

import io
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from coatcheck import Bank
from coatcheck.errors import UnknownPointerError
from coatcheck.stores import FileStore, MemoryStore, Store

HUNDRED = """
import asyncio, sys
from coatcheck import Bank
from coatcheck.stores import FileStore

async def write(bank, name, number):
    artifact = await bank.put(f"{name}-{number} " * 3_000, name=f"{name}-{number}")
    keyed = await bank.put(name * 20_000, key=f"call_{number}")
    return artifact.pointer, keyed.pointer

async def main(folder, name):
    print("ready", flush=True)
    sys.stdin.readline()
    bank = Bank(FileStore(folder))
    for pointers in await asyncio.gather(*(write(bank, name, number) for number in range(100))):
        print(*pointers)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_hundred_writers_in_two_processes_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", HUNDRED, str(folder), name],
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

    assert [writer.returncode for writer in writers] == [0, 0]
    bank = Bank(FileStore(folder))
    for name, lines in zip(("one", "two"), said, strict=True):
        pointers = [line.split() for line in lines]
        assert len(pointers) == 100
        for number, (pointer, keyed) in enumerate(pointers):
            assert await bank.get(pointer) == f"{name}-{number} " * 3_000
            assert await bank.get(keyed) == name * 20_000
    assert len([artifact async for artifact in bank.list()]) == 400


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_a_reader_sees_an_id_that_is_written_as_unknown_or_whole(
    kind: str, tmp_path: Path
) -> None:
    memory = MemoryStore()

    def opened() -> Store:
        return memory if kind == "memory" else FileStore(tmp_path / "store")

    writing, reading = Bank(opened()), Bank(opened())
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
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        group.start_soon(look)
        for number in range(30):
            await writing.delete(pointer)
            await anyio.lowlevel.checkpoint()
            value = text if number % 2 else io.StringIO(text)
            assert (await writing.put(value, key="call")).pointer == pointer
        done.set()

    assert seen == {True, "unknown"}
