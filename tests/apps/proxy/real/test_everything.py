"""Every tool of `server-everything` gives through the proxy what it gives directly."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
import mcp
import mcp_types
import pytest
from pydantic import FileUrl

from .conftest import RealServers, client_of

Proxy = Callable[..., list[str]]

CALLS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hällo\u2028 \U0001f600"},
    "get-annotated-message": {"messageType": "error", "includeImage": True},
    "get-env": {},
    "get-resource-links": {"count": 4},
    "get-resource-reference": {"resourceType": "Blob", "resourceId": 2},
    "get-roots-list": {},
    "get-structured-content": {"location": "Chicago"},
    "get-sum": {"a": 1.5, "b": 2},
    "get-tiny-image": {},
    "gzip-file-as-resource": {"name": "a.gz", "data": "data:text/plain,hello"},
    "simulate-research-query": {"topic": "x"},
    "toggle-simulated-logging": {},
    "toggle-subscriber-updates": {},
    "trigger-elicitation-request": {},
    "trigger-long-running-operation": {"duration": 0.2, "steps": 2},
    "trigger-sampling-request": {"prompt": "say", "maxTokens": 5},
    "trigger-url-elicitation": {"url": "https://example.org/", "elicitationId": "e1"},
}
MORE_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("gzip-file-as-resource", {"name": "b", "data": "data:,x", "outputType": "resource"}),
    ("get-sum", {"a": "no number"}),
    ("echo", {}),
    ("no-such-tool", {}),
    ("get-structured-content", {"location": "Nowhere"}),
]
TIME = re.compile(r"\d{1,2}:\d{2}:\d{2}(?:\.\d+Z?)?(?: ?[AP]M)?|\d{4}-\d\d-\d\dT[\d:.]+Z")


async def elicited(_context: object, params: Any) -> mcp_types.ElicitResult:
    is_form = getattr(params, "mode", "") != "url"
    content: dict[str, Any] | None = {"name": "Ada", "check": True} if is_form else None
    return mcp_types.ElicitResult(action="accept", content=content)


async def sampled(_context: object, params: Any) -> mcp_types.CreateMessageResult:
    said = mcp_types.TextContent(type="text", text=f"{params.max_tokens} tokens at most")
    return mcp_types.CreateMessageResult(role="assistant", content=said, model="a model")


async def rooted(_context: object) -> mcp_types.ListRootsResult:
    root = mcp_types.Root(uri=FileUrl("file:///somewhere"), name="somewhere")
    return mcp_types.ListRootsResult(roots=[root])


def masked(result: Any) -> Any:
    """Return a result without clock times, also inside base64, and without `_meta`."""
    if isinstance(result, dict):
        members = cast("dict[str, Any]", result)
        each = {key: masked(value) for key, value in members.items() if key != "_meta"}
        if isinstance(each.get("blob"), str):
            blob = b64decode(each["blob"])
            text = blob.decode("utf-8", "replace")
            each["blob"] = b64encode(TIME.sub("TIME", text).encode()).decode()
        return each
    if isinstance(result, list):
        return [masked(value) for value in cast("list[object]", result)]
    return TIME.sub("TIME", result) if isinstance(result, str) else result


async def called(client: mcp.Client, tool: str, arguments: dict[str, Any]) -> Any:
    """Return what a call gives, an error of the protocol too."""
    try:
        result = await client.call_tool(tool, arguments)
    except mcp.MCPError as error:
        return f"MCPError {error.error.code}: {error.error.message}"
    return masked(result.model_dump(by_alias=True, mode="json", exclude_none=True))


async def all_called(client: mcp.Client) -> dict[str, Any]:
    calls = [*CALLS.items(), *MORE_CALLS]
    given: dict[str, Any] = {}
    for tool, arguments in calls:
        given[f"{tool} {json.dumps(arguments)}"] = await called(client, tool, arguments)
    return given


async def tool_names(client: mcp.Client, count: int) -> list[str]:
    """Return the names of the tools, once the server has asked for the roots and has them all."""
    with anyio.fail_after(10):
        while len(names := [tool.name for tool in (await client.list_tools()).tools]) < count:
            await anyio.sleep(0.02)
    return names


def whole(mode: str) -> dict[str, Any]:
    return {
        "mode": mode,
        "elicitation_callback": elicited,
        "sampling_callback": sampled,
        "list_roots_callback": rooted,
    }


@pytest.fixture(scope="module")
async def direct(real: RealServers) -> dict[str, Any]:
    async with client_of(real.everything(), **whole("auto")) as client:
        assert sorted(await tool_names(client, 17)) == sorted(CALLS)
        return await all_called(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_tool_gives_through_the_proxy_what_it_gives_directly(
    real: RealServers, proxy: Proxy, direct: dict[str, Any], mode: str
) -> None:
    async with client_of(proxy("--", *real.everything()), **whole(mode)) as client:
        # Behind a modern front the server cannot ask for roots at its start.
        names = await tool_names(client, 17)
        through = await all_called(client)

    assert sorted(names) == sorted([*CALLS, "retrieve_context"])
    for call, given in direct.items():
        assert through[call] == given, call


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_resources_prompts_and_completions_are_those_of_the_server(
    real: RealServers, proxy: Proxy, mode: str
) -> None:
    async def asked(client: mcp.Client) -> list[Any]:
        reference = mcp_types.PromptReference(type="ref/prompt", name="completable-prompt")
        resources = await client.list_resources()
        each = [
            resources,
            await client.list_prompts(),
            await client.get_prompt("args-prompt", {"city": "Linz"}),
            await client.complete(reference, {"name": "department", "value": "E"}),
            await client.read_resource(resources.resources[0].uri),
        ]
        return [masked(one.model_dump(by_alias=True, mode="json")) for one in each]

    def plain(answers: list[Any]) -> list[Any]:
        # What only one era has.
        for answer in answers:
            for key in ("ttlMs", "cacheScope", "resultType"):
                answer.pop(key, None)
        return answers

    async with client_of(real.everything()) as client:
        direct = plain(await asked(client))
    async with client_of(proxy("--", *real.everything()), mode=mode) as client:
        through = plain(await asked(client))
        templates = (await client.list_resource_templates()).resource_templates

    assert through == direct
    assert [template.uri_template for template in templates][-1] == "art://{id}{?offset,limit}"
    assert len(templates) == 3


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_progress_of_a_long_call_is_relayed(
    real: RealServers, proxy: Proxy, mode: str
) -> None:
    told: list[tuple[float, float | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with client_of(proxy("--", *real.everything()), mode=mode) as client:
        arguments = {"duration": 0.2, "steps": 4}
        await client.call_tool("trigger-long-running-operation", arguments, progress_callback=tell)

    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_a_large_echo_is_offloaded_and_its_pointer_echoes_all_of_it(
    real: RealServers, proxy: Proxy, tmp_path: Path
) -> None:
    message = "".join(f"zeile {n} ä\n" for n in range(10_000))

    async with client_of(proxy("--", *real.everything())) as client:
        first = await client.call_tool("echo", {"message": message})
        envelope = json.loads(text_of(first))
        again = await client.call_tool("echo", {"message": envelope["pointer"]})
        uri = f"art://{json.loads(text_of(again))['pointer'].removeprefix('art:')}"
        (contents,) = (await client.read_resource(uri)).contents

    assert envelope["sizeBytes"] == len(f"Echo: {message}".encode())
    assert isinstance(contents, mcp_types.TextResourceContents)
    assert contents.text == f"Echo: Echo: {message}"


def text_of(result: mcp_types.CallToolResult) -> str:
    (block, *_) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text
