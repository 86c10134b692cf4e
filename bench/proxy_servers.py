"""What `proxy.py` measures with: a server on the official SDK, and two pass-through proxies.

python proxy_servers.py serve
python proxy_servers.py sdk|fastmcp CMD …
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

LINE = "2026-11-30T12:00:00 INFO order {:08} of Zürich paid 1.999,00 €\n"


@cache
def text_of(size_bytes: int) -> str:
    line_bytes = len(LINE.format(0).encode())
    return "".join(LINE.format(number) for number in range(size_bytes // line_bytes))


async def serve() -> None:
    """Serve `echo`, which gives back a text, and `text`, which gives one of a size."""
    one = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    other = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    tools = [Tool(name="echo", input_schema=one), Tool(name="text", input_schema=other)]

    async def list_tools(_context: object, _params: object) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(_context: object, params: CallToolRequestParams) -> CallToolResult:
        given = params.arguments or {}
        text = given["text"] if params.name == "echo" else text_of(given["size"])
        return CallToolResult(content=[TextContent(type="text", text=text)])

    await run(Server("bench", on_list_tools=list_tools, on_call_tool=call_tool))


async def pass_through(command: list[str]) -> None:
    """Pass on what a server lists and answers, record by record: the least that the SDK can do."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with mcp.Client(stdio_client(parameters)) as upstream:

        async def list_tools(_context: object, _params: object) -> ListToolsResult:
            return await upstream.list_tools()

        async def call_tool(_context: object, params: CallToolRequestParams) -> CallToolResult:
            return await upstream.call_tool(params.name, params.arguments)

        await run(Server("bare", on_list_tools=list_tools, on_call_tool=call_tool))


async def run(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def of_fastmcp(command: list[str]) -> None:
    from fastmcp.client.transports import StdioTransport
    from fastmcp.server import create_proxy

    transport = StdioTransport(command[0], command[1:], log_file=Path(os.devnull))
    create_proxy(transport).run(show_banner=False)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "serve":
        anyio.run(serve)
    elif kind == "sdk":
        anyio.run(pass_through, rest)
    else:
        of_fastmcp(rest)
