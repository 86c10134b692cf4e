import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content import encode
from coatcheck.content._encoding import Encoding
from coatcheck.content._table import format_of, read_table, sniffed_type

CSV = "id,name\n1,x\n2,y\n3,z\n"
TSV = CSV.replace(",", "\t")
NDJSON = '{"a":1}\n{"b":2}\n[3]\n'

FIELDS = st.text('ab,\t"\n\r é', max_size=5)


def encoded(value: object, content_type: str | None = None) -> Encoding:
    encoding = encode(value, content_type)
    for _ in encoding.chunks():
        pass
    return encoding


@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        (CSV, "text/csv"),
        ("\ufeff" + CSV, "text/csv"),
        (CSV.replace("\n", "\r\n"), "text/csv"),
        (CSV.rstrip(), "text/csv"),
        ("Größe,Amount ($)\n1,\n,2\n3,3\n", "text/csv"),
        ('a,b\n"1,1","2\n2"\n3,4\n5,6', "text/csv"),
        (CSV * 2_000, "text/csv"),
        ("id;price\n1;1,5\n2;2,5\n3;3\n", "text/csv"),
        (TSV, "text/tab-separated-values"),
        (NDJSON, "application/x-ndjson"),
        (NDJSON.replace("\n", "\n\n"), "application/x-ndjson"),
        (NDJSON * 2_000, "application/x-ndjson"),
        ("id,name\n1,x\n2,y\n", None),
        ("id\n1\n2\n3\n4\n", None),
        ("id,id\n1,2\n3,4\n5,6\n", None),
        ("id,\n1,2\n3,4\n5,6\n", None),
        ("1,2\n3,4\n5,6\n7,8\n", None),
        ("a, b\nc, d\ne, f\ng, h\n", None),
        ("id,name\n1,x\n2\n3,z\n", None),
        ("id;name\n1;x\n2\n3;z\n", None),
        ("int a; int b;\nint c; int d;\n" * 3, None),
        ("Dear all,\nthe server, as it is,\nwas down,\nagain,\n", None),
        ("2024-01-01 12:00:00,123 INFO up\n" * 50, None),
        ("INFO: a,b\n" * 50, None),
        ("12\t3\tsrc/a.py\n" * 50, None),
        ('{"a":1}\n{"a":2}\n', None),
        ('{"a":1}\n{"a":2}\nTraceback\n', None),
        ("1\n2\n3\n4\n", None),
        ("{\n}\n{\n}\n", None),
        ('{"a":"' + "x" * 20_000 + '"}\n' * 3, None),
        ("", None),
        ("\n", None),
        ("plain text", None),
    ],
)
def test_text_is_a_table_only_where_its_first_lines_are_plainly_one(
    text: str, content_type: str | None
) -> None:
    assert sniffed_type(text) == content_type
    assert encoded(text).content_type == (content_type or "text/plain")


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("id,name\n" + "1,x\n" * 10_000, "an ordinary line\n" * 100),
        ("id,name\n" + "1,x\n" * 10_000, "one, two, three\n" * 100),
        ("id,name\n" + "1,x\n" * 10_000, "exit code 1"),
        ("id,name\n" + "1,x\n" * 10_000, 'said "1,2,3", then left'),
        ('{"level":"info"}\n' * 10_000, "Traceback (most recent call last):\n"),
    ],
)
def test_a_log_that_begins_as_a_table_is_plain_text(head: str, tail: str) -> None:
    encoding = encode(head + tail)
    assert encoding.content_type != "text/plain"

    for _ in encoding.chunks():
        pass

    assert encoding.content_type == "text/plain"
    assert encoding.extension == "txt"
    assert encoding.index.row_count is None
    assert encoded(head).index.row_count == 10_000


@pytest.mark.parametrize(
    ("text", "content_type", "count"),
    [
        (CSV, "text/plain", None),
        (CSV, "text/csv", 3),
        (CSV, "Text/CSV; charset=utf-8", 3),
        (CSV, "text/csv; header=absent", 4),
        (CSV, "text/tab-separated-values", 3),
        ("just\none column\n", "text/csv", 1),
        ("a,b\n1\n1,2,3\n", "text/csv", 2),
        ("", "text/csv", 0),
        ("a,b", "text/csv", 0),
        (NDJSON, "application/jsonl", 3),
        (NDJSON, "application/x-ndjson", 3),
        ("1", "application/x-ndjson", 1),
    ],
)
def test_a_given_content_type_decides(text: str, content_type: str, count: int | None) -> None:
    of_text = encoded(text, content_type)
    of_bytes = encoded(text.encode(), content_type)

    assert of_text.content_type == content_type
    assert of_text.index.row_count == count
    assert of_text.index == of_bytes.index


def test_a_second_pass_finds_the_same_rows() -> None:
    encoding = encoded(CSV)
    index = encoding.index

    assert encoding.whole() == CSV.encode()
    assert encoding.index == index
    assert encoding.content_type == "text/csv"


@pytest.mark.parametrize(
    ("content_type", "form"),
    [
        ("application/json", "json"),
        ("application/geo+json; x=y", "json"),
        ("TEXT/TSV", "tsv"),
        ("text/html", None),
        ("application/octet-stream", None),
    ],
)
def test_a_content_type_names_a_format(content_type: str, form: str | None) -> None:
    assert format_of(content_type) == form


@given(
    st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=12),
    st.sampled_from([("text/csv", ","), ("text/tsv", "\t")]),
)
@settings(max_examples=60)
def test_columns_are_those_of_a_dict_reader(
    records: list[list[str]], kind: tuple[str, str]
) -> None:
    content_type, delimiter = kind
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b", "c"])
    writer.writerows(records)
    text = out.getvalue()

    table = read_table(text, content_type)

    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = list(reader)
    assert table is not None
    assert table.row_count == table.read_count == len(rows)
    assert table.columns is not None
    assert {name: list(values) for name, values in table.columns.items()} == {
        name: [row[name] for row in rows] for name in ("a", "b", "c")
    }


def test_of_many_rows_whole_blocks_are_read_evenly() -> None:
    count = 100_001
    text = "id,x\n" + "".join(f"{number},y\n" for number in range(count))

    table = read_table(text, "text/csv")
    exact = read_table(text, "text/csv", exact_rows=count)

    assert table is not None
    assert table.columns is not None
    assert table.row_count == count
    numbers = [int(value or "") for value in table.columns["id"]]
    assert numbers == sorted(set(numbers))
    assert table.read_count == len(numbers) == 18 * 1_024 + count % 1_024
    assert numbers[:2] == [0, 1]
    assert numbers[-1] == count - 1
    assert exact is not None
    assert exact.read_count == count


def test_rows_of_ndjson_are_values() -> None:
    table = read_table(NDJSON * 3, "application/x-ndjson", exact_rows=3, sampled_rows=1)

    assert table is not None
    assert table.rows == [json.loads(line) for line in NDJSON.split()] * 3
    assert table.columns is None


@pytest.mark.parametrize(
    ("text", "content_type"),
    [("x", "text/plain"), ("[1]", "application/json"), ("x\n", "application/x-ndjson")],
)
def test_other_text_is_no_table(text: str, content_type: str) -> None:
    assert read_table(text, content_type) is None


def test_a_header_alone_has_columns_without_values() -> None:
    table = read_table("a,b\n", "text/csv")

    assert table is not None
    assert table.columns == {"a": (), "b": ()}
    assert table.row_count == 0
