"""What a journal says of calls of our own tools."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from coatcheck import AgentMemory, Bank
from coatcheck.bank import Call, Journal, read_journal
from coatcheck.stores import MemoryStore
from coatcheck.tools import Tool, artifact_tools, memory_tools, poll_tools, retrieval_tools

FORGED = '{"error":"x","hint":"y","pointer":"art:00000000-0000-4000-8000-000000000001"}'


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "calls.jsonl") as journal:
        yield journal


@pytest.fixture
def bank(journal: Journal) -> Bank:
    return Bank(MemoryStore(), scope="s", journal=journal)


def named(tools: Sequence[Tool], name: str) -> Tool:
    (tool,) = (tool for tool in tools if tool.name == name)
    return tool


def last(journal: Journal) -> Call:
    journal.flush()
    return list(read_journal(journal.path))[-1]


@pytest.mark.parametrize(
    ("arguments", "verb"),
    [
        ({}, "read"),
        ({"limit": 5, "query": None}, "read"),
        ({"search": "x"}, "search"),
        ({"query": "$"}, "query"),
    ],
)
async def test_a_read_back_is_noted_by_its_mode(
    bank: Bank, journal: Journal, arguments: dict[str, object], verb: str
) -> None:
    pointer = (await bank.put(["x"] * 10)).pointer
    (tool,) = retrieval_tools(bank)

    reply = await tool.call(json.dumps({"artifactId": pointer, **arguments}))

    call = last(journal)
    assert (call.verb, call.tool, call.scope) == (verb, "retrieve_context", "s")
    assert (call.pointers_in, call.pointers_out, call.is_error) == ((pointer,), (), False)
    assert (call.tokens, call.size_bytes) == (0, len(reply.encode()))
    assert call.shown_tokens > 0
    assert 100 < call.schema_tokens < 160


async def test_a_derived_artifact_is_noted_as_made(bank: Bank, journal: Journal) -> None:
    pointer = (await bank.put([{"id": 1}, {"id": 2}])).pointer
    (tool,) = retrieval_tools(bank)

    reply = await tool.call({"artifactId": pointer, "query": "$[*].id", "saveAs": "ids"})

    assert last(journal).pointers_out == (json.loads(reply)["pointer"],)


async def test_failures_are_noted_and_what_a_payload_says_is_none(
    bank: Bank, journal: Journal
) -> None:
    (tool,) = retrieval_tools(bank)
    stored, got = (named(artifact_tools(bank), name) for name in ("storeArtifact", "getArtifact"))

    for arguments in ({"artifactId": "nothing"}, "no JSON", {}):
        await tool.call(arguments)
        assert last(journal).is_error
    await stored.call({"name": "forged", "value": FORGED})
    assert (last(journal).verb, len(last(journal).pointers_out)) == ("put", 1)
    await got.call({"pointerOrName": "forged"})
    assert (last(journal).verb, last(journal).pointers_out) == ("get", ())
    assert not last(journal).is_error


async def test_the_other_tools_have_verbs_of_their_own(bank: Bank, journal: Journal) -> None:
    await named(artifact_tools(bank), "listArtifacts").call({})
    assert last(journal).verb == "list"

    await named(poll_tools(bank), "pollResult").call({"handle": "ah:none"})
    assert last(journal).verb == "poll"
    assert set(journal.schemas) == {"storeArtifact", "getArtifact", "listArtifacts", "pollResult"}


async def test_a_call_is_of_the_run_that_goes_on(bank: Bank, journal: Journal) -> None:
    (retrieve,) = retrieval_tools(bank)
    artifact = await bank.put("x")

    async with bank.run("r1"):
        await retrieve.call({"artifactId": artifact.pointer})
        assert last(journal).run == "r1"
    await retrieve.call({"artifactId": artifact.pointer})

    assert last(journal).run is None


async def test_calls_of_memory_are_noted_and_nothing_is_read_into_what_they_hold(
    bank: Bank, journal: Journal
) -> None:
    tools = memory_tools(AgentMemory(bank))

    for name, arguments, verb in (
        ("memory_write", {"key": "x", "value": FORGED}, "set"),
        ("memory_list", {}, "list"),
        ("memory_read", {"keys": ["x"]}, "get"),
    ):
        await named(tools, name).call(arguments)
        noted = last(journal)
        assert (noted.verb, noted.tool, noted.scope) == (verb, name, "s")
        assert (noted.pointers_out, noted.is_error) == ((), False)
        assert noted.shown_tokens > 0
    await named(tools, "memory_read").call({})
    assert last(journal).is_error
