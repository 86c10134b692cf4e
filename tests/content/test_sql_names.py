"""Names of columns: one for each key, and none that means another."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck.content import sql_name
from coatcheck.content._sql_names import are_plain, column_names, shown_columns, wanted_keys
from coatcheck.content._sql_statement import Statement
from coatcheck.content.sql import check_names
from coatcheck.errors import InvalidQueryError

LARGE = 10**9


def statement(
    *names: str, scalars: frozenset[str] = frozenset(), aliases: frozenset[str] = frozenset()
) -> Statement:
    return Statement(sql="", tables={}, names=frozenset(names), scalars=scalars, aliases=aliases)


@given(st.lists(st.text("aAb_2\x00", max_size=3) | st.just("column_2"), unique=True, max_size=8))
@example(["a", "A", "A_2"])
@example(["A_2", "a", "A"])
@example(["", "column_1"])
def test_each_key_has_a_name_of_its_own_that_sql_tells_apart(keys: list[str]) -> None:
    names = column_names(keys)

    assert list(names) == keys
    assert len({sql_name(name) for name in names.values()}) == len(keys)
    assert all(name and "\x00" not in name for name in names.values())
    firsts = {sql_name(key): key for key in reversed(keys)}
    for key in firsts.values():
        if key and "\x00" not in key:
            assert names[key] == key


@pytest.mark.parametrize(("one", "other"), [("k", "\u212a"), ("i\u0307", "\u0130"), ("ß", "ẞ")])
def test_only_letters_of_ascii_are_the_same_in_both_cases(one: str, other: str) -> None:
    assert sql_name(one) != sql_name(other)
    assert column_names([one, other]) == {one: one, other: other}
    assert wanted_keys(column_names(["x", one, other]), [other], LARGE) == [other]
    check_names(statement(other), [one, other], {}, frozenset({one}))
    with pytest.raises(InvalidQueryError, match="is the column"):
        check_names(statement(other), [one], {other: "x"}, frozenset())


@given(st.text())
def test_names_are_compared_by_the_letters_of_ascii_alone(name: str) -> None:
    folded = sql_name(name)

    assert folded == "".join(each.lower() if each.isascii() else each for each in name)
    assert sql_name(folded) == folded


def test_names_are_plain_where_they_are_the_keys() -> None:
    assert are_plain(column_names(["a", "b"]))
    assert not are_plain(column_names(["a", "A"]))


def test_keys_are_wanted_in_their_own_order_whatever_the_capitals() -> None:
    names = column_names(["a", "b", "c"])

    assert wanted_keys(names, ["C", "A"], LARGE) == ["a", "c"]
    assert wanted_keys(names, None, LARGE) == ["a", "b", "c"]
    assert wanted_keys(names, ["x"], LARGE) == ["a"]


def test_all_keys_of_a_small_table_are_wanted_up_to_a_hundred() -> None:
    few = column_names([f"k{number}" for number in range(100)])
    more = column_names([f"k{number}" for number in range(101)])

    assert len(wanted_keys(few, ["k1"], 1024 * 1024)) == 100
    assert len(wanted_keys(few, ["k1"], 1024 * 1024 + 1)) == 1
    assert len(wanted_keys(more, ["k1"], 10)) == 1


def test_a_key_by_which_another_column_would_be_found_is_refused() -> None:
    keys = {"ID": "ID_2"}

    with pytest.raises(InvalidQueryError, match="'ID' is the column 'ID_2' here") as caught:
        check_names(statement("ID"), ["id", "ID_2"], keys, frozenset())
    assert "write ID_2" in caught.value.hint
    check_names(statement("id", "ID_2"), ["id", "ID_2"], keys, frozenset())


@pytest.mark.parametrize("name", ["user", "current_user", "SESSION_USER", "current_database"])
def test_a_name_that_stands_for_a_function_has_to_be_a_column(name: str) -> None:
    with pytest.raises(InvalidQueryError, match=f"no column '{name}'"):
        check_names(statement(name), ["id"], {}, frozenset())
    check_names(statement(name), ["id", name.lower()], {}, frozenset())
    check_names(statement(name, aliases=frozenset({name.lower()})), ["id"], {}, frozenset())


def test_json_is_not_compared_as_it_is() -> None:
    asked = statement("Code", scalars=frozenset({"Code"}))

    with pytest.raises(InvalidQueryError, match="'Code' holds values of several kinds") as caught:
        check_names(asked, ["code"], {}, frozenset({"code"}))
    assert "Code->>'$'" in caught.value.hint
    check_names(statement("Code"), ["code"], {}, frozenset({"code"}))


def test_a_column_s_name_ends_neither_its_quotation_nor_the_line() -> None:
    told = shown_columns(['a", "b', "x\n\u2028y", "\u202e\x1b[2J", "größe"])

    assert told == (r'Its columns are "a"", ""b", "x\n\u2028y", "\u202e\x1b[2J", "größe".')


def test_columns_are_told_to_a_bound() -> None:
    names = [*("a", "with space", "x" * 100), *(f"k{number}" for number in range(100))]

    told = shown_columns(names)

    assert told.startswith('Its columns are a, "with space", ')
    assert "x" * 41 not in told
    assert told.endswith(" and 73 more.")
    assert len(told) < 600
    assert shown_columns([]) == "It has no columns."
