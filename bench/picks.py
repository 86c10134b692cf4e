"""Selectors: a column of banked rows into a mirrored tool, and lines picked out of a large text."""

import csv
import random
from io import StringIO
from pathlib import Path
from statistics import median

import orjson
from measure import Contender, Row, Timer
from reads import WINDOW_MS, Banked
from samples import rows as sample_rows

from coatcheck import Bank, mirror
from coatcheck.stores import FileStore

COLUMN_RATIO = 1.5
PAGE_LINES = 11


async def column(folder: Path, count: int, rounds: int, timer: Timer) -> Row:
    """Give one column of rows to a tool; the limit has the payload in memory already."""
    bank = Bank(FileStore(folder))
    artifact = await bank.put(sample_rows(count))
    payload = await bank.payload(artifact.pointer)
    taken: set[int] = set()

    async def tool(ids: list[int]) -> int:
        taken.add(len(ids))
        return ids[-1]

    mirrored = mirror(tool, bank)

    async def by_selector() -> None:
        await mirrored(f"{artifact.pointer}#$[*].id")

    async def by_hand() -> None:
        taken.add(len([row["id"] for row in orjson.loads(payload)]))

    contenders = {"selector": Contender(by_selector), "loads": Contender(by_hand)}
    seconds = await timer.in_turn(contenders, rounds)
    if taken != {count}:
        raise AssertionError(f"{taken} ids instead of {count}")
    ours, limit = median(seconds["selector"]), median(seconds["loads"])
    return Row(
        part="selectors",
        name=f"#$[*].id of {count:,} rows into a mirrored tool",
        measured=ours * 1000,
        unit="ms",
        limit=limit * 1000,
        ratio=ours / limit,
        target=f"≤ {COLUMN_RATIO:g}x",
        reached=ours / limit <= COLUMN_RATIO,
        note=f"{len(payload) / 1e6:,.0f} MB of JSON, validated as list[int]; the limit is "
        "orjson.loads of it in memory and a comprehension",
    )


async def csv_column(folder: Path, count: int, rounds: int, timer: Timer) -> Row:
    """Pick one column of CSV; the limit is the `csv` module's reader over the text in memory."""
    bank = Bank(FileStore(folder))
    text = "id,region,amount,day,name,pieces\n" + "".join(
        f"{n},{'nsew'[n % 4]},{n * 7919 % 10_007 / 100},2026-01-01,shop {n % 50},{n % 9}\n"
        for n in range(count)
    )
    artifact = await bank.put(text, content_type="text/csv")
    taken: set[int] = set()

    async def by_selector() -> None:
        taken.add(len(await bank.get(f"{artifact.pointer}#$[*].id", as_type=list[str])))

    async def by_hand() -> None:
        taken.add(len([record[0] for record in csv.reader(StringIO(text, newline=""))][1:]))

    contenders = {"selector": Contender(by_selector), "reader": Contender(by_hand)}
    seconds = await timer.in_turn(contenders, rounds)
    if taken != {count}:
        raise AssertionError(f"{taken} fields instead of {count}")
    ours, limit = median(seconds["selector"]), median(seconds["reader"])
    return Row(
        part="selectors",
        name=f"#$[*].id of {count:,} records of CSV, 6 columns",
        measured=ours * 1000,
        unit="ms",
        limit=limit * 1000,
        ratio=ours / limit,
        note=f"{len(text) / 1e6:,.0f} MB; the limit is csv.reader over the text in memory",
    )


async def lines(text: Banked, reads: int, timer: Timer) -> Row:
    """Pick eleven lines anywhere, beside a page of as many lines at the same place."""
    bank, source = text.bank(), random.Random(23)
    total = (await bank.read(text.pointer, 0, 1, "lines")).total
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(reads):
        first = source.randrange(total - PAGE_LINES)
        selected = f"{text.pointer}#L{first + 1}-L{first + PAGE_LINES}"
        contents: list[object] = [None, None]
        for turn in (0, 1) if number % 2 else (1, 0):
            start = timer.clock()
            if turn:
                contents[turn] = (await bank.read(selected)).content
            else:
                contents[turn] = (await bank.read(text.pointer, first, PAGE_LINES, "lines")).content
            seconds[turn].append(timer.clock() - start)
        if contents[0] != contents[1]:
            raise AssertionError(f"the lines from {first} on differ")
    page, ours = (median(each) * 1000 for each in seconds)
    return Row(
        part="selectors",
        name=f"#L…-L…, {PAGE_LINES} lines anywhere in {text.name}",
        measured=ours,
        unit="ms",
        limit=page,
        ratio=ours / page,
        target=f"≤ {WINDOW_MS:g} ms",
        reached=ours <= WINDOW_MS,
        note="the limit is a page of the same lines",
    )
