import datetime as dt
import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Limits
from coatcheck.content import (
    MissingRangeError,
    PartialPayload,
    as_live,
    binary_page,
    decode,
    dumps,
    encode,
    encoded_size,
    glimpse,
    is_live_class,
    loads,
    plain_rows,
    text_bound,
    weigh,
)
from coatcheck.content._frame_rows import columns_of
from coatcheck.errors import InvalidArgumentError, UnencodableValueError
from coatcheck.records import Page

# None of the three has complete types.
pd: Any = import_module("pandas")
pl: Any = import_module("polars")
pa: Any = import_module("pyarrow")
pandas_testing: Any = import_module("pandas.testing")

LONG = 20_000

PANDAS: dict[str, Callable[[], Any]] = {
    "plain": lambda: pd.DataFrame(
        {"i": [1, 2], "f": [1.5, math.nan], "s": ["a", None], "b": [True, False]}
    ),
    "empty": pd.DataFrame,
    "no rows": lambda: pd.DataFrame({"a": pd.Series([], dtype="int64")}),
    "objects that are numbers": lambda: _objects([1, None, 3]),
    "objects that are text": lambda: _objects(["a", None, "b"]),
    "objects, NaN where none is": lambda: _objects(["x", math.nan]),
    "objects, none": lambda: _objects([None, None]),
    "lists": lambda: _objects([[1, 2], [3]]),
    "decimals": lambda: _objects([Decimal("1.50"), Decimal("2.25")]),
    "dates": lambda: _objects([dt.date(2020, 1, 1)]),
    "bytes": lambda: _objects([b"a"]),
    "categories": lambda: pd.DataFrame(
        {"c": pd.Categorical(["a", "b", "a"], categories=["b", "a", "z"], ordered=True)}
    ),
    "time zone": lambda: pd.DataFrame(
        {"t": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Vienna")}
    ),
    "nanoseconds": lambda: pd.DataFrame(
        {"t": pd.to_datetime(["2020-01-01T00:00:00.123456789"]).as_unit("ns")}
    ),
    "durations": lambda: pd.DataFrame({"d": pd.to_timedelta([1, 2], unit="s")}),
    "nullable": lambda: pd.DataFrame(
        {
            "a": pd.array([1, None], dtype="Int64"),
            "b": pd.array([True, None], dtype="boolean"),
            "c": pd.array(["x", None], dtype="string"),
            "d": pd.array([1.5, None], dtype="Float32"),
        }
    ),
    "Arrow's own": lambda: pd.DataFrame({"a": pd.array([1, 2], dtype="int64[pyarrow]")}),
    "numbered columns": lambda: pd.DataFrame([[1, 2], [3, 4]]),
    "columns of two levels": lambda: pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    ),
    "named columns": lambda: pd.DataFrame([[1, 2]], columns=pd.Index(["a", "b"], name="n")),
    "index of two levels": lambda: pd.DataFrame(
        {"v": [1, 2]}, index=pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["n", "s"])
    ),
    "named index": lambda: pd.DataFrame({"v": [1, 2]}, index=pd.Index([5, 7], name="id")),
    "index of text": lambda: pd.DataFrame({"v": [1, 2]}, index=["p", "q"]),
    "index of times": lambda: pd.DataFrame({"a": [1, 2]}, index=pd.date_range("2020", periods=2)),
    "index from five": lambda: pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(5, 7, name="r")),
    "periods": lambda: pd.DataFrame({"p": pd.period_range("2020-01", periods=3, freq="M")}),
    "intervals": lambda: pd.DataFrame({"p": pd.interval_range(0, 3)}),
    "long": lambda: pd.DataFrame({"a": range(LONG), "s": [f"row {i}" for i in range(LONG)]}),
}
POLARS: dict[str, Callable[[], Any]] = {
    "plain": lambda: pl.DataFrame({"a": [1, None], "s": ["x", None], "f": [1.5, math.nan]}),
    "nested": lambda: pl.DataFrame({"l": [[1], [2, 3]], "st": [{"a": 1}, {"a": 2}]}),
    "times": lambda: pl.DataFrame(
        {
            "t": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
            "d": [dt.date(2020, 1, 1)],
            "s": [dt.timedelta(seconds=1)],
        }
    ),
    "categories": lambda: pl.DataFrame(
        {
            "e": pl.Series(["p"], dtype=pl.Enum(["p", "q"])),
            "c": pl.Series(["p"], dtype=pl.Categorical),
            "n": pl.Series([Decimal("1.5")]),
        }
    ),
    "wide numbers": lambda: pl.DataFrame({"i": pl.Series([2**100], dtype=pl.Int128)}),
    "empty": pl.DataFrame,
    "nulls": lambda: pl.DataFrame({"n": [None, None]}),
    "long": lambda: pl.DataFrame({"a": range(LONG)}),
}
PYARROW: dict[str, Callable[[], Any]] = {
    "plain": lambda: pa.table({"a": [1, 2], "s": ["x", None]}),
    "empty": lambda: pa.table({}),
    "no batch": lambda: pa.Table.from_batches(
        [], schema=pa.schema([("a", pa.int8())], metadata={"k": "v"})
    ),
    "a name twice": lambda: pa.table([[1], [2]], names=["a", "a"]),
    "a map": lambda: pa.table({"m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8()))}),
    "times": lambda: pa.table(
        {
            "t": pa.array([1], pa.timestamp("ns")),
            "d": pa.array([1], pa.duration("ns")),
            "c": pa.array([1], pa.time64("ns")),
        }
    ),
    "chunks": lambda: (
        pa.chunked_array([[1, 2], [], [3]])
        and pa.table({"a": pa.chunked_array([list(range(10_000)), list(range(10_000))])})
    ),
    "a batch": lambda: pa.RecordBatch.from_pydict({"a": [1, 2]}),
    "a batch of nothing": lambda: pa.RecordBatch.from_pydict({"a": pa.array([], pa.int8())}),
}
EVERY = [*PANDAS.values(), *POLARS.values(), *PYARROW.values()]
NAMES = [
    f"{library} {name}"
    for library, frames in (("pandas", PANDAS), ("polars", POLARS), ("pyarrow", PYARROW))
    for name in frames
]


def _objects(cells: list[object]) -> Any:
    return pd.DataFrame({"o": pd.Series(cells, dtype=object)})


def _too_many_categories() -> Any:
    """Return two chunks whose categories, joined, are more than their index counts."""
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), [f"{text}{i}" for i in range(100)]
        )
        for text in "ab"
    ]
    return pa.table({"d": pa.chunked_array(chunks)})


def round_trip(value: object) -> Any:
    encoding = encode(value)
    return decode(encoding.whole(), encoding.form)


@pytest.mark.parametrize("make", PANDAS.values(), ids=PANDAS.keys())
def test_a_pandas_frame_comes_back_equal_and_may_be_changed(make: Callable[[], Any]) -> None:
    frame = make()
    back = round_trip(frame)

    # How often an index of times ticks is not kept, the times are.
    pandas_testing.assert_frame_equal(frame, back, check_freq=False)
    assert list(frame.dtypes) == list(back.dtypes)
    if back.size:
        back.iloc[0, 0] = back.iloc[-1, -1] if back.shape[1] == 1 else back.iloc[0, 0]


def test_attributes_of_a_pandas_frame_are_kept() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs = {"unit": "km"}

    assert round_trip(frame).attrs == {"unit": "km"}


@pytest.mark.parametrize("make", POLARS.values(), ids=POLARS.keys())
def test_a_polars_frame_comes_back_equal(make: Callable[[], Any]) -> None:
    frame = make()
    back = round_trip(frame)

    assert type(back) is type(frame)
    assert frame.equals(back)
    assert frame.schema == back.schema


@pytest.mark.parametrize("make", PYARROW.values(), ids=PYARROW.keys())
def test_an_arrow_table_or_batch_comes_back_equal(make: Callable[[], Any]) -> None:
    frame = make()
    back = round_trip(frame)

    assert type(back) is type(frame)
    assert frame.equals(back, check_metadata=True)


def test_dictionaries_of_chunks_become_one() -> None:
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    table = pa.table({"d": pa.chunked_array(chunks)})

    back = round_trip(table)

    assert back.schema == table.schema
    assert back.to_pylist() == table.to_pylist()


def test_a_series_comes_back_as_one() -> None:
    for series in (
        pd.Series([1, 2], name="x"),
        pd.Series([1, 2]),
        pd.Series([1.5], index=["q"], name=0),
    ):
        pandas_testing.assert_series_equal(series, round_trip(series))
    for column in (pl.Series("z", [1, 2]), pl.Series(["a"])):
        back = round_trip(column)
        assert column.equals(back, check_names=True, check_dtypes=True)


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(max_size=3),
            st.floats(),
            st.integers(-(2**63), 2**63 - 1),
            st.booleans() | st.none(),
        ),
        max_size=8,
    )
)
@settings(max_examples=50)
def test_frames_of_any_cells_come_back_equal(rows: list[tuple[Any, ...]]) -> None:
    names = ["s", "f", "i", "b"]
    frame = pd.DataFrame(rows, columns=names)
    table = pl.DataFrame(
        rows, schema={"s": pl.String, "f": pl.Float64, "i": pl.Int64, "b": pl.Boolean}, orient="row"
    )

    pandas_testing.assert_frame_equal(frame, round_trip(frame))
    assert round_trip(table).equals(table)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _objects([1, "a"]), "column 0, of dtype object"),
        (lambda: _objects([1, 2.5]), "column 0 of a pandas frame holds objects of several types"),
        (lambda: _objects([{"a": 1}, {"b": 2}]), "column 0"),
        (lambda: _objects(["x", None, math.nan]), "column 0"),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "its labels"),
        (lambda: pd.DataFrame([[1, 2]], columns=["1", 1]), "labels"),
        (lambda: pd.DataFrame({"a": [1]}, index=pd.Index([1], name=5)), "labels"),
        (lambda: pd.DataFrame({"a": pd.array(["x"], dtype="string[python]")}), "come back as"),
        (_too_many_categories, "file format"),
        (lambda: pd.DataFrame({"c": [1j]}), "column 0, of dtype complex128"),
        (lambda: pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "column 0"),
        (lambda: pd.DataFrame({"a": np.array([1], ">i4")}), "column 0"),
        (lambda: pd.DataFrame(index=range(5)), "rows without columns"),
        (lambda: pa.table({"a": [1]}).select([]), "rows without columns"),
        (lambda: pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)}), "a polars column"),
        (lambda: pl.DataFrame({"a": [1]}).lazy(), "LazyFrame"),
        (lambda: pa.array([1]), "JSON has no type"),
        (lambda: type("Special", (pd.DataFrame,), {})({"a": [1]}), "JSON has no type"),
    ],
)
def test_what_would_come_back_changed_is_refused_without_a_cell(
    make: Callable[[], Any], reason: str
) -> None:
    with pytest.raises(UnencodableValueError, match=reason):
        encode(make())


def test_a_frame_that_was_not_computed_yet_says_how_to() -> None:
    lazy = pl.DataFrame({"a": [1]}).lazy()

    with pytest.raises(UnencodableValueError) as refused:
        weigh(lazy, 10)

    assert refused.value.hint == "Return frame.collect()."


def test_a_frame_has_rows_a_type_and_the_bytes_of_its_file() -> None:
    encoding = encode(pl.DataFrame({"a": range(10)}))
    payload = encoding.whole()

    assert encoding.content_type == "application/vnd.apache.arrow.file"
    assert (encoding.form, encoding.extension) == ("arrow-polars", "arrow")
    assert encoding.index.row_count == 10
    assert len(payload) == encoding.size_hint == encoded_size(pl.DataFrame({"a": range(10)}))
    assert pa.ipc.open_file(payload).read_all().to_pydict() == {"a": list(range(10))}


@pytest.mark.parametrize("form", ["arrow-pandas", "arrow-polars", "arrow-pyarrow"])
@pytest.mark.parametrize("payload", [b"", b"ARROW1", b"x" * 1_000])
def test_a_damaged_file_is_told(payload: bytes, form: str) -> None:
    with pytest.raises(ValueError, match="Arrow"):
        decode(payload, form)


@contextmanager
def without(*libraries: str) -> Generator[None]:
    """Within this block an import of the libraries fails."""
    found = {name: sys.modules[name] for name in libraries}
    sys.modules.update(dict.fromkeys(libraries))  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.modules.update(found)


@pytest.mark.parametrize(
    ("value", "library"),
    [
        (np.arange(3), "numpy"),
        (PANDAS["plain"](), "pandas"),
        (PANDAS["plain"](), "pyarrow"),
        (POLARS["plain"](), "polars"),
        (PYARROW["plain"](), "pyarrow"),
    ],
)
def test_a_payload_names_the_library_it_takes(value: object, library: str) -> None:
    encoding = encode(value)
    payload = encoding.whole()

    with without(library), pytest.raises(InvalidArgumentError, match=library) as refused:
        decode(payload, encoding.form)

    assert refused.value.hint.startswith("pip install ")


def test_a_pandas_frame_names_the_library_it_is_stored_by() -> None:
    frame = PANDAS["plain"]()

    with without("pyarrow"), pytest.raises(UnencodableValueError, match="pyarrow") as refused:
        encode(frame)

    assert refused.value.hint == "pip install 'coatcheck[tables]'"


@pytest.mark.parametrize("make", EVERY, ids=NAMES)
def test_a_frame_is_not_longer_as_json_than_its_bound(make: Callable[[], Any]) -> None:
    frame = make()
    try:
        length = len(dumps(plain_rows(frame)))
    except UnencodableValueError:
        assert text_bound(frame, 1_000) >= 1_000
        return

    assert text_bound(frame, 10**9) >= length
    assert text_bound(frame, 10) >= min(length, 10)


def test_a_few_rows_of_long_cells_are_measured() -> None:
    frame = pl.DataFrame({"text": ["x" * 60_000]})

    assert text_bound(frame, 51_200) == len(dumps(plain_rows(frame)))
    assert weigh(frame, 51_200) is not None
    assert weigh(pl.DataFrame({"text": ["x" * 6_000]}), 51_200) is None


def read(
    frame: object, offset: int = 0, limit: int | None = None, limits: Limits | None = None
) -> tuple[Page, int]:
    """Return a page, and how many bytes were fetched for it."""
    encoding = encode(frame)
    payload = encoding.whole()
    rows, partial = encoding.index.rows, PartialPayload(len(payload))
    assert rows is not None
    fetched, page = 0, None
    while page is None:
        try:
            page = binary_page(rows, partial, offset=offset, limit=limit, limits=limits or Limits())
        except MissingRangeError as gap:
            fetched += gap.stop_byte - gap.start_byte
            partial.add(gap.start_byte, payload[gap.start_byte : gap.stop_byte])
    return page, fetched


# What Arrow stores in parts, it also shows in parts.
IN_PARTS = {"pandas periods", "pandas intervals"}
WHOLE = [make for name, make in zip(NAMES, EVERY, strict=True) if name not in IN_PARTS]


@pytest.mark.parametrize("make", WHOLE, ids=[name for name in NAMES if name not in IN_PARTS])
def test_pages_of_a_frame_joined_are_its_rows(make: Callable[[], Any]) -> None:
    frame = make()
    rows: list[object] = []
    totals: set[int] = set()
    offset: int | None = 0
    while offset is not None:
        page, _ = read(frame, offset, 9_000, Limits(page_cap_chars=1_000_000))
        page_rows = loads(str(page.content).encode())
        assert isinstance(page_rows, list)
        rows += page_rows
        totals.add(page.total)
        offset = page.next_offset

    assert totals == {len(rows)}
    assert rows == loads(dumps(plain_rows(frame)))


@pytest.mark.parametrize("name", sorted(IN_PARTS))
def test_cells_that_json_has_no_type_for_are_read_as_arrow_stores_them(name: str) -> None:
    page, _ = read(PANDAS[name.removeprefix("pandas ")]())

    assert page.content in {
        '[{"p":600},{"p":601},{"p":602}]',
        '[{"p":{"left":0,"right":1}},{"p":{"left":1,"right":2}},{"p":{"left":2,"right":3}}]',
    }


def test_a_window_of_a_long_frame_takes_the_footer_and_its_batch() -> None:
    frame = pl.DataFrame({"a": range(200_000), "b": range(200_000)})

    page, fetched = read(frame, 99_990, 2)
    across, _ = read(frame, 8_191, 2)

    assert page.content == '[{"a":99990,"b":99990},{"a":99991,"b":99991}]'
    assert across.content == '[{"a":8191,"b":8191},{"a":8192,"b":8192}]'
    assert fetched <= 2 * 8 * 8_192 + 5 * 8_192


def test_rows_of_a_polars_frame_are_read_where_pyarrow_is_missing() -> None:
    frame = pl.DataFrame({"a": range(10_000)})

    with without("pyarrow"):
        page, _ = read(frame, 9_000, 2)

    assert page.content == '[{"a":9000},{"a":9001}]'


def test_rows_of_other_frames_name_what_reads_them() -> None:
    frame = PANDAS["plain"]()
    encoding = encode(frame)
    payload = PartialPayload.of(encoding.whole())
    rows = encoding.index.rows
    assert rows is not None

    with without("pyarrow", "polars"), pytest.raises(InvalidArgumentError, match="pyarrow"):
        binary_page(rows, payload, offset=0, limit=1, limits=Limits())


def test_an_unnamed_index_is_no_column_and_a_named_one_is() -> None:
    assert read(PANDAS["index of text"]())[0].content == '[{"v":1},{"v":2}]'
    assert read(PANDAS["named index"]())[0].content == '[{"v":1,"id":5},{"v":2,"id":7}]'


def test_a_name_that_stands_twice_gets_a_number() -> None:
    assert read(PYARROW["a name twice"]())[0].content == '[{"a":1,"a_2":2}]'


def test_a_frame_becomes_that_of_another_library() -> None:
    columns = {"a": [1, 2], "s": ["x", "y"]}
    frames = {
        pd.DataFrame: pd.DataFrame(columns),
        pl.DataFrame: pl.DataFrame(columns),
        pa.Table: pa.table(columns),
    }

    for value in (*frames.values(), pa.RecordBatch.from_pydict(columns)):
        for kind in frames:
            found: Any = as_live(value, kind)
            assert type(found) is kind
            assert loads(dumps(plain_rows(found))) == [{"a": 1, "s": "x"}, {"a": 2, "s": "y"}]
    assert as_live(pl.Series("a", [1]), pd.DataFrame).equals(pd.DataFrame({"a": [1]}))  # type: ignore[attr-defined]
    assert as_live(frames[pd.DataFrame], pd.DataFrame) is frames[pd.DataFrame]
    assert as_live([1], pd.DataFrame) == [1]
    assert as_live(frames[pa.Table], np.ndarray) is frames[pa.Table]


def test_classes_of_arrays_and_frames_are_known_by_name() -> None:
    for kind in (np.ndarray, pd.DataFrame, pd.Series, pl.DataFrame, pa.Table, pa.RecordBatch):
        assert is_live_class(kind)
    for other in (dict, "numpy.ndarray", np.float64, pd.Index, list[int]):
        assert not is_live_class(other)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": range(5_000), "name": ["x"] * 5_000}),
        pl.DataFrame({"id": range(5_000), "name": ["x"] * 5_000}),
        pa.table({"id": range(5_000), "name": ["x"] * 5_000}),
    ],
)
def test_a_frame_is_glimpsed_as_the_table_it_is(frame: object) -> None:
    found = glimpse(
        frame,
        content_type="application/vnd.apache.arrow.file",
        size_bytes=9,
        budget_tokens=150,
    )

    assert found is not None
    assert str(found).startswith("5,000 rows, 2 columns")
    assert (found.facts["rows"], found.facts["columnCount"]) == (5_000, 2)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": range(150_000)}),
        pl.DataFrame({"id": range(150_000)}),
        pa.table({"id": range(150_000)}),
        pd.Series(range(150_000), name="id"),
    ],
)
def test_a_long_frame_is_glimpsed_by_a_sample_of_its_rows(frame: object) -> None:
    found = glimpse(frame, content_type="", size_bytes=9, budget_tokens=150)

    assert found is not None
    assert str(found).startswith("150,000 rows, 1 column (values sampled from 20,000 rows); id")


@pytest.mark.parametrize("make", [POLARS["plain"], PYARROW["plain"]])
def test_rows_of_a_damaged_frame_are_not_read(make: Callable[[], Any]) -> None:
    encoding = encode(make())
    damaged = PartialPayload.of(b"x" * len(encoding.whole()))
    rows = encoding.index.rows
    assert rows is not None

    with pytest.raises(ValueError, match="damaged"):
        binary_page(rows, damaged, offset=0, limit=1, limits=Limits())


def test_the_head_of_a_frame_is_its_first_rows() -> None:
    encoding = encode(pl.DataFrame({"a": range(3)}))

    assert encoding.head(8_000) == '[{"a":0},{"a":1},{"a":2}]'
    assert encode(pl.DataFrame({"a": range(3_000)})).head(20) == '[{"a":0},{"a":1},{"a'
    assert encode(PANDAS["periods"]()).head(20) == ""


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.duration("ns"), pa.time64("ns")])
def test_a_time_in_nanoseconds_that_is_missing_is_null(kind: Any) -> None:
    (shown, missing) = columns_of(pa.table({"t": pa.array([1, None], kind)}), 2)["t"]

    assert isinstance(shown, str)
    assert missing is None
