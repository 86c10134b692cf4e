"""Every example of the documentation runs: Python blocks, and commands that begin `$ coatcheck`."""

import ast
import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from inspect import iscoroutine
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "changelog.d/README.md"]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """Yield each block of `language`: the lines of the page before it, and its text."""
    text = page.read_text("utf-8")
    for match in BLOCK.finditer(text):
        if match[1] == language:
            yield text.count("\n", 0, match.start(2)), match[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_of_a_page_run_one_after_another(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}

    for line_number, source in blocks(page, "python"):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile("\n" * line_number + source, str(page), "exec", flags, dont_inherit=True)
        waiting: object = eval(code, names)
        if iscoroutine(waiting):
            asyncio.run(waiting)

    assert "__builtins__" in names or not list(blocks(page, "python"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_succeed(page: Path, tmp_path: Path) -> None:
    environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    lines = [line for _, text in blocks(page, "console") for line in text.splitlines()]
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ coatcheck")]

    for command in commands:
        _, *arguments = shlex.split(command)
        program = Path(sys.executable).with_name("coatcheck")
        done = subprocess.run(
            [program, *arguments], cwd=ROOT, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr.decode()}"


def prose(page: Path) -> str:
    """Return a page without its blocks: a `#` in those is no heading."""
    return BLOCK.sub("", page.read_text("utf-8"))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them.

    Lower case; letters, digits, `_` and `-` stay, a space becomes `-`, all else goes. The second
    heading of a name gets `-1`, and so on.
    """
    found: dict[str, int] = {}
    told: set[str] = set()
    for heading in HEADING.findall(text):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        told.add(f"{anchor}-{found[anchor]}" if anchor in found else anchor)
        found[anchor] = found.get(anchor, 0) + 1
    return told


def test_an_anchor_is_made_as_github_makes_it() -> None:
    text = "# The store's `get` & [all](x.md)\n## Twice\n## Twice\n## Łódź, 2_a-b\n"

    assert anchors(text) == {"the-stores-get--all", "twice", "twice-1", "łódź-2_a-b"}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_of_a_page_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    dead: list[str] = []
    for name, anchor in LINK.findall(prose(page)):
        target = (page.parent / name).resolve() if name else page
        is_there = target.exists() and target.is_relative_to(ROOT)
        if not is_there or (anchor and anchor not in anchors(prose(target))):
            dead.append(f"{name}#{anchor}")

    assert dead == []


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {name for name, _ in LINK.findall(prose(ROOT / "README.md"))}

    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked
