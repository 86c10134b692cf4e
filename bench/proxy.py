"""Measures what a call costs through the proxy, beside the direct one and rivals in the same run.

Contenders are called in turn by the official client over stdio. Rivals from PyPI that are not
among the project's own packages get an environment of their own, and a note where that fails.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Literal

import mcp
import psutil
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent
from measure import Row, percentile
from proxy_servers import text_of

ROOT = Path(__file__).parents[1]
RIVALS = ROOT / ".venvs" / "rivals"
JMUNCH = "jmunch-mcp==0.2.3"
SERVERS = Path(__file__).with_name("proxy_servers.py")
SERVER = [sys.executable, str(SERVERS), "serve"]
SMALL_MS = 0.6
LARGE_BYTES = 10_000_000
LARGE_MS = 300.0
LONGEST_BYTES = 40_000_000
STARTS_SECONDS = 30.0
CALL_SECONDS = 60.0
OURS = "coatcheck"
PARTS = ("small", "large", "longest")

Mode = Literal["auto", "legacy"]
FAILURES = (mcp.MCPError, OSError, RuntimeError, TimeoutError, ExceptionGroup)


@dataclass(frozen=True, slots=True)
class Contender:
    """A client of a server, behind a proxy or not, and the process that it started."""

    client: mcp.Client
    process: psutil.Process

    def processor_seconds(self) -> float:
        """Return what its processes have had of the processors: it tells more than the clock on
        a machine that others use too.
        """
        each = [self.process, *self.process.children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in each)


Contenders = Mapping[str, Contender]


def commands(folder: Path) -> dict[str, list[str]]:
    """Return what starts each contender, those left out that cannot be had here."""
    ours = [sys.executable, "-m", "coatcheck.apps.cli", "proxy", "--no-journal"]
    found = {
        "direct": SERVER,
        OURS: [*ours, "--store", f"file:{folder / 'store'}", "--", *SERVER],
        "SDK pass-through": [sys.executable, str(SERVERS), "sdk", *SERVER],
        "fastmcp create_proxy": [sys.executable, str(SERVERS), "fastmcp", *SERVER],
    }
    program = jmunch()
    if program is None:
        print(f"{JMUNCH} could not be installed, and is not measured")
    else:
        config = folder / "jmunch.toml"
        upstream = {"command": SERVER[0], "args": SERVER[1:]}
        lines = [f"{key} = {json.dumps(value)}" for key, value in upstream.items()]
        config.write_text("\n".join(["log_level = 'ERROR'", "[upstream]", *lines]) + "\n")
        found["jmunch-mcp"] = [str(program), "--config", str(config)]
    return found


def jmunch() -> Path | None:
    program = RIVALS / "bin" / "jmunch-mcp"
    uv, python = Path(sys.executable).with_name("uv"), RIVALS / "bin" / "python"
    if not program.exists():
        commands: tuple[list[str | Path], ...] = (
            [uv, "venv", "--quiet", "--no-config", "--clear", "--python", sys.executable, RIVALS],
            [uv, "pip", "install", "--quiet", "--no-config", "--python", python, JMUNCH],
        )
        for command in commands:
            if subprocess.run(command, check=False).returncode:
                return None
    return program


async def connected(
    stack: AsyncExitStack, name: str, command: Sequence[str], folder: Path, mode: Mode
) -> Contender | None:
    """Return a contender, None where it does not start in this era."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    parameters = StdioServerParameters(
        command=command[0], args=list(command[1:]), env=os.environ | {"HOME": str(home)}
    )
    log = stack.enter_context((folder / f"{name.split(maxsplit=1)[0]}.log").open("w"))
    client = mcp.Client(stdio_client(parameters, errlog=log), mode=mode)
    before = set(psutil.Process().children())
    try:
        async with asyncio.timeout(STARTS_SECONDS):
            await stack.enter_async_context(client)
            (started,) = set(psutil.Process().children()) - before
            await client.list_tools()
            await said(client, "echo", text="ready")
    except FAILURES as error:
        print(f"{name} does not work in this era: {error!r:.100}")
        return None
    return Contender(client, started)


async def said(client: mcp.Client, tool: str, **arguments: object) -> str:
    (block, *_) = (await client.call_tool(tool, arguments)).content
    assert isinstance(block, TextContent)
    return block.text


async def small(contenders: Contenders, era: str, calls: int) -> list[Row]:
    """Time calls with results of a few bytes, contenders in turn."""
    before = {name: each.processor_seconds() for name, each in contenders.items()}
    times = await in_turn(contenders, "echo", {"text": "a few words"}, calls)
    made = calls + warm_up(calls)
    spent = {
        name: (each.processor_seconds() - before[name]) / made for name, each in contenders.items()
    }
    direct = median(times["direct"])
    rows: list[Row] = []
    for name, seconds in times.items():
        added = (median(seconds) - direct) * 1000
        rows.append(
            Row(
                part="small",
                name=f"{era}: {name}, a call of a few bytes",
                measured=added if name != "direct" else direct * 1000,
                unit="ms" if name == "direct" else "ms over direct",
                target=f"≤ {SMALL_MS:g} ms over direct" if name == OURS else "",
                reached=added <= SMALL_MS if name == OURS else None,
                note=f"median {median(seconds) * 1000:.2f} ms, p99 "
                f"{percentile(seconds, 0.99) * 1000:.2f} ms of {calls} calls; on the processors "
                f"{spent[name] * 1000:.2f} ms, {(spent[name] - spent['direct']) * 1000:.2f} over",
            )
        )
    return rows


async def large(contenders: Contenders, era: str, rounds: int) -> list[Row]:
    """Time calls whose result has 10 MB, which ours answers with an envelope."""
    given: dict[str, object] = {"size": LARGE_BYTES}
    times = await in_turn(contenders, "text", given, rounds)
    whole = text_of(LARGE_BYTES)
    shown = json.loads(await said(contenders[OURS].client, "text", **given))
    assert shown["sizeBytes"] == len(whole.encode())
    direct = median(times["direct"]) * 1000
    rows: list[Row] = []
    for name, seconds in times.items():
        took = median(seconds) * 1000
        rows.append(
            Row(
                part="large",
                name=f"{era}: {name}, a result of {LARGE_BYTES:,} bytes",
                measured=took,
                unit="ms",
                limit=direct,
                ratio=took / direct,
                target=f"≤ {LARGE_MS:g} ms, and less than direct" if name == OURS else "",
                reached=took <= min(LARGE_MS, direct) if name == OURS else None,
            )
        )
    return rows


async def longest(contenders: Contenders, era: str) -> list[Row]:
    """Have a result of 40 MB, and see whether a small call works after it.

    The direct call is left out: the client takes it 12 s and more, in time quadratic in its length.
    """
    rows: list[Row] = []
    for name in (OURS, "jmunch-mcp"):
        if name not in contenders:
            continue
        start = time.perf_counter()
        note, works = "", True
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await contenders[name].client.call_tool("text", {"size": LONGEST_BYTES})
                took = (time.perf_counter() - start) * 1000
                works = (
                    await said(contenders[name].client, "echo", text="still here") == "still here"
                )
        except FAILURES as error:
            took, works = (time.perf_counter() - start) * 1000, False
            note = f"ended: {error!r:.80}"
        rows.append(
            Row(
                part="longest",
                name=f"{era}: {name}, a result of {LONGEST_BYTES:,} bytes, and a small one",
                measured=took,
                unit="ms",
                target="goes on" if name == OURS else "",
                reached=works if name == OURS else None,
                note=note,
            )
        )
    return rows


async def in_turn(
    contenders: Contenders, tool: str, arguments: dict[str, object], rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of each call; the first tenth of them is there to warm up."""
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    warm = warm_up(rounds)
    for number in range(rounds + warm):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            start = time.perf_counter()
            result = await contenders[name].client.call_tool(tool, arguments)
            elapsed = time.perf_counter() - start
            if result.is_error:
                raise AssertionError(f"{name}: {result.content}")
            if number >= warm:
                seconds[name].append(elapsed)
    return seconds


def warm_up(rounds: int) -> int:
    return max(1, rounds // 10)


async def measured(options: argparse.Namespace, era: str, mode: Mode) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="coatcheck-bench-") as named:
        folder = Path(named)
        async with AsyncExitStack() as stack:
            contenders: dict[str, Contender] = {}
            for name, command in commands(folder).items():
                contender = await connected(stack, name, command, folder, mode)
                if contender is not None:
                    contenders[name] = contender
            calls, rounds = (60, 3) if options.quick else (500, 9)
            parts = {
                "small": lambda: small(contenders, era, calls),
                "large": lambda: large(contenders, era, rounds),
                "longest": lambda: longest(contenders, era),
            }
            for part in options.part or PARTS:
                for row in await parts[part]():
                    print(shown(row), flush=True)
                    rows.append(row)
    return rows


def shown(row: Row) -> str:
    reached = {True: "reached", False: "NOT REACHED", None: ""}[row.reached]
    took = f"{row.measured:,.3g} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    return " · ".join(filter(None, (row.name, took, ratio, row.target, reached, row.note)))


async def run(options: argparse.Namespace) -> list[Row]:
    eras: dict[str, Mode] = {"modern": "auto", "handshake": "legacy"}
    chosen = [options.era] if options.era else list(eras)
    return [row for era in chosen for row in await measured(options, era, eras[era])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls")
    parser.add_argument("--era", choices=("modern", "handshake"), help="only this")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    options = parser.parse_args()
    rows = asyncio.run(run(options))
    if options.json is not None:
        text = json.dumps({"rows": [asdict(row) for row in rows]}, ensure_ascii=False, indent=1)
        options.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
