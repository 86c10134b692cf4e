"""Records as single lines, for a pipe or for standard error; without anything that draws."""

from ...records import Answer, Artifact, Matches, Page
from .._printable import one_line, printable

_UNITS = {"chars": "characters", "lines": "lines", "rows": "rows", "bytes": "bytes"}
_LANGUAGES = {"sql": "SQL", "jsonpath": "JSONPath", "jmespath": "JMESPath"}


def human_size(size_bytes: int) -> str:
    """Return a size as people say it, in powers of 1,000.

    >>> human_size(999), human_size(1_000), human_size(1_234_567)
    ('999 B', '1.0 kB', '1.2 MB')
    """
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.95 or unit == "GB":  # noqa: PLR2004 - from here on it would round to 1000.0
            break
        size /= 1_000
    return f"{size_bytes} B" if unit == "B" else f"{size:,.1f} {unit}"


def listed_line(artifact: Artifact) -> str:
    """Return an artifact as one line for a pipe, its fields apart by tabs."""
    fields = (
        artifact.pointer,
        str(artifact.size_bytes),
        artifact.stored_at.isoformat(timespec="seconds"),
        artifact.kind,
        artifact.content_type,
        artifact.name or artifact.label or "",
        artifact.preview,
    )
    return "\t".join(one_line(field) for field in fields) + "\n"


def kept_line(artifact: Artifact) -> str:
    """Return what was banked: its size, its type, and the first line of its glimpse."""
    size = f"{human_size(artifact.size_bytes)} ({artifact.size_bytes:,} bytes)"
    line = f"{size}, {artifact.content_type}"
    if artifact.glimpse is None:
        return line
    # Between backticks a model is shown an escaped one; no reader here takes it for the end.
    first, _, _ = printable(str(artifact.glimpse)).replace(r"\x60", "`").partition("\n")
    return f"{line}: {first}"


def page_line(page: Page) -> str:
    """Return which window of the whole this is, and how to get the next one.

    >>> page = Page(
    ...     content="ab",
    ...     unit="chars",
    ...     offset=0,
    ...     limit=2,
    ...     total=5,
    ...     has_more=True,
    ...     next_offset=2,
    ...     offset_chars=0,
    ...     next_offset_chars=2,
    ...     line_number=1,
    ... )
    >>> page_line(page)
    'characters 0-2 of 5; next: --offset 2'
    """
    name = _UNITS[page.unit]
    if not page.content:
        # Lines as --lines takes them: from 1.
        first = page.offset + (page.unit == "lines")
        return f"nothing from {name} {first:,} on: there are {page.total:,}"
    start, stop = page.offset, page.offset + len(page.content)
    if page.unit == "lines":
        # As --lines takes them: from 1, the last one included.
        text = str(page.content)
        start, stop = start + 1, start + text.count("\n") + (not text.endswith("\n"))
    elif page.unit == "rows":
        stop = page.total if page.next_offset is None else page.next_offset
    line = f"{name} {start:,}-{stop:,} of {page.total:,}"
    if page.next_offset is not None:
        unit = "" if page.unit == "chars" else f"--unit {page.unit} "
        return f"{line}; next: {unit}--offset {page.next_offset}"
    if page.next_offset_chars is not None:
        return f"{line}, its line is longer than a page; next: --offset {page.next_offset_chars}"
    return line


def matches_line(found: Matches) -> str:
    """Return how much was found, and how to get the rest."""
    if not found.counted_matches:
        return "no match"
    least = "at least " if found.total_matches is None else ""
    line = f"{found.match_count:,} of {least}{found.counted_matches:,} matches"
    if found.next_search_offset is None:
        return line
    return f"{line}; next: --offset {found.next_search_offset}"


def answer_line(answer: Answer) -> str:
    """Return as what a query was read, and how much its answer is."""
    rows = "row" if answer.language == "sql" else "value"
    return (
        f"{_LANGUAGES[answer.language]}: {answer.row_count:,} {rows}{'s' * (answer.row_count != 1)}"
    )
