"""Parameters declared as arrays and frames, whatever the model hands over."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from coatcheck import Bank, mirror
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import MemoryStore

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def of_array(items: np.ndarray[Any, Any]) -> str:
    return type(items).__name__


def of_pandas(items: pd.DataFrame) -> str:
    return f"{type(items).__module__.partition('.')[0]} {len(items)} {list(items.columns)}"


def of_polars(items: pl.DataFrame) -> str:
    return f"{type(items).__module__.partition('.')[0]} {len(items)} {list(items.columns)}"


def of_arrow(items: pa.Table | None = None) -> str:
    return "None" if items is None else f"pyarrow {len(items)} {items.column_names}"


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


@pytest.mark.parametrize("tool", [of_pandas, of_polars, of_arrow])
async def test_rows_become_the_frame_that_is_declared(
    bank: Bank, tool: Callable[[Any], str]
) -> None:
    frame = (await bank.put(pd.DataFrame(ROWS))).pointer
    library = tool.__name__.removeprefix("of_").replace("arrow", "pyarrow")

    for given in ((await bank.put(ROWS)).pointer, ROWS, frame):
        assert mirror(tool, bank)(given) == f"{library} 2 ['id', 'name']"
    assert mirror(tool, bank)(f"{frame}#row=2") == f"{library} 1 ['id', 'name']"


async def test_a_list_becomes_the_array_that_is_declared(bank: Bank) -> None:
    array = (await bank.put(np.arange(6).reshape(3, 2))).pointer

    for given in ((await bank.put([[1, 2], [3, 4]])).pointer, [1.5], array, f"{array}#row=1"):
        assert mirror(of_array, bank)(given) == "ndarray"


@pytest.mark.parametrize("tool", [of_array, of_pandas, of_polars, of_arrow])
@pytest.mark.parametrize("value", ["plain", 7, [ROWS[0], 1], {"a": 1}, [[1, 2], [3]]])
async def test_what_is_neither_is_refused_before_the_tool_runs(
    bank: Bank, tool: Callable[[Any], str], value: object
) -> None:
    pointer = (await bank.put(value)).pointer

    for given in (pointer, value):
        with pytest.raises(InvalidArgumentError, match="argument 'items' is no "):
            mirror(tool, bank)(given)


def test_none_is_left_to_the_tool(bank: Bank) -> None:
    assert mirror(of_arrow, bank)(None) == "None"
    assert mirror(of_arrow, bank)() == "None"
