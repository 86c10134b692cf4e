"""What fidelity costs: rows, foreign text, streams and arrays, against the least it could cost."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from statistics import median

import numpy as np
import orjson
from measure import CLOCKS, Clock, Contender, Row, Step, Timer
from numpy.typing import NDArray
from samples import log_text, wide_rows

from coatcheck import Bank, mirror
from coatcheck.content import Encoding, encode, glimpse
from coatcheck.content._index import IndexBuilder, split_blocks
from coatcheck.stores import FileStore, MemoryStore

GLIMPSE_COST = 1.5
ROWS_COST = 1.5
INDEX_SPEED = 0.4
STREAM_MB = 64.0
ARRAY_MS = 50.0

_GLIMPSE_TOKENS = 150
_BUFFER_BYTES = 1024 * 1024
_PIECE_CHARS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelitySizes:
    """How much of each there is, and how often it is measured."""

    rows: int
    text_mb: int
    stream_mb: int
    floats: int
    rounds: int
    quick_rounds: int
    """Of what takes milliseconds."""


async def fidelity(folder: Path, sizes: FidelitySizes, timer: Timer) -> list[Row]:
    _made(folder)
    # Rows last: after a million of them the index is several times as fast as in a new process.
    return [
        *await _index(folder / "text", sizes, timer),
        *await _arrays(folder, sizes, timer),
        stream(folder / "stream", sizes.stream_mb, timer.clock),
        *await _rows(sizes, timer),
    ]


async def _rows(sizes: FidelitySizes, timer: Timer) -> list[Row]:
    """Measure glimpses against one parse of the same bytes, the encoding against one dump."""
    values = wide_rows(sizes.rows)
    payload = orjson.dumps(values)

    async def parse() -> None:
        orjson.loads(payload)

    async def dump() -> None:
        orjson.dumps(values)

    async def of_rows() -> None:
        _glimpsed(values, len(payload), sizes.rows)

    async def of_bytes() -> None:
        _glimpsed(payload, len(payload), None)

    async def encoding() -> None:
        _consumed(encode(values))

    steps = {"parse": parse, "dump": dump, "rows": of_rows, "bytes": of_bytes, "encode": encoding}
    contenders = {name: Contender(step) for name, step in steps.items()}
    seconds = await timer.in_turn(contenders, sizes.rounds)
    took = {name: median(times) * 1000 for name, times in seconds.items()}
    of_what = f"{sizes.rows:,} rows of {len(values[0])} columns"
    size = f"{len(payload) / 1e6:,.0f} MB of JSON"
    return [
        _cost(f"glimpse of {of_what} in hand", took["rows"], took["parse"], GLIMPSE_COST),
        _cost(f"glimpse of the same as {size}", took["bytes"], took["parse"], GLIMPSE_COST),
        _cost(f"encoding of {of_what}, {size}", took["encode"], took["dump"], ROWS_COST),
    ]


def _glimpsed(value: object, size_bytes: int, row_count: int | None) -> None:
    made = glimpse(
        value,
        content_type="application/json",
        size_bytes=size_bytes,
        budget_tokens=_GLIMPSE_TOKENS,
        row_count=row_count,
    )
    if made is None or made.facts.get("format") != "table":
        raise AssertionError(f"no glimpse of a table: {made}")


def _consumed(encoding: Encoding) -> None:
    """Encode to the end, without keeping a chunk: digest and index are there then."""
    for _ in encoding.chunks():
        pass
    if not encoding.digest:
        raise AssertionError("no digest")


def _cost(name: str, ours: float, limit: float, target: float) -> Row:
    return Row(
        part="fidelity",
        name=name,
        measured=ours,
        unit="ms",
        limit=limit,
        ratio=ours / limit,
        target=f"≤ {target:g}x the time of the limit",
        reached=ours <= target * limit,
    )


async def _index(file: Path, sizes: FidelitySizes, timer: Timer) -> list[Row]:
    """Measure the index of bytes that are text against a scan of a file that holds them.

    And all that a put knows of them then: the index, the digest, and that they are UTF-8.
    """
    payload = log_text(sizes.text_mb * 1_000_000).payload()
    _written(file, payload)
    buffer = bytearray(_BUFFER_BYTES)

    async def scan() -> None:
        with FileIO(file) as opened:
            while opened.readinto(buffer):
                pass

    async def index() -> None:
        builder = IndexBuilder()
        for block, chars in split_blocks(payload):
            builder.add(block, chars)
        if builder.index().size_bytes != len(payload):
            raise AssertionError("bytes are missing")

    async def encoding() -> None:
        _consumed(encode(payload, "text/plain"))

    steps = {"scan": scan, "index": index, "encoding": encoding}
    contenders = {name: Contender(step) for name, step in steps.items()}
    seconds = await timer.in_turn(contenders, sizes.quick_rounds)
    limit = median(seconds["scan"])
    rows: list[Row] = []
    for name, target in (("index", INDEX_SPEED), ("encoding", None)):
        ours = median(seconds[name])
        rows.append(
            Row(
                part="fidelity",
                name=f"{name} of {sizes.text_mb:,} MB of foreign text as bytes",
                measured=ours * 1000,
                unit="ms",
                limit=limit * 1000,
                ratio=limit / ours,
                target="" if target is None else f"≥ {target:g}x the speed of the limit",
                reached=None if target is None else limit / ours >= target,
                note=f"{len(payload) / ours / 1e9:.2f} GB/s"
                + (", digest and check of UTF-8 included" if target is None else ""),
            )
        )
    return rows


_STREAM = """
import asyncio, sys
from pathlib import Path
from fidelity import streamed
asyncio.run(streamed(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
"""


def stream(folder: Path, megabytes: int, clock: Clock) -> Row:
    """Measure what a stream takes in a process of its own, whose source holds one block of it."""
    name = next(name for name, known in CLOCKS.items() if known is clock)
    run = subprocess.run(
        [sys.executable, "-c", _STREAM, str(folder), str(megabytes), name],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    growth, seconds, limit, size_bytes = json.loads(run.stdout)
    return Row(
        part="fidelity",
        name=f"{megabytes:,} MB of foreign text through an async iterator to a file store",
        measured=growth,
        unit="MB more at the peak",
        target=f"≤ {STREAM_MB:g} MB",
        reached=growth <= STREAM_MB,
        note=f"{seconds:.2f} s, {size_bytes / seconds / 1e9:.2f} GB/s; "
        f"encoding and writing the same pieces without us {limit:.2f} s",
    )


async def streamed(folder: Path, megabytes: int, clock_name: str) -> None:
    """Print by how much a stream raises the peak of this process, its seconds, the least's, size.

    A small stream goes first, so that what is imported and kept once is not counted.
    """
    import psutil
    from reads import peak_mb

    clock = CLOCKS[clock_name]
    text = log_text(megabytes * 1_000_000)

    async def pieces(repeats: int) -> AsyncIterator[str]:
        for _ in range(repeats):
            for start in range(0, len(text.block), _PIECE_CHARS):
                yield text.block[start : start + _PIECE_CHARS]

    bank = Bank(FileStore(folder))
    raw_file = folder / "raw"
    await bank.put(pieces(2), content_type="text/plain")
    start = clock()
    with FileIO(raw_file, "w") as raw:
        async for piece in pieces(text.repeats):
            raw.write(piece.encode())
    limit = clock() - start
    raw_file.unlink()
    # The peak so far may lie over what is held now: then less growth would show than there is.
    before = psutil.Process().memory_info().rss / 1e6
    start = clock()
    artifact = await bank.put(pieces(text.repeats), content_type="text/plain")
    seconds = clock() - start
    growth = peak_mb() - before
    if artifact.length_chars != text.length_chars:
        raise AssertionError(f"{artifact.length_chars} characters of {text.length_chars}")
    sys.stdout.write(json.dumps([growth, seconds, limit, artifact.size_bytes]))


async def _arrays(folder: Path, sizes: FidelitySizes, timer: Timer) -> list[Row]:
    files, raw_file = folder / "arrays", folder / "raw.npy"
    memory_bank, file_bank = Bank(MemoryStore()), Bank(FileStore(files))
    contest = _ArrayContest(sizes, timer)
    return [
        await contest.row("a memory store", memory_bank, lambda: memory_bank, None),
        await contest.row("a file store", file_bank, lambda: file_bank, raw_file),
        await contest.row(
            "a file store, to a bank that has seen nothing",
            file_bank,
            lambda: Bank(FileStore(files)),
            raw_file,
        ),
    ]


class _ArrayContest:
    """An array from tool to tool: the envelope as text, its pointer, the array again.

    Against a copy of it, or a file of numpy's that is written and read.
    """

    def __init__(self, sizes: FidelitySizes, timer: Timer) -> None:
        self._array = np.random.default_rng(23).standard_normal(sizes.floats)
        self._rounds = sizes.quick_rounds
        self._timer = timer

    async def row(
        self, name: str, bank: Bank, next_bank: Callable[[], Bank], raw_file: Path | None
    ) -> Row:
        contenders = {
            "copy": self._copying(raw_file),
            "bank": self._handing_on(bank, next_bank),
        }
        seconds = await self._timer.in_turn(contenders, self._rounds)
        ours, limit = (median(seconds[which]) * 1000 for which in ("bank", "copy"))
        return Row(
            part="fidelity",
            name=f"{self._array.size:,} float64 from tool to tool through {name}",
            measured=ours,
            unit="ms",
            limit=limit,
            ratio=ours / limit,
            target=f"≤ {ARRAY_MS:g} ms",
            reached=ours <= ARRAY_MS,
            note="limit: " + ("array.copy()" if raw_file is None else "np.save and np.load"),
        )

    def _handing_on(self, bank: Bank, next_bank: Callable[[], Bank]) -> Contender:
        pointers: list[str] = []

        async def make() -> NDArray[np.float64]:
            return self._array

        made: Step = mirror(make, bank)

        async def hand_on() -> None:
            pointers.append(json.loads(str(await made()))["pointer"])
            taken: Callable[[str], Awaitable[object]] = mirror(_last, next_bank())
            self._check(await taken(pointers[-1]))

        async def delete() -> None:
            await bank.delete(pointers.pop())

        return Contender(hand_on, delete)

    def _copying(self, raw_file: Path | None) -> Contender:
        async def copy() -> None:
            if raw_file is None:
                self._check(await _last(self._array.copy()))
                return
            np.save(raw_file, self._array)
            self._check(await _last(np.load(raw_file)))

        async def unlink() -> None:
            _removed(raw_file)

        return Contender(copy, unlink)

    def _check(self, last: object) -> None:
        if last != float(self._array[-1]):
            raise AssertionError(f"another array arrived, which ends in {last}")


async def _last(numbers: NDArray[np.float64]) -> float:
    return float(numbers[-1])


# What blocks for a moment stands in functions of its own, as nothing else runs on the loop.
def _made(folder: Path) -> None:
    folder.mkdir()


def _written(file: Path, payload: bytes) -> None:
    file.write_bytes(payload)


def _removed(file: Path | None) -> None:
    if file is not None:
        file.unlink()
