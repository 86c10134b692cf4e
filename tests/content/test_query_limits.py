"""Hostile queries: each ends soon, in little memory, with the right error."""

import inspect
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from coatcheck.content import Budget, compile_jmespath, compile_jsonpath
from coatcheck.errors import DeadlineError, InvalidQueryError

ROWS: list[Any] = [{"id": number, "name": f"name {number}"} for number in range(2_000)]


def find(expression: str, value: object, nodes: int = 100_000) -> list[object]:
    return compile_jsonpath(expression).find(value, Budget(60, nodes))


def search(expression: str, value: object, nodes: int = 100_000) -> object:
    return compile_jmespath(expression).search(value, Budget(60, nodes))


def fifty_looks() -> Budget:
    """Return a budget whose time is over at the fiftieth look at the clock."""
    return Budget(50, 10**9, count().__next__)


def nested(depth: int, leaf: object = 0, name: str | None = None) -> object:
    value = leaf
    for _ in range(depth):
        value = [value] if name is None else {name: value}
    return value


def doubling(times: int) -> str:
    return "|".join(["[@, @]"] * times)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("$" + "..*" * 12, nested(100)),
        ("$" + "[0, 0]" * 60, nested(60)),
        ("$" + "[*, *]" * 60, nested(60)),
        ("$" + "[:, :]" * 60, nested(60)),
        ("$" + "[?@, ?@]" * 60, nested(60)),
        ("$" + "['a', 'a']" * 60, nested(60, name="a")),
        ("$" + "[0, 0]" * 16 + "[*]", nested(16, [0] * 100)),
        ("$" + "[0, 0]" * 16 + "[:]", nested(16, [0] * 100)),
        ("$..*", nested(5_000)),
        ("$..*", nested(200, "x" * 1_000_000)),
        ("$[0, 0, 0]", ["x" * 2_000_000]),
    ],
)
def test_a_path_that_multiplies_is_refused(expression: str, value: object) -> None:
    with pytest.raises(InvalidQueryError, match="more than 100,000 values"):
        find(expression, value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("$" + "..*" * 20, nested(1_000)),
        ("$[?@..[?@..[?@..x]]]", [nested(150)] * 5),
        ("$[?count($..*) > 3]", ROWS),
        ("$[?$[?$[?@.id < 0]]]", ROWS),
        ("$[?" + "||".join(["@.id == -1"] * 100) + "]", ROWS * 100),
        (
            "$[?$.text == $.other]",
            {"text": "x" * 10**6, "other": "x" * 10**6} | dict.fromkeys(map(str, range(40_000))),
        ),
        ("$[?search(@, @.id)]", ROWS * 100),
    ],
)
def test_a_path_that_takes_long_is_stopped(expression: str, value: object) -> None:
    with pytest.raises(DeadlineError, match="The JSONPath query was stopped after 50 s"):
        compile_jsonpath(expression).find(value, fifty_looks())


@pytest.mark.parametrize("function", ["match", "search"])
def test_a_pattern_that_goes_back_for_ever_is_stopped(function: str) -> None:
    path = compile_jsonpath(f"$[?{function}(@, '(x|xx)+y|z(x|xx)+y')]")

    with pytest.raises(DeadlineError, match=r"stopped after 0\.1 s"):
        path.find(["z" + "x" * 10_000 + "zy"], Budget(0.1))


def test_time_is_over_for_patterns_too() -> None:
    path = compile_jsonpath("$[?search(@, 'a')]")
    clock = iter([0.0, 0.0, 10.0])

    with pytest.raises(DeadlineError):
        path.find(["a"], Budget(10, clock=clock.__next__))


def test_patterns_of_the_payload_are_harmless_whatever_they_are() -> None:
    patterns = ["(" * 100_000, "((a{1000}){1000}){1000}", "(a*)*b", "\ud800", "[", "a" * 2_000, "a"]

    assert find("$[?match('a', @)]", patterns) == ["a"]


def test_patterns_of_the_payload_may_be_many() -> None:
    patterns = [f"{number}|a" for number in range(100)]

    assert find("$[?match('a', @)]", patterns) == patterns


def test_a_text_may_be_too_long_for_a_pattern() -> None:
    assert find("$[?search(@, 'b$')]", ["a" * 999_999 + "b"], nodes=10**6)
    with pytest.raises(InvalidQueryError, match="texts of at most 1,000,000 characters"):
        find("$[?search(@, 'b$')]", ["a" * 1_000_000 + "b"])


def test_what_a_filter_looks_at_is_not_what_it_selects() -> None:
    assert len(find("$[?count($..*) > 3]", ROWS[:40], nodes=500)) == 40


def test_plain_paths_select_any_number_of_values() -> None:
    rows = [[number] for number in range(5_000)]

    assert find("$[*][0]", rows, nodes=10) == list(range(5_000))
    assert find("$[?@[0] >= 0][:]", rows, nodes=10) == list(range(5_000))


def test_values_may_nest_deeper_than_the_stack() -> None:
    deep = nested(100_000)

    assert len(find("$[?@ == $[0]]", [deep, nested(100_000)], nodes=10)) == 2
    assert find("$..x", deep) == []
    assert search("[0] == [1]", [deep, nested(100_000)]) is True


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (doubling(60), 1),
        (doubling(60) + " | to_string(@)", 1),
        ("|".join(["{a: @, b: @}"] * 60), 1),
        ("|".join(["[@, @][]"] * 60), 1),
        ("|".join(["to_string([@, @])"] * 60), '"\\'),
        ("|".join(["join('----------------', [@, @])"] * 60), "x"),
        ("|".join(["merge({a: @}, {b: @})"] * 60), 1),
        ("|".join(["[[@, @], [@, @]][]"] * 30), 1),
        ("[*].[" + ",".join(["id"] * 100) + "]", ROWS),
        ('[*].{a: `"' + "y" * 5_000 + '"`}', ROWS),
        ("map(&`[1, 2, 3]`, [@, @, @, @, @][])" + "|[@, @, @, @, @]" * 3, ROWS),
        ("join('" + "-" * 9_000 + "', [*].name)", ROWS),
        ("join('-', map(&reverse(@), [@, @, @, @]))", "x" * 1_000_000),
        ("[*].[@] | [*].[@]" * 20, ROWS),
        ("[" + ",".join(["[::-1]"] * 100) + "]", ROWS),
        ("[" + ",".join(["sort([*].name)"] * 100) + "]", ROWS),
        ("[" + ",".join(["values(@)"] * 100) + "]", dict(enumerate(ROWS))),
    ],
)
def test_an_expression_that_multiplies_is_refused(expression: str, value: object) -> None:
    with pytest.raises(InvalidQueryError, match="more than 100,000 values"):
        search(expression, value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"({doubling(60)}) == ({doubling(60)})", 1),
        (f"contains([({doubling(60)})], ({doubling(60)}))", 1),
        ("map(&contains(@, `-1`), [" + ",".join(["[*].id"] * 500) + "])", ROWS * 10),
        ("[*].[" + ",".join(["max(@.ids)"] * 400) + "]", [{"ids": list(range(9_000))}] * 10),
        ("[" + ",".join(["max(texts)"] * 500) + "]", {"texts": ["x" * 10**6] * 10}),
        (
            "[?text == `1` || other == text || text < other]",
            [{"text": "x" * 10**6, "other": "x" * 10**6}] * 10**4,
        ),
        ("sort_by(@, &text)", [{"text": "x" * 10**5 + str(number)} for number in range(100)] * 100),
        ("[?" + "||".join(["id == `-1`"] * 100) + "]", ROWS * 20),
        ("[*].id" + "| [*].[@][]" * 300, ROWS),
    ],
)
def test_an_expression_that_takes_long_is_stopped(expression: str, value: object) -> None:
    with pytest.raises(DeadlineError, match="The JMESPath query was stopped after 50 s"):
        compile_jmespath(expression).search(value, fifty_looks())


def test_what_a_condition_makes_is_not_part_of_the_result() -> None:
    assert search("[?length([id, id, id, id]) > `3`].id", ROWS, nodes=5_000) == list(range(2_000))


def test_values_too_deep_to_write_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match="what it looks at, nests too deeply"):
        search("to_string(@)", nested(50_000))


def test_a_stack_that_is_nearly_full_is_no_crash() -> None:
    condition, lists = "!(" * 31 + "@" + ")" * 31, "[" * 60 + "@" + "]" * 60
    path, expression = compile_jsonpath(f"$[?{condition}]"), compile_jmespath(lists)
    runs: list[Callable[[], object]] = [
        lambda: path.find([1], Budget()),
        lambda: expression.search(1, Budget()),
        lambda: compile_jsonpath(f"$[?{condition}]"),
        lambda: compile_jmespath(lists),
    ]

    for run in runs:
        with pytest.raises(InvalidQueryError, match="deep"):
            with_little_stack(run, 30)


def with_little_stack(run: Callable[[], object], frames: int) -> object:
    depth = len(inspect.stack(0))

    def descend(levels: int) -> object:
        return descend(levels - 1) if levels else run()

    return descend(sys.getrecursionlimit() - depth - frames)
