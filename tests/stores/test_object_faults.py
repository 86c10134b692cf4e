"""Object stores when the service hangs, dies, refuses or is full, and when writers are killed."""

import logging
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
import xxhash

from coatcheck import Bank, UnknownPointerError, is_pointer, mirror
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import ObjectStore
from coatcheck.testing import S3Server, s3_server

from .ways import slow_way

MB = 1_000_000
TOLD_SECONDS = 10
LARGE = bytes(range(251)) * 50_000  # 12.5 MB

Call = Callable[[ObjectStore], Awaitable[object]]


async def listed(store: ObjectStore) -> list[str]:
    return [key async for key in store.keys("a/")]


CALLS: dict[str, Call] = {
    "put": lambda store: store.put("a/put", b"x"),
    "put large": lambda store: store.put("a/large", LARGE[:MB]),
    "put in parts": lambda store: store.put("a/parts", LARGE),
    "put_stream": lambda store: store.put_stream("a/stream", iter([LARGE, LARGE])),
    "create": lambda store: store.create("a/create", b"x"),
    "create large": lambda store: store.create("a/create-large", LARGE[:MB]),
    "get": lambda store: store.get("a/there"),
    "get_many": lambda store: store.get_many([f"a/{number}" for number in range(40)]),
    "get_range": lambda store: store.get_range("a/there", 10, 20),
    "get_range of nothing": lambda store: store.get_range("a/there", 10, 10),
    "get_range large": lambda store: store.get_range("a/there", 0, 3 * MB),
    "delete": lambda store: store.delete("a/gone"),
    "delete_many": lambda store: store.delete_many([f"a/gone{number}" for number in range(40)]),
    "keys": listed,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    """Return a server that the test may break."""
    with s3_server(tmp_path) as server:
        yield server


async def report() -> str:
    return "line of a report\n" * 10_000


async def all_told(store: ObjectStore) -> dict[str, StoreUnavailableError]:
    """Make all calls at once; each is told of an outage in time."""
    told: dict[str, StoreUnavailableError] = {}

    async def make(name: str, call: Call) -> None:
        with pytest.raises(StoreUnavailableError) as caught:
            await call(store)
        told[name] = caught.value

    async def bank() -> None:
        with pytest.raises(StoreUnavailableError):
            await Bank(store).put(await report())

    async def mirrored() -> None:
        assert await mirror(report, Bank(store))() == await report()

    async with anyio.create_task_group() as group:
        for name, call in CALLS.items():
            group.start_soon(in_time, make, name, call)
        group.start_soon(in_time, bank)
        group.start_soon(in_time, mirrored)
    return told


async def in_time(make: Callable[..., Awaitable[None]], *arguments: object) -> None:
    with anyio.fail_after(TOLD_SECONDS):
        await make(*arguments)


async def test_a_silent_service_is_told_in_time_and_works_again_without_a_restart(
    server: S3Server,
) -> None:
    store = ObjectStore(server.address("silent"))
    await store.put("a/there", LARGE)

    begun = threading.Event()
    told: dict[str, StoreUnavailableError] = {}

    def chunks() -> Iterator[bytes]:
        yield LARGE
        begun.set()
        yield from [LARGE] * 30

    async def stream() -> None:
        with pytest.raises(StoreUnavailableError, match="did not answer"):
            await store.put_stream("a/begun", chunks())

    async with anyio.create_task_group() as group:
        group.start_soon(stream)
        await anyio.to_thread.run_sync(begun.wait)
        server.pause()
        told |= await all_told(store)
    server.resume()

    assert set(told) == set(CALLS)
    assert {failure.reason for failure in told.values()} == {"the service did not answer"}
    assert told["put"].unsettled
    assert {"a/begun", "a/parts", "a/stream"}.isdisjoint(await listed(store))
    await works(store)


async def test_a_dead_service_is_told_and_works_again_on_the_same_folder(tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        store = ObjectStore(server.address("dead"))
        await store.put("a/there", LARGE)
        server.kill()
        told = await all_told(store)

    assert {failure.reason for failure in told.values()} == {"the service did not answer"}
    with s3_server(tmp_path, ports=server.ports), anyio.fail_after(30):
        while True:  # the service itself needs a moment to find what it had
            try:
                await works(store)
                break
            except StoreUnavailableError:
                await anyio.sleep(0.1)
        assert (await store.get("a/there") == LARGE) is True


async def works(store: ObjectStore) -> None:
    for call in CALLS.values():
        await call(store)
    assert await store.get("a/put") == b"x"


async def test_a_slow_way_to_the_service_is_no_outage(s3: S3Server) -> None:
    with slow_way(s3.ports["s3.port"], bytes_per_second=600_000) as port:
        address = s3.address("slow").replace(str(s3.ports["s3.port"]), str(port))
        store = ObjectStore(address)
        await store.put("a/1", bytes(2 * MB))
        await store.close()

    assert await ObjectStore(s3.address("slow")).get("a/1") == bytes(2 * MB)


async def test_credentials_that_do_not_come_are_told_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        # No keys are given, so the machine is asked for some, here a port where nobody answers.
        store = ObjectStore(f"s3://bucket?metadata_endpoint=http://127.0.0.1:{port}")
        with anyio.fail_after(TOLD_SECONDS):
            with pytest.raises(StoreUnavailableError, match="did not answer"):
                await store.get("a/1")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("testsecret", "hush-hush"), "the service denies access"),
        (("access_key_id=test", "access_key_id=nobody"), "the service denies access"),
        (("//artifacts/", "//elsewhere/"), "there is no such bucket or container"),
    ],
)
async def test_what_the_service_refuses_is_told_in_words_of_ours(
    change: tuple[str, str], reason: str, s3: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = ObjectStore(s3.address("refused").replace(*change))

    for name, call in CALLS.items():
        # Of a range of nothing only its head is asked, to which a service gives no reason.
        if name == "get_range of nothing":
            continue
        with pytest.raises(StoreUnavailableError) as caught:
            await call(store)
        assert caught.value.reason == reason, name
        assert not caught.value.unsettled
        told = "".join(traceback.format_exception(caught.value)) + caplog.text
        for hidden in (
            "hush",
            "nobody",
            "testsecret",
            s3.url,
            "refused",
            "<Error>",
            "Debug source",
        ):
            assert hidden not in told.replace(__file__, ""), name
    with pytest.raises(StoreUnavailableError):
        await Bank(store).put("x" * MB)
    assert await mirror(report, Bank(store))() == await report()


async def test_a_full_service_is_told_and_still_read(tmp_path: Path) -> None:
    with s3_server(tmp_path, "-volume.max=1", "-master.volumeSizeLimitMB=8") as server:
        store = ObjectStore(server.address("full"))
        bank = Bank(store)
        first = await bank.put("first " * 10_000)
        with pytest.raises(StoreUnavailableError, match="answered with an error"):
            await fill(store)

        with pytest.raises(StoreUnavailableError):
            await bank.put(await report())

        assert await mirror(report, bank)() == await report()
        assert await bank.get(first.pointer) == "first " * 10_000
        assert [artifact.id async for artifact in bank.list()] == [first.id]


async def fill(store: ObjectStore) -> None:
    for number in range(40):
        await store.put(f"a/{number}", os.urandom(MB))


async def test_a_service_without_conditional_puts_is_told_plainly(s3: S3Server) -> None:
    store = ObjectStore(s3.address("unable"), options={"conditional_put": "disabled"})
    await store.put("a/1", b"x")

    with pytest.raises(StoreUnavailableError, match="cannot create a key only where there is none"):
        await store.create("a/2", b"x")

    assert await store.get("a/1") == b"x"


WRITER = """
import asyncio, random, sys, xxhash
from coatcheck import Bank
from coatcheck.stores import ObjectStore

async def main(address, seed):
    store = ObjectStore(address)
    bank = Bank(store)
    chance = random.Random(int(seed))
    while True:
        payload = chance.randbytes(chance.choice([1_000, 300_000, 7_000_000]))
        artifact = await bank.put(payload, name="report")
        print(artifact.pointer, flush=True)
        pieces = (payload[at : at + 65536] for at in range(0, len(payload), 65536))
        await store.put_stream(f"a/{xxhash.xxh3_128_hexdigest(payload)}", pieces)

asyncio.run(main(*sys.argv[1:]))
"""

HUNDRED = """
import asyncio, sys
from coatcheck import Bank
from coatcheck.stores import ObjectStore

async def write(store, bank, name, number):
    await store.put(f"shared/{number}", f"{name} ".encode() * 3_000)
    artifact = await bank.put(f"{name}-{number} " * 3_000, name=f"{name}-{number}")
    return artifact.pointer, await store.create(f"raced/{number}", name.encode())

async def main(address, name):
    store = ObjectStore(address)
    print("ready", flush=True)
    sys.stdin.readline()
    bank = Bank(store)
    done = await asyncio.gather(*(write(store, bank, name, number) for number in range(100)))
    print(sum(won for _, won in done), *(pointer for pointer, _ in done), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_killed_writers_leave_nothing_torn_dangling_or_lost(
    s3: S3Server, tmp_path: Path
) -> None:
    for address in (s3.address("killed"), f"file:{tmp_path / 'killed'}"):
        told: set[str] = set()
        for kill in range(3):
            command = [sys.executable, "-c", WRITER, address, str(kill)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
                assert writer.stdout is not None
                for _ in range(2 + kill):
                    told.add(writer.stdout.readline().strip())
                writer.kill()
                told.update(line.strip() for line in writer.stdout)

        store = ObjectStore(address)
        bank = Bank(store)
        for pointer in filter(is_pointer, told):
            assert await bank.find(pointer) is not None
        async for key in store.keys("s/default/records/"):
            await bank.payload(key.rpartition("/")[2])  # compares the digest
        async for key in store.keys("a/"):
            assert key == f"a/{xxhash.xxh3_128_hexdigest(await store.get(key) or b'')}"


async def test_two_hundred_writers_in_two_processes_lose_nothing(s3: S3Server) -> None:
    address = s3.address("hundreds")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", HUNDRED, address, name],
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
    done = [writer.communicate()[0].split() for writer in writers]

    store = ObjectStore(address)
    bank = Bank(store)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sum(int(won) for won, *_ in done) == 100
    for name, (_, *pointers) in zip(("one", "two"), done, strict=True):
        assert len(set(pointers)) == 100
        for number, pointer in enumerate(pointers):
            assert await bank.get(pointer) == f"{name}-{number} " * 3_000
    for number in range(100):
        assert await store.get(f"shared/{number}") in {b"one " * 3_000, b"two " * 3_000}
        assert await store.get(f"raced/{number}") in {b"one", b"two"}
    assert len([artifact async for artifact in bank.list()]) == 200


async def test_a_reader_sees_an_id_that_is_written_as_unknown_or_whole(s3: S3Server) -> None:
    writing, reading = (Bank(ObjectStore(s3.address("looked-at"))) for _ in range(2))
    text = "whole " * 100_000
    pointer = (await writing.put(text, key="call")).pointer
    seen: set[object] = set()
    done = False

    async def look() -> None:
        while not done:
            try:
                seen.add(await reading.get(pointer) == text)
            except UnknownPointerError:
                seen.add("unknown")

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        group.start_soon(look)
        for _ in range(30):
            await writing.delete(pointer)
            assert (await writing.put(text, key="call")).pointer == pointer
        done = True

    assert seen == {True, "unknown"}


async def test_a_pointer_made_by_another_process_resolves(s3: S3Server, tmp_path: Path) -> None:
    address = s3.address("elsewhere")
    program = (
        "from coatcheck import BlockingBank\nimport sys\n"
        "with BlockingBank(sys.argv[1], scope='run') as bank:\n"
        "    print(bank.put({'rows': [1, 2, 3]}, name='rows').pointer)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, address],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    bank = Bank(ObjectStore(address), scope="run")
    assert await bank.get(done.stdout.strip()) == {"rows": [1, 2, 3]}
    assert await bank.get("rows") == {"rows": [1, 2, 3]}
