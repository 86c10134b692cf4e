"""What the pages on security promise is shown by a test that is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (?!promise \||---)(.+) \| (.+) \|$", re.MULTILINE)


@cache
def defined_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


ROWS = _ROW.findall(PAGE.read_text("utf-8"))


@pytest.mark.parametrize(("promise", "shown_by"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_each_promise_names_tests_that_are_there(promise: str, shown_by: str) -> None:
    named = _TEST.findall(shown_by)

    assert named, promise
    assert shown_by == ", ".join(f"`{file}::{name}`" for file, name in named)
    for file, name in named:
        assert name in defined_in(file)


@pytest.mark.parametrize("whom", ["scope", "user of the machine", "model", "output", "credentials"])
def test_something_is_promised_to_each_party_and_something_is_not(whom: str) -> None:
    sections = re.split("^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]

    (section,) = [each for each in sections if whom in each.splitlines()[0]]

    assert _ROW.search(section)
    assert "Not promised" in section


def test_the_page_on_reports_leads_to_the_promises_and_names_nobody() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")

    assert "(docs/security.md)" in text
    assert "@" not in text
    assert "http" not in text
