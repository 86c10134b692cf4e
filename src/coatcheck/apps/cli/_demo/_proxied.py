"""Tools behind the proxy, as a host sees them: the official client, a proxy, a server."""

import base64
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, TextIO, cast

import mcp
import mcp_types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent, TextResourceContents

from ....content import loads
from ....errors import CoatcheckError
from ....records import dataclass
from ....tools import Tool
from ...proxy._results import META_ARTIFACTS

_WINDOW = 200_000
"""Characters of text, bytes of all else."""
_WHOLE_BYTES = 32 * 1024 * 1024
_SAID_CHARS = 2_000

Tell = Callable[[int, int], object]


class ServerFailedError(CoatcheckError, RuntimeError):
    """The proxy, or the server behind it, did not do what it was asked for."""

    code = "server-failed"


@dataclass(slots=True)
class Proxied:
    """A proxy that runs, and the tools it lists."""

    client: mcp.Client
    tell: Tell
    tools: Sequence[Tool] = ()
    listed: Sequence[mcp_types.Tool] = ()
    """The same, with what a server says of them besides."""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    """What came in the `_meta` of results, all of it together."""

    @property
    def instructions(self) -> str:
        """What a host tells its model of them."""
        return self.client.instructions or ""

    @property
    def artifacts(self) -> Sequence[Mapping[str, Any]]:
        """What the results so far say of the artifacts that stand in for parts of them."""
        return cast("Sequence[Mapping[str, Any]]", self.meta.get(META_ARTIFACTS, ()))

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Return the text that a model is shown of a call."""
        given = loads(arguments.encode()) if isinstance(arguments, str) else arguments
        result = await self.client.call_tool(
            name, dict(cast("Mapping[str, Any]", given)), progress_callback=self._progress
        )
        self.meta |= dict(result.meta or {})
        return shown_text(result)

    async def payload(self, pointer: str, size_bytes: int) -> str | bytes:
        """Return what stands behind a pointer, read as a resource: whole, or window by window."""
        uri = f"art://{pointer.removeprefix('art:')}"
        if size_bytes <= _WHOLE_BYTES:
            return await self._contents(uri)
        parts: list[Any] = []
        while not parts or parts[-1]:
            window = f"?offset={sum(map(len, parts))}&limit={_WINDOW}"
            parts.append(await self._contents(uri + window))
        joined: str | bytes = parts[-1].join(parts)
        return joined

    async def _contents(self, uri: str) -> str | bytes:
        (contents,) = (await self.client.read_resource(uri)).contents
        if isinstance(contents, TextResourceContents):
            return contents.text
        return base64.b64decode(contents.blob)

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        del message
        self.tell(int(progress), int(total or 0))


@asynccontextmanager
async def proxied(
    command: Sequence[str], options: Sequence[str], tell: Tell
) -> AsyncGenerator[Proxied, None]:
    """Run a server behind a proxy, for the time of a `with`.

    Args:
        command: What starts the server.
        options: Of ``coatcheck proxy``.
        tell: Is told how far a tool is, where it says so.

    Raises:
        ServerFailedError: One of the two failed.
    """
    start = [sys.executable, "-m", "coatcheck.apps.cli", "proxy", "--no-journal", *options]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        parameters = StdioServerParameters(
            command=start[0],
            args=[*start[1:], "--", *command],
            env=dict(os.environ),
            cwd=Path.cwd(),
        )
        try:
            async with mcp.Client(stdio_client(parameters, errlog=log)) as client:
                found = Proxied(client, tell)
                found.listed = await _listed(client)
                found.tools = [_tool(found, tool) for tool in found.listed]
                yield found
        except (mcp.MCPError, OSError) as error:
            raise _failed(str(error), log) from error
        except BaseExceptionGroup as group:
            # What went wrong inside comes wrapped by the client's own tasks.
            cause = _first(group)
            if isinstance(cause, CoatcheckError):
                raise cause from None
            raise _failed(str(cause), log) from group


def shown_text(result: CallToolResult) -> str:
    """Return what most hosts show a model of a result: its blocks of text."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def _listed(client: mcp.Client) -> list[mcp_types.Tool]:
    page = await client.list_tools()
    tools = [*page.tools]
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def _tool(proxied: Proxied, tool: mcp_types.Tool) -> Tool:
    async def call(arguments: Mapping[str, Any] | str) -> str:
        return await proxied.call(tool.name, arguments)

    return Tool(tool.name, tool.description or "", tool.input_schema, call)


def _first(error: BaseException) -> BaseException:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _first(inner[0]) if inner else error


def _failed(message: str, log: TextIO) -> ServerFailedError:
    log.seek(0)
    said = log.read()[-_SAID_CHARS:].strip()
    error = ServerFailedError(f"The server behind the proxy failed: {message.rstrip('.')}.")
    error.hint = f"It said: {said}" if said else "Try its command alone."
    return error
