"""The cases of seed 004 on reading back: windows, what they cost the store, and search."""

import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from coatcheck import (
    Artifact,
    Bank,
    Limits,
    Mirror,
    mirror,
)
from coatcheck.stores import Store, SupportsRange
from coatcheck.tools import artifact_tools, retrieval_tools

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
ZERO = "art:00000000-0000-0000-0000-000000000000"


class Counting:
    """A store without ranges, which counts how often a payload is read whole."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.full_reads = 0

    async def put(self, key: str, payload: bytes) -> None:
        await self.store.put(key, payload)

    async def get(self, key: str) -> bytes | None:
        self.full_reads += "/payloads/" in key
        return await self.store.get(key)

    async def delete(self, key: str) -> None:
        await self.store.delete(key)

    def keys(self, folder: str) -> AsyncIterator[str]:
        return self.store.keys(folder)

    async def close(self) -> None:
        await self.store.close()


class CountingRanges(Counting):
    """The same with ranges, which it notes."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.ranges: list[tuple[int, int]] = []

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        assert isinstance(self.store, SupportsRange)
        self.ranges.append((start_byte, stop_byte))
        return await self.store.get_range(key, start_byte, stop_byte)


async def ask(bank: Bank, **arguments: object) -> Any:
    """Return what `retrieve_context` answers, asked as a model does, from JSON text to JSON."""
    (tool,) = retrieval_tools(bank)
    return json.loads(await tool.call(json.dumps(arguments)))


async def listed(bank: Bank) -> list[Artifact]:
    return [artifact async for artifact in bank.list()]


# --- reading back ---------------------------------------------------------------------------------


async def test_c19_an_artifact_id_alone_reads_the_whole_payload(bank: Bank) -> None:
    artifact = await bank.put("the whole of it")

    reply = await ask(bank, artifactId=artifact.pointer)

    assert reply == {
        "content": "the whole of it",
        "totalSize": 15,
        "hasMore": False,
        "offset": 0,
        "limit": 50_000,
    }


async def test_c20_a_window_of_the_alphabet(bank: Bank) -> None:
    artifact = await bank.put(ALPHABET)

    for given in (artifact.pointer, artifact.id):
        assert await ask(bank, artifactId=given, offset=5, limit=5) == {
            "content": "fghij",
            "totalSize": 26,
            "hasMore": True,
            "offset": 5,
            "limit": 5,
            "nextOffset": 10,
        }


async def test_c21_an_unknown_id_is_a_failure_without_content(bank: Bank) -> None:
    live = await bank.put(ALPHABET)

    reply = await ask(bank, artifactId=ZERO)

    assert set(reply) == {"error", "message", "hint"}
    assert reply["error"] == "unknown-pointer"
    assert ZERO in reply["message"]
    assert live.pointer in reply["hint"]


async def test_c32_a_megabyte_in_windows_of_100_000_is_11_pages_that_join_exactly(
    bank: Bank,
) -> None:
    # No run repeats: each page is far over the token bound of a page without a limit.
    text = "".join(random.Random(32).choices(ALPHABET + "0123456789{}\n", k=1_048_576))
    artifact = await bank.put(text)
    pages: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        pages.append(await ask(bank, artifactId=artifact.pointer, offset=offset, limit=100_000))
        offset = pages[-1].get("nextOffset")

    assert len(pages) == 11
    assert [page["offset"] for page in pages] == list(range(0, 1_048_576, 100_000))
    assert {page["totalSize"] for page in pages} == {1_048_576}
    assert [page["hasMore"] for page in pages] == [True] * 10 + [False]
    assert "".join(page["content"] for page in pages) == text


async def test_c33_a_slice_inside_has_more_and_one_at_the_tail_has_not(bank: Bank) -> None:
    text = "".join(random.Random(33).choices(ALPHABET, k=5_000))
    artifact = await bank.put(text)

    inside = await ask(bank, artifactId=artifact.pointer, offset=1_000, limit=250)
    tail = await ask(bank, artifactId=artifact.pointer, offset=4_900, limit=500)

    assert (inside["content"], inside["hasMore"]) == (text[1_000:1_250], True)
    assert (tail["content"], tail["hasMore"]) == (text[4_900:], False)
    assert "nextOffset" not in tail


async def test_c34_a_json_payload_reads_back_as_json_with_all_500_items(bank: Bank) -> None:
    rows = [
        {"id": number, "name": f"item {number}", "ok": number % 2 == 0} for number in range(500)
    ]
    artifact = await bank.put(rows)

    reply = await ask(bank, artifactId=artifact.pointer)

    assert json.loads(reply["content"]) == rows
    assert reply["hasMore"] is False
    assert await bank.get(artifact.pointer) == rows


async def test_c35_a_host_reads_the_whole_a_slice_or_the_rest(bank: Bank) -> None:
    text = "".join(random.Random(35).choices(ALPHABET, k=3_000))
    artifact = await bank.put(text)

    assert await bank.get(artifact.pointer) == text
    assert (await bank.read(artifact.pointer, offset=100, limit=40)).content == text[100:140]
    assert (await bank.read(artifact.pointer, offset=2_900)).content == text[2_900:]


async def test_c36_an_unknown_id_finds_none_on_the_host_too(bank: Bank) -> None:
    await bank.put(ALPHABET)

    assert await bank.find(ZERO) is None
    assert await bank.find(ZERO.removeprefix("art:")) is None


# --- what reading costs the store -----------------------------------------------------------------


async def test_c47_a_store_with_ranges_sends_windows_and_never_the_whole(store: Store) -> None:
    text = "".join(random.Random(47).choices(ALPHABET, k=268_002))
    artifact = await Bank(store).put(text)
    counting = CountingRanges(store)
    bank = Bank(counting)
    contents: list[str] = []

    for offset in range(0, 268_002, 50_000):
        reply = await ask(bank, artifactId=artifact.pointer, offset=offset, limit=50_000)
        contents.append(reply["content"])

    assert "".join(contents) == text
    assert (len(counting.ranges), counting.full_reads) == (6, 0)
    assert counting.ranges[0] == (0, 50_000)
    # Its lines are counted back from the next border of a block, which is the nearer one.
    assert counting.ranges[5] == (250_000, 268_002)

    page = await bank.read(artifact.pointer, offset=250_000, limit=9)
    assert page.content == text[250_000:250_009]
    assert (len(counting.ranges), counting.full_reads) == (7, 0)

    assert await bank.payload(artifact.pointer) == text.encode()
    assert (len(counting.ranges), counting.full_reads) == (7, 1)


async def test_c48_a_store_without_ranges_is_read_whole_at_most_once_a_page(store: Store) -> None:
    text = "".join(random.Random(48).choices(ALPHABET, k=120_000))
    counting = Counting(store)
    assert not isinstance(counting, SupportsRange)
    artifact = await Bank(counting).put(text)
    bank = Bank(counting)

    pages = [
        await ask(bank, artifactId=artifact.pointer, offset=offset, limit=50_000)
        for offset in (0, 50_000, 100_000)
    ]

    assert [page["hasMore"] for page in pages] == [True, True, False]
    assert "".join(page["content"] for page in pages) == text
    assert 1 <= counting.full_reads <= 3


# --- search ---------------------------------------------------------------------------------------


async def test_c53_a_marker_far_inside_is_found_in_any_case_and_a_read_there_gives_it(
    bank: Bank,
) -> None:
    text = "filler é " * 16_666 + "!" * 6 + "NEEDLE-MARKER" + "filler é " * 5_555
    assert text.index("NEEDLE-MARKER") == 150_000
    artifact = await bank.put(text)

    reply = await ask(bank, artifactId=artifact.pointer, search="needle-marker")

    assert (reply["matchCount"], reply["totalMatches"], reply["truncated"]) == (1, 1, False)
    (match,) = reply["matches"]
    assert match["offset"] == 150_000
    assert "NEEDLE-MARKER" in match["snippet"]
    assert len(match["snippet"]) <= 300
    assert match["snippetOffset"] <= 150_000
    start = match["snippetOffset"]
    assert text[start : start + len(match["snippet"])] == match["snippet"]
    window = await ask(bank, artifactId=artifact.pointer, offset=match["offset"], limit=13)
    assert window["content"] == "NEEDLE-MARKER"


async def test_c54_a_key_in_one_long_line_of_json_is_found_with_its_value(bank: Bank) -> None:
    artifact = await bank.put({f"key{number}": f"value-{number}" for number in range(3_000)})

    reply = await ask(bank, artifactId=artifact.pointer, search='"key2500"')

    assert reply["totalMatches"] == 1
    (match,) = reply["matches"]
    assert match["line"] == 1
    assert len(match["snippet"]) < 400
    assert '"key2500":"value-2500"' in match["snippet"]


async def test_c55_more_than_50_matches_come_in_three_calls(bank: Bank) -> None:
    lines = [f"hit-{number:03}" for number in range(1, 121)]
    text = "\n".join(lines)
    artifact = await bank.put(text)

    first = await ask(bank, artifactId=artifact.pointer, search="hit-")
    second = await ask(
        bank, artifactId=artifact.pointer, search="hit-", offset=first["nextSearchOffset"]
    )
    third = await ask(
        bank, artifactId=artifact.pointer, search="hit-", offset=second["nextSearchOffset"]
    )
    more = await ask(bank, artifactId=artifact.pointer, search="hit-", limit=120)

    assert more == first  # 50 is also the most
    counts = [(reply["matchCount"], reply["totalMatches"]) for reply in (first, second, third)]
    assert counts == [(50, 120), (50, 70), (20, 20)]
    assert [reply["truncated"] for reply in (first, second, third)] == [True, True, False]
    assert first["nextSearchOffset"] == text.index("hit-051")
    assert second["nextSearchOffset"] == text.index("hit-101")
    assert "nextSearchOffset" not in third
    found = [match for reply in (first, second, third) for match in reply["matches"]]
    assert [match["line"] for match in found] == list(range(1, 121))
    assert [match["offset"] for match in found] == [text.index(line) for line in lines]


async def test_c56_an_empty_or_overlong_search_and_an_unknown_id_are_failures(bank: Bank) -> None:
    artifact = await bank.put("a" * 500)

    empty = await ask(bank, artifactId=artifact.pointer, search="")
    overlong = await ask(bank, artifactId=artifact.pointer, search="a" * 201)
    longest = await ask(bank, artifactId=artifact.pointer, search="a" * 200)
    unknown = await ask(bank, artifactId=ZERO, search="a")

    assert (empty["error"], overlong["error"]) == ("invalid-argument", "invalid-argument")
    for reply in (empty, overlong):
        assert "200" in reply["message"]
        assert "content" not in reply
        assert "matches" not in reply
    assert longest["matchCount"] == 2
    assert unknown["error"] == "unknown-pointer"


async def test_c57_text_that_is_not_there_is_no_error(bank: Bank) -> None:
    artifact = await bank.put("nothing of the sort here")

    reply = await ask(bank, artifactId=artifact.pointer, search="absent")

    assert reply == {"matchCount": 0, "totalMatches": 0, "truncated": False, "matches": []}


async def test_c58_a_search_is_literal_and_no_pattern(bank: Bank) -> None:
    without = await bank.put("anything at all")
    within = await bank.put("a pattern: .* and more")

    assert (await ask(bank, artifactId=without.pointer, search=".*"))["totalMatches"] == 0
    reply = await ask(bank, artifactId=within.pointer, search=".*")
    assert [match["offset"] for match in reply["matches"]] == [11]


async def test_c59_a_search_folds_case(bank: Bank) -> None:
    artifact = await bank.put("first line\nConnection TIMEOUT, STRASSE\n")

    for asked in ("connection timeout", "Connection Timeout", "straße"):
        reply = await ask(bank, artifactId=artifact.pointer, search=asked)
        assert [match["line"] for match in reply["matches"]] == [2]


async def test_c60_matches_do_not_overlap(bank: Bank) -> None:
    artifact = await bank.put("aaaa")

    reply = await ask(bank, artifactId=artifact.pointer, search="aa")

    assert [match["offset"] for match in reply["matches"]] == [0, 2]
    assert reply["totalMatches"] == 2


# --- bounds of a page -----------------------------------------------------------------------------


async def test_c61_a_limit_over_200_000_is_clamped_and_echoed(bank: Bank) -> None:
    # Text of many tokens, to show that an explicit limit is not bounded in tokens.
    text = "".join(
        chr(number) for number in random.Random(61).choices(range(0x4E00, 0x9FA5), k=200_001)
    )
    artifact = await bank.put(text)

    clamped = await ask(bank, artifactId=artifact.pointer, limit=500_000)
    default = await ask(bank, artifactId=artifact.pointer)

    assert clamped["limit"] == 200_000
    assert clamped["content"] == text[:200_000]
    assert (clamped["hasMore"], clamped["nextOffset"]) == (True, 200_000)
    assert len(default["content"]) < 50_000


@pytest.mark.parametrize(
    ("text", "offset", "limit"),
    [
        ("x" * 1_000 + "".join(random.Random(73).choices(ALPHABET, k=60_000)) + "y", 1_000, 60_000),
        ("語" * 30_000, 5_000, 20_000),
        ("\n".join(f"line {number}" for number in range(9_000)), 10_000, 30_000),
        ("ab\n" * 3_000 * 20, 9_000, 9_000),
    ],
    ids=["60,000 ASCII bytes", "60,000 bytes of CJK", "lines", "3,000 short lines"],
)
async def test_c73_a_window_comes_whole_through_the_complete_tool_path(
    store: Store, text: str, offset: int, limit: int
) -> None:
    def dump() -> str:
        return text

    bank = Bank(store)
    # As a host that sees each reply, those of the read tool too, with the default inline limit.
    host = Mirror(bank, Limits(never=frozenset({"retrieve_context"})))
    (tool,) = retrieval_tools(bank)
    note = json.loads(str(mirror(dump, bank)()))["note"]
    name, _, written = note.removesuffix(")").partition("(")
    asked = json.loads(written) | {"offset": offset, "limit": limit}

    reply = await tool.call(json.dumps(asked))
    shown = await host.offload(reply, tool=name)

    assert name == "retrieve_context"
    assert shown == reply
    page = json.loads(reply)
    assert page["content"] == text[offset : offset + limit]
    assert (page["offset"], page["limit"], page["nextOffset"]) == (offset, limit, offset + limit)
    assert len(await listed(bank)) == 1


async def test_c73_get_artifact_gives_60_000_bytes_and_3_000_lines_whole(bank: Bank) -> None:
    get = {tool.name: tool for tool in artifact_tools(bank)}["getArtifact"]
    for text in ("x" * 60_000, "語" * 20_000, "ab\n" * 3_000):
        artifact = await bank.put(text)

        assert await get.call({"pointerOrName": artifact.pointer}) == text
