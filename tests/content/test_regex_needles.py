"""Texts without which a pattern cannot match, and when they are looked for."""

import pytest

from coatcheck.content._regex_needles import Places, needles_of
from coatcheck.content._regex_syntax import parse_regex


def needles(pattern: str, *, ignore_case: bool = False) -> list[list[str]]:
    node = parse_regex(pattern, ignore_case=ignore_case)
    return [[needle.text for needle in each] for each in needles_of(node)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("timeout", [["timeout"]]),
        ("a.bcd", [["bcd"], ["a"]]),
        (r"user=(\d+) .*dur=99\d", [["dur=99"], ["user="], [" "]]),
        ("ab|cde", [["ab", "cde"]]),
        ("x(ab|cd|ab)y", [["ab", "cd"], ["x"], ["y"]]),
        ("(ab|.)z", [["z"]]),
        ("(a.bc|d)?z", [["z"]]),
        ("(a.bc|d)+z", [["bc", "d"], ["z"]]),
        ("(abc)+d", [["abc"], ["d"]]),
        ("a(b(cd))e", [["abcde"]]),
        ("0{3}1+2*3", [["0001"], ["3"]]),
        (r"foo\b-\bbar$", [["foo-bar"]]),
        ("^ab^cd", [["ab"], ["cd"]]),
        (r"\d+|a", []),
        ("[ab]c", [["c"]]),
        ("a|b|c|d|e|f|g", []),
    ],
)
def test_each_match_holds_one_of_each(pattern: str, expected: list[list[str]]) -> None:
    assert needles(pattern) == expected


def test_case_is_ignored_where_the_pattern_does() -> None:
    node = parse_regex("ab(?i)1.2b", ignore_case=False)

    assert {needle.text: needle.ignores_case for each in needles_of(node) for needle in each} == {
        "ab1": False,
        "2b": True,
    }


def test_the_rarest_text_is_looked_for() -> None:
    places = Places(parse_regex("id=.*ms", ignore_case=True), is_ascii=True)

    assert places.find(memoryview(b"id= " * 4_000 + b"ID=1 MS")) == [16_005]
    assert places.find(memoryview(b"ms " + b"-" * 4_000 + b"Ms")) == [0, 4_003]


def test_a_text_that_is_everywhere_is_left_alone_longer_and_longer() -> None:
    places = Places(parse_regex("id.", ignore_case=True), is_ascii=True)
    dense, none = memoryview(b"id " * 4_000), memoryview(b"-" * 4_000)

    asked = [places.find(text) is None for text in [dense, none, none, dense, none, none, none]]

    assert asked == [True, True, False, True, True, False, False]
    asked = [places.find(dense) is None for _ in range(9)]
    assert all(asked)


def test_a_text_that_is_slow_to_find_is_left_alone_too() -> None:
    looks = iter([0.0, 0.001, 1.0, 2.0, 3.0, 3.001])
    node = parse_regex("id.", ignore_case=True)
    places = Places(node, is_ascii=True, clock=lambda: next(looks))
    text = memoryview(b"-- id")

    assert [places.find(text) for _ in range(4)] == [[3], [3], None, [3]]


def test_of_a_long_text_the_head_is_looked_for() -> None:
    places = Places(parse_regex("(?-i)" + "ab" * 90, ignore_case=True), is_ascii=False)

    assert places.find(memoryview(b"." + b"ab" * 16 + b"!")) == [1]


def test_without_a_text_that_is_needed_all_is_searched() -> None:
    places = Places(parse_regex(r"\d+", ignore_case=True), is_ascii=False)

    assert [places.find(memoryview(b"x")) for _ in range(40)] == [None] * 40
