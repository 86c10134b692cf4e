"""FastMCP servers with the middleware: a scripted model reads what FastMCP's own client gets."""

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import mcp_types as mt
import pytest
import uvicorn
from anyio import to_thread
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.sessions import current_principal
from fastmcp.tools import ToolResult
from fastmcp.utilities.types import Image
from mcp import MCPError

from coatcheck import Bank, Limits
from coatcheck.adapters.fastmcp import CoatcheckMiddleware
from coatcheck.bank import Journal, read_journal
from coatcheck.stores import MemoryStore
from coatcheck.testing import (
    INSTRUCTIONS,
    PROMPT,
    AdapterSuite,
    How,
    ModelCall,
    ScriptedModel,
    Seen,
    Turn,
    free_port,
)

LIMITS = Limits(inline_bytes=1_000)
SCOPE = "coatcheck/scope"
UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def wire(block: Any) -> dict[str, Any]:
    """Return a block or a tool as it is sent."""
    told: dict[str, Any] = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    return told


def text_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@asynccontextmanager
async def over_http(server: FastMCP[Any]) -> AsyncGenerator[str]:
    """Serve over streamable HTTP, and yield the address."""
    port = free_port()
    config = uvicorn.Config(server.http_app(), host="127.0.0.1", port=port, log_level="critical")
    serving = uvicorn.Server(config)
    task = asyncio.create_task(serving.serve())
    while not serving.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        serving.should_exit = True
        await task


class TestHandshake(AdapterSuite):
    """A client of the handshake era; a session is a scope in the `_meta` of its requests.

    MCP has no model: what is its request here is what a host would send it. A streamed run is one
    over streamable HTTP, a sync one has an event loop of its own.
    """

    mode: ClassVar[str] = "legacy"
    cannot: ClassVar[Mapping[str, str]] = {
        "test_envelope_that_was_dropped_is_found_by_the_name_of_its_call": (
            "a call of MCP has no id, so that the artifact has no name"
        ),
        "test_tool_with_the_name_of_ours_is_refused": (
            "a server may come to have tools of others as it runs: ours is listed, the log says so"
        ),
    }

    async def run(
        self,
        bank: Bank,
        tools: Sequence[Any],
        script: Sequence[Turn],
        *,
        session: str | None = None,
        limits: Limits | None = None,
        how: How = "async",
    ) -> Seen:
        middleware = CoatcheckMiddleware(bank, limits=limits)
        server = FastMCP("shop", instructions=INSTRUCTIONS, middleware=[middleware])
        for each in tools:
            server.tool(each)
        model = ScriptedModel(script)
        meta = None if session is None else {SCOPE: session}

        async def talk(target: Any) -> Seen:
            async with Client(target, mode=self.mode) as client:
                return await talked(client, model, meta)

        if how == "sync":
            return await to_thread.run_sync(lambda: asyncio.run(talk(server)))
        if how == "stream":
            async with over_http(server) as url:
                return await talk(url)
        return await talk(server)

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckMiddleware(bank).bank_for(session)

    def photo(self, text: str, image: bytes) -> Any:
        def photo() -> list[Any]:
            """Take a photo."""
            return [text, Image(data=image, format="png")]

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> Any:
        def inject(items: list[dict[str, int]], context: Context) -> str:
            """Take what is injected."""
            return take(context, items)

        return inject


class TestModern(TestHandshake):
    """A client of the modern era."""

    mode: ClassVar[str] = "auto"


async def talked(client: Client[Any], model: ScriptedModel, meta: dict[str, Any] | None) -> Seen:
    """Let a model talk to a server until it has an answer."""
    images: list[bytes] = []
    messages: list[object] = [["user", PROMPT]]
    results: dict[str, str] = {}
    while True:
        tools = [wire(each) for each in await client.list_tools()]
        head = [client.instructions, tools]
        said = model.reply("\n".join(map(text_of, [*head, *messages])), results)
        if isinstance(said, str):
            break
        messages.append([asdict(each) for each in said])
        results |= dict(
            await asyncio.gather(*(called(client, each, meta, images) for each in said))
        )
        messages += [results[each.id] for each in said]
    return Seen(
        requests=model.requests,
        results=model.results,
        history=text_of(messages),
        output=said,
        images=images,
    )


async def called(
    client: Client[Any], call: ModelCall, meta: dict[str, Any] | None, images: list[bytes]
) -> tuple[str, str]:
    result = await client.call_tool(
        call.name, dict(call.arguments), meta=meta, raise_on_error=False
    )
    blocks = [wire(block) for block in result.content]
    images += [base64.b64decode(block["data"]) for block in blocks if block["type"] == "image"]
    texts = [block for block in blocks if block["type"] == "text"]
    return call.id, text_of({"content": texts, "isError": result.is_error})


def rows(n: int) -> list[dict[str, int]]:
    """Return rows."""
    return [{"id": 70_000_000 + number, "price": number} for number in range(n)]


def total(items: list[dict[str, int]]) -> int:
    """Return the sum of prices."""
    return sum(item["price"] for item in items)


def shop(bank: Bank, *tools: Any, **options: Any) -> FastMCP[Any]:
    """Return a server with the middleware and some tools."""
    server: FastMCP[Any] = FastMCP(
        "shop", middleware=[CoatcheckMiddleware(bank, limits=LIMITS)], **options
    )
    for each in tools or (rows, total):
        server.tool(each)
    return server


def pointer_of(result: Any, block: int = 0) -> str:
    return str(json.loads(result.content[block].text)["pointer"])


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), scope="shop")


@ERAS
async def test_small_results_errors_and_all_else_are_as_without_the_middleware(
    bank: Bank, mode: str
) -> None:
    def fail() -> str:
        raise ToolError("no such customer")

    plain: FastMCP[Any] = FastMCP("shop")
    for each in (rows, total, fail):
        plain.tool(each)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("rows", {"n": 3}),
        ("total", {"items": [{"price": 2}]}),
        ("total", {"items": ["x"]}),
        ("fail", {}),
        ("not there", {}),
    ]
    async with (
        Client(plain, mode=mode) as without,
        Client(shop(bank, rows, total, fail), mode=mode) as client,
    ):
        for name, arguments in calls:
            told = await client.call_tool(name, arguments, raise_on_error=False)
            assert told == await without.call_tool(name, arguments, raise_on_error=False)
        assert (await bank.usage()).artifacts == 0


@ERAS
async def test_envelope_stands_for_text_and_structured_content_with_a_link_for_programs(
    bank: Bank, mode: str
) -> None:
    async with Client(shop(bank), mode=mode) as client:
        result = await client.call_tool("rows", {"n": 100})

        assert result.structured_content is None
        _, link = result.content
        assert link.type == "resource_link"
        assert link.annotations is not None
        assert link.annotations.audience == ["user"]
        assert await bank.get(pointer_of(result)) == rows(100)
        (read,) = await client.read_resource(link.uri)
        assert json.loads(wire(read)["text"]) == rows(100)


@ERAS
async def test_tools_are_listed_open_to_pointers_and_without_a_schema_of_results(
    bank: Bank, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = FastMCP[Any](
        "shop",
        middleware=[CoatcheckMiddleware(bank, limits=Limits(never=frozenset({"total"})))],
    )
    server.tool(rows)
    server.tool(total)

    def retrieve_context() -> str:
        """Be called as ours is."""
        return "not ours"

    server.tool(retrieve_context)
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        listed = {each.name: each for each in await client.list_tools()}
        reply = await client.call_tool(
            "retrieve_context", {"artifactId": UNKNOWN}, raise_on_error=False
        )

    assert [*listed] == ["rows", "total", "retrieve_context"]
    assert "art" not in text_of(wire(listed["rows"])["inputSchema"])
    assert len(wire(listed["total"])["inputSchema"]["properties"]["items"]["anyOf"]) == 2
    assert listed["rows"].output_schema is None
    assert "coatcheck/outputSchema" in (listed["rows"].meta or {})
    assert listed["total"].output_schema is not None  # it is never offloaded
    assert "artifactId" in wire(listed["retrieve_context"])["inputSchema"]["properties"]
    assert "unknown-pointer" in wire(reply.content[0])["text"]
    assert caplog.text.count("a tool retrieve_context of its own") == 1


async def test_summary_stays_and_what_is_structured_beside_it_is_offloaded(bank: Bank) -> None:
    def report() -> ToolResult:
        return ToolResult(content="100 rows", structured_content={"rows": rows(100)})

    async with Client(shop(bank, report)) as client:
        result = await client.call_tool("report", {})

    assert result.content[0] == mt.TextContent(type="text", text="100 rows")
    assert await bank.get(pointer_of(result, 1)) == {"rows": rows(100)}
    assert result.structured_content is None


async def test_large_text_is_offloaded_and_what_is_structured_beside_it_stays(bank: Bank) -> None:
    def report() -> ToolResult:
        return ToolResult(content="line\n" * 500, structured_content={"lines": 500})

    async with Client(shop(bank, report)) as client:
        result = await client.call_tool("report", {})

    assert await bank.get(pointer_of(result)) == "line\n" * 500
    assert result.structured_content == {"lines": 500}


async def test_many_texts_are_one_list_and_a_few_are_offloaded_each(bank: Bank) -> None:
    def blocks(n: int) -> ToolResult:
        texts = [mt.TextContent(type="text", text=text_of({"id": each})) for each in range(n)]
        return ToolResult(content=texts)

    def two() -> ToolResult:
        texts = [mt.TextContent(type="text", text=text * 200) for text in ("short", "a long one")]
        return ToolResult(content=texts)

    async with Client(shop(bank, blocks, two)) as client:
        many = await client.call_tool("blocks", {"n": 200})
        few = await client.call_tool("two", {})

    assert await bank.get(pointer_of(many)) == [{"id": each} for each in range(200)]
    assert [each.type for each in few.content] == ["text", "text", "resource_link", "resource_link"]
    assert await bank.get(pointer_of(few, 1)) == "a long one" * 200


async def test_embedded_text_is_offloaded_and_bytes_are_left_alone(bank: Bank) -> None:
    def files() -> ToolResult:
        text = mt.TextResourceContents(uri="file:///a.log", text="line\n" * 500)
        blob = mt.BlobResourceContents(uri="file:///a.bin", blob="AAAA" * 500)
        return ToolResult(
            content=[mt.EmbeddedResource(type="resource", resource=each) for each in (text, blob)]
        )

    async with Client(shop(bank, files)) as client:
        result = await client.call_tool("files", {})

    assert await bank.get(pointer_of(result)) == "line\n" * 500
    assert wire(result.content[1])["resource"]["blob"] == "AAAA" * 500


@ERAS
async def test_large_error_is_offloaded_and_stays_an_error(bank: Bank, mode: str) -> None:
    def fail() -> str:
        raise ToolError("line of a trace\n" * 100)

    def told() -> ToolResult:
        return ToolResult(content="line of an answer\n" * 100, is_error=True)

    async with Client(shop(bank, fail, told), mode=mode) as client:
        for name in ("fail", "told"):
            result = await client.call_tool(name, {}, raise_on_error=False)
            assert result.is_error
            assert json.loads(wire(result.content[0])["text"])["isError"] is True
            assert "line of a" in str(await bank.get(pointer_of(result)))


async def test_tool_that_asks_its_client_first_is_left_alone_and_resolved_in_both_rounds(
    bank: Bank,
) -> None:
    taken: list[object] = []

    async def ask(items: list[dict[str, int]], context: Context) -> Any:
        """Ask first."""
        taken.append(items)
        if not context.input_responses:
            form = mt.ElicitRequestFormParams(
                message="Sure?", requested_schema={"type": "object", "properties": {}}
            )
            request = mt.ElicitRequest(method="elicitation/create", params=form)
            return mt.InputRequiredResult(
                result_type="input_required", input_requests={"sure": request}
            )
        return total(items)

    async def yes(*_: Any) -> Any:
        return {}

    pointer = (await bank.put(rows(100))).pointer
    async with Client(shop(bank, ask), elicitation_handler=yes) as client:
        result = await client.call_tool("ask", {"items": pointer})

    assert result.content[0] == mt.TextContent(type="text", text="4950")
    assert taken == [rows(100), rows(100)]


@ERAS
async def test_resources_of_the_server_and_artifacts_are_read_side_by_side(
    bank: Bank, mode: str
) -> None:
    server = shop(bank)

    @server.resource("data://hello")
    def hello() -> str:
        return "hello"

    log = await bank.put("né\nline\n" * 100)
    image = await bank.put(b"\x89PNG\r\n\x1a\n" + bytes(99), content_type="image/png")
    async with Client(server, mode=mode) as client:
        (template,) = await client.list_resource_templates()
        assert template.uri_template == "art://{id}{?offset,limit}"
        (read,) = await client.read_resource("data://hello")
        assert wire(read)["text"] == "hello"
        (read,) = await client.read_resource(f"art://{log.id}?offset=3&limit=4")
        assert (wire(read)["text"], read.mime_type) == ("line", "text/plain")
        (read,) = await client.read_resource(f"art://{image.id}")
        assert base64.b64decode(wire(read)["blob"]) == await bank.payload(image.pointer)
        for wrong, told in (
            (f"art://{UNKNOWN[4:]}", "No artifact behind"),
            ("art://not-an-id", "No artifact behind"),
            (f"art://{log.id}?offset=-1", "is no part of a window"),
        ):
            with pytest.raises(MCPError, match=told):
                await client.read_resource(wrong)


async def test_callers_over_http_have_scopes_by_session_and_meta(bank: Bank) -> None:
    async with over_http(shop(bank)) as url:
        async with Client(url, mode="legacy") as one, Client(url, mode="legacy") as two:
            pointer = pointer_of(await one.call_tool("rows", {"n": 100}))
            assert (await one.call_tool("total", {"items": pointer})).data == 4950
            with pytest.raises(ToolError, match="unknown-pointer"):
                await two.call_tool("total", {"items": pointer})
        async with Client(url) as one:
            named = {SCOPE: "run-42"}
            pointer = pointer_of(await one.call_tool("rows", {"n": 100}, meta=named))
            assert (await one.call_tool("total", {"items": pointer}, meta=named)).data == 4950
            for other in (None, {SCOPE: "run-43"}):
                with pytest.raises(ToolError, match="unknown-pointer"):
                    await one.call_tool("total", {"items": pointer}, meta=other)
            for wrong in ("", "x" * 201, 7):
                with pytest.raises(ToolError, match="is a text of 1 to 200 characters"):
                    await one.call_tool("rows", {"n": 1}, meta={SCOPE: wrong})

    own = CoatcheckMiddleware(bank).bank_for("run-42")
    assert await own.get(pointer) == rows(100)


async def test_caller_whom_nothing_tells_apart_is_opened_what_he_has_a_pointer_to_and_no_more(
    bank: Bank,
) -> None:
    async with over_http(shop(bank)) as url, Client(url) as one, Client(url) as two:
        pointer = pointer_of(await one.call_tool("rows", {"n": 100}))
        # The same rows again: who asks for them learns nothing of the other's pointer.
        own = pointer_of(await two.call_tool("rows", {"n": 100}))
        assert pointer != own
        assert (await two.call_tool("total", {"items": pointer})).data == 4950
        (read,) = await two.read_resource(f"art://{pointer[4:]}?limit=4")
        assert wire(read)["text"] == '[{"i'
        asked: list[tuple[str, dict[str, Any]]] = [
            ("total", {"items": UNKNOWN}),
            ("retrieve_context", {"artifactId": UNKNOWN}),
            ("retrieve_context", {"artifactId": "rows"}),
            ("retrieve_context", {"artifactId": pointer, "query": "$", "saveAs": "mine"}),
            ("retrieve_context", {"artifactId": own, "query": "SELECT * FROM orders"}),
            ("retrieve_context", {"artifactId": own, "query": f'SELECT * FROM "{UNKNOWN}"'}),
            ("retrieve_context", {"artifactId": own, "search": "(", "regex": True}),
            ("retrieve_context", {"artifactId": f"{own}#nothing"}),
        ]
        for name, arguments in asked:
            result = await two.call_tool(name, arguments, raise_on_error=False)
            assert result.is_error
            told = set(IDS.findall(wire(result.content[0])["text"]))
            assert told <= set(IDS.findall(text_of(arguments))), arguments
        with pytest.raises(MCPError) as raised:
            await two.read_resource(f"art://{UNKNOWN[4:]}")
        assert "Nearest" not in str(raised.value)

    anonymous = bank.scoped("shop/session/anonymous")
    artifact = await anonymous.find(pointer)
    assert artifact is not None
    assert artifact.expires_at is not None
    assert (artifact.expires_at - artifact.stored_at).total_seconds() == 3_600


@ERAS
async def test_who_signed_in_has_a_scope_that_no_meta_can_name(bank: Bank, mode: str) -> None:
    tokens: dict[str, Any] = {name: {"client_id": name, "scopes": []} for name in ("ann", "ben")}
    principals: list[str | None] = []

    def whoami() -> str:
        principals.append(current_principal())
        return "noted"

    server = shop(bank, rows, total, whoami, auth=StaticTokenVerifier(tokens=tokens))
    async with over_http(server) as url:
        async with Client(url, mode=mode, auth="ann") as ann:
            await ann.call_tool("whoami", {})
            pointer = pointer_of(await ann.call_tool("rows", {"n": 100}))
        async with Client(url, mode=mode, auth="ann") as ann:
            assert (await ann.call_tool("total", {"items": pointer})).data == 4950
        async with Client(url, mode=mode, auth="ben") as ben:
            for meta in (None, {SCOPE: "ann"}, {SCOPE: str(principals[0])}):
                with pytest.raises(ToolError, match="unknown-pointer"):
                    await ben.call_tool("total", {"items": pointer}, meta=meta)

    own = CoatcheckMiddleware(bank).bank_for(principals[0], kind="principal")
    assert await own.get(pointer) == rows(100)


SERVER = """
import sys
from fastmcp import FastMCP
from coatcheck import Bank, Limits
from coatcheck.adapters.fastmcp import CoatcheckMiddleware
from coatcheck.stores import FileStore

bank = Bank(FileStore(sys.argv[1]), scope="mine")
middleware = CoatcheckMiddleware(bank, limits=Limits(inline_bytes=1_000))
server = FastMCP("shop", middleware=[middleware])


@server.tool
def rows(n: int) -> list[dict[str, int]]:
    return [{"id": number, "price": number} for number in range(n)]


@server.tool
def total(items: list[dict[str, int]]) -> int:
    return sum(item["price"] for item in items)


server.run(show_banner=False)
"""


@ERAS
async def test_over_stdio_a_chat_that_is_resumed_finds_its_pointers(
    tmp_path: Path, mode: str
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    arguments = [str(tmp_path / "server.py"), str(tmp_path / "store")]

    def started() -> Client[Any]:
        return Client(StdioTransport(sys.executable, arguments, keep_alive=False), mode=mode)

    async with started() as client:
        pointer = pointer_of(await client.call_tool("rows", {"n": 100}))
    async with started() as client:
        assert (await client.call_tool("total", {"items": pointer})).data == 4950


@ERAS
async def test_pointers_flow_between_the_servers_behind_a_proxy(bank: Bank, mode: str) -> None:
    one: FastMCP[Any] = FastMCP("one", instructions="Ask for rows.")
    one.tool(rows)
    two: FastMCP[Any] = FastMCP("two")
    two.tool(total)
    front = create_proxy(one, middleware=[CoatcheckMiddleware(bank, limits=LIMITS)])
    front.mount(create_proxy(two), namespace="b")

    async with Client(front, mode=mode) as client:
        instructions = client.instructions
        pointer = pointer_of(await client.call_tool("rows", {"n": 100}))
        result = await client.call_tool("b_total", {"items": pointer})

    assert wire(result.content[0])["text"] == "4950"
    assert instructions == (
        "Ask for rows.\n\nLarge results come as pointers: pass one as an argument, or use"
        " retrieve_context."
    )


async def test_journal_keeps_what_was_given_and_what_was_banked(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path) as journal:
        bank = Bank(MemoryStore(), journal=journal)
        async with Client(shop(bank)) as client:
            pointer = pointer_of(await client.call_tool("rows", {"n": 100}))
            await client.call_tool("total", {"items": pointer})
            await client.call_tool("total", {"items": UNKNOWN}, raise_on_error=False)

    noted = [each for each in read_journal(path) if each.verb == "tool"]
    assert [(each.tool, each.pointers_in, each.is_error) for each in noted] == [
        ("rows", (), False),
        ("total", (pointer,), False),
        ("total", (UNKNOWN,), True),
    ]
    assert noted[0].pointers_out == (pointer,)
