"""Records of CSV as tables: the records that we find, and columns as the glimpse types them."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from coatcheck.content import EngineError, SqlRows, glimpse
from coatcheck.content._csv import CsvRows, extra_name, parse_csv
from coatcheck.content._index import BOM
from coatcheck.content.sql import (
    CsvLook,
    CsvSource,
    Loaded,
    UnreadableError,
    dump_records,
    load_csv,
)

BIG = 20_000_000


class SqlEngine(Protocol):
    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows: ...


class Table:
    def __init__(self, engine: SqlEngine, loaded: Loaded) -> None:
        self.loaded = loaded
        self.types = dict(loaded.columns)
        engine.run(loaded.view("data"))
        self.rows = engine.run("SELECT * FROM data")
        engine.run("DROP VIEW data")
        engine.run(f"DROP TABLE {loaded.table} CASCADE")


def is_simple(payload: bytes) -> bool:
    look = CsvLook()
    for at in range(0, len(payload), 2):
        look.feed(payload[at : at + 2])
    return look.is_simple


def table_of(
    engine: SqlEngine,
    path: Path,
    text: str,
    *,
    wanted: Sequence[str] | None = None,
    form: str = "csv",
    has_header: bool = True,
    seen: int = 5,
    size_bytes: int = BIG,
) -> Table:
    payload = text.encode()
    scanner = CsvRows(form, header=has_header)
    scanner.feed(payload)
    rows = scanner.rows()
    assert rows is not None
    simple = is_simple(payload)
    start = rows.starts[0] if rows.count else len(payload)
    has_extra = False
    if simple:
        path.write_bytes(payload)
    else:
        arrays, has_extra = dump_records(payload[start:], form, len(rows.columns))
        path.write_bytes(arrays)
    source = CsvSource(
        path=str(path),
        form=form,
        columns=rows.columns,
        has_header=has_header,
        size_bytes=size_bytes,
        count=rows.count,
        sample=parse_csv(payload[start:].decode(), form)[:seen],
        are_arrays=not simple,
        has_extra=has_extra,
    )
    return Table(engine, load_csv(engine, source, "t0", wanted))


Load = Callable[..., Table]


@pytest.fixture
def load(engine: SqlEngine, tmp_path: Path) -> Load:
    def load(text: str, **options: Any) -> Table:
        return table_of(engine, tmp_path / "records", text, **options)

    return load


@pytest.mark.parametrize("seen", [0, 5])
@pytest.mark.parametrize(
    ("fields", "kind", "values"),
    [
        (["1", "", "-2", "+3"], "BIGINT", [1, None, -2, 3]),
        (["123456789012345678"], "BIGINT", [123456789012345678]),
        (["1234567890123456789"], "VARCHAR", ["1234567890123456789"]),
        (["007", "8"], "VARCHAR", ["007", "8"]),
        (["1.5", "2", ""], "DOUBLE", [1.5, 2.0, None]),
        (["1e3", ".5", "5."], "DOUBLE", [1000.0, 0.5, 5.0]),
        (["inf", "1.5"], "DOUBLE", ["Infinity", 1.5]),
        (["1.5", "123456789012345678"], "VARCHAR", ["1.5", "123456789012345678"]),
        (["true", "False", ""], "BOOLEAN", [True, False, None]),
        (["1", "NA"], "VARCHAR", ["1", "NA"]),
        (["x", ""], "VARCHAR", ["x", ""]),
        (["1_000"], "VARCHAR", ["1_000"]),
        ([" 1"], "VARCHAR", [" 1"]),
        (["2026-01-01"], "VARCHAR", ["2026-01-01"]),
        (["", ""], "VARCHAR", ["", ""]),
    ],
)
def test_columns_have_the_type_of_all_their_fields(
    load: Load, fields: list[str], kind: str, values: list[object], seen: int
) -> None:
    text = "a,b\n" + "".join(f"{field},x\n" for field in fields)

    table = load(text, seen=seen)

    assert table.types == {"a": kind, "b": "VARCHAR"}
    assert table.rows == [[value, "x"] for value in values]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n", [[1, 2]]),
        ("a,b\r\n1,2\r\n", [[1, 2]]),
        ("a,b\r1,2\r", [[1, 2]]),
        ("a,b\n1,2", [[1, 2]]),
        ("\ufeffa,b\n1,2\n", [[1, 2]]),
        ("a,b\n\n1,2\n\n", [[1, 2]]),
        ("a,b\n1\n3,4\n", [[1, None], [3, 4]]),
        ('a,b\n"x\ny","q ""r"""\n', [["x\ny", 'q "r"']]),
        ('a,b\n"x"y,z\n', [["xy", "z"]]),
        ('a,b\n x"y, "z"\n', [[' x"y', ' "z"']]),
        ("a,b\n#1,'2'\n", [["#1", "'2'"]]),
        ("a,b\n\x00,żółć\n", [["\x00", "żółć"]]),
    ],
)
def test_records_are_those_that_a_page_of_rows_shows(
    load: Load, text: str, rows: list[object]
) -> None:
    assert load(text).rows == rows


def test_tabs_part_the_fields_of_tsv(load: Load) -> None:
    assert load("a\tb\n1\tx,y\n", form="tsv").rows == [[1, "x,y"]]


def test_columns_without_a_header_are_numbered(load: Load) -> None:
    table = load("1,x\n2,y\n", has_header=False)

    assert list(table.types) == ["column_1", "column_2"]
    assert table.rows == [[1, "x"], [2, "y"]]


def test_names_that_differ_by_capitals_only_are_told_apart(load: Load) -> None:
    table = load("id,ID,id\n1,2,3\n")

    assert list(table.types) == ["id", "ID_2", "id_3"]
    assert table.rows == [[1, 2, 3]]


def test_only_the_columns_that_are_named_are_loaded(load: Load) -> None:
    table = load("a,b,c\n1,2,3\n", wanted=["B"])

    assert table.rows == [[2]]
    assert list(table.loaded.known) == ["a", "b", "c"]
    assert not table.loaded.is_whole


def test_a_small_table_is_loaded_whole(load: Load) -> None:
    assert load("a,b\n1,2\n", wanted=["b"], size_bytes=8).rows == [[1, 2]]


def test_fields_behind_the_last_column_are_a_list(load: Load) -> None:
    table = load('a,extra\n1,2,3,4\n5,"6"\n')

    assert table.types == {"a": "BIGINT", "extra": "BIGINT", "extra_3": "VARCHAR[]"}
    assert table.rows == [[1, 2, ["3", "4"]], [5, 6, []]]


@pytest.mark.parametrize("text", ["a,b\n1,2,3\n", "\n\na,b\n1,2\n"])
def test_longer_records_and_blank_lines_before_the_header_are_left_to_us(
    load: Load, text: str
) -> None:
    with pytest.raises(UnreadableError):
        load(text)


def test_another_number_of_records_than_was_counted_is_left_to_us(
    engine: SqlEngine, tmp_path: Path
) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"a,b\n1,2\n")
    source = CsvSource(
        path=str(path), form="csv", columns=["a", "b"], has_header=True, size_bytes=8, count=2
    )

    with pytest.raises(UnreadableError):
        load_csv(engine, source, "t0", None)


def test_an_engine_without_memory_is_no_reason_to_read_it_otherwise(tmp_path: Path) -> None:
    class Full:
        def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
            raise EngineError("memory")

    source = CsvSource(path="x", form="csv", columns=["a"], has_header=True, size_bytes=1, count=1)
    with pytest.raises(EngineError, match="memory"):
        load_csv(Full(), source, "t0", None)


@pytest.mark.parametrize(
    ("payload", "simple"),
    [
        (b"a,b\n1,2\n", True),
        (b"a,b\r\n1,2\r\n", True),
        (b"a,b\n1,2\r", False),
        (b"a\rb\n", False),
        (b"\ra\n", False),
        (b'a,"b"\n', False),
        (b"a\x00\n", False),
        (BOM + b"a\n", True),
    ],
)
def test_simple_text_is_cut_by_delimiters_and_ends_of_lines_alone(
    payload: bytes, simple: bool
) -> None:
    # What comes last may go on.
    assert is_simple(payload + b"x") is simple


def test_lone_surrogates_are_replaced_one_for_one() -> None:
    text = "a\ud83d,b\n".encode("utf-8", "surrogatepass")

    assert dump_records(text, "csv", 2) == ('[["a\ufffd","b"]]'.encode(), False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text('ab12.-,,,\n\n\r" é\t#0', max_size=80))
@example('1,2\n"3",4\n')
@example("1,\r\n2\n")
def test_whatever_the_text_the_records_are_ours(
    engine: SqlEngine, tmp_path: Path, text: str
) -> None:
    text = f"x,y\n{text}"
    records = parse_csv(text, "csv")[1:]

    try:
        table = table_of(engine, tmp_path / "records", text)
    except UnreadableError:
        engine.run("DROP TABLE t0_stage")
        assert is_simple(text.encode())
        assert any(len(record) > 2 for record in records)
        return

    types = list(table.types.values())
    for row, record in zip(table.rows, records, strict=True):
        padded = [*record, None, None][:2]
        assert row[:2] == [typed(*each) for each in zip(padded, types, strict=False)]
        assert row[2:] == ([record[2:]] if extra_name(("x", "y")) in table.types else [])


def typed(field: str | None, kind: str) -> object:
    if kind == "VARCHAR" or not field:
        return field if kind == "VARCHAR" else None
    if kind == "BOOLEAN":
        return field.lower() == "true"
    return int(field) if kind == "BIGINT" else float(field)


GLIMPSED = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "str": "VARCHAR",
    "date": "VARCHAR",
    "null": "VARCHAR",
}
FIELDS = st.sampled_from(
    [
        *("1", "-7", "+2", "0", "00", "007", "1.5", ".5", "5.", "1e5", "1e", "nan", "inf", "NA"),
        *("true", "FALSE", "yes", "", "2026-01-01", "1,5", "x", " 1", "1 ", "1_0", "0x1", "١"),
        *("123456789012345678", "1234567890123456789", "-", "+", ".", "e5", "--1"),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FIELDS, min_size=5, max_size=6))
@example(["nan", "1", "1", "1", "1"])
@example(["+-5", "1", "1", "1", "1"])
def test_types_are_those_that_the_glimpse_states(
    engine: SqlEngine, tmp_path: Path, fields: list[str]
) -> None:
    quoted = [f'"{field}"' if "," in field else field for field in fields]
    text = "id,a\n" + "".join(f"x{at},{field}\n" for at, field in enumerate(quoted))
    found = glimpse(text, content_type="text/csv", size_bytes=len(text), budget_tokens=100)
    assert found is not None
    facts: Any = found.facts
    stated = facts["columns"][1]["type"]
    # Of these a float would not be exact.
    assume(stated != "float" or not any(len(field) == 18 for field in fields))

    table = table_of(engine, tmp_path / "records", text)

    assert table.types["a"] == GLIMPSED[stated]
    cells = [row[1] for row in table.rows]
    if stated in {"int", "float"} and not facts["columns"][1].get("nonFinite"):
        numbers = [cell for cell in cells if isinstance(cell, int | float)]
        assert math.isclose(min(numbers), facts["columns"][1]["min"])
        assert len(cells) - len(numbers) == facts["columns"][1]["nulls"]
