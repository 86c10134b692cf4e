"""A client whose connection broke comes back over HTTP, and misses nothing."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from coatcheck.apps.proxy._config import HttpFront, UpstreamSpec
from coatcheck.apps.proxy._http_front import HttpApp
from coatcheck.apps.proxy._sse import Event, EventReader
from coatcheck.testing import wire_to

from .over_http import BOTH, introduced, post, request, served

LAST = "2025-11-25"
ASKED: dict[str, Any] = {"elicitation": {}}
SAID = {"action": "accept", "content": {"name": "Ada"}}


@pytest.fixture
async def app(bench: Any, plain: Any) -> HttpApp:
    return HttpApp(await bench.proxy(plain(era="handshake")), HttpFront(host="127.0.0.1", port=0))


@pytest.fixture
async def http(app: HttpApp) -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        served(app) as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=20) as client,
    ):
        yield client


class Events:
    """The events of one connection, which its client may break at any time."""

    def __init__(self, response: httpx2.Response) -> None:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        self._chunks = response.aiter_raw()
        self._reader = EventReader()
        self._waiting: list[Event] = []

    async def next(self) -> Event:
        while not self._waiting:
            self._waiting = self._reader.feed(await anext(self._chunks))
        return self._waiting.pop(0)

    async def message(self) -> tuple[str, dict[str, Any]]:
        """Return the next message, and its id; what has no message is passed over."""
        while True:
            event = await self.next()
            if event.data:
                assert event.id is not None
                return event.id, json.loads(event.data)

    async def rest(self) -> list[dict[str, Any]]:
        """Return all messages to the end of the connection."""
        found: list[dict[str, Any]] = []
        try:
            while True:
                found.append((await self.message())[1])
        except StopAsyncIteration:
            return found


@asynccontextmanager
async def streaming(
    http: httpx2.AsyncClient, own: dict[str, str], message: Any
) -> AsyncGenerator[Events]:
    async with http.stream("POST", "/mcp", json=message, headers=BOTH | own) as response:
        yield Events(response)


@asynccontextmanager
async def listening(
    http: httpx2.AsyncClient, own: dict[str, str], after: str | None = None
) -> AsyncGenerator[Events]:
    headers = {"accept": "text/event-stream", **own}
    if after is not None:
        headers["last-event-id"] = after
    async with http.stream("GET", "/mcp", headers=headers) as response:
        yield Events(response)


def call(id_: int, tool: str, **arguments: object) -> dict[str, Any]:
    return request("tools/call", id_, name=tool, arguments=arguments)


async def test_answer_of_a_call_whose_connection_broke_comes_to_who_comes_back(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version=LAST, capabilities=ASKED)
    async with streaming(http, own, call(2, "elicit")) as events:
        last, question = await events.message()

    answered = {"jsonrpc": "2.0", "id": question["id"], "result": SAID}
    assert (await post(http, answered, own)).status_code == 202
    async with listening(http, own, last) as events:
        (answer,) = await events.rest()

    assert question["method"] == "elicitation/create"
    assert answer["id"] == 2
    assert json.loads(answer["result"]["content"][0]["text"])["answer"] == SAID


async def test_what_was_lost_on_the_way_is_sent_again_and_nothing_else(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version=LAST)
    message = call(2, "progress", n=5)
    message["params"]["_meta"] = {"progressToken": "t"}
    seen: list[tuple[str, dict[str, Any]]] = []
    async with streaming(http, own, message) as events:
        while len(seen) < 6:
            seen.append(await events.message())

    for at, (after, _) in enumerate(seen):
        async with listening(http, own, after) as events:
            assert await events.rest() == [message for _, message in seen[at + 1 :]]

    assert [each.get("params", {}).get("progress") for _, each in seen] == [1, 2, 3, 4, 5, None]
    assert len({id_ for id_, _ in seen}) == 6


async def test_client_is_told_how_to_come_back_for_an_answer_that_takes_long(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version=LAST)
    async with streaming(http, own, call(2, "sleep", text="1.5")) as events:
        first = await events.next()

    assert first.id is not None
    async with listening(http, own, first.id) as events:
        (answer,) = await events.rest()

    assert first.data == b""
    assert answer["result"]["content"][0]["text"] == "slept"


async def test_client_that_takes_no_event_without_a_message_gets_none(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version="2025-06-18")

    answer = await post(http, call(2, "sleep", text="1.3"), own)

    assert answer.json()["result"]["content"][0]["text"] == "slept"


async def test_what_a_client_is_told_outside_requests_waits_until_it_comes_back(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version=LAST)
    async with listening(http, own) as events:
        first = await events.next()
        await post(http, call(2, "grow", text="one"), own)
        last, changed = await events.message()
    await post(http, call(3, "grow", text="two"), own)

    async with listening(http, own, last) as events:
        _, again = await events.message()
    async with listening(http, own, first.id) as events:
        both = [(await events.message())[1] for _ in range(2)]

    assert first.data == b""
    assert changed["method"] == again["method"] == "notifications/tools/list_changed"
    assert both == [changed, again]


async def test_who_comes_back_reads_on_though_the_old_connection_seems_to_be_there(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version=LAST)
    async with listening(http, own) as old:
        first = await old.next()
        async with listening(http, own, first.id) as new:
            await new.next()
            assert await old.rest() == []
            await post(http, call(2, "grow", text="one"), own)
            _, changed = await new.message()

    assert changed["method"] == "notifications/tools/list_changed"


async def test_events_of_all_streams_of_a_session_have_ids_of_their_own(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http, version=LAST, capabilities=ASKED)
    ids: list[str | None] = []
    async with AsyncExitStack() as stack:
        for id_ in range(2, 5):
            opened = streaming(http, own, call(id_, "elicit"))
            events = await stack.enter_async_context(opened)
            ids.append((await events.message())[0])
        ids.append((await (await stack.enter_async_context(listening(http, own))).next()).id)

    assert len(set(ids)) == 4


@pytest.mark.parametrize("after", ["", "7", "-", "x-1", "1-x", "9999-0", "1-999999", "1-²", "1--1"])
async def test_event_that_there_was_not_is_refused(http: httpx2.AsyncClient, after: str) -> None:
    own = await introduced(http, version=LAST)
    headers = {b"accept": b"text/event-stream", b"last-event-id": after.encode()}
    headers |= {name.encode(): value.encode() for name, value in own.items()}

    answer = await http.get("/mcp", headers=headers)

    assert answer.status_code == 400
    assert "send the request again" in answer.json()["error"]["message"]


async def test_no_session_reads_the_streams_of_another(http: httpx2.AsyncClient) -> None:
    own, other = [await introduced(http, version=LAST, capabilities=ASKED) for _ in range(2)]
    async with streaming(http, own, call(2, "elicit")) as events:
        last, _ = await events.message()

    after = {"accept": "text/event-stream", "last-event-id": last}
    stolen = await http.get("/mcp", headers=after | other)
    await http.delete("/mcp", headers=own)
    late = await http.get("/mcp", headers=after | own)

    assert stolen.status_code == 400
    assert late.status_code == 404


async def test_call_goes_on_without_its_client_and_keeps_its_session(
    app: HttpApp, http: httpx2.AsyncClient
) -> None:
    own = await introduced(http, version=LAST, capabilities=ASKED)
    async with streaming(http, own, call(2, "elicit")) as events:
        await events.message()
    await post(http, call(3, "echo"), own)

    seat = app.sessions.find(own["mcp-session-id"], None)

    assert seat is not None
    assert not seat.is_idle


async def test_modern_client_that_breaks_its_connection_has_cancelled(
    bench: Any, plain: Any
) -> None:
    prefix = "io.modelcontextprotocol/"
    meta: dict[str, Any] = {f"{prefix}protocolVersion": "2026-07-28"}
    meta[f"{prefix}clientCapabilities"] = {}
    own = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
    message = call(2, "progress", n=1)
    message["params"]["_meta"] = meta | {"progressToken": "t"}
    facts = call(4, "facts")
    facts["params"]["_meta"] = meta
    sleep = call(3, "sleep", text="60")
    sleep["params"]["_meta"] = meta
    app = HttpApp(await bench.proxy(plain()), HttpFront(host="127.0.0.1", port=0))
    async with (
        served(app) as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=20) as http,
    ):
        told = await post(http, message, own | {"mcp-name": "progress"})
        with pytest.raises(httpx2.TimeoutException):
            await http.post(
                "/mcp", json=sleep, headers=BOTH | own | {"mcp-name": "sleep"}, timeout=0.5
            )
        seen: list[str] = []
        while "cancelled:tools/call" not in seen:
            answer = await post(http, facts, own | {"mcp-name": "facts"})
            seen = json.loads(answer.json()["result"]["content"][0]["text"])["seen"]
        listened = await http.get("/mcp", headers={"accept": "text/event-stream", **own})

    assert "id:" not in told.text
    assert listened.status_code == 405


async def test_official_client_gets_its_answer_though_its_connection_broke(app: HttpApp) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app))
        wire = await stack.enter_async_context(wire_to(int(url.split(":")[2].split("/")[0])))
        own = await stack.enter_async_context(httpx2.AsyncClient(timeout=30))
        broken = f"http://127.0.0.1:{wire.port}/mcp"
        transport = streamable_http_client(broken, http_client=own)
        client = await stack.enter_async_context(mcp.Client(transport, mode="legacy"))

        calling = asyncio.create_task(client.call_tool("sleep", {"text": "2.5"}))
        await asyncio.sleep(1.7)  # by then it was told how to come back
        broke = len(wire.carrying)
        for connection in tuple(wire.carrying):
            connection.cancel()
        result = await calling

    assert broke
    assert result.content[0].text == "slept"  # type: ignore[union-attr]


async def test_proxy_before_a_proxy_comes_back_for_the_answer(bench: Any, app: HttpApp) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app))
        wire = await stack.enter_async_context(wire_to(int(url.split(":")[2].split("/")[0])))
        broken = f"http://127.0.0.1:{wire.port}/mcp"
        host = await bench.host(UpstreamSpec(name="inner", url=broken))

        _, answer = host.begin("tools/call", name="sleep", arguments={"text": "2.5"})
        await asyncio.sleep(1.7)
        for connection in tuple(wire.carrying):
            connection.cancel()
        response = await answer

    assert response["result"]["content"][0]["text"] == "slept"
