import json
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rs_bpe.bpe import openai  # pyright: ignore[reportUnknownVariableType]

from coatcheck import AgentMemory, Bank, Limits, is_pointer
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore
from coatcheck.testing import ManualClock
from coatcheck.tools import Tool, memory_tools, retrieval_tools

LARGE = 'zażółć "gęślą" \\ 🎟\n' * 20_000


@pytest.fixture
def memory() -> AgentMemory:
    return AgentMemory()


def tools(memory: AgentMemory) -> dict[str, Tool]:
    return {tool.name: tool for tool in memory_tools(memory)}


async def reply(memory: AgentMemory, name: str, /, **arguments: object) -> Any:
    return json.loads(await tools(memory)[name].call(arguments))


async def read_on(memory: AgentMemory, entry: Any) -> str:
    """Return the whole payload of an entry that was read in part, as a model would read it."""
    (reader,) = retrieval_tools(memory.bank)
    text, offset = entry.get("value", ""), entry.get("nextOffset")
    while offset is not None:
        page = json.loads(await reader.call({"artifactId": entry["pointer"], "offset": offset}))
        text, offset = text + page["content"], page.get("nextOffset")
    return cast("str", text)


def test_the_trio_keeps_within_its_tokens(memory: AgentMemory) -> None:
    encoder: Any = cast("Any", openai).o200k_base()
    texts = [
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            separators=(",", ":"),
        )
        for tool in memory_tools(memory)
    ]

    assert sum(len(encoder.encode(text)) for text in texts) <= 350


async def test_the_trio_is_the_same_before_and_after_a_write(memory: AgentMemory) -> None:
    before = [(tool.description, tool.parameters) for tool in memory_tools(memory)]
    await memory.set("shared:x", 1)

    assert [(tool.description, tool.parameters) for tool in memory_tools(memory)] == before


def test_only_a_reader_that_the_model_has_is_named(memory: AgentMemory) -> None:
    def named(reader: str | None) -> str:
        return " ".join(tool.description for tool in memory_tools(memory, reader=reader))

    assert "retrieve_context" in named("retrieve_context")
    assert "art_read" in named("art_read")
    assert "retrieve_context" not in named("art_read")
    assert "nextOffset" not in named(None)


async def test_a_long_text_comes_as_its_first_window_and_can_be_read_to_its_end(
    memory: AgentMemory,
) -> None:
    entry = await memory.set("task:t", LARGE, title="Log", source="t")

    answer = await tools(memory)["memory_read"].call({"keys": ["task:t"]})

    shown = json.loads(answer)["entries"]["task:t"]
    assert list(shown) == [
        *("key", "kind", "value", "source", "title", "createdAt"),
        *("pointer", "hasMore", "nextOffset"),
    ]
    assert shown["pointer"] == entry.pointer
    assert shown["hasMore"] is True
    assert LARGE.startswith(shown["value"])
    assert shown["nextOffset"] == len(shown["value"]) > 20_000
    assert await read_on(memory, shown) == LARGE


async def test_a_long_structure_comes_as_the_first_window_of_its_json(memory: AgentMemory) -> None:
    rows = [{"id": number, "name": f'"{number}"'} for number in range(9_000)]
    await memory.set("task:t", rows)

    shown = (await reply(memory, "memory_read", keys=["task:t"]))["entries"]["task:t"]

    assert json.loads(await read_on(memory, shown)) == rows


async def test_a_banked_value_that_fits_comes_whole_with_its_pointer(memory: AgentMemory) -> None:
    text = "漢" * 17_067  # three bytes each
    entry = await memory.set("shared:text", text)
    await memory.set("shared:rows", [{"name": text}])

    read = await reply(memory, "memory_read", keys=["shared:text"])
    rows = await reply(memory, "memory_read", keys=["shared:rows"])

    assert entry.pointer is not None
    assert read["entries"]["shared:text"]["value"] == text
    assert read["entries"]["shared:text"]["pointer"] == entry.pointer
    assert "hasMore" not in read["entries"]["shared:text"]
    assert rows["entries"]["shared:rows"]["value"] == [{"name": text}]


async def test_what_no_longer_fits_comes_as_a_pointer_in_the_order_asked_for(
    memory: AgentMemory,
) -> None:
    values = {f"step:{number}": f"{number}" * 20_000 for number in range(6)}
    for key, value in values.items():
        await memory.set(key, value)
    asked = ["step:5", "step:0", "step:nope", "step:3", "step:1", "step:2", "step:4"]

    answer = await tools(memory)["memory_read"].call({"keys": asked})

    assert len(answer) <= 50_000
    read = json.loads(answer)
    assert list(read["entries"]) == [key for key in asked if key != "step:nope"]
    first, second, third, *others = read["entries"].items()
    for key, entry in (first, second):
        assert entry["value"] == values[key]
        assert "pointer" not in entry
    assert 0 < third[1]["nextOffset"] == len(third[1]["value"]) < 20_000
    for key, entry in others:
        assert list(entry) == ["key", "kind", "pointer", "hasMore", "nextOffset"]
        assert (entry["hasMore"], entry["nextOffset"]) == (True, 0)
        assert await memory.bank.get(entry["pointer"]) == values[key]
    again = json.loads(await tools(memory)["memory_read"].call({"keys": asked}))
    assert again == read  # nothing is banked twice


async def test_an_entry_just_under_the_inline_limit_can_be_read_to_its_end(
    memory: AgentMemory,
) -> None:
    text = "x" * 51_199
    await memory.set("shared:x", text)

    shown = (await reply(memory, "memory_read", keys=["shared:x"]))["entries"]["shared:x"]

    assert shown["hasMore"] is True
    assert await read_on(memory, shown) == text


@pytest.mark.parametrize(
    "value",
    ["\x00" * 49_000, '"' * 60_000, "\ud83d" * 30_000, "\\" * 51_199, "🎟" * 49_000],
    ids=["control", "quotes", "surrogates", "backslashes", "emoji"],
)
async def test_a_reply_is_bounded_by_what_it_takes_as_json(memory: AgentMemory, value: str) -> None:
    await memory.set("shared:x", value)

    answer = await tools(memory)["memory_read"].call({"keys": ["shared:x"]})

    assert len(answer) <= 50_000
    assert answer.encode()
    entry = json.loads(answer)["entries"]["shared:x"]
    assert await read_on(memory, entry) == value.replace("\ud83d", "\ufffd")


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 60_000), st.sampled_from(['a"', "\n", "漢", "🎟x"]))))
async def test_no_reply_is_longer_than_its_budget_and_every_value_can_be_reached(
    sizes: list[tuple[int, str]],
) -> None:
    memory = AgentMemory()
    values = {f"step:{number}": text * size for number, (size, text) in enumerate(sizes)}
    for key, value in values.items():
        await memory.set(key, value, description="d" * 500)

    answer = await tools(memory)["memory_read"].call({"keys": [*values, "step:nope"]})

    assert len(answer) <= 50_000
    read = json.loads(answer)
    assert list(read["entries"]) == list(values)
    for key, entry in read["entries"].items():
        assert await read_on(memory, entry) == values[key]
    assert read["missing"] == ["step:nope"]


@pytest.mark.parametrize("keys", [["k" * 480] * 24, ["k"] * 100, ["\x00" * 300] * 6])
async def test_as_many_keys_as_may_be_asked_for_fit(memory: AgentMemory, keys: list[str]) -> None:
    asked = [f"shared:{number}{key}"[:500] for number, key in enumerate(keys)]
    for key in asked:
        await memory.set(key, "x" * 40_000, title="t" * 10_000)

    answer = await tools(memory)["memory_read"].call({"keys": asked})

    assert len(answer) <= 50_000
    assert list(json.loads(answer)["entries"]) == asked


@pytest.mark.parametrize("keys", [["k"] * 101, ["k" * 12_001], ["\x00" * 2_001]])
async def test_more_keys_than_can_be_answered_are_refused(
    memory: AgentMemory, keys: list[str]
) -> None:
    failure = await reply(memory, "memory_read", keys=keys)

    assert failure["error"] == "invalid-argument"
    assert "at most 100 keys" in failure["message"]


async def test_binary_comes_as_a_pointer_without_a_window(memory: AgentMemory) -> None:
    grid = await memory.set("task:grid", np.zeros((4, 4)))
    png = await memory.set("shared:png", b"\x89PNG\r\n\x1a\n" + bytes(100), title="A picture")

    read = await reply(memory, "memory_read", keys=["task:grid", "shared:png"])

    assert read["entries"]["task:grid"]["pointer"] == grid.pointer
    assert read["entries"]["shared:png"]["pointer"] == png.pointer
    for entry in read["entries"].values():
        assert "value" not in entry
        assert entry["hasMore"] is True
    assert read["entries"]["shared:png"]["title"] == "A picture"


async def test_one_value_that_is_gone_hides_no_other() -> None:
    clock = ManualClock()
    memory = AgentMemory(Bank(MemoryStore(), clock=clock))
    deleted = await memory.set("task:deleted", LARGE)
    expiring = await memory.bank.put(LARGE, ttl_seconds=10)
    await memory.set("task:held", expiring)
    await memory.set("task:there", 1)
    await memory.bank.delete(deleted.pointer or "")
    clock.advance(11)

    read = await reply(memory, "memory_read", keys=["task:deleted", "task:held", "task:there"])

    assert read["entries"]["task:deleted"]["error"] == "unknown-pointer"
    assert read["entries"]["task:held"]["pointer"] == expiring.pointer  # its time has passed
    assert "error" not in read["entries"]["task:held"]
    assert read["entries"]["task:there"]["value"] == 1


async def test_what_a_model_writes_may_be_large_and_is_banked(memory: AgentMemory) -> None:
    await reply(memory, "memory_write", key="log", value=LARGE)

    entry = await memory.get("shared:log")
    assert entry is not None
    assert is_pointer(entry.pointer)
    assert await memory.get_value("shared:log") == LARGE


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": None}])
async def test_each_json_value_can_be_shared(memory: AgentMemory, value: object) -> None:
    await reply(memory, "memory_write", key="x", value=value)

    read = await reply(memory, "memory_read", keys=["x"])

    assert read["entries"]["x"]["value"] == value


async def test_a_listing_is_bounded_whatever_hosts_call_their_entries(memory: AgentMemory) -> None:
    for number in range(200):
        await memory.set(
            f"step:{number:03}" + "\x01" * 400,
            1,
            source="s" * 5_000,
            title="t" * 5_000,
            description="d" * 5_000,
        )

    answer = await tools(memory)["memory_list"].call({})

    assert len(answer) <= 50_000
    listed = json.loads(answer)
    assert listed["truncated"] is True
    assert listed["total"] == 200
    assert listed["returned"] == len(listed["entries"]) > 10
    assert listed["entries"][-1]["key"].startswith("step:199")


async def test_a_string_is_taken_for_a_list_of_one(memory: AgentMemory) -> None:
    await memory.set("task:t", 1, source="t")

    listed = await reply(memory, "memory_list", kind="task_result", sources="t")
    read = await reply(memory, "memory_read", keys="task:t")

    assert listed["total"] == 1
    assert list(read["entries"]) == ["task:t"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("memory_list", {"kind": ["secret"]}, "there is no kind 'secret'"),
        ("memory_list", {"kind": 5}, "kind must be a list of strings, got 5"),
        ("memory_list", {"key_prefix": ["a"]}, "key_prefix must be a string"),
        ("memory_list", {"colour": "red"}, "there is no argument 'colour'"),
        ("memory_read", {}, "keys is required"),
        ("memory_read", {"keys": None}, "keys is required"),
        ("memory_read", {"keys": ["a", 5]}, "keys must be a list of strings"),
        ("memory_write", {"key": "x"}, "value is required"),
        ("memory_write", {"value": "x"}, "key is required"),
        ("memory_write", {"key": 5, "value": 1}, "key must be a string, got 5"),
        ("memory_write", {"key": "x", "value": 1, "title": "t" * 1_001}, "at most 1,000"),
        ("memory_write", {"key": "x", "value": 1, "description": "t" * 1_001}, "at most 1,000"),
        ("memory_write", {"key": "x" * 494, "value": 1}, "1 to 500 characters"),
    ],
)
async def test_what_is_wrong_with_arguments_is_told_with_a_remedy(
    memory: AgentMemory, name: str, arguments: Any, message: str
) -> None:
    answer = await tools(memory)[name].call(arguments)

    failure = json.loads(answer)
    assert list(failure) == ["error", "message", "hint"]
    assert failure["error"] == "invalid-argument"
    assert message in failure["message"]
    assert failure["hint"]
    assert len(answer) < 600
    assert await memory.size() == 0


@given(
    st.dictionaries(
        st.sampled_from(["key", "keys", "value", "kind", "title", "key_prefix", "sources"]),
        st.none() | st.integers() | st.text() | st.lists(st.text() | st.integers()),
    )
    | st.text()
)
async def test_whatever_a_model_sends_is_answered_and_nothing_is_written_outside_of_shared(
    arguments: Any,
) -> None:
    memory = AgentMemory()
    await memory.set("task:t", "of the executor")
    for tool in memory_tools(memory):
        answer = await tool.call(arguments)
        assert answer.encode()
        json.loads(answer)

    for entry in await memory.list():
        assert entry.key == "task:t" or entry.key.startswith("shared:")
    assert await memory.get_value("task:t") == "of the executor"


async def test_an_outage_is_told_as_one() -> None:
    class Out(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise StoreUnavailableError("connection refused")

    memory = AgentMemory(Bank(Out()))

    for name, arguments in (
        ("memory_list", {}),
        ("memory_read", {"keys": ["task:t"]}),
        ("memory_write", {"key": "x", "value": 1}),
    ):
        assert (await reply(memory, name, **arguments))["error"] == "store-unavailable"


async def test_replies_of_the_trio_are_never_offloaded() -> None:
    from coatcheck import Mirror

    memory = AgentMemory(Bank(MemoryStore(), limits=Limits(inline_bytes=1_000)))
    await memory.set("shared:x", LARGE)
    answer = await tools(memory)["memory_read"].call({"keys": ["shared:x"]})

    assert await Mirror(memory.bank).offload(answer, tool="memory_read") == answer
    assert len([each async for each in memory.bank.list()]) == 1
