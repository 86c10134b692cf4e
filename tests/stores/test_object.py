"""Object stores: the whole suite on obstore's memory, on its folder and on a real S3."""

import asyncio
import itertools
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import obstore
import pytest
from obstore.store import LocalStore, S3Store

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import (
    FileStore,
    ObjectStore,
    Store,
    SupportsBatch,
    SupportsCompare,
    SupportsCopy,
    SupportsCreate,
    SupportsExpiry,
    SupportsRange,
    SupportsStream,
    SupportsVitals,
)
from coatcheck.testing import ManualClock, S3Server, StoreSuite, check_store

KEY = "s/a/records/1"
MB = 1_000_000

_numbers = itertools.count()


def fresh(s3: S3Server) -> str:
    """Return an address in the shared bucket where nothing lies yet."""
    return s3.address(f"objects/{next(_numbers)}")


def bare(s3: S3Server) -> S3Store:
    """Return obstore's own client for the shared bucket."""
    return S3Store(
        s3.bucket,
        endpoint=s3.url,
        access_key_id="test",
        secret_access_key="testsecret",
        region="us-east-1",
        client_options={"allow_http": True},
    )


class TestObjectsInMemory(StoreSuite):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObjectStore("memory:")


class TestObjectsInAFolder(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ObjectStore(f"file:{tmp_path / 'root'}")


class TestObjectsInS3(StoreSuite):
    @pytest.fixture
    def store(self, s3: S3Server) -> ObjectStore:
        return ObjectStore(fresh(s3))


def test_objects_in_memory_behave_as_a_dict_over_random_steps() -> None:
    check_store(lambda: ObjectStore("memory:"), runs=10, steps=12)


def test_objects_in_a_folder_behave_as_a_dict_over_random_steps(tmp_path: Path) -> None:
    check_store(lambda: ObjectStore(f"file:{tempfile.mkdtemp(dir=tmp_path)}"), runs=10, steps=12)


def test_objects_in_s3_behave_as_a_dict_over_random_steps(s3: S3Server) -> None:
    check_store(lambda: ObjectStore(fresh(s3)), runs=10, steps=12)


def test_object_store_has_range_stream_and_create_only() -> None:
    store: Store = ObjectStore("memory:")

    assert isinstance(store, SupportsRange)
    assert isinstance(store, SupportsStream)
    assert isinstance(store, SupportsCreate)
    assert not isinstance(store, SupportsCopy)
    assert not isinstance(store, SupportsExpiry)
    assert not isinstance(store, SupportsCompare)
    assert not isinstance(store, SupportsBatch)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "s3:",
        "s3://",
        "s3:/bucket",
        "s3:bucket",
        "s3://.bucket",
        "s3:///prefix",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/.",
        "s3://bucket/a b",
        "s3://bucket/é",
        "s3://bucket/" + "x" * 101,
        "s3://bucket/" + "/".join(["x" * 60] * 2),
        "redis://host",
        "memory:x",
        "memory:?a=b",
        "file:",
        "s3://user:password@host/prefix",
    ],
)
def test_what_is_no_address_is_a_value_error(address: str) -> None:
    with pytest.raises(ValueError, match="no object store at") as caught:
        ObjectStore(address)

    assert "password" not in str(caught.value)


@pytest.mark.parametrize("query", ["secret", "a=1&secret", "a=1&a=2", "=", "&"])
def test_options_that_are_no_pairs_are_a_value_error(query: str) -> None:
    with pytest.raises(ValueError, match="options") as caught:
        ObjectStore(f"s3://bucket?{query}")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket?secret_acess_key=hush",
        "s3://bucket?skip_signature=hush",
        "gs://bucket?service_account_key=hush",
        "az://container?account_key=hush",
        "az://container",
        "az://container?account_name=name&use_emulator=hush",
    ],
)
def test_options_a_service_does_not_take_are_a_value_error_without_their_values(
    address: str,
) -> None:
    with pytest.raises(ValueError, match="cannot be opened with these options") as caught:
        ObjectStore(address)

    assert "hush" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/a/prefix?region=eu-west-1&access_key_id=k&secret_access_key=hush",
        "gs://bucket/a/prefix?skip_signature=true",
        "az://container/a/prefix?account_name=name&account_key=aHVzaA==",
    ],
)
def test_a_store_is_shown_by_its_place_alone(address: str) -> None:
    place = address.partition("?")[0]

    assert repr(ObjectStore(address)) == f"ObjectStore('{place}')"


async def test_options_beside_the_address_win(s3: S3Server) -> None:
    address = s3.address("options", secret="wrong")
    store = ObjectStore(address, options={"secret_access_key": "testsecret"})

    await store.put(KEY, b"x")

    assert await store.get(KEY) == b"x"
    with pytest.raises(StoreUnavailableError):
        await ObjectStore(address).get(KEY)


async def test_each_store_in_memory_is_its_own() -> None:
    one, two = ObjectStore("memory:"), ObjectStore("memory:")
    await one.put(KEY, b"x")

    assert await two.get(KEY) is None


async def test_a_closed_store_connects_again(s3: S3Server) -> None:
    store = ObjectStore(fresh(s3))
    await store.put(KEY, b"x")
    await store.close()

    assert await store.get(KEY) == b"x"


async def test_payload_is_an_object_under_prefix_and_key(s3: S3Server) -> None:
    address = fresh(s3)
    await ObjectStore(address).put(KEY, b"plain")
    whole = ObjectStore(s3.address())
    prefix = address.partition("?")[0].removeprefix("s3://artifacts/")

    assert await whole.get(f"{prefix}/{KEY}") == b"plain"


async def test_foreign_objects_in_a_folder_are_not_listed(s3: S3Server, tmp_path: Path) -> None:
    for client, address in (
        (bare(s3), s3.address("foreign")),
        (LocalStore(tmp_path), f"file:{tmp_path}/foreign"),
    ):
        for name in ("1", "not a key", ".hidden", "x" * 201):
            obstore.put(client, f"foreign/a/{name}", b"x")

        assert [key async for key in ObjectStore(address).keys("a/")] == ["a/1"]


async def test_a_folder_of_several_pages_is_listed_whole_in_order(s3: S3Server) -> None:
    store = ObjectStore(fresh(s3))
    keys = [f"a/{number:04}" for number in range(1_050)]
    async with anyio.create_task_group() as group:
        for key in keys:
            group.start_soon(store.put, key, b"")

    assert [key async for key in store.keys("a/")] == keys
    assert await anext(store.keys("a/")) == keys[0]


async def test_a_service_that_lists_in_no_order_is_told_and_then_sorted_here(
    tmp_path: Path,
) -> None:
    store = ObjectStore(f"file:{tmp_path}", lists_in_order=True)  # which no folder does
    keys = [f"a/{number:04}" for number in range(1_001)]
    for key in keys:
        await store.put(key, b"")

    with pytest.raises(StoreUnavailableError, match="lists keys out of order"):
        [key async for key in store.keys("a/")]

    assert [key async for key in store.keys("a/")] == keys


async def test_create_of_many_megabytes_is_a_single_put(s3: S3Server) -> None:
    store = ObjectStore(s3.address("single"))
    before = unfinished(s3)

    assert await store.create(KEY, bytes(12 * MB))
    assert not await store.create(KEY, bytes(12 * MB))

    tag = obstore.head(bare(s3), f"single/{KEY}")["e_tag"]
    assert tag is not None
    assert "-" not in tag  # as the tag of an upload in parts has
    assert unfinished(s3) == before


@pytest.mark.parametrize("where", ["memory", "file", "s3"])
async def test_payloads_around_the_size_of_a_part_are_kept_whole(
    where: str, s3: S3Server, tmp_path: Path
) -> None:
    store = ObjectStore({"memory": "memory:", "file": f"file:{tmp_path}", "s3": fresh(s3)}[where])
    part = 5 * 1024 * 1024
    for size in (part - 1, part, part + 1, 2 * part, 2 * part + 1):
        payload = os.urandom(size)
        for key, chunks in {
            "a/put": None,
            "a/whole": [payload],
            "a/view": [memoryview(payload)],
            "a/uneven": [
                payload[: part - 3],
                b"",
                payload[part - 3 : part + 5],
                payload[part + 5 :],
            ],
        }.items():
            await (store.put(key, payload) if chunks is None else store.put_stream(key, chunks))
            assert (await store.get(key) == payload) is True, (key, size)


async def test_a_failed_stream_leaves_no_unfinished_upload(s3: S3Server, tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield bytes(12 * MB)
        raise KeyError("mine")

    before = unfinished(s3)
    for store in (ObjectStore(fresh(s3)), ObjectStore(f"file:{tmp_path}")):
        with pytest.raises(KeyError, match="mine"):
            await store.put_stream(KEY, failing())
        assert await store.get(KEY) is None

    assert unfinished(s3) == before
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_a_long_stream_is_held_in_bounded_memory(s3: S3Server) -> None:
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, "-c", STREAMER, fresh(s3)], capture_output=True, text=True, check=True
        )
    )

    assert float(done.stdout) < 60 * MB


STREAMER = """
import asyncio, os, sys
from pathlib import Path
from coatcheck.stores import ObjectStore

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

async def main():
    store = ObjectStore(sys.argv[1])
    await store.put("a/0", os.urandom(1_000_000))
    before = peak()
    await store.put_stream("a/1", (os.urandom(1_000_000) for _ in range(150)))
    print(peak() - before)

asyncio.run(main())
"""


def unfinished(s3: S3Server) -> set[str]:
    """Return the uploads in parts that neither ended nor were given up."""
    url = f"http://127.0.0.1:{s3.ports['filer.port']}/buckets/{s3.bucket}/.uploads/"
    with suppress(HTTPError), urlopen(Request(url, headers={"Accept": "application/json"})) as page:
        return {entry["FullPath"] for entry in json.loads(page.read())["Entries"] or ()}
    return set()


async def test_a_cancelled_put_ends_when_the_service_has_answered(s3: S3Server) -> None:
    store = ObjectStore(fresh(s3))
    for number, size in enumerate((10, MB, 12 * MB)):
        task = asyncio.create_task(store.put(f"a/{number}", bytes(size)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = [key async for key in store.keys("a/")]
        later = [key async for key in store.keys("a/")]
        assert found == later


async def test_a_cancelled_stream_is_all_or_nothing(s3: S3Server) -> None:
    store = ObjectStore(fresh(s3))
    begun, go_on = threading.Event(), threading.Event()

    def chunks() -> Iterator[bytes]:
        yield bytes(6 * MB)
        begun.set()
        go_on.wait(10)
        yield bytes(6 * MB)

    async with anyio.create_task_group() as group:
        group.start_soon(store.put_stream, KEY, chunks())
        await anyio.to_thread.run_sync(begun.wait)
        group.cancel_scope.cancel()
        go_on.set()

    found = await store.get(KEY)
    assert found is None or len(found) == 12 * MB


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_folders_are_0700_and_files_0600_whatever_the_umask(
    umask: int, tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        store = ObjectStore(f"file:{tmp_path / 'with' / 'parents'}")
        await store.put(KEY, b"x")
        await store.create("s/b/records/1", b"x")
        await store.put_stream("s/c/records/1", [bytes(6 * MB)] * 2)
    finally:
        os.umask(before)

    paths = list((tmp_path / "with" / "parents").rglob("*"))
    assert len(paths) == 1 + 3 * 3
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_what_a_killed_writer_left_is_swept_after_a_day_and_once_a_store(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    (tmp_path / "s" / "a#1").mkdir(parents=True)
    day = 24 * 3_600
    for age, name in ((day - 1, "k#1"), (day, "k#2"), (day + 1, "k#3"), (9 * day, "s/x.txt#12")):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (clock() - age, clock() - age))
    store = ObjectStore(f"file:{tmp_path}", clock=clock)

    assert await store.get("k") is None
    await store.put("k", b"x")

    def files() -> list[str]:
        return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())

    assert files() == ["k", "k#1", "k#2"]

    clock.advance(day)
    await store.put("k", b"x")
    assert files() == ["k", "k#1", "k#2"]

    await ObjectStore(f"file:{tmp_path}", clock=clock).put("k", b"x")
    assert files() == ["k"]


async def test_a_folder_that_cannot_be_written_is_an_outage_in_the_words_of_the_system(
    tmp_path: Path,
) -> None:
    store = ObjectStore(f"file:{tmp_path / 'root'}")
    (tmp_path / "root" / "s").write_bytes(b"a file in place of a folder")

    with pytest.raises(StoreUnavailableError, match="Not a directory") as caught:
        await store.put(KEY, b"x")

    assert str(tmp_path) not in str(caught.value)


def test_a_process_forked_after_a_call_is_told_and_one_forked_before_works(tmp_path: Path) -> None:
    program = """
import asyncio, os, sys
from coatcheck.stores import ObjectStore

def call():
    store = ObjectStore("file:" + sys.argv[1])
    asyncio.run(store.put("a/1", b"x"))

def child():
    if os.fork() == 0:
        try:
            call()
            print("works", flush=True)
        except Exception as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()

ObjectStore("file:" + sys.argv[1])
child()
call()
child()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    first, second = done.stdout.splitlines()
    assert first == "works"
    assert "were used before this process was forked" in second


async def test_vitals_tell_the_time_and_files_their_room(s3: S3Server, tmp_path: Path) -> None:
    for store in (ObjectStore(fresh(s3)), ObjectStore("memory:"), FileStore(tmp_path)):
        assert isinstance(store, SupportsVitals)
        before = datetime.now(UTC)
        vitals = await store.vitals()
        after = datetime.now(UTC)

        assert vitals.now is not None
        # The clock of files advances in steps of some milliseconds.
        assert before - timedelta(seconds=vitals.now_within_seconds + 0.1) <= vitals.now <= after

    assert vitals.free_bytes is not None
    assert vitals.total_bytes is not None
    assert 0 <= vitals.free_bytes <= vitals.total_bytes
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
