"""Budgets: what is counted, when the clock is looked at, and walks that keep to both."""

import operator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Budget
from coatcheck.content._budget import check_result, same, spend_size
from coatcheck.errors import DeadlineError, InvalidQueryError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner),
    max_leaves=10,
)


def ticking(seconds: float = 10) -> Budget:
    """Return a budget whose time is over after so many looks at the clock."""
    return Budget(seconds, clock=count().__next__)


def doubled(times: int, leaf: object = 1) -> object:
    """Return a value that takes little memory, and 2 to the power of `times` written out."""
    value = leaf
    for _ in range(times):
        value = [value, value]
    return value


def test_nodes_may_be_spent_to_the_last() -> None:
    budget = Budget(nodes=10)

    budget.spend(10)

    with pytest.raises(InvalidQueryError, match="more than 10 values"):
        budget.spend(1)


def test_time_is_over_at_its_end_and_not_before() -> None:
    now = 0.0
    budget = Budget(5, clock=lambda: now)

    now = 4.9
    budget.check()
    assert budget.seconds_left() == pytest.approx(0.1)

    now = 5.0
    with pytest.raises(DeadlineError, match="The JSONPath query was stopped after 5 s") as caught:
        budget.check()
    assert "name the path" in caught.value.hint
    with pytest.raises(DeadlineError):
        budget.seconds_left()


def test_work_looks_at_the_clock_every_few_thousand_steps() -> None:
    looks = count()
    budget = Budget(10**9, clock=lambda: float(next(looks)))

    for _ in range(100_000):
        budget.work(1)

    assert 20 <= next(looks) <= 30


def test_spending_is_work_too() -> None:
    budget = ticking()

    for _ in range(9):
        budget.spend(5_000)

    with pytest.raises(DeadlineError):
        budget.spend(5_000)


def test_errors_name_the_language_that_ran() -> None:
    budget = Budget(nodes=0)
    budget.language = "jmespath"

    with pytest.raises(InvalidQueryError, match="Read as JMESPath") as caught:
        budget.spend(1)

    assert caught.value.hint


def test_a_result_of_parts_that_repeat_is_refused_by_its_size_written_out() -> None:
    with pytest.raises(InvalidQueryError, match="more than 100,000 values"):
        check_result(doubled(60), [], Budget(nodes=100_000))


def test_a_text_that_repeats_counts_by_its_length() -> None:
    result = ["x" * 32_000] * 100

    check_result(result, [], Budget(nodes=110_000))
    with pytest.raises(InvalidQueryError):
        check_result(result, [], Budget(nodes=100_000))


def test_a_result_may_be_twice_as_large_as_what_was_queried() -> None:
    source: list[object] = [[number] for number in range(10_000)]

    check_result([*source, *source], source, Budget(nodes=100))
    with pytest.raises(InvalidQueryError):
        check_result([*source, *source, 1, 2], source, Budget(nodes=100))


def test_results_of_several_runs_count_together() -> None:
    budget, result = Budget(nodes=20_000), [0] * 9_000

    check_result(result, [], budget)
    check_result(result, [], budget)

    with pytest.raises(InvalidQueryError):
        check_result(result, [], budget)


def test_the_size_of_a_value_is_spent_whole() -> None:
    budget = Budget(nodes=100)

    spend_size({"a": [1, 2, "x" * 64]}, budget)

    assert budget.nodes_left == 100 - 7


def test_a_walk_of_any_size_ends_in_time() -> None:
    with pytest.raises(DeadlineError):
        spend_size(doubled(60), Budget(50, 10**18, clock=count().__next__))


@given(JSON, JSON)
def test_same_agrees_with_python(left: Any, right: Any) -> None:
    assert same(left, right, Budget(), operator.eq) == (left == right)
    assert same(left, left, Budget(), operator.eq)


def test_values_of_any_depth_are_compared() -> None:
    left: object = 1
    right: object = 1
    for _ in range(5_000):
        left, right = [left], [right]

    assert same(left, right, Budget(), operator.eq)
    assert not same(left, [right], Budget(), operator.eq)


@pytest.mark.parametrize("name", ["lists", "objects", "texts"])
def test_a_comparison_ends_in_time(name: str) -> None:
    sides: list[object] = []
    for _ in range(2):
        value: object = "x" * 1_000_000 if name == "texts" else 1
        for _ in range(60):
            value = {"a": value, "b": value} if name == "objects" else [value, value]
        sides.append(value)

    with pytest.raises(DeadlineError):
        same(sides[0], sides[1], ticking(50), operator.eq)
