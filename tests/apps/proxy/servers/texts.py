"""An MCP server of the handshake era that makes texts of any size, and tells what it was given."""

import hashlib
import json
import sys
from typing import Any


def text_of(seed: int, size: int) -> str:
    """Return `size` characters that no other seed has."""
    line = f"{seed:09} Zürich 1.999 €; "
    return (line * (size // len(line) + 1))[:size]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        server = {"name": "texts", "version": "1"}
        version: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return version | {"serverInfo": server}
    if method == "tools/list":
        number, text = {"type": "integer"}, {"type": "string"}
        make = {"type": "object", "properties": {"seed": number, "size": number}}
        told = {"type": "object", "properties": {"text": text}}
        return {
            "tools": [
                {"name": "make", "inputSchema": make},
                {"name": "digest", "inputSchema": told},
            ]
        }
    if method != "tools/call":
        return None
    given = params["arguments"]
    if params["name"] == "make":
        return shown(text_of(given["seed"], given["size"]))
    return shown(hashlib.sha256(given["text"].encode()).hexdigest())


def shown(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            body = {"error": {"code": -32601, "message": "no such method"}}
            body = body if result is None else {"result": result}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
