"""The cases of seed 004, NeuroLink's artifact banking: what is stored, shown and refused."""

import json
import random
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from coatcheck import (
    Artifact,
    Bank,
    Envelope,
    UnknownPointerError,
    encoded_size,
    mirror,
)
from coatcheck.errors import StoreUnavailableError, UnencodableValueError
from coatcheck.stores import Store
from coatcheck.testing import ManualClock
from coatcheck.tools import Tool, retrieval_tools

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
ZERO = "art:00000000-0000-0000-0000-000000000000"


class Full:
    """A store on a disk without room for another payload."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def put(self, key: str, payload: bytes) -> None:
        if "/payloads/" in key:
            raise StoreUnavailableError("disk full")
        await self.store.put(key, payload)

    async def get(self, key: str) -> bytes | None:
        return await self.store.get(key)

    async def delete(self, key: str) -> None:
        await self.store.delete(key)

    def keys(self, folder: str) -> AsyncIterator[str]:
        return self.store.keys(folder)

    async def close(self) -> None:
        await self.store.close()


async def ask(bank: Bank, **arguments: object) -> Any:
    """Return what `retrieve_context` answers, asked as a model does, from JSON text to JSON."""
    (tool,) = retrieval_tools(bank)
    return json.loads(await tool.call(json.dumps(arguments)))


async def listed(bank: Bank) -> list[Artifact]:
    return [artifact async for artifact in bank.list()]


# --- the store and its artifacts ------------------------------------------------------------------


async def test_c1_an_artifact_has_an_id_and_the_facts_it_was_put_with(
    bank: Bank, clock: ManualClock, reopen: Callable[[], Store]
) -> None:
    artifact = await bank.put(
        {"rows": [1]},
        name="rows",
        label="first rows",
        kind="command-output",
        source={"server": "inventory"},
        tool="fetch",
        run="run-1",
    )

    assert artifact.id
    assert (artifact.name, artifact.label, artifact.kind) == (
        "rows",
        "first rows",
        "command-output",
    )
    assert (artifact.source, artifact.tool, artifact.run) == (
        {"server": "inventory"},
        "fetch",
        "run-1",
    )
    assert (artifact.size_bytes, artifact.content_type) == (12, "application/json")
    assert artifact.stored_at == datetime.fromtimestamp(clock(), UTC)
    assert await Bank(reopen()).find(artifact.id) == artifact


async def test_c2_text_of_several_lines_comes_back_exact(bank: Bank) -> None:
    text = "first\r\nsecond\n\n\tthird \u2028 still third\x00\nlast without an end "
    artifact = await bank.put(text)

    assert await bank.get(artifact.pointer) == text
    assert await bank.payload(artifact.pointer) == text.encode()
    assert (await bank.read(artifact.pointer)).content == text


async def test_c3_the_id_of_zeros_is_unknown(bank: Bank) -> None:
    await bank.put("something else")

    assert await bank.find(ZERO) is None
    with pytest.raises(UnknownPointerError, match="No artifact behind"):
        await bank.payload(ZERO)


async def test_c4_what_was_deleted_is_unknown(bank: Bank) -> None:
    artifact = await bank.put("gone soon", name="soon")

    assert await bank.delete(artifact.pointer) is True
    assert await bank.delete(artifact.pointer) is False
    assert await bank.find(artifact.pointer) is None
    assert await bank.find("soon") is None
    assert await listed(bank) == []
    with pytest.raises(UnknownPointerError, match="No artifact behind"):
        await bank.get(artifact.pointer)


async def test_c5_cleanup_takes_what_is_older_and_refuses_a_negative_age(
    bank: Bank, clock: ManualClock
) -> None:
    artifact = await bank.put("old soon")

    assert await bank.cleanup(older_than_seconds=3_600) == 0
    clock.advance(3_600)
    assert await bank.cleanup(older_than_seconds=3_600) == 0  # exactly as old is not older
    with pytest.raises(ValueError, match="older_than_seconds must be 0 or more, got -1000"):
        await bank.cleanup(older_than_seconds=-1_000)
    assert await bank.find(artifact.pointer) == artifact
    clock.advance(1)
    assert await bank.cleanup(older_than_seconds=3_600) == 1
    assert await bank.find(artifact.pointer) is None


async def test_c6_the_preview_of_long_text_is_its_verbatim_head_without_a_suffix(
    bank: Bank,
) -> None:
    text = (ALPHABET * 80)[:2_000]

    assert (await bank.put(text)).preview == text[:1_000]


# --- offloading -----------------------------------------------------------------------------------


async def test_c10_a_result_of_500_bytes_over_a_limit_of_100_is_offloaded(bank: Bank) -> None:
    def dump() -> str:
        return "z" * 500

    shown = mirror(dump, bank, inline_bytes=100)()

    assert isinstance(shown, Envelope)
    assert shown.size_bytes == 500
    assert len(str(shown)) < 500
    assert await bank.get(shown.pointer) == "z" * 500


async def test_c15_a_circular_result_raises_nothing_and_is_shown_in_part(bank: Bank) -> None:
    circular: dict[str, object] = {"first": "told", "padding": "p" * 5_000}
    circular["self"] = circular

    def dump() -> dict[str, object]:
        return circular

    shown = mirror(dump, bank, inline_bytes=1)()

    assert isinstance(shown, str)
    assert "'first': 'told'" in shown
    assert "The output has no encoding" in shown
    assert "was not kept" in shown
    assert len(shown) < 1_200
    assert await listed(bank) == []


async def test_c15_a_host_that_banks_or_measures_a_circular_value_is_told(bank: Bank) -> None:
    circular: list[object] = []
    circular.append(circular)

    with pytest.raises(UnencodableValueError, match="cannot be encoded"):
        await bank.put(circular)
    with pytest.raises(UnencodableValueError, match="cannot be encoded"):
        encoded_size(circular)
    assert await listed(bank) == []


async def test_c16_a_store_without_room_leaves_the_result_inline_and_raw(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    bank = Bank(Full(store))
    rows = [{"id": number, "name": f"row {number}"} for number in range(5_000)]

    async def dump_rows() -> list[dict[str, object]]:
        return [dict(row) for row in rows]

    def dump_text() -> str:
        return "w" * 200_000

    assert await mirror(dump_rows, bank)() == rows
    assert mirror(dump_text, bank)() == "w" * 200_000
    assert caplog.text.count("disk full") == 2
    assert await listed(bank) == []
    with pytest.raises(StoreUnavailableError, match="disk full"):
        await bank.put("told to the host")


# --- banking --------------------------------------------------------------------------------------


async def test_c24_the_read_tool_is_there_before_anything_is_banked_and_stays_the_same(
    bank: Bank,
) -> None:
    def facts(tools: list[Tool]) -> str:
        return json.dumps([[tool.name, tool.description, tool.parameters] for tool in tools])

    before = facts(retrieval_tools(bank))
    early, *rest = retrieval_tools(bank)
    artifact = await bank.put(ALPHABET)

    assert early.name == "retrieve_context"
    assert rest == []
    assert facts(retrieval_tools(bank)) == before
    reply = json.loads(await early.call({"artifactId": artifact.pointer}))
    assert reply["content"] == ALPHABET


async def test_c27_a_megabyte_is_banked_with_a_preview_and_the_call_that_reads_it(
    bank: Bank,
) -> None:
    text = "".join(random.Random(27).choices(ALPHABET + "\n", k=1_048_576))

    artifact = await bank.put(text, kind="report", label="delegate:auth-review")

    assert artifact.size_bytes == 1_048_576
    assert artifact.preview == text[:1_000]
    assert artifact.read_back == f'retrieve_context({{"artifactId":"{artifact.pointer}"}})'
    assert await bank.payload(artifact.pointer) == text.encode()


async def test_c28_a_preview_is_as_long_as_asked_up_to_4000_and_the_payload_is_whole(
    bank: Bank,
) -> None:
    text = "".join(random.Random(28).choices(ALPHABET, k=20_000))

    for asked, length in ((0, 0), (50, 50), (4_000, 4_000), (4_001, 4_000), (999_999, 4_000)):
        artifact = await bank.put(text, preview_chars=asked)

        assert artifact.preview == text[:length]
        assert await bank.get(artifact.pointer) == text


async def test_c29_the_preview_of_a_short_payload_is_the_payload(bank: Bank) -> None:
    for text in ("short", "s" * 1_000):
        assert (await bank.put(text)).preview == text


async def test_c30_accents_and_cjk_are_measured_in_bytes_and_come_back_exact(
    bank: Bank, reopen: Callable[[], Store]
) -> None:
    text = "Zażółć gęślą jaźń — 日本語のテキスト 🧥 e\u0301\n" * 500
    artifact = await bank.put(text)

    assert artifact.size_bytes == len(text.encode()) > len(text)
    assert artifact.length_chars == len(text)
    assert await Bank(reopen()).get(artifact.pointer) == text
    reply = await ask(bank, artifactId=artifact.pointer, offset=7, limit=10_000)
    assert reply["content"] == text[7:10_007]


async def test_c31_a_blank_label_becomes_the_kind(bank: Bank) -> None:
    blank = await bank.put("out", label="   ", kind="command-output")
    padded = await bank.put("out", label="  build log ", kind="command-output")

    assert blank.label == "command-output"
    assert padded.label == "build log"
