"""Tests each adapter with the lowest and the newest version of its framework, alone.

`make adapters` runs all of it, and ends with a table. `nox -s 'adapter(langchain, lowest)'` runs
one.
"""

import json
import runpy
import tomllib
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.stop_on_first_error = False

FRAMEWORKS: list[str] = list(runpy.run_path("conftest.py")["FRAMEWORKS"])
PROJECT = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
MORE = {
    "deepagents": ["langgraph-checkpoint-sqlite>=3", "numpy>=2", "pyarrow>=21"],
    "google_adk": ["google-adk[mcp]", "numpy>=2"],
    "langchain": ["langgraph-checkpoint-sqlite>=3", "numpy>=2"],
    "pydantic_ai": ["fastmcp>=4", "pydantic-ai-slim[openai]"],
}
"""What the tests of an adapter use beside its framework."""

WARNINGS = {
    "crewai": ["SelectableGroups dict interface:DeprecationWarning"],
    "google_adk": [
        "SelectableGroups dict interface:DeprecationWarning",
        "BaseAgentConfig is deprecated:DeprecationWarning",
        "MCPTool class is deprecated:DeprecationWarning",
        "[EXPERIMENTAL] feature:UserWarning",
    ],
}
"""What old versions say in their own imports, and an opentelemetry that they bring."""

ORDER = ("lowest", "newest")
TABLE = Path(".nox/adapters.json")


def requirements(framework: str) -> list[str]:
    """Return what a framework's tests need of it: its extra, or what a group names for it."""
    if framework in EXTRAS:
        return [each for each in EXTRAS[framework] if not each.startswith("coatcheck[")]
    name = {"llama_index": "llama-index-core"}.get(framework, framework)
    return [each for each in GROUPS["frameworks"] + GROUPS["crewai"] if each.startswith(name)]


@nox.session
@nox.parametrize("versions", ORDER, ids=ORDER)
@nox.parametrize("framework", FRAMEWORKS, ids=FRAMEWORKS)
def adapter(session: nox.Session, framework: str, versions: str) -> None:
    """Test one adapter in an environment with one version of its framework."""
    extra = f"[{framework}]" if framework in EXTRAS else ""
    wanted = requirements(framework)
    resolution = "lowest-direct" if versions == "lowest" else "highest"
    try:
        # First the framework as it likes to be, then Coatcheck and the tests beside it.
        session.install("--resolution", resolution, "--upgrade", *wanted)
        session.install(f"--editable=.{extra}", "hypothesis", "pytest", *MORE.get(framework, []))
    except CommandFailed:
        note(framework, versions, "", "does not install")
        raise
    package = wanted[0].partition(">")[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    version = str(session.run("python", "-c", code, silent=True)).strip()
    note(framework, versions, f"{package} {version}", "FAILED")
    first = framework.partition("_")[0]
    session.run(
        "python",
        "-m",
        "pytest",
        "--quiet",
        *(f"--pythonwarnings=ignore:{each}" for each in WARNINGS.get(framework, [])),
        *map(str, sorted(Path("tests/adapters").glob(f"test_{first}*.py"))),
        *map(str, sorted(Path("src/coatcheck/adapters").glob(f"*{first}*.py"))),
        "tests/adapters/test_docs.py",
        "tests/adapters/test_table.py",
        env={"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"},
    )
    note(framework, versions, f"{package} {version}", "passed")


@nox.session(python=False)
def table(session: nox.Session) -> None:
    """Print what the last run of each session gave, and fail where one did not pass."""
    rows = noted()
    expected = {f"{framework} {versions}" for framework in FRAMEWORKS for versions in ORDER}
    for key in sorted(expected, key=lambda key: (key.split()[0], ORDER.index(key.split()[1]))):
        package, result = rows.get(key, ("", "not run"))
        print(f"{key:<22} {package:<30} {result}")
    left = sorted(key for key in expected if rows.get(key, ("", ""))[1] != "passed")
    if left:
        session.error(f"not passed: {', '.join(left)}")


def noted() -> dict[str, tuple[str, str]]:
    return json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}


def note(framework: str, versions: str, package: str, result: str) -> None:
    rows = noted() | {f"{framework} {versions}": (package, result)}
    TABLE.write_text(json.dumps(rows, indent=1), "utf-8")
