import asyncio
import json
from typing import Any, cast

import pytest
from rs_bpe.bpe import openai  # pyright: ignore[reportUnknownVariableType]

from coatcheck import Bank, Mirror
from coatcheck.errors import StoreUnavailableError
from coatcheck.mirror import background
from coatcheck.stores import MemoryStore
from coatcheck.tools import Tool, poll_tools

UNISSUED = "ah:00000000-0000-4000-8000-000000000005"


class Silent(MemoryStore):
    """A store that does not answer."""

    async def get(self, key: str) -> bytes | None:
        raise StoreUnavailableError("timed out")


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


def poll_tool(bank: Bank) -> Tool:
    (tool,) = poll_tools(bank)
    return tool


async def poll(bank: Bank, **arguments: object) -> Any:
    return json.loads(await poll_tool(bank).call(arguments))


def count(text: str) -> int:
    return cast("Any", openai).o200k_base().count(text)  # type: ignore[no-any-return]


def test_the_schema_keeps_within_its_tokens(bank: Bank) -> None:
    tool = poll_tool(bank)
    described = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }

    assert count(json.dumps(described, separators=(",", ":"))) <= 60


async def test_the_answer_to_a_start_keeps_within_its_tokens(bank: Bank) -> None:
    async def report() -> None: ...

    assert count(await background(report, bank)()) <= 50


@pytest.mark.parametrize(
    ("wait_ms", "message"),
    [
        (-1, "waitMs must be 0 or more, got -1"),
        (0.5, "waitMs must be an integer, got '0.5'"),
        ("10", "waitMs must be an integer, got '10'"),
        (True, "waitMs must be an integer, got 'True'"),
    ],
)
async def test_a_wait_outside_its_rule_is_refused(
    bank: Bank, wait_ms: object, message: str
) -> None:
    failure = await poll(bank, handle=UNISSUED, waitMs=wait_ms)

    assert failure["error"] == "invalid-argument"
    assert failure["message"].replace("'", "") == message.replace("'", "")
    assert failure["hint"]


async def test_a_longer_wait_is_clamped_and_the_reply_says_so(bank: Bank) -> None:
    finish = asyncio.Event()
    start = json.loads(await background(finish.wait, bank)())
    waiting = asyncio.create_task(poll(bank, handle=start["handle"], waitMs=10**9))
    await asyncio.sleep(0)
    finish.set()

    assert (await waiting)["status"] == "done"


async def test_without_a_wait_the_answer_comes_at_once(bank: Bank) -> None:
    finish = asyncio.Event()
    start = json.loads(await background(finish.wait, bank)())

    assert await poll(bank, handle=start["handle"]) == {"status": "pending", "waitMs": 0}
    await bank.handles.stop()
    assert (await poll(bank, handle=start["handle"]))["status"] == "error"


async def test_a_handle_that_stands_for_nothing_is_told_apart_from_a_store_that_is_away(
    bank: Bank,
) -> None:
    for handle in (UNISSUED, "nonsense"):
        assert await poll(bank, handle=handle) == {
            "status": "not-found",
            "hint": "Use a handle exactly as it was shown.",
        }
    silent = await poll(Bank(Silent()), handle=UNISSUED)
    assert silent["error"] == "store-unavailable"


async def test_a_lone_surrogate_in_a_result_reaches_no_request(bank: Bank) -> None:
    async def report() -> dict[str, str]:
        return {"text": "\ud83d"}

    start = json.loads(await background(report, bank)())

    assert await poll(bank, handle=start["handle"], waitMs=30_000) == {
        "status": "done",
        "result": {"text": "\ufffd"},
    }


async def test_a_reply_is_never_offloaded(bank: Bank) -> None:
    mirror = Mirror(bank)

    assert await mirror.offload("x" * 60_000, tool="pollResult") == "x" * 60_000
