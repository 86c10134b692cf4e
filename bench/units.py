"""Windows of 100 lines and of 100 rows, anywhere in texts and tables of every size."""

import csv
import io
import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import orjson
from measure import Row, Timer, percentile
from reads import GROWTH, WINDOW_MS, Banked
from samples import wide_rows

from coatcheck import Bank
from coatcheck.stores import FileStore

UNITS_READ = 100
_ROWS = 20_000
_TYPES = {"NDJSON": "application/x-ndjson", "CSV": "text/csv"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What is read by line or by row."""

    what: str
    size_mb: int
    bank: Bank
    pointer: str
    unit: str
    total: int


async def units(
    texts: list[Banked], sizes_mb: tuple[int, ...], folder: Path, reads: int, timer: Timer
) -> list[Row]:
    """Read 100 lines of the texts, and 100 rows of tables of the same sizes, at random places."""
    found: list[Row] = []
    lines = [_lines(text, size) for text, size in zip(texts, sizes_mb, strict=True)]
    found += await _read(lines, reads, timer)
    for form in ("JSON array", "NDJSON", "CSV"):
        tables = [await _table(form, size, folder) for size in sizes_mb]
        found += await _read(tables, reads, timer)
    return found


def _lines(text: Banked, size_mb: int) -> Units:
    total = text.text.block.count("\n") * text.text.repeats
    bank = text.bank()
    return Units(
        what="text", size_mb=size_mb, bank=bank, pointer=text.pointer, unit="lines", total=total
    )


async def _table(form: str, size_mb: int, folder: Path) -> Units:
    bank = Bank(FileStore(tempfile.mkdtemp(dir=folder)))
    rows = wide_rows(_ROWS)
    repeats = max(1, size_mb * 1_000_000 // len(_payload(form, rows, 1)))
    value = rows * repeats if form == "JSON array" else _payload(form, rows, repeats)
    artifact = await bank.put(value, content_type=_TYPES.get(form))
    return Units(
        what=form,
        size_mb=size_mb,
        bank=bank,
        pointer=artifact.pointer,
        unit="rows",
        total=_ROWS * repeats,
    )


def _payload(form: str, rows: list[dict[str, object]], repeats: int) -> bytes:
    if form != "CSV":
        return b"".join(orjson.dumps(row) + b"\n" for row in rows) * repeats
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(rows[0])
    header = out.getvalue()
    csv.writer(out, lineterminator="\n").writerows(row.values() for row in rows)
    return header.encode() + out.getvalue()[len(header) :].encode() * repeats


async def _read(all_units: list[Units], reads: int, timer: Timer) -> list[Row]:
    source = random.Random(25)
    seconds: dict[int, list[float]] = {units.size_mb: [] for units in all_units}
    for units in all_units:
        await units.bank.read(units.pointer, 0, UNITS_READ, units.unit)
    for _ in range(reads):
        for units in all_units:
            offset = source.randrange(units.total - UNITS_READ)
            start = timer.clock()
            page = await units.bank.read(units.pointer, offset, UNITS_READ, units.unit)
            seconds[units.size_mb].append(timer.clock() - start)
            content = str(page.content)
            count = content.count("\n") if units.unit == "lines" else len(json.loads(content))
            if count != UNITS_READ:
                raise AssertionError(f"{count} {units.unit} at {offset} of {units.what}")
    return [
        *(_row(units, seconds[units.size_mb]) for units in all_units),
        _growth(all_units, seconds),
    ]


def _row(units: Units, seconds: list[float]) -> Row:
    milliseconds = median(seconds) * 1000
    return Row(
        part="window",
        name=f"{UNITS_READ} {units.unit} anywhere in {units.size_mb:,} MB of {units.what}",
        measured=milliseconds,
        unit="ms",
        target=f"≤ {WINDOW_MS:g} ms",
        reached=milliseconds <= WINDOW_MS,
        note=f"{units.total:,} {units.unit}; p99 {percentile(seconds, 0.99) * 1000:.2f} ms",
    )


def _growth(all_units: list[Units], seconds: dict[int, list[float]]) -> Row:
    small, large = all_units[0], all_units[-1]
    growth = median(seconds[large.size_mb]) / median(seconds[small.size_mb])
    sizes = f"in {large.size_mb:,} MB / in {small.size_mb:,} MB"
    return Row(
        part="window",
        name=f"time of {large.unit} {sizes} of {large.what}",
        measured=growth,
        unit="x",
        target=f"≤ {GROWTH:g}x",
        reached=growth <= GROWTH,
    )
