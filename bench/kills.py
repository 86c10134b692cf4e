"""Kills a writing process again and again, and counts what is torn, dangling or lost.

On files, as a part of `core.py`; as a program on any store: `kills.py --store redis`.
"""

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from measure import Row

from coatcheck import Bank
from coatcheck.bank import store_at
from coatcheck.bank._keys import ScopeKeys
from coatcheck.errors import DamagedPayloadError, UnknownPointerError
from coatcheck.stores import FileStore, Store

WRITERS = 3
_LONGEST_DELAY_SECONDS = 0.4
_SWEEP_SECONDS = 61
_NAMES = ("report", "log", "rows")


async def write(address: str, seed: int) -> None:
    """Bank texts of 0.5 to 3 MB for ever, delete some, and say what was begun and done."""
    source = random.Random(seed)
    text = "".join(source.choices("aeiou стрчк 数据🚀\n", k=3_000_000))
    store = store_at(address)
    await asyncio.gather(
        *(_write(Bank(store), text, random.Random(seed + n)) for n in range(WRITERS))
    )


async def _write(bank: Bank, text: str, source: random.Random) -> None:
    kept: list[str] = []
    while True:
        start, length = source.randrange(1_000_000), source.randrange(300_000, 1_700_000)
        artifact = await bank.put(text[start : start + length], name=source.choice(_NAMES))
        print("put", artifact.pointer, flush=True)
        kept.append(artifact.pointer)
        if len(kept) > 3 or source.random() < 0.3:
            pointer = kept.pop(source.randrange(len(kept)))
            print("deleting", pointer, flush=True)
            await bank.delete(pointer)
            print("deleted", pointer, flush=True)


@dataclass
class Told:
    """What killed processes had said before they died."""

    put: set[str] = field(default_factory=set[str])
    deleting: set[str] = field(default_factory=set[str])
    deleted: set[str] = field(default_factory=set[str])


async def kills(folder: Path, count: int) -> list[Row]:
    """Kill writers of files, and see whether what they left in ``tmp/`` is swept."""
    told, found = await _kill_and_check(str(folder), count)
    drafts = len(list((folder / "tmp").iterdir()))
    await FileStore(folder, clock=lambda: time.time() + _SWEEP_SECONDS).put("probe", b"x")
    found["not swept"] = len(list((folder / "tmp").iterdir()))
    note = f", {drafts} files in tmp swept after a minute"
    return [_row(f"{count} times", "files", told, found, note=note)]


async def kills_on(address: str, count: int) -> list[Row]:
    """Kill writers of any store."""
    told, found = await _kill_and_check(address, count)
    return [_row(f"{count} times", address.partition(":")[0], told, found)]


async def _kill_and_check(address: str, count: int) -> tuple[Told, Counter[str]]:
    source = random.Random(23)
    told = Told()
    found: Counter[str] = Counter()
    for number in range(count):
        _kill_one(address, number, source.random() * _LONGEST_DELAY_SECONDS, told)
    store = store_at(address)
    await _check(store, told, found)
    await store.close()
    return told, found


def _row(times: str, where: str, told: Told, found: Counter[str], *, note: str = "") -> Row:
    faults = ["torn", "dangling", "lost", "undead", "stale entries"]
    faults += ["not swept"] if "not swept" in found else []
    counts = ", ".join(f"{found[fault]} {fault}" for fault in faults)
    return Row(
        part="kills",
        name=f"{times} kill -9 while {WRITERS} writers bank and delete, on {where}",
        measured=sum(found[fault] for fault in faults),
        unit="faults",
        target="0 torn, 0 dangling",
        reached=not any(found[fault] for fault in faults),
        note=f"{counts}; {len(told.put)} puts told, {len(told.deleted)} deletes told, "
        f"{found['live']} artifacts live, {found['unlisted']} of them unlisted, "
        f"{found['invisible']} payloads without a record{note}",
    )


def _kill_one(address: str, seed: int, delay_seconds: float, told: Told) -> None:
    command = [sys.executable, __file__, "--write", address, str(seed * 100)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        out = process.stdout
        if out is None:
            raise AssertionError("the output is a pipe")
        first = out.readline()
        time.sleep(delay_seconds)
        process.kill()
        for line in [first, *out]:
            with suppress(ValueError):  # the last line may be cut
                verb, pointer = line.rstrip("\n").split(" ")
                if re.fullmatch(r"art:[0-9a-f-]{36}", pointer):
                    getattr(told, verb).add(pointer)


async def _check(store: Store, told: Told, found: Counter[str]) -> None:
    """Look at every artifact through a new bank, and at every key of it."""
    keys = ScopeKeys.of("default")
    bank = Bank(store)
    listed = {artifact.id async for artifact in bank.list()}
    records = {_last(key) async for key in store.keys(keys.record(""))}
    payloads = [_last(key)[:36] async for key in store.keys(keys.payload(""))]
    for id_ in records:
        try:
            await bank.payload(id_)  # reads it whole and compares the digest
            found["live"] += 1
        except DamagedPayloadError:
            found["torn" if id_ in payloads else "dangling"] += 1
    for folder in (keys.listing_folder, *map(keys.name_folder, _NAMES)):
        async for key in store.keys(folder):
            found["stale entries"] += _last(key)[17:53] not in records
    found["unlisted"] = len(records - listed)
    found["invisible"] = sum(id_ not in records for id_ in payloads)
    for pointer in told.put - told.deleting:
        found["lost"] += await bank.find(pointer) is None
    for pointer in told.deleted:
        with suppress(UnknownPointerError):
            await bank.get(pointer)
            found["undead"] += 1


def _last(key: str) -> str:
    return key.rpartition("/")[2]


@contextmanager
def _on_files(folder: Path) -> Generator[str]:
    yield str(folder / "store")


@contextmanager
def _on_redis(folder: Path) -> Generator[str]:
    from coatcheck.testing import redis_server

    with redis_server(folder) as server:
        yield server.url


@contextmanager
def _on_s3(folder: Path) -> Generator[str]:
    from coatcheck.testing import s3_server

    with s3_server(folder) as server:
        yield server.address("kills")


PLACES: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "file": _on_files,
    "redis": _on_redis,
    "s3": _on_s3,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=PLACES, default="file")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--write", nargs=2, metavar=("ADDRESS", "SEED"), help="be the writers")
    options = parser.parse_args()
    if options.write is not None:
        address, seed = options.write
        asyncio.run(write(address, int(seed)))
    with (
        tempfile.TemporaryDirectory(prefix="coatcheck-kills-") as folder,
        PLACES[options.store](Path(folder)) as address,
    ):
        (row,) = asyncio.run(kills_on(address, options.kills))
    print(row.name, row.note, sep=": ")
    return not row.reached


if __name__ == "__main__":
    sys.exit(main())
