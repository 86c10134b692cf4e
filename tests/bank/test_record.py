from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank
from coatcheck.bank._record import Record, as_time
from coatcheck.errors import StoreFormatError
from coatcheck.stores import MemoryStore


async def a_record(value: object) -> tuple[MemoryStore, str, bytes]:
    store = MemoryStore()
    artifact = await Bank(store).put(value, name="n", label="l", source={"from": ["x"]}, tool="t")
    key = f"s/default/records/{artifact.id}"
    stored = await store.get(key)
    assert stored is not None
    return store, key, stored


@pytest.mark.parametrize("value", ["", "żółć\n" * 50_000, b"\xff\x00", {"a": [1]}, "\ud83d"])
async def test_a_record_reads_back_equal(value: object) -> None:
    _, _, stored = await a_record(value)

    record = Record.from_bytes(stored)

    assert record.to_bytes() == stored
    assert record == replace(record)


@given(st.data())
async def test_a_damaged_record_is_a_format_error_and_nothing_else(data: st.DataObject) -> None:
    _, _, stored = await a_record("żółć\n" * 40_000)
    cut = data.draw(st.integers(0, len(stored) - 1))

    with pytest.raises(StoreFormatError):
        Record.from_bytes(stored[:cut])


async def test_a_record_of_a_later_version_is_refused_by_number() -> None:
    _, _, stored = await a_record("x")

    with pytest.raises(StoreFormatError, match="a record of version 2, this one reads 1"):
        Record.from_bytes(stored[:4] + b"\x02\x00" + stored[6:])


def test_times_are_exact_to_the_microsecond() -> None:
    assert as_time(1_790_000_000_123_456_789).isoformat() == "2026-09-21T14:13:20.123456+00:00"
