"""Servers and clients that others wrote, in both eras, with the proxy in between."""

import json
import os
import socket
import sqlite3
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport

from coatcheck.testing import free_port, running

from .conftest import RealServers, client_of, servers_file

Proxy = Callable[..., list[str]]
Call = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Calls a tool: answers with its wire form."""

ROWS = 2_000
PAGE = "".join(f"Zeile {n}: größer als alles\n" for n in range(5_000))
LARGE = "SELECT range AS id, repeat('x', 80) AS x FROM range(900)"


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository whose last commit changes a file of 300 KB."""
    folder = tmp_path_factory.mktemp("repository")
    text = "".join(f"line {n} of a file, {n * 7919 % 10_007} and more\n" for n in range(9_000))

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=m"]
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    (folder / "file.txt").write_text(text)
    git("add", ".")
    git("commit", "-m", "second")
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", ((n, f"n{n}") for n in range(ROWS)))
    connection.close()
    return path


@asynccontextmanager
async def official(command: list[str], mode: str) -> AsyncGenerator[Call, None]:
    async with client_of(command, mode=mode) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            result = await client.call_tool(tool, arguments)
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)

        yield call


@asynccontextmanager
async def of_fastmcp(command: list[str], mode: str) -> AsyncGenerator[Call, None]:
    transport = StdioTransport(
        command[0], command[1:], env=dict(os.environ), keep_alive=False, log_file=Path(os.devnull)
    )
    chosen: Any = mode
    async with fastmcp.Client(transport, mode=chosen) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            result = await client.call_tool_mcp(tool, arguments)
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)

        yield call


CLIENTS = {"official": official, "fastmcp": of_fastmcp}


def text_of(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def servers(real: RealServers, repository: Path, database: Path) -> dict[str, Any]:
    return {
        "git": real.git(repository),
        "time": real.time(),
        "duck": real.motherduck(),
        "lite": real.sqlite(database),
    }


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("client", ["official", "fastmcp"])
async def test_servers_of_both_eras_answer_behind_one_proxy_and_share_pointers(
    client: str,
    mode: str,
    real: RealServers,
    proxy: Proxy,
    repository: Path,
    database: Path,
    tmp_path: Path,
) -> None:
    command = proxy("--config", servers_file(tmp_path, servers(real, repository, database)))

    async with CLIENTS[client](command, mode) as call:
        status = await call("git_git_status", {"repo_path": str(repository)})
        hour = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        tokyo = await call("time_convert_time", hour)
        one = await call("duck_execute_query", {"sql": "SELECT 42 AS answer"})
        large = await call("lite_read_query", {"query": "SELECT * FROM t"})
        shown = await call("git_git_show", {"repo_path": str(repository), "revision": "HEAD"})
        pointer = json.loads(text_of(shown))["pointer"]
        insight = await call("lite_append_insight", {"insight": pointer})
        wrong = await call("git_git_show", {"repo_path": str(repository), "revision": "none"})
        found = await call("retrieve_context", {"artifactId": pointer, "search": "line 8999 "})

    assert text_of(status).startswith("Repository status:\nOn branch m")
    assert tokyo["structuredContent"]["time_difference"] == "+9.0h"
    assert json.loads(text_of(tokyo)) == tokyo["structuredContent"]
    assert "42" in text_of(one)
    assert json.loads(text_of(large))["sizeBytes"] > 51_200
    assert "structuredContent" not in shown
    assert text_of(insight) == "Insight added to memo"
    assert wrong["isError"] is True
    assert json.loads(text_of(found))["totalMatches"] == 1


async def test_what_git_shows_reaches_another_server_byte_for_byte_for_4_kb_of_traffic(
    real: RealServers, proxy: Proxy, repository: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    file = servers_file(tmp_path, {"git": real.git(repository), "files": real.filesystem(folder)})
    show = {"repo_path": str(repository), "revision": "HEAD"}
    async with client_of(real.git(repository)) as client:
        direct = await client.call_tool("git_show", show)

    target = {"path": str(folder / "shown.txt")}
    traffic = 0
    async with official(proxy("--config", file), "auto") as call:

        async def seen(tool: str, arguments: dict[str, Any]) -> str:
            nonlocal traffic
            result = await call(tool, arguments)
            texts = [block["text"] for block in result["content"] if block["type"] == "text"]
            traffic += len(json.dumps(arguments)) + sum(map(len, texts))
            return "".join(texts)

        pointer = json.loads(await seen("git_git_show", show))["pointer"]
        await seen("files_write_file", {**target, "content": pointer})
        again = json.loads(await seen("files_read_text_file", target))

    whole = text_of(direct.model_dump(by_alias=True, mode="json"))
    assert len(whole) > 300_000
    assert (folder / "shown.txt").read_bytes() == whole.encode()
    assert again["sizeBytes"] == len(whole.encode())
    assert traffic < 4_096


async def test_a_page_that_one_server_fetched_is_written_by_another(
    real: RealServers, proxy: Proxy, page_url: str, tmp_path: Path
) -> None:
    file = servers_file(tmp_path, {"web": real.fetch(), "files": real.filesystem(tmp_path)})
    asked = {"url": page_url, "max_length": 999_999, "raw": True}
    target = str(tmp_path / "copy.txt")

    async with official(proxy("--config", file), "auto") as call:
        fetched = json.loads(text_of(await call("web_fetch", asked)))
        written = await call("files_write_file", {"path": target, "content": fetched["pointer"]})

    copied = Path(target).read_bytes()
    assert written["isError"] is False
    assert fetched["sizeBytes"] == len(copied)
    assert PAGE.encode() in copied


@pytest.fixture
def page_url() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/page"
        server.shutdown()
        serving.join()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_large_graph_of_the_memory_server_is_banked_once(
    mode: str, real: RealServers, proxy: Proxy, tmp_path: Path
) -> None:
    entry = real.memory()
    memory = {
        "command": entry[0],
        "args": entry[1:],
        "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
    }
    file = servers_file(tmp_path, {"memory": memory})
    entities = [
        {"name": f"n{n}", "entityType": "thing", "observations": [f"seen {n} times"]}
        for n in range(1_000)
    ]

    async with official(proxy("--config", file), mode) as call:
        made = await call("create_entities", {"entities": entities})
        pointer = json.loads(text_of(made))["pointer"]
        graph = json.loads(text_of(await call("read_graph", {})))
        query = {"artifactId": graph["pointer"], "query": "$.entities[7].name"}
        named = await call("retrieve_context", query)
        again = await call("create_entities", {"entities": pointer})

    assert "structuredContent" not in made
    assert [block["type"] for block in made["content"]] == ["text", "resource_link"]
    assert json.loads(text_of(named))["value"] == "n7"
    assert json.loads(text_of(again)) == []  # all of them are there, so all of them arrived


async def test_the_list_of_tools_is_the_same_bytes_across_restarts(
    real: RealServers, proxy: Proxy, database: Path, tmp_path: Path
) -> None:
    file = servers_file(tmp_path, {"lite": real.sqlite(database), "time": real.time()})
    seen: list[str] = []

    for _ in range(2):
        async with client_of(proxy("--config", file)) as client:
            for _ in range(2):
                listed = await client.list_tools()
                seen.append(listed.model_dump_json(by_alias=True, exclude_unset=True))

    assert len(set(seen)) == 1
    names = [tool["name"] for tool in json.loads(seen[0])["tools"]]
    assert len(names) == 6 + 2 + 1
    assert {"lite_read_query", "time_convert_time", "retrieve_context"} < set(names)


async def test_a_resumed_chat_of_the_other_era_finds_its_pointers(
    real: RealServers, proxy: Proxy, database: Path
) -> None:
    command = proxy("--", *real.sqlite(database))
    async with official(command, "auto") as call:
        rows = await call("read_query", {"query": "SELECT * FROM t"})
    pointer = json.loads(text_of(rows))["pointer"]

    async with official(command, "legacy") as call:
        found = await call("retrieve_context", {"artifactId": pointer, "limit": 10})

    assert json.loads(text_of(found))["content"] == "[{'id': 0,"


async def test_an_excluded_tool_answers_what_it_does_without_a_proxy(
    real: RealServers, proxy: Proxy, database: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text("[tools.read_query]\nexclude = true\n")
    query = {"query": "SELECT * FROM t"}
    async with official(real.sqlite(database), "auto") as call:
        direct = await call("read_query", query)

    command = proxy("--settings", str(settings), "--", *real.sqlite(database))
    async with official(command, "auto") as call:
        through = await call("read_query", query)

    assert len(text_of(direct)) > 51_200
    assert text_of(through) == text_of(direct)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_over_http_answers_as_one_over_stdio(
    mode: str, duck_url: str, proxy: Proxy
) -> None:
    async with official(proxy("--", duck_url), mode) as call:
        small = await call("execute_query", {"sql": "SELECT 42 AS answer"})
        large = await call("execute_query", {"sql": LARGE})
        pointer = json.loads(text_of(large))["pointer"]
        names = await call("retrieve_context", {"artifactId": pointer, "query": "rows[7][0]"})

    assert "42" in text_of(small)
    assert json.loads(text_of(names))["value"] == 7


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_hosts_over_http_get_what_hosts_over_stdio_get(
    mode: str, real: RealServers, proxy: Proxy, tmp_path: Path
) -> None:
    port = free_port()
    command = proxy("--http", f"127.0.0.1:{port}", "--", *real.motherduck("--max-chars", "1000000"))
    with running(command, partial(listens, port), tmp_path / "proxy.log"):
        chosen: Any = mode
        async with mcp.Client(f"http://127.0.0.1:{port}/mcp", mode=chosen) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            large = await client.call_tool("execute_query", {"sql": LARGE})
            wire = large.model_dump(by_alias=True, mode="json", exclude_none=True)
            pointer = json.loads(text_of(wire))["pointer"]
            query = {"artifactId": pointer, "query": "rows[7][0]"}
            seventh = await client.call_tool("retrieve_context", query)

    assert names[-1] == "retrieve_context"
    assert len(names) == 5
    assert '"value":7}' in str(seventh.content[0])


@pytest.fixture(scope="module")
def duck_url(real: RealServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    options = ["--max-chars", "1000000", "--transport", "http", "--host", "127.0.0.1"]
    command = real.motherduck(*options, "--port", str(port))
    with running(command, partial(listens, port), tmp_path_factory.mktemp("duck") / "log"):
        yield f"http://127.0.0.1:{port}/mcp"
