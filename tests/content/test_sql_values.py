"""Rows that are written anew for a database: values as JSON, frames as Parquet."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from coatcheck.content import SqlRows, encode
from coatcheck.content._json import loads
from coatcheck.content.sql import JsonSource, load_frame_file, load_json, write_frame, write_values

pd: Any = import_module("pandas")
pl: Any = import_module("polars")
pa: Any = import_module("pyarrow")


class SqlEngine(Protocol):
    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows: ...


def test_keys_become_names_that_sql_tells_apart() -> None:
    rows = [{"id": 1, "ID": 2, "": 3, "a\x00": 4}, None, {"Id": 5}]

    written = write_values(rows)

    assert loads(written.payload) == [
        {"id": 1, "ID_2": 2, "column_3": 3, "a\ufffd": 4},
        None,
        {"Id_2": 5} if "Id_2" in written.keys else {"Id_3": 5},
    ]
    assert written.renamed == {
        "ID": "ID_2",
        "": "column_3",
        "a\x00": "a\ufffd",
        "Id": written.keys[-1],
    }
    assert rows[0] == {"id": 1, "ID": 2, "": 3, "a\x00": 4}


def test_names_that_are_plain_stay() -> None:
    written = write_values([{"a": 1}, {"b": 2}])

    assert (list(written.keys), dict(written.renamed)) == (["a", "b"], {})


def test_lone_surrogates_are_replaced_one_for_one() -> None:
    assert write_values(["a\ud83d\ude00b\ud83d"]).payload == '["a\ufffd\ufffdb\ufffd"]'.encode()


def test_a_sample_of_many_values_is_spread_over_them() -> None:
    written = write_values(list(range(10_000)))

    assert written.count == 10_000
    assert not written.is_all
    assert list(written.sample) == list(range(0, 10_000, 5))
    assert write_values(list(range(2_000))).is_all


def test_values_that_were_written_anew_are_read(engine: SqlEngine, tmp_path: Path) -> None:
    written = write_values([{"id": 2**70, "ID": "x"}, {"ID": None}])
    path = tmp_path / "rows"
    path.write_bytes(written.payload)

    source = JsonSource(
        path=str(path),
        form="json",
        size_bytes=len(written.payload),
        count=written.count,
        sample=written.sample,
        is_all=written.is_all,
        keys=written.keys,
    )
    loaded = load_json(engine, source, "t0", None)

    assert loaded.columns == {"id": "HUGEINT", "ID_2": "VARCHAR"}
    assert engine.run('SELECT id, "ID_2" FROM t0') == [[2**70, "x"], [None, None]]


def frame_rows(
    engine: SqlEngine, path: Path, frame: Any, wanted: Sequence[str] | None = None
) -> tuple[dict[str, str], SqlRows] | None:
    """Return the types and rows of a frame that was banked, None where it has to be JSON."""
    encoding = encode(frame)
    written = write_frame(encoding.whole(), encoding.form, wanted)
    if written is None:
        return None
    path.write_bytes(written.payload)
    loaded = load_frame_file(engine, str(path), written, "t0")
    engine.run(loaded.view("data"))
    described = engine.run("DESCRIBE SELECT * FROM data")
    return {str(row[0]): str(row[1]) for row in described}, engine.run("SELECT * FROM data")


MOMENT = dt.datetime.fromisoformat("2026-11-30T08:15:00.123456")
COLUMNS: list[tuple[Any, str, list[object]]] = [
    (pa.array([1, None, 2**62]), "BIGINT", [1, None, 2**62]),
    (pa.array([2**64 - 1], pa.uint64()), "UBIGINT", [2**64 - 1]),
    (pa.array([1.5, float("nan")]), "DOUBLE", [1.5, "NaN"]),
    (pa.array(["007", ""]), "VARCHAR", ["007", ""]),
    (pa.array(["a", "a"]).dictionary_encode(), "VARCHAR", ["a", "a"]),
    (pa.array([True, None]), "BOOLEAN", [True, None]),
    (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "DECIMAL(10,2)", [1.5]),
    (
        pa.array([Decimal("12345678901234567.89")], pa.decimal128(38, 2)),
        "DECIMAL(38,2)",
        ["12345678901234567.89"],
    ),
    (pa.array([dt.date(2026, 1, 2)]), "DATE", ["2026-01-02"]),
    (pa.array([MOMENT], pa.timestamp("us")), "TIMESTAMP", ["2026-11-30T08:15:00.123456"]),
    (pa.array([MOMENT], pa.timestamp("ns")), "TIMESTAMP", ["2026-11-30T08:15:00.123456"]),
    (
        pa.array([MOMENT], pa.timestamp("us", "UTC")),
        "TIMESTAMP WITH TIME ZONE",
        ["2026-11-30T08:15:00.123456+00:00"],
    ),
    (pa.array([dt.time(8, 15)], pa.time64("us")), "TIME", ["08:15:00"]),
    (pa.array([b"\x00\xff"]), "BLOB", ["AP8="]),
    (pa.array([{"b": [1, 2]}]), "STRUCT(b BIGINT[])", [{"b": [1, 2]}]),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "MAP(VARCHAR, BIGINT)", [{"k": 1}]),
]


@pytest.mark.parametrize(("column", "kind", "values"), COLUMNS)
def test_columns_of_arrow_keep_their_types_and_values(
    engine: SqlEngine, tmp_path: Path, column: Any, kind: str, values: list[object]
) -> None:
    found = frame_rows(engine, tmp_path / "frame", pa.table({"a": column}))

    assert found == ({"a": kind}, [[value] for value in values])


@pytest.mark.parametrize(
    ("column", "kind", "shown"),
    [
        (pa.array([dt.timedelta(seconds=1)]), "VARCHAR", "PT1S"),
        (pa.array([np.float16(1.5)], pa.float16()), "DOUBLE", 1.5),
        (pa.array([1], pa.timestamp("ns")), "VARCHAR", "1970-01-01T00:00:00.000000001"),
        (pa.array([1], pa.time64("ns")), "VARCHAR", "00:00:00.000000001"),
        (pa.array([Decimal(10**50)], pa.decimal256(60, 0)), "VARCHAR", str(10**50)),
    ],
)
def test_columns_that_parquet_or_the_engine_would_change_are_what_rows_show(
    engine: SqlEngine, tmp_path: Path, column: Any, kind: str, shown: object
) -> None:
    price = pa.array([Decimal("1.50")])

    found = frame_rows(engine, tmp_path / "frame", pa.table({"a": column, "price": price}))

    assert found == ({"a": kind, "price": "DECIMAL(3,2)"}, [[shown, 1.5]])


def test_a_structure_of_such_a_type_is_left_to_us(engine: SqlEngine, tmp_path: Path) -> None:
    column = pa.array([[dt.timedelta(seconds=1)]])

    assert frame_rows(engine, tmp_path / "frame", pa.table({"a": column})) is None


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pl.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pa.table({"a": [1, 2], "b": ["x", None]}),
        pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}),
    ],
)
def test_frames_of_every_library_are_read(engine: SqlEngine, tmp_path: Path, frame: Any) -> None:
    found = frame_rows(engine, tmp_path / "frame", frame)

    assert found == ({"a": "BIGINT", "b": "VARCHAR"}, [[1, "x"], [2, None]])


def test_a_series_is_one_column(engine: SqlEngine, tmp_path: Path) -> None:
    found = frame_rows(engine, tmp_path / "frame", pl.Series("a", [1, 2]))

    assert found == ({"a": "BIGINT"}, [[1], [2]])


def test_an_index_is_a_column_where_it_has_a_name(engine: SqlEngine, tmp_path: Path) -> None:
    index = pd.Index(["k"], name="key")

    assert frame_rows(engine, tmp_path / "named", pd.DataFrame({"a": [1]}, index=index)) == (
        {"a": "BIGINT", "key": "VARCHAR"},
        [[1, "k"]],
    )


def test_an_index_without_a_name_is_none(engine: SqlEngine, tmp_path: Path) -> None:
    found = frame_rows(engine, tmp_path / "frame", pd.DataFrame({"a": [1]}, index=["k"]))

    assert found == ({"a": "BIGINT"}, [[1]])


def test_columns_that_differ_by_capitals_only_are_told_apart() -> None:
    encoding = encode(pa.table({"a": [1], "A": [2]}))

    written = write_frame(encoding.whole(), encoding.form, None)

    assert written is not None
    assert (list(written.columns), dict(written.renamed)) == (["a", "A_2"], {"A": "A_2"})


def test_of_a_large_frame_only_the_columns_that_are_named_are_written(
    engine: SqlEngine, tmp_path: Path
) -> None:
    frame = pa.table({"a": range(200_000), "b": range(200_000)})
    encoding = encode(frame)

    written = write_frame(encoding.whole(), encoding.form, ["B", "x"])

    assert written is not None
    assert (list(written.columns), list(written.known)) == (["b"], ["a", "b"])
    assert not written.is_whole
