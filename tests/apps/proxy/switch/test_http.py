"""Both ends over streamable HTTP: sessions of the old era, none in the new one, and who may."""

import asyncio
import json
import re
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from coatcheck.apps.proxy._config import HttpFront, UpstreamSpec
from coatcheck.apps.proxy._eras import opening_of
from coatcheck.apps.proxy._http_front import HttpApp
from coatcheck.apps.proxy._http_sessions import Seat
from coatcheck.apps.proxy._messages import RpcError
from coatcheck.testing import ManualClock, free_port

from .over_http import BOTH, introduced, post, request, served

SDK = Path(__file__).parents[1] / "servers" / "sdk.py"
META = "io.modelcontextprotocol/"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def app(bench: Any, plain: Any, clock: ManualClock) -> AsyncIterator[HttpApp]:
    made = HttpApp(await bench.proxy(plain()), HttpFront(host="127.0.0.1", port=0), clock)
    sessions = asyncio.create_task(made.sessions.run())
    yield made
    sessions.cancel()
    await asyncio.wait([sessions])


@pytest.fixture
async def http(app: HttpApp) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


def modern(
    method: str, named: str | None = None, /, **params: object
) -> tuple[Any, dict[str, str]]:
    """Return a request of the modern era, and its headers."""
    meta: dict[str, object] = {f"{META}protocolVersion": "2026-07-28"}
    meta[f"{META}clientCapabilities"] = {}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if named is not None:
        headers["mcp-name"] = named
    return request(method, **params, _meta=meta), headers


async def test_session_of_the_handshake_era_is_found_by_its_id_and_ended(
    http: httpx2.AsyncClient,
) -> None:
    own = await introduced(http)
    call = request("tools/call", name="echo", arguments={"text": "hi"})

    answered = await post(http, call, own)
    ended = await http.delete("/mcp", headers=own)
    after = await post(http, call, own)

    assert answered.json()["result"]["content"][0]["text"] == "hi"
    assert ended.status_code == 200
    assert after.status_code == 404


async def test_request_without_a_session_is_refused_in_the_handshake_era(
    http: httpx2.AsyncClient,
) -> None:
    answer = await post(http, request("tools/list"))

    assert answer.status_code == 400
    assert "mcp-session-id" in answer.json()["error"]["message"]


async def test_sessions_have_servers_of_their_own(http: httpx2.AsyncClient) -> None:
    call = request("tools/call", name="facts", arguments={})
    pids: set[int] = set()
    for _ in range(2):
        own = await introduced(http)
        result = (await post(http, call, own)).json()["result"]
        pids.add(json.loads(result["content"][0]["text"])["pid"])

    assert len(pids) == 2


async def test_modern_requests_need_no_session(http: httpx2.AsyncClient) -> None:
    message, headers = modern("tools/call", "echo", name="echo", arguments={"text": "hi"})

    answer = await post(http, message, headers)

    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
    assert answer.json()["result"]["content"][0]["text"] == "hi"
    assert answer.json()["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp-method", "tools/list"),
        ("mcp-name", "other"),
        ("mcp-protocol-version", "2025-11-25"),
    ],
)
async def test_modern_headers_have_to_say_what_the_message_says(
    http: httpx2.AsyncClient, name: str, value: str
) -> None:
    message, headers = modern("tools/call", "echo", name="echo", arguments={"text": "hi"})

    answer = await post(http, message, headers | {name: value})

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32020
    assert answer.json()["id"] == 1


async def test_modern_version_that_there_is_not_is_refused_with_those_there_are(
    http: httpx2.AsyncClient,
) -> None:
    message, headers = modern("server/discover")
    message["params"]["_meta"][f"{META}protocolVersion"] = "2099-01-01"

    answer = await post(http, message, headers | {"mcp-protocol-version": "2099-01-01"})

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32022
    assert answer.json()["error"]["data"]["supported"] == ["2026-07-28"]


async def test_unknown_modern_method_is_told_by_the_status_too(http: httpx2.AsyncClient) -> None:
    message, headers = modern("custom/nothing")

    answer = await post(http, message, headers)

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == -32601


async def test_what_belongs_to_a_request_comes_before_its_answer_in_one_stream(
    http: httpx2.AsyncClient,
) -> None:
    message, headers = modern("tools/call", "progress", name="progress", arguments={"n": 2})
    message["params"]["_meta"]["progressToken"] = "t"

    answer = await post(http, message, headers)

    assert answer.headers["content-type"] == "text/event-stream"
    data = [json.loads(each[6:]) for each in answer.text.splitlines() if each.startswith("data: ")]
    assert [each.get("params", {}).get("progress") for each in data] == [1, 2, None]
    assert data[-1]["result"]["content"][0]["text"] == "done"


async def test_client_that_takes_no_stream_gets_the_answer_alone(http: httpx2.AsyncClient) -> None:
    message, headers = modern("tools/call", "progress", name="progress", arguments={"n": 2})
    message["params"]["_meta"]["progressToken"] = "t"

    answer = await http.post("/mcp", json=message, headers={"accept": "application/json"} | headers)

    assert answer.json()["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"hello", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":{}}', -32600),
        (b"\xff", -32700),
        (b"", -32700),
    ],
)
async def test_malformed_body_is_refused(http: httpx2.AsyncClient, body: bytes, code: int) -> None:
    answer = await http.post("/mcp", content=body, headers=BOTH)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 200),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"host": "["}, 421),
    ],
)
async def test_page_of_another_site_cannot_call(
    http: httpx2.AsyncClient, headers: dict[str, str], status: int
) -> None:
    message, own = modern("server/discover")

    answer = await post(http, message, own | headers)

    assert answer.status_code == status


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_other_methods_and_paths_are_refused(http: httpx2.AsyncClient, method: str) -> None:
    assert (await http.request(method, "/mcp")).status_code == 405
    assert (await http.post("/other", json={})).status_code == 404


async def test_one_client_cannot_use_the_session_of_another(bench: Any, plain: Any) -> None:
    tokens = {"a" * 20: "ada", "b" * 20: "ben"}
    app = HttpApp(
        await bench.proxy(plain()), HttpFront(host="127.0.0.1", port=0, principals=tokens)
    )
    sessions = asyncio.create_task(app.sessions.run())
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        own = await introduced(http, authorization="Bearer " + "a" * 20)
        call = request("tools/call", name="rows", arguments={"n": 9_000})
        made = (await post(http, call, own)).json()["result"]["content"][0]["text"]
        pointer = json.loads(made)["pointer"]

        theirs = await post(http, call, own | {"authorization": "Bearer " + "b" * 20})
        nobody = await post(http, call, own | {"authorization": "Bearer wrong"})
        bens = await introduced(http, authorization="Bearer " + "b" * 20)
        read = request("tools/call", name="retrieve_context", arguments={"artifactId": pointer})
        stolen = (await post(http, read, bens)).json()["result"]
        mine = (await post(http, read, own)).json()["result"]
    sessions.cancel()
    await asyncio.wait([sessions])

    assert theirs.status_code == 404
    assert nobody.status_code == 401
    assert stolen["isError"] is True
    assert "unknown-pointer" in stolen["content"][0]["text"]
    assert mine.get("isError") is not True


async def test_session_that_nobody_uses_is_ended(
    app: HttpApp, http: httpx2.AsyncClient, clock: ManualClock
) -> None:
    own = await introduced(http)

    clock.advance(29 * 60)
    await app.sessions.sweep()
    assert (await post(http, request("tools/list"), own)).status_code == 200
    clock.advance(31 * 60)
    await app.sessions.sweep()

    assert (await post(http, request("tools/list"), own)).status_code == 404


# --- servers over HTTP -------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["stream", "json"])
async def sdk(request: pytest.FixtureRequest) -> AsyncIterator[UpstreamSpec]:
    port = free_port()
    options = ["--json"] if request.param == "json" else []
    command = [sys.executable, str(SDK), "--http", str(port), *options]
    quiet = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    async with asyncio.timeout(20):
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.05)
    yield UpstreamSpec(name="sdk", url=f"http://127.0.0.1:{port}/mcp", headers={"x-own": "1"})
    server.terminate()
    await server.wait()


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_server_over_http_is_called_in_the_era_of_the_client(
    bench: Any, sdk: UpstreamSpec, era: str
) -> None:
    host = await bench.host(sdk, era=era)

    listed = await host.result("tools/list")
    text = await host.text("echo", text="hi")
    made = json.loads(await host.text("rows", n=5_000))
    total = await host.text("total", items=made["pointer"])

    assert listed["tools"][-1]["name"] == "retrieve_context"
    assert text == "hi"
    assert float(total) == sum(range(5_000))


@pytest.mark.parametrize("is_listed", [True, False])
async def test_argument_that_a_modern_server_wants_in_a_header_too_is_put_there(
    bench: Any, sdk: UpstreamSpec, is_listed: bool
) -> None:
    host = await bench.host(sdk, era="modern")
    if is_listed:
        await host.result("tools/list")

    assert await host.text("route", region="süd") == "süd"


async def test_server_over_http_asks_the_client_and_tells_it_of_progress(
    bench: Any, sdk: UpstreamSpec
) -> None:
    answers = {"elicitation/create": {"action": "accept", "content": {"name": "Ada"}}}
    host = await bench.host(
        sdk, era="modern", capabilities={"elicitation": {"form": {}}}, answers=answers
    )

    text = await host.text("elicit")
    result = await host.result(
        "tools/call", name="progress", arguments={"n": 2}, _meta={"progressToken": 1}
    )

    assert "Ada" in text
    assert result["content"][0]["text"] == "done"


async def test_server_over_http_that_is_not_there_is_an_error_of_the_introduction(
    bench: Any,
) -> None:
    nobody = UpstreamSpec(name="gone", url=f"http://127.0.0.1:{free_port()}/mcp")
    host = await bench.host(nobody, introduced=False)

    response = await host.ask("initialize", protocolVersion="2025-11-25")

    assert "'gone' did not start" in response["error"]["message"]


async def test_server_over_http_that_wants_a_sign_in_says_so(bench: Any, plain: Any) -> None:
    async with AsyncExitStack() as stack:
        front = HttpFront(host="127.0.0.1", port=0, principals={"s" * 20: "ada"})
        inner = HttpApp(await bench.proxy(plain()), front)
        url = await stack.enter_async_context(served(inner))
        host = await bench.host(UpstreamSpec(name="locked", url=url), introduced=False)

        response = await host.ask("initialize", protocolVersion="2025-11-25")

    assert "401" in response["error"]["message"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_proxy_behind_a_proxy_over_http_changes_nothing(
    bench: Any, plain: Any, era: str
) -> None:
    answer = {"action": "accept", "content": {"name": "Ada"}}
    async with AsyncExitStack() as stack:
        front = HttpFront(host="127.0.0.1", port=0)
        inner = HttpApp(await bench.proxy(plain(era="handshake")), front)
        url = await stack.enter_async_context(served(inner))
        host = await bench.host(
            UpstreamSpec(name="inner", url=url),
            era=era,
            capabilities={"elicitation": {}},
            answers={"elicitation/create": answer},
        )

        text = await host.text("echo", text="hi")
        elicited = json.loads(await host.text("elicit"))
        response = await host.ask("tools/call", name="refuse", arguments={})
        id_, _ = host.begin("tools/call", name="sleep", arguments={"text": "600"})
        await host.text("echo", text="under way")
        host.tell("notifications/cancelled", requestId=id_)
        facts = json.loads(await host.text("facts"))
        while "cancelled:tools/call" not in facts["seen"]:
            facts = json.loads(await host.text("facts"))
        await host.call("grow", text="bigger")
        if era == "handshake":
            await host.seen(lambda: host.noted("notifications/tools/list_changed"))

    assert text == "hi"
    assert elicited["answer"] == answer
    assert response["error"]["code"] == -32055
    assert facts["client"] == {"name": "host", "version": "7"}


async def test_session_that_a_server_forgot_is_begun_anew_and_the_call_made_again(
    bench: Any, plain: Any, clock: ManualClock
) -> None:
    async with AsyncExitStack() as stack:
        inner = HttpApp(await bench.proxy(plain()), HttpFront(host="127.0.0.1", port=0), clock)
        url = await stack.enter_async_context(served(inner))
        host = await bench.host(UpstreamSpec(name="inner", url=url))
        before = await host.text("facts")
        await inner.sessions.end_all()

        after = await host.text("facts")

    assert json.loads(after)["pid"] != json.loads(before)["pid"]


async def test_questions_go_to_the_client_whose_call_asked(
    bench: Any, plain: Any, clock: ManualClock
) -> None:
    inner = HttpApp(
        await bench.proxy(plain(era="handshake")), HttpFront(host="127.0.0.1", port=0), clock
    )
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(inner))
        hosts: list[Any] = [
            await bench.host(
                UpstreamSpec(name="inner", url=url),
                era="modern",
                capabilities={"elicitation": {}},
                answers={"elicitation/create": {"action": "accept", "content": {"name": name}}},
            )
            for name in ("Ada", "Ben")
        ]

        calls = [asyncio.create_task(host.text("elicit")) for host in hosts]
        names = [json.loads(await call)["answer"]["content"]["name"] for call in calls]

    assert names == ["Ada", "Ben"]


async def test_session_that_is_ended_answers_what_is_under_way(http: httpx2.AsyncClient) -> None:
    own = await introduced(http)
    call = request("tools/call", name="sleep", arguments={"text": "600"})
    sleeping = asyncio.create_task(post(http, call, own))
    await post(http, request("tools/call", 2, name="echo", arguments={}), own)

    await http.delete("/mcp", headers=own)

    assert (await sleeping).json()["error"]["code"] == -32800


async def test_who_holds_most_sessions_gives_one_up_for_a_newcomer(
    app: HttpApp, clock: ManualClock
) -> None:
    opening = opening_of("initialize", {})
    few, _ = app.sessions.begin(opening, "has few")
    many: list[tuple[str, Seat]] = []
    for _ in range(255):
        clock.advance(1)
        many.append(app.sessions.begin(opening, "has many"))
    app.sessions.touch(many[0][1], 1)  # it has work to do

    news = [app.sessions.begin(opening, "is new")[0] for _ in range(2)]

    assert app.sessions.find(few, "has few") is not None
    assert all(app.sessions.find(id_, "is new") is not None for id_ in news)
    left = [app.sessions.find(id_, "has many") is not None for id_, _ in many]
    assert left == [True, False, False, *[True] * 252]


async def test_session_that_was_used_within_a_minute_makes_no_room(
    app: HttpApp, clock: ManualClock
) -> None:
    opening = opening_of("initialize", {})
    used, *others = [app.sessions.begin(opening, None)[0] for _ in range(256)]
    clock.advance(300)
    seat = app.sessions.find(used, None)
    assert seat is not None
    for users in (1, -1):
        app.sessions.touch(seat, users)

    for _ in others[:32]:
        app.sessions.begin(opening, None)
        assert app.sessions.find(used, None) is seat
    clock.advance(59)
    with pytest.raises(RpcError, match="too many sessions"):  # those given up are still ending
        app.sessions.begin(opening, None)
    await app.sessions.end_all()

    assert all(app.sessions.find(each, None) is None for each in [used, *others])


async def test_session_in_use_is_given_up_after_a_minute_where_all_are(
    app: HttpApp, clock: ManualClock
) -> None:
    opening = opening_of("initialize", {})
    for id_, seat in [app.sessions.begin(opening, None) for _ in range(256)]:
        assert app.sessions.find(id_, None) is seat

    clock.advance(59)
    with pytest.raises(RpcError, match="too many sessions"):
        app.sessions.begin(opening, None)
    clock.advance(1)
    app.sessions.begin(opening, None)
    await app.sessions.end_all()


async def test_flood_of_introductions_has_bounds_and_leaves_a_session_in_use_alone(
    bench: Any,
) -> None:
    command = ("-I", "-S", str(SDK.with_name("texts.py")))
    server = UpstreamSpec(name="texts", command=sys.executable, args=command)
    app = HttpApp(await bench.proxy(server), HttpFront(host="127.0.0.1", port=0))
    client = {"name": "flood", "version": "1"}
    opening = request("initialize", protocolVersion="2025-06-18", clientInfo=client)
    call = request("tools/call", 2, name="make", arguments={"seed": 1, "size": 100})
    limits = httpx2.Limits(max_connections=None)
    async with (
        served(app) as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), limits=limits, timeout=300) as http,
    ):
        own = await introduced(http)
        used: list[int] = []

        flood = asyncio.gather(*(post(http, opening) for _ in range(280)))
        while not flood.done():
            used.append((await post(http, call, own)).status_code)
        answers = await flood
        after = await post(http, call, own)
    left = [each for each in psutil.Process().children() if "texts.py" in " ".join(each.cmdline())]

    statuses = Counter(each.status_code for each in answers)
    assert statuses.keys() <= {200, 503}
    assert statuses[200] <= 255 + 32
    assert set(used) == {200}
    assert after.status_code == 200
    assert left == []


async def test_calls_that_nobody_answers_keep_few_sessions(
    bench: Any, plain: Any, clock: ManualClock
) -> None:
    front = HttpFront(host="127.0.0.1", port=0)
    app = HttpApp(await bench.proxy(plain(era="handshake")), front, clock)
    transport = httpx2.ASGITransport(app)
    states: list[str] = []
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        message, headers = modern("tools/call", "elicit", name="elicit", arguments={})
        message["params"]["_meta"][f"{META}clientCapabilities"] = {"elicitation": {}}
        for _ in range(17):
            clock.advance(1)
            answer = await post(http, message, headers)
            states.append(answer.json()["result"]["requestState"])
        answers = {"inputResponses": {"q1": {"action": "decline"}}}
        again = [
            await post(
                http,
                {**message, "params": {**message["params"], **answers, "requestState": state}},
                headers,
            )
            for state in (states[0], states[-1])
        ]
        await app.sessions.end_all()

    assert "no longer waiting" in again[0].json()["error"]["message"]
    assert again[1].json()["result"]["resultType"] == "complete"


async def test_connection_is_there_for_longer_than_clients_keep_it(bench: Any, plain: Any) -> None:
    app = HttpApp(await bench.proxy(plain()), HttpFront(host="127.0.0.1", port=0))
    message, headers = modern("server/discover")
    asked = httpx2.Request("POST", "http://127.0.0.1/mcp", json=message, headers=BOTH | headers)
    lines = [b"POST /mcp HTTP/1.1", *(b": ".join(each) for each in asked.headers.raw), b"", b""]
    async with served(app) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
        statuses: list[bytes] = []
        for pause in (6, 0):
            writer.write(b"\r\n".join(lines) + asked.content)
            statuses.append(await reader.readline())
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = re.findall(rb"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(length))
            await asyncio.sleep(pause)  # httpx keeps a connection for 5 seconds, as uvicorn would
        writer.close()

    assert statuses == [b"HTTP/1.1 200 OK\r\n"] * 2
