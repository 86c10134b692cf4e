"""Measures the core against its limits and rivals: a table, and as JSON or Markdown if asked.

All is warm: the page cache holds what is read. Contenders take turns. See docs/benchmarks.md.
"""

import argparse
import asyncio
import json
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from calls import importing, pass_through
from fidelity import FidelitySizes, fidelity
from kills import kills
from measure import CLOCKS, Clock, Row, Timer
from picks import column, csv_column, lines
from puts import glimpse_share, puts
from queries import QuerySizes, queries
from reads import Banked, banked, regexes, searches, windows
from rich.console import Console
from rich.table import Table
from samples import log_text
from table import HEADER, cells, markdown
from units import units

PARTS = (
    "pass-through",
    "import",
    "put",
    "glimpse",
    "window",
    "search",
    "selectors",
    "query",
    "kills",
    "fidelity",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    calls: int
    call_rounds: int
    imports: int
    puts_mb: tuple[int, ...]
    put_rounds: int
    """Of 1 MB; larger ones take fewer."""
    glimpse_mb: int
    glimpse_rows: int
    windows_mb: tuple[int, ...]
    reads: int
    search_mb: int
    search_rounds: int
    selector_rows: int
    selector_rounds: int
    queries: QuerySizes
    kills: int
    fidelity: FidelitySizes


FULL = Sizes(
    calls=20_000,
    call_rounds=25,
    imports=15,
    puts_mb=(1, 10, 100),
    put_rounds=200,
    glimpse_mb=10,
    glimpse_rows=100_000,
    windows_mb=(10, 100, 1000),
    reads=600,
    search_mb=1000,
    search_rounds=5,
    selector_rows=1_000_000,
    selector_rounds=5,
    queries=QuerySizes(rows=1_000_000, rounds=5, quick_rounds=15),
    kills=40,
    fidelity=FidelitySizes(
        rows=1_000_000, text_mb=200, stream_mb=1000, floats=2_000_000, rounds=5, quick_rounds=15
    ),
)
QUICK = Sizes(
    calls=5_000,
    call_rounds=9,
    imports=5,
    puts_mb=(1, 10),
    put_rounds=60,
    glimpse_mb=2,
    glimpse_rows=10_000,
    windows_mb=(2, 20),
    reads=200,
    search_mb=20,
    search_rounds=5,
    selector_rows=20_000,
    selector_rounds=9,
    queries=QuerySizes(rows=20_000, rounds=5, quick_rounds=5),
    kills=4,
    fidelity=FidelitySizes(
        rows=20_000, text_mb=10, stream_mb=50, floats=200_000, rounds=5, quick_rounds=9
    ),
)

_SHARE_FOR_REGEX = 8
"""Of the text that is searched literally: ripgrep takes seconds to list a million hits."""


class Bench:
    """All parts. Each yields its rows as soon as they are there."""

    def __init__(self, sizes: Sizes, folder: Path, clock: Clock) -> None:
        self._sizes = sizes
        self._folder = folder
        self._timer = Timer(clock=clock, calls=sizes.calls, call_rounds=sizes.call_rounds)

    async def rows(self, parts: set[str]) -> AsyncIterator[Row]:
        sizes, folder, timer = self._sizes, self._folder, self._timer
        steps: dict[str, Callable[[], Awaitable[list[Row]]]] = {
            "pass-through": lambda: pass_through(timer),
            "import": lambda: importing(sizes.imports, timer),
            "put": lambda: puts(folder, sizes.puts_mb, sizes.put_rounds, timer),
            "glimpse": lambda: glimpse_share(folder, sizes.glimpse_mb, sizes.glimpse_rows, timer),
            "window": self._windows,
            "search": self._searches,
            "selectors": self._selectors,
            "query": lambda: queries(folder / "queries", sizes.queries),
            "kills": lambda: kills(folder / "kills", sizes.kills),
            "fidelity": lambda: fidelity(folder / "fidelity", sizes.fidelity, timer),
        }
        for part in PARTS:
            if part in parts:
                for row in await steps[part]():
                    yield row

    async def _windows(self) -> list[Row]:
        sizes = self._sizes
        made = [await self._bank(size, ascii_only=False) for size in sizes.windows_mb]
        texts = [text for text, _ in made]
        return [
            *(row for _, row in made),
            *await windows(texts, sizes.reads, self._timer),
            *await units(texts, sizes.windows_mb, self._folder, sizes.reads, self._timer),
        ]

    async def _searches(self) -> list[Row]:
        size = self._sizes.search_mb
        rounds = self._sizes.search_rounds
        texts = [(await self._bank(size, ascii_only=only))[0] for only in (True, False)]
        found = await searches(texts, rounds, self._timer)
        del texts
        size = -(-size // _SHARE_FOR_REGEX)
        texts = [(await self._bank(size, ascii_only=only))[0] for only in (True, False)]
        return [*found, *await regexes(texts, rounds, self._timer)]

    async def _selectors(self) -> list[Row]:
        sizes, timer = self._sizes, self._timer
        found = [
            await column(self._folder / "rows", sizes.selector_rows, sizes.selector_rounds, timer),
            await csv_column(
                self._folder / "csv", sizes.selector_rows, sizes.selector_rounds, timer
            ),
        ]
        for size in sizes.windows_mb:
            text, _ = await self._bank(size, ascii_only=False)
            found.append(await lines(text, sizes.reads, timer))
        return found

    async def _bank(self, megabytes: int, *, ascii_only: bool) -> tuple[Banked, Row]:
        name = f"{megabytes:,} MB of {'ASCII' if ascii_only else 'non-ASCII'} text"
        text = log_text(megabytes * 1_000_000, ascii_only=ascii_only)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        found, seconds = await banked(name, text, folder, self._timer)
        return found, Row(
            part="window",
            name=f"put of {name} as bytes",
            measured=seconds * 1000,
            unit="ms",
            note=f"once, cold: {text.size_bytes / seconds / 1e9:.2f} GB/s",
        )


async def run(options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="coatcheck-bench-", dir=options.folder) as folder:
        sizes = QUICK if options.quick else FULL
        clock = CLOCKS[options.clock]
        async for row in Bench(sizes, Path(folder), clock).rows(set(options.part or PARTS)):
            print(*(cell for cell in cells(row) if cell), sep=" · ", file=sys.stderr, flush=True)
            rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, half a minute")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: processor time, where others work too"
    )
    parser.add_argument("--folder", type=Path, help="where the files go, else the system's place")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, no table")
    options = parser.parse_args()
    rows = asyncio.run(run(options))
    if options.json is not None:
        shown = {"python": platform.python_version(), "clock": options.clock}
        shown["rows"] = [asdict(row) for row in rows]
        options.json.write_text(json.dumps(shown, ensure_ascii=False, indent=1) + "\n")
    if options.markdown:
        print(markdown(rows))
        return 0
    table = Table(*HEADER, title="Core against its limits")
    for row in rows:
        table.add_row(*cells(row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
