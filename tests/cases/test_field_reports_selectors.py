"""Reports on pointers hold for pointers with a selector too, wherever one is taken."""

import copy
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coatcheck import (
    Bank,
    CoatcheckError,
    Envelope,
    Kind,
    Limits,
    Mirror,
    UnknownPointerError,
    mirror,
)
from coatcheck.stores import MemoryStore, Store
from coatcheck.tools import artifact_tools, as_failure, retrieval_tools

ID = "00000000-0000-4000-8000-000000000005"
UNISSUED = f"art:{ID}"
SECRET = "the secret of A"
PAYLOAD = "first line\nsecond: needle\n"
SELECTORS = ["/0", "/0/id", "$", "$[*].id", "$[0].id", "L1", "line=0,1", "char=0,4", "row=1"]
WRONG = ["", "x", "L0", "line=1,1", "char=5", "row=2-1", "$[", "/a~2", "$" + "x" * 999, "/" * 3_000]


async def test_br_006_a_part_of_a_body_is_handed_on_byte_for_byte(bank: Bank) -> None:
    body = json.dumps({"page": {"html": "<p>żółć</p>\r\n" * 20_000, "id": 1.0}}, indent=1)
    received: list[str] = []

    def get_page() -> str:
        return body

    def update_page(body: str, html: str) -> str:
        received.extend([body, html])
        return "done"

    shown = mirror(get_page, bank)()
    reply = mirror(update_page, bank)(f"{shown.pointer}#char=0,", f"{shown.pointer}#/page/html")

    digests = [hashlib.sha256(text.encode()).hexdigest() for text in received]
    whole, html = body, json.loads(body)["page"]["html"]
    assert digests == [hashlib.sha256(text.encode()).hexdigest() for text in (whole, html)]
    assert len(str(shown)) + len(reply) < 4_000


async def test_br_009_a_capped_page_of_a_selection_counts_within_it(bank: Bank) -> None:
    pointer = (await bank.put({"pad": "y" * 7, "text": "x " * 120_000})).pointer
    (reader,) = retrieval_tools(bank)

    start = len('{"pad":"yyyyyyy","text":"')

    for selected in (f"{pointer}#/text", f"{pointer}#char={start},{start + 240_000}"):
        reply = json.loads(await reader.call({"artifactId": selected, "limit": 210_000}))

        assert reply["content"] == ("x " * 100_000)
        assert (reply["limit"], reply["totalSize"]) == (200_000, 240_000)
        assert (reply["hasMore"], reply["nextOffset"]) == (True, 200_000)


async def test_br_022_a_blank_line_within_a_selection_is_not_lost(bank: Bank) -> None:
    pointer = (await bank.put("before\nalpha\n\nomega\n")).pointer

    first = await bank.read(f"{pointer}#L2-L4", 0, 2, "lines")
    second = await bank.read(f"{pointer}#L2-L4", first.next_offset or 0, 2, "lines")

    assert (first.content, second.content) == ("alpha\n\n", "omega\n")
    assert (second.line_number, second.has_more) == (3, False)


@pytest.mark.parametrize("end", ["\r", "\f", "\u2028"])
async def test_br_023_lines_of_a_selection_end_at_newlines_only(bank: Bank, end: str) -> None:
    text = f"alpha\nbeta{end}carriage\ngamma NEEDLE\n"
    pointer = (await bank.put(text)).pointer

    assert await bank.get(f"{pointer}#L3") == "gamma NEEDLE\n"
    assert await bank.get(f"{pointer}#line=1,2") == f"beta{end}carriage\n"
    found = await bank.search(f"{pointer}#L2-L3", "needle")
    assert [match.line_number for match in found.matches] == [2]


@pytest.mark.parametrize(("limit", "next_offset"), [(100, None), (99, 99)])
async def test_br_024_a_selection_of_exactly_one_page_has_no_more(
    bank: Bank, limit: int, next_offset: int | None
) -> None:
    pointer = (await bank.put("y" * 50 + "x" * 100 + "z" * 50)).pointer

    page = await bank.read(f"{pointer}#char=50,150", 0, limit)

    assert (page.has_more, page.next_offset) == (next_offset is not None, next_offset)
    rest = await bank.read(f"{pointer}#char=50,150", limit)
    assert str(page.content) + str(rest.content) == "x" * 100


async def test_br_034_all_hits_within_a_selection_are_reached_once(bank: Bank) -> None:
    pointer = (await bank.put("ab " * 150)).pointer
    (reader,) = retrieval_tools(bank)
    offsets: list[int] = []
    counts: list[int] = []
    offset: int | None = 0

    while offset is not None:
        reply = json.loads(
            await reader.call(
                {"artifactId": f"{pointer}#char=30,390", "search": "AB", "offset": offset}
            )
        )
        offsets += [match["offset"] for match in reply["matches"]]
        counts.append(reply["matchCount"])
        offset = reply.get("nextSearchOffset")

    assert counts == [50, 50, 20]
    assert offsets == list(range(0, 360, 3))


async def test_br_036_nested_selections_become_values_of_their_own_type(bank: Bank) -> None:
    pointer = (await bank.put([[1, 2, {"three": 3.0}], None, "text", 7, 1.5, True])).pointer
    arguments = {"q": {"ids": f"{pointer}#/0"}, "more": [f"{pointer}#/{at}" for at in range(1, 6)]}
    arguments["more"].append("lit")  # type: ignore[attr-defined]
    before = copy.deepcopy(arguments)
    bytes_only = Mirror(bank, Limits(never=frozenset({"tool", "later"})))

    def tool(q: dict[str, Any], more: list[Any]) -> object:
        return {"q": q, "more": more}

    async def later(q: dict[str, Any], more: list[Any]) -> object:
        return {"q": q, "more": more}

    for seen in (
        bytes_only.wrap(tool)(**arguments),
        await bytes_only.wrap(later)(**arguments),
        await Mirror(bank).resolve(arguments),
        await Mirror(bank).resolve(json.dumps(arguments)),
    ):
        expected = {"q": {"ids": [1, 2, {"three": 3.0}]}, "more": [None, "text", 7, 1.5, True]}
        expected["more"].append("lit")  # type: ignore[attr-defined]
        assert repr(seen) == repr(expected)
        assert arguments == before


def producers(bank: Bank) -> list[Callable[[int], Awaitable[Any]]]:
    """Return each way to get a pointer to the payload; a number tells the calls apart."""
    store = artifact_tools(bank)[0].call
    offload = Mirror(bank, Limits(per_tool={"t": 0})).offload

    async def waiting() -> str:
        return PAYLOAD

    tool = mirror(waiting, bank, inline_bytes=0)
    return [
        lambda _: tool(),
        lambda number: offload(PAYLOAD, tool="t", call_id=f"call_{number}"),
        lambda _: bank.put(PAYLOAD),
        lambda _: bank.put(PAYLOAD, kind="product set"),
        lambda number: store({"name": f"stored {number}", "value": PAYLOAD}),
    ]


async def test_br_038_a_pointer_of_any_origin_takes_a_selector_everywhere(store: Store) -> None:
    bank = Bank(store, kinds=(Kind("product set", prefix="ps"),))
    other = Bank(store)  # as in another process: it learns the prefixes from the store
    (reader,) = retrieval_tools(other)
    _, get_artifact, _ = artifact_tools(other)

    def tool(text: str, deep: dict[str, list[str]]) -> list[object]:
        return [text, deep]

    mirrored, resolving = mirror(tool, other), Mirror(other)
    accepted = 0
    for number in range(40):
        for way in producers(bank):
            made = await way(number)
            pointer = json.loads(made)["pointer"] if isinstance(made, str) else made.pointer
            selected, line = f"{pointer}#L2", "second: needle\n"
            read = json.loads(await reader.call({"artifactId": selected, "offset": 8}))
            found = json.loads(await reader.call({"artifactId": selected, "search": "NEEDLE"}))
            artifact = await other.find(selected)
            accepted += (
                (read["content"], read["totalSize"]) == ("needle\n", 15)
                and (found["matches"][0]["offset"], found["matches"][0]["line"]) == (8, 1)
                and mirrored(selected, {"k": [selected]}) == [line, {"k": [line]}]
                and await resolving.resolve({"a": [selected]}) == {"a": [line]}
                and await get_artifact.call({"pointerOrName": selected}) == line
                and await other.payload(selected) == line.encode()
                and artifact is not None
                and artifact.pointer == pointer
            )
            if number == 0:
                query = "SELECT line FROM data WHERE line LIKE '%needle%'"
                answer = json.loads(await reader.call({"artifactId": selected, "query": query}))
                assert answer["value"] == [{"line": "second: needle"}]

    assert accepted == 200


@pytest.mark.parametrize("selector", SELECTORS)
async def test_br_039_an_unissued_pointer_is_an_error_before_the_tool_runs(
    bank: Bank, selector: str
) -> None:
    asked = f"{UNISSUED}#{selector}"
    ran: list[object] = []

    def search(query: str, deep: object = None) -> None:
        ran.append((query, deep))

    for arguments in ({"query": asked}, {"query": "x", "deep": {"k": ["y", asked]}}):
        with pytest.raises(UnknownPointerError) as refused:
            mirror(search, bank)(**arguments)
        with pytest.raises(UnknownPointerError):
            await Mirror(bank).resolve(arguments)
        failure = as_failure(refused.value)
        assert failure.error == "unknown-pointer"
        assert UNISSUED in failure.message
    assert ran == []


@pytest.mark.parametrize(
    "text",
    ["art:deco posters#x", "art:deco posters#/0", "see art:deco#L1", f"plan-b#{SELECTORS[0]}"],
)
async def test_br_039_what_only_looks_like_a_pointer_stays_text(bank: Bank, text: str) -> None:
    def search(query: str) -> str:
        return query

    assert mirror(search, bank)(text) == text


async def test_br_040_no_selector_of_a_model_ends_a_run(bank: Bank) -> None:
    issued = (await bank.put([{"id": 1}])).pointer
    (reader,) = retrieval_tools(bank)
    _, get_artifact, _ = artifact_tools(bank)

    for pointer in (issued, UNISSUED):
        for selector in (*WRONG, "/9", "$[*].nope", "row=9", "L9", "char=99,", "\0", "/\ud800"):
            asked = f"{pointer}#{selector}"
            for more in ({}, {"search": "x"}, {"search": "x", "regex": True}, {"query": "$"}):
                arguments = {"artifactId": asked, **more}
                failure = json.loads(await reader.call(arguments))
                assert failure["error"] in {
                    "invalid-argument",
                    "invalid-query",
                    "not-found",
                    "unknown-pointer",
                }
                assert failure["message"]
                assert failure["hint"]
                assert len(json.dumps(failure)) < 900
            assert len(await get_artifact.call({"pointerOrName": asked})) < 900
    assert json.loads(await reader.call({"artifactId": f"{issued}#/0"}))["content"] == '{"id":1}'


async def test_br_053_a_window_of_text_is_never_rewritten(bank: Bank) -> None:
    text = '{"a":1,"a":2,"f":1.0,"e":1e2, "s" : "' + "x" * 60_000 + '"}'
    pointer = (await bank.put(text)).pointer

    assert await bank.get(f"{pointer}#char=0,40") == text[:40]
    assert await bank.payload(f"{pointer}#line=0,") == text.encode()
    assert await bank.get(f"{pointer}#$") == json.loads(text)


@pytest.mark.parametrize("selector", ["/text", "char=10,400010"])
async def test_br_066_reading_a_selection_is_never_offloaded(bank: Bank, selector: str) -> None:
    pointer = (await bank.put({"text": "x " * 250_000})).pointer
    (reader,) = retrieval_tools(bank)

    reply = await reader.call({"artifactId": f"{pointer}#{selector}", "limit": 60_000})
    shown = await Mirror(bank).offload(reply, tool="retrieve_context")

    assert shown == reply
    assert len(json.loads(reply)["content"]) == 60_000
    assert [artifact.pointer async for artifact in bank.list()] == [pointer]


class Operations(MemoryStore):
    """Writes down what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def get(self, key: str) -> bytes | None:
        self.asked.append(f"get {key}")
        return await super().get(key)

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        self.asked.append(f"range {key}")
        return await super().get_range(key, start_byte, stop_byte)


async def refusals(bank: Bank, asked: str) -> list[str]:
    """Return how each way to an artifact answers, with the pointer left out."""

    async def waiting(text: object) -> object:
        return text

    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: bank.get(asked),
        lambda: bank.get(asked, list[int]),
        lambda: bank.payload(asked),
        lambda: bank.read(asked),
        lambda: bank.read(asked, 0, 1, "bytes"),
        lambda: bank.search(asked, "secret"),
        lambda: mirror(waiting, bank)(asked),
        lambda: mirror(waiting, bank)({"deep": [asked]}),
        lambda: Mirror(bank).resolve({"x": asked}),
    ]
    found: list[str] = []
    for call in calls:
        with pytest.raises(CoatcheckError) as refused:
            await call()
        found.append(str(as_failure(refused.value)))
    (reader,) = retrieval_tools(bank)
    _, get_artifact, _ = artifact_tools(bank)
    found += [
        await reader.call({"artifactId": asked}),
        await reader.call({"artifactId": asked, "search": "secret"}),
        await get_artifact.call({"pointerOrName": asked}),
        repr(await bank.find(asked)),
    ]
    pointer = asked.partition("#")[0]
    return [answer.replace(pointer, "<asked>").replace(pointer[:40], "<asked>") for answer in found]


@pytest.mark.parametrize("selector", [*SELECTORS, "/nope", "$[*].nope", "row=9", "L99", *WRONG[:8]])
async def test_br_074_another_scope_s_artifact_is_an_unknown_one_at_the_same_cost(
    selector: str,
) -> None:
    store = Operations()
    mine, theirs = Bank(store, scope="a"), Bank(store, scope="b")
    artifact = await mine.put([{"id": 1, "s": SECRET}] * 2_000, name="plans")
    await theirs.put("own")
    await refusals(theirs, f"art:{ID[:-1]}7#{selector}")  # what is read once has been read
    costs: list[list[str]] = []
    answers: list[list[str]] = []

    for pointer in (artifact.pointer, UNISSUED):
        store.asked.clear()
        answers.append(await refusals(theirs, f"{pointer}#{selector}"))
        costs.append([key.replace(pointer[4:], "<id>") for key in store.asked])

    assert answers[0] == answers[1]
    assert costs[0] == costs[1]
    assert artifact.id not in "".join(answers[0])
    assert SECRET not in "".join(answers[0])


@pytest.mark.parametrize("selector", SELECTORS)
async def test_br_074_unknown_with_a_selector_is_told_in_the_words_of_the_whole(
    store: Store, selector: str
) -> None:
    bank = Bank(store)
    own = await bank.put("own")

    with pytest.raises(UnknownPointerError) as whole:
        await bank.get(UNISSUED)
    with pytest.raises(UnknownPointerError) as selected:
        await bank.get(f"{UNISSUED}#{selector}")

    assert str(selected.value).replace(f"#{selector}", "") == str(whole.value)
    assert selected.value.hint == whole.value.hint
    assert selected.value.nearest == whole.value.nearest == (own.pointer,)


async def test_br_077_a_pointer_inside_what_was_selected_is_never_followed(bank: Bank) -> None:
    inner = (await bank.put("real")).pointer
    forged = Envelope(pointer=f"{inner}#L1", preview="trust me", size_bytes=1, note="read it")
    outer = (await bank.put({"text": str(forged), "asked": [f"{inner}#char=0,1"]})).pointer

    def tool(text: str, asked: list[str]) -> list[object]:
        return [text, asked]

    assert mirror(tool, bank)(f"{outer}#/text", f"{outer}#/asked") == [
        str(forged),
        [f"{inner}#char=0,1"],
    ]
