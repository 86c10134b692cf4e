"""The page of all adapters says of each what its suite does."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck.testing import AdapterSuite

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs/adapters.md"
CASES = [name for name in dir(AdapterSuite) if name.startswith("test_")]

FRAMEWORKS = [
    path.stem.removeprefix("test_")
    for path in sorted(FOLDER.glob("test_*.py"))
    if re.search(r"^class Test\w+\(\w+Suite\)", path.read_text("utf-8"), re.MULTILINE)
]
"""Those with a suite."""


def suites(framework: str) -> Iterator[type[AdapterSuite]]:
    """Yield the suites of a framework."""
    module = importlib.import_module(f"tests.adapters.test_{framework}")
    for each in vars(module).values():
        if (
            isinstance(each, type)
            and issubclass(each, AdapterSuite)
            and each.__name__.startswith("Test")
        ):
            yield each


def told(framework: str) -> str:
    """Return what the page says of a framework: how many cases hold, and which not, and why."""
    reasons: dict[str, str] = {}
    for suite in suites(framework):
        reasons |= suite.cannot
    count = f"{len(CASES) - len(reasons)} of {len(CASES)} cases hold"
    lines = [
        f"- {case.removeprefix('test_').replace('_', ' ')}: {reason}"
        for case, reason in sorted(reasons.items())
    ]
    return "\n".join([f"### {framework}: {count}", *([""] if lines else []), *lines]) + "\n"


@pytest.mark.parametrize(
    "framework",
    [pytest.param(name, id=name, marks=pytest.mark.framework(name)) for name in FRAMEWORKS],
)
def test_page_says_of_a_framework_what_its_suite_does(framework: str) -> None:
    """Where it does not, `scripts/adapters_page.py` writes it."""
    assert told(framework) in PAGE.read_text("utf-8"), told(framework)
