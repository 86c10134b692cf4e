"""Anthropic's memory tool over our memory: its own runner, commands and errors."""

import json
from contextlib import suppress
from typing import Any, cast

import pytest
from anthropic.lib.tools import ToolError
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import AgentMemory, Bank, Limits
from coatcheck.adapters.anthropic import CoatcheckTools
from coatcheck.adapters.anthropic_memory import AsyncCoatcheckMemoryTool, CoatcheckMemoryTool
from coatcheck.bank import portal
from coatcheck.stores import MemoryStore
from coatcheck.testing import INSTRUCTIONS, ModelCall
from coatcheck.testing._adapter_driver import Outage

from .anthropic_api import ASKED, Api


@pytest.fixture
def memory() -> AgentMemory:
    return AgentMemory(Bank(MemoryStore(), limits=Limits(inline_bytes=1_000)))


@pytest.fixture
def tool(memory: AgentMemory) -> AsyncCoatcheckMemoryTool:
    return AsyncCoatcheckMemoryTool(memory)


async def do(tool: AsyncCoatcheckMemoryTool, command: str, **given: Any) -> str:
    """Return the reply to a command."""
    return str(await tool.call({"command": command, **given}))


async def refused(tool: AsyncCoatcheckMemoryTool, command: str, **given: Any) -> dict[str, str]:
    """Return the failure that a command answers."""
    with pytest.raises(ToolError) as raised:
        await tool.call({"command": command, **given})
    failure: dict[str, str] = json.loads(str(raised.value))
    return failure


async def test_what_is_created_is_what_other_agents_read_as_shared(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    said = await do(tool, "create", path="/memories/shared/notes.md", file_text="one\ntwo\n")

    assert said == "File created successfully at: /memories/shared/notes.md"
    assert await memory.get_value("shared:notes.md") == "one\ntwo\n"
    assert await do(tool, "view", path="/memories/shared/notes.md") == (
        "/memories/shared/notes.md, 2 lines:\n     1\tone\n     2\ttwo"
    )


async def test_file_is_not_created_over_another(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    await memory.set("shared:plan", "the first")

    failure = await refused(tool, "create", path="/memories/shared/plan", file_text="the second")

    assert "already exists" in failure["message"]
    assert await memory.get_value("shared:plan") == "the first"


async def test_lines_that_are_asked_for_are_viewed_and_the_rest_counted(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    await memory.set("shared:log", "".join(f"line {at}\n" for at in range(1, 20_001)))

    some = await do(tool, "view", path="/memories/shared/log", view_range=[9_999, 10_000])
    whole = await do(tool, "view", path="/memories/shared/log")
    last = await do(tool, "view", path="/memories/shared/log", view_range=[20_000, -1])

    assert some.splitlines()[1:] == ["  9999\tline 9999", " 10000\tline 10000"]
    assert len(whole) < 90_000
    shown, _, note = whole.rpartition("\n")
    follows = int(shown.rpartition("line ")[2]) + 1
    assert note == f"[{20_001 - follows:,} more lines; go on with view_range [{follows}, -1]]"
    assert last.splitlines()[1:] == [" 20000\tline 20000"]


async def test_view_is_bounded_where_lines_are_empty_and_where_there_is_one(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    await memory.set("shared:empty", "\n" * 100_000)
    await memory.set("shared:one", "x" * 400_000)

    empty = await do(tool, "view", path="/memories/shared/empty", view_range=[1, 90_000])
    one = await do(tool, "view", path="/memories/shared/one")

    assert empty.endswith("  5000\t\n[95,000 more lines; go on with view_range [5001, -1]]")
    assert len(one) < 60_000


@pytest.mark.parametrize("lines", [2, 200_000])
async def test_range_past_the_end_is_told_how_many_lines_there_are(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, lines: int
) -> None:
    await memory.set("shared:log", "a\n" * lines)
    path = "/memories/shared/log"

    failure = await refused(tool, "view", path=path, view_range=[lines + 1, lines + 5])
    last = await do(tool, "view", path=path, view_range=[lines, lines + 5])

    assert failure["message"] == f"There is no line {lines + 1} in a file of {lines:,}."
    assert failure["hint"] == "Give a smaller view_range."
    assert last.endswith(f"{lines:6}\ta")


@pytest.mark.parametrize("view_range", [[0, 1], [2, 1], [1], [1, 2, 3], "1", [1, -2]])
async def test_range_that_is_none_is_refused(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, view_range: object
) -> None:
    await memory.set("shared:log", "a\nb")

    failure = await refused(tool, "view", path="/memories/shared/log", view_range=view_range)

    assert failure["error"] == "invalid-argument"
    assert "view_range" in failure["message"]


async def test_structured_entry_is_viewed_as_json_and_not_edited(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    await memory.set("shared:facts", {"né": [1, 2]})

    assert '     1\t{"né":[1,2]}' in await do(tool, "view", path="/memories/shared/facts")
    failure = await refused(
        tool, "str_replace", path="/memories/shared/facts", old_str="1", new_str="3"
    )
    assert "no text" in failure["message"]


@pytest.mark.parametrize("size", [3, 30_000])
async def test_text_that_stands_once_is_replaced_in_short_and_in_banked_entries(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, size: int
) -> None:
    text = "".join(f"line {at}\n" for at in range(size))
    await memory.set("shared:a", text, description="a list")

    said = await do(
        tool, "str_replace", path="/memories/shared/a", old_str="line 1\n", new_str="line one\n"
    )

    assert "     2\tline one" in said
    assert await memory.get_value("shared:a") == text.replace("line 1\n", "line one\n")
    entry = await memory.get("shared:a")
    assert entry is not None
    assert entry.description == "a list"


@pytest.mark.parametrize(("old", "count"), [("x", 0), ("o", 2), ("", 0)])
async def test_text_that_stands_not_once_is_not_replaced(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, old: str, count: int
) -> None:
    await memory.set("shared:a", "foo")

    failure = await refused(tool, "str_replace", path="/memories/shared/a", old_str=old, new_str="")

    assert f"{count} times" in failure["message"]
    assert await memory.get_value("shared:a") == "foo"


@pytest.mark.parametrize(("at", "text"), [(0, "x\na\nb\n"), (1, "a\nx\nb\n"), (2, "a\nb\nx\n")])
async def test_text_is_inserted_behind_a_line(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, at: int, text: str
) -> None:
    await memory.set("shared:a", "a\nb")

    await do(tool, "insert", path="/memories/shared/a", insert_line=at, insert_text="x\n")

    assert await memory.get_value("shared:a") == text


@pytest.mark.parametrize("at", [-1, 3, None])
async def test_text_is_not_inserted_where_there_is_no_line(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, at: object
) -> None:
    await memory.set("shared:a", "a\nb")

    failure = await refused(
        tool, "insert", path="/memories/shared/a", insert_line=at, insert_text="x"
    )

    assert "insert_line" in failure["message"]
    assert await memory.get_value("shared:a") == "a\nb"


async def test_entry_is_deleted_and_what_it_held_stays_banked(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    entry = await memory.set("shared:a", "x" * 5_000)
    assert entry.pointer is not None

    await do(tool, "delete", path="/memories/shared/a")

    assert not await memory.has("shared:a")
    assert await memory.bank.get(entry.pointer) == "x" * 5_000
    assert "does not exist" in (await refused(tool, "delete", path="/memories/shared/a"))["message"]


async def test_entry_is_renamed_with_what_it_holds_but_over_no_other(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    first = await memory.set("shared:a", "x" * 5_000)
    await memory.set("shared:b", "kept")
    paths = {"old_path": "/memories/shared/a", "new_path": "/memories/shared/b"}

    failure = await refused(tool, "rename", **paths)
    await do(tool, "rename", **{**paths, "new_path": "/memories/shared/c/d"})

    assert "already exists" in failure["message"]
    assert await memory.get_value("shared:b") == "kept"
    moved = await memory.get("shared:c/d")
    assert moved is not None
    assert moved.pointer == first.pointer
    assert not await memory.has("shared:a")


async def test_pointer_as_the_text_of_a_file_makes_an_entry_of_what_is_banked(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    rows = [{"id": at} for at in range(1_000)]
    pointer = (await memory.bank.put(rows)).pointer

    await do(tool, "create", path="/memories/shared/rows", file_text=pointer)
    await do(tool, "create", path="/memories/shared/first", file_text=f"{pointer}#/0")
    unknown = "art:00000000-0000-4000-8000-000000000005"
    failure = await refused(tool, "create", path="/memories/shared/no", file_text=unknown)

    entry = await memory.get("shared:rows")
    assert entry is not None
    assert entry.pointer == pointer
    assert await memory.get_value("shared:first") == {"id": 0}
    assert failure["error"] == "unknown-pointer"
    assert not await memory.has("shared:no")


async def test_artifacts_are_viewed_by_name_and_pointer_in_windows(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    log = "".join(f"line {at}\n" for at in range(1, 30_001))
    pointer = (await memory.bank.put(log, name="the log")).pointer

    named = await do(tool, "view", path="/memories/artifacts/the log", view_range=[7, 7])
    pointed = await do(
        tool, "view", path=f"/memories/artifacts/{pointer}", view_range=[30_000, 30_000]
    )
    whole = await do(tool, "view", path=f"/memories/artifacts/{pointer}")

    assert named.endswith("\n     7\tline 7")
    assert pointed.endswith(" 30000\tline 30000")
    assert "more lines; go on with view_range" in whole


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("create", {"path": "/memories/artifacts/x", "file_text": "x"}),
        ("str_replace", {"path": "/memories/artifacts/log", "old_str": "a", "new_str": "b"}),
        ("insert", {"path": "/memories/artifacts/log", "insert_line": 0, "insert_text": "b"}),
        ("delete", {"path": "/memories/artifacts/log"}),
        ("rename", {"old_path": "/memories/artifacts/log", "new_path": "/memories/shared/x"}),
        ("rename", {"old_path": "/memories/shared/a", "new_path": "/memories/artifacts/x"}),
    ],
)
async def test_artifacts_can_only_be_read(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, command: str, given: dict[str, Any]
) -> None:
    await memory.bank.put("a", name="log")
    await memory.set("shared:a", "a")

    failure = await refused(tool, command, **given)

    assert "can only be read" in failure["message"]
    assert await memory.bank.get("log") == "a"
    assert [entry.key for entry in await memory.list()] == ["shared:a"]


async def test_folders_list_what_is_in_them_the_newest_first(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    await memory.set("task:secret", "not shared")
    await memory.set("shared:a", "one")
    await memory.set("shared:notes/b", "x" * 2_046)
    await memory.bank.put("hello", name="greeting")

    assert await do(tool, "view", path="/memories") == (
        "Files in /memories:\n"
        "2K\t/memories/shared/notes/b\n5B\t/memories/shared/a\n5B\t/memories/artifacts/greeting"
    )
    assert await do(tool, "view", path="/memories/shared/notes/") == (
        "Files in /memories/shared/notes:\n2K\t/memories/shared/notes/b"
    )
    assert await do(tool, "view", path="/memories/artifacts") == (
        "Files in /memories/artifacts:\n5B\t/memories/artifacts/greeting"
    )


async def test_empty_memory_has_its_folders_and_nothing_in_them(
    tool: AsyncCoatcheckMemoryTool,
) -> None:
    assert await do(tool, "view", path="/memories/") == "Files in /memories:"
    failure = await refused(tool, "view", path="/memories/shared/notes")
    assert "does not exist" in failure["message"]


async def test_listing_is_bounded_and_says_how_many_are_left_out(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    for at in range(201):
        await memory.set(f"shared:{at}", at)
    await memory.set("shared:two\nlines", "no path")

    listing = await do(tool, "view", path="/memories/shared")

    assert listing.count("\t/memories/shared/") == 200
    assert listing.endswith("\n[2 more are not listed]")
    assert "lines" not in listing


HOSTILE = [
    "/memories/../etc/passwd",
    "/memories/shared/../../task:a",
    "/memories/shared/./a",
    "/memories/shared//a",
    "/memories/shared/%2e%2e/a",
    "/memories/shared/a%2fb",
    "/memories/shared\\a",
    "/memories/shared/a\x00b",
    "/memories/shared/a\nb",
    "/memories/shared/a\x1b[2J",
    "/memories/shared/a\u202eb",
    "/memories/shared/\ud800",
    "/memoriesx/shared/a",
    "/etc/passwd",
    "memories/shared/a",
    "",
    "~/shared/a",
    None,
    7,
    ["/memories/shared/a"],
]


@pytest.mark.parametrize("path", HOSTILE)
async def test_hostile_path_is_refused_by_every_command_and_touches_nothing(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory, path: object
) -> None:
    await memory.set("task:a", "of a task")
    await memory.set("shared:a", "shared")
    commands: list[tuple[str, dict[str, object]]] = [
        ("view", {"path": path}),
        ("create", {"path": path, "file_text": "x"}),
        ("str_replace", {"path": path, "old_str": "of", "new_str": "x"}),
        ("insert", {"path": path, "insert_line": 0, "insert_text": "x"}),
        ("delete", {"path": path}),
        ("rename", {"old_path": path, "new_path": "/memories/shared/new"}),
        ("rename", {"old_path": "/memories/shared/a", "new_path": path}),
    ]

    for command, asked in commands:
        failure = await refused(tool, command, **asked)
        assert "no path of memory" in failure["message"]

    assert [(each.key, each.value) for each in await memory.list()] == [
        ("task:a", "of a task"),
        ("shared:a", "shared"),
    ]
    assert (await memory.bank.usage()).artifacts == 0


@given(path=st.text(max_size=40) | st.text(max_size=30).map("/memories/shared/{}".format))
def test_no_path_writes_anything_but_a_shared_entry(path: str) -> None:
    async def keys() -> list[str]:
        memory = AgentMemory()
        await memory.set("task:a", "of a task")
        with suppress(ToolError):
            await AsyncCoatcheckMemoryTool(memory).call(
                {"command": "create", "path": path, "file_text": "x"}
            )
        assert await memory.get_value("task:a") == "of a task"
        return [entry.key for entry in await memory.list() if entry.key != "task:a"]

    assert all(key.startswith("shared:") for key in portal().run(keys()))


async def test_texts_that_are_none_are_refused(
    tool: AsyncCoatcheckMemoryTool, memory: AgentMemory
) -> None:
    await memory.set("shared:a", "a")
    path = "/memories/shared/a"

    said = [
        await refused(tool, "create", path="/memories/shared/b"),
        await refused(tool, "create", path="/memories/shared/b", file_text={"a": 1}),
        await refused(tool, "str_replace", path=path, old_str=1, new_str=""),
        await refused(tool, "str_replace", path=path, old_str="a"),
        await refused(tool, "insert", path=path, insert_line=0),
    ]

    assert all("must be a text" in failure["message"] for failure in said)
    assert [entry.key for entry in await memory.list()] == ["shared:a"]


async def test_write_beside_the_folders_is_told_where_to_write(
    tool: AsyncCoatcheckMemoryTool,
) -> None:
    failure = await refused(tool, "create", path="/memories/progress.md", file_text="x")

    assert "/memories/shared/" in failure["hint"]


async def test_scopes_do_not_read_each_other(memory: AgentMemory) -> None:
    other = AgentMemory(memory.bank.scoped("another"))
    await memory.set("shared:a", "mine")
    pointer = (await memory.bank.put("mine too", name="report")).pointer
    tool = AsyncCoatcheckMemoryTool(other)

    assert "does not exist" in (await refused(tool, "view", path="/memories/shared/a"))["message"]
    for name in (pointer, "report"):
        failure = await refused(tool, "view", path=f"/memories/artifacts/{name}")
        assert failure["error"] == "unknown-pointer"


async def test_outage_is_a_failure_that_names_nothing_of_the_store() -> None:
    store = Outage()
    tool = AsyncCoatcheckMemoryTool(AgentMemory(Bank(store)))
    store.is_out = True

    failure = await refused(tool, "view", path="/memories/shared/a")

    assert failure["error"] == "store-unavailable"


async def test_what_a_strangers_store_raises_is_no_models_business() -> None:
    class Strange(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise RuntimeError("password=hunter2")

    tool = AsyncCoatcheckMemoryTool(AgentMemory(Bank(Strange())))

    failure = await refused(tool, "view", path="/memories/shared/a")

    assert failure["error"] == "store-unavailable"
    assert "hunter2" not in json.dumps(failure)


def call(call_id: str, **given: object) -> ModelCall:
    return ModelCall(name="memory", arguments=given, id=call_id)


def test_runner_uses_it_beside_mirrored_tools_and_does_not_mirror_it(memory: AgentMemory) -> None:
    path = "/memories/shared/long"
    api = Api(
        [
            [call("c1", command="create", path=path, file_text="long line\n" * 500)],
            [call("c2", command="view", path=path)],
            [call("c3", command="view", path="/memories/../x")],
            "done",
        ]
    )
    coat = CoatcheckTools(memory.bank)
    with api.client() as client:
        cast("Any", client.beta.messages).tool_runner(
            **ASKED,
            system=coat.system(INSTRUCTIONS),
            tools=coat.tools([CoatcheckMemoryTool(memory)]),
        ).until_done()

    assert api.requests[0]["tools"][0] == {"type": "memory_20250818", "name": "memory"}
    assert api.script.results["c2"].count("long line") == 500
    assert api.results["c3"]["is_error"]
    assert "is_error" not in api.results["c2"]
