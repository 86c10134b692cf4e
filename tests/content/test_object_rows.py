"""Rows of objects: columns, types and nulls of all, values of a sample that is always the same."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content._glimpse_json import glimpse_json, glimpse_json_bytes
from coatcheck.content._object_rows import EXACT_ROWS, SAMPLED_ROWS, ObjectRows

CELLS = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2) | st.just([1])
ROWS = st.lists(
    st.dictionaries(st.sampled_from("abc"), CELLS, max_size=3)
    | st.fixed_dictionaries({"a": CELLS, "b": CELLS}),
    min_size=1,
    max_size=6,
)
MANY = [{"id": at, "kind": "abc"[at % 3], "even": at % 2 == 0} for at in range(150_000)]


def of_blocks(rows: Sequence[Mapping[object, object]], block: int) -> ObjectRows:
    found = ObjectRows()
    for start in range(0, len(rows), block):
        found.add(rows[start : start + block])
    return found


def facts(of: ObjectRows) -> list[dict[str, object]]:
    return [column.facts() for column in of.columns()]


@pytest.mark.parametrize("block", [1, 777, 65_536, 150_000])
def test_the_same_rows_are_sampled_in_whatever_blocks_they_come(block: int) -> None:
    rows = cast("Sequence[Mapping[object, object]]", MANY)

    found = of_blocks(rows, block)

    assert (found.count, found.sampled) == (150_000, SAMPLED_ROWS)
    assert facts(found) == facts(ObjectRows.of(rows))


def test_a_sample_is_spread_over_all_and_follows_no_period() -> None:
    ids, kinds, evens = facts(ObjectRows.of(cast("Sequence[Mapping[object, object]]", MANY)))

    assert (ids["distinct"], kinds["distinct"]) == (SAMPLED_ROWS, 3)
    assert cast("int", ids["min"]) < 20
    assert cast("int", ids["max"]) > 149_980
    assert abs(cast("float", ids["mean"]) - 75_000) < 750
    for each in (*cast("list[dict[str, float]]", kinds["top"]),):
        assert abs(each["share"] - 1 / 3) < 0.02
    for each in (*cast("list[dict[str, float]]", evens["top"]),):
        assert abs(each["share"] - 1 / 2) < 0.02


@pytest.mark.parametrize("count", [100_001, 120_000, 150_001, 500_000])
def test_what_repeats_has_its_own_share_in_a_sample_of_any_size(count: int) -> None:
    periods = (8, 10, 16)

    rows = [{str(each): f"v{at % each}" for each in periods} for at in range(count)]
    found = facts(ObjectRows.of(cast("Sequence[Mapping[object, object]]", rows)))

    for each, column in zip(periods, found, strict=True):
        assert column["distinct"] == each
        for top in cast("list[dict[str, float]]", column["top"]):
            assert top["share"] == pytest.approx(1 / each, rel=0.08)


@given(ROWS, st.sampled_from([1, 1_000, 65_536]))
@settings(max_examples=15)
def test_names_types_and_nulls_are_those_of_all_rows(
    rows: list[dict[str, object]], block: int
) -> None:
    many = cast("list[Mapping[object, object]]", (rows * (EXACT_ROWS // len(rows) + 1))[::-1])
    block = max(block, 1_000)

    found = of_blocks(many, block)

    names = list(dict.fromkeys(str(name) for row in many[: 2 * len(rows)] for name in row))
    assert found.column_count == len(names)
    for column, name in zip(found.columns(), names, strict=True):
        types = Counter(type(row.get(name)) for row in rows)
        assert column.name == name
        each = len(many) // len(rows)
        first = Counter(type(row.get(name)) for row in many[each * len(rows) :])
        assert column.nulls == each * types[type(None)] + first[type(None)]
        assert len(column.type.split("|")) == max(1, len(types.keys() - {type(None)}))


def test_a_column_that_comes_late_is_null_before() -> None:
    rows = [{"a": 1}] * EXACT_ROWS + [{"a": 1, "b": "x"}] * 7
    many = cast("list[Mapping[object, object]]", rows)

    a, b = of_blocks(many, 1_000).columns()

    assert (a.type, a.nulls) == ("int", 0)
    assert (b.type, b.nulls) == ("str", EXACT_ROWS)


def test_rows_that_are_no_objects_are_refused() -> None:
    for row in (1, "ab", ["a", "b"], None):
        with pytest.raises(TypeError):
            ObjectRows.of(cast("list[Mapping[object, object]]", [{"a": 1, "b": 2}, row]))


@pytest.mark.parametrize("count", [2_000, EXACT_ROWS, EXACT_ROWS + 1])
def test_an_array_read_block_by_block_has_the_glimpse_of_its_value(count: int) -> None:
    rows = [{"id": at, "note": None if at % 3 else "é", "in": {"x": [at]}} for at in range(count)]

    assert glimpse_json_bytes(orjson.dumps(rows), 150) == glimpse_json(rows, 150)


def test_what_is_no_table_is_left_to_an_outline() -> None:
    sparse = [{f"key {at}": at} for at in range(2_000)]
    mixed = [{"a": 1}, 2, 3, 4, 5]

    assert glimpse_json_bytes(orjson.dumps(sparse), 150) is None
    assert glimpse_json_bytes(orjson.dumps(mixed), 150) is None
    assert glimpse_json_bytes(b'[{"a":1},', 150) is None
