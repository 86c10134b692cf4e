"""Reports on windows: pages joined are the payload, and each says what is left and where."""

import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Bank, BlockingBank, Limits, Page
from coatcheck.stores import MemoryStore
from coatcheck.tools import retrieval_tools


async def pages(bank: Bank, pointer: str, limit: int | None, unit: str) -> AsyncIterator[Page]:
    """Yield page after page, going on where the one before says; by characters within a line."""
    offset: int | None = 0
    while offset is not None:
        page = await bank.read(pointer, offset, limit, unit)
        yield page
        if page.has_more and page.next_offset is None:
            assert page.next_offset_chars is not None
            unit, limit, offset = "chars", None, page.next_offset_chars
        else:
            offset = page.next_offset


async def test_br_019_pages_of_lines_pass_no_line_after_a_long_one(bank: Bank) -> None:
    text = "\n".join(["line1", "x" * 15_000, "important instruction", "line4"])
    pointer = (await bank.put(text)).pointer

    read = [page async for page in pages(bank, pointer, 2, "lines")]

    assert "".join(str(page.content) for page in read) == text
    assert [page.line_number for page in read] == [1, 3]
    third = await bank.read(pointer, offset=2, limit=1, unit="lines")
    assert third.content == "important instruction\n"
    assert third.line_number == 3


@pytest.mark.parametrize("length", [49_999, 50_000, 50_001, 199_999, 200_000, 200_001, 450_000])
async def test_br_019_a_line_longer_than_a_page_is_passed_by_reading_on_in_characters(
    bank: Bank, length: int
) -> None:
    text = "line1\n" + "é" * length + "\nimportant instruction\nline4\n"
    pointer = (await bank.put(text)).pointer

    for limit in (None, 1, 2):
        read = [page async for page in pages(bank, pointer, limit, "lines")]
        assert "".join(str(page.content) for page in read) == text
        assert all(len(page.content) <= 200_000 for page in read)


async def test_br_020_one_line_of_megabytes_is_bounded_and_read_by_characters(bank: Bank) -> None:
    text = '{"rows":[' + '{"id":1,"name":"żółć"},' * 130_000
    text += '{"pad":"' + "x" * (3_000_000 - len(text) - 12) + '"}]}'
    pointer = (await bank.put(text)).pointer

    line = await bank.read(pointer, 0, 1, "lines")
    window = await bank.read(pointer, 1_500_000, 100)

    assert len(text) == 3_000_000
    assert "\n" not in text
    assert line.has_more
    assert len(line.content) <= 200_000
    assert text.startswith(str(line.content))
    assert line.next_offset_chars == len(line.content)
    assert window.content == text[1_500_000:1_500_100]
    assert (window.has_more, window.next_offset) == (True, 1_500_100)


async def test_br_020_the_model_s_reader_gives_a_bounded_window_of_one_long_line(
    bank: Bank,
) -> None:
    text = "漢" * 1_000_000
    pointer = (await bank.put(text)).pointer
    (reader,) = retrieval_tools(bank)

    call = {"artifactId": pointer, "offset": 500_000, "limit": 100}
    assert json.loads(await reader.call(call))["content"] == "漢" * 100
    whole = json.loads(await reader.call({"artifactId": pointer}))
    assert 0 < len(whole["content"]) <= 50_000
    assert whole["nextOffset"] == len(whole["content"])


async def test_br_022_a_blank_line_at_the_end_of_a_page_is_on_it(bank: Bank) -> None:
    pointer = (await bank.put("alpha\n\nomega\n")).pointer

    first = await bank.read(pointer, 0, 2, "lines")
    second = await bank.read(pointer, 2, 1, "lines")

    assert first.content == "alpha\n\n"
    assert (first.has_more, first.next_offset) == (True, 2)
    assert second.content == "omega\n"
    assert (second.has_more, second.next_offset) == (False, None)


@settings(max_examples=120)
@given(
    st.lists(st.sampled_from(["\n", "a", "bc\r", "\r\n", "\f", "\u2028", "é", "😀" * 9, ""])),
    st.integers(1, 4),
    st.sampled_from(["lines", "chars"]),
)
async def test_pages_of_any_unit_joined_are_the_payload(
    parts: list[str], limit: int, unit: str
) -> None:
    text = "".join(parts)
    bank = Bank(MemoryStore(), limits=Limits(page_chars=7, page_cap_chars=13))
    pointer = (await bank.put(text)).pointer

    for asked in (limit, None):
        read = [page async for page in pages(bank, pointer, asked, unit)]
        assert "".join(str(page.content) for page in read) == text
        for page in read:
            assert page.offset_chars is not None
            assert page.line_number == text.count("\n", 0, page.offset_chars) + 1


SEPARATORS = ["\r", "\f", "\u2028", "\u2029", "\v", "\x1c", "\x85", "\r\r"]


@pytest.mark.parametrize("separator", SEPARATORS)
async def test_br_023_search_and_read_count_the_same_lines(bank: Bank, separator: str) -> None:
    text = f"alpha\nbeta{separator}carriage\ngamma NEEDLE\n"
    pointer = (await bank.put(text)).pointer

    (match,) = (await bank.search(pointer, "needle")).matches
    third = await bank.read(pointer, match.line_number - 1, 1, "lines")

    assert match.line_number == 3
    assert third.content == "gamma NEEDLE\n"
    assert third.total == 3
    (second,) = (await bank.search(pointer, "carriage")).matches
    assert second.line_number == 2
    assert (await bank.read(pointer, match.offset, 6)).line_number == 3


@pytest.mark.parametrize("lines", [1, 3, 9_000, 30_000])
async def test_br_023_search_and_read_agree_on_crlf_and_in_long_payloads(
    bank: Bank, lines: int
) -> None:
    text = "żółć\r\n" * (lines - 1) + "here NEEDLE"
    pointer = (await bank.put(text)).pointer

    (match,) = (await bank.search(pointer, "needle")).matches

    assert match.line_number == lines
    page = await bank.read(pointer, lines - 1, 5, "lines")
    assert page.content == "here NEEDLE"
    assert (page.line_number, page.total, page.has_more) == (lines, lines, False)


async def test_br_024_exactly_one_page_has_no_more(bank: Bank) -> None:
    pointer = (await bank.put("x" * 100)).pointer
    (reader,) = retrieval_tools(bank)

    async def read(**window: int) -> dict[str, object]:
        reply: dict[str, object] = json.loads(await reader.call({"artifactId": pointer, **window}))
        return reply

    for limit in (100, 101, 200_000, 200_001):
        whole = await read(limit=limit)
        assert (whole["content"], whole["hasMore"]) == ("x" * 100, False)
        assert "nextOffset" not in whole
    first = await read(limit=99)
    assert (first["hasMore"], first["nextOffset"]) == (True, 99)
    last = await read(offset=99, limit=99)
    assert (last["content"], last["hasMore"]) == ("x", False)
    for offset in (100, 101, 10**12):
        behind = await read(offset=offset)
        assert (behind["content"], behind["hasMore"]) == ("", False)
        assert behind["totalSize"] == 100


@pytest.mark.parametrize("length", [0, 1, 65_535, 65_536, 65_537, 131_072])
@pytest.mark.parametrize("char", ["x", "é", "\n"])
async def test_br_024_has_more_is_true_only_where_more_is_left(
    bank: Bank, length: int, char: str
) -> None:
    pointer = (await bank.put(char * length)).pointer

    for unit in ("chars", "lines") if char == "\n" else ("chars",):
        for offset in {max(0, length - 1), length}:
            page = await bank.read(pointer, offset, 1, unit)
            assert not page.has_more
            assert page.next_offset is None
        if length > 1:
            page = await bank.read(pointer, length - 2, 1, unit)
            assert (page.has_more, page.next_offset) == (True, length - 1)


@pytest.mark.parametrize("length", [49_999, 50_000, 50_001])
async def test_br_024_the_default_page_has_no_more_when_all_is_on_it(
    bank: Bank, length: int
) -> None:
    pointer = (await bank.put("ab cd " * 8_334)).pointer
    shorter = (await bank.put(("ab cd " * 8_334)[:length])).pointer

    page = await bank.read(shorter)
    assert len(page.content) == min(length, 50_000)
    assert page.has_more == (length > 50_000)
    assert (await bank.read(pointer, 50_000)).content == ("ab cd " * 8_334)[50_000:]


LINES = "".join(f"L{number}\n" for number in range(1, 101))


async def test_br_026_the_reply_states_the_range_it_holds(bank: Bank) -> None:
    pointer = (await bank.put(LINES)).pointer

    page = await bank.read(pointer, 0, 40, "lines")

    assert str(page.content).splitlines() == [f"L{number}" for number in range(1, 41)]
    assert (page.line_number, page.offset, page.next_offset, page.total) == (1, 0, 40, 100)
    assert page.offset_chars == 0
    assert page.next_offset_chars == LINES.index("L41")
    following = await bank.read(pointer, 40, 1, "lines")
    assert (following.content, following.line_number) == ("L41\n", 41)
    assert (await bank.read(pointer, offset=0, limit=2)).content == "L1"


async def test_br_026_the_model_is_told_how_offsets_and_lines_count(bank: Bank) -> None:
    (reader,) = retrieval_tools(bank)
    pointer = (await bank.put(LINES)).pointer

    assert "characters from 0" in reader.description
    assert "lines count from 1" in reader.description
    reply = json.loads(await reader.call({"artifactId": pointer, "offset": 0, "limit": 3}))
    assert (reply["content"], reply["offset"], reply["limit"]) == ("L1\n", 0, 3)
    found = json.loads(await reader.call({"artifactId": pointer, "search": "l41"}))
    assert (found["matches"][0]["line"], found["matches"][0]["offset"]) == (41, LINES.index("L41"))


async def test_br_027_a_page_says_how_much_is_left_and_where_to_go_on(bank: Bank) -> None:
    text = "".join(f"entry {number}\n" for number in range(1, 501))
    pointer = (await bank.put(text)).pointer

    page = await bank.read(pointer, 0, 100, "lines")

    assert str(page.content).count("\n") == 100
    assert (page.total, page.next_offset) == (500, 100)
    assert page.next_offset is not None
    assert page.total - page.next_offset == 400
    rest = await bank.read(pointer, page.next_offset, 400, "lines")
    assert str(page.content) + str(rest.content) == text
    assert not rest.has_more


async def test_br_027_a_model_is_told_what_is_left_and_can_go_on_in_any_unit(bank: Bank) -> None:
    text = "".join(f"entry {number}\n" for number in range(1, 501))
    pointer = (await bank.put(text)).pointer
    (reader,) = retrieval_tools(bank)

    first = json.loads(await reader.call({"artifactId": pointer, "limit": 100}))
    rest = json.loads(await reader.call({"artifactId": pointer, "offset": first["nextOffset"]}))

    assert first["totalSize"] - first["nextOffset"] == len(rest["content"]) == len(text) - 100
    assert first["content"] + rest["content"] == text


def test_pages_read_without_an_event_loop_are_the_same() -> None:
    with BlockingBank("memory:") as bank:
        pointer = bank.put("alpha\n\nomega\n").pointer

        assert bank.read(pointer, 0, 2, "lines").content == "alpha\n\n"
        assert bank.read(pointer, 2, 1, "lines").content == "omega\n"
        assert bank.read(pointer, 12, 1).has_more is False
