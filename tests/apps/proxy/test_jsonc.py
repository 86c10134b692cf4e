"""JSON with comments: its values, and where each lies."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._jsonc import Node, edited, parse_jsonc
from coatcheck.errors import InvalidArgumentError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
BLANKS = st.sampled_from(["", " ", "\n", "// no { json\n", "/* , */", "\t/**/\r\n"])


def spread(value: Any, blank: str) -> str:
    """Return JSON with something between all its parts, and commas at the end."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return f"[{blank}{''.join(f'{spread(each, blank)}{blank},{blank}' for each in items)}]"
    if isinstance(value, dict):
        members = (
            f"{json.dumps(key)}{blank}:{blank}{spread(each, blank)}{blank},"
            for key, each in cast("dict[str, object]", value).items()
        )
        return f"{{{blank}{blank.join(members)}{blank}}}"
    return json.dumps(value)


@given(value=VALUES, blank=BLANKS)
def test_comments_and_trailing_commas_change_no_value(value: object, blank: str) -> None:
    assert parse_jsonc(blank + spread(value, blank) + blank).plain == value


@given(value=VALUES)
def test_each_part_stands_where_it_is_said_to_stand(value: object) -> None:
    text = spread(value, "\n")
    waiting: list[Node] = [parse_jsonc(text)]

    while waiting:
        node = waiting.pop()
        assert parse_jsonc(text[node.start : node.stop]).plain == node.plain
        waiting += node.members.values()
        waiting += node.content if isinstance(node.content, list) else []


@given(
    members=st.dictionaries(st.text(), VALUES, max_size=5),
    blank=BLANKS,
    trailing=st.booleans(),
    chosen=st.lists(st.sampled_from(["keep", "remove", "replace"]), min_size=5, max_size=5),
)
def test_whatever_members_go_or_change_the_rest_is_the_same_object(
    members: dict[str, object], blank: str, trailing: bool, chosen: list[str]
) -> None:
    text = spread(members, blank)
    if not trailing and members:
        text = (
            text[: text.rindex(",")] + text[text.rindex(",") + 1 :] if blank != "/* , */" else text
        )
    fates = dict(zip(members, chosen, strict=False))
    changes = {
        key: f"{json.dumps(key)}: 0" if fate == "replace" else ""
        for key, fate in fates.items()
        if fate != "keep"
    }

    new = edited(text, parse_jsonc(text), changes)

    assert parse_jsonc(new).plain == {
        key: value if fates[key] == "keep" else 0
        for key, value in members.items()
        if fates[key] != "remove"
    }


@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_json_without_trailing_commas_gets_none(gone: str) -> None:
    text = '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}'

    new = edited(text, parse_jsonc(text), {gone: ""})

    assert list(json.loads(new)) == [key for key in "abc" if key != gone]
    assert new.count("\n") == text.count("\n") - 1


def test_a_member_begins_at_its_key() -> None:
    text = '{ "a" : 1 }'

    node = parse_jsonc(text).members["a"]

    assert text[node.key_start : node.stop] == '"a" : 1'


def test_a_byte_order_mark_is_no_error() -> None:
    assert parse_jsonc("\ufeff{}").plain == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected a value"),
        ("{}\n x", "line 2, column 2: expected the end"),
        ("{'a': 1}", "expected a key in quotes"),
        ('{"a" 1}', 'expected ":"'),
        ('{"a": 1 "b": 2}', 'expected "," or "}"'),
        ("[1 2]", 'expected "," or "]"'),
        ("[1,,2]", "expected a value"),
        ('{"a": "x}', "expected a whole value"),
        ("{", "expected a key"),
        ("[", "expected a value"),
        ("[NaN]", "expected a value"),
        ("[t]", "expected a whole value"),
        ("/* {}", "expected a value"),
        ('{"a": 1, "a": 2}', "not 'a' again"),
        ("[" * 102, "nested more than 100 deep"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_jsonc(text)

    assert message in str(caught.value)


def test_a_hundred_deep_is_read() -> None:
    assert parse_jsonc("[" * 101 + "]" * 101).plain != []
