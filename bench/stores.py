"""Measures puts and windows on each store against the bare client: a table, or JSON.

Servers are started for it and end with it. All is warm, contenders take turns.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

from measure import CLOCKS, Contender, Row, Timer, percentile
from samples import Text, log_text
from table import cells, markdown

from coatcheck import Bank, Limits
from coatcheck.stores import FileStore, ObjectStore, RedisStore, Store

WINDOW_CHARS = 50_000
WINDOW_SHARE = 1.3
PUT_SHARE = 1.3
PUT_SHARE_FROM_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A store, and the same done with the bare client: whole payloads, and ranges of them."""

    store: Store
    put: Callable[[str, bytes], Awaitable[object]]
    read: Callable[[str, int, int], Awaitable[bytes]]
    delete: Callable[[str], Awaitable[object]]
    is_client: bool = True
    """Whether the numbers to reach are for it: files have their own, in `core.py`."""


@asynccontextmanager
async def on_files(folder: Path) -> AsyncGenerator[Backend, None]:
    raw = folder / "raw"
    raw.mkdir()

    async def put(key: str, payload: bytes) -> None:
        (raw / key).write_bytes(payload)

    async def read(key: str, start: int, stop: int) -> bytes:
        with (raw / key).open("rb", buffering=0) as file:
            file.seek(start)
            return file.read(stop - start)

    async def delete(key: str) -> None:
        (raw / key).unlink()

    store = FileStore(folder / "store")
    yield Backend(store=store, put=put, read=read, delete=delete, is_client=False)


@asynccontextmanager
async def on_redis(folder: Path) -> AsyncGenerator[Backend, None]:
    from redis.asyncio import Redis

    from coatcheck.testing import redis_server

    with redis_server(folder) as server:
        store = RedisStore(server.url)
        async with cast("Any", Redis).from_url(server.url) as client:

            async def put(key: str, payload: bytes) -> object:
                return await client.set(key, payload, ex=86_400)

            async def read(key: str, start: int, stop: int) -> bytes:
                found: bytes = await client.getrange(key, start, stop - 1)
                return found

            yield Backend(store=store, put=put, read=read, delete=client.delete)
        await store.close()


@asynccontextmanager
async def on_s3(folder: Path) -> AsyncGenerator[Backend, None]:
    import obstore
    from obstore.store import S3Store

    from coatcheck.testing import s3_server

    with s3_server(folder) as server:
        store = ObjectStore(server.address("bench"))
        client = S3Store(
            server.bucket,
            prefix="bare",
            endpoint=server.url,
            access_key_id="test",
            secret_access_key="testsecret",
            region="us-east-1",
            client_options={"allow_http": True},
        )

        async def put(key: str, payload: bytes) -> object:
            return await obstore.put_async(client, key, payload)

        async def read(key: str, start: int, stop: int) -> bytes:
            return bytes(await obstore.get_range_async(client, key, start=start, end=stop))

        async def delete(key: str) -> None:
            await obstore.delete_async(client, key)

        yield Backend(store=store, put=put, read=read, delete=delete)
        await store.close()


BACKENDS: Mapping[str, Callable[[Path], AbstractAsyncContextManager[Backend]]] = {
    "file": on_files,
    "redis": on_redis,
    "s3": on_s3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    puts_bytes: tuple[int, ...]
    put_rounds: int
    """Of 1 MB; larger ones take fewer."""
    window_bytes: int
    reads: int


FULL = Sizes(
    puts_bytes=(10_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
    put_rounds=100,
    window_bytes=100_000_000,
    reads=600,
)
QUICK = Sizes(
    puts_bytes=(10_000, 1_000_000, 10_000_000),
    put_rounds=30,
    window_bytes=20_000_000,
    reads=200,
)


async def puts(name: str, backend: Backend, sizes: Sizes, timer: Timer) -> list[Row]:
    """Put bytes, and text that is not ASCII, against the bare put of the same payload."""
    found: list[Row] = []
    for size_bytes in sizes.puts_bytes:
        text = log_text(size_bytes, ascii_only=False).text()
        values: dict[str, str | bytes] = {
            "bytes": random.Random(size_bytes).randbytes(size_bytes),
            "text": text,
        }
        rounds = min(sizes.put_rounds, sizes.put_rounds * 1_000_000 // size_bytes)
        contest = _Puts(backend, timer, max(7, rounds))
        for kind, value in values.items():
            found.append(await contest.row(f"{name}: {kind}", size_bytes, value))
        bare = _Puts(backend, timer, max(7, rounds), Limits(glimpse_tokens=0))
        found.append(await bare.row(f"{name}: text without a glimpse", size_bytes, text))
    return found


class _Puts:
    """A put of a bank against the bare put of the same payload."""

    def __init__(
        self, backend: Backend, timer: Timer, rounds: int, limits: Limits | None = None
    ) -> None:
        self._backend = backend
        self._timer = timer
        self._rounds = rounds
        self._bank = Bank(backend.store, limits=limits)

    async def row(self, name: str, size_bytes: int, value: str | bytes) -> Row:
        pointers: list[str] = []

        async def put() -> None:
            pointers.append((await self._bank.put(value)).pointer)

        async def undo() -> None:
            await self._bank.delete(pointers.pop())

        async def put_bare() -> None:
            payload = value.encode() if isinstance(value, str) else value
            await self._backend.put("bare", payload)

        async def undo_bare() -> None:
            await self._backend.delete("bare")

        contenders = {"bare": Contender(put_bare, undo_bare), "put": Contender(put, undo)}
        seconds = await self._timer.in_turn(contenders, self._rounds)
        ours, limit = median(seconds["put"]), median(seconds["bare"])
        counts = self._backend.is_client and size_bytes > PUT_SHARE_FROM_BYTES
        return Row(
            part="put",
            name=f"{name}, {size_bytes:,} bytes",
            measured=ours * 1000,
            unit="ms",
            limit=limit * 1000,
            ratio=ours / limit,
            target=f"≤ {PUT_SHARE:g}x the bare client's" if counts else "",
            reached=ours <= PUT_SHARE * limit if counts else None,
        )


async def windows(name: str, backend: Backend, sizes: Sizes, timer: Timer) -> list[Row]:
    """Read windows at random places, against one bare range of exactly their bytes."""
    text = log_text(sizes.window_bytes, ascii_only=False)
    payload = text.payload()
    writer = Bank(backend.store)
    artifact = await writer.put(payload, content_type="text/plain")
    await backend.put("bare", payload)
    del payload
    bank = Bank(backend.store)
    source = random.Random(31)
    times: tuple[list[float], list[float]] = ([], [])
    fetched: list[int] = []
    for number in range(sizes.reads + 1):
        offset, start, stop = _place(text, source)
        for turn in (0, 1) if number % 2 else (1, 0):
            began = timer.clock()
            if turn:
                content = (await bank.read(artifact.pointer, offset, WINDOW_CHARS)).content
            else:
                content = (await backend.read("bare", start, stop)).decode()
            elapsed = timer.clock() - began
            if number:  # the first ones look up the record, and connect
                times[turn].append(elapsed)
            if len(content) != WINDOW_CHARS:
                raise AssertionError(f"{len(content)} characters at {offset}")
        fetched.append(stop - start)
    await writer.delete(artifact.pointer)
    await backend.delete("bare")
    limit, ours = median(times[0]) * 1000, median(times[1]) * 1000
    return [
        Row(
            part="window",
            name=f"{name}: {WINDOW_CHARS:,} characters anywhere in {sizes.window_bytes:,} bytes",
            measured=ours,
            unit="ms",
            limit=limit,
            ratio=ours / limit,
            target=f"≤ {WINDOW_SHARE:g}x the bare client's range" if backend.is_client else "",
            reached=ours <= WINDOW_SHARE * limit if backend.is_client else None,
            note=f"p99 {percentile(times[1], 0.99) * 1000:.2f} ms, of the bare client "
            f"{percentile(times[0], 0.99) * 1000:.2f} ms; {median(fetched):,.0f} bytes a window",
        )
    ]


def _place(text: Text, source: random.Random) -> tuple[int, int, int]:
    offset = source.randrange(text.length_chars - WINDOW_CHARS)
    return offset, text.byte_of(offset), text.byte_of(offset + WINDOW_CHARS)


PARTS = {"put": puts, "window": windows}


async def run(options: argparse.Namespace) -> list[Row]:
    sizes = QUICK if options.quick else FULL
    timer = Timer(clock=CLOCKS[options.clock], calls=1, call_rounds=1)
    rows: list[Row] = []
    for name in options.store or BACKENDS:
        with tempfile.TemporaryDirectory(prefix="coatcheck-bench-") as folder:
            async with BACKENDS[name](Path(folder)) as backend:
                for part in options.part or PARTS:
                    for row in await PARTS[part](name, backend, sizes, timer):
                        print(*filter(None, cells(row)), sep=" · ", file=sys.stderr, flush=True)
                        rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--store", action="append", choices=BACKENDS, help="only this; repeatable")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: of this process; servers not in it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--markdown", action="store_true", help="print them as Markdown")
    options = parser.parse_args()
    rows = asyncio.run(run(options))
    if options.markdown:
        print(markdown(rows))
    if options.json is not None:
        shown_rows = {"clock": options.clock, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(shown_rows, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
