"""`coatcheck query`: a table for people, JSON for programs, and every exit code."""

import json
import subprocess
import sys
from typing import Any

import pytest

from coatcheck import is_pointer

from .conftest import Run

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ROWS: list[dict[str, Any]] = [
    {"id": number, "city": ("Łódź", "Lyon", "大阪")[number % 3]} for number in range(9)
]
BY_CITY = "SELECT city, count(*) AS n FROM data GROUP BY city ORDER BY city"


@pytest.fixture
def orders(coatcheck: Run) -> str:
    return coatcheck("put", "-", "--name", "orders", given=json.dumps(ROWS).encode()).text.strip()


def test_a_pipe_gets_the_value_as_json(coatcheck: Run, orders: str) -> None:
    done = coatcheck("query", orders, BY_CITY)

    assert done.code == 0
    assert done.json == [{"city": city, "n": 3} for city in ("Lyon", "Łódź", "大阪")]
    assert done.err == "SQL: 3 rows\n"
    assert coatcheck("query", "orders", "$[1].city").json == "Lyon"
    assert coatcheck("query", "orders", "$[1].city").err == "JSONPath: 1 value\n"
    assert coatcheck("query", "orders", "length(@)").json == 9


def test_json_has_the_keys_that_models_see(coatcheck: Run, orders: str) -> None:
    done = coatcheck("query", orders, "$[0:2].id", "--json")

    assert done.json == {"language": "jsonpath", "rowCount": 2, "value": [0, 1]}
    assert done.err == ""


def test_a_terminal_gets_rows_as_a_table(in_terminal: Run, orders: str) -> None:
    drawn = in_terminal("query", orders, BY_CITY).text

    assert "city" in drawn
    assert ["大阪", "3"] in [line.split() for line in drawn.splitlines()]
    assert in_terminal("query", orders, "$[0:2].city").text.split() == ["Łódź", "Lyon"]
    assert in_terminal("query", orders, "$[0].city").text.strip() == "Łódź"


def test_rows_with_keys_of_their_own_have_all_columns(in_terminal: Run, coatcheck: Run) -> None:
    rows = [{"a": 1}, {"b": "x\x1b[2Jy"}, {f"c{number}": number for number in range(20)}]
    coatcheck("put", "-", "--name", "ragged", given=json.dumps(rows).encode())

    drawn = in_terminal("query", "ragged", "$[*]", columns=200).text

    assert "+10 more columns" in drawn
    assert "\x1b[2J" not in drawn
    assert "xy" in drawn


def test_an_answer_to_be_saved_is_banked_and_its_pointer_printed(
    coatcheck: Run, orders: str
) -> None:
    done = coatcheck("query", orders, BY_CITY, "--save-as", "cities")

    pointer = done.text.removesuffix("\n")
    assert is_pointer(pointer)
    assert "application/json" in done.err
    assert coatcheck("show", "cities", "--json").json["pointer"] == pointer
    assert len(coatcheck("read", "cities", "--all").json) == 3
    named = coatcheck("query", orders, "$[*].id", "--save-as", "ids", "--json").json
    assert (named["language"], named["rowCount"]) == ("jsonpath", 9)
    assert named["artifact"] == coatcheck("show", "ids", "--json").json


def test_a_selection_is_queried_as_a_whole_is(coatcheck: Run) -> None:
    payload = json.dumps({"items": ROWS}).encode()
    pointer = coatcheck("put", "-", given=payload).text.strip()

    assert coatcheck("query", f"{pointer}#/items", "SELECT max(id) AS m FROM data").json == [
        {"m": 8}
    ]


@pytest.mark.parametrize(
    ("pointer", "expression", "code", "error"),
    [
        (UNKNOWN, "$", 1, "unknown-pointer"),
        ("orders#", "$", 1, "unknown-pointer"),
        ("orders", "$[", 2, "invalid-query"),
        ("orders", "SELECT nothing FROM data", 2, "invalid-query"),
        ("orders", "SELECT 1; SELECT 2", 2, "invalid-query"),
        ("orders", "[", 2, "invalid-query"),
    ],
)
def test_failures_have_the_exit_codes_of_all_commands(
    coatcheck: Run, orders: str, pointer: str, expression: str, code: int, error: str
) -> None:
    done = coatcheck("query", pointer, expression, "--json")

    assert orders
    assert (done.code, done.out) == (code, b"")
    assert done.failure["error"] == error


def test_a_bad_name_to_save_as_is_wrong_usage(coatcheck: Run, orders: str) -> None:
    done = coatcheck("query", orders, "$", "--save-as", UNKNOWN, "--json")

    assert (done.code, done.failure["error"]) == (2, "invalid-argument")


_TELL_WHEN_STARTED = """
import sys

def tell(event, _):
    if event == "subprocess.Popen":
        sys.stderr.write(f"{'coatcheck.apps.cli._query_command' in sys.modules}\\n")

sys.addaudithook(tell)
from coatcheck.apps.cli import main
main()
"""


@pytest.mark.parametrize(
    ("expression", "first"), [("SELECT * FROM data", "False\n"), ("$[*].id", "JSONPath: 9")]
)
def test_what_sql_needs_is_started_before_the_program_is_imported(
    expression: str, first: str, orders: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TELL_WHEN_STARTED, "query", orders, expression],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr.startswith(first)
