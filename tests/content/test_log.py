"""What a log tells: levels and times, of text that is one and of no other."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import glimpse
from coatcheck.content._log import read_log

LINES = [f"2026-03-01T10:{at // 60:02}:{at % 60:02}Z INFO step {at}" for at in range(600)]


def text_of(*replaced: tuple[int, str]) -> str:
    lines = list(LINES)
    for at, line in replaced:
        lines[at] = line
    return "\n".join(lines) + "\n"


def test_levels_are_counted_by_line_the_gravest_first() -> None:
    log = read_log(
        text_of((1, "WARN a"), (2, "WARNING b"), (3, "[ERROR] c ERROR: d"), (4, "TERROR INFORM"))
    )

    assert list(log.levels.items()) == [("ERROR", 1), ("WARN", 2), ("INFO", 596)]
    assert not log.sampled


@pytest.mark.parametrize(
    "line",
    [
        "level=error msg=x",
        'x "level":"error"',
        'x "level": "error"',
        "severity: error",
        "lvl=error",
    ],
)
def test_levels_in_small_letters_count_behind_their_name(line: str) -> None:
    assert read_log(f"{line}\n" * 9).levels == {"ERROR": 9}
    assert read_log("an error of this level\n" * 9).levels == {}


CAPITALS = re.compile(r"(?<!\w)(?:FATAL|PANIC|ERROR|WARN|WARNING|INFO)(?!\w)")


@given(
    st.lists(
        st.text(max_size=3)
        | st.sampled_from(
            ["INFO", "ERROR", "WARN", "WARNING", "xINFO", "INFOé", "Ixnfo", "_ERROR"]
        ),
        max_size=12,
    ),
    st.sampled_from([" ", "\n", "-", "x", " é "]),
    st.sampled_from([1, 7, 20_000]),
)
def test_a_level_counts_once_in_each_line_that_names_it(
    words: list[str], between: str, times: int
) -> None:
    text = (between.join(words) + "\n") * times

    levels = read_log(text).levels

    expected: dict[str, int] = {}
    for line in text[: len(text) // times].split("\n"):
        for word in {match[0] for match in CAPITALS.finditer(line)}:
            level = {"WARNING": "WARN", "PANIC": "FATAL"}.get(word, word)
            expected[level] = expected.get(level, 0) + times
    assert levels in ({}, expected) or len(text) > 2_000_000


def test_lines_of_any_length_are_counted_whole() -> None:
    long = "INFO " + "x" * 200_000 + " INFO"

    assert read_log(f"{long}\n" * 5).levels == {"INFO": 5}
    assert read_log(f"{'INFO x' * 40_000} INFO ERROR\n" * 5).levels == {"ERROR": 5, "INFO": 5}


def test_prose_that_has_such_a_word_has_no_levels() -> None:
    assert read_log("INFO\n" * 4 + "word\n" * 9).levels == {}
    assert read_log("INFO\n" * 5 + "word\n" * 9).levels == {"INFO": 5}
    assert read_log("INFO\n" * 5 + "word\n" * 90).levels == {}


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (
            "2016-12-19 20:54:31,909",
            "2016-12-19 20:59:04,263",
            "2016-12-19 20:54:31 to 20:59:04",
        ),
        (
            "2026-03-01T10:00:00+01:00",
            "2026-03-02T10:00:00+01:00",
            "2026-03-01T10:00:00+01:00 to 2026-03-02T10:00:00+01:00",
        ),
        (
            "10/Oct/2000:13:55:36 -0700",
            "10/Oct/2000:13:56:36 -0700",
            "10/Oct/2000:13:55:36 -0700 to 10/Oct/2000:13:56:36 -0700",
        ),
        ("Jan  5 10:00:00", "Jan 15 10:00:00", "Jan  5 10:00:00 to Jan 15 10:00:00"),
    ],
)
def test_the_first_and_the_last_time_are_told(first: str, last: str, shown: str) -> None:
    text = f"[{first}] a\n" * 5 + f"[{last}] b\n"

    log = read_log(text)

    assert log.span == (first, last)
    assert list(log.parts()) == [shown]


def test_text_that_only_mentions_dates_has_no_span() -> None:
    assert read_log("on 2026-01-01 10:00:00 it was\n" + "so\n" * 9).span is None
    assert read_log("2026-01-01 10:00:00 a\n" * 9).span is None
    assert read_log("2026-01-01 10:00:00 a\n" + "b\n" * 20_000).span is None


@pytest.mark.parametrize("more", [0, 1])
def test_up_to_two_million_characters_all_is_counted(more: int) -> None:
    text = ("INFO " + "x" * 94 + "\n") * 20_000 + "x" * more

    log = read_log(text)

    assert log.sampled == bool(more)
    assert list(log.parts()) == (["sampled: INFO 100%"] if more else ["INFO 20,000"])


def test_of_a_sample_levels_are_told_by_their_share() -> None:
    text = ("ERROR x\n" + "INFO x\n" * 999) * 600

    assert read_log(text).parts()[0] == "sampled: ERROR <1%, INFO >99%"


def test_a_log_of_twenty_thousand_lines_shows_its_one_error() -> None:
    text = "\n".join(LINES * 33).replace("INFO step 77", "DEBUG step 77")
    text += "\n2026-03-01T10:59:59Z ERROR pay: connection refused by 10.0.3.7:5432\nINFO end\n"

    shown = str(glimpse(text, content_type="text/plain", size_bytes=len(text), budget_tokens=150))

    assert shown == (
        f"19,802 lines, {len(text):,} characters; ERROR 1, INFO 19,768, DEBUG 33; "
        "2026-03-01T10:00:00Z to 10:59:59Z; first error, line 19,801: "
        "`2026-03-01T10:59:59Z ERROR pay: connection refused by 10.0.3.7:5432`; "
        "last line: `INFO end`"
    )


def test_of_a_head_and_a_tail_all_lines_and_characters_are_told() -> None:
    head, tail = "INFO head\n" * 50, "INFO tail\n" * 49 + "ERROR late\n"

    found = glimpse(
        head + tail,
        content_type="text/plain",
        size_bytes=10**9,
        budget_tokens=150,
        line_count=9_000_000,
        length_chars=10**9,
        head_length=len(head),
    )

    assert str(found) == (
        "9,000,000 lines, 1,000,000,000 characters; sampled: ERROR 1%, INFO 99%; "
        "error, line 9,000,000: `ERROR late`"
    )


def test_of_a_head_and_a_tail_of_csv_the_head_is_read() -> None:
    head, tail = "a,b\n" + "1,2\n" * 50 + "3", "7,8\n" * 50

    found = glimpse(
        head + tail,
        content_type="text/csv",
        size_bytes=10**9,
        budget_tokens=150,
        row_count=9_000,
        head_length=len(head),
    )

    assert str(found) == (
        "9,000 rows, 2 columns (values sampled from 50 rows); a int 1=100%; b int 2=100%"
    )
