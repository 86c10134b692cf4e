"""Paths answered row by row give what they give on the whole."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import (
    EachRow,
    Encoding,
    Selector,
    encode,
    parse_payload,
    parse_selector,
    pick,
    pick_of_row,
    single_row,
)
from coatcheck.content._arrays import ARRAY_ROWS
from coatcheck.content._index import Rows
from coatcheck.errors import InvalidQueryError, NothingSelectedError

COUNT = 2_500
ROWS: list[Any] = [
    {"id": number, "name": f"n{number}", "tags": [number % 7] * (number % 3)}
    for number in range(COUNT)
]
LINES = "\n".join(json.dumps(row) for row in ROWS)
TABLE = "id,name\n" + "".join(f"{number},n{number}\n" for number in range(COUNT))
PAYLOADS = {
    "json": encode(ROWS),
    "indented": encode(json.dumps(ROWS, indent=1), "application/json"),
    "ndjson": encode(LINES, "application/x-ndjson"),
    "csv": encode(TABLE, "text/csv"),
}
BY_ROW = ["$[*].id", "$[*]", "$.*.name", "$[*]['id','name']", "$[?@.id].id", "$[?@.name == 'n7']"]
NOT_BY_ROW = ["$..id", "$[*]..id", "$[0:5].id", "$[?@.id == $[0].id]", "$", "$[0]", "/0/id"]


def each_row(encoding: Encoding, text: str) -> list[object]:
    payload, rows = encoding.whole(), encoding.index.rows
    assert rows is not None
    picks = EachRow(parse_selector(text), rows, len(payload))
    reached = 0
    for first, stop in picks.spans():
        start_byte, stop_byte = picks.span_bytes(first, stop)
        assert start_byte == reached  # every byte passes once, for the digest
        picks.feed(first, stop, payload[start_byte:stop_byte])
        reached = stop_byte
    assert reached == len(payload)
    return picks.result()


def whole(encoding: Encoding) -> Any:
    payload, rows = encoding.whole(), encoding.index.rows
    assert rows is not None
    return parse_payload(payload, rows.format, rows)


def answer(ask: Callable[[Selector], object], selector: Selector) -> tuple[object, str]:
    """Return what is picked, or why nothing is."""
    try:
        return ask(selector), ""
    except NothingSelectedError as error:
        return None, error.reason


@pytest.mark.parametrize("form", PAYLOADS)
@pytest.mark.parametrize("text", BY_ROW)
def test_what_all_rows_give_is_what_the_whole_gives(form: str, text: str) -> None:
    encoding = PAYLOADS[form]
    encoding.whole()
    rows, selector = encoding.index.rows, parse_selector(text)
    assert rows is not None

    assert EachRow.is_of(selector, rows)
    assert each_row(encoding, text) == pick(whole(encoding), selector, is_shared=False)


@pytest.mark.parametrize("text", NOT_BY_ROW)
def test_a_path_that_looks_elsewhere_is_not_answered_row_by_row(text: str) -> None:
    encoding = PAYLOADS["json"]
    encoding.whole()
    rows = encoding.index.rows
    assert rows is not None

    assert not EachRow.is_of(parse_selector(text), rows)


def test_neither_arrays_nor_empty_tables_are_read_by_block() -> None:
    selector = parse_selector("$[*]")

    assert not EachRow.is_of(selector, Rows(format=ARRAY_ROWS, count=5))
    assert not EachRow.is_of(selector, Rows(format="json", count=0))


def test_nothing_picked_of_any_row_says_what_rows_have() -> None:
    with pytest.raises(NothingSelectedError) as refused:
        each_row(PAYLOADS["json"], "$[*].nope")

    assert refused.value.hint == "It is a list of 2,500 with the keys 'id', 'name', 'tags'."
    with pytest.raises(InvalidQueryError):
        each_row(PAYLOADS["json"], "$[*].")


def test_a_value_picked_twice_of_a_row_is_two_values() -> None:
    found: Any = each_row(encode([{"a": [1]}]), "$[*]['a','a']")

    found[0].append(2)

    assert found == [[1, 2], [1]]


@given(st.sampled_from(sorted(PAYLOADS)), st.integers(-COUNT - 2, COUNT + 1), st.data())
def test_the_row_that_a_path_names_answers_it_alone(
    form: str, number: int, data: st.DataObject
) -> None:
    encoding = PAYLOADS[form]
    encoding.whole()
    rows = encoding.index.rows
    assert rows is not None
    rest = data.draw(st.sampled_from(["", "/id", "/name", "/none", "/tags/0"]))
    path = data.draw(st.sampled_from(["", ".id", "['name']", ".tags[*]", ".none", "[?@ > 3]"]))
    value = whole(encoding)

    for selector in (parse_selector(f"/{number}{rest}"), parse_selector(f"$[{number}]{path}")):
        found = single_row(selector, rows)
        exists = 0 <= number < COUNT or (selector.form == "jsonpath" and -COUNT <= number < 0)
        assert (found is not None) == exists
        if found is None:
            continue
        assert found == number % COUNT
        of_row = partial(pick_of_row, value[found], found)
        assert answer(of_row, selector) == answer(partial(pick, value, is_shared=True), selector)


@pytest.mark.parametrize(
    "text", ["/01", "/-", "/x", "/1x/a", "$.a", "$[01]", "$[-0]", "$[0]..a", "$[0][?@ == $[1]]"]
)
def test_a_path_that_names_no_row_is_none_of_one(text: str) -> None:
    assert single_row(parse_selector(text), Rows(format="json", count=5)) is None


def test_the_one_row_of_an_array_may_be_no_item() -> None:
    assert single_row(parse_selector("/0"), Rows(format=ARRAY_ROWS, count=1)) is None
    assert single_row(parse_selector("/0"), Rows(format=ARRAY_ROWS, count=2)) == 0


RAGGED = "id,a b,id,\n" + '1,x,2,3,4\r\n5\n"6\n,",é\n' * 900


@pytest.mark.parametrize(
    "text",
    ["$[*].id", "$.*['a b']", '$[*]["id_3"]', "$[*].column_4", "$[*].extra", "$[*]['id','a b']"],
)
def test_a_column_of_csv_is_what_the_whole_has_under_its_name(text: str) -> None:
    encoding = encode(RAGGED, "text/csv")

    assert each_row(encoding, text) == pick(whole(encoding), parse_selector(text), is_shared=False)


def test_a_column_that_is_not_there_is_told() -> None:
    with pytest.raises(NothingSelectedError):
        each_row(encode(RAGGED, "text/csv"), "$[*].none")
