"""Reports on cuts: what is shown in part says so, and what is read in parts is the whole."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Bank, Envelope, Limits, Mirror, mirror
from coatcheck.stores import MemoryStore
from coatcheck.tools import artifact_tools, retrieval_tools

Show = Callable[[Bank, object], Awaitable[Any]]
ReadWhole = Callable[[Bank, str], Awaitable[str]]

MESSAGES = {"messages": [{"id": i, "body": "x" * 300} for i in range(200)]}
CUT = re.compile(r"(.*) … \(([\d,]+) more characters?\)", re.DOTALL)


def head_and_rest(preview: str) -> tuple[str, int]:
    """Return what a preview shows of a payload, and how many characters it says it left out."""
    cut = CUT.fullmatch(preview)
    return (preview, 0) if cut is None else (cut[1], int(cut[2].replace(",", "")))


@pytest.mark.parametrize("as_text", [False, True])
async def test_br_007_json_is_cut_only_where_it_says_so_and_reads_back_whole(
    bank: Bank, show: Show, read_whole: ReadWhole, as_text: bool
) -> None:
    payload = json.dumps(MESSAGES, separators=(",", ":"))

    shown = await show(bank, payload if as_text else MESSAGES)

    wire = json.loads(str(shown))
    whole = await read_whole(bank, wire["pointer"])
    assert whole == payload
    messages = json.loads(whole)["messages"]
    assert len(messages) == 200
    assert messages[137]["id"] == 137
    head, left_out = head_and_rest(wire["preview"])
    assert payload.startswith(head)
    assert len(head) + left_out == len(payload)
    assert left_out > 0


async def test_br_007_each_window_of_cut_json_comes_in_a_reply_that_parses(bank: Bank) -> None:
    pointer = (await bank.put(MESSAGES)).pointer
    (reader,) = retrieval_tools(bank)

    for offset in range(0, 64_000, 997):
        reply = json.loads(
            await reader.call({"artifactId": pointer, "offset": offset, "limit": 50})
        )
        assert reply["hasMore"] == ("nextOffset" in reply)


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=900), st.integers(1, 400))
async def test_the_count_of_what_a_preview_left_out_is_exact(text: str, preview_chars: int) -> None:
    bank = Bank(MemoryStore(), limits=Limits(inline_bytes=1, preview_chars=preview_chars))

    shown = await Mirror(bank).offload(text)

    if isinstance(shown, Envelope):
        head, left_out = head_and_rest(json.loads(str(shown))["preview"])
        assert text.startswith(head)
        assert len(head) + left_out == len(text)
        assert len(head) <= preview_chars


@pytest.mark.parametrize("limit", [1, 59_999, 60_000, 60_001, 199_999, 200_000, 200_001])
async def test_br_009_a_read_up_to_the_cap_keeps_its_own_facts(bank: Bank, limit: int) -> None:
    pointer = (await bank.put("0123456789" * 20_000)).pointer
    (reader,) = retrieval_tools(bank)

    reply = json.loads(await reader.call({"artifactId": pointer, "offset": 0, "limit": limit}))

    assert len(reply["content"]) == reply["limit"] == min(limit, 200_000)
    assert reply["totalSize"] == 200_000
    assert reply["hasMore"] == (limit < 200_000)
    assert reply.get("nextOffset") == (limit if limit < 200_000 else None)


@pytest.mark.parametrize("cap", [1, 999, 59_999, 60_000, 60_001])
async def test_br_009_a_capped_read_says_where_to_go_on(cap: int) -> None:
    bank = Bank(MemoryStore(), limits=Limits(page_chars=min(cap, 500), page_cap_chars=cap))
    pointer = (await bank.put("é123456789" * 20_000)).pointer
    (reader,) = retrieval_tools(bank)

    reply = json.loads(await reader.call({"artifactId": pointer, "offset": 0, "limit": 60_000}))

    applied = min(cap, 60_000)
    assert len(reply["content"]) == reply["limit"] == reply["nextOffset"] == applied
    assert reply["hasMore"] is True
    assert reply["totalSize"] == 200_000


@pytest.mark.parametrize("fill", ['"', "\\", "\n", "\x00", "\u2028", "</tool>", "\x1b[0m"])
async def test_br_009_characters_that_grow_in_json_do_not_break_the_reply(
    bank: Bank, fill: str
) -> None:
    text = (fill * 70_000)[:70_000]
    pointer = (await bank.put(text)).pointer
    (reader,) = retrieval_tools(bank)

    reply = json.loads(await reader.call({"artifactId": pointer, "limit": 60_000}))

    assert reply["content"] == text[:60_000]
    assert (reply["hasMore"], reply["nextOffset"]) == (True, 60_000)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n  \n"])
async def test_br_010_the_reason_on_the_last_line_is_shown_and_found(
    bank: Bank, show: Show, end: str
) -> None:
    log = "ok\n" * 4_999 + "FAILED: 3 errors" + end
    padded = await Mirror(bank, Limits(inline_bytes=1_000)).offload(log)
    (reader,) = retrieval_tools(bank)

    assert isinstance(padded, Envelope)
    assert "FAILED: 3 errors" in str(padded)
    call = {"artifactId": padded.pointer, "search": "failed:"}
    found = json.loads(await reader.call(call))
    assert found["totalMatches"] == 1
    assert found["matches"][0]["line"] == 5_000
    long = await show(bank, "fine, nothing to see here\n" * 4_999 + "FAILED: 3 errors" + end)
    assert "FAILED: 3 errors" in str(long)


async def test_br_010_a_last_line_without_any_word_of_failure_is_shown_too(bank: Bank) -> None:
    artifact = await bank.put("ok\n" * 30_000 + "wrote 17 files to /srv/out")

    assert "wrote 17 files to /srv/out" in str(artifact.glimpse)


RAW_JSON = [
    '{"a":1,"a":2,"f":1.0,"e":1e2,"n":-0.0,"big":123456789012345678901234567890',
    '[{"a": 1,\t"a" :2}\r\n, 1.50, 1E+2, "\\u00e9\\/"',
    '\ufeff{"a":1.0',
]


@pytest.mark.parametrize("start", RAW_JSON)
@pytest.mark.parametrize("newline", ["", "\n", "\r\n "])
async def test_br_053_text_that_is_json_reads_back_byte_for_byte(
    bank: Bank, show: Show, read_whole: ReadWhole, start: str, newline: str
) -> None:
    close = "]" if start.startswith("[") else "}"
    padding = '"' + "y" * 60_000 + '"'
    text = start + ("," if close == "]" else ',"p":') + padding + close + newline

    pointer = (await show(bank, text)).pointer

    def sent(body: str) -> str:
        return hashlib.sha256(body.encode()).hexdigest()

    assert await bank.payload(pointer) == text.encode()
    assert await bank.get(pointer) == text
    assert await read_whole(bank, pointer) == text
    assert mirror(sent, bank)(pointer) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("start", RAW_JSON)
async def test_br_053_text_a_model_stores_and_gets_is_not_rewritten(bank: Bank, start: str) -> None:
    text = start + ("]" if start.startswith("[") else "}")
    store_artifact, get_artifact, _ = artifact_tools(bank)

    stored = json.loads(await store_artifact.call({"name": "n", "value": text}))

    for asked in (stored["pointer"], "n"):
        assert await get_artifact.call({"pointerOrName": asked}) == text
