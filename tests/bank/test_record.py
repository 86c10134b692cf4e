import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from coatcheck import Bank
from coatcheck.bank._record import Record, as_time
from coatcheck.errors import DamagedRecordError, StoreFormatError
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


@given(st.data())
async def test_no_altered_byte_of_a_record_goes_unnoticed(data: st.DataObject) -> None:
    _, _, stored = await a_record("żółć\n" * 40_000)
    position = data.draw(st.integers(0, len(stored) - 1))
    altered = bytearray(stored)
    altered[position] ^= data.draw(st.integers(1, 255))

    with pytest.raises(StoreFormatError):
        Record.from_bytes(bytes(altered))


async def test_bytes_after_a_record_or_in_place_of_it_are_damage() -> None:
    _, _, stored = await a_record("x")

    for other in (b"", stored + b"\x00", stored[:-1], b"{}", bytes(len(stored))):
        with pytest.raises(DamagedRecordError, match="record of 'an artifact' is damaged"):
            Record.from_bytes(other)


def crafted(stored: bytes, name: str, value: object) -> bytes:
    """Return a record with one fact replaced, and a checksum that fits."""
    size = int.from_bytes(stored[8:12], "little")
    facts = json.loads(stored[20 : 20 + size]) | {name: value}
    body = json.dumps(facts).encode()
    checksum = xxh3_64_intdigest(body + stored[20 + size :], len(body))
    header = stored[:8] + len(body).to_bytes(4, "little") + checksum.to_bytes(8, "little")
    return header + body + stored[20 + size :]


async def test_a_record_with_a_checksum_of_its_own_is_read() -> None:
    _, _, stored = await a_record("x")

    assert Record.from_bytes(crafted(stored, "label", "other")).artifact.label == "other"


WRONG: dict[str, list[object]] = {
    **{name: [None, 5, [1]] for name in ("id", "prefix", "kind", "contentType", "digest")},
    **{name: [None, 5, [1]] for name in ("preview", "shownPreview", "payload")},
    **{name: [5, ["x"]] for name in ("name", "label", "tool", "run")},
    "form": [None, 5, "x", ""],
    "source": [5, "x", [1]],
    "glimpse": [5, "x", [1], {"text": 5, "facts": {}}, {"text": "x"}],
    "index": [None, [1], {}, "x", {"size_bytes": "x"}],
    "storedNs": [None, 1.5, "x", 10**30, -(10**30)],
    "expiresNs": [1.5, "x", 10**30],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
async def test_crafted_facts_are_damage_and_nothing_else(name: str, value: object) -> None:
    _, _, stored = await a_record("x")

    with pytest.raises(DamagedRecordError):
        Record.from_bytes(crafted(stored, name, value))


async def test_a_record_of_a_later_version_is_refused_by_number() -> None:
    _, _, stored = await a_record("x")

    with pytest.raises(StoreFormatError, match="a record of version 2, this one reads 1"):
        Record.from_bytes(stored[:4] + b"\x02\x00" + stored[6:])


def test_times_are_exact_to_the_microsecond() -> None:
    assert as_time(1_790_000_000_123_456_789).isoformat() == "2026-09-21T14:13:20.123456+00:00"
