"""Every example of the documentation runs: Python blocks, and commands that begin `$ coatcheck`."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# Those of adapters run with the frameworks: tests/adapters/test_docs.py.
RUN = [page for page in PAGES if page.parent.name != "adapters"]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "changelog.d/README.md"]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_of_a_page_run_one_after_another(
    page: Path, run_page: Callable[[Path], int]
) -> None:
    assert run_page(page) == page.read_text("utf-8").count("\n```python\n")


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_succeed(
    page: Path, tmp_path: Path, blocks: Callable[[Path, str], Iterable[tuple[int, str]]]
) -> None:
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


def test_every_page_of_an_adapter_is_linked_from_the_page_of_all() -> None:
    linked = {name for name, _ in LINK.findall(prose(ROOT / "docs/adapters.md"))}

    assert {f"adapters/{page.name}" for page in (ROOT / "docs/adapters").glob("*.md")} <= linked
