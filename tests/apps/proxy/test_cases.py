"""Results that others cut, flattened or lost: each passes whole, or as a pointer to the whole.

Field reports BR-057, BR-059, BR-060, BR-061, BR-066 and BR-068, and the cases C62 to C72, in which
another product cuts what does not fit a budget. Here blocks are offloaded one by one, flags and
small blocks stay, and nothing is cut.
"""

import base64
import hashlib
import json
import random
from typing import Any

import pytest

from coatcheck import Bank, Limits
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._settings import Settings
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock

LARGE = "line of a result\n" * 3_530  # 60,010 bytes
PNG = b"\x89PNG\r\n\x1a\n" + bytes(10_000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bank(clock: ManualClock) -> Bank:
    return Bank(MemoryStore(), clock=clock)


def acts_with(bank: Bank, **settings: Any) -> Acts:
    return Acts(bank, Settings(**settings), "one")


def text(given: str) -> dict[str, Any]:
    return {"type": "text", "text": given}


async def shown(acts: Acts, result: dict[str, Any]) -> dict[str, Any]:
    return await acts.result(acts.scope(), "server", "tool", result)


async def read(acts: Acts, pointer: str, **asked: Any) -> Any:
    """Return what our own tool replies."""
    arguments = {"artifactId": pointer, **asked}
    reply: Any = await acts.call_own(acts.scope(), {"arguments": arguments})
    assert not reply["isError"]
    return json.loads(reply["content"][0]["text"])


async def stored(bank: Bank, block: Any) -> Any:
    """Return the value behind the envelope in a block."""
    return await bank.scoped("one").get(json.loads(block["text"])["pointer"])


@pytest.mark.parametrize("flag", [{}, {"isError": False}, {"isError": True}])
async def test_large_text_becomes_an_envelope_in_its_list_and_keeps_its_flag(
    bank: Bank, flag: dict[str, bool]
) -> None:  # C62, C64, C65
    acts = acts_with(bank)

    result = await shown(acts, {"content": [text(LARGE)], **flag})

    first, link = result["content"]
    assert len(first["text"]) < 2_000
    assert "retrieve_context" in json.loads(first["text"])["note"]
    assert await stored(bank, first) == LARGE
    assert link["type"] == "resource_link"
    assert {key: result[key] for key in flag} == flag


async def test_fields_around_a_large_text_are_kept_and_read(bank: Bank) -> None:  # C63, C72
    acts = acts_with(bank)
    structured = {"success": True, "data": {"content": [text(LARGE)]}}

    result = await shown(acts, {"content": [], "structuredContent": structured})

    first = result["content"][0]
    pointer = json.loads(first["text"])["pointer"]
    assert "structuredContent" not in result
    assert await stored(bank, first) == structured
    assert (await read(acts, pointer, query="success"))["value"] is True
    page = await read(acts, f"{pointer}#/data/content/0/text", offset=59_000, limit=9)
    assert page["content"] == LARGE[59_000:59_009]


async def test_image_beside_a_large_text_keeps_its_bytes(bank: Bank) -> None:  # C66, BR-057
    image = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    acts = acts_with(bank)

    result = await shown(acts, {"content": [text("a" * 60_000), image, text("end")]})

    first, second, third, _ = result["content"]
    assert await stored(bank, first) == "a" * 60_000
    assert second is image
    assert third == text("end")


@pytest.mark.parametrize(("size", "is_banked"), [(2_047, False), (2_048, True), (5_000, True)])
async def test_limit_of_a_tool_decides_to_the_byte(
    bank: Bank, size: int, is_banked: bool
) -> None:  # C67, C68
    acts = acts_with(bank, limits=Limits(per_tool={"tool": 2_048}))
    given = {"content": [text("x" * size)], "isError": False}

    result = await shown(acts, given)

    assert (result is not given) is is_banked


async def test_many_small_texts_stay_as_they_are(bank: Bank) -> None:  # C69
    given = {"content": [text(f"{n} " * 1_000) for n in range(20)]}

    assert await shown(acts_with(bank), given) is given


async def test_each_of_several_texts_shows_its_own_head_and_end(bank: Bank) -> None:  # C70
    acts = acts_with(bank, limits=Limits(inline_bytes=20_000))
    texts = [f"head {n}\n" + f"line {n}\n" * 5_700 + f"tail {n}" for n in range(5)]

    result = await shown(acts, {"content": [text(each) for each in texts], "isError": True})

    assert result["isError"] is True
    assert [block["type"] for block in result["content"]] == ["text"] * 5 + ["resource_link"] * 5
    for n, block in enumerate(result["content"][:5]):
        wire = json.loads(block["text"])
        assert wire["preview"].startswith(f"head {n}")
        assert f"tail {n}" in wire["glimpse"]
        assert await stored(bank, block) == texts[n]


@pytest.mark.parametrize("image_bytes", [{}, {"tool": 20_000}])
async def test_large_image_stays_unless_its_tool_has_a_limit(
    bank: Bank, image_bytes: dict[str, int]
) -> None:  # C71
    image = {"type": "image", "data": base64.b64encode(PNG * 6).decode(), "mimeType": "image/png"}
    acts = acts_with(bank, image_bytes=image_bytes)

    result = await shown(acts, {"content": [image, text("a caption")]})

    assert result["content"][1] == text("a caption")
    if not image_bytes:
        assert result["content"][0] is image
    else:
        wire = json.loads(result["content"][0]["text"])
        again: Any = await acts.call_own(
            acts.scope(), {"arguments": {"artifactId": wire["pointer"]}}
        )
        assert wire["sizeBytes"] == len(PNG * 6)
        assert again["content"] == [image]


async def test_block_of_a_kind_that_is_unknown_stays_exactly(bank: Bank) -> None:  # BR-059
    odd = {"type": "hologram", "source": {"kind": "x"}, "data": "y" * 400_000}
    given = {"content": [odd, text(LARGE)]}

    result = await shown(acts_with(bank), given)

    assert result["content"][0] is odd


async def test_base64_within_json_does_not_flood_the_context(bank: Bank) -> None:  # BR-060
    page = {"screenshot": "data:image/png;base64," + "A" * 400_000, "title": "Login"}

    result = await shown(acts_with(bank), {"content": [text(json.dumps(page))]})

    visible = result["content"][0]["text"]
    assert "Login" in visible
    assert "image/png" in visible
    assert "300,000" in visible or "300000" in visible
    assert "A" * 101 not in visible


async def test_last_line_of_a_long_failure_is_seen_and_the_rest_reached(
    bank: Bank,
) -> None:  # BR-061
    trace = 'File "step.py", line 7, in run\n' * 6_700 + "ValueError: boom 42"
    acts = acts_with(bank)

    result = await shown(acts, {"content": [text(trace)], "isError": True})

    wire = json.loads(result["content"][0]["text"])
    digest = hashlib.sha256(trace.encode()).hexdigest()
    assert result["isError"] is True
    assert "ValueError: boom 42" in wire["glimpse"]
    assert (await read(acts, wire["pointer"], search="boom"))["totalMatches"] == 1
    whole = await bank.scoped("one").get(wire["pointer"])
    assert hashlib.sha256(str(whole).encode()).hexdigest() == digest


async def test_reading_a_window_makes_no_new_artifact(bank: Bank) -> None:  # BR-066
    source = random.Random(3)
    large = "".join(source.choices("abcdefgh \n", k=500_000))
    acts = acts_with(bank)
    result = await shown(acts, {"content": [text(large)]})
    pointer = json.loads(result["content"][0]["text"])["pointer"]

    page = await read(acts, pointer, limit=60_000)
    reply: Any = await acts.call_own(
        acts.scope(), {"arguments": {"artifactId": pointer, "limit": 60_000}}
    )
    again = await acts.result(acts.scope(), "server", "retrieve_context", reply)

    assert page["content"] == large[:60_000]
    assert again is reply
    assert len([artifact async for artifact in bank.scoped("one").list()]) == 1


async def test_message_with_a_pointer_is_the_same_bytes_at_any_time(
    bank: Bank, clock: ManualClock
) -> None:  # BR-068
    acts = acts_with(bank)
    seen: list[str] = []
    for seconds in (0, 1, 3_600):
        clock.advance(seconds)
        seen.append(json.dumps(await shown(acts, {"content": [text(LARGE)]})))
        await shown(acts, {"content": [text(f"{seconds} of another\n" * 4_000)]})

    assert len(set(seen)) == 1
