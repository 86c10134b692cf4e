"""The examples run as they stand, and cost what their pages and the papers say."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coatcheck.testing import chat_server

ROOT = Path(__file__).parents[1]
WINDOW_TOKENS = 200_000


def rows(example: str, *arguments: str) -> list[dict[str, Any]]:
    path = ["-m", example] if (ROOT / "examples" / example).is_dir() else [example]
    command = [sys.executable, *path, "--json", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT / "examples", env=os.environ
    )
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


def test_prices_are_changed_by_a_plan_of_pointers_and_no_id_passes_through_the_model() -> None:
    pointers, raw = rows("pricing")

    for row in (pointers, raw):
        assert row["ids exact"] == "yes"
        assert row["prices right"] == "yes"
    assert pointers["ids seen"] == 0
    assert raw["ids seen"] == 847 + 3
    assert pointers["answer"]["products"] < 847
    assert pointers["largest request"] < 3_000
    assert raw["largest request"] > WINDOW_TOKENS
    assert pointers["tokens out"] * 200 < raw["tokens out"]
    assert pointers["characters out"] * 100 < raw["characters out"]
    assert pointers["scope characters"] * 2 < raw["scope characters"]
    assert pointers["scope tokens"] * 2 < raw["scope tokens"]


def test_the_pricing_story_runs_on_a_model_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])
    next_turn = importlib.import_module("pricing.policy").next_turn

    def reply(messages: list[dict[str, Any]]) -> Any:
        first = next(each["content"] for each in messages if each["role"] == "user")
        returned = [each["content"] for each in messages if each["role"] == "tool"]
        return next_turn(first, returned)

    with chat_server(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "of no use here")
        command = [sys.executable, "-m", "pricing", "--model", "openai-chat:any"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=ROOT / "examples"
        )

    heads, *lines = (re.split(r" {2,}", line.strip()) for line in done.stdout.splitlines())
    (row,) = (dict(zip(heads, line, strict=True)) for line in lines)
    assert int(row["requests"]) == len(server.asked)
    assert row["ids seen"] == "0"
    assert row["ids exact"] == row["prices right"] == "yes"


def test_three_agents_report_exactly_on_events_that_none_of_them_sees() -> None:
    found = rows("three_agents.py", "--events", "2000")
    cost = {(row["way"], row["agent"]): row["tokens in"] for row in found}
    answers = [row["answer"] for row in found if row["agent"] == "report"]

    assert answers[0] == answers[1] != ""
    assert [row["sees events"] for row in found] == ["no", "no", "no", "yes", "yes", "no"]
    for agent in ("collect", "analyze"):
        assert cost["pointers", agent] * 100 < cost["raw", agent]


@pytest.mark.parametrize(
    "command",
    [["grid.py", "--sizes", "2"], ["safety_sheet.py"], ["three_agents.py", "--events", "500"]],
    ids=lambda command: command[0],
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
