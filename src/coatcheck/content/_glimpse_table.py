"""The glimpse of a table: how many rows, and each column in a few words and numbers.

Detail is added in rounds, the most telling first, to every column alike, while the budget lasts.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ..records import dataclass
from ._object_rows import EXACT_ROWS, MOST_COLUMNS, SAMPLED_ROWS, ObjectRows
from ._preview import quoted
from ._shape import data_kind, sized
from ._statistics import STANDS_OUT, Column, describe, share, spread, written
from ._tokens import estimate_tokens, weigh_text

PLAIN_NAME = re.compile(r"[A-Za-z_$@][\w.$@/-]{0,39}", re.ASCII)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_](?:[\w.:/+-]{0,38}[\w+])?", re.ASCII)
_SHOWN_VALUE_CHARS = 24
_COLUMNS_SHOWN = (MOST_COLUMNS, 60, 40, 20, 12, 6, 3, 0)


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much is said of a column."""

    nulls: bool = False
    top: int = 0
    range: bool = False
    mean: bool = False
    distinct: bool = False
    shares: bool = False
    inside: bool = False


_NAME_AND_TYPE = _Detail()
_ROUNDS: tuple[tuple[Mapping[str, object], float], ...] = (
    ({"nulls": True}, 1),
    ({"top": 3}, 1),
    ({"range": True}, 1),
    ({"top": 6}, 1),
    ({"mean": True}, 1),
    ({"inside": True}, 0.8),
    ({"shares": True}, 0.7),
    ({"distinct": True}, 0.7),
    ({"top": 12}, 0.7),
)
"""What is told of each column in turn, and up to which part of the budget: what tells less has
to leave some of it, as each token is paid for in every later call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table in numbers."""

    rows: int
    column_count: int
    columns: Sequence[Column]
    """The first of them, at most 100."""
    sampled: int | None = None
    """How many rows the statistics are from, None where from all."""
    is_partial: bool = False
    """Whether other rows than those were not looked at, not even for their columns and types."""
    label: str | None = None
    """Of a single column that is no table's: it stands in place of sizes and name."""
    insides: Mapping[str, str] | None = None
    """Outlines of what is in columns of objects and arrays, by name."""

    @property
    def is_flat(self) -> bool:
        """Whether half of the columns or more hold neither objects nor arrays."""
        return 2 * sum(column.is_nested for column in self.columns) <= len(self.columns)


def table_of_objects(found: ObjectRows) -> Table | None:
    """Return the table of rows that are objects, None where they have too little in common.

    Number of rows, columns, types and nulls are exact; above 100,000 rows all else is from a
    sample of 20,000 that is the same each time.
    """
    if not found.are_filled:
        return None
    return Table(
        rows=found.count,
        column_count=found.column_count,
        columns=found.columns(),
        sampled=found.sampled,
    )


def table_of_columns(
    columns: Mapping[str, Sequence[object]], *, rows: int, sampled: int | None = None
) -> Table:
    """Return the table of columns in hand, or of an equally long sample of each.

    Args:
        columns: Values by name, None where there is none.
        rows: In all.
        sampled: How many there are in `columns`, where that is a sample.
    """
    shown = [describe(name, values) for name, values in islice(columns.items(), MOST_COLUMNS)]
    return Table(rows=rows, column_count=len(columns), columns=shown, sampled=sampled)


def table_of_values(values: Sequence[object]) -> Table:
    """Return a list of anything as a table of one column, exact or sampled as rows are."""
    sampled = len(values) > EXACT_ROWS
    sample = [values[at] for at in spread(len(values), SAMPLED_ROWS)] if sampled else values
    counts: Counter[type] = Counter(map(type, values)) if sampled else Counter()
    column = describe(
        "",
        sample,
        types=counts.keys() if sampled else None,
        nulls=counts[type(None)] if sampled else None,
    )
    return Table(
        rows=len(values),
        column_count=1,
        columns=[column],
        sampled=len(sample) if sampled else None,
        label=f"array of {len(values):,}",
    )


def glimpse_table(table: Table, budget_tokens: int) -> tuple[str, dict[str, object]] | None:
    """Return the glimpse of a table and its facts, None where the budget holds not even the size.

    Facts: ``rows``, ``columnCount``, ``sampled`` (rows of the sample, else false), ``partial``
    (true where of the other rows only the number is known), and ``columns``: for each its name,
    type, nulls, and where it has them nonFinite, min, max, mean, distinct, and top: value, count
    and share of the values that are not null.
    """
    facts: dict[str, object] = {
        "format": "table",
        "rows": table.rows,
        "columnCount": table.column_count,
        "sampled": table.sampled or False,
        "columns": [column.facts() for column in table.columns],
    }
    if table.is_partial:
        facts["partial"] = True
    text = _text(table, budget_tokens)
    return None if text is None else (text, facts)


def _text(table: Table, budget_tokens: int) -> str | None:
    for most in _COLUMNS_SHOWN:
        columns = table.columns[:most]
        more = table.column_count - len(columns)
        start = [] if table.label and most else [_size(table)]
        end = [f"+{more:,} more columns"] if more and most else []
        texts = [_column(column, _NAME_AND_TYPE, table) for column in columns]
        if estimate_tokens("; ".join([*start, *texts, *end])) <= budget_tokens:
            texts = _detailed(table, columns, budget_tokens, [*start, *end])
            return "; ".join([*start, *texts, *end])
    return None


def _size(table: Table) -> str:
    if table.label:
        return table.label
    size = f"{table.rows:,} row{'s' if table.rows != 1 else ''}"
    size += f", {table.column_count:,} column{'s' if table.column_count != 1 else ''}"
    # In front: whoever reads on has to know.
    return f"{size} (values sampled from {table.sampled:,} rows)" if table.sampled else size


def _detailed(
    table: Table, columns: Sequence[Column], budget_tokens: int, around: list[str]
) -> list[str]:
    """Return the columns with as much detail as the budget holds."""
    details = [_NAME_AND_TYPE] * len(columns)
    texts = [_column(column, _NAME_AND_TYPE, table) for column in columns]
    left = budget_tokens - weigh_text("; ".join([*around, *texts]))
    undo: list[tuple[int, str]] = []
    for more, part in _ROUNDS:
        spare = (1 - part) * budget_tokens
        for at, column in enumerate(columns):
            detail = replace(details[at], **more)  # type: ignore[arg-type]
            text = _column(column, detail, table)
            if text == texts[at]:
                details[at] = detail
                continue
            price = weigh_text(f"; {text}") - weigh_text(f"; {texts[at]}")
            if price <= left - spare:
                left -= price
                undo.append((at, texts[at]))
                details[at], texts[at] = detail, text
        if left < 1:
            break
    # The parts weigh about what the whole does.
    while undo and estimate_tokens("; ".join([*around, *texts])) > budget_tokens:
        at, text = undo.pop()
        texts[at] = text
    return texts


def _column(column: Column, detail: _Detail, table: Table) -> str:
    """Return what is said of a column: its name and type, then what `detail` asks for."""
    name = column.name
    head = table.label or (name if PLAIN_NAME.fullmatch(name) else quoted(name, 40))
    inside = (table.insides or {}).get(name) if detail.inside else None
    head += f" {inside or column.type}"
    parts = list(_parts(column, detail, sampled=table.sampled is not None))
    if table.label and table.sampled:
        parts.insert(0, f"values sampled from {table.sampled:,}")
    if not parts:
        return head
    return f"{head}{', ' if table.label else ' '}{', '.join(parts)}"


def _parts(column: Column, detail: _Detail, *, sampled: bool) -> Iterator[str]:
    if detail.nulls and column.nulls:
        yield f"{column.nulls:,} null"
    if detail.nulls and column.non_finite:
        yield f"non-finite {column.non_finite:,}"
    if detail.nulls and column.empty and not _is_constant(column, sampled=sampled):
        yield f"{_often(column.empty, column, sampled=sampled)} empty"
    tops = _top(column, detail, sampled=sampled) if detail.top else ""
    if tops:
        yield tops
    # Of a choice among a few numbers they are told by name.
    if detail.range and column.minimum is not None and not _all_told(column, detail):
        yield f"{_value(column.minimum)} to {_value(column.maximum)}"
    if detail.mean and column.mean is not None and column.distinct != 1:
        yield f"mean {written(column.mean)}"
    # Of lists and objects the distinct ones are not counted.
    distinct = column.distinct or 0
    others = max(0, distinct - bool(column.empty))
    if detail.distinct and others and column.type != "float" and not (sampled or tops):
        yield "all distinct" if distinct == column.values > 1 else f"{distinct:,} distinct"


def _all_told(column: Column, detail: _Detail) -> bool:
    return column.distinct == 1 or (column.is_choice and (column.distinct or 0) <= detail.top)


def _is_constant(column: Column, *, sampled: bool) -> bool:
    return column.distinct == 1 and not (column.nulls or column.non_finite or sampled)


def _top(column: Column, detail: _Detail, *, sampled: bool) -> str:
    """Return the most frequent values with how often they come, or in a sample their share."""
    if not column.distinct or not column.top:
        return ""
    if _is_constant(column, sampled=sampled):
        return f"always {_value(column.top[0][0])}"
    # How many are empty is told before.
    present = [each for each in column.top if each[0] != ""]
    if column.is_choice:
        shown = present[: detail.top]
    elif detail.shares and column.top[0][1] > max(1, column.values // STANDS_OUT):
        # Some stand out of many.
        shown = [each for each in present[:2] if each[1] * STANDS_OUT > column.values]
    else:
        return ""
    told: list[str] = []
    for value, count in shown:
        told.append(f"{_value(value)}={share(count, column.values) if sampled else count}")
        if detail.shares and not sampled and column.distinct > 1:
            told[-1] += f" ({share(count, column.values)})"
    more = column.distinct - bool(column.empty) - len(shown)
    if more > 0 and told:
        told.append(f"+{more:,} more")
    return ", ".join(told)


def _often(count: int, column: Column, *, sampled: bool) -> str:
    return share(count, column.values) if sampled else f"{count:,}"


def _value(value: object) -> str:
    data = data_kind(value) if isinstance(value, str) else None
    if data is not None:
        return sized(*data)
    text = written(value)
    # A number, or a word that can be told from what stands around it.
    return (
        text
        if _PLAIN_VALUE.fullmatch(text) or not isinstance(value, str)
        else quoted(text, _SHOWN_VALUE_CHARS)
    )
