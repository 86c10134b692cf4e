"""Questions about artifacts in three languages, and the artifacts that answers become."""

import asyncio
import datetime as dt
import json
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coatcheck import Bank, BlockingBank, Kind, Limits, Pointer, UnknownPointerError
from coatcheck.bank._query import language_of
from coatcheck.errors import (
    BinaryPayloadError,
    CoatcheckError,
    DamagedPayloadError,
    ExpiredPointerError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidQueryError,
    NothingSelectedError,
)
from coatcheck.records import Answer, Envelope
from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.testing import ManualClock

pa: Any = import_module("pyarrow")
pd: Any = import_module("pandas")

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ORDERS: list[dict[str, Any]] = [
    {"id": 2**62 + number, "status": ("paid", "open")[number % 2], "amount": number / 2}
    for number in range(10)
]
CITIES = [{"order": 2**62 + 1, "city": "Łódź"}, {"order": 2**62 + 4, "city": "Zürich"}]
SET = Kind("product set", prefix="ps", glimpse=lambda value: f"a set of {len(cast('Any', value))}")


@pytest.fixture
async def bank(store: Store) -> AsyncIterator[Bank]:
    bank = Bank(store, kinds=[SET])
    yield bank
    bank.end_queries()


@pytest.fixture
async def quick() -> AsyncIterator[Bank]:
    """Return a bank on a store in memory alone, for what is the same on every store."""
    bank = Bank(MemoryStore(), kinds=[SET])
    yield bank
    bank.end_queries()


async def rows_of(bank: Bank, target: Any, sql: str) -> Any:
    answer = await bank.query(target, sql)
    assert answer.language == "sql"
    return answer.value


async def refusal(bank: Bank, target: Any, expression: str) -> InvalidQueryError:
    with pytest.raises(InvalidQueryError) as caught:
        await bank.query(target, expression)
    return caught.value


@pytest.mark.parametrize(
    ("expression", "language"),
    [
        ("SELECT 1", "sql"),
        ("select\n1", "sql"),
        ("  \n SELECT(1)", "sql"),
        ("(SELECT 1)", "sql"),
        ("( select 1)", "sql"),
        ("with x as (select 1) select 2", "sql"),
        ("From data", "sql"),
        ("DESCRIBE data", "sql"),
        ("summarize data", "sql"),
        ("PIVOT data", "sql"),
        ("show tables", "sql"),
        ("$", "jsonpath"),
        ("$[*].id", "jsonpath"),
        ("select", "jmespath"),
        ("selected", "jmespath"),
        ("from_", "jmespath"),
        ("show.x", "jmespath"),
        ("[?id > `1`]", "jmespath"),
        ("length(@)", "jmespath"),
        ("/* x */ SELECT 1", "sql"),
        ("-- how many\n/**/select 1", "sql"),
        ("-- how many", "jmespath"),
        ("DROP TABLE data", "sql"),
        ("update data set x = 1", "sql"),
        ("values(@)", "jmespath"),
        ("copy", "jmespath"),
        ("create(@)", "jmespath"),
    ],
)
def test_an_expression_is_read_as_what_it_begins_like(expression: str, language: str) -> None:
    assert language_of(expression) == language


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("SELECT FROM", "Read as SQL: "),
        ("$[", "Read as JSONPath: "),
        ("a[", "Read as JMESPath: "),
    ],
)
async def test_a_failure_names_the_language(quick: Bank, expression: str, message: str) -> None:
    await quick.put(ORDERS, name="orders")

    assert str(await refusal(quick, "orders", expression)).startswith(message)


async def test_the_artifact_is_the_table_data(bank: Bank) -> None:
    artifact = await bank.put(ORDERS, name="orders")
    sql = "SELECT status, count(*) AS n, sum(amount) AS total FROM data GROUP BY 1 ORDER BY 1"
    expected = [
        {"status": "open", "n": 5, "total": 12.5},
        {"status": "paid", "n": 5, "total": 10.0},
    ]

    for target in (artifact.pointer, Pointer.parse(artifact.pointer), artifact.id, "orders"):
        answer = await bank.query(target, sql)
        assert answer == Answer(language="sql", value=expected, row_count=2)


async def test_ids_of_64_bits_are_exact(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")

    assert await rows_of(quick, "orders", "SELECT max(id) AS id FROM data") == [{"id": 2**62 + 9}]


async def test_other_artifacts_are_tables_by_pointer_id_and_name(quick: Bank) -> None:
    orders = await quick.put(ORDERS, name="orders")
    cities = await quick.put({"all": CITIES}, name="my cities")

    for table in (f"{cities.pointer}#/all", f"{cities.pointer}#$.all"):
        sql = f'SELECT status, city FROM data JOIN "{table}" c ON c."order" = id ORDER BY city'
        assert await rows_of(quick, "orders", sql) == [
            {"status": "paid", "city": "Zürich"},
            {"status": "open", "city": "Łódź"},
        ]
    for table in (orders.pointer, orders.id, "orders"):
        sql = f'SELECT count(*) AS n FROM "{table}"'
        assert await rows_of(quick, f"{cities.pointer}#/all", sql) == [{"n": 10}]


async def test_tables_may_be_given_names(quick: Bank) -> None:
    orders = await quick.put(ORDERS)
    await quick.put(CITIES, name="my cities")
    tables = {"o": orders.pointer, "Cities": "my cities"}

    assert await rows_of(quick, tables, "SELECT count(*) AS n FROM O, cities") == [{"n": 20}]
    found = await refusal(quick, tables, "SELECT * FROM data")
    assert "there is no table 'data'" in str(found)
    assert "Here the tables are: o, Cities." in found.hint


async def test_a_name_that_a_statement_gives_hides_an_artifact(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")
    await quick.put(CITIES, name="x")
    sql = "WITH x AS (SELECT 7 AS a) SELECT a FROM X"
    own = "WITH data AS (SELECT id FROM data WHERE amount > 4) SELECT count(*) AS n FROM data"

    assert await rows_of(quick, "orders", sql) == [{"a": 7}]
    assert await rows_of(quick, "orders", own) == [{"n": 1}]


async def test_a_table_that_is_nowhere_is_told_with_what_is_near(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")

    found = await refusal(quick, "orders", "SELECT * FROM ordres")

    assert "there is no table 'ordres'" in str(found)
    assert "'orders'" in found.hint


async def test_a_pointer_to_nothing_is_unknown(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")

    for target, sql in [
        (UNKNOWN, "SELECT 1"),
        ("nothing", "SELECT 1"),
        ("orders", f'SELECT * FROM "{UNKNOWN}"'),
        ({"a": "orders", "b": UNKNOWN}, "SELECT 1"),
        (UNKNOWN, "$"),
        (UNKNOWN, "@"),
    ]:
        with pytest.raises(UnknownPointerError):
            await quick.query(cast("Any", target), sql)


async def test_a_selector_that_is_none_is_refused(quick: Bank) -> None:
    artifact = await quick.put(ORDERS, name="orders")

    for sql in ("SELECT * FROM data", "$"):
        with pytest.raises(InvalidPointerError):
            await quick.query(f"{artifact.pointer}#the first", sql)
    with pytest.raises(InvalidPointerError):
        await quick.query("orders", f'SELECT * FROM "{artifact.pointer}#the first"')
    with pytest.raises(NothingSelectedError):
        await quick.query(f"{artifact.pointer}#/99", "SELECT * FROM data")


async def test_names_that_sql_takes_for_one_are_refused(quick: Bank) -> None:
    await quick.put(ORDERS, name="x")
    await quick.put(CITIES, name="X")

    found = await refusal(quick, "x", 'SELECT * FROM "x", "X"')
    assert "are one table in SQL" in str(found)
    for tables in ({"a": "x", "A": "X"}, {}, {"": "x"}):
        with pytest.raises(InvalidArgumentError):
            await quick.query(tables, "SELECT 1")


async def test_the_same_artifact_may_be_named_in_several_ways(quick: Bank) -> None:
    artifact = await quick.put(ORDERS, name="orders")
    sql = f'SELECT count(*) AS n FROM data a, "orders" b, "{artifact.pointer}" c WHERE a.id = b.id'

    assert await rows_of(quick, "orders", sql) == [{"n": 100}]


async def test_lines_of_json_are_rows(bank: Bank) -> None:
    text = "\n".join(json.dumps(row) for row in ORDERS)
    await bank.put(text, name="lines")

    assert await rows_of(bank, "lines", "SELECT * FROM data") == ORDERS


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_records_of_csv_are_rows(bank: Bank, mark: str, end: str) -> None:
    lines = ["id,zip,name", "1,08001,Łódź", '2,10115,"a, ""b"""', "3,,"]
    await bank.put(mark + end.join(lines) + end, content_type="text/csv", name="records")

    assert await rows_of(bank, "records", "SELECT * FROM data") == [
        {"id": 1, "zip": "08001", "name": "Łódź"},
        {"id": 2, "zip": "10115", "name": 'a, "b"'},
        {"id": 3, "zip": "", "name": ""},
    ]


async def test_csv_without_a_header_and_with_longer_records_is_read(quick: Bank) -> None:
    await quick.put("1,x\n2,y,z\n", content_type="text/csv; header=absent", name="records")

    assert await rows_of(quick, "records", "SELECT * FROM data") == [
        {"column_1": 1, "column_2": "x", "extra": []},
        {"column_1": 2, "column_2": "y", "extra": ["z"]},
    ]


@pytest.mark.parametrize("mark", ["", '"'], ids=["plain", "quoted"])
async def test_semicolons_part_the_fields_of_csv_with_decimal_commas(
    quick: Bank, mark: str
) -> None:
    text = "id;price\n" + "".join(f"{at};{mark}{at},5{mark}\n" for at in range(3_000))
    artifact = await quick.put(text, name="records")

    assert "3,000 rows, 2 columns" in str(artifact.glimpse)
    assert await rows_of(quick, "records", "SELECT price FROM data WHERE id = 2_999") == [
        {"price": "2999,5"}
    ]
    page = await quick.read(artifact.pointer, 2_998, 2, unit="rows")
    assert page.content == '[{"id":"2998","price":"2998,5"},{"id":"2999","price":"2999,5"}]'
    assert await quick.get(f"{artifact.pointer}#$[1500].price") == "1500,5"
    assert len(await quick.get(artifact.pointer, list[dict[str, str]])) == 3_000


async def test_tabs_part_the_fields_of_tsv(quick: Bank) -> None:
    await quick.put("a\tb\n1\tx,y\n", content_type="text/tab-separated-values", name="records")

    assert await rows_of(quick, "records", "SELECT * FROM data") == [{"a": 1, "b": "x,y"}]


async def test_a_large_table_with_quotes_is_read_block_by_block(quick: Bank) -> None:
    lines = [f'{number},"row, {number}"' for number in range(200_000)]
    await quick.put("a,b\n" + "\n".join(lines) + "\n", content_type="text/csv", name="records")

    sql = "SELECT count(*) AS n, sum(a) AS s, min(b) AS least FROM data"
    assert await rows_of(quick, "records", sql) == [
        {"n": 200_000, "s": 19_999_900_000, "least": "row, 0"}
    ]


async def test_a_text_is_a_table_of_its_lines(bank: Bank) -> None:
    await bank.put("first\nan ERROR here\n\nlast żółć", name="log")

    sql = "SELECT line_number, line FROM data WHERE line LIKE '%ERROR%' OR line = ''"
    assert await rows_of(bank, "log", sql) == [
        {"line_number": 2, "line": "an ERROR here"},
        {"line_number": 3, "line": ""},
    ]


async def test_what_begins_like_json_but_is_none_is_a_text(quick: Bank) -> None:
    text = "[2026-11-30] first\n[2026-11-30] second\n"
    await quick.put(text, name="log")
    await quick.put(text.encode() + b"x" * 70_000, content_type="text/plain", name="bytes")

    assert await rows_of(quick, "log", "SELECT count(*) AS n FROM data") == [{"n": 2}]
    assert await rows_of(quick, "bytes", "SELECT count(*) AS n FROM data") == [{"n": 3}]


FRAME = {
    "id": [2**62, 2],
    "price": [Decimal("12345678901234567.89"), None],
    "seen": [dt.datetime.fromisoformat("2026-11-30T08:15:00"), None],
}
FRAME_ROWS: list[dict[str, object]] = [
    {"id": 2**62, "price": "12345678901234567.89", "seen": "2026-11-30T08:15:00"},
    {"id": 2, "price": None, "seen": None},
]


async def test_decimals_and_timestamps_of_a_frame_stay_what_they_are(bank: Bank) -> None:
    await bank.put(pa.table(FRAME), name="frame")

    assert await rows_of(bank, "frame", "SELECT * FROM data") == FRAME_ROWS
    sql = "SELECT year(seen) AS y, price + 0.01 AS p FROM data WHERE seen > '2026-01-01'::TIMESTAMP"
    assert await rows_of(bank, "frame", sql) == [{"y": 2026, "p": "12345678901234567.90"}]


async def test_a_frame_with_types_that_the_engine_lacks_is_read_as_its_rows(quick: Bank) -> None:
    await quick.put(pd.DataFrame({"a": [1], "took": [dt.timedelta(hours=36)]}), name="frame")

    assert await rows_of(quick, "frame", "SELECT * FROM data") == [{"a": 1, "took": "P1DT12H"}]


async def test_a_column_that_the_engine_lacks_leaves_the_others_their_types(quick: Bank) -> None:
    foreign = {
        "took": pa.array([3_600_000_000, None], pa.duration("us")),
        "exact": pa.array([1, None], pa.timestamp("ns")),
        "wide": pa.array([Decimal("1.12"), None], pa.decimal256(60, 2)),
        "half": pa.array([1.5, None], pa.float16()),
    }
    await quick.put(pa.table(FRAME | foreign), name="frame")

    sql = "SELECT sum(price) AS p, year(max(seen)) AS y, sum(half) AS h, max(took) AS t FROM data"
    assert await rows_of(quick, "frame", sql) == [
        {"p": "12345678901234567.89", "y": 2026, "h": 1.5, "t": "PT1H"}
    ]
    assert (await rows_of(quick, "frame", "SELECT * FROM data"))[0] == FRAME_ROWS[0] | {
        "took": "PT1H",
        "exact": "1970-01-01T00:00:00.000000001",
        "wide": "1.12",
        "half": 1.5,
    }


async def test_a_structure_with_a_type_that_the_engine_lacks_is_read_as_rows_show_it(
    quick: Bank,
) -> None:
    kind = pa.struct([("took", pa.duration("us"))])
    await quick.put(pa.table({"a": pa.array([{"took": 3_600_000_000}], kind)}), name="frame")

    assert await rows_of(quick, "frame", "SELECT a.took AS t FROM data") == [{"t": "PT1H"}]


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.arange(3), [0, 1, 2]),
        (np.array([[1.5, 2.0]]), [[1.5, 2.0]]),
        (np.array(["a", "b"]), ["a", "b"]),
    ],
)
async def test_an_array_is_a_column_of_its_items(
    quick: Bank, array: Any, values: list[object]
) -> None:
    await quick.put(array, name="array")

    assert await rows_of(quick, "array", "SELECT * FROM data") == values


async def test_a_list_of_plain_values_stays_one(quick: Bank) -> None:
    a = await quick.put(["x", "y", "z"])
    b = await quick.put(["z", "w"])

    union = f'SELECT * FROM data UNION SELECT * FROM "{b.pointer}"'
    assert sorted(await rows_of(quick, a.pointer, union)) == ["w", "x", "y", "z"]
    assert await rows_of(quick, a.pointer, "SELECT value FROM data WHERE value > 'x'") == ["y", "z"]
    assert await rows_of(quick, a.pointer, "SELECT upper(value) AS u FROM data LIMIT 1") == [
        {"u": "X"}
    ]


@pytest.mark.parametrize(
    ("payload", "content_type"),
    [
        ([], None),
        ("", "text/csv"),
        ("\n\n", "text/csv"),
        ("\ufeff", "text/csv"),
        ("", "text/csv; header=absent"),
        ("", "text/tab-separated-values"),
        ("", "application/x-ndjson"),
    ],
)
async def test_an_empty_list_has_the_columns_that_are_asked_for(
    quick: Bank, payload: object, content_type: str | None
) -> None:
    empty = await quick.put(payload, content_type=content_type)
    full = await quick.put([{"id": 1}])

    for sql, value in [
        ("SELECT * FROM data", []),
        ("SELECT count(*) AS n FROM data", [{"n": 0}]),
        ("SELECT date_trunc('day', seen::TIMESTAMP) AS day, count(*) FROM data GROUP BY day", []),
        ("SELECT lower(a) AS a FROM data", []),
        (f'SELECT id FROM data UNION SELECT id FROM "{full.pointer}"', [{"id": 1}]),
        (f'SELECT id FROM "{full.pointer}" EXCEPT SELECT id FROM data', [{"id": 1}]),
    ]:
        assert await rows_of(quick, empty.pointer, sql) == value


@pytest.mark.parametrize(
    ("selector", "rows"),
    [
        ("#/data/rows", [{"a": 1}, {"a": 2}]),
        ("#$.data.rows[?@.a > 1]", [{"a": 2}]),
        ("#$.data.rows[*].a", [1, 2]),
    ],
)
async def test_what_a_selector_picks_is_a_table(
    bank: Bank, selector: str, rows: list[object]
) -> None:
    artifact = await bank.put({"data": {"rows": [{"a": 1}, {"a": 2}]}})

    assert await rows_of(bank, f"{artifact.pointer}{selector}", "SELECT * FROM data") == rows


async def test_rows_and_lines_that_a_selector_picks_are_a_table(quick: Bank) -> None:
    rows = await quick.put(ORDERS)
    text = await quick.put("a\nb\nc\n")

    assert await rows_of(quick, f"{rows.pointer}#row=2-3", "SELECT * FROM data") == ORDERS[1:3]
    assert await rows_of(quick, f"{text.pointer}#L2-L3", "SELECT * FROM data") == [
        {"line_number": 1, "line": "b"},
        {"line_number": 2, "line": "c"},
    ]


async def test_an_object_is_refused_and_told_where_its_lists_are(quick: Bank) -> None:
    artifact = await quick.put({"meta": {"n": 1}, "Records": [{"a": 1}] * 394, "x": {"l": [1]}})

    found = await refusal(quick, artifact.pointer, "SELECT * FROM data")

    assert "no list of rows" in str(found)
    assert "#/Records (394 rows), #/x/l (1 rows)" in found.hint
    assert f'"{artifact.pointer}#/Records"' in found.hint


async def test_lists_within_a_selection_are_told_by_the_whole_path(quick: Bank) -> None:
    artifact = await quick.put({"a": {"b": {"c": [1]}}})

    found = await refusal(quick, f"{artifact.pointer}#/a", "SELECT * FROM data")

    assert f'"{artifact.pointer}#/a/b/c"' in found.hint


@pytest.mark.parametrize("value", [{"a": 1}, 5, True, None])
async def test_what_has_no_list_is_refused_and_told_the_other_languages(
    quick: Bank, value: object
) -> None:
    artifact = await quick.put(value)

    found = await refusal(quick, artifact.pointer, "SELECT * FROM data")

    assert "JSONPath" in found.hint
    picked = await refusal(quick, f"{artifact.pointer}#$", "SELECT * FROM data")
    assert "no list of rows" in str(picked)


async def test_bytes_are_no_table(quick: Bank) -> None:
    await quick.put(b"\x00\x01", name="bytes")

    with pytest.raises(BinaryPayloadError):
        await quick.query("bytes", "SELECT * FROM data")


async def test_keys_that_differ_by_capitals_only_are_told_apart(quick: Bank) -> None:
    await quick.put([{"id": 1, "ID": 2}, {"": 3}], name="rows")

    assert await rows_of(quick, "rows", "SELECT * FROM data") == [
        {"id": 1, "ID_2": 2, "column_3": None},
        {"id": None, "ID_2": None, "column_3": 3},
    ]
    assert await rows_of(quick, "rows", "SELECT id_2 FROM data LIMIT 1") == [{"ID_2": 2}]
    found = await refusal(quick, "rows", "SELECT ID FROM data")
    assert "'ID' is the column 'ID_2' here" in str(found)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('[{"a":1,"a":2}]', [{"a": 2}]),
        ('[{"a":"x\\ud83d"}]', [{"a": "x\ufffd"}]),
        ('[{"a\\u0000":1}]', [{"a\ufffd": 1}]),
        ('[ {"a" : 1e400} ]', [{"a": "Infinity"}]),
    ],
)
async def test_json_that_the_engine_reads_otherwise_is_read_as_we_do(
    bank: Bank, text: str, rows: list[object]
) -> None:
    await bank.put(text, content_type="application/json", name="rows")

    assert await rows_of(bank, "rows", "SELECT * FROM data") == rows


async def test_columns_of_several_kinds_are_not_compared_as_they_are(quick: Bank) -> None:
    await quick.put([{"code": "A1"}, {"code": 7}], name="rows")

    found = await refusal(quick, "rows", "SELECT * FROM data WHERE code = 'A1'")

    assert "'code' holds values of several kinds" in str(found)
    sql = "SELECT code FROM data WHERE code->>'$' = 'A1'"
    assert await rows_of(quick, "rows", sql) == [{"code": "A1"}]
    assert await rows_of(quick, "rows", "SELECT code FROM data") == [{"code": "A1"}, {"code": 7}]


async def test_nested_fields_are_reached_by_dots(quick: Bank) -> None:
    await quick.put([{"user": {"name": "Ada", "tags": ["x", "y"]}}, {"user": None}], name="rows")

    sql = 'SELECT user.name AS name, len(d."user".tags) AS n FROM data d'
    assert await rows_of(quick, "rows", sql) == [{"name": "Ada", "n": 2}, {"name": None, "n": None}]


async def test_a_column_that_is_not_there_is_told_with_those_that_are(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")

    found = await refusal(quick, "orders", "SELECT prise FROM data")

    assert str(found) == "Read as SQL: there is no column 'prise'."
    assert found.hint == "Its columns are id, status, amount. A text takes single quotes."


async def test_more_columns_of_the_same_artifact_are_loaded_when_they_are_named(
    bank: Bank,
) -> None:
    rows = [{"a": number, "b": "x" * 1_000, "c": number / 2} for number in range(1_500)]
    await bank.put(rows, name="rows")

    assert await rows_of(bank, "rows", "SELECT sum(a) AS s FROM data") == [{"s": 1_124_250}]
    assert await rows_of(bank, "rows", "SELECT max(c) AS c FROM data") == [{"c": 749.5}]
    assert await rows_of(bank, "rows", "SELECT sum(a) AS z FROM data") == [{"z": 1_124_250}]
    assert await rows_of(bank, "rows", "SELECT * FROM data LIMIT 1") == rows[:1]


async def test_a_store_whose_path_looks_like_a_pattern_is_read(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    bank = Bank(FileStore(tmp_path / "[s]*" / "year=2026"))
    await bank.put(ORDERS, name="orders")

    assert await rows_of(bank, "orders", "SELECT * FROM data") == ORDERS
    bank.end_queries()


async def test_a_payload_that_is_not_what_was_stored_is_damaged(store: Store) -> None:
    bank = Bank(store)
    await bank.put(ORDERS, name="orders")
    (key,) = [key async for key in store.keys("s/default/payloads/")]
    await store.put(key, b"[1" * 200)

    with pytest.raises((DamagedPayloadError, InvalidQueryError)):
        await bank.query("orders", "SELECT * FROM data")
    bank.end_queries()


async def test_jsonpath_gives_a_list_and_a_path_of_names_the_one_value(quick: Bank) -> None:
    await quick.put({"items": ORDERS}, name="orders")

    assert await quick.query("orders", "$.items[?@.amount > 4].amount") == Answer(
        language="jsonpath", value=[4.5], row_count=1
    )
    assert await quick.query("orders", " $.items[0].status ") == Answer(
        language="jsonpath", value="paid", row_count=1
    )
    assert (await quick.query("orders", "$.items")).row_count == 1
    assert await quick.query("orders", "$.items[?@.amount > 99]") == Answer(
        language="jsonpath", value=[], row_count=0
    )
    with pytest.raises(NothingSelectedError) as caught:
        await quick.query("orders", "$.nothing")
    assert "items" in caught.value.hint


async def test_jmespath_gives_what_the_expression_makes(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")

    assert await quick.query("orders", "[?amount > `4`].amount") == Answer(
        language="jmespath", value=[4.5], row_count=1
    )
    assert await quick.query("orders", "sum([].amount)") == Answer(
        language="jmespath", value=22.5, row_count=1
    )
    assert (await quick.query("orders", "nothing")).value is None


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("$.items[?@.stxtus == 'paid'].amount", []),
        ("items[?stxtus == 'paid'].amount", []),
        ("length(items[?stxtus == 'paid'])", 0),
        ("items[0].stxtus", None),
    ],
)
async def test_a_path_that_finds_nothing_says_which_key_is_nowhere(
    quick: Bank, expression: str, value: object
) -> None:
    await quick.put({"items": ORDERS}, name="orders")

    answer = await quick.query("orders", expression)
    right = await quick.query("orders", expression.replace("stxtus", "status"))
    none = await quick.query("orders", "$.items[?@.status == 'no such']")

    assert (answer.value, answer.hint) == (value, "It has no key 'stxtus', but 'status'.")
    assert right.hint is None
    assert (none.value, none.hint) == ([], None)


async def test_paths_are_asked_of_what_a_selector_picks(quick: Bank) -> None:
    artifact = await quick.put({"items": ORDERS})

    assert (await quick.query(f"{artifact.pointer}#/items", "length(@)")).value == 10
    assert (await quick.query(f"{artifact.pointer}#/items/0", "$.status")).value == "paid"
    assert (await quick.query({"any": f"{artifact.pointer}#/items"}, "$[0].amount")).value == 0


async def test_the_value_of_an_answer_is_the_callers_own(quick: Bank) -> None:
    artifact = await quick.put({"items": [{"tags": ["a"]}]})

    for expression in ("$.items", "items", "$.items[*]"):
        first = (await quick.query(artifact.pointer, expression)).value
        cast("Any", first)[0]["tags"].append("changed")
        again = await quick.query(artifact.pointer, expression)
        assert again.value == [{"tags": ["a"]}]


WIDE = [
    {"id": number, "text": "é\x00" * (number % 97), "parts": [number, None, {"of": 2**64 + number}]}
    for number in range(2_500)
]
LONG: dict[str, object] = {
    "first": WIDE,
    "text": 'ü"' * 400_000,
    "last": [[WIDE[:1500]], 1.5, True, []],
}


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        ("$[0,0].first[*]", WIDE * 2),
        ("[@[0].first, @[0].first]", [WIDE, WIDE]),
        ("{a: [0].last, b: {c: [0].text, d: [0].first}}", None),
        ("[0].text", LONG["text"]),
        ("[0]", LONG),
        ("to_string([0].last)", json.dumps(LONG["last"], separators=(",", ":"))),
        ("to_string([0])", json.dumps(LONG, separators=(",", ":"))),
    ],
)
async def test_a_large_answer_of_a_path_is_what_python_selects(
    quick: Bank, expression: str, selected: object
) -> None:
    if selected is None:
        selected = {"a": LONG["last"], "b": {"c": LONG["text"], "d": LONG["first"]}}
    asked = await quick.put([LONG])

    answer = await quick.query(asked.pointer, expression)

    assert answer.artifact is not None
    assert await quick.get(answer.artifact.pointer) == selected
    if isinstance(selected, list):
        rows = cast("list[object]", selected)
        assert answer.row_count == answer.artifact.row_count == len(rows)
        assert await quick.get(f"{answer.artifact.pointer}#row={len(rows)}") == [rows[-1]]


@pytest.mark.parametrize(
    "expression",
    ["$[*,*]", "[@, @]", "{a: [@, @]}", "to_string([@, @])", "join('', [@, @][])"],
)
async def test_an_answer_of_a_path_over_32_mib_is_refused(quick: Bank, expression: str) -> None:
    asked = await quick.put([str(number) * 1_000_000 for number in range(10)] * 2)

    error = await refusal(quick, asked.pointer, expression)

    assert "its result is larger than 32 MiB" in str(error)
    assert error.hint == "Filter first, or take fewer fields."


@pytest.mark.parametrize("expression", ["$.a", "a", "SELECT * FROM data"])
@pytest.mark.parametrize("name", ["latin.csv", "latin"])
async def test_bytes_that_are_no_text_are_refused_as_binary_in_each_language(
    quick: Bank, tmp_path: Path, expression: str, name: str
) -> None:
    file = tmp_path / name
    file.write_bytes(b"a,b\n1,\xe9\n")
    asked = await quick.put(file)

    with pytest.raises(BinaryPayloadError, match="cannot be read as text"):
        await quick.query(asked.pointer, expression)


@pytest.mark.parametrize("expression", ["$.a", "a"])
async def test_a_path_asks_one_artifact_and_one_with_a_structure(
    quick: Bank, expression: str
) -> None:
    await quick.put("no structure", name="text")

    several = await refusal(quick, {"a": "text", "b": "text"}, expression)
    assert "it asks one artifact, and there are 2" in str(several)
    found = await refusal(quick, "text", expression)
    assert "no structure" in str(found)
    assert "line_number, line" in found.hint


@pytest.mark.parametrize("expression", ["SELECT a FROM data", "[].{a: a}", "$[*]"])
async def test_an_answer_of_the_inline_limit_is_banked_and_a_smaller_one_is_shown(
    store: Store, expression: str
) -> None:
    rows = [{"a": "x" * 30} for _ in range(3)]
    size = len(json.dumps(rows, separators=(",", ":")))

    for limit, is_shown in ((size + 1, True), (size, False)):
        bank = Bank(store, limits=Limits(inline_bytes=limit))
        artifact = await bank.put(rows)
        answer = await bank.query(artifact.pointer, expression)
        assert (answer.artifact is None) is is_shown
        assert answer.row_count == 3
        if answer.artifact is not None:
            assert answer.value is None
            assert await bank.get(answer.artifact.pointer) == rows
            assert answer.artifact.size_bytes == size
        bank.end_queries()


async def test_an_answer_of_more_tokens_than_a_page_is_banked() -> None:
    bank = Bank(MemoryStore(), limits=Limits(page_tokens=100))
    await bank.put([f"{number:x}" for number in range(1_000, 1_200)], name="rows")

    assert (await bank.query("rows", "SELECT * FROM data")).artifact is not None
    assert (await bank.query("rows", "SELECT * FROM data LIMIT 5")).artifact is None
    bank.end_queries()


async def test_an_answer_with_a_name_is_banked_however_small(quick: Bank) -> None:
    artifact = await quick.put(ORDERS)
    sql = "SELECT status FROM data LIMIT 1"

    answer = await quick.query(artifact.pointer, sql, save_as="first")

    derived = answer.artifact
    assert derived is not None
    assert answer.value is None
    assert (derived.name, derived.kind) == ("first", "derived")
    assert derived.source == {
        "pointers": [artifact.pointer],
        "language": "sql",
        "expression": sql,
    }
    assert await quick.get("first") == [{"status": "paid"}]
    assert (await quick.query("first", "SELECT count(*) AS n FROM data")).value == [{"n": 1}]


@pytest.mark.parametrize(
    ("expression", "value"),
    [("$[0].status", "paid"), ("length(@)", 10), ("[0]", ORDERS[0]), ("nothing", None)],
)
async def test_values_that_are_no_rows_are_banked_too(
    quick: Bank, expression: str, value: object
) -> None:
    await quick.put(ORDERS, name="orders")

    answer = await quick.query("orders", expression, save_as="saved")

    assert answer.row_count == 1
    assert await quick.get("saved") == value
    assert await quick.query("orders", expression, save_as="saved") == answer


async def test_the_same_query_gives_the_same_artifact(store: Store) -> None:
    bank = Bank(store)
    orders, cities = await bank.put(ORDERS, name="orders"), await bank.put(CITIES)
    sql = f'SELECT random() AS r FROM data, "{cities.pointer}"'

    first = await bank.query("orders", sql, save_as="saved")
    # Not even run again: it would give other numbers.
    again = await bank.query(orders.pointer, sql, save_as="saved")
    elsewhere = await Bank(store).query(orders.id, sql, save_as="saved")

    assert first == again == elsewhere
    assert first.artifact is not None
    others = [
        await bank.query("orders", sql, save_as="other"),
        await bank.query("orders", sql + " ", save_as="saved"),
        await bank.query({"data": "orders"}, sql, save_as="saved"),
        await bank.query(f"{orders.pointer}#row=1-10", sql, save_as="saved"),
    ]
    pointers = {answer.artifact.pointer for answer in [first, *others] if answer.artifact}
    assert len(pointers) == 5
    bank.end_queries()


async def test_names_of_tables_are_part_of_the_lineage(quick: Bank) -> None:
    a, b = await quick.put(ORDERS), await quick.put(CITIES)
    tables = {"o": a.pointer, "c": f"{b.pointer}#/0"}

    answer = await quick.query(tables, "SELECT count(*) AS n FROM o", save_as="n")

    assert answer.artifact is not None
    assert answer.artifact.source == {
        "pointers": [a.pointer, f"{b.pointer}#/0"],
        "language": "sql",
        "expression": "SELECT count(*) AS n FROM o",
        "tables": tables,
    }


async def test_an_answer_that_was_deleted_is_made_anew(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")
    first = await quick.query("orders", "SELECT 1 AS a", save_as="one")
    assert first.artifact is not None

    await quick.delete("one")
    again = await quick.query("orders", "SELECT 1 AS a", save_as="one")

    assert again.artifact is not None
    assert again.artifact.pointer == first.artifact.pointer
    assert await quick.get("one") == [{"a": 1}]


async def test_what_was_deleted_is_not_answered_from_memory(bank: Bank) -> None:
    artifact = await bank.put(ORDERS, name="orders")
    await bank.query("orders", "SELECT count(*) FROM data")

    await bank.delete("orders")

    for target in ("orders", artifact.pointer):
        with pytest.raises(UnknownPointerError):
            await bank.query(target, "SELECT count(*) FROM data")


async def test_a_name_is_asked_for_its_newest_artifact(quick: Bank) -> None:
    await quick.put([1], name="n")
    assert await rows_of(quick, "n", "SELECT * FROM data") == [1]

    await quick.put([2], name="n")

    assert await rows_of(quick, "n", "SELECT * FROM data") == [2]


async def test_what_has_expired_is_not_answered_and_nothing_derived_lives_longer(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    brief = await bank.put(ORDERS, name="orders", ttl_seconds=60)
    await bank.put(CITIES, name="cities")
    clock.advance(20)

    derived = await bank.query("orders", 'SELECT id FROM data, "cities"', save_as="ids")

    assert derived.artifact is not None
    assert derived.artifact.expires_at == brief.expires_at
    clock.advance(40)
    for name in ("orders", "ids"):
        with pytest.raises(ExpiredPointerError):
            await bank.query(name, "SELECT count(*) FROM data")
    bank.end_queries()


@pytest.mark.parametrize(
    ("expression", "save_as"),
    [
        ("", None),
        (" \n", None),
        (5, None),
        ("SELECT 1", ""),
        ("SELECT 1", UNKNOWN),
        ("SELECT 1", "x" * 201),
        ("SELECT 1", 5),
    ],
)
async def test_no_query_and_a_name_that_is_none_are_refused(
    quick: Bank, expression: Any, save_as: Any
) -> None:
    await quick.put(ORDERS, name="orders")

    with pytest.raises(InvalidArgumentError):
        await quick.query("orders", expression, save_as=save_as)


async def test_a_query_that_nobody_waits_for_is_stopped(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")
    sql = "SELECT sum(a.amount) FROM range(100000) c, range(100000) d, data a, data b"
    asked = asyncio.ensure_future(quick.query("orders", sql))
    await asyncio.wait({asked}, timeout=0.3)

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    assert await rows_of(quick, "orders", "SELECT count(*) AS n FROM data") == [{"n": 10}]


async def test_the_newest_four_databases_stand_ready(quick: Bank) -> None:
    for number in (0, 1, 2, 3, 4, 0):
        await quick.put([number], name=f"n{number}")
        assert await rows_of(quick, f"n{number}", "SELECT * FROM data") == [number]

    assert quick._shared.databases.alive_count <= 4  # noqa: SLF001


def test_a_host_without_a_loop_asks_a_blocking_bank(tmp_path: Path) -> None:
    with BlockingBank(tmp_path) as bank:
        artifact = bank.put(ORDERS, name="orders")

        answer = bank.query(artifact.pointer, "SELECT count(*) AS n FROM data", "saved")

        assert answer.artifact is not None
        assert bank.get("saved") == [{"n": 10}]


async def test_sets_of_100_000_ids_are_joined_without_one_of_them_being_shown(
    quick: Bank,
) -> None:
    ids = [f"product-{number:06}" for number in range(150_000)]
    a = await quick.put(ids[:100_000], kind="product set")
    b = await quick.put(ids[50_000:], kind="product set")
    assert a.pointer.startswith("ps-")

    for operation, expected in [
        ("UNION", ids),
        ("INTERSECT", ids[50_000:100_000]),
        ("EXCEPT", ids[:50_000]),
    ]:
        sql = f'SELECT * FROM "{a.pointer}" {operation} SELECT * FROM "{b.pointer}"'
        answer = await quick.query(a.pointer, sql, save_as=operation.lower())

        derived = answer.artifact
        assert derived is not None
        assert derived.pointer.startswith("ps-")
        assert derived.kind == "product set"
        assert answer.row_count == len(expected)
        assert str(derived.glimpse) == f"a set of {len(expected)}"
        assert "product-" not in str(Envelope.of(derived)) + str(answer)
        assert sorted(cast("list[str]", await quick.get(derived.pointer))) == expected


PRODUCTS = [{"id": f"p{number}", "price": number} for number in range(5)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT * FROM data WHERE price > 2", "product set"),
        ("SELECT id FROM data", "product set"),
        ("SELECT ID FROM data", "product set"),
        ("SELECT price, id FROM data", "product set"),
        ("SELECT *, price * 2 AS twice FROM data", "product set"),
        ("SELECT * FROM data WHERE false", "product set"),
        ("SELECT price FROM data", "derived"),
        ("SELECT count(*) AS n FROM data", "derived"),
        ("SELECT 1 AS id", "derived"),
        ("[?price > `2`]", "product set"),
        ("$[?@.price > 2]", "product set"),
        ("[].id", "derived"),
        ("[0]", "derived"),
    ],
)
async def test_rows_and_ids_of_a_kind_stay_of_that_kind(quick: Bank, sql: str, kind: str) -> None:
    artifact = await quick.put(PRODUCTS, kind="product set")

    answer = await quick.query(artifact.pointer, sql, save_as="saved")

    assert answer.artifact is not None
    assert answer.artifact.kind == kind
    assert answer.artifact.pointer.startswith("ps-" if kind == "product set" else "art:")
    assert await quick.query(artifact.pointer, sql, save_as="saved") == answer


async def test_a_result_of_several_kinds_is_derived(quick: Bank) -> None:
    a = await quick.put(PRODUCTS, kind="product set")
    b = await quick.put(PRODUCTS, kind="other")

    for sql in (
        f'SELECT * FROM data UNION ALL SELECT * FROM "{b.pointer}"',
        f'SELECT * FROM "{b.pointer}"',
    ):
        answer = await quick.query(a.pointer, sql, save_as="saved")
        assert answer.artifact is not None
        assert answer.artifact.kind == "derived"


CELLS = {
    "n": st.integers(-(2**63), 2**63 - 1) | st.none(),
    "x": st.floats(-1e9, 1e9) | st.none(),
    "s": st.text(st.characters(codec="utf-8"), max_size=4) | st.none(),
    "b": st.booleans(),
}
ROWS = st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=12)
Row = dict[str, Any]
LAWS: list[tuple[str, Callable[[list[Row]], list[Row]]]] = [
    ("SELECT * FROM data", lambda rows: rows),
    ("SELECT s, n FROM data", lambda rows: [{"s": row["s"], "n": row["n"]} for row in rows]),
    (
        "SELECT * FROM data WHERE n > 0",
        lambda rows: [row for row in rows if row["n"] is not None and row["n"] > 0],
    ),
    (
        "SELECT * FROM data WHERE b AND s = ''",
        lambda rows: [row for row in rows if row["b"] and row["s"] == ""],
    ),
    (
        "SELECT x FROM data WHERE x IS NOT NULL ORDER BY x",
        lambda rows: [{"x": x} for x in sorted(row["x"] for row in rows if row["x"] is not None)],
    ),
]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
async def test_a_derived_artifact_is_what_its_query_makes_of_the_original(
    quick: Bank, rows: list[Row]
) -> None:
    artifact = await quick.put(rows)

    for sql, law in LAWS:
        answer = await quick.query(artifact.pointer, sql, save_as="derived")

        assert answer.artifact is not None
        expected = law(rows)
        assert await quick.get(answer.artifact.pointer) == expected
        assert answer.row_count == len(expected)


async def test_an_error_of_the_query_is_one_of_ours(quick: Bank) -> None:
    await quick.put([{"a": "x"}], name="rows")

    for sql in ("SELECT a::INTEGER FROM data", "SELECT sum(a) FROM data", "SELECT f(a) FROM data"):
        with pytest.raises(CoatcheckError):
            await quick.query("rows", sql)


async def test_a_column_that_only_the_end_of_a_long_stream_has_is_there(tmp_path: Path) -> None:
    bank = Bank(FileStore(tmp_path))
    rows = ({"a": number} if number < 100_000 else {"late": number} for number in range(100_001))
    artifact = await bank.put(rows, name="stream")
    assert artifact.glimpse is not None
    assert artifact.glimpse.facts["partial"] is True

    assert await rows_of(bank, "stream", "SELECT max(late) AS l FROM data") == [{"l": 100_000}]
    assert await rows_of(bank, "stream", "SELECT * FROM data OFFSET 100000") == [
        {"a": None, "late": 100_000}
    ]
    bank.end_queries()


async def test_what_a_glimpse_of_all_rows_tells_is_not_looked_for_again(tmp_path: Path) -> None:
    bank = Bank(FileStore(tmp_path))
    rows = [{"a": number} for number in range(100_000)] + [{"a": "x", "late": "end"}]
    artifact = await bank.put(rows, name="rows")
    assert artifact.glimpse is not None
    assert "partial" not in artifact.glimpse.facts

    assert await rows_of(bank, "rows", "SELECT * FROM data OFFSET 99999") == [
        {"a": 99_999, "late": None},
        {"a": "x", "late": "end"},
    ]
    bank.end_queries()


async def test_artifacts_whose_names_only_python_folds_are_two_tables(quick: Bank) -> None:
    await quick.put([{"id": 1, "a": "k"}], name="k")
    await quick.put([{"id": 1, "a": "kelvin"}], name="\u212a")

    sql = 'SELECT x.a AS x, y.a AS y FROM "k" x JOIN "\u212a" y USING (id)'
    tables = {"k": "k", "\u212a": "\u212a"}

    assert await rows_of(quick, "k", sql) == [{"x": "k", "y": "kelvin"}]
    assert await rows_of(quick, tables, sql) == [{"x": "k", "y": "kelvin"}]
    assert await rows_of(quick, tables, sql.replace("k", "K")) == [{"x": "k", "y": "kelvin"}]


async def test_no_name_hides_a_table_of_the_engine_from_the_check(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")
    sql = 'WITH "duc\u212adb_views" AS (SELECT 1) SELECT view_name FROM duckdb_views, data'

    found = await refusal(quick, "orders", sql)

    assert "there is no table 'duckdb_views'" in str(found)


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": {"x": 5, "x\x00b": 2}}],
        [{"a": [{"x": {"y\x00": 1, "y": 2}}]}],
        [{"n": {"\x00": {"a": 0, "b": {}}}}],
        [{"n": {"\x00": 1}}, {"n": {"": 2}}],
        [[{"x": 5, "x\x00b": 2}]],
    ],
)
async def test_keys_with_nul_within_objects_keep_their_values(quick: Bank, rows: Any) -> None:
    await quick.put(rows, name="rows")

    assert await rows_of(quick, "rows", "SELECT * FROM data") == rows


async def test_keys_with_nul_at_the_top_are_columns_of_their_own(quick: Bank) -> None:
    rows = [{"x": 5, "x\x00b": 2, "\x00": 3}, {"x\x00b": 7}]
    await quick.put(rows, name="rows")

    assert await rows_of(quick, "rows", 'SELECT x, "x\ufffdb" AS y, "\ufffd" AS z FROM data') == [
        {"x": 5, "y": 2, "z": 3},
        {"x": None, "y": 7, "z": None},
    ]


async def test_half_of_a_character_in_a_statement_is_refused(quick: Bank) -> None:
    await quick.put(ORDERS, name="orders")

    assert "half of a character" in str(await refusal(quick, "orders", "SELECT '\ud800' FROM data"))


@pytest.mark.parametrize(
    ("expression", "says_so"),
    [
        ("$[?@.v > 290].id", True),
        ("[?v > `290`]", True),
        ("$[?@.v > '9'].id", False),
        ("$[?@.v == 'x'].id", False),
    ],
)
async def test_a_number_that_fields_of_csv_are_compared_with_is_told(
    expression: str, says_so: bool
) -> None:
    bank = Bank(MemoryStore())
    text = "id,v\n" + "".join(f"{n},{n}\n" for n in range(0, 500, 10))
    pointer = (await bank.put(text)).pointer

    answer = await bank.query(pointer, expression)

    assert ("ask in SQL" in (answer.hint or "")) is says_so
