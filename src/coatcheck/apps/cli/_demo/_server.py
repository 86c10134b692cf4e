"""The demo's tools as an MCP server over stdio, on the official SDK: a program of its own.

It knows nothing of pointers. Run as ``python -m``, with the JSON of a `Served` as its argument.
"""

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ListToolsResult,
    TextContent,
    Tool,
)

from ....content import dumps, visible
from ....records import dataclass
from ._inventory import Folder
from ._jobs import Job, binary_job, definition, inventory_job, text_job

SKIPPED = "skippedFiles"
"""In the `_meta` of the inventory: how many files could not be read."""

_STEPS = 100
"""How often it is told how far the inventory is, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a server is to serve: folders, or one file."""

    roots: tuple[str, ...] = ()
    file: str = ""
    name: str = ""
    """By which a model is told of the file."""
    is_text: bool = True

    def command(self) -> list[str]:
        """Return what starts a server of it."""
        return [sys.executable, "-m", __name__, json.dumps(asdict(self))]


class ToolServer:
    """Serves the tools of one job."""

    def __init__(self, served: Served) -> None:
        self._folder = Folder(served.roots, self._tell)
        self._job = job_of(served, self._folder)
        self._functions = {each.__name__: each for each in (self._job.source, *self._job.work)}
        self._tell_client: Callable[[int, int], object] = _tell_nobody
        self.server = Server("demo", on_list_tools=self._list, on_call_tool=self._call)
        """To be run on any transport."""

    async def run(self) -> None:
        """Serve over stdio until the input ends."""
        async with stdio_server() as (read, write):
            await self.server.run(read, write, self.server.create_initialization_options())

    async def _list(self, _context: object, _params: object) -> ListToolsResult:
        tools = [definition(self._job, function) for function in self._functions.values()]
        return ListToolsResult(
            tools=[
                Tool(name=name, description=told, input_schema=dict(schema))
                for name, told, schema in tools
            ]
        )

    async def _call(
        self, context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        function, arguments = self._functions[params.name], dict(params.arguments or {})
        token = (context.meta or {}).get("progress_token")
        if token is not None:
            self._tell_client = partial(_send_progress, context, token)
        if "content" in arguments:
            arguments["content"] = _bytes(arguments["content"])
        value = await anyio.to_thread.run_sync(partial(function, **arguments))
        meta = {SKIPPED: self._folder.skipped} if self._folder.skipped else None
        return CallToolResult(content=[_block(value)], _meta=meta)

    def _tell(self, done: int, total: int) -> None:
        if done == total or done % max(1, total // _STEPS) == 0:
            self._tell_client(done, total)


def job_of(served: Served, folder: Folder | None) -> Job:
    """Return the job that is served; without a folder or file read, it only tells of its tools."""
    if not served.file:
        return inventory_job((folder or Folder((), _tell_nobody)).inventory)
    if served.is_text:
        return text_job(Path(served.file), served.name)
    return binary_job(Path(served.file), served.name)


def _block(value: object) -> TextContent | EmbeddedResource:
    """Return a result as servers send it: text as it is, bytes as a resource, all else as JSON."""
    if isinstance(value, bytes):
        blob = base64.b64encode(value).decode()
        contents = BlobResourceContents(
            uri="file:///demo", mime_type="application/octet-stream", blob=blob
        )
        return EmbeddedResource(type="resource", resource=contents)
    text = value if isinstance(value, str) else dumps(value).decode("utf-8", "surrogatepass")
    return TextContent(type="text", text=visible(text))


def _bytes(given: str) -> bytes:
    """Return the bytes that an argument stands for: base64, or text with characters it lacks."""
    try:
        return base64.b64decode(given, validate=True)
    except ValueError:
        return given.encode()


def _send_progress(
    context: ServerRequestContext[Any], token: str | int, done: int, total: int
) -> None:
    anyio.from_thread.run(context.session.send_progress_notification, token, done, total)


def _tell_nobody(_done: int, _total: int) -> None:
    pass


def main() -> None:
    """Serve what the first argument says."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    told["roots"] = tuple(told["roots"])
    served = Served(**told)
    anyio.run(ToolServer(served).run)


if __name__ == "__main__":
    main()
