"""How much of the head an envelope shows: less where the glimpse tells what is in it."""

import json
from collections.abc import Callable
from importlib import import_module

import pytest

from coatcheck import Bank, Limits
from coatcheck.stores import MemoryStore

ROWS = [{"id": at, "city": "Graz", "amount": at / 7} for at in range(900)]
LOG = [f"2026-03-01T08:{at // 60:02}:{at % 60:02}Z INFO request {at} is done" for at in range(900)]
ERROR = "2026-03-01T08:10:12Z ERROR [billing] charge refused: card expired, order 4815162342"


async def shown(value: object, *, glimpse_tokens: int = 150) -> tuple[int, int]:
    """Return the characters of the value that an envelope shows, and of all of it."""
    bank = Bank(MemoryStore(), limits=Limits(glimpse_tokens=glimpse_tokens))
    artifact = await bank.put(value)
    head, mark, _ = artifact.shown_preview.rpartition(" … (")
    assert mark
    return len(head), len(artifact.preview)


@pytest.mark.parametrize(
    ("value", "chars"),
    [
        (ROWS, 120),
        ("\n".join(LOG), 120),
        ([[at / 7] * 9 for at in range(90)], 40),
        (list(range(900)), 40),
        (["text"] * 900, 200),
        ([["text"] * 9] * 90, 200),
        ([[1, "text"] * 9] * 90, 200),
        ([[{"a": 1}] * 9] * 90, 200),
        ("word " * 900, 200),
    ],
)
async def test_less_is_shown_of_what_the_glimpse_tells(value: object, chars: int) -> None:
    assert await shown(value) == (chars, 1_000)
    assert await shown(value, glimpse_tokens=0) == (200, 1_000)


async def test_a_log_is_stood_in_for_by_300_tokens_with_its_error_in_them() -> None:
    count: Callable[[str], int] = import_module("rs_bpe").openai.o200k_base().count
    lines = [*LOG * 20]
    lines[17_000] = ERROR
    artifact = await Bank(MemoryStore()).put("\n".join(lines))

    wire = {"preview": artifact.shown_preview, "note": artifact.read_back}
    wire |= {"pointer": artifact.pointer, "glimpse": str(artifact.glimpse)}

    assert count(json.dumps({"role": "tool", "content": json.dumps(wire)})) <= 300
    assert f"first error, line 17,001: `{ERROR}`" in str(artifact.glimpse)
