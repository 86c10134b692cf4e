"""Attacks on the sandbox of SQL, as a model would make them: through `Bank.query`."""

import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coatcheck import Bank
from coatcheck.bank._ask_sql import SqlQueries
from coatcheck.bank._derived import Asked, found
from coatcheck.bank._tables import Tables
from coatcheck.errors import CoatcheckError, DeadlineError, InvalidQueryError, UnknownPointerError
from coatcheck.stores import FileStore

SECRET = "for no model's eyes"


@pytest.fixture(scope="module")
async def bank(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bank]:
    bank = Bank(FileStore(tmp_path_factory.mktemp("store")))
    await bank.put([{"id": number, "name": f"n{number}"} for number in range(100)], name="rows")
    yield bank
    bank.end_queries()


async def refusal(bank: Bank, sql: str) -> InvalidQueryError:
    with pytest.raises(InvalidQueryError) as caught:
        await bank.query("rows", sql)
    return caught.value


FILES = [
    "SELECT * FROM '{secret}'",
    'SELECT * FROM "{secret}"',
    "SELECT * FROM 'file://{secret}'",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_csv_auto('{secret}')",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM read_json_objects('{secret}')",
    "SELECT * FROM read_ndjson('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM parquet_scan('{secret}')",
    "SELECT * FROM parquet_metadata('{secret}')",
    "SELECT * FROM read_duckdb('{secret}')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT (SELECT content FROM read_text('{secret}'))",
    "WITH x AS (SELECT * FROM read_text('{secret}')) SELECT * FROM x",
    "SELECT * FROM data, LATERAL (SELECT * FROM read_text('{secret}'))",
    "SELECT id FROM data WHERE id IN (SELECT count(*) FROM glob('{folder}/*'))",
    "SELECT id FROM data ORDER BY (SELECT count(*) FROM glob('{folder}/*'))",
    "SELECT id FROM data LIMIT (SELECT count(*) FROM glob('{folder}/*'))",
    "SELECT sum(id) FILTER (WHERE (SELECT true FROM glob('{folder}/*'))) FROM data",
    "SELECT list_transform([1], lambda x: (SELECT count(*) FROM glob('{folder}/*')))",
    "SELECT * FROM query('FROM read_text(''{secret}'')')",
    "SELECT * FROM query_table('{secret}')",
    "SELECT * FROM json_execute_serialized_sql('{{}}')",
    "COPY (SELECT 1) TO '{folder}/written'",
    "COPY data FROM '{secret}'",
    "EXPORT DATABASE '{folder}/written'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/written.db' AS w",
    "WITH x AS (COPY (SELECT 1) TO '{folder}/written') SELECT 1",
    "SELECT 1; COPY (SELECT 1) TO '{folder}/written'",
    "SELECT 1 --\n; COPY (SELECT 1) TO '{folder}/written'",
    "SELECT 1 /* ; */ ; ATTACH '{folder}/written.db'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/written'",
]


@pytest.mark.parametrize("sql", FILES)
async def test_no_file_is_read_written_or_found(bank: Bank, tmp_path: Path, sql: str) -> None:
    folder = tmp_path / "host"
    folder.mkdir()
    secret = folder / "secret.csv"
    secret.write_text(f"a,b\n{SECRET},1\n")

    try:
        answer = await bank.query("rows", sql.format(secret=secret, folder=folder))
    except CoatcheckError as error:
        told = f"{error} {error.hint}"
    else:
        told = str(answer)

    assert SECRET not in told
    assert [*folder.iterdir()] == [secret]
    assert secret.read_text() == f"a,b\n{SECRET},1\n"


async def test_the_payloads_themselves_cannot_be_overwritten(tmp_path: Path) -> None:
    bank = Bank(FileStore(tmp_path))
    await bank.put([{"id": 1}], name="rows")
    (payload,) = tmp_path.glob("s/*/payloads/*")
    before = payload.read_bytes()

    await refusal(bank, f"COPY (SELECT 1) TO '{payload}' (FORMAT csv, USE_TMP_FILE false)")
    await refusal(bank, f"SELECT 1; ATTACH '{payload}'")

    assert payload.read_bytes() == before


STATE = [
    "SET threads = 64",
    "SET memory_limit = '900GB'",
    "SET VARIABLE x = 1",
    "RESET memory_limit",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE x (a INTEGER)",
    "CREATE TEMP TABLE x (a INTEGER)",
    "CREATE VIEW x AS SELECT 1",
    "CREATE MACRO m(a) AS a",
    "CREATE SEQUENCE s",
    "CREATE SECRET s (TYPE s3)",
    "CREATE OR REPLACE TABLE data AS SELECT 1",
    "INSERT INTO data VALUES (1)",
    "UPDATE data SET id = 0",
    "DELETE FROM data",
    "DROP VIEW data",
    "ALTER TABLE data ADD COLUMN x INTEGER",
    "VACUUM data",
    "FORCE CHECKPOINT",
    "BEGIN TRANSACTION",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "USE memory",
    "DETACH memory",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "WITH x AS (INSERT INTO data VALUES (1) RETURNING *) SELECT * FROM x",
    "SELECT nextval('s')",
    "SELECT setseed(0.5)",
    "SELECT * FROM add_grammar_extension('x')",
    "SELECT * FROM enable_logging()",
]


@pytest.mark.parametrize("sql", STATE)
async def test_nothing_is_changed_and_nothing_stays(bank: Bank, sql: str) -> None:
    # What begins with none of the words of SQL is read as JMESPath, and is none.
    await refusal(bank, sql)
    await refusal(bank, f"SELECT 1; {sql}")

    answer = await bank.query("rows", "SELECT count(*) AS n, sum(id) AS s FROM data")
    assert answer.value == [{"n": 100, "s": 4950}]


LEAKS = [
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_settings",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM duckdb_columns()",
    "SELECT * FROM duckdb_views()",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_extensions()",
    "SELECT * FROM duckdb_functions()",
    "SELECT * FROM duckdb_memory()",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT * FROM duckdb_variables()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM information_schema.columns",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM pg_class",
    "SELECT * FROM pg_tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_table_info('data')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM memory.main.t0",
    "SELECT * FROM main.t0",
    "SELECT * FROM t0",
    "SELECT * FROM temp.data",
    "SELECT * FROM (SHOW ALL TABLES)",
    "SELECT * FROM (DESCRIBE data)",
    "SELECT * FROM (SUMMARIZE data)",
    "SELECT current_setting('temp_directory')",
    "SELECT getenv('HOME')",
    "SELECT getvariable('x')",
    "SELECT current_query()",
    "SELECT current_schemas(true)",
    "SELECT version()",
    "SELECT user",
    "SELECT current_user FROM data",
    "SELECT current_database, id FROM data",
    "SELECT pg_catalog.current_setting('threads')",
    "SELECT system.main.current_setting('threads')",
    "SELECT json_serialize_plan('SELECT * FROM duckdb_settings()')",
    "SELECT has_table_privilege('data', 'x')",
    "SELECT sleep_ms(10000)",
    "SELECT error(name) FROM data",
    "DESCRIBE data",
    "SUMMARIZE data",
    "SHOW TABLES",
    "FROM duckdb_settings()",
]


@pytest.mark.parametrize("sql", LEAKS)
async def test_settings_and_what_else_there_is_are_not_told(bank: Bank, sql: str) -> None:
    refused = await refusal(bank, sql)

    assert refused.hint
    assert SECRET not in f"{refused} {refused.hint}"


async def test_variables_of_the_host_are_no_tables(bank: Bank) -> None:
    frame = {"secret": [SECRET]}

    for name in ("frame", "bank", "SECRET"):
        assert "no table" in str(await refusal(bank, f"SELECT * FROM {name}"))
    assert frame


async def test_what_another_scope_holds_is_unknown(bank: Bank) -> None:
    other = bank.scoped("other")
    artifact = await other.put([{"secret": SECRET}], name="their rows")
    assert (await other.query(artifact.pointer, "SELECT secret FROM data")).value == [
        {"secret": SECRET}
    ]

    with pytest.raises(UnknownPointerError):
        await bank.query(artifact.pointer, "SELECT * FROM data")
    with pytest.raises(UnknownPointerError):
        await bank.query("rows", f'SELECT * FROM "{artifact.pointer}"')
    with pytest.raises(UnknownPointerError):
        await bank.query("rows", f'SELECT * FROM "{artifact.id}"')
    await refusal(bank, 'SELECT * FROM "their rows"')
    with pytest.raises(UnknownPointerError):
        await bank.query({"a": "rows", "b": artifact.pointer}, "SELECT * FROM a")


async def test_a_name_like_a_table_of_the_engine_is_the_artifact_of_that_name(bank: Bank) -> None:
    for name in ("duckdb_settings", "t0", "main"):
        await bank.put([{"a": name}], name=name)

        answer = await bank.query("rows", f'SELECT * FROM "{name}"')

        assert answer.value == [{"a": name}]


async def test_a_statement_that_runs_too_long_is_a_deadline(bank: Bank) -> None:
    queries = with_bounds(bank, seconds=0.2)
    sql = "SELECT sum(a.id * b.id * c.id) FROM data a, data b, data c, data d, data e"
    statement = await queries.statement(sql)
    asked = await asked_of(bank, "rows")

    with pytest.raises(DeadlineError, match=r"stopped after 0\.2 s"):
        await queries.run(statement, {"data": asked})

    answer = await bank.query("rows", "SELECT count(*) AS n FROM data")
    assert answer.value == [{"n": 100}]


async def test_a_statement_that_takes_too_much_memory_is_refused(bank: Bank) -> None:
    found = await refusal(bank, "SELECT list(a.id + range) FROM data a, range(1000000000000)")

    assert "more memory" in str(found)
    assert (await bank.query("rows", "SELECT 1 AS a")).value == [{"a": 1}]


async def test_a_result_that_is_too_large_is_refused(bank: Bank) -> None:
    queries = with_bounds(bank, most_bytes=2 * 2**20)
    statement = await queries.statement("SELECT a.id, b.name FROM data a, data b, data c")
    asked = await asked_of(bank, "rows")

    with pytest.raises(InvalidQueryError, match="larger than 2 MiB"):
        await queries.run(statement, {"data": asked})


async def asked_of(bank: Bank, name: str) -> Asked:
    return await found(bank._desk.lookup, name)  # noqa: SLF001 - as `Bank.query` does


def with_bounds(bank: Bank, **bounds: float) -> SqlQueries:
    desk = bank._desk  # noqa: SLF001 - as `Bank.query` does
    tables = Tables(desk.shared, desk.reader, desk.selections)
    return SqlQueries(desk.shared, desk.reader, desk.lookup, tables, **bounds)  # type: ignore[arg-type]


async def test_no_message_quotes_what_is_in_the_payload(bank: Bank) -> None:
    await bank.put([{"a": SECRET, "d": "2026-99-99", "n": 2**62}], name="secret")

    for expression in (
        *("a::INTEGER", "CAST(a AS DATE)", "a::JSON", "strptime(a, '%Y')", "d::DATE", "n * n"),
        *("a::BLOB::BIT", "decode(a::BLOB)::UUID", "regexp_matches('x', a || '(')", "error(a)"),
        *("a::STRUCT(b INTEGER)", "json_extract(a, '$')", "make_date(n, 1, 1)", "repeat(a, n)"),
    ):
        try:
            await bank.query("secret", f"SELECT {expression} AS x FROM data")
        except CoatcheckError as error:
            told = f"{error} {error.hint}"
            assert SECRET not in told
            assert "2026-99-99" not in told
            assert str(2**62) not in told


async def test_no_message_names_a_file_or_folder_of_ours(tmp_path: Path) -> None:
    bank = Bank(FileStore(tmp_path))
    await bank.put([{"a": 1}] * 2_000, name="rows")
    (payload,) = tmp_path.glob("s/*/payloads/*")
    payload.write_bytes(payload.read_bytes().replace(b"]", b" "))

    with pytest.raises(CoatcheckError) as caught:
        await bank.query("rows", "SELECT a FROM data")

    assert "/" not in f"{caught.value} {caught.value.hint}"


async def test_what_was_written_for_a_database_is_private_and_gone_afterwards(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    code = (
        "import asyncio, tempfile\n"
        f"tempfile.tempdir = {str(folder)!r}\n"
        "from coatcheck import Bank\n"
        "from coatcheck.stores import MemoryStore\n"
        "async def main():\n"
        "    bank = Bank(MemoryStore())\n"
        "    await bank.put([{'a': 1}], name='rows')\n"
        "    await bank.put('a\\nb', name='text')\n"
        "    await bank.put('a,b\\n1,\"2\"\\n', name='csv', content_type='text/csv')\n"
        "    for name in ('rows', 'text', 'csv'):\n"
        "        await bank.query(name, 'SELECT count(*) FROM data')\n"
        "    try:\n"
        "        await bank.query('rows', 'SELECT b FROM data')\n"
        "    except ValueError:\n"
        "        pass\n"
        "asyncio.run(main())\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, umask=0)

    assert [*folder.iterdir()] == []


async def test_many_threads_and_loops_ask_one_bank_at_once(bank: Bank) -> None:
    import asyncio

    found: list[object] = []

    def ask(number: int) -> None:
        sql = f"SELECT count(*) AS n, max(id) + {number} AS m FROM data"
        found.append(asyncio.run(bank.query("rows", sql)).value)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, found)) == sorted(
        str([{"n": 100, "m": 99 + number}]) for number in range(8)
    )


def test_a_forked_child_asks_with_processes_of_its_own() -> None:
    code = (
        "import asyncio, os, sys\n"
        "from coatcheck import Bank\n"
        "from coatcheck.stores import MemoryStore\n"
        "bank = Bank(MemoryStore())\n"
        "asyncio.run(bank.put([{'a': 1}], name='rows'))\n"
        "ask = lambda: asyncio.run(bank.query('rows', 'SELECT a FROM data')).value\n"
        "assert ask() == [{'a': 1}]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if ask() == [{'a': 1}] else 1)\n"
        "_, status = os.waitpid(child, 0)\n"
        "assert ask() == [{'a': 1}]\n"
        "sys.exit(os.waitstatus_to_exitcode(status))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()
