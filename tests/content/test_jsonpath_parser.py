"""JSONPath's syntax: what is one, what is none, and errors that say where and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import Budget, compile_jsonpath
from coatcheck.errors import InvalidQueryError


def refused(expression: str) -> str:
    with pytest.raises(InvalidQueryError) as caught:
        compile_jsonpath(expression)
    assert caught.value.language == "jsonpath"
    assert "$.items[*].id" in caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "value", "nodes"),
    [
        ("$ .a\n[ 0 ] ..b", {"a": [{"b": 1}]}, [1]),
        ("$[ 'a' , \"b\" ]", {"a": 1, "b": 2}, [1, 2]),
        ("$[ 0 : 2 : 1 ]", [1, 2, 3], [1, 2]),
        ("$[0:2 ]", [1, 2, 3], [1, 2]),
        ("$[:2:]", [1, 2, 3], [1, 2]),
        ("$[? @.a\t==\r1 ]", [{"a": 1}], [{"a": 1}]),
        ("$[?count( @.* )>0]", [{"a": 1}], [{"a": 1}]),
        ("$.ünï_1", {"ünï_1": 1}, [1]),
        ("$.😀", {"😀": 1}, [1]),
        ("$['\\u00e9\\n\\t\\b\\f\\r\\/\\\\']", {"é\n\t\b\f\r/\\": 1}, [1]),
        ("$['\\uD83D\\uDE00']", {"😀": 1}, [1]),
        ("$['\\'\"']", {"'\"": 1}, [1]),
        ('$["\'\\""]', {"'\"": 1}, [1]),
        ("$['']", {"": 1}, [1]),
        ("$['\x7f']", {"\x7f": 1}, [1]),
        ("$[9007199254740991]", [1], []),
        ("$[-9007199254740991]", [1], []),
        ("$[?@==-0.5e-1]", [-0.05], [-0.05]),
        ("$[?@['a']]", [{"a": 1}], [{"a": 1}]),
        ("$[?$[0].a]", [{"a": 1}], [{"a": 1}]),
        ("$[?count(@[?$ ,?@ ,*])==3]", [[1]], [[1]]),
    ],
)
def test_what_the_grammar_allows_is_read(expression: str, value: object, nodes: object) -> None:
    assert compile_jsonpath(expression).find(value, Budget()) == nodes


@pytest.mark.parametrize(
    ("expression", "reason", "where"),
    [
        ("", "starts with $", "at the end"),
        ("a.b", "starts with $", "at character 0, 'a.b'"),
        (" $", "starts with $", "at character 0"),
        ("$ ", "starts with a dot or a bracket", "at character 1"),
        ("$a", "starts with a dot or a bracket", "at character 1"),
        ("$.a-b", "starts with a dot or a bracket", "at character 3, '-b'"),
        ("$.", "other names are written ['a-b']", "at the end"),
        ("$..", "other names are written ['a-b']", "at the end"),
        ("$. a", "followed by * or a name", "at character 2"),
        ("$.1", "followed by * or a name", "at character 2"),
        ("$...a", "followed by * or a name", "at character 3"),
        ("$[]", "brackets hold", "at character 2"),
        ("$[a]", "brackets hold", "at character 2"),
        ("$[0,]", "brackets hold", "at character 4"),
        ("$[(@.length-1)]", "brackets hold", "at character 2"),
        ("$[0", "a comma or ] is missing", "at the end"),
        ("$[0 1]", "a comma or ] is missing", "at character 4"),
        ("$[:1 3]", "a comma or ] is missing", "at character 5"),
        ("$[01]", "no leading zero", "at character 2"),
        ("$[-0]", "no minus before 0", "at character 2"),
        ("$[1:02]", "no leading zero", "at character 4"),
        ("$[9007199254740992]", "2^53 - 1", "at character 2"),
        ("$[" + "9" * 5_000 + "]", "2^53 - 1", "at character 2"),
        ("$['a", "a quote is not closed", "at character 2"),
        ("$['a\\", "no such escape", "at character 4"),
        ("$['\n']", "no such escape or character", "at character 3"),
        ("$['\\x']", "no such escape", "at character 3"),
        ("$['\\\"']", "no such escape", "at character 5"),
        ("$['\\ud83d']", "no such escape", "at character 3"),
        ("$['\\ude00']", "no such escape", "at character 3"),
        ("$['\ud800']", "no such escape or character", "at character 3"),
        ("$.\ud800", "followed by * or a name", "at character 2"),
        ("$[?]", "expected is @", "at character 3"),
        ("$[?@.a=1]", "goes on with == != < <= > >= && or ||", "at character 6, '=1]'"),
        ("$[?@.a=='x' and @.b]", "goes on with == != < <= > >= && or ||", "'and @.b]'"),
        ("$[?@.a =~ /x/]", "goes on with", "at character 7"),
        ("$[?(@.a]", "or ) is missing", "at character 7"),
        ("$[?!@.a==1]", "goes on with", "at character 7"),
        ("$[?!!@.a]", "expected is @", "at character 4"),
        ("$[?@.a==]", "expected is @", "at character 8"),
        ("$[?@.a==[1]]", "expected is @", "at character 8"),
        ("$[?@.a==True]", "expected is @", "at character 8"),
        ("$[?@.a==01]", "expected is @", "at character 8"),
        ("$[?@.a==+1]", "expected is @", "at character 8"),
        ("$[?@.a==1.]", "goes on with", "at character 9"),
        ("$[?@.a==1e999]", "the number is too large", "at character 8"),
        ("$[?@.a==-1e999]", "the number is too large", "at character 8"),
        ("$[?true]", "a literal is no condition", "at character 3"),
        ("$[?'a' || @.b]", "a literal is no condition", "at character 3"),
        ("$[?@.*==1]", "only a query of names and indices is compared", "at character 3"),
        ("$[?1==@..a]", "only a query of names and indices is compared", "at character 6"),
        ("$[?@[0,1]==1]", "only a query of names and indices is compared", "at character 3"),
        ("$[?length(@)]", "length() is no condition", "at character 3"),
        ("$[?!count(@.*)]", "count() is no condition", "at character 3"),
        ("$[?match(@,'a')==true]", "match() is a condition already", "at character 3"),
        ("$[?length(@.*)<3]", "length() takes one value here", "at character 10"),
        ("$[?length(match(@,'a'))<3]", "length() takes one value here", "at character 10"),
        ("$[?count(1)==1]", "count() takes a query here", "at character 9"),
        ("$[?value(length(@))==1]", "value() takes a query here", "at character 9"),
        ("$[?length()==1]", "length() takes 1, and got 0", "at character 3"),
        ("$[?match(@)]", "match() takes 2, and got 1", "at character 3"),
        ("$[?match(@,'a','b')]", "match() takes 2, and got 3", "at character 3"),
        ("$[?match(@ 'a')]", "a comma or ) is missing", "at character 11"),
        ("$[?match(@,'a'", "a comma or ) is missing", "at the end"),
        ("$[?size(@)==1]", "functions are length, count, value, match, search", "character 3"),
        ("$[?length (@)==1]", "expected is @", "at character 3"),
        ("$[?search(@,'\\\\d+')]", "no I-Regexp", "at character 12"),
        ("$[?match(@,'(?i)a')]", "no I-Regexp", "at character 11"),
        ("$[?match(@,'((a{1000}){1000}){1000}')]", "too large", "at character 11"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(expression: str, reason: str, where: str) -> None:
    message = refused(expression)

    assert reason in message
    assert where in message
    assert len(message) < 400


def test_the_longest_query_is_read_and_one_character_more_is_not() -> None:
    assert compile_jsonpath("$" + ".abcd" * 1_999 + ".abc")
    assert "at most 10,000 characters" in refused("$" + ".a" * 5_000)


def test_nesting_is_bounded() -> None:
    for start, end in (("(", ")"), ("@[?", "]"), ("!(", ")")):
        compile_jsonpath("$[?" + start * 31 + "@" + end * 31 + "]")
        assert "nest at most 32 deep" in refused("$[?" + start * 32 + "@" + end * 32 + "]")
    assert "nest at most 32 deep" in refused("$[?" + "length(" * 500 + "@" + ")" * 500 + "==1]")


def test_a_chain_of_conditions_may_be_long() -> None:
    chain = " || ".join(f"@.id == {number}" for number in range(500))

    nodes = compile_jsonpath(f"$[?{chain}].id").find([{"id": 499}, {"id": 500}], Budget())

    assert nodes == [499]


@given(st.text(st.sampled_from("$.@*?[]()'\"!=<>&|, 019-:eaé\\u\n"), max_size=20))
def test_any_text_is_a_query_or_refused(text: str) -> None:
    value = {"a": [{"e": 1}, "a"]}

    refused, nodes = "", list[object]()
    try:
        nodes = compile_jsonpath("$" + text).find(value, Budget())
    except InvalidQueryError as error:
        refused = error.hint

    parts = [value, value["a"], {"e": 1}, 1, "a"]
    assert refused or all(node in parts for node in nodes)
