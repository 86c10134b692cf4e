"""Field reports on the values that tools return: BR-044, BR-048, BR-050, BR-051."""

import datetime as dt
import enum
import json
import math
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from coatcheck import Bank, Envelope, mirror
from coatcheck.stores import MemoryStore


class Color(enum.Enum):
    RED = "red"


FILLER = "x" * 60_000
ID = uuid.UUID(int=5)
AT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


@dataclass
class Result:
    at: dt.datetime = AT
    price: Decimal = Decimal("10.50")
    id: uuid.UUID = ID
    k: Color = Color.RED
    tags: set[str] = field(default_factory=lambda: {"b", "a"})
    filler: str = FILLER


class Model(BaseModel):
    at: dt.datetime = AT
    price: Decimal = Decimal("10.50")
    id: uuid.UUID = uuid.UUID(int=5)
    k: Color = Color.RED
    tags: set[str] = {"b", "a"}
    filler: str = FILLER


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


async def shown_by(value: object, bank: Bank, *, waits: bool) -> Any:
    """Return what a mirrored tool that returns `value` shows, the tool async or not."""

    async def waiting() -> object:
        return value

    def blocking() -> object:
        return value

    return await mirror(waiting, bank)() if waits else mirror(blocking, bank)()


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(
    "make", [Result, Model, lambda: asdict(Result())], ids=["dataclass", "model", "dict"]
)
async def test_br_044_rich_types_in_a_result_are_no_failure(
    bank: Bank, make: Callable[[], object], waits: bool
) -> None:
    value = make()

    shown = await shown_by(value, bank, waits=waits)

    assert isinstance(shown, Envelope)
    assert not shown.is_error
    assert await bank.get(shown.pointer) == {
        "at": "2026-01-02T03:04:05+00:00",
        "price": "10.50",
        "id": "00000000-0000-0000-0000-000000000005",
        "k": "red",
        "tags": ["a", "b"],
        "filler": FILLER,
    }
    if not isinstance(value, dict):
        assert await bank.get(shown.pointer, as_type=type(value)) == value


@pytest.mark.parametrize("waits", [True, False])
async def test_br_044_a_small_rich_result_is_shown_unchanged(bank: Bank, waits: bool) -> None:
    for value in (Result(filler=""), Model(filler=""), {"at": AT}, {1, 2}, Color.RED):
        assert await shown_by(value, bank, waits=waits) is value
    assert [artifact async for artifact in bank.list()] == []


async def test_br_048_numbers_that_are_not_finite_stay_visible_in_strict_json(bank: Bank) -> None:
    value = {"rows": [1.0, math.nan, 3.0, math.inf], "filler": FILLER}

    shown = await shown_by(value, bank, waits=True)
    payload = await bank.payload(shown.pointer)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(payload, parse_constant=refuse)["rows"] == [1.0, "NaN", 3.0, "Infinity"]
    assert "null" not in payload.decode()


async def test_br_050_a_huge_number_and_a_frozenset_are_kept_whole(bank: Bank) -> None:
    value = {"n": 10**5_000, "s": frozenset([FILLER])}

    shown = await shown_by(value, bank, waits=True)

    assert isinstance(shown, Envelope)
    assert (await bank.payload(shown.pointer)).startswith(b'{"n":1' + b"0" * 5_000 + b',"s":["xx')
    assert await bank.get(shown.pointer) == {"n": 10**5_000, "s": [FILLER]}
    typed = await bank.get(shown.pointer, as_type=dict[str, int | frozenset[str]])
    assert typed == value


@pytest.mark.parametrize("waits", [True, False])
async def test_br_051_a_cycle_is_shown_in_part_and_the_run_goes_on(bank: Bank, waits: bool) -> None:
    cycle: dict[str, object] = {"pad": FILLER}
    cycle["self"] = cycle

    shown = await shown_by(cycle, bank, waits=waits)

    assert isinstance(shown, str)
    assert len(shown) < 2_000
    assert "contains itself" in shown


async def test_br_051_a_shared_list_is_written_twice(bank: Bank) -> None:
    shared = [1]
    value = {"a": shared, "b": shared, "pad": FILLER}

    shown = await shown_by(value, bank, waits=True)

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == {"a": [1], "b": [1], "pad": FILLER}
