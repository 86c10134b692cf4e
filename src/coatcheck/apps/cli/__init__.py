"""The command line. Needs the `cli` extra; without it, says so."""

import sys
from importlib.util import find_spec

_NEEDED = ("typer", "rich", "rs_bpe")


def main() -> None:
    """Run `coatcheck` with the arguments of this process, and exit."""
    missing = [module for module in _NEEDED if find_spec(module) is None]
    if missing:
        sys.stderr.write("coatcheck: the command needs an extra: pip install 'coatcheck[cli]'\n")
        sys.exit(2)
    if sys.argv[1:2] == ["query"]:
        from ...bank.sql import start_early

        # To import the program takes as long as a process for SQL takes to start.
        start_early(sys.argv[2:])
    from ._program import app

    app(prog_name="coatcheck")
