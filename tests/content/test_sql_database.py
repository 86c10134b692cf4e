"""Results as JSON: exact, whatever the type, as the process of a database makes them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import MEMORY_EXIT
from coatcheck.content._sql_database import MEMORY_EXIT as ENDS_WITH
from coatcheck.content._sql_database import Database, unique
from coatcheck.content._sql_worker import connect

NO_LIMIT = 1 << 60
"""Here the process that would be ended is that of the tests."""

CASES: list[tuple[str, object]] = [
    ("1", 1),
    ("9223372036854775807", 2**63 - 1),
    ("18446744073709551615::UBIGINT", 2**64 - 1),
    ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
    (f"'{10**40 + 1}'::BIGNUM", 10**40 + 1),
    ("1.5", 1.5),
    ("0.1::DOUBLE + 0.2::DOUBLE", 0.1 + 0.2),
    ("'nan'::DOUBLE", "NaN"),
    ("'inf'::DOUBLE", "Infinity"),
    ("'-inf'::FLOAT", "-Infinity"),
    ("123456789012.345::DECIMAL(18, 3)", 123456789012.345),
    ("1234567890123.456::DECIMAL(18, 3)", "1234567890123.456"),
    ("true", True),
    ("NULL", None),
    ("'żółć'", "żółć"),
    ("chr(0) || '\"'", '\x00"'),
    ("DATE '2026-11-30'", "2026-11-30"),
    ("'290000-01-01'::DATE", "290000-01-01"),
    ("TIME '08:15:00.5'", "08:15:00.500000"),
    ("TIMESTAMP '2026-11-30 08:15:00'", "2026-11-30T08:15:00"),
    ("TIMESTAMPTZ '2026-11-30 08:15:00+02'", "2026-11-30T06:15:00+00:00"),
    ("'2026-11-30 08:15:00.123456789'::TIMESTAMP_NS", "2026-11-30 08:15:00.123456789"),
    ("INTERVAL '1 month 3 days'", "1 month 3 days"),
    (
        "['2026-11-30 08:15:00.123456789'::TIMESTAMP_NS, NULL]",
        ["2026-11-30 08:15:00.123456789", None],
    ),
    ("[[INTERVAL '1 day'], []]", [["1 day"], []]),
    ("[INTERVAL '1 day']::INTERVAL[1]", ["1 day"]),
    ("'infinity'::DATE", "infinity"),
    ("'-infinity'::DATE", "-infinity"),
    ("'infinity'::TIMESTAMP", "infinity"),
    ("'-infinity'::TIMESTAMP", "-infinity"),
    ("'infinity'::TIMESTAMP_S", "infinity"),
    ("'-infinity'::TIMESTAMP_MS", "-infinity"),
    ("'infinity'::TIMESTAMP_NS", "infinity"),
    ("'infinity'::TIMESTAMPTZ", "infinity"),
    ("'9999-12-31'::DATE", "9999-12-31"),
    ("'0001-01-01'::DATE", "0001-01-01"),
    ("'9999-12-31 23:59:59.999999'::TIMESTAMP", "9999-12-31T23:59:59.999999"),
    ("NULL::DATE", None),
    ("'ab'::BLOB", "YWI="),
    ("'101'::BIT", "101"),
    ("'00000000-0000-4000-8000-000000000005'::UUID", "00000000-0000-4000-8000-000000000005"),
    ("'a'::ENUM('a', 'b')", "a"),
    ("[1, NULL, 3]", [1, None, 3]),
    ("[1, 2]::INTEGER[2]", [1, 2]),
    ("[DATE '2026-01-01']", ["2026-01-01"]),
    ("{'a': 1, 'b': {'c': 'nan'::DOUBLE, 'd': NULL}}", {"a": 1, "b": {"c": "NaN", "d": None}}),
    ("MAP {'k': 1}", {"k": 1}),
    ("MAP {1: DATE '2026-01-01'}", {"1": "2026-01-01"}),
    ("row(1, 'x')", [1, "x"]),
    ("union_value(a := DATE '2026-01-01')", "2026-01-01"),
    (
        "'{\"a\": [1, 123456789012345678901234567890, 0.5, null]}'::JSON",
        {"a": [1, 123456789012345678901234567890, 0.5, None]},
    ),
    ("'\"x\"'::JSON", "x"),
    ("'1e400'::JSON", "Infinity"),
    ("{'j': '[1]'::JSON}", {"j": [1]}),
    ("['[1]'::JSON]", [[1]]),
]


def ask(database: Database, sql: str, **options: Any) -> list[Any]:
    request: dict[str, Any] = {
        "ask": sql,
        "views": [],
        "seconds": 10.0,
        "most_bytes": 10**6,
        "bare": False,
    }
    return [json.loads(message) for message in database.answer({**request, **options})]


@pytest.fixture(scope="module")
def database() -> Database:
    return Database(connect(), NO_LIMIT)


@pytest.mark.parametrize(("expression", "value"), CASES)
def test_a_result_is_exact_json(database: Database, expression: str, value: object) -> None:
    rows, end = ask(database, f"SELECT {expression} AS x -- a comment")

    assert rows == [{"x": value}]
    assert end == {"count": 1, "names": ["x"], "bare": False}


def test_rows_come_in_chunks_of_1024(database: Database) -> None:
    first, second, end = ask(database, "SELECT range AS a, range * 2**40 AS b FROM range(1025)")

    assert (len(first), len(second), end["count"]) == (1_024, 1, 1_025)
    assert second == [{"a": 1_024, "b": 1_024 * 2.0**40}]


def test_a_number_of_over_64_bits_is_exact_in_later_chunks_too(database: Database) -> None:
    *_, last, _ = ask(database, "SELECT 18446744073709551616 + range AS a FROM range(1025)")

    assert last == [{"a": 2**64 + 1_024}]


def test_columns_of_one_name_are_told_apart(database: Database) -> None:
    (row,), end = ask(database, "SELECT 1 AS a, 2 AS a, 3 AS a_2")

    assert row == {"a": 1, "a_3": 2, "a_2": 3}
    assert end["names"] == ["a", "a_3", "a_2"]


def test_each_of_very_many_columns_of_one_name_is_told_apart(database: Database) -> None:
    (row,), end = ask(database, "SELECT " + "1," * 2_000 + "1")

    assert len(row) == len(set(end["names"])) == 2_001
    assert (end["names"][0], end["names"][-1]) == ("1", "1_2001")


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "a_2_2", "b"]), max_size=12))
def test_names_of_columns_are_unique_and_the_first_of_each_is_its_own(names: list[str]) -> None:
    found = unique(names)

    assert len(set(found)) == len(found) == len(names)
    assert all(found[names.index(name)] == name for name in names)


def test_dates_that_are_infinite_and_others_keep_their_order(database: Database) -> None:
    sql = (
        "SELECT range AS n, CASE range WHEN 1 THEN 'infinity' ELSE DATE '2026-01-01' END AS d, "
        "CASE range WHEN 0 THEN '-infinity' ELSE TIMESTAMP '2026-01-01' END AS \"D\" "
        "FROM range(1500) ORDER BY range -- a comment"
    )

    first, second, end = ask(database, sql + "\n;")

    assert first[0] == {"n": 0, "d": "2026-01-01", "D": "-infinity"}
    assert first[1] == {"n": 1, "d": "infinity", "D": "2026-01-01T00:00:00"}
    assert [row["n"] for row in (*first, *second)] == list(range(1_500))
    assert end["names"] == ["n", "d", "D"]


def test_the_one_column_value_is_a_list_where_that_is_asked_for(
    database: Database,
) -> None:
    sql = "SELECT range AS Value FROM range(2)"

    assert ask(database, sql, bare=True)[0] == [0, 1]
    assert ask(database, sql)[0] == [{"Value": 0}, {"Value": 1}]
    assert ask(database, "SELECT 1 AS value, 2 AS b", bare=True)[0] == [{"value": 1, "b": 2}]


def test_no_rows_have_names(database: Database) -> None:
    assert ask(database, "SELECT 1 AS a WHERE false") == [
        {"count": 0, "names": ["a"], "bare": False}
    ]


def test_a_result_up_to_the_bound_is_given_and_a_larger_one_is_not(
    database: Database,
) -> None:
    sql = "SELECT 'xxxxx' AS a"

    assert ask(database, sql, most_bytes=len('[{"a":"xxxxx"}]'))[-1]["count"] == 1
    assert ask(database, sql, most_bytes=len('[{"a":"xxxxx"}]') - 1) == [
        {"error": "size", "text": ""}
    ]


def test_views_are_gone_after_the_statement(database: Database) -> None:
    view = "CREATE TEMP VIEW data AS SELECT 7 AS a"

    assert ask(database, "SELECT * FROM data", views=[view])[0] == [{"a": 7}]
    assert ask(database, "SELECT * FROM data")[-1]["error"] == "CatalogException"


def test_what_takes_too_long_is_stopped(database: Database) -> None:
    sql = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7"

    assert ask(database, sql, seconds=0.05) == [{"error": "deadline", "text": ""}]


def test_rows_that_are_fetched_too_late_are_not_given(database: Database) -> None:
    assert ask(database, "SELECT 1", seconds=0.0)[-1]["error"] == "deadline"


def test_statements_of_ours_give_the_rows_of_the_last_one() -> None:
    database = Database(connect(), NO_LIMIT)
    statements: list[Any] = [["CREATE TABLE t (a INTEGER)", []], ["SELECT $1::INTEGER + 1", [41]]]

    (end,) = database.answer({"sql": statements, "seconds": 10.0})

    assert json.loads(end) == {"rows": [[42]]}


def test_an_error_is_told_by_its_class(database: Database) -> None:
    ((end),) = ask(database, "SELECT 'x'::INTEGER")

    assert end["error"] == "ConversionException"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '/tmp/coatcheck-test'",
        "ATTACH '/tmp/coatcheck-test.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '90GB'",
        "SET enable_external_access = true",
        "RESET threads",
        "PRAGMA enable_profiling",
    ],
)
def test_a_sealed_database_refuses_what_no_check_of_ours_would_let_pass(sql: str) -> None:
    database = Database(connect(), NO_LIMIT)
    list(database.answer({"seal": True, "seconds": 10.0}))

    (end,) = database.answer({"sql": [[sql, []]], "seconds": 10.0})

    assert "error" in json.loads(end)


def test_both_sides_know_the_same_end_for_want_of_memory() -> None:
    assert ENDS_WITH == MEMORY_EXIT
