"""What a server tells of itself: changes and log messages, in each era and across them."""

import json
from typing import Any

META = "io.modelcontextprotocol/"


async def facts(host: Any) -> dict[str, Any]:
    return dict(json.loads(await host.text("facts")))


async def test_client_of_the_handshake_era_sets_from_where_on_it_sees_what_is_logged(
    bench: Any, plain: Any, back: str
) -> None:
    host = await bench.host(plain(era=back))
    await host.result("logging/setLevel", level="warning")

    await host.call("log", text="info")
    await host.call("log", text="error")

    assert [each["level"] for each in host.noted("notifications/message")] == ["error"]


async def test_client_of_the_modern_era_asks_for_what_is_logged_in_each_request(
    bench: Any, plain: Any, back: str
) -> None:
    host = await bench.host(plain(era=back), era="modern")
    call = {"name": "log", "arguments": {"text": "warning"}}

    await host.result("tools/call", **call)
    await host.result("tools/call", **call, _meta={f"{META}logLevel": "error"})
    await host.result("tools/call", **call, _meta={f"{META}logLevel": "info"})

    assert [each["level"] for each in host.noted("notifications/message")] == ["warning"]


async def test_change_of_the_tools_is_told_and_listed(shared: Any, front: str, back: str) -> None:
    host = await shared(front, back)
    id_ = 0
    if front == "modern":
        id_, _ = host.begin("subscriptions/listen", notifications={"toolsListChanged": True})
        await host.seen(lambda: host.noted("notifications/subscriptions/acknowledged"))
    before = await host.result("tools/list")
    await listening(host, back)

    await host.call("grow", text="bigger")

    await host.seen(lambda: host.noted("notifications/tools/list_changed"))
    (told,) = host.noted("notifications/tools/list_changed")
    if front == "modern":
        assert told["_meta"] == {f"{META}subscriptionId": id_}
    else:
        assert "_meta" not in told
    after = await host.result("tools/list")
    names = {tool["name"] for tool in after["tools"]} - {tool["name"] for tool in before["tools"]}
    assert names == {"bigger"}


async def listening(host: Any, back: str) -> None:
    """Wait until a modern server was asked for its changes, which nothing tells the client."""
    while back == "modern" and (await facts(host))["streams"] == 0:
        pass


async def test_client_that_did_not_ask_hears_of_no_change(
    bench: Any, plain: Any, back: str
) -> None:
    host = await bench.host(plain(era=back), era="modern")
    host.begin("subscriptions/listen", notifications={"promptsListChanged": True})
    await host.seen(lambda: host.noted("notifications/subscriptions/acknowledged"))

    await host.call("grow", text="bigger")

    assert await host.text("echo", text="later") == "later"
    assert host.noted("notifications/tools/list_changed") == []


async def test_resource_that_a_client_watches_is_told_until_it_stops(
    bench: Any, plain: Any, front: str, back: str
) -> None:
    host = await bench.host(plain("p", era=back), era=front)
    uri, id_ = "plain://p/0", 0
    if front == "modern":
        wanted = {"resourceSubscriptions": [uri]}
        id_, _ = host.begin("subscriptions/listen", notifications=wanted)
        await host.seen(lambda: host.noted("notifications/subscriptions/acknowledged"))
    else:
        await host.result("resources/subscribe", uri=uri)
    while uri not in (await facts(host))["watched"]:
        pass

    await host.call("touch")
    await host.seen(lambda: host.noted("notifications/resources/updated"))
    if front == "modern":
        host.tell("notifications/cancelled", requestId=id_)
    else:
        await host.result("resources/unsubscribe", uri=uri)
    while uri in (await facts(host))["watched"]:
        pass
    await host.call("touch")
    await host.text("echo", text="later")

    assert [each["uri"] for each in host.noted("notifications/resources/updated")] == [uri]
