"""What it costs to bank a value whole, against the bare write of the same bytes."""

import os
import random
from pathlib import Path
from statistics import median

from measure import Contender, Row, Timer
from samples import log_text, rows

from coatcheck import Bank, Limits
from coatcheck.stores import FileStore

BYTES_SPEED = 0.7
TEXT_SPEED = 1.0
GLIMPSE_ROUNDS = 9


async def puts(folder: Path, sizes_mb: tuple[int, ...], rounds: int, timer: Timer) -> list[Row]:
    """Measure puts; `rounds` of 1 MB, of larger values fewer."""
    contest = _Contest(Bank(FileStore(folder / "puts")), folder / "raw", timer)
    found: list[Row] = []
    for megabytes in sizes_mb:
        times = max(7, rounds // megabytes)
        payload = random.Random(megabytes).randbytes(megabytes * 1_000_000)
        found.append(await contest.row(f"bytes, {megabytes} MB", payload, BYTES_SPEED, times))
        del payload
        for ascii_only in (False, True):
            text = log_text(megabytes * 1_000_000, ascii_only=ascii_only).text()
            target = TEXT_SPEED if megabytes >= 10 and not ascii_only else None
            name = f"{'ASCII' if ascii_only else 'non-ASCII'} text, {megabytes} MB"
            found.append(await contest.row(name, text, target, times))
            del text
    return found


class _Contest:
    """A put against encoding all at once and writing it to a new file."""

    def __init__(self, bank: Bank, raw_file: Path, timer: Timer) -> None:
        self._bank = bank
        self._raw_file = raw_file
        self._timer = timer

    async def row(self, name: str, value: str | bytes, target: float | None, rounds: int) -> Row:
        contenders = {"raw": self._writing(value), "put": _putting(self._bank, value)}
        seconds = await self._timer.in_turn(contenders, rounds)
        ours, limit = median(seconds["put"]), median(seconds["raw"])
        speed = limit / ours
        return Row(
            part="put",
            name=name,
            measured=ours * 1000,
            unit="ms",
            limit=limit * 1000,
            ratio=speed,
            target="" if target is None else f"≥ {target:g}x the speed of the limit",
            reached=None if target is None else speed >= target,
        )

    def _writing(self, value: str | bytes) -> Contender:
        async def write() -> None:
            payload = value.encode() if isinstance(value, str) else value
            file = os.open(self._raw_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            written = 0
            while written < len(payload):
                written += os.write(file, memoryview(payload)[written:])
            os.close(file)

        async def unlink() -> None:
            self._raw_file.unlink()

        return Contender(write, unlink)


async def glimpse_share(folder: Path, megabytes: int, row_count: int, timer: Timer) -> list[Row]:
    """Measure how much of a put is the glimpse: the same puts with it switched off."""
    store = FileStore(folder / "glimpses")
    with_glimpse, without = Bank(store), Bank(store, limits=Limits(glimpse_tokens=0))
    values: dict[str, object] = {
        f"non-ASCII log with errors, {megabytes} MB": log_text(megabytes * 1_000_000).text(),
        "the same without any": log_text(megabytes * 1_000_000, errors=False).text(),
        f"list of {row_count:,} rows": rows(row_count),
    }
    found: list[Row] = []
    for name, value in values.items():
        seconds = await timer.in_turn(
            {"with": _putting(with_glimpse, value), "without": _putting(without, value)},
            GLIMPSE_ROUNDS,
        )
        ours, rest = median(seconds["with"]), median(seconds["without"])
        found.append(
            Row(
                part="glimpse",
                name=f"put of {name}",
                measured=ours * 1000,
                unit="ms",
                limit=rest * 1000,
                ratio=ours / rest,
                note=f"limit: the same put with glimpse_tokens=0; share {1 - rest / ours:.0%}",
            )
        )
    return found


def _putting(bank: Bank, value: object) -> Contender:
    pointers: list[str] = []

    async def put() -> None:
        pointers.append((await bank.put(value)).pointer)

    async def delete() -> None:
        await bank.delete(pointers.pop())

    return Contender(put, delete)
