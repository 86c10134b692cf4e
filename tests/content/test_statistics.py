"""Statistics of a column: equal to what numpy and a plain count say."""

import json
import math
from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, IntEnum
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._statistics import describe, parsed, spread, written

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)
NUMBERS = st.lists(st.none() | FINITE | st.integers(-(2**53), 2**53), min_size=1, max_size=60)
WORDS = st.lists(st.none() | st.sampled_from(["late", "paid", "é", ""]), min_size=1, max_size=60)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@given(NUMBERS)
def test_numbers_equal_those_of_numpy(values: list[float | None]) -> None:
    numbers = [value for value in values if value is not None]

    column = describe("x", values)

    assert column.nulls == values.count(None)
    assert column.values == len(numbers)
    assert column.distinct == len(set(numbers))
    if not numbers:
        assert (column.type, column.minimum, column.mean) == ("null", None, None)
        return
    array = np.array(numbers, dtype=np.float64)
    assert column.minimum == array.min()
    assert column.maximum == array.max()
    assert column.mean is not None
    assert math.isclose(column.mean, array.mean(), rel_tol=1e-9, abs_tol=1e-3)
    exact = sum(map(Decimal, numbers)) / len(numbers)
    assert math.isclose(column.mean, exact, rel_tol=1e-12, abs_tol=1e-9)


@given(WORDS)
def test_counts_equal_a_plain_count(values: list[str | None]) -> None:
    words = [value for value in values if value is not None]

    column = describe("x", values)

    assert dict(column.top) == Counter(words)
    assert [count for _, count in column.top] == sorted(Counter(words).values(), reverse=True)
    assert column.nulls == len(values) - len(words)


@given(st.lists(st.floats(), min_size=1, max_size=40))
def test_what_is_not_finite_is_counted_and_left_out(values: list[float]) -> None:
    finite = [value for value in values if math.isfinite(value)]

    column = describe("x", values)

    assert column.non_finite == len(values) - len(finite)
    assert (column.minimum, column.maximum) == (
        min(finite, default=None),
        max(finite, default=None),
    )
    assert json.loads(json.dumps(column.facts(), allow_nan=False))["nulls"] == 0


def test_a_mean_may_be_of_numbers_whose_sum_is_beyond_any_float() -> None:
    assert describe("x", [1.5e308, 1.5e308]).mean == 1.5e308
    assert describe("x", [10**400, 10**400, 1.0]).mean is None
    assert describe("x", [10**400, 10**400]).mean is None


def test_types_of_a_column_are_told_apart() -> None:
    column = describe("x", [1, True, "1", 1.0, "1"])

    assert column.type == "bool|float|int|str"
    assert column.distinct == 4
    assert column.top[0] == ("1", 2)
    assert column.mean is None
    assert describe("x", [1, 2.5]).type == "float"
    assert describe("x", ["a", 1.5, math.inf]).non_finite == 1


def test_what_cannot_be_compared_is_not_counted() -> None:
    column = describe("x", [{"a": 1}, [1], None, (2,)])

    assert (column.type, column.distinct, column.top) == ("array|object", None, ())
    assert column.is_nested


@pytest.mark.parametrize(
    ("values", "type_", "least", "most"),
    [
        (["2026-01-02", "2025-12-31"], "date", "2025-12-31", "2026-01-02"),
        (["2026-01-02T10:00:00Z"] * 2, "date", "2026-01-02T10:00:00Z", "2026-01-02T10:00:00Z"),
        (["2026-01-02", "soon 2026!"], "str", None, None),
        (["2026-01-02", "2026-01-02 10:00"], "str", None, None),
        ([date(2026, 1, 2), date(2025, 1, 2)], "date", date(2025, 1, 2), date(2026, 1, 2)),
        (
            [datetime.fromisoformat("2026-01-02"), datetime(2026, 1, 2, tzinfo=UTC)],
            "date",
            None,
            None,
        ),
        ([Decimal("1.50"), Decimal("0.5")], "decimal", Decimal("0.5"), Decimal("1.50")),
        ([Decimal("NaN"), Decimal("NaN")], "decimal", None, None),
        ([time(10), time(11)], "time", None, None),
        ([b"a", b"b"], "bytes", None, None),
        ([UUID(int=1), UUID(int=2)], "UUID", None, None),
        ([Level.LOW, Level.LOW], "int", 1, 1),
        ([np.float32(0.5), np.float32(1.5)], "float32", 0.5, 1.5),
        ([np.int64(3), np.int64(4)], "int64", 3, 4),
        ([np.float64(3), np.float64(4)], "float", 3.0, 4.0),
    ],
)
def test_rich_types_have_a_range_where_they_have_an_order(
    values: list[object], type_: str, least: object, most: object
) -> None:
    column = describe("x", values)

    assert (column.type, column.minimum, column.maximum) == (type_, least, most)


def test_members_of_an_enum_count_as_their_values() -> None:
    assert describe("x", [Colour.RED, "red"]).top == (("red", 2),)


def test_many_values_none_of_which_stands_out_have_no_top() -> None:
    assert describe("x", [at % 50 for at in range(1_000)]).top == ()
    assert describe("x", [0] * 60 + list(range(1, 941))).top[0] == (0, 60)


def test_of_a_sample_types_and_nulls_are_those_of_all() -> None:
    column = describe("x", [1, 2], types={int, str, type(None)}, nulls=7)

    assert (column.type, column.nulls, column.mean) == ("int|str", 7, 1.5)


def test_facts_are_short_json_values() -> None:
    facts = describe("x", [10**5_000, 10**5_000]).facts()

    assert facts["max"] == "about 1e5000"
    assert describe("x", ["é" * 100] * 2).facts()["top"] == [
        {"value": "é" * 60, "count": 2, "share": 1.0}
    ]
    assert "top" not in describe("x", [1, 2, 3]).facts()


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-2", "+3"], [1, -2, 3]),
        (["1", "2.5", ""], [1.0, 2.5, None]),
        (["1e3", ".5", "nan"], [1_000.0, 0.5, math.nan]),
        (["007", "1"], ["007", "1"]),
        (["1", "x"], ["1", "x"]),
        (["1" * 19, "2"], ["1" * 19, "2"]),
        (["true", "False"], [True, False]),
        (["", ""], [None, None]),
        (["a", ""], ["a", ""]),
        ([], []),
        (["1_000", "2"], ["1_000", "2"]),
        (["١", "2"], ["١", "2"]),
    ],
)
def test_a_column_of_csv_is_numbers_if_all_of_it_is(texts: list[str], values: list[object]) -> None:
    assert list(map(repr, parsed(texts))) == list(map(repr, values))


def test_missing_fields_of_csv_are_null() -> None:
    assert list(parsed(["1", None, ""])) == [1, None, None]


@given(st.lists(st.integers(-(10**17), 10**17) | st.just(None), max_size=30))
def test_integers_in_csv_come_back(values: list[int | None]) -> None:
    assert list(parsed(["" if each is None else str(each) for each in values])) == values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (-0.0, "-0"),
        (1234567.875, "1.23457e+06"),
        (2**63 - 1, "9223372036854775807"),
        (-(10**30), "-about 1e30"),
        (date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.50"), "1.50"),
        (b"\0", "bytes"),
        ("x", "x"),
    ],
)
def test_a_value_is_written_shortly(value: object, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize("total", [20_000, 20_001, 30_000, 34_567, 39_999, 40_000, 200_001])
def test_a_sample_holds_no_row_twice(total: int) -> None:
    places = list(spread(total, 20_000))

    assert len(set(places)) == 20_000
    assert places == sorted(places)
    assert 0 <= places[0] <= places[-1] < total


def test_a_sample_is_spread_over_all_rows() -> None:
    places = list(spread(1_000_000, 20_000))

    assert places == list(spread(1_000_000, 20_000))
    assert [place // 50 for place in places] == list(range(20_000))
    assert 9_000 < sum(place % 2 for place in places) < 11_000
