"""Lifetimes at full size: collections of many artifacts, quotas over many puts, and kills.

The small versions of all of it are tests. This takes some minutes, and a gigabyte of disk.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
from kills import PLACES
from measure import Row, processor_seconds

from coatcheck import Bank, Limits
from coatcheck.bank import store_at
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank.collection import collect
from coatcheck.errors import CoatcheckError, ExpiredPointerError
from coatcheck.stores import FileStore, MemoryStore, Store, SupportsTtl

GC_SECONDS = 10.0
COUNTS = {"file": 100_000, "redis": 100_000, "s3": 10_000}
QUOTA_BYTES = 64 * 1024 * 1024
PUTS, PUT_BYTES = 10_000, 100_000
KILLS = 20
_AT_ONCE = 16
_KEYS = ScopeKeys.of("default")
_DAY = 86_400.0


async def fill(store: Store, count: int) -> None:
    """Put artifacts: of each hundred one is a week old and one has expired."""
    past = Bank(store, clock=lambda: time.time() - 8 * _DAY)
    bank = Bank(store)
    numbers = iter(range(count))

    async def put_some() -> None:
        for number in numbers:
            text = f"result {number} of a run\n" * 8
            ttl_seconds = 0.001 if number % 100 == 1 else None
            await (past if number % 100 == 0 else bank).put(text, ttl_seconds=ttl_seconds)

    await asyncio.gather(*(put_some() for _ in range(_AT_ONCE)))


async def collected(address: str, kind: str, count: int) -> Row:
    """Measure one collection of a store that holds `count` artifacts."""
    store = store_at(address)
    await fill(store, count)
    start, cpu_start = time.perf_counter(), processor_seconds()
    done = await collect(store, older_than_seconds=7 * _DAY)
    took, cpu = time.perf_counter() - start, processor_seconds() - cpu_start
    start = time.perf_counter()
    await collect(store)
    again = time.perf_counter() - start
    left = len([key async for key in store.keys(_KEYS.listing_folder)])
    await store.close()
    expired, removed = 0 if kind == "redis" else count // 100, done.evicted + done.expired
    right = (done.evicted, done.expired, left) == (count // 100, expired, count - count // 100 * 2)
    return Row(
        part="lifetimes",
        name=f"gc of {count:,} artifacts on {kind}, {removed:,} of them removed",
        measured=took,
        unit="s",
        target=f"≤ {GC_SECONDS:g} s",
        reached=took <= GC_SECONDS and right,
        note=f"{cpu:.2f} s of a processor; {again:.2f} s where nothing is to be removed, "
        f"{(took - again) / removed * 1_000:.2f} ms for each that was; {left:,} left",
    )


async def under_quota(
    store: Store, where: str, puts: int, size_on_disk: Callable[[], int] | None = None
) -> Row:
    """Put far more than a quota, and look what is left in memory and in the store.

    Where no disk can be looked at, the payloads in the store are counted.
    """
    process, payload = psutil.Process(), os.urandom(PUT_BYTES)
    bank = Bank(store, limits=Limits(scope_bytes=QUOTA_BYTES, cache_bytes=1_000_000))
    pointers: list[str] = []
    before, most = process.memory_info().rss, 0
    start = time.perf_counter()
    for number in range(puts):
        value = b"%08d" % number + payload[8:]
        pointers.append((await bank.put(value, name=f"n{number}")).pointer)
        if number % 100 == 0:
            most = max(most, process.memory_info().rss - before)
    took = time.perf_counter() - start
    usage = await bank.usage()
    there = [await bank.find(pointer) is not None for pointer in pointers]
    oldest_gone = there == [False] * (puts - usage.artifacts) + [True] * usage.artifacts
    told = 0
    for pointer in pointers[: puts - usage.artifacts]:
        with suppress(CoatcheckError):
            try:
                await bank.get(pointer)
            except ExpiredPointerError as expired:
                told += expired.size_bytes == PUT_BYTES
    if size_on_disk is None:
        payloads = [key async for key in store.keys(_KEYS.payload(""))]
        stored_bytes = len(payloads) * PUT_BYTES
    else:
        stored_bytes = size_on_disk()
    is_bounded = usage.size_bytes <= QUOTA_BYTES and stored_bytes < 2 * QUOTA_BYTES
    return Row(
        part="lifetimes",
        name=f"{puts:,} puts of {PUT_BYTES:,} bytes under a quota of 64 MiB, in {where}",
        measured=most / 2**20,
        unit="MiB of memory",
        target="≤ 192 MiB, store ≤ 128 MiB, oldest gone, all tombstones readable",
        reached=most <= 3 * QUOTA_BYTES
        and is_bounded
        and oldest_gone
        and told == puts - usage.artifacts,
        note=f"{usage.artifacts:,} left of {usage.size_bytes:,} bytes, "
        f"{stored_bytes / 2**20:.0f} MiB in the store, {told:,} tombstones read, "
        f"{took / puts * 1_000:.2f} ms a put",
    )


def size_of(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


async def write(address: str, seed: int) -> None:
    """Put and delete for ever, some with a short life, and say what was begun and done."""
    store = store_at(address)
    source = random.Random(seed)

    async def write_some(bank: Bank) -> None:
        kept: list[str] = []
        while True:
            ttl_seconds = source.choice([None, None, 0.05])
            text = f"{source.random()} né\n" * source.randrange(10, 60_000)
            artifact = await bank.put(text, name=source.choice("abc"), ttl_seconds=ttl_seconds)
            if ttl_seconds is not None:
                continue
            print("put", artifact.pointer, flush=True)
            kept.append(artifact.pointer)
            if len(kept) > 3:
                pointer = kept.pop(0)
                print("deleting", pointer, flush=True)
                await bank.delete(pointer)

    await asyncio.gather(*(write_some(Bank(store)) for _ in range(3)))


async def gather(address: str) -> None:
    """Collect for ever."""
    store = store_at(address)
    print("ready", flush=True)
    while True:
        await collect(store)


@contextmanager
def _started(*arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _lines_of_one(address: str, seed: int, source: random.Random) -> list[str]:
    """Let a writer and a collector go on beside each other; return what the writer said."""
    with (
        _started("--write", address, str(seed)) as writer,
        _started("--gather", address) as collector,
    ):
        if writer.stdout is None or collector.stdout is None:
            raise AssertionError("the output is a pipe")
        collector.stdout.readline()
        lines = [writer.stdout.readline()]
        time.sleep(source.random())
        first, second = (writer, collector) if source.random() < 0.5 else (collector, writer)
        first.kill()
        time.sleep(source.random() * 0.2)
        second.kill()
        return [*lines, *writer.stdout]


async def killed(address: str, kind: str, count: int) -> Row:
    """Kill writers and collectors beside each other, and look whether anything is torn or lost."""
    source = random.Random(7)
    put: set[str] = set()
    deleting: set[str] = set()
    for number in range(count):
        for line in _lines_of_one(address, number, source):
            verb, _, pointer = line.rstrip("\n").partition(" ")
            if len(pointer) == 40:  # the last line may be cut
                (put if verb == "put" else deleting).add(pointer)
    store = FileStore(address, clock=_days_later) if kind == "file" else store_at(address)
    bank = Bank(store, clock=_later)
    await collect(store, clock=_later)
    listed = {artifact.pointer async for artifact in bank.list()}
    torn = 0
    for pointer in listed:
        try:
            await bank.payload(pointer)  # read whole, and compared with its digest
        except CoatcheckError:
            torn += 1
    lost = len(put - deleting - listed)
    payloads = len([key async for key in store.keys(_KEYS.payload(""))])
    records = len([key async for key in store.keys(_KEYS.record(""))])
    orphans = payloads - records if kind == "file" else 0
    unlisted = 0 if isinstance(store, SupportsTtl) else records - len(listed)
    await store.close()
    faults = torn + lost + orphans + unlisted
    return Row(
        part="lifetimes",
        name=f"{count} times kill -9 of writers and collectors beside each other, on {kind}",
        measured=faults,
        unit="faults",
        target="0 torn, lost, unlisted or left over",
        reached=not faults,
        note=f"{torn} torn, {lost} lost, {unlisted} unlisted, {orphans} payloads left over; "
        f"{len(put):,} puts told, {len(listed):,} live",
    )


def _later() -> float:
    return time.time() + 3_700


def _days_later() -> float:
    return time.time() + 2 * 86_400


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="coatcheck-lifetimes-") as folder:
        yield Path(folder)


async def measured(parts: Sequence[str], kinds: Sequence[str], share: float) -> list[Row]:
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        state = "reached" if row.reached else "MISSED"
        print(f"{row.name}: {row.measured:.3g} {row.unit} ({row.target}: {state}); {row.note}")

    for kind in kinds:
        if "gc" in parts:
            with _folder() as folder, PLACES[kind](folder) as address:
                tell(await collected(address, kind, int(COUNTS[kind] * share)))
        if "kills" in parts:
            with _folder() as folder, PLACES[kind](folder) as address:
                tell(await killed(address, kind, int(KILLS * share) or 1))
        if "quota" in parts:
            with _folder() as folder, PLACES[kind](folder) as address:
                on_disk = partial(size_of, folder) if kind == "file" else None
                store = store_at(address)
                tell(await under_quota(store, kind, int(PUTS * share), on_disk))
                await store.close()
    if "quota" in parts:
        tell(await under_quota(MemoryStore(), "memory", int(PUTS * share)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="*", default=["gc", "kills", "quota"])
    parser.add_argument("--store", nargs="*", choices=COUNTS, default=list(COUNTS))
    parser.add_argument("--share", type=float, default=1.0, help="of the full size")
    parser.add_argument("--write", nargs=2, metavar=("ADDRESS", "SEED"), help=argparse.SUPPRESS)
    parser.add_argument("--gather", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        asyncio.run(write(options.write[0], int(options.write[1])))
    if options.gather is not None:
        asyncio.run(gather(options.gather))
    rows = asyncio.run(measured(options.part, options.store, options.share))
    return int(not all(row.reached for row in rows))


if __name__ == "__main__":
    sys.exit(main())
