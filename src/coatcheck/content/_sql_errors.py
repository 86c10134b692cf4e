"""What the engine says when it refuses, in words for whoever asked: no payload, no file names."""

import re
from collections.abc import Sequence

from ..errors import CoatcheckError, DeadlineError
from ._sql_engine import EngineError
from ._sql_names import shown_columns, unknown_column
from ._sql_statement import refused

_LONGEST = 300
_CLASS = re.compile(r"^[A-Za-z ]+ Error: ")
_REST = re.compile(r"\n\s*(?:LINE \d+:|Candidate functions)|\n\n", re.ASCII)
_GUESS = re.compile(r"(Table with name .*?)\s*Did you mean", re.DOTALL)
"""Where the engine guesses a table: of its own ones too, which are not for models."""
_QUOTE = re.compile(r"""\s*(?:(?<!\w)['"]|[:("]|\n)""")
"""Where a message may begin to quote what it stumbled on."""
_NUMBER = re.compile(r"(?<![\w.])-?\d[\w.,+-]*")
_NO_COLUMN = re.compile(
    r'Referenced column "(.+?)" (?:was )?not found|does not have a column named "(.+?)"', re.DOTALL
)
_WITHOUT_TEXT = {
    "ended": ("the process that runs SQL ended before it answered", "Ask again."),
    "memory": (
        "it takes more memory than a query may have",
        "Filter first, take fewer columns, or aggregate.",
    ),
}
_CAST = "TRY_CAST(x AS type) gives null where a value cannot be cast."


def engine_refusal(
    error: EngineError, *, seconds: float, most_bytes: int, columns: Sequence[str]
) -> CoatcheckError:
    """Return the error that a model gets.

    Args:
        error: What the engine said.
        seconds: What a query may take.
        most_bytes: What a result may take, as JSON.
        columns: Of the tables that were asked.
    """
    if error.kind == "deadline":
        hint = "Filter first, take fewer rows, and join on a condition."
        return DeadlineError("The SQL query", seconds, hint)
    if error.kind == "size":
        reason = f"its result is larger than {most_bytes // 2**20:,} MiB"
        return refused(reason, "Aggregate, take fewer columns, or set a LIMIT.")
    if error.kind in _WITHOUT_TEXT:
        return refused(*_WITHOUT_TEXT[error.kind])
    text = _CLASS.sub("", error.text)
    missing = _NO_COLUMN.search(text) if error.is_bound else None
    if missing is not None:
        return unknown_column(missing[1] or missing[2], columns)
    if error.is_bound:  # then it can quote the statement only
        guess = _GUESS.match(text)
        text = text if guess is None else guess[1]
        text = _REST.split(text, maxsplit=1)[0].replace("\n", " ")
        hint = shown_columns(columns) if "column" in text.lower() else ""
        return refused(_clipped(text), hint or "Cast where a type does not fit: CAST(x AS type).")
    text = _NUMBER.sub("…", _QUOTE.split(text, maxsplit=1)[0])
    return refused(_clipped(text) or "it failed", _CAST)


def _clipped(text: str) -> str:
    text = text.strip().rstrip(".!")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
