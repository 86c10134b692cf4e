"""Streams: paths, open files and iterators are stored whole, piece by piece, or not at all."""

import asyncio
import gc
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import anyio
import pytest

from coatcheck import Bank, BlockingBank
from coatcheck.content import encode
from coatcheck.errors import InvalidArgumentError, StoreUnavailableError, UnencodableValueError
from coatcheck.stores import FileStore, MemoryStore, Store

ROWS = [{"id": number, "name": f"row {number}"} for number in range(3_000)]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


class Plain:
    """A store without any capability."""

    def __init__(self) -> None:
        self.inside = MemoryStore()

    async def put(self, key: str, payload: bytes) -> None:
        await self.inside.put(key, payload)

    async def get(self, key: str) -> bytes | None:
        return await self.inside.get(key)

    async def delete(self, key: str) -> None:
        await self.inside.delete(key)

    def keys(self, folder: str) -> AsyncIterator[str]:
        return self.inside.keys(folder)

    async def close(self) -> None:
        await self.inside.close()


class Source:
    """An iterator, sync and async, that tells whether it was closed and in which threads it ran."""

    def __init__(self, items: Iterable[object], failure: Exception | None = None) -> None:
        self.items = items
        self.failure = failure
        self.closed = 0
        self.threads: set[int] = set()
        self.taken = 0

    def sync(self) -> Iterator[object]:
        try:
            for item in self.items:
                self.threads.add(threading.get_ident())
                self.taken += 1
                yield item
            if self.failure is not None:
                raise self.failure
        finally:
            self.threads.add(threading.get_ident())
            self.closed += 1

    async def awaited(self) -> AsyncIterator[object]:
        try:
            for item in self.items:
                await anyio.lowlevel.checkpoint()
                self.taken += 1
                yield item
            if self.failure is not None:
                raise self.failure
        finally:
            await anyio.lowlevel.checkpoint()
            self.closed += 1

    def iterator(self, kind: str) -> object:
        return self.sync() if kind == "sync" else self.awaited()


@pytest.fixture(params=["memory", "file", "plain"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "file":
        return FileStore(tmp_path / "store")
    return MemoryStore() if request.param == "memory" else Plain()


@pytest.fixture
def bank(store: Store) -> Bank:
    return Bank(store)


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


async def payloads(bank: Bank, store: Store) -> list[str]:
    """Return what is stored beside what a first put leaves."""
    folders = ("payloads", "records", "listing")
    kept = [key for each in folders async for key in store.keys(f"s/{bank.scope}/{each}/")]
    return [*kept, *[key async for key in store.keys("tmp2/")]]


async def is_whole(bank: Bank, pointer: str, payload: bytes) -> None:
    assert await bank.payload(pointer) == payload


async def test_items_are_stored_as_one_array_with_index_glimpse_and_digest(
    bank: Bank, kind: str
) -> None:
    source = Source(ROWS)
    streamed = await bank.put(source.iterator(kind), name="rows")
    plain = await bank.put(ROWS)

    assert await bank.get("rows") == ROWS
    assert await bank.payload("rows") == await bank.payload(plain.pointer)
    assert source.closed == 1
    for fact in ("content_type", "size_bytes", "length_chars", "preview", "digest", "glimpse"):
        assert getattr(streamed, fact) == getattr(plain, fact)
    page = await bank.read("rows", offset=2_048, limit=2, unit="rows")
    assert page.content == encode(ROWS[2_048:2_050]).whole().decode()
    assert page.total == 3_000


async def test_many_rows_are_counted_exactly_and_glimpsed_from_a_sample(bank: Bank) -> None:
    artifact = await bank.put({"n": number} for number in range(120_000))

    assert "120,000 rows" in str(artifact.glimpse)
    assert "sampled" in str(artifact.glimpse)


async def test_bytes_and_text_are_joined_and_other_text_is_an_array(bank: Bank, kind: str) -> None:
    async def put(items: list[object], content_type: str | None = None) -> object:
        artifact = await bank.put(Source(items).iterator(kind), content_type=content_type)
        return artifact.content_type, await bank.get(artifact.pointer)

    assert await put([b"a", b"\0"]) == ("application/octet-stream", b"a\0")
    assert await put([PNG[:4], PNG[4:]], "image/png") == ("image/png", PNG)
    assert await put(["a\n", "né"], "text/plain") == ("text/plain", "a\nné")
    assert await put(["a", "né"]) == ("application/json", ["a", "né"])
    assert await put(['{"a":', "1}"], "application/json") == ("application/json", '{"a":1}')
    assert await put([]) == ("application/json", [])
    assert await put([], "text/plain") == ("text/plain", "")
    assert await put([None]) == ("application/json", [None])


async def test_large_items_pass_in_pieces(bank: Bank, kind: str) -> None:
    text = "żółć" * 1_000_000
    artifact = await bank.put(Source([text, "x", text]).iterator(kind), content_type="text/plain")

    assert await bank.get(artifact.pointer) == f"{text}x{text}"
    assert (await bank.read(artifact.pointer, offset=4_000_000, limit=1)).content == "x"


async def test_text_of_a_stream_is_searched_and_glimpsed_as_a_whole(bank: Bank) -> None:
    lines = [f"INFO line {number} né\n" for number in range(300_000)]
    lines[250_000] = "ERROR disk full\n"
    artifact = await bank.put(iter(lines), content_type="text/plain")

    found = await bank.search(artifact.pointer, "disk full")
    assert found.matches[0].line_number == 250_001
    glimpse = str(artifact.glimpse)
    assert f"300,000 lines, {sum(map(len, lines)):,} characters" in glimpse
    assert "line 299999" in glimpse


def test_a_blocking_bank_takes_streams() -> None:
    with BlockingBank("memory:") as bank:
        pointer = bank.put(number for number in range(5)).pointer
        assert bank.get(pointer) == [0, 1, 2, 3, 4]


async def test_lists_text_and_other_values_are_no_streams(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("inside")
    name = str(tmp_path / "a.txt")

    assert await bank.get((await bank.put(name)).pointer) == name
    assert await bank.get((await bank.put([1])).pointer) == [1]
    assert await bank.get((await bank.put({"a": 1})).pointer) == {"a": 1}


async def test_a_path_is_its_files_bytes_with_the_type_of_its_name(
    bank: Bank, tmp_path: Path
) -> None:
    table = tmp_path / "Orders.CSV"
    table.write_bytes(b"id,name\r\n" + b"1,n\xc3\xa9\r\n" * 300_000)
    artifact = await bank.put(table)

    assert artifact.content_type == "text/csv"
    await is_whole(bank, artifact.pointer, table.read_bytes())
    assert await bank.get(artifact.pointer) == table.read_bytes()
    assert artifact.length_chars == 9 + 6 * 300_000
    assert "300,000 rows" in str(artifact.glimpse)
    table.write_bytes(b"changed")
    assert (await bank.read(artifact.pointer, offset=9, limit=4)).content == "1,né"


async def test_a_path_of_an_unknown_name_is_binary_unless_its_type_is_given(
    bank: Bank, tmp_path: Path
) -> None:
    (tmp_path / "core.1234").write_bytes(b"text\n")

    unknown = await bank.put(tmp_path / "core.1234")
    given = await bank.put(tmp_path / "core.1234", content_type="text/plain")
    assert (unknown.content_type, unknown.length_chars) == ("application/octet-stream", None)
    assert (given.content_type, given.length_chars) == ("text/plain", 5)
    (tmp_path / "empty.txt").touch()
    assert await bank.get((await bank.put(tmp_path / "empty.txt")).pointer) == b""


async def test_a_path_that_cannot_be_read_or_is_not_its_type_leaves_nothing(
    bank: Bank, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"GIF89a")

    with pytest.raises(FileNotFoundError):
        await bank.put(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        await bank.put(tmp_path)
    for payload in (b"GIF89a", b"GIF89a" * 100_000):
        (tmp_path / "a.png").write_bytes(payload)
        with pytest.raises(InvalidArgumentError, match="image/png"):
            await bank.put(tmp_path / "a.png", content_type="image/png")
    assert await payloads(bank, store) == []


async def test_an_open_binary_file_is_read_from_where_it_stands_and_stays_open(
    bank: Bank, tmp_path: Path
) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"# head\r\nbody")

    for buffering in (0, -1):
        with path.open("rb", buffering=buffering) as file:
            file.read(2)
            artifact = await bank.put(file)
            assert not file.closed
        assert artifact.content_type == "text/markdown"
        assert artifact.length_chars == 10
        assert await bank.get(artifact.pointer) == b"head\r\nbody"
    artifact = await bank.put(io.BytesIO(b"x"))
    assert (artifact.content_type, artifact.size_bytes) == ("application/octet-stream", 1)


async def test_an_open_text_file_is_its_text_with_the_newlines_of_the_file(
    bank: Bank, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("a,é\r\n1,2\r\n".encode())
    other = tmp_path / "a.png"
    other.write_bytes("é\r\nx".encode("utf-16"))

    async def put(file: object, content_type: str | None = None) -> tuple[str, object]:
        artifact = await bank.put(file, content_type=content_type)
        return artifact.content_type, await bank.get(artifact.pointer)

    with path.open(encoding="utf-8") as file:
        assert await put(file) == ("text/csv", "a,é\r\n1,2\r\n")
    with path.open(encoding="utf-8") as file:
        file.readline()
        assert await put(file, "text/plain") == ("text/plain", "1,2\r\n")
    with path.open(encoding="utf-8") as file:
        next(file)
        assert await put(file) == ("text/csv", "1,2\n")
    with other.open(encoding="utf-16") as file:
        assert await put(file) == ("text/plain", "é\r\nx")
    with other.open(encoding="utf-16") as file:
        file.read(1)
        assert await put(file) == ("text/plain", "\nx")
    with path.open(encoding="ascii", errors="surrogateescape") as file:
        assert await put(file) == ("text/csv", "a,\udcc3\udca9\r\n1,2\r\n")
    assert await put(io.StringIO("a\r\nb", newline="")) == ("text/plain", "a\r\nb")
    with tempfile.NamedTemporaryFile("w+", suffix=".md", encoding="utf-8") as temporary:
        temporary.write("# x")
        temporary.seek(0)
        assert await put(temporary) == ("text/markdown", "# x")


async def test_a_position_within_a_decoded_character_falls_back_to_reading(
    bank: Bank, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"+AGEAYgBj-\r\nend")

    with path.open(encoding="utf-7") as file:
        assert file.read(1) == "a"
        artifact = await bank.put(file)
    assert await bank.get(artifact.pointer) == "bc\nend"


async def test_a_file_that_has_nothing_yet_fails_clearly(bank: Bank, store: Store) -> None:
    class Unready(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes | None:
            return None if size else b""

    with pytest.raises(BlockingIOError):
        await bank.put(Unready())
    assert await payloads(bank, store) == []


async def test_a_stream_that_fails_leaves_nothing_and_says_how_far_it_came(
    bank: Bank, store: Store, kind: str
) -> None:
    failure = KeyError("the cursor is gone")
    for count, progress in ((0, "0 items, 0 bytes"), (12_345, "12,345 items, 666,630 bytes")):
        source = Source(({"id": 1, "pad": "x" * 36} for _ in range(count)), failure)
        failure.__notes__ = []
        with pytest.raises(KeyError) as caught:
            await bank.put(source.iterator(kind), name="rows")
        assert caught.value is failure
        (note,) = caught.value.__notes__
        assert note == f"banked nothing: the stream failed after {progress}"
        assert source.closed == 1
    assert await payloads(bank, store) == []
    assert await bank.find("rows") is None


async def test_an_item_without_an_encoding_fails_the_stream(
    bank: Bank, store: Store, kind: str
) -> None:
    source = Source([1, object(), 2])

    with pytest.raises(UnencodableValueError) as caught:
        await bank.put(source.iterator(kind))
    assert caught.value.__notes__ == ["banked nothing: the stream failed after 1 item, 2 bytes"]
    assert source.closed == 1
    assert await payloads(bank, store) == []


async def test_a_stream_that_is_not_its_type_is_refused_and_closed(
    bank: Bank, store: Store, kind: str
) -> None:
    source = Source([b"GIF89a" * 20_000] * 40)

    with pytest.raises(InvalidArgumentError, match="image/png"):
        await bank.put(source.iterator(kind), content_type="image/png")
    assert source.closed == 1
    assert source.taken < 40
    assert await payloads(bank, store) == []


@pytest.mark.parametrize("native", [True, False])
async def test_a_cancelled_stream_is_closed_and_leaves_nothing(
    bank: Bank, store: Store, kind: str, *, native: bool
) -> None:
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless() -> Iterator[str]:
        for number in range(sys.maxsize):
            if number == 20:
                loop.call_soon_threadsafe(reached.set)
            yield "x" * 100_000

    source = Source(endless())
    if native:
        task = asyncio.create_task(bank.put(source.iterator(kind), name="n"))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async with anyio.create_task_group() as group:
            group.start_soon(bank.put, source.iterator(kind))
            await reached.wait()
            group.cancel_scope.cancel()
    assert source.closed == 1
    while any(each.name == "coatcheck work" for each in threading.enumerate()):
        await asyncio.sleep(0)  # what takes the pieces ends when it finds that there are no more
    assert await payloads(bank, store) == []
    assert await bank.find("n") is None


async def test_a_pipe_that_nobody_writes_to_does_not_hold_up_who_cancels(
    bank: Bank, store: Store, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    # Opened at this end too, so that the thread that reads it ends with the test.
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    with anyio.move_on_after(0.1) as scope:
        await bank.put(tmp_path / "pipe")
    os.write(writer, b"too late")
    os.close(writer)

    assert scope.cancelled_caught
    assert await payloads(bank, store) == []


async def test_a_source_that_cancels_itself_is_an_error_and_not_a_cancellation(
    bank: Bank, store: Store
) -> None:
    async def cancelling() -> AsyncIterator[str]:
        for number in range(20):
            yield "x" * 100_000 if number else ""
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="stream was cancelled"):
        await bank.put(cancelling())
    assert await payloads(bank, store) == []


class Full(MemoryStore):
    """A store that takes one piece of a stream."""

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        await super().put_stream(key, iter([next(iter(chunks))]))
        await self.delete(key)
        raise StoreUnavailableError("no room")


async def test_a_store_that_fails_ends_the_stream_and_says_how_much_was_read(kind: str) -> None:
    source = Source(["x" * 100_000] * 200)
    store = Full()
    bank = Bank(store)

    with pytest.raises(StoreUnavailableError) as caught:
        await bank.put(source.iterator(kind), content_type="text/plain")
    assert source.closed == 1
    assert source.taken < 60
    assert caught.value.__notes__[0].startswith("banked nothing: ")
    assert caught.value.__notes__[0].endswith(" bytes of the stream had been read")
    assert await payloads(bank, store) == []


async def test_no_more_is_read_ahead_than_two_mebibytes(tmp_path: Path, kind: str) -> None:
    taken: list[int] = []
    source = Source(["x" * 65_536] * 400)

    class Slow(FileStore):
        async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
            def watched() -> Iterator[bytes | memoryview]:
                stored = 0
                for chunk in chunks:
                    stored += len(chunk)
                    taken.append(source.taken * 65_536 - stored)
                    yield chunk

            await super().put_stream(key, watched())

    await Bank(Slow(tmp_path)).put(source.iterator(kind), content_type="text/plain")

    assert max(taken) <= 2 * 1024 * 1024 + 65_536


async def test_a_sync_source_is_read_and_closed_in_one_thread_of_its_own(bank: Bank) -> None:
    source = Source(["x" * 100_000] * 50)
    await bank.put(source.sync())

    assert len(source.threads) == 1
    assert threading.get_ident() not in source.threads


async def test_an_async_source_is_read_in_one_task(bank: Bank) -> None:
    tasks: set[asyncio.Task[object] | None] = set()

    async def scoped() -> AsyncIterator[int]:
        async with asyncio.timeout(60):
            for number in range(5_000):
                tasks.add(asyncio.current_task())
                yield number

    await bank.put(scoped())

    assert len(tasks) == 1


async def test_closing_may_fail_and_what_cannot_be_closed_is_left(bank: Bank) -> None:
    class Unclosable:
        def __init__(self) -> None:
            self.left = 3

        def __iter__(self) -> "Unclosable":
            return self

        def __next__(self) -> int:
            if not self.left:
                raise StopIteration
            self.left -= 1
            return self.left

        def close(self) -> None:
            raise RuntimeError("closed twice")

    class AwaitedCounter:
        def __init__(self) -> None:
            self.left = 2

        def __aiter__(self) -> "AwaitedCounter":
            return self

        async def __anext__(self) -> int:
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return self.left

    assert await bank.get((await bank.put(Unclosable())).pointer) == [2, 1, 0]
    assert await bank.get((await bank.put(AwaitedCounter())).pointer) == [1, 0]
    assert await bank.get((await bank.put(map(str, [1]))).pointer) == ["1"]


async def test_a_keyed_stream_is_banked_once_and_another_one_elsewhere(
    bank: Bank, store: Store
) -> None:
    first = await bank.put(iter(ROWS), key="call 1")
    again = await bank.put(iter(ROWS), key="call 1")
    other = await bank.put(iter(ROWS[:-1]), key="call 1")
    other_again = await bank.put(iter(ROWS[:-1]), key="call 1")
    as_value = await bank.put(ROWS, key="call 1")

    assert first.id == again.id == as_value.id != other.id == other_again.id
    assert await bank.get(first.pointer) == ROWS
    assert await bank.get(other.pointer) == ROWS[:-1]
    assert len(await payloads(bank, store)) == 2 * 3


async def test_of_keyed_streams_at_once_one_wins(tmp_path: Path) -> None:
    bank = Bank(FileStore(tmp_path))
    artifacts = await asyncio.gather(*[bank.put(iter(ROWS), key="k") for _ in range(6)])

    assert len({artifact.id for artifact in artifacts}) == 1
    assert await bank.get(artifacts[0].pointer) == ROWS
    assert len(await payloads(bank, FileStore(tmp_path))) == 3


async def test_a_payload_that_vanishes_while_it_is_moved_is_an_outage() -> None:
    class Forgetful(MemoryStore):
        async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
            return await super().get_range(key, start_byte, stop_byte) if stop_byte == 1 else None

    store = Forgetful()
    bank = Bank(store)
    await bank.put(iter(ROWS), key="k")

    with pytest.raises(StoreUnavailableError, match="just written"):
        await bank.put(iter(ROWS[:5]), key="k")
    assert len(await payloads(bank, store)) == 3


async def test_ids_that_are_taken_by_nothing_are_an_outage() -> None:
    class Taken(MemoryStore):
        async def create(self, key: str, payload: bytes) -> bool:
            return "/records/" not in key and await super().create(key, payload)

    store = Taken()
    bank = Bank(store)

    for key in ("k", None):
        with pytest.raises(StoreUnavailableError, match="taken"):
            await bank.put(iter(ROWS), key=key)
    assert await payloads(bank, store) == []


@pytest.mark.parametrize(
    ("value", "content_type"),
    [
        (b"\xff", "text/plain"),
        (b"GIF89a", "image/png"),
        ("text", "image/png"),
        ("{", "application/json"),
        (b"{", "application/json"),
        ([1], "image/png"),
    ],
)
async def test_a_value_that_is_not_its_type_is_refused_before_anything_is_written(
    bank: Bank, store: Store, value: object, content_type: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=content_type):
        await bank.put(value, content_type=content_type)
    assert await payloads(bank, store) == []


async def test_a_value_that_is_its_type_is_kept(bank: Bank) -> None:
    for value, content_type in (
        (PNG, "image/png"),
        ("# x", "text/markdown"),
        ("\ud83d", "text/plain"),
        ('["\ud83d"]', "application/json"),
        ([1, "\ud83d"], "application/json"),
        (b"{}", "application/json"),
        ("x" * 100_000, "text/plain"),
    ):
        artifact = await bank.put(value, content_type=content_type)
        assert artifact.content_type == content_type
        assert await bank.get(artifact.pointer) == value


_GROWTH = """
import asyncio, sys, tracemalloc
from coatcheck import Bank
from coatcheck.stores import FileStore

LINE = "2026-01-01T00:00:00Z INFO request served n\\u00e9 in 12 ms\\n" * 2_000

async def lines():
    for _ in range(620):
        yield LINE

async def main():
    bank = Bank(FileStore(sys.argv[1]))
    await bank.put(iter([LINE]), content_type="text/plain")
    tracemalloc.start()
    artifact = await bank.put(lines(), content_type="text/plain")
    assert artifact.size_bytes > 64_000_000, artifact.size_bytes
    print(tracemalloc.get_traced_memory()[1])

asyncio.run(main())
"""


def test_memory_does_not_grow_with_the_stream(tmp_path: Path) -> None:
    gc.collect()
    done = subprocess.run(
        [sys.executable, "-c", _GROWTH, str(tmp_path)], capture_output=True, check=True, text=True
    )

    assert int(done.stdout) <= 32 * 1024 * 1024
