"""Reports on search: literal, without case, with offsets that read takes, and to the last hit."""

import json
from bisect import bisect_right
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Bank, BlockingBank
from coatcheck.stores import MemoryStore
from coatcheck.tools import retrieval_tools


def hits(text: str, needle: str) -> list[int]:
    """Return the offsets of all hits, the slow and plain way: one folded character at a time."""
    folded = [char.casefold() for char in text]
    starts = list(accumulate(map(len, folded), initial=0))
    whole, wanted = "".join(folded), needle.casefold()
    found: list[int] = []
    at = whole.find(wanted)
    while at >= 0:
        found.append(bisect_right(starts, at) - 1)
        behind = bisect_right(starts, at + len(wanted) - 1)
        at = whole.find(wanted, starts[behind])
    return found


async def offsets(bank: Bank, text: str, needle: str, *, regex: bool = False) -> list[int]:
    """Return the offsets of all hits, page by page, as a model asks for them."""
    pointer = (await bank.put(text, content_type="text/plain")).pointer
    (reader,) = retrieval_tools(bank)
    found: list[int] = []
    offset: int | None = 0
    while offset is not None:
        call = {"artifactId": pointer, "search": needle, "offset": offset, "regex": regex}
        reply = json.loads(await reader.call(call))
        assert reply["matchCount"] == len(reply["matches"]) <= 50
        assert reply["totalMatches"] >= reply["matchCount"]
        found += [match["offset"] for match in reply["matches"]]
        offset = reply.get("nextSearchOffset")
        assert reply["truncated"] == (offset is not None)
    return found


async def test_br_029_a_letter_whose_lower_case_is_longer_shifts_no_offset(bank: Bank) -> None:
    artifact = await bank.put("İstanbul İzmir needle")

    found = await bank.search(artifact.pointer, "NEEDLE")

    assert found.total_matches == 1
    assert [match.offset for match in found.matches] == [15]
    assert (await bank.read(artifact.pointer, 15, 6)).content == "needle"


@pytest.mark.parametrize("count", [1, 300, 66_000])
async def test_br_029_no_character_before_a_hit_shifts_it(bank: Bank, count: int) -> None:
    for char in "İŉßẞǰΐﬃᾳᾼ\u212a\u017f\U00010400\ud800":
        assert await offsets(bank, char * count + " needle" + char, "NEEDLE") == [count + 1]


@pytest.mark.parametrize("count", [1, 300, 66_000])
async def test_br_029_no_character_before_a_hit_of_a_pattern_shifts_it(
    bank: Bank, count: int
) -> None:
    for char in "İŉßẞǰΐﬃᾳᾼ\u212a\u017f\U00010400\ud800":
        text = char * count + " needle" + char
        assert await offsets(bank, text, "N[eE]{2}DLE", regex=True) == [count + 1]
        assert await offsets(bank, text, r"\s\w{6}", regex=True) == [count]


async def test_br_031_a_final_sigma_is_a_sigma(bank: Bank) -> None:
    artifact = await bank.put("ΣΟΦΟΣ σοφος")

    found = await bank.search(artifact.pointer, "σοφος")

    assert found.total_matches == 2
    assert [match.offset for match in found.matches] == [0, 6]


FOLDED: list[tuple[str, str, list[int]]] = [
    ("ΣΟΦΟΣ σοφος", "ΣΟΦΟΣ", [0, 6]),
    ("ΣΟΦΟΣ σοφος", "σοφοσ", [0, 6]),
    ("straße STRASSE", "strasse", [0, 7]),
    ("straße STRASSE", "straße", [0, 7]),
    ("STRAẞE", "strasse", [0]),
    ("K 5 \u212a k", "k", [0, 4, 6]),
    ("oﬃce", "FFI", [1]),
    ("ЖУРНАЛ журнал", "Журнал", [0, 7]),
    ("\U00010400\U00010428", "\U00010428", [0, 1]),
]


async def test_br_031_a_final_sigma_is_a_sigma_in_a_pattern(bank: Bank) -> None:
    assert await offsets(bank, "ΣΟΦΟΣ σοφος", "σο.ος", regex=True) == [0, 6]
    assert await offsets(bank, "ΣΟΦΟΣ σοφος", r"\bσοφ[^ς]\w", regex=True) == [0, 6]
    assert await offsets(bank, "ΣΟΦΟΣ σοφος", r"\bσοφ[^ο]", regex=True) == []


async def test_br_031_whatever_folds_alike_is_found_alike(bank: Bank) -> None:
    for text, needle, expected in FOLDED:
        assert await offsets(bank, text, needle) == expected


async def test_case_counts_where_it_is_asked_to(bank: Bank) -> None:
    pointer = (await bank.put("Needle needle ΣΟΦΟΣ σοφος")).pointer

    for needle, expected in (("needle", 7), ("σοφος", 20)):
        found = await bank.search(pointer, needle, ignore_case=False)
        assert [match.offset for match in found.matches] == [expected]


async def test_br_032_a_pattern_is_text_like_any_other(bank: Bank) -> None:
    slow = await bank.put("a" * 50_000 + "!")
    literal = await bank.put("x(a+)+$y")

    assert (await bank.search(slow.pointer, "(a+)+$")).total_matches == 0
    (match,) = (await bank.search(literal.pointer, "(a+)+$")).matches
    assert match.offset == 1


@pytest.mark.parametrize("end", ["!", "é!"])
async def test_br_032_a_pattern_that_hangs_others_costs_nothing(bank: Bank, end: str) -> None:
    for pattern in ("(a+)+$", r"\b(a|aa)+\b:", "(a|a)*b", r"(\w+\s?)+:"):
        assert await offsets(bank, "a" * 50_000 + end, pattern, regex=True) == []
    assert await offsets(bank, "x(a+)+$y", r"\(a\+\)\+\$", regex=True) == [1]


async def test_br_032_no_character_is_special(bank: Bank) -> None:
    for needle in (*".^$*+?{}[]\\|()-", r"\d+", ".*", "a|b", "(?i)", "[^"):
        assert await offsets(bank, f"Ab1{needle}c", needle) == [3]
        assert await offsets(bank, "Ab1 c\n", needle) == []


async def test_br_032_a_needle_that_nearly_matches_everywhere_is_searched_for_to_the_end(
    bank: Bank,
) -> None:
    assert await offsets(bank, "a" * 300_000 + "b", "a" * 199 + "b") == [300_000 - 199]


async def test_br_034_more_hits_than_a_reply_holds_are_reached_once_each(bank: Bank) -> None:
    pointer = (await bank.put("ab " * 120)).pointer

    first = await bank.search(pointer, "AB")

    assert (first.match_count, len(first.matches), first.total_matches) == (50, 50, 120)
    assert (first.truncated, first.next_search_offset) == (True, 150)
    second = await bank.search(pointer, "AB", 150)
    third = await bank.search(pointer, "AB", 300)
    assert (second.match_count, second.truncated, second.next_search_offset) == (50, True, 300)
    assert (third.match_count, third.truncated, third.next_search_offset) == (20, False, None)
    found = [match.offset for page in (first, second, third) for match in page.matches]
    assert found == list(range(0, 360, 3))


async def test_br_034_more_hits_of_a_pattern_than_a_reply_holds_are_reached_once_each(
    bank: Bank,
) -> None:
    pointer = (await bank.put("ab " * 120)).pointer

    first = await bank.search(pointer, "A[a-z]", regex=True)

    assert (first.match_count, first.total_matches) == (50, 120)
    assert (first.truncated, first.next_search_offset) == (True, 150)
    assert await offsets(bank, "ab " * 120, "A[a-z]", regex=True) == list(range(0, 360, 3))


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 99, 100, 101])
async def test_br_034_both_sides_of_a_full_reply_are_told_apart(bank: Bank, count: int) -> None:
    assert await offsets(bank, "ab " * count + "x", "AB") == list(range(0, 3 * count, 3))
    pointer = (await bank.put("ab " * count + "x")).pointer

    assert (await bank.search(pointer, "AB")).truncated == (count > 50)


@pytest.mark.parametrize("limit", [1, 2, 49, 50, 51, 10_000])
async def test_br_034_a_limit_above_50_is_50(bank: Bank, limit: int) -> None:
    pointer = (await bank.put("ab " * 120)).pointer

    found = await bank.search(pointer, "ab", limit=limit)

    assert found.match_count == min(limit, 50)
    assert found.next_search_offset == 3 * min(limit, 50)


@pytest.mark.parametrize("char", ["x", "é", "漢"])
@pytest.mark.parametrize("shift", [-7, -6, -3, -1, 0, 1])
async def test_a_hit_on_the_border_of_two_windows_is_found_once(char: str, shift: int) -> None:
    before = 3_932_160 // len(char.encode()) + shift
    text = char * before + "needle" + char * 20

    assert await offsets(Bank(MemoryStore()), text, "NEEDLE") == [before]
    assert await offsets(Bank(MemoryStore()), text, r"\Bne.*le\B", regex=True) == [before]


ALPHABET = "aAbsSßẞſkK\u212aiIİıΣσςŉǰﬃᾳé\u0301漢😀\n.\0"


@settings(max_examples=250)
@given(st.text(ALPHABET, max_size=60), st.text(ALPHABET, min_size=1, max_size=4))
async def test_search_agrees_with_a_plain_reference(text: str, needle: str) -> None:
    assert await offsets(Bank(MemoryStore()), text, needle) == hits(text, needle)


@settings(max_examples=60)
@given(st.text(ALPHABET, min_size=1, max_size=30), st.data())
async def test_whatever_is_in_a_text_is_found_in_it_and_read_where_it_was_found(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    needle = text[start : start + data.draw(st.integers(1, 5))]
    bank = Bank(MemoryStore())
    pointer = (await bank.put(text)).pointer

    found = await bank.search(pointer, needle, start)

    first = found.matches[0]
    assert start >= first.offset
    page = await bank.read(pointer, first.offset, len(needle))
    assert str(page.content).casefold()[:1] == needle.casefold()[:1]
    assert text.count("\n", 0, first.offset) + 1 == first.line_number
    assert first.snippet == text[first.snippet_offset :][: len(first.snippet)]


PIECES = ["ab", "é", "ß", "\u212a", "\n", "\r\n", " ", "7", "漢😀", "\ud800", "-"]
PATTERNS = [r"\w+", r"[^\W\d]", r"\d\D", r"a.", r"\bk\b", r".$", r"^\S+", r"ß|7|-", r"\s\s?", ".+"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from(PATTERNS))
async def test_each_hit_of_a_pattern_reads_back_as_the_text(
    pieces: list[str], pattern: str
) -> None:
    text = "".join(pieces)
    bank = Bank(MemoryStore())
    pointer = (await bank.put(text)).pointer

    found = await bank.search(pointer, pattern, regex=True)

    for match in found.matches:
        before = text[: match.offset]
        assert match.line_number == before.count("\n") + 1
        assert match.snippet == text[match.snippet_offset :][: len(match.snippet)]
        page = await bank.read(pointer, match.offset, len(text) + 1)
        hit = await bank.search(pointer, pattern, match.offset, 1, regex=True)
        assert page.content == text[match.offset :]
        assert hit.matches[0] == match
        line = await bank.read(pointer, match.line_number - 1, 1, "lines")
        assert (
            (line.offset_chars or 0) <= match.offset < (line.offset_chars or 0) + len(line.content)
        )


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("(?=x)", "a lookahead"), (r"(x)\1", "a backreference"), ("x*", "matches everywhere")],
)
async def test_a_pattern_that_is_refused_says_why(bank: Bank, pattern: str, why: str) -> None:
    pointer = (await bank.put("x" * 100)).pointer
    (reader,) = retrieval_tools(bank)

    reply = await reader.call({"artifactId": pointer, "search": pattern, "regex": True})

    failure = json.loads(reply)
    assert failure["error"] == "invalid-argument"
    assert why in failure["message"]
    assert failure["hint"]


async def test_what_a_selector_picks_is_searched_for_a_pattern_like_a_text_of_its_own() -> None:
    bank = Bank(MemoryStore())
    pointer = (await bank.put("one 1\ntwo 2\nthree 3\n")).pointer

    found = await bank.search(f"{pointer}#L2-L3", r"^\w+ \d$", regex=True)

    places = [(match.offset, match.line_number) for match in found.matches]
    assert places == [(0, 1), (6, 2)]


def test_search_without_an_event_loop_is_the_same() -> None:
    with BlockingBank("memory:") as bank:
        pointer = bank.put("ab " * 120).pointer

        assert bank.search(pointer, "AB", 150).next_search_offset == 300
        assert bank.search(pointer, "b A", ignore_case=False).total_matches == 0
        assert bank.search(pointer, "b.A", regex=True).total_matches == 119
        assert bank.search(pointer, "b.A", regex=True, ignore_case=False).total_matches == 0
