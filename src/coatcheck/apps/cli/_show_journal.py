"""A journal drawn in a terminal: what was kept out, and calls as they come."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich import box
from rich.table import Table
from rich.text import Text

from ...bank import Call
from ...bank.savings import Savings
from ...records import dataclass
from .._printable import one_line
from ._lines import human_size

_BAR_WIDTH = 16
_RUN_WIDTH = 20
_TOOL_WIDTH = 12
"""What a tool's name has at least."""
_GAP = 2
_BAR = ""
_FIRST_TO_GO = (_BAR, "Size", "Banked", "Run", "Schemas", "Read\nback", "Shown")
"""Columns that a narrow terminal does without, the least missed first."""


@dataclass(frozen=True, slots=True)
class _Column:
    header: str
    cells: tuple[str, ...]
    footer: str = ""

    @property
    def width(self) -> int:
        texts = (*self.header.split("\n"), *self.cells, self.footer)
        return max(Text(text).cell_len for text in texts)


def savings_table(each: Sequence[Savings], whole: Savings, *, width: int) -> Table:
    """Return what was kept out, a row for each tool and run, and what all come to.

    No number is cut: a terminal of `width` columns that has no room for all gets fewer columns.
    """
    columns = _columns(each, whole)
    for header in _FIRST_TO_GO:
        if _room(columns, width) >= _TOOL_WIDTH:
            break
        columns = [column for column in columns if column.header != header]
    table = Table(
        box=box.SIMPLE_HEAD, show_footer=True, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    most = max(_room(columns, width), _TOOL_WIDTH)
    tools = [one_line(one.tool or "-") for one in each]
    table.add_column("Tool", "all", no_wrap=True, overflow="ellipsis", max_width=most)
    for column in columns:
        is_text = column.header in {"Run", _BAR}
        table.add_column(
            column.header,
            column.footer,
            justify="left" if is_text else "right",
            no_wrap=True,
            min_width=column.width,
        )
    for number, (tool, one) in enumerate(zip(tools, each, strict=True)):
        green = "green" if one.kept_out_tokens > 0 else "red"
        styles = {"Kept\nout": green, _BAR: green}
        cells = (Text(column.cells[number], styles.get(column.header, "")) for column in columns)
        table.add_row(Text(tool, "cyan"), *cells)
    return table


def call_text(call: Call, what: str) -> Text:
    """Return a call on one line, and below it the pointers that it was given and made."""
    at = datetime.fromtimestamp(call.at_ns / 1_000_000_000, UTC)
    whose = [] if call.scope == "default" else [f"scope {call.scope}"]
    whose += [] if call.run is None else [f"run {call.run}"]
    text = Text.assemble(
        (f"{at:%Y-%m-%d %H:%M:%S}", "dim"),
        "  ",
        (one_line(what), "red" if call.is_error else "cyan"),
        f"  {human_size(call.size_bytes)}  {call.tokens:,} → {call.shown_tokens:,} tokens",
        ("".join(f"  {one_line(each)}" for each in whose), "dim"),
    )
    for sign, pointers in (("← ", call.pointers_in), ("→ ", call.pointers_out)):
        for pointer in pointers:
            text.append(f"\n  {sign}{one_line(pointer)}")
    return text


def _columns(each: Sequence[Savings], whole: Savings) -> list[_Column]:
    """Return all columns in which there is something, but for that of the tools."""

    def numbers(header: str, of_each: Iterable[int], footer: int) -> _Column:
        return _Column(header, tuple(f"{number:,}" for number in of_each), f"{footer:,}")

    most = max((one.kept_out_tokens for one in each), default=0)
    kept = [max(0, one.kept_out_tokens) for one in each]
    sizes = tuple(human_size(one.size_bytes) for one in each)
    columns = [
        _Column("Run", tuple(_clipped(one_line(one.run or "")) for one in each)),
        numbers("Calls", (one.calls for one in each), whole.calls),
        numbers("Failed", (one.errors for one in each), whole.errors),
        numbers("Banked", (one.banked for one in each), whole.banked),
        _Column("Size", sizes, human_size(whole.size_bytes)),
        numbers("Tokens", (one.result_tokens for one in each), whole.result_tokens),
        numbers("Shown", (one.shown_tokens for one in each), whole.shown_tokens),
        numbers("Read\nback", (one.read_back_tokens for one in each), whole.read_back_tokens),
        numbers("Schemas", (one.schema_tokens for one in each), whole.schema_tokens),
        numbers("Kept\nout", (one.kept_out_tokens for one in each), whole.kept_out_tokens),
        _Column(_BAR, tuple("█" * round(_BAR_WIDTH * one / (most or 1)) for one in kept)),
    ]
    empty = {"Run"} if not any(one.run for one in each) else set[str]()
    empty |= set() if whole.errors else {"Failed"}
    return [column for column in columns if column.header not in empty]


def _room(columns: Sequence[_Column], width: int) -> int:
    """Return how wide the column of the tools may be."""
    return width - sum(column.width + _GAP for column in columns)


def _clipped(text: str) -> str:
    clipped = Text(text)
    clipped.truncate(_RUN_WIDTH, overflow="ellipsis")
    return clipped.plain
