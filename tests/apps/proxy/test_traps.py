"""What proxies of this kind got wrong, with the official client, in both eras.

One session of each era asks for everything, over the program as a host starts it; each test looks
at one thing it said.
"""

import asyncio
import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import mcp
import pytest
from mcp import StdioServerParameters
from mcp_types import CallToolResult

SERVERS = Path(__file__).parent / "servers"
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}

Json = dict[str, Any]


def client(era: str, folder: Path, scope: str = "one", server: str = "typed.py") -> mcp.Client:
    options = ["--store", f"file:{folder}", "--scope", scope, "--no-journal"]
    command = [sys.executable, str(SERVERS / server)]
    arguments = ["-m", "coatcheck.apps.cli", "proxy", *options, "--", *command]
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    return mcp.Client(parameters, mode=cast("Any", era))


class Said:
    """All that was answered in one era."""

    def __init__(self) -> None:
        self.version = ""
        self.tools: Json = {}
        self.again: Json = {}
        self.results: dict[str, CallToolResult] = {}
        self.read: dict[str, str] = {}
        self.resource: Any = None

    def blocks(self, name: str) -> list[Any]:
        return list(self.results[name].content)

    def envelope(self, name: str, at: int = 0) -> Json:
        return cast("Json", json.loads(self.blocks(name)[at].text))

    def reply(self, name: str) -> Json:
        return self.envelope(name)


async def whole(session: mcp.Client, pointer: str) -> str:
    windows: list[str] = []
    offset: int | None = 0
    while offset is not None:
        asked = {"artifactId": pointer, "offset": offset}
        result: Any = await session.call_tool("retrieve_context", asked)
        page = json.loads(result.content[0].text)
        windows.append(page["content"])
        offset = page.get("nextOffset")
    return "".join(windows)


async def first_session(said: Said, session: mcp.Client) -> None:
    said.version = session.protocol_version
    said.tools = (await session.list_tools()).model_dump(by_alias=True, exclude_none=True)

    async def call(name: str, tool: str, /, **arguments: object) -> Json:
        said.results[name] = await session.call_tool(tool, arguments)
        text: Any = said.results[name].content[0]
        return cast("Json", json.loads(text.text)) if text.text.startswith("{") else {}

    table = await call("table", "table", n=3_000)
    rows = await call("rows", "rows", n=3_000)
    await call("few", "rows", n=3)
    page = await call("page", "page", n=9_000)
    await call("page again", "page", n=9_000)
    trace = await call("fail", "fail")
    shot = await call("shot", "shot")
    odd = await call("odd", "odd")
    for name, found in (("table", table), ("page", page), ("fail", trace), ("odd", odd)):
        said.read[name] = await whole(session, found["pointer"])
    await call("total", "total", ids=f"{rows['pointer']}#$[*].id", first=f"{rows['pointer']}#/1/id")
    await call("wrong", "total", ids=rows["pointer"])
    await call("length", "length", body=page["pointer"])
    await call(
        "count", "retrieve_context", artifactId=f"{table['pointer']}#/items", query="length(@)"
    )
    await call("search", "retrieve_context", artifactId=shot["pointer"], search="a", limit=50_000)
    await call("most", "retrieve_context", artifactId=shot["pointer"], limit=1_000_000)
    await call("line", "retrieve_context", artifactId=page["pointer"], search="\U0001f466")
    await call("unknown", "retrieve_context", artifactId="art:00000000-0000-4000-8000-000000000005")
    uri = f"art://{table['pointer'].removeprefix('art:')}"
    said.resource = (await session.read_resource(uri)).contents[0]


async def ask_everything(era: str, folder: Path) -> Said:
    said = Said()
    async with client(era, folder) as session:
        await first_session(said, session)
    pointer = said.envelope("page")["pointer"]
    async with client(era, folder) as session, client(era, folder, "two", "plain.py") as other:
        said.again = (await session.list_tools()).model_dump(by_alias=True, exclude_none=True)
        said.read["after a restart"] = await whole(session, pointer)
        said.results["after a restart"] = await session.call_tool("page", {"n": 9_000})
        said.results["a pointer first"] = await session.call_tool("length", {"body": pointer})
        for name, tool, argument in (
            ("other reads", "retrieve_context", "artifactId"),
            ("other passes", "echo", "text"),
        ):
            said.results[name] = await other.call_tool(tool, {argument: pointer})
    return said


@pytest.fixture(scope="module", params=["legacy", "auto"])
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("store")
    found = asyncio.run(asyncio.wait_for(ask_everything(request.param, folder), 60))
    assert found.version == ERAS[request.param]
    return found


def schema_of(tools: Mapping[str, Any], name: str) -> Json:
    return next(tool for tool in tools["tools"] if tool["name"] == name)


def test_our_own_tool_answers_in_this_era(said: Said) -> None:
    assert said.results["most"].is_error is False
    assert said.results["unknown"].is_error is True
    assert said.reply("unknown")["error"] == "unknown-pointer"


def test_a_replaced_result_passes_the_check_of_the_client(said: Said) -> None:
    assert "outputSchema" not in schema_of(said.tools, "table")
    assert "coatcheck/outputSchema" in schema_of(said.tools, "table")["_meta"]
    assert said.results["table"].is_error is False
    assert said.reply("count")["value"] == 3_000


def test_a_small_result_keeps_its_structured_content(said: Said) -> None:
    structured: Any = said.results["few"].structured_content

    assert [row["id"] for row in structured["result"]] == [0, 1, 2]
    assert len(said.blocks("few")) == 3


@pytest.mark.parametrize("name", ["table", "rows", "page"])
def test_the_structured_copy_is_gone_with_what_it_repeats(said: Said, name: str) -> None:
    result = said.results[name]

    assert result.structured_content is None
    assert [block.type for block in result.content] == ["text", "resource_link"]
    assert len(result.model_dump_json()) < 3_000


def test_the_flag_of_a_failure_stays_and_its_last_line_is_seen(said: Said) -> None:
    assert said.results["fail"].is_error is True
    assert "ValueError: boom 42" in said.envelope("fail")["glimpse"]
    assert said.read["fail"].endswith("ValueError: boom 42")
    assert said.results["wrong"].is_error is True
    assert "argument 'ids'[0] does not fit its type" in said.reply("wrong")["message"]


def test_an_image_beside_a_large_text_is_kept_in_its_place(said: Said) -> None:
    first, image, last, link = said.blocks("shot")

    assert json.loads(first.text)["sizeBytes"] == 60_000
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert last.text == "end"
    assert link.type == "resource_link"


def test_no_character_is_cut_in_a_preview_or_a_search(said: Said) -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    preview, _, _ = said.envelope("page")["preview"].partition(" … ")

    assert preview == family * (len(preview) // len(family))
    assert preview
    snippets = [match["snippet"] for match in said.reply("line")["matches"]]
    assert len(snippets) == 50
    assert all(snippet == family * (len(snippet) // len(family)) for snippet in snippets)


def test_what_was_sent_is_read_back_byte_for_byte(said: Said) -> None:
    expected = '{"a": 1, "a": 2, "n": NaN, "f": 1.0, "pad": "' + "x" * 60_000 + '"}'

    assert said.read["odd"] == expected
    assert len(json.loads(said.read["table"])["items"]) == 3_000
    assert said.resource.text == said.read["table"]
    assert said.resource.mime_type == "application/json"


def test_the_same_result_is_the_same_envelope_and_the_same_list_the_same_bytes(said: Said) -> None:
    shown = {
        said.results[name].model_dump_json() for name in ("page", "page again", "after a restart")
    }

    assert len(shown) == 1
    assert said.tools == said.again


def test_a_pointer_survives_a_restart(said: Said) -> None:
    assert said.read["after a restart"] == said.read["page"]
    assert said.blocks("a pointer first")[0].text == str(len(said.read["page"]))


def test_another_client_can_neither_read_nor_pass_a_pointer(said: Said) -> None:
    pointer = said.envelope("page")["pointer"]

    for name in ("other reads", "other passes"):
        assert said.results[name].is_error is True
        reply = said.reply(name)
        assert reply["error"] == "unknown-pointer"
        assert reply["message"] == f"No artifact behind {pointer!r}."
        assert pointer not in reply["hint"]


def test_every_read_is_bounded(said: Said) -> None:
    assert len(said.reply("search")["matches"]) == 50
    assert len(said.reply("most")["content"]) == 60_000
    assert all(
        len(block.text) < 300_000
        for result in said.results.values()
        for block in cast("list[Any]", result.content)
        if block.type == "text"
    )


def test_pointers_arrive_as_what_the_tool_takes(said: Said) -> None:
    assert said.blocks("total")[0].text == str(sum(range(3_000)) + 1)
    assert said.blocks("length")[0].text == str(len(said.read["page"]))
