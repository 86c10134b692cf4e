"""`coatcheck demo`: picks the input, runs, and prints what was seen and what it took."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import InvalidArgumentError, shown
from .._printable import printable
from ._app import BeforeCommand, Json, Scope, app, opened
from ._input import is_text, read_input
from ._out import draw, write, write_json

if TYPE_CHECKING:
    from ._demo._server import Served

_SCRIPTED = (
    "The model below is a script, without key or network. It acts only on the messages it is "
    "shown here; server, proxy, bank and numbers are real."
)


@app.command(
    cls=BeforeCommand,
    epilog="Example: coatcheck demo server.log --store file:/tmp/demo",
)
def demo(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="Input.", show_default="the files of this Python"),
    ] = None,
    *,
    root: Annotated[
        str | None, typer.Option(metavar="DIR", help="Take stock of the files in this folder.")
    ] = None,
    call: Annotated[
        list[str] | None,
        typer.Option("--call", metavar="TOOL[=JSON]", help="Behind -- CMD: call this tool."),
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

    The model is a script that acts only on what it was shown: no key, no network. Its tools are
    an MCP server behind the proxy. `coatcheck demo -- CMD …` puts the proxy before a server of
    yours, and calls its tools that only read and need no arguments but a folder that CMD names,
    or those of --call; where there are none it ends with 1.
    """
    if find_spec("mcp") is None:
        raise InvalidArgumentError("The demo needs an extra.", "pip install 'coatcheck[proxy]'")
    command = BeforeCommand.of(context)
    if sum((file is not None, root is not None, bool(command))) > 1:
        raise InvalidArgumentError("FILE, --root and -- CMD exclude each other.")
    if call and not command:
        raise InvalidArgumentError("--call goes with -- CMD.", "coatcheck demo -- npx some-server")
    if root is not None and not Path(root).is_dir():
        raise InvalidArgumentError(f"{shown(root)} is no folder.", "Name a folder after --root.")
    if store is not None:
        # A proxy goes on without its store. Whoever names one wants to know.
        with opened(store, scope, begins=True) as bank:
            bank.delete(bank.put("").pointer)
    options = ["--store", store or "memory:", "--scope", scope]
    if command:
        from ._demo._own_server import show_own_server

        asyncio.run(show_own_server(command, call or (), options, as_json=as_json))
    else:
        _scripted(file, root, options, store=store, scope=scope, as_json=as_json)


def _scripted(
    file: str | None,
    root: str | None,
    options: Sequence[str],
    *,
    store: str | None,
    scope: str,
    as_json: bool,
) -> None:
    """Run the scripted model on files, or on one."""
    from ._demo._draw import commands, draw_message, measured, remarks
    from ._demo._inventory import environment_roots
    from ._demo._proxied import proxied
    from ._demo._run import Outcome, run_demo
    from ._demo._server import SKIPPED, Served, job_of
    from ._demo._wire import outcome_wire

    if not as_json:
        draw(_SCRIPTED, "")
    with _progress() as tell_done, tempfile.TemporaryDirectory() as folder:
        if file is None:
            served = Served(roots=tuple(environment_roots() if root is None else [root]))
        else:
            served = _served_file(file, Path(folder))
        job = job_of(served, None)
        if job.inline_bytes is not None:
            limits = Path(folder, "limits.toml")
            limits.write_text(f"[tools.read_file]\ninline_bytes = {job.inline_bytes}\n")
            options = [*options, "--settings", str(limits)]

        async def run() -> tuple[Outcome, Mapping[str, Any]]:
            async with proxied(served.command(), options, tell_done) as behind:
                tell = _silent if as_json else draw_message
                return await run_demo(job, behind, tell), behind.meta

        outcome, meta = asyncio.run(run())
    skipped = int(meta.get(SKIPPED, 0))
    if as_json:
        write_json(outcome_wire(outcome, skipped_files=skipped))
        return
    draw(measured(outcome), *remarks(outcome, store, skipped_files=skipped))
    if store is not None and outcome.pointers:
        write("".join(f"{line}\n" for line in commands(outcome, store, scope)))


def _served_file(file: str, folder: Path) -> "Served":
    from ._demo._server import Served

    payload, name = read_input(file), printable(Path(file).name)
    kept = folder / "input"  # as what was read may have been a pipe
    kept.write_bytes(payload)
    return Served(file=str(kept), name=name, is_text=is_text(payload))


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
