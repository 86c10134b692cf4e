"""Two clients of one proxy over HTTP try to read each other's artifacts, in both eras."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

SERVER = Path(__file__).parent / "servers" / "plain.py"
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])
ANN, BOB = "a" * 40, "b" * 40

Json = dict[str, Any]


@contextmanager
def serving(folder: Path, settings: str) -> Generator[str]:
    """Yield the address of a proxy that serves until the block ends."""
    file = folder / "settings.toml"
    file.write_text(settings)
    options = ["--store", "memory:", "--no-journal", "--settings", str(file)]
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "coatcheck.apps.cli", "proxy", *options),
            *("--http", "127.0.0.1:0", "--", sys.executable, str(SERVER), "--era", "both"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ANN_TOKEN": ANN, "BOB_TOKEN": BOB},
    ) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            found = (re.search(r"http://127\.0\.0\.1:[1-9]\d*/mcp", line) for line in lines)
            yield next(address[0] for address in found if address is not None)
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("open"), "") as address:
        yield address


@pytest.fixture(scope="module")
def signed_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = '[principals]\nann = "ANN_TOKEN"\nbob = "BOB_TOKEN"\n'
    with serving(tmp_path_factory.mktemp("signed"), settings) as address:
        yield address


@asynccontextmanager
async def client(address: str, era: str, token: str | None = None) -> AsyncGenerator[mcp.Client]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        mcp.Client(
            streamable_http_client(address, http_client=http), mode=cast("Any", era)
        ) as session,
    ):
        yield session


async def call(session: mcp.Client, tool: str, scope: str | None = None, **arguments: Any) -> Json:
    meta: Any = None if scope is None else {"coatcheck/scope": scope}
    result: Any = await session.call_tool(tool, arguments, meta=meta)
    return {"isError": result.is_error, **cast("Json", json.loads(result.content[0].text))}


UNISSUED = "art:00000000-0000-4000-8000-000000000005"


async def resource(session: mcp.Client, pointer: str, scope: str | None = None) -> str:
    """Return what an artifact's address answers, with the id masked."""
    id_ = pointer.removeprefix("art:")
    meta: Any = None if scope is None else {"coatcheck/scope": scope}
    try:
        answer = str(await session.read_resource(f"art://{id_}", meta=meta))
    except mcp.MCPError as error:
        answer = f"{error.error.code} {error.error.message} {error.error.data}"
    return answer.replace(id_, "<id>")


async def denied(session: mcp.Client, pointer: str, scope: str | None = None) -> bool:
    """Return whether a pointer is unknown to a client, by all ways to what it names."""
    replies = [
        await call(session, "retrieve_context", scope, artifactId=pointer),
        await call(session, "retrieve_context", scope, artifactId=pointer, search="row"),
        await call(session, "retrieve_context", scope, artifactId=pointer, query="$[0]"),
        await call(session, "total", scope, items=f"{pointer}#$[*].id"),
        await call(session, "echo", scope, text=pointer),
    ]
    assert not any(pointer in reply.get("hint", "") for reply in replies)
    unknown = await resource(session, UNISSUED, scope)
    assert "No artifact behind" in unknown
    assert await resource(session, pointer, scope) == unknown
    return all(reply.get("error") == "unknown-pointer" and reply["isError"] for reply in replies)


async def reads(session: mcp.Client, pointer: str, scope: str | None = None) -> bool:
    assert '[{"id' in await resource(session, pointer, scope)
    page = await call(session, "retrieve_context", scope, artifactId=pointer, limit=5)
    return page.get("content") == '[{"id'


@ERAS
async def test_who_signs_in_reads_his_own_alone(era: str, signed_in: str) -> None:
    async with (
        client(signed_in, era, ANN) as ann,
        client(signed_in, era, ANN) as ann_again,
        client(signed_in, era, BOB) as bob,
    ):
        pointer = (await call(ann, "rows", n=5_000))["pointer"]
        of_bob = (await call(bob, "rows", n=5_000))["pointer"]

        assert pointer != of_bob
        assert await reads(ann, pointer)
        assert await reads(ann_again, pointer)
        assert await denied(bob, pointer)
        assert await denied(bob, pointer, scope="principal:ann")
        assert await denied(ann, of_bob)


async def test_who_does_not_sign_in_is_refused_where_others_must(signed_in: str) -> None:
    async with httpx2.AsyncClient() as http:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        answers = [
            await http.post(signed_in, json=ping, headers={**accept, **headers})
            for headers in ({}, {"Authorization": f"Bearer {BOB}!"})
        ]

    assert [answer.status_code for answer in answers] == [401, 401]


@ERAS
async def test_scopes_that_clients_give_are_apart(era: str, open_to_all: str) -> None:
    one, other = f"{era}-1", f"{era}-2"
    async with client(open_to_all, era) as session:
        pointer = (await call(session, "rows", one, n=5_000))["pointer"]

        assert await reads(session, pointer, one)
        assert await denied(session, pointer, other)
        assert await denied(session, pointer)
        assert await denied(session, pointer, f"meta:{one}")


async def test_sessions_of_the_handshake_era_are_apart(open_to_all: str) -> None:
    async with client(open_to_all, "legacy") as one, client(open_to_all, "legacy") as other:
        pointer = (await call(one, "rows", n=5_000))["pointer"]

        assert await reads(one, pointer)
        assert await denied(other, pointer)


async def test_without_identity_only_the_pointer_itself_opens_what_it_names(
    open_to_all: str,
) -> None:
    async with client(open_to_all, "auto") as one, client(open_to_all, "auto") as other:
        pointer = (await call(one, "rows", n=5_000))["pointer"]
        again = (await call(one, "rows", n=5_000))["pointer"]
        saved = await call(
            one, "retrieve_context", artifactId=pointer, query="$[0]", saveAs="first"
        )

        assert pointer != again
        assert await reads(other, pointer)
        assert saved["error"] == "invalid-argument"
        assert await denied(other, UNISSUED)
        for tried in (UNISSUED, "first", "rows", pointer.removeprefix("art:")[:8]):
            reply = await call(other, "retrieve_context", artifactId=tried)
            assert reply["error"] == "unknown-pointer"
            assert pointer not in str(reply)
            assert "Nearest" not in reply["hint"]
