"""`coatcheck demo`: picks the input, runs, and prints what was seen and what it took."""

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import InvalidArgumentError, shown
from ._app import Json, Scope, app, opened
from ._input import is_text, read_input
from ._out import draw, printable, write, write_json

if TYPE_CHECKING:
    from ._demo._jobs import Job

_SCRIPTED = (
    "The model below is a script, without key or network. It acts only on the messages it is "
    "shown here; tools, bank and numbers are real."
)


@app.command(epilog="Example: coatcheck demo server.log --store file:/tmp/demo")
def demo(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Input.", show_default="the files of this Python"),
    ] = None,
    *,
    root: Annotated[
        str | None, typer.Option(metavar="DIR", help="Take stock of the files in this folder.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Keep the artifacts: file:DIR or a path.",
            show_default="memory:",
        ),
    ] = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """Watch an agent work on real input by pointer, and count what that saves.

    The model is a script that acts only on what it was shown: no key, no network.
    """
    if file is not None and root is not None:
        raise InvalidArgumentError("FILE and --root exclude each other.")
    if root is not None and not Path(root).is_dir():
        raise InvalidArgumentError(f"{shown(root)} is no folder.", "Name a folder after --root.")
    from ._demo._draw import commands, draw_message, measured, remarks
    from ._demo._inventory import Folder, environment_roots
    from ._demo._jobs import inventory_job
    from ._demo._run import run_demo
    from ._demo._wire import outcome_wire

    with _progress() as tell_done:
        folder = Folder(environment_roots() if root is None else [root], tell_done)
        job = inventory_job(folder.inventory) if file is None else _file_job(file)
        with opened(store or "memory:", scope, passing=True, begins=True) as bank:
            # A mirrored tool goes on without its store. Whoever names one wants to know.
            bank.delete(bank.put("").pointer)
            if not as_json:
                draw(_SCRIPTED, "")
            outcome = asyncio.run(run_demo(job, bank.bank, _silent if as_json else draw_message))
    if as_json:
        write_json(outcome_wire(outcome, skipped_files=folder.skipped))
        return
    draw(measured(outcome), *remarks(outcome, store, skipped_files=folder.skipped))
    if store is not None and outcome.pointers:
        write("".join(f"{line}\n" for line in commands(outcome, store, scope)))


def _file_job(file: str) -> "Job":
    from ._demo._jobs import binary_job, text_job

    payload, name = read_input(file), printable(Path(file).name)
    if is_text(payload):
        return text_job(payload.decode(), name)
    return binary_job(payload, name)


def _silent(_: object) -> None:
    pass


@contextmanager
def _progress() -> Generator[Callable[[int, int], object]]:
    """Give what shows how many of how many files are read, while someone looks."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("reading files"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=None)

    def tell(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)
        (progress.stop if done == total else progress.start)()

    try:
        yield tell
    finally:
        progress.stop()
