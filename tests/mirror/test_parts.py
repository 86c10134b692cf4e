"""Results that come in parts, each shown for itself: content blocks of MCP."""

from pathlib import Path

import pytest

from coatcheck import Bank, Envelope, Limits, Mirror
from coatcheck.bank import Journal, read_journal
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock

TEXT = "a line\n" * 10_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(60_000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bank(clock: ManualClock) -> Bank:
    return Bank(MemoryStore(), clock=clock)


def pointer_of(shown: object) -> str:
    assert isinstance(shown, Envelope)
    return shown.pointer


async def count(bank: Bank) -> int:
    return len([artifact async for artifact in bank.list()])


async def test_the_same_part_of_the_same_tool_is_banked_once(bank: Bank) -> None:
    owner = Mirror(bank)

    first = pointer_of(await owner.offload_part(TEXT, "read"))
    again = pointer_of(await Mirror(bank).offload_part(TEXT, "read"))
    other = pointer_of(await owner.offload_part(TEXT + "!", "read"))
    of_other_tool = pointer_of(await owner.offload_part(TEXT, "write"))

    assert first == again
    assert len({first, other, of_other_tool}) == 3
    assert await count(bank) == 3


@pytest.mark.parametrize("value", [{"rows": ["é" * 40] * 2_000}, PNG, ["x" * 60_000]])
async def test_a_part_of_any_type_is_banked_once(bank: Bank, value: object) -> None:
    owner = Mirror(bank)

    first = pointer_of(await owner.offload_part(value, "read"))
    again = pointer_of(await owner.offload_part(value, "read"))

    assert first == again
    assert await bank.get(first) == value


async def test_a_part_without_a_key_has_a_pointer_of_its_own_for_its_time(
    bank: Bank, clock: ManualClock
) -> None:
    owner = Mirror(bank)

    first = pointer_of(await owner.offload_part(TEXT, "read", keyed=False, ttl_seconds=60))
    again = pointer_of(await owner.offload_part(TEXT, "read", keyed=False, ttl_seconds=60))

    assert first != again
    assert await bank.get(first) == TEXT
    clock.advance(61)
    assert await bank.find(first) is None


@pytest.mark.parametrize(("size", "is_banked"), [(99, False), (3_999, False), (4_000, True)])
async def test_a_part_is_held_to_the_limit_it_is_given(
    bank: Bank, size: int, is_banked: bool
) -> None:
    text = "x" * size

    shown = await Mirror(bank).offload_part(text, "read", limit_bytes=4_000)

    assert isinstance(shown, Envelope) == is_banked
    assert (shown is text) == (not is_banked)


async def test_a_part_is_held_to_the_limit_of_its_tool(bank: Bank) -> None:
    owner = Mirror(bank, Limits(per_tool={"read": 4_000}, never=frozenset({"raw"})))

    assert isinstance(await owner.offload_part("x" * 4_000, "read"), Envelope)
    assert await owner.offload_part("x" * 4_000, "other") == "x" * 4_000
    assert await owner.offload_part(TEXT, "raw") is TEXT
    assert await owner.offload_part(TEXT, "retrieve_context") is TEXT


@pytest.mark.parametrize(
    ("value", "told", "kept"),
    [
        ("a,b\n1,2\n" * 9_000, "text/csv", "text/csv"),
        (TEXT, "text/x-log", "text/x-log"),
        (TEXT, "application/json", "text/plain"),
        (PNG, "image/png", "image/png"),
        (PNG, "image/jpeg", "application/octet-stream"),
        (["x" * 60_000], "text/html", "application/json"),
    ],
)
async def test_what_the_tool_calls_a_part_is_taken_where_it_may_be_that(
    bank: Bank, value: object, told: str, kept: str
) -> None:
    shown = await Mirror(bank).offload_part(value, "read", content_type=told)

    artifact = await bank.find(pointer_of(shown))
    assert artifact is not None
    assert artifact.content_type == kept


async def test_a_part_of_a_failure_says_so(bank: Bank) -> None:
    shown = await Mirror(bank).offload_part(TEXT + "ValueError: boom", "read", is_error=True)

    assert isinstance(shown, Envelope)
    assert shown.is_error
    assert "ValueError: boom" in str(shown)


async def test_all_parts_of_a_call_are_one_line_of_the_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "calls.jsonl") as journal:
        bank = Bank(MemoryStore(), journal=journal)
        owner = Mirror(bank)
        given = {"id": pointer_of(await owner.offload_part(TEXT, "read"))}
        shown = [await owner.offload_part(TEXT + "!", "read"), "small"]

        owner.note("read", shown, given=(given,), is_error=True)

        journal.flush()
        (call,) = read_journal(journal.path)
    assert call.pointers_in == (given["id"],)
    assert call.pointers_out == (pointer_of(shown[0]),)
    assert call.size_bytes == len(TEXT) + 1 + len("small")
    assert call.tokens > 10_000
    assert call.shown_tokens < 400
    assert call.is_error


async def test_without_a_journal_nothing_is_noted(bank: Bank) -> None:
    Mirror(bank).note("read", ["small"])

    assert bank.journal is None
