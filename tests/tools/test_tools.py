import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rs_bpe.bpe import openai  # pyright: ignore[reportUnknownVariableType]

from coatcheck import Bank, Limits
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore
from coatcheck.tools import Failure, Tool, artifact_tools, as_failure, retrieval_tools

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
TEXT = "żółć needle\n" * 20_000


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


def tools(bank: Bank) -> dict[str, Tool]:
    return {tool.name: tool for tool in [*retrieval_tools(bank), *artifact_tools(bank)]}


def nested(depth: int) -> object:
    value: object = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


async def reply(bank: Bank, tool_name: str, /, **arguments: object) -> Any:
    return json.loads(await tools(bank)[tool_name].call(arguments))


def tokens(*described: Tool) -> int:
    encoder: Any = cast("Any", openai).o200k_base()
    texts = [
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            separators=(",", ":"),
        )
        for tool in described
    ]
    return sum(len(encoder.encode(text)) for text in texts)


async def test_the_schemas_keep_within_their_tokens(bank: Bank) -> None:
    assert tokens(*retrieval_tools(bank)) <= 130
    assert tokens(*artifact_tools(bank)) <= 250


async def test_the_names_are_the_wire_contract(bank: Bank) -> None:
    assert [tool.name for tool in retrieval_tools(bank)] == ["retrieve_context"]
    assert [tool.name for tool in artifact_tools(bank)] == [
        "storeArtifact",
        "getArtifact",
        "listArtifacts",
    ]


async def test_tools_are_the_same_before_and_after_something_is_banked(bank: Bank) -> None:
    before = [(tool.description, dict(tool.parameters)) for tool in tools(bank).values()]
    await bank.put(TEXT)

    assert [(tool.description, dict(tool.parameters)) for tool in tools(bank).values()] == before


async def test_a_read_says_what_it_read_and_where_to_go_on(bank: Bank) -> None:
    pointer = (await bank.put(TEXT)).pointer

    assert await reply(bank, "retrieve_context", artifactId=pointer, offset=5, limit=6) == {
        "content": "needle",
        "totalSize": len(TEXT),
        "hasMore": True,
        "offset": 5,
        "limit": 6,
        "nextOffset": 11,
    }


async def test_the_last_page_names_no_next_offset(bank: Bank) -> None:
    pointer = (await bank.put("abc")).pointer

    assert await reply(bank, "retrieve_context", artifactId=pointer) == {
        "content": "abc",
        "totalSize": 3,
        "hasMore": False,
        "offset": 0,
        "limit": 50_000,
    }


async def test_null_arguments_are_as_if_not_given(bank: Bank) -> None:
    pointer = (await bank.put("abc")).pointer
    (tool,) = retrieval_tools(bank)

    answer = await tool.call(
        json.dumps({"artifactId": pointer, "offset": None, "limit": None, "search": None})
    )

    assert json.loads(answer)["content"] == "abc"


async def test_a_search_says_where_and_what_is_left(bank: Bank) -> None:
    pointer = (await bank.put("ab " * 120)).pointer

    found = await reply(bank, "retrieve_context", artifactId=pointer, search="AB")

    assert list(found) == [
        "matchCount",
        "totalMatches",
        "truncated",
        "nextSearchOffset",
        "matches",
    ]
    assert (found["matchCount"], found["totalMatches"], found["truncated"]) == (50, 120, True)
    assert found["nextSearchOffset"] == 150
    assert list(found["matches"][0]) == ["offset", "line", "snippetOffset", "snippet"]
    last = await reply(bank, "retrieve_context", artifactId=pointer, search="AB", offset=300)
    assert last["matchCount"] == 20
    assert "nextSearchOffset" not in last
    few = await reply(bank, "retrieve_context", artifactId=pointer, search="AB", limit=2)
    assert few["matchCount"] == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid-argument"),
        ({"artifactId": 5}, "invalid-argument"),
        ({"artifactId": UNKNOWN}, "unknown-pointer"),
        ({"artifactId": "functions.read_tool_result_44.1"}, "unknown-pointer"),
        ({"artifactId": ""}, "unknown-pointer"),
        ({"artifactId": "x" * 4_000}, "unknown-pointer"),
        ({"artifactId": "\ud83d"}, "unknown-pointer"),
        ({"artifactId": "it", "offset": -1}, "invalid-argument"),
        ({"artifactId": "it", "offset": "5"}, "invalid-argument"),
        ({"artifactId": "it", "offset": 1.5}, "invalid-argument"),
        ({"artifactId": "it", "offset": True}, "invalid-argument"),
        ({"artifactId": "it", "limit": 0}, "invalid-argument"),
        ({"artifactId": "it", "search": ""}, "invalid-argument"),
        ({"artifactId": "it", "search": "x" * 201}, "invalid-argument"),
        ({"artifactId": "it", "colour": "red"}, "invalid-argument"),
        ({"artifactId": "png"}, "binary"),
        ({"artifactId": "png", "search": "x"}, "binary"),
        ("[]", "invalid-argument"),
        ("{", "invalid-argument"),
        ("null", "invalid-argument"),
    ],
)
async def test_each_failure_has_a_code_a_short_message_and_a_hint(
    bank: Bank, arguments: Any, code: str
) -> None:
    await bank.put(TEXT, name="it")
    await bank.put(b"\x89PNG\r\n\x1a\n" + bytes(1_000), name="png", content_type="image/png")
    (tool,) = retrieval_tools(bank)

    answer = await tool.call(arguments)

    failure = json.loads(answer)
    assert list(failure) == ["error", "message", "hint"]
    assert failure["error"] == code
    assert failure["message"]
    assert failure["hint"]
    assert len(answer.encode("utf-8")) < 800


@given(
    st.dictionaries(
        st.sampled_from(["artifactId", "offset", "limit", "search", "x"]),
        st.none() | st.integers() | st.text() | st.lists(st.integers()) | st.just("it"),
    )
    | st.text()
)
async def test_whatever_a_model_sends_is_answered(arguments: Any) -> None:
    bank = Bank(MemoryStore())
    await bank.put(TEXT, name="it")
    for tool in tools(bank).values():
        answer = await tool.call(arguments)
        assert answer.encode("utf-8")
        if tool.name != "getArtifact":
            json.loads(answer)


async def test_an_outage_is_not_told_as_unknown() -> None:
    class Out(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise StoreUnavailableError("connection refused")

    bank = Bank(Out())

    assert (await reply(bank, "retrieve_context", artifactId=UNKNOWN))[
        "error"
    ] == "store-unavailable"
    assert (await reply(bank, "getArtifact", pointerOrName=UNKNOWN))["error"] == "store-unavailable"


async def test_lone_surrogates_are_replaced_one_for_one(bank: Bank) -> None:
    await bank.put("ok \ud83d end", name="it")

    page = await reply(bank, "retrieve_context", artifactId="it")
    found = await reply(bank, "retrieve_context", artifactId="it", search="END")

    assert page["content"] == "ok \ufffd end"
    assert page["totalSize"] == 8
    assert found["matches"][0]["offset"] == 5
    assert found["matches"][0]["snippet"] == "ok \ufffd end"
    assert await tools(bank)["getArtifact"].call({"pointerOrName": "it"}) == "ok \ufffd end"


async def test_what_a_model_stores_it_gets_back_by_name_and_pointer(bank: Bank) -> None:
    stored = await reply(bank, "storeArtifact", name="logs", value="text", contentType="text/x-log")

    assert list(stored) == ["pointer", "preview", "sizeBytes", "name"]
    assert (stored["preview"], stored["sizeBytes"], stored["name"]) == ("text", 4, "logs")
    for asked in ("logs", stored["pointer"]):
        assert await tools(bank)["getArtifact"].call({"pointerOrName": asked}) == "text"
    artifact = await bank.find("logs")
    assert artifact is not None
    assert artifact.content_type == "text/x-log"


@pytest.mark.parametrize("name", ["", UNKNOWN, "a\nb", "x" * 201])
async def test_a_name_that_is_none_is_refused_and_nothing_is_stored(bank: Bank, name: str) -> None:
    failure = await reply(bank, "storeArtifact", name=name, value="text")

    assert failure["error"] == "invalid-argument"
    assert await reply(bank, "listArtifacts") == []


async def test_a_missing_artifact_is_told_in_one_short_sentence(bank: Bank) -> None:
    tool = tools(bank)["getArtifact"]

    assert await tool.call({"pointerOrName": "nope"}) == "[no artifact found for 'nope']"
    assert len(await tool.call({"pointerOrName": "x" * 4_000})) < 150


async def test_an_expired_artifact_is_told_apart_from_a_missing_one(bank: Bank) -> None:
    now = 1_790_000_000.0
    bank = Bank(MemoryStore(), clock=lambda: now)
    await bank.put("x", name="it", ttl_seconds=60)
    now += 61

    assert (await reply(bank, "getArtifact", pointerOrName="it"))["error"] == "expired"


@pytest.mark.parametrize(("chars", "is_whole"), [(200_000, True), (200_001, False)])
async def test_text_over_the_page_cap_is_answered_as_a_read(
    bank: Bank, chars: int, is_whole: bool
) -> None:
    await bank.put("x y " * (chars // 4) + "z" * (chars % 4), name="it")

    answer = await tools(bank)["getArtifact"].call({"pointerOrName": "it"})

    if is_whole:
        assert len(answer) == chars
    else:
        page = json.loads(answer)
        assert (page["totalSize"], page["hasMore"]) == (chars, True)
        assert page["nextOffset"] == len(page["content"]) <= 50_000


async def test_structures_are_given_as_their_text(bank: Bank) -> None:
    await bank.put({"a": [1, None]}, name="it")

    assert await tools(bank)["getArtifact"].call({"pointerOrName": "it"}) == '{"a":[1,null]}'


async def test_listing_is_newest_first_bounded_and_omits_what_is_not_there(bank: Bank) -> None:
    for number in range(60):
        await bank.put("x" * 5_000, name=None if number == 59 else f"n{number}")

    listed = await reply(bank, "listArtifacts")

    assert len(listed) == 50
    assert list(listed[0]) == ["pointer", "sizeBytes", "preview", "contentType", "storedAt"]
    assert listed[1]["name"] == "n58"
    assert all(len(artifact["preview"]) < 250 for artifact in listed)


async def test_a_default_page_is_bounded_in_tokens_and_a_longer_one_comes_on_request(
    bank: Bank,
) -> None:
    text = "".join(f"{number:06} 漢字かな {number * 7919 % 1000}\n" for number in range(12_000))
    bank = Bank(MemoryStore(), limits=Limits())
    await bank.put(text, name="it")

    page = await reply(bank, "retrieve_context", artifactId="it")
    longer = await reply(bank, "retrieve_context", artifactId="it", limit=200_001)

    assert 0 < len(page["content"]) < 50_000
    assert page["nextOffset"] == len(page["content"])
    assert longer["limit"] == 200_000
    assert longer["content"] == text[:200_000]


def test_a_failure_is_its_json() -> None:
    failure = as_failure(StoreUnavailableError("gone"))

    assert failure == Failure("store-unavailable", "The store is unavailable: gone.", failure.hint)
    assert json.loads(str(failure)) == failure.to_wire()


@pytest.mark.parametrize("name", ["artifactId", "offset", "limit", "search", "colour"])
@pytest.mark.parametrize(
    "value",
    [10**5_000, -(10**5_000), nested(100_000), [0] * 1_000_000],
    ids=["great", "negative", "deep", "long"],
)
async def test_no_argument_is_too_large_to_be_answered(
    bank: Bank, name: str, value: object
) -> None:
    await bank.put(TEXT, name="it")
    (tool,) = retrieval_tools(bank)

    answer = await tool.call({"artifactId": "it", name: value})

    assert len(answer) < 250_000
    assert "Traceback" not in answer
    if not isinstance(value, int) or value < 0:
        assert json.loads(answer)["error"] == "invalid-argument"


@pytest.mark.parametrize("nothing", ["", " \n", "{}"])
async def test_no_text_is_no_arguments(bank: Bank, nothing: str) -> None:
    assert await tools(bank)["listArtifacts"].call(nothing) == "[]"
    failure = json.loads(await tools(bank)["retrieve_context"].call(nothing))
    assert failure["message"] == "artifactId is required"


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ConnectionError("redis://user:secret@host refused"), "ConnectionError"),
        (TimeoutError(), "TimeoutError"),
        (OSError(28, "/secret/path is full"), "No space left on device"),
    ],
)
async def test_what_a_strangers_store_raises_is_told_as_an_outage(
    raised: OSError, told: str
) -> None:
    class Out(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise raised

        async def put(self, key: str, payload: bytes) -> None:
            raise raised

    bank = Bank(Out())

    for failure in (
        await reply(bank, "retrieve_context", artifactId=UNKNOWN),
        await reply(bank, "retrieve_context", artifactId=UNKNOWN, search="x"),
        await reply(bank, "getArtifact", pointerOrName=UNKNOWN),
        await reply(bank, "storeArtifact", name="n", value="x"),
        await reply(bank, "listArtifacts"),
    ):
        assert failure["error"] == "store-unavailable"
        assert told in failure["message"]
        assert "secret" not in str(failure)


async def test_a_mistake_of_a_strangers_store_is_no_outage() -> None:
    class Wrong(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await reply(Bank(Wrong()), "getArtifact", pointerOrName=UNKNOWN)
