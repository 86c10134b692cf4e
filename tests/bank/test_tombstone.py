"""What a tombstone tells, and what it is when somebody else wrote it."""

import pytest

from coatcheck import Bank
from coatcheck.bank._tombstone import Tombstone
from coatcheck.content import dumps
from coatcheck.stores import MemoryStore

FACTS: dict[str, object] = {
    "name": "report", "kind": "report", "tool": "rows", "sizeBytes": 9, "glimpse": "9 bytes",
    "storedNs": 1, "expiresNs": 2,
}  # fmt: skip


async def test_a_tombstone_reads_as_it_was_written() -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put("alpha\n" * 9_000, name="report", kind="report", tool="rows")
    record = await bank._desk.lookup.found(artifact.pointer)  # noqa: SLF001 - the record behind it

    tombstone = Tombstone.of(record, 7)

    assert Tombstone.from_bytes(tombstone.to_bytes()) == tombstone
    assert (tombstone.name, tombstone.kind, tombstone.tool) == ("report", "report", "rows")
    assert (tombstone.size_bytes, tombstone.gone_ns) == (54_000, 7)
    assert tombstone.glimpse == str(artifact.glimpse)


def test_facts_of_another_type_or_none_at_all_are_no_tombstone() -> None:
    assert Tombstone.from_bytes(dumps(FACTS)) is not None
    for name in FACTS:
        assert Tombstone.from_bytes(dumps({**FACTS, name: [1]})) is None
        if name not in {"name", "tool", "glimpse"}:
            assert Tombstone.from_bytes(dumps({**FACTS, name: None})) is None
    for stored in (b"", b"{", b"[]", b"1", b"\xff"):
        assert Tombstone.from_bytes(stored) is None


@pytest.mark.parametrize("name", ["sizeBytes", "storedNs", "expiresNs"])
def test_a_number_below_0_or_too_long_to_be_told_is_of_no_tombstone(name: str) -> None:
    def with_number(digits: str) -> Tombstone | None:
        facts = dumps({**FACTS, name: 123_456})
        return Tombstone.from_bytes(facts.replace(b"123456", digits.encode()))

    assert with_number("0") is not None
    assert with_number("18446744073709551615") is not None
    for digits in ("-1", "18446744073709551616", "1" + "0" * 5_000):
        assert with_number(digits) is None


def test_the_error_of_a_tombstone_says_what_was_there_and_quotes_no_glimpse() -> None:
    tombstone = Tombstone.from_bytes(dumps(FACTS))
    assert tombstone is not None

    error = tombstone.expired("art:x")

    assert str(error) == (
        "The artifact behind 'art:x' has expired (named 'report', 9 bytes, from the tool 'rows')."
    )
    assert (error.name, error.size_bytes, error.tool, error.glimpse) == (
        "report", 9, "rows", "9 bytes",
    )  # fmt: skip
    assert "9 bytes" not in error.hint
