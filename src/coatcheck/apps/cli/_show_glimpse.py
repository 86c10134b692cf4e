"""A glimpse drawn from its facts: the columns of a table, the levels of a log, shares as bars."""

from collections.abc import Mapping, Sequence
from typing import cast

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ...records import Glimpse
from .._printable import one_line, printable

_BAR_WIDTH = 8
_BLOCKS = " ▏▎▍▌▋▊▉█"
_MOST_COLUMNS = 40
_MOST_VALUES = 5
_VALUE_WIDTH = 18

Facts = Mapping[str, object]


def drawn_glimpse(glimpse: Glimpse) -> RenderableType:
    """Return what a model reads, and below it, of a table or a log, the same as a picture."""
    parts: list[RenderableType] = [Text(printable(str(glimpse)))]
    table = _table_of(glimpse.facts)
    columns = table.get("columns") if table else None
    levels = glimpse.facts.get("levels")
    if isinstance(columns, list):
        parts.append(_columns(cast("Sequence[Facts]", columns)))
        more = len(cast("Sequence[Facts]", columns)) - _MOST_COLUMNS
        if more > 0:
            parts.append(Text(f"+{more} more columns: see --facts", "dim"))
    elif isinstance(levels, dict):
        parts += [Text(), _levels(cast("Mapping[str, int]", levels))]
    return Panel(Group(*parts), title="glimpse", title_align="left", border_style="dim")


def _table_of(facts: Facts) -> Facts | None:
    if facts.get("format") == "table":
        return facts
    inside = facts.get("table")
    return cast("Facts", inside) if isinstance(inside, dict) else None


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Return a share of 1 as a bar, to an eighth of a character.

    >>> bar(0.5, 4), bar(0.53, 4), bar(0.001, 4)
    ('██  ', '██▏ ', '▏   ')
    """
    eighths = max(1 if share > 0 else 0, round(8 * width * min(max(share, 0.0), 1.0)))
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_BLOCKS[part] if part else "")).ljust(width)


def _columns(columns: Sequence[Facts]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("Column", max_width=22, overflow="fold")
    table.add_column("Type", max_width=10, overflow="fold")
    table.add_column("Numbers", max_width=26, overflow="fold")
    table.add_column("Most frequent", no_wrap=True)
    for column in columns[:_MOST_COLUMNS]:
        table.add_row(
            Text(one_line(str(column.get("name") or "values")), "bold"),
            Text(one_line(str(column.get("type", ""))), "dim"),
            Text(_numbers(column)),
            _top(cast("Sequence[Facts]", column.get("top") or ())),
        )
    return table


def _numbers(column: Facts) -> str:
    lines: list[str] = []
    if column.get("min") is not None:
        lines.append(f"{_short(column['min'])} … {_short(column.get('max'))}")
    if column.get("mean") is not None:
        lines.append(f"mean {_short(column['mean'])}")
    counts = {
        "distinct": "distinct",
        "nulls": "null",
        "empty": "empty",
        "nonFinite": "non-finite",
    }
    found = [f"{_short(column[key])} {word}" for key, word in counts.items() if column.get(key)]
    return "\n".join([*lines, *found])


def _top(top: Sequence[Facts]) -> Text:
    text = Text(no_wrap=True)
    for each in top[:_MOST_VALUES]:
        share = cast("float", each.get("share", 0.0))
        value = Text(one_line(_short(each.get("value"))))
        value.truncate(_VALUE_WIDTH, overflow="ellipsis")
        if text:
            text.append("\n")
        text.append(bar(share), "cyan").append(f" {share:4.0%} ", "dim").append_text(value)
    more = len(top) - _MOST_VALUES
    return text.append(f"\n+{more} more", "dim") if more > 0 else text


def _levels(levels: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 1))
    total = sum(levels.values()) or 1
    for level, count in levels.items():
        grave = level in {"FATAL", "CRITICAL", "ERROR"}
        style = "red" if grave else "yellow" if level == "WARN" else "cyan"
        table.add_row(one_line(level), Text(bar(count / total, 24), style), f"{count:,}")
    return table


def _short(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
