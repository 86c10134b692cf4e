"""Sets of characters: what is in them, and how they are written."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._regex_sets import (
    ANY,
    CATEGORIES,
    DIGIT,
    SPACE,
    WORD,
    CharSet,
    charset,
    complement,
    merged,
    one,
    write_hex,
    write_python,
)


def both(some: CharSet, others: CharSet) -> CharSet:
    return CharSet((*some.parts, *others.parts))


RANGES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)).map(lambda r: (r[0], sum(r))))
SETS = st.recursive(
    st.builds(charset, RANGES, st.lists(st.sampled_from(sorted(CATEGORIES)), max_size=2)),
    lambda inner: inner.map(CharSet.negated) | st.builds(both, inner, inner),
    max_leaves=3,
)


def test_those_of_python_are_in_the_classes() -> None:
    for code in range(0x3100):
        char = chr(code)
        if char == "\n":
            assert not any(char in chars for chars in (ANY, DIGIT, SPACE, WORD))
            continue
        assert char in ANY
        assert (char in DIGIT) is char.isdecimal()
        assert (char in SPACE) is (char.isspace() and not 0x1C <= code <= 0x1F)
        if char.isalnum() or char == "_":
            assert char in WORD


@given(SETS, st.characters(exclude_characters="\n"))
def test_a_negated_set_holds_all_else_but_newlines(chars: CharSet, char: str) -> None:
    negated = chars.negated()

    assert (char in negated) is (char not in chars)
    assert "\n" not in chars
    assert "\n" not in negated


@given(RANGES)
def test_ranges_and_their_complement_hold_each_code_point_once(
    ranges: list[tuple[int, int]],
) -> None:
    own, others = merged(ranges), complement(merged(ranges))

    codes = sorted((*own, *others))
    assert [first for first, _ in codes] == [0, *(last + 1 for _, last in codes[:-1])]
    assert codes[-1][1] == sys.maxunicode
    assert all(
        any(a <= code <= b for a, b in own) for first, last in ranges for code in (first, last)
    )


def test_characters_of_one_set_of_cases_fold_to_the_same_text() -> None:
    for code in range(0x1F000):
        char = chr(code)
        if char == char.casefold() and char == char.upper():
            continue
        cases = {chr(each) for part in one(char).folded().parts for a, b in part.ranges
                 for each in range(a, b + 1)}  # fmt: skip
        assert char in cases
        assert {each.casefold() for each in cases} == {char.casefold()}


@pytest.mark.parametrize(
    ("chars", "ascii_only", "as_written"),
    [
        (one("a"), True, "a"),
        (one("é"), True, r"[^\x{0}-\x{7f}]"),
        (charset([(0x41, 0xFF)]), True, r"[A-\x{7f}]"),
        (charset([(0x41, 0xFF)]), False, r"[A-\x{ff}]"),
        (charset([(0x41, 0xFF)]).negated(), True, r"[^A-\x{7f}\x{a}]"),
    ],
)
def test_a_set_is_written_as_far_as_code_points_go(
    chars: CharSet, *, ascii_only: bool, as_written: str
) -> None:
    assert chars.write(write_hex, 0x7F if ascii_only else sys.maxunicode) == as_written


def test_each_engine_is_given_code_points_in_its_own_way() -> None:
    codes = [ord(char) for char in "a.é😀\ud800"]

    assert "".join(map(write_hex, codes)) == r"a\x{2e}\x{e9}\x{1f600}\x{d800}"
    assert "".join(map(write_python, codes)) == r"a\u002e\u00e9\U0001f600\ud800"
