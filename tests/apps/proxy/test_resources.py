"""Artifacts as MCP resources."""

import base64
from typing import Any

import pytest

from coatcheck import Bank, UnknownPointerError
from coatcheck.apps.proxy._resources import META_WINDOW, TEMPLATE, read_artifact
from coatcheck.errors import ExpiredPointerError, InvalidArgumentError
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock

UNKNOWN = "00000000-0000-4000-8000-000000000005"
LARGEST = 32 * 1024 * 1024


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bank(clock: ManualClock) -> Bank:
    return Bank(MemoryStore(), clock=clock)


@pytest.mark.parametrize(
    ("value", "content_type"),
    [
        ("żółć\r\n" * 3, "text/plain"),
        ("a,b\n" + "1,2\n" * 20, "text/csv"),
        ('{"a": 1.50}', "application/json"),
        ("", "text/plain"),
    ],
)
async def test_a_text_is_served_exactly_in_its_own_type(
    bank: Bank, value: str, content_type: str
) -> None:
    artifact = await bank.put(value)
    uri = f"art://{artifact.id}"

    assert await read_artifact(bank, uri) == {
        "contents": [{"uri": uri, "mimeType": content_type, "text": value}]
    }


async def test_bytes_are_served_as_base64_in_their_own_type(bank: Bank) -> None:
    payload = b"\x89PNG\r\n\x1a\n" + bytes(99)
    artifact = await bank.put(payload, content_type="image/png")
    uri = f"art://{artifact.id}/"

    found = await read_artifact(bank, uri)

    assert found == {
        "contents": [
            {"uri": uri, "mimeType": "image/png", "blob": base64.b64encode(payload).decode()}
        ]
    }


async def test_what_is_typed_is_found_by_its_id(bank: Bank) -> None:
    artifact = await bank.put([1, 2])

    found = await read_artifact(bank, f"art://{artifact.id}")

    assert found is not None
    assert found["contents"] == [
        {"uri": f"art://{artifact.id}", "mimeType": "application/json", "text": "[1,2]"}
    ]


async def test_a_lone_surrogate_is_served_as_a_replacement(bank: Bank) -> None:
    artifact = await bank.put("ok \ud83d")

    found = await read_artifact(bank, f"art://{artifact.id}")

    assert str(found).count("\ufffd") == 1


async def test_windows_joined_are_the_payload(bank: Bank) -> None:
    text = "żółć 😀 line\n" * 1_000
    artifact = await bank.put(text)
    windows: list[str] = []
    offset: object = 0
    while offset is not None:
        found: Any = await read_artifact(bank, f"art://{artifact.id}?offset={offset}&limit=999")
        (window,) = found["contents"]
        facts = window["_meta"][META_WINDOW]
        assert (facts["unit"], facts["totalSize"], facts["limit"]) == ("chars", len(text), 999)
        assert facts["hasMore"] == ("nextOffset" in facts)
        windows.append(window["text"])
        offset = facts.get("nextOffset")

    assert "".join(windows) == text


async def test_a_window_of_bytes_counts_bytes(bank: Bank) -> None:
    payload = bytes(range(256)) * 4
    artifact = await bank.put(payload)

    found = await read_artifact(bank, f"art://{artifact.id}?limit=3&offset=254")

    assert found is not None
    assert base64.b64encode(b"\xfe\xff\x00").decode() in str(found)
    assert "'unit': 'bytes'" in str(found)


@pytest.mark.parametrize("uri", ["file:///x", "http://art/x", "artx://a", "art", "", "http://[x"])
async def test_an_address_of_another_kind_is_not_ours(bank: Bank, uri: str) -> None:
    assert await read_artifact(bank, uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        f"art://{UNKNOWN}",
        f"art://{UNKNOWN}?offset=1",
        "art://..",
        "art:deco posters",
        "art://",
        f"art://{UNKNOWN}/../x",
        f"art://user@{UNKNOWN}",
        f"art://{UNKNOWN}#/0",
        "art://greek",
    ],
)
async def test_what_is_behind_no_address_is_unknown(bank: Bank, uri: str) -> None:
    await bank.put("alpha", name="greek")

    with pytest.raises(UnknownPointerError):
        await read_artifact(bank, uri)


async def test_what_is_past_its_time_is_told_apart(bank: Bank, clock: ManualClock) -> None:
    artifact = await bank.put("alpha", ttl_seconds=5)
    clock.advance(6)

    for query in ("", "?offset=0"):
        with pytest.raises(ExpiredPointerError):
            await read_artifact(bank, f"art://{artifact.id}{query}")


@pytest.mark.parametrize(
    "query", ["offset=-1", "offset=x", "limit=0", "limit=", "page=2", "offset=１", "offset=+1"]
)
async def test_a_window_that_is_none_is_refused(bank: Bank, query: str) -> None:
    artifact = await bank.put("alpha")

    with pytest.raises(InvalidArgumentError):
        await read_artifact(bank, f"art://{artifact.id}?{query}")


async def test_up_to_32_mib_are_served_whole_and_more_in_windows(bank: Bank) -> None:
    whole = await bank.put("x" * LARGEST)
    larger = await bank.put("x" * (LARGEST + 1))

    found = await read_artifact(bank, f"art://{whole.id}")
    with pytest.raises(InvalidArgumentError, match="33,554,433 bytes") as caught:
        await read_artifact(bank, f"art://{larger.id}")
    window = await read_artifact(bank, f"art://{larger.id}?offset={LARGEST}&limit=10")

    assert found is not None
    assert len(str(found)) > LARGEST
    assert f"art://{larger.id}?offset=0&limit=200000" in caught.value.hint
    assert "'text': 'x'" in str(window)


def test_the_template_says_what_may_be_asked() -> None:
    assert TEMPLATE["uriTemplate"] == "art://{id}{?offset,limit}"
