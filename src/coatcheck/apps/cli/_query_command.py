"""`coatcheck query`: asks a question of what is banked, and shows or banks the answer."""

from typing import Annotated

import typer

from ...content import dumps
from ...records import Answer
from ._app import Json, PointerText, Scope, Store, app, opened
from ._lines import answer_line, kept_line
from ._out import draw, is_terminal, note, write, write_document
from ._wire import answer_wire

_LANGUAGES = "SQL on the table data, JSONPath ($…) or JMESPath."


@app.command(epilog='Example: coatcheck query orders "SELECT city, count(*) FROM data GROUP BY 1"')
def query(
    pointer: PointerText,
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help=_LANGUAGES)],
    *,
    save_as: Annotated[
        str | None, typer.Option("--save-as", metavar="NAME", help="Bank the answer by this name.")
    ] = None,
    store: Store = None,
    scope: Scope = "default",
    as_json: Json = False,
) -> None:
    """Ask rows or JSON a question: a table, or in a pipe JSON. A large answer is banked.

    Of an answer that was banked the pointer is printed.
    """
    with opened(store, scope) as bank:
        answer = bank.query(pointer, expression, save_as=save_as)
    if as_json:
        _write_json(answer_wire(answer))
        return
    if answer.artifact is not None:
        write(f"{answer.artifact.pointer}\n")
        note(kept_line(answer.artifact))
    elif is_terminal():
        _draw(answer)
    else:
        _write_json(answer.value)
    note(answer_line(answer))
    if answer.hint is not None:
        note(answer.hint)


def _write_json(value: object) -> None:
    # By our own rule: cells of a table may be dates, or numbers of any length.
    write_document(dumps(value).decode("utf-8", "surrogatepass"))


def _draw(answer: Answer) -> None:
    from ._show_answer import drawn_answer

    draw(drawn_answer(answer.value))
