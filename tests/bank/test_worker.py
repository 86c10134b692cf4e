"""The process of a database: what it answers, and that nothing it runs into reaches this one."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coatcheck.bank._worker import Worker
from coatcheck.content import EngineError, loads

LIMIT = 64 * 2**20


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    worker.do({"limit": LIMIT, "sql": [("CREATE TABLE t AS FROM range(1000) r(a)", [])]})
    yield worker
    worker.close()


def ask(worker: Worker, sql: str, *, seconds: float = 10.0) -> list[Any]:
    chunks, _ = worker.ask(sql, views=(), seconds=seconds, most_bytes=10**7, bare=False)
    return [row for chunk in chunks for row in loads(chunk)]  # type: ignore[attr-defined]


def memory_of(worker: Worker) -> int:
    """Return the most memory that a process has had, in bytes; 0 where there is no /proc."""
    status = Path(f"/proc/{worker.process_id}/status")
    if not status.exists():
        return 0
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024


def test_statements_of_ours_take_values_of_any_length(worker: Worker) -> None:
    text = "żółć\x00" * 1_000_000

    assert worker.run("SELECT length($1), $1[1:4]", [text]) == [[5_000_000, "żółć"]]


def test_an_error_leaves_the_process_alive(worker: Worker) -> None:
    with pytest.raises(EngineError, match="ConversionException"):
        ask(worker, "SELECT 'x'::INTEGER")

    assert worker.is_alive
    assert ask(worker, "SELECT count(*) AS n FROM t") == [{"n": 1_000}]


def test_a_closed_process_is_gone(worker: Worker) -> None:
    worker.close()
    worker.close()

    assert not worker.is_alive
    with pytest.raises(EngineError, match="ended"):
        worker.run("SELECT 1")


def test_a_process_that_is_killed_from_outside_has_not_taken_too_much_memory(
    worker: Worker,
) -> None:
    os.kill(worker.process_id, signal.SIGKILL)

    with pytest.raises(EngineError) as caught:
        worker.run("SELECT 1")

    assert caught.value.kind == "ended"
    assert not worker.is_alive


def test_a_process_that_nobody_holds_any_more_ends() -> None:
    worker = Worker()
    process_id = worker.process_id
    worker.run("SELECT 1")

    del worker
    gc.collect()

    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_a_process_ends_with_the_one_that_started_it() -> None:
    code = (
        "from coatcheck.bank._worker import Worker\n"
        "import os\n"
        "worker = Worker()\n"
        "worker.run('SELECT 1')\n"
        "print(worker.process_id, flush=True)\n"
        "os._exit(1)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    process_id = int(found.stdout)

    stop = time.monotonic() + 10
    while is_running(process_id) and time.monotonic() < stop:
        os.sched_yield()
    assert not is_running(process_id)


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process_id}/stat")
    # One that nobody waited for is a zombie until the system does.
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_memory_of_the_host_is_not_taken_for_that_of_the_process() -> None:
    code = (
        "from coatcheck.bank._worker import Worker\n"
        "held = b'x' * (5 << 28)\n"
        "held = None\n"
        "worker = Worker()\n"
        "worker.do({'limit': 1 << 26})\n"
        "worker.ask('SELECT count(*) FROM range(3000000) x(a), range(100) y(b) WHERE a % 7 = b',\n"
        "    views=(), seconds=60, most_bytes=1000, bare=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()


def test_without_the_extra_the_refusal_names_it_and_the_other_languages_answer() -> None:
    code = (
        "import asyncio, sys; sys.modules['_duckdb'] = None\n"
        "from coatcheck import Bank\n"
        "from coatcheck.errors import InvalidArgumentError\n"
        "from coatcheck.stores import MemoryStore\n"
        "async def main():\n"
        "    bank = Bank(MemoryStore())\n"
        "    await bank.put([{'id': 1}], name='rows')\n"
        "    print((await bank.query('rows', '$[0].id')).value)\n"
        "    try: await bank.query('rows', 'SELECT id FROM data')\n"
        "    except InvalidArgumentError as error: print(error.hint, error, sep='|')\n"
        "asyncio.run(main())\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    answer, refusal = found.stdout.splitlines()
    assert answer == "1"
    assert "JSONPath" in refusal
    assert "pip install 'coatcheck[sql]'" in refusal
    assert not found.stderr


def test_a_child_does_not_use_the_processes_of_its_parent(worker: Worker) -> None:
    if not hasattr(os, "fork"):
        return
    child = os.fork()
    if child == 0:
        alive = worker.is_alive
        worker.close()
        os._exit(1 if alive else 0)

    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert ask(worker, "SELECT count(*) AS n FROM t") == [{"n": 1_000}]


def test_the_environment_of_the_host_is_not_in_it(worker: Worker) -> None:
    # Before it is sealed, a file can be read: what the process started with is still in there.
    environment = "SELECT count(*) FROM glob('/proc/self/environ')"
    assert worker.run(environment) in ([[1]], [[0]])
    worker.do({"seal": True})

    with pytest.raises(EngineError):
        worker.run("SELECT content FROM read_text('/proc/self/environ')")


SLOW = [
    "SELECT sum(x.a * y.a * z.a) FROM t x, t y, t z, t u",
    "SELECT count(*) FROM range(1000000) x, range(1000000) y WHERE x.range + y.range = 7",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
    "SELECT sum(generate_series) FROM generate_series(1, 1000000000000)",
    "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "SELECT a, (SELECT count(*) FROM t x, t y, t z WHERE x.a < t.a) FROM t",
]


@pytest.mark.parametrize("sql", SLOW)
def test_what_runs_too_long_is_stopped_and_the_process_lives_on(worker: Worker, sql: str) -> None:
    start = time.monotonic()

    with pytest.raises(EngineError, match="deadline"):
        ask(worker, sql, seconds=0.2)

    assert time.monotonic() - start < 5
    assert worker.is_alive
    assert ask(worker, "SELECT 1 AS a") == [{"a": 1}]


GREEDY = [
    "SELECT len(range(300000000))",
    "SELECT repeat('x', 4000000000)",
    "SELECT replace(repeat('x', 100000000), 'x', repeat('y', 100000))",
    "SELECT string_agg(repeat('x', 1000000)) FROM t",
    "WITH RECURSIVE r AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM r) SELECT max(s) FROM r",
    "SELECT x.a FROM t x, t y ORDER BY repeat('x', 100000)",
    "SELECT unnest(range(100000000))",
]


@pytest.mark.parametrize("sql", GREEDY)
def test_what_takes_too_much_memory_fails_within_bounds(worker: Worker, sql: str) -> None:
    start = time.monotonic()

    with pytest.raises(EngineError) as caught:
        ask(worker, sql, seconds=1.0)

    assert caught.value.kind in {
        "memory",
        "deadline",
        "OutOfRangeException",
        "InvalidInputException",
    }
    assert time.monotonic() - start < 10
    # The memory of a process that has ended is free.
    assert memory_of(worker) < 2 * 2**30


def test_brackets_without_end_do_not_bring_it_down(worker: Worker) -> None:
    with pytest.raises(EngineError):
        ask(worker, "SELECT " + "(" * 4_000 + "1" + ")" * 4_000)


def test_nothing_that_is_asked_outlives_the_asking(worker: Worker) -> None:
    view = 'CREATE TEMP VIEW "data" AS SELECT a FROM main.t'
    worker.ask("SELECT * FROM data", views=[view], seconds=5, most_bytes=10**6, bare=False)

    with pytest.raises(EngineError, match="CatalogException"):
        ask(worker, "SELECT * FROM data")
