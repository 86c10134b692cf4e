"""JSON arrays read block by block: what passes is JSON, and each row is where it is said to be."""

import json
from collections.abc import Mapping
from typing import cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content import loads
from coatcheck.content._index import BLOCK_ROWS, Rows
from coatcheck.content._json_blocks import CheckedJsonRows, json_blocks
from coatcheck.content._rows import JsonRows, RowScanner

LOOKALIKE = '},{"id":'
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-9, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9)
    | st.sampled_from([LOOKALIKE, '"', "\\", "}", "]", "é漢"])
)
OBJECTS = st.fixed_dictionaries(
    {"id": LEAVES},
    optional={
        "inside": st.lists(st.fixed_dictionaries({"id": LEAVES}), max_size=4),
        LOOKALIKE: LEAVES,
    },
)
INDENTS = st.sampled_from([None, 1])
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")])


def joined(payload: bytes) -> list[object]:
    found: list[object] = []
    for block in json_blocks(payload):
        found += block
    return found


def scan(scanner: RowScanner, payload: bytes, part: int = 65_536) -> Rows | None:
    for start in range(0, len(payload), part):
        scanner.feed(payload[start : start + part])
    return scanner.rows()


def checked(payload: bytes, part: int = 65_536) -> int | None:
    found = scan(CheckedJsonRows(), payload, part)
    return None if found is None else found.count


@given(st.lists(OBJECTS, min_size=1, max_size=4), st.integers(1, 2_000), INDENTS, SEPARATORS)
@settings(max_examples=40)
def test_blocks_joined_are_the_array(
    rows: list[Mapping[str, object]], times: int, indent: int | None, separators: tuple[str, str]
) -> None:
    payload = json.dumps(rows * times, indent=indent, separators=separators).encode()

    assert joined(payload) == orjson.loads(payload)


@given(
    st.lists(OBJECTS | LEAVES, min_size=1, max_size=4),
    st.integers(1, 2_000),
    INDENTS,
    st.sampled_from([1_000, 65_536, 10**6]),
)
@settings(max_examples=40)
def test_rows_are_found_where_they_are(
    rows: list[object], times: int, indent: int | None, part: int
) -> None:
    payload = json.dumps(rows * times, indent=indent, ensure_ascii=False).encode()

    assert scan(CheckedJsonRows(), payload, part) == scan(JsonRows(), payload)


@given(
    st.lists(OBJECTS, min_size=1, max_size=4),
    st.integers(1, 1_000),
    st.floats(0, 1),
    st.sampled_from(list(b'",:{}[]\\0ae \n\xff')),
)
@settings(max_examples=100)
def test_what_is_no_json_has_neither_blocks_nor_rows(
    rows: list[Mapping[str, object]], times: int, where: float, byte: int
) -> None:
    payload = bytearray(json.dumps(rows * times, ensure_ascii=False).encode())
    payload[int(where * (len(payload) - 1))] = byte
    try:
        value = loads(bytes(payload))
    except ValueError:
        value = None

    count = checked(bytes(payload))

    if isinstance(value, list):
        assert count == len(cast("list[object]", value))
    else:
        assert count is None
        with pytest.raises(ValueError, match=r"."):
            joined(bytes(payload))


@pytest.mark.parametrize("part", [1, 2, 65_536])
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("[]", 0),
        (" [ ] \n", 0),
        ("[{}]", 1),
        ('[{"a":1}]', 1),
        (' [ {"a" : 1} , 2 ] ', 2),
        ('["\\ud800", 1e999, 123456789012345678901234567890]', 3),
        ('[{"a":"\\ud800"},{"a":1}]', 2),
        ("", None),
        (" ", None),
        ("[", None),
        ("[1", None),
        ("[1,", None),
        ("[1,]", None),
        ("[1],2", None),
        ("[1]]", None),
        ("[1][2]", None),
        ('[{"a":1}]]', None),
        ('[{"a":1}],[{"a":2}]', None),
        ('[{"a":1},]', None),
        ('[{"a":1}', None),
        ('[{"a', None),
        ('{"a":[1]}', None),
        ("[1 2]", None),
        ("[yes]", None),
        ("\ufeff[1]", None),
    ],
)
def test_only_a_whole_array_of_json_has_rows(text: str, count: int | None, part: int) -> None:
    assert checked(text.encode(), part) == count


def test_an_element_longer_than_a_block_is_tried_longer() -> None:
    rows = [{"id": 1, "inside": [{"id": at} for at in range(20_000)]} for _ in range(3)]
    payload = orjson.dumps(rows)

    assert len(payload) > 3 * 200_000
    assert joined(payload) == rows
    assert checked(payload) == 3


def test_what_would_take_too_long_a_block_has_rows_but_no_blocks() -> None:
    inside = [{"id": "x" * 200_000} for _ in range(30)]
    rows = [{"id": 1, "inside": inside}, {"id": 2}]
    payload = orjson.dumps(rows)

    with pytest.raises(ValueError, match=r"."):
        joined(payload)
    assert checked(payload) == 2


def test_an_array_of_anything_else_has_no_blocks() -> None:
    for payload in (b"[1,2]", b"[{}]", b'{"a":[1]}', b"", b"[[{}]]"):
        with pytest.raises(ValueError, match="no array of objects"):
            joined(payload)


def test_a_first_key_that_has_no_end_is_not_waited_for_beyond_its_bound() -> None:
    payload = b'[{"' + b"k" * 200_000 + b'":1},{"a":2}]'

    assert checked(payload, 1_000) == 2


def test_a_block_may_hold_several_starts() -> None:
    payload = b"[" + b",".join(b'{"a":%d}' % at for at in range(3 * BLOCK_ROWS + 1)) + b"]"

    found = scan(CheckedJsonRows(), payload)

    assert found is not None
    assert found.count == 3 * BLOCK_ROWS + 1
    assert [payload[at:].partition(b"}")[0] for at in found.starts] == [
        b'{"a":%d' % at for at in range(0, 3 * BLOCK_ROWS + 1, BLOCK_ROWS)
    ]
