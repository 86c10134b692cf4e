"""Kills a writing process again and again, and counts what is torn, dangling or lost.

As a program it is that process: `kills.py FOLDER SEED`.
"""

import asyncio
import random
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from measure import Row

from coatcheck import Bank
from coatcheck.errors import DamagedPayloadError, UnknownPointerError
from coatcheck.stores import FileStore

WRITERS = 3
_LONGEST_DELAY_SECONDS = 0.4
_SWEEP_SECONDS = 61
_NAMES = ("report", "log", "rows")


async def write(folder: str, seed: int) -> None:
    """Bank texts of 0.5 to 3 MB for ever, delete some, and say what was begun and done."""
    source = random.Random(seed)
    text = "".join(source.choices("aeiou стрчк 数据🚀\n", k=3_000_000))
    await asyncio.gather(
        *(_write(Bank(FileStore(folder)), text, random.Random(seed + n)) for n in range(WRITERS))
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
    source = random.Random(23)
    told = Told()
    found: Counter[str] = Counter()
    for number in range(count):
        _kill_one(folder, number, source.random() * _LONGEST_DELAY_SECONDS, told)
    await _check(folder, told, found)
    drafts = len(list((folder / "tmp").iterdir()))
    await FileStore(folder, clock=lambda: time.time() + _SWEEP_SECONDS).put("probe", b"")
    found["not swept"] = len(list((folder / "tmp").iterdir()))
    faults = ("torn", "dangling", "lost", "undead", "stale entries", "not swept")
    counts = ", ".join(f"{found[fault]} {fault}" for fault in faults)
    return [
        Row(
            part="kills",
            name=f"{count} times kill -9 while {WRITERS} writers bank and delete",
            measured=sum(found[fault] for fault in faults),
            unit="faults",
            target="0 torn, 0 dangling",
            reached=not any(found[fault] for fault in faults),
            note=f"{counts}; {len(told.put)} puts told, {len(told.deleted)} deletes told, "
            f"{found['live']} artifacts live, {found['unlisted']} of them unlisted, "
            f"{found['invisible']} payloads without a record, "
            f"{drafts} files in tmp swept after a minute",
        )
    ]


def _kill_one(folder: Path, seed: int, delay_seconds: float, told: Told) -> None:
    command = [sys.executable, __file__, str(folder), str(seed * 100)]
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


async def _check(folder: Path, told: Told, found: Counter[str]) -> None:
    """Look at every artifact through a new bank, and at every file below it."""
    scope = folder / "s/default"
    bank = Bank(FileStore(folder))
    listed = {artifact.id async for artifact in bank.list()}
    records = {path.name for path in (scope / "records").iterdir()}
    payloads = [path.name[:36] for path in (scope / "payloads").iterdir()]
    for id_ in records:
        try:
            await bank.payload(id_)  # reads it whole and compares the digest
            found["live"] += 1
        except DamagedPayloadError:
            found["torn" if id_ in payloads else "dangling"] += 1
    entries = [path.name[17:53] for path in (scope / "listing").iterdir()]
    entries += [path.name[17:53] for path in (scope / "names").glob("*/*")]
    found["stale entries"] = sum(id_ not in records for id_ in entries)
    found["unlisted"] = len(records - listed)
    found["invisible"] = sum(id_ not in records for id_ in payloads)
    for pointer in told.put - told.deleting:
        found["lost"] += await bank.find(pointer) is None
    for pointer in told.deleted:
        with suppress(UnknownPointerError):
            await bank.get(pointer)
            found["undead"] += 1


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], int(sys.argv[2])))
