"""What a statement does, as it is read from the engine's own syntax tree."""

import pytest
from _duckdb import DuckDBPyConnection, connect

from coatcheck.content._sql_functions import FUNCTIONS, OPERATORS, TABLE_FUNCTIONS
from coatcheck.content._sql_statement import LONGEST_SQL, Statement, check_words, read_statement
from coatcheck.errors import InvalidQueryError

TREE = (
    "SELECT CAST(json_serialize_sql(?, skip_null := true, skip_empty := true, "
    "skip_default := true) AS VARCHAR)"
)


VIEWS = {"duckdb_views": False}


@pytest.fixture(scope="module")
def engine() -> DuckDBPyConnection:
    return connect(":memory:")


def read(engine: DuckDBPyConnection, sql: str) -> Statement:
    check_words(sql)
    ((tree,),) = engine.execute(TREE, [sql]).fetchall()
    return read_statement(tree, sql)


def refusal(engine: DuckDBPyConnection, sql: str) -> InvalidQueryError:
    with pytest.raises(InvalidQueryError) as caught:
        read(engine, sql)
    return caught.value


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT a FROM data", {"data": False}),
        ("SELECT count(*) FROM data", {"data": False}),
        ("SELECT * FROM data", {"data": True}),
        ("SELECT * EXCLUDE (a) FROM data", {"data": True}),
        ("SELECT COLUMNS('a.*') FROM data", {"data": True}),
        ("SELECT d FROM data d", {"data": True}),
        ("SELECT count(data) FROM data", {"data": True}),
        ("SELECT data.a FROM data", {"data": False}),
        ("SELECT #1 FROM data", {"data": True}),
        ("SELECT a FROM data ORDER BY ALL", {"data": False}),
        ("SELECT a, count(*) FROM data GROUP BY ALL", {"data": False}),
        ("SELECT a FROM data AS t(a, b)", {"data": True}),
        ("SELECT x.* FROM data d JOIN other x ON d.a = x.a", {"data": False, "other": True}),
        ("SELECT a FROM data NATURAL JOIN other", {"data": True, "other": True}),
        ("SELECT a FROM data POSITIONAL JOIN other", {"data": True, "other": True}),
        ("SELECT a FROM data JOIN other USING (id)", {"data": False, "other": False}),
        ("WITH x AS (SELECT a FROM data) SELECT * FROM x", {"data": False}),
        ("WITH data AS (SELECT * FROM data) SELECT a FROM data", {"data": True}),
        ("WITH X AS (SELECT 1 AS a) SELECT * FROM x", {}),
        ("WITH x AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y", {}),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x), x", {"x": True}),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", {}),
        ("SELECT a FROM data WHERE b IN (SELECT c FROM other)", {"data": False, "other": False}),
        ('SELECT a FROM "ps-1" UNION SELECT b FROM "my name"', {"ps-1": False, "my name": False}),
        ("SELECT * FROM data PIVOT (sum(b) FOR a IN (1, 2))", {"data": True}),
        ("SELECT * FROM data UNPIVOT (v FOR k IN (a, b))", {"data": True}),
        ("SELECT a FROM data, LATERAL (SELECT b) l", {"data": False}),
        ("SELECT * FROM range(3) r(i)", {}),
        ("(SELECT a FROM data)", {"data": False}),
        ("SELECT 1;", {}),
        ('WITH "\u212a" AS (SELECT 1) SELECT * FROM k', {"k": True}),
        ('WITH "duc\u212adb_views" AS (SELECT 1) SELECT sql FROM duckdb_views', VIEWS),
        ('WITH RECURSIVE "\u212a" AS (SELECT 1 UNION ALL SELECT 2 FROM k) SELECT 1', {"k": False}),
        (
            'WITH "\u0130" AS (SELECT 1) SELECT a FROM "i\u0307", "i"',
            {"i\u0307": False, "i": False},
        ),
        ('WITH "\u1e9e" AS (SELECT 1) SELECT a FROM "\xdf", "ss"', {"\xdf": False, "ss": False}),
        ('WITH "\xc9" AS (SELECT 1) SELECT a FROM "\xe9"', {"\xe9": False}),
        ("SELECT a -- FROM nothing\nFROM data /* nor; here */", {"data": False}),
    ],
)
def test_tables_are_told_with_whether_all_their_columns_are_needed(
    engine: DuckDBPyConnection, sql: str, tables: dict[str, bool]
) -> None:
    assert read(engine, sql).tables == tables


def test_every_name_that_may_be_a_column_is_told(engine: DuckDBPyConnection) -> None:
    sql = (
        "SELECT a, t.b, c.d.e, sum(f) OVER (PARTITION BY g ORDER BY h), l[i] "
        "FROM data t JOIN other USING (j) WHERE k > (SELECT max(m) FROM other) "
        "GROUP BY n HAVING max(o) > 1 QUALIFY rank() OVER (ORDER BY p) = 1 ORDER BY q"
    )

    assert set("abcdefghijklmnopq") <= read(engine, sql).names


def test_names_that_a_statement_gives_are_told(engine: DuckDBPyConnection) -> None:
    assert read(engine, "SELECT a AS Total FROM data AS d").aliases == {"total", "d"}


@pytest.mark.parametrize(
    "condition",
    [
        *("j = 1", "1 < j", "j IN (1, 2)", "j BETWEEN 1 AND 2", "j LIKE 'a%'", "lower(j) = 'a'"),
        *("j + 1 > 2", "t.j = 1", "j.a = 1", "j IN (SELECT 1)", "j IS DISTINCT FROM 1"),
    ],
)
def test_columns_that_stand_where_one_value_is_expected_are_told(
    engine: DuckDBPyConnection, condition: str
) -> None:
    assert "j" in read(engine, f"SELECT 1 FROM data t WHERE {condition}").scalars


@pytest.mark.parametrize(
    "expression",
    ["j->>'$'", "j->'$.a'", "json_type(j)", "CAST(j AS VARCHAR)", "count(j)", "j IS NULL", "j.a"],
)
def test_columns_that_may_be_of_any_kind_are_not(
    engine: DuckDBPyConnection, expression: str
) -> None:
    assert "j" not in read(engine, f"SELECT {expression} FROM data").scalars


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 1; SELECT 2", "it has 2 statements"),
        ("SELECT 1; DROP TABLE x", "only SELECT and WITH statements run"),
        ("DESCRIBE data", "only SELECT and WITH statements run"),
        ("SUMMARIZE data", "only SELECT and WITH statements run"),
        ("SHOW TABLES", "only SELECT and WITH statements run"),
        ("FROM data", "only SELECT and WITH statements run"),
        ("PIVOT data ON a USING sum(b)", "only SELECT and WITH statements run"),
        ("WITH x AS (INSERT INTO y VALUES (1) RETURNING *) SELECT * FROM x", "would change"),
        ("WITH x AS (DELETE FROM y RETURNING *) SELECT * FROM x", "would change"),
        ("WITH x AS (UPDATE y SET a = 1 RETURNING *) SELECT * FROM x", "would change"),
        ("SELECT * FROM (DESCRIBE data)", "SHOW is not allowed"),
        ("SELECT * FROM (SHOW TABLES)", "SHOW is not allowed"),
        ("SELECT $1", "parameters"),
        ("SELECT ?", "parameters"),
        ("SELECT * FROM main.data", "the table 'main.data' is not there"),
        ("SELECT * FROM information_schema.tables", "is not there"),
        ("SELECT * FROM pg_catalog.pg_class", "is not there"),
        ("SELECT * FROM memory.main.data", "is not there"),
        ("SELECT * FROM data AT (VERSION => 1)", "one version"),
        ("SELECT main.abs(1)", "'main.abs' is no function"),
        ("SELECT pg_catalog.current_setting('x')", "is no function"),
        ("SELECT CAST(1 AS main.x)", "there is no type 'main.x'"),
        ('SELECT "ran\u212a"() OVER ()', "may not be called"),
        ('SELECT "dayofwee\u212a"(1)', "may not be called"),
        ("SELECT 1 FROM", "syntax error"),
        ("SELECT a FROM art:00000000-0000-4000-8000-000000000005", "syntax error"),
        ("SELECT '\x00'", "NUL"),
        ("SELECT '\ud800'", "half of a character"),
    ],
)
def test_what_may_not_run_is_refused_with_the_reason(
    engine: DuckDBPyConnection, sql: str, reason: str
) -> None:
    refused = refusal(engine, sql)

    assert reason in str(refused)
    assert refused.hint


def test_nothing_is_no_statement(engine: DuckDBPyConnection) -> None:
    with pytest.raises(InvalidQueryError, match="it has 0 statements"):
        read_statement('{"error": false, "statements": []}', ";")


def test_a_pointer_without_quotes_is_told_how_to_be_written(engine: DuckDBPyConnection) -> None:
    found = refusal(engine, "SELECT a FROM art:00000000-0000-4000-8000-000000000005")

    assert 'FROM "art:…"' in found.hint


def test_the_longest_statement_runs_and_a_longer_one_does_not(engine: DuckDBPyConnection) -> None:
    longest = "SELECT 1" + " " * (LONGEST_SQL - 8)

    assert read(engine, longest).tables == {}
    refused = refusal(engine, longest + " ")
    assert "10,001 characters" in str(refused)
    assert "Bank a long list" in refused.hint


def test_a_statement_that_is_nested_too_deep_is_refused(engine: DuckDBPyConnection) -> None:
    assert "nested too deep" in str(refusal(engine, "SELECT " + "abs(" * 600 + "1" + ")" * 600))


def test_a_syntax_error_is_cut(engine: DuckDBPyConnection) -> None:
    found = refusal(engine, "SELECT 1 " + "x" * 5_000 + " y")

    assert len(str(found)) < 300


# Each function of this version that reads or changes anything but its arguments.
REFUSED_FUNCTIONS = """
    current_catalog current_connection_id current_database current_query current_query_id
    current_schema current_schemas current_setting current_transaction_id currval error
    get_block_size getenv getvariable has_table_privilege in_search_path json_deserialize_sql
    json_execute_serialized_sql json_serialize_plan json_serialize_sql nextval
    parse_duckdb_log_message pg_get_viewdef pg_sleep pg_typeof setseed setval sleep_ms stats
    txid_current vector_type version write_log no_such_function
"""
REFUSED_TABLES = """
    add_grammar_extension arrow_scan checkpoint create_external_resource duckdb_columns
    duckdb_databases duckdb_extensions duckdb_functions duckdb_logs duckdb_memory duckdb_secrets
    duckdb_settings duckdb_tables duckdb_temporary_files duckdb_variables duckdb_views
    enable_logging enable_profiling force_checkpoint glob histogram json_execute_serialized_sql
    pandas_scan parquet_metadata parquet_scan pragma_database_size pragma_platform
    pragma_storage_info pragma_table_info pragma_user_agent pragma_version python_arrow_scan
    python_map_function query query_table read_blob read_csv read_csv_auto read_duckdb read_json
    read_json_auto read_json_objects read_ndjson read_parquet read_text
    register_external_resource repeat repeat_row seq_scan sniff_csv sql_auto_complete
    sqlite_scan summary test_all_types truncate_duckdb_logs which_secret
"""


@pytest.mark.parametrize("name", REFUSED_FUNCTIONS.split())
def test_a_function_that_does_not_only_compute_is_refused(
    engine: DuckDBPyConnection, name: str
) -> None:
    assert "may not be called" in str(refusal(engine, f"SELECT {name}(1)"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("strftme", "Is 'strftime' "),
        ("cout", "Is 'count' "),
        ("qqqq", "Functions that compute"),
    ],
)
def test_a_function_that_is_misspelt_is_told_with_what_is_most_like_it(
    engine: DuckDBPyConnection, name: str, hint: str
) -> None:
    refused = refusal(engine, f"SELECT {name}(1)")

    assert f"the function '{name}' is unknown, or may not be called" in str(refused)
    assert refused.hint.startswith(hint)


@pytest.mark.parametrize("name", REFUSED_TABLES.split())
def test_a_table_function_that_does_not_only_compute_is_refused(
    engine: DuckDBPyConnection, name: str
) -> None:
    found = refusal(engine, f"SELECT * FROM {name}('x')")

    assert "may not stand in place of a table" in str(found)


def test_what_the_engine_adds_one_day_is_refused_until_it_is_listed(
    engine: DuckDBPyConnection,
) -> None:
    rows = engine.execute(
        "SELECT DISTINCT function_name, function_type FROM duckdb_functions()"
    ).fetchall()
    dangerous = ("duckdb_", "pg_", "pragma_", "read_", "current_s", "set", "has_", "__", "sleep")

    for name, kind in rows:
        allowed = TABLE_FUNCTIONS if kind in {"table", "table_macro"} else FUNCTIONS | OPERATORS
        assert not (name.lower().startswith(dangerous) and name.lower() in allowed - {"set_bit"})


def test_every_function_on_the_list_is_one_of_the_engine(engine: DuckDBPyConnection) -> None:
    rows = engine.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    # Parts of the grammar that are written like functions.
    grammar = {"coalesce", "ifnull", "unnest", "listagg", "group_concat"}

    assert FUNCTIONS - {name for (name,) in rows} <= grammar
