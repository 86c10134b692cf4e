"""What `import coatcheck` brings with it."""

import subprocess
import sys

LAZY = {
    *("pydantic", "jmespath", "regex", "platformdirs", "asyncio", "anyio"),
    *("duckdb", "re2", "obstore", "redis", "rs_bpe", "typer", "rich"),
    *("numpy", "pandas", "polars", "pyarrow"),
    *("coatcheck.stores._redis", "coatcheck.stores._object", "coatcheck.content.sql"),
    "coatcheck.content._glimpse_formats",
    *("coatcheck.memory", "coatcheck.tools", "coatcheck.runtime"),
}


def test_the_core_is_imported_without_what_few_calls_need() -> None:
    code = f"import sys, coatcheck; print(sorted({LAZY!r} & {{*sys.modules}}))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
