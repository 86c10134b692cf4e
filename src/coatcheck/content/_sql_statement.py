"""What one SQL statement does, read from DuckDB's own syntax tree: allowed or refused."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import orjson

from ..errors import InvalidQueryError, shown
from ..records import dataclass
from ._sql_engine import sql_name
from ._sql_functions import FUNCTIONS, JSON_FUNCTIONS, OPERATORS, TABLE_FUNCTIONS

LONGEST_SQL = 10_000
"""Most characters of a statement."""

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EMPTY", "EXPRESSION_LIST", "PIVOT"}
)
_MODIFIERS = frozenset(
    {
        *("DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"),
        *("ORDER_DEFAULT", "ASCENDING", "DESCENDING", "ORDER_ASCENDING", "ORDER_DESCENDING"),
    }
)
_NODES = _QUERIES | _TABLES | _MODIFIERS
_EXPRESSIONS = frozenset(
    {
        *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION"),
        *("CONSTANT", "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE"),
        *("STAR", "SUBQUERY", "TYPE", "WINDOW"),
    }
)
_COMPARING = frozenset({"BETWEEN", "COMPARISON"})
_OPERANDS = ("left", "right", "input", "lower", "upper", "child")
_IN = frozenset({"COMPARE_IN", "COMPARE_NOT_IN"})

_HALF = re.compile("[\ud800-\udfff]")
_LONG_HINT = 'Bank a long list of values, and join with it: FROM "art:…".'
_ONLY_SELECT = "only SELECT and WITH statements run"
_HINTS = {
    "describe": "SELECT * FROM data LIMIT 3 shows its columns.",
    "from": "Begin with SELECT: SELECT * FROM data.",
    "pivot": "Write it as SELECT … GROUP BY, with sum(…) FILTER (WHERE …) for each column.",
    "show": "The artifact is the table data. SELECT * FROM data LIMIT 3 shows its columns.",
    "summarize": "SELECT count(*), min(x), max(x), avg(x) FROM data, for each column x.",
}

_Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One SELECT that may run."""

    sql: str
    tables: Mapping[str, bool]
    """The tables that it reads, by name as it writes them; and whether it needs every column."""
    names: frozenset[str]
    """All that may be the name of a column."""
    scalars: frozenset[str]
    """Those of them that stand where one text or number is expected."""
    aliases: frozenset[str]
    """Names that it gives, in lower case."""


def check_words(sql: str) -> None:
    """Pass where a text may be a statement, before any of it is parsed.

    Raises:
        InvalidQueryError: It is too long, or begins with what does not run.
    """
    if len(sql) > LONGEST_SQL:
        reason = f"it has {len(sql):,} characters, and may have {LONGEST_SQL:,}"
        raise refused(reason, _LONG_HINT)
    word = sql.lstrip(" \t\r\n(").partition("(")[0].split(None, 1)[0:1]
    first = sql_name(word[0]) if word else ""
    if first in _HINTS:
        raise refused(_ONLY_SELECT, _HINTS[first])
    if "\x00" in sql:
        raise refused("it has a NUL character", "Leave it out, or write chr(0).")
    if _HALF.search(sql):
        raise refused("it has half of a character, a lone surrogate", "Leave it out.")


def read_statement(tree: str, sql: str) -> Statement:
    """Return what a statement does.

    Args:
        tree: What DuckDB's ``json_serialize_sql`` made of it.
        sql: Its text.

    Raises:
        InvalidQueryError: It is no single SELECT, or does what it may not; the reason says what.
    """
    try:
        parsed: dict[str, Any] = orjson.loads(tree)
    except ValueError:
        hint = "Use fewer brackets, or a WITH for each part."
        raise refused("it is nested too deep", hint) from None
    if parsed.get("error"):
        if parsed.get("error_type") == "not implemented":
            raise refused(_ONLY_SELECT, "Ask with one SELECT. Nothing here can be changed by SQL.")
        raise refused(_clipped(str(parsed.get("error_message"))), _quotes_hint(sql))
    statements = cast("list[_Node]", parsed["statements"])
    if len(statements) != 1:
        raise refused(f"it has {len(statements)} statements", "Ask one SELECT at a time.")
    reading = _Reading()
    reading.walk(statements[0])
    return Statement(
        sql=sql,
        tables=reading.whole_tables(),
        names=frozenset(reading.names),
        scalars=frozenset(reading.scalars),
        aliases=frozenset(reading.aliases),
    )


def refused(reason: str, hint: str = "") -> InvalidQueryError:
    """Return the error of a statement that does not run."""
    return InvalidQueryError("sql", reason, hint)


@dataclass(slots=True)
class _Scope:
    """What one SELECT reads from, by the names that it can be called there."""

    tables: list[tuple[str, str]] = field(default_factory=list["tuple[str, str]"])
    """What it is called, in lower case, and the table."""


_Step = tuple[object, frozenset[str], _Scope]


class _Reading:
    """A walk over one syntax tree: with a stack of its own, as it may be deep."""

    def __init__(self) -> None:
        self.tables: dict[str, bool] = {}
        self.names: set[str] = set()
        self.scalars: set[str] = set()
        self.aliases: set[str] = set()
        self._called: list[tuple[str, str]] = []
        self._single: set[str] = set()
        self._needs_all = False

    def whole_tables(self) -> dict[str, bool]:
        """Return the tables, and of which every column is needed."""
        # A table's own name among the columns stands for the whole row.
        rows = {table for called, table in self._called if called in self._single}
        return {
            table: whole or self._needs_all or table in rows for table, whole in self.tables.items()
        }

    def walk(self, root: object) -> None:
        """Look at every part.

        Raises:
            InvalidQueryError: One may not be there.
        """
        stack: list[_Step] = [(root, frozenset(), _Scope())]
        while stack:
            node, known, scope = stack.pop()
            if isinstance(node, list):
                stack.extend((each, known, scope) for each in cast("list[object]", node))
            elif isinstance(node, dict):
                self._look(cast("_Node", node), known, scope, stack)

    def _look(self, node: _Node, known: frozenset[str], scope: _Scope, stack: list[_Step]) -> None:
        kind: object = node.get("type")
        if isinstance(node.get("alias"), str) and node["alias"]:
            self.aliases.add(sql_name(node["alias"]))
        parts: Iterable[object] = node.values()
        if "class" in node:
            self._expression(node, scope)
        elif isinstance(kind, str):
            if kind not in _NODES and not kind.endswith("_TYPE_INFO"):
                raise refused(_kind_refused(kind), _hint_of(kind))
            if kind in _QUERIES:
                known, scope = self._query(node, known, scope, stack)
                parts = [part for key, part in node.items() if key != "cte_map"]
            elif kind == "TABLE_FUNCTION":
                parts = self._table_function(node)
            else:
                self._table(node, kind, known)
        stack.extend((part, known, scope) for part in parts)

    def _query(
        self, node: _Node, known: frozenset[str], scope: _Scope, stack: list[_Step]
    ) -> tuple[frozenset[str], _Scope]:
        """Take note of the tables that a query names for itself."""
        if node["type"] == "RECURSIVE_CTE_NODE":
            known |= {sql_name(str(node["cte_name"]))}
        cte_map = cast("_Node", node.get("cte_map") or {})
        entries = cast("list[_Node]", cte_map.get("map") or [])
        for entry in entries:
            # Each sees those before it; its own name is still that of a table.
            stack.append((entry["value"], known, _Scope()))
            known |= {sql_name(str(entry["key"]))}
        if node["type"] != "SELECT_NODE":
            return known, scope
        inner = _Scope()
        self._read_from(node.get("from_table"), known, inner)
        return known, inner

    def _read_from(self, node: object, known: frozenset[str], scope: _Scope) -> None:
        """List the tables that stand directly in a FROM."""
        waiting = [node]
        while waiting:
            table = waiting.pop()
            if not isinstance(table, dict):
                continue
            table = cast("_Node", table)
            waiting += (table.get("left"), table.get("right"), table.get("source"))
            name: object = table.get("table_name")
            if table.get("type") == "BASE_TABLE" and isinstance(name, str):
                if sql_name(name) in known:
                    continue
                called = sql_name(str(table.get("alias") or name))
                scope.tables.append((called, name))
                self._called.append((called, name))
            elif table.get("type") == "PIVOT":
                self._needs_all = True

    def _table(self, node: _Node, kind: str, known: frozenset[str]) -> None:
        if kind == "JOIN":
            if node.get("ref_type") in {"NATURAL", "POSITIONAL"}:
                self._needs_all = True
            self.names.update(node.get("using_columns") or ())
        elif kind == "BASE_TABLE":
            name = str(node.get("table_name"))
            if node.get("schema_name") or node.get("catalog_name") or _is_qualified(node):
                raise refused(
                    f"the table {shown('.'.join(_path(node)) or name)} is not there",
                    "A table has one name: data, or a pointer or name in double quotes.",
                )
            if node.get("at_clause"):
                raise refused("a table has one version only", "Leave AT out.")
            if sql_name(name) not in known:
                self.tables.setdefault(name, False)
                self._needs_all |= bool(node.get("column_name_alias"))

    def _table_function(self, node: _Node) -> Iterable[object]:
        function = cast("_Node", node.get("function") or {})
        name = str(function.get("function_name"))
        if _is_qualified(function) or sql_name(name) not in TABLE_FUNCTIONS:
            raise refused(
                f"{shown(name)} may not stand in place of a table",
                f"Allowed are {', '.join(sorted(TABLE_FUNCTIONS))}. Other artifacts are tables "
                'by their pointer or name in double quotes: FROM "art:…".',
            )
        rest = (part for key, part in node.items() if key != "function")
        return (*rest, *(part for key, part in function.items() if key != "type"))

    def _expression(self, node: _Node, scope: _Scope) -> None:
        kind = node["class"]
        if kind not in _EXPRESSIONS:
            raise refused(_kind_refused(str(kind)), _hint_of(str(kind)))
        if kind in {"FUNCTION", "WINDOW"}:
            self._function(node)
        elif kind == "COLUMN_REF":
            parts = cast("list[str]", node.get("column_names") or [])
            self.names.update(parts)
            if len(parts) == 1:
                self._single.add(sql_name(parts[0]))
        elif kind == "STAR":
            self._star(node, scope)
        elif kind == "POSITIONAL_REFERENCE":
            self._needs_all = True
        elif kind in _COMPARING or node.get("type") in _IN:
            self._scalar([*(node.get(key) for key in _OPERANDS), *(node.get("children") or ())])
        elif kind == "SUBQUERY":
            self._scalar([node.get("child")])
        elif kind == "TYPE" and _is_qualified(node):
            reason = f"there is no type {shown('.'.join(_path(node)))}"
            raise refused(reason, "Take a type of DuckDB: BIGINT, DOUBLE, VARCHAR, TIMESTAMP.")

    def _function(self, node: _Node) -> None:
        name = str(node.get("function_name"))
        allowed = OPERATORS if node.get("is_operator") else FUNCTIONS
        if _is_qualified(node) or node.get("schema") or node.get("catalog"):
            reason = f"{shown('.'.join(_path(node)))} is no function that may be called"
            raise refused(reason, "Write the name of a function alone, without a schema.")
        if sql_name(name) not in allowed and sql_name(name) not in FUNCTIONS:
            raise _no_function(name)
        if sql_name(name) not in JSON_FUNCTIONS:
            self._scalar(_arguments(node))

    def _star(self, node: _Node, scope: _Scope) -> None:
        if node.get("columns") and not node.get("expr"):
            return  # ORDER BY ALL: of what is selected
        of = sql_name(str(node.get("relation_name") or ""))
        found = [table for called, table in scope.tables if not of or called == of]
        if of and not found:
            self._needs_all = True
        self.tables.update(dict.fromkeys(found, True))

    def _scalar(self, operands: Sequence[object]) -> None:
        for operand in operands:
            if isinstance(operand, dict):
                node = cast("_Node", operand)
                names = cast("list[str]", node.get("column_names") or [])
                self.scalars.update(names if node.get("class") == "COLUMN_REF" else ())


def _no_function(name: str) -> InvalidQueryError:
    from difflib import get_close_matches

    close = get_close_matches(sql_name(name), FUNCTIONS, n=2, cutoff=0.75)
    meant = f"Is {' or '.join(map(repr, close))} meant? " if close else ""
    return refused(
        f"the function {shown(name)} is unknown, or may not be called",
        f"{meant}Functions that compute from their arguments may be called; those that read "
        "settings, files or state may not.",
    )


def _arguments(node: _Node) -> list[object]:
    listed = cast("list[object]", [*(node.get("arguments") or ()), *(node.get("children") or ())])
    return [
        cast("_Node", each).get("expression", each) if isinstance(each, dict) else each
        for each in listed
    ]


def _path(node: _Node) -> list[str]:
    named = cast("_Node", node.get("qualified_name") or {})
    return cast("list[str]", named.get("path") or [])


def _is_qualified(node: _Node) -> bool:
    return len(_path(node)) > 1


def _kind_refused(kind: str) -> str:
    if kind == "PARAMETER":
        return "it has parameters, and there are no values for them"
    if kind in {"INSERT_QUERY_NODE", "UPDATE_QUERY_NODE", "DELETE_QUERY_NODE"} or (
        kind.endswith("_QUERY_NODE")
    ):
        return f"{_ONLY_SELECT}, and this one would change a table"
    words = kind.removesuffix("_NODE").removesuffix("_REF").replace("_", " ")
    return f"{words} is not allowed"


def _hint_of(kind: str) -> str:
    if kind == "PARAMETER":
        return "Write the values themselves, text in single quotes."
    if kind == "SHOW_REF":
        return _HINTS["describe"]
    return "Ask with one SELECT. Nothing here can be changed by SQL."


def _clipped(text: str) -> str:
    line = text.partition("\n")[0].strip().rstrip(".")
    return line if len(line) <= 200 else f"{line[:200]}…"


def _quotes_hint(sql: str) -> str:
    if "art:" in sql and '"art:' not in sql:
        return 'A pointer is a table in double quotes: FROM "art:…".'
    return "Text stands in single quotes, names of columns and tables in double quotes."
