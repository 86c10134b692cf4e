"""Counts the tokens of whole tasks, with pointers and raw, as a scripted model was shown them.

Tokens are those of o200k (`rs_bpe`). A message counts as compact JSON, as do tool definitions.
Cumulative is the sum over all calls of the model of everything that it is sent, without the
definitions of the agent's own tools. See docs/benchmarks.md.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log10

import task_payloads as payloads
from rich.console import Console
from rich.table import Table
from task_agent import STAND_INS, TASKS, Task, mirrored_tools, raw_tools
from task_loop import AgentTool, Run, compact, count_tokens, definition_tokens, message_tokens, run

from coatcheck import open_bank

SYSTEM = "Give tools large results as art:… or art:…#$[*].id."
"""The one sentence that docs/guide.md tells a host to add."""

_BAR_CHARS = 24
_LOG_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number, beside what the same costs raw and what is to be reached."""

    part: str
    name: str
    tokens: int
    calls: int | None = None
    raw_tokens: int | None = None
    raw_overflows: bool = False
    most_tokens: int | None = None
    is_right: bool = True
    note: str = ""

    @property
    def is_reached(self) -> bool:
        return self.is_right and (self.most_tokens is None or self.tokens <= self.most_tokens)


async def measure(*, raw: bool = True) -> list[Row]:
    """Return all rows: the fixed tax, what stands in for each result, and the tasks."""
    bare = raw_tools()
    free_tokens = definition_tokens(bare)
    # With a secret of its own each bank makes other pointers, though all are as many tokens.
    async with open_bank("memory:", secret=bytes(32)) as bank:
        tools = mirrored_tools(bank)
        rows = _tax(tools, free_tokens)
        for tool, whole in zip(tools, bare, strict=False):
            if tool.name in STAND_INS:
                rows.append(await _stand_in(tool, whole if raw else None))
        for task in TASKS:
            ours = await run(
                task.ours, task.question, tools, free_tokens=free_tokens, system=SYSTEM
            )
            beside = (
                await run(task.raw, task.question, bare, free_tokens=free_tokens) if raw else None
            )
            rows.append(_task_row(task, ours, beside))
    return rows


def _tax(tools: Sequence[AgentTool], free_tokens: int) -> list[Row]:
    reader = count_tokens(compact(tools[-1].definition()))
    system = message_tokens({"role": "system", "content": SYSTEM})
    all_of_it = definition_tokens(tools) - free_tokens
    return [
        Row(part="tax", name="definition of retrieve_context", tokens=reader, most_tokens=130),
        Row(part="tax", name="system text", tokens=system, most_tokens=25),
        Row(part="tax", name="both, on each call", tokens=reader + system, most_tokens=155),
        Row(
            part="tax",
            name="each array or object parameter of the agent's own tools, on each call",
            tokens=all_of_it - reader,
            note="it also takes a pointer; counted in the tasks",
        ),
    ]


async def _stand_in(tool: AgentTool, whole: AgentTool | None) -> Row:
    name, most = STAND_INS[tool.name]
    shown = await tool.call({})
    raw_tokens = None
    if whole is not None:
        raw_tokens = message_tokens({"role": "tool", "content": await whole.call({})})
    # The one line that matters has to be in it whole.
    error = payloads.log_lines()[payloads.ERROR_LINE_NUMBER - 1]
    return Row(
        part="stand-in",
        name=name,
        tokens=message_tokens({"role": "tool", "content": shown}),
        raw_tokens=raw_tokens,
        most_tokens=most,
        is_right=tool.name != "read_log" or error in shown,
        note="the ERROR line is in it" if tool.name == "read_log" else "",
    )


def _task_row(task: Task, ours: Run, raw: Run | None) -> Row:
    answer = task.answer()
    # What a policy answers it must have read.
    was_shown = any(answer in text or _escaped(answer) in text for text in ours.shown)
    return Row(
        part="task",
        name=task.name,
        tokens=ours.cumulative_tokens,
        calls=ours.calls,
        raw_tokens=None if raw is None else raw.cumulative_tokens,
        raw_overflows=raw is not None and raw.overflows,
        most_tokens=task.most_tokens,
        is_right=ours.answer == answer and was_shown and (raw is None or raw.answer == answer),
        note=ours.stuck,
    )


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def cells(row: Row) -> tuple[str, ...]:
    raw = "" if row.raw_tokens is None else f"{row.raw_tokens:,}{'*' if row.raw_overflows else ''}"
    most = "" if row.most_tokens is None else f"≤ {row.most_tokens:,}"
    reached = "" if row.most_tokens is None and row.is_right else "yes" if row.is_reached else "NO"
    calls = "" if row.calls is None else str(row.calls)
    return row.part, row.name, f"{row.tokens:,}", calls, most, reached, raw


HEADER = ("part", "what", "tokens", "calls", "to reach", "reached", "raw")
_LEGEND = "* more than a window of 200,000 tokens in one call"


def markdown(rows: Sequence[Row]) -> str:
    lines = [HEADER, ("---",) * len(HEADER), *map(cells, rows)]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", _LEGEND])


def drawn(rows: Sequence[Row]) -> Table:
    """Return the rows as a table, with tokens as bars: each tenfold is as long as the last."""
    table = Table(title="Tokens, with pointers and raw", caption=_LEGEND, caption_justify="left")
    for name in HEADER:
        table.add_column(name, justify="right" if name in {"tokens", "calls", "raw"} else "left")
    table.add_column(f"10 to 10^{_LOG_MOST}, each tenfold as wide", no_wrap=True)
    part = ""
    for row in rows:
        if part and row.part != part:
            table.add_section()
        part = row.part
        table.add_row(*cells(row), _bars(row), style="" if row.is_reached else "bold red")
    return table


def _bars(row: Row) -> str:
    def width(tokens: int) -> int:
        return round(_BAR_CHARS * (log10(max(tokens, 10)) - 1) / (_LOG_MOST - 1))

    ours = width(row.tokens)
    return "█" * ours + "░" * max(0, width(row.raw_tokens or 0) - ours)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--no-raw", action="store_true", help="leave out the raw arm: seconds")
    options = parser.parse_args()
    rows = asyncio.run(measure(raw=not options.no_raw))
    if options.json:
        shown = [{**asdict(row), "is_reached": row.is_reached} for row in rows]
        print(json.dumps(shown, ensure_ascii=False, indent=1))
    elif options.markdown:
        print(markdown(rows))
    else:
        Console(width=None if sys.stdout.isatty() else 170).print(drawn(rows))
        for row in rows:
            if not row.is_right:
                print(f"wrong: {row.name}. {row.note}")
    return 0 if all(row.is_reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
