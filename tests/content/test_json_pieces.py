"""JSON written piece by piece: the same as in one piece."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import PieceWriter, TooLargeError, dumps, loads
from coatcheck.content._json_pieces import text_pieces
from coatcheck.errors import UnencodableValueError

HEAVY = "x" * 300_000
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just(HEAVY)
    | st.just([HEAVY, 1, "\ud800" * 200_000]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def nothing() -> None:
    """Let all pass."""


@given(PLAIN)
def test_pieces_are_what_one_call_writes(value: object) -> None:
    written = PieceWriter(1 << 30, nothing).written(value)

    assert written.payload == dumps(value)
    assert written.value == loads(written.payload)


@given(PLAIN)
def test_pieces_of_text_are_what_one_call_writes(value: object) -> None:
    assert "".join(text_pieces(value, nothing)) == json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("value", [[1] * 200_000, {"a": HEAVY, "b": 2}, HEAVY, {HEAVY: HEAVY}, 1])
def test_a_bound_is_the_most_that_is_written(value: object) -> None:
    size = len(dumps(value))

    assert len(PieceWriter(size, nothing).written(value).payload) == size
    with pytest.raises(TooLargeError):
        PieceWriter(size - 1, nothing).written(value)


def test_a_copy_shares_no_list_and_no_object() -> None:
    part: list[object] = []
    value = [[part, HEAVY], {"part": part, "heavy": HEAVY}]

    copy = PieceWriter(1 << 30, nothing).written(value).value
    part.append("changed")

    assert copy == [[[], HEAVY], {"part": [], "heavy": HEAVY}]


@pytest.mark.parametrize("heart", [1, HEAVY, [HEAVY, HEAVY]])
def test_what_is_nested_too_deep_for_one_call_is_so_for_pieces(heart: object) -> None:
    value = heart
    for _ in range(254):
        value = [value, 0]

    if isinstance(heart, list):
        with pytest.raises(UnencodableValueError):
            PieceWriter(1 << 30, nothing).written(value)
    else:
        assert PieceWriter(1 << 30, nothing).written(value).payload == dumps(value)
    with pytest.raises(UnencodableValueError):
        PieceWriter(1 << 30, nothing).written([value])


def test_a_check_may_stop_it_between_two_pieces() -> None:
    checks = iter([None, None])

    def check() -> None:
        if next(checks, 1) is not None:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        PieceWriter(1 << 30, check).written([HEAVY] * 10)
