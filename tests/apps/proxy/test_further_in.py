"""A proxy behind a proxy, each with artifacts of its own: pointers of either work from outside."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, cast

import mcp
import pytest
from mcp import StdioServerParameters

from coatcheck import Bank, Limits
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._settings import Settings
from coatcheck.errors import StoreUnavailableError, UnknownPointerError
from coatcheck.memory import AgentMemory
from coatcheck.records import OWN_TOOLS
from coatcheck.stores import MemoryStore
from coatcheck.tools import artifact_tools, memory_tools, poll_tools, retrieval_tools

SERVER = Path(__file__).parent / "servers" / "plain.py"

Json = dict[str, Any]
TAKES_IDS: Json = {
    "name": "total",
    "inputSchema": {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}},
            "first": {"type": "integer"},
        },
    },
}


def of_text(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


def wire_of(result: Any) -> Json:
    return cast("Json", json.loads(result["content"][0]["text"]))


@pytest.fixture
def inner() -> Acts:
    acts = Acts(Bank(MemoryStore()), Settings())
    acts.tools([TAKES_IDS], upstream="server")
    return acts


@pytest.fixture
def outer(inner: Acts) -> Acts:
    acts = Acts(Bank(MemoryStore()), Settings(limits=Limits(inline_bytes=1_000)))
    acts.tools(
        [*inner.tools([TAKES_IDS], upstream="server"), *inner.own_tools],
        upstream="inner",
        prefixed=True,
    )
    return acts


async def test_a_pointer_from_further_in_is_left_to_the_proxy_that_made_it(
    inner: Acts, outer: Acts
) -> None:
    scope = outer.scope()
    theirs = wire_of(
        await inner.result(inner.scope(), "server", "ids", of_text(json.dumps([1] * 30_000)))
    )["pointer"]
    shown = await outer.result(scope, "inner", "ids", of_text("  " * 600 + "7"))
    ours = wire_of(shown)["pointer"]

    given = await outer.arguments(scope, "inner", "total", {"ids": theirs, "first": ours})
    arrived = await inner.arguments(inner.scope(), "server", "total", given)

    assert given == {"ids": theirs, "first": 7}
    assert arrived == {"ids": [1] * 30_000, "first": 7}
    with pytest.raises(UnknownPointerError):
        await outer.arguments(scope, "another", "total", {"ids": theirs})


async def test_what_is_unknown_here_is_asked_for_further_in(inner: Acts, outer: Acts) -> None:
    scope = outer.scope()
    theirs = wire_of(await inner.result(inner.scope(), "server", "ids", of_text("x" * 60_000)))
    ours = wire_of(await outer.result(scope, "inner", "ids", of_text("x" * 2_000)))

    async def further(artifact_id: object) -> list[str]:
        params = {"name": "retrieve_context", "arguments": {"artifactId": artifact_id}}
        return await outer.readers_further_in(scope, params)

    assert await further(theirs["pointer"]) == ["inner"]
    assert await further(f"{theirs['pointer']}#L1") == ["inner"]
    assert await further(ours["pointer"]) == []
    assert await further(f"{ours['pointer']}#L1") == []
    assert await further("a name") == []
    assert await further(None) == []
    assert await outer.readers_further_in(scope, {}) == []
    assert await inner.readers_further_in(inner.scope(), {"arguments": theirs}) == []
    address = f"art://{theirs['pointer'].removeprefix('art:')}"
    assert await outer.read_resource(scope, address) is None


async def test_in_an_outage_nothing_is_asked_for_further_in(inner: Acts) -> None:
    class Down(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise StoreUnavailableError("no route")

    acts = Acts(Bank(Down()), Settings())
    acts.tools(inner.own_tools, upstream="inner")
    params = {"arguments": {"artifactId": "art:00000000-0000-4000-8000-000000000005"}}

    assert await acts.readers_further_in(acts.scope(), params) == []


@pytest.mark.parametrize("schema", [None, {}, {"properties": []}, {"properties": {"id": {}}}])
async def test_a_tool_that_only_has_the_name_is_no_proxy(schema: object) -> None:
    acts = Acts(Bank(MemoryStore()), Settings())
    acts.tools([{"name": "retrieve_context", "inputSchema": schema}], upstream="other")
    unknown = "art:00000000-0000-4000-8000-000000000005"

    assert await acts.readers_further_in(acts.scope(), {"arguments": {"artifactId": unknown}}) == []


def proxy(folder: Path, name: str, *command: str) -> list[str]:
    options = ["--store", f"file:{folder / name}", "--scope", name, "--no-journal"]
    return [sys.executable, "-m", "coatcheck.apps.cli", "proxy", *options, "--", *command]


async def ask_everything(era: str, folder: Path) -> dict[str, Any]:
    further_in = proxy(folder, "inner", sys.executable, str(SERVER), "--era", "both")
    command, *arguments = proxy(folder, "outer", *further_in)
    parameters = StdioServerParameters(command=command, args=arguments)
    said: dict[str, Any] = {}
    async with mcp.Client(parameters, mode=cast("Any", era)) as session:
        said["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        rows: Any = await session.call_tool("rows", {"n": 5_000})
        pointer = json.loads(rows.content[0].text)["pointer"]
        said["artifacts"] = rows.meta["coatcheck/artifacts"]
        for name, tool, asked in (
            ("page", "retrieve_context", {"artifactId": pointer, "limit": 9}),
            ("total", "total", {"items": f"{pointer}#$[:4].id"}),
            ("unknown", "retrieve_context", {"artifactId": pointer.replace(pointer[4:8], "0000")}),
        ):
            said[name] = await session.call_tool(tool, cast("Any", asked))
        said["resource"] = (await session.read_resource(f"art://{pointer[4:]}")).contents[0]
    return said


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_pointers_from_further_in_work_through_both(era: str, tmp_path: Path) -> None:
    said = asyncio.run(asyncio.wait_for(ask_everything(era, tmp_path), 60))

    assert said["tools"].count("retrieve_context") == 1
    assert len(said["artifacts"]) == 1
    assert json.loads(said["page"].content[0].text)["content"].startswith('[{"id')
    assert said["total"].is_error is False
    assert said["unknown"].is_error is True
    assert json.loads(said["unknown"].content[0].text)["error"] == "unknown-pointer"
    assert json.loads(said["resource"].text)[4_999]["id"] == 4_999
    assert not list((tmp_path / "outer").glob("**/payloads/*"))


def tools_of_ours() -> list[Json]:
    bank = Bank(MemoryStore())
    own = [*retrieval_tools(bank), *artifact_tools(bank), *poll_tools(bank)]
    own += memory_tools(AgentMemory(bank))
    return [
        {
            "name": each.name,
            "description": each.description,
            "inputSchema": dict(each.parameters),
        }
        for each in own
    ]


OWN = {tool["name"]: tool for tool in tools_of_ours()}
OURS = {name: tool["description"] for name, tool in OWN.items()}


@pytest.mark.parametrize("name", sorted(OWN_TOOLS))
async def test_a_tool_of_ours_further_in_is_left_alone_and_one_only_called_so_is_not(
    name: str,
) -> None:
    acts = Acts(Bank(MemoryStore()), Settings(limits=Limits(inline_bytes=1_000)))
    scope = acts.scope()
    theirs = {**TAKES_IDS, "name": name}
    large = of_text("x" * 5_000)

    listed = acts.tools([OWN[name]], upstream="ours", prefixed=True)
    widened = acts.tools([theirs], upstream="theirs", prefixed=True)

    assert listed == [OWN[name]]
    assert widened != [theirs]
    assert await acts.result(scope, "ours", name, large) == large
    shown = await acts.result(scope, "theirs", name, large)
    pointer = wire_of(shown)["pointer"]
    given = await acts.arguments(scope, "theirs", name, {"text": pointer})
    assert given == {"text": "x" * 5_000}
    assert await acts.arguments(scope, "ours", name, {"text": pointer}) == {"text": pointer}


async def test_a_reader_of_another_version_is_ours_and_another_tool_with_one_more_is_not() -> None:
    acts = Acts(Bank(MemoryStore()), Settings())

    for name, is_ours in (("retrieve_context", True), ("getArtifact", False)):
        properties = {**OWN[name]["inputSchema"]["properties"], "since": {"type": "array"}}
        tool = {"name": name, "inputSchema": {"type": "object", "properties": properties}}
        listed = acts.tools([tool], upstream="server", prefixed=True)
        assert (listed == [tool]) is is_ours


@pytest.mark.parametrize("name", [["x"], {}, None, 3])
async def test_a_tool_whose_name_is_no_text_breaks_no_list(name: object) -> None:
    acts = Acts(Bank(MemoryStore()), Settings())

    assert len(acts.tools([{**TAKES_IDS, "name": name}], upstream="a", prefixed=True)) == 1


async def test_a_tool_that_is_ours_no_more_is_treated_as_any() -> None:
    acts = Acts(Bank(MemoryStore()), Settings())
    ours = acts.tools([OWN["memory_read"]], upstream="server", prefixed=True)
    assert ours == [OWN["memory_read"]]
    theirs = {**TAKES_IDS, "name": "memory_read"}

    assert acts.tools([theirs], upstream="server", prefixed=True) != [theirs]


async def test_before_tools_were_listed_those_of_ours_are_known_by_name() -> None:
    acts = Acts(Bank(MemoryStore()), Settings(limits=Limits(inline_bytes=1_000)))
    scope, large = acts.scope(), of_text("x" * 5_000)
    pointer = wire_of(await acts.result(scope, "a", "rows", of_text("[1]" + " " * 2_000)))[
        "pointer"
    ]
    asked = 0

    async def listing() -> list[Json]:
        nonlocal asked
        asked += 1
        return [OWN["memory_read"], {**TAKES_IDS, "name": "getArtifact"}]

    assert await acts.result(scope, "a", "memory_read", large) == large
    assert await acts.result(scope, "a", "rows", large) != large
    keys = {"keys": [pointer]}
    assert await acts.arguments(scope, "a", "memory_read", keys, listing=listing) == keys
    ids = {"ids": pointer}
    assert await acts.arguments(scope, "a", "getArtifact", ids, listing=listing) == {"ids": [1]}
    assert asked == 1
    assert await acts.result(scope, "a", "memory_read", large) == large
    assert await acts.result(scope, "a", "getArtifact", large) != large


@pytest.mark.parametrize("description", ["Lists what the build made.", None])
async def test_a_tool_without_parameters_is_ours_by_its_description(
    description: str | None,
) -> None:
    acts = Acts(Bank(MemoryStore()), Settings(limits=Limits(inline_bytes=1_000)))
    tool = {**OWN["listArtifacts"], "description": description or OURS["listArtifacts"]}
    acts.tools([tool], upstream="build", prefixed=True)
    large = of_text("x" * 5_000)

    shown = await acts.result(acts.scope(), "build", "listArtifacts", large)

    assert (shown == large) == (description is None)
