"""The examples of the pages of adapters run, each where its framework is installed."""

from collections.abc import Callable
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs/adapters").glob("*.md"))

WARNINGS = {
    # It reads every field of its own models, those that it deprecates too, and one of its packages
    # does not let its parts be set as attributes.
    "crewai": ["ignore::DeprecationWarning", "ignore::ImportWarning"],
    # Its workflows look at all attributes of an agent, those that pydantic deprecates too.
    "llama_index": ["ignore::pydantic.warnings.PydanticDeprecationWarning"],
}

BESIDE = {"langchain": "deepagents"}
"""What a page uses beside the framework that it is about, and cannot be had without."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.stem,
            marks=[
                pytest.mark.framework(BESIDE.get(page.stem, page.stem)),
                *map(pytest.mark.filterwarnings, WARNINGS.get(page.stem, ())),
            ],
        )
        for page in PAGES
    ],
)
def test_examples_of_a_page_run_one_after_another(
    page: Path, run_page: Callable[[Path], int]
) -> None:
    assert run_page(page) == page.read_text("utf-8").count("\n```python\n")
