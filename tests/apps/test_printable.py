"""Hostile text on a terminal, and in JSON."""

import json

import pytest

from coatcheck.apps._printable import harmless, one_line, printable

DRIVES = ["\x1b[2J", "\x1b]0;title\x07", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2028", "\ud800"]


@pytest.mark.parametrize("drives", DRIVES)
def test_nothing_that_drives_a_terminal_is_left(drives: str) -> None:
    shown = one_line(f"a{drives}b\nc\td")

    assert drives not in shown
    assert "\n" not in shown
    assert shown.endswith("↵c d")


def test_lines_and_tabs_of_what_may_have_several_lines_stay() -> None:
    assert printable("a\r\nb\tc") == "a\nb\tc"


@pytest.mark.parametrize("drives", ["\x7f", "\x9b", "\u202e", "\u2028"])
def test_harmless_json_says_the_same(drives: str) -> None:
    document = json.dumps({"name": drives}, ensure_ascii=False)

    safe = harmless(document)

    assert drives not in safe
    assert json.loads(safe) == {"name": drives}
