"""What the proxy does to messages, whole: tools listed, pointers resolved, results read back."""

import json
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from rs_bpe.bpe import openai  # pyright: ignore[reportUnknownVariableType]

from coatcheck import Bank, Limits, UnknownPointerError
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._results import META_ARTIFACTS
from coatcheck.apps.proxy._scope import Scope
from coatcheck.apps.proxy._settings import Settings
from coatcheck.bank import Journal, read_journal
from coatcheck.errors import InvalidArgumentError, StoreUnavailableError
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock
from coatcheck.tools import META_SCOPE

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ROWS = [{"id": number, "name": f"name {number}"} for number in range(5_000)]
TEXT = json.dumps(ROWS)
TAKES_IDS: dict[str, object] = {
    "name": "total",
    "inputSchema": {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}},
            "first": {"type": "integer"},
            "body": {"type": "string"},
            "options": {"type": "object", "properties": {"ids": {"type": "array"}}},
            "either": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]
            },
        },
        "additionalProperties": False,
    },
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bank(clock: ManualClock) -> Bank:
    return Bank(MemoryStore(), clock=clock)


@pytest.fixture
def acts(bank: Bank) -> Acts:
    acts = Acts(bank, Settings())
    acts.tools([TAKES_IDS], upstream="b")
    return acts


def of_text(text: str, **facts: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **facts}


async def banked(acts: Acts, scope: Scope, text: str = TEXT) -> str:
    """Return the pointer of what a tool of server a returned."""
    shown = await acts.result(scope, "a", "rows", of_text(text))
    pointer: str = shown["_meta"][META_ARTIFACTS][0]["pointer"]
    return pointer


async def read(acts: Acts, scope: Scope, **arguments: object) -> dict[str, Any]:
    result = await acts.call_own(scope, {"name": "retrieve_context", "arguments": arguments})
    found: dict[str, Any] = json.loads(cast("Any", result)["content"][0]["text"])
    return found


def tokens(text: str) -> int:
    return len(cast("Any", openai).o200k_base().encode(text))


def test_what_is_paid_for_on_each_call_keeps_within_its_tokens(acts: Acts) -> None:
    (tool,) = acts.own_tools
    schema = {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["inputSchema"],
    }
    tax = tokens(json.dumps(schema, separators=(",", ":")))

    assert tokens(acts.instructions) <= 25
    assert tax + tokens(acts.instructions) <= 155


def test_lists_are_the_same_bytes_across_restarts_and_scopes(bank: Bank) -> None:
    def listed() -> str:
        acts = Acts(bank.scoped("other"), Settings())
        tools = acts.tools([TAKES_IDS, {"name": "x", "inputSchema": {}}], upstream="b")
        return json.dumps([tools, acts.own_tools, acts.resource_templates, acts.instructions])

    assert len({listed() for _ in range(3)}) == 1


async def test_a_pointer_made_by_one_server_is_taken_by_another(acts: Acts) -> None:
    scope = acts.scope()
    pointer = await banked(acts, scope)
    number = await banked(acts, scope, " " * 60_000 + "7")

    arguments = await acts.arguments(
        scope,
        "b",
        "total",
        {
            "ids": f"{pointer}#$[:3].id",
            "first": number,
            "body": pointer,
            "options": {"ids": f"{pointer}#$[1:2].id", "other": [f"{pointer}#/2/name"]},
        },
    )

    assert arguments == {
        "ids": [0, 1, 2],
        "first": 7,
        "body": TEXT,
        "options": {"ids": [1], "other": ["name 2"]},
    }


async def test_arguments_without_a_pointer_are_the_same_object_and_not_judged(acts: Acts) -> None:
    arguments: dict[str, Any] = {"ids": "nonsense", "first": [], "none": "art:deco posters"}
    digest: dict[str, Any] = {"ids": "md5-0123456789abcdef0123456789abcdef"}

    assert await acts.arguments(acts.scope(), "b", "total", arguments) is arguments
    assert await acts.arguments(acts.scope(), "b", "total", digest) is digest


async def test_arguments_are_judged_after_they_are_resolved(acts: Acts) -> None:
    scope = acts.scope()
    pointer = await banked(acts, scope)
    arguments = {"ids": pointer}

    with pytest.raises(InvalidArgumentError, match=r"argument 'ids'\[0\] does not fit") as caught:
        await acts.arguments(scope, "b", "total", arguments)

    failure: Any = acts.failure(caught.value)
    assert failure["isError"] is True
    assert json.loads(failure["content"][0]["text"])["error"] == "invalid-argument"
    assert arguments == {"ids": pointer}


async def test_where_text_and_structure_may_stand_the_structure_is_given_if_it_fits(
    acts: Acts,
) -> None:
    scope = acts.scope()
    pointer = await banked(acts, scope)
    names = await banked(acts, scope, json.dumps(["x" * 60_000]))

    objects = await acts.arguments(scope, "b", "total", {"either": pointer})
    texts = await acts.arguments(scope, "b", "total", {"either": names})

    assert objects == {"either": TEXT}
    assert texts == {"either": ["x" * 60_000]}


async def test_an_unknown_pointer_keeps_the_tool_from_being_called(acts: Acts) -> None:
    with pytest.raises(UnknownPointerError):
        await acts.arguments(acts.scope(), "b", "total", {"options": {"ids": [UNKNOWN]}})


async def test_a_tool_that_was_not_listed_yet_is_asked_for_only_where_a_pointer_is_given(
    bank: Bank,
) -> None:
    first = Acts(bank, Settings())
    pointer = await banked(first, first.scope())
    asked: list[int] = []

    async def listing() -> Sequence[dict[str, object]]:
        asked.append(1)
        return [TAKES_IDS]

    restarted = Acts(bank, Settings())
    scope = restarted.scope()
    await restarted.arguments(scope, "b", "total", {"ids": [1]}, listing=listing)
    assert not asked
    for _ in range(2):
        given = {"ids": f"{pointer}#$[:2].id", "body": pointer}
        arguments = await restarted.arguments(scope, "b", "total", given, listing=listing)
        assert arguments == {"ids": [0, 1], "body": TEXT}

    assert len(asked) == 1


async def test_a_result_replayed_gives_the_same_bytes(acts: Acts, bank: Bank) -> None:
    scope = acts.scope()

    first = await acts.result(scope, "a", "rows", of_text(TEXT))
    again = await Acts(bank, Settings()).result(scope, "a", "rows", of_text(TEXT))

    assert json.dumps(first) == json.dumps(again)


async def test_each_scope_sees_its_own(acts: Acts) -> None:
    principals = [acts.scope(principal=name, transport="http") for name in ("ann", "bob")]
    runs = [acts.scope(meta={META_SCOPE: name}, transport="http") for name in ("r1", "r2")]
    sessions = [acts.scope(session_id=name, transport="http") for name in ("s1", "s2")]
    scopes = [*principals, *runs, *sessions, acts.scope()]
    texts = [TEXT + " " * number for number in range(len(scopes))]
    pointers = [await banked(acts, scope, text) for scope, text in zip(scopes, texts, strict=True)]

    for own, scope in enumerate(scopes):
        for at, pointer in enumerate(pointers):
            found = await read(acts, scope, artifactId=pointer, limit=2)
            if at == own:
                assert found["totalSize"] == len(texts[at])
                continue
            assert found["error"] == "unknown-pointer"
            assert pointers[own] in found["hint"]
            assert not any(other in found["hint"] for other in pointers if other != pointers[own])
            with pytest.raises(UnknownPointerError):
                await acts.arguments(scope, "b", "total", {"body": pointer})
            with pytest.raises(UnknownPointerError):
                await acts.read_resource(scope, f"art://{pointer.removeprefix('art:')}")


async def test_without_identity_a_pointer_opens_for_an_hour_what_it_names_and_nothing_else(
    acts: Acts, clock: ManualClock
) -> None:
    scope = acts.scope(transport="http", meta={})
    pointer, second = await banked(acts, scope), await banked(acts, scope)

    assert pointer != second
    assert (await read(acts, scope, artifactId=pointer))["totalSize"] == len(TEXT)
    answer = await read(acts, scope, artifactId=pointer, query="SELECT * FROM data, data AS b")
    assert answer.get("error") or answer["pointer"] not in {pointer, second}
    assert pointer not in str(await read(acts, scope, artifactId=UNKNOWN))
    with pytest.raises(UnknownPointerError) as of_arguments:
        await acts.arguments(scope, "b", "total", {"body": UNKNOWN})
    with pytest.raises(UnknownPointerError) as of_resource:
        await acts.read_resource(scope, f"art://{UNKNOWN.removeprefix('art:')}")
    assert "art:0" not in of_arguments.value.hint + of_resource.value.hint
    assert "Nearest" not in of_arguments.value.hint + of_resource.value.hint
    clock.advance(3_599)
    assert (await read(acts, scope, artifactId=pointer))["totalSize"] == len(TEXT)
    clock.advance(2)
    assert (await read(acts, scope, artifactId=pointer))["error"] == "expired"


async def test_an_answer_banked_without_identity_lives_no_longer(
    acts: Acts, bank: Bank, clock: ManualClock
) -> None:
    scope = acts.scope(transport="http")
    pointer = await banked(acts, scope)

    answer = await read(acts, scope, artifactId=pointer, query="$[*]")

    artifact = await bank.scoped(scope.name).find(answer["pointer"])
    assert artifact is not None
    assert artifact.name is None
    clock.advance(3_601)
    assert (await read(acts, scope, artifactId=answer["pointer"]))["error"] == "expired"


async def test_a_tool_with_our_name_is_left_out_and_told_once(
    acts: Acts, caplog: pytest.LogCaptureFixture
) -> None:
    theirs: dict[str, object] = {"name": "retrieve_context", "inputSchema": {"type": "object"}}

    with caplog.at_level(logging.WARNING):
        listed = [acts.tools([theirs, TAKES_IDS], upstream="c") for _ in range(2)]
    prefixed = acts.tools([theirs], upstream="c", prefixed=True)

    assert [[tool["name"] for tool in each] for each in listed] == [["total"], ["total"]]
    assert caplog.text.count("c has a tool retrieve_context of its own") == 1
    assert prefixed == [theirs]
    assert acts.is_own("retrieve_context")
    assert not acts.is_own("c_retrieve_context")


async def test_a_reader_of_a_proxy_further_in_gets_pointers_and_replies_as_they_are(
    acts: Acts,
) -> None:
    scope = acts.scope()
    pointer = await banked(acts, scope)
    arguments = {"artifactId": pointer}
    page = of_text("x" * 60_000)
    acts.tools(acts.own_tools, upstream="c", prefixed=True)

    assert await acts.arguments(scope, "c", "retrieve_context", arguments) is arguments
    assert await acts.result(scope, "c", "retrieve_context", page) is page


async def test_a_tool_that_is_excluded_is_left_alone(bank: Bank) -> None:
    acts = Acts(bank, Settings(exclude=frozenset({"total", "b_rows"})))
    scope = acts.scope()
    pointer = await banked(acts, scope)
    arguments, result = {"ids": pointer}, of_text(TEXT)

    assert acts.tools([TAKES_IDS], upstream="b") == [TAKES_IDS]
    assert await acts.arguments(scope, "b", "total", arguments) is arguments
    assert await acts.result(scope, "b", "rows", result) is result


async def test_a_tool_whose_results_are_never_replaced_keeps_all_of_them(bank: Bank) -> None:
    acts = Acts(bank, Settings(limits=Limits(never=frozenset({"total"}))))
    result = of_text(TEXT, structuredContent={"result": ROWS})
    tool = {**TAKES_IDS, "outputSchema": {"type": "object"}}

    (listed,) = acts.tools([tool], upstream="b")

    assert listed["outputSchema"] == tool["outputSchema"]
    assert "$defs" in cast("Any", listed["inputSchema"])
    assert await acts.result(acts.scope(), "b", "total", result) is result


async def test_limits_hold_for_each_tool_by_either_name(bank: Bank) -> None:
    limits = Limits(per_tool={"a_rows": 0, "rows": 100_000_000, "big": 10})
    acts = Acts(bank, Settings(limits=limits, image_bytes={"shot": 4_000}))
    scope = acts.scope()
    image = {"content": [{"type": "image", "data": "iVBORw0KGgoA" * 700, "mimeType": "image/png"}]}

    assert META_ARTIFACTS in (await acts.result(scope, "a", "rows", of_text("x"))).get("_meta", {})
    assert "_meta" not in await acts.result(scope, "b", "rows", of_text(TEXT))
    assert "_meta" in await acts.result(scope, "b", "big", of_text("x" * 2_000))
    assert "_meta" in await acts.result(scope, "b", "shot", image)
    assert "_meta" not in await acts.result(scope, "b", "other", image)


async def test_an_image_that_was_banked_is_shown_by_our_tool(bank: Bank) -> None:
    acts = Acts(bank, Settings(image_bytes={"shot": 4_000}))
    scope = acts.scope()
    image = {"type": "image", "data": "iVBORw0KGgoA" * 1_000, "mimeType": "image/png"}
    shown = await acts.result(scope, "a", "shot", {"content": [image]}, size_hint=12_100)
    pointer = shown["_meta"][META_ARTIFACTS][0]["pointer"]

    result = await acts.call_own(scope, {"arguments": {"artifactId": pointer}})

    assert result == {"content": [image], "isError": False}


@pytest.mark.parametrize("size_hint", [None, 80, 51_199])
async def test_a_small_result_is_the_same_object(acts: Acts, size_hint: int | None) -> None:
    result = of_text("small", structuredContent={"result": "small"})

    assert await acts.result(acts.scope(), "a", "rows", result, size_hint=size_hint) is result


async def test_what_is_not_complete_passes_as_it_is(acts: Acts) -> None:
    result = {"resultType": "input_required", "content": of_text(TEXT)["content"]}
    complete = of_text(TEXT, resultType="complete")

    assert await acts.result(acts.scope(), "a", "rows", result) is result
    assert (await acts.result(acts.scope(), "a", "rows", complete))["resultType"] == "complete"


async def test_only_addresses_of_ours_are_read(acts: Acts) -> None:
    scope = acts.scope()
    pointer = await banked(acts, scope)

    found: Any = await acts.read_resource(scope, f"art://{pointer.removeprefix('art:')}")

    assert found["contents"][0]["text"] == TEXT
    assert await acts.read_resource(scope, "file:///etc/passwd") is None
    with pytest.raises(UnknownPointerError, match="art://nothing"):
        await acts.read_resource(scope, "art://nothing")


async def test_scopes_beyond_those_kept_ready_still_find_their_pointers(acts: Acts) -> None:
    scopes = [acts.scope(session_id=str(number), transport="http") for number in range(300)]
    pointer = await banked(acts, scopes[0])
    for scope in scopes:
        await acts.result(scope, "a", "rows", of_text("small"))

    assert (await read(acts, scopes[0], artifactId=pointer))["totalSize"] == len(TEXT)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    with Journal(tmp_path / "calls.jsonl") as journal:
        yield journal


async def test_each_call_is_one_line_of_the_journal(journal: Journal) -> None:
    acts = Acts(Bank(MemoryStore(), journal=journal), Settings())
    acts.tools([TAKES_IDS], upstream="b")
    scope = acts.scope()
    pointer = await banked(acts, scope)
    given = {"body": pointer}
    await acts.result(scope, "b", "total", of_text("ok"), given=given, size_hint=40)
    await read(acts, scope, artifactId=pointer)
    with pytest.raises(UnknownPointerError):
        await acts.arguments(scope, "b", "total", {"body": UNKNOWN})

    journal.flush()
    rows, total, reading, failed = read_journal(journal.path)

    assert (rows.verb, rows.tool, rows.pointers_out) == ("tool", "rows", (pointer,))
    assert rows.tokens > 20 * rows.shown_tokens
    assert (total.tool, total.pointers_in, total.size_bytes) == ("total", (pointer,), 2)
    assert reading.verb == "read"
    assert (failed.tool, failed.pointers_in, failed.is_error) == ("total", (UNKNOWN,), True)
    assert {each.scope for each in (rows, total, reading, failed)} == {scope.name}


async def test_a_dry_run_passes_everything_and_tells_the_journal(journal: Journal) -> None:
    acts = Acts(Bank(MemoryStore(), journal=journal), Settings(dry_run=True))
    scope = acts.scope()
    tool = {**TAKES_IDS, "outputSchema": {"type": "object"}}
    own: dict[str, object] = {"name": "retrieve_context", "inputSchema": {}}
    arguments, result = {"ids": UNKNOWN}, of_text(TEXT)

    assert acts.tools([tool, own], upstream="b") == [tool, own]
    assert acts.own_tools == acts.resource_templates == []
    assert acts.instructions == ""
    assert not acts.is_own("retrieve_context")
    assert await acts.arguments(scope, "b", "total", arguments) is arguments
    assert await acts.read_resource(scope, f"art://{UNKNOWN.removeprefix('art:')}") is None
    assert await acts.result(scope, "b", "total", result) is result

    journal.flush()
    (call,) = read_journal(journal.path)
    assert call.size_bytes == len(TEXT)
    assert call.tokens > 20 * call.shown_tokens


async def test_an_outage_costs_no_result_and_is_told_where_something_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Down(MemoryStore):
        async def put(self, key: str, payload: bytes) -> None:
            raise StoreUnavailableError("no route")

        async def get(self, key: str) -> bytes | None:
            raise StoreUnavailableError("no route")

    acts = Acts(Bank(Down()), Settings())
    scope, result = acts.scope(), of_text("x" * 190_000)

    assert await acts.result(scope, "a", "rows", result) is result
    assert "was not kept" in caplog.text
    assert (await read(acts, scope, artifactId=UNKNOWN))["error"] == "store-unavailable"
    with pytest.raises(StoreUnavailableError):
        await acts.arguments(scope, "b", "total", {"ids": UNKNOWN})
