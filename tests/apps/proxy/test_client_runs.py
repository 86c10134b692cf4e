"""What a client was shown stays until it goes, whatever quota or time there is."""

import asyncio
import logging
from pathlib import Path

import pytest

from coatcheck import Bank, Limits
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._client_runs import ClientRuns
from coatcheck.apps.proxy._scope import Scope
from coatcheck.apps.proxy._settings import Settings
from coatcheck.bank import Journal, read_journal
from coatcheck.errors import ExpiredPointerError, StoreUnavailableError
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock

QUOTA_BYTES = 200_000
OWN = Scope("of one")
ANONYMOUS = Scope("anonymous", 3_600.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def bank(store: MemoryStore, clock: ManualClock) -> Bank:
    return Bank(store, limits=Limits(scope_bytes=QUOTA_BYTES), clock=clock)


@pytest.fixture
def logged() -> list[str]:
    return []


@pytest.fixture
def runs(bank: Bank, logged: list[str]) -> ClientRuns:
    return ClientRuns(bank, logged.append)


async def filled(bank: Bank, clock: ManualClock, runs: ClientRuns | None) -> list[str]:
    """Put twice what the quota allows, each in a request of its own."""
    pointers: list[str] = []
    for number in range(8):
        clock.advance(1)
        if runs is None:
            artifact = await bank.scoped(OWN.name).put(f"{number}" * 50_000)
        else:
            with await runs.within(OWN):
                artifact = await bank.scoped(OWN.name).put(f"{number}" * 50_000)
        pointers.append(artifact.pointer)
    return pointers


async def test_all_that_a_client_was_shown_stays_above_a_quota_until_it_goes(
    bank: Bank, clock: ManualClock, runs: ClientRuns
) -> None:
    pointers = await filled(bank, clock, runs)

    own = bank.scoped(OWN.name)
    assert [await own.find(each) is not None for each in pointers] == [True] * 8
    await runs.close()
    clock.advance(120)
    last = await own.put("z" * 50_000)
    assert (await own.usage()).size_bytes <= QUOTA_BYTES
    assert await own.find(last.pointer) is not None


async def test_without_a_run_the_oldest_make_room(bank: Bank, clock: ManualClock) -> None:
    pointers = await filled(bank, clock, None)

    assert await bank.scoped(OWN.name).find(pointers[0]) is None


async def test_what_another_client_put_stays_once_this_one_was_shown_it(
    bank: Bank, clock: ManualClock, runs: ClientRuns
) -> None:
    own = bank.scoped(OWN.name)
    report = await own.put("a report", ttl_seconds=600)
    with await runs.within(OWN):
        await own.read(report.pointer)

    clock.advance(800)

    assert await own.get(report.pointer) == "a report"
    await runs.close()
    with pytest.raises(ExpiredPointerError):
        await own.get(report.pointer)


async def test_leases_are_renewed_while_the_client_calls_nothing(
    bank: Bank, clock: ManualClock, logged: list[str]
) -> None:
    runs = ClientRuns(bank, logged.append, renew_seconds=0)
    own = bank.scoped(OWN.name)
    with await runs.within(OWN):
        rows = await own.put([1, 2, 3], ttl_seconds=600)

    for _ in range(12):
        clock.advance(600)
        for _ in range(20):
            await asyncio.sleep(0)

    assert await own.find(rows.pointer) is not None
    await runs.close()
    assert await own.find(rows.pointer) is None


async def test_callers_that_nothing_tells_apart_have_no_run(bank: Bank, runs: ClientRuns) -> None:
    with await runs.within(ANONYMOUS):
        artifact = await bank.scoped(ANONYMOUS.name).put("x", ttl_seconds=60)

    assert artifact.run is None


async def test_requests_at_once_are_of_one_run(bank: Bank, runs: ClientRuns) -> None:
    async def request(number: int) -> str | None:
        with await runs.within(OWN):
            return (await bank.scoped(OWN.name).put(number)).run

    found = await asyncio.gather(*(request(number) for number in range(20)))

    assert set(found) == {runs.name}


async def test_a_scope_beyond_the_256_used_last_is_let_go(
    bank: Bank, clock: ManualClock, runs: ClientRuns
) -> None:
    pointers: list[str] = []
    for number in range(258):
        scope = Scope(f"s{number}")
        with await runs.within(scope):
            artifact = await bank.scoped(scope.name).put("x", ttl_seconds=60)
        with await runs.within(Scope("s0")):
            pointers.append(artifact.pointer)

    clock.advance(61)

    kept = [await bank.scoped(f"s{n}").find(each) for n, each in enumerate(pointers)]
    assert [number for number, each in enumerate(kept) if each is None] == [1, 2]


class Failing(MemoryStore):
    """A store that keeps no lease, and counts how often it was to."""

    tries = 0

    async def put(self, key: str, payload: bytes) -> None:
        self._fail(key)
        await super().put(key, payload)

    async def put_expiring(self, key: str, payload: bytes, ttl_seconds: float) -> None:
        self._fail(key)
        await super().put_expiring(key, payload, ttl_seconds)

    def _fail(self, key: str) -> None:
        if "lease" in key:
            self.tries += 1
            raise StoreUnavailableError("the store is not there")


async def test_a_store_that_fails_is_told_once_and_not_asked_for_each_call(
    clock: ManualClock, logged: list[str]
) -> None:
    store = Failing()
    bank = Bank(store, limits=Limits(scope_bytes=QUOTA_BYTES), clock=clock)
    runs = ClientRuns(bank, logged.append)

    for number in range(5):
        with await runs.within(OWN):
            assert (await bank.scoped(OWN.name).put(number)).run is None
    await runs.close()

    assert store.tries == 1
    assert len(logged) == 1
    assert logged[0].startswith("what clients are shown is not held: ")


@pytest.mark.parametrize(
    ("limits", "forgets", "dry_run", "has_runs"),
    [
        (Limits(), False, False, False),
        (Limits(), True, False, True),
        (Limits(scope_bytes=1), False, False, True),
        (Limits(store_bytes=1), False, False, True),
        (Limits(store_bytes=1), True, True, False),
    ],
)
def test_clients_have_runs_only_where_something_may_take_away_what_they_were_shown(
    limits: Limits, forgets: bool, dry_run: bool, has_runs: bool
) -> None:
    acts = Acts(
        Bank(MemoryStore(), limits=limits),
        Settings(limits=limits, dry_run=dry_run),
        forgets=forgets,
    )

    assert (acts.client_runs(logging.getLogger().info) is not None) == has_runs


async def test_the_run_of_the_journal_is_the_client(tmp_path: Path, logged: list[str]) -> None:
    limits = Limits(scope_bytes=QUOTA_BYTES)
    with Journal(tmp_path / "calls.jsonl") as journal:
        bank = Bank(MemoryStore(), limits=limits, journal=journal)
        acts = Acts(bank, Settings(limits=limits))
        runs = acts.client_runs(logged.append)
        assert runs is not None
        result = {"content": [{"type": "text", "text": "small"}]}
        with await runs.within(OWN):
            await acts.result(OWN, "a", "rows", result)
        await runs.close()

    assert [call.run for call in read_journal(tmp_path / "calls.jsonl")] == [runs.name]
