"""Reports on calls side by side: each gets its own artifact, whole, in one process or in many."""

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coatcheck import Bank, BlockingBank, Envelope, Mirror, mirror
from coatcheck.stores import FileStore, Store

CALLS = 100

PROCESS = """
import asyncio, hashlib, json, sys
from coatcheck import Bank, mirror
from coatcheck.stores import FileStore


async def main():
    bank = Bank(FileStore(sys.argv[1]))

    async def tool(i: int) -> str:
        await asyncio.sleep(0)
        return f"{i}-" * 30_000

    call = mirror(tool, bank)
    print("ready", flush=True)
    sys.stdin.readline()
    shown = await asyncio.gather(*(call(i) for i in range(100)))
    print(json.dumps([[i, envelope.pointer] for i, envelope in enumerate(shown)]))


asyncio.run(main())
"""


@pytest.fixture(params=["memory", "file", "redis", "s3"])
def reopen(
    request: pytest.FixtureRequest, opening: Callable[[str], Callable[[], Store]]
) -> Callable[[], Store]:
    return opening(request.param)


def text_of(i: int) -> str:
    return f"{i}-" * 30_000


async def assert_each_is_its_own(bank: Bank, made: list[tuple[int, str]]) -> None:
    for i, pointer in made:
        expected = hashlib.sha256(text_of(i).encode()).hexdigest()
        assert hashlib.sha256(await bank.payload(pointer)).hexdigest() == expected
    pointers = {pointer for _, pointer in made}
    assert len(pointers) == len(made)
    assert {artifact.pointer async for artifact in bank.list()} == pointers


async def test_br_086_calls_of_two_processes_share_no_artifact(tmp_path: Path) -> None:
    root = tmp_path / "store"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    # Both are there: now they go at once.
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    replies = [process.communicate(timeout=120)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    made = [(i, pointer) for reply in replies for i, pointer in json.loads(reply)]
    assert len(made) == 200
    await assert_each_is_its_own(Bank(FileStore(root)), made)
    assert list((root / "tmp").iterdir()) == []


async def test_br_086_concurrent_tasks_share_no_artifact(bank: Bank) -> None:
    async def tool(i: int) -> str:
        await asyncio.sleep(0)
        return text_of(i)

    call = mirror(tool, bank)

    shown = await asyncio.gather(*(call(i) for i in range(CALLS)))

    await assert_each_is_its_own(bank, [(i, each.pointer) for i, each in enumerate(shown)])


async def test_br_086_threads_that_call_sync_tools_share_no_artifact(bank: Bank) -> None:
    def tool(i: int) -> str:
        return text_of(i)

    call = mirror(tool, bank)
    with ThreadPoolExecutor(8) as threads:
        shown = list(threads.map(call, range(CALLS)))

    await assert_each_is_its_own(bank, [(i, each.pointer) for i, each in enumerate(shown)])


async def test_br_086_call_ids_that_repeat_do_not_mix_what_was_returned(store: Store) -> None:
    banks = [Bank(store), Bank(store)]

    async def offload(bank: Bank, i: int) -> Any:
        return await Mirror(bank).offload(text_of(i), tool="t", call_id="call_0")

    shown = await asyncio.gather(*(offload(bank, i) for i in range(20) for bank in banks))

    assert all(isinstance(each, Envelope) for each in shown)
    for i in range(20):
        first, second = shown[2 * i], shown[2 * i + 1]
        assert first.pointer == second.pointer
        assert await banks[0].get(first.pointer) == text_of(i)
    assert len({each.pointer for each in shown}) == 20


async def test_br_086_one_name_for_many_keeps_them_all(bank: Bank) -> None:
    artifacts = await asyncio.gather(*(bank.put(text_of(i), name="out") for i in range(CALLS)))

    made = [(i, artifact.pointer) for i, artifact in enumerate(artifacts)]
    await assert_each_is_its_own(bank, made)
    newest_first = [artifact async for artifact in bank.list()]
    assert await bank.find("out") == newest_first[0]


def test_br_086_threads_on_one_blocking_bank_share_no_artifact(tmp_path: Path) -> None:
    with BlockingBank(tmp_path / "store") as bank, ThreadPoolExecutor(8) as threads:
        artifacts = list(threads.map(bank.put, map(text_of, range(CALLS))))

        for i, artifact in enumerate(artifacts):
            assert bank.get(artifact.pointer) == text_of(i)
        assert {each.id for each in bank.list()} == {artifact.id for artifact in artifacts}
