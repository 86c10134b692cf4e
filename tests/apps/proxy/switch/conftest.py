"""What tests of the switch share: the proxy before real servers, and a host that sees all."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from coatcheck import Bank, open_bank
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._answers import Proxy
from coatcheck.apps.proxy._channel import Channel
from coatcheck.apps.proxy._config import UpstreamSpec
from coatcheck.apps.proxy._http_upstream import HttpChannel
from coatcheck.apps.proxy._lines import LineReader, LineWriter, read_lines, write_lines
from coatcheck.apps.proxy._process import ProcessChannel
from coatcheck.apps.proxy._settings import Settings
from coatcheck.apps.proxy._stdio import StdioFront
from coatcheck.apps.proxy._upstream import Known

SERVERS = Path(__file__).parents[1] / "servers"
VERSION = {"handshake": "2025-11-25", "modern": "2026-07-28"}
META = "io.modelcontextprotocol/"


def _plain(name: str = "plain", *options: str, era: str = "both") -> UpstreamSpec:
    """Return a server without an SDK, which starts in a blink: see servers/plain.py."""
    command = [str(SERVERS / "plain.py"), "--name", name, "--era", era, *options]
    return UpstreamSpec(name=name, command=sys.executable, args=("-I", "-S", *command))


class Host:
    """A client at the other end of two pipes, that sends and sees every single message."""

    def __init__(self, reader: LineReader, writer: LineWriter, era: str) -> None:
        self.reader = reader
        self.writer = writer
        self.era = era
        self.capabilities: dict[str, object] = {}
        self.answers: dict[str, Any] = {}
        """What it answers, by the method that it is asked."""
        self.asked: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.stray: list[dict[str, Any]] = []
        """Responses to no request of its own."""
        self.lines: list[bytes] = []
        self.last_id = 0
        self._waiting: dict[object, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def introduce(self) -> dict[str, Any]:
        """Return how the proxy introduces itself."""
        if self.era == "modern":
            return await self.result("server/discover")
        params = {
            "protocolVersion": VERSION["handshake"],
            "capabilities": self.capabilities,
            "clientInfo": {"name": "host", "version": "7"},
        }
        found = await self.result("initialize", **params)
        self.tell("notifications/initialized")
        return found

    def begin(self, method: str, **params: object) -> tuple[int, "asyncio.Future[dict[str, Any]]"]:
        """Send a request; return its id and its response, which may take a while."""
        self.last_id += 1
        meta: dict[str, object] = {**cast("dict[str, object]", params.pop("_meta", {}))}
        if self.era == "modern":
            meta[f"{META}protocolVersion"] = VERSION["modern"]
            meta[f"{META}clientCapabilities"] = self.capabilities
            meta[f"{META}clientInfo"] = {"name": "host", "version": "7"}
        if meta:
            params["_meta"] = meta
        answer = asyncio.get_running_loop().create_future()
        self._waiting[self.last_id] = answer
        self.send({"id": self.last_id, "method": method, "params": params})
        return self.last_id, answer

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Return the response to a request."""
        async with asyncio.timeout(20):
            return await self.begin(method, **params)[1]

    async def result(self, method: str, **params: object) -> dict[str, Any]:
        """Return the result of a request."""
        response = await self.ask(method, **params)
        assert "result" in response, response
        return dict(response["result"])

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Return the result of a tool, having answered all that it asked."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        result = await self.result("tools/call", **params)
        while result.get("resultType") == "input_required":
            self.asked += result["inputRequests"].values()
            params["inputResponses"] = {
                key: self.answers[each["method"]] for key, each in result["inputRequests"].items()
            }
            params["requestState"] = result["requestState"]
            result = await self.result("tools/call", **params)
        return result

    async def text(self, tool: str, **arguments: object) -> str:
        """Return the text that a tool answers."""
        return str((await self.call(tool, **arguments))["content"][0]["text"])

    def tell(self, method: str, **params: object) -> None:
        message: dict[str, object] = {"method": method}
        if params:
            message["params"] = params
        self.send(message)

    def send(self, message: dict[str, object]) -> None:
        self.send_line(orjson.dumps({"jsonrpc": "2.0"} | message))

    def send_line(self, line: bytes) -> None:
        self.writer.write(line + b"\n")

    async def seen(self, found: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(20):
            while not found():
                self._news.clear()
                await self._news.wait()

    def noted(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of all notifications of a method."""
        return [each.get("params", {}) for each in self.notes if each["method"] == method]

    async def leave(self) -> None:
        """Go, as a host does: by closing what it writes to."""
        self.writer.close()
        await self._reading
        self.reader.close()

    async def _read(self) -> None:
        async for line in self.reader:
            message = json.loads(line)
            self.lines.append(line)
            if "method" not in message:
                waiting = self._waiting.pop(message["id"], None)
                if waiting is None or waiting.done():
                    self.stray.append(message)
                else:
                    waiting.set_result(message)
            elif "id" in message:
                self.asked.append(message)
                answer = self.answers.get(message["method"], {"code": -32601, "message": "no"})
                key = "error" if "code" in answer else "result"
                self.send({"id": message["id"], key: answer})
            else:
                self.notes.append(message)
            self._news.set()
        self._news.set()


@dataclass
class Bench:
    """Sets up proxies in this process, each before real servers and with a host of its own."""

    stack: AsyncExitStack
    logged: list[str]
    patience_seconds: float = 30.0
    bank: Bank | None = None
    """Of all proxies; each has its own where there is none. A host over stdio is of scope bench."""

    async def host(
        self,
        *servers: UpstreamSpec,
        era: str = "handshake",
        capabilities: dict[str, object] | None = None,
        answers: dict[str, Any] | None = None,
        settings: Settings | None = None,
        introduced: bool = True,
    ) -> Host:
        """Return a host of a new proxy before `servers`, which it has introduced itself to."""
        host, _ = await self.front(*servers, era=era, settings=settings)
        host.capabilities, host.answers = capabilities or {}, answers or {}
        if introduced:
            await host.introduce()
        return host

    async def front(
        self, *servers: UpstreamSpec, era: str = "handshake", settings: Settings | None = None
    ) -> tuple[Host, "asyncio.Task[None]"]:
        """Return a host, and the proxy that serves it until it goes."""
        proxy = await self.proxy(*servers, settings=settings)
        (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
        files = [
            os.fdopen(number, mode, 0)
            for number, mode in (
                (in_read, "rb"),
                (in_write, "wb"),
                (out_read, "rb"),
                (out_write, "wb"),
            )
        ]
        own_reader, own_writer = await read_lines(files[0]), await write_lines(files[3])
        host = Host(await read_lines(files[2]), await write_lines(files[1]), era)

        async def serve() -> None:
            try:
                await StdioFront(proxy, own_reader, own_writer).serve()
            finally:
                own_writer.close()
                own_reader.close()
                await own_writer.is_lost.wait()

        serving = asyncio.create_task(serve())

        async def end() -> None:
            await host.leave()
            await serving

        self.stack.push_async_callback(end)
        return host, serving

    async def proxy(self, *servers: UpstreamSpec, settings: Settings | None = None) -> Proxy:
        """Return what all sessions of a proxy share."""
        bank = self.bank
        if bank is None:
            bank = await self.stack.enter_async_context(open_bank("memory:"))

        async def start(spec: UpstreamSpec) -> Channel:
            if spec.url is not None:
                return HttpChannel(spec, self.logged.append)
            return await ProcessChannel.start(spec, os.environ, self.logged.append)

        return Proxy(
            acts=Acts(bank, settings or Settings(), "bench"),
            specs=servers,
            prefixed=len(servers) > 1,
            start=start,
            log=self.logged.append,
            known={each.name: Known() for each in servers},
            patience_seconds=self.patience_seconds,
        )


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(stack, [])


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[Callable[..., Awaitable[Host]]]:
    """Return a host of one proxy that all tests of a module share, by the eras of both sides.

    For tests that leave nothing behind: what it has seen before is forgotten.
    """
    hosts: dict[tuple[str, str], Host] = {}
    async with AsyncExitStack() as stack:

        async def host_of(front: str, back: str) -> Host:
            if (front, back) not in hosts:
                hosts[front, back] = await Bench(stack, []).host(_plain(era=back), era=front)
            host = hosts[front, back]
            host.notes, host.lines, host.stray, host.asked = [], [], [], []
            return host

        yield host_of


@pytest.fixture(params=["handshake", "modern"])
def front(request: pytest.FixtureRequest) -> str:
    """Return the era of the client."""
    return str(request.param)


@pytest.fixture(params=["handshake", "modern"])
def back(request: pytest.FixtureRequest) -> str:
    """Return the era of the server."""
    return str(request.param)


@pytest.fixture
def plain() -> Callable[..., UpstreamSpec]:
    return _plain
