import csv
import io
import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content import Index, encode, estimate_tokens, plan_page
from coatcheck.errors import InvalidArgumentError
from coatcheck.records import Limits, Page

LIMITS = Limits()
SMALL = Limits(page_chars=40, page_cap_chars=100, page_tokens=30)
FIELDS = st.text('ab,\t"\n\r é', max_size=5)
VALUES = st.recursive(
    st.none() | st.integers() | st.text('a"\\{}[],\n é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a]", max_size=2), inner),
    max_leaves=6,
)


class Payload:
    """A payload with its index, read as a bank reads it."""

    def __init__(self, value: object, content_type: str | None = None) -> None:
        encoding = encode(value, content_type)
        self.bytes = b"".join(encoding.chunks())
        self.index = Index.load(encoding.index.facts(), encoding.index.arrays())

    def read(self, offset: int = 0, limit: int | None = None, limits: Limits = LIMITS) -> Page:
        plan = plan_page(self.index, unit="rows", offset=offset, limit=limit, limits=limits)
        assert 0 <= plan.start_byte <= plan.stop_byte <= len(self.bytes)
        return plan.cut(self.bytes[plan.start_byte : plan.stop_byte])

    def rows(self, offset: int = 0, limit: int | None = None, limits: Limits = LIMITS) -> list[Any]:
        """All rows from `offset` on, page by page."""
        rows: list[Any] = []
        page = self.read(offset, limit, limits)
        rows += loaded(page)
        while page.has_more:
            next_offset = offset + len(rows)
            assert page.next_offset == next_offset
            page = self.read(next_offset, limit, limits)
            assert loaded(page)
            rows += loaded(page)
        assert page.next_offset is None
        return rows


def loaded(page: Page) -> list[Any]:
    return cast("list[Any]", json.loads(page.content))


@given(
    st.lists(VALUES, min_size=1, max_size=6),
    st.integers(1, 500),
    st.sampled_from([None, 1, 300, 2_000]),
    st.sampled_from(["value", "text", "lines"]),
    st.data(),
)
@settings(max_examples=40)
def test_pages_of_json_rows_joined_are_the_rows(
    rows: list[object], times: int, limit: int | None, form: str, data: st.DataObject
) -> None:
    rows = rows * (2 if limit == 1 else times)
    offset = data.draw(st.integers(0, len(rows)))
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    lines = "\n".join(json.dumps(row) for row in rows)
    payload = {
        "value": lambda: Payload(rows),
        "text": lambda: Payload(text, "application/json"),
        "lines": lambda: Payload(lines, "application/x-ndjson"),
    }[form]()

    assert payload.index.row_count == len(rows)
    assert payload.rows(offset, limit) == rows[offset:]


@given(
    st.lists(st.lists(FIELDS, min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(1, 500),
    st.sampled_from([None, 1, 300, 2_000]),
    st.sampled_from([("text/csv", ","), ("text/tsv", "\t")]),
    st.data(),
)
@settings(max_examples=40)
def test_pages_of_csv_rows_joined_are_those_of_a_dict_reader(
    records: list[list[str]],
    times: int,
    limit: int | None,
    kind: tuple[str, str],
    data: st.DataObject,
) -> None:
    out = io.StringIO()
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(out, delimiter=kind[1], lineterminator=end)
    writer.writerow(["x", "y", "z"])
    writer.writerows(records * (2 if limit == 1 else times))
    text = out.getvalue()
    lines = io.StringIO(text, newline="")
    expected = list(csv.DictReader(lines, restkey="extra", delimiter=kind[1]))
    offset = data.draw(st.integers(0, len(expected)))

    payload = Payload(text, kind[0])

    assert payload.index.row_count == len(expected)
    assert payload.rows(offset, limit) == expected[offset:]


def test_rows_are_shown_as_they_were_written() -> None:
    text = '[ 12345678901234567890123, 1.0 ,\n{"a":1,"a":2},"\ud800" ]'

    assert Payload(text, "application/json").read().content == (
        '[12345678901234567890123,1.0,{"a":1,"a":2},"\ud800"]'
    )


def test_a_page_tells_where_it_stands() -> None:
    page = Payload("a,b\r\n1,2\r\n3\r\n4,5,6", "text/csv").read(1, 2)

    assert page == Page(
        content='[{"a":"3","b":null},{"a":"4","b":"5","extra":["6"]}]',
        unit="rows",
        offset=1,
        limit=2,
        total=3,
        has_more=False,
        next_offset=None,
        offset_chars=None,
        next_offset_chars=None,
        line_number=None,
    )


@pytest.mark.parametrize("offset", [3, 4, 10**30])
def test_from_the_end_on_a_page_of_rows_is_empty(offset: int) -> None:
    page = Payload([1, 2, 3]).read(offset)

    assert page.content == "[]"
    assert page.total == 3
    assert not page.has_more


@pytest.mark.parametrize("value", [[], "a,b\n"])
def test_a_table_without_rows_has_an_empty_page(value: object) -> None:
    payload = Payload(value, "text/csv" if isinstance(value, str) else None)

    assert payload.read().content == "[]"
    assert payload.read().total == 0


@given(st.lists(st.text("aé語", max_size=30), min_size=1, max_size=30))
def test_a_page_of_rows_is_within_its_bounds(rows: list[str]) -> None:
    payload = Payload(rows)

    for limit in (None, 20):
        page = payload.read(0, limit, SMALL)
        assert len(page.content) <= (40 if limit is None else 100)
        assert limit or estimate_tokens(str(page.content)) <= 30
    wide = Limits(page_chars=40, page_cap_chars=100, page_tokens=1_000)
    assert payload.rows(limits=wide) == rows


@pytest.mark.parametrize("chars", [36, 37])
def test_a_row_as_long_as_a_page_is_whole_and_a_longer_one_is_cut(chars: int) -> None:
    payload = Payload(["x" * chars, "y"])

    page = payload.read(limits=SMALL)

    assert page.has_more
    assert page.next_offset == 1
    if chars == 36:
        assert loaded(page) == ["x" * 36]
    else:
        head = json.loads(page.content)
        assert isinstance(head, str)
        assert ('"' + "x" * 37 + '"').startswith(head)
        assert 30 <= len(page.content) <= 40
    assert payload.read(0, 1, SMALL).content == f'["{"x" * chars}"]'


@pytest.mark.parametrize("rows", [1, 2_000])
@pytest.mark.parametrize("content_type", ["application/json", "application/x-ndjson", "text/csv"])
def test_the_last_row_too_is_cut_where_it_is_too_long(rows: int, content_type: str) -> None:
    long = "x" * 10_000
    texts = {
        "application/json": f"[{'1,' * (rows - 1)}{json.dumps(long)}]",
        "application/x-ndjson": "1\n" * (rows - 1) + json.dumps(long),
        "text/csv": "h\n" + "1\n" * (rows - 1) + long,
    }

    page = Payload(texts[content_type], content_type).read(rows - 1, 1, SMALL)

    assert isinstance(json.loads(page.content), str)
    assert len(page.content) <= 100
    assert page.has_more
    assert page.next_offset == rows


def test_a_row_over_the_bound_in_tokens_is_cut_too() -> None:
    payload = Payload(["語" * 30, "y"])

    page = payload.read(limits=Limits(page_tokens=10))

    assert isinstance(json.loads(page.content), str)
    assert estimate_tokens(str(page.content)) <= 10
    assert payload.read(0, 1, Limits(page_tokens=10)).content == f'["{"語" * 30}"]'


def test_a_page_of_one_character_still_gets_on() -> None:
    tiny = Limits(page_chars=1, page_cap_chars=1, page_tokens=1)

    page = Payload(["\x00" * 5, 2]).read(limits=tiny)

    assert page.content == '"\\""'
    assert page.next_offset == 1


@pytest.mark.parametrize("count", [3_000, 100_000])
def test_a_page_fetches_one_block_and_what_a_page_can_hold(count: int) -> None:
    index = Payload([{"id": number} for number in range(1_000_000, 1_000_000 + count)]).index

    plan = plan_page(index, unit="rows", offset=2_000, limit=10**9, limits=SMALL)
    short = plan_page(index, unit="rows", offset=1_500, limit=1, limits=LIMITS)

    assert plan.limit == 100
    assert plan.stop_byte - plan.start_byte == 1_024 * 15 + 400
    assert short.stop_byte - short.start_byte == 1_024 * 15


@pytest.mark.parametrize("count", [10, 3_000])
def test_a_payload_that_lost_its_tail_gives_an_empty_page(count: int) -> None:
    plan = plan_page(Payload([1] * count).index, unit="rows", offset=5, limit=3, limits=LIMITS)

    page = plan.cut(b"")

    assert page.content == "[]"
    assert page.next_offset is None


@pytest.mark.parametrize("rows", [5, 40, 2_000])
@pytest.mark.parametrize("end", ['"open', '"open\n', '1,"open\r\n'])
def test_a_quote_that_nothing_closes_reads_alike_in_every_window(rows: int, end: str) -> None:
    text = "a,b\n" + "1,2\n" * (rows - 1) + end
    last = list(csv.DictReader(io.StringIO(text, newline="")))[-1]
    payload = Payload(text, "text/csv")

    for offset in (rows - 1, rows - 2, max(0, rows - 20), 0):
        assert payload.rows(offset)[-1] == last


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "text/csv"])
def test_lines_that_are_no_rows_any_more_are_told(content_type: str) -> None:
    payload = Payload("1\n" * 100, content_type)
    plan = plan_page(payload.index, unit="rows", offset=20, limit=50, limits=LIMITS)
    piece = payload.bytes[plan.start_byte : plan.stop_byte]

    assert len(loaded(plan.cut(piece))) == 50
    with pytest.raises(ValueError, match="not what was indexed"):
        plan.cut(piece[:60] + b"\n11\n" + piece[64:])


def test_rows_are_named_among_the_units_of_a_table_only() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        plan_page(Payload([1]).index, unit="words", limits=LIMITS)
    assert "rows" in caught.value.hint

    with pytest.raises(InvalidArgumentError, match="no rows"):
        Payload({"a": 1}).read()


def test_a_lone_surrogate_in_a_table_is_shown_as_it_is() -> None:
    page = Payload("a,b\n1,x\ud800\n2,y\n", "text/csv").read()

    assert page.content == '[{"a":"1","b":"x\ud800"},{"a":"2","b":"y"}]'
