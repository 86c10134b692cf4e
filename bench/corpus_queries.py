"""Questions about records: asked in SQL, JSONPath and JMESPath, and held against the glimpse.

A query is made of what a question names (where its records are, a field, a condition). Where it
says that in words only, the words are put into a query by hand, below; never the answer.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from coatcheck import Artifact, Bank

Params = Mapping[str, Any]
Answer = dict[str, object]

_TEXT_TABLES = frozenset({"text/csv", "text/tab-separated-values"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    id: str
    file: str
    kind: str
    params: Mapping[str, Any]
    answer: Mapping[str, object]
    records_path: str | None
    """Where the records of the file are, as this question or the first that says so has it."""

    @property
    def worded(self) -> "Worded":
        return WORDED.get(self.id, Worded())


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """What a question says in words, as a query."""

    rows: str | None = None
    """JMESPath that makes rows first; they are banked, and asked in turn."""
    field: str | None = None
    """SQL expression of the field that is asked for."""
    where: str | None = None
    """SQL condition that a row has to meet."""
    count: str | None = None
    """JMESPath or SQL of the count that is asked for."""
    search: str | None = None
    """What is counted in the text as it is."""
    is_regex: bool = False
    value: str | None = None
    """JMESPath or SQL of the value that is asked for."""


WORDED = {
    "discord-openapi-04": Worded(
        rows="paths.*.keys(@)[].{method: @}", field="method", where="method <> 'parameters'"
    ),
    "cloudtrail-minified-05": Worded(field='"errorCode"'),
    "kafka-state-change-02": Worded(
        field=r"regexp_extract(line, '\] (TRACE|INFO|ERROR|WARN) ', 1)",
        where=r"regexp_matches(line, '\] (TRACE|INFO|ERROR|WARN) ')",
    ),
    "java-thread-dump-02": Worded(
        field=r"regexp_extract(line, 'java\.lang\.Thread\.State: (\w+)', 1)",
        where="line LIKE '%java.lang.Thread.State: %'",
    ),
    "bird-strikes-crlf-09": Worded(count='SELECT count(DISTINCT "Airport Name") AS n FROM data'),
    "minikube-strings-el-03": Worded(count="length(values(@)[?@ == ''])"),
    "product-categories-minified-03": Worded(count="max([].length(path))"),
    "product-categories-minified-04": Worded(field='len("subCategories")'),
    "gsm8k-test-03": Worded(value="SELECT trim(split_part(answer, '####', 2)) AS value FROM data"),
    "gsm8k-test-05": Worded(field="length(question)"),
    "kwok-vpa-02": Worded(count="length([1:])"),
    "kwok-vpa-03": Worded(rows="[1:].{kind: [1]}", field="kind"),
    "kwok-vpa-04": Worded(rows="[1:].{time: [0]}", field="time"),
    "nghttp2-08": Worded(count="max(log.entries[].length(response.content.text || ''))"),
    "notebook-configuration-04": Worded(count='length(cells[].outputs[].data."image/png")'),
    "okta-mcp-tools-03": Worded(count="length([?starts_with(name, 'list_')])"),
    "github-mcp-tools-list-03": Worded(count="length(result.tools[?annotations.readOnlyHint])"),
    "github-mcp-tools-list-04": Worded(
        rows="result.tools[].{count: length(inputSchema.required || `[]`)}", field="count"
    ),
    "irs-i1040nr-02": Worded(search="\f"),
    "pytest-color-failures-02": Worded(search="\x1b"),
    "playwright-snapshot-02": Worded(search=r"\[ref=[^\]]*\]", is_regex=True),
    "playwright-snapshot-04": Worded(
        field=r"regexp_extract(line, '^ *- (\w+)', 1)",
        where=r"regexp_matches(line, '^ *- \w+.*\[ref=')",
    ),
}


async def record_count(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    """Count records by SQL, by JMESPath and by a selector: one number, or all where they differ."""
    worded, pointer, path = question.worded, artifact.pointer, question.records_path
    if worded.search is not None:
        found = await bank.search(pointer, worded.search, regex=worded.is_regex, ignore_case=False)
        return {"count": found.total_matches}
    if worded.count is not None:
        return {"count": await _value(bank, pointer, worded.count)}
    selected = cast("Sequence[object]", await bank.get(f"{pointer}#{path or '$'}"))
    counts = {"selector": len(selected)}
    if path is not None:
        counts["jmespath"] = await _number(bank, pointer, f"length({_jmespath(path) or '@'})")
    if isinstance(selected, list):
        sql = "SELECT count(*) AS n FROM data"
        counts["sql"] = await _number(bank, _table(pointer, path), sql)
    return {"count": counts["selector"] if len(set(counts.values())) == 1 else counts}


async def top_values(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    table = await _rows(bank, artifact, question)
    worded, params = question.worded, question.params
    field = worded.field or _column(artifact, params["field"])
    present = f"{field} IS NOT NULL" + (f" AND {worded.where}" if worded.where else "")
    top = await bank.query(
        table,
        f"SELECT {field} AS value, count(*) AS count FROM data WHERE {present} "
        f"GROUP BY 1 ORDER BY count DESC, value LIMIT {params['k']}",
    )
    sql = f"SELECT count(DISTINCT {field}) AS n FROM data WHERE {present}"
    return {"top": top.value, "distinct": await _number(bank, table, sql)}


async def numeric_stats(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    table = await _rows(bank, artifact, question)
    field = question.worded.field or _column(artifact, question.params["field"])
    found = await bank.query(
        table,
        f"SELECT count({field}) AS count, count(*) - count({field}) AS missing, "
        f"min({field}) AS min, max({field}) AS max, avg({field}) AS mean, sum({field}) AS sum "
        "FROM data",
    )
    return cast("list[Answer]", found.value)[0]


async def field_value(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    """Look a value up: by its row, by its key, or by what another field of its record is."""
    worded, pointer, path = question.worded, artifact.pointer, question.records_path
    where: Params = question.params["where"]
    field: str = question.params["field"]
    row = where.get("record", where.get("line"))
    if row is not None:
        pointer = f"{pointer}#row={row}"
        return {"value": await _value(bank, pointer, worded.value or f"[0].{field}")}
    if "key" in where:
        name = f"{path}[{json.dumps(where['key'])}]"
        selector = name if field == "value" else f"{name}.{field}"
        found = {await _value(bank, pointer, selector), await bank.get(f"{pointer}#{selector}")}
        return {"value": found.pop() if len(found) == 1 else found}
    for by in ("min_by", "max_by"):
        if by in where:
            records = _jmespath(path or "$") or "@"
            return {"value": await _value(bank, pointer, f"{by}({records}, &{where[by]}).{field}")}
    ((name, wanted),) = where.items()
    if path is None:
        wanted = "'" + str(wanted).replace("'", "''") + "'"
        condition = f"{_column(artifact, name)} = {wanted}"
        sql = f"SELECT {_column(artifact, field)} AS value FROM data WHERE {condition}"
        return {"value": await _value(bank, pointer, sql)}
    literal = f"`{json.dumps(wanted)}`"
    within = f"type({name}) == 'array' && contains({name}, {literal})"
    query = f"{_jmespath(path)}[?{name} == {literal} || ({within})] | [0].{field}"
    return {"value": await _value(bank, pointer, query)}


def of_glimpse(artifact: Artifact, question: Question) -> Answer:
    """Return those facts of an answer that the glimpse of the artifact states."""
    facts, path = _table_facts(artifact, question.records_path), question.records_path
    if question.id in WORDED or (path is not None and "*" in path):
        return {}
    if question.kind == "record_count":
        counts = [facts[name] for name in ("rows", "items", "keys") if name in facts]
        return {"count": counts[0]} if counts else {}
    columns: list[dict[str, Any]] = facts.get("columns", [])
    named = [column for column in columns if column["name"] == question.params.get("field")]
    if not named:
        return {}
    if question.kind == "numeric_stats":
        names = {"nulls": "missing", "min": "min", "max": "max", "mean": "mean"}
        return {names[name]: fact for name, fact in named[0].items() if name in names}
    return _top_facts(named[0], question) if question.kind == "top_values" else {}


def _table_facts(artifact: Artifact, path: str | None) -> Params:
    """Return the facts of the whole, or of the rows within an object."""
    facts: Params = {} if artifact.glimpse is None else artifact.glimpse.facts
    inside = (path or "$").split(".")[1:]
    if not inside:
        return facts
    return facts["table"] if facts.get("path") == inside else {}


def _top_facts(column: Params, question: Question) -> Answer:
    ordered = sorted(column.get("top", []), key=lambda each: (-each["count"], str(each["value"])))
    wanted = question.params["k"]
    top = [{"value": each["value"], "count": each["count"]} for each in ordered[:wanted]]
    told: Answer = {"distinct": column["distinct"]}
    return told | {"top": top} if len(top) == wanted else told


def same(given: Params, expected: Params) -> bool:
    """Return whether all facts that are given are those expected."""
    return all(_equal(fact, expected[name], name) for name, fact in given.items())


def _equal(given: object, expected: object, name: str) -> bool:
    # Those of the questions are rounded; sums of floats depend on their order.
    if name in {"mean", "sum"} and isinstance(given, (int, float)):
        return math.isclose(given, cast("float", expected), rel_tol=1e-9, abs_tol=1e-6)
    return given == expected


async def _rows(bank: Bank, artifact: Artifact, question: Question) -> str:
    """Return a pointer to the rows that a question is about."""
    rows = question.worded.rows
    if rows is None:
        return _table(artifact.pointer, question.records_path)
    derived = (await bank.query(artifact.pointer, rows, save_as=question.id)).artifact
    if derived is None:
        raise TypeError(f"no artifact was made of {rows}")
    return derived.pointer


def _table(pointer: str, path: str | None) -> str:
    """Return a pointer to the list at a path: by JSON Pointer where names alone lead to it."""
    if path is None or path == "$":
        return pointer
    if "*" in path:
        return f"{pointer}#{path}"
    return f"{pointer}#{path.removeprefix('$').replace('.', '/')}"


async def _value(bank: Bank, pointer: str, query: str) -> object:
    """Return the one value that a query gives, of SQL that of its one row."""
    value = (await bank.query(pointer, query)).value
    if not query.startswith("SELECT "):
        return value
    ((only,),) = (row.values() for row in cast("list[Answer]", value))
    return only


async def _number(bank: Bank, pointer: str, query: str) -> int:
    return cast("int", await _value(bank, pointer, query))


def _jmespath(path: str) -> str:
    return path.removeprefix("$").removeprefix(".")


def _column(artifact: Artifact, field: str) -> str:
    """Return a field as SQL names it: what a field of JSON holds is reached by its parts."""
    parts = [field] if artifact.content_type in _TEXT_TABLES else field.split(".")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
