"""Measures a file store that is full: a million artifacts in ten thousand scopes.

It takes some ten minutes to fill, three million files, and some 10 GB of disk.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import median

from measure import Row
from rich.progress import Progress
from table import markdown

from coatcheck import Bank
from coatcheck.stores import FileStore

LARGEST = 10_000
"""Artifacts of the largest scope."""
NEWEST = 100
NEWEST_MS = 5.0
PUT_SHARE = 1.2
"""What counts as unchanged: puts of two stores, taken in turn, differ by less."""
_PROCESSES = 2
_ROUNDS = 60


async def fill(root: Path, scopes: range, each: int) -> None:
    """Put `each` small artifacts into every scope; tell of every hundredth scope."""
    bank = Bank(FileStore(root))
    for number in scopes:
        scoped = bank.scoped(f"run-{number}")
        for count in range(each):
            await scoped.put(f"result {count} of run {number}")
        if number % 100 == 0:
            print(number, flush=True)


async def fill_largest(root: Path) -> None:
    """Put as many artifacts into one scope as are still to be listed quickly."""
    largest = Bank(FileStore(root), scope="largest")
    for count in range(LARGEST):
        await largest.put(f"result {count}")


def filled(root: Path, scopes: int, each: int) -> None:
    """Fill the store with several processes."""
    borders = [scopes * part // _PROCESSES for part in range(_PROCESSES + 1)]
    with Progress() as progress:
        task = progress.add_task("filling", total=scopes // 100)
        fillers = [
            subprocess.Popen(
                [sys.executable, __file__, "--fill", str(root), f"{start}:{stop}:{each}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for start, stop in pairwise(borders)
        ]
        for filler in fillers:
            for _ in filler.stdout or ():
                progress.advance(task)
            if filler.wait():
                raise RuntimeError("a process that fills the store failed")


async def measured(root: Path, empty: Path, count: int, each: int, scope: str) -> list[Row]:
    """Measure listings of the full store, and puts into it beside an empty one.

    Args:
        root: Of the full store.
        empty: Where a store is to be made for the puts.
        count: Artifacts of the full store.
        each: Those of `scope`.
        scope: One of many that are alike.
    """
    full, fresh = Bank(FileStore(root)), Bank(FileStore(empty))
    banks = {"full": full.scoped(scope), "empty": fresh.scoped(scope)}
    times: dict[str, list[float]] = {name: [] for name in banks}
    for number in range(_ROUNDS):
        for name in list(banks)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            await banks[name].put(f"late {number}")
            times[name].append((time.perf_counter() - start) * 1_000)
    ours, limit = median(times["full"][1:]), median(times["empty"][1:])
    put = Row(
        part="full",
        name=f"put of a small text beside {count:,} artifacts",
        measured=ours,
        unit="ms",
        limit=limit,
        ratio=ours / limit,
        target=f"≤ {PUT_SHARE:g}x one into an empty store",
        reached=ours / limit <= PUT_SHARE,
    )
    return [await _newest(root, scope, each), await _newest(root, "largest", LARGEST), put]


async def _newest(root: Path, scope: str, count: int) -> Row:
    listing = root / "s" / scope / "listing"
    folders = [*(listing / ".pages").glob("*"), listing]
    times: list[float] = []
    busy: list[float] = []
    bare: list[float] = []
    for _ in range(_ROUNDS):
        # A new bank each time, so that no record is remembered.
        bank = Bank(FileStore(root), scope=scope)
        start, start_busy = time.perf_counter(), time.process_time()
        async with aclosing(bank.list()) as artifacts:
            listed = 0
            async for _artifact in artifacts:
                listed += 1
                if listed == NEWEST:
                    break
        times.append((time.perf_counter() - start) * 1_000)
        busy.append((time.process_time() - start_busy) * 1_000)
        start = time.perf_counter()
        for folder in folders:
            with os.scandir(folder) as entries:
                [entry.name for entry in entries]
        bare.append((time.perf_counter() - start) * 1_000)
    took, limit = median(times), median(bare)
    return Row(
        part="full",
        name=f"newest {NEWEST} of {count:,} in a scope",
        measured=took,
        unit="ms",
        limit=limit,
        ratio=took / limit,
        target=f"≤ {NEWEST_MS:g} ms",
        reached=took <= NEWEST_MS,
        note=f"{median(busy):.2f} ms in processor time; the limit is os.scandir of all that "
        "lists the scope, no record read",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scopes", type=int, default=9_900, help="besides the largest")
    parser.add_argument("--each", type=int, default=100, help="artifacts in each of them")
    parser.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="fill this folder, or measure it where it is full, and leave it",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        start, stop, each = map(int, options.fill[1].split(":"))
        asyncio.run(fill(Path(options.fill[0]), range(start, stop), each))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        root = options.root or Path(folder) / "full"
        if not (root / "s" / "largest").exists():
            filled(root, options.scopes, options.each)
            asyncio.run(fill_largest(root))
        count = options.scopes * options.each + LARGEST
        scope = f"run-{options.scopes // 2}"
        empty = Path(folder) / "empty"
        rows = asyncio.run(measured(root, empty, count, options.each, scope))
    print(markdown(rows))
    if options.json is not None:
        shown = json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=1)
        options.json.write_text(shown + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
