"""An MCP server with two tools, which tests start as a program."""

from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def rows(n: int) -> list[dict[str, int]]:
    return [{"id": number, "price": number} for number in range(n)]


@server.tool()
def total(items: list[dict[str, int]]) -> int:
    return sum(item["price"] for item in items)


if __name__ == "__main__":
    server.run()
