"""Literal search: what is found, where, and that windows are not seen in what is found."""

import sys
from array import array
from collections.abc import Callable
from typing import cast

import pytest
import stringzilla
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import encode
from coatcheck.content._find import FOLDS_LONGER, UNSETTLED
from coatcheck.content._index import Index, binary_index
from coatcheck.content._search import Search
from coatcheck.content._windows import WINDOW_BYTES
from coatcheck.errors import InvalidArgumentError
from coatcheck.records import Matches

FOLDING = "sSßẞſkK\u212afiﬁﬀﬃﬆİıI\u0307ΐιΣσςµμåÅ\u212bжЖաև中😀 \n\0\r\u2028"
SURROGATES = "\ud83d\udc00"
YOUNG_PAIRS = "\u1c89\u1c8a\ua7cb\u0264"


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def stringzilla_fold(text: str) -> str:
    fold = cast("Callable[[bytes], bytes]", stringzilla.utf8_uncased_fold)
    return bytes(fold(bytes_of(text))).decode("utf-8", "surrogatepass")


def search(
    text: str, needle: str, offset: int = 0, limit: int = 50, *, ignore_case: bool = True
) -> Matches:
    encoding = encode(text)
    payload = b"".join(encoding.chunks())
    return fed(Search(encoding.index, needle, offset, limit, ignore_case), payload)


def fed(searching: Search, payload: bytes) -> Matches:
    for start, stop in searching.windows():
        searching.feed(payload[start:stop])
    return searching.result()


def index_of(text: str, block_chars: int) -> Index:
    """The index of a text in blocks so small that hits cross their borders."""
    blocks = [text[start : start + block_chars] for start in range(0, len(text), block_chars)]
    starts, lines, size, newlines = array("Q"), array("Q"), 0, 0
    for block in blocks:
        starts.append(size)
        lines.append(newlines)
        size += len(bytes_of(block))
        newlines += block.count("\n")
    return Index(
        size_bytes=size,
        length_chars=len(text),
        newlines=newlines,
        line_count=newlines + (not text.endswith("\n") and text != ""),
        is_ascii=text.isascii(),
        block_starts=starts,
        lines_before=lines,
    )


def expected(text: str, needle: str, offset: int, *, ignore_case: bool) -> list[tuple[int, int]]:
    """Hits by definition: fold each character, know whose each folded character is."""
    fold = str.casefold if ignore_case else str
    owners = [at for at, char in enumerate(text) for _ in fold(char)]
    folded = "".join(fold(char) for char in text)
    firsts = [owners.index(at) for at in range(len(text))] + [len(owners)]
    hits: list[tuple[int, int]] = []
    at = folded.find(fold(needle), firsts[min(offset, len(text))])
    while at >= 0:
        stop = owners[at + len(fold(needle)) - 1] + 1
        hits.append((owners[at], stop))
        at = folded.find(fold(needle), firsts[stop])
    return hits


class Clock:
    """Stands still, but for one look at it, between whose neighbours a second passes."""

    def __init__(self, slow_look: int | None) -> None:
        self.looks = 0
        self._slow_look = slow_look

    def __call__(self) -> float:
        self.looks += 1
        return float(self._slow_look is not None and self.looks >= self._slow_look)


@given(data=st.data(), ignore_case=st.booleans(), limit=st.integers(1, 60))
def test_hits_offsets_lines_and_snippets_are_those_of_the_definition(
    data: st.DataObject, *, ignore_case: bool, limit: int
) -> None:
    letters = st.sampled_from(
        data.draw(st.sampled_from(["ab\n", FOLDING, FOLDING + SURROGATES, "sß", "a" + YOUNG_PAIRS]))
    )
    text = data.draw(st.text(letters, max_size=400))
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    cut = text[start : start + data.draw(st.integers(1, 40))].swapcase()[:200]
    needle = cut or data.draw(st.text(letters, min_size=1, max_size=4))
    offset = data.draw(st.integers(0, len(text) + 2))
    block, blocks = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    searching = Search(
        index_of(text, block),
        needle,
        offset,
        limit,
        ignore_case,
        _block_chars=block,
        _window_blocks=blocks,
        _slice_bytes=data.draw(st.integers(1, 100)),
        _clock=Clock(data.draw(st.none() | st.integers(1, 20))),
    )

    found = fed(searching, bytes_of(text))

    hits = expected(text, needle, offset, ignore_case=ignore_case)
    shown = hits[: min(limit, 50)]
    assert found.total_matches == len(hits)
    assert [match.offset for match in found.matches] == [start for start, _ in shown]
    assert found.match_count == len(shown)
    assert found.truncated is (len(hits) > len(shown))
    assert found.next_search_offset == (hits[len(shown)][0] if found.truncated else None)
    for match, (start, stop) in zip(found.matches, shown, strict=True):
        assert match.line_number == text.count("\n", 0, start) + 1
        end = match.snippet_offset + len(match.snippet)
        assert match.snippet == text[match.snippet_offset : end]
        # At most one cluster less than 120 characters on each side, and of 64 of them.
        assert max(0, start - 120) <= match.snippet_offset <= max(0, start - 120 + 63)
        assert min(len(text), stop + 120 - 63) <= end <= min(len(text), stop + 120)


@given(text=st.text(st.sampled_from("ab\n"), max_size=400), block=st.integers(1, 40))
def test_where_no_cluster_is_split_a_snippet_has_all_of_both_sides(text: str, block: int) -> None:
    found = fed(Search(index_of(text, block), "a", _block_chars=block), bytes_of(text))

    for match in found.matches:
        at = match.offset
        assert match.snippet_offset == max(0, at - 120)
        assert match.snippet == text[max(0, at - 120) : at + 1 + 120]


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


@pytest.mark.parametrize(
    "cluster",
    [FAMILY, "e\u0301\u0302", "\U0001f1e9\U0001f1ea", "각", "\r\n", "é", "\u0915\u094d\u0937"],
)
def test_a_snippet_splits_no_character_that_a_reader_sees(cluster: str) -> None:
    for lead in range(5):
        # Flags are told apart from the first of a row on: of a row that is too long, none is.
        text = "x" + cluster * 80 + "x" * lead + "needle" + "x" * lead + cluster * 80

        (match,) = search(text, "NEEDLE").matches

        before, after = match.snippet.split("needle")
        many = min(80, (120 - lead) // len(cluster))
        assert before.removeprefix("x" * (many == 80)) == cluster * many + "x" * lead
        assert after == "x" * lead + cluster * many
        assert text[match.snippet_offset :].startswith(match.snippet)


def test_a_hit_within_such_a_character_is_shown_whole_with_what_is_around() -> None:
    text = FAMILY * 100

    matches = search(text, "\U0001f466").matches

    assert len(matches) == 50
    for match in matches:
        # The hit is the end of its character: 120 more are 17 whole ones.
        assert match.snippet == FAMILY * (len(match.snippet) // len(FAMILY))
        assert match.snippet_offset % len(FAMILY) == 0
        assert match.snippet_offset <= match.offset


def test_of_more_marks_than_any_script_needs_a_snippet_shows_as_many_as_of_others() -> None:
    text = "a" + "\u0301" * 500 + "needle" + "\u0301" * 500

    (match,) = search(text, "needle").matches

    assert match.snippet == "\u0301" * 120 + "needle" + "\u0301" * 120


@given(text=st.text(st.sampled_from("ab"), max_size=300), offset=st.integers(0, 300))
def test_calls_from_one_next_offset_to_another_find_each_hit_once(text: str, offset: int) -> None:
    whole = [start for start, _ in expected(text, "aba", offset, ignore_case=True)]
    offsets: list[int] = []
    at: int | None = offset
    while at is not None:
        page = search(text, "aba", at, 3)
        offsets += [match.offset for match in page.matches]
        at = page.next_search_offset

    assert offsets == whole


def test_letters_on_which_the_two_foldings_differ_take_the_exact_path() -> None:
    differing = [
        char for char in map(chr, range(0x20000)) if stringzilla_fold(char) != char.casefold()
    ]

    assert all(UNSETTLED.search(char) for char in differing)
    assert all(UNSETTLED.search(stringzilla_fold(char)) for char in differing)


def test_no_other_character_folds_to_several() -> None:
    longer = [code for code in range(sys.maxunicode + 1) if len(chr(code).casefold()) > 1]

    assert all(code in FOLDS_LONGER for code in longer)
    assert not any(UNSETTLED.search(chr(code)) for code in longer)


@pytest.mark.parametrize("text", ["s" * 199, "ß" * 99 + "s", "ä" + "\u0264" * 66, "α" * 99 + "ς"])
@pytest.mark.parametrize("border", [1_020, 1_024, 65_530])
def test_a_text_on_which_finding_is_slow_is_searched_on_the_steady_way(
    text: str, border: int
) -> None:
    lead = "α" * (border - 1) + "x"
    encoding = encode(lead + text + "ẞ" + lead + text.upper())
    payload = b"".join(encoding.chunks())
    clock = Clock(2)
    searching = Search(encoding.index, text, _clock=clock)

    found = fed(searching, payload)

    assert [match.offset for match in found.matches] == [border, 2 * border + len(text) + 1]
    # The first slice was found slow, after which none is timed.
    assert clock.looks == (0 if UNSETTLED.search(text) else 2)


@pytest.mark.parametrize(("needle", "windows"), [("abc", 4), ("abcd", 1)])
def test_where_hits_may_be_dense_windows_are_smaller(needle: str, windows: int) -> None:
    encoding = encode("x" * 16 * 65_536)
    list(encoding.chunks())

    assert len(list(Search(encoding.index, needle).windows())) == windows


@pytest.mark.parametrize("needle", ["\u1c89", "\u1c8a"])
def test_a_pair_younger_than_python_matches_as_its_casefold_says(needle: str) -> None:
    text = "x\u1c89\u1c8a"

    found = search(text, needle)

    assert found.total_matches == text.casefold().count(needle.casefold())


@pytest.mark.parametrize(
    ("text", "needle", "offsets"),
    [
        ("żółć needle", "needle", [5]),
        ("W\0s\0l\0" * 3, "l", [4, 10, 16]),
        ("İstanbul İzmir needle", "NEEDLE", [15]),
        ("ΣΟΦΟΣ σοφος", "σοφος", [0, 6]),
        ("x(a+)+$y", "(a+)+$", [1]),
        ("a" * 50_000 + "!", "(a+)+$", []),
        ("plain", ".*", []),
        ("aaaa", "aa", [0, 2]),
        ("absent", "present", []),
        ("straße STRASSE", "strasse", [0, 7]),
        ("ß", "s", [0]),
        ("sss", "ß", [0]),
        ("ßß", "ss", [0, 1]),
        ("aﬁx", "fix", [1]),
        ("ﬃ", "f", [0]),
        ("\u212a ſ µ", "k s μ", [0]),
        ("İ", "i\u0307", [0]),
        ("istanbul", "İ", []),
        ("\ud83d x \ud83dY", "\ud83dy", [4]),
        ("", "x", []),
        ("kiss", "\u212aIß", [0]),
        ("ascii", "é", []),
    ],
)
def test_search_finds_exactly(text: str, needle: str, offsets: list[int]) -> None:
    found = search(text, needle)

    assert [match.offset for match in found.matches] == offsets
    assert found.total_matches == len(offsets)


def test_case_counts_where_it_is_not_ignored() -> None:
    found = search("Ab ab AB ab", "ab", ignore_case=False)

    assert [match.offset for match in found.matches] == [3, 9]
    assert search("straße", "strasse", ignore_case=False).total_matches == 0


def test_more_hits_than_one_call_returns_are_reached_by_the_next_offset() -> None:
    text = "ab " * 120

    first = search(text, "AB")
    second = search(text, "AB", first.next_search_offset or -1)
    third = search(text, "AB", second.next_search_offset or -1)

    pages = (first, second, third)
    assert [(page.match_count, page.total_matches) for page in pages] == [
        (50, 120),
        (50, 70),
        (20, 20),
    ]
    assert first.next_search_offset == 150
    assert [page.truncated for page in pages] == [True, True, False]
    offsets = [match.offset for page in pages for match in page.matches]
    assert offsets == list(range(0, 360, 3))


def test_exactly_the_limit_is_not_truncated() -> None:
    assert search("a" * 50, "a").truncated is False
    assert search("a" * 51, "a").next_search_offset == 50


def test_a_limit_over_the_maximum_is_clamped() -> None:
    assert search("a" * 60, "a", limit=1_000).match_count == 50


@pytest.mark.parametrize("inside", ["\r", "\f", "\u2028"])
def test_only_a_newline_ends_a_line(inside: str) -> None:
    found = search(f"alpha\nbeta{inside}carriage\ngamma NEEDLE\n", "needle")

    assert [match.line_number for match in found.matches] == [3]


def test_colour_codes_stay_in_what_is_searched() -> None:
    found = search("\x1b[31mFAIL\x1b[0m ok\n" * 5_000, "fail")

    assert found.matches[0].offset == 5
    assert found.total_matches == 5_000


@pytest.mark.parametrize("filler", ["x", "é", "漢", "😀"])
def test_a_hit_beyond_the_first_megabyte_has_its_exact_place(filler: str) -> None:
    lead = (filler * 999 + "\n") * 1_500
    text = lead + "Marker" + filler * 200_000 + "MARKER"

    found = search(text, "marker", 1_200_000)

    first, second = found.matches
    assert (first.offset, first.line_number) == (1_500_000, 1_501)
    assert first.snippet == filler * 119 + "\n" + "Marker" + filler * 120
    assert (second.offset, second.snippet_offset) == (1_700_006, 1_699_886)
    assert second.snippet == filler * 120 + "MARKER"


@pytest.mark.parametrize("char", ["a", "é"])
@pytest.mark.parametrize("border_bytes", [512 * 1024, WINDOW_BYTES])
def test_a_hit_across_the_border_of_two_windows_or_slices_is_found_once(
    char: str, border_bytes: int
) -> None:
    border = border_bytes // len(char.encode())
    text = char * (border - 3) + "needle" + char * 100

    for offset in (0, border - 3):
        found = search(text, "NEEDLE", offset)
        assert [match.offset for match in found.matches] == [border - 3]
    assert search(text, "needle", border - 2).total_matches == 0


@pytest.mark.parametrize("ignore_case", [True, False])
def test_more_hits_in_a_window_than_are_held_at_once_are_all_counted(*, ignore_case: bool) -> None:
    found = search("a" * 65_536 * 3, "a", ignore_case=ignore_case)

    assert found.total_matches == 65_536 * 3


@pytest.mark.parametrize("char", ["x", "é", "漢"])
def test_windows_are_of_one_size_and_cover_the_payload(char: str) -> None:
    payload = char.encode() * 7_000_000
    encoding = encode(payload.decode())
    list(encoding.chunks())

    windows = list(Search(encoding.index, "needle").windows())

    assert len(windows) == -(-len(payload) // WINDOW_BYTES)
    assert windows[0][0] == 0
    assert windows[-1][1] == len(payload)
    assert all(stop - start < WINDOW_BYTES + 16_384 for start, stop in windows)


def test_hits_that_follow_upon_each_other_go_on_from_slice_to_slice() -> None:
    text = "x" + "ana" * 400_000

    found = search(text, "ANAANA")

    assert found.total_matches == 200_000
    assert search(text, "ANAANA", 1_200_001 - 12).matches[0].offset == 1_200_001 - 12


def test_an_offset_at_or_past_the_end_finds_nothing_and_needs_no_window() -> None:
    index = index_of("abc", 65_536)

    for offset in (3, 4, sys.maxsize):
        searching = Search(index, "c", offset)
        assert list(searching.windows()) == []
        assert searching.result().total_matches == 0


@pytest.mark.parametrize("needle", ["", "x" * 201, 7, None, b"x"])
def test_a_needle_outside_one_to_200_characters_is_refused(needle: object) -> None:
    with pytest.raises(InvalidArgumentError, match="1 to 200 characters"):
        Search(index_of("abc", 65_536), needle)  # type: ignore[arg-type]


@pytest.mark.parametrize("needle", ["x", "x" * 200, "😀" * 200])
def test_a_needle_of_1_and_of_200_characters_is_found(needle: str) -> None:
    assert search(f"a{needle}b", needle).total_matches == 1


@pytest.mark.parametrize("offset", [-1, 1.0, True, "0", None])
def test_an_offset_that_is_no_whole_number_from_0_is_refused(offset: object) -> None:
    with pytest.raises(InvalidArgumentError, match="offset is a whole number, 0 or more"):
        Search(index_of("abc", 65_536), "a", offset)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0, -1, 1.5, False, "5"])
def test_a_limit_that_is_no_whole_number_from_1_is_refused(limit: object) -> None:
    with pytest.raises(InvalidArgumentError, match="limit is a whole number, 1 or more"):
        Search(index_of("abc", 65_536), "a", 0, limit)  # type: ignore[arg-type]


def test_a_binary_payload_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="binary"):
        Search(binary_index(10), "a")


def test_data_of_another_length_than_its_window_is_refused() -> None:
    searching = Search(index_of("abc", 65_536), "a")

    with pytest.raises(ValueError, match="window 0 has 3 bytes, got 2"):
        searching.feed(b"ab")


def test_a_result_before_all_windows_were_fed_is_refused() -> None:
    with pytest.raises(RuntimeError, match="0 of 1 windows"):
        Search(index_of("abc", 65_536), "a").result()
