import csv
import io
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content._csv import (
    CsvRows,
    as_object,
    csv_pattern,
    extra_name,
    parse_csv,
    parse_csv_column,
    parse_csv_objects,
    unique_names,
)
from coatcheck.content._index import BLOCK_ROWS, Rows

WILD = st.text('ab,,\t""\n\r é', max_size=60)
TAME = st.lists(st.sampled_from([*"ab,,\t\n é\x0b\x85\u2028\0\ud800", "\r\n"])).map("".join)
FIELDS = st.text('ab,\t"\n\r é', max_size=5)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
PARTS = st.integers(1, 9) | st.just(10**6)
DELIMITERS = {"csv": ",", "tsv": "\t"}
FORMS = st.sampled_from(["csv", "tsv"])


def reference(text: str, form: str) -> list[list[str]]:
    lines = io.StringIO(text, newline="")
    return [record for record in csv.reader(lines, delimiter=DELIMITERS[form]) if record]


def scan(
    payload: bytes,
    form: str = "csv",
    part: int = 65_536,
    *,
    header: bool = True,
    guess: bool = False,
) -> Rows | None:
    scanner = CsvRows(form, header=header, is_guess=guess)
    for start in range(0, len(payload), part):
        scanner.feed(payload[start : start + part])
    return scanner.rows()


@given(WILD, FORMS, PARTS)
@settings(max_examples=300)
def test_records_are_counted_as_the_csv_module_counts_them(text: str, form: str, part: int) -> None:
    records = reference(text, form)

    found = scan(text.encode(), form, part)
    bare = scan(text.encode(), form, part, header=False)

    assert found is not None
    assert found.count == max(0, len(records) - 1)
    assert bare is not None
    assert bare.count == len(records)
    assert found.columns == unique_names(records[0] if records else [])
    assert bare.columns == tuple(
        f"column_{n + 1}" for n in range(len(records[0]) if records else 0)
    )


@given(WILD, FORMS)
@settings(max_examples=300)
def test_long_fields_are_parsed_as_the_csv_module_parses_short_ones(text: str, form: str) -> None:
    # A field over the module's limit makes us parse by our own pattern.
    long = "x" * 131_073
    records = reference(text + "\n", form)

    assert parse_csv(text, form) == reference(text, form)
    if text.count('"') == 0:
        assert parse_csv(f"{text}\n{long}", form) == [*records, [long]]
    else:
        assert parse_csv(f"{long}\n{text}", form) == [[long], *reference(text, form)]


@given(WILD | TAME, FORMS, st.booleans())
@settings(max_examples=500)
def test_records_by_column_are_those_of_the_csv_module(text: str, form: str, is_long: bool) -> None:
    records = reference(text, form)
    if is_long and '"' not in text:
        # Over the module's limit, so that all are read by our own pattern.
        long = "x" * 131_073
        text, records = f"{text}\n{long}", [*records, [long]]
    columns = unique_names(records[0] if records else ["a"])
    wanted: list[dict[str, object]] = []
    for record in records:
        row: dict[str, object] = {}
        row.update((name, None) for name in columns)
        row.update(zip(columns, record, strict=False))
        if len(record) > len(columns):
            row[extra_name(tuple(columns))] = record[len(columns) :]
        wanted.append(row)

    assert parse_csv(text, form) == records
    found = parse_csv_objects(text, form, columns)
    assert found == wanted
    assert [list(each) for each in found] == [list(each) for each in wanted]
    for number, name in enumerate(columns):
        assert parse_csv_column(text, form, number) == [each[name] for each in wanted]


@pytest.mark.parametrize("field", ["{:05}", '"{:05}"'])
def test_records_are_let_go_before_all_are_read(field: str) -> None:
    # To keep them until then takes twice the time, and more than this many times the text.
    text = "\n".join(",".join(field.format(number) for _ in range(20)) for number in range(3_000))
    tracemalloc.start()
    try:
        found = parse_csv_column(text, "csv", 19)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == [f"{number:05}" for number in range(3_000)]
    assert peak_bytes < 6.5 * len(text)


@given(st.lists(st.lists(FIELDS, min_size=1, max_size=4), min_size=1, max_size=4), ENDS, FORMS)
@settings(max_examples=40)
def test_each_1024th_record_is_where_the_index_says(
    records: list[list[str]], end: str, form: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=DELIMITERS[form], lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["h"])
    writer.writerows(records * 1_100)
    payload = out.getvalue().encode()

    found = scan(payload, form)

    assert found is not None
    assert found.count == 1_100 * len(records)
    assert len(found.starts) == -(-found.count // BLOCK_ROWS)
    for number, start in enumerate(found.starts):
        _, stop = csv_pattern(form).skip(payload, 1, start)
        record = records[number * BLOCK_ROWS % len(records)]
        assert reference(payload[start:stop].decode(), form) == [record]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("count", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 5_000])
def test_lines_without_quotes_are_records(end: str, count: int) -> None:
    lines = ["id,né", *(f"{number},x" for number in range(count))]
    payload = end.join([*lines[:3], "", *lines[3:]]).encode()

    for part in (1_000, 65_536):
        for tail in (b"", end.encode()):
            found = scan(payload + tail, part=part)
            assert found is not None
            assert found.count == count
            assert found.columns == ("id", "né")
            for number, start in enumerate(found.starts):
                assert payload[start:].lstrip().startswith(f"{number * BLOCK_ROWS},".encode())


@pytest.mark.parametrize("part", [1, 2, 3, 100])
def test_a_byte_order_mark_is_no_part_of_the_first_header(part: int) -> None:
    found = scan('\ufeff"id","name"\r\n1,2\r\n'.encode(), part=part)

    assert found is not None
    assert found.columns == ("id", "name")
    assert found.count == 1
    assert list(found.starts) == [16]


def test_a_quote_that_nothing_closes_takes_all_that_follows() -> None:
    found = scan(b'a,b\n1,2\n3,"4\n5,6\n' * 1)

    assert found is not None
    assert found.count == 2


def test_a_header_over_64_kib_makes_no_table() -> None:
    name = b"x" * 65_534

    assert scan(name + b",y") is not None
    assert scan(name + b",yy\n1,2\n") is None
    assert scan(name + b",yy") is None


@pytest.mark.parametrize(
    ("line", "is_table"),
    [
        (b"1,2,3", True),
        (b"1,2", False),
        (b"1,2,3,4", False),
        (b'1,"2,2",3', True),
        (b'1,"2"', False),
        (b'"1",2,3,4,5', False),
    ],
)
def test_a_guess_is_given_up_where_records_differ_in_length(line: bytes, is_table: bool) -> None:
    payload = b"a,b,c\n" + b"1,2,3\n" * 10 + line + b"\n"

    assert (scan(payload, part=66, guess=True) is not None) is is_table
    assert scan(payload) is not None


@pytest.mark.parametrize("field", ['"""\r"', '"""\n"', '"a""\n""b"', '"""\r""\r"'])
def test_quotes_in_the_last_field_are_not_its_end_where_no_line_end_follows(field: str) -> None:
    found = scan(f"a\n{field}".encode())

    assert found is not None
    assert found.count == 1 == len(reference(field, "csv"))


@given(st.lists(st.sampled_from(["", "a", "a_2", "b", "column_1", "extra"]), max_size=8))
def test_names_of_columns_are_unique_and_the_first_keeps_its_own(names: list[str]) -> None:
    unique = unique_names(names)

    assert len(set(unique)) == len(unique) == len(names)
    assert all(unique)
    for place, name in enumerate(names):
        if name and name not in names[:place]:
            assert unique[place] == name
    assert unique_names(unique) == unique


def test_a_record_is_an_object_by_column_whatever_its_length() -> None:
    assert as_object(["1", ""], ["a", "b"]) == {"a": "1", "b": ""}
    assert as_object(["1"], ["a", "b"]) == {"a": "1", "b": None}
    assert as_object(["1", "2", "3"], ["a", "extra"]) == {"a": "1", "extra": "2", "extra_3": ["3"]}


@given(
    st.lists(st.lists(st.text('a;,"\n é', max_size=5), min_size=2, max_size=2)),
    st.sampled_from(["\n", "\r\n"]),
    PARTS,
)
@settings(max_examples=300)
def test_semicolons_part_fields_where_the_first_two_records_say_so(
    rows: list[list[str]], end: str, part: int
) -> None:
    into = io.StringIO()
    csv.writer(into, delimiter=";", lineterminator=end).writerows([["a", "b"], ["1", "x"], *rows])
    payload = into.getvalue().encode()

    found = scan(payload, part=part)

    assert found is not None
    assert (found.format, found.columns, found.count) == ("csv;", ("a", "b"), 1 + len(rows))
    assert parse_csv(payload.decode(), found.format)[2:] == rows


@pytest.mark.parametrize("part", [1, 7, 10**6])
@pytest.mark.parametrize(
    ("payload", "columns", "count"),
    [
        (b"a;b\r\n1;2", ("a", "b"), 1),
        (b"\xef\xbb\xbf\n\na;b\n\n1,5;2\n", ("a", "b"), 1),
        (b'a;"b\nc"\n1;2\n', ("a", "b\nc"), 1),
        (b"a;b\r1;2\r3;4\r", ("a", "b"), 2),
        (b"a;b\n", ("a;b",), 0),
        (b"a;b\n1\n2;3\n", ("a;b",), 2),
        (b"a;b,c\n1;2,3\n", ("a;b", "c"), 1),
        (b"note\n1;2\n", ("note",), 1),
        (b"a;b\n" + b"x" * 70_000 + b";2\n", ("a;b",), 1),
        (b"a;b\n" + b"x" * 60_000 + b";2\n", ("a", "b"), 1),
    ],
)
def test_semicolons_part_no_fields_of_other_tables(
    payload: bytes, columns: tuple[str, ...], count: int, part: int
) -> None:
    found = scan(payload, "csv", part)

    assert found is not None
    assert (found.columns, found.count) == (columns, count)


def test_without_a_header_the_first_records_tell_as_well() -> None:
    semicolons = scan(b"1;2\n3;4,5\n", header=False)
    commas = scan(b"1;2,5\n3;4,5\n", header=False)

    assert semicolons is not None
    assert (semicolons.format, semicolons.count) == ("csv;", 2)
    assert commas is not None
    assert (commas.format, commas.count) == ("csv", 2)
