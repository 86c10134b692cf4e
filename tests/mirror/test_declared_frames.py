"""Parameters declared as arrays and frames, whatever the model hands over."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pytest

from coatcheck import Bank, mirror
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import MemoryStore

# Neither has type hints.
pd: Any = import_module("pandas")
pa: Any = import_module("pyarrow")

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def told(items: Any = None) -> str:
    """Return what a tool was handed."""
    library = type(items).__module__.partition(".")[0]
    columns = items.column_names if library == "pyarrow" else getattr(items, "columns", None)
    return f"{library} {type(items).__name__} {'' if columns is None else list(columns)}"


def declared(kind: object, bank: Bank) -> Callable[..., Any]:
    """Return a mirrored tool whose parameter is declared as `kind`."""

    def tool(items: Any = None) -> str:
        return told(items)

    tool.__annotations__["items"] = kind
    return mirror(tool, bank)


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


@pytest.mark.parametrize("library", FRAMES)
async def test_rows_become_the_frame_that_is_declared(bank: Bank, library: str) -> None:
    tool = declared(FRAMES[library], bank)
    frame = (await bank.put(pd.DataFrame(ROWS))).pointer

    for given in ((await bank.put(ROWS)).pointer, ROWS, frame, f"{frame}#row=2"):
        assert tool(given).startswith(library)
        assert tool(given).endswith(" ['id', 'name']")


async def test_a_list_becomes_the_array_that_is_declared(bank: Bank) -> None:
    tool = declared(np.ndarray, bank)
    array = (await bank.put(np.arange(6).reshape(3, 2))).pointer

    for given in ((await bank.put([[1, 2], [3, 4]])).pointer, [1.5], array, f"{array}#row=1"):
        assert tool(given) == "numpy ndarray "


@pytest.mark.parametrize("kind", [np.ndarray, *FRAMES.values()])
@pytest.mark.parametrize("value", ["plain", 7, [ROWS[0], 1], {"a": 1}, [[1, 2], [3]]])
async def test_what_is_neither_is_refused_before_the_tool_runs(
    bank: Bank, kind: object, value: object
) -> None:
    tool = declared(kind, bank)

    for given in ((await bank.put(value)).pointer, value):
        with pytest.raises(InvalidArgumentError, match="argument 'items' is no "):
            tool(given)


def test_none_is_left_to_the_tool(bank: Bank) -> None:
    tool = declared(pa.Table | None, bank)

    assert tool(None).startswith("builtins NoneType")
    assert tool().startswith("builtins NoneType")
