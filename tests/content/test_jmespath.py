"""JMESPath: that it is the language of `jmespath`, and errors that say what is wrong."""

import warnings
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser

from coatcheck.content import Budget, compile_jmespath
from coatcheck.errors import InvalidQueryError

ROWS: list[Any] = [
    {"id": 1, "name": "ash", "price": 5, "tags": ["a", "b"], "at": {"city": "Oslo"}},
    {"id": 2, "name": "elm", "price": 12.5, "tags": [], "at": None},
    {"id": 3, "name": "oak", "price": 9, "tags": ["b"]},
]

KEYS = st.sampled_from(["a", "b", "a b"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b", "1.5"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
ATOMS = [
    *["a", "b", '"a b"', "@", "*", "[*]", "[]", "[0]", "[-1]", "[1:]", "[::-1]", "'a'", "`1`"],
    *["`0`", "`true`", "`null`", "`[1, 2]`", "{x: a, y: @}"],
]
OF_ONE = [
    *["{}.a", "{}.*", "{}[*]", "{}[]", "{}[0]", "{}[:1]", "!{}", "length({})", "keys({})"],
    *["values({})", "type({})", "to_string({})", "to_number({})", "to_array({})", "sort({})"],
    *["reverse({})", "max({})", "min({})", "sum({})", "avg({})", "abs({})", "ceil({})"],
]
OF_TWO = [
    *["map(&{}, {})", "sort_by({}, &{})", "max_by({}, &{})", "min_by({}, &{})"],
    *["contains({}, {})", "join({}, {})", "starts_with({}, {})", "ends_with({}, {})"],
    *["[{}, {}]", "{{p: {}, q: {}}}", "{} | {}", "({} || {})", "({} && {})", "{}[?{}]"],
    *["@[?{} == {}]", "@[?{} < {}]", "{} != {}", "not_null({}, {})"],
]


def _longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = st.tuples(st.sampled_from(OF_ONE), inner)
    two = st.tuples(st.sampled_from(OF_TWO), inner, inner)
    return (one | two).map(lambda parts: parts[0].format(*parts[1:]))


EXPRESSIONS = st.recursive(st.sampled_from(ATOMS), _longer, max_leaves=5)


def search(expression: str, value: object) -> Any:
    return compile_jmespath(expression).search(value, Budget())


def refused(expression: str, value: object = None) -> str:
    with pytest.raises(InvalidQueryError) as caught:
        search(expression, value)
    assert caught.value.language == "jmespath"
    assert "items[*].id" in caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("[*].id", [1, 2, 3]),
        ("[0].name", "ash"),
        ("[-1].name", "oak"),
        ("[3]", None),
        ("[?price > `8`].name", ["elm", "oak"]),
        ("[?name == 'ash' || price >= `12`].id", [1, 2]),
        ("[?at && at.city == 'Oslo'].id", [1]),
        ("[?!at].id", [2, 3]),
        ("[].tags[]", ["a", "b", "b"]),
        ("[*].tags[0]", ["a", "b"]),
        ("[*].at.city", ["Oslo"]),
        ("[0].at.*", ["Oslo"]),
        ("[:2].{id: id, where: at.city}", [{"id": 1, "where": "Oslo"}, {"id": 2, "where": None}]),
        ("[::-1] | [0].id", 3),
        ("sort_by(@, &price)[*].id", [1, 3, 2]),
        ("max_by(@, &price).name", "elm"),
        ("length([?contains(tags, 'b')])", 2),
        ("map(&at.city, @)", ["Oslo", None, None]),
        ("join(', ', sort([*].name))", "ash, elm, oak"),
        ("sum([*].price)", 26.5),
        ('merge([0].at, `{"land": "Norway"}`)', {"city": "Oslo", "land": "Norway"}),
        ("[0].[id, missing]", [1, None]),
        ("missing.[id]", None),
        ("missing.{id: id}", None),
        ("[0].id[*]", None),
        ("[0].id.*", None),
        ("[0].id[]", None),
        ("[0].id[?@]", None),
        ("[0].id[1:]", None),
        ("[0].id[0]", None),
        ("[?id].missing", []),
        ("[?at != null && tags == at].id", []),
        ("[?id == `true`].id", []),
        ("[?@ == @].id", [1, 2, 3]),
        ('[?tags == `["b"]`].id', [3]),
        ("to_string([0].tags)", '["a","b"]'),
        ("to_string('é')", "é"),
        ("reverse('abc')", "cba"),
        ("keys([0].at)", ["city"]),
        ("type([0])", "object"),
    ],
)
def test_expressions_give_what_they_say(expression: str, result: object) -> None:
    assert search(expression, ROWS) == result


@given(EXPRESSIONS, JSON)
def test_results_are_those_of_jmespath(expression: str, value: object) -> None:
    try:
        expected = repr(jmespath.search(expression, value))
    except JMESPathError:
        refused(expression, value)
        return
    except (ArithmeticError, TypeError):
        return  # where jmespath fails, some of what it cannot do has an answer here

    assert repr(search(expression, value)) == expected


@given(st.text(st.sampled_from("a.*?[]()'\"`!=<>&|@{},: 01-"), max_size=12), JSON)
def test_any_text_is_an_expression_or_refused(text: str, value: object) -> None:
    refused, found = "", None
    try:
        found = search(text, value)
    except InvalidQueryError as error:
        refused = error.hint

    assert refused or repr(search(text, value)) == repr(found)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "there is no expression (at the end)"),
        ("a.", "is not complete (at the end)"),
        ("[?price > 9]", "invalid token (at character 10, '9]')"),
        ("[?a = 'x']", "unknown token '=' (at character 4, \"= 'x']\")"),
        ("a b", "the expression goes on (at character 2, 'b')"),
        ("$.a", "unknown token $ (at character 0, '$.a')"),
        ("'a", "unclosed ' delimiter (at character 0, \"'a\")"),
        ('`"\\x"`', "between backticks is no JSON"),
        ('"\\x"', "invalid \\escape"),
        ("a[1", "is not complete"),
        ("a[1:2:3:4]", "syntax error (at character 7"),
        ("a[" + "1" * 19 + "]", "an index is too large (at character 2"),
        ("a[-" + "1" * 5_000 + "]", "an index is too large"),
        ("a[::0]", "the step of a slice is not 0"),
        ("nope(@)", "no function is 'nope': there are abs, avg,"),
        ("[&a]", "& stands only before the expression that map(), max_by(), min_by(), sort_by()"),
        ("map(a, &b)", "& stands only before"),
        ("&a", "& stands only before"),
        ('"a"(@)', "quoted identifier not allowed"),
        ("a\x00", "unknown token \ufffd"),
        ("\ud800", "unknown token \ufffd (at character 0, '\\ud800')"),
        ("a" + "[*]" * 100, "nest at most 64 deep"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(expression: str, reason: str) -> None:
    message = refused(expression)

    assert reason in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("expression", "value", "reason"),
    [
        ("length(@)", 5, "length() takes text or array or object, and got number"),
        ("length(@)", None, "and got null"),
        ("map(&sort_by(@, &length(id)), @)", [[{"id": 1}]], "length() takes"),
        ("length(@, @)", [], "length() takes 1, and got 2"),
        ("not_null()", 1, "not_null() takes at least 1, and got 0"),
        ("sort(@)", [1, "secret"], "takes an array of texts or an array of numbers, and one item"),
        ("sum(@)", [1, None], "sum() takes an array of numbers, and one item is null"),
        ("sum(@)", {}, "sum() takes an array of numbers, and got object"),
        ("sort_by(@, a)", [], "sort_by() takes an expression after &, and got null"),
        ("sort_by(@, &a)", [{"a": 1}, {"a": "secret"}], "sort_by() takes number, and got text"),
        ("sort_by(@, &a)", [{"a": ["secret"]}], "sort_by() takes text or number, and got array"),
        ("max_by(@, &a)", [{"a": 1}, {"a": "secret"}], "max_by() has no result for such values"),
        ("merge(@, a)", {"a": [["secret", 1]]}, "merge() takes objects"),
        ("ceil(@)", float("inf"), "ceil() has no result for such values"),
        ("floor(@)", float("nan"), "floor() has no result"),
        ("avg(@)", [10**400], "avg() has no result"),
        ("sum(@)", [10**400, 0.5], "sum() has no result"),
        ("to_string(@)", [10**5_000], "to_string() has no result"),
    ],
)
def test_a_function_that_fails_says_so_without_the_values(
    expression: str, value: object, reason: str
) -> None:
    message = refused(expression, value)

    assert reason in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "expression",
    ["(" * 3_000 + "a" + ")" * 3_000, "!" * 3_000 + "a", "a.[" * 3_000],
)
def test_an_expression_too_deep_to_be_read_is_refused(expression: str) -> None:
    with pytest.raises(InvalidQueryError, match="nests too deeply") as caught:
        compile_jmespath(expression)

    assert "by |" in caught.value.hint


def test_a_text_and_a_number_have_no_order() -> None:
    assert search("[?@ < `5`]", [1, "1", None, 9]) == [1]
    assert search("[?@ >= 'b']", ["a", "b", 5]) == ["b"]


def test_what_is_sought_in_a_text_is_a_text() -> None:
    assert search("contains('a1', `1`)", None) is False
    assert search("contains('a1', '1')", None) is True


def test_numbers_are_read_and_compared_exactly() -> None:
    ids = [9_007_199_254_740_992, 9_007_199_254_740_993, 10**5_000]

    assert search("[?@ == `9007199254740993`]", ids) == [ids[1]]
    assert search(f"[?@ == `1{'0' * 5_000}`]", ids) == [ids[2]]


def test_a_literal_without_quotes_is_a_text_and_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert search("[?name == `ash`].id", ROWS) == [1]
        assert search("`NaN`", None) == "NaN"


def test_a_backtick_in_a_literal_is_escaped() -> None:
    assert search('`"a\\`b"`', None) == "a`b"


def test_the_longest_expression_is_read_and_one_character_more_is_not() -> None:
    assert search("a" * 10_000, {"a" * 10_000: 1}) == 1
    assert "at most 10,000 characters" in refused("a" * 10_001)


@pytest.mark.parametrize(
    "chain", ["|".join("a" * 2_000), "||".join("a" * 2_000), ".".join("a" * 2_000)]
)
def test_a_chain_may_be_long(chain: str) -> None:
    assert search(chain, {"b": 1}) is None
    assert search("&&".join(["a"] * 2_000), {"a": 1}) == 1
    assert search("a" + "[0]" * 2_000, {"a": []}) is None


def test_no_expression_is_kept_by_jmespath() -> None:
    kept: dict[str, object] = vars(Parser)["_CACHE"]

    search("[*].nowhere_else", ROWS)

    assert "[*].nowhere_else" not in kept


def test_an_expression_can_be_run_again() -> None:
    path = compile_jmespath("[*].id")

    assert path.search(ROWS, Budget()) == [1, 2, 3]
    assert path.search([{"id": 9}], Budget()) == [9]
    assert path.expression == "[*].id"
