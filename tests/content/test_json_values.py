import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import math
import random
import re
import types
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, computed_field, field_serializer

from coatcheck.content import dumps, encode, loads
from coatcheck.content._json_digits import MOST_DIGITS, digits_of, number_of
from coatcheck.content._json_nulls import may_hold_non_finite
from coatcheck.content._json_values import duration
from coatcheck.content._json_writer import write
from coatcheck.content._rows import dump_rows
from coatcheck.errors import UnencodableValueError


class Plain(enum.Enum):
    RED = "red"
    PRICE = decimal.Decimal("1.50")
    NAN = math.nan
    PAIR = (1, None, math.inf)
    HUGE = 2**70
    WHEN = dt.date(2026, 1, 2)
    NONE = None


class Text(enum.StrEnum):
    A = "a"


class Number(enum.IntFlag):
    ONE = 1
    TWO = 2


class Meta(enum.EnumMeta):
    pass


class Odd(enum.Enum, metaclass=Meta):
    X = "x"


class Point(NamedTuple):
    x: float
    label: object


@dataclasses.dataclass
class Node:
    value: object
    _hidden: object = None
    length: int = dataclasses.field(default=3, init=False)


class Inner(BaseModel):
    id: int


class Outer(Inner):
    at: dt.datetime
    parts: list[Inner] = Field(default_factory=list[Inner])
    secret: str = Field(default="s", exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.id

    @field_serializer("id")
    def shown(self, value: int) -> str:
        return f"#{value}"


class Circular:
    """A model as pydantic shows it, of which it says that it contains itself."""

    __pydantic_core_schema__: object = None

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def model_dump(self, **_options: object) -> object:
        raise ValueError(self._reason)


class Strings(Sequence[str]):
    def __getitem__(self, index: Any) -> Any:
        return cast("Any", ("a", "b")[index])

    def __len__(self) -> int:
        return 2


class Rude(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        return iter("a")

    def __len__(self) -> int:
        return 1


class Endless(Sequence["Endless"]):
    def __getitem__(self, index: Any) -> Any:
        if index:
            raise IndexError
        return Endless()

    def __len__(self) -> int:
        return 1


UTC = dt.UTC
NAIVE = dt.datetime.fromisoformat("2026-01-02")
LMT = dt.timezone(dt.timedelta(minutes=19, seconds=32))

RULES: list[tuple[object, object]] = [
    (dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006+00:00"),
    (NAIVE, "2026-01-02T00:00:00"),
    (dt.datetime(1900, 1, 1, tzinfo=LMT), "1900-01-01T00:00:00+00:19:32"),
    (dt.date(1, 1, 1), "0001-01-01"),
    (dt.time(23, 59, 59, 1, tzinfo=UTC), "23:59:59.000001+00:00"),
    (dt.timedelta(days=400, hours=2, seconds=3, microseconds=40), "P400DT2H3.00004S"),
    (decimal.Decimal("10.50"), "10.50"),
    (decimal.Decimal("1E+3"), "1E+3"),
    (decimal.Decimal("NaN"), "NaN"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (Plain.RED, "red"),
    (Plain.PRICE, "1.50"),
    (Plain.NAN, "NaN"),
    (Plain.PAIR, [1, None, "Infinity"]),
    (Plain.HUGE, 2**70),
    (Plain.WHEN, "2026-01-02"),
    (Plain.NONE, None),
    (Text.A, "a"),
    (Number.ONE | Number.TWO, 3),
    (Odd.X, "x"),
    ({"b", "a"}, ["a", "b"]),
    (frozenset({10, 9, (2, 1)}), [10, 9, [2, 1]]),
    ({frozenset({2, 1}), frozenset[int]()}, [[1, 2], []]),
    (Point(math.nan, {3}), {"x": "NaN", "label": [3]}),
    (
        Node(math.inf, [math.nan, None]),
        {"value": "Infinity", "_hidden": ["NaN", None], "length": 3},
    ),
    (b"\xff\x00", "/wA="),
    (bytearray(b"a"), "YQ=="),
    (memoryview(b"abcd")[::2], "YWM="),
    (PurePosixPath("/tmp/x"), "/tmp/x"),
    (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
    (collections.UserString("ab"), "ab"),
    (collections.OrderedDict(a=1), {"a": 1}),
    (collections.Counter("aab"), {"a": 2, "b": 1}),
    (types.MappingProxyType({"a": {1}}), {"a": [1]}),
    (collections.deque([1, 2]), [1, 2]),
    (range(3), [0, 1, 2]),
    ({"a": 1}.keys(), ["a"]),
    (Strings(), ["a", "b"]),
    (Inner(id=1), {"id": 1}),
    (RootModel[list[int]]([1, 2]), [1, 2]),
    (np.float32(0.5), 0.5),
    (np.float64(math.nan), "NaN"),
    (np.int8(-1), -1),
    (np.bool_(True), True),
    (np.datetime64("2026-01-02"), "2026-01-02"),
    (np.array([[1.5, math.nan]]), [[1.5, "NaN"]]),
    ({1: 1, 1.5: 2, None: 3, True + 1: 4}, {"1": 1, "1.5": 2, "null": 3, "2": 4}),
    (
        {False: 1, math.nan: 2, uuid.UUID(int=5): 3},
        {"false": 1, "NaN": 2, str(uuid.UUID(int=5)): 3},
    ),
    ({dt.date(2026, 1, 2): 1, Plain.RED: 2, b"a": 3}, {"2026-01-02": 1, "red": 2, "YQ==": 3}),
]


AROUND: list[Callable[[object], object]] = [
    lambda value: [value],
    lambda value: {"a": (value,)},
    lambda value: ["\ud800", [[value]]],
    lambda value: [None, "null", value],
]


def slowly(value: object) -> bytes:
    """Return the JSON that is written value by value, without orjson for any container."""
    return write(value, lambda _part, _depth: None)


def in_id(value: object) -> str:
    """Return what is the same in each process: the repr without addresses and orders of sets."""
    is_set = isinstance(value, set | frozenset)
    members: object = sorted(cast("set[object]", value), key=repr) if is_set else value
    return re.sub(r" at 0x[0-9a-f]+", "", repr(members))[:40]


@pytest.mark.parametrize(("value", "stored"), RULES, ids=in_id)
def test_each_type_has_one_form_on_every_way_and_at_every_place(
    value: object, stored: object
) -> None:
    assert repr(loads(dumps(value))) == repr(stored)
    assert dumps(value) == slowly(value) == dumps(stored)
    for around in AROUND:
        assert dumps(around(value)) == slowly(around(value)) == dumps(around(stored))


@pytest.mark.parametrize(("value", "stored"), RULES, ids=in_id)
def test_rows_written_in_blocks_are_as_those_written_at_once(value: object, stored: object) -> None:
    rows = [1, *[value] * 1_100]

    assert dump_rows(rows)[0] == dumps(rows) == dumps([1, *[stored] * 1_100])


def test_a_fragment_of_orjson_is_written_as_it_is() -> None:
    value = [orjson.Fragment(b'{"a":\n1}'), math.nan, {2}]

    assert dumps(value) == b'[{"a":\n1},"NaN",[2]]'
    assert loads(dumps(value)) == [{"a": 1}, "NaN", [2]]


def test_a_key_of_any_length_is_its_digits() -> None:
    assert loads(dumps({10**5_000: 1})) == {"1" + "0" * 5_000: 1}


def test_a_model_is_written_as_it_shows_itself() -> None:
    outer = Outer(id=1, at=NAIVE, parts=[Inner(id=2)])

    assert loads(dumps([outer])) == [
        {"id": "#1", "at": "2026-01-02T00:00:00", "parts": [{"id": 2}], "double": 2}
    ]


def test_of_a_subclass_where_its_base_is_declared_nothing_is_lost() -> None:
    class Holder(BaseModel):
        one: Inner

    outer = Outer(id=1, at=NAIVE)

    assert "at" in str(loads(dumps(Holder(one=outer))))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Rude(), "to read Rude raised RuntimeError"),
        ([Rude()], r"to read Rude raised RuntimeError at \[0\]"),
        ({"a": np.longdouble(1)}, "numpy"),
        (np.timedelta64(5, "s"), "numpy timedelta64"),
        ([1j], "no type for complex"),
        (Circular("other"), "to read Circular raised ValueError"),
        (Inner, "no type for ModelMetaclass"),
        (Node, "no type for type"),
    ],
    ids=in_id,
)
def test_what_no_rule_covers_is_refused(value: object, reason: str) -> None:
    with pytest.raises(UnencodableValueError, match=reason):
        dumps(value)


def test_an_enum_of_enums_is_unwrapped_within_a_bound() -> None:
    inner: object = "x"
    for _ in range(20):
        inner = _enum(inner)
    shallow = _enum(_enum("x"))

    assert dumps(shallow) == slowly(shallow) == b'"x"'
    with pytest.raises(UnencodableValueError, match="no type for E"):
        slowly(inner)
    with pytest.raises(UnencodableValueError, match="a key is of type E"):
        dumps({inner: 1, 2: 2})


def _enum(value: object) -> object:
    class E(enum.Enum):
        A = value

    return E.A


def test_what_contains_itself_is_refused_as_endless() -> None:
    node = Node(1)
    node.value = {"again": [node]}
    model = Outer.model_construct(id=1, at=NAIVE, parts=[])
    model.parts.append(model)
    points: list[object] = []
    points.append(Point(1, points))

    once: list[object] = []
    once.append(once)

    class Open(BaseModel):
        anything: object

    endless = (
        *(node, [node], model, Open(anything=once), points, Endless(), {"a": Endless()}),
        *(Circular("Circular reference detected"), [Circular("Circular reference detected")]),
    )
    for value in endless:
        with pytest.raises(UnencodableValueError) as caught:
            dumps(value)
        assert caught.value.endless


def test_an_object_used_twice_is_no_cycle() -> None:
    node = Node(math.nan)
    nested = Node(Node(Node(Node(Node(Node([node, node]))))))

    assert dumps([node, node]) == slowly([node, node])
    assert dumps(nested) == slowly(nested)


@pytest.mark.parametrize("depth", range(1, 9))
def test_the_bound_on_depth_is_exact_where_a_part_is_written_slowly(depth: int) -> None:
    def nested(levels: int) -> object:
        value: object = 1
        for _ in range(levels):
            value = [value]
        return value

    def around(inner: object) -> object:
        for _ in range(depth):
            inner = {1: "\ud800", "in": inner}
        return inner

    assert loads(dumps(around(nested(254 - depth)))) is not None
    with pytest.raises(UnencodableValueError, match="254") as caught:
        dumps(around(nested(255 - depth)))
    assert caught.value.endless


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["null", ":null", "\ud800", '"', "\\"])
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.binary(max_size=3)
    | st.sampled_from(Plain)
)
KEYS = st.text(max_size=2) | st.integers(0, 3) | st.none() | st.sampled_from(["null", "a\\", "1"])
RICH = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.builds(Node, inner)
        | st.builds(Point, st.floats(), inner)
        | st.frozensets(LEAVES, max_size=3)
    ),
    max_leaves=12,
)


def refused(value: object) -> bool:
    try:
        slowly(value)
    except UnencodableValueError:
        return True
    return False


@given(RICH)
def test_the_quick_way_writes_what_the_slow_way_writes(value: object) -> None:
    if refused(value):
        with pytest.raises(UnencodableValueError):
            dumps(value)
    else:
        payload = dumps(value)
        assert payload == slowly(value)
        assert dumps(loads(payload)) == payload


@given(RICH)
def test_every_payload_is_strict_json(value: object) -> None:
    if not refused(value):
        text = dumps(value).decode("utf-8", "surrogatepass")
        constants: list[str] = []

        json.loads(text, parse_constant=constants.append)

        assert not constants


@given(RICH)
def test_the_slow_way_agrees_wherever_orjson_takes_over(value: object) -> None:
    broken = ["\ud800", {1: value}, [value]]

    if not refused(broken):
        assert dumps(broken) == slowly(broken)


def rows(count: int, **columns: object) -> list[dict[str, object]]:
    numbers = random.Random(7)
    return [
        {
            "id": number,
            "price": None if numbers.random() < 0.1 else numbers.random(),
            **({"sparse": None} if number % 3 else {}),
            **columns,
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("count", [1, 2, 999, 1_000, 3_000])
@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"name": "no null here"},
        {"note": "\\,null :null [null"},
        {"tags": [None, {"a": None}]},
        {f"c{number}": None for number in range(9)},
        {"last": (None,)},
    ],
    ids=str,
)
def test_one_nan_among_rows_with_nulls_is_found(count: int, columns: dict[str, object]) -> None:
    table = rows(count, **columns)
    payload = dumps(table)
    table[-1]["price"] = math.nan
    found = loads(dumps(table))

    assert payload == orjson.dumps(rows(count, **columns))
    assert isinstance(found, list)
    assert found[-1]["price"] == "NaN"
    assert found[:-1] == table[:-1] or "last" in columns


@dataclasses.dataclass
class Priced:
    price: float | None


@pytest.mark.parametrize("at", [0, 1_023, 1_024, 4_000])
@pytest.mark.parametrize(
    "odd",
    [
        {"price": None},
        {"other": None},
        {"id": None, "price": 1.5},
        [None, 1.5],
        "null",
        None,
        Priced(None),
        collections.OrderedDict[str, object](price=None),
        {1: None},
    ],
    ids=in_id,
)
def test_one_nan_in_any_block_of_rows_is_found(at: int, odd: object) -> None:
    table: list[object] = [*rows(2_500), odd, *rows(2_500)]
    written = [dumps(row) for row in table]
    table.insert(at, {"id": 1, "price": math.nan})
    written.insert(at, b'{"id":1,"price":"NaN"}')

    assert dump_rows(table)[0] == b"[" + b",".join(written) + b"]"


def test_nulls_are_told_from_numbers_without_looking_at_each() -> None:
    plain: object = {"rows": rows(2_000, text="a null in a sentence"), "matrix": [[None, 1.5]] * 9}
    assert not may_hold_non_finite(plain, orjson.dumps(plain))
    assert may_hold_non_finite([math.nan], b"[null]")
    assert may_hold_non_finite(math.nan, b"null")
    assert not may_hold_non_finite(None, b"null")


@pytest.mark.parametrize("digits", [1, 308, 309, 512, 513, 1_024, 4_300, 4_301, 99_999])
def test_numbers_of_any_length_keep_every_digit(digits: int) -> None:
    text = "".join(random.Random(digits).choices("123456789", k=digits))

    assert number_of(text) % 10**9 == int(text[-9:])
    assert digits_of(number_of(text)) == text
    assert digits_of(-number_of(text)) == f"-{text}"
    assert number_of(f"-{text}") == -number_of(text)


@given(st.integers(0, 6_000), st.integers(-9, 9))
def test_numbers_near_a_power_of_ten_come_back(power: int, more: int) -> None:
    number = 10**power + more

    assert number_of(digits_of(number) or "") == number


def test_numbers_of_more_than_a_million_digits_are_refused_both_ways() -> None:
    assert digits_of(1 << 3_321_930) is None
    assert digits_of(-(1 << 3_321_930)) is None
    with pytest.raises(ValueError, match="1,000,000"):
        number_of("9" * (MOST_DIGITS + 2))
    with pytest.raises(ValueError, match="1,000,000"):
        loads(b"[" + b"9" * (MOST_DIGITS + 2) + b"]")


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Sly(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize("count", [1, 2_000])
def test_what_calls_itself_equal_to_anything_hides_no_nan(count: int) -> None:
    table: list[dict[str, object]] = [{"a": Sly("x"), "b": None} for _ in range(count)]
    table.append({"a": Sly("x"), "b": math.nan})

    assert dumps(table).endswith(b'{"a":"x","b":"NaN"}]')
    assert dumps([Sly("x"), math.nan]) == b'["x","NaN"]'
    with pytest.raises(UnencodableValueError, match="no type for Anything"):
        dumps([Anything(), None])


@given(st.timedeltas())
def test_a_duration_counts_to_the_microsecond(delta: dt.timedelta) -> None:
    text = duration(delta)
    sign, rest = (-1, text[2:]) if text.startswith("-P") else (1, text[1:])
    days, _, clock = rest.rpartition("D") if "D" in rest else ("0", "", rest)
    found = dt.timedelta(days=int(days))
    for unit, name in (("H", "hours"), ("M", "minutes"), ("S", "seconds")):
        amount, separator, after = clock.removeprefix("T").partition(unit)
        if separator:
            whole, _, fraction = amount.partition(".")
            found += dt.timedelta(**{name: int(whole)}, microseconds=int(fraction.ljust(6, "0")))
            clock = after

    assert sign * found == delta


def test_a_glimpse_sees_objects_as_they_are_read() -> None:
    assert encode([Node(1)]).value == [{"value": 1, "_hidden": None, "length": 3}]
    assert encode({"a": [{"b": {1}}]}).value == {"a": [{"b": [1]}]}
    assert encode(Inner(id=1)).value == {"id": 1}


def test_plain_objects_with_rich_leaves_are_not_decoded_for_a_glimpse() -> None:
    value = [{"at": NAIVE, "n": 1}]

    assert encode(value).value is value


def test_text_of_a_subclass_is_stored_as_plain_text() -> None:
    encoding = encode(Text.A)

    assert type(encoding.value) is str
    assert encoding.whole() == b"a"
