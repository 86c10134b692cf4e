"""A server that ends: its calls say so, it comes back as it was, and the rest goes on."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any


async def pid(host: Any, tool: str = "facts") -> int:
    return int(json.loads(await host.text(tool))["pid"])


async def test_call_during_which_the_server_ends_fails_and_the_next_is_served(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain(era=back), era=front)

    failed = await host.call("die")

    assert failed["isError"] is True
    assert "'plain' did not answer: it ended with status 7" in failed["content"][0]["text"]
    assert await host.text("echo", text="back") == "back"


async def test_answer_that_a_server_ends_within_is_no_answer(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(plain(), era=front)
    begun = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "te'

    failed = await host.call("die", text=begun)

    assert failed["isError"] is True
    assert "'plain' did not answer: it ended with status 7" in failed["content"][0]["text"]


async def test_killed_server_comes_back_introduced_as_before(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain(era=back), era=front, capabilities={"sampling": {}})
    before = json.loads(await host.text("facts"))

    os.kill(before["pid"], signal.SIGKILL)
    result = await host.call("facts")
    while result.get("isError"):  # it was sent before anyone could see the end
        result = await host.call("facts")
    after = json.loads(result["content"][0]["text"])

    assert after["pid"] != before["pid"]
    assert after["capabilities"] == {"sampling": {}}
    assert after["client"] == before["client"]


async def test_all_calls_under_way_fail_when_the_server_ends(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(plain(), era=front)
    sleeping = [
        host.begin("tools/call", name="sleep", arguments={"text": "600"})[1] for _ in range(5)
    ]

    await host.call("die")
    answers = [await each for each in sleeping]

    assert [answer["result"]["isError"] for answer in answers] == [True] * 5


async def test_what_the_server_was_told_before_is_told_again(bench: Any, plain: Any) -> None:
    host = await bench.host(plain("p", era="handshake"))
    await host.result("logging/setLevel", level="error")
    await host.result("resources/subscribe", uri="plain://p/1")

    await host.call("die")

    assert "threshold error" in await host.text("log", text="info")
    assert json.loads(await host.text("facts"))["watched"] == ["plain://p/1"]


async def test_other_servers_go_on(bench: Any, plain: Any, front: str) -> None:
    host = await bench.host(plain("a"), plain("b"), era=front)
    _, sleeping = host.begin("tools/call", name="a_sleep", arguments={"text": "0.2"})
    before = await pid(host, "a_facts")

    failed = await host.call("b_die")

    assert failed["isError"] is True
    assert (await sleeping)["result"]["content"][0]["text"] == "slept"
    assert await pid(host, "a_facts") == before


async def test_server_that_ends_again_and_again_is_given_time(bench: Any, plain: Any) -> None:
    host = await bench.host(plain())
    await host.call("die")

    await host.call("die")
    failed = await host.call("echo", text="now")

    assert failed["isError"] is True
    assert "'plain' ended: it ended with status 7" in failed["content"][0]["text"]
    assert "tried again" in failed["content"][0]["text"]


async def test_server_that_ends_when_asked_in_the_modern_way_is_asked_in_the_other(
    bench: Any, plain: Any
) -> None:
    host = await bench.host(plain("old", "--dies-of-modern", era="handshake"), era="modern")

    assert json.loads(await host.text("facts"))["modern"] is False


async def test_server_that_prints_no_message_at_all_is_told_apart_from_one_that_is_slow(
    bench: Any, plain: Any, tmp_path: Path
) -> None:
    script = tmp_path / "server.py"
    script.write_text("print('Welcome!')")
    host = await bench.host(
        replace(plain("wrong"), args=(str(script),)), era="handshake", introduced=False
    )

    response = await host.ask("initialize", protocolVersion="2025-11-25")

    assert "it ended with status 0" in response["error"]["message"]
    assert any("Welcome!" in line for line in bench.logged)
