"""Regular expressions: what is found, by which engine ever, and that windows are not seen in it."""

import re
import sys
import unicodedata
from array import array
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from coatcheck.content import encode
from coatcheck.content._index import Index, binary_index
from coatcheck.content._regex import RegexSearch, engine_for
from coatcheck.content._regex_hits import Engine
from coatcheck.content._regex_syntax import parse_regex
from coatcheck.content._regex_timed import TimedEngine
from coatcheck.content._regex_tree import Node
from coatcheck.errors import DeadlineError, InvalidArgumentError
from coatcheck.records import Matches

LETTERS = "abBkKs\u212a\u017f_1é\u0301ßẞσς漢😀٣\ud800"
OTHERS = " -.,\t\r\xa0\u2028"
ALPHABET = LETTERS + OTHERS
BREAKS = ALPHABET + "\n" * 6


def timed(node: Node, is_ascii: bool) -> Engine:
    return TimedEngine(node, is_ascii=is_ascii)


Making = Callable[[Node, bool], Engine]
ENGINES: list[Making] = [engine_for, timed]


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def fed(searching: RegexSearch, payload: bytes) -> Matches:
    for start, stop in searching.windows():
        searching.feed(payload[start:stop])
    return searching.result()


def search(
    text: str,
    pattern: str,
    offset: int = 0,
    limit: int = 50,
    *,
    ignore_case: bool = True,
    engine: Making = engine_for,
) -> Matches:
    encoding = encode(text)
    payload = b"".join(encoding.chunks())
    searching = RegexSearch(
        encoding.index, pattern, offset, limit, ignore_case=ignore_case, _engine=engine
    )
    return fed(searching, payload)


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


def made(
    pattern: str,
    text: str,
    offset: int,
    limit: int,
    *,
    block: int,
    engine: Making = engine_for,
    reach: int = 1_000,
) -> RegexSearch | None:
    """A search in small blocks, None where the pattern may match without a character."""
    try:
        return RegexSearch(
            index_of(text, block),
            pattern,
            offset,
            limit,
            _engine=engine,
            _block_chars=block,
            _window_blocks=2,
            _reach_bytes=reach,
        )
    except InvalidArgumentError as refusal:
        if "needs no character" in str(refusal):
            return None
        raise


def is_word(char: str) -> bool:
    return char == "_" or unicodedata.category(char)[0] in "LMN"


def is_same(one: str, other: str) -> bool:
    def fold(char: str) -> str:
        return next((each for each in (char.casefold(), char.lower()) if len(each) == 1), char)

    return fold(one) == fold(other)


def class_of(holds: Callable[[str], bool]) -> str:
    """A class of Python's, of the characters of our alphabet for which `holds` is true."""
    chosen = "".join(re.escape(char) for char in ALPHABET if holds(char))
    return f"[{chosen}]" if chosen else "(?!)"


WORD = class_of(is_word)
PLAIN: dict[str, str] = {
    ".": "[^\n]",
    r"\w": WORD,
    r"\W": class_of(lambda char: not is_word(char)),
    r"\d": class_of(str.isdecimal),
    r"\D": class_of(lambda char: not char.isdecimal()),
    r"\s": class_of(str.isspace),
    r"\S": class_of(lambda char: not char.isspace()),
    r"[\s\S]": "[^\n]",
    r"[^\W\d_]": class_of(lambda char: is_word(char) and not char.isdecimal() and char != "_"),
    r"[^\S\r\n]": class_of(lambda char: char.isspace() and char != "\r"),
    r"\p{L}": class_of(lambda char: unicodedata.category(char)[0] == "L"),
    r"\P{M}": class_of(lambda char: unicodedata.category(char)[0] != "M"),
    r"[\d.-]": class_of(lambda char: char.isdecimal() or char in ".-"),
    r"[^a\n]": class_of(lambda char: not is_same(char, "a")),
    r"[a-k]": class_of(lambda char: any(is_same(char, each) for each in "abcdefghijk")),
}
EDGES: dict[str, str] = {
    "^": "(?m:^)",
    "$": r"(?:\r?(?=\n|\Z))",
    r"\b": f"(?:(?<={WORD})(?!{WORD})|(?<!{WORD})(?={WORD}))",
    r"\B": f"(?:(?<={WORD})(?={WORD})|(?<!{WORD})(?!{WORD}))",
}

Pair = tuple[str, str]
"""A pattern as we read it without case, and one that means the same to `re`."""


def literal(char: str) -> Pair:
    return re.escape(char), class_of(lambda other: is_same(char, other))


EDGES_OF = {"b": (r"\b", EDGES[r"\b"]), "$": ("$", EDGES["$"])}


def joined(pairs: list[Pair]) -> Pair:
    return "".join(ours for ours, _ in pairs), "".join(theirs for _, theirs in pairs)


def choice(pairs: list[Pair]) -> Pair:
    ours, theirs = ("|".join(each) for each in zip(*pairs, strict=True))
    return f"({ours})", f"(?:{theirs})"


def repeated(pair: Pair, bounds: str) -> Pair:
    return f"(?:{pair[0]}){bounds}", f"(?:{pair[1]}){bounds}"


REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "??", "{1,2}?"])
ATOMS = (
    st.sampled_from(ALPHABET).map(literal)
    | st.sampled_from(sorted(PLAIN.items()))
    | st.sampled_from(sorted(EDGES.items()))
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(joined)
        | st.lists(inner, min_size=2, max_size=3).map(choice)
        | st.builds(repeated, inner, REPEATS)
    ),
    max_leaves=6,
)


TEXTS = st.text(st.sampled_from(BREAKS), max_size=14) | st.text(
    st.sampled_from("ab -\n"), max_size=14
)


@given(
    pair=PATTERNS,
    text=TEXTS,
    offset=st.integers(0, 5),
    limit=st.integers(1, 8),
    block=st.integers(1, 20),
    engine=st.sampled_from(ENGINES),
)
@example(joined([EDGES_OF["b"], literal("k"), EDGES_OF["b"]]), "k \u212a", 0, 8, 9, engine_for)
@example(joined([literal("k"), EDGES_OF["b"]]), "k\xe9 k", 0, 8, 9, engine_for)
@example(joined([literal("a"), EDGES_OF["$"]]), "a\r\na\r", 0, 8, 2, timed)
def test_hits_are_those_of_python_whatever_the_engine(
    pair: Pair, text: str, offset: int, limit: int, block: int, engine: Making
) -> None:
    pattern, oracle = pair
    searching = made(pattern, text, offset, limit, block=block, engine=engine)
    assume(searching is not None)

    found = fed(cast("RegexSearch", searching), bytes_of(text))

    hits = [match.span() for match in re.compile(oracle).finditer(text, offset)]
    assert found.total_matches == len(hits)
    assert [match.offset for match in found.matches] == [start for start, _ in hits[:limit]]
    assert found.next_search_offset == (hits[limit][0] if len(hits) > limit else None)
    for match, (start, stop) in zip(found.matches, hits, strict=False):
        assert match.line_number == text.count("\n", 0, start) + 1
        assert match.snippet == text[max(0, start - 120) : stop + 120]


@given(
    pair=PATTERNS,
    text=TEXTS,
    offset=st.integers(0, 5),
    block=st.integers(1, 5),
    reach=st.integers(1, 6),
)
def test_both_engines_cut_long_lines_alike_and_go_on_where_they_were(
    pair: Pair, text: str, offset: int, block: int, reach: int
) -> None:
    searches = [
        made(pair[0], text, offset, 3, block=block, engine=engine, reach=reach)
        for engine in ENGINES
    ]
    assume(None not in searches)

    first, second = (fed(cast("RegexSearch", each), bytes_of(text)) for each in searches)

    assert first == second
    if first.next_search_offset is not None:
        rest = made(pair[0], text, first.next_search_offset, 50, block=block, reach=reach)
        found = fed(cast("RegexSearch", rest), bytes_of(text))
        assert found.total_matches == first.counted_matches - 3
        assert found.matches[0].offset == first.next_search_offset


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "pattern", "offsets"),
    [
        ("żółć needle", "N..DLE", [5]),
        ("запрос  ок\nзапрос", r"запрос\s+\w+", [0]),
        ("a1 b22 c333", r"\b\w\d{2,3}\b", [3, 7]),
        ("café cafés caf", r"\bcaf\b", [11]),
        ("cafe\u0301 cafe", r"\bcafe\b", [6]),
        ("error: x\r\nwarn\r\nerror\r\n", "^error$", [16]),
        ("ΣΟΦΟΣ σοφος", "σοφο[ςσ]", [0, 6]),
        ("STRASSE straße STRAẞE", "straße", [8, 15]),
        ("5 \u212a, 5 k", r"\d k\b", [0, 5]),
        ("\ud83d x \ud83dY", "\ud83dy", [4]),
        ("x(a+)+$y", r"\(a\+\)\+\$", [1]),
        ("a" * 50_000 + "!", r"(a+)+\$", []),
        ('{"a": 5, "b": 17}', r'"b": \d+', [9]),
        ("aaa", "a{2}|a", [0, 2]),
        ("ab\nba", "a.*b|b", [0, 3]),
        ("ab", "a(?:x|)b", [0]),
        ("Ab aB", "(?-i)a", [3]),
        ("Ab aB", "(?i:a)(?-i:B)", [3]),
        ("[x] {2}", r"[]\[{}]", [0, 2, 4, 6]),
        ("tab\tend", r"\t\x65\u006E", [3]),
        ("12-3", r"[\d-]+", [0]),
        ("", "a", []),
    ],
)
def test_a_pattern_finds_exactly(
    text: str, pattern: str, offsets: list[int], engine: Making
) -> None:
    found = search(text, pattern, engine=engine)

    assert [match.offset for match in found.matches] == offsets
    assert found.total_matches == len(offsets)


@pytest.mark.parametrize("engine", ENGINES)
def test_case_counts_where_it_is_not_ignored(engine: Making) -> None:
    found = search("Ab ab AB ab", "a[b]", ignore_case=False, engine=engine)

    assert [match.offset for match in found.matches] == [3, 9]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lead", ["x" * 99, "é" * 99])
def test_lines_are_searched_where_a_text_is_that_a_match_needs(lead: str, engine: Making) -> None:
    plain = f"{lead} id=7 dur=1ms\n" * 900
    text = f"{plain}{lead} id=42 dur=995.1ms id=1 dur=997ms\n{plain}dur=99"

    found = search(text, r"dur=99\d(\.\d)?ms$|id=4\d", engine=engine)

    places = [match.offset for match in found.matches]
    assert places == [text.index("id=42"), text.index("dur=997ms")]
    assert [match.line_number for match in found.matches] == [901, 901]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shift", [-9, -1, 0, 1])
@pytest.mark.parametrize("char", ["x", "é"])
def test_a_long_line_hides_no_hit_that_is_shorter_than_the_reach(
    char: str, shift: int, engine: Making
) -> None:
    start = 4 * 65_536 + shift
    text = char * start + "<" + "-" * 60_000 + ">" + char * 80_000 + "<->"

    found = search(text, "<-+>", engine=engine)

    assert [match.offset for match in found.matches] == [start, len(text) - 3]
    assert {match.line_number for match in found.matches} == {1}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hit_longer_than_the_reach_is_cut_in_a_long_line_only(engine: Making) -> None:
    text = "<" + "-" * 400_000 + ">"
    lines = ("<" + "-" * 60_000 + ">\n") * 5

    assert search(text, "<-+>", engine=engine).total_matches == 0
    cut = search(text, "<.*", engine=engine)
    assert (cut.total_matches, cut.matches[0].offset) == (1, 0)
    assert search(lines, "<.*>$", engine=engine).total_matches == 5


@pytest.mark.parametrize("length", [599, 600, 601, 90_000])
def test_of_a_long_hit_the_head_is_shown(length: int) -> None:
    text = "é" * 200 + "-" * length + "x" * 200

    (match,) = search(text, "-+").matches

    assert match.offset == 200
    assert match.snippet == text[200 - 120 : 200 + min(length, 600) + 120]


@pytest.mark.parametrize("engine", ENGINES)
def test_more_hits_than_one_call_returns_are_reached_by_the_next_offset(engine: Making) -> None:
    text = "ab " * 120

    first = search(text, r"A\w", engine=engine)
    second = search(text, r"A\w", first.next_search_offset or -1, engine=engine)
    third = search(text, r"A\w", second.next_search_offset or -1, engine=engine)

    pages = (first, second, third)
    assert [(page.match_count, page.total_matches) for page in pages] == [
        (50, 120),
        (50, 70),
        (20, 20),
    ]
    assert third.next_search_offset is None
    offsets = [match.offset for page in pages for match in page.matches]
    assert offsets == list(range(0, 360, 3))


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(a|a)*b", r"(\w+\s?)+:", r"\b(a+)+\b\b!"])
def test_a_pattern_that_never_ends_elsewhere_finds_nothing_soon(pattern: str) -> None:
    text = ("a" * 5_000 + "é\n") * 3

    assert search(text, pattern).total_matches == 0


def test_a_pattern_that_takes_too_long_is_stopped() -> None:
    index = index_of("a" * 40 + "!", 100)
    searching = RegexSearch(index, r"(a|a)+b?[^a!]", seconds=0.05, _engine=timed)

    with pytest.raises(DeadlineError) as late:
        fed(searching, b"a" * 40 + b"!")

    assert str(late.value) == "The search was stopped after 0.05 s."
    assert late.value.code == "deadline"
    assert "rarer pattern" in late.value.hint
    assert "the extra `re2`" in late.value.hint


def test_where_re2_is_slow_nobody_is_told_to_install_it() -> None:
    looks = iter(range(9))
    searching = RegexSearch(
        index_of("x\n", 100), "x", seconds=0.5, _clock=lambda: float(next(looks))
    )

    with pytest.raises(DeadlineError) as late:
        fed(searching, b"x\n")

    assert late.value.hint.endswith("from a later offset.")


@pytest.mark.parametrize("look", [3, 4, 9])
def test_the_clock_is_looked_at_within_a_window_and_for_all_of_them_together(look: int) -> None:
    text = "x\n" * 400
    looks = iter(range(1_000_000))
    searching = RegexSearch(
        index_of(text, 100),
        "x",
        seconds=look,
        _block_chars=100,
        _window_blocks=1,
        _clock=lambda: float(next(looks)),
    )

    found = fed(searching, text.encode())

    assert found.total_matches is None
    assert 50 <= found.counted_matches < 400


SLOW_LATER = "hit\n" + "a" * 40 + "!\n"


def test_what_was_asked_for_is_given_though_to_count_the_rest_takes_too_long() -> None:
    searching = RegexSearch(
        index_of(SLOW_LATER, 100), "hit|(a|a)+b?[^a!]", limit=1, seconds=0.5, _engine=timed
    )

    found = fed(searching, SLOW_LATER.encode())

    assert [match.offset for match in found.matches] == [0]
    assert (found.match_count, found.total_matches, found.counted_matches) == (1, None, 1)
    assert (found.truncated, found.next_search_offset) == (True, 3)


def test_one_match_less_than_asked_for_is_no_answer_when_time_is_over() -> None:
    searching = RegexSearch(
        index_of(SLOW_LATER, 100), "hit|(a|a)+b?[^a!]", limit=2, seconds=0.05, _engine=timed
    )

    with pytest.raises(DeadlineError):
        fed(searching, SLOW_LATER.encode())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pattern", ["x", "x|é", r"\bx"])
@pytest.mark.parametrize("limit", [1, 3])
def test_pages_joined_give_all_matches_wherever_time_is_over(
    engine: Making, pattern: str, limit: int
) -> None:
    text = "x\néé\n" * 150 + "-\n" * 200 + "x" * 70
    index = index_of(text, 100)
    payload = text.encode()
    whole = fed(RegexSearch(index, pattern, _engine=engine, _block_chars=100), payload)
    counts: set[int | None] = set()

    def page(offset: int, look: int) -> Matches:
        looks = iter(range(1_000_000))
        searching = RegexSearch(
            index,
            pattern,
            offset,
            limit,
            seconds=look,
            _engine=engine,
            _block_chars=100,
            _window_blocks=1,
            _clock=lambda: float(next(looks)),
        )
        return fed(searching, payload)

    for look in range(3, 40):
        try:
            first = page(0, look)
        except DeadlineError:
            continue
        counts.add(first.total_matches)
        assert first.counted_matches <= (whole.total_matches or 0)
        assert first.matches == whole.matches[:limit]
        assert first.next_search_offset is not None
        rest = page(first.next_search_offset, 1_000_000)
        assert rest.matches == whole.matches[limit : 2 * limit]
        assert limit + (rest.total_matches or 0) == whole.total_matches

    assert None in counts


def test_once_time_is_over_no_window_more_is_fetched() -> None:
    text = "x\n" * 400
    looks = iter(range(1_000_000))
    searching = RegexSearch(
        index_of(text, 100),
        "x",
        limit=1,
        seconds=9,
        _block_chars=100,
        _window_blocks=1,
        _clock=lambda: float(next(looks)),
    )
    windows = 0

    for start, stop in searching.windows():
        searching.feed(text[start:stop].encode())
        windows += 1
    found = searching.result()

    assert windows < 8
    assert found.total_matches is None
    assert 0 < found.counted_matches < 400
    assert found.next_search_offset == 2


def test_only_time_in_which_a_window_is_searched_counts() -> None:
    text = "x\n" * 400
    now = 0.0
    searching = RegexSearch(
        index_of(text, 100),
        "x",
        seconds=1,
        _block_chars=100,
        _window_blocks=1,
        _clock=lambda: now,
    )

    for start, stop in searching.windows():
        now += 100
        searching.feed(text[start:stop].encode())

    assert searching.result().total_matches == 400


@pytest.mark.parametrize("pattern", ["", "x" * 201, 5, None, b"x"])
def test_a_pattern_has_1_to_200_characters(pattern: object) -> None:
    with pytest.raises(InvalidArgumentError, match="The regular expression has 1 to 200"):
        RegexSearch(index_of("x", 9), cast("str", pattern))


@pytest.mark.parametrize(
    ("offset", "limit", "message"), [(-1, 1, "offset is"), (0, 0, "limit is"), (0, 1.5, "limit is")]
)
def test_offset_and_limit_have_their_rules(offset: int, limit: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        RegexSearch(index_of("x", 9), "x", offset, limit)


def test_a_binary_payload_is_not_searched() -> None:
    with pytest.raises(InvalidArgumentError, match="binary payload"):
        RegexSearch(binary_index(5), "x")


def test_without_re2_the_other_engine_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    monkeypatch.delitem(sys.modules, "coatcheck.content._regex_re2", raising=False)
    node = parse_regex("x", ignore_case=True)

    assert isinstance(engine_for(node, is_ascii=True), TimedEngine)
    assert search("ax", "X").matches[0].offset == 1
