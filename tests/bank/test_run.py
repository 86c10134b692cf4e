"""Runs: what one was shown stays while it goes on, in every store, and not a moment longer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from coatcheck import Bank, BlockingBank, Limits, Mirror, mirror
from coatcheck.bank.collection import collect
from coatcheck.errors import (
    ExpiredPointerError,
    InvalidArgumentError,
    StoreUnavailableError,
    UnknownPointerError,
)
from coatcheck.stores import MemoryStore, Store
from coatcheck.testing import ManualClock
from coatcheck.tools import artifact_tools, retrieval_tools

TEN_MINUTES = 600.0
LEASE = 900.0


async def keys_of(store: Store, folder: str) -> list[str]:
    return [key async for key in store.keys(f"s/default/{folder}/")]


async def test_what_a_run_put_or_was_shown_outlives_its_time_until_the_run_ends(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    before = await bank.put("before", name="before", ttl_seconds=TEN_MINUTES)
    other = await bank.put("never shown", ttl_seconds=TEN_MINUTES)

    async with bank.run("r1") as run:
        own = await bank.put("own", ttl_seconds=TEN_MINUTES)
        await bank.read("before")
        clock.advance(TEN_MINUTES + 1)
        assert run.name == bank.current_run == own.run == "r1"
        assert await bank.get(before.pointer) == "before"
        assert await bank.get(own.pointer) == "own"
        assert {each.id async for each in bank.list()} == {before.id, own.id}
        with pytest.raises(ExpiredPointerError):
            await bank.get(other.pointer)
        await collect(any_store, clock=clock)
        assert await Bank(any_store, clock=clock).get("before") == "before"

    assert bank.current_run is None
    for artifact in (before, own):
        with pytest.raises(ExpiredPointerError) as expired:
            await bank.get(artifact.pointer)
        assert expired.value.size_bytes == artifact.size_bytes
    assert await keys_of(any_store, "leases") == []
    assert await keys_of(any_store, f"pins/{run.segment}") == []


async def test_two_hours_with_a_ttl_of_ten_minutes_keep_every_pointer_the_history_shows(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock, limits=Limits(inline_bytes=100, cache_bytes=0))
    history: list[str] = [(await bank.put("from before", ttl_seconds=TEN_MINUTES)).pointer]
    (retrieve,) = retrieval_tools(bank)

    async with bank.run("long"):
        await retrieve.call({"artifactId": history[0]})
        for minute in range(0, 120, 5):
            history.append((await bank.put(f"{minute}" * 90, ttl_seconds=TEN_MINUTES)).pointer)
            await retrieve.call({"artifactId": history[-1], "search": "1"})
            clock.advance(300)
            await collect(any_store, clock=clock)

        assert [await bank.find(pointer) is not None for pointer in history] == [True] * 25

    await collect(any_store, clock=clock)
    # The last one was put five minutes ago, and has as long to live.
    assert [await bank.find(pointer) is not None for pointer in history] == [False] * 24 + [True]


async def test_a_lease_that_nobody_renews_lapses_after_fifteen_minutes_and_not_before(
    any_store: Store, clock: ManualClock
) -> None:
    bank = Bank(any_store, clock=clock)
    artifact = await bank.put("x", ttl_seconds=1)
    dying = bank.run("r1")
    async with asyncio.TaskGroup() as group:  # its task ends, and leaves the run behind

        async def die() -> None:
            await dying.__aenter__()
            await bank.get(artifact.pointer)

        group.create_task(die())
    other = Bank(any_store, clock=clock)

    clock.advance(LEASE - 0.1)
    assert await other.get(artifact.pointer) == "x"
    assert (await collect(any_store, clock=clock)).expired == 0
    clock.advance(0.1)

    with pytest.raises(ExpiredPointerError):
        await other.get(artifact.pointer)


async def test_calls_of_the_run_renew_its_lease_every_five_minutes_and_not_more_often(
    clock: ManualClock,
) -> None:
    store = Leases()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x")

    async with bank.run("r1"):
        for seconds in (1, 298.9, 0.1, 299.9, 0.1):
            clock.advance(seconds)
            await bank.get(artifact.pointer)

    assert store.leases == [0, 300, 600]


class Leases(MemoryStore):
    """A store that notes when leases are written, in seconds after the first."""

    def __init__(self) -> None:
        super().__init__()
        self._untils: list[int] = []

    @property
    def leases(self) -> list[int]:
        return [round((until - self._untils[0]) / 1e9) for until in self._untils]

    async def put(self, key: str, payload: bytes) -> None:
        if "/leases/" in key:
            self._untils.append(int(payload.partition(b'"until":')[2].rstrip(b"}")))
        await super().put(key, payload)


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0, 10 * 365 * 86_400.0])
async def test_a_clock_that_jumps_takes_nothing_from_a_run(
    any_store: Store, clock: ManualClock, jump: float
) -> None:
    bank = Bank(any_store, clock=clock)
    shown = await bank.put("shown", ttl_seconds=TEN_MINUTES)

    async with bank.run("r1"):
        own = await bank.put("own", ttl_seconds=TEN_MINUTES)
        await bank.get(shown.pointer)
        clock.advance(jump)
        assert await bank.get(shown.pointer) == "shown"
        await collect(any_store, clock=clock)
        clock.advance(-jump)
        later = await bank.put("later", ttl_seconds=TEN_MINUTES)
        await collect(any_store, clock=clock)

        assert [await bank.get(each.pointer) for each in (shown, own, later)] == [
            "shown", "own", "later",
        ]  # fmt: skip
        assert [each.id async for each in bank.list()][:1] == [later.id]


async def test_two_holders_of_a_run_keep_it_until_the_last_one_leaves(
    any_store: Store, clock: ManualClock
) -> None:
    first, second = Bank(any_store, clock=clock), Bank(any_store, clock=clock)
    artifact = await first.put("x", ttl_seconds=1)
    one, two = first.run("r1"), second.run("r1")

    async with two:
        async with one:
            await first.get(artifact.pointer)
        clock.advance(1)
        assert await second.get(artifact.pointer) == "x"
        assert len(await keys_of(any_store, "leases")) == 1

    with pytest.raises(ExpiredPointerError):
        await second.get(artifact.pointer)


async def test_who_reads_an_async_generator_is_part_of_a_run_within_it_until_that_ends(
    store: Store,
) -> None:
    bank = Bank(store)

    async def pages() -> AsyncIterator[int]:
        async with bank.run("r1"):
            for number in range(2):
                yield number

    runs = [bank.current_run async for _ in pages()]

    assert runs == ["r1", "r1"]
    assert bank.current_run is None


async def test_a_run_holds_in_its_own_scope_and_on_its_own_store_only(clock: ManualClock) -> None:
    store = MemoryStore()
    bank = Bank(store, clock=clock)
    other = bank.scoped("other")
    theirs = await other.put("theirs", ttl_seconds=1)

    async with bank.run("r1"):
        await other.get(theirs.pointer)
        assert other.current_run is None
        assert (await other.put("x")).run is None
        assert (await Bank(MemoryStore(), clock=clock).put("x")).run is None
        async with other.run("r2"):
            assert [bank.current_run, other.current_run] == ["r1", "r2"]
        clock.advance(1)

        with pytest.raises(ExpiredPointerError):
            await other.get(theirs.pointer)


async def test_what_a_run_was_shown_of_a_parent_or_by_grant_is_pinned_where_it_lies(
    any_store: Store, clock: ManualClock
) -> None:
    lead = Bank(any_store, scope="lead", clock=clock)
    worker = lead.scoped("worker", inherit=True)
    plan = await lead.put("plan", ttl_seconds=TEN_MINUTES)
    granted = await lead.scoped("third").put("granted", ttl_seconds=TEN_MINUTES)
    await lead.scoped("third").grant(granted.pointer, to_scope="worker")

    async with worker.run("r1"):
        assert await worker.get(plan.pointer) == "plan"
        assert await worker.get(granted.pointer) == "granted"
        clock.advance(TEN_MINUTES + 1)
        await collect(any_store, clock=clock)
        assert await worker.get(plan.pointer) == "plan"
        assert await worker.get(granted.pointer) == "granted"
        assert await lead.get(plan.pointer) == "plan"

    for bank, pointer in ((worker, plan.pointer), (worker, granted.pointer), (lead, plan.pointer)):
        with pytest.raises(ExpiredPointerError):
            await bank.get(pointer)
    for scope in ("lead", "third", "worker"):
        assert [key async for key in any_store.keys(f"s/{scope}/leases/")] == []


async def test_a_run_tells_another_scope_nothing(store: Store, clock: ManualClock) -> None:
    mine, theirs = Bank(store, scope="a", clock=clock), Bank(store, scope="b", clock=clock)
    pinned = await mine.put("x" * 100, name="plans", ttl_seconds=1)
    expired = await mine.put("y" * 100, ttl_seconds=1)
    unissued = "art:00000000-0000-4000-8000-000000000005"

    async with mine.run("r1"), theirs.run("r1"):
        await mine.get(pinned.pointer)
        clock.advance(1)
        await collect(store, clock=clock)
        for pointer in (pinned.pointer, expired.pointer, unissued):
            with pytest.raises(UnknownPointerError) as unknown:
                await theirs.get(pointer)
            assert str(unknown.value).replace(pointer, "") == "No artifact behind ''."
        assert [key async for key in store.keys("s/b/pins/")] == []


@pytest.mark.parametrize("by", ["find", "get", "payload", "read", "search", "query", "each"])
async def test_each_call_that_shows_an_artifact_pins_it(
    store: Store, clock: ManualClock, by: str
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put([{"id": 1}], ttl_seconds=1)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "find": lambda: bank.find(artifact.id),
        "get": lambda: bank.get(artifact.pointer),
        "payload": lambda: bank.payload(artifact.pointer),
        "read": lambda: bank.read(artifact.pointer),
        "search": lambda: bank.search(artifact.pointer, "id"),
        "query": lambda: bank.query(artifact.pointer, "$[*].id"),
        "each": lambda: anext(bank.get_each([artifact.pointer])),
    }

    async with bank.run("r1") as run:
        await calls[by]()

        pins = await keys_of(store, f"pins/{run.segment}")
    assert [key.rpartition("/")[2] for key in pins] == [artifact.id]


async def test_mirror_and_tools_pin_what_they_show(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock)
    handed, replayed, listed, nearest = [
        await bank.put(f"{number}" * 60_000, key=key, kind="tool-output", ttl_seconds=60)
        for number, key in enumerate((None, "rows\ncall_0", None, None))
    ]
    _, _, list_artifacts = artifact_tools(bank)

    def length(text: str) -> int:
        return len(text)

    async with bank.run("r1") as run:
        assert mirror(length, bank)(handed.pointer) == 60_000
        await Mirror(bank).offload("1" * 60_000, tool="rows", call_id="call_0")
        pinned = {key.rpartition("/")[2] for key in await keys_of(store, f"pins/{run.segment}")}
        assert pinned == {handed.id, replayed.id}

        await list_artifacts.call({})

        pinned = {key.rpartition("/")[2] for key in await keys_of(store, f"pins/{run.segment}")}
        assert pinned == {handed.id, replayed.id, listed.id, nearest.id}


async def test_pointers_that_an_error_names_are_pinned_too(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put("x", ttl_seconds=1)

    async with bank.run("r1") as run:
        with pytest.raises(UnknownPointerError) as unknown:
            await bank.get("art:00000000-0000-4000-8000-000000000005")

        assert unknown.value.nearest == (artifact.pointer,)
        assert len(await keys_of(store, f"pins/{run.segment}")) == 1


async def test_an_answer_that_another_run_banked_is_pinned_when_it_is_given_again(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    rows = await bank.put([{"id": number} for number in range(20)], ttl_seconds=60)
    first = await bank.query(rows.pointer, "$[*].id", save_as="ids")
    assert first.artifact is not None

    async with bank.run("r1"):
        again = await bank.query(rows.pointer, "$[*].id", save_as="ids")
        clock.advance(61)

        assert again.artifact == first.artifact
        assert await bank.get(first.artifact.pointer) == list(range(20))


async def test_a_pinned_artifact_put_again_under_its_key_is_the_same(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    first = await bank.put("x", key="k", ttl_seconds=1)

    async with bank.run("r1"):
        await bank.get(first.pointer)
        clock.advance(1)

        assert await bank.put("x", key="k", ttl_seconds=1) == first


async def test_tasks_of_the_run_are_in_it_and_outlive_it_outside(store: Store) -> None:
    bank = Bank(store)
    over = asyncio.Event()

    async def child() -> tuple[str | None, str | None]:
        inside = await bank.put("inside")
        await over.wait()
        return inside.run, (await bank.put("outside")).run

    async with bank.run("r1"):
        task = asyncio.create_task(child())
        await asyncio.sleep(0)
    over.set()

    assert await task == ("r1", None)


def test_blocking_code_has_runs_too(tmp_path: object) -> None:
    with BlockingBank("memory:") as bank:

        def tool() -> str:
            return "x" * 60_000

        with bank.run("r1") as run:
            shown = mirror(tool, bank)()
            artifact = bank.find(shown.pointer)
            assert artifact is not None
            assert artifact.run == run.name == bank.bank.current_run == "r1"
        assert bank.put("y").run is None
        assert bank.bank.current_run is None


@pytest.mark.parametrize("name", ["", "x" * 201])
async def test_the_name_of_a_run_has_1_to_200_characters(store: Store, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="1 to 200"):
        Bank(store).run(name)


@pytest.mark.parametrize("name", ["x", "x" * 200, "a/b", "../x", "Ü\ud800", "r1\n"])
async def test_any_other_text_names_a_run(store: Store, name: str) -> None:
    bank = Bank(store)

    async with bank.run(name) as run:
        assert len(await keys_of(store, "leases")) == 1
        assert len(run.segment) == 32


class Failing(MemoryStore):
    """A store that refuses to write where a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = ""

    async def put(self, key: str, payload: bytes) -> None:
        if self.refused and self.refused in key:
            raise StoreUnavailableError("No space left on device")
        await super().put(key, payload)


@pytest.mark.parametrize("refused", ["/pins/", "/leases/"])
async def test_a_store_that_refuses_a_pin_or_a_lease_still_answers(
    refused: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = Failing()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x")

    async with bank.run("r1"):
        store.refused = refused
        clock.advance(301)
        with caplog.at_level(logging.WARNING, "coatcheck.bank"):
            assert await bank.get(artifact.pointer) == "x"
        assert "is not held" in caplog.text

        store.refused = ""
        await bank.get(artifact.pointer)
        assert len(await keys_of(store, "leases")) == 1


async def test_a_run_that_cannot_be_written_down_does_not_begin() -> None:
    store = Failing()
    bank = Bank(store)
    store.refused = "/leases/"

    with pytest.raises(StoreUnavailableError):
        async with bank.run("r1"):
            pytest.fail("it began")

    assert bank.current_run is None


async def test_a_run_goes_along_to_another_store() -> None:
    bank = Bank(MemoryStore())
    other = MemoryStore()

    async with bank.run("r1"):
        await bank.use_store(other)
        assert (await bank.put("x")).run == "r1"
        assert len(await keys_of(other, "leases")) == 1

    assert await keys_of(other, "leases") == []


async def test_a_run_may_end_in_another_task_than_it_began_in(store: Store) -> None:
    bank = Bank(store)

    async def held() -> AsyncIterator[None]:
        async with bank.run("r1"):
            yield

    running = held()
    await asyncio.create_task(anext(running))  # type: ignore[arg-type] # an awaitable will do
    await asyncio.create_task(running.aclose())  # type: ignore[attr-defined] # a generator

    assert await keys_of(store, "leases") == []
    assert bank.current_run is None


async def test_without_a_run_nothing_is_pinned_and_no_call_costs_more(clock: ManualClock) -> None:
    store = Counting()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x" * 100)
    await bank.find(artifact.pointer)  # from now on the format of the store is known
    store.asked.clear()

    await bank.put("y" * 100)
    await bank.get(artifact.pointer)
    await bank.read(artifact.pointer)

    kinds = [key.split("/")[2] if key.startswith("s/") else key for key in store.asked]
    put = ["payloads", "records", "listing", "records"]  # that it stands is looked at last
    assert kinds == [*put, "records", "payloads"]


class Counting(MemoryStore):
    """A store that notes each key it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def put(self, key: str, payload: bytes) -> None:
        self.asked.append(key)
        await super().put(key, payload)

    async def create(self, key: str, payload: bytes) -> bool:
        self.asked.append(key)
        return await super().create(key, payload)

    async def get(self, key: str) -> bytes | None:
        self.asked.append(key)
        return await super().get(key)

    async def delete(self, key: str) -> None:
        self.asked.append(key)
        await super().delete(key)
