"""What can be done with artifacts from a shell."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from ...bank import BlockingBank, without_secrets
from ...errors import InvalidArgumentError, UnknownPointerError, shown
from ...records import Artifact, Page
from ...tools import as_failure
from .._printable import one_line, printable
from ._app import (
    LIST_HINT,
    NOT_FOUND,
    Json,
    PointerText,
    Scope,
    Store,
    app,
    default_store,
    opened,
    report,
)
from ._input import STDIN, WatchedEncoding, read_input, type_of
from ._lines import kept_line, listed_line, matches_line, page_line
from ._out import (
    command_line,
    draw,
    is_terminal,
    note,
    terminal_width,
    write,
    write_json,
)
from ._selected import selected
from ._wire import artifact_wire, matches_wire, page_wire

_LARGE_BYTES = 16 * 1024 * 1024
"""From this size on a put shows a progress bar."""

_STREAM_BYTES = 800_000
"""The longest window in bytes that a bank reads at once."""


@app.command(epilog="Example: P=$(coatcheck put report.csv --name report)")
def put(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="- is standard input.")] = STDIN,
    *,
    name: Annotated[str | None, typer.Option(help="A label that also finds it.")] = None,
    label: Annotated[
        str | None, typer.Option(help="What readers call it.", show_default="the file's name")
    ] = None,
    kind: Annotated[str, typer.Option(help="Who made it and why: report, log, other …")] = "other",
    content_type: Annotated[
        str | None, typer.Option(help="A MIME type.", show_default="by name and content")
    ] = None,
    ttl: Annotated[float | None, typer.Option(metavar="SECONDS", help="How long it lives.")] = None,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """Bank a file whole, byte for byte, and print its pointer."""
    payload = read_input(file)
    if label is None and file != STDIN:
        label = printable(Path(file).name)
    content_type = content_type or type_of(payload, file)
    with opened(store, scope, begins=True) as bank, _progress(len(payload)) as tell:
        artifact = bank.put(
            WatchedEncoding(payload, content_type, tell),
            name=name,
            label=label,
            kind=kind,
            ttl_seconds=ttl,
        )
    if as_json:
        write_json(artifact_wire(artifact))
        return
    write(f"{artifact.pointer}\n")
    note(kept_line(artifact))


@app.command(name="ls", epilog="Example: coatcheck ls --kind tool-output --limit 5")
def list_(
    *,
    limit: Annotated[int, typer.Option(min=1, help="The most to list.")] = 20,
    kind: Annotated[str | None, typer.Option(help="Only artifacts of this kind.")] = None,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """List artifacts, newest first: a table, or in a pipe one line each, apart by tabs."""
    with opened(store, scope) as bank:
        found = list(islice(bank.list(kind), limit + 1))
        elsewhere = "" if found else _elsewhere(bank, store, scope)
    artifacts = found[:limit]
    if as_json:
        write_json([artifact_wire(artifact) for artifact in artifacts])
        return
    if not is_terminal():
        write("".join(listed_line(artifact) for artifact in artifacts))
    elif artifacts:
        from ._show import listing

        draw(listing(artifacts, width=terminal_width()))
    if not artifacts:
        note("nothing is banked here" + (f"; {elsewhere}" if elsewhere else ""))
    elif len(found) > limit:
        note(f"the newest {limit:,}; --limit shows more")


@app.command(epilog="Example: coatcheck show report")
def show(
    pointer: PointerText,
    *,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
    as_facts: Annotated[
        bool, typer.Option("--facts", help="What the glimpse is made of, as JSON.")
    ] = False,
) -> None:
    """Show the facts of an artifact, its glimpse and preview, and how to read on.

    Of a pointer with a selector those of the part that it picks: `show 'art:5b0c…#/items'`.
    """
    with opened(store, scope) as bank:
        artifact = selected(bank, pointer, _found(bank, pointer))
    if as_facts:
        write_json({} if artifact.glimpse is None else dict(artifact.glimpse.facts))
        return
    if as_json:
        write_json(artifact_wire(artifact))
        return
    from ._show import facts

    address = None if store is None else without_secrets(store)
    draw(facts(artifact, command_line("read", artifact.pointer, store=address, scope=scope)))


@app.command(epilog="Example: coatcheck read report --lines 10-20")
def read(
    pointer: PointerText,
    *,
    offset: Annotated[int, typer.Option(help="Where the window starts, from 0.")] = 0,
    limit: Annotated[
        int | None, typer.Option(help="How long it is.", show_default="a page")
    ] = None,
    unit: Annotated[str, typer.Option(help="chars, lines, rows or bytes.")] = "chars",
    lines: Annotated[
        str | None, typer.Option(metavar="FIRST-LAST", help="Lines from 1, both included.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="The payload, from end to end.")] = False,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """Read a window of a payload, exactly; a terminal gets it without control sequences.

    What a selector picks is read like a payload of its own: `read 'art:5b0c…#L10-L20'`.
    """
    asked = (offset, limit, unit)
    if ((lines is not None or whole) and asked != (0, None, "chars")) or (lines and whole):
        raise InvalidArgumentError(
            "--lines, --all and --offset, --limit, --unit exclude each other."
        )
    if whole and as_json:
        raise InvalidArgumentError("--all writes the payload itself, and cannot be JSON.")
    if lines is not None:
        asked = _line_window(lines)
    with opened(store, scope) as bank:
        if whole:
            for page in _pages(bank, pointer):
                write(_exact_or_printable(page))
            return
        page = bank.read(pointer, *asked)
    if as_json:
        write_json(page_wire(page))
        return
    content = _exact_or_printable(page)
    write(content)
    if is_terminal() and content[-1:] != "\n":
        write("\n")
    note(page_line(page))


@app.command(epilog="Example: coatcheck search report timeout --limit 5")
def search(
    pointer: PointerText,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="1 to 200 characters.")],
    *,
    offset: Annotated[int, typer.Option(help="First character to look at, from 0.")] = 0,
    limit: Annotated[int, typer.Option(help="Most matches to show, up to 50.")] = 50,
    regex: Annotated[bool, typer.Option("--regex", help="TEXT is a pattern.")] = False,
    case_sensitive: Annotated[
        bool, typer.Option("--case-sensitive", help="Compare exactly.")
    ] = False,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """Search a payload for literal text, or a pattern: line:offset and what stands around it."""
    ignore_case = not case_sensitive
    with opened(store, scope) as bank:
        found = bank.search(pointer, text, offset, limit, regex=regex, ignore_case=ignore_case)
    if as_json:
        write_json(matches_wire(found))
        return
    from ._show import match_line

    # How long the hit of a pattern is, nobody told: its start is in the line.
    needle = "" if regex else text
    hits = [match_line(match, needle, ignore_case=ignore_case) for match in found.matches]
    if is_terminal():
        draw(*hits)
    else:
        write("".join(f"{hit.plain}\n" for hit in hits))
    note(matches_line(found))


@app.command(epilog="Example: coatcheck rm report art:5b0c…")
def rm(
    pointers: Annotated[list[str], typer.Argument(metavar="POINTER…", help="Pointers or names.")],
    *,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """Remove artifacts. Of several, those that are not there stop none of the others."""
    with opened(store, scope) as bank:
        removed = {pointer: bank.delete(pointer) for pointer in dict.fromkeys(pointers)}
    missing = [pointer for pointer, done in removed.items() if not done]
    gone = [pointer for pointer, done in removed.items() if done]
    if as_json:
        write_json({"removed": gone, "missing": missing})
    else:
        write("".join(f"{one_line(pointer)}\n" for pointer in gone))
    for pointer in missing:
        error = UnknownPointerError(pointer)
        error.hint = LIST_HINT
        report(as_failure(error), as_json=as_json)
    if missing:
        raise typer.Exit(NOT_FOUND)


@contextmanager
def _progress(size_bytes: int) -> Generator[Callable[[int], object]]:
    if size_bytes < _LARGE_BYTES or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("put", total=size_bytes)
        yield lambda taken: progress.advance(task, taken)


def _found(bank: BlockingBank, pointer: str) -> Artifact:
    # What is unknown and what has expired are one to `find`; reading tells them apart.
    while (artifact := bank.find(pointer)) is None:
        bank.read(pointer, unit="bytes", limit=1)
    return artifact


def _elsewhere(bank: BlockingBank, store: str | None, scope: str) -> str:
    from ._scopes import told_of_others

    return told_of_others(bank, default_store() if store is None else store, scope)


def _line_window(lines: str) -> tuple[int, int, str]:
    first, dash, last = lines.partition("-")
    try:
        start, stop = int(first), int(last if dash else first)
    except ValueError:
        start, stop = 0, 0
    if not 1 <= start <= stop:
        raise InvalidArgumentError(
            f"--lines takes FIRST-LAST, counted from 1, got {shown(lines)}.",
            "For one: --lines 10-20",
        )
    return start - 1, stop - start + 1, "lines"


def _pages(bank: BlockingBank, pointer: str) -> Iterator[Page]:
    offset: int | None = 0
    while offset is not None:
        page = bank.read(pointer, offset, _STREAM_BYTES, "bytes")
        yield page
        offset = page.next_offset


def _exact_or_printable(page: Page) -> str | bytes:
    if not is_terminal():
        return page.content
    content = page.content
    return printable(content if isinstance(content, str) else content.decode("utf-8", "replace"))
