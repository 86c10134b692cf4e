"""An MCP server of the handshake era that lists the tools it is given as JSON, and answers each."""

import json
import sys
from typing import Any


def main() -> None:
    opening: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    results: dict[str, Any] = {
        "initialize": {**opening, "serverInfo": {"name": "listing", "version": "1"}},
        "tools/list": {"tools": json.loads(sys.argv[1])},
        "tools/call": {"content": [{"type": "text", "text": "called"}]},
    }
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in results:
            answer["result"] = results[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "no such method"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
