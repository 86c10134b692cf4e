"""Reports on what a model sees over time: nothing changes, nothing nests, no escape leaks."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Artifact, Bank, Envelope, Limits, Mirror, mirror
from coatcheck.stores import MemoryStore, Store
from coatcheck.testing import ManualClock
from coatcheck.tools import Tool, artifact_tools, retrieval_tools

Show = Callable[[Bank, object], Awaitable[Any]]


async def listed(bank: Bank) -> list[Artifact]:
    return [artifact async for artifact in bank.list()]


class Loop:
    """An agent's loop: calls tools by name, and offloads whatever they return."""

    def __init__(self, bank: Bank, tools: list[Tool]) -> None:
        self._mirror = Mirror(bank)
        self._tools = {tool.name: tool for tool in tools}

    async def call(self, name: str, **arguments: object) -> str:
        reply = await self._tools[name].call(json.dumps(arguments))
        return str(await self._mirror.offload(reply, tool=name))


@pytest.mark.parametrize("char", ["x", "é", '"', "\0"])
async def test_br_066_what_is_read_is_shown_and_not_offloaded_again(bank: Bank, char: str) -> None:
    pointer = (await bank.put(char * 500_000)).pointer
    loop = Loop(bank, retrieval_tools(bank))

    reply = json.loads(await loop.call("retrieve_context", artifactId=pointer))
    assert 0 < len(reply["content"]) == reply["nextOffset"] <= 50_000
    for limit in (50_000, 51_000, 51_200, 60_000, 200_000, 400_000):
        window = {"artifactId": pointer, "limit": limit}
        reply = json.loads(await loop.call("retrieve_context", **window))
        assert "pointer" not in reply
        assert reply["content"] == char * min(limit, 200_000)
        assert (reply["hasMore"], reply["nextOffset"]) == (True, min(limit, 200_000))
    assert [artifact.pointer for artifact in await listed(bank)] == [pointer]


async def test_br_066_reading_on_to_the_end_makes_no_artifact(bank: Bank) -> None:
    pointer = (await bank.put("ab\n" * 170_000)).pointer
    loop = Loop(bank, retrieval_tools(bank))

    content, offset = "", 0
    while offset is not None:
        call = {"artifactId": pointer, "offset": offset, "limit": 60_000}
        reply = json.loads(await loop.call("retrieve_context", **call))
        content += reply["content"]
        offset = reply.get("nextOffset")

    assert content == "ab\n" * 170_000
    assert len(await listed(bank)) == 1


async def test_br_066_the_largest_replies_of_all_our_tools_are_bounded_and_shown(
    bank: Bank,
) -> None:
    for number in range(60):
        await bank.put("🐘\x01" * 30_000, name=f"{number} " + "ü" * 190)
    pointer = (await bank.put("\x01" * 300_000)).pointer
    loop = Loop(bank, [*retrieval_tools(bank), *artifact_tools(bank)])

    found = json.loads(await loop.call("retrieve_context", artifactId=pointer, search="\x01"))
    assert len(found["matches"]) == 50
    assert len(json.loads(await loop.call("listArtifacts"))) == 50
    got = json.loads(await loop.call("getArtifact", pointerOrName=pointer))
    assert got["hasMore"] is True
    assert len(await listed(bank)) == 61


@pytest.mark.parametrize("reader", [None, "retrieve_context", "look_up"])
async def test_br_066_only_the_tool_that_reads_is_spared(bank: Bank, reader: str | None) -> None:
    mirrored = Mirror(bank, reader=reader)

    for tool in (None, "look_up", "retrieve_context", "retrieve_context_2", "tool"):
        shown = await mirrored.offload("x" * 60_000, tool=tool)
        spared = tool == "retrieve_context" or (tool is not None and tool == reader)
        assert isinstance(shown, Envelope) == (not spared)


async def test_br_066_an_envelope_is_not_offloaded_again(bank: Bank, show: Show) -> None:
    shown = await show(bank, "x" * 60_000)

    assert await show(bank, shown) is shown
    assert await show(bank, await bank.find(shown.pointer)) == shown
    text = str(shown)
    assert await show(bank, text) == text
    assert len(await listed(bank)) == 1


async def render(bank: Bank, pointers: list[str]) -> list[str]:
    """Return a history's pointer messages, made anew from what is stored."""
    found = [await bank.find(pointer) for pointer in pointers]
    return [str(Envelope.of(artifact)) for artifact in found if artifact is not None]


VALUES: list[object] = [
    "x" * 60_000,
    "\x1b[31mFAIL\x1b[0m żółć \ud83d\n" * 5_000,
    {"rows": [{"id": number, "name": f"n{number}"} for number in range(4_000)]},
    b"\x89PNG\r\n\x1a\n" + bytes(60_000),
]


async def test_br_068_old_pointer_messages_never_change(
    reopen: Callable[[], Store], show: Show, clock: ManualClock
) -> None:
    bank = Bank(reopen(), clock=clock)
    shown = [await show(bank, value) for value in VALUES[:3]]
    first = [str(envelope) for envelope in shown]
    pointers = [envelope.pointer for envelope in shown]

    for seconds in (0, 1, 3_599, 86_400 * 365):
        clock.advance(seconds)
        await bank.put("x" * 70_000, name=f"later {seconds}")
        assert await render(bank, pointers) == first
        later = Bank(reopen(), clock=clock, limits=Limits(preview_chars=7, glimpse_tokens=9))
        assert await render(later, pointers) == first
        assert [str(envelope) for envelope in shown] == first


@pytest.mark.parametrize("value", VALUES, ids=["text", "colours", "json", "binary"])
async def test_br_068_an_envelope_holds_no_time_and_no_count_of_the_store(value: object) -> None:
    seen: set[str] = set()
    for now, others in ((0.0, 0), (1_700_000_000.5, 3), (2_500_000_000.0, 40)):
        bank = Bank(MemoryStore(), clock=ManualClock(now))
        for number in range(others):
            await bank.put(f"other {number}")
        artifact = await bank.put(value, ttl_seconds=5 + others)
        seen.add(str(Envelope.of(artifact)).replace(artifact.id, ""))

    assert len(seen) == 1


async def test_br_068_a_replay_of_the_same_call_renders_the_same_bytes(
    reopen: Callable[[], Store], clock: ManualClock
) -> None:
    shown: set[str] = set()
    for seconds in (0, 1, 3_600):
        clock.advance(seconds)
        bank = Bank(reopen(), clock=clock)
        shown.add(str(await Mirror(bank).offload("x" * 60_000, tool="t", call_id="call_0")))

    assert len(shown) == 1
    assert len(await listed(bank)) == 1


async def test_br_068_the_same_failure_is_said_in_the_same_words_at_any_time(
    bank: Bank, clock: ManualClock
) -> None:
    (reader,) = retrieval_tools(bank)
    await bank.put("something")
    call = {"artifactId": "art:00000000-0000-4000-8000-000000000005"}

    first = await reader.call(call)
    clock.advance(3_600)

    assert await reader.call(call) == first


def test_br_068_the_tool_list_is_the_same_bytes_for_every_bank() -> None:
    lists = {
        json.dumps([[tool.name, tool.description, tool.parameters] for tool in tools])
        for tools in (
            [*retrieval_tools(bank), *artifact_tools(bank)]
            for bank in (Bank(MemoryStore()), Bank(MemoryStore(), scope="other"))
        )
    }

    assert len(lists) == 1


@settings(max_examples=60)
@given(
    st.text(min_size=300, max_size=600)
    | st.lists(st.text(max_size=20), min_size=40, max_size=60)
    | st.binary(min_size=400, max_size=500)
)
async def test_an_envelope_rendered_from_the_store_is_the_one_that_was_shown(
    value: object,
) -> None:
    store = MemoryStore()
    bank = Bank(store, clock=ManualClock(1.0), limits=Limits(inline_bytes=1))

    shown = await Mirror(bank, Limits(inline_bytes=1, per_tool={"t": 0})).offload(value, tool="t")

    assert isinstance(shown, Envelope)
    later = Bank(store, clock=ManualClock(1e9))
    assert await render(later, [shown.pointer]) == [str(shown)]


COLOURED = "\x1b[31mFAIL\x1b[0m ok\n" * 5_000


async def test_br_093_colours_are_kept_and_not_shown(bank: Bank, show: Show) -> None:
    shown = await show(bank, COLOURED)

    stored = await bank.get(shown.pointer)
    assert stored == COLOURED
    assert str(stored).count("\x1b") == 10_000
    wire = json.loads(str(shown))
    assert wire["preview"].partition(" … ")[0] == ("FAIL ok\n" * 25)[:200]
    for text in (wire["preview"], wire.get("glimpse", "")):
        assert "\x1b" not in text
        assert "[31m" not in text
        assert "[0m" not in text
    assert wire["preview"].endswith(f" … ({85_000 - 25 * 17:,} more characters)")
    found = await bank.search(shown.pointer, "fail")
    assert (found.matches[0].offset, found.total_matches) == (5, 5_000)


SEQUENCES = [
    "\x1b[31m",
    "\x1b[38;2;255;128;0m",
    "\x1b[2K\x1b[1G",
    "\x1b]8;;https://example.test/a\x1b\\",
    "\x1b]0;title\x07",
    "\x1bP1$r0m\x1b\\",
    "\x1b(B",
    "\x1bc",
    "\x9b31m",
    "\x1b[?25l",
]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("every", [1, 7])
async def test_br_093_no_sequence_of_any_kind_is_shown_whole_or_broken(
    sequence: str, every: int
) -> None:
    text = ("abcdefg"[:every] + sequence) * 9_000
    for chars in (1, 2, 5, 199, 200, 201):
        bank = Bank(MemoryStore(), limits=Limits(preview_chars=chars))
        artifact = await bank.put(text)

        head = artifact.shown_preview.partition(" … ")[0]
        assert head == ("abcdefg"[:every] * 300)[:chars]
        assert artifact.preview == ("abcdefg"[:every] * 1_000)[:1_000]
        assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", str(artifact.glimpse)) is None


@pytest.mark.parametrize("cut", range(1, 12))
async def test_br_093_a_sequence_that_never_ends_does_not_leak(cut: int) -> None:
    artifact = await Bank(MemoryStore()).put("done " * 40 + "\x1b[38;5;196m"[:cut])

    assert artifact.preview == "done " * 40


async def test_br_093_a_coloured_last_line_is_shown_in_plain_letters(bank: Bank) -> None:
    text = "building\n" * 8_000 + "\x1b[1;31mFAILED\x1b[0m: \x1b[33m3 errors\x1b[0m\n"

    glimpse = str((await bank.put(text)).glimpse)

    assert "FAILED: 3 errors" in glimpse
    assert "\x1b" not in glimpse


async def test_br_093_a_search_for_an_escape_itself_finds_it(bank: Bank) -> None:
    pointer = (await bank.put(COLOURED)).pointer
    (reader,) = retrieval_tools(bank)

    found = json.loads(await reader.call({"artifactId": pointer, "search": "\x1b[0m"}))

    assert found["totalMatches"] == 5_000
    assert found["matches"][0]["offset"] == 9


def test_br_093_a_small_coloured_reply_is_left_alone() -> None:
    def tool() -> str:
        return "\x1b[31mFAIL\x1b[0m"

    assert mirror(tool, Bank(MemoryStore()))() == "\x1b[31mFAIL\x1b[0m"
