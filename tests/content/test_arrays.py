import io
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from coatcheck import Limits
from coatcheck.content import (
    MissingRangeError,
    PartialPayload,
    binary_page,
    decode,
    dumps,
    encode,
    encoded_size,
    estimate_tokens,
    glimpse,
    loads,
    plain_rows,
    text_bound,
    weigh,
)
from coatcheck.errors import InvalidArgumentError, UnencodableValueError
from coatcheck.records import Glimpse, Page

Array = NDArray[Any]

_WIDE = [(f"field_{number:04}", "i4") for number in range(4_000)]
ARRAYS: dict[str, Array] = {
    "C order": np.arange(6).reshape(2, 3),
    "Fortran order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "Fortran cube": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    "strided": np.arange(24).reshape(2, 3, 4)[:, ::2, 1:],
    "reversed": np.arange(9.0)[::-1],
    "turned": np.arange(6).reshape(2, 3).T[::-1],
    "long strides": np.arange(400_000.0)[::3],
    "no dimension": np.array(5),
    "empty": np.zeros((0, 3)),
    "empty behind": np.zeros((3, 0)),
    "text": np.array(["a", "bé漢"]),
    "bytes": np.array([b"x", b"yy"]),
    "times": np.array(["2020-01-01", "NaT"], "M8[ns]"),
    "durations": np.array([1, -2], "m8[s]"),
    "complex": np.array([1 + 2j, complex("nan")]),
    "big-endian": np.array([1, 2], ">i4"),
    "records": np.array([(1, [1.5, 2.5])], [("a", "i4"), ("b", "f8", (2,))]),
    "records of any name": np.zeros(3, [("a", "i4"), ("漢", "f8")]),
    "records of many fields": np.zeros(2, _WIDE),
    "raw": np.array([b"abcde"], "V5"),
    "nothing": np.zeros(3, "V0"),
    "booleans": np.array([True, False]),
    "half": np.array([np.nan, np.inf, 1.5], "f2"),
    "long": np.array([1.5], "longdouble"),
}


def arr(value: object) -> Array:
    assert isinstance(value, np.ndarray)
    return cast("Array", value)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_an_array_comes_back_as_numpy_itself_would_read_it(array: Array) -> None:
    encoding = encode(array)
    payload = encoding.whole()
    back = decode(payload, encoding.form)
    read = np.load(io.BytesIO(payload), max_header_size=1_000_000)

    assert (encoding.form, encoding.extension) == ("npy", "npy")
    assert encoding.content_type == "application/x-npy"
    assert len(payload) == encoding.index.size_bytes == encoded_size(array)
    for found in map(arr, (back, read, encoding.value)):
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
    assert arr(back).flags.f_contiguous or not array.flags.f_contiguous
    assert not arr(back).flags.writeable


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_an_owned_array_has_the_same_payload_and_is_not_copied(array: Array) -> None:
    encoding = encode(array, owned=True)

    assert b"".join(encoding.chunks()) == encode(array).whole() == encoding.whole()
    assert encoding.digest == _completed(encode(array)).digest
    assert not arr(encoding.value).flags.writeable
    assert array.nbytes == 0 or np.shares_memory(arr(encoding.value), array)


def _completed(encoding: Any) -> Any:
    encoding.whole()
    return encoding


def test_a_kept_array_is_the_payload_itself() -> None:
    array = np.arange(1_000.0)
    encoding = encode(array)
    kept = arr(encoding.value)

    payload = encoding.whole()

    assert np.shares_memory(kept, np.frombuffer(payload, "u1"))
    assert not np.shares_memory(kept, array)
    with pytest.raises(ValueError, match="WRITEABLE"):
        kept.setflags(write=True)


def test_a_memory_map_is_an_array(tmp_path: Any) -> None:
    np.arange(10.0).tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", dtype="f8", mode="r")

    assert np.array_equal(arr(decode(encode(mapped).whole(), "npy")), np.arange(10.0))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: np.array([None, 1]), "dtype object"),
        (lambda: np.zeros(1, [("a", "O")]), "objects"),
        (lambda: np.array(["a"], dtype=np.dtypes.StringDType()), "StringDType"),
        (lambda: np.zeros(2).view(np.ma.MaskedArray), "MaskedArray"),
        (lambda: np.zeros(2, [("a", "i4")]).view(np.recarray), "recarray"),
        (lambda: np.zeros((1, 1)).view(type("Units", (np.ndarray,), {})), "Units"),
    ],
)
def test_what_is_more_than_its_items_is_refused_by_name(
    make: Callable[[], object], reason: str
) -> None:
    with pytest.raises(UnencodableValueError, match=reason) as refused:
        encode(make())
    with pytest.raises(UnencodableValueError, match=reason):
        encoded_size(make())

    assert refused.value.hint.startswith("Return ")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x93NUMPY\x09\x00",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100,
        b"\x93NUMPY\x01\x00\x10\x00{'descr': 1, }   ",
        b"\x93NUMPY\x01\x00\x04\x00((((",
        encode(np.arange(100)).whole()[:-1],
        encode(np.arange(100)).whole().replace(b"<i8", b"|O8"),
        encode(np.arange(100)).whole().replace(b"(100,)", b"(-10,)"),
    ],
)
def test_a_damaged_payload_is_told(payload: bytes) -> None:
    with pytest.raises(ValueError, match="npy"):
        decode(payload, "npy")


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_an_array_is_never_longer_as_json_than_its_bound(array: Array) -> None:
    if array.dtype.kind == "V" and not array.dtype.names and array.dtype.itemsize == 0:
        assert text_bound(array, 0) >= 3 * array.size
        return
    assert len(dumps(plain_rows(array))) <= text_bound(array, 0)


@given(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_side=4)))
@settings(max_examples=200)
def test_every_bound_holds_and_every_array_comes_back_bit_for_bit(array: Array) -> None:
    back = arr(decode(encode(array).whole(), "npy"))

    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert len(dumps(plain_rows(array))) <= text_bound(array, 0)


def test_only_an_array_whose_bound_reaches_the_limit_is_weighed() -> None:
    array = np.zeros(100)
    bound = text_bound(array, 0)

    assert bound == 100 * 25 + 3
    assert weigh(array, bound + 1) is None
    assert weigh(array, bound) is not None


@pytest.mark.parametrize(
    ("array", "plain"),
    [
        (np.array([[1, 2], [3, 4]], "i2"), "[[1,2],[3,4]]"),
        (np.array([0.1, np.nan, -np.inf], "f4"), '[0.10000000149011612,"NaN","-Infinity"]'),
        (np.array(["2020-01-01T10:00", "NaT"], "M8[s]"), '["2020-01-01T10:00:00","NaT"]'),
        (np.array([90, "NaT"], "m8[s]"), '["PT1M30S",null]'),
        (np.array([1_500, 1], "m8[ns]"), '["1500 nanoseconds","1 nanoseconds"]'),
        (np.array([14], "m8[M]"), '["14 months"]'),
        (np.array([1 + 2j]), "[[1.0,2.0]]"),
        (np.array([(1, "x")], [("a", "i4"), ("b", "U2")]), '[[1,"x"]]'),
        (np.array((1, "x"), [("a", "i4"), ("b", "U2")]), '[1,"x"]'),
        (np.array([b"ab"]), '["YWI="]'),
        (np.array(True), "true"),
        (np.array([2.5], "longdouble"), "[2.5]"),
    ],
)
def test_an_array_has_a_plain_value(array: Array, plain: str) -> None:
    assert dumps(plain_rows(array)).decode() == plain


def read(
    array: object, offset: int = 0, limit: int | None = None, limits: Limits | None = None
) -> tuple[Page, list[tuple[int, int]]]:
    """Return a page, and the ranges that were fetched for it."""
    encoding = encode(array)
    payload = encoding.whole()
    rows, partial = encoding.index.rows, PartialPayload(len(payload))
    assert rows is not None
    ranges: list[tuple[int, int]] = []
    while True:
        try:
            page = binary_page(rows, partial, offset=offset, limit=limit, limits=limits or Limits())
        except MissingRangeError as gap:
            ranges.append((gap.start_byte, gap.stop_byte))
            partial.add(gap.start_byte, payload[gap.start_byte : gap.stop_byte])
        else:
            return page, ranges


def test_a_window_of_rows_is_one_range_behind_the_header() -> None:
    page, ranges = read(np.arange(2_000_000.0).reshape(-1, 2), 500_000, 3)

    assert page.content == "[[1000000.0,1000001.0],[1000002.0,1000003.0],[1000004.0,1000005.0]]"
    assert (page.unit, page.offset, page.limit, page.total) == ("rows", 500_000, 3, 1_000_000)
    assert (page.has_more, page.next_offset) == (True, 500_003)
    assert len(ranges) == 2
    assert sum(stop - start for start, stop in ranges) <= 2 * 8_192


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_pages_joined_are_the_rows(array: Array) -> None:
    rows: list[object] = []
    offset: int | None = 0
    small = Limits(page_cap_chars=2_000_000)
    while offset is not None:
        page, _ = read(array, offset, 50_000, small)
        joined = loads(str(page.content).encode())
        assert isinstance(joined, list)
        rows += joined
        offset = page.next_offset

    assert rows == loads(dumps(plain_rows(np.atleast_1d(array))))


def test_a_page_ends_within_its_bounds() -> None:
    numbers = np.arange(1_000_000)

    by_chars, _ = read(numbers, 10, 1_000_000, Limits(page_cap_chars=100))
    by_tokens, _ = read(numbers, 10, None, Limits(page_tokens=50))
    exact, _ = read(np.zeros(50, "i8"), 0, 50, Limits(page_cap_chars=101))
    less, _ = read(np.zeros(50, "i8"), 0, 50, Limits(page_cap_chars=100))

    assert len(by_chars.content) <= 100 < len(by_chars.content) + 4
    assert by_chars.limit == 100
    assert estimate_tokens(str(by_tokens.content)) <= 51
    assert by_tokens.has_more
    assert exact.content == f"[{','.join('0' * 50)}]"
    assert (less.next_offset, exact.next_offset) == (49, None)


def test_a_row_longer_than_a_page_is_the_head_of_its_text() -> None:
    page, _ = read(np.zeros((3, 100), "i8"), 1, 2, Limits(page_cap_chars=50))

    head = loads(str(page.content).encode())
    assert isinstance(head, str)
    assert f"[{','.join('0' * 100)}]".startswith(head)
    assert len(page.content) <= 50
    assert (page.has_more, page.next_offset) == (True, 2)


def test_a_window_behind_the_end_is_empty() -> None:
    page, _ = read(np.arange(5), 9)

    assert (page.content, page.total, page.has_more, page.next_offset) == ("[]", 5, False, None)


@pytest.mark.parametrize(("offset", "limit"), [(-1, 1), (0, 0), (True, 1), (0, True), ("0", 1)])
def test_a_window_that_is_none_is_refused(offset: Any, limit: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="whole number"):
        read(np.arange(5), offset, limit)


def of(array: object, budget: int = 150) -> Glimpse | None:
    return glimpse(array, content_type="application/x-npy", size_bytes=9, budget_tokens=budget)


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (np.array([[1, 2], [3, 4]]), "2x2 int64, 1 to 4, mean 2.5"),
        (np.array([1.0, np.nan, np.inf]), "3 float64, 2 not finite, 1 to 1, mean 1"),
        (np.array([np.nan]), "1 float64, 1 not finite"),
        (np.array([0.1], "f4"), "1 float32, 0.1 to 0.1, mean 0.1"),
        (np.array([1.7e308, 1.7e308]), "2 float64, 1.7e308 to 1.7e308"),
        (np.array([True, False]), "2 bool, false to true, mean 0.5"),
        (np.array(["b", "a`\n"]), "2 <U3, `a\\x60\\n` to `b`"),
        (
            np.array(["2021-05-01", "2020-01-02"], "M8[D]"),
            "2 datetime64[D], 2020-01-02 to 2021-05-01",
        ),
        (np.array(["2021-05-01", "NaT"], "M8[D]"), "2 datetime64[D], 1 NaT"),
        (np.array([3, 5], "m8[s]"), "2 timedelta64[s], 3 seconds to 5 seconds"),
        (np.array([1j]), "1 complex128"),
        (np.zeros(3, [("a", "i4"), ("b", "i4")]), "3 2-field"),
        (np.zeros((0, 3)), "0x3 float64"),
        (np.array(7), "one int64, 7 to 7, mean 7"),
        (np.array([b"x"]), "1 |S1"),
        (np.array([2**62, 2**63 - 1]), "2 int64, 4611686018427387904 to 9223372036854775807"),
    ],
)
def test_an_array_is_glimpsed_in_a_line(array: Array, shown: str) -> None:
    found = of(array)

    assert str(found) == shown
    assert found == of(array)


def test_a_glimpse_of_any_array_is_at_most_25_tokens_as_a_model_counts_them() -> None:
    count: Callable[[str], int] = import_module("rs_bpe").openai.o200k_base().count
    grid = np.random.default_rng(7).normal(size=(128, 128, 128))
    longest = np.array([[[-(2**63) + 12_345, 2**63 - 1]]] * 9)

    for array in (grid, longest, -grid * 1.234e200, *ARRAYS.values()):
        assert count(str(of(array))) <= 25


@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=2, max_side=6)))
def test_the_numbers_of_a_glimpse_are_those_of_a_plain_count(array: Array) -> None:
    found = of(array)
    assert found is not None
    finite = [number for number in array.reshape(-1).tolist() if np.isfinite(number)]

    assert found.facts.get("nonFinite", 0) == array.size - len(finite)
    if finite:
        assert (found.facts["min"], found.facts["max"]) == (min(finite), max(finite))
    if "mean" in found.facts:
        assert found.facts["mean"] == pytest.approx(np.mean(finite), rel=1e-9, abs=1e-300)


@given(hnp.arrays(hnp.integer_dtypes() | hnp.boolean_dtypes(), st.integers(1, 20)))
def test_whole_numbers_of_a_glimpse_are_exact(array: Array) -> None:
    found = of(array)
    assert found is not None

    numbers = array.tolist()
    assert (found.facts["min"], found.facts["max"]) == (min(numbers), max(numbers))
    assert found.facts["mean"] == pytest.approx(sum(numbers) / len(numbers))


def test_a_small_budget_gets_less_and_the_least_nothing() -> None:
    array = np.arange(1_000.0)

    assert str(of(array, 9)) == "1000 float64"
    assert of(array, 1) is None


def test_the_core_imports_no_library_of_tables() -> None:
    code = (
        "import sys, coatcheck, coatcheck.content, coatcheck.tools, coatcheck.mirror; "
        "from coatcheck.content import encode, glimpse, weigh; encode([1]); weigh({'a': 1}, 9); "
        "print({'numpy', 'pandas', 'polars', 'pyarrow'} & set(sys.modules))"
    )

    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert shown.stdout == "set()\n"
