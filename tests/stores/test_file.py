"""The file store: the whole suite, how its files lie, and what may not be followed or read."""

import asyncio
import fcntl
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import (
    FileStore,
    Store,
    SupportsBatch,
    SupportsCompare,
    SupportsCreate,
    SupportsExpiry,
    SupportsPath,
    SupportsRange,
    SupportsStream,
)
from coatcheck.stores._draft import Draft
from coatcheck.stores._folders import Folders
from coatcheck.stores._keys import split_key
from coatcheck.testing import StoreSuite, check_store

KEY = "s/a/records/1"


class TestFileStore(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return FileStore(tmp_path / "root")


class TestDurableFileStore(StoreSuite):
    @pytest.fixture
    def store(self) -> Iterator[FileStore]:
        # In memory where there is such a folder: forcing to disk takes milliseconds a file.
        memory = Path("/dev/shm")
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
            yield FileStore(folder, durable=True)


def test_file_store_behaves_as_a_dict_over_random_steps(tmp_path: Path) -> None:
    check_store(lambda: FileStore(tempfile.mkdtemp(dir=tmp_path)), runs=20, steps=12)


def test_file_store_has_range_stream_create_and_match_only() -> None:
    store: Store = FileStore("/nowhere")

    assert isinstance(store, SupportsRange)
    assert isinstance(store, SupportsPath)
    assert isinstance(store, SupportsStream)
    assert isinstance(store, SupportsCreate)
    assert isinstance(store, SupportsCompare)
    assert not isinstance(store, SupportsExpiry)
    assert not isinstance(store, SupportsBatch)


def test_what_is_created_behind_a_removal_is_not_removed_by_another_thread(tmp_path: Path) -> None:
    rounds = range(200)
    together = threading.Barrier(2, timeout=30)

    async def only_remove() -> None:
        store = FileStore(tmp_path)
        for number in rounds:
            together.wait()
            await store.delete_unchanged({"a/1": b"%d" % number})
            together.wait()

    async def remove_and_create() -> list[bytes | None]:
        store = FileStore(tmp_path)
        found: list[bytes | None] = []
        await store.put("a/1", b"0")
        for number in rounds:
            together.wait()
            await store.delete_unchanged({"a/1": b"%d" % number})
            assert await store.create("a/1", b"%d" % (number + 1))
            together.wait()
            found.append(await store.get("a/1"))
        return found

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(asyncio.run, only_remove())
        found = pool.submit(asyncio.run, remove_and_create()).result(60)
        other.result(60)

    assert found == [b"%d" % (number + 1) for number in rounds]


def tree(root: Path) -> dict[str, str]:
    """Return every path below `root` with its kind, and what is in the files."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        kind = stat.filemode(path.lstat().st_mode)[0]
        text = path.read_bytes().decode("latin-1") if kind == "-" else ""
        found[str(path.relative_to(root))] = f"{kind}{text}"
    return found


async def listing(store: Store, folder: str) -> list[str]:
    return [key async for key in store.keys(folder)]


async def test_payload_is_a_plain_file_under_its_key(tmp_path: Path) -> None:
    await FileStore(str(tmp_path)).put("s/a/payloads/1.txt", b"plain")

    assert tree(tmp_path) == {
        "s": "d",
        "s/a": "d",
        "s/a/payloads": "d",
        "s/a/payloads/1.txt": "-plain",
        "tmp": "d",
    }


async def test_reading_makes_no_folder_and_a_missing_root_reads_as_empty(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "not" / "yet")

    assert await store.get(KEY) is None
    assert await store.get_range(KEY, 0, 1) is None
    assert await listing(store, "s/a/records/") == []
    await store.delete(KEY)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277, 0o777])
async def test_folders_are_0700_and_files_0600_whatever_the_umask(
    umask: int, tmp_path: Path
) -> None:
    store = FileStore(tmp_path / "with" / "parents")
    before = os.umask(umask)
    try:
        await store.put(KEY, b"x")
        await store.create("s/b/records/1", b"x")
        await store.put_stream("s/c/records/1", [b"x"])
    finally:
        os.umask(before)

    paths = list(tmp_path.rglob("*"))
    assert len(paths) == 2 + 2 + 3 * 3
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_root_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    await FileStore(tmp_path).put("k", b"x")

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


async def test_relative_root_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore("root")
    monkeypatch.chdir("/")
    await store.put("k", b"x")

    assert (tmp_path / "root" / "k").read_bytes() == b"x"


async def test_two_stores_on_one_folder_see_the_same(tmp_path: Path) -> None:
    await FileStore(tmp_path).put(KEY, b"x")

    assert await FileStore(tmp_path).get(KEY) == b"x"
    assert not await FileStore(tmp_path).create(KEY, b"y")


async def test_nothing_stays_open_and_close_can_be_called(tmp_path: Path) -> None:
    descriptors = Path("/dev/fd")
    before = len(list(descriptors.iterdir()))
    store = FileStore(tmp_path / "root")
    for number in range(5):
        await store.put(f"a/{number}", b"x")
        await store.create(f"a/{number}", b"x")
        await store.get(f"a/{number}")
        await store.get("a/missing")
        await store.get("missing/missing/missing")
        await store.get(f"a/{number}/below-a-file")
        await listing(store, "a/")
        await store.delete(f"a/{number}")
    await store.close()

    assert len(list(descriptors.iterdir())) == before


async def test_forked_child_uses_the_same_store(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("a/parent", b"x")
    child = os.fork()
    if child == 0:
        write = store.put("a/child", b"y")
        try:
            write.send(None)  # small work never waits, so it needs no loop
        except StopIteration:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)

    assert status == 0
    assert await listing(store, "a/") == ["a/child", "a/parent"]


async def test_root_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    await FileStore(tmp_path / "link").put("k", b"x")

    assert (tmp_path / "real" / "k").read_bytes() == b"x"


@pytest.mark.parametrize("planted", ["s", "s/a", "s/a/records", KEY])
@pytest.mark.parametrize("there", [True, False], ids=["target", "dangling"])
async def test_symlink_at_any_component_reads_as_missing_and_cannot_be_written(
    planted: str, there: bool, tmp_path: Path
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    store = FileStore(root)
    await store.put("s/other/records/1", b"ours")
    target = outside / planted
    link = root / planted
    if there:
        (outside / KEY).parent.mkdir(parents=True)
        (outside / KEY).write_bytes(b"secret")
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.exists():
        link.rename(tmp_path / "aside")
    link.symlink_to(target)
    before = tree(outside) if there else {}

    assert await store.get(KEY) is None
    assert await store.get_range(KEY, 0, 6) is None
    assert await store.path(KEY) is None
    assert await listing(store, "s/a/records/") == []
    for write in (
        store.put(KEY, b"x"),
        store.put(KEY, bytes(2_000_000)),
        store.create(KEY, b"x"),
        store.put_stream(KEY, [b"x"]),
    ):
        with pytest.raises(StoreUnavailableError):
            await write
    assert link.is_symlink()
    assert list((root / "tmp").iterdir()) == []

    await store.delete(KEY)
    assert (tree(outside) if there else {}) == before
    assert outside.exists() == there


async def test_tmp_that_is_a_symlink_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "old").write_bytes(b"x")
    os.utime(tmp_path / "outside" / "old", (0, 0))
    (tmp_path / "root" / "tmp").symlink_to(tmp_path / "outside")

    with pytest.raises(StoreUnavailableError):
        await FileStore(tmp_path / "root").put("k", b"x")

    assert tree(tmp_path / "outside") == {"old": "-x"}


def plant_pipe(path: Path) -> None:
    os.mkfifo(path)


def plant_folder(path: Path) -> None:
    (path / "full").mkdir(parents=True)


def plant_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(path.parent)  # the name of a socket may have 100 characters
        try:
            listening.bind(path.name)
        finally:
            os.chdir(before)


@pytest.mark.parametrize("before", [None, b"", b"x"])
async def test_an_empty_payload_takes_the_place_of_what_was_there(
    before: bytes | None, tmp_path: Path
) -> None:
    store = FileStore(tmp_path)
    if before is not None:
        await store.put("a/1", before)

    await store.put("a/1", b"")

    assert await store.get("a/1") == b""
    assert stat.S_IMODE((tmp_path / "a" / "1").stat().st_mode) == 0o600
    assert await listing(store, "a/") == ["a/1"]
    assert not (tmp_path / "tmp").exists() or list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("sizes", [[], [0, 0], [1] * 9, [700_000, 1, 524_288, 3], [524_287, 1, 1]])
async def test_chunks_of_any_size_are_joined(sizes: list[int], tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    chunks = [bytes([number]) * size for number, size in enumerate(sizes)]

    await store.put_stream("a/1", iter(chunks))

    assert await store.get("a/1") == b"".join(chunks)


@pytest.mark.parametrize("plant", [plant_pipe, plant_folder, plant_socket])
async def test_what_is_no_regular_file_is_missing_unlisted_and_not_replaced(
    plant: Callable[[Path], None], tmp_path: Path
) -> None:
    store = FileStore(tmp_path)
    await store.put("a/2", b"x")
    plant(tmp_path / "a" / "1")
    kind = stat.S_IFMT((tmp_path / "a" / "1").stat().st_mode)

    assert await store.get("a/1") is None
    assert await store.get_range("a/1", 0, 1) is None
    assert await listing(store, "a/") == ["a/2"]
    with pytest.raises(StoreUnavailableError, match="something other than a file"):
        await store.put("a/1", b"x")
    with pytest.raises(StoreUnavailableError, match="something other than a file"):
        await store.put("a/1", b"")
    with pytest.raises(StoreUnavailableError, match="something other than a file"):
        await store.create("a/1", b"x")

    assert stat.S_IFMT((tmp_path / "a" / "1").stat().st_mode) == kind
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_pipe_in_tmp_does_not_hold_up_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    os.mkfifo(tmp_path / "tmp" / "pipe")
    os.utime(tmp_path / "tmp" / "pipe", (0, 0))
    await FileStore(tmp_path).put("k", b"x")

    assert (tmp_path / "k").read_bytes() == b"x"


async def test_names_that_are_no_keys_are_not_listed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("a/1", b"x")
    for name in (".hidden", "with space", "é", "x" * 201, "back\\slash"):
        (tmp_path / "a" / name).write_bytes(b"foreign")

    assert await listing(store, "a/") == ["a/1"]


async def test_file_in_place_of_a_folder_is_missing_and_cannot_be_written_below(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)
    await store.put("a", b"x")

    assert await store.get("a/1") is None
    assert await listing(store, "a/") == []
    await store.delete("a/1")
    with pytest.raises(StoreUnavailableError, match="Not a directory"):
        await store.put("a/1", b"y")
    assert await store.get("a") == b"x"


async def test_root_that_is_a_file_is_an_outage_for_every_call(tmp_path: Path) -> None:
    (tmp_path / "root").write_bytes(b"a file")
    for root in (tmp_path / "root", tmp_path / "root" / "below"):
        store = FileStore(root)
        for call in (
            store.put("k", b"x"),
            store.put_stream("k", [b"x"]),
            store.create("k", b"x"),
            store.get("k"),
            store.get_range("k", 0, 1),
            store.delete("k"),
            listing(store, "a/"),
        ):
            with pytest.raises(StoreUnavailableError, match="Not a directory") as caught:
                await call
            assert isinstance(caught.value.__cause__, OSError)
            assert str(tmp_path) not in str(caught.value)
            assert caught.value.reason == "Not a directory"


async def test_root_behind_a_dangling_symlink_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for root in (tmp_path / "link", tmp_path / "link" / "below"):
        assert await FileStore(root).get("k") is None
        with pytest.raises(StoreUnavailableError):
            await FileStore(root).put("k", b"x")

    assert not (tmp_path / "nowhere").exists()


async def test_folder_is_listed_whole_on_the_loop_and_in_a_thread(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    keys = [f"a/{number:04}" for number in range(2_001)]
    for key in keys[:1_999]:
        (tmp_path / key).touch()

    for count in (1_999, 2_000, 2_001):
        (tmp_path / keys[count - 1]).touch()
        assert await listing(FileStore(tmp_path), "a/") == keys[:count]


@pytest.mark.parametrize("count", [127, 128, 129, 2_000, 2_001, 2_600])
async def test_a_folder_of_any_length_is_listed_in_order_and_without_what_is_no_file(
    tmp_path: Path, count: int
) -> None:
    store = FileStore(tmp_path)
    await store.put("a/b/inside", b"")
    names = [f"{number:040}" for number in range(count)]
    for name in reversed(names):
        (tmp_path / "a" / name).touch()
    (tmp_path / "a" / "0-link").symlink_to(tmp_path / "a" / names[0])
    (tmp_path / "a" / ".hidden").touch()

    assert [key async for key in store.keys("a/")] == [f"a/{name}" for name in names]


async def test_many_files_that_are_too_large_for_the_loop_are_read_all_the_same(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)
    payloads = [bytes([number]) * 1_500_000 for number in range(4)]
    for number, payload in enumerate(payloads):
        await store.put(f"a/{number}", payload)

    assert await store.get_many([f"a/{number}" for number in range(4)]) == payloads


def test_a_path_that_no_system_takes_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="NUL"):
        FileStore("a\0b")


async def test_who_holds_a_lock_on_a_file_does_not_hold_up_its_removal(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put(KEY, b"1")
    (path,) = tmp_path.glob("s/**/1")
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    turning = asyncio.create_task(turn())
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        others = await store.delete_unchanged({KEY: b"1"})
    turning.cancel()

    assert others == set()
    assert await store.get(KEY) is None
    assert turns > 5  # the event loop went on


def test_a_process_forked_while_a_file_is_made_holds_no_lock_on_it(tmp_path: Path) -> None:
    folders = Folders(tmp_path, durable=False)
    with Draft(folders) as draft:
        draft.write(b"1")
        inherited = os.dup(vars(draft)["_file"])  # as by a fork
        assert draft.publish(split_key(KEY), replace=False)
    try:
        (path,) = tmp_path.glob("s/**/1")
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(inherited)
