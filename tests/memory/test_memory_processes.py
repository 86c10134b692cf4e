"""Memory that two processes share through Redis."""

import json
import subprocess
import sys

from coatcheck import AgentMemory, Bank
from coatcheck.stores import RedisStore

SHARING = """
import asyncio, json, sys
from coatcheck import AgentMemory, open_bank
from coatcheck.tools import memory_tools

async def main(url, name):
    async with open_bank(url, scope="run") as bank:
        memory = AgentMemory(bank)
        _, read, write = memory_tools(memory)
        print("ready", flush=True)
        sys.stdin.readline()
        won = []
        for number in range(30):
            await write.call({"key": f"{name}-{number}", "value": f"{name} " * 20_000})
            await memory.set(f"step:{name}-{number}", [name, number])
            entry = await memory.set(f"input:{number}", name, only_if_absent=True)
            won.append(entry.value == name)
            await write.call({"key": "raced", "value": [name] * 10})
        print(json.dumps(won), flush=True)
        sys.stdin.readline()
        other = "two" if name == "one" else "one"
        reply = json.loads(await read.call({"keys": [f"{other}-29", f"step:{other}-29"]}))
        print(json.dumps(reply), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def tell(worker: "subprocess.Popen[str]") -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def hear(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    return worker.stdout.readline()


async def test_two_processes_share_entries_and_the_values_behind_them(redis_url: str) -> None:
    command = [sys.executable, "-c", SHARING, redis_url]
    workers = {
        name: subprocess.Popen(
            [*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    }
    try:
        assert [hear(worker) for worker in workers.values()] == ["ready\n"] * 2
        for worker in workers.values():
            tell(worker)
        won = [json.loads(hear(worker)) for worker in workers.values()]
        for worker in workers.values():
            tell(worker)
        read = {name: json.loads(hear(worker)) for name, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.communicate(timeout=30)

    assert [sum(pair) for pair in zip(*won, strict=True)] == [1] * 30
    for name, other in (("one", "two"), ("two", "one")):
        log, step = read[name]["entries"].values()
        assert log["value"].startswith(f"{other} {other} ")
        assert (log["hasMore"], step["value"]) == (True, [other, 29])
    store = RedisStore(redis_url)
    memory = AgentMemory(Bank(store, scope="run"))
    assert await memory.size() == 30 * 2 * 2 + 30 + 1
    assert await memory.get_value("shared:raced") in (["one"] * 10, ["two"] * 10)
    for name in workers:
        assert await memory.get_value(f"shared:{name}-7") == f"{name} " * 20_000
    await store.close()


async def test_what_a_process_wrote_before_it_was_killed_is_there(redis_url: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SHARING, redis_url, "one"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        hear(worker)
        tell(worker)
        hear(worker)
        worker.kill()
    store = RedisStore(redis_url)
    memory = AgentMemory(Bank(store, scope="run"))

    entries = await memory.list(key_prefix="shared:one-")
    values = [await memory.value_of(entry) for entry in entries]
    await store.close()

    assert [entry.key for entry in entries] == [f"shared:one-{number}" for number in range(30)]
    assert values == ["one " * 20_000] * 30


async def test_killed_writers_leave_no_entry_without_its_value(redis_url: str) -> None:
    store = RedisStore(redis_url)
    memory = AgentMemory(Bank(store, scope="run"))
    for name in ("one", "two", "three"):
        before = await memory.size()
        with subprocess.Popen(
            [sys.executable, "-c", SHARING, redis_url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            hear(worker)
            tell(worker)
            while await memory.size() < before + 5:
                assert worker.poll() is None
            worker.kill()

    entries = await memory.list()
    values = [await memory.value_of(entry) for entry in entries]
    await store.close()

    assert len(entries) >= 15
    assert None not in values
