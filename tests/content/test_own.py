from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import own

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def containers(value: Any) -> list[int]:
    found: list[int] = []
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if type(part) in {list, dict}:
            found.append(id(part))
            waiting += part.values() if type(part) is dict else part
    return found


@given(JSON)
def test_a_copy_is_equal_and_shares_no_list_or_object(value: object) -> None:
    copy = own(value)

    assert copy == value
    assert repr(copy) == repr(value)
    assert not set(containers(copy)) & set(containers(value))


def test_what_is_reached_twice_is_copied_twice() -> None:
    row = {"id": 1}

    copy: Any = own([row, row])

    assert copy == [row, row]
    assert copy[0] is not copy[1]


def test_a_value_deeper_than_the_stack_is_copied() -> None:
    value: Any = ["inside"]
    for _ in range(1_000):
        value = [value]

    copy: Any = own(value)

    depth = 0
    while copy[0] != "inside":
        assert copy is not value
        copy, value, depth = copy[0], value[0], depth + 1
    assert depth == 1_000


def test_cells_that_nobody_can_change_are_handed_on() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)

    assert own([{"at": moment, "raw": b"x"}]) == [{"at": moment, "raw": b"x"}]
