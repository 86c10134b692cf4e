"""Where output goes: documents to standard output, notes to standard error; safe on a terminal."""

import json
import os
import sys
from typing import TYPE_CHECKING

import typer

from ...content import preview, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_CLOSED = 141
"""What a shell calls the end of a program that wrote to a closed pipe: 128 + SIGPIPE."""

# Marks, embedding, override and isolation of writing direction could make a line look like another.
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINE_ENDS = (0x2028, 0x2029)
_BEYOND_ASCII = (*range(0x80, 0xA0), *_DIRECTIONS)
# Controls are drawn as their pictures, so that nothing drives the terminal.
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(_LINE_ENDS, ord("↵")),
    **dict.fromkeys(_BEYOND_ASCII, 0xFFFD),
}
# JSON itself escapes what is below a space.
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in (0x7F, *_LINE_ENDS, *_BEYOND_ASCII)}


def printable(text: str) -> str:
    r"""Return `text` without escape sequences, and with pictures of all other controls.

    >>> printable("\x1b[2Jred\x07 alert")
    'red␇ alert'
    """
    return preview(text, len(text)).replace("\r\n", "\n").translate(_PICTURES)


def one_line(text: str) -> str:
    r"""Return `text` printable, on one line.

    >>> one_line("two\nlines")
    'two↵lines'
    """
    return printable(text).replace("\n", "↵").replace("\t", " ")


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


def harmless(text: str) -> str:
    r"""Return JSON that says the same, with what could drive a terminal escaped.

    >>> harmless('{"name": "\u202efdp.exe"}')
    '{"name": "\\u202efdp.exe"}'
    """
    return visible(text).translate(_JSON_ESCAPES)


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


def terminal_width() -> int:
    """Return the columns of the terminal."""
    from rich.console import Console

    return Console().width
