"""The clients that others wrote, in each of their modes, at both fronts."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastmcp
import mcp
import mcp_types as mt
import pytest
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from coatcheck.testing import free_port

SERVER = Path(__file__).parents[1] / "servers" / "plain.py"
PROXY = ["-m", "coatcheck.apps.cli", "proxy", "--store", "memory:", "--no-journal"]
MODES = ["auto", "legacy"]
TEXT = mt.TextContent(type="text", text="yes")


def behind(era: str) -> list[str]:
    return ["--", sys.executable, "-I", "-S", str(SERVER), "--era", era]


@pytest.fixture(scope="module", params=["handshake", "modern"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return where a proxy serves HTTP."""
    port = free_port()
    command = [sys.executable, *PROXY, "--http", f"127.0.0.1:{port}", *behind(request.param)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in err


async def elicited(context: object, params: object) -> mt.ElicitResult:
    return mt.ElicitResult(action="accept", content={"name": "Ada"})


async def sampled(context: object, params: object) -> mt.CreateMessageResult:
    return mt.CreateMessageResult(role="assistant", content=TEXT, model="m")


async def rooted(context: object) -> mt.ListRootsResult:
    return mt.ListRootsResult(roots=[mt.Root.model_validate({"uri": "file:///tmp"})])


async def exercise(client: "mcp.Client") -> None:
    """Do with a client of the official SDK all that it can do."""
    told: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    tools = (await client.list_tools()).tools
    assert tools[-1].name == "retrieve_context"
    assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
    made = json.loads(text_of(await client.call_tool("rows", {"n": 9_000})))
    total = await client.call_tool("total", {"items": f"{made['pointer']}#$[*].id"})
    assert text_of(total) == str(sum(range(9_000)))
    missing = await client.call_tool("total", {"items": made["pointer"][:-3] + "000"})
    assert missing.is_error
    read = await client.call_tool("retrieve_context", {"artifactId": made["pointer"]})
    assert "row 0" in text_of(read)
    assert (await client.call_tool("fail")).is_error
    assert text_of(await client.call_tool("progress", {"n": 3}, progress_callback=progressed))
    assert told == [1, 2, 3]
    assert json.loads(text_of(await client.call_tool("elicit")))["answer"]["action"] == "accept"
    assert json.loads(text_of(await client.call_tool("sample")))["answer"]["model"] == "m"
    assert json.loads(text_of(await client.call_tool("roots")))["answer"]["roots"]
    assert len((await client.list_resources()).resources) == 6
    templates = (await client.list_resource_templates()).resource_templates
    assert templates[-1].uri_template.startswith("art://")
    whole = await client.read_resource(f"art://{made['pointer'].removeprefix('art:')}")
    assert "row 8999" in str(whole.contents[0])
    assert (await client.get_prompt("greet", {"to": "Ada"})).messages
    with pytest.raises(mcp.MCPError, match="refused"):
        await client.call_tool("refuse")


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("back", ["handshake", "modern"])
async def test_official_client_does_all_it_can_over_stdio(mode: Any, back: str) -> None:
    start = mcp.StdioServerParameters(command=sys.executable, args=[*PROXY, *behind(back)])
    client = mcp.Client(
        start,
        mode=mode,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=rooted,
    )

    async with asyncio.timeout(30), client:
        await exercise(client)

        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")


@pytest.mark.parametrize("mode", MODES)
async def test_official_client_does_all_it_can_over_http(mode: Any, address: str) -> None:
    client = mcp.Client(
        address,
        mode=mode,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=rooted,
    )

    async with asyncio.timeout(30), client:
        await exercise(client)

        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")


@pytest.mark.parametrize(("mode", "back"), [("auto", "handshake"), ("legacy", "modern")])
async def test_client_of_fastmcp_calls_and_reads_over_stdio(mode: Any, back: str) -> None:
    transport = StdioTransport(sys.executable, [*PROXY, *behind(back)], keep_alive=False)

    async with asyncio.timeout(30), fastmcp.Client(transport, mode=mode) as client:
        await check_use(client)


@pytest.mark.parametrize("mode", MODES)
async def test_client_of_fastmcp_calls_and_reads_over_http(mode: Any, address: str) -> None:
    async with asyncio.timeout(30), fastmcp.Client(address, mode=mode) as client:
        await check_use(client)


async def check_use(client: Any) -> None:
    tools = await client.list_tools()
    assert tools[-1].name == "retrieve_context"
    assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
    made = json.loads(text_of(await client.call_tool("rows", {"n": 9_000})))
    total = await client.call_tool("total", {"items": f"{made['pointer']}#$[*].id"})
    assert text_of(total) == str(sum(range(9_000)))
    whole = await client.read_resource(f"art://{made['pointer'].removeprefix('art:')}")
    assert "row 8999" in str(whole[0])
    with pytest.raises(ToolError, match="it failed"):
        await client.call_tool("fail")


async def test_change_of_the_tools_reaches_a_client_that_listens(address: str) -> None:
    async with asyncio.timeout(30), mcp.Client(address) as client:
        async with client.listen(tools_list_changed=True) as changes:
            while (
                json.loads(text_of(await client.call_tool("facts")))["modern"]
                and not json.loads(text_of(await client.call_tool("facts")))["streams"]
            ):
                pass
            await client.call_tool("grow", {"text": "bigger"})

            change = await anext(aiter(changes))

        assert "Tools" in type(change).__name__
