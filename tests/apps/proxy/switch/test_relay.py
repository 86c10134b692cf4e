"""Calls and all else that a client asks for, in each era and across them."""

import json
from typing import Any

import pytest

META = "io.modelcontextprotocol/"


async def facts(host: Any) -> dict[str, Any]:
    return dict(json.loads(await host.text("facts")))


async def test_client_and_server_each_speak_their_own_era(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    assert (await facts(host))["modern"] is (back == "modern")


async def test_server_that_speaks_both_is_spoken_to_in_the_era_of_the_client(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(plain(), era=front)

    assert (await facts(host))["modern"] is (front == "modern")


async def test_proxy_introduces_itself_as_its_only_server_does(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain("notes", era=back), era=front, introduced=False)

    found = await host.introduce()

    server = found["serverInfo"] if front == "handshake" else found["_meta"][f"{META}serverInfo"]
    assert server["name"] == "notes"
    assert found["instructions"].startswith("I am notes.")
    assert {"tools", "resources", "prompts", "completions", "logging"} <= set(found["capabilities"])


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"elicitation": {"form": {}}}, {"roots": {"listChanged": True}, "sampling": {}}],
)
async def test_server_sees_exactly_the_capabilities_and_name_of_the_client(
    bench: Any, plain: Any, front: str, back: str, capabilities: dict[str, object]
) -> None:
    host = await bench.host(plain(era=back), era=front, capabilities=capabilities)

    found = await facts(host)

    assert found["capabilities"] == capabilities
    assert found["client"] == {"name": "host", "version": "7"}


async def test_tools_are_called_and_their_errors_stay_results(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    assert await host.text("echo", text="Grüße 😀") == "Grüße 😀"
    failed = await host.call("fail")
    assert failed["isError"] is True
    assert failed["content"][0]["text"] == "it failed"


async def test_error_of_the_protocol_keeps_code_message_and_data(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    response = await host.ask("tools/call", name="refuse", arguments={})

    assert response["error"] == {"code": -32055, "message": "refused", "data": {"why": "told to"}}


async def test_pages_of_a_server_are_those_of_the_proxy(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain("p", "--pages", "3", era=back), era=front)
    pages: list[dict[str, Any]] = [await host.result("resources/list")]

    while (cursor := pages[-1].get("nextCursor")) is not None:
        pages.append(await host.result("resources/list", cursor=cursor))

    assert [[each["name"] for each in page["resources"]] for page in pages] == [
        ["0", "1"],
        ["2", "3"],
        ["4", "5"],
    ]


async def test_own_tool_stands_once_behind_the_last_page(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain("p", "--pages", "2", era=back), era=front)

    first = await host.result("tools/list")
    last = await host.result("tools/list", cursor=first["nextCursor"])

    assert "retrieve_context" not in {tool["name"] for tool in first["tools"]}
    assert last["tools"][-1]["name"] == "retrieve_context"
    assert "nextCursor" not in last


async def test_resources_prompts_and_completions_pass(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain("p", era=back), era=front)

    read = await host.result("resources/read", uri="plain://p/1")
    templates = await host.result("resources/templates/list")
    prompts = await host.result("prompts/list")
    prompt = await host.result("prompts/get", name="greet", arguments={"to": "Ada"})
    of_prompt = {"type": "ref/prompt", "name": "greet"}
    completed = await host.result(
        "completion/complete", ref=of_prompt, argument={"name": "to", "value": "A"}
    )

    assert read["contents"] == [{"uri": "plain://p/1", "text": "text of plain://p/1"}]
    assert templates["resourceTemplates"][0]["uriTemplate"] == "plain://p/{n}"
    assert templates["resourceTemplates"][-1]["uriTemplate"].startswith("art://")
    assert prompts["prompts"] == [{"name": "greet"}]
    assert prompt["messages"][0]["content"]["text"] == "Hello from p, {'to': 'Ada'}"
    assert completed["completion"] == {"values": ["A!"]}


async def test_missing_resource_is_told_as_each_era_knows_it(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    response = await host.ask("resources/read", uri="plain://nobody/1")

    known = {-32602} if front == "modern" else {-32002, -32602}
    assert response["error"]["code"] in known
    assert response["error"]["message"] == "Resource not found"


async def test_call_cancelled_in_the_same_breath_never_ends_the_proxy(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    id_, _ = host.begin("tools/call", name="sleep", arguments={"text": "600"})
    host.tell("notifications/cancelled", requestId=id_)

    assert await host.text("echo", text="alive") == "alive"


async def test_unknown_methods_and_notifications_pass(shared: Any, front: str, back: str) -> None:
    host = await shared(front, back)

    result = await host.result("custom/echo", value=1)
    response = await host.ask("custom/nothing")
    if front == back:
        host.tell("notifications/custom", value=1)
        await host.call("say", text='{"jsonrpc":"2.0","method":"notifications/of_server"}')

    assert result["params"] == {"value": 1}
    assert response["error"]["code"] == -32601
    if front == back:
        assert "notifications/custom" in (await facts(host))["seen"]
        await host.seen(
            lambda: {"jsonrpc": "2.0", "method": "notifications/of_server"} in host.notes
        )


async def test_numbers_of_a_result_pass_to_the_last_digit(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)
    structured = '{"n":12345678901234567890123,"text":"\\ud800"}'
    line = f'{{"jsonrpc":"2.0","id":ID,"result":{{"content":[],"structuredContent":{structured}}}}}'

    _, answer = host.begin("tools/call", name="answer_with", arguments={"text": line})
    await host.seen(lambda: any(b"12345678901234567890123" in each for each in host.lines))

    assert structured.encode() in host.lines[-1]
    answer.cancel()
