"""Previews: verbatim, bounded, whole characters, and nothing that acts on a terminal."""

import base64
import re
from collections.abc import Callable, Iterable
from typing import cast

import pytest
import stringzilla
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._preview import head_chars, plain, preview, quoted, shown_preview, visible

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
FLAG = "🇩🇪"
ESCAPES = (
    "\x1b[31m",
    "\x1b[38;2;1;2;3m",
    "\x9b0m",
    "\x1b]0;title\x07",
    "\x1b]8;;https://example.com\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x1b(B",
    "\x1b7",
)
PIECES = st.sampled_from(["a", "B\n", "\r\n", "é", "e\u0301", "漢", "😀", FAMILY, FLAG, "\ud83d"])


def clusters(text: str) -> list[str]:
    split = cast("Callable[[str], Iterable[object]]", stringzilla.utf8_graphemes)
    return [str(cluster) for cluster in split(text)]


def shown_of(text: str, limit: int) -> str:
    return shown_preview(text[: head_chars(limit)], len(text), limit)


@given(pieces=st.lists(PIECES, max_size=40), limit=st.integers(0, 60))
def test_a_preview_is_the_head_up_to_a_cluster_border(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)

    head = preview(text, limit)

    assert visible(text).startswith(head)
    assert len(head) <= limit
    following = clusters(visible(text)[len(head) :])
    assert not following or len(head) + len(following[0]) > limit
    assert clusters(head) + following == clusters(visible(text))


@given(
    pieces=st.lists(PIECES | st.sampled_from(ESCAPES), max_size=40),
    cut=st.integers(0, 200),
    limit=st.integers(0, 60),
)
def test_escapes_never_show_however_the_head_is_cut(
    pieces: list[str], cut: int, limit: int
) -> None:
    text = "".join(pieces)
    clean = "".join(piece for piece in pieces if piece not in ESCAPES)

    head = preview(text[:cut], limit)

    assert "\x1b" not in head
    assert "\x9b" not in head
    assert visible(clean).startswith(head)


@given(pieces=st.lists(PIECES | st.sampled_from(ESCAPES), max_size=40), limit=st.integers(1, 60))
def test_the_count_of_what_follows_is_exact(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)

    shown = shown_of(text, limit)

    match = re.fullmatch(r"(.*?)(?: … \(([\d,]+) more characters?\))?", shown, re.DOTALL)
    assert match is not None
    rest = text[len(text) - int((match[2] or "0").replace(",", "")) :]
    assert match[1] + plain(rest, 10_000) == plain(text, 10_000)
    assert match[2] is None or plain(rest, 1_000) != ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 98_200, "x" * 200 + " … (98,000 more characters)"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + " … (1 more character)"),
        ("x" * 202, "x" * 200 + " … (2 more characters)"),
        ("😀" * 30_000, "😀" * 200 + " … (29,800 more characters)"),
        ("a" * 199 + FAMILY + "b", "a" * 199 + " … (8 more characters)"),
        ("a" + FLAG * 100, "a" + FLAG * 99 + " … (2 more characters)"),
        ("a" * 199 + "\r\n", "a" * 199 + " … (2 more characters)"),
        ("x" * 200 + "\x1b[0m", "x" * 200),
        ("x" * 200 + "\x1b[0my", "x" * 200 + " … (5 more characters)"),
        ("", ""),
        ("\x1b[0m", ""),
    ],
)
def test_an_envelope_shows(text: str, shown: str) -> None:
    assert shown_of(text, 200) == shown


def test_text_full_of_colour_is_shown_to_the_limit() -> None:
    text = "\x1b[31mFAIL\x1b[0m ok\n" * 5_000

    shown = shown_of(text, 200)

    assert shown == ("FAIL ok\n" * 25) + " … (84,575 more characters)"


def test_a_head_of_escapes_only_shows_nothing_and_counts_the_rest() -> None:
    text = "\x1b[0m" * 100_000 + "seen"

    shown = shown_of(text, 200)

    rest = len(text) - head_chars(200)
    assert shown == f" … ({rest:,} more characters)"


def test_nothing_is_shown_and_wanted_at_a_limit_of_0() -> None:
    assert preview("text", 0) == ""
    assert shown_preview("text", 100_000, 0) == ""
    assert head_chars(0) == 0


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b]0;never ended",
        "a\x1b[38;5",
        "a\x1b",
        "a\x9d0;x",
        "a\x1bP1$r",
        "a\x1b[",
        "a\x1b_Gf=24",
        "a\x1b \x1b",
    ],
)
def test_a_sequence_that_the_end_cuts_is_left_out(text: str) -> None:
    assert preview(text, 100) == "a"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b]0;title\nnext line", "\nnext line"),
        ("\x1b[31\nx", "\nx"),
        ("\x1bé", "é"),
        ("\x1b\x1b[mx", "x"),
        ("\x9b1mx\x9b0m", "x"),
        ("\x1b]0;t\x9cx", "x"),
        ("bell\x07 tab\t nul\0", "bell\x07 tab\t nul\0"),
    ],
)
def test_only_the_sequence_itself_is_left_out(text: str, seen: str) -> None:
    assert preview(text, 100) == seen


def test_lone_surrogates_are_replaced_one_for_one() -> None:
    assert preview("ok \ud83d end", 100) == "ok \ufffd end"
    assert visible("\ud83d\ude00 😀") == "\ufffd\ufffd 😀"
    assert visible("plain") == "plain"


@pytest.mark.parametrize(("marks", "length"), [(63, 1), (64, 50)])
def test_a_cluster_of_64_stays_whole_and_a_longer_one_is_cut_inside(
    marks: int, length: int
) -> None:
    text = "x" + "e" + "\u0301" * marks + "y"

    assert len(preview(text, 50)) == length


def test_a_quotation_cannot_forge_what_stands_around_it() -> None:
    hostile = "a`; last line: `b\n\r\x00\x85\u2028\u202eend"

    assert quoted(hostile, 100) == (r"`a\x60; last line: \x60b\n\r\x00\x85\u2028\u202eend`")


def test_a_quotation_tells_where_text_was_left_out() -> None:
    assert quoted("abcdef", 6) == "`abcdef`"
    assert quoted("abcdef", 5) == "`abcde`…"
    assert quoted("abcdef", 5, from_end=True) == "…`bcdef`"
    assert quoted("abcdef", 6, from_end=True) == "`abcdef`"
    assert quoted("ab" + FAMILY + "c", 4, from_end=True) == "…`c`"
    assert quoted("x" + FAMILY, 4, from_end=True) == "…``"
    assert quoted("\x1b[31mred\x1b[0m", 3) == "`red`"


@pytest.mark.parametrize(
    "start", ['{"a":"data:image/png;base64,', '{"data":"', '\x1b[31m{"data":"']
)
def test_of_text_in_base64_forty_characters_are_shown(start: str) -> None:
    data = base64.b64encode(bytes(range(256)) * 9).decode()
    text = start + data + '","title":"Login"}'

    shown = shown_preview(text, len(text), 200)

    assert f"{data[:40]} … (" in shown
    assert data[:41] not in shown
    assert shown.endswith(f" … ({len(text) - len(start) - 40:,} more characters)")


@pytest.mark.parametrize(
    "text", ['{"a":"' + "x" * 900, '{"a":"' + "deadBEEF01" * 9 + '"}' + "y" * 900]
)
def test_other_long_words_are_shown_as_they_are(text: str) -> None:
    assert shown_preview(text, len(text), 200).startswith(text[:200])


@pytest.mark.parametrize("from_end", [False, True])
@pytest.mark.parametrize("filler", ["x", "`", "e\u0301", "\x1b[31m", "\x1b["])
def test_a_quotation_reads_no_more_of_a_text_than_its_limit_needs(
    filler: str, *, from_end: bool
) -> None:
    near = (filler * head_chars(40))[: head_chars(40) // len(filler) * len(filler)]
    near = near.rjust(head_chars(40), "x") if from_end else near.ljust(head_chars(40), "x")
    # A str whose far characters cannot be read tells who reads them.
    text = near + "\ud83d" * 100_000 if not from_end else "\ud83d" * 100_000 + near

    cut = quoted(text, 40, from_end=from_end)

    assert "\ufffd" not in cut
    assert cut.startswith("…`") if from_end else cut.endswith("`…")
    assert len(cut) < 200
