"""The databases that stand ready: which there are, what each has, and when it goes."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from coatcheck.bank._databases import Database, Databases, Prepared, Wanted
from coatcheck.bank._worker import Worker, spares
from coatcheck.content import EngineError, SqlEngine
from coatcheck.content.sql import Loaded, Statement, UnreadableError
from coatcheck.errors import InvalidQueryError

MIB = 2**20


def prepared(*columns: str, size_bytes: int = 10, is_whole: bool = False) -> Prepared:
    """Return a table of one row, in which each column holds its own name."""

    def load(engine: SqlEngine, table: str, wanted: Wanted) -> Loaded:
        cells = ", ".join(f"'{column}' AS {column}" for column in columns)
        engine.run(f"CREATE TABLE {table} AS SELECT {cells}")
        kinds = dict.fromkeys(columns, "VARCHAR")
        return Loaded(table=table, columns=kinds, is_whole=is_whole, known=["a", "b", "c"])

    return Prepared(load, size_bytes)


@pytest.fixture
def databases() -> Iterator[Databases]:
    databases = Databases()
    yield databases
    databases.close()


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database()
    yield database
    database.close()


def names(*found: str) -> Wanted:
    return frozenset(found)


def test_a_database_has_the_columns_that_were_loaded(database: Database) -> None:
    assert not database.has({"t": names("a")})

    database.load({"t": prepared("a", "b")}, {"t": names("A", "b", "an alias")})

    assert database.has({"t": names("a", "B")})
    assert database.has({"t": names("what is no column")})
    assert not database.has({"t": names("c")})
    assert not database.has({"t": None})
    assert not database.has({"other": names("a")})


def test_a_table_that_was_loaded_whole_has_all(database: Database) -> None:
    database.load({"t": prepared("a", is_whole=True)}, {"t": names("a")})

    assert database.has({"t": None})
    assert database.has({"t": names("x")})


def test_of_columns_that_are_not_all_known_each_name_counts(database: Database) -> None:
    def load(engine: SqlEngine, table: str, wanted: Wanted) -> Loaded:
        engine.run(f"CREATE TABLE {table} (a INTEGER)")
        kinds = {"a": "INTEGER"}
        return Loaded(table=table, columns=kinds, is_whole=False, known=["a"], knows_all=False)

    database.load({"t": Prepared(load, 1)}, {"t": names("a", "x")})

    assert database.has({"t": names("a", "X")})
    assert not database.has({"t": names("a", "y")})


def test_what_is_loaded_next_is_loaded_with_what_was_there(database: Database) -> None:
    assert database.wanted_too({"t": names("a")}) == {"t": names("a")}

    database.load({"t": prepared("a")}, {"t": names("a")})

    assert database.wanted_too({"t": names("b")}) == {"t": names("a", "b")}
    assert database.wanted_too({"t": None}) == {"t": None}


def test_a_table_that_cannot_be_read_is_named_and_leaves_nothing(database: Database) -> None:
    def fail(engine: SqlEngine, table: str, wanted: Wanted) -> Loaded:
        raise UnreadableError

    with pytest.raises(UnreadableError) as caught:
        database.load({"a": prepared("a"), "b": Prepared(fail, 1)}, {"a": None, "b": None})

    assert caught.value.table == "b"
    assert not database.is_alive


def test_a_statement_is_parsed_once(databases: Databases) -> None:
    assert databases.statement("SELECT 1") is databases.statement("SELECT 1")
    with pytest.raises(InvalidQueryError):
        databases.statement("SELECT FROM")


def test_the_same_artifacts_have_the_same_database(databases: Databases) -> None:
    first = databases.take(frozenset({"a", "b"}))

    assert databases.take(frozenset({"b", "a"})) is first
    assert databases.take(frozenset({"a"})) is not first


def load_one(databases: Databases, key: str, size_bytes: int = 10) -> Database:
    database = databases.take(frozenset({key}))
    database.load({key: prepared("a", size_bytes=size_bytes)}, {key: names("a")})
    return database


def test_four_databases_stay_and_the_least_recently_asked_goes(databases: Databases) -> None:
    loaded = [load_one(databases, str(number)) for number in range(4)]
    for database in loaded:
        databases.give_back(database)
    # The first is asked again, so that the second is the oldest.
    databases.give_back(databases.take(frozenset({"0"})))

    databases.give_back(load_one(databases, "4"))

    assert [database.is_alive for database in loaded] == [True, False, True, True]


def test_large_databases_go_sooner(databases: Databases) -> None:
    first = load_one(databases, "a", 600 * MIB)
    databases.give_back(first)

    second = load_one(databases, "b", 500 * MIB)
    databases.give_back(second)

    assert not first.is_alive
    assert second.is_alive


def test_a_database_that_is_asked_stays_until_it_is_given_back(databases: Databases) -> None:
    busy = load_one(databases, "a", 600 * MIB)
    databases.give_back(load_one(databases, "b", 600 * MIB))

    assert busy.is_alive
    databases.give_back(busy)
    assert databases.alive_count <= 1


def test_a_statement_is_parsed_by_whoever_stands_ready(databases: Databases) -> None:
    database = load_one(databases, "a")

    assert database.parse("SELECT 1") is not None
    with database.lock:
        assert database.parse("SELECT 1") is None
        assert databases.statement("SELECT 2").tables == {}
    database.close()
    assert database.parse("SELECT 1") is None


def test_a_statement_whose_database_is_closed_meanwhile_is_parsed_elsewhere(
    databases: Databases,
) -> None:
    processes: list[int] = []

    def load(engine: SqlEngine, table: str, wanted: Wanted) -> Loaded:
        engine.run(f"CREATE TABLE {table} (a INTEGER)")
        processes.append(cast("Worker", engine).process_id)
        return Loaded(table=table, columns={"a": "INTEGER"}, is_whole=True)

    database = databases.take(frozenset({"a"}))
    database.load({"a": Prepared(load, 1)}, {"a": None})
    os.kill(processes[0], signal.SIGSTOP)
    found: list[Statement] = []
    asking = threading.Thread(target=lambda: found.append(databases.statement("SELECT a FROM x")))
    asking.start()
    while not database.lock.locked() and asking.is_alive():
        asking.join(0.001)

    database.close()
    asking.join()

    assert [dict(statement.tables) for statement in found] == [{"x": False}]


def test_a_database_that_was_closed_is_asked_in_vain(database: Database) -> None:
    database.load({"t": prepared("a")}, {"t": names("a")})
    database.close()
    statement = Statement(
        sql="SELECT 1", tables={}, names=frozenset(), scalars=frozenset(), aliases=frozenset()
    )

    with pytest.raises(EngineError, match="ended"):
        database.ask(statement, [], seconds=1, most_bytes=100, bare=False)


def test_a_process_stands_ready_once_one_was_taken() -> None:
    worker = spares().take()
    try:
        assert worker.run("SELECT 1") == [[1]]
        assert spares().run("SELECT 1") == [[1]]
    finally:
        worker.close()


def test_files_that_were_written_go_with_what_they_were_for(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "1").write_bytes(b"x")
    table = prepared("a")
    table.folder = folder

    table.close()
    table.close()

    assert not folder.exists()
