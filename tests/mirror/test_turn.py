import asyncio
import logging
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Artifact, Bank, Envelope, Limits, Mirror
from coatcheck.mirror import ToolResult
from coatcheck.mirror._shown import shown_size
from coatcheck.stores import MemoryStore


def mirror(turn_bytes: int | None, **limits: object) -> Mirror:
    return Mirror(Bank(MemoryStore()), Limits(turn_bytes=turn_bytes, **limits))  # type: ignore[arg-type]


def total(shown: Sequence[object]) -> int:
    return sum(shown_size(value, 10**9) for value in shown)


def kinds(shown: Sequence[object]) -> list[str]:
    return ["envelope" if isinstance(value, Envelope) else "value" for value in shown]


async def test_without_a_budget_each_result_is_shown_as_on_its_own() -> None:
    shown = await mirror(None).offload_turn([("a" * 51_199,), ("b" * 51_200,), (7,)])

    assert kinds(shown) == ["value", "envelope", "value"]


async def test_results_that_fit_the_budget_exactly_stay_and_one_byte_more_does_not() -> None:
    results = [ToolResult("a" * 1_000), ToolResult("b" * 2_000)]

    assert kinds(await mirror(3_000).offload_turn(results)) == ["value", "value"]
    assert kinds(await mirror(2_999).offload_turn(results)) == ["value", "envelope"]


async def test_the_largest_goes_first_and_results_keep_their_places() -> None:
    results = [ToolResult("a" * 900), ToolResult("b" * 9_000), ToolResult("c" * 3_000)]

    assert kinds(await mirror(4_500).offload_turn(results)) == ["value", "envelope", "value"]
    assert kinds(await mirror(2_500).offload_turn(results)) == ["value", "envelope", "envelope"]


async def test_of_two_as_large_the_first_by_tool_and_call_goes_wherever_it_stands() -> None:
    results = [("a" * 2_000, "find", "call_2"), ("b" * 2_000, "find", "call_1")]

    assert kinds(await mirror(3_000).offload_turn(results)) == ["value", "envelope"]
    assert kinds(await mirror(3_000).offload_turn(results[::-1])) == ["envelope", "value"]
    assert kinds(await mirror(3_000).offload_turn([("a" * 2_000,)] * 2)) == ["envelope", "value"]


async def test_what_must_stay_stays_whatever_the_budget() -> None:
    one = mirror(1, never=frozenset({"raw"}))
    artifact = await one.bank.put("z" * 5_000)
    results = [
        ("x" * 5_000, "raw"),
        ("y" * 5_000, "retrieve_context"),
        (artifact,),
        (Envelope.of(artifact),),
        ("short",),
        (object,),
    ]

    shown = await one.offload_turn(results)

    assert shown[0] == "x" * 5_000
    assert shown[1] == "y" * 5_000
    assert shown[2] == shown[3] == Envelope.of(artifact)
    assert shown[4:] == ["short", object]
    assert len([each async for each in one.bank.list()]) == 1


async def test_limits_of_single_tools_hold_within_a_turn() -> None:
    shown = await mirror(10_000, per_tool={"ids": 0, "rows": 500}).offload_turn(
        [("a", "ids"), ("b" * 500, "rows"), ("c" * 499, "rows"), ("d" * 500, "text")]
    )

    assert kinds(shown) == ["envelope", "envelope", "value", "value"]


async def test_a_failure_offloaded_for_the_budget_keeps_its_flag_and_the_whole_text() -> None:
    one = mirror(1_000)

    (shown,) = await one.offload_turn([("line\n" * 500 + "Boom: last", "run", "call_1", True)])

    assert isinstance(shown, Envelope)
    assert shown.is_error
    assert await one.bank.get(shown.pointer) == "line\n" * 500 + "Boom: last"
    artifact = await one.bank.find("run_call_1")
    assert isinstance(artifact, Artifact)
    assert artifact.pointer == shown.pointer


async def test_a_result_that_cannot_be_kept_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Full(MemoryStore):
        async def put(self, key: str, payload: bytes) -> None:
            raise OSError(28, "No space left on device")

    one = Mirror(Bank(Full()), Limits(turn_bytes=1_000))

    with caplog.at_level(logging.CRITICAL):
        assert await one.offload_turn([("x" * 5_000,), ("y",)]) == ["x" * 5_000, "y"]


@pytest.mark.parametrize(("turn_bytes", "error"), [(0, ValueError), (1.5, TypeError)])
def test_a_budget_is_a_whole_number_from_one(turn_bytes: int, error: type[Exception]) -> None:
    assert Limits(turn_bytes=1).turn_bytes == 1

    with pytest.raises(error, match="turn_bytes"):
        Limits(turn_bytes=turn_bytes)


async def test_an_array_counts_as_the_text_it_would_be_shown_as() -> None:
    small, large = np.zeros(100), np.zeros(1_000)

    assert kinds(await mirror(100_000).offload_turn([(large,), (small,)])) == ["value", "value"]
    assert kinds(await mirror(20_000).offload_turn([(small,), (large,)])) == ["value", "envelope"]


async def test_a_stream_is_offloaded_for_the_budget_as_what_it_gave() -> None:
    one = mirror(100)

    (shown,) = await one.offload_turn([(iter(["line\n"] * 500),)])

    assert isinstance(shown, Envelope)
    assert shown.size_bytes >= 2_500


results_of_a_turn = st.lists(
    st.one_of(
        st.integers(0, 3_000).map(lambda size: "x" * size),
        st.integers(0, 1_000).map(lambda size: "漢" * size),
        st.integers(0, 300).map(lambda size: list(range(size))),
        st.integers(0, 3_000).map(bytes),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(values=results_of_a_turn, turn_bytes=st.integers(1, 8_000), data=st.data())
def test_a_turn_fits_where_it_can_whatever_the_order(
    values: list[object], turn_bytes: int, data: st.DataObject
) -> None:
    results = [ToolResult(value, "tool", f"call_{at}") for at, value in enumerate(values)]
    places = data.draw(st.permutations(range(len(results))))

    async def shown(budget: int, order: Sequence[int]) -> list[object]:
        one = Mirror(Bank(MemoryStore(), secret=b"s" * 32), Limits(turn_bytes=budget))
        return await one.offload_turn([results[at] for at in order])

    in_order = asyncio.run(shown(turn_bytes, range(len(results))))
    permuted = asyncio.run(shown(turn_bytes, places))
    least = total(asyncio.run(shown(1, places)))

    assert permuted == [in_order[at] for at in places]
    assert total(in_order) <= max(turn_bytes, least)
    assert all(
        isinstance(one, Envelope) or one == value
        for one, value in zip(in_order, values, strict=True)
    )
