import dataclasses
import math
from collections.abc import Callable
from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import dumps, loads
from coatcheck.content._json import is_json
from coatcheck.errors import UnencodableValueError

TEXTS = st.text(st.characters(), max_size=8) | st.text('\ud800\udfffaé😀\n"\\\0', max_size=8)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62, max_value=2**66)
    | st.integers(min_value=-(2**66), max_value=-(2**62))
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from(["null", "9" * 30, "-" + "0" * 30])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)

AROUND: list[Callable[[object], object]] = [
    lambda number: number,
    lambda number: [number],
    lambda number: {"a": ({"b": number},)},
    lambda number: ["\ud800", number],
    lambda number: [None, "null", number],
]


@dataclasses.dataclass
class Point:
    x: int


def same(one: object, other: object) -> bool:
    """Equal, of the same types all the way down, and with the same sign of zero."""
    return repr(one) == repr(other)


def nested(depth: int, inmost: object = 1) -> object:
    value = inmost
    for _ in range(depth):
        value = [value]
    return value


@given(VALUES)
def test_a_value_comes_back_equal_and_of_the_same_types(value: object) -> None:
    assert same(loads(dumps(value)), value)


@given(VALUES)
def test_json_is_compact_utf_8(value: object) -> None:
    payload = dumps(value)

    assert payload.decode("utf-8", "surrogatepass").encode("utf-8", "surrogatepass") == payload
    assert dumps(loads(payload)) == payload


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        1e22,
        1.0,
        1,
        True,
        5e-324,
        0.00012345678901234567,
        2**63,
        2**64 - 1,
        2**64,
        -(2**63),
        -(2**63) - 1,
        10**4_000,
        [0.00043204274843774774, "12345678901234567890", 1],
        [0.00043204274843774774, 12345678901234567890123],
        [-12345678901234567890, "-1234567890123456789"],
        "\ud83d\ude00",
        {"\ud800": ["\udfff", 2**70]},
        "null",
        [None, 1.5, {"null": None}],
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_number_or_text_that_encoders_like_to_bend_survives(value: object) -> None:
    assert same(loads(dumps(value)), value)


@pytest.mark.parametrize("number", [10**5_000, -(10**100_000) + 7, 10**30_000], ids=int.bit_length)
def test_an_integer_keeps_each_of_its_digits(number: int) -> None:
    assert loads(dumps({"n": [number, 0.5]})) == {"n": [number, 0.5]}
    assert len(dumps(10**5_000)) == 5_001


def test_long_fractions_and_long_integers_are_told_apart_however_many_there_are() -> None:
    fractions = [0.1234567890123456789012] * 3

    assert loads(b"[" + b"0.1234567890123456789012," * 3 + b"1]") == [*fractions, 1]
    many = loads(b"[" + b"0.1234567890123456789012," * 100_001 + b"12345678901234567890123]")
    assert isinstance(many, list)
    assert many[:3] == fractions
    assert many[-1] == 12345678901234567890123


def test_a_tuple_becomes_an_array() -> None:
    assert dumps((1, (2,))) == b"[1,[2]]"
    assert dumps(("\ud800", (2,))) == b'["\xed\xa0\x80",[2]]'


@pytest.mark.parametrize(
    ("number", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
@pytest.mark.parametrize("around", AROUND)
def test_a_number_that_is_not_finite_is_its_name(
    number: float, text: str, around: Callable[[object], object]
) -> None:
    assert dumps(around(number)) == dumps(around(text))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1: 1, "1": 2}, "two keys give the same text"),
        ([{"a": {True: "\ud800", "true": 1}}], r'two keys give the same text at \[0\]\["a"\]'),
        ({(1, 2): 1}, "a key is of type tuple"),
        ({b"": {"k": object()}}, r'no type for object at \[b""\]\["k"\]'),
        ({1j}, r"no type for complex at \[…\]"),
        ({"rows": [1, 2, 3, {"at": 1j}]}, r'no type for complex at \["rows"\]\[3\]\["at"\]'),
        ({"k" * 90: {"l" * 90: {"m" * 90: 1j}}}, r"m…[.]$"),
        ((each for each in "ab"), "no type for generator"),
        ([1 << 4_000_000], r"more than 1,000,000 digits at \[0\]"),
        (1 << 4_000_000, "more than 1,000,000 digits"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_value_without_a_rule_is_refused_with_reason_and_place(
    value: object, reason: str
) -> None:
    with pytest.raises(UnencodableValueError, match=reason):
        dumps(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    once: list[object] = []
    once.append(once)
    twice: list[object] = []
    twice.extend([twice, twice, "\ud800"])
    mapping: dict[str, object] = {"big": 2**70}
    mapping["self"] = mapping

    for value in (once, twice, mapping):
        with pytest.raises(UnencodableValueError, match="contains itself"):
            dumps(value)


def test_a_list_used_twice_is_no_cycle() -> None:
    shared = [1, "\ud800"]

    assert loads(dumps([shared, shared, {"a": shared}])) == [shared, shared, {"a": shared}]


@pytest.mark.parametrize("inmost", [1, None, "\ud800", 2**70], ids=ascii)
def test_nesting_is_bounded_alike_for_every_value(inmost: object) -> None:
    deepest = nested(254, inmost)

    assert loads(dumps(deepest)) == deepest
    with pytest.raises(UnencodableValueError, match="254"):
        dumps(nested(255, inmost))
    with pytest.raises(UnencodableValueError, match="254"):
        dumps(nested(100_000, inmost))


def test_a_nearly_full_stack_refuses_instead_of_overflowing() -> None:
    ways: list[str] = []

    def descend(value: object) -> int:
        """Encode near the end of the stack, once for each of its last frames."""
        try:
            left = descend(value)
        except RecursionError:
            left = 50
        if left > 0:
            with suppress(RecursionError):  # of the call itself
                try:
                    dumps(value)
                except UnencodableValueError as error:
                    ways.append(error.reason)
        return left - 1

    for value in ("\ud800", {"deep": nested(250, {1: Point(1)})}, [Point(1)] * 3):
        descend(value)

    assert any("stack is full" in way for way in ways)


def test_text_that_is_no_json_is_a_value_error() -> None:
    for payload in (b"", b"{", b"[1,]", b"NaN", b"[Infinity]", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            loads(payload)


def test_whatever_was_accepted_is_read_by_other_parsers() -> None:
    assert orjson.loads(dumps({"a": [1, 1.5, "é", None]})) == {"a": [1, 1.5, "é", None]}


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '"\\ud800"', '["\ud800"]', "1e400", "[" + "9" * 99 + "]"]
)
def test_json_text_is_known_as_json(text: str) -> None:
    assert is_json(text)


@pytest.mark.parametrize("text", ["", "{a}", "[NaN]", "[1] [2]", "[" * 5_000 + "]" * 5_000])
def test_other_text_is_not_taken_for_json(text: str) -> None:
    assert not is_json(text)
