"""Where the lists of a JSON value lie."""

from coatcheck.content.sql import list_paths


def test_the_longest_lists_come_first_and_five_are_told() -> None:
    value = {f"k{number}": [0] * number for number in range(8)}

    assert list_paths(value) == [(f"/k{number}", number) for number in (7, 6, 5, 4, 3)]


def test_lists_within_objects_are_told_and_lists_within_lists_are_not() -> None:
    assert list_paths({"a": {"b": [[1], [2]]}, "c": 1}) == [("/a/b", 2)]


def test_paths_are_json_pointers() -> None:
    assert list_paths({"a/b": {"c~d": [1]}}) == [("/a~1b/c~0d", 1)]


def test_what_is_deep_or_long_or_cannot_be_printed_is_left_out() -> None:
    deep: object = [1]
    for _ in range(7):
        deep = {"k": deep}

    assert list_paths({"x": deep, "y" * 200: [1], "a\nb": [1]}) == []


def test_a_great_many_keys_are_not_all_looked_at() -> None:
    value = {f"k{number}": {"l": [1]} for number in range(5_000)}

    assert len(list_paths(value)) <= 5


def test_of_no_object_there_is_none() -> None:
    assert list_paths(5) == []
