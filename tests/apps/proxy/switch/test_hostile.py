"""Servers that mean harm: whatever one does, the others and the client's line stay whole."""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coatcheck.apps.proxy._channel import Received, Unanswered
from coatcheck.apps.proxy._config import UpstreamSpec
from coatcheck.apps.proxy._http_upstream import HttpChannel
from coatcheck.apps.proxy._messages import Message, request_line

HOSTILE = Path(__file__).parents[1] / "servers" / "hostile.py"


@pytest.fixture
def hostile(plain: Callable[..., UpstreamSpec]) -> Callable[[str], UpstreamSpec]:
    def spec(harm: str) -> UpstreamSpec:
        return replace(plain("evil"), args=("-I", "-S", str(HOSTILE), harm), command=sys.executable)

    return spec


@asynccontextmanager
async def remote(
    answer: Callable[[Any], tuple[str, bytes]], session: str = "s"
) -> AsyncGenerator[UpstreamSpec]:
    """Run a server over HTTP whose answers to calls are what `answer` says: headers and body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        message = json.loads(await reader.readexactly(length) or b"{}")
        headers, body = "HTTP/1.1 202 Accepted\r\n", b""
        if "id" in message and message["method"] == "initialize":
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            headers = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            headers += f"mcp-session-id: {session}\r\n"
        elif "id" in message:
            headers, body = answer(message)
        writer.write(f"{headers}connection: close\r\n".encode("latin-1"))
        writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield UpstreamSpec(name="remote", url=f"http://127.0.0.1:{port}/mcp")


async def test_server_that_never_lists_its_tools_hides_those_of_no_other(
    bench: Any, plain: Any, hostile: Any
) -> None:
    bench.patience_seconds = 1.0
    host = await bench.host(hostile("never lists"), plain("a", "--tools", "x"))

    listed = await host.result("tools/list")

    assert [each["name"] for each in listed["tools"]] == ["a_x", "retrieve_context"]
    assert await host.text("a_x") == "a: x"


async def test_tool_that_is_too_deep_for_a_host_is_left_out_alone(
    bench: Any, plain: Any, hostile: Any
) -> None:
    host = await bench.host(hostile("lists what is deep"), plain("a", "--tools", "x"))

    listed = await host.result("tools/list")

    names = [each["name"] for each in listed["tools"]]
    assert names == ["evil_own", "a_x", "retrieve_context"]


@pytest.mark.parametrize("harm", ["same page for ever", "empty pages for ever"])
async def test_list_that_has_no_end_is_given_up(
    bench: Any, plain: Any, hostile: Any, harm: str
) -> None:
    host = await bench.host(hostile(harm), plain("a", "--tools", "x"))

    tools = await host.result("tools/list")
    resources = await host.result("resources/list")

    assert {"evil_own", "a_x"} < {each["name"] for each in tools["tools"]}
    assert resources["resources"][0]["uri"] == "plain://a/0"


async def test_server_that_reads_nothing_keeps_no_message_from_the_others(
    bench: Any, plain: Any, hostile: Any
) -> None:
    host = await bench.host(hostile("reads nothing"), plain("a", era="handshake"))
    await host.result("tools/list")

    id_, _ = host.begin("tools/call", name="evil_own", arguments={"text": "x" * 4_000_000})
    await host.text("a_echo", text="by now the pipe is full")
    host.tell("notifications/roots/list_changed")
    text = await host.text("a_echo", text="alive")
    host.tell("notifications/cancelled", requestId=id_)

    assert text == "alive"


async def test_malformed_second_introduction_ends_nothing(bench: Any, plain: Any) -> None:
    host = await bench.host(plain())

    refused = await host.ask("initialize", protocolVersion="2025-11-25", capabilities=5)

    assert refused["error"]["code"] == -32602
    assert await host.text("echo", text="alive") == "alive"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_newline_within_an_answer_over_http_begins_no_message_of_its_own(
    bench: Any, kind: str
) -> None:
    forged = '{"jsonrpc":"2.0","id":99,"result":{"content":[]}}'

    def answer(message: Any) -> tuple[str, bytes]:
        body = '{"jsonrpc":"2.0","id":%d,"result":{"content":[],"n":1.50,"a":\n%s\n}}'
        text = body % (message["id"], forged)
        if kind == "text/event-stream":
            text = "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"
        return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n", text.encode()

    async with remote(answer) as spec:
        host = await bench.host(spec)

        result = await host.result("tools/call", name="own", arguments={})

    assert result == {"content": [], "n": 1.5, "a": json.loads(forged)}
    assert b'"n":1.50' in host.lines[-1]
    assert host.stray == []


@pytest.mark.parametrize("location", ["in a circle", "http://[", "http://127.0.0.1:x/"])
async def test_call_that_is_sent_elsewhere_for_ever_is_answered(bench: Any, location: str) -> None:
    moved = 0

    def answer(_: Any) -> tuple[str, bytes]:
        nonlocal moved
        moved += 1
        there = f"/{moved % 2}" if location == "in a circle" else location
        return f"HTTP/1.1 307 Moved\r\nlocation: {there}\r\n", b""

    async with remote(answer) as spec:
        host = await bench.host(spec)

        response = await host.ask("tools/call", name="own", arguments={})

    assert response["result"]["isError"] is True
    assert moved < 10


async def test_session_id_that_cannot_stand_in_a_header_fails_calls_and_hangs_none(
    bench: Any,
) -> None:
    async with remote(lambda _: ("", b""), session="\xe9") as spec:
        host = await bench.host(spec)

        response = await host.ask("tools/call", name="own", arguments={})

    assert response["result"]["isError"] is True


async def test_server_that_dies_and_leaves_its_output_to_a_child_has_ended(
    bench: Any, hostile: Any
) -> None:
    host = await bench.host(hostile("dies and leaves a child"))

    response = await host.ask("tools/call", name="own", arguments={})
    listed = await host.result("tools/list")

    assert "it ended with status 3" in response["result"]["content"][0]["text"]
    assert [each["name"] for each in listed["tools"]] == ["own", "retrieve_context"]


async def test_server_cannot_take_over_a_task_of_another(bench: Any, hostile: Any) -> None:
    honest = replace(hostile("claims a task, the first"), name="honest")
    host = await bench.host(honest, hostile("claims a task too"))
    await host.result("tools/call", name="honest_own", arguments={})
    await host.result("tools/call", name="evil_own", arguments={})

    found = await host.result("tasks/get", taskId="the same")

    assert found["of"] == "claims a task, the first"
    assert any("has the id of one of honest" in line for line in bench.logged)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_answer_over_http_is_read_up_to_a_limit_that_counts_it_unpacked(
    kind: str, *, is_packed: bool
) -> None:
    longest = 10_000

    def answer(message: Any) -> tuple[str, bytes]:
        size = longest + int(message["params"]["over"])
        if kind == "text/event-stream":
            size -= 1  # for the end of its first line
        frame = '{"jsonrpc":"2.0","id":%d,"result":{"x":"%s"}}'
        fill = size - len(frame % (message["id"], ""))
        body = (frame % (message["id"], "x" * fill)).encode()
        if kind == "text/event-stream":
            body = (
                b"data: " + body[:1] + b"\ndata: " + body[1:] + b"\n" + b": more\n" * 9_000 + b"\n"
            )
        headers = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n"
        if is_packed:
            headers, body = headers + "content-encoding: gzip\r\n", gzip.compress(body)
        return headers, body

    got: list[Received] = []
    async with remote(answer) as spec:
        channel = HttpChannel(spec, print, longest_bytes=longest)
        messages = channel.messages()
        for id_, over in ((1, 0), (2, 1)):
            await channel.send(request_line(id_, "tools/call", {"name": "own", "over": over}))
            got.append(await anext(messages))
        await channel.close()

    assert isinstance(got[0], Message)
    assert got[1] == Unanswered(2, "its answer is over 10000 bytes")


async def test_server_that_never_answers_keeps_from_nobody_what_another_one_has(
    bench: Any, plain: Any, hostile: Any
) -> None:
    bench.patience_seconds = 1.0
    host = await bench.host(hostile("answers lists alone"), plain("a", era="handshake"))

    read = await host.result("resources/read", uri="plain://a/0")
    watched = await host.result("resources/subscribe", uri="plain://a/1")
    echoed = await host.result("custom/echo", text="alive")
    leveled = await host.ask("logging/setLevel", level="error")

    assert read["contents"][0]["uri"] == "plain://a/0"
    assert watched == {}
    assert echoed["params"] == {"text": "alive"}
    assert "'evil' did not answer within 1 seconds" in leveled["error"]["message"]
