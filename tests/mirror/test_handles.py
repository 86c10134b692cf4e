import asyncio
import inspect
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coatcheck import Bank, Limits, Mirror, UnknownPointerError, mirror, open_bank
from coatcheck.bank import Work
from coatcheck.errors import InvalidArgumentError, StoreFormatError, StoreUnavailableError
from coatcheck.mirror import background
from coatcheck.stores import FileStore, MemoryStore
from coatcheck.testing import ManualClock

USER: ContextVar[str] = ContextVar("USER")
STOPPED = "The work was stopped before it ended. Call its tool again."


class Watched(MemoryStore):
    """A store that says when a handle was written, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()
        self.is_full = False
        self.looks = 0
        self.at_look: Callable[[], object] = lambda: None

    async def put(self, key: str, payload: bytes) -> None:
        if self.is_full:
            raise StoreUnavailableError("no room")
        await super().put(key, payload)
        if "/handles/" in key:
            self.written.set()

    async def get(self, key: str) -> bytes | None:
        if "/handles/" in key:
            self.looks += 1
            self.at_look()
        return await super().get(key)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store() -> Watched:
    return Watched()


@pytest.fixture
async def bank(store: Watched, clock: ManualClock) -> AsyncIterator[Bank]:
    bank = Bank(store, clock=clock)
    yield bank
    await bank.handles.stop()


def handle_in(started: object) -> str:
    handle = json.loads(str(started))["handle"]
    assert isinstance(handle, str)
    return handle


async def outcome(bank: Bank, handle: str) -> Work:
    return await bank.handles.poll(handle, 30_000)


async def test_a_sync_tool_stays_sync_and_works_in_a_thread(bank: Bank) -> None:
    finish = threading.Event()

    def report(number: int) -> list[object]:
        finish.wait(30)
        return [number, threading.current_thread().name]

    handle = handle_in(background(report, bank)(7))

    assert (await bank.handles.poll(handle)).status == "pending"
    finish.set()
    assert (await outcome(bank, handle)).result == [7, "coatcheck work"]


async def test_a_sync_tool_that_returns_an_awaitable_is_awaited(bank: Bank) -> None:
    async def later(number: int) -> int:
        return number + 1

    def start(number: int) -> Awaitable[int]:
        return later(number)

    handle = handle_in(background(start, bank)(1))

    assert (await outcome(bank, handle)).result == 2


async def test_a_tool_sees_the_context_of_its_call(bank: Bank) -> None:
    def who() -> str:
        return USER.get()

    async def who_async() -> str:
        return USER.get()

    USER.set("mara")
    handles = [background(who, bank)(), await background(who_async, bank)()]

    assert [(await outcome(bank, handle_in(each))).result for each in handles] == ["mara"] * 2


async def test_partials_and_callable_objects_work_in_the_background(bank: Bank) -> None:
    class Adder:
        def __call__(self, a: int, b: int) -> int:
            return a + b

    assert (await outcome(bank, handle_in(background(Adder(), bank)(1, "2")))).result == 3
    add_four = background(partial(Adder(), 4), bank)
    assert (await outcome(bank, handle_in(add_four(b=1)))).result == 5


async def test_what_an_async_generator_yields_is_the_result(bank: Bank) -> None:
    async def lines(count: int) -> AsyncIterator[str]:
        for number in range(count):
            yield f"line {number}\n"

    few = await outcome(bank, handle_in(await background(lines, bank)(2)))
    many: Any = (await outcome(bank, handle_in(await background(lines, bank)(9_000)))).result

    assert few.result == await mirror(lines, bank)(2)
    assert await bank.get(many["pointer"]) == [f"line {number}\n" for number in range(9_000)]


async def test_pointers_and_arguments_are_checked_before_anything_is_started(bank: Bank) -> None:
    called: list[object] = []

    async def total(rows: list[int], bank: Bank) -> int:
        called.append(bank)
        return sum(rows)

    tool = background(total, bank)
    rows = await bank.put([1, 2, 3])

    assert (await outcome(bank, handle_in(await tool(rows.pointer)))).result == 6
    assert called == [bank]
    with pytest.raises(UnknownPointerError):
        await tool("art:00000000-0000-4000-8000-000000000005")
    with pytest.raises(InvalidArgumentError):
        await tool("three")
    assert len(called) == 1


def test_a_background_tool_looks_like_the_tool_and_names_the_tool_that_polls() -> None:
    async def report(year: int) -> str:
        """Write the report."""
        return str(year)

    tool = background(report, Bank(MemoryStore()))

    assert tool.__name__ == "report"
    assert inspect.iscoroutinefunction(tool)
    assert list(inspect.signature(tool).parameters) == ["year"]
    assert tool.__doc__ == (
        "Write the report.\n\n[Async] Returns a handle at once; pollResult gets the result."
    )
    report.__doc__ = None
    assert str(background(report, Bank(MemoryStore())).__doc__).startswith("[Async]")


async def test_limits_are_for_the_result_never_for_the_handle(bank: Bank) -> None:
    async def report() -> str:
        return "short"

    by_option = background(report, bank, inline_bytes=0)
    by_limits = background(report, bank, limits=Limits(per_tool={"report": 0}))
    shrunk = Mirror(bank).background(report, to_model_output=str.upper)

    for tool in (by_option, by_limits):
        result: Any = (await outcome(bank, handle_in(await tool()))).result
        assert await bank.get(result["pointer"]) == "short"
    assert (await outcome(bank, handle_in(await shrunk()))).result == "SHORT"


async def test_a_result_without_json_is_kept_as_text(bank: Bank) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "<odd>"

    async def odd() -> object:
        return Odd()

    async def binary() -> bytes:
        return b"\xff\x00"

    async def array() -> object:
        return np.arange(4).reshape(2, 2)

    assert (await outcome(bank, handle_in(await background(odd, bank)()))).result == "<odd>"
    assert (await outcome(bank, handle_in(await background(binary, bank)()))).result == "/wA="
    found = await outcome(bank, handle_in(await background(array, bank)()))
    assert found.result == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("nope"), "nope"),
        (ValueError(), "ValueError"),
        (ValueError("\x1b[31mred\ud83d"), "red\ufffd"),
        (ValueError("x" * 1_000), "x" * 1_000),
        (ValueError("x" * 1_001), "x" * 1_000 + " … (1 more character)"),
    ],
)
async def test_the_message_of_an_error_is_bounded_and_logged(
    bank: Bank, error: Exception, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> None:
        raise error

    handle = handle_in(await background(fails, bank)())

    assert await outcome(bank, handle) == Work(status="error", error=message)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]


async def test_a_host_that_starts_work_without_json_gets_an_error_not_a_crash(bank: Bank) -> None:
    async def call() -> object:
        return object()

    work = await outcome(bank, await bank.handles.start(call))

    assert work.status == "error"
    assert "object" in work.error


async def test_another_process_waits_by_asking_the_store(
    bank: Bank, store: Watched, clock: ManualClock
) -> None:
    finish = asyncio.Event()
    handle = handle_in(await background(finish.wait, bank)())
    elsewhere = Bank(store, clock=clock)
    assert (await elsewhere.handles.poll(handle)).status == "pending"
    assert (await elsewhere.handles.poll(handle, 1)).status == "pending"
    assert store.looks == 3
    store.at_look = finish.set

    assert (await elsewhere.handles.poll(handle, 30_000)).result is True


async def test_work_is_found_in_its_own_scope_only(bank: Bank) -> None:
    async def report() -> str:
        return "mine"

    handle = handle_in(await background(report, bank)())

    assert (await outcome(bank, handle)).result == "mine"
    assert (await bank.scoped("other").handles.poll(handle)).status == "not-found"


@pytest.mark.parametrize("handle", ["", "ah:", "ah:../../store/secret", "art:x", "ah:" + "A" * 36])
async def test_what_is_no_handle_is_not_found_and_reaches_no_store(
    bank: Bank, store: Watched, handle: str
) -> None:
    assert (await bank.handles.poll(handle, 30_000)).status == "not-found"
    assert store.looks == 0


async def test_work_whose_process_died_is_an_error_then_expired(
    bank: Bank, store: Watched, clock: ManualClock
) -> None:
    finish = asyncio.Event()
    tool = background(finish.wait, bank, ttl_seconds=100, lease_seconds=60)
    handle = handle_in(await tool())
    elsewhere = Bank(store, clock=clock)

    clock.advance(59)
    assert (await elsewhere.handles.poll(handle)).status == "pending"
    clock.advance(1)
    assert await elsewhere.handles.poll(handle) == Work(status="error", error=STOPPED)
    assert (await bank.handles.poll(handle)).status == "pending"  # here it is known to go on
    clock.advance(100)
    assert (await elsewhere.handles.poll(handle)).status == "expired"
    assert (await elsewhere.handles.poll(handle)).status == "not-found"


async def test_work_that_goes_on_is_renewed_even_where_one_renewal_fails(
    bank: Bank, store: Watched, clock: ManualClock
) -> None:
    finish = asyncio.Event()
    handle = handle_in(await background(finish.wait, bank, lease_seconds=0.03)())
    elsewhere = Bank(store, clock=clock)
    clock.advance(1)
    store.written.clear()

    await store.written.wait()
    assert (await elsewhere.handles.poll(handle)).status == "pending"
    store.is_full = True
    clock.advance(1)
    looked = await elsewhere.handles.poll(handle, 30)
    store.is_full = False
    store.written.clear()
    await store.written.wait()

    assert looked == Work(status="error", error=STOPPED)
    assert (await elsewhere.handles.poll(handle)).status == "pending"


async def test_a_result_that_the_store_refuses_is_kept_in_memory_until_it_expires(
    bank: Bank, store: Watched, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    finish = asyncio.Event()
    handle = handle_in(await background(finish.wait, bank)())
    store.is_full = True
    finish.set()

    assert (await outcome(bank, handle)).result is True
    assert (await bank.handles.poll(handle)).result is True
    assert "kept in memory only" in caplog.text
    clock.advance(600)
    assert (await bank.handles.poll(handle)).status == "expired"
    assert (await bank.handles.poll(handle)).status == "not-found"


async def test_where_no_handle_can_be_written_nothing_is_started(
    bank: Bank, store: Watched
) -> None:
    called: list[int] = []

    async def report() -> None:
        called.append(1)

    store.is_full = True
    with pytest.raises(StoreUnavailableError):
        await background(report, bank)()

    await asyncio.sleep(0)
    assert called == []


@pytest.mark.parametrize("times", [{"ttl_seconds": 0}, {"lease_seconds": -1}])
async def test_times_must_be_more_than_zero(bank: Bank, times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be more than 0"):
        await bank.handles.start(asyncio.Event().wait, **times)


async def test_a_damaged_handle_is_a_failure_of_the_store(bank: Bank, store: Watched) -> None:
    async def report() -> str:
        return "x"

    handle = handle_in(await background(report, bank)())
    await outcome(bank, handle)
    await store.put(f"s/default/handles/{handle.removeprefix('ah:')}", b'{"status":"done"}')

    with pytest.raises(StoreFormatError):
        await bank.handles.poll(handle)


async def test_closing_a_bank_stops_its_work_and_says_so(tmp_path: Path) -> None:
    stopped: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("async")

    forever = threading.Event()
    async with open_bank(tmp_path) as bank:
        handles = [handle_in(await background(endless, bank)())]
        handles.append(handle_in(background(forever.wait, bank)()))
        await asyncio.sleep(0)

    assert stopped == ["async"]
    elsewhere = Bank(FileStore(tmp_path))
    for handle in handles:
        assert await elsewhere.handles.poll(handle) == Work(status="error", error=STOPPED)
    forever.set()
    await bank.handles.stop()


def test_the_end_of_the_event_loop_stops_the_work_and_says_so() -> None:
    store = MemoryStore()

    async def short() -> str:
        return handle_in(await background(asyncio.Event().wait, Bank(store))())

    handle = asyncio.run(short())

    work = asyncio.run(Bank(store).handles.poll(handle))
    assert work == Work(status="error", error=STOPPED)


def test_work_on_a_loop_that_stands_still_is_judged_by_its_lease() -> None:
    clock = ManualClock()
    bank = Bank(MemoryStore(), clock=clock)
    loop = asyncio.new_event_loop()
    handle = handle_in(loop.run_until_complete(background(asyncio.Event().wait, bank)()))

    assert asyncio.run(bank.handles.poll(handle)).status == "pending"
    clock.advance(60)
    assert asyncio.run(bank.handles.poll(handle)) == Work(status="error", error=STOPPED)
    loop.run_until_complete(bank.handles.stop())
    loop.close()


async def test_a_forked_process_does_not_take_its_parents_work_for_its_own(
    bank: Bank, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = handle_in(await background(asyncio.Event().wait, bank)())
    monkeypatch.setattr(os, "getpid", lambda: 1)

    assert (await bank.handles.poll(handle)).status == "pending"
    clock.advance(60)
    assert await bank.handles.poll(handle) == Work(status="error", error=STOPPED)
    monkeypatch.undo()
    assert (await bank.handles.poll(handle)).status == "pending"


async def test_an_outcome_that_is_cut_off_while_it_is_written_is_kept_in_memory(
    clock: ManualClock,
) -> None:
    class Slow(Watched):
        stuck = asyncio.Event()

        async def put(self, key: str, payload: bytes) -> None:
            if b'"done"' in payload:
                self.stuck.set()
                await asyncio.Event().wait()
            await super().put(key, payload)

    store = Slow()
    bank = Bank(store, clock=clock)

    async def report() -> str:
        return "kept"

    handle = handle_in(await background(report, bank)())
    await store.stuck.wait()
    await bank.handles.stop()

    assert (await bank.handles.poll(handle)).result == "kept"
    await bank.handles.stop()
    assert (await bank.handles.poll(handle)).result == "kept"


def test_a_killed_process_leaves_an_error_and_a_finished_one_its_result(tmp_path: Path) -> None:
    script = """
import asyncio, json, sys
from coatcheck import open_bank
from coatcheck.mirror import background

async def short():
    return "done"

async def main():
    async with open_bank(sys.argv[1]) as bank:
        tools = [background(fn, bank) for fn in (short, asyncio.Event().wait)]
        handles = [json.loads(await tool())["handle"] for tool in tools]
        await bank.handles.poll(handles[0], 30_000)
        print(*handles, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        done, endless = process.stdout.readline().split()
        os.kill(process.pid, signal.SIGKILL)
    bank = Bank(FileStore(tmp_path))
    later = Bank(FileStore(tmp_path), clock=lambda: time.time() + 60)

    assert asyncio.run(bank.handles.poll(done)).result == "done"
    assert asyncio.run(bank.handles.poll(endless)).status == "pending"
    assert asyncio.run(later.handles.poll(endless)) == Work(status="error", error=STOPPED)


async def test_the_log_of_failed_work_is_that_of_the_bank(
    bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> None:
        raise ValueError("nope")

    handle = handle_in(await background(fails, bank)())
    await outcome(bank, handle)

    (record,) = caplog.records
    assert (record.name, record.levelno) == ("coatcheck.bank", logging.WARNING)
    assert handle in record.getMessage()
