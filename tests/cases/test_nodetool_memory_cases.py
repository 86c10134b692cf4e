"""Seed 002's cases of agent memory and its tools: each test names the case it holds."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from coatcheck import AgentMemory, Bank, memory_keys
from coatcheck.memory import MemoryEntry
from coatcheck.testing import ManualClock
from coatcheck.tools import memory_tools

ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def memory(bank: Bank) -> AgentMemory:
    return AgentMemory(bank)


async def call(memory: AgentMemory, name: str, /, **arguments: object) -> Any:
    """Return the reply to a call as a model makes it, from JSON text to JSON."""
    tools = {tool.name: tool for tool in memory_tools(memory)}
    return json.loads(await tools[name].call(json.dumps(arguments)))


def at_ms(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1_000, UTC)


async def seed(memory: AgentMemory) -> None:
    await memory.set(memory_keys.step("s1"), {"n": 1}, source="s1")
    await memory.set(memory_keys.step("s2"), {"n": 2}, source="s2")
    await memory.set(
        memory_keys.task("t1"), {"findings": ["alpha"]}, source="research", title="Research"
    )
    await memory.set(memory_keys.input("region"), "EU", title="region")


async def test_b1_an_entry_that_was_set_is_there_by_every_way_to_ask(memory: AgentMemory) -> None:
    entry = await memory.set(memory_keys.task("t1"), {"n": 1})

    assert await memory.get("task:t1") == entry
    assert await memory.get_value("task:t1") == {"n": 1}
    assert await memory.has("task:t1")
    assert await memory.size() == 1
    assert await memory.get("task:t2") is None
    assert await memory.get_value("task:t2") is None
    assert not await memory.has("task:t2")


async def test_b2_filters_choose_by_kind_keys_prefix_and_source(memory: AgentMemory) -> None:
    await seed(memory)

    assert len(await memory.list(kind="step_result")) == 2
    assert len(await memory.list(kind=["task_result", "input"])) == 2
    assert len(await memory.list(keys=["step:s1", "task:t1"])) == 2
    assert len(await memory.list(key_prefix="step:")) == 2
    assert [entry.key for entry in await memory.list(sources=["s1"])] == ["step:s1"]


async def test_b3_a_key_that_is_written_again_keeps_when_it_was_created(
    memory: AgentMemory,
) -> None:
    await memory.set("task:t1", 1, created_at=at_ms(100))

    entry = await memory.set("task:t1", 2)

    assert (entry.value, entry.created_ms) == (2, 100)
    assert await memory.get("task:t1") == entry


async def test_b4_a_subscriber_hears_of_writes_until_it_stops(memory: AgentMemory) -> None:
    heard: list[MemoryEntry] = []
    stop = memory.subscribe(heard.append)

    entry = await memory.set("task:t1", 1)
    stop()
    await memory.set("task:t1", 2)

    assert heard == [entry]


async def test_b5_a_prompt_has_a_heading_for_each_entry_and_its_value(memory: AgentMemory) -> None:
    await memory.set("task:a", {"x": [1]}, title="First")
    await memory.set("task:b", "plain text", title="Second", description="What it says.")
    await memory.set("step:s", "not asked for")

    prompt = await memory.format_for_prompt(kind="task_result")

    assert prompt.startswith("# Memory")
    assert "## [task_result] First (task:a)" in prompt
    assert '```\n{\n  "x": [\n    1\n  ]\n}\n```' in prompt
    assert "## [task_result] Second (task:b)\n\nWhat it says.\n\n```\nplain text\n```" in prompt
    assert "not asked for" not in prompt


async def test_b6_a_prompt_without_entries_is_empty(memory: AgentMemory) -> None:
    await seed(memory)

    assert await memory.format_for_prompt(sources=["nobody"]) == ""


async def test_b7_clear_takes_what_a_filter_says_and_else_all(memory: AgentMemory) -> None:
    await seed(memory)

    await memory.clear(kind="step_result")

    assert [entry.key for entry in await memory.list()] == ["task:t1", "input:region"]
    await memory.clear()
    assert await memory.size() == 0


async def test_b8_a_prompt_goes_by_time_of_creation(memory: AgentMemory) -> None:
    await memory.set("task:late", 1, created_at=at_ms(200))
    await memory.set("task:early", 2, created_at=at_ms(100))

    prompt = await memory.format_for_prompt()

    assert prompt.index("task:early") < prompt.index("task:late")
    assert [entry.key for entry in await memory.list()] == ["task:late", "task:early"]


async def test_b9_a_snapshot_is_restored_whole_and_told_in_order(memory: AgentMemory) -> None:
    await memory.set("task:a", {"n": 1}, created_at=at_ms(100))
    await memory.set("step:b", "x", created_at=at_ms(200))
    other = AgentMemory()
    heard: list[str] = []
    other.subscribe(lambda entry: heard.append(entry.key))

    await other.restore(await memory.snapshot())

    assert await other.size() == 2
    assert await other.list() == await memory.list()
    assert heard == ["task:a", "step:b"]


async def test_b10_a_restore_overwrites(memory: AgentMemory) -> None:
    await memory.set("task:a", "restored")
    snapshot = await memory.snapshot()
    other = AgentMemory()
    await other.set("task:a", "before")

    await other.restore(snapshot)

    assert await other.get_value("task:a") == "restored"
    assert await other.size() == 1


async def test_b11_a_listener_that_raises_breaks_neither_the_write_nor_others(
    memory: AgentMemory,
) -> None:
    heard: list[MemoryEntry] = []

    def broken(_entry: MemoryEntry) -> None:
        raise RuntimeError

    memory.subscribe(broken)
    memory.subscribe(heard.append)
    entry = await memory.set("task:a", 1)

    assert await memory.get("task:a") == entry
    assert heard == [entry]


async def test_b12_an_entry_that_is_written_again_without_a_title_has_none_and_keeps_its_place(
    memory: AgentMemory,
) -> None:
    await memory.set("task:a", 1, title="A", source="a", description="first")
    await memory.set("task:b", 2)

    entry = await memory.set("task:a", 3)

    assert (entry.title, entry.source, entry.description) == (None, None, None)
    assert [each.key for each in await memory.list()] == ["task:a", "task:b"]


async def test_b13_an_empty_list_lets_nothing_pass_and_an_empty_prefix_all(
    memory: AgentMemory,
) -> None:
    await seed(memory)

    assert await memory.list(kind=[]) == []
    assert await memory.list(sources=[]) == []
    assert await memory.list(keys=[]) == []
    assert len(await memory.list(key_prefix="")) == 4


def test_b14_the_tools_are_list_read_write(memory: AgentMemory) -> None:
    names = ["memory_list", "memory_read", "memory_write"]

    assert [tool.name for tool in memory_tools(memory)] == names
    assert all(tool.parameters["additionalProperties"] is False for tool in memory_tools(memory))


async def test_b15_a_listing_has_facts_and_no_values(memory: AgentMemory) -> None:
    await seed(memory)

    listed = await call(memory, "memory_list")

    assert (listed["total"], listed["returned"], listed["truncated"]) == (4, 4, False)
    assert [entry["key"] for entry in listed["entries"]] == [
        "step:s1",
        "step:s2",
        "task:t1",
        "input:region",
    ]
    for entry in listed["entries"]:
        assert "value" not in entry
        assert re.fullmatch(ISO, entry["createdAt"])
    assert listed["entries"][2]["valueBytes"] == len('{"findings":["alpha"]}')
    assert listed["entries"][3]["valueBytes"] == len('"EU"')


@pytest.mark.parametrize(
    ("filters", "key"),
    [
        ({"kind": ["task_result"]}, "task:t1"),
        ({"key_prefix": "input:"}, "input:region"),
        ({"sources": ["research"]}, "task:t1"),
    ],
)
async def test_b16_a_listing_is_filtered(memory: AgentMemory, filters: Any, key: str) -> None:
    await seed(memory)

    listed = await call(memory, "memory_list", **filters)

    assert [entry["key"] for entry in listed["entries"]] == [key]
    assert listed["total"] == 1


async def test_b17_a_listing_of_an_empty_memory_is_empty(memory: AgentMemory) -> None:
    assert await call(memory, "memory_list") == {
        "total": 0,
        "returned": 0,
        "truncated": False,
        "entries": [],
    }


async def test_b18_a_read_gives_what_is_there_and_names_what_is_missing(
    memory: AgentMemory, clock: ManualClock
) -> None:
    await seed(memory)

    read = await call(memory, "memory_read", keys=["task:t1", "step:nope", "step:s1"])

    assert list(read["entries"]) == ["task:t1", "step:s1"]
    assert read["entries"]["task:t1"] == {
        "key": "task:t1",
        "kind": "task_result",
        "value": {"findings": ["alpha"]},
        "source": "research",
        "title": "Research",
        "createdAt": int(clock() * 1_000),
    }
    assert read["entries"]["step:s1"]["value"] == {"n": 1}
    assert read["missing"] == ["step:nope"]


async def test_b18_a_key_asked_for_twice_is_missing_twice_but_found_once(
    memory: AgentMemory,
) -> None:
    await seed(memory)

    read = await call(memory, "memory_read", keys=["step:no", "task:t1", "step:no", "task:t1"])

    assert read["missing"] == ["step:no", "step:no"]
    assert list(read["entries"]) == ["task:t1"]


async def test_b19_a_read_of_no_keys_is_empty(memory: AgentMemory) -> None:
    assert await call(memory, "memory_read", keys=[]) == {"entries": {}, "missing": []}


async def test_b20_a_write_is_shared_with_its_title_and_the_tool_as_its_source(
    memory: AgentMemory,
) -> None:
    told = {"title": "Top source URL", "description": "Picked by the researcher agent."}

    reply = await call(
        memory, "memory_write", key="top_source", value="https://example.com", **told
    )

    assert list(reply) == ["ok", "key", "kind", "createdAt"]
    assert (reply["ok"], reply["key"], reply["kind"]) == (True, "shared:top_source", "shared")
    assert re.fullmatch(ISO, reply["createdAt"])
    entry = await memory.get("shared:top_source")
    assert entry is not None
    assert (entry.value, entry.source) == ("https://example.com", "memory_write")
    assert {"title": entry.title, "description": entry.description} == told
    untitled = await call(memory, "memory_write", key="x", value=1)
    assert (await memory.list(keys=[untitled["key"]]))[0].title == "x"


async def test_b20_a_write_over_an_entry_answers_with_the_first_time(
    memory: AgentMemory, clock: ManualClock
) -> None:
    first = await call(memory, "memory_write", key="x", value=1)
    clock.advance(60)

    again = await call(memory, "memory_write", key="x", value=2)

    assert again == first
    assert await memory.get_value("shared:x") == 2


async def test_b21_a_namespace_in_the_key_stays_below_shared(memory: AgentMemory) -> None:
    reply = await call(memory, "memory_write", key="task:bogus", value=1)

    assert reply["key"] == "shared:task:bogus"
    assert await memory.has("shared:task:bogus")
    assert not await memory.has("task:bogus")


@pytest.mark.parametrize(("count", "returned"), [(199, 199), (200, 200), (201, 200)])
async def test_b22_a_listing_has_the_newest_200(
    memory: AgentMemory, count: int, returned: int
) -> None:
    for number in range(count):
        await memory.set(memory_keys.step(str(number)), number)

    listed = await call(memory, "memory_list")

    assert (listed["total"], listed["returned"]) == (count, returned)
    assert listed["truncated"] is (count > returned)
    assert [entry["key"] for entry in listed["entries"]] == [
        f"step:{number}" for number in range(count - returned, count)
    ]


@pytest.mark.parametrize("chars", [239, 240, 241, 300])
async def test_b23_a_long_description_is_cut_in_a_listing(memory: AgentMemory, chars: int) -> None:
    await memory.set("task:t", 1, description="d" * chars)

    listed = await call(memory, "memory_list")
    read = await call(memory, "memory_read", keys=["task:t"])

    cut = "d" * chars if chars <= 240 else "d" * 240 + "…"
    assert listed["entries"][0]["description"] == cut
    assert read["entries"]["task:t"]["description"] == "d" * chars


async def test_b24_the_namespace_of_shared_may_be_written_or_left_out(memory: AgentMemory) -> None:
    reply = await call(memory, "memory_write", key="shared:x", value=1)

    read = await call(memory, "memory_read", keys=["x", "shared:x"])

    assert reply["key"] == "shared:x"
    assert await memory.size() == 1
    assert list(read["entries"]) == ["x", "shared:x"]
    assert read["entries"]["x"] == read["entries"]["shared:x"]
    assert read["missing"] == []
