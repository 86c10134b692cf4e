"""Reports on how long artifacts live: through a restart, by their time, and beside a rerun."""

import hashlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from coatcheck import Bank, Limits, UnknownPointerError, open_bank
from coatcheck.bank import Usage, store_at
from coatcheck.bank.collection import collect
from coatcheck.errors import ExpiredPointerError
from coatcheck.stores import RedisStore, Store
from coatcheck.testing import ManualClock

DIES = """
import asyncio, os, signal, sys
from coatcheck import open_bank

async def main() -> None:
    async with open_bank(sys.argv[1]) as bank:
        print((await bank.put("zażółć 🚀\\n" * 20_000)).pointer, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def put_and_killed(address: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", DIES, address], stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == -9
    return done.stdout.decode().strip()


@pytest.mark.parametrize("kind", ["file", "redis", "s3"])
async def test_br_070_what_a_killed_process_put_reads_the_same_in_a_new_one(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = f"file:{tmp_path}"
    if kind == "redis":
        address = request.getfixturevalue("redis_url")
    elif kind == "s3":
        address = request.getfixturevalue("s3").address("br-070")

    pointer = put_and_killed(address)

    async with open_bank(address) as bank:
        payload = await bank.payload(pointer)
    expected = ("zażółć 🚀\n" * 20_000).encode()
    assert hashlib.sha256(payload).hexdigest() == hashlib.sha256(expected).hexdigest()


async def test_br_070_a_store_in_memory_says_that_it_forgot_and_names_the_fix() -> None:
    pointer = put_and_killed("memory:")

    async with open_bank("memory:") as bank:
        with pytest.raises(UnknownPointerError) as unknown:
            await bank.get(pointer)

    assert "this store is in memory" in unknown.value.hint
    assert "file:DIR" in unknown.value.hint


async def test_br_070_another_kind_of_store_does_not_say_so(tmp_path: Path) -> None:
    async with open_bank(tmp_path / "store") as bank:
        with pytest.raises(UnknownPointerError) as unknown:
            await bank.get("art:00000000-0000-4000-8000-000000000005")

    assert "memory" not in unknown.value.hint


@pytest.mark.parametrize(
    ("given", "seconds", "warned"),
    [("", 86_400, 0), ("3600", 3_600, 0), ("0", 86_400, 1), ("-1", 86_400, 1)],
)
async def test_br_071_a_time_to_live_is_the_one_that_was_set(
    given: str, seconds: float, warned: int, redis_url: str
) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        store = store_at(f"{redis_url}&ttl_seconds={given}" if given else redis_url)
    assert isinstance(store, RedisStore)

    artifact = await Bank(store).put("x")

    await store.close()
    assert artifact.expires_at is not None
    assert (artifact.expires_at - artifact.stored_at).total_seconds() == seconds
    assert len(seen) == warned


def test_br_071_a_time_to_live_that_is_no_number_is_an_error_at_the_start() -> None:
    with pytest.raises(ValueError, match="ttl_seconds"):
        store_at("redis://127.0.0.1:1/0?ttl_seconds=abc")


async def test_br_071_a_time_to_live_of_one_artifact_is_kept_too(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x", ttl_seconds=3_600)

    clock.advance(3_599)
    assert await bank.get(artifact.pointer) == "x"
    clock.advance(2)

    with pytest.raises(ExpiredPointerError):
        await bank.get(artifact.pointer)


async def test_br_073_a_rerun_that_gives_nothing_overwrites_nothing(
    reopen: Callable[[], Store],
) -> None:
    bank = Bank(reopen())

    good = await bank.put("good", name="report", label="step 1", key="call_0")
    bad = await bank.put("", name="report", label="step 1", key="call_0")

    assert good.pointer != bad.pointer
    assert await bank.get(good.pointer) == "good"
    assert await bank.get(bad.pointer) == ""
    assert [each.id async for each in Bank(reopen()).list()] == [bad.id, good.id]


async def test_a_long_session_fills_no_disk_beyond_its_quota(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock, limits=Limits(scope_bytes=1_000_000, cache_bytes=0))

    for _ in range(100):
        await bank.put("x" * 100_000)
        clock.advance(1)

    usage = await bank.usage()
    assert usage.size_bytes <= 1_000_000
    assert len([key async for key in store.keys("s/default/payloads/")]) == usage.artifacts


async def test_sessions_that_nobody_ends_leave_nothing_behind(
    store: Store, clock: ManualClock
) -> None:
    for session in range(20):
        bank = Bank(store, scope=f"session-{session}", clock=clock)
        await bank.run("r1").begin()  # and never ended
        await bank.put("x" * 1_000)
        clock.advance(3_600)

    clock.advance(86_400)
    done = await collect(store, older_than_seconds=86_400, clock=clock)

    assert done.evicted == 20
    for session in range(20):
        bank = Bank(store, scope=f"session-{session}", clock=clock)
        assert await bank.usage() == Usage(0, 0)
        assert [key async for key in store.keys(f"s/session-{session}/leases/")] == []
