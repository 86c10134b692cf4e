"""Quotas take from those that went, and from no client that is there."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from coatcheck import Bank, Limits
from coatcheck.apps.proxy._config import HttpFront
from coatcheck.apps.proxy._http_front import HttpApp
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock

LIMITS = Limits(store_bytes=200_000)
BOTH = {"accept": "application/json, text/event-stream"}
META = "io.modelcontextprotocol/"
MODERN: dict[str, Any] = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}


def text(number: int) -> str:
    return f"{number:02}" * 30_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bank(clock: ManualClock) -> Bank:
    return Bank(MemoryStore(), limits=LIMITS, clock=clock)


async def test_a_client_over_stdio_keeps_all_that_it_was_shown_until_it_goes(
    bench: Any, plain: Any, bank: Bank, clock: ManualClock, front: str
) -> None:
    bench.bank = bank
    host, serving = await bench.front(plain(), era=front)
    await host.introduce()
    own = bank.scoped("bench")

    results = [await host.call("echo", text=text(number)) for number in range(8)]

    pointers = [json.loads(each["content"][0]["text"])["pointer"] for each in results]
    pages = [await host.text("retrieve_context", artifactId=each, limit=2) for each in pointers]
    assert [json.loads(page)["content"] for page in pages] == [f"{n:02}" for n in range(8)]
    host.writer.close()
    await serving
    clock.advance(120)
    await own.put("z" * 60_000)
    assert (await own.usage()).size_bytes <= 200_000


@pytest.fixture
async def http(bench: Any, plain: Any, bank: Bank) -> AsyncIterator[httpx2.AsyncClient]:
    bench.bank = bank
    app = HttpApp(await bench.proxy(plain()), HttpFront(host="127.0.0.1", port=0))
    sessions = asyncio.create_task(app.sessions.run())
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client
    sessions.cancel()
    await asyncio.wait([sessions])


class Guest:
    """A client of the handshake era over HTTP, with a session of its own."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.headers: dict[str, str] = {}
        self.pointers: list[str] = []

    async def post(self, method: str, **params: object) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post("/mcp", json=message, headers=BOTH | self.headers)

    async def come(self) -> None:
        client = {"name": "host", "version": "7"}
        answer = await self.post(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client
        )
        self.headers = {"mcp-session-id": answer.headers["mcp-session-id"]}

    async def go(self) -> None:
        await self.http.delete("/mcp", headers=self.headers)

    async def called(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self.post("tools/call", name=tool, arguments=arguments)
        return dict(answer.json()["result"])

    async def fill(self, numbers: range) -> None:
        for number in numbers:
            result = await self.called("echo", text=text(number))
            self.pointers.append(json.loads(result["content"][0]["text"])["pointer"])

    async def kept(self) -> list[bool]:
        pages = [await self.called("retrieve_context", artifactId=each) for each in self.pointers]
        return [not page["isError"] for page in pages]


async def test_a_session_over_http_keeps_all_that_it_was_shown_until_it_ends(
    http: httpx2.AsyncClient, bank: Bank, clock: ManualClock
) -> None:
    one, other = Guest(http), Guest(http)
    await one.come()
    await other.come()
    await one.fill(range(4))
    await other.fill(range(4, 6))

    assert await one.kept() == [True] * 4
    assert await other.kept() == [True] * 2
    await one.go()
    clock.advance(120)
    await other.fill(range(6, 7))
    assert await other.kept() == [True] * 3
    first = bank.scoped(f"session:{one.headers['mcp-session-id']}")
    assert [await first.find(each) for each in one.pointers] == [None] * 4


async def test_without_a_session_over_http_the_least_recently_used_make_room(
    http: httpx2.AsyncClient, bank: Bank, clock: ManualClock
) -> None:
    for number in range(5):
        clock.advance(1)
        meta = {**MODERN, "coatcheck/scope": "me"}
        params: dict[str, Any] = {
            "name": "echo",
            "arguments": {"text": text(number)},
            "_meta": meta,
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        routing = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
        await http.post("/mcp", json=message, headers=BOTH | routing | {"mcp-name": "echo"})

    kept = [each async for each in bank.scoped("meta:me").list()]

    assert [artifact.run for artifact in kept] == [None] * len(kept)
    assert 0 < sum(each.size_bytes for each in kept) <= 200_000
