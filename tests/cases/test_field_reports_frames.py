"""Field reports: frames that tools return."""

from importlib import import_module
from typing import Any

import pytest

from coatcheck import Bank, Envelope, mirror
from coatcheck.content import loads
from coatcheck.stores import MemoryStore
from coatcheck.tools import retrieval_tools

pd: Any = import_module("pandas")
pl: Any = import_module("polars")
pa: Any = import_module("pyarrow")


def columns() -> dict[str, list[Any]]:
    """Return the columns of the report's frame: 5,000 x 3, one cell of 300 characters."""
    texts = [f"note {number}" for number in range(5_000)]
    texts[2_500] = "x" * 300
    return {"id": list(range(5_000)), "text": texts, "value": [0.5] * 5_000}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
async def test_br_047_a_frame_is_banked_whole_and_never_as_its_repr(library: str) -> None:
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    bank = Bank(MemoryStore())

    async def frame() -> Any:
        return make(columns())

    shown = await mirror(frame, bank)()

    assert isinstance(shown, Envelope)
    assert str(shown.glimpse).startswith("5,000 rows, 3 columns")
    assert "..." not in str(shown)
    rows: Any = await bank.get(shown.pointer, as_type=list[dict[str, Any]])
    assert (len(rows), rows[-1]["id"], len(rows[2_500]["text"])) == (5_000, 4_999, 300)
    (retrieve,) = retrieval_tools(bank)
    reply: Any = loads(
        (await retrieve.call({"artifactId": shown.pointer, "offset": 4_999})).encode()
    )
    assert loads(reply["content"].encode()) == [{"id": 4_999, "text": "note 4999", "value": 0.5}]
    assert (reply["totalSize"], reply["unit"]) == (5_000, "rows")
