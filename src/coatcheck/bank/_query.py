"""Questions about artifacts: which language they are in, and what they are about."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from ..content import (
    Budget,
    PieceWriter,
    TooLargeError,
    compile_jmespath,
    compile_jsonpath,
    misspelt,
    nothing_at,
    outline,
    sql_name,
)
from ..errors import (
    InvalidArgumentError,
    InvalidQueryError,
    NothingSelectedError,
    shown,
)
from ..records import Answer, Pointer
from ._derived import (
    MOST_PATH_BYTES,
    Asked,
    Derivations,
    Put,
    Question,
    Result,
    found,
    kept_of_path,
)
from ._keys import LONGEST_NAME, is_name
from ._lookup import Lookup
from ._reader import Reader
from ._record import Record
from ._select import Selections
from ._shared import Shared
from ._threads import in_daemon_thread

if TYPE_CHECKING:
    from ._ask_sql import SqlQueries

_SQL = re.compile(
    r"(?:select|with|from|describe|summarize|pivot|show)[\s(]|\(\s*select\b"
    # What is no query too: it is refused as the SQL that it is.
    r"|(?:explain|insert|update|delete|drop|create|alter|copy|attach|install|pragma)\s",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
"""What may stand before a statement; in JSONPath and JMESPath neither comment is."""
_NOTHING: tuple[object, ...] = (None, [], {}, 0)
"""Results that a misspelt key gives, of the languages in which that is no error."""
_NO_STRUCTURE = "the artifact is text, and has no structure"
_LINES_HINT = "Ask in SQL, where its lines are the table data (line_number, line); or search it."


def language_of(expression: str) -> str:
    r"""Return what an expression is read as: ``sql``, ``jsonpath`` or ``jmespath``.

    >>> language_of("SELECT 1"), language_of("$.items"), language_of("from_.x")
    ('sql', 'jsonpath', 'jmespath')
    >>> language_of("-- how many\nSELECT count(*) FROM data"), language_of("DROP TABLE data")
    ('sql', 'sql')
    """
    start = expression.lstrip()
    comment = _COMMENT.match(expression)
    if _SQL.match(start) or (comment and _SQL.match(expression, comment.end())):
        return "sql"
    return "jsonpath" if start.startswith("$") else "jmespath"


class Queries:
    """Answers questions about the artifacts of one scope.

    Args:
        shared: What all scopes of the bank share.
        scope: The plain name of the scope.
        reads: What finds its records, reads payloads, and what selectors pick of them.
        put: Banks an answer.
    """

    def __init__(
        self, shared: Shared, scope: str, reads: tuple[Lookup, Reader, Selections], put: Put
    ) -> None:
        lookup, reader, selections = reads
        self._shared = shared
        self._reader = reader
        self._selections = selections
        self._lookup = lookup
        self._derivations = Derivations(shared, scope, lookup, put)

    async def answer(
        self,
        target: str | Pointer | Mapping[str, str | Pointer],
        expression: str,
        save_as: str | None,
    ) -> Answer:
        """Answer a query; see `Bank.query`."""
        _check(expression, save_as)
        is_named = isinstance(target, Mapping)
        texts = _texts(target) if isinstance(target, Mapping) else {"data": str(target)}
        language = language_of(expression)
        sql = self._asks_sql() if language == "sql" else None
        statement = None if sql is None else await sql.statement(expression)
        if sql is None and len(texts) != 1:
            reason = f"it asks one artifact, and there are {len(texts)}"
            raise InvalidQueryError(language, reason, "Ask in SQL, where each is a table.")
        targets = {name: await found(self._lookup, text) for name, text in texts.items()}
        tables: Mapping[str, Asked] = targets
        if sql is not None and statement is not None:
            tables = await sql.tables_of(statement, targets)
        question = Question(
            language=language,
            expression=expression,
            asked=_each_once([*targets.values(), *tables.values()]),
            sources=_each_once(tables.values()),
            tables={name: asked.pointer for name, asked in targets.items()} if is_named else None,
            name=save_as,
        )

        async def run() -> Result:
            if sql is not None and statement is not None:
                return await sql.run(statement, tables)
            (asked,) = targets.values()
            return await self._by_path(language, expression.strip(), asked)

        return await self._derivations.answer(question, run)

    def _asks_sql(self) -> "SqlQueries":
        from ._worker import spares

        if "coatcheck.bank._ask_sql" not in sys.modules:
            # While a process starts, there is time to import what else it takes.
            spares().refill()
        from ._ask_sql import SqlQueries
        from ._tables import Tables

        tables = Tables(self._shared, self._reader, self._selections)
        return SqlQueries(self._shared, self._reader, self._lookup, tables)

    async def _by_path(self, language: str, expression: str, asked: Asked) -> Result:
        """Ask in JSONPath or JMESPath."""
        ask, names = _compiled(language, expression)

        async def run(record: Record) -> Result:
            value = await self._value(record, asked, language)
            rows = record.index.rows
            is_text = rows is not None and rows.format in {"csv", "csv;", "tsv"}
            hint = _TEXT_HINT if is_text and _AMONG_NUMBERS.search(expression) else None
            return await in_daemon_thread(lambda: _result_of(ask, names, value, language, hint))

        return await self._reader.found(asked.record.artifact.id, run)

    async def _value(self, record: Record, asked: Asked, language: str) -> object:
        if asked.selector is None:
            try:
                return await self._selections.tree(record)
            except NothingSelectedError:
                self._reader.view(record).check_text()
                raise InvalidQueryError(language, _NO_STRUCTURE, _LINES_HINT) from None
        found = await self._selections.value(record, selector=asked.selector)
        return None if found is None else found[0]


_AMONG_NUMBERS = re.compile(r"[<>=]\s*[`(]?\s*-?\d")
_TEXT_HINT = "Fields of CSV and TSV are text here: ask in SQL to compare numbers."

_Ask = Callable[[object, Budget], tuple[object, int]]


def _compiled(language: str, expression: str) -> tuple[_Ask, tuple[str, ...]]:
    """Return what asks a value and counts what it finds, and the keys that it asks for.

    Raises:
        InvalidQueryError: The expression is wrong.
    """
    if language == "jmespath":
        asked = compile_jmespath(expression)
        return lambda value, budget: _counted(asked.search(value, budget)), asked.names
    path = compile_jsonpath(expression)

    def find(value: object, budget: Budget) -> tuple[object, int]:
        nodes = path.find(value, budget)
        if not path.is_singular:
            return nodes, len(nodes)
        if not nodes:
            raise nothing_at(expression, outline(value))
        return nodes[0], 1

    return find, path.names


def _counted(value: object) -> tuple[object, int]:
    return value, len(cast("list[object]", value)) if isinstance(value, list) else 1


def _result_of(
    ask: _Ask, names: tuple[str, ...], value: object, language: str, hint: str | None
) -> Result:
    """Return what a path finds; `hint` is said where that is nothing, and no name is misspelt."""
    budget = Budget()
    found, count = ask(value, budget)
    try:
        written = PieceWriter(MOST_PATH_BYTES, budget.check).written(found)
    except TooLargeError:
        reason = f"its result is larger than {MOST_PATH_BYTES // 2**20:,} MiB"
        remedy = "Filter first, or take fewer fields."
        raise InvalidQueryError(language, reason, remedy) from None
    return Result(
        payload=written.payload,
        count=count,
        rows=written.rows,
        value=(written.value,),
        keeps=kept_of_path(value, found),
        # Only where it may help: the keys of a whole artifact are looked through for it.
        hint=(misspelt(names, value) or hint) if found in _NOTHING else None,
    )


def _texts(target: Mapping[str, str | Pointer]) -> dict[str, str]:
    """Return tables by name, checked.

    Raises:
        InvalidArgumentError: There are none, or two that SQL does not tell apart.
    """
    texts = {name: str(text) for name, text in target.items()}
    if not texts or not all(texts) or len({sql_name(name) for name in texts}) != len(texts):
        raise InvalidArgumentError(
            "tables need a name each, which capitals do not tell apart",
            'Give a pointer for each name: {"orders": "art:…", "customers": "art:…"}.',
        )
    return texts


def _each_once(asked: Iterable[Asked]) -> list[Asked]:
    return list({each.key: each for each in asked}.values())


def _check(expression: str, save_as: str | None) -> None:
    """Pass where a query can be asked at all.

    Raises:
        InvalidArgumentError: The expression is empty or no text, or the name is none.
    """
    if not isinstance(expression, str) or not expression.strip():
        raise InvalidArgumentError(
            "the query is empty", "Ask in SQL (SELECT …), JSONPath ($…) or JMESPath."
        )
    if save_as is not None and not (isinstance(save_as, str) and is_name(save_as)):
        raise InvalidArgumentError(
            f"a name has 1 to {LONGEST_NAME} printable characters and is no pointer, "
            f"got {shown(save_as)}",
            "Leave the name out, or choose a short label.",
        )
