"""A store that fails behind the proxy: calls go on, errors are told in time, and it is got over."""

import hashlib
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import mcp
import pytest
from mcp_types import CallToolResult, TextContent

from coatcheck.testing import S3Server, Server, redis_server, s3_server

from ..servers.texts import text_of
from .conftest import client_of

TEXTS = Path(__file__).parents[1] / "servers" / "texts.py"
TOLD_SECONDS = 10
LARGE = 100_000


@dataclass
class Store:
    """A store that a test breaks, and mends again."""

    kind: str
    folder: Path
    own: Server

    @property
    def address(self) -> str:
        return self.own.address("soak") if isinstance(self.own, S3Server) else self.own.url

    @contextmanager
    def broken(self, how: str) -> Generator[None]:
        if how == "hangs":
            self.own.pause()
            yield
            self.own.resume()
        else:
            self.own.kill()
            yield

    @contextmanager
    def mended(self, how: str) -> Generator[None]:
        if how == "hangs":
            yield
        elif isinstance(self.own, S3Server):
            with s3_server(self.folder, ports=self.own.ports):
                yield
        else:
            with redis_server(self.folder, port=self.own.port):
                yield


@pytest.fixture(params=["redis", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Store]:
    folder = tmp_path / "store"
    folder.mkdir()
    start = redis_server if request.param == "redis" else s3_server
    with start(folder) as own:
        yield Store(request.param, folder, own)


def proxy_to(address: str) -> list[str]:
    command = [sys.executable, "-m", "coatcheck.apps.cli", "proxy", "--no-journal"]
    return [*command, "--store", address, "--scope", "out", "--", sys.executable, str(TEXTS)]


def text_in(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def made(client: mcp.Client, seed: int, size: int = LARGE) -> str:
    """Return what a tool answers, in time, and as no error."""
    with anyio.fail_after(TOLD_SECONDS):
        result = await client.call_tool("make", {"seed": seed, "size": size})
    assert not result.is_error
    return text_in(result)


async def refused(client: mcp.Client, tool: str, arguments: dict[str, object]) -> str:
    """Return the error of a call, told in time; it says nothing of where the store is."""
    with anyio.fail_after(TOLD_SECONDS):
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert "127.0.0.1" not in text_in(result)
    return text_in(result)


def files_in(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if not file.is_dir()}


@pytest.mark.parametrize(("how", "mode"), [("hangs", "legacy"), ("dies", "auto")])
async def test_calls_go_on_without_the_store_and_use_it_again_once_it_is_there(
    store: Store, how: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    monkeypatch.chdir(home)
    env = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {f"XDG_{name}_HOME": str(home / name) for name in ("DATA", "STATE", "CACHE", "CONFIG")}
    async with client_of(proxy_to(store.address), env, mode=mode) as client:
        pointer = json.loads(await made(client, 1))["pointer"]
        before = files_in(home)
        with store.broken(how):
            inline = await made(client, 2)
            small = await made(client, 3, 1_000)
            unread = await refused(client, "retrieve_context", {"artifactId": pointer})
            unresolved = await refused(client, "digest", {"text": pointer})
            with anyio.fail_after(TOLD_SECONDS), pytest.raises(mcp.MCPError) as unserved:
                await client.read_resource(f"art://{pointer.removeprefix('art:')}")
        written = files_in(home) - before
        with store.mended(how), anyio.fail_after(60):
            while not (again := await made(client, 4)).startswith('{"pointer"'):
                await anyio.sleep(0.2)
            again = json.loads(again)["pointer"]
            digest = text_in(await client.call_tool("digest", {"text": again}))

    assert inline.startswith(text_of(2, 5_000))
    assert small == text_of(3, 1_000)
    assert "unavailable" in unread
    assert "unavailable" in unresolved
    assert "unavailable" in str(unserved.value)
    assert written == set()
    assert digest == hashlib.sha256(text_of(4, LARGE).encode()).hexdigest()
