"""Writes into docs/adapters.md what holds in each framework that is installed here.

With `.venvs/frameworks/bin/python`; and for CrewAI with the Python of its session of nox.
"""

import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Replace the section of each framework, or add it."""
    sys.path.insert(0, str(ROOT))
    table = runpy.run_path(str(ROOT / "tests/adapters/test_table.py"))
    is_of_missing = runpy.run_path(str(ROOT / "conftest.py"))["is_of_missing"]
    page = ROOT / "docs/adapters.md"
    head, *sections = re.split(r"^(?=### )", page.read_text("utf-8"), flags=re.MULTILINE)
    told = {section.split()[1].rstrip(":"): section.strip() for section in sections}
    for framework in table["FRAMEWORKS"]:
        if not is_of_missing(framework):
            told[framework] = table["told"](framework).strip()
    page.write_text(head + "\n\n".join(told[name] for name in sorted(told)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
