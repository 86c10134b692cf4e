"""Where output goes: documents to standard output, notes to standard error; safe on a terminal."""

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING

import typer

from .._printable import harmless, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_CLOSED = 141
"""What a shell calls the end of a program that wrote to a closed pipe: 128 + SIGPIPE."""


def is_terminal() -> bool:
    """Return whether someone looks at standard output."""
    return sys.stdout.isatty()


def write(content: str | bytes) -> None:
    """Write to standard output, exactly.

    Raises:
        typer.Exit: Whoever read has gone.
    """
    payload = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(payload)
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        # What is still buffered would fail again when the interpreter flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from error


def write_json(document: object) -> None:
    """Write one JSON document, as one line."""
    write_document(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def write_document(text: str) -> None:
    """Write the text of a JSON document, as one line."""
    write(f"{harmless(text)}\n")


def draw(*parts: "RenderableType") -> None:
    """Draw on standard output, as wide as the terminal; without colour where there is none."""
    from rich.console import Console

    # No markup: what is shown may hold some, of links too.
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    drawn = captured.get()
    if not console.is_terminal:
        # Columns are padded with spaces that nobody sees.
        drawn = "".join(f"{line.rstrip()}\n" for line in drawn.removesuffix("\n").split("\n"))
    write(drawn)


def note(text: str, style: str = "dim") -> None:
    """Write a line to standard error, for the reader and not for a program."""
    if not sys.stderr.isatty():
        sys.stderr.write(f"{one_line(text)}\n")
        return
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, highlight=False).print(Text(one_line(text), style), soft_wrap=True)


def command_line(*words: str, store: str | None, scope: str) -> str:
    """Return a command of ours, in that store and scope, as a shell takes it.

    >>> command_line("read", "art:1#$[0]", store=None, scope="local-7")
    "coatcheck read 'art:1#$[0]' --scope local-7"
    """
    where: list[str] = [] if store is None else ["--store", store]
    where += [] if scope == "default" else ["--scope", scope]
    return shlex.join(["coatcheck", *words, *where])


def terminal_width() -> int:
    """Return the columns of the terminal."""
    from rich.console import Console

    return Console().width
