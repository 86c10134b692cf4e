"""Reports on MCP: schemas, content blocks, failures, and what is read back through a proxy."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

import jsonschema_rs
import pytest

from coatcheck import Bank, Limits, Mirror
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._scope import Scope
from coatcheck.apps.proxy._settings import Settings
from coatcheck.errors import InvalidArgumentError
from coatcheck.testing import ManualClock

Json = dict[str, Any]


@pytest.fixture
def acts(bank: Bank) -> Acts:
    return Acts(bank, Settings())


@pytest.fixture
def scope(acts: Acts) -> Scope:
    return acts.scope()


def text(given: str) -> Json:
    return {"type": "text", "text": given}


def wire_of(block: Mapping[str, Any]) -> Json:
    return cast("Json", json.loads(block["text"]))


async def ask(acts: Acts, scope: Scope, **arguments: object) -> Json:
    result: Any = await acts.call_own(scope, {"arguments": arguments})
    return wire_of(result["content"][0])


async def read_whole(acts: Acts, scope: Scope, pointer: str) -> str:
    windows: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(acts, scope, artifactId=pointer, offset=offset)
        windows.append(page["content"])
        offset = page.get("nextOffset")
    return "".join(windows)


async def test_br_006_a_page_of_one_server_is_passed_whole_to_another(
    acts: Acts, scope: Scope
) -> None:
    page = json.dumps({"title": "żółć", "body": "x y\r\n" * 60_000}, indent=1)
    update = {
        "name": "update_page",
        "inputSchema": {"type": "object", "properties": {"body": {"type": "string"}}},
    }
    acts.tools([update], upstream="b")

    shown = await acts.result(scope, "a", "get_page", {"content": [text(page)]})
    call = {"body": wire_of(shown["content"][0])["pointer"]}
    arguments = await acts.arguments(scope, "b", "update_page", call)
    done = await acts.result(scope, "b", "update_page", {"content": [text("ok")]})

    assert len(page.encode()) > 300_000
    assert arguments["body"] == page
    assert len(json.dumps([shown, call, done])) < 4_000


@pytest.mark.parametrize("wraps", [True, False])
async def test_br_054_a_replaced_result_has_no_output_schema_to_break(
    acts: Acts, scope: Scope, wraps: bool
) -> None:
    rows = [{"id": number, "pad": "x" * 300} for number in range(200)]
    structured: Any = {"items": rows} if wraps else {"result": rows}
    name = next(iter(structured))
    tool = {
        "name": "rows",
        "inputSchema": {"type": "object"},
        "outputSchema": {
            "type": "object",
            "properties": {name: {"type": "array"}},
            "required": [name],
        },
    }

    (listed,) = acts.tools([tool], upstream="a")
    result = {"content": [text(json.dumps(structured))], "structuredContent": structured}
    shown = await acts.result(scope, "a", "rows", result)

    assert "outputSchema" not in listed
    assert cast("Json", listed["_meta"])["coatcheck/outputSchema"] == tool["outputSchema"]
    assert "structuredContent" not in shown
    pointer = wire_of(shown["content"][0])["pointer"]
    assert len(json.loads(await read_whole(acts, scope, pointer))[name]) == 200
    answer = await ask(acts, scope, artifactId=f"{pointer}#/{name}", query="length(@)")
    assert answer["value"] == 200


async def test_br_056_a_widened_schema_is_valid_and_arguments_arrive_as_their_types(
    acts: Acts, bank: Bank, scope: Scope
) -> None:
    schema: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"$ref": "#/$defs/id"}},
            "limit": {"type": "integer"},
            "order": {"enum": ["up", "down"]},
        },
        "required": ["ids"],
        "additionalProperties": False,
        "$defs": {"id": {"type": "integer", "minimum": 0}},
    }
    tool: dict[str, object] = {"name": "total", "inputSchema": schema}

    (listed,) = acts.tools([tool], upstream="b")
    own = bank.scoped(scope.name)
    ids, limit = await own.put("[1, 2, 3]"), await own.put("7")
    wrong = await own.put('["a"]')
    arguments = await acts.arguments(
        scope, "b", "total", {"ids": ids.pointer, "limit": limit.pointer, "order": "up"}
    )
    with pytest.raises(InvalidArgumentError, match=r"argument 'ids'\[0\] does not fit its type"):
        await acts.arguments(scope, "b", "total", {"ids": wrong.pointer})

    widened = cast("Json", listed["inputSchema"])
    assert jsonschema_rs.meta.is_valid(widened)
    assert widened["type"] == "object"
    assert widened["$defs"]["id"] == schema["$defs"]["id"]
    assert widened["properties"]["order"] == schema["properties"]["order"]
    assert widened["additionalProperties"] is False
    assert arguments == {"ids": [1, 2, 3], "limit": 7, "order": "up"}


async def test_br_057_blocks_keep_their_order_and_an_image_its_bytes(
    acts: Acts, scope: Scope
) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
    image = {"type": "image", "data": base64.b64encode(png).decode(), "mimeType": "image/png"}

    shown = await acts.result(
        scope, "a", "shot", {"content": [text("a" * 60_000), image, text("end")]}
    )

    first, second, third = shown["content"][:3]
    assert wire_of(first)["sizeBytes"] == 60_000
    assert hashlib.sha256(base64.b64decode(second["data"])).digest() == hashlib.sha256(png).digest()
    assert second["mimeType"] == "image/png"
    assert third == text("end")
    assert await read_whole(acts, scope, wire_of(first)["pointer"]) == "a" * 60_000


@pytest.mark.parametrize(
    "block",
    [
        {"type": "hologram", "source": {"type": "laser", "rays": "x" * 90_000}},
        {"type": "image", "source": {"type": "url", "url": "x" * 90_000}},
        {"type": "document", "data": "x" * 90_000},
        {"text": "x" * 90_000},
    ],
)
async def test_br_059_a_block_of_a_kind_we_do_not_know_stays_as_it_was(
    acts: Acts, bank: Bank, scope: Scope, block: Json
) -> None:
    result = {"content": [block]}

    assert await acts.result(scope, "a", "shot", result) is result
    assert [artifact async for artifact in bank.scoped(scope.name).list()] == []


async def test_br_060_an_image_in_json_text_is_told_and_not_shown(acts: Acts, scope: Scope) -> None:
    value = {"screenshot": "data:image/png;base64," + "A" * 400_000, "title": "Login"}
    results: list[Json] = [
        {"content": [text(json.dumps(value))]},
        {"content": [text(json.dumps(value))], "structuredContent": value},
        {"content": [], "structuredContent": value},
    ]

    for result in results:
        shown = await acts.result(scope, "a", "shot", result)
        told = json.dumps(shown)
        assert "Login" in told
        assert "image/png" in told
        assert "300,000 bytes" in told
        assert max(map(len, re.findall("A+", told))) <= 100


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
async def test_br_061_a_failure_keeps_its_flag_and_its_last_line(
    acts: Acts, scope: Scope, end: str
) -> None:
    trace = "Traceback:\n" + '  File "x.py", line 1\n' * 10_000 + "ValueError: boom 42" + end

    shown = await acts.result(scope, "a", "run", {"content": [text(trace)], "isError": True})

    assert shown["isError"] is True
    assert "ValueError: boom 42" in shown["content"][0]["text"]
    pointer = wire_of(shown["content"][0])["pointer"]
    assert await read_whole(acts, scope, pointer) == trace


async def test_br_066_reading_makes_no_new_artifact(acts: Acts, bank: Bank, scope: Scope) -> None:
    long = '"quoted"\n' * 60_000
    shown = await acts.result(scope, "a", "dump", {"content": [text(long)]})
    pointer = wire_of(shown["content"][0])["pointer"]
    acts.tools(acts.own_tools, upstream="proxy", prefixed=True)

    for limit in (60_000, 200_000, 500_000):
        result: Any = await acts.call_own(
            scope, {"arguments": {"artifactId": pointer, "limit": limit}}
        )
        again = await acts.result(scope, "proxy", "retrieve_context", result)
        assert again is result
        page = wire_of(result["content"][0])
        assert page["content"] == long[: min(limit, 200_000)]

    assert len([artifact async for artifact in bank.scoped(scope.name).list()]) == 1


async def test_br_068_the_same_results_give_the_same_bytes_at_any_time(
    acts: Acts, bank: Bank, scope: Scope, clock: ManualClock
) -> None:
    results: list[Json] = [
        {"content": [text("line\n" * 20_000)], "isError": False},
        {"content": [text(json.dumps([{"id": number} for number in range(9_000)]))]},
        {"content": [text("trace\n" * 20_000)], "isError": True},
    ]
    rendered: set[str] = set()

    for seconds in (0, 1, 3_600, 86_400):
        clock.advance(seconds)
        fresh = Acts(bank, Settings())
        rendered.add(
            json.dumps([await fresh.result(scope, "a", "run", result) for result in results])
        )

    (history,) = rendered
    assert history.count("art://") == 6  # a link and a descriptor each
    assert not re.search(r"expires|ago|20\d\d-\d\d-\d\d", history)


async def test_br_038_pointers_that_the_proxy_made_are_taken_everywhere(
    bank: Bank, scope: Scope
) -> None:
    acts = Acts(bank, Settings(limits=Limits(per_tool={"run": 0})))
    own, proxied = bank.scoped(scope.name), Mirror(bank.scoped(scope.name))
    texts = [f"result {number}" for number in range(1_000)]
    pointers: dict[str, str] = {}
    for start in range(0, len(texts), 100):
        some = texts[start : start + 100]
        shown = await acts.result(scope, "a", "run", {"content": [text(each) for each in some]})
        blocks = shown["content"][:100]
        pointers |= {
            wire_of(block)["pointer"]: each for block, each in zip(blocks, some, strict=True)
        }

    resolved = await proxied.resolve({"all": list(pointers)})
    listed = {artifact.pointer async for artifact in own.list()}
    for pointer, whole in list(pointers.items())[::50]:
        assert (await own.read(pointer)).content == whole
        assert (await own.search(pointer, whole)).total_matches == 1
        assert (await ask(acts, scope, artifactId=pointer))["content"] == whole

    assert resolved == {"all": texts}
    assert listed == set(pointers)
