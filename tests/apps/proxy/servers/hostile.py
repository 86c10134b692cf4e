"""A server of the handshake era that means harm: its argument says how."""

import json
import os
import sys
import time
from typing import Any

DEEP = '{"properties":{"c":' * 500 + "{}" + "}}" * 500
INTRODUCTION = json.dumps(
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "logging": {}},
        "serverInfo": {"name": "hostile", "version": "1"},
    }
)
TOOLS = '{"name":"own","inputSchema":{"type":"object"}}'


def send(id_: Any, result: str) -> None:
    print(f'{{"jsonrpc":"2.0","id":{json.dumps(id_)},"result":{result}}}')  # noqa: T201 - its output
    sys.stdout.flush()


def listed(id_: Any, harm: str) -> None:
    if harm == "never lists":
        return
    if harm == "lists what is deep":
        send(id_, f'{{"tools":[{{"name":"deep","inputSchema":{DEEP}}},{TOOLS}]}}')
        return
    following = ',"nextCursor":"same"' if harm == "same page for ever" else ""
    send(id_, f'{{"tools":[{TOOLS}]{following}}}')
    if harm == "reads nothing":
        time.sleep(600)


def called(id_: Any, harm: str) -> None:
    if harm.startswith("claims a task"):
        send(id_, '{"task":{"taskId":"the same"}}')
    elif harm == "dies and leaves a child":
        if os.fork() == 0:
            os.setsid()
            os.close(0)
            time.sleep(20)
            os._exit(0)
        sys.exit(3)
    else:
        send(id_, '{"content":[]}')


def main(harm: str) -> None:
    for asked, line in enumerate(sys.stdin):
        message = json.loads(line)
        id_, method = message.get("id"), message["method"]
        if id_ is None:
            continue
        if method == "initialize":
            send(id_, INTRODUCTION)
        elif method == "tools/list":
            listed(id_, harm)
        elif method == "tools/call":
            called(id_, harm)
        elif method == "tasks/get":
            send(id_, json.dumps({"of": harm}))
        elif harm == "answers lists alone":
            continue
        elif harm == "same page for ever":
            send(id_, '{"resources":[],"nextCursor":"same"}')
        elif harm == "empty pages for ever":
            send(id_, f'{{"resources":[],"nextCursor":"{asked}"}}')
        else:
            send(id_, '{"resources":[]}')


if __name__ == "__main__":
    main(sys.argv[1])
