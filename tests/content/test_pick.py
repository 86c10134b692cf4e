from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import parse_selector, pick, slice_rows
from coatcheck.errors import InvalidQueryError, NothingSelectedError

ROWS: list[Any] = [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}, {"id": 3}]


def picked(value: object, text: str, *, is_shared: bool = False) -> Any:
    return pick(value, parse_selector(text), is_shared=is_shared)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/0/id", 1),
        ("/0/tags", ["a", "b"]),
        ("/2", {"id": 3}),
        ("$[*].id", [1, 2, 3]),
        ("$[0].id", 1),
        ("$[-1]", {"id": 3}),
        ("$", ROWS),
        ("$[0:1].id", [1]),
        ("$[0,1].id", [1, 2]),
        ("$[*].tags", [["a", "b"], []]),
        ("$..id", [1, 2, 3]),
        ("$[?@.id > 1].id", [2, 3]),
    ],
)
@pytest.mark.parametrize("is_shared", [True, False])
def test_one_place_gives_its_value_and_all_others_a_list(
    text: str, expected: object, is_shared: bool
) -> None:
    assert picked(ROWS, text, is_shared=is_shared) == expected


def test_of_a_value_that_others_read_nothing_is_handed_out_that_can_be_changed() -> None:
    value: list[Any] = [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": ["b"]}]

    for text in ("/0", "/0/tags", "$", "$[0]", "$[*]", "$[*].tags", "$..tags", "$..*"):
        for found in picked(value, text, is_shared=True):
            if isinstance(found, dict | list):
                found.clear()
        taken = picked(value, text, is_shared=True)
        taken.clear()

    assert value == [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": ["b"]}]


@pytest.mark.parametrize("text", ["$[0,0]", "$..*", "$[*]['tags','tags']", "$[0:2,0]"])
@pytest.mark.parametrize("is_shared", [True, False])
def test_two_values_that_were_selected_never_share_a_part(text: str, is_shared: bool) -> None:
    value: list[Any] = [{"id": 1, "tags": ["a", ["b"]]}, {"id": 2, "tags": ["c"]}]
    found = picked(value, text, is_shared=is_shared)
    before = [repr(each) for each in found]

    for number, each in enumerate(found):
        if type(each) in {dict, list}:
            each.clear()
            before[number] = repr(each)
        assert [repr(other) for other in found] == before


def test_a_value_of_one_s_own_is_handed_out_without_a_copy() -> None:
    value = [{"id": 1}]

    assert picked(value, "$[*]")[0] is value[0]
    assert picked(value, "/0") is value[0]


@pytest.mark.parametrize(
    "text", ["$[*].nope", "$.id", "$[9]", "$[?@.id > 9999]", "/9", "/x", "/0/n"]
)
def test_nothing_selected_is_an_error_that_names_keys_and_counts_but_no_value(text: str) -> None:
    value = [{"id": 5_551, "name": "secret"}]

    with pytest.raises(NothingSelectedError) as refused:
        picked(value, text)

    told = f"{refused.value} {refused.value.hint}"
    assert "5551" not in told
    assert "secret" not in told
    assert "'name'" in told or "array of 1" in told


def test_a_wrong_path_is_an_error_of_its_own() -> None:
    with pytest.raises(InvalidQueryError):
        picked(ROWS, "$[")


@given(st.lists(st.integers()), st.integers(0, 12), st.none() | st.integers(0, 12))
def test_rows_are_a_slice(rows: list[object], start: int, stop: int | None) -> None:
    for is_shared in (True, False):
        assert slice_rows(rows, start, stop, is_shared=is_shared) == rows[start:stop]


def test_rows_that_others_read_are_copied_and_what_is_no_list_has_none() -> None:
    value = [{"id": 1}]

    assert slice_rows(value, 0, 1, is_shared=True)[0] is not value[0]
    assert slice_rows(value, 0, 1, is_shared=False)[0] is value[0]
    assert slice_rows({"a": 1}, 0, 1, is_shared=False) == []
