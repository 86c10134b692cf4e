"""An MCP server made with the official SDK, of both eras, over stdio or streamable HTTP.

python sdk.py [--http PORT] [--json]
"""

import argparse
import warnings
from typing import Annotated, Any

import mcp_types as mt
from mcp.server.mcpserver import Context, MCPServer
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

warnings.simplefilter("ignore")  # logging, sampling and roots are deprecated, and used still

server = MCPServer("sdk", instructions="I am the SDK.")
counts = {"touched": 0}


class Who(BaseModel):
    name: str


def is_modern(ctx: Context[Any]) -> bool:
    return ctx.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
def rows(n: int) -> list[dict[str, Any]]:
    return [{"id": each, "name": f"row {each}"} for each in range(n)]


@server.tool()
def total(items: list[dict[str, Any]], scale: float = 1.0) -> float:
    return float(sum(each["id"] for each in items) * scale)


@server.tool()
def route(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region


@server.tool()
async def progress(n: int, ctx: Context[Any]) -> str:
    for each in range(n):
        await ctx.report_progress(each + 1, n)
    return "done"


@server.tool()
async def log(text: str, ctx: Context[Any]) -> str:
    await ctx.log(text, "logged")  # type: ignore[arg-type] # the level is the caller's
    return "done"


@server.tool()
async def elicit(ctx: Context[Any]) -> Any:
    if not is_modern(ctx):
        answer = await ctx.elicit("Who?", Who)
        return f"{answer.action}: {getattr(answer, 'data', None)}"
    given = (ctx.input_responses or {}).get("who")
    if given is not None:
        return f"{given.action}: {given.content}"  # type: ignore[union-attr] # asked for that
    form = mt.ElicitRequestFormParams(message="Who?", requested_schema=Who.model_json_schema())
    asked: Any = {"who": mt.ElicitRequest(params=form)}
    return mt.InputRequiredResult(input_requests=asked, request_state="kept")


@server.tool()
async def touch(ctx: Context[Any]) -> str:
    counts["touched"] += 1
    if is_modern(ctx):
        await ctx.notify_resource_updated("note://counts")
    else:
        await ctx.session.send_resource_updated("note://counts")
    return "touched"


@server.tool()
async def grow(name: str, ctx: Context[Any]) -> str:
    server.add_tool(lambda: "grown", name=name)
    if is_modern(ctx):
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("note://counts")
def count() -> str:
    return str(counts)


@server.resource("note://{name}/text")
def note(name: str) -> str:
    return f"note {name}"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello {name}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="answer with JSON, never a stream")
    options = parser.parse_args()
    if options.http is None:
        server.run()
    else:
        server.run(
            "streamable-http", host="127.0.0.1", port=options.http, json_response=options.json
        )


if __name__ == "__main__":
    main()
