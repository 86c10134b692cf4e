"""One server: how its era is found out, how it is started again, and what it is left with."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from coatcheck.apps.proxy._channel import Channel, ServerDownError
from coatcheck.apps.proxy._config import UpstreamSpec
from coatcheck.apps.proxy._eras import Opening
from coatcheck.apps.proxy._messages import Json, RpcError
from coatcheck.apps.proxy._process import ProcessChannel
from coatcheck.apps.proxy._upstream import Known, Upstream, pause_seconds
from coatcheck.testing import ManualClock

CLIENT = {"name": "host", "version": "7"}
OLD = Opening(era="handshake", version="2025-11-25", client=CLIENT)
NEW = Opening(era="modern", version="2026-07-28", client=CLIENT)


class Ears:
    """Notes when a server comes up."""

    def __init__(self) -> None:
        self.ups: list[bool] = []

    async def heard(self, upstream: Upstream, method: str, params: Json) -> None:
        pass

    async def asked(self, upstream: Upstream, method: str, params: Json) -> Json:
        raise RpcError(-32601, "no")

    async def came_up(self, upstream: Upstream, *, is_first: bool) -> None:
        self.ups.append(is_first)


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def before(ears: Ears, clock: ManualClock) -> AsyncIterator[Callable[..., Upstream]]:
    async with AsyncExitStack() as stack:

        async def start(spec: UpstreamSpec) -> Channel:
            return await ProcessChannel.start(spec, os.environ, lambda _: None)

        def one(spec: UpstreamSpec, opening: Opening, discover_seconds: float = 0.05) -> Upstream:
            upstream = Upstream(
                spec,
                opening=opening,
                start=start,
                listens=ears,
                known=Known(),
                clock=clock,
                discover_seconds=discover_seconds,
            )
            stack.push_async_callback(upstream.close)
            return upstream

        yield one


async def test_server_that_does_not_hear_of_the_modern_era_is_of_the_other(
    plain: Any, before: Any
) -> None:
    facts = await before(plain("p", "--deaf", "9", era="handshake"), NEW).ready()

    assert (facts.era, facts.version) == ("handshake", "2025-11-25")


async def test_server_of_the_modern_era_alone_is_found_by_a_client_of_the_other(
    plain: Any, before: Any
) -> None:
    facts = await before(plain(era="modern"), OLD).ready()

    assert (facts.era, facts.version) == ("modern", "2026-07-28")
    assert facts.server == {"name": "plain", "version": "1"}


async def test_server_that_had_been_up_for_a_while_is_started_again_at_once(
    plain: Any, before: Any, ears: Ears, clock: ManualClock
) -> None:
    upstream = before(plain(), OLD)
    for _ in range(4):
        await upstream.ready()
        clock.advance(60)
        with pytest.raises(ServerDownError):
            await upstream.request("tools/call", {"name": "die"})

    await upstream.ready()
    while len(ears.ups) < 5:
        await asyncio.sleep(0)

    assert ears.ups == [True, False, False, False, False]


async def test_server_that_ends_soon_is_started_again_at_once_but_once(
    plain: Any, before: Any
) -> None:
    upstream = before(plain(), OLD)
    for _ in range(2):
        with pytest.raises(ServerDownError, match="did not answer: it ended with status 7"):
            await upstream.request("tools/call", {"name": "die"})

    with pytest.raises(ServerDownError, match="tried again within 2 seconds"):
        await upstream.ready()


async def test_server_that_cannot_be_started_is_given_time(plain: Any, before: Any) -> None:
    upstream = before(replace(plain(), command="/nowhere/at-all"), OLD)

    for _ in range(3):
        with pytest.raises(ServerDownError, match="did not start: '/nowhere/at-all' cannot"):
            await upstream.ready()


async def test_who_waits_for_a_server_that_is_left_is_told(plain: Any, before: Any) -> None:
    upstream = before(replace(plain(), args=("-c", "import time; time.sleep(600)")), OLD)
    waiting = asyncio.create_task(upstream.ready())
    await asyncio.sleep(0)

    await upstream.close()

    with pytest.raises(ServerDownError, match="was left"):
        await waiting


@pytest.mark.parametrize(("opening", "back"), [(OLD, "handshake"), (NEW, "modern")])
async def test_server_that_is_killed_fifty_times_is_introduced_and_lists_the_same_each_time(
    plain: Any, before: Any, ears: Ears, clock: ManualClock, opening: Opening, back: str
) -> None:
    upstream = before(plain("p", era=back), opening, 20)
    asks: Json = {"_meta": opening.envelope()} if back == "modern" else {}
    lists: set[bytes] = set()
    pids: set[int] = set()
    for _ in range(51):
        await upstream.ready()
        listed = await upstream.request("tools/list", asks)
        told = await upstream.request("tools/call", {"name": "facts", **asks})
        facts = json.loads(told.result["content"][0]["text"])
        lists.add(listed.raw or b"")
        pids.add(facts["pid"])
        assert facts["client"] == CLIENT
        clock.advance(60)
        os.kill(facts["pid"], signal.SIGKILL)
        while upstream.facts is not None:
            await asyncio.sleep(0)

    assert len(pids) == 51
    assert len(lists) == 1
    assert ears.ups == [True] + [False] * 50


@pytest.mark.parametrize("failures", [1, 2, 7, 1_025, 10**9])
def test_pause_after_failures_has_bounds_however_many_there_were(failures: int) -> None:
    assert 1 <= pause_seconds(failures) <= 60
