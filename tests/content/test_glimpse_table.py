"""Glimpses of rows: exact numbers, the most telling first, within the budget."""

import base64
import csv
import io
import json
import math
import re
import unicodedata
from collections import Counter
from importlib import import_module
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content import dumps, encode, glimpse
from coatcheck.content._tokens import estimate_tokens

pd: Any = import_module("pandas")  # neither has type hints
pa: Any = import_module("pyarrow")

STATUSES = ("paid", "late", "shipped", "open")
ORDERS: list[dict[str, object]] = [
    {"id": at, "status": STATUSES[at % 3], "amount": at / 4, "note": None} for at in range(600)
]


def facts(value: object, content_type: str = "application/json") -> dict[str, object]:
    found = glimpse(value, content_type=content_type, size_bytes=1, budget_tokens=150)
    assert found is not None
    return dict(found.facts)


def text(value: object, content_type: str = "application/json", budget: int = 150) -> str:
    found = glimpse(value, content_type=content_type, size_bytes=1, budget_tokens=budget)
    return "" if found is None else str(found)


def column(of: dict[str, object], name: str) -> dict[str, object]:
    columns = cast("list[dict[str, object]]", of["columns"])
    return next(each for each in columns if each["name"] == name)


def as_csv(rows: list[dict[str, object]], delimiter: str = ",") -> str:
    into = io.StringIO()
    writer = csv.DictWriter(into, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return into.getvalue()


def test_rows_tell_columns_counts_and_ranges() -> None:
    assert text(ORDERS) == (
        "600 rows, 4 columns; id int 0 to 599, mean 299.5, all distinct; "
        "status str paid=200 (33%), late=200 (33%), shipped=200 (33%); "
        "amount float 0 to 149.75, mean 74.875; note null 600 null"
    )


def test_all_forms_of_the_same_rows_have_the_same_numbers() -> None:
    rows = [{key: row[key] for key in ("id", "status", "amount")} for row in ORDERS]
    expected = facts(rows)
    ndjson = "\n".join(dumps(row).decode() for row in rows)

    assert facts(dumps(rows)) == expected
    assert facts(dumps(rows).decode()) == expected
    assert facts(ndjson, "application/x-ndjson") == expected
    assert facts(ndjson.encode(), "application/jsonl") == expected
    assert facts(as_csv(rows), "text/csv") == expected
    assert facts(as_csv(rows).encode(), "text/csv") == expected
    assert facts(as_csv(rows, "\t"), "text/tab-separated-values") == expected
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows), pa.Table.from_pylist(rows)):
        assert facts(frame) == expected


def test_csv_that_nobody_called_so_is_a_table() -> None:
    encoding = encode(as_csv(ORDERS))

    assert facts(encoding.value, encoding.content_type)["rows"] == 600


def test_records_of_csv_are_counted_and_not_lines() -> None:
    page = '\ufeff"id","name"\r\n' + '1,"Zoë, the ""first"""\r\n2,"line1\nline2"\r\n' * 50

    assert text(page, "text/csv") == (
        "100 rows, 2 columns; id int 1=50 (50%), 2=50 (50%), mean 1.5; "
        'name str `Zoë, the "first"`=50 (50%), `line1\\nline2`=50 (50%)'
    )


WHOLE: dict[str, st.SearchStrategy[object]] = {
    "n": st.none() | st.integers(-(10**6), 10**6),
    "s": st.sampled_from(STATUSES),
}
PART: dict[str, st.SearchStrategy[object]] = {"f": st.floats(-1e6, 1e6)}
ROWS = st.lists(st.fixed_dictionaries(WHOLE, optional=PART), min_size=5, max_size=40)


@given(ROWS)
def test_numbers_of_rows_equal_numpy_and_a_plain_count(rows: list[dict[str, object]]) -> None:
    found = facts(rows)

    assert found["rows"] == len(rows)
    names = {key: None for row in rows for key in row}
    assert [each["name"] for each in cast("list[dict[str, object]]", found["columns"])] == [*names]
    for name in names:
        told = column(found, name)
        values = [row[name] for row in rows if row.get(name) is not None]
        assert told["nulls"] == len(rows) - len(values)
        assert told["distinct"] == len(set(values))
        if name != "s" and values:
            numbers = np.array(values, dtype=np.float64)
            assert (told["min"], told["max"]) == (numbers.min(), numbers.max())
            assert math.isclose(cast("float", told["mean"]), numbers.mean(), abs_tol=1e-6)
    counts = Counter(row["s"] for row in rows)
    top = cast("list[dict[str, object]]", column(found, "s").get("top", []))
    assert all(each["count"] == counts[each["value"]] for each in top)
    assert all(each["share"] == counts[each["value"]] / len(rows) for each in top)


@given(st.lists(st.integers(-99, 99) | st.none(), min_size=3, max_size=60))
def test_numbers_of_csv_equal_numpy(values: list[int | None]) -> None:
    page = as_csv([{"a": "x", "n": value} for value in values])
    numbers = np.array([value for value in values if value is not None])

    told = column(facts(page, "text/csv"), "n")

    assert told["nulls"] == values.count(None)
    if numbers.size:
        assert (told["min"], told["max"]) == (numbers.min(), numbers.max())
        assert math.isclose(cast("float", told["mean"]), numbers.mean())


CELLS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=4,
)


# Columns in which values of all kinds meet, each often enough to be counted.
ODD: st.SearchStrategy[object] = CELLS | st.sampled_from(
    ["", "x", "x" * 300, None, True, 0, -0.0, 1.5, math.nan, 2**70, [], [""], {}, {"k": ""}]
)
MIXED = st.fixed_dictionaries({"a": ODD}, optional={"b": ODD, "": ODD})


@settings(max_examples=80)
@given(
    st.lists(MIXED, min_size=5, max_size=30)
    | st.lists(st.dictionaries(st.text(max_size=2), CELLS, max_size=4), min_size=5, max_size=7),
    st.integers(1, 200),
)
def test_any_rows_have_a_valid_glimpse_within_the_budget(
    rows: list[dict[str, object]], budget: int
) -> None:
    found = glimpse(rows, content_type="application/json", size_bytes=1, budget_tokens=budget)

    if found is not None:
        again = glimpse(rows, content_type="application/json", size_bytes=1, budget_tokens=budget)
        assert again == found
        assert estimate_tokens(str(found)) <= budget
        assert not {unicodedata.category(char) for char in str(found)} & {"Cc", "Zl", "Zp", "Cs"}
        assert json.dumps(dict(found.facts), allow_nan=False)


def test_up_to_a_hundred_thousand_rows_all_is_exact() -> None:
    rows = [{"n": at, "s": STATUSES[at % 3]} for at in range(100_000)]

    found = facts(rows)

    assert found["sampled"] is False
    assert column(found, "n")["mean"] == 49_999.5
    assert column(found, "s")["top"] == [
        {"value": "paid", "count": 33_334, "share": 0.33334},
        {"value": "late", "count": 33_333, "share": 0.33333},
        {"value": "shipped", "count": 33_333, "share": 0.33333},
    ]


@pytest.mark.parametrize("ragged", [False, True])
def test_above_that_counts_and_types_are_exact_and_the_rest_is_sampled(*, ragged: bool) -> None:
    rows: list[dict[str, object]] = [{"n": at, "s": STATUSES[at % 3]} for at in range(100_001)]
    odd: dict[str, object] = {"n": "x", "s": None}
    rows[77_777] = {**odd, "late": 1} if ragged else odd

    found = facts(rows)

    assert (found["rows"], found["sampled"]) == (100_001, 20_000)
    assert (column(found, "n")["type"], column(found, "s")["nulls"]) == ("int|str", 1)
    assert text(rows).startswith(
        f"100,001 rows, {2 + ragged} columns (values sampled from 20,000 rows); n int|str"
    )
    shares = [each["share"] for each in cast("list[dict[str, float]]", column(found, "s")["top"])]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.02)
    assert "paid=3" in text(rows)
    assert "(3" not in text(rows)
    assert found == facts(rows)


def test_of_a_long_frame_and_a_long_csv_rows_are_sampled() -> None:
    frame = pl.DataFrame({"n": range(100_001)})
    page = "a,n\n" + "x,1\n" * 100_001

    frames: list[object] = [frame, frame.to_pandas(), frame.to_arrow()]

    for long in frames:
        found = facts(long)
        assert (found["rows"], found["sampled"]) == (100_001, 20_000)
        assert 49_000 < cast("float", column(found, "n")["mean"]) < 51_000
    read = facts(page, "text/csv")
    assert read["rows"] == 100_001
    assert 0 < cast("int", read["sampled"]) < 30_000


def test_of_an_array_of_which_only_the_first_rows_are_here_all_are_counted() -> None:
    found = glimpse(
        ORDERS, content_type="application/json", size_bytes=1, budget_tokens=150, row_count=9_000
    )
    numbers = glimpse(
        [1, 2, 3], content_type="application/json", size_bytes=1, budget_tokens=150, row_count=9
    )

    assert str(found).startswith("9,000 rows, 4 columns (values sampled from 600 rows); ")
    assert str(numbers) == "array of 9 int, values sampled from 3, 1 to 3, mean 2"


def test_a_wide_table_names_what_columns_fit_and_counts_the_rest() -> None:
    rows = [{f"column_{at}": at for at in range(250)}] * 6

    assert text(rows).endswith("; +230 more columns")
    assert text(rows, budget=12) == "6 rows, 250 columns"
    assert text(rows, budget=3) == ""
    assert facts(rows)["columnCount"] == 250
    assert len(cast("list[object]", facts(rows)["columns"])) == 100


def test_rows_with_little_in_common_are_outlined() -> None:
    assert text([{f"k{at}": 1} for at in range(9)]).startswith("array of 9 objects {k0?: int, ")
    assert text([{"a": {"b": 1}, "c": [1]}] * 9).startswith("array of 9 objects {a: object {b")
    assert text([{"a": 1}] * 4) == "array of 4 objects {a: int}"
    assert text([{"a": 1}, 2, 3, 4, 5]) == "array of 5 (int|object {a: int})"
    assert text([cast("dict[str, object]", {})] * 5) == "array of 5 objects of 0 keys"
    assert text({"rows": [[1]] * 9}) == "object {rows: array of 9 array of 1 int}"


def test_what_is_in_a_column_of_objects_is_outlined() -> None:
    rows = [
        {"id": at, "at": {"lat": 1.5, "lng": 2.5}, "tags": ["x"], "name": "n"} for at in range(9)
    ]

    assert "at object {lat: float, lng: float}; tags array of 1 str; name str" in text(rows)


def test_hostile_names_and_values_cannot_forge_a_table() -> None:
    rows = [{"a; b int": "x=9, +3 more\n`"}] * 9

    assert text(rows) == (r"9 rows, 1 column; `a; b int` str always `x=9, +3 more\n\x60`")


def test_values_that_stand_out_of_many_are_told() -> None:
    rows = [{"s": "usual" if at % 2 else f"rare{at}"} for at in range(400)]

    assert text(rows) == "400 rows, 1 column; s str usual=200 (50%), +200 more"


def test_a_column_of_lists_and_empty_texts_counts_no_distinct_values() -> None:
    rows: list[object] = [{"c": [number], "id": number} for number in range(5)]

    assert "5 distinct" not in text([*rows, {"c": "", "id": 9}])


def test_empty_texts_are_counted_as_what_they_are_and_not_as_missing() -> None:
    rows: list[dict[str, object]] = [
        {
            "city": ("Graz", "", "Linz")[at % 3],
            "n": ("", at)[at % 2],
            "day": ("2026-01-01", "")[at % 2],
        }
        for at in range(60)
    ]
    read = facts(as_csv(rows), "text/csv")

    assert text(as_csv(rows), "text/csv").startswith(
        "60 rows, 3 columns; city str 20 empty, Graz=20 (33%), Linz=20 (33%); n int 30 null, "
    )
    assert "; day date 30 empty, 2026-01-01=30 (50%)" in text(as_csv(rows), "text/csv")
    assert column(read, "city") == {
        "name": "city",
        "type": "str",
        "nulls": 0,
        "empty": 20,
        "distinct": 3,
        "top": [{"value": each, "count": 20, "share": 1 / 3} for each in ("Graz", "", "Linz")],
    }
    assert (column(read, "n")["nulls"], column(read, "day")["empty"]) == (30, 30)
    assert "city str 20 empty, Graz=20" in text(rows)
    assert text([{"a": "", "b": at} for at in range(9)]).startswith(
        "9 rows, 2 columns; a str always ``; b int"
    )
    assert "a str 1 null, 8 empty; b" in text(
        [{"a": "" if at else None, "b": at} for at in range(9)]
    )


def test_empty_texts_of_a_sample_are_told_as_a_share() -> None:
    rows: list[dict[str, object]] = [{"a": "" if at % 2 else f"x{at}"} for at in range(100_001)]

    assert re.search(r"; a str (?:49|5[01])% empty\b", text(rows))


def test_a_list_of_values_is_one_column() -> None:
    assert text(["p1", "p2", "p3", "p4", "p5"]) == "array of 5 str, all distinct"
    assert text([1, 2, 3, 4, None]) == "array of 5 int, 1 null, 1 to 4, mean 2.5, all distinct"
    assert text([1, 2]) == "array of 2 int"
    assert text([True, False] * 9) == "array of 18 bool, true=9 (50%), false=9 (50%)"
    assert facts([1.0, math.nan, 3.0, math.inf])["values"] == {
        "type": "float",
        "nulls": 0,
        "nonFinite": 2,
        "min": 1.0,
        "max": 3.0,
        "mean": 2.0,
        "distinct": 2,
    }
    assert text(["p1"] * 9, budget=1) == ""


def test_a_long_list_of_numbers_is_sampled() -> None:
    shown = text(list(range(200_000)))

    assert shown.startswith("array of 200,000 int, values sampled from 20,000, ")


def test_rows_within_an_object_are_described_where_they_are() -> None:
    reply = {"total": 600, "page": {"next": None, "items": ORDERS}}

    assert text(reply, budget=300).startswith(
        "object {total: 600, page: object {next: null, items: array of 600}}; "
        "`page.items`: 600 rows, 4 columns; id int 0 to 599"
    )
    found = facts(reply)
    assert found["path"] == ["page", "items"]
    assert cast("dict[str, object]", found["table"])["rows"] == 600
    assert text(reply, budget=20) == text(
        {"total": 600, "page": {"next": None, "items": ORDERS}}, budget=20
    )


def test_numbers_within_an_object_tell_what_is_not_finite() -> None:
    reply = {"rows": [1.0, math.nan, 3.0, math.inf], "filler": "word " * 20}

    assert "rows: array of 4 float, non-finite 2, 1 to 3, mean 2" in text(reply)


def test_base64_is_told_by_type_and_size_beside_short_values() -> None:
    reply = {"screenshot": "data:image/png;base64," + "A" * 400_000, "title": "Login", "n": 7}

    assert text(reply) == "object {screenshot: image/png of 300,000 bytes, title: `Login`, n: 7}"
    assert "data:image" not in text(reply)


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4).decode()


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([PNG] * 10, "image/png of 1,032 bytes 1 distinct"),
        ([PNG] * 9 + [f"{PNG}{PNG}"], "image/png of up to 2,064 bytes 2 distinct"),
        ([f"data:image/gif;base64,{PNG}"] * 10, "image/gif of 1,032 bytes 1 distinct"),
        ([PNG] * 9 + ["none"], "str image/png of 1,032 bytes=9 (90%), none=1 (10%)"),
        (["0123456789abcdef" * 20] * 10, "str always `0123456789abcdef01234567`…"),
    ],
)
def test_base64_in_a_column_is_named_and_never_shown(cells: list[str], told: str) -> None:
    rows = [{"n": 1, "scan": each} for each in cells]

    assert text(rows) == f"10 rows, 2 columns; n int always 1; scan {told}"
    assert PNG[:8] not in json.dumps(facts(rows))


def test_base64_is_named_by_the_type_it_begins_as() -> None:
    value = {"scan": PNG, "hex": "0123456789abcdef" * 20, "line": "-" * 500}

    assert "scan: image/png of 1,032 bytes" in text(value)
    assert "base64" not in text(value)


def test_texts_in_base64_of_several_sizes_tell_the_longest() -> None:
    rows = [["x", "A" * 400 + "=="], ["x", "A" * 800 + "="]]

    assert text(rows) == "array of 2 (array of 2 (str|base64 of up to 600 bytes))"


def test_ndjson_of_no_rows_is_outlined() -> None:
    assert text("[1]\n[2]\n[3]\n", "application/x-ndjson") == "array of 3 array of 1 int"
    assert text("\n" * 300, "application/x-ndjson").startswith("300 lines, ")
