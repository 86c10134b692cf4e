"""What all adapters share: the sessions of a framework, each a scope of its own."""

import copy
import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Annotated, Any, cast

import pytest
from pydantic import Field, TypeAdapter

from coatcheck import Bank, BlockingBank, Envelope, Limits, Verbatim
from coatcheck.adapters._sessions import SYSTEM_TEXT, Session, Sessions, check_names
from coatcheck.bank import portal
from coatcheck.bank._keys import scope_segment
from coatcheck.content import estimate_tokens
from coatcheck.stores import MemoryStore
from coatcheck.tools import Failure

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"

HOSTILE = (
    "../../etc/passwd",
    "..",
    ".",
    "/",
    "a/b",
    "a%2Fb",
    "a\0b\n",
    "\ud83d",
    "Ann",
    "ann",
    "né 🎟",
    "session/x",
    "s" * 100_000,
    "s" * 100_001,
)
"""Ids that a caller of a host may choose."""


class Strange(MemoryStore):
    """A store that raises what is no error of ours."""

    async def get(self, key: str) -> bytes | None:
        raise RuntimeError("password=hunter2")

    async def put(self, key: str, payload: bytes) -> None:
        raise RuntimeError("password=hunter2")


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), scope="shop")


def test_tool_with_the_name_of_ours_is_refused_with_the_remedy() -> None:
    check_names(["rows", None], {"retrieve_context": 1})

    with pytest.raises(ValueError, match=r"'retrieve_context'.*call it another name"):
        check_names(["rows", "retrieve_context"], {"retrieve_context": 1})


async def test_argument_that_only_a_mirrored_function_can_read_keeps_its_pointer(
    bank: Bank,
) -> None:
    session = Sessions(bank).of()
    pointer = (await bank.put([1, 2])).pointer
    widened = session.mirror.schema({"properties": {"items": {"type": "array"}}})
    items: dict[str, Any] = widened["properties"]
    frame: dict[str, Any] = {"anyOf": [{}, items["items"]["anyOf"][-1]]}
    schema: dict[str, Any] = {"properties": {"frame": frame, **items}}

    both = await session.arguments("t", {"frame": pointer, "items": pointer}, schema)
    alone: dict[str, object] = {"frame": pointer}

    assert both == {"frame": pointer, "items": [1, 2]}
    assert await session.arguments("t", alone, schema) is alone


async def test_verbatim_argument_keeps_its_pointer_wherever_a_schema_shows_the_mark(
    bank: Bank,
) -> None:
    session = Sessions(bank).of()
    pointer = (await bank.put([1, 2])).pointer

    async def tool(
        a: Verbatim[str],
        b: Verbatim[str] | None,
        c: Verbatim[str | None],
        d: Annotated[Verbatim[list[str]], Field(description="Names.")],
        e: str,
        f: Verbatim[str] = "",
    ) -> None: ...

    made = TypeAdapter[object](cast("Any", tool)).json_schema()
    described = copy.deepcopy(made)
    for node in described["properties"].values():
        node["description"] = "What a docstring says."  # a framework writes that over a mark
    given: dict[str, object] = dict.fromkeys("abcdef", pointer)

    for schema in (made, described):
        assert await session.arguments("t", given, schema) == {**given, "e": "[1,2]"}
        assert session.mirror.schema(schema) == schema
    assert made["properties"]["d"]["description"] == "Names."
    assert made["properties"]["f"]["default"] == ""


def test_no_session_is_the_scope_of_the_bank(bank: Bank) -> None:
    sessions = Sessions(bank)

    assert sessions.of().bank is bank
    assert sessions.of(None).bank is bank
    assert sessions.of(None, None).bank is bank
    assert sessions.of("").bank.scope != bank.scope


def test_the_same_id_is_the_same_session_and_another_one_is_not(bank: Bank) -> None:
    sessions = Sessions(bank)

    assert sessions.of("one") is sessions.of("one")
    assert sessions.of("one") is not sessions.of("two")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("a/b",)),
        (("a", ""), ("a",)),
        (("", "a"), ("a",)),
        (("a", None, "b"), ("a", "b")),
        (("a/session/b",), ("a", "session", "b")),
    ],
)
def test_parts_that_only_look_the_same_together_are_two_sessions(
    bank: Bank, one: Sequence[str | None], other: Sequence[str | None]
) -> None:
    sessions = Sessions(bank)

    assert sessions.of(*one).bank.scope != sessions.of(*other).bank.scope


def test_a_bank_of_a_session_has_sessions_of_its_own(bank: Bank) -> None:
    outer = Sessions(bank)
    inner = Sessions(outer.of("a").bank)

    assert inner.of("b").bank.scope != outer.of("a/session/b").bank.scope


async def test_whatever_an_id_is_each_has_a_scope_that_a_store_can_hold(bank: Bank) -> None:
    sessions = Sessions(bank)
    pointers = {id_: (await sessions.of(id_).bank.put(id_)).pointer for id_ in HOSTILE}

    segments = {scope_segment(sessions.of(id_).bank.scope) for id_ in HOSTILE}
    assert len(segments) == len(HOSTILE)
    assert all(len(segment) <= 120 and "/" not in segment for segment in segments)
    for id_ in HOSTILE:
        own = sessions.of(id_).bank
        assert await own.get(pointers[id_]) == id_
        assert (await own.usage()).artifacts == 1
        for other in HOSTILE:
            assert other == id_ or await own.find(pointers[other]) is None


async def test_what_was_banked_is_found_although_its_session_was_forgotten(bank: Bank) -> None:
    sessions = Sessions(bank)
    first = sessions.of("first")
    pointer = (await first.bank.put("kept")).pointer
    for number in range(256):
        sessions.of(f"session {number}")

    assert sessions.of("first") is not first
    assert await sessions.of("first").bank.get(pointer) == "kept"


def test_the_session_that_was_used_last_is_the_last_to_be_forgotten(bank: Bank) -> None:
    sessions = Sessions(bank)
    first, second = sessions.of("first"), sessions.of("second")
    for number in range(254):
        sessions.of(f"session {number}")
    assert sessions.of("first") is first
    sessions.of("one more")

    assert sessions.of("first") is first
    assert sessions.of("second") is not second


def test_many_threads_get_one_session_for_one_id_and_lose_nothing(bank: Bank) -> None:
    sessions = Sessions(bank)
    start = Barrier(16)

    def work(worker: int) -> list[Session]:
        start.wait()
        made = [sessions.of(f"session {number}") for number in range(200)]
        session = sessions.of(f"session {worker % 4}")
        portal().run(session.bank.put("x" * 100, name=f"from {worker}"))
        return made

    with ThreadPoolExecutor(16) as pool:
        all_made = list(pool.map(work, range(16)))

    assert all(made == all_made[0] for made in all_made)
    usages = [portal().run(sessions.of(f"session {at}").bank.usage()) for at in range(4)]
    assert [usage.artifacts for usage in usages] == [4] * 4


async def test_limits_given_hold_in_every_session_and_else_those_of_the_bank() -> None:
    bank = Bank(MemoryStore(), limits=Limits(inline_bytes=1_000))

    with_own = Sessions(bank, Limits(inline_bytes=10_000)).of("one")
    with_banks = Sessions(bank).of("one")

    assert await with_own.mirror.offload("x" * 5_000, "rows") == "x" * 5_000
    assert isinstance(await with_banks.mirror.offload("x" * 5_000, "rows"), Envelope)


def test_a_blocking_bank_is_taken_too() -> None:
    with BlockingBank("memory:", scope="shop") as blocking:
        sessions = Sessions(blocking)

        assert sessions.of().bank is blocking.bank
        assert sessions.of("one").bank.scope == "shop/session/one"


async def test_own_tools_are_listed_alike_and_answer_from_their_session(bank: Bank) -> None:
    sessions = Sessions(bank)
    one, two = sessions.of("one"), sessions.of("two")
    pointer = (await one.bank.put("alpha")).pointer

    assert list(sessions.tools) == list(one.tools) == ["retrieve_context"]
    assert sessions.tools["retrieve_context"].parameters == one.tools["retrieve_context"].parameters
    found = json.loads(await one.tools["retrieve_context"].call({"artifactId": pointer}))
    missed = json.loads(await two.tools["retrieve_context"].call({"artifactId": pointer}))
    assert found["content"] == "alpha"
    assert missed["error"] == "unknown-pointer"


async def test_arguments_without_pointers_are_handed_back_as_they_are(bank: Bank) -> None:
    given = {"items": [1, {"a": "art:deco"}]}

    assert await Sessions(bank).of().arguments("total", given) is given


async def test_arguments_are_resolved_as_their_schema_says_and_not_changed(bank: Bank) -> None:
    session = Sessions(bank).of("one")
    pointer = (await session.bank.put([1, 2])).pointer
    given: dict[str, object] = {"items": pointer, "text": pointer, "deep": {"in": [pointer]}}
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array"}, "text": {"type": "string"}},
    }

    found = await session.arguments("total", given, schema)

    assert found == {"items": [1, 2], "text": "[1,2]", "deep": {"in": [[1, 2]]}}
    assert given == {"items": pointer, "text": pointer, "deep": {"in": [pointer]}}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"items": UNKNOWN}, "unknown-pointer"),
        ({"items": f"{UNKNOWN}#the first"}, "invalid-argument"),
    ],
)
async def test_arguments_that_stand_for_nothing_are_a_failure(
    bank: Bank, given: Any, code: str
) -> None:
    found = await Sessions(bank).of("one").arguments("total", given)

    assert isinstance(found, Failure)
    assert found.error == code


async def test_whatever_a_strangers_store_raises_is_a_failure_that_does_not_quote_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = Sessions(Bank(Strange())).of("one")

    with caplog.at_level(logging.ERROR, "coatcheck.adapters"):
        found = await session.arguments("total", {"items": UNKNOWN})
        reply = await session.tools["retrieve_context"].call({"artifactId": UNKNOWN})

    assert isinstance(found, Failure)
    assert found.error == json.loads(reply)["error"] == "store-unavailable"
    assert "hunter2" not in f"{found}{reply}"
    assert "total" in caplog.text
    assert "retrieve_context" in caplog.text


def test_the_system_text_costs_25_tokens_or_less() -> None:
    assert estimate_tokens(SYSTEM_TEXT) <= 25
