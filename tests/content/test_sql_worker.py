"""What the process of a database imports: little, as a first query waits for it."""

import subprocess
import sys

from coatcheck.content import WORKERS


def test_the_program_imports_nothing_of_ours_but_what_lies_beside_it() -> None:
    code = (
        "import sys; from types import ModuleType; import _duckdb; "
        "program = sys.modules['program'] = ModuleType('program'); "
        f"program.__path__ = [{WORKERS!r}]; "
        "import program._sql_worker, program._sql_database; "
        "print(*sorted(name for name in sys.modules if name.startswith(('program', 'coatcheck'))))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    names = ("_sql_cells", "_sql_database", "_sql_worker")
    assert done.stdout.split() == ["program", *(f"program.{name}" for name in names)]
