"""Wraps the configuration of a host: shows what changes, asks, and says what was done."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...errors import InvalidArgumentError
from .._printable import one_line
from ._out import note, write

if TYPE_CHECKING:
    from ..proxy._wrap_files import Plan


def wrap_host(
    file: Path,
    kept: Mapping[str, str | None],
    flags: Sequence[str],
    *,
    name: str | None,
    yes: bool,
) -> None:
    """Put one proxy in place of the stdio servers of a host's configuration.

    Args:
        file: The configuration.
        kept: Options, with values, that the host is to start the proxy with.
        flags: Options without.
        name: Of the entry; None is one by whose file it is.
        yes: Whether not to ask.

    Raises:
        InvalidArgumentError: There is nothing to wrap, the file is not understood or cannot be
            written, or nobody is there to be asked.
    """
    from ..proxy._wrap_files import plan_wrap

    options = [word for option, value in kept.items() if value for word in (option, value)]
    plan = plan_wrap(file, [*_program(), "proxy", *options, *flags], name)
    for server, why in plan.stayed:
        note(f"{one_line(server)} stays where it is: {why}")
    if not plan.moved:
        raise InvalidArgumentError(
            f"{file} has no server that speaks over stdio.", "There is nothing to put behind it."
        )
    if not plan.is_needed:
        note(f"{file} is wrapped already: {one_line(', '.join(plan.moved))}")
        return
    _agreed(plan, yes=yes)
    plan.carry_out()
    note(f"behind the proxy: {one_line(', '.join(plan.moved))}")
    if plan.backup is not None:
        note(f"what was there before: {plan.backup}")
    secret = [path.name for path in (*plan.beside, plan.backup) if path is not None]
    note(f"for .gitignore, as they may hold secrets: {one_line(' '.join(secret))}")
    note(f"{plan.file.name} itself now names paths of this machine: commit it unwrapped")
    note(f"now restart the host; undo it: coatcheck proxy --unwrap {file}")


def unwrap_host(file: Path, *, yes: bool) -> None:
    """Put the servers of a host's configuration back where they were.

    Raises:
        InvalidArgumentError: As `wrap_host`.
    """
    from ..proxy._wrap_files import plan_unwrap

    plan = plan_unwrap(file)
    _agreed(plan, yes=yes)
    plan.carry_out()
    note(f"{plan.file} starts its servers itself again, once the host is restarted")
    for path in plan.left:
        note(f"an older backup stays, which may hold secrets: rm {shlex.quote(str(path))}")


def _program() -> list[str]:
    """Return what starts this program wherever a host may be: its path, not its name."""
    script = Path(sys.executable).with_name("coatcheck")
    return [str(script)] if script.exists() else [sys.executable, "-m", "coatcheck.apps.cli"]


def _agreed(plan: "Plan", *, yes: bool) -> None:
    """Show what changes, and ask whether it may.

    Raises:
        InvalidArgumentError: Nobody is there to ask.
        typer.Exit: The answer is no.
    """
    write("".join(f"{one_line(line)}\n" for line in plan.diff()))
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            "Nothing was changed: nobody is there to be asked.", "--yes changes it."
        )
    if not typer.confirm(f"Write {plan.file}?", err=True):
        note("nothing was changed")
        raise typer.Exit(1)
