"""Where a row starts: what is counted agrees with the pattern of rows, or is not used."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import encode
from coatcheck.content._index import BLOCK_ROWS, Rows
from coatcheck.content._row_start import Borders, row_pattern, row_place, row_start

TEXTS = st.text('a}{][,"\\ é', max_size=4)
FLAT = st.dictionaries(st.sampled_from(["id", "b", "}"]), TEXTS | st.integers(0, 9), max_size=3)
LISTS = st.lists(TEXTS | st.integers(0, 9), max_size=3)
KEYED = st.fixed_dictionaries(
    {"id": TEXTS | st.integers(0, 9)},
    optional={"x": FLAT | LISTS | st.lists(FLAT | st.integers(0, 9), max_size=3) | TEXTS},
)
NESTED = st.dictionaries(st.just("id"), FLAT | st.lists(FLAT, max_size=2), max_size=1)
FIELDS = st.lists(st.sampled_from(["", "a", "é", '"', 'a"', "\n", "\r", "a\r\nb", ","]), max_size=3)


def table(payload: bytes, content_type: str) -> tuple[Rows, bytes]:
    encoding = encode(payload, content_type)
    list(encoding.chunks())
    rows = encoding.index.rows
    assert rows is not None
    return rows, payload[rows.starts[0] :] if rows.count else b""


def check(rows: Rows, data: bytes) -> None:
    for number in range(rows.count):
        passed, start = row_pattern(rows.format, data).skip(data, number, 0)
        found = row_start(rows, data, number)
        assert passed == number
        assert data[found:].lstrip() == data[start:].lstrip()
        check_parted(rows, data, number, start)


def check_parted(rows: Rows, data: bytes, number: int, start: int) -> None:
    place, parted = row_place(rows, data, number, 40)
    if parted is None:
        return
    assert data[place:].lstrip() == data[start:].lstrip()
    is_last_found = rows.format != "json" and data.endswith(b"\n")
    count = min(10, rows.count - (not is_last_found) - number)
    texts, end = row_pattern(rows.format, data).split(data, count, start)
    if isinstance(parted, Borders):
        found, stop = parted.rows(number, 10)
        assert found == [text.decode().strip()[:-1].rstrip() for text in texts]
    else:
        lines, stop = parted.text(number, 10)
        assert [line.strip() for line in lines.split("\n")[:-1]] == [
            text.decode().strip() for text in texts
        ]
    assert data[stop:].lstrip() == data[end:].lstrip()


@given(
    kinds=st.sampled_from(
        [FLAT, LISTS, KEYED, KEYED, NESTED, FLAT | LISTS, FLAT | KEYED, KEYED | TEXTS]
    ),
    between=st.sampled_from([",", ", ", "\n,\n "]),
    colons=st.sampled_from([(",", ":"), (", ", ": ")]),
    data=st.data(),
)
def test_a_row_of_json_starts_where_the_rows_before_it_end(
    kinds: st.SearchStrategy[object],
    between: str,
    colons: tuple[str, str],
    data: st.DataObject,
) -> None:
    some = data.draw(st.lists(kinds, min_size=1, max_size=6))
    rows = some * (data.draw(st.integers(18, 40)) // len(some) + 1)
    texts = (json.dumps(row, ensure_ascii=False, separators=colons) for row in rows)

    check(*table(f"[{between.join(texts)} ]\n".encode(), "application/json"))


@given(
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    some=st.lists(FIELDS, min_size=1, max_size=5),
    data=st.data(),
)
def test_a_row_of_csv_starts_where_the_rows_before_it_end(
    end: str, some: list[list[str]], data: st.DataObject
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(["x", "y", "z"])
    writer.writerows(some * (data.draw(st.integers(18, 40)) // len(some) + 1))
    text = out.getvalue() + data.draw(st.sampled_from(["", "\n", "last", '"open\nquote']))

    check(*table(text.encode(), "text/csv"))


@given(
    some=st.lists(st.sampled_from(["{}", "[1]", " ", "", '"a"', "\t5", "\x0b"]), min_size=1),
    ends=st.booleans(),
    data=st.data(),
)
def test_a_row_of_ndjson_starts_where_the_rows_before_it_end(
    some: list[str], ends: bool, data: st.DataObject
) -> None:
    lines = some * (data.draw(st.integers(18, 40)) // len(some) + 1)

    check(*table(("\n".join(lines) + "\n" * ends).encode(), "application/x-ndjson"))


# As many braces and borders as rows, but not one in each.
FALSE_FRIENDS = [
    '{"a":"},{"},5,',
    '{"a":"},{"},"x",',
    '{"id":1,"l":[{"x":1},{"id":2}]},{"name":1},7,8,',
    '{"id":1,"l":[{"x":1},{"id":2}]},{"name":1},',
    '{"id":1,"l":[5,{"id":1},{"id":2}]},7,',
    '{"id":1,"l":[ {"id":1},{"id":2}]},7,',
    '{"id":1,"l":[[{"id":1}],{"id":1},{"id":2}]},7,8,',
    '{"id":1,"l":"},{"},7,',
    '{"id":1,"l":"},{\\"id\\""},7,',
    '{"a":{}},5,',
    '[1,"],["],5,',
    "[[],[]],5,6,",
]


@pytest.mark.parametrize("friend", FALSE_FRIENDS)
@pytest.mark.parametrize("filler", ['{"a":1},', '{"id":1},', '{"id":{"b":[1]}},', "[1],"])
@pytest.mark.parametrize("place", [0, 1, 20, 39])
def test_braces_that_are_as_many_as_rows_do_not_deceive(
    friend: str, filler: str, place: int
) -> None:
    rows = [filler] * 40
    rows.insert(place, friend)

    check(*table(f"[{''.join(rows)}{filler[:-1]}]".encode(), "application/json"))


@pytest.mark.parametrize("row", ['{"a":1}', "[1]", "5", '"x"', '{"a":[{"b":1},{"b":2}]}'])
@pytest.mark.parametrize("count", [BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 20])
def test_rows_of_each_block_are_found_from_its_start(row: str, count: int) -> None:
    payload = f"[{','.join([row] * count)}]".encode()
    rows, _ = table(payload, "application/json")

    for number in (0, 17, 1_000, BLOCK_ROWS - 2, BLOCK_ROWS - 1, BLOCK_ROWS, count - 1):
        if number < count:
            start = rows.starts[number // BLOCK_ROWS]
            found = start + row_start(rows, payload[start:], number)
            assert payload[found:].startswith(row.encode())
            assert found == 1 + number * (len(row) + 1)


def test_a_damaged_block_gives_the_end_of_its_last_whole_row() -> None:
    rows, data = table(b"[" + b"[1]," * 60 + b"[1]]", "application/json")

    assert row_start(rows, data[:82], 50) == 80
    assert row_start(rows, b"", 50) == 0
