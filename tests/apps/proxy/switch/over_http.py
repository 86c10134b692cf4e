"""What tests over HTTP share: requests as they stand on the wire, and an application on a port."""

import asyncio
import socket
from typing import Any

import httpx2

from coatcheck.apps.proxy._http_front import HttpApp, server_of

BOTH = {"accept": "application/json, text/event-stream"}


def request(method: str, id_: object = 1, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


async def post(
    http: httpx2.AsyncClient, message: Any, headers: dict[str, str] | None = None
) -> httpx2.Response:
    return await http.post("/mcp", json=message, headers=BOTH | (headers or {}))


async def introduced(
    http: httpx2.AsyncClient,
    *,
    version: str = "2025-06-18",
    capabilities: dict[str, Any] | None = None,
    **headers: str,
) -> dict[str, str]:
    """Return the headers of a session of the handshake era.

    One of the last version is answered by a stream wherever an answer takes a second.
    """
    client = {"name": "host", "version": "7"}
    can = capabilities or {}
    opening = request("initialize", protocolVersion=version, capabilities=can, clientInfo=client)
    answer = await post(http, opening, headers)
    assert answer.status_code == 200
    own = {"mcp-session-id": answer.headers["mcp-session-id"], **headers}
    done = await post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, own)
    assert done.status_code == 202
    return own


class served:  # noqa: N801 - used as a function
    """An application on a free port, for the time of a `with`."""

    def __init__(self, app: HttpApp) -> None:
        self.app = app

    async def __aenter__(self) -> str:
        self.sessions = asyncio.create_task(self.app.sessions.run())
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.server = server_of(self.app)
        self.serving = asyncio.create_task(self.server.serve(sockets=[self.socket]))
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/mcp"

    async def __aexit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.sessions.cancel()
        await asyncio.wait([self.serving, self.sessions])
        self.socket.close()
