"""Rows of JSON as tables: every value is kept as what it is, and columns are of its type."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from coatcheck.content import EngineError, SqlRows
from coatcheck.content._json import dumps
from coatcheck.content.sql import JsonSource, Loaded, UnreadableError, load_json
from coatcheck.errors import InvalidQueryError

BIG = 20_000


class SqlEngine(Protocol):
    statements: list[str]

    def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows: ...


class Table:
    """A loaded table, and what is in it."""

    def __init__(self, engine: SqlEngine, loaded: Loaded) -> None:
        self.loaded = loaded
        self.kinds = dict(loaded.columns)
        engine.run(loaded.view("data"))
        self.rows = engine.run("SELECT * FROM data")
        described = engine.run("DESCRIBE SELECT * FROM data")
        self.types = {str(column[0]): str(column[1]) for column in described}


Load = Callable[..., Table]


@pytest.fixture
def load(engine: SqlEngine, tmp_path: Path) -> Load:
    def load(
        rows: list[Any] | bytes,
        wanted: Iterable[str] | None = None,
        *,
        form: str = "json",
        seen: int | None = None,
        keys: Sequence[str] | None = None,
        count: int | None = None,
        size_bytes: int = BIG * 1_000,
    ) -> Table:
        """Load rows of which the first `seen` are known beforehand, all of them for None."""
        path = tmp_path / "rows"
        path.write_bytes(rows if isinstance(rows, bytes) else dumps(rows))
        known = rows if isinstance(rows, list) else []
        source = JsonSource(
            path=str(path),
            form=form,
            size_bytes=size_bytes,
            count=len(known) if isinstance(rows, list) else count,
            sample=known[:seen],
            is_all=isinstance(rows, list) and seen is None,
            keys=keys,
        )
        return Table(engine, load_json(engine, source, "t0", wanted))

    return load


@pytest.mark.parametrize("seen", [None, 1, 0])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"], "VARCHAR"),
        (["007", "8001", "1e5"], "VARCHAR"),
        (["2026-01-01", "2026-01-01T08:00:00Z"], "VARCHAR"),
        (["NA", "", "null", "true"], "VARCHAR"),
        (['{"a":1}', "[1]"], "VARCHAR"),
        (['quote " and \\ and \n', "żółć 🦉", "\x00"], "VARCHAR"),
        ([1, -2, 0], "BIGINT"),
        ([2**63 - 1, -(2**63)], "BIGINT"),
        ([2**63, 1], "HUGEINT"),
        ([2**64, -(2**64)], "HUGEINT"),
        ([2**127 - 1, -(2**127) + 1], "HUGEINT"),
        ([0.5, 1e300, -0.0], "DOUBLE"),
        ([1, 0.5], "DOUBLE"),
        ([2**53, 0.5], "DOUBLE"),
        ([True, False], "BOOLEAN"),
    ],
)
def test_columns_have_the_type_of_their_values(
    load: Load, values: list[Any], kind: str, seen: int | None
) -> None:
    table = load([{"a": value} for value in [*values, None]], seen=seen)

    assert table.types == {"a": kind}
    assert table.rows == [[value] for value in [*values, None]]


@pytest.mark.parametrize("seen", [None, 1, 0])
@pytest.mark.parametrize(
    "values",
    [
        ["a", 1],
        [1, "1"],
        [True, 1],
        [1.5, "N/A"],
        [{"b": 1}, "x"],
        [{"b": 1}, [1]],
        [0.5, 2**53 + 1],
        [2**127],
        [10**50, 1],
    ],
)
def test_values_of_several_kinds_and_numbers_too_large_stay_json(
    load: Load, values: list[Any], seen: int | None
) -> None:
    table = load([{"a": value} for value in values], seen=seen)

    assert table.types == {"a": "JSON"}
    assert table.rows == [[value] for value in values]
    assert [type(row[0]) for row in table.rows] == [type(value) for value in values]
    assert table.loaded.json_names == {"a"}


def test_a_column_without_values_is_null_of_any_type(load: Load, engine: SqlEngine) -> None:
    table = load([{"a": None, "b": 1}, {"b": 2}])

    assert table.kinds == {"a": "NULL", "b": "BIGINT"}
    assert engine.run("SELECT sum(a) FROM data WHERE a = 'x' OR a > 1 OR a") == [[None]]


def test_objects_are_structs_with_every_field_of_all_rows(load: Load, engine: SqlEngine) -> None:
    rows = [{"a": {"b": 1, "c": ["x"]}}, {"a": {"b": 2.5, "d": {"e": True}}}, {"a": None}]

    table = load(rows)

    assert table.types["a"] == "STRUCT(b DOUBLE, c VARCHAR[], d STRUCT(e BOOLEAN))"
    assert engine.run("SELECT a.b, a.c[1], a.d.e FROM data") == [
        [1.0, "x", None],
        [2.5, None, True],
        [None, None, None],
    ]


def test_lists_are_lists(load: Load, engine: SqlEngine) -> None:
    table = load([{"a": [1, 2]}, {"a": []}, {"a": [None, 3]}])

    assert table.types["a"] == "BIGINT[]"
    assert engine.run("SELECT sum(x) FROM (SELECT unnest(a) AS x FROM data)") == [[6]]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"b": 2**63}, "STRUCT(b HUGEINT)"),
        ({"b": [1, "x"]}, "STRUCT(b JSON[])"),
        ({"b": 0.5, "c": 2**53 + 1}, "STRUCT(b JSON, c BIGINT)"),
        ({"b": 10**40}, "JSON"),
        ({"b": None}, "STRUCT(b JSON)"),
        ({"b": {}}, "STRUCT(b JSON)"),
        ({}, "JSON"),
        ({"b": 1, "B": 2}, "JSON"),
        ({"": 1}, "JSON"),
        ({f"k{number}": 1 for number in range(101)}, "JSON"),
        ({f"k{at}": {f"l{below}": 1 for below in range(60)} for at in range(6)}, "JSON"),
    ],
)
def test_what_no_struct_holds_exactly_stays_json(load: Load, value: object, kind: str) -> None:
    table = load([{"a": value}])

    assert table.types["a"] == kind
    assert table.rows == [[value]]


def test_fields_that_stay_json_are_told(load: Load) -> None:
    table = load([{"a": {"Mixed": 1}}, {"a": {"Mixed": "x"}}])

    assert table.loaded.json_names == {"mixed"}


def test_a_hundred_keys_are_fields_of_a_struct(load: Load) -> None:
    table = load([{"a": {f"k{number}": 1 for number in range(100)}}])

    assert table.types["a"].startswith("STRUCT(k0 BIGINT, ")


def test_rows_that_lack_a_key_are_null_there(load: Load) -> None:
    table = load([{"a": 1}, {"b": "x"}, {"c": True, "a": 2}, {}])

    assert list(table.types) == ["a", "b", "c"]
    assert table.rows == [[1, None, None], [None, "x", None], [2, None, True], [None, None, None]]


def test_keys_of_rows_that_were_not_seen_are_columns_too(load: Load) -> None:
    table = load([{"a": 1}, {"b": 2}, {"a": 3, "c": 4}], seen=1)

    assert list(table.types) == ["a", "b", "c"]
    assert table.loaded.is_whole


def test_only_the_columns_that_are_named_are_loaded(load: Load) -> None:
    table = load([{"a": 1, "b": 2, "c": 3}], {"C", "no column"})

    assert table.rows == [[3]]
    assert not table.loaded.is_whole
    assert table.loaded.known == ["a", "b", "c"]


def test_a_small_table_is_loaded_whole(load: Load) -> None:
    table = load([{"a": 1, "b": 2}], {"b"}, size_bytes=1024 * 1024)

    assert table.rows == [[1, 2]]
    assert table.loaded.is_whole


def test_one_column_is_loaded_where_none_is_named(load: Load) -> None:
    assert load([{"a": 1, "b": 2}, {"b": 3}], ()).rows == [[1], [None]]


def test_a_name_that_no_seen_row_has_is_looked_for_in_all(load: Load, engine: SqlEngine) -> None:
    table = load([{"a": 1}, {"late": 2}], {"late"}, seen=1)

    assert table.types == {"late": "BIGINT"}
    assert any("json_keys" in statement for statement in engine.statements)


def test_names_that_seen_rows_have_need_no_look_at_all(load: Load, engine: SqlEngine) -> None:
    load([{"a": 1}, {"late": 2}], {"a"}, seen=1)

    assert not any("json_keys" in statement for statement in engine.statements)


def test_known_keys_need_no_look_at_all(load: Load, engine: SqlEngine) -> None:
    table = load([{"a": 1}, {"late": 2}], seen=1, keys=["a", "late"])

    assert list(table.types) == ["a", "late"]
    assert not any("json_keys" in statement for statement in engine.statements)


def test_a_thousand_columns_are_loaded_and_more_are_refused(load: Load) -> None:
    rows = [{f"k{number}": 1 for number in range(1_001)}]

    assert load(rows, {"k7"}).rows == [[1]]
    with pytest.raises(InvalidQueryError, match="1,001 columns") as caught:
        load(rows)
    assert "k0, k1" in caught.value.hint


@pytest.mark.parametrize("values", [[1, 2], ["a", None], [[1], [2, 3]], [True]])
def test_a_list_of_plain_values_is_one_column(load: Load, values: list[Any]) -> None:
    table = load(values)

    assert list(table.types) == ["value"]
    assert table.rows == [[value] for value in values]
    assert table.loaded.is_bare


@pytest.mark.parametrize("seen", [None, 1, 2])
def test_a_list_of_objects_and_others_is_one_column_of_json(load: Load, seen: int | None) -> None:
    rows: list[Any] = [{"a": 1}, {"a": 2}, 3, "x", [4]]

    table = load(rows, seen=seen)

    assert table.types == {"value": "JSON"}
    assert table.rows == [[row] for row in rows]


def test_objects_without_keys_are_one_column(load: Load) -> None:
    assert load([{}, {}]).rows == [[{}], [{}]]


def test_a_row_that_is_null_is_null_in_every_column(load: Load) -> None:
    assert load([{"a": 1, "b": 2}, None]).rows == [[1, 2], [None, None]]


def test_no_rows_have_whatever_column_is_asked_for(load: Load, engine: SqlEngine) -> None:
    table = load([], {"id", "price"})

    assert table.kinds == {"id": "NULL", "price": "NULL"}
    assert engine.run("SELECT id, sum(price) FROM data GROUP BY id") == []


def test_no_rows_are_a_list_of_plain_values_where_nothing_is_asked_for(load: Load) -> None:
    table = load([])

    assert table.kinds == {"value": "NULL"}
    assert table.loaded.is_bare


def test_lines_of_json_are_rows(load: Load) -> None:
    table = load(b'{"a":1}\n\n{"a":2}\r\n  \n{"a":3}', form="ndjson")

    assert table.rows == [[1], [2], [3]]


def test_text_around_an_array_is_no_part_of_it(load: Load) -> None:
    assert load(b'\xef\xbb\xbf \n[ {"a" : 1} ,\n{"a":2}\t] \n').rows == [[1], [2]]


@pytest.mark.parametrize(
    "payload",
    [
        b'[{"a":1,"a":2}]',
        b'[{"a":"\\ud83d"}]',
        b'[{"a":"\xed\xa0\xbd"}]',
        b'[{"a":1}',
        b'[{"a":1}] x',
        b'[{"a":1,"A":2}]',
        b'[{"":1}]',
        b'[{"a\\u0000":1}]',
        b"no json",
    ],
)
def test_what_the_engine_reads_otherwise_than_we_is_left_to_us(load: Load, payload: bytes) -> None:
    with pytest.raises(UnreadableError):
        load(payload)


def test_another_number_of_rows_than_was_counted_is_left_to_us(load: Load) -> None:
    with pytest.raises(UnreadableError):
        load(b'[{"a":1},{"a":2}]', count=3)
    with pytest.raises(UnreadableError):
        load(b"[1,2]", count=3)


def test_an_engine_without_time_is_not_taken_for_a_reason_to_read_it_otherwise(
    engine: SqlEngine, tmp_path: Path
) -> None:
    class Late:
        def run(self, sql: str, parameters: Sequence[object] = ()) -> SqlRows:
            raise EngineError("deadline")

    source = JsonSource(path=str(tmp_path / "x"), form="json", size_bytes=1, sample=[{"a": 1}])
    with pytest.raises(EngineError, match="deadline"):
        load_json(Late(), source, "t0", None)


def test_names_are_quoted_whatever_they_hold(load: Load) -> None:
    rows: list[Any] = [{'a"b': 1, "c'd": 2, "e.f": 3, "g h": 4, "select": 5, "żółć": 6, "j;--": 7}]

    table = load(rows)

    assert list(table.types) == list(rows[0])
    assert table.rows == [[1, 2, 3, 4, 5, 6, 7]]


def test_a_file_name_is_no_pattern_and_gives_no_columns(engine: SqlEngine, tmp_path: Path) -> None:
    folder = tmp_path / "year=2026"
    folder.mkdir()
    (folder / "rows.json.gz").write_bytes(b'[{"a":1}]')

    source = JsonSource(
        path=str(folder / "rows.json.gz"), form="json", size_bytes=9, sample=[{"a": 1}], is_all=True
    )
    loaded = load_json(engine, source, "t0", None)

    assert loaded.columns == {"a": "BIGINT"}


CELLS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5)
    | st.sampled_from(["1", "true", "{}", "[]", "1.5", "null", "-0", "2026-01-01", "0x"]),
    lambda cells: st.lists(cells, max_size=3) | st.dictionaries(st.sampled_from("xyz"), cells),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CELLS, min_size=1, max_size=8), st.integers(0, 3) | st.none())
@example([1, 1.0], 1)
@example([True, "true"], 1)
@example([0.1, 9007199254740993], 1)
@example([0.1, 9007199254740993], None)
@example(["a", "1"], 1)
@example(["a", "1"], None)
@example([{"x": 1}, {"x": 1.0, "y": None}], 0)
def test_no_value_changes_on_its_way(
    engine: SqlEngine, tmp_path: Path, cells: list[Any], seen: int | None
) -> None:
    path = tmp_path / "rows"
    rows = [{"a": cell} for cell in cells]
    path.write_bytes(dumps(rows))
    source = JsonSource(
        path=str(path),
        form="json",
        size_bytes=BIG * 1_000,
        count=len(rows),
        sample=rows[:seen],
        is_all=seen is None,
    )

    loaded = load_json(engine, source, "t0", None)
    engine.run("DROP VIEW IF EXISTS data")
    engine.run(loaded.view("data"))
    found = engine.run("SELECT * FROM data")
    engine.run("DROP TABLE t0 CASCADE")

    assert [without_nulls(row[0]) for row in found] == [without_nulls(cell) for cell in cells]


def without_nulls(value: Any) -> Any:
    """Return a value without keys that hold null: a struct has all fields of its column."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        kept = {key: without_nulls(each) for key, each in members}
        return {key: each for key, each in kept.items() if each not in (None, {})} or None
    if isinstance(value, list):
        return list(map(without_nulls, cast("Any", value)))
    # Of 1 and 1.0, and of 1 and True, only the text tells which it is; but 1 may become 1.0.
    return value if isinstance(value, bool | str) or value is None else json.dumps(float(value))
