"""Selectors: what each form asks for, and that nothing else is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Selector, parse_selector
from coatcheck.errors import InvalidArgumentError
from coatcheck.records import LONGEST_SELECTOR, is_pointer

POINTER = "art:00000000-0000-4000-8000-000000000005"


def refused(text: str) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_selector(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "form", "start", "stop"),
    [
        ("/", "json-pointer", 0, None),
        ("/0/id", "json-pointer", 0, None),
        ("$", "jsonpath", 0, None),
        ("$[*].id", "jsonpath", 0, None),
        ("line=10,20", "lines", 10, 20),
        ("line=10,", "lines", 10, None),
        ("line=,20", "lines", 0, 20),
        ("line=0,1", "lines", 0, 1),
        ("char=100,200", "chars", 100, 200),
        ("char=007,008", "chars", 7, 8),
        ("L1", "lines", 0, 1),
        ("L10-L20", "lines", 9, 20),
        ("L10-L10", "lines", 9, 10),
        ("row=1", "rows", 0, 1),
        ("row=5-7", "rows", 4, 7),
    ],
)
def test_each_form_says_what_it_asks_for(
    text: str, form: str, start: int, stop: int | None
) -> None:
    selector = parse_selector(text)

    assert (selector.text, selector.form) == (text, form)
    assert (selector.start, selector.stop) == (start, stop)
    assert is_pointer(f"{POINTER}#{text}")


@pytest.mark.parametrize(
    "text",
    ["", "id", "#/0", "L", "L1-2", "l1", "row=", "row=1-", "row=-1", "line", "char=a,b", "row=1,2"],
)
def test_other_text_is_no_selector_and_the_hint_names_the_forms(text: str) -> None:
    error = refused(text)

    assert "is no selector" in str(error)
    assert all(form in error.hint for form in ("/0/id", "$[*].id", "line=", "char=", "L10", "row="))


@pytest.mark.parametrize("text", ["line=5", "char=5", "line=,", "line="])
def test_a_window_without_start_and_stop_is_refused(text: str) -> None:
    assert "has a start, a stop, or both" in str(refused(text))


@pytest.mark.parametrize("text", ["line=20,10", "char=5,5", "line=,0", "char=0,0"])
def test_a_window_that_does_not_stop_behind_its_start_is_refused(text: str) -> None:
    assert "stops behind its start" in str(refused(text))


@pytest.mark.parametrize("text", ["L20-L10", "row=7-5", "row=1-0"])
def test_a_range_that_runs_backwards_is_refused(text: str) -> None:
    assert "runs forward" in str(refused(text))


@pytest.mark.parametrize("text", ["L0", "L0-L5", "row=0", "row=000-2"])
def test_zero_is_refused_where_counting_starts_at_one(text: str) -> None:
    assert "counted from 1" in str(refused(text))


def test_digits_of_other_scripts_are_refused() -> None:
    assert "is no selector" in str(refused("row=٣"))


def test_a_number_of_any_length_is_past_the_end_of_everything() -> None:
    selector = parse_selector("line=1," + "9" * 900)

    assert selector == Selector(
        text="line=1," + "9" * 900, form="lines", start=1, stop=1_000_000_000_000_000_000
    )


def test_long_numbers_are_compared_exactly() -> None:
    lower, higher = "1" + "0" * 400, "1" + "0" * 399 + "1"

    assert parse_selector(f"row={lower}-{higher}").form == "rows"
    assert "runs forward" in str(refused(f"row={higher}-{lower}"))


def test_the_longest_selector_is_read_and_one_character_more_is_not() -> None:
    assert parse_selector("/" * LONGEST_SELECTOR).form == "json-pointer"
    assert "at most 1,000 characters" in str(refused("/" * (LONGEST_SELECTOR + 1)))


@given(st.integers(0, 10**20), st.integers(0, 10**20))
def test_windows_ask_for_the_characters_that_a_slice_would(start: int, stop: int) -> None:
    text = "0123456789" * 2
    if stop <= start:
        refused(f"char={start},{stop}")
        return

    selector = parse_selector(f"char={start},{stop}")

    assert text[selector.start : selector.stop] == text[start:stop]


@given(st.text(max_size=30))
def test_text_is_a_selector_only_where_it_makes_a_pointer(text: str) -> None:
    try:
        parse_selector(text)
    except InvalidArgumentError:
        return

    assert is_pointer(f"{POINTER}#{text}")
