"""The examples run as they stand, and cost what their pages and the papers say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WINDOW_TOKENS = 200_000


def rows(example: str, *arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(ROOT / "examples" / example), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_grid_costs_the_same_by_pointer_at_every_size_and_overflows_raw() -> None:
    small, middle, large = rows("grid.py")

    assert [row["floats"] for row in (small, middle, large)] == [4_096, 262_144, 2_097_152]
    costs = [row["pointer tokens"] for row in (small, middle, large)]
    assert max(costs) <= 1_234
    assert max(costs) - min(costs) <= 5
    for row in (small, middle, large):
        assert row["calls"] == 3
        assert row["answer"] == "The most similar molecule is acetaldehyde."
    assert small["raw answer"] == small["answer"]
    for row in (middle, large):
        assert row["raw answer"] is None
        assert row["raw calls"] == 2
    assert middle["raw tokens"] > 2_500_000
    assert large["raw tokens"] > 20_000_000


def test_the_sheet_costs_what_the_paper_says_and_the_hard_cases_are_answered() -> None:
    found = rows("safety_sheet.py")
    cost = {(row["case"], row["way"]): row["in and out"] for row in found}

    assert len(found) == 12
    assert [row["right"] for row in found] == ["yes"] * 12
    assert cost["one product", "pointers"] <= 841
    assert 6_000 <= cost["one product", "raw"] <= 7_000
    for case in ("one product", "two products", "list split in two", "name like a pointer"):
        assert cost[case, "pointers"] < cost[case, "pointers, can read"] < cost[case, "raw"] / 3


@pytest.mark.parametrize(
    "command", [["grid.py", "--sizes", "2"], ["safety_sheet.py"]], ids=lambda command: command[0]
)
def test_an_example_prints_a_table(command: list[str]) -> None:
    example, *arguments = command
    path = str(ROOT / "examples" / example)
    done = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, check=True
    )

    heads, *lines = done.stdout.splitlines()
    assert heads.split()
    assert lines
    assert len({len(line) for line in (heads, *lines)}) == 1
