"""Which tests of adapters run here: those whose framework is installed. The rest are named."""

from importlib.util import find_spec
from pathlib import Path

import pytest

FRAMEWORKS = {
    "agno": "agno",
    "anthropic": "anthropic",
    "crewai": "crewai",
    "deepagents": "deepagents",
    "fastmcp": "fastmcp",
    "google_adk": "google.adk",
    "langchain": "langchain",
    "llama_index": "llama_index.core",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
}
"""What is imported of each, by the name of its adapter, its tests and its page."""

APART = frozenset({"crewai"})
"""Those that `make adapters` alone installs."""

ADAPTERS = ("src/coatcheck/adapters", "tests/adapters")


def is_installed(framework: str) -> bool:
    try:
        return find_spec(FRAMEWORKS[framework]) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


MISSING = [name for name in FRAMEWORKS if not is_installed(name)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-frameworks",
        action="store_true",
        help=f"fail where a framework is missing, but for {', '.join(sorted(APART))}",
    )


def pytest_configure(config: pytest.Config) -> None:
    lacking = [name for name in MISSING if name not in APART]
    if lacking and config.getoption("all_frameworks"):
        raise pytest.UsageError(f"not installed here: {', '.join(lacking)}")


def is_of_missing(name: str) -> bool:
    """Return whether a file of this name belongs to a framework that is not installed."""
    first = name.removeprefix("test_").lstrip("_").partition("_")[0]
    return first in {missing.partition("_")[0] for missing in MISSING}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if any(collection_path.parent == config.rootpath / adapters for adapters in ADAPTERS):
        return is_of_missing(collection_path.stem) or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marks = [item.get_closest_marker("framework") for item in items]
    out = [mark is not None and is_of_missing(mark.args[0]) for mark in marks]
    config.hook.pytest_deselected(
        items=[item for item, is_out in zip(items, out, strict=True) if is_out]
    )
    items[:] = [item for item, is_out in zip(items, out, strict=True) if not is_out]


def pytest_report_header() -> str | None:
    if not MISSING:
        return None
    return f"not installed here, so their adapters are not tested: {', '.join(MISSING)}"
