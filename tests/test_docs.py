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
