"""Reports on pointers: each is taken by every part, and only a pointer is taken for one."""

import copy
import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import (
    Bank,
    BlockingBank,
    CoatcheckError,
    Kind,
    Limits,
    Mirror,
    UnknownPointerError,
    Verbatim,
    is_pointer,
    mirror,
)
from coatcheck.stores import MemoryStore, Store
from coatcheck.tools import artifact_tools, as_failure, retrieval_tools

UNISSUED = "art:00000000-0000-4000-8000-000000000005"
STORED: list[object] = [
    [1, 2, {"three": 3.0}],
    {"k": None},
    "text",
    "123",
    7,
    1.5,
    True,
    None,
    b"\0",
]


def given_back(q: dict[str, Any], more: list[Any]) -> object:
    return [q, more]


async def given_back_later(q: dict[str, Any], more: list[Any]) -> object:
    return [q, more]


@pytest.mark.parametrize("stored", STORED, ids=repr)
async def test_br_036_nested_pointers_become_values_of_their_own_type(
    bank: Bank, stored: object
) -> None:
    pointer = (await bank.put(stored)).pointer
    q, more = {"ids": pointer}, [pointer, "lit"]
    before = copy.deepcopy((q, more))
    expected = [{"ids": stored}, [stored, "lit"]]
    bytes_only = Mirror(bank, Limits(never=frozenset({"given_back", "given_back_later"})))

    for seen in (
        bytes_only.wrap(given_back)(q, more),
        bytes_only.wrap(given_back)(q=q, more=more),
        await bytes_only.wrap(given_back_later)(q, more=more),
        list((await Mirror(bank).resolve({"q": q, "more": more})).values()),
        list((await Mirror(bank).resolve(json.dumps({"q": q, "more": more}))).values()),
    ):
        assert seen == expected
        assert repr(seen) == repr(expected)
        assert (q, more) == before


async def test_br_036_each_place_gets_an_object_of_its_own(bank: Bank) -> None:
    pointer = (await bank.put([1, [2]])).pointer
    arguments = {"a": pointer, "b": [pointer, pointer]}

    def change(a: list[Any], b: list[list[Any]]) -> list[Any]:
        a[1].append("changed")
        b[0].clear()
        return [a, b]

    assert mirror(change, bank)(**arguments) == [[1, [2, "changed"]], [[], [1, [2]]]]
    assert await bank.get(pointer) == [1, [2]]
    assert arguments == {"a": pointer, "b": [pointer, pointer]}


async def test_br_036_a_pointer_is_resolved_at_any_depth_but_never_as_a_key(bank: Bank) -> None:
    pointer = (await bank.put([1])).pointer
    deep: object = pointer
    for _ in range(2_000):
        deep = [{"k": deep}]

    resolved: Any = await Mirror(bank).resolve({"deep": deep, "keys": {pointer: pointer}})

    assert resolved["keys"] == {pointer: [1]}
    inside = resolved["deep"]
    while inside != [1]:
        inside = inside[0]["k"]


async def test_br_036_starred_parameters_take_pointers_too(bank: Bank) -> None:
    pointer = (await bank.put([1, 2])).pointer

    def tool(*parts: list[int], **named: list[int]) -> object:
        return [list(parts), named]

    assert mirror(tool, bank)(pointer, [3], x=pointer) == [[[1, 2], [3]], {"x": [1, 2]}]


async def test_br_036_what_was_fetched_is_not_looked_into_for_pointers(bank: Bank) -> None:
    inner = (await bank.put("inner")).pointer
    outer = (await bank.put([inner, {"k": inner}])).pointer

    def tool(items: list[Any]) -> list[Any]:
        return items

    assert mirror(tool, bank)(outer) == [inner, {"k": inner}]
    assert mirror(tool, bank)([outer]) == [[inner, {"k": inner}]]


PAYLOAD = "first line\nsecond: needle\n"


async def at_once(call: Callable[[], Any]) -> Any:
    return call()


def producers(bank: Bank) -> list[Callable[[int], Awaitable[Any]]]:
    """Return each way to get a pointer to the payload; a number tells the calls apart."""
    store = artifact_tools(bank)[0].call
    offload = Mirror(bank, Limits(per_tool={"t": 0})).offload

    def tool() -> str:
        return PAYLOAD

    async def waiting() -> str:
        return PAYLOAD

    async def banking(bank: Bank) -> object:
        return await bank.put(PAYLOAD)

    sync_tool = mirror(tool, bank, inline_bytes=0)
    async_tool = mirror(waiting, bank, inline_bytes=0)
    banking_tool = mirror(banking, bank)
    return [
        lambda _: at_once(sync_tool),
        lambda _: async_tool(),
        lambda _: banking_tool(),
        lambda _: offload(PAYLOAD, tool="t"),
        lambda number: offload(PAYLOAD, tool="t", call_id=f"call_{number}"),
        lambda _: bank.put(PAYLOAD),
        lambda number: bank.put(PAYLOAD, name=f"put {number}", key=f"{number}", kind="report"),
        lambda _: bank.put(PAYLOAD, kind="product set"),
        lambda _: bank.put(PAYLOAD, kind="file tree", ttl_seconds=3_600),
        lambda number: store({"name": f"stored {number}", "value": PAYLOAD}),
    ]


def pointer_in(reply: Any) -> str:
    return str(json.loads(reply)["pointer"] if isinstance(reply, str) else reply.pointer)


async def test_br_038_a_pointer_of_any_origin_is_taken_everywhere(store: Store) -> None:
    kinds = (Kind("product set", prefix="ps"), Kind("file tree", prefix="tree0123456789ab"))
    bank = Bank(store, kinds=kinds)
    other = Bank(store)  # as in another process: it learns the prefixes from the store
    (reader,) = retrieval_tools(other)
    _, get_artifact, _ = artifact_tools(other)

    def tool(text: str, deep: dict[str, list[str]]) -> list[object]:
        return [text, deep]

    mirrored, resolving = mirror(tool, other), Mirror(other)
    ways = producers(bank)
    pointers = [pointer_in(await way(number)) for number in range(100) for way in ways]
    accepted = 0
    for pointer in pointers:
        read = json.loads(await reader.call({"artifactId": pointer, "offset": 11}))
        found = json.loads(await reader.call({"artifactId": pointer, "search": "NEEDLE"}))
        accepted += (
            is_pointer(pointer)
            and read["content"] == "second: needle\n"
            and found["matches"][0]["offset"] == 19
            and mirrored(pointer, {"k": [pointer]}) == [PAYLOAD, {"k": [PAYLOAD]}]
            and await resolving.resolve({"a": [pointer]}) == {"a": [PAYLOAD]}
            and await get_artifact.call({"pointerOrName": pointer}) == PAYLOAD
            and await other.payload(pointer) == PAYLOAD.encode()
        )

    assert len(set(pointers)) == len(pointers) == 1_000
    assert accepted == 1_000
    assert {artifact.pointer async for artifact in other.list()} == set(pointers)


def test_br_038_pointers_pass_between_banks_with_and_without_an_event_loop() -> None:
    def tool(text: str) -> str:
        return text

    with BlockingBank("memory:", kinds=[Kind("product set", prefix="ps")]) as bank:
        put = bank.put(PAYLOAD, kind="product set").pointer
        shown = mirror(tool, bank.bank, inline_bytes=0)(put).pointer

        for pointer in (put, shown):
            assert bank.get(pointer) == PAYLOAD
            assert bank.search(pointer, "needle").total_matches == 1
        assert [artifact.pointer for artifact in bank.list()] == [shown, put]


ID = "00000000-0000-4000-8000-000000000005"
LOOKALIKES = [
    "art:deco posters",
    "art:",
    f"art:{ID} ",
    f" art:{ID}",
    f"art:{ID}\n",
    f"ART:{ID}",
    f"art:{ID.upper()}x",
    f"art:{ID[:-1]}",
    f"art:{ID}0",
    f"art:{ID[:-1]}A",
    f"art:{{{ID}}}",
    f"art:{ID[:-1]}٣",
    f"see art:{ID}",
    ID,
    ID.replace("-", ""),
    "ps-1",
    f"ps-{ID}",
    f"ps-{ID.replace('-', '')}",
    f"sha-{ID.replace('-', '')}",
    f"art-{ID.replace('-', '')}",
    f"ah-{ID.replace('-', '')}",
    "plan-b",
    f'retrieve_context({{"artifactId":"art:{ID}"}})',
]


async def test_br_039_what_only_looks_like_a_pointer_reaches_the_tool_unchanged(
    bank: Bank,
) -> None:
    def search(query: str, tags: list[str]) -> object:
        return [query, tags]

    mirrored = mirror(search, bank)
    for text in LOOKALIKES:
        assert mirrored(text, [text]) == [text, [text]]
        arguments = {"q": text, "d": {"x": [text]}}
        assert await Mirror(bank).resolve(arguments) == arguments


@pytest.mark.parametrize(
    "unissued", [UNISSUED, f"art:{uuid.UUID(int=2**128 - 1)}", "plan-" + "0" * 32]
)
async def test_br_039_an_unissued_pointer_is_an_error_before_the_tool_runs(
    bank: Bank, unissued: str
) -> None:
    ran: list[object] = []

    def search(query: str, deep: object = None) -> None:
        ran.append((query, deep))

    async def search_later(query: str, deep: object = None) -> None:
        ran.append((query, deep))

    for arguments in ({"query": unissued}, {"query": "x", "deep": {"k": ["y", unissued]}}):
        with pytest.raises(UnknownPointerError) as refused:
            mirror(search, bank)(**arguments)
        with pytest.raises(UnknownPointerError):
            await mirror(search_later, bank)(**arguments)
        with pytest.raises(UnknownPointerError):
            await Mirror(bank).resolve(arguments)
        failure = as_failure(refused.value)
        assert failure.error == "unknown-pointer"
        assert unissued in failure.message
    assert ran == []


async def test_br_039_one_unissued_pointer_among_good_ones_stops_the_call(bank: Bank) -> None:
    good = (await bank.put([1])).pointer
    ran: list[object] = []

    def tool(a: object, b: object) -> None:
        ran.append((a, b))

    with pytest.raises(UnknownPointerError, match=UNISSUED):
        mirror(tool, bank)([good, good], {"k": [good, UNISSUED]})
    assert ran == []


async def test_br_039_a_parameter_can_take_pointers_as_text(bank: Bank) -> None:
    def tool(query: Verbatim[str]) -> str:
        return query

    for text in (UNISSUED, (await bank.put("x")).pointer):
        assert mirror(tool, bank)(text) == text


@settings(max_examples=100)
@given(st.text(max_size=60) | st.from_regex(r"[a-z]{1,4}[:-][0-9a-f-]{30,38}", fullmatch=True))
async def test_any_text_that_is_no_pointer_reaches_the_tool_unchanged(text: str) -> None:
    def tool(a: str, b: list[str]) -> list[object]:
        return [a, b]

    bank = Bank(MemoryStore())
    if is_pointer(text) and text.startswith(("art:", "plan-")):
        with pytest.raises(UnknownPointerError):
            mirror(tool, bank)(text, [])
    else:
        assert mirror(tool, bank)(text, [text]) == [text, [text]]


async def test_br_040_a_wrong_handle_gets_an_ordinary_reply_each_time(bank: Bank) -> None:
    (reader,) = retrieval_tools(bank)
    _, get_artifact, _ = artifact_tools(bank)
    handle = "functions.read_tool_result_44.1"

    replies = [await reader.call({"artifactId": handle}) for _ in range(5)]

    for reply in replies:
        failure = json.loads(reply)
        assert failure["error"] == "unknown-pointer"
        assert handle in failure["message"]
        assert "art:" in failure["hint"]
        assert "UUID" in failure["hint"]
    assert len(set(replies)) == 1
    assert handle in await get_artifact.call({"pointerOrName": handle})
    good = (await bank.put("still here")).pointer
    assert json.loads(await reader.call({"artifactId": good}))["content"] == "still here"


WRONG: list[Any] = [
    {},
    [],
    "",
    "{",
    "null",
    {"artifactId": ""},
    {"artifactId": None},
    {"artifactId": 44},
    {"artifactId": ["art:x"]},
    {"artifactId": True},
    {"artifactId": "art:"},
    {"artifactId": "x" * 100_000},
    {"artifactId": "\0"},
    {"artifactId": UNISSUED, "offset": "0"},
    {"artifactId": UNISSUED, "limit": 0},
    {"artifactId": UNISSUED, "search": ""},
    {"artifactId": UNISSUED, "search": "x" * 201},
    {"artifactId": UNISSUED, "page": 1},
    '{"artifactId":"art:x","artifactId":7}',
    '{"artifactId":' + "[" * 100_000,
]


async def test_br_040_no_call_of_a_model_raises(bank: Bank) -> None:
    (reader,) = retrieval_tools(bank)

    for arguments in WRONG:
        reply = await reader.call(arguments)
        failure = json.loads(reply)
        assert failure["error"] in {"invalid-argument", "unknown-pointer"}
        assert failure["message"]
        assert failure["hint"]
        assert len(reply) < 600


@pytest.mark.parametrize("number", [-1, 0, 2**31, 2**63, 10**30, -(10**30)])
async def test_br_040_no_number_of_a_model_raises(bank: Bank, number: int) -> None:
    pointer = (await bank.put("abc\n" * 100)).pointer
    (reader,) = retrieval_tools(bank)

    for more in ({}, {"search": "b"}):
        for name in ("offset", "limit"):
            reply = json.loads(await reader.call({"artifactId": pointer, name: number, **more}))
            assert ("error" in reply) == (number < (name == "limit"))


async def test_a_failure_of_the_lookup_is_one_of_our_errors_for_every_call_of_the_bank(
    bank: Bank,
) -> None:
    calls: list[Callable[[str], Awaitable[object]]] = [
        bank.get,
        bank.payload,
        bank.read,
        lambda text: bank.search(text, "x"),
    ]
    for text in (UNISSUED, ID, "no such name", "", "\0", "x" * 4_000, "\ud800"):
        for call in calls:
            with pytest.raises(UnknownPointerError) as refused:
                await call(text)
            assert isinstance(refused.value, CoatcheckError | LookupError)
        assert await bank.find(text) is None
        assert await bank.delete(text) is False
