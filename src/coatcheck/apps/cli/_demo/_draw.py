"""How the demo looks: the conversation as the model sees it, then what it took."""

import json
from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..._printable import one_line, printable
from .._out import command_line, draw
from ._policy import Message
from ._run import WINDOWS, Outcome

_LONGEST_SHOWN = 2_000
_WHO_WIDTH = 6
_STYLES = {"system": "dim", "user": "bold green", "assistant": "bold cyan", "tool": "yellow"}


def draw_message(message: Message) -> None:
    """Draw a message, whole but for what only a screen has no room for."""
    role = message["role"]
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(width=_WHO_WIDTH)
    line.add_column(ratio=1, overflow="fold")
    line.add_row(Text("model" if role == "assistant" else role, _STYLES[role]), _body(message))
    draw(Padding(line, (0, 0, 1, 0)))


def measured(outcome: Outcome) -> RenderableType:
    """Return the table of tokens, calls and windows, and what has to be said of it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("Call", "in all", justify="left")
    table.add_column("The model", "")
    table.add_column("With pointers", f"{outcome.tokens:,}", justify="right", style="bold")
    table.add_column("Raw, computed", f"{outcome.raw_tokens:,}", justify="right")
    for number, call in enumerate(outcome.calls, 1):
        raw = "-" if call.raw_tokens is None else f"{call.raw_tokens:,}"
        table.add_row(str(number), call.action, f"{call.tokens:,}", raw)
    windows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    windows.add_column("Context window")
    windows.add_column("With pointers")
    windows.add_column("Raw, computed")
    for tokens in WINDOWS:
        cells = (_fits(outcome.overflows_at(tokens, raw=raw)) for raw in (False, True))
        windows.add_row(f"{tokens:,} tokens", *cells)
    return Group(
        Text("Tokens that each call of the model is sent (o200k)", "bold"),
        table,
        Text("Would it have fit? (common sizes)", "bold"),
        windows,
    )


def remarks(outcome: Outcome, store: str | None, *, skipped_files: int) -> Iterator[str]:
    """Yield what has to be said of the numbers."""
    if outcome.pointers:
        yield (
            "Raw is the same script and tools without pointers, computed, never sent to a model. "
            "There a model must write its input out again for every tool; were that free, it would "
            f"still be {outcome.raw_tokens_once:,} tokens."
        )
    else:
        yield (
            "Nothing here reaches the inline limit, so all was shown as it is, and pointers saved "
            "nothing: the difference is what the tool that reads them back costs."
        )
    if skipped_files:
        yield f"{skipped_files:,} files could not be read and are left out."
    yield f"Time with pointers, tools included: {outcome.seconds:.1f} s."
    if store is None:
        yield "The artifacts were kept in memory only; --store file:DIR keeps them."


def commands(outcome: Outcome, store: str, scope: str) -> Iterator[str]:
    """Yield the commands that look at what was kept, on one line each, to be copied."""
    yield "\nLook at what was kept:"
    for words in (["ls"], *(["show", pointer] for pointer in outcome.pointers)):
        yield f"  {one_line(command_line(*words, store=store, scope=scope))}"


def _fits(call: int | None) -> Text:
    return Text("fits", "green") if call is None else Text(f"overflows at call {call}", "red")


def _body(message: Message) -> Text:
    text = Text()
    for call in message.get("calls", ()):
        arguments = json.dumps(call["arguments"], ensure_ascii=False, separators=(",", ":"))
        text.append(str(call["name"]), "bold")
        text.append(f"({_cut(arguments)})")
    if "content" in message:
        text.append(_cut(str(message["content"])))
    return text


def _cut(text: str) -> str:
    shown = printable(text[:_LONGEST_SHOWN])
    more = len(text) - _LONGEST_SHOWN
    return f"{shown} […{more:,} more characters, cut only in print]" if more > 0 else shown
