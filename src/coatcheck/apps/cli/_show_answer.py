"""The answer of a query drawn in a terminal."""

from collections.abc import Mapping, Sequence
from typing import cast

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...content import dumps
from .._printable import one_line, printable

_MOST_COLUMNS = 12


def drawn_answer(value: object) -> RenderableType:
    """Return rows as a table, a list of other values one a line, any other value as its text."""
    whole = Text(printable(_written(value)))
    if not isinstance(value, list) or not value:
        return whole
    items = cast("Sequence[object]", value)
    if all(isinstance(item, dict) for item in items):
        return _table(cast("Sequence[Mapping[str, object]]", items))
    return Text("\n".join(_cell(item) for item in items))


def _table(rows: Sequence[Mapping[str, object]]) -> Table:
    # Rows of JSON need not have the same keys.
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names[:_MOST_COLUMNS]:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(one_line(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        cells = (_cell(row[name]) if name in row else "" for name in names[:_MOST_COLUMNS])
        table.add_row(*map(Text, cells))
    if len(names) > _MOST_COLUMNS:
        table.caption = f"+{len(names) - _MOST_COLUMNS} more columns: --json has them"
    return table


def _cell(value: object) -> str:
    return one_line(_written(value))


def _written(value: object) -> str:
    return value if isinstance(value, str) else dumps(value).decode("utf-8", "surrogatepass")
