"""An MCP server over stdio whose calls become tasks, as each of the two eras knows them.

python tasks.py NAME
"""

import json
import sys
from typing import Any

Params = dict[str, Any]
META = "io.modelcontextprotocol/"
TASKS = f"{META}tasks"
TIME = "2026-07-28T10:00:00Z"


class RefusedError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Server:
    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: dict[str, Params] = {}
        self.listening: dict[Any, list[str]] = {}

    def answer(self, id_: Any, method: str, params: Params) -> Params | None:
        meta: Params = params.get("_meta") or {}
        modern = f"{META}protocolVersion" in meta
        can: Params = meta.get(f"{META}clientCapabilities") or {}
        if method in {"initialize", "server/discover"}:
            return self.introduction(modern)
        if method == "tools/list":
            kinds = {"type": "object", "properties": {"size": {"type": "integer"}}}
            return {"tools": [{"name": "make", "inputSchema": kinds}]} | CACHED
        if method == "tools/call":
            is_task = TASKS in (can.get("extensions") or {}) if modern else "task" in params
            return self.called(params["arguments"]["size"], is_task, modern)
        if method == "subscriptions/listen":
            self.listening[id_] = params["notifications"].get("taskIds", [])
            return None
        if method == "tasks/list" and not modern:
            return self.listed(int(params.get("cursor") or 0))
        return self.of_task(method, params, modern)

    def introduction(self, modern: bool) -> Params:
        if modern:
            can: Params = {"tools": {}, "extensions": {TASKS: {}}}
            return {"supportedVersions": ["2026-07-28"], "capabilities": can} | CACHED
        kinds: Params = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        server = {"name": self.name, "version": "1"}
        can = {"tools": {}, "tasks": kinds}
        return {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": server}

    def called(self, size: int, is_task: bool, modern: bool) -> Params:
        result: Params = {"content": [{"type": "text", "text": "x" * size}]}
        if not is_task:
            return result
        task: Params = {"taskId": f"{self.name}-{len(self.tasks)}", "status": "input_required"}
        task |= {"createdAt": TIME, "lastUpdatedAt": TIME}
        self.tasks[task["taskId"]] = {"task": task, "result": result}
        return {"resultType": "task", **task, "ttlMs": None} if modern else {"task": task}

    def listed(self, start: int) -> Params:
        tasks = [each["task"] for each in self.tasks.values()]
        page: Params = {"tasks": tasks[start : start + 1]}
        return page | ({"nextCursor": str(start + 1)} if start + 1 < len(tasks) else {})

    def of_task(self, method: str, params: Params, modern: bool) -> Params:
        known = self.tasks.get(params.get("taskId", ""))
        if method not in OF_TASKS[modern]:
            raise RefusedError(-32601, "Method not found")
        if known is None:
            raise RefusedError(-32602, "Task not found")
        task: Params = known["task"]
        if method == "tasks/result":
            return dict(known["result"])
        if method == "tasks/cancel":
            task["status"] = "cancelled"
        elif method == "tasks/update":
            task |= {"status": "completed", "statusMessage": json.dumps(params["inputResponses"])}
            for id_, ids in self.listening.items():
                if task["taskId"] in ids:
                    own = {"_meta": {f"{META}subscriptionId": id_}}
                    send({"method": "notifications/tasks", "params": self.detailed(known) | own})
        if modern:
            return self.detailed(known) if method == "tasks/get" else {}
        return dict(task)

    def detailed(self, known: Params) -> Params:
        task: Params = known["task"] | {"ttlMs": None}
        if task["status"] == "completed":
            return task | {"result": known["result"]}
        asked = {"method": "elicitation/create", "params": {"message": "Who?"}}
        is_asking = task["status"] == "input_required"
        return task | ({"inputRequests": {"who": asked}} if is_asking else {})


CACHED: Params = {"ttlMs": 0, "cacheScope": "private"}
OF_TASKS = {
    False: ("tasks/get", "tasks/result", "tasks/cancel"),
    True: ("tasks/get", "tasks/update", "tasks/cancel"),
}


def send(message: Params) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    server = Server(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params: Params = message.get("params") or {}
        try:
            result = server.answer(message["id"], message["method"], params)
        except RefusedError as refused:
            send({"id": message["id"], "error": refused.error})
        else:
            modern = f"{META}protocolVersion" in (params.get("_meta") or {})
            if result is not None:
                given = {"resultType": "complete", **result} if modern else result
                send({"id": message["id"], "result": given})


if __name__ == "__main__":
    main()
