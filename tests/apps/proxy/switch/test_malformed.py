"""Whatever comes over a line, from either side, ends neither the proxy nor another call."""

import json
from typing import Any

import pytest

MALFORMED = {
    "not JSON": b"hello",
    "half of a message": b'{"jsonrpc":"2.0","id":9,"method":',
    "a batch": b'[{"jsonrpc":"2.0","id":9,"method":"ping"}]',
    "a number": b"7",
    "no UTF-8": b'{"jsonrpc":"2.0","id":9,"method":"\xff\xfe"}',
    "no jsonrpc": b'{"id":9,"method":"ping"}',
    "another jsonrpc": b'{"jsonrpc":"1.0","id":9,"method":"ping"}',
    "a null id": b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    "a truth as id": b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    "an object as id": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    "a method that is no text": b'{"jsonrpc":"2.0","id":9,"method":7}',
    "parameters that are a list": b'{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}',
    "neither method nor result": b'{"jsonrpc":"2.0","id":9}',
    "nested for ever": b'{"jsonrpc":"2.0","id":9,"method":"x","params":' + b'{"a":' * 90_000,
    "nothing": b"{}",
}
IGNORED = {
    "an answer to nothing": b'{"jsonrpc":"2.0","id":9,"result":{}}',
    "an error to nothing": b'{"jsonrpc":"2.0","id":9,"error":"why"}',
    "a blank line": b"   ",
    "a cancel of nothing": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
    "a cancel of an object": (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}'
    ),
    "progress of nothing": (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}'
    ),
}


async def test_malformed_line_of_a_client_is_refused_and_the_next_is_served(
    bench: Any, plain: Any
) -> None:
    host = await bench.host(plain())

    for line in MALFORMED.values():
        host.send_line(line)
    text = await host.text("echo", text="alive")

    assert text == "alive"
    codes = [each["error"]["code"] for each in host.stray]
    assert len(codes) == len(MALFORMED)
    assert set(codes) <= {-32700, -32600, -32602}


async def test_what_a_client_sends_to_no_purpose_is_ignored(bench: Any, plain: Any) -> None:
    host = await bench.host(plain())

    for line in IGNORED.values():
        host.send_line(line)

    assert await host.text("echo", text="alive") == "alive"
    assert host.stray == []


async def test_malformed_line_of_a_server_is_passed_over_and_told_to_who_runs_the_proxy(
    bench: Any, plain: Any
) -> None:
    host = await bench.host(plain())

    for line in [*MALFORMED.values(), *IGNORED.values()]:
        assert await host.text("say", text=line[:2_000].decode("latin-1")) == "said"

    assert await host.text("echo", text="alive") == "alive"
    assert any("hello" in line for line in bench.logged)
    assert host.stray == []


@pytest.mark.parametrize("id_", ["9", '"nine"'])
async def test_byte_order_mark_before_a_message_is_passed_over(
    bench: Any, plain: Any, id_: str
) -> None:
    host = await bench.host(plain())

    host.send_line(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id_.encode())
    await host.text("echo", text="alive")

    assert host.stray == [{"jsonrpc": "2.0", "id": json.loads(id_), "result": {}}]


async def test_id_that_is_used_twice_at_once_gets_two_answers(bench: Any, plain: Any) -> None:
    host = await bench.host(plain())
    call = b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":%b}'

    host.send_line(call % b'{"name":"sleep","arguments":{"text":"0.05"}}')
    host.send_line(call % b'{"name":"echo","arguments":{"text":"first"}}')
    await host.seen(lambda: len(host.stray) == 2)

    texts = [each["result"]["content"][0]["text"] for each in host.stray]
    assert texts == ["first", "slept"]
    assert {each["id"] for each in host.stray} == {77}


UNREADABLE = {
    "no UTF-8": '{"jsonrpc":"2.0","id":ID,"result":{"content":"\xff"}}',
    "half of it": '{"jsonrpc":"2.0","id":ID,"result":{"content":',
    "nested for ever": '{"jsonrpc":"2.0","id":ID,"result":{"a":' + "[" * 90_000,
    "a result that is a text": '{"jsonrpc":"2.0","id":ID,"result":"text"}',
    "a result that is null": '{"jsonrpc":"2.0","id":ID,"result":null}',
    "an error that is a text": '{"jsonrpc":"2.0","id":ID,"error":"why"}',
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_answer_that_cannot_be_read_is_an_error_of_its_call_alone(
    bench: Any, plain: Any, line: str
) -> None:
    host = await bench.host(plain())

    response = await host.ask("tools/call", name="answer_with", arguments={"text": line})

    assert response["error"]["code"] == -32603
    assert await host.text("echo", text="alive") == "alive"


READABLE = {
    "a result before all else": '{"result":{"content":[]},"jsonrpc":"2.0","id":ID}',
    "spaces": ' { "jsonrpc" : "2.0" , "id" : ID , "result" : { "content" : [ ] } } ',
    "an id given back as text": '{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}',
    "no jsonrpc": '{"id":ID,"result":{"content":[]}}',
    "NaN": '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"n":NaN}}',
    "more members": '{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"more":1}',
    "a carriage return": '{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}\r',
}


@pytest.mark.parametrize("line", READABLE.values(), ids=READABLE.keys())
async def test_answer_in_an_odd_form_is_understood(bench: Any, plain: Any, line: str) -> None:
    host = await bench.host(plain())

    result = await host.result("tools/call", name="answer_with", arguments={"text": line})

    assert result["content"] == []


async def test_server_cannot_answer_for_a_call_that_it_did_not_get(bench: Any, plain: Any) -> None:
    host = await bench.host(plain())
    forged = '{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"id":5555,"result":{"content":[1]}}'

    host.begin("tools/call", name="answer_with", arguments={"text": forged})

    assert await host.text("echo", text="alive") == "alive"
    assert not [line for line in host.lines if b"5555" in line]


async def test_line_of_40_mb_passes_both_ways(bench: Any, plain: Any) -> None:
    host = await bench.host(plain())
    text = "0123456789abcdef" * 2_500_000

    result = await host.call("echo", text=text)

    assert "art:" in result["content"][0]["text"]
    pointer = json.loads(result["content"][0]["text"])["pointer"]
    assert (await host.call("total", items=f"{pointer}#char=0,1"))["isError"] is True
    assert await host.text("echo", text="alive") == "alive"
