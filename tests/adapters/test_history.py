"""Older results of a conversation as pointers: which, when, and always the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank, Envelope, Limits, open_bank
from coatcheck.adapters._history import History, PastResult
from coatcheck.adapters._sessions import Session, Sessions
from coatcheck.stores import MemoryStore
from coatcheck.testing._adapter_driver import Outage

BIG = 10_000


def result(turn: int, size: int = BIG, *, tool: str = "rows", at: int = 0) -> PastResult:
    text = f"{turn}.{at} ".ljust(size, "x")
    return PastResult(tool=tool, call_id=f"c{turn}.{at}", value=text, turn=turn)


def session(bank: Bank | None = None, limits: Limits | None = None) -> Session:
    return Sessions(bank or Bank(MemoryStore()), limits).of("one")


async def gone(history: History, results: list[PastResult], turn: int) -> list[int]:
    """Return the turns whose results are shown as pointers."""
    shown = await history.shown(session(), results, turn)
    return [each.turn for each, envelope in zip(results, shown, strict=True) if envelope]


async def test_results_within_the_budget_stay() -> None:
    results = [result(turn) for turn in range(3)]

    assert await gone(History(3 * BIG, keep_turns=0), results, 3) == []
    assert await gone(History(3 * BIG - 1, keep_turns=0), results, 3) == [0, 1, 2]


async def test_results_of_the_last_turns_stay_whatever_they_take() -> None:
    results = [result(turn) for turn in range(5)]

    assert await gone(History(0, keep_turns=2), results, 5) == [0, 1, 2]
    assert await gone(History(0, keep_turns=5), results, 5) == []
    assert await gone(History(0, keep_turns=0), results, 5) == [0, 1, 2, 3, 4]


async def test_once_it_is_too_much_all_older_ones_go_and_then_none_for_a_while() -> None:
    history = History(2 * BIG, keep_turns=1)
    shown = [
        await gone(history, [result(turn) for turn in range(turns)], turns) for turns in range(1, 9)
    ]

    assert shown == [[], [], [], [0, 1, 2], [0, 1, 2], [0, 1, 2], [*range(6)], [*range(6)]]


@given(
    sizes=st.lists(st.lists(st.integers(0, 6_000), max_size=3), max_size=12),
    budget=st.integers(0, 20_000),
    keep=st.integers(0, 4),
)
def test_what_is_a_pointer_stays_one_and_the_rest_is_bounded(
    sizes: list[list[int]], budget: int, keep: int
) -> None:
    history = History(budget, keep_turns=keep)
    results = [
        result(turn, size, at=at) for turn, each in enumerate(sizes) for at, size in enumerate(each)
    ]
    before: set[int] = set()
    for turn in range(len(sizes) + 1):
        so_far = [each for each in results if each.turn < turn]
        now = set(history.gone(so_far, turn, frozenset()))

        assert before <= now
        old = [each for each in so_far if each.turn < turn - keep]
        left = [each for at, each in enumerate(old) if at not in now]
        assert sum(len(str(each.value)) for each in left if len(str(each.value)) >= 2_000) <= budget
        before = now


async def test_the_same_result_is_the_same_bytes_in_each_request_and_after_a_restart(
    tmp_path: Any,
) -> None:
    results = [result(0), result(1), result(2)]
    sent: list[list[str]] = []
    for _ in range(2):
        async with open_bank(f"file:{tmp_path}") as bank:
            for _ in range(2):
                shown = await History(0, keep_turns=1).shown(session(bank), results, 3)
                sent.append([str(each) for each in shown])
            assert (await session(bank).bank.usage()).artifacts == 2

    assert len(set(map(tuple, sent))) == 1
    assert sent[0][2] == "None"


async def test_a_pointer_reads_the_whole_result_by_itself_and_by_the_name_of_its_call() -> None:
    own = session()
    (shown,) = await History(0, keep_turns=0).shown(own, [result(0)], 1)

    assert isinstance(shown, Envelope)
    assert await own.bank.get(shown.pointer) == result(0).value
    assert await own.bank.get("rows_c0.0") == result(0).value


async def test_a_structure_is_banked_as_one_and_an_error_says_that_it_is_one() -> None:
    own = session()
    rows = [{"id": number} for number in range(1_000)]
    results = [
        PastResult(tool="rows", call_id="c1", value=rows, turn=0),
        PastResult(tool="rows", call_id="c2", value="boom " * 1_000, turn=0, is_error=True),
    ]
    first, second = await History(0, keep_turns=0).shown(own, results, 1)

    assert isinstance(first, Envelope)
    assert isinstance(second, Envelope)
    assert await own.bank.get(first.pointer) == rows
    assert (first.is_error, second.is_error) == (False, True)


async def test_a_call_id_that_comes_again_with_another_result_has_another_pointer() -> None:
    results = [
        PastResult(tool="rows", call_id="call_0", value=letter * BIG, turn=turn)
        for turn, letter in enumerate("ab")
    ]
    own = session()
    first, second = await History(0, keep_turns=0).shown(own, results, 2)

    assert isinstance(first, Envelope)
    assert isinstance(second, Envelope)
    assert await own.bank.get(first.pointer) == "a" * BIG
    assert await own.bank.get(second.pointer) == "b" * BIG


@pytest.mark.parametrize("form", [str, Envelope.to_wire])
async def test_envelopes_small_results_and_those_of_our_own_tools_stay(form: Any) -> None:
    own = session()
    envelope = await own.mirror.offload("y" * 60_000, "rows", "c9")
    assert isinstance(envelope, Envelope)
    results = [
        PastResult(tool="rows", call_id="c9", value=form(envelope), turn=0),
        result(0, 1_999, at=1),
        result(0, tool="retrieve_context", at=2),
        result(0, tool="quiet", at=3),
        PastResult(tool="rows", call_id="c4", value={1j}, turn=0),
        result(0, 2_000, at=5),
    ]
    never = Limits(never=frozenset({"quiet"}))
    shown = await History(0, keep_turns=0).shown(session(own.bank, never), results, 1)

    assert [at for at, each in enumerate(shown) if each] == [5]


async def test_text_that_only_begins_like_an_envelope_goes() -> None:
    texts = ['{"pointer":'.ljust(BIG, "x"), '{"pointer":'.ljust(3_000, "x")]
    results = [
        PastResult(tool="rows", call_id=f"c{at}", value=text, turn=0)
        for at, text in enumerate(texts)
    ]

    assert await gone(History(0, keep_turns=0), results, 1) == [0, 0]


async def test_limits_of_results_do_not_matter_to_older_ones() -> None:
    limits = Limits(inline_bytes=1_000_000, per_tool={"rows": 2_000_000}, turn_bytes=1)
    (shown,) = await History(0, keep_turns=0).shown(session(limits=limits), [result(0)], 1)

    assert isinstance(shown, Envelope)


async def test_a_store_that_is_out_leaves_every_result_whole() -> None:
    store = Outage()
    own = session(Bank(store))
    store.is_out = True
    huge = result(0, 300_000)

    assert await History(0, keep_turns=0).shown(own, [huge, result(1)], 2) == [None, None]


async def test_the_journal_is_told_nothing_twice(tmp_path: Any) -> None:
    async with open_bank("memory:", journal=tmp_path / "calls.jsonl") as bank:
        (shown,) = await History(0, keep_turns=0).shown(session(bank), [result(0)], 1)
        assert shown
        # Which the journal is told of, so that it holds more than nothing.
        await session(bank).mirror.offload("small", "other", "c2")

    calls = (tmp_path / "calls.jsonl").read_text()
    assert "other" in calls
    assert "rows" not in calls


@pytest.mark.parametrize(("budget", "keep"), [(-1, 0), (0, -1)])
def test_amounts_are_not_negative(budget: int, keep: int) -> None:
    with pytest.raises(ValueError, match="0 or more, got -1"):
        History(budget, keep_turns=keep)


@pytest.mark.parametrize("amount", [1.5, True, "10", None])
def test_amounts_are_whole_numbers(amount: Any) -> None:
    with pytest.raises(TypeError, match="history_bytes"):
        History(amount)
    with pytest.raises(TypeError, match="keep_turns"):
        History(1, keep_turns=amount)


async def test_what_our_own_tool_replied_stays_and_what_one_of_the_hosts_did_does_not() -> None:
    results = [
        result(0, tool=tool, at=at) for at, tool in enumerate(("retrieve_context", "memory_read"))
    ]

    shown = await History(0, keep_turns=0).shown(session(), results, 1)

    assert [each is None for each in shown] == [True, False]
