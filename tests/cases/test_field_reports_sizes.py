"""Reports on sizes: what is offloaded, that nothing is lost by it, and how little is shown."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Bank, Envelope, Limits, Mirror, encoded_size, mirror
from coatcheck.content import estimate_tokens
from coatcheck.stores import MemoryStore
from coatcheck.tools import retrieval_tools

Show = Callable[[Bank, object], Awaitable[Any]]
ReadWhole = Callable[[Bank, str], Awaitable[str]]
Wrap = Callable[[str], object]

LIMIT_BYTES = 51_200
POINTER = re.compile(r"art:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

CONTAINERS: dict[str, Wrap] = {
    "text": lambda text: text,
    "value": lambda text: {"k": text},
    "key": lambda text: {text: 1},
    "item": lambda text: [text, None],
    "deep": lambda text: {"a": [{"b": [text]}]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


async def test_br_001_a_large_reply_is_a_short_pointer_and_nothing_is_lost(
    bank: Bank, show: Show, read_whole: ReadWhole
) -> None:
    shown = await show(bank, "x" * 400_000)

    reply = str(shown)
    wire = json.loads(reply)
    assert POINTER.fullmatch(wire["pointer"])
    assert wire["sizeBytes"] == 400_000
    assert wire["preview"].partition(" … ")[0] == "x" * 200
    assert wire["preview"].partition(" … ")[2] == "(399,800 more characters)"
    assert len(reply) < 2_000
    assert await read_whole(bank, wire["pointer"]) == "x" * 400_000


@pytest.mark.parametrize("value", [{"rows": ["x" * 400_000]}, [["x"] * 200_000], b"\0" * 400_000])
async def test_br_001_whatever_the_type_of_a_large_reply_it_is_no_error(
    bank: Bank, show: Show, value: object
) -> None:
    shown = await show(bank, value)

    assert isinstance(shown, Envelope)
    assert shown.size_bytes == encoded_size(value) >= 400_000
    assert len(str(shown)) < 2_000
    assert await bank.get(shown.pointer) == value


async def test_br_003_the_limit_counts_bytes_and_not_characters(bank: Bank, show: Show) -> None:
    below, above = "漢" * 17_066, "漢" * 17_067

    assert encoded_size(below) == 51_198
    assert await show(bank, below) == below
    assert [artifact async for artifact in bank.list()] == []
    shown = await show(bank, above)
    assert isinstance(shown, Envelope)
    assert shown.size_bytes == 51_201


@pytest.mark.parametrize("container", CONTAINERS)
async def test_br_003_the_limit_holds_for_every_width_of_character_in_every_container(
    bank: Bank, container: str
) -> None:
    wrap = CONTAINERS[container]
    for char in ("x", "é", "漢", "😀", "\ud800", '"', "\n", "\0"):
        width = encoded_size(wrap(char)) - encoded_size(wrap(""))
        count = (LIMIT_BYTES - 1 - encoded_size(wrap(""))) // width
        below, above = wrap(char * count), wrap(char * (count + 1))

        assert encoded_size(below) < LIMIT_BYTES <= encoded_size(above)
        assert not isinstance(await Mirror(bank).offload(below), Envelope)
        shown = await Mirror(bank).offload(above)
        assert isinstance(shown, Envelope)
        assert shown.size_bytes == encoded_size(above)
        assert await bank.get(shown.pointer) == above


@pytest.mark.parametrize("excess", [-1, 0, 1])
@pytest.mark.parametrize("fill", [b"x", b"\xff"])
async def test_br_003_the_limit_itself_is_the_first_size_that_is_offloaded(
    bank: Bank, show: Show, excess: int, fill: bytes
) -> None:
    payload = fill * (LIMIT_BYTES + excess)

    for value in (payload, payload.decode("latin-1")[: len(payload) // (1 + (fill > b"\x7f"))]):
        shown = await show(bank, value)
        assert isinstance(shown, Envelope) == (encoded_size(value) >= LIMIT_BYTES)


def test_br_005_the_estimate_of_cjk_text_is_not_a_quarter_of_its_characters() -> None:
    assert 60 <= estimate_tokens("你好世界" * 25) <= 200


@pytest.mark.parametrize("text", ["日本語の文章", "한국어 문장", "Привет мир ", "مرحبا ", "😀🎉"])
def test_br_005_no_script_is_estimated_at_a_quarter_of_its_characters_or_less(text: str) -> None:
    assert estimate_tokens(text * 100) > len(text) * 100 / 4


@pytest.mark.parametrize("text", ["你好世界", "plain words ", "😀", '{"id":12345678},'])
async def test_br_005_a_page_without_a_limit_is_bounded_in_tokens_and_characters(
    text: str,
) -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put(text * 60_000)

    page = await bank.read(artifact.pointer)

    assert len(page.content) <= 50_000
    assert estimate_tokens(str(page.content)) <= 20_000
    assert page.has_more
    assert page.next_offset == len(page.content) > 10_000


PAGE_TEXT = json.dumps({"id": 7, "body": ["päge " * 60] * 1_000}, indent=1) + "\n"


@pytest.mark.parametrize("declared", [str, bytes, Any])
async def test_br_006_a_body_goes_whole_from_tool_to_tool_and_past_the_model(
    bank: Bank, declared: Any
) -> None:
    received: list[object] = []

    async def get_page(page_id: int) -> str:
        assert page_id == 7
        return PAGE_TEXT

    async def update_page(page_id: int, body: object) -> str:
        received.append(body)
        return f"updated {page_id}"

    update_page.__annotations__["body"] = declared

    first = await mirror(get_page, bank)(page_id=7)
    call = {"page_id": 7, "body": first.pointer}
    second = await mirror(update_page, bank)(**call)

    body = received[0]
    whole = body.encode() if isinstance(body, str) else body
    assert isinstance(whole, bytes)
    assert hashlib.sha256(whole).digest() == hashlib.sha256(PAGE_TEXT.encode()).digest()
    traffic = str(first) + json.dumps({"page_id": 7}) + json.dumps(call) + second
    assert len(PAGE_TEXT.encode()) > 300_000
    assert len(traffic.encode()) < 4_000


def test_br_006_sync_tools_hand_a_body_over_as_well(bank: Bank) -> None:
    def get_page() -> str:
        return PAGE_TEXT

    def update_page(body: str, note: str = "") -> str:
        return hashlib.sha256(body.encode()).hexdigest() + note

    pointer = mirror(get_page, bank)().pointer
    expected = hashlib.sha256(PAGE_TEXT.encode()).hexdigest()
    update = mirror(update_page, bank)

    assert update(pointer) == update(body=pointer) == expected
    assert update(pointer, "!") == expected + "!"


async def test_br_006_arguments_given_as_a_mapping_or_as_json_hand_a_body_over(bank: Bank) -> None:
    pointer = (await bank.put(PAGE_TEXT)).pointer
    schema = {"type": "object", "properties": {"body": {"type": "string"}}}
    call = {"body": pointer}

    for arguments in (call, json.dumps(call)):
        assert await Mirror(bank).resolve(arguments) == {"body": PAGE_TEXT}
        assert await Mirror(bank).resolve(arguments, schema) == {"body": PAGE_TEXT}


@settings(max_examples=60)
@given(value=JSON | st.text(max_size=900), inline_bytes=st.integers(1, 700), flag=st.booleans())
async def test_no_envelope_is_as_large_as_what_it_replaces(
    value: object, inline_bytes: int, flag: bool
) -> None:
    bank = Bank(MemoryStore(), limits=Limits(inline_bytes=inline_bytes))

    shown = await Mirror(bank).offload(value, is_error=flag)

    if isinstance(shown, Envelope):
        assert len(str(shown).encode()) < shown.size_bytes == encoded_size(value)
        assert shown.size_bytes >= inline_bytes
        assert await bank.get(shown.pointer) == value
    else:
        assert encoded_size(shown) == encoded_size(value)


@settings(max_examples=40)
@given(st.text(max_size=400), st.integers(1, 200))
async def test_windows_joined_are_the_payload(text: str, limit: int) -> None:
    bank = Bank(MemoryStore())
    pointer = (await bank.put(text)).pointer
    (reader,) = retrieval_tools(bank)

    windows: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await bank.read(pointer, offset, limit)
        call = {"artifactId": pointer, "offset": offset, "limit": limit}
        assert json.loads(await reader.call(call))["content"] == page.content
        windows.append(str(page.content))
        offset = page.next_offset

    assert "".join(windows) == text
