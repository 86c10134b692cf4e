import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.runtime import InProcess, Settled, Unit


def units(graph: Mapping[str, str]) -> list[Unit]:
    return [Unit(key, tuple(after)) for key, after in graph.items()]


class Watched:
    """Work that ends when it is told to, and writes down what happens."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.seen: list[str] = []
        self.settled: list[Settled] = []
        self.going = 0
        self.most = 0
        self.ends: dict[str, asyncio.Event] = {}

    async def work(self, key: str) -> str | None:
        self.seen.append(f"start {key}")
        self.going += 1
        self.most = max(self.most, self.going)
        try:
            if key in self.ends:
                await self.ends[key].wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.going -= 1
            self.seen.append(f"end {key}")
        return f"{key} is broken" if key in self.failing else None

    async def tell(self, settled: Settled) -> None:
        self.settled.append(settled)
        self.seen.append(f"told {settled.key}")


async def test_a_unit_starts_once_all_before_it_have_been_told() -> None:
    watched = Watched()

    await InProcess().run(
        units({"d": "bc", "b": "a", "c": "a", "a": ""}), watched.work, watched.tell
    )

    seen = watched.seen
    assert seen[0] == "start a"
    assert {settled.key for settled in watched.settled} == set("abcd")
    assert seen.index("told a") < min(seen.index("start b"), seen.index("start c"))
    assert max(seen.index("told b"), seen.index("told c")) < seen.index("start d")


async def test_b66_what_comes_after_a_short_unit_does_not_wait_for_a_long_one() -> None:
    watched = Watched()
    watched.ends["long"] = asyncio.Event()

    async def work(key: str) -> str | None:
        if key == "after":
            watched.ends["long"].set()
        return await watched.work(key)

    graph = [Unit("long"), Unit("short"), Unit("after", ("short",))]
    await InProcess().run(graph, work, watched.tell)

    assert watched.seen.index("start after") < watched.seen.index("end long")


async def test_br_083_what_comes_after_a_failed_unit_is_blocked_and_the_rest_runs() -> None:
    watched = Watched("task:A")
    graph = [
        Unit("task:A"),
        Unit("task:B", ("task:A",)),
        Unit("task:C"),
        Unit("task:D", ("task:B", "task:C")),
    ]

    await InProcess().run(graph, watched.work, watched.tell)

    told = {settled.key: settled for settled in watched.settled}
    assert told == {
        "task:A": Settled("task:A", "task:A is broken"),
        "task:B": Settled("task:B", "dependency 'A' failed", blocked_by="task:A"),
        "task:C": Settled("task:C"),
        "task:D": Settled("task:D", "dependency 'A' failed", blocked_by="task:A"),
    }
    assert [line for line in watched.seen if line.startswith("start")] == [
        "start task:A",
        "start task:C",
    ]


@pytest.mark.parametrize(("width", "most"), [(None, 3), (1, 1), (2, 2), (9, 9)])
async def test_as_many_go_on_at_once_as_may(width: int | None, most: int) -> None:
    watched = Watched()

    await InProcess(3).run(
        [Unit(f"{number}") for number in range(20)], watched.work, watched.tell, width=width
    )

    assert watched.most == most
    assert [settled.key for settled in watched.settled] == [f"{number}" for number in range(20)]


async def test_an_exception_is_raised_once_what_goes_on_has_ended_and_nothing_more_starts() -> None:
    watched = Watched()
    watched.ends["slow"] = asyncio.Event()

    async def work(key: str) -> str | None:
        if key == "raises":
            asyncio.get_running_loop().call_soon(watched.ends["slow"].set)
            raise LookupError(key)
        return await watched.work(key)

    graph = [Unit("slow"), Unit("raises"), Unit("after", ("slow",)), Unit("next")]
    with pytest.raises(LookupError, match="raises"):
        await InProcess(2).run(graph, work, watched.tell)

    assert watched.seen == ["start slow", "end slow", "told slow"]


async def test_to_cancel_a_run_cancels_what_goes_on() -> None:
    watched = Watched()
    watched.ends = {"a": asyncio.Event(), "b": asyncio.Event()}
    run = asyncio.create_task(
        InProcess().run([Unit("a"), Unit("b"), Unit("c", ("a",))], watched.work, watched.tell)
    )
    while watched.going < 2:
        await asyncio.sleep(0)

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    assert watched.going == 0
    assert watched.settled == []


async def test_what_raises_when_it_is_told_ends_the_run() -> None:
    watched = Watched()

    async def tell(settled: Settled) -> None:
        raise LookupError(settled.key)

    with pytest.raises(LookupError):
        await InProcess(1).run([Unit("a"), Unit("b")], watched.work, tell)

    assert watched.seen == ["start a", "end a"]


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        ([Unit("a"), Unit("a")], "the same key"),
        ([Unit("a", ("b",))], "'a' comes after 'b', which is none"),
        ([Unit("a", ("a",))], "in a circle"),
        ([Unit("c"), Unit("a", ("b",)), Unit("b", ("a", "c"))], "in a circle"),
    ],
)
async def test_a_graph_that_could_not_end_is_refused_before_anything_runs(
    graph: list[Unit], told: str
) -> None:
    watched = Watched()

    with pytest.raises(ValueError, match=told):
        await InProcess().run(graph, watched.work, watched.tell)

    assert watched.seen == []


async def test_no_units_are_no_work() -> None:
    watched = Watched()

    await InProcess().run([], watched.work, watched.tell)

    assert watched.seen == []


@pytest.mark.parametrize("concurrency", [0, -1])
def test_at_least_one_goes_on_at_a_time(concurrency: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        InProcess(concurrency)


async def test_models_are_asked_so_many_at_once() -> None:
    engine, watched = InProcess(3), Watched()

    async def ask(number: int) -> None:
        async with engine.slot():
            await watched.work(f"{number}")

    await asyncio.gather(*map(ask, range(20)))

    assert watched.most == 3


@given(st.data())
async def test_every_unit_ends_once_and_runs_only_where_nothing_before_it_failed(
    data: st.DataObject,
) -> None:
    count = data.draw(st.integers(1, 12))
    before = [
        data.draw(st.sets(st.integers(0, number - 1))) if number else set[int]()
        for number in range(count)
    ]
    failing = data.draw(st.sets(st.integers(0, count - 1)))
    pauses = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    order = data.draw(st.permutations(range(count)))
    width = data.draw(st.integers(1, 4))
    ran: list[int] = []
    told: dict[str, Settled] = {}
    going: set[str] = set()

    async def work(key: str) -> str | None:
        number = int(key)
        assert all(f"{each}" in told for each in before[number])
        going.add(key)
        assert len(going) <= width
        for _ in range(pauses[number]):
            await asyncio.sleep(0)
        going.discard(key)
        ran.append(number)
        return "broken" if number in failing else None

    async def tell(settled: Settled) -> None:
        assert settled.key not in told
        told[settled.key] = settled

    graph = [Unit(f"{n}", tuple(f"{each}" for each in before[n])) for n in order]
    await InProcess().run(graph, work, tell, width=width)

    bad: set[int] = set()
    for number in range(count):
        is_blocked = bool(before[number] & bad)
        settled = told[f"{number}"]
        assert (number in ran) is not is_blocked
        assert (settled.blocked_by is not None) is is_blocked
        assert (settled.error is not None) is (is_blocked or number in failing)
        if is_blocked or number in failing:
            bad.add(number)
        if settled.blocked_by is not None:
            assert int(settled.blocked_by) in failing & set(ran)
    assert len(ran) == len(set(ran))
    assert len(told) == count
