"""The page of plans names each argument of a constructor, and its default."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from coatcheck import runtime

PAGE = (Path(__file__).parents[2] / "docs" / "plans.md").read_text("utf-8").splitlines()
SHARED = {"self", "context", "model", "options"}


@pytest.mark.parametrize(
    "name", ["StepExecutor", "TaskExecutor", "ParallelTaskExecutor", "Planner", "Agent"]
)
def test_the_page_gives_the_arguments_of_a_class_with_their_defaults(name: str) -> None:
    row = next(line for line in PAGE if line.startswith(f"| `{name}` |")).split("|")[2]
    told = dict(re.findall(r"`([a-z_]+)=?([^`]*)`", row))

    parameters = inspect.signature(getattr(runtime, name).__init__).parameters
    own = {key: each.default for key, each in parameters.items() if key not in SHARED}

    assert set(told) == set(own)
    for key, default in told.items():
        assert own[key] == (ast.literal_eval(default) if default else inspect.Parameter.empty)


def test_the_page_gives_the_options_of_steps() -> None:
    row = next(line for line in PAGE if line.startswith("All take `model`"))
    told = set(re.findall(r"`([a-z_]+)=", row))

    assert told == set(runtime.StepOptions.__annotations__)
