"""What a journal says: what it adds up to, and its calls as they come."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from io import SEEK_END
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from ...bank import TOOL, Call, parse_call, read_journal
from ...bank.savings import Savings, lineage, savings, total
from ...errors import InvalidArgumentError, shown
from ...records import is_pointer
from .._printable import one_line
from ._app import Json, app
from ._lines import human_size
from ._out import draw, is_terminal, note, terminal_width, write, write_json

_PAUSE_SECONDS = 0.2
_BELOW_ZERO = (
    "Kept out is Tokens less Shown, Read back and Schemas: below 0 where results were small, as "
    "the definitions of our own tools are sent with each call, and always in the row of "
    "retrieve_context, as what it reads back was kept out in the row of another tool."
)

JournalFile = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        envvar="COATCHECK_JOURNAL",
        metavar="FILE",
        help="The journal of a host.",
        show_default="journal.jsonl in your state folder",
    ),
]
Run = Annotated[str | None, typer.Option("--run", metavar="NAME", help="Only calls of this run.")]
OfScope = Annotated[
    str | None, typer.Option("--scope", metavar="NAME", help="Only calls of this scope.")
]


@app.command(epilog="Example: coatcheck stats --journal calls.jsonl")
def stats(
    *,
    journal: JournalFile = None,
    run: Run = None,
    scope: OfScope = None,
    as_json: Json = False,
) -> None:
    """Show per tool and run what was kept out of the context, and what that cost.

    A journal is of a host, whatever stores it had: --scope takes what one session was shown.
    """
    file = _file(journal)
    calls = [call for call in read_journal(file) if _is_asked(call, None, run, scope)]
    if not calls:
        _tell_of_none(file)
    each, whole = savings(calls), total(calls)
    if as_json:
        write_json({"tools": [_wire(one) for one in each], "total": _wire(whole)})
    elif not is_terminal():
        write("".join(_stats_line(one) for one in each))
    else:
        from ._show_journal import savings_table

        draw(savings_table(each, whole, width=terminal_width()))
    note(
        f"{whole.calls:,} calls, {whole.banked:,} of them banked; about "
        f"{whole.kept_out_tokens:,} tokens kept out, each text counted once"
    )
    if any(one.kept_out_tokens < 0 for one in each):
        note(_BELOW_ZERO)


@app.command(epilog="Example: coatcheck log --follow")
def log(
    pointer: Annotated[
        str | None, typer.Argument(metavar="[POINTER]", help="Only calls that touch it.")
    ] = None,
    *,
    journal: JournalFile = None,
    run: Run = None,
    scope: OfScope = None,
    limit: Annotated[int, typer.Option(min=1, help="The most to show, of the newest.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as calls come.")] = False,
    as_json: Json = False,
) -> None:
    """Show the newest calls; of one pointer where it came from, and where it went.

    A scope that is not `default` is told: ls, show and read take it as --scope.
    """
    if pointer is not None and not is_pointer(pointer):
        raise InvalidArgumentError(
            f"{shown(pointer)} is no pointer", "`coatcheck ls` lists pointers."
        )
    whole = None if pointer is None else pointer.partition("#")[0]
    file = _file(journal)
    with ExitStack() as opened:
        end = opened.enter_context(file.open("rb"))
        end.seek(0, SEEK_END)
        chosen = [call for call in read_journal(file) if _is_asked(call, whole, run, scope)]
        if not chosen:
            _tell_of_none(file)
        for call in chosen[-limit:]:
            _show(call, as_json=as_json)
        if whole is not None and chosen and not as_json:
            derived = lineage(chosen, whole).derived_into
            note(f"made of it: {', '.join(derived)}" if derived else "nothing was made of it")
        if follow:
            for call in _followed(file, end, opened):
                if _is_asked(call, whole, run, scope):
                    _show(call, as_json=as_json)


def _file(journal: Path | None) -> Path:
    """Return the journal's file.

    Raises:
        InvalidArgumentError: There is none.
    """
    from platformdirs import user_state_path

    file = journal or user_state_path("coatcheck") / "journal.jsonl"
    if not file.is_file():
        raise InvalidArgumentError(
            f"there is no journal at {shown(str(file))}",
            "The proxy begins one, a host by open_bank(…, journal=FILE). --journal names another.",
        )
    return file


def _tell_of_none(file: Path) -> None:
    """Say why no call is told: none is what was asked for, or the file is no journal."""
    if any(True for _ in read_journal(file)):
        note("none of the calls in the journal is one that was asked for")
    elif file.stat().st_size:
        note(f"{shown(str(file))} holds no calls: it is no journal")


def _is_asked(call: Call, pointer: str | None, run: str | None, scope: str | None) -> bool:
    """Return whether a call is of that run and scope and touches that pointer; None is any."""
    if run not in {None, call.run} or scope not in {None, call.scope}:
        return False
    pointers = (*call.pointers_in, *call.pointers_out)
    return pointer is None or any(each.partition("#")[0] == pointer for each in pointers)


def _followed(file: Path, lines: BinaryIO, opened: ExitStack) -> Iterator[Call]:
    """Yield calls as they are written, until the reader has enough and presses Ctrl-C."""
    begun = b""
    with suppress(KeyboardInterrupt):
        while True:
            # Looked at before it is read: nothing is written to a journal that was renamed.
            is_over = _is_renamed(file, lines)
            text = begun + lines.read()
            *whole, begun = text.split(b"\n")
            yield from filter(None, map(parse_call, whole))
            if is_over:
                lines, begun = opened.enter_context(file.open("rb")), b""
            elif not whole:
                time.sleep(_PAUSE_SECONDS)


def _is_renamed(file: Path, lines: BinaryIO) -> bool:
    """Return whether another file was begun, as the one that is read was full."""
    try:
        return not os.path.samestat(file.stat(), os.fstat(lines.fileno()))
    except FileNotFoundError:  # nobody has begun it yet
        return False


def _show(call: Call, *, as_json: bool) -> None:
    if as_json:
        write_json(asdict(call))
        return
    if is_terminal():
        from ._show_journal import call_text

        draw(call_text(call, _what(call)))
    else:
        write(_call_line(call))


def _what(call: Call) -> str:
    what = call.tool or "-"
    return (what if call.verb == TOOL else f"{what} {call.verb}") + " FAILED" * call.is_error


def _call_line(call: Call) -> str:
    at = datetime.fromtimestamp(call.at_ns / 1_000_000_000, UTC).isoformat(timespec="seconds")
    given = " ".join(call.pointers_in)
    banked = " ".join(call.pointers_out)
    fields = [
        at,
        one_line(call.run or "-"),
        _what(call),
        human_size(call.size_bytes),
        f"{call.tokens:,} → {call.shown_tokens:,} tokens",
        f"{given} → {banked}" if given or banked else "",
        "" if call.scope == "default" else f"scope {call.scope}",
    ]
    return "\t".join(map(one_line, fields)).rstrip() + "\n"


def _stats_line(one: Savings) -> str:
    numbers = (one.calls, one.banked, one.size_bytes, one.result_tokens, one.shown_tokens)
    kept = (one.read_back_tokens, one.schema_tokens, one.kept_out_tokens)
    names = (one_line(one.tool or "-"), one_line(one.run or "-"))
    return "\t".join([*names, *map(str, (*numbers, *kept))]) + "\n"


def _wire(one: Savings) -> dict[str, Any]:
    return {
        "tool": one.tool,
        "run": one.run,
        "calls": one.calls,
        "errors": one.errors,
        "banked": one.banked,
        "sizeBytes": one.size_bytes,
        "resultTokens": one.result_tokens,
        "shownTokens": one.shown_tokens,
        "readBackTokens": one.read_back_tokens,
        "schemaTokens": one.schema_tokens,
        "keptOutTokens": one.kept_out_tokens,
    }
