from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.content import Index, encode, estimate_tokens, plan_page
from coatcheck.content._index import BLOCK_CHARS
from coatcheck.errors import InvalidArgumentError
from coatcheck.records import Limits, Page

PIECES = st.text("ab\n\n\r\f\0é\u2028€😀\ud800\udfff", max_size=40)
LIMITS = Limits()
SMALL = Limits(page_chars=10, page_cap_chars=100, page_tokens=50)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """Texts up to several blocks long, out of a few repeated pieces."""
    parts = draw(st.lists(st.tuples(PIECES, st.integers(0, 5_000)), max_size=3))
    return "".join(piece * times for piece, times in parts)


class Payload:
    """A payload with its index, read as a bank reads it."""

    def __init__(self, value: object, content_type: str | None = "text/plain") -> None:
        encoding = encode(value, content_type)
        self.bytes = b"".join(encoding.chunks())
        self.index = Index.load(encoding.index.facts(), encoding.index.arrays())

    def read(
        self,
        offset: int = 0,
        limit: int | None = None,
        unit: str = "chars",
        limits: Limits = LIMITS,
    ) -> Page:
        plan = plan_page(self.index, unit=unit, offset=offset, limit=limit, limits=limits)
        bound_chars = limit if unit == "bytes" and limit else plan.longest_chars
        assert 0 <= plan.start_byte <= plan.stop_byte <= len(self.bytes)
        assert plan.stop_byte - plan.start_byte <= 4 * (2 * BLOCK_CHARS + bound_chars)
        return plan.cut(self.bytes[plan.start_byte : plan.stop_byte])


def line_starts(text: str) -> list[int]:
    return [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]


@given(long_texts(), st.data())
def test_a_window_of_characters_is_a_slice(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text) + 10))
    limit = data.draw(st.integers(1, 70_000))

    page = Payload(text).read(offset, limit)

    end = min(offset + limit, len(text))
    has_more = end < len(text)
    assert page == Page(
        content=text[offset : offset + limit],
        unit="chars",
        offset=offset,
        limit=limit,
        total=len(text),
        has_more=has_more,
        next_offset=end if has_more else None,
        offset_chars=min(offset, len(text)),
        next_offset_chars=end if has_more else None,
        line_number=text[:offset].count("\n") + 1,
    )


@given(st.integers(0, 3 * BLOCK_CHARS - 1), st.integers(1, 70_000))
def test_a_window_of_ascii_is_counted_from_the_nearer_border(offset: int, limit: int) -> None:
    index = Payload("abc\n" * (3 * BLOCK_CHARS // 4)).index

    plan = plan_page(index, offset=offset, limit=limit, limits=LIMITS)

    assert plan.stop_byte - plan.start_byte <= max(limit, (BLOCK_CHARS + limit) // 2)


@given(long_texts(), st.data())
def test_a_window_of_lines_is_those_lines(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    offset = data.draw(st.integers(0, len(lines) + 3))
    limit = data.draw(st.integers(1, len(lines) + 3))

    page = Payload(text).read(offset, limit, "lines", replace(LIMITS, page_cap_chars=10**6))

    has_more = offset + limit < len(lines)
    before = len("".join(lines[:offset]))
    content = "".join(lines[offset : offset + limit])
    assert page == Page(
        content=content,
        unit="lines",
        offset=offset,
        limit=limit,
        total=len(lines),
        has_more=has_more,
        next_offset=offset + limit if has_more else None,
        offset_chars=before,
        next_offset_chars=before + len(content) if has_more else None,
        line_number=(min(offset, len(lines)) if offset < len(lines) else text.count("\n")) + 1,
    )


@settings(max_examples=40)
@given(long_texts(), st.sampled_from([None, 1, 7, 1_000, 70_000]), st.sampled_from([LIMITS, SMALL]))
def test_pages_joined_give_the_text(text: str, limit: int | None, limits: Limits) -> None:
    text = text[: 3_000 if limit in {1, 7} or limits is SMALL else None]
    payload = Payload(text)

    for unit in ("chars", "lines"):
        joined: list[Any] = []
        page = payload.read(0, limit, unit, limits)
        joined.append(page.content)
        while page.has_more:
            before = sum(map(len, joined))
            assert page.content
            assert page.next_offset_chars == before
            if page.next_offset is None:
                page = payload.read(before, limit, "chars", limits)
            else:
                page = payload.read(page.next_offset, limit, page.unit, limits)
            assert page.offset_chars == before
            assert page.line_number == text[:before].count("\n") + 1
            joined.append(page.content)
        assert "".join(joined) == text


@given(
    st.binary(max_size=300), st.integers(1, 50) | st.none(), st.sampled_from(["text/plain", None])
)
def test_pages_of_bytes_joined_give_the_payload(
    payload: bytes, limit: int | None, content_type: str | None
) -> None:
    kept = Payload(payload, content_type)

    joined: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = kept.read(offset, limit, "bytes", SMALL)
        assert page.total == len(payload)
        assert page.has_more == (page.next_offset is not None)
        assert page.offset_chars is page.next_offset_chars is page.line_number is None
        joined.append(page.content)
        offset = page.next_offset

    assert b"".join(joined) == payload


def test_a_default_page_is_bounded_in_tokens_too() -> None:
    text = "語" * 200
    limits = Limits(page_chars=100, page_tokens=20)

    page = Payload(text).read(limits=limits)

    assert 0 < len(page.content) < 100
    assert estimate_tokens(str(page.content)) <= 20
    assert page.limit == 100
    assert page.next_offset == page.next_offset_chars == len(page.content)


def test_a_page_that_was_asked_for_is_not_bounded_in_tokens() -> None:
    page = Payload("語" * 200).read(0, 150, limits=Limits(page_tokens=1))

    assert len(page.content) == 150


@pytest.mark.parametrize(
    ("unit", "asked", "applied"),
    [
        ("chars", None, 10),
        ("chars", 100, 100),
        ("chars", 101, 100),
        ("chars", 10**30, 100),
        ("lines", None, 10),
        ("lines", 10**30, 100),
        ("bytes", None, 10),
        ("bytes", 400, 400),
        ("bytes", 401, 400),
        ("bytes", 10**30, 400),
    ],
)
def test_a_limit_is_clamped_and_the_applied_one_is_told(
    unit: str, asked: int | None, applied: int
) -> None:
    page = Payload("x" * 1_000).read(0, asked, unit, SMALL)

    assert page.limit == applied
    assert page.has_more
    assert len(page.content) == min(applied, 100) if unit != "bytes" else applied


@pytest.mark.parametrize("unit", ["chars", "lines", "bytes"])
@pytest.mark.parametrize("text", ["", "ab\ncd", "é\n" * 100_000])
@pytest.mark.parametrize("beyond", [0, 1, 10**30])
def test_from_the_end_on_a_page_is_empty(unit: str, text: str, beyond: int) -> None:
    payload = Payload(text)
    lines = len(text.split("\n")) - (text == "" or text.endswith("\n"))
    total = {"chars": len(text), "lines": lines, "bytes": len(payload.bytes)}[unit]

    page = payload.read(total + beyond, None, unit)

    assert page.content == (b"" if unit == "bytes" else "")
    assert page.offset == total + beyond
    assert page.total == total
    assert not page.has_more
    assert page.next_offset is page.next_offset_chars is None
    assert page.offset_chars == (None if unit == "bytes" else len(text))


def test_a_line_longer_than_a_page_goes_on_by_characters() -> None:
    text = "short\n" + "x" * 250 + "\nlast"
    payload = Payload(text)

    page = payload.read(1, 5, "lines", SMALL)

    assert page.content == "x" * 100
    assert page.has_more
    assert page.next_offset is None
    assert page.next_offset_chars == 106
    assert page.line_number == 2


def test_a_page_of_lines_is_cut_back_to_the_end_of_a_line() -> None:
    text = "a" * 59 + "\n" + "b" * 59 + "\n" + "c"

    page = Payload(text).read(0, 5, "lines", SMALL)

    assert page.content == "a" * 59 + "\n"
    assert page.next_offset == 1
    assert page.next_offset_chars == 60


def test_a_line_as_long_as_a_page_is_whole() -> None:
    payload = Payload("é" * 99 + "\n" + "é" * 100 + "\n")

    assert payload.read(0, 5, "lines", SMALL).next_offset == 1
    assert payload.read(1, 5, "lines", SMALL).next_offset is None
    assert payload.read(1, 5, "lines", SMALL).next_offset_chars == 200


def test_only_a_newline_ends_a_line() -> None:
    page = Payload("a\rb\fc\u2028d\x85e\nf").read(0, 1, "lines")

    assert page.content == "a\rb\fc\u2028d\x85e\n"
    assert page.total == 2


@pytest.mark.parametrize("text", ["é" * 1_000_000, "x" * 1_000_000, "é\n" * 500_000])
@pytest.mark.parametrize("unit", ["chars", "lines"])
def test_a_page_fetches_no_more_of_a_longer_text(text: str, unit: str) -> None:
    fetched: list[int] = []
    for length in (400_000, 1_000_000):
        index = Payload(text[:length]).index
        plan = plan_page(index, unit=unit, offset=0, limit=1_000, limits=LIMITS)
        fetched.append(plan.stop_byte - plan.start_byte)

    assert fetched[0] == fetched[1]


@pytest.mark.parametrize("offset", [-1, True, 1.0, "1", None, -(10**5_000)], ids=type)
def test_an_offset_that_is_no_count_is_refused(offset: object) -> None:
    with pytest.raises(InvalidArgumentError, match="offset must be"):
        Payload("x").read(cast("int", offset))


@pytest.mark.parametrize("limit", [0, -1, True, 1.0, "1"])
def test_a_limit_that_is_no_positive_count_is_refused(limit: object) -> None:
    with pytest.raises(InvalidArgumentError, match="limit must be"):
        Payload("x").read(0, cast("int", limit))


@pytest.mark.parametrize(
    ("payload", "unit", "units"),
    [
        ("x", "rows", "chars, lines, bytes"),
        ("x", "words", "chars, lines, bytes"),
        (b"\xff", "rows", "units: bytes"),
    ],
)
def test_a_unit_the_artifact_lacks_is_refused_naming_those_it_has(
    payload: object, unit: str, units: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Payload(payload).read(0, 1, unit)

    assert unit in str(caught.value)
    assert units in caught.value.hint


@pytest.mark.parametrize("unit", ["chars", "lines"])
def test_text_of_a_binary_payload_is_a_value_error(unit: str) -> None:
    with pytest.raises(ValueError, match="binary"):
        Payload(b"\xff").read(0, 1, unit)


@pytest.mark.parametrize("unit", ["chars", "lines"])
@pytest.mark.parametrize("offset", [100, 600, 70_000, 130_000])
def test_text_that_is_not_what_was_indexed_is_told(unit: str, offset: int) -> None:
    payload = Payload("é\n" * 2 * BLOCK_CHARS)
    plan = plan_page(payload.index, unit=unit, offset=offset, limit=50, limits=LIMITS)
    size = plan.stop_byte - plan.start_byte

    for piece in (b"", b"\x80" * size, b"\xff" * size):
        with pytest.raises(ValueError, match=r"indexed|decode"):
            plan.cut(piece)


@pytest.mark.parametrize("offset", [40_000, 65_000, 100_000])
def test_a_window_of_other_characters_than_were_indexed_is_told(offset: int) -> None:
    payload = Payload("a" * 3 * BLOCK_CHARS)
    plan = plan_page(payload.index, offset=offset, limit=10, limits=LIMITS)

    with pytest.raises(ValueError, match="not what was indexed"):
        plan.cut("é".encode() * ((plan.stop_byte - plan.start_byte) // 2))


def test_bytes_that_lost_their_tail_give_a_shorter_page() -> None:
    plan = plan_page(Payload(b"\xff" * 1_000).index, unit="bytes", offset=100, limits=LIMITS)

    assert plan.cut(b"").content == b""
