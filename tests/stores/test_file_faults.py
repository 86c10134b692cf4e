"""The file store when the system refuses, writers are stopped, or others write beside it."""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
import xxhash

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import FileStore
from coatcheck.testing import ManualClock

Watch = Callable[[str, tuple[object, ...]], None]
Watching = Callable[[Watch], None]

KINDS = ["put", "create", "put_stream"]


async def write(kind: str, store: FileStore, payload: bytes) -> None:
    if kind == "put":
        await store.put("a/1", payload)
    elif kind == "create":
        assert await store.create("a/1", payload)
    else:
        await store.put_stream("a/1", [b"", payload])


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@contextmanager
def largest_file(limit_bytes: int) -> Generator[None]:
    """Let no file of this process grow over the limit: the system's own answer to a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [600_000, 3_000_000])
async def test_disk_full_on_write_leaves_nothing_and_works_again_with_room(
    kind: str, size: int, tmp_path: Path
) -> None:
    store = FileStore(tmp_path)
    with largest_file(500_000), pytest.raises(StoreUnavailableError) as caught:
        await write(kind, store, bytes(size))

    assert caught.value.reason == os.strerror(errno.EFBIG)
    assert isinstance(caught.value.__cause__, OSError)
    assert files(tmp_path) == []

    await write(kind, store, bytes(size))
    assert files(tmp_path) == ["a/1"]
    assert await store.get("a/1") == bytes(size)


async def test_disk_full_leaves_the_payload_that_was_there(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("a/1", b"before")
    with largest_file(500_000), pytest.raises(StoreUnavailableError):
        await store.put("a/1", bytes(600_000))

    assert files(tmp_path) == ["a/1"]
    assert await store.get("a/1") == b"before"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()]
)
async def test_whichever_step_fails_nothing_half_written_is_seen_and_the_next_write_works(
    kind: str, error: BaseException, tmp_path: Path, watch: Watching
) -> None:
    events: list[str] = []
    failing = 0

    def refuse(event: str, _: tuple[object, ...]) -> None:
        events.append(event)
        if len(events) == failing:
            raise error

    watch(refuse)
    await write(kind, FileStore(tmp_path / "0"), b"payload")
    steps = list(events)

    for failing, event in enumerate(steps, 1):
        root = tmp_path / str(failing)
        store = FileStore(root)
        events.clear()
        with suppress(StoreUnavailableError, KeyboardInterrupt):
            await write(kind, store, b"payload")
        left = files(root)
        # Where the removal itself is refused, the sweep has to do it.
        assert [path for path in left if not path.startswith("tmp/")] in ([], ["a/1"])
        assert event == "os.remove" or left in ([], ["a/1"])
        if "a/1" not in left:
            await write(kind, store, b"payload")
        assert await store.get("a/1") == b"payload"

    assert {"open", "os.mkdir", "os.chmod"} < set(steps)


@pytest.mark.parametrize("kind", KINDS)
async def test_disk_full_on_the_last_step_leaves_nothing(
    kind: str, tmp_path: Path, watch: Watching
) -> None:
    store = FileStore(tmp_path)
    full = True

    def refuse(event: str, _: tuple[object, ...]) -> None:
        if full and event in {"os.rename", "os.link"}:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    watch(refuse)
    with pytest.raises(StoreUnavailableError, match="No space left on device"):
        await write(kind, store, b"payload")
    assert files(tmp_path) == []

    full = False
    await write(kind, store, b"payload")
    assert files(tmp_path) == ["a/1"]


async def test_folder_removed_by_another_process_is_made_again_once(
    tmp_path: Path, watch: Watching
) -> None:
    store = FileStore(tmp_path)
    removals = 1

    def remove(event: str, _: tuple[object, ...]) -> None:
        nonlocal removals
        if event in {"os.rename", "os.link"} and removals:
            removals -= 1
            (tmp_path / "a").rmdir()

    watch(remove)
    await store.put("a/1", b"x")
    assert await store.get("a/1") == b"x"
    await store.delete("a/1")

    removals = 1
    assert await store.create("a/1", b"y")
    assert await store.get("a/1") == b"y"
    await store.delete("a/1")

    removals = 2
    with pytest.raises(StoreUnavailableError, match="No such file"):
        await store.put("a/1", b"z")
    assert files(tmp_path) == []


async def test_folders_made_by_another_process_in_between_are_used(
    tmp_path: Path, watch: Watching
) -> None:
    root = tmp_path / "root"
    made: list[str] = []

    def make_first(event: str, arguments: tuple[object, ...]) -> None:
        path = root if not made else root / str(arguments[0])
        if event == "os.mkdir" and path.name not in made:
            made.append(path.name)
            path.mkdir()

    watch(make_first)
    await FileStore(root).put("a/1", b"x")

    assert made == ["root", "tmp", "a"]
    assert (root / "a" / "1").read_bytes() == b"x"


@pytest.mark.parametrize("operation", ["get", "keys", "delete"])
async def test_whichever_step_of_a_read_is_refused_it_is_an_outage(
    operation: str, tmp_path: Path, watch: Watching
) -> None:
    store = FileStore(tmp_path)
    events: list[str] = []
    failing = 0

    def refuse(event: str, _: tuple[object, ...]) -> None:
        events.append(event)
        if len(events) == failing:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    async def call() -> object:
        if operation == "keys":
            return [key async for key in store.keys("a/")]
        return await (store.get("a/1") if operation == "get" else store.delete("a/1"))

    await store.put("a/1", b"x")
    watch(refuse)
    await call()
    steps = len(events)
    assert steps == (6 if operation == "keys" else 3)

    await store.put("a/1", b"x")
    for failing in range(1, steps + 1):  # noqa: B007 - `refuse` reads it
        events.clear()
        with pytest.raises(StoreUnavailableError) as caught:
            await call()
        assert caught.value.reason == "Permission denied"


async def test_cancelled_writer_leaves_all_or_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("a/1", b"before")
    begun, go_on = threading.Event(), threading.Event()

    def chunks() -> Iterator[bytes]:
        yield b"aft"
        begun.set()
        go_on.wait(10)
        yield b"er"

    async with anyio.create_task_group() as group:
        group.start_soon(store.put_stream, "a/1", chunks())
        await anyio.to_thread.run_sync(begun.wait)
        assert await store.get("a/1") == b"before"
        group.cancel_scope.cancel()
        go_on.set()

    assert await store.get("a/1") == b"after"
    assert files(tmp_path) == ["a/1"]


async def test_draft_of_a_dead_writer_is_swept_after_a_minute_and_once_a_store(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    (tmp_path / "tmp" / "folder").mkdir(parents=True)
    for age, name in ((59, "young"), (60, "edge"), (61, "old"), (100_000, "older")):
        (tmp_path / "tmp" / name).write_bytes(b"half")
        os.utime(tmp_path / "tmp" / name, (clock() - age, clock() - age))
    store = FileStore(tmp_path, clock=clock)
    await store.get("k")
    assert len(files(tmp_path)) == 4

    await store.put("k", b"x")
    assert files(tmp_path) == ["k", "tmp/edge", "tmp/young"]

    clock.advance(3_600)
    await store.put("k", b"x")
    assert files(tmp_path) == ["k", "tmp/edge", "tmp/young"]

    await FileStore(tmp_path, clock=clock).put("k", b"x")
    assert files(tmp_path) == ["k"]


async def test_draft_of_a_live_writer_is_never_swept_however_old(tmp_path: Path) -> None:
    clock = ManualClock()
    begun, go_on = threading.Event(), threading.Event()

    def chunks() -> Iterator[bytes]:
        yield b"wh"
        begun.set()
        go_on.wait(10)
        yield b"ole"

    async with anyio.create_task_group() as group:
        group.start_soon(FileStore(tmp_path).put_stream, "a/1", chunks())
        await anyio.to_thread.run_sync(begun.wait)
        (draft,) = (tmp_path / "tmp").iterdir()
        os.utime(draft, (0, 0))
        await FileStore(tmp_path, clock=clock).put("k", b"x")
        assert draft.exists()
        go_on.set()

    assert await FileStore(tmp_path).get("a/1") == b"whole"
    assert files(tmp_path) == ["a/1", "k"]


async def test_draft_that_vanished_is_an_outage(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x"
        for draft in (tmp_path / "tmp").iterdir():
            draft.unlink()

    with pytest.raises(StoreUnavailableError, match="No such file"):
        await FileStore(tmp_path).put_stream("a/1", chunks())

    assert files(tmp_path) == []


WRITER = """
import asyncio, random, sys, xxhash
from coatcheck.stores import FileStore

async def main(root, seed):
    store = FileStore(root)
    chance = random.Random(seed)
    while True:
        payload = chance.randbytes(chance.randrange(500_000, 3_000_000))
        key = f"s/a/payloads/{len(payload)}-{xxhash.xxh3_128_hexdigest(payload)}.bin"
        if chance.random() < 0.5:
            await store.put(key, payload)
        else:
            pieces = (payload[at : at + 65536] for at in range(0, len(payload), 65536))
            await store.put_stream(key, pieces)
        print(key, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

HUNDRED = """
import asyncio, sys
from coatcheck.stores import FileStore

async def main(root, name):
    store = FileStore(root)
    won = 0
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        await store.put(f"s/{name}/payloads/{number}", f"{name}-{number} ".encode() * 3_000)
        await store.put(f"shared/{number}", f"{name} ".encode() * 3_000)
        won += await store.create(f"raced/{number}", name.encode())
    print(won, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_killed_writers_leave_whole_files_and_drafts_that_are_swept(tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    for kill in range(6):
        arguments = [sys.executable, "-c", WRITER, str(tmp_path), str(kill)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(2 + kill):
                acknowledged.add(writer.stdout.readline().strip())
            writer.kill()
            acknowledged.update(line.strip() for line in writer.stdout)

    later = ManualClock((tmp_path / "tmp").stat().st_mtime + 3_600)
    store = FileStore(tmp_path, clock=later)
    keys = {key async for key in store.keys("s/a/payloads/")}
    assert keys >= acknowledged
    for key in keys:
        payload = await store.get(key)
        assert payload is not None
        assert key.endswith(f"/{len(payload)}-{xxhash.xxh3_128_hexdigest(payload)}.bin")

    await store.put("k", b"x")
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_two_processes_write_a_hundred_keys_each_at_once(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", HUNDRED, str(tmp_path), name],
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
    won = sum(int(writer.communicate()[0]) for writer in writers)

    store = FileStore(tmp_path)
    assert won == 100
    for number in range(100):
        for name in ("one", "two"):
            payload = await store.get(f"s/{name}/payloads/{number}")
            assert payload == f"{name}-{number} ".encode() * 3_000
        assert await store.get(f"shared/{number}") in {b"one " * 3_000, b"two " * 3_000}
        assert await store.get(f"raced/{number}") in {b"one", b"two"}
    assert list((tmp_path / "tmp").iterdir()) == []
