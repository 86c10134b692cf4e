"""Several servers as one: names, lists, routes, and one that is not there."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from coatcheck.apps.proxy._settings import parse_settings


async def names(host: Any) -> list[str]:
    return [tool["name"] for tool in (await host.result("tools/list"))["tools"]]


async def test_tools_of_several_servers_are_listed_in_their_order_and_called(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(
        plain("b", "--tools", "x,y", era="handshake"), plain("a", "--tools", "x"), era=front
    )

    listed = await names(host)

    assert listed == ["b_x", "b_y", "a_x", "retrieve_context"]
    assert [await host.text(name) for name in listed[:3]] == ["b: x", "b: y", "a: x"]


async def test_every_listed_name_is_short_plain_its_own_and_reaches_its_tool(
    bench: Any, plain: Any, front: str
) -> None:
    long = "n" * 67
    alpha = plain("alpha", "--tools", f"search,{long}abc,{long}xyz,dots.and/slashes,é")
    beta = plain("beta", "--tools", "search")
    odd = plain("alpha_search", "--tools", "x")
    twin = replace(plain("alpha", "--tools", "x"), name="al pha")
    host = await bench.host(alpha, beta, odd, twin, era=front)

    listed = (await names(host))[:-1]

    assert len(set(listed)) == len(listed) == 8
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in listed)
    reached = [await host.text(name) for name in listed]
    assert reached == [
        "alpha: search",
        f"alpha: {long}abc",
        f"alpha: {long}xyz",
        "alpha: dots.and/slashes",
        "alpha: é",
        "beta: search",
        "alpha_search: x",
        "alpha: x",
    ]


async def test_tool_is_called_before_anyone_lists(bench: Any, plain: Any, front: str) -> None:
    host = await bench.host(plain("a"), plain("b"), era=front)

    assert json.loads(await host.text("b_facts"))["pid"]


async def test_pages_of_servers_are_gathered_and_resources_found_where_they_are(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(
        plain("a", "--pages", "2"), plain("b", "--pages", "3", era="handshake"), era=front
    )
    uris: list[str] = []
    page = await host.result("resources/list")
    uris += [each["uri"] for each in page["resources"]]
    while (cursor := page.get("nextCursor")) is not None:
        page = await host.result("resources/list", cursor=cursor)
        uris += [each["uri"] for each in page["resources"]]

    assert uris == [f"plain://{name}/{n}" for name in "ab" for n in range(6)]
    read = await host.result("resources/read", uri="plain://b/5")
    unseen = await host.result("resources/read", uri="plain://b/99")
    assert read["contents"][0]["text"] == "text of plain://b/5"
    assert unseen["contents"][0]["text"] == "text of plain://b/99"


async def test_foreign_cursor_is_refused(bench: Any, plain: Any) -> None:
    host = await bench.host(plain("a"), plain("b"))

    response = await host.ask("resources/list", cursor="nonsense")

    assert response["error"]["code"] == -32602


async def test_prompts_and_their_completions_have_the_names_of_their_servers(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(plain("a"), plain("b"), era=front)

    listed = [each["name"] for each in (await host.result("prompts/list"))["prompts"]]
    got = await host.result("prompts/get", name="b_greet", arguments={})
    completed = await host.result(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "b_greet"},
        argument={"name": "n", "value": "v"},
    )

    assert listed == ["a_greet", "b_greet"]
    assert got["messages"][0]["content"]["text"].startswith("Hello from b")
    assert completed["completion"]["values"] == ["v!"]


async def test_unknown_tool_is_refused_by_its_name(bench: Any, plain: Any, front: str) -> None:
    host = await bench.host(plain("a"), plain("b"), era=front)

    response = await host.ask("tools/call", name="a_nothing", arguments={})

    assert response["error"] == {"code": -32602, "message": "Unknown tool: a_nothing"}


async def test_server_that_cannot_start_leaves_the_others_and_says_why(
    bench: Any, plain: Any, front: str
) -> None:
    missing = replace(plain("gone"), command="/nowhere/at-all")
    host = await bench.host(plain("a", "--tools", "x"), missing, era=front)

    listed = await names(host)
    failed = await host.call("gone_tool")

    assert listed == ["a_x", "retrieve_context"]
    assert await host.text("a_x") == "a: x"
    assert failed["isError"] is True
    assert "'gone' did not start" in failed["content"][0]["text"]
    assert "/nowhere/at-all" in failed["content"][0]["text"]


async def test_only_server_that_cannot_start_is_an_error_of_the_introduction(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(
        replace(plain("gone"), command="/nowhere/at-all"), era=front, introduced=False
    )

    method = "initialize" if front == "handshake" else "server/discover"
    response = await host.ask(method, protocolVersion="2025-11-25")

    assert response["error"]["code"] == -32000
    assert "did not start" in response["error"]["message"]


async def test_pointer_made_by_one_server_is_used_by_another(
    bench: Any, plain: Any, front: str
) -> None:
    host = await bench.host(plain("a", era="handshake"), plain("b", era="modern"), era=front)
    await names(host)
    made = json.loads(await host.text("a_rows", n=20_000))

    total = await host.text("b_total", items=f"{made['pointer']}#$[*].id")

    assert total == str(sum(range(20_000)))


async def test_lists_are_the_same_bytes_in_each_call_and_each_run(
    bench: Any, plain: Any, front: str
) -> None:
    seen: set[bytes] = set()
    for _ in range(2):
        host = await bench.host(plain("a"), plain("b", "--pages", "3"), era=front)
        for _ in range(2):
            await host.result("tools/list")
            seen.add(host.lines[-1].split(b'"result":', 1)[1])

    assert len(seen) == 1


async def test_server_that_does_not_answer_holds_up_no_other(
    bench: Any, plain: Any, front: str
) -> None:
    bench.patience_seconds = 2.0
    silent = replace(plain("silent"), args=("-c", "import time; time.sleep(600)"))
    host = await bench.host(silent, plain("a", "--tools", "x"), era=front)

    listed = await names(host)
    called = await host.text("a_x")
    page = await host.result("resources/list")

    assert listed == ["a_x", "retrieve_context"]
    assert called == "a: x"
    assert page["resources"][0]["uri"] == "plain://a/0"
    assert any("'silent' is still starting" in line for line in bench.logged)


def behind(gate: Path, late: Any) -> Any:
    """Return a server that starts once a file is there."""
    wait = f"import os,time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    script = f"{wait}os.execv({late.command!r}, {[late.command, *late.args]!r})"
    return replace(late, args=("-c", script))


async def test_tools_of_a_server_that_comes_late_are_told_of(
    bench: Any, plain: Any, tmp_path: Path
) -> None:
    bench.patience_seconds = 2.0
    gate = tmp_path / "gate"
    late = behind(gate, plain("late", "--tools", "x"))
    host = await bench.host(late, plain("a", "--tools", "x"))
    before = await names(host)

    gate.touch()
    await host.seen(lambda: host.noted("notifications/tools/list_changed"))

    assert before == ["a_x", "retrieve_context"]
    assert await names(host) == ["late_x", "a_x", "retrieve_context"]


async def test_call_of_a_server_that_comes_late_waits_for_it(
    bench: Any, plain: Any, tmp_path: Path, front: str
) -> None:
    bench.patience_seconds = 1.0
    gate = tmp_path / "gate"
    late = behind(gate, plain("late", "--tools", "x"))
    host = await bench.host(late, plain("a", "--tools", "x"), era=front)
    await names(host)
    _, waiting = host.begin("tools/call", name="late_x", arguments={})
    _, wrong = host.begin("tools/call", name="late_y", arguments={})
    await asyncio.sleep(1.2)  # until it was looked for in vain

    gate.touch()

    assert (await waiting)["result"]["content"][0]["text"] == "late: x"
    assert "Unknown tool: late_y" in (await wrong)["error"]["message"]


async def test_setting_for_a_tool_that_no_server_lists_is_told_once_all_are_known(
    bench: Any, plain: Any, front: str
) -> None:
    settings = parse_settings("[tools.a_x]\nexclude = true\n[tools.a_z]\nexclude = true")
    host = await bench.host(plain("a", "--tools", "x,y"), plain("b"), era=front, settings=settings)

    for _ in range(2):
        await names(host)

    assert [line for line in bench.logged if "settings" in line] == [
        "coatcheck proxy: the settings name a tool 'a_z', which no server lists."
    ]


async def test_nothing_is_told_of_settings_while_a_server_is_missing(
    bench: Any, plain: Any, front: str
) -> None:
    settings = parse_settings("[tools.b_y]\nexclude = true")
    missing = replace(plain("b"), command="/no/such/program")
    host = await bench.host(plain("a"), missing, era=front, settings=settings)

    await names(host)

    assert [line for line in bench.logged if "settings" in line] == []


async def test_of_one_server_with_pages_it_is_told_after_the_last(
    bench: Any, plain: Any, front: str
) -> None:
    settings = parse_settings("[tools.x]\nexclude = true\n[tools.z]\nexclude = true")
    host = await bench.host(
        plain("a", "--tools", "v,w,x", "--pages", "3"), era=front, settings=settings
    )
    told: list[int] = []

    page = await host.result("tools/list")
    while (cursor := page.get("nextCursor")) is not None:
        told.append(sum("settings" in line for line in bench.logged))
        page = await host.result("tools/list", cursor=cursor)

    assert told == [0, 0]
    assert sum("settings name a tool 'z'" in line for line in bench.logged) == 1
    assert sum("settings" in line for line in bench.logged) == 1


async def test_settings_of_a_tool_go_by_the_name_that_a_host_sees(
    bench: Any, plain: Any, front: str
) -> None:
    settings = parse_settings("[tools.my_server_big]\nexclude = true")
    odd = replace(plain("my"), name="my server")
    host = await bench.host(odd, plain("b"), era=front, settings=settings)

    whole = await host.text("my_server_big", n=64_000)
    offloaded = await host.text("b_big", n=64_000)
    await host.result("tools/list")

    assert len(whole) == 64_000
    assert json.loads(offloaded)["sizeBytes"] == 64_000
    assert not any("no server lists" in line for line in bench.logged)
