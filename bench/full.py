"""Measures a file store that is full: a million artifacts in ten thousand scopes.

It takes some minutes to fill, three million files, and some gigabytes of disk.
"""

import argparse
import asyncio
import json
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


async def measured(root: Path, empty: Path, scopes: int, each: int) -> list[Row]:
    """Measure listings of the full store, and puts into it beside an empty one."""
    full, fresh = Bank(FileStore(root)), Bank(FileStore(empty))
    largest = full.scoped("largest")
    for count in range(LARGEST):
        await largest.put(f"result {count}")
    rows = [
        await _newest(root, f"run-{scopes // 2}", each),
        await _newest(root, "largest", LARGEST),
    ]
    banks = {"full": full.scoped("run-7"), "empty": fresh.scoped("run-7")}
    times: dict[str, list[float]] = {name: [] for name in banks}
    for count in range(_ROUNDS):
        for name, bank in banks.items():
            start = time.perf_counter()
            await bank.put(f"late {count}")
            times[name].append((time.perf_counter() - start) * 1_000)
    ours, limit = median(times["full"][1:]), median(times["empty"][1:])
    put = Row(
        part="full",
        name=f"put of a small text beside {scopes * each + LARGEST:,} artifacts",
        measured=ours,
        unit="ms",
        limit=limit,
        ratio=ours / limit,
        target=f"≤ {PUT_SHARE:g}x one into an empty store",
        reached=ours / limit <= PUT_SHARE,
    )
    return [*rows, put]


async def _newest(root: Path, scope: str, count: int) -> Row:
    times: list[float] = []
    for _ in range(_ROUNDS):
        # A new bank each time, so that no record is remembered.
        bank = Bank(FileStore(root), scope=scope)
        start = time.perf_counter()
        async with aclosing(bank.list()) as artifacts:
            listed = 0
            async for _artifact in artifacts:
                listed += 1
                if listed == NEWEST:
                    break
        times.append((time.perf_counter() - start) * 1_000)
    took = median(times)
    return Row(
        part="full",
        name=f"newest {NEWEST} of {count:,} in a scope",
        measured=took,
        unit="ms",
        target=f"≤ {NEWEST_MS:g} ms",
        reached=took <= NEWEST_MS,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scopes", type=int, default=9_900, help="besides the largest")
    parser.add_argument("--each", type=int, default=100, help="artifacts in each of them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        start, stop, each = map(int, options.fill[1].split(":"))
        asyncio.run(fill(Path(options.fill[0]), range(start, stop), each))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        root, empty = Path(folder) / "full", Path(folder) / "empty"
        filled(root, options.scopes, options.each)
        rows = asyncio.run(measured(root, empty, options.scopes, options.each))
    for row in rows:
        limit = "" if row.limit is None else f", limit {row.limit:.3g} ms, {row.ratio:.2f}x"
        print(f"{row.name}: {row.measured:.3g} ms{limit} ({row.target}: {row.reached})")
    if options.json is not None:
        shown = json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=1)
        options.json.write_text(shown + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
