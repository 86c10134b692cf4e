"""JSON Pointer: what it names, and how far it came where it names nothing."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._json_pointer import resolve_pointer
from coatcheck.errors import InvalidArgumentError, NothingSelectedError

# The document of RFC 6901, section 5.
RFC_DOCUMENT: dict[str, Any] = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def nothing_at(value: object, text: str) -> NothingSelectedError:
    with pytest.raises(NothingSelectedError) as caught:
        resolve_pointer(value, text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", RFC_DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_the_rfc_hold(text: str, value: object) -> None:
    assert resolve_pointer(RFC_DOCUMENT, text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("/c%25d", 2), ("/e%5Ef", 3), ("/i%5Cj", 5), ("/k%22l", 6), ("/%20", 7), ("/a%7E1b", 1)],
)
def test_the_form_for_uri_fragments_is_understood(text: str, value: object) -> None:
    assert resolve_pointer(RFC_DOCUMENT, text) == value


def test_a_key_that_looks_encoded_is_found_as_it_stands() -> None:
    assert resolve_pointer({"a%20b": 1, "a b": 2}, "/a%20b") == 1


def test_an_escape_is_undone_once() -> None:
    assert resolve_pointer({"~1": "tilde", "/": "slash"}, "/~01") == "tilde"


@pytest.mark.parametrize("text", ["/%FF", "/%7E2", "/%zz", "/a%20b"])
def test_a_text_that_decodes_to_nothing_better_is_named_as_it_stands(text: str) -> None:
    assert repr(text) in str(nothing_at({"id": 1}, text))


@pytest.mark.parametrize("text", ["foo", "#/foo", "/a~2", "/~", "/foo/~x"])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no JSON Pointer") as caught:
        resolve_pointer(RFC_DOCUMENT, text)

    assert caught.value.hint


def test_a_missing_key_is_answered_with_the_keys_that_are_there() -> None:
    error = nothing_at({"rows": [{"id": 1, "name": "x"}]}, "/rows/0/price")

    assert error.reason == "'/rows/0' is an object without 'price'"
    assert error.hint == "Its keys: 'id', 'name'."


def test_keys_in_a_hint_are_few_and_short() -> None:
    wide = {f"{'k' * 300}{number}": number for number in range(5_000)}
    narrow = {f"k{number}": number for number in range(5_000)}

    assert len(nothing_at(wide, "/x").hint) < 700
    assert nothing_at(narrow, "/x").hint.endswith("'k9' and 4,990 more.")


def test_an_empty_object_and_an_empty_array_are_called_so() -> None:
    assert nothing_at({}, "/x").hint == "It is empty."
    assert nothing_at([], "/0").hint == "It is empty."


@pytest.mark.parametrize("token", ["3", "9" * 17, "9" * 900])
def test_an_index_past_the_end_is_answered_with_those_there_are(token: str) -> None:
    error = nothing_at([1, 2, 3], f"/{token}")

    assert "the whole is an array of 3, and has no item" in error.reason
    assert error.hint == "Its items are 0 to 2."


@pytest.mark.parametrize("token", ["-", "-1", "01", "1.0", "", "+1", "1e0", "٣", "id"])
def test_an_array_takes_plain_digits_alone(token: str) -> None:
    error = nothing_at([1, 2, 3], f"/{token}")

    assert "is no index" in error.reason
    assert ("$[-1]" in error.hint) == token.startswith("-")


@pytest.mark.parametrize(
    ("leaf", "kind"),
    [(None, "null"), (True, "a boolean"), ("secret", "a text"), (7, "a number"), (7.5, "a number")],
)
def test_a_path_that_goes_on_past_a_leaf_names_its_kind_and_not_its_value(
    leaf: object, kind: str
) -> None:
    error = nothing_at({"a": leaf}, "/a/b/c")

    assert error.reason == f"'/a' is {kind}, which has no parts"
    assert error.hint == "'/a' is the end of this path."


def test_a_leaf_that_is_the_whole_has_no_parts() -> None:
    assert nothing_at(5, "/a").hint == "The whole is the end of this path."


def test_a_lone_surrogate_is_a_name_like_any_other() -> None:
    assert resolve_pointer({"\ud800": [1]}, "/\ud800/0") == 1
    assert "\\ud800" in str(nothing_at({}, "/\ud800"))


def test_depth_is_no_matter() -> None:
    value: object = "leaf"
    for _ in range(5_000):
        value = [value]

    assert resolve_pointer(value, "/0" * 5_000) == "leaf"


@given(JSON)
def test_each_part_is_found_by_the_pointer_to_it(value: Any) -> None:
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        text, part = waiting.pop()

        assert resolve_pointer(value, text) is part

        children: list[tuple[object, Any]] = []
        if isinstance(part, dict):
            children = list(cast("dict[str, Any]", part).items())
        elif isinstance(part, list):
            children = list(enumerate(cast("list[object]", part)))
        for name, child in children:
            token = str(name).replace("~", "~0").replace("/", "~1")
            waiting.append((f"{text}/{token}", child))


@given(JSON, st.text(st.sampled_from("/~01%2aé-"), max_size=12))
def test_any_text_ends_in_a_part_or_in_a_clear_error(value: object, text: str) -> None:
    refused, found = "", None
    try:
        found = resolve_pointer(value, text)
    except (InvalidArgumentError, NothingSelectedError) as error:
        refused = error.hint

    assert refused or any(found is part for part in parts(value))


def parts(value: object) -> list[object]:
    """Return a value and all that is within it."""
    known, waiting = list[object](), [value]
    while waiting:
        part = waiting.pop()
        known.append(part)
        if isinstance(part, dict):
            waiting.extend(cast("dict[str, object]", part).values())
        elif isinstance(part, list):
            waiting.extend(cast("list[object]", part))
    return known
