"""An MCP server over stdio that starts in a blink: no SDK, and as strict or rude as told.

    python plain.py --era handshake|modern|both [--name NAME] [--stay] [--pages N] [--tools A,B]

It speaks the eras it is told, refuses the other, and has a tool for each thing that may pass
between a server and its client.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

Params = dict[str, Any]
META = "io.modelcontextprotocol/"
TEXT = {"type": "string"}


class RefusedError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.capabilities: Params = {}
        self.client: Params = {}
        self.level: str | None = None
        self.seen: list[str] = []
        self.subscribed: set[str] = set()
        self.listening: dict[Any, Params] = {}
        self.waiting: dict[Any, asyncio.Future[Any]] = {}
        self.tasks: dict[Any, asyncio.Task[None]] = {}
        self.asked = 0
        self.discovered = 0
        self.extra: list[str] = []

    # --- lines ---------------------------------------------------------------------------

    def write(self, message: Params) -> None:
        self.write_text(json.dumps({"jsonrpc": "2.0"} | message))

    def write_text(self, text: str | bytes) -> None:
        sys.stdout.buffer.write((text.encode() if isinstance(text, str) else text) + b"\n")
        sys.stdout.buffer.flush()

    async def run(self) -> None:
        reader = asyncio.StreamReader(limit=1 << 30)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self.take(json.loads(line))
        while self.options.stay:
            await asyncio.sleep(60)

    def take(self, message: Params) -> None:
        id_, method = message.get("id"), message.get("method")
        if method is None:
            self.waiting.pop(id_).set_result(message)
        elif id_ is None:
            self.hear(method, message.get("params") or {})
        else:
            self.tasks[id_] = asyncio.ensure_future(self.answer(message))

    def hear(self, method: str, params: Params) -> None:
        self.seen.append(method)
        if method == "notifications/cancelled":
            task = self.tasks.get(params["requestId"])
            if task is not None:
                task.cancel()
        elif method == "notifications/initialized" and self.options.asks_roots:
            self.tasks["roots"] = asyncio.ensure_future(self.ask_roots_at_start())

    async def ask_roots_at_start(self) -> None:
        answer = await self.ask("roots/list", {})
        self.seen.append(f"roots:{json.dumps(answer.get('result', answer.get('error')))}")

    async def answer(self, message: Params) -> None:
        params: Params = message.get("params") or {}
        try:
            result = await self.result(message["id"], message["method"], params)
        except RefusedError as refused:
            self.write({"id": message["id"], "error": refused.error})
        except asyncio.CancelledError:
            self.seen.append(f"cancelled:{message['method']}")
        else:
            if self.is_modern(params):
                result = {"resultType": "complete"} | result
            self.write({"id": message["id"], "result": result})
        finally:
            self.tasks.pop(message["id"], None)

    # --- requests ------------------------------------------------------------------------

    def is_modern(self, params: Params) -> bool:
        return f"{META}protocolVersion" in (params.get("_meta") or {})

    async def result(self, id_: Any, method: str, params: Params) -> Params:
        if method == "initialize":
            return self.initialize(params)
        self.check_era(params)
        answers: dict[str, Callable[[Params], Params]] = {
            "server/discover": self.discover,
            "tools/list": self.list_tools,
            "resources/list": self.list_resources,
            "resources/read": self.read,
            "resources/templates/list": self.list_templates,
            "prompts/list": self.list_prompts,
            "prompts/get": self.greet,
            "completion/complete": self.complete,
            "custom/echo": self.echo_params,
        }
        if not self.is_modern(params):
            answers |= {
                "logging/setLevel": self.set_level,
                "resources/subscribe": self.watch,
                "resources/unsubscribe": self.unwatch,
            }
        if method in answers:
            return dict(answers[method](params))
        if method == "subscriptions/listen" and self.is_modern(params):
            await self.listen(id_, params)
        if method == "tools/call":
            return await self.call(params)
        raise RefusedError(-32601, f"Method not found: {method}")

    def initialize(self, params: Params) -> Params:
        if self.options.era == "modern":
            data = {"supported": ["2026-07-28"], "requested": params["protocolVersion"]}
            raise RefusedError(-32022, "Unsupported protocol version", data)
        self.capabilities, self.client = params["capabilities"], params["clientInfo"]
        return self.introduction() | {"protocolVersion": params["protocolVersion"]}

    def check_era(self, params: Params) -> None:
        era, modern = self.options.era, self.is_modern(params)
        if modern and era == "handshake":
            if self.options.dies_of_modern:
                os._exit(3)
            if self.options.deaf:
                raise asyncio.CancelledError
            raise RefusedError(-32601, "Method not found")
        if modern:
            self.capabilities = params["_meta"][f"{META}clientCapabilities"]
            self.client = params["_meta"].get(f"{META}clientInfo", {})
        elif era == "modern":
            raise RefusedError(-32600, "params._meta must carry the envelope")

    def set_level(self, params: Params) -> Params:
        self.level = params["level"]
        return {}

    def watch(self, params: Params) -> Params:
        self.subscribed.add(params["uri"])
        return {}

    def unwatch(self, params: Params) -> Params:
        self.subscribed.discard(params["uri"])
        return {}

    def list_prompts(self, _: Params) -> Params:
        return self.cached({"prompts": [{"name": "greet"}]})

    def echo_params(self, params: Params) -> Params:
        return {"params": {key: value for key, value in params.items() if key != "_meta"}}

    def greet(self, params: Params) -> Params:
        text = f"Hello from {self.options.name}, {params['arguments']}"
        return {"messages": [{"role": "user", "content": text_block(text)}]}

    def complete(self, params: Params) -> Params:
        return {"completion": {"values": [f"{params['argument']['value']}!"]}}

    def list_templates(self, params: Params) -> Params:
        template = {"name": "of", "uriTemplate": self.uri("{n}")}
        return self.cached({"resourceTemplates": [template]})

    def introduction(self) -> Params:
        on = {"listChanged": True}
        return {
            "capabilities": {
                "tools": on,
                "resources": on | {"subscribe": True},
                "prompts": on,
                "completions": {},
                "logging": {},
            },
            "serverInfo": {"name": self.options.name, "version": "1"},
            "instructions": f"I am {self.options.name}.",
        }

    def discover(self, _: Params) -> Params:
        self.discovered += 1
        if self.discovered <= self.options.deaf:
            raise asyncio.CancelledError  # and no answer
        known = self.introduction()
        meta = {f"{META}serverInfo": known.pop("serverInfo")}
        return self.cached(known | {"supportedVersions": ["2026-07-28"], "_meta": meta})

    def cached(self, result: Params) -> Params:
        if self.options.era == "handshake":
            return result
        return result | {"ttlMs": 0, "cacheScope": "private"}

    def uri(self, name: object) -> str:
        return f"plain://{self.options.name}/{name}"

    def paged(self, key: str, items: list[Any], params: Params) -> Params:
        start, pages = int(params.get("cursor") or 0), self.options.pages
        size = -(-len(items) // pages)
        page: Params = {key: items[start : start + size]}
        if start + size < len(items):
            page["nextCursor"] = str(start + size)
        return self.cached(page)

    def list_tools(self, params: Params) -> Params:
        kinds: Params = {
            "items": {"type": "array", "items": {"type": "integer"}},
            "n": {"type": "integer"},
        }
        tools: list[Params] = [
            {
                "name": name,
                "description": f"{name} of {self.options.name}",
                "inputSchema": {
                    "type": "object",
                    "properties": {each: kinds.get(each, TEXT) for each in TOOLS[name][1]},
                },
            }
            for name in TOOLS
        ]
        tools += [{"name": name, "inputSchema": {"type": "object"}} for name in self.extra]
        if self.options.tools:
            names = self.options.tools.split(",")
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        return self.paged("tools", tools, params)

    def list_resources(self, params: Params) -> Params:
        items = [{"name": str(n), "uri": self.uri(n)} for n in range(6)]
        return self.paged("resources", items, params)

    def read(self, params: Params) -> Params:
        uri = params["uri"]
        if not uri.startswith(self.uri("")):
            modern = self.options.era == "modern"
            raise RefusedError(-32602 if modern else -32002, "Resource not found", {"uri": uri})
        return self.cached({"contents": [{"uri": uri, "text": f"text of {uri}"}]})

    async def listen(self, id_: Any, params: Params) -> None:
        meta = {f"{META}subscriptionId": id_}
        self.listening[id_] = params["notifications"]
        acknowledged = {"notifications": params["notifications"], "_meta": meta}
        self.tell("subscriptions/acknowledged", acknowledged)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.listening.pop(id_, None)

    # --- to the client -------------------------------------------------------------------

    def tell(self, what: str, params: Params) -> None:
        self.write({"method": f"notifications/{what}", "params": params})

    def tell_change(self, what: str, flag: str, params: Params) -> None:
        if not self.listening:
            self.tell(what, params)
        for id_, wanted in self.listening.items():
            if wanted.get(flag):
                self.tell(what, params | {"_meta": {f"{META}subscriptionId": id_}})

    async def ask(self, method: str, params: Params) -> Params:
        self.asked += 1
        id_ = f"ask-{self.asked}"
        self.waiting[id_] = asyncio.get_running_loop().create_future()
        self.write({"id": id_, "method": method, "params": params})
        answer: Params = await self.waiting[id_]
        return answer

    async def question(self, params: Params, method: str, asked: Params) -> Any:
        """Return the client's answer, or None where this result has to ask for it."""
        if not self.is_modern(params):
            answer = await self.ask(method, asked)
            return answer.get("result", answer)
        given: Params = params.get("inputResponses") or {}
        return given.get("it")

    async def call(self, params: Params) -> Params:
        name: str = params["name"]
        arguments: Params = params.get("arguments") or {}
        if name not in TOOLS:
            known = name in self.extra or name in self.options.tools.split(",")
            content = [text_block(f"{self.options.name}: {name}")]
            return {"content": content, "isError": not known}
        result: Params = await TOOLS[name][0](self, params, **arguments)
        return result


def text_block(text: str) -> Params:
    return {"type": "text", "text": text}


def shown(value: Any) -> Params:
    return {"content": [text_block(value if isinstance(value, str) else json.dumps(value))]}


# --- the tools ---------------------------------------------------------------------------------


async def echo(server: Server, params: Any, text: str = "") -> Any:
    return shown(text)


async def rows(server: Server, params: Any, n: int = 3) -> Any:
    return shown([{"id": each, "name": f"row {each}"} for each in range(n)])


async def big(server: Server, params: Any, n: int = 1) -> Any:
    return shown("0123456789abcde\n" * (n // 16))


async def total(server: Server, params: Any, items: list[Any] | None = None) -> Any:
    rows = [each if isinstance(each, int) else int(each["id"]) for each in items or []]
    return shown(sum(rows))


async def fail(server: Server, params: Any) -> Any:
    return shown("it failed") | {"isError": True}


async def refuse(server: Server, params: Any) -> Any:
    raise RefusedError(-32055, "refused", {"why": "told to"})


async def sleep(server: Server, params: Any, text: str = "60") -> Any:
    await asyncio.sleep(float(text))
    return shown("slept")


async def progress(server: Server, params: Any, n: int = 3) -> Any:
    meta: Params = params.get("_meta") or {}
    token = meta.get("progressToken")
    for each in range(n):
        if token is not None:
            server.tell("progress", {"progressToken": token, "progress": each + 1, "total": n})
        await asyncio.sleep(0)
    return shown("done" if token is not None else "no token")


async def log(server: Server, params: Any, text: str = "info") -> Any:
    meta: Params = params.get("_meta") or {}
    own: str | None = meta.get(f"{META}logLevel")
    threshold = own if server.is_modern(params) else server.level or "debug"
    levels = ["debug", "info", "warning", "error"]
    if threshold is not None and levels.index(text) >= levels.index(threshold):
        server.tell("message", {"level": text, "data": "logged"})
    return shown(f"threshold {threshold}")


async def elicit(server: Server, params: Any) -> Any:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    asked = {"mode": "form", "message": "Who?", "requestedSchema": schema}
    return await put(server, params, "elicitation/create", asked)


async def sample(server: Server, params: Any) -> Any:
    message = {"role": "user", "content": text_block("Say yes.")}
    asked = {"messages": [message], "maxTokens": 5}
    return await put(server, params, "sampling/createMessage", asked)


async def roots(server: Server, params: Any) -> Any:
    return await put(server, params, "roots/list", {})


async def put(server: Server, params: Any, method: str, asked: Any) -> Any:
    answer = await server.question(params, method, asked)
    if answer is not None:
        return shown({"answer": answer, "state": params.get("requestState")})
    request = {"method": method} | ({"params": asked} if asked else {})
    return {
        "resultType": "input_required",
        "inputRequests": {"it": request},
        "requestState": "kept by the client",
    }


async def visit(server: Server, params: Any) -> Any:
    if server.seen.count("visit"):
        return shown("visited")
    server.seen.append("visit")
    asked = {"mode": "url", "message": "Sign in", "url": "http://127.0.0.1/", "elicitationId": "1"}
    raise RefusedError(-32042, "Visit first", {"elicitations": [asked]})


async def grow(server: Server, params: Any, text: str = "new") -> Any:
    server.extra.append(text)
    server.tell_change("tools/list_changed", "toolsListChanged", {})
    return shown("grown")


async def touch(server: Server, params: Any, text: str = "0") -> Any:
    uri = server.uri(text)
    if server.listening or uri in server.subscribed:
        server.tell_change("resources/updated", "resourceSubscriptions", {"uri": uri})
    return shown(sorted(server.subscribed))


async def facts(server: Server, params: Any) -> Any:
    wanted: list[list[str]] = [
        each.get("resourceSubscriptions", []) for each in server.listening.values()
    ]
    return shown(
        {
            "capabilities": server.capabilities,
            "client": server.client,
            "seen": server.seen,
            "watched": sorted(server.subscribed.union(*wanted)),
            "streams": len(server.listening),
            "pid": os.getpid(),
            "modern": server.is_modern(params),
        }
    )


async def die(server: Server, params: Any, text: str = "") -> Any:
    """End at once, within a line where a text is given, in which ID stands for the request's."""
    (own,) = [id_ for id_, task in server.tasks.items() if task is asyncio.current_task()]
    sys.stdout.buffer.write(text.replace("ID", json.dumps(own)).encode())
    sys.stdout.buffer.flush()
    os._exit(7)


async def say(server: Server, params: Any, text: str = "") -> Any:
    """Put a line of any kind on the output, before the answer."""
    server.write_text(text.encode("latin-1"))
    return shown("said")


async def answer_with(server: Server, params: Any, text: str = "") -> Any:
    """Answer with a line of any kind, in which ID stands for that of the request."""
    (own,) = [id_ for id_, task in server.tasks.items() if task is asyncio.current_task()]
    server.write_text(text.replace("ID", json.dumps(own)).encode("latin-1"))
    raise asyncio.CancelledError


TOOLS: dict[str, tuple[Any, list[str]]] = {
    "echo": (echo, ["text"]),
    "rows": (rows, ["n"]),
    "big": (big, ["n"]),
    "total": (total, ["items"]),
    "fail": (fail, []),
    "refuse": (refuse, []),
    "sleep": (sleep, ["text"]),
    "progress": (progress, ["n"]),
    "log": (log, ["text"]),
    "elicit": (elicit, []),
    "sample": (sample, []),
    "roots": (roots, []),
    "visit": (visit, []),
    "grow": (grow, ["text"]),
    "touch": (touch, ["text"]),
    "facts": (facts, []),
    "die": (die, ["text"]),
    "say": (say, ["text"]),
    "answer_with": (answer_with, ["text"]),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["handshake", "modern", "both"], default="both")
    parser.add_argument("--name", default="plain")
    parser.add_argument("--pages", type=int, default=1)
    parser.add_argument("--tools", default="")
    parser.add_argument("--stay", action="store_true", help="do not leave when the input closes")
    parser.add_argument("--asks-roots", action="store_true", help="ask for roots at the start")
    parser.add_argument("--deaf", type=int, default=0, help="how often not to hear discover")
    parser.add_argument("--dies-of-modern", action="store_true")
    asyncio.run(Server(parser.parse_args()).run())


if __name__ == "__main__":
    main()
