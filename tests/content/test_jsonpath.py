"""JSONPath: what it selects, by the tables of RFC 9535, a second engine, and plain Python."""

from typing import Any, cast

import jsonpath_rfc9535
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Budget, compile_jsonpath

STORE: dict[str, Any] = {
    "store": {
        "book": [
            {"category": "reference", "author": "Nigel Rees", "price": 8.95},
            {"category": "fiction", "author": "Evelyn Waugh", "price": 12.99},
            {"category": "fiction", "author": "Herman Melville", "isbn": "0-553", "price": 8.99},
            {"category": "fiction", "author": "J. R. R. Tolkien", "isbn": "0-395", "price": 22.99},
        ],
        "bicycle": {"color": "red", "price": 399},
    }
}
BOOKS = STORE["store"]["book"]
NAMES: dict[str, Any] = {"o": {"j j": {"k.k": 3}}, "'": {"@": 2}}
WILD: dict[str, Any] = {"o": {"j": 1, "k": 2}, "a": [5, 3]}
LETTERS: list[Any] = list("abcdefg")
FILTERED: dict[str, Any] = {
    "a": [3, 5, 1, 2, 4, 6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "o": {"p": 1, "q": 2, "r": 3, "s": 5, "t": {"u": 6}},
    "e": "f",
}
NESTED: dict[str, Any] = {"o": {"j": 1, "k": 2}, "a": [5, 3, [{"j": 4}, {"k": 6}]]}
NULLS: dict[str, Any] = {"a": None, "b": [None], "c": [{}], "null": 1}

KEYS = st.sampled_from(["a", "b", "c d", "é", ""])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from("ab")
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=25,
)
BOUND = st.none() | st.integers(-5, 5)
STEPS = st.lists(
    KEYS | st.integers(-4, 4) | st.just("*") | st.builds(slice, BOUND, BOUND, BOUND), max_size=4
)


def find(expression: str, value: object) -> list[object]:
    return compile_jsonpath(expression).find(value, Budget())


def second_opinion(expression: str, value: Any) -> list[object]:
    return [node.value for node in jsonpath_rfc9535.find(expression, value)]


def written(step: str | int | slice) -> str:
    if isinstance(step, slice):
        parts = ("" if part is None else str(part) for part in (step.start, step.stop, step.step))
        return f"[{':'.join(parts)}]"
    return f"[{step}]" if isinstance(step, int) or step == "*" else f"['{step}']"


def in_python(steps: list[str | int | slice], value: Any) -> list[Any]:
    nodes = [value]
    for step in steps:
        nodes = [child for node in nodes for child in children_of(node, step)]
    return nodes


def children_of(node: Any, step: str | int | slice) -> list[Any]:
    if isinstance(node, dict):
        members = cast("dict[str, Any]", node)
        if step == "*":
            return list(members.values())
        return [members[step]] if isinstance(step, str) and step in members else []
    if not isinstance(node, list) or (isinstance(step, str) and step != "*"):
        return []
    items = cast("list[object]", node)
    if isinstance(step, int):
        return [items[step]] if -len(items) <= step < len(items) else []
    if isinstance(step, slice):
        return [] if step.step == 0 else items[step]
    return items


@pytest.mark.parametrize(
    ("expression", "value", "nodes"),
    [
        # Section 1.5
        ("$.store.book[*].author", STORE, [book["author"] for book in BOOKS]),
        ("$..author", STORE, [book["author"] for book in BOOKS]),
        ("$.store.*", STORE, [BOOKS, STORE["store"]["bicycle"]]),
        ("$.store..price", STORE, [8.95, 12.99, 8.99, 22.99, 399]),
        ("$..book[2]", STORE, [BOOKS[2]]),
        ("$..book[2].author", STORE, ["Herman Melville"]),
        ("$..book[2].publisher", STORE, []),
        ("$..book[-1]", STORE, [BOOKS[3]]),
        ("$..book[0,1]", STORE, BOOKS[:2]),
        ("$..book[:2]", STORE, BOOKS[:2]),
        ("$..book[?@.isbn]", STORE, BOOKS[2:]),
        ("$..book[?@.price<10]", STORE, [BOOKS[0], BOOKS[2]]),
        # Sections 2.2 and 2.3.1
        ("$", {"k": "v"}, [{"k": "v"}]),
        ("$.o['j j']", NAMES, [{"k.k": 3}]),
        ("$.o['j j']['k.k']", NAMES, [3]),
        ('$.o["j j"]["k.k"]', NAMES, [3]),
        ('$["\'"]["@"]', NAMES, [2]),
        # Section 2.3.2
        ("$[*]", WILD, [{"j": 1, "k": 2}, [5, 3]]),
        ("$.o[*]", WILD, [1, 2]),
        ("$.o[*, *]", WILD, [1, 2, 1, 2]),
        ("$.a[*]", WILD, [5, 3]),
        # Sections 2.3.3 and 2.3.4
        ("$[1]", ["a", "b"], ["b"]),
        ("$[-2]", ["a", "b"], ["a"]),
        ("$[1:3]", LETTERS, ["b", "c"]),
        ("$[5:]", LETTERS, ["f", "g"]),
        ("$[1:5:2]", LETTERS, ["b", "d"]),
        ("$[5:1:-2]", LETTERS, ["f", "d"]),
        ("$[::-1]", LETTERS, LETTERS[::-1]),
        ("$[::0]", LETTERS, []),
        # Section 2.3.5
        ("$.a[?@.b == 'kilo']", FILTERED, [{"b": "kilo"}]),
        ("$.a[?(@.b == 'kilo')]", FILTERED, [{"b": "kilo"}]),
        ("$.a[?@>3.5]", FILTERED, [5, 4, 6]),
        ("$.a[?@.b]", FILTERED, FILTERED["a"][6:]),
        ("$[?@.*]", FILTERED, [FILTERED["a"], FILTERED["o"]]),
        ("$[?@[?@.b]]", FILTERED, [FILTERED["a"]]),
        ("$.o[?@<3, ?@<3]", FILTERED, [1, 2, 1, 2]),
        ('$.a[?@<2 || @.b == "k"]', FILTERED, [1, {"b": "k"}]),
        ('$.a[?match(@.b, "[jk]")]', FILTERED, [{"b": "j"}, {"b": "k"}]),
        ('$.a[?search(@.b, "[jk]")]', FILTERED, [{"b": "j"}, {"b": "k"}, {"b": "kilo"}]),
        ("$.o[?@>1 && @<4]", FILTERED, [2, 3]),
        ("$.o[?@.u || @.x]", FILTERED, [{"u": 6}]),
        ("$.a[?@.b == $.x]", FILTERED, [3, 5, 1, 2, 4, 6]),
        ("$.a[?@ == @]", FILTERED, FILTERED["a"]),
        # Section 2.5
        ("$[0, 3]", LETTERS, ["a", "d"]),
        ("$[0:2, 5]", LETTERS, ["a", "b", "f"]),
        ("$[0, 0]", LETTERS, ["a", "a"]),
        ("$..j", NESTED, [1, 4]),
        ("$..[0]", NESTED, [5, {"j": 4}]),
        ("$..o", NESTED, [{"j": 1, "k": 2}]),
        ("$.o..[*, *]", NESTED, [1, 2, 1, 2]),
        ("$.a..[0, 1]", NESTED, [5, 3, {"j": 4}, {"k": 6}]),
        # Section 2.6
        ("$.a", NULLS, [None]),
        ("$.a[0]", NULLS, []),
        ("$.a.d", NULLS, []),
        ("$.b[0]", NULLS, [None]),
        ("$.b[*]", NULLS, [None]),
        ("$.b[?@]", NULLS, [None]),
        ("$.b[?@==null]", NULLS, [None]),
        ("$.c[?@.d==null]", NULLS, []),
        ("$.null", NULLS, [1]),
    ],
)
def test_the_examples_of_the_rfc_hold(expression: str, value: Any, nodes: list[object]) -> None:
    assert find(expression, value) == nodes


def test_descendants_come_parents_first_and_in_order() -> None:
    rows = NESTED["a"][2]

    assert find("$..*", NESTED) == [
        NESTED["o"], NESTED["a"], 1, 2, 5, 3, rows, {"j": 4}, {"k": 6}, 4, 6,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("$.absent1 == $.absent2", True),
        ("$.absent1 <= $.absent2", True),
        ("$.absent == 'g'", False),
        ("$.absent1 != $.absent2", False),
        ("$.absent != 'g'", True),
        ("1 <= 2", True),
        ("1 > 2", False),
        ("13 == '13'", False),
        ("'a' <= 'b'", True),
        ("'a' > 'b'", False),
        ("$.obj == $.arr", False),
        ("$.obj != $.arr", True),
        ("$.obj == $.obj", True),
        ("$.obj != $.obj", False),
        ("$.arr == $.arr", True),
        ("$.arr != $.arr", False),
        ("$.obj == 17", False),
        ("$.obj != 17", True),
        ("$.obj <= $.arr", False),
        ("$.obj < $.arr", False),
        ("$.obj <= $.obj", True),
        ("$.arr <= $.arr", True),
        ("1 <= $.arr", False),
        ("1 >= $.arr", False),
        ("1 > $.arr", False),
        ("1 < $.arr", False),
        ("true <= true", True),
        ("true > true", False),
        # Not in the table
        ("1 == 1.0", True),
        ("1e2 == 100", True),
        ("-0 == 0.0", True),
        ("true == 1", False),
        ("0 == false", False),
        ("true < 2", False),
        ("null == null", True),
        ("null <= null", True),
        ("$.ones == $.trues", False),
        ("$.deep == $.deep", True),
        ("$.deep == $.other", False),
        ("$.arr[-1] == 3", True),
        ("$.arr[-3] == 3", False),
        ("$.arr[0].x == 3", False),
        ("$.obj[0] == 3", False),
        ("length($.arr) == 2", True),
        ("length($.obj) == 1", True),
        ("length('é😀') == 2", True),
        ("length(7) == 1", False),
        ("length($.absent) == $.absent", True),
        ("count($.*) == 5", True),
        ("count($..absent) == 0", True),
        ("value($..x) == 'y'", True),
        ("value($.arr[*]) == 2", False),
        ("value($.absent) == $.absent", True),
        ("match('ab', 'a')", False),
        ("search('ab', '^b')", False),
        ("match(length($.arr), '2')", False),
        ("match('2', 2)", False),
        ("!match('ab', 'a')", True),
        ("! ( 1 == 1 && 2 == 2 )", False),
        ("1 == 2 && 1 == 1 || 1 == 1", True),
        ("1 == 1 || 1 == 1 && 1 == 2", True),
    ],
)
def test_conditions_hold_as_the_rfc_says(condition: str, holds: bool) -> None:
    value = {
        "obj": {"x": "y"},
        "arr": [2, 3],
        "ones": [1, {"a": 0}],
        "trues": [True, {"a": False}],
        "deep": [[{"a": [1]}]],
    }

    assert find(f"$[?{condition}]", value) == (list(value.values()) if holds else [])


def test_numbers_of_any_length_are_compared_exactly() -> None:
    ids = [9_007_199_254_740_992, 9_007_199_254_740_993, 10**5_000, 9_007_199_254_740_992.0]

    assert find("$[?@==9007199254740993]", ids) == [ids[1]]
    assert find(f"$[?@>=1{'0' * 5_000}]", ids) == [ids[2]]


def test_a_pattern_may_come_from_the_payload() -> None:
    value = {"pattern": "b.?b", "values": ["abc", "bab", "bbab", True], "bad": ["(", "[z-a]", 1]}

    assert find("$.values[?match(@, $.pattern)]", value) == ["bab"]
    assert find("$.values[?search(@, $.pattern)]", value) == ["bab", "bbab"]
    assert find("$.bad[?match('a', @)]", value) == []


def test_what_has_no_such_child_is_passed_over() -> None:
    rows: list[Any] = [{"id": 1}, {}, [], "id", None, 7, {"id": None}, ["id"], {"id": [2]}]

    assert find("$[*].id", rows) == [1, None, [2]]
    assert find("$[*][0]", rows) == ["id"]
    assert find("$[*].id[*]", rows) == [2]


def test_rows_without_a_name_may_lie_anywhere_among_many() -> None:
    rows: list[Any] = [{"id": number} for number in range(200_000)]
    rows[0] = rows[131_071] = rows[131_072] = rows[-1] = {"other": 1}

    assert find("$[*].id", rows) == [row["id"] for row in rows if "id" in row]


@pytest.mark.parametrize("expression", ["$", "$[*]", "$[*][*]", "$[:]", "$[0]", "$.*", "$..*"])
def test_a_list_of_nodes_is_the_caller_s_own(expression: str) -> None:
    rows: list[Any] = [[1], [2]]

    find(expression, rows).clear()

    assert rows == [[1], [2]]


@pytest.mark.parametrize("expression", ["$", "$.a", "$['a'][0]", "$.a[-1].b", "$ .a [ 0 ]"])
def test_a_path_of_names_and_indices_is_singular(expression: str) -> None:
    assert compile_jsonpath(expression).is_singular


@pytest.mark.parametrize(
    "expression", ["$[*]", "$.*", "$..a", "$[0,1]", "$['a','a']", "$[0:1]", "$[?@.a]", "$.a[*].b"]
)
def test_any_other_path_is_not(expression: str) -> None:
    assert not compile_jsonpath(expression).is_singular


def test_a_path_can_be_run_again() -> None:
    path = compile_jsonpath("$[?search(@.id, '[0-9]')].id")

    assert path.find([{"id": "1"}], Budget()) == ["1"]
    assert path.find([{"id": "x"}, {"id": "2"}], Budget()) == ["2"]
    assert path.expression == "$[?search(@.id, '[0-9]')].id"


@given(JSON, STEPS)
def test_a_plain_path_selects_what_loops_would(
    value: object, steps: list[str | int | slice]
) -> None:
    expression = "$" + "".join(map(written, steps))

    nodes = find(expression, value)

    assert nodes == in_python(steps, value)
    assert list(map(repr, nodes)) == list(map(repr, second_opinion(expression, value)))


@given(JSON, STEPS, STEPS)
def test_descendants_are_those_of_a_second_engine(
    value: object, before: list[str | int | slice], after: list[str | int | slice]
) -> None:
    expression = "$" + "".join(map(written, before)) + ".." + "".join(map(written, after or ["*"]))

    assert list(map(repr, find(expression, value))) == list(
        map(repr, second_opinion(expression, value))
    )


@given(
    st.lists(st.dictionaries(KEYS, LEAVES, max_size=3)),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(["1", "-1.5", "'a'", "null", "true", "@.b", "@['c d']"]),
    st.sampled_from(["", "&& @.b", "|| !@.a", "&& (@.a != 'b' || @.b == 0)"]),
)
def test_filters_select_what_a_second_engine_does(
    rows: list[Any], operator: str, operand: str, more: str
) -> None:
    expression = f"$[?@.a {operator} {operand} {more}]"

    assert find(expression, rows) == second_opinion(expression, rows)
