"""Runs the tests on each CPython from 3.11 on that this machine has, each in its own environment.

Nothing is downloaded: a version that is not there is printed as not run.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

EXPECTED = ("3.11", "3.12", "3.13", "3.14")
OLDEST = (3, 11)


def main() -> int:
    """Return 0 where all that ran passed."""
    found = interpreters()
    results = {version: run_suite(version, found[version]) for version in sorted(found, key=order)}
    print()
    for version in sorted({*EXPECTED, *found}, key=order):
        print(f"Python {version}: {results.get(version, 'not on this machine, not run')}")
    return 1 if any(result.startswith("FAILED") for result in results.values()) else 0


def order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def interpreters() -> dict[str, str]:
    """Return the path of the newest released CPython of each minor version."""
    places: list[str] = []
    for place in os.environ["PATH"].split(os.pathsep):
        # The shims of pyenv refuse all versions but the chosen one: look at what lies behind.
        behind = sorted(map(str, Path(place).parent.glob("versions/3.*/bin")))
        places += behind if Path(place).name == "shims" and behind else [place]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(places),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    uv = Path(sys.executable).with_name("uv")
    listing = output(
        [str(uv), "python", "list", "--only-installed", "--output-format", "json"], environment
    )
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for row in json.loads(listing):
        release = row["version"]
        if row["implementation"] != "cpython" or not re.fullmatch(r"3\.\d+\.\d+", release):
            continue
        if row.get("variant", "default") != "default" or order(release)[:2] < OLDEST:
            continue
        minor = release.rpartition(".")[0]
        newest[minor] = max(newest.get(minor, ((0,), "")), (order(release), row["path"]))
    return {minor: path for minor, (_, path) in newest.items()}


def output(command: list[str], environment: Mapping[str, str]) -> str:
    return subprocess.run(
        command, env=environment, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def run_suite(version: str, python: str) -> str:
    """Return ``passed in … s`` or ``FAILED``."""
    print(f"\n=== Python {version}: {python}", flush=True)
    started = time.monotonic()
    command = ["make", "suite", f"VENV=.venvs/{version}", f"PYTHON={python}"]
    code = subprocess.run(command, check=False).returncode
    return f"FAILED, exit {code}" if code else f"passed in {time.monotonic() - started:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
