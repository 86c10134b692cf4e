"""What a journal says of mirrored calls."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck import Bank, Envelope, Limits, Mirror, mirror
from coatcheck.bank import Call, Journal, read_journal
from coatcheck.stores import MemoryStore

ROWS: list[dict[str, object]] = [
    {"id": number, "name": f"customer {number}"} for number in range(5_000)
]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "calls.jsonl") as journal:
        yield journal


@pytest.fixture
def bank(journal: Journal) -> Bank:
    return Bank(MemoryStore(), scope="s", journal=journal)


def calls(journal: Journal) -> list[Call]:
    journal.flush()
    return list(read_journal(journal.path))


async def test_a_large_result_is_noted_with_its_pointer_and_what_it_kept_out(
    bank: Bank, journal: Journal
) -> None:
    async def rows() -> list[dict[str, object]]:
        return ROWS

    shown = await mirror(rows, bank)()

    assert isinstance(shown, Envelope)
    (call,) = calls(journal)
    assert (call.verb, call.tool, call.scope) == ("tool", "rows", "s")
    assert call.pointers_out == (shown.pointer,)
    assert call.size_bytes == shown.size_bytes
    assert call.tokens > 40_000
    assert 0 < call.shown_tokens < 400


async def test_a_small_result_is_noted_as_shown_whole(bank: Bank, journal: Journal) -> None:
    def answer(question: str) -> str:
        return question.upper()

    assert mirror(answer, bank)("why?") == "WHY?"

    (call,) = calls(journal)
    assert (call.pointers_in, call.pointers_out, call.size_bytes) == ((), (), 4)
    assert call.tokens == call.shown_tokens > 0


async def test_pointers_that_a_call_was_given_are_noted_nested_and_with_selectors(
    bank: Bank, journal: Journal
) -> None:
    pointer = (await bank.put(ROWS)).pointer

    def count(many: dict[str, list[int]], *, more: list[object]) -> int:
        return len(many["ids"]) + len(more)

    assert mirror(count, bank)({"ids": f"{pointer}#$[*].id"}, more=pointer) == 10_000

    (call,) = calls(journal)
    assert call.pointers_in == (f"{pointer}#$[*].id", pointer)


async def test_what_a_tool_raises_passes_and_is_noted(bank: Bank, journal: Journal) -> None:
    def broken() -> str:
        raise KeyError("x")

    async def waiting() -> str:
        raise KeyError("y")

    with pytest.raises(KeyError):
        mirror(broken, bank)()
    with pytest.raises(KeyError):
        await mirror(waiting, bank)()

    assert [(call.tool, call.is_error) for call in calls(journal)] == [
        ("broken", True),
        ("waiting", True),
    ]


async def test_results_offloaded_by_a_host_are_noted_once_each(
    bank: Bank, journal: Journal
) -> None:
    owner = Mirror(bank, Limits(turn_bytes=30_000))

    await owner.offload("late", "status", given=["art:x"], is_error=True)
    await owner.offload_turn([("x" * 20_000, "a", "1"), ("y" * 20_000, "b", "2")])

    status, first, second = calls(journal)
    assert (status.tool, status.is_error, status.pointers_in) == ("status", True, ())
    assert [len(first.pointers_out), len(second.pointers_out)] == [1, 0]
    assert (first.size_bytes, second.size_bytes) == (20_000, 20_000)


async def test_values_without_an_encoding_are_noted_by_their_repr(
    bank: Bank, journal: Journal
) -> None:
    def thing() -> object:
        return object

    mirror(thing, bank)()

    (call,) = calls(journal)
    assert call.size_bytes > 0


async def test_without_a_journal_a_function_is_mirrored_as_before(tmp_path: Path) -> None:
    bank = Bank(MemoryStore())

    assert bank.journal is None
    assert mirror(lambda: "x", bank)() == "x"
