"""Glimpses that a host makes itself, by kind."""

import json
import logging
from collections.abc import Callable
from typing import cast

import pytest

from coatcheck import Bank, Glimpse, Kind, Limits
from coatcheck.content import estimate_tokens
from coatcheck.records import Envelope
from coatcheck.stores import MemoryStore

ROWS = [{"id": at, "status": "late"} for at in range(9)]


Make = Callable[[object], str | Glimpse]


def bank_with(make: Make, tokens: int = 150) -> Bank:
    kind = Kind("set", prefix="ps", glimpse=make)
    return Bank(MemoryStore(), kinds=[kind], limits=Limits(glimpse_tokens=tokens))


async def test_a_kind_is_glimpsed_by_its_own_function_from_the_value() -> None:
    def count(rows: object) -> str:
        return f"{len(cast('list[object]', rows))} orders"

    bank = bank_with(count)

    artifact = await bank.put(ROWS, kind="set")
    other = await bank.put(ROWS)

    assert artifact.glimpse == Glimpse("9 orders", {"format": "host"})
    assert artifact.pointer.startswith("ps-")
    assert json.loads(str(Envelope.of(artifact)))["glimpse"] == "9 orders"
    assert str(other.glimpse).startswith("9 rows, ")


async def test_facts_of_a_host_are_kept_with_the_artifact() -> None:
    bank = bank_with(lambda _: Glimpse("text", {"count": 9}))

    artifact = await bank.put("x" * 300, kind="set")
    found = await bank.find(artifact.pointer)

    assert found is not None
    assert found.glimpse == Glimpse("text", {"count": 9})


def fails(_value: object) -> str:
    message = "no brand"
    raise KeyError(message)


def returns_a_number(_value: object) -> str:
    return cast("str", 7)


def has_facts_that_are_none(_value: object) -> Glimpse:
    return Glimpse("x", {"x": object()})


@pytest.mark.parametrize("make", [fails, returns_a_number, has_facts_that_are_none])
async def test_a_function_that_fails_loses_nothing(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    bank = bank_with(make)

    with caplog.at_level(logging.WARNING):
        artifact = await bank.put(ROWS, kind="set")

    assert str(artifact.glimpse).startswith("9 rows, 2 columns; ")
    assert await bank.get(artifact.pointer) == ROWS
    assert "the glimpse of kind 'set' failed" in caplog.text


@pytest.mark.parametrize("budget", [1, 2, 10, 50])
async def test_what_a_function_returns_is_cut_to_the_budget(budget: int) -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    bank = bank_with(lambda _: family * 500 + "\ud83d", budget)

    artifact = await bank.put("x", kind="set")

    shown = str(artifact.glimpse)
    assert estimate_tokens(shown) <= budget
    assert shown.removesuffix("…") == family * shown.count("\U0001f467")


async def test_lone_surrogates_of_a_function_are_replaced() -> None:
    artifact = await bank_with(lambda _: "a\ud83d").put("x", kind="set")

    assert str(artifact.glimpse) == "a\ufffd"


async def test_without_a_budget_no_function_is_called() -> None:
    artifact = await bank_with(fails, 0).put("x", kind="set")

    assert artifact.glimpse is None


async def test_the_preview_of_a_table_is_shorter_as_its_columns_are_told() -> None:
    bank = Bank(MemoryStore())

    table = await bank.put(ROWS)
    text = await bank.put("x" * 500)

    assert table.shown_preview.index(" … (") == 120
    assert text.shown_preview.index(" … (") == 200
