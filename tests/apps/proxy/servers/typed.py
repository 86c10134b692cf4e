"""An MCP server on the official SDK: typed results, and the traps that lie in results.

python typed.py
"""

from mcp.server import MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"

server = MCPServer("typed")


class Row(BaseModel):
    id: int
    name: str


class Table(BaseModel):
    items: list[Row]


@server.tool()
def table(n: int) -> Table:
    """Rows under a key, and an output schema that asks for them."""
    return Table(items=[Row(id=each, name=f"name {each}") for each in range(n)])


@server.tool()
def rows(n: int) -> list[Row]:
    """Rows, each of which the SDK sends as a block of its own."""
    return [Row(id=each, name=f"name {each}") for each in range(n)]


@server.tool()
def page(n: int) -> str:
    """Text, which the SDK sends twice."""
    return FAMILY * n


@server.tool(structured_output=False)
def fail() -> CallToolResult:
    """Fail with a long trace."""
    frames = "".join(f'  File "step{each}.py", line {each}, in run\n' for each in range(5_000))
    trace = TextContent(type="text", text=f"{frames}ValueError: boom 42")
    return CallToolResult(content=[trace], is_error=True)


@server.tool(structured_output=False)
def shot() -> list[TextContent | ImageContent]:
    """A large text, an image and a small text."""
    return [
        TextContent(type="text", text="a" * 60_000),
        ImageContent(type="image", data=PNG, mime_type="image/png"),
        TextContent(type="text", text="end"),
    ]


@server.tool(structured_output=False)
def odd() -> CallToolResult:
    """JSON with keys that stand twice, and numbers that are none."""
    text = '{"a": 1, "a": 2, "n": NaN, "f": 1.0, "pad": "' + "x" * 60_000 + '"}'
    return CallToolResult(content=[TextContent(type="text", text=text)])


@server.tool()
def total(ids: list[int], first: int = 0) -> int:
    """Add numbers."""
    return sum(ids) + first


@server.tool()
def length(body: str) -> int:
    """Count characters."""
    return len(body)


if __name__ == "__main__":
    server.run()
