"""What a server asks of its client, in each era and across them."""

import asyncio
import json
from typing import Any

import pytest

META = "io.modelcontextprotocol/"


async def facts(host: Any) -> dict[str, Any]:
    return dict(json.loads(await host.text("facts")))


async def test_progress_comes_under_the_token_of_the_client_before_the_answer(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    result = await host.result(
        "tools/call", name="progress", arguments={"n": 3}, _meta={"progressToken": "mine"}
    )

    assert result["content"][0]["text"] == "done"
    told = host.noted("notifications/progress")
    assert [each["progress"] for each in told] == [1, 2, 3]
    assert {each["progressToken"] for each in told} == {"mine"}


async def test_nobody_who_does_not_ask_is_told_of_progress(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)

    assert await host.text("progress", n=3) == "no token"
    assert host.noted("notifications/progress") == []


@pytest.mark.parametrize(
    ("tool", "method", "answer"),
    [
        ("elicit", "elicitation/create", {"action": "accept", "content": {"name": "Ada"}}),
        (
            "sample",
            "sampling/createMessage",
            {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"},
        ),
        ("roots", "roots/list", {"roots": [{"uri": "file:///tmp"}]}),
    ],
)
async def test_server_asks_the_client_and_gets_its_answer(
    bench: Any,
    plain: Any,
    front: str,
    back: str,
    tool: str,
    method: str,
    answer: dict[str, object],
) -> None:
    host = await bench.host(
        plain(era=back),
        era=front,
        capabilities={"elicitation": {}, "sampling": {}, "roots": {}},
        answers={method: answer},
    )

    got = json.loads(await host.text(tool))

    assert got["answer"] == answer
    assert [each["method"] for each in host.asked] == [method]


async def test_what_a_client_refuses_to_answer_reaches_the_server(bench: Any, plain: Any) -> None:
    refusal = {"code": -1, "message": "the user said no"}
    host = await bench.host(
        plain(era="handshake"),
        capabilities={"elicitation": {}},
        answers={"elicitation/create": refusal},
    )

    got = json.loads(await host.text("elicit"))

    assert got["answer"]["error"] == refusal


async def test_two_calls_that_ask_at_once_each_get_an_answer(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    answer = {"action": "accept", "content": {"name": "Ada"}}
    host = await bench.host(
        plain(era=back),
        era=front,
        capabilities={"elicitation": {}},
        answers={"elicitation/create": answer},
    )

    first, second = (asyncio.create_task(host.text("elicit")) for _ in range(2))

    assert json.loads(await first)["answer"] == answer
    assert json.loads(await second)["answer"] == answer


async def test_address_to_visit_first_is_asked_as_each_era_knows_it(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(
        plain(era="handshake"),
        era=front,
        capabilities={"elicitation": {"url": {}}},
        answers={"elicitation/create": {"action": "accept"}},
    )

    if front == "handshake":
        response = await host.ask("tools/call", name="visit", arguments={})
        assert response["error"]["code"] == -32042
    assert await host.text("visit") == "visited"
    assert [each["params"]["mode"] for each in host.asked] == ["url"] * (front == "modern")


async def test_cancelled_call_is_cancelled_at_the_server_and_not_answered(
    shared: Any, front: str, back: str
) -> None:
    host = await shared(front, back)
    id_, _ = host.begin("tools/call", name="sleep", arguments={"text": "600"})
    await host.text("echo", text="it is under way")

    host.tell("notifications/cancelled", requestId=id_)

    while "cancelled:tools/call" not in (await facts(host))["seen"]:
        pass
    assert not [each for each in host.lines if f'"id":{id_},'.encode() in each]


async def test_roots_are_never_declared_for_a_client_without_them(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(plain("p", "--asks-roots", era="handshake"), era=front)

    found = await facts(host)
    while not [each for each in found["seen"] if each.startswith("roots:")]:
        found = await facts(host)

    assert "roots" not in found["capabilities"]
    (answer,) = [each for each in found["seen"] if each.startswith("roots:")]
    assert "-32601" in answer


async def test_server_that_asks_for_roots_at_its_start_waits_until_the_client_is_ready(
    bench: Any, plain: Any
) -> None:
    roots = {"roots": [{"uri": "file:///home"}]}
    host = await bench.host(
        plain("p", "--asks-roots", era="handshake"),
        capabilities={"roots": {"listChanged": True}},
        answers={"roots/list": roots},
        introduced=False,
    )

    await host.introduce()
    await host.seen(lambda: host.asked)

    found = await facts(host)
    while not [each for each in found["seen"] if each.startswith("roots:")]:
        found = await facts(host)
    assert f"roots:{json.dumps(roots)}" in found["seen"]
    host.tell("notifications/roots/list_changed")
    assert "notifications/roots/list_changed" in (await facts(host))["seen"]
