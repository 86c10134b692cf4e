"""The cases of seed 000, Agentium's memory pointers: each test names the case it holds."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from coatcheck import (
    Artifact,
    Bank,
    Envelope,
    Limits,
    Mirror,
    UnknownPointerError,
    encoded_size,
    is_pointer,
    mirror,
)
from coatcheck.stores import Store
from coatcheck.tools import Tool, artifact_tools

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
UNISSUED = "art:00000000-0000-4000-8000-000000000005"


async def listed(bank: Bank) -> list[Artifact]:
    return [artifact async for artifact in bank.list()]


def trio(bank: Bank) -> dict[str, Tool]:
    return {tool.name: tool for tool in artifact_tools(bank)}


async def ask(tool: Tool, **arguments: object) -> Any:
    """Return the reply to a call as a model makes it, from JSON text to JSON."""
    return json.loads(await tool.call(json.dumps(arguments)))


# --- storing and finding -----------------------------------------------------------------------


async def test_a1_a_pointer_is_art_and_a_uuid_and_short_text_is_its_own_preview(
    bank: Bank,
) -> None:
    artifact = await bank.put("hello world")

    assert re.fullmatch(f"art:{UUID}", artifact.pointer)
    assert artifact.pointer == f"art:{artifact.id}"
    assert artifact.preview == "hello world"
    assert Envelope.of(artifact).preview == "hello world"


async def test_a2_size_bytes_of_abc_is_3(bank: Bank) -> None:
    assert (await bank.put("abc")).size_bytes == 3


async def test_a3_a_cut_preview_is_as_long_as_asked_and_the_envelope_counts_the_rest(
    bank: Bank,
) -> None:
    def dump() -> str:
        return "x" * 500

    artifact = await bank.put(dump(), preview_chars=100)
    envelope = mirror(dump, bank, inline_bytes=500, preview_chars=100)()

    assert artifact.preview == "x" * 100
    assert envelope.preview == "x" * 100 + " … (400 more characters)"


async def test_a4_a_name_finds_the_artifact_and_its_value(bank: Bank) -> None:
    artifact = await bank.put("line 1\nline 2", name="logs")

    assert artifact.name == "logs"
    assert await bank.find("logs") == artifact
    assert await bank.get("logs") == "line 1\nline 2"


async def test_a5_the_preview_of_an_object_is_its_json_and_its_size_that_of_the_json(
    bank: Bank,
) -> None:
    artifact = await bank.put({"rows": [1, 2, 3, 4, 5]})

    assert artifact.preview == '{"rows":[1,2,3,4,5]}'
    assert artifact.size_bytes == len('{"rows":[1,2,3,4,5]}')
    assert artifact.content_type == "application/json"


@pytest.mark.parametrize("pointer", ["art:does-not-exist", UNISSUED])
async def test_a6_an_unknown_pointer_finds_none(bank: Bank, pointer: str) -> None:
    await bank.put("something else", name="else")

    assert await bank.find(pointer) is None
    with pytest.raises(UnknownPointerError, match="No artifact behind"):
        await bank.get(pointer)


async def test_a7_an_unknown_name_finds_none(bank: Bank) -> None:
    await bank.put("something else", name="logs")

    assert await bank.find("log") is None
    with pytest.raises(UnknownPointerError, match="No artifact behind 'log'"):
        await bank.get("log")


async def test_a8_an_object_comes_back_equal_and_not_as_its_json_text(bank: Bank) -> None:
    given = {"foo": "bar", "nested": [None, True, 1.5, {"n": 2**70}]}
    artifact = await bank.put(given)

    found = await bank.get(artifact.pointer)

    assert found == {"foo": "bar", "nested": [None, True, 1.5, {"n": 2**70}]}
    assert found is not given


async def test_a9_a_fresh_bank_lists_nothing(bank: Bank) -> None:
    assert await listed(bank) == []


async def test_a10_a_listing_has_each_artifact_once_named_or_not(bank: Bank) -> None:
    put = [await bank.put("a", name="x"), await bank.put("b"), await bank.put("c", name="y")]

    assert await listed(bank) == put[::-1]


def test_a11_is_pointer_is_true_for_the_exact_grammar_only() -> None:
    assert is_pointer(UNISSUED) is True
    assert is_pointer("art:abc") is False
    assert is_pointer("art:" + "abc" * 12) is False  # as long as a pointer
    assert is_pointer(UNISSUED.upper()) is False
    assert is_pointer("not-art:abc") is False
    assert is_pointer(f"not-{UNISSUED}") is False
    assert is_pointer(123) is False


def test_a12_encoded_size_counts_the_bytes_of_compact_json() -> None:
    assert encoded_size("abc") == 3
    assert encoded_size({"k": "v"}) == len('{"k":"v"}')


# --- the trio of tools ---------------------------------------------------------------------------


def test_a13_the_factory_gives_exactly_three_tools(bank: Bank) -> None:
    names = [tool.name for tool in artifact_tools(bank)]

    assert names == ["storeArtifact", "getArtifact", "listArtifacts"]


async def test_a14_store_artifact_answers_pointer_and_preview_and_the_name_finds_it(
    bank: Bank,
) -> None:
    reply = await ask(trio(bank)["storeArtifact"], name="logs", value="text")

    assert list(reply) == ["pointer", "preview", "sizeBytes", "name"]
    assert is_pointer(reply["pointer"])
    assert (reply["preview"], reply["sizeBytes"], reply["name"]) == ("text", 4, "logs")
    assert await bank.get("logs") == "text"
    assert await bank.get(reply["pointer"]) == "text"


async def test_a15_get_artifact_gives_the_exact_text_by_name_and_by_pointer(bank: Bank) -> None:
    tools = trio(bank)
    text = 'żółć "quoted"\r\n\t{"k": 1}\n'
    stored = await ask(tools["storeArtifact"], name="logs", value=text)

    assert await tools["getArtifact"].call({"pointerOrName": "logs"}) == text
    assert await tools["getArtifact"].call({"pointerOrName": stored["pointer"]}) == text


@pytest.mark.parametrize("asked", ["nope", "art:nope", UNISSUED])
async def test_a16_get_artifact_says_that_no_artifact_was_found(bank: Bank, asked: str) -> None:
    reply = await trio(bank)["getArtifact"].call({"pointerOrName": asked})

    assert reply == f"[no artifact found for '{asked}']"


async def test_a17_list_artifacts_gives_the_facts_newest_first(bank: Bank) -> None:
    tools = trio(bank)
    await ask(tools["storeArtifact"], name="a", value="first")
    await ask(tools["storeArtifact"], name="b", value="{}", contentType="application/json")

    reply = await ask(tools["listArtifacts"])

    assert [row["name"] for row in reply] == ["b", "a"]
    assert [row["preview"] for row in reply] == ["{}", "first"]
    assert [row["contentType"] for row in reply] == ["application/json", "text/plain"]
    keys = {"pointer", "name", "sizeBytes", "preview", "contentType", "storedAt"}
    assert [set(row) for row in reply] == [keys, keys]


# --- what a tool call shows --------------------------------------------------------------------


def big() -> str:
    return "x" * 100_000


async def test_a18_a_result_over_the_limit_becomes_an_envelope_and_is_stored_whole(
    bank: Bank,
) -> None:
    shown = str(mirror(big, bank, inline_bytes=1_024, preview_chars=50)())

    wire = json.loads(shown)
    assert list(wire)[:4] == ["pointer", "preview", "sizeBytes", "note"]
    assert wire["preview"] == "x" * 50 + " … (99,950 more characters)"
    assert wire["sizeBytes"] == 100_000
    assert wire["note"] == f'retrieve_context({{"artifactId":"{wire["pointer"]}"}})'
    assert await bank.get(wire["pointer"]) == big()


async def test_a19_a_small_result_is_shown_as_it_is(bank: Bank) -> None:
    def small() -> str:
        return "hi"

    assert mirror(small, bank, inline_bytes=1_024, preview_chars=50)() == "hi"
    assert await listed(bank) == []


async def test_a20_a_tool_that_is_never_offloaded_gives_its_result_untouched(bank: Bank) -> None:
    limits = Limits(inline_bytes=1_024, never=frozenset({"big"}))

    assert mirror(big, bank, limits=limits)() == big()
    assert await Mirror(bank, limits).offload(big(), tool="big") == big()
    assert await listed(bank) == []


async def test_a21_the_reply_of_store_artifact_is_never_wrapped_again(store: Store) -> None:
    bank = Bank(store, limits=Limits(inline_bytes=10))

    reply = await ask(trio(bank)["storeArtifact"], name="notes", value="n" * 100)

    assert "note" not in reply
    assert reply["preview"] == "n" * 100
    assert [artifact.name for artifact in await listed(bank)] == ["notes"]


async def test_a21_a_host_that_offloads_every_reply_leaves_out_tools_by_name(
    store: Store,
) -> None:
    bank = Bank(store)
    tools = trio(bank)
    host = Mirror(bank, Limits(inline_bytes=10, never=frozenset(tools)))
    arguments = {"name": "notes", "value": "n" * 1_000}

    reply = await tools["storeArtifact"].call(arguments)
    shown = await host.offload(reply, tool="storeArtifact")
    other = await host.offload("n" * 1_000, tool="fetch")

    assert shown == reply
    assert isinstance(other, Envelope)


async def test_a22_to_model_output_shrinks_a_result_before_its_size_is_checked(
    bank: Bank,
) -> None:
    def dump() -> str:
        return "y" * 200_000

    def compress(_result: str) -> str:
        return "compressed"

    async def compress_later(_result: str) -> str:
        return "compressed"

    for shrink in (compress, compress_later):
        assert mirror(dump, bank, inline_bytes=1_024, to_model_output=shrink)() == "compressed"
    assert await listed(bank) == []


async def test_a23_to_model_output_is_handed_the_raw_result(bank: Bank) -> None:
    async def dump() -> str:
        return "abcdefghij" * 20_000

    def summarise(result: str) -> str:
        return f"summary: {result[:8]}"

    shown = await mirror(dump, bank, inline_bytes=1_024, to_model_output=summarise)()

    assert shown == "summary: abcdefgh"


async def test_a37_a_result_of_exactly_the_limit_is_offloaded_and_one_byte_less_is_not(
    bank: Bank,
) -> None:
    def dump(size_bytes: int) -> str:
        return "x" * size_bytes

    at, below = (mirror(dump, bank)(size) for size in (51_200, 51_199))

    assert isinstance(at, Envelope)
    assert at.size_bytes == 51_200
    assert below == "x" * 51_199


async def test_a38_the_limit_counts_bytes_and_not_characters(bank: Bank) -> None:
    def dump(characters: int) -> str:
        return "日" * characters

    at, below = (mirror(dump, bank)(length) for length in (30_000, 17_066))

    assert isinstance(at, Envelope)
    assert at.size_bytes == 90_000
    found = await bank.find(at.pointer)
    assert found is not None
    assert found.length_chars == 30_000
    assert below == "日" * 17_066  # 51,198 bytes


async def test_a39_a_name_given_again_finds_the_newest_and_the_old_pointer_still_resolves(
    bank: Bank,
) -> None:
    old = await bank.put("old", name="logs")
    new = await bank.put("new", name="logs")

    assert await bank.get("logs") == "new"
    assert await bank.get(old.pointer) == "old"
    assert await bank.get(new.pointer) == "new"
    assert await listed(bank) == [new, old]


async def test_a40_an_offloaded_result_is_also_found_by_tool_and_call_id(bank: Bank) -> None:
    shown = await Mirror(bank).offload(big(), tool="fetch_logs", call_id="call_7")

    assert isinstance(shown, Envelope)
    found = await bank.find("fetch_logs_call_7")
    assert found is not None
    assert (found.pointer, found.content_type) == (shown.pointer, "text/plain")
    assert (found.tool, found.kind) == ("fetch_logs", "tool-output")
    reply = await trio(bank)["getArtifact"].call({"pointerOrName": "fetch_logs_call_7"})
    assert reply == big()


async def test_a42_pointers_in_a_session_saved_as_json_resolve_after_a_restart(
    reopen: Callable[[], Store],
) -> None:
    def length(text: str) -> int:
        return len(text)

    shown = mirror(big, Bank(reopen()))()
    saved = json.dumps(
        {"pointer": shown.pointer, "messages": [{"role": "tool", "text": str(shown)}]}
    )

    bank = Bank(reopen())
    session = json.loads(saved)
    pointer = json.loads(session["messages"][0]["text"])["pointer"]
    again = mirror(big, bank)()

    assert pointer == session["pointer"] == shown.pointer
    assert await bank.get(pointer) == big()
    assert mirror(length, bank)(pointer) == 100_000
    assert isinstance(again, Envelope)
    assert again.pointer != pointer
    assert await bank.get(again.pointer) == big()
