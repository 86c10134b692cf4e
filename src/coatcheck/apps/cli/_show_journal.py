"""Savings drawn in a terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from ...bank.savings import Savings
from ._lines import human_size
from ._out import one_line

_BAR_WIDTH = 16


def savings_table(each: Sequence[Savings], whole: Savings) -> Table:
    """Return what was kept out, a row for each tool and run, and what all come to."""
    table = Table(box=box.SIMPLE_HEAD, show_footer=True, pad_edge=False)
    table.add_column("Tool", "all", no_wrap=True, overflow="ellipsis")
    table.add_column("Run", no_wrap=True, overflow="ellipsis")
    for header, footer in (
        ("Calls", f"{whole.calls:,}"),
        ("Banked", f"{whole.banked:,}"),
        ("Results", human_size(whole.size_bytes)),
        ("Tokens", f"{whole.result_tokens:,}"),
        ("Shown", f"{whole.shown_tokens:,}"),
        ("Read back", f"{whole.read_back_tokens:,}"),
        ("Schemas", f"{whole.schema_tokens:,}"),
        ("Kept out", f"{whole.kept_out_tokens:,}"),
    ):
        table.add_column(header, footer, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    most = max((one.kept_out_tokens for one in each), default=0)
    for one in each:
        kept = one.kept_out_tokens
        table.add_row(
            Text(one_line(one.tool or "-"), "cyan"),
            one_line(one.run or "-"),
            f"{one.calls:,}" + (f" ({one.errors:,} failed)" if one.errors else ""),
            f"{one.banked:,}",
            human_size(one.size_bytes),
            f"{one.result_tokens:,}",
            f"{one.shown_tokens:,}",
            f"{one.read_back_tokens:,}",
            f"{one.schema_tokens:,}",
            Text(f"{kept:,}", "green" if kept > 0 else "red"),
            Text("█" * round(_BAR_WIDTH * kept / most) if kept > 0 else "", "green"),
        )
    return table
