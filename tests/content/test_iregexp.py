"""I-Regexp: what is one, what it becomes, and that none brings an engine down."""

import re
from warnings import catch_warnings, simplefilter

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._iregexp import LONGEST_PATTERN, as_regex


def matches(pattern: str, text: str) -> bool:
    written = as_regex(pattern)
    assert written is not None
    return regex.fullmatch(written, text) is not None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("", ""),
        ("a.c", "abc"),
        ("a.c", "a😀c"),
        ("a.c", "a\u2028c"),
        ("a|b|", ""),
        ("(ab)+", "abab"),
        ("a{2,3}", "aaa"),
        ("a{2,}", "aaaaa"),
        ("a{0}", ""),
        ("[a-c-]+", "a-c"),
        ("[-a]", "-"),
        ("[^a-c]", "d"),
        ("[&&||~~]", "&"),
        ("[\\[]", "["),
        ("[\\]]", "]"),
        ("[\\n]", "\n"),
        ("\\p{Lu}\\P{Lu}", "Éa"),
        ("[\\p{N}x]+", "1x2"),
        ("\\^[$]\\.\\(\\)", "^$.()"),
        ("a#b c", "a#b c"),
        ("^ab$", "ab"),
        ("é😀", "é😀"),
    ],
)
def test_a_pattern_matches(pattern: str, text: str) -> None:
    assert matches(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a.c", "a\nc"),
        ("a.c", "a\rc"),
        ("a[.]c", "abc"),
        ("[^a]", "a"),
        ("a{2}", "aaa"),
        ("A", "a"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, text: str) -> None:
    assert not matches(pattern, text)


def test_start_and_end_are_those_of_the_text() -> None:
    written = as_regex("^b|b$")
    assert written is not None

    assert regex.search(written, "a\nb\n") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "\\d",
        "\\w",
        "\\b",
        "\\1",
        "(?i)a",
        "(?=a)",
        "(?:a)",
        "a??",
        "a*+",
        "*a",
        "a|*",
        "(*)",
        "(a",
        "a)",
        "[]",
        "[^]",
        "[a",
        "[[:alpha:]]",
        "[z-a]",
        "[b-\\n]",
        "a{3,2}",
        "a{,2}",
        "{2}",
        "a{",
        "}",
        "]",
        "\\p{Latin}",
        "\\p{Cs}",
        "\ud800",
        "[\ud800]",
    ],
)
def test_what_is_no_pattern_gives_none(pattern: str) -> None:
    assert as_regex(pattern) is None


def test_the_longest_pattern_is_taken_and_one_character_more_is_not() -> None:
    assert as_regex("a" * LONGEST_PATTERN) == "a" * LONGEST_PATTERN
    assert as_regex("a" * (LONGEST_PATTERN + 1)) is None


@pytest.mark.parametrize("pattern", ["a{10000}", "(a{100}){99}", "((a|b){10}c){300}"])
def test_a_pattern_may_repeat_ten_thousand_characters(pattern: str) -> None:
    assert as_regex(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    ["a{10001}", "(a{100}){101}", "((a{1000}){1000}){1000}", "a{999999999999}", "a{6000}b{6000}"],
)
def test_a_pattern_that_would_fill_the_memory_gives_none(pattern: str) -> None:
    assert as_regex(pattern) is None


def test_depth_is_bounded() -> None:
    assert as_regex("(" * 49 + ")" * 49) is not None
    assert as_regex("(" * 50 + ")" * 50) is None


@given(
    st.text(st.sampled_from("ab.[](){}*+?|^-\\,12pLu&$~n"), max_size=9),
    st.text(st.sampled_from("ab1&-]\n"), max_size=4),
)
def test_patterns_mean_what_they_mean_to_python(pattern: str, text: str) -> None:
    written = as_regex(pattern)
    if written is None or "\\p" in pattern.lower():
        return

    with catch_warnings():
        simplefilter("ignore", FutureWarning)  # of what Python may read as sets one day
        expected = re.fullmatch(pattern.replace("$", "\\Z"), text)

    assert (regex.fullmatch(written, text) is None) == (expected is None)
