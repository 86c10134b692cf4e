"""Reports on agent memory: what models write and what names hold stays in its namespace."""

import json
from typing import Any

import pytest

from coatcheck import AgentMemory, Bank, memory_keys
from coatcheck.memory import MemoryEntry
from coatcheck.tools import memory_tools

OWN = {
    "task:research": "of the task",
    "step:s1": "of the step",
    "input:q": "of the caller",
    "Task:research": "of a host",
}


@pytest.fixture
def memory(bank: Bank) -> AgentMemory:
    return AgentMemory(bank)


async def call(memory: AgentMemory, name: str, /, **arguments: object) -> Any:
    tools = {tool.name: tool for tool in memory_tools(memory)}
    return json.loads(await tools[name].call(json.dumps(arguments)))


async def outside_of_shared(memory: AgentMemory) -> dict[str, MemoryEntry]:
    entries = {entry.key: entry for entry in await memory.list()}
    return {key: entry for key, entry in entries.items() if not key.startswith("shared:")}


@pytest.mark.parametrize(
    ("key", "stored"),
    [
        ("task:research", "shared:task:research"),
        ("step:s1", "shared:step:s1"),
        ("input:q", "shared:input:q"),
        ("shared:x", "shared:x"),
        ("shared:shared:x", "shared:shared:x"),
        (" Task:research", "shared: Task:research"),
        ("task\u200b:r", "shared:task\u200b:r"),
        ("\u200btask:research", "shared:\u200btask:research"),
        ("x\ntask:research", "shared:x\ntask:research"),
        ("../task:research", "shared:../task:research"),
        ("shared:\x00task:research", "shared:\x00task:research"),
        ("\ud83d", None),
        ("", None),
        ("shared:", None),
        ("k" * 494, None),
    ],
)
async def test_br_078_what_a_model_writes_is_shared_or_refused(
    memory: AgentMemory, key: str, stored: str | None
) -> None:
    for own, value in OWN.items():
        await memory.set(own, value, kind="task_result")
    before = await outside_of_shared(memory)

    reply = await call(memory, "memory_write", key=key, value="of a model")

    assert await outside_of_shared(memory) == before
    if stored is None:
        assert reply["error"] == "invalid-argument"
        assert reply["hint"]
        assert await memory.size() == len(OWN)
    else:
        assert reply["key"] == stored
        assert await memory.get_value(stored) == "of a model"
        assert await memory.size() == len(OWN) + 1


@pytest.mark.parametrize("name", ["a:b", "x\ny", "main", "task:a", " ", "\u200b", "🎟", "a/../b"])
async def test_br_080_a_name_stays_in_its_namespace_through_list_and_read(
    memory: AgentMemory, name: str
) -> None:
    makers = (memory_keys.task, memory_keys.step, memory_keys.input, memory_keys.shared)
    for make in makers:
        await memory.set(make(name), [make(name)])

    for make in makers:
        key, prefix = make(name), make("")
        listed = await call(memory, "memory_list", key_prefix=prefix)
        assert [entry["key"] for entry in listed["entries"]] == [key]
        read = await call(memory, "memory_read", keys=[key])
        assert read["entries"][key]["value"] == [key]
        assert read["missing"] == []


async def test_br_080_scopes_named_as_parts_of_keys_are_apart(bank: Bank) -> None:
    for scope in ("main", "main/memory", "memory", "s"):
        await AgentMemory(bank.scoped(scope)).set("task:a", scope)

    for scope in ("main", "main/memory", "memory", "s"):
        entries = await AgentMemory(bank.scoped(scope)).list()
        assert [entry.value for entry in entries] == [scope]
