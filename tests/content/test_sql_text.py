"""A text as a table of its lines."""

from collections.abc import Sequence
from typing import Protocol

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from coatcheck.content import SqlRows
from coatcheck.content.sql import LineTable


class SqlEngine(Protocol):
    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows: ...


def lines_of(engine: SqlEngine, payload: bytes, piece_bytes: int) -> SqlRows:
    table = LineTable(engine, "t0")
    for at in range(0, len(payload), piece_bytes):
        table.feed(payload[at : at + piece_bytes])
    loaded = table.end()
    engine.run(loaded.view("data"))
    rows = engine.run("SELECT line_number, line FROM data ORDER BY line_number")
    engine.run("DROP TABLE t0 CASCADE")
    engine.run("DROP VIEW data")
    return rows


def test_lines_have_numbers_from_one_and_no_end(engine: SqlEngine) -> None:
    payload = "first\n\nthird żółć\r\n\rlast".encode()

    assert lines_of(engine, payload, 1_000) == [
        [1, "first"],
        [2, ""],
        [3, "third żółć\r"],
        [4, "\rlast"],
    ]


def test_a_newline_at_the_end_begins_no_line(engine: SqlEngine) -> None:
    assert lines_of(engine, b"a\nb\n", 1_000) == [[1, "a"], [2, "b"]]
    assert lines_of(engine, b"\n", 1_000) == [[1, ""]]
    assert lines_of(engine, b"", 1_000) == []


def test_lone_surrogates_are_replaced_one_for_one(engine: SqlEngine) -> None:
    payload = "a\ud83db\n".encode("utf-8", "surrogatepass")

    assert lines_of(engine, payload, 1_000) == [[1, "a\ufffdb"]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.text("ab\n\n\r\x00\"',é", max_size=40), st.integers(1, 9))
@example("a\nb", 2)
@example("\n\n", 1)
def test_lines_are_those_of_the_text_however_it_comes(
    engine: SqlEngine, text: str, piece_bytes: int
) -> None:
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]

    found = lines_of(engine, text.encode(), piece_bytes)

    assert found == [[number, line] for number, line in enumerate(lines, 1)]
