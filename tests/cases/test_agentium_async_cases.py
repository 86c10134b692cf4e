"""Seed 000's cases of tool descriptions and background work: each test names the case it holds."""

import asyncio
import json
import re
from typing import Any

from coatcheck import Bank, Envelope, mirror
from coatcheck.mirror import background, definition
from coatcheck.stores import Store
from coatcheck.testing import ManualClock
from coatcheck.tools import poll_tools

HANDLE = r"ah:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
UNISSUED = "ah:00000000-0000-4000-8000-000000000005"


async def poll(bank: Bank, handle: str, wait_ms: int = 0) -> Any:
    """Return the reply to a call as a model makes it, from JSON text to JSON."""
    (tool,) = poll_tools(bank)
    return json.loads(await tool.call(json.dumps({"handle": handle, "waitMs": wait_ms})))


def search(query: str, limit: int = 10) -> list[str]:
    """Search the pages."""
    return [query] * limit


def test_a24_examples_of_input_are_a_numbered_list_at_the_end_of_the_description(
    bank: Bank,
) -> None:
    tool = mirror(search, bank)

    described = definition(tool, input_examples=[{"query": "moss"}, {"query": "fern", "limit": 2}])

    assert described["description"] == (
        'Search the pages.\n\nExamples:\n1. {"query":"moss"}\n2. {"query":"fern","limit":2}'
    )
    assert definition(tool)["description"] == "Search the pages."


def test_a25_only_a_strict_tool_takes_no_other_arguments_and_says_so(bank: Bank) -> None:
    tool = mirror(search, bank)

    strict = definition(tool, strict=True)

    assert strict["strict"] is True
    assert strict["parameters"]["additionalProperties"] is False
    assert "strict" not in definition(tool)
    assert "additionalProperties" not in definition(tool)["parameters"]


async def test_a26_a_call_returns_a_handle_while_the_work_goes_on(bank: Bank) -> None:
    finish = asyncio.Event()

    async def report() -> str:
        await finish.wait()
        return "all good"

    started = json.loads(await background(report, bank)())

    assert re.fullmatch(HANDLE, started["handle"])
    assert started["status"] == "pending"
    assert list(started) == ["handle", "status", "note"]
    finish.set()
    assert (await poll(bank, started["handle"], 30_000))["status"] == "done"


async def test_a27_a_poll_waits_for_the_value(bank: Bank) -> None:
    finish = asyncio.Event()

    async def report() -> dict[str, int]:
        await finish.wait()
        return {"rows": 3}

    handle = json.loads(await background(report, bank)())["handle"]
    waiting = asyncio.create_task(poll(bank, handle, 30_000))
    await asyncio.sleep(0)
    finish.set()

    assert await waiting == {"status": "done", "result": {"rows": 3}}


async def test_a28_a_poll_that_waited_in_vain_says_pending(bank: Bank) -> None:
    finish = asyncio.Event()
    handle = json.loads(await background(finish.wait, bank)())["handle"]

    assert await poll(bank, handle, 10) == {"status": "pending", "waitMs": 10}
    finish.set()
    assert await poll(bank, handle, 30_000) == {"status": "done", "result": True}


async def test_a29_what_the_tool_raises_is_an_error_with_its_message(bank: Bank) -> None:
    async def fails() -> str:
        raise RuntimeError("nope")

    handle = json.loads(await background(fails, bank)())["handle"]

    assert await poll(bank, handle, 30_000) == {"status": "error", "error": "nope"}


async def test_a30_an_unknown_handle_is_not_found(bank: Bank) -> None:
    assert (await poll(bank, UNISSUED))["status"] == "not-found"


async def test_a41_the_time_counts_from_the_end_then_expired_is_told_once(
    bank: Bank, clock: ManualClock
) -> None:
    finish = asyncio.Event()
    handle = json.loads(await background(finish.wait, bank)())["handle"]
    clock.advance(3_600)  # It takes longer than its result lives: that does not count.
    finish.set()
    assert (await poll(bank, handle, 30_000))["status"] == "done"

    clock.advance(599)
    assert (await poll(bank, handle))["status"] == "done"
    clock.advance(1)
    assert (await poll(bank, handle))["status"] == "expired"
    assert (await poll(bank, handle))["status"] == "not-found"


async def test_a_large_result_of_background_work_is_polled_as_a_pointer(
    bank: Bank, store: Store, clock: ManualClock
) -> None:
    async def report() -> str:
        return "x" * 60_000

    handle = json.loads(await background(report, bank)())["handle"]
    shown = (await poll(bank, handle, 30_000))["result"]

    assert await bank.get(shown["pointer"]) == "x" * 60_000
    artifact = await bank.find(shown["pointer"])
    assert artifact is not None
    assert shown == Envelope.of(artifact).to_wire()
    elsewhere = Bank(store, clock=clock)
    assert (await poll(elsewhere, handle))["result"] == shown
