"""Calls that become tasks: each at its own server, and what comes of one as any other result."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coatcheck.apps.proxy._config import HttpFront, UpstreamSpec
from coatcheck.apps.proxy._http_front import HttpApp
from coatcheck.apps.proxy._settings import parse_settings

from .over_http import post, request, served

SERVER = Path(__file__).parents[1] / "servers" / "tasks.py"
CAN: dict[str, dict[str, object]] = {
    "handshake": {"tasks": {}},
    "modern": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
WHO = {"who": {"action": "accept", "content": {"name": "Ada"}}}
LARGE = 100_000


def server(name: str) -> UpstreamSpec:
    command = ("-I", "-S", str(SERVER), name)
    return UpstreamSpec(name=name, command=sys.executable, args=command)


async def host_of(bench: Any, era: str, *names: str, **options: Any) -> Any:
    return await bench.host(
        *(server(name) for name in names), era=era, capabilities=CAN[era], **options
    )


async def begun(host: Any, tool: str, size: int = LARGE) -> str:
    """Return the id of the task that a call became."""
    asked: dict[str, Any] = {"name": tool, "arguments": {"size": size}}
    if host.era == "handshake":
        asked["task"] = {"ttl": 60_000}
    result = await host.result("tools/call", **asked)
    task = result["task"] if host.era == "handshake" else result
    assert task["status"] == "input_required"
    if host.era == "modern":
        assert result["resultType"] == "task"
    return str(task["taskId"])


async def outcome(host: Any, task_id: str) -> dict[str, Any]:
    """Return what came of a call, as each era asks for it."""
    if host.era == "handshake":
        return dict(await host.result("tasks/result", taskId=task_id))
    await host.result("tasks/update", taskId=task_id, inputResponses=WHO)
    told = await host.result("tasks/get", taskId=task_id)
    assert told["status"] == "completed"
    return dict(told["result"])


def pointer_in(result: dict[str, Any]) -> str:
    envelope = json.loads(result["content"][0]["text"])
    assert envelope["sizeBytes"] == LARGE
    return str(envelope["pointer"])


async def test_what_comes_of_a_task_is_shown_as_any_other_result(bench: Any, front: str) -> None:
    host = await host_of(bench, front, "one")
    task_id = await begun(host, "make")

    asked = await host.result("tasks/get", taskId=task_id)
    first, again = [await outcome(host, task_id) for _ in range(2)]

    page = await host.text("retrieve_context", artifactId=pointer_in(first), limit=3)
    assert json.loads(page)["content"] == "xxx"
    assert asked["status"] == "input_required"
    assert ("inputRequests" in asked) is (front == "modern")
    assert again == first


async def test_task_is_asked_for_at_the_server_that_it_is_of(bench: Any, front: str) -> None:
    host = await host_of(bench, front, "one", "two")
    ids = [await begun(host, f"{name}_make") for name in ("two", "one", "two")]

    for task_id in ids:
        pointer_in(await outcome(host, task_id))
    await host.result("tasks/cancel", taskId=ids[2])

    assert ids == ["two-0", "one-0", "two-1"]
    states = [(await host.result("tasks/get", taskId=each))["status"] for each in ids]
    before = "completed" if front == "modern" else "input_required"
    assert states == [before, before, "cancelled"]


async def test_task_of_a_client_that_has_come_back_is_found_and_its_result_shown(
    bench: Any, plain: Any, front: str
) -> None:
    app = HttpApp(
        await bench.proxy(plain(era=front), server("one")), HttpFront(host="127.0.0.1", port=0)
    )
    async with served(app) as url:
        inner = UpstreamSpec(name="inner", url=url)
        host = await bench.host(inner, era=front, capabilities=CAN[front])
        task_id = await begun(host, "one_make")
        direct = await host.result("tasks/get", taskId=task_id)
        # Another proxy before the same one has seen no call become the task.
        other = await bench.host(inner, era=front, capabilities=CAN[front])
        if front == "modern":
            pointer_in(await outcome(other, task_id))
        else:  # the task is of its session
            response = await other.ask("tasks/get", taskId=task_id)
            assert response["error"]["code"] == -32601

    assert direct["taskId"] == task_id


async def test_task_that_no_server_knows_is_their_error(bench: Any, front: str) -> None:
    host = await host_of(bench, front, "one", "two")

    responses = [
        await host.ask(method, taskId=task_id)
        for method in ("tasks/get", "tasks/cancel")
        for task_id in ("three-0", 7, None)
    ]

    assert {each["error"]["code"] for each in responses[:2]} <= {-32602, -32603}
    assert all("error" in each for each in responses)


async def test_what_is_set_for_a_tool_holds_for_its_tasks(bench: Any, front: str) -> None:
    settings = parse_settings("[tools.make]\nexclude = true")
    host = await host_of(bench, front, "one", settings=settings)

    result = await outcome(host, await begun(host, "make"))

    assert result["content"][0]["text"] == "x" * LARGE


async def test_tasks_of_all_servers_are_one_list_page_by_page(bench: Any) -> None:
    host = await host_of(bench, "handshake", "one", "two")
    made = [await begun(host, f"{name}_make") for name in ("one", "one", "two")]

    found: list[str] = []
    page = await host.result("tasks/list")
    found += [each["taskId"] for each in page["tasks"]]
    while "nextCursor" in page:
        page = await host.result("tasks/list", cursor=page["nextCursor"])
        found += [each["taskId"] for each in page["tasks"]]

    assert found == made


async def test_tasks_are_offered_in_the_era_of_both_sides(
    bench: Any, plain: Any, front: str
) -> None:
    names = [server("one"), server("two"), plain(era=front)]
    host = await bench.host(*names, era=front, capabilities=CAN[front], introduced=False)

    can = (await host.introduce())["capabilities"]

    if front == "modern":
        assert can["extensions"] == CAN["modern"]["extensions"]
        assert "tasks" not in can
    else:
        assert can["tasks"]["requests"] == {"tools": {"call": {}}}


async def test_who_listens_to_a_task_is_told_what_came_of_it(bench: Any) -> None:
    host = await host_of(bench, "modern", "one", "two")
    task_id, other = await begun(host, "one_make"), await begun(host, "two_make")
    id_, _ = host.begin("subscriptions/listen", notifications={"taskIds": [task_id]})
    await host.seen(lambda: host.noted("notifications/subscriptions/acknowledged"))

    await host.result("tasks/update", taskId=other, inputResponses=WHO)
    while not host.noted("notifications/tasks"):  # until the server has heard that we listen
        await host.result("tasks/update", taskId=task_id, inputResponses=WHO)

    (acknowledged,) = host.noted("notifications/subscriptions/acknowledged")
    told = host.noted("notifications/tasks")
    assert acknowledged["notifications"] == {"taskIds": [task_id]}
    assert {each["taskId"] for each in told} == {task_id}
    assert told[0]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id_
    pointer_in(told[0]["result"])


@pytest.mark.parametrize("name", [None, "one-0", "one-1"])
async def test_header_of_a_modern_request_names_the_task(bench: Any, name: str | None) -> None:
    app = HttpApp(await bench.proxy(server("one")), HttpFront(host="127.0.0.1", port=0))
    prefix = "io.modelcontextprotocol/"
    meta: dict[str, Any] = {f"{prefix}protocolVersion": "2026-07-28"}
    meta[f"{prefix}clientCapabilities"] = CAN["modern"]
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tasks/get"}
    headers |= {} if name is None else {"mcp-name": name}
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await post(http, request("tasks/get", taskId="one-0", _meta=meta), headers)
        await app.sessions.end_all()

    expected = -32602 if name == "one-0" else -32020
    assert answer.json()["error"]["code"] == expected
