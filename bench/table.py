"""Rows of a benchmark as cells and as Markdown."""

from measure import Row

HEADER = ("part", "what", "measured", "limit", "ratio", "to reach", "reached", "notes")


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text, under `HEADER`."""
    reached = {True: "yes", False: "NO", None: ""}[row.reached]
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    measured = f"{_number(row.measured)} {row.unit}"
    return row.part, row.name, measured, _number(row.limit), ratio, row.target, reached, row.note


def markdown(rows: list[Row]) -> str:
    """Return a table of rows."""
    lines = [HEADER, ("---",) * len(HEADER), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
