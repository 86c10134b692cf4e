"""Records drawn in a terminal."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ...records import Artifact, Match
from .._printable import one_line, printable
from ._lines import human_size
from ._show_glimpse import drawn_glimpse

_POINTER_WIDTH = 40
_WIDE = 110
"""Columns from which on there is room for a preview beside the rest."""
_PREVIEW_LINES = 12


def human_age(then: datetime, now: datetime) -> str:
    """Return how long ago that was, above a month its date.

    >>> noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    >>> human_age(noon.replace(hour=9), noon), human_age(noon.replace(year=2025), noon)
    ('3 h ago', '2025-05-01')
    """
    seconds = (now - then).total_seconds()
    for unit, length, longest in (("s", 1, 60), ("min", 60, 3_600), ("h", 3_600, 86_400)):
        if seconds < longest:
            return f"{max(0, int(seconds // length))} {unit} ago"
    days = int(seconds // 86_400)
    return f"{days} d ago" if days <= 30 else f"{then:%Y-%m-%d}"  # noqa: PLR2004 - a month


def listing(artifacts: Sequence[Artifact], *, width: int) -> Table:
    """Return a table of artifacts for a terminal `width` columns wide."""
    wide = width >= _WIDE
    table = Table(box=box.SIMPLE_HEAD, expand=wide, pad_edge=False)
    # The pointer is what is copied from here, so it is never cut.
    table.add_column("Pointer, name", min_width=_POINTER_WIDTH, no_wrap=True)
    table.add_column("Kind, type", max_width=16)
    table.add_column("Size", justify="right", no_wrap=True)
    table.add_column("Stored", no_wrap=True)
    if wide:
        table.add_column("Preview", ratio=1)
    now = datetime.now(UTC)
    for artifact in artifacts:
        title, head = one_line(artifact.name or artifact.label or ""), one_line(artifact.preview)
        below = _clipped((title, "bold"), (head if not wide else "", "dim"))
        # Not left to the column: a wide name would push it beyond the pointer.
        below.truncate(_POINTER_WIDTH, overflow="ellipsis")
        kind, type_ = one_line(artifact.kind), one_line(artifact.content_type)
        cells: list[RenderableType] = [
            Group(Text(artifact.pointer, "cyan"), below),
            Group(_clipped((kind, "")), _clipped((type_, "dim"))),
            Text.assemble(human_size(artifact.size_bytes), (f"\n{artifact.size_bytes:,}", "dim")),
            human_age(artifact.stored_at, now),
        ]
        table.add_row(*cells, *([_clipped((head, "dim"))] if wide else []))
    return table


def facts(artifact: Artifact, read_on: str) -> RenderableType:
    """Return everything there is to know of an artifact, and the command that reads on."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    length = "" if artifact.length_chars is None else f", {artifact.length_chars:,} characters"
    rows = {
        "pointer": artifact.pointer,
        "name": artifact.name,
        "label": artifact.label,
        "kind": artifact.kind,
        "type": artifact.content_type,
        "size": f"{human_size(artifact.size_bytes)} ({artifact.size_bytes:,} bytes{length})",
        "stored": _when(artifact.stored_at),
        "expires": None if artifact.expires_at is None else _when(artifact.expires_at),
        "tool": artifact.tool,
        "digest": artifact.digest,
        "read on": read_on,
        "a model": artifact.read_back,
    }
    for label, value in rows.items():
        if value:
            table.add_row(label, Text(one_line(value)))
    parts: list[RenderableType] = [table]
    if artifact.glimpse is not None:
        parts.append(drawn_glimpse(artifact.glimpse))
    if artifact.preview:
        lines = artifact.preview.splitlines()
        more = ["…"] if len(lines) > _PREVIEW_LINES else []
        parts.append(_panel("preview", "\n".join(lines[:_PREVIEW_LINES] + more)))
    return Group(*parts)


def match_line(match: Match, needle: str, *, ignore_case: bool) -> Text:
    """Return a match as one line, the hit of a needle marked."""
    start = match.offset - match.snippet_offset
    stop = start + _hit_length(match.snippet[start:], needle, ignore_case=ignore_case)
    return Text.assemble(
        (f"{match.line_number}:{match.offset}", "cyan"),
        ": ",
        one_line(match.snippet[:start]),
        (one_line(match.snippet[start:stop]), "bold reverse"),
        one_line(match.snippet[stop:]),
    )


def _hit_length(text: str, needle: str, *, ignore_case: bool) -> int:
    if not ignore_case or not needle:
        return len(needle)
    # One character may fold to three, so the hit can be shorter than what was looked for.
    folded, length = needle.casefold(), 1
    while length < len(text) and not text[:length].casefold().startswith(folded):
        length += 1
    return length


def _panel(title: str, content: str) -> Panel:
    return Panel(Text(printable(content)), title=title, title_align="left", border_style="dim")


def _clipped(*parts: tuple[str, str]) -> Text:
    """Return text of several styles on one line, cut with an ellipsis where room ends."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for content, style in parts:
        if content:
            text.append("  " if text else "").append(content, style)
    return text


def _when(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
