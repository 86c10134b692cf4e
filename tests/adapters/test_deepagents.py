"""A bank as files of deepagents: its agent, file tools and permissions are the real ones."""

# LangChain's types are in part unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false

import json
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from typing import Any

import pytest
from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import BackendProtocol, ReadResult
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from coatcheck import Bank, Limits
from coatcheck.adapters.deepagents import PATHS, BankBackend
from coatcheck.adapters.langchain import CoatcheckMiddleware
from coatcheck.bank import portal
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore

pa: Any = import_module("pyarrow")
THREAD: Any = {"configurable": {"thread_id": "one"}}


class Scripted(GenericFakeChatModel):
    """A model that says what it is told to, whatever tools it is given."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self


def call(tool: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": tool}])


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


@pytest.fixture
def files(bank: Bank) -> BankBackend:
    return BankBackend(bank)


def paths(files: BackendProtocol, folder: str = "/") -> list[str]:
    return [each["path"] for each in files.ls(folder).entries or []]


def text(result: ReadResult) -> str:
    assert result.error is None
    assert result.file_data is not None
    return result.file_data["content"]


async def test_artifacts_are_files_by_name_and_without_one_by_pointer(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put("a", name="report")
    await bank.put("b", name="2026/march/report.md")
    await bank.put("c", name="2026/notes.md")
    pointer = (await bank.put("d")).pointer

    assert paths(files) == ["/2026/", f"/{pointer}", "/report"]
    assert paths(files, "/2026") == paths(files, "/2026/") == ["/2026/march/", "/2026/notes.md"]
    assert paths(files, "/nothing") == []
    entry: Any
    (entry,) = [each for each in (await files.als("/")).entries or [] if each["path"] == "/report"]
    assert (entry["is_dir"], entry["size"]) == (False, 1)
    assert entry["modified_at"].startswith("20")


@pytest.mark.parametrize("name", ["../up", "a//b", "a/./b", "~home", "c:/x", "a\\b", "/root"])
async def test_name_that_is_no_path_is_listed_by_its_pointer(
    bank: Bank, files: BankBackend, name: str
) -> None:
    pointer = (await bank.put("a", name=name)).pointer

    assert paths(files) == [f"/{pointer}"]
    assert text(files.read(f"/{pointer}")) == "a"


async def test_file_is_the_newest_artifact_of_its_name(bank: Bank, files: BankBackend) -> None:
    old = await bank.put("old", name="report")
    await bank.put("newer", name="report")

    assert [each.get("size") for each in files.ls("/").entries or []] == [5]
    assert [each.get("size") for each in files.glob("*").matches or []] == [5]
    assert files.grep("old").matches == []
    assert text(files.read("/report")) == "newer"
    assert text(files.read(f"/{old.pointer}")) == "old"


async def test_listing_is_of_the_newest_thousand_artifacts(bank: Bank, files: BankBackend) -> None:
    for number in range(1_001):
        await bank.put("", name=f"{number:04}")

    listed = paths(files)

    assert (len(listed), listed[0], listed[-1]) == (1_000, "/0001", "/1000")
    assert files.read("/0000").error is None


async def test_window_of_lines_says_where_it_stands(bank: Bank, files: BankBackend) -> None:
    await bank.put("one\ntwo\nthree\nfour", name="log")

    whole, middle, end = files.read("/log"), files.read("/log", 1, 2), files.read("/log", 3, 9)

    assert [text(each) for each in (whole, middle, end)] == [
        "one\ntwo\nthree\nfour",
        "two\nthree\n",
        "four",
    ]
    assert (whole.start_line, whole.end_line, whole.total_lines) == (1, 4, 4)
    assert (middle.start_line, middle.end_line, middle.next_offset) == (2, 3, 3)
    assert (end.start_line, end.end_line, end.next_offset) == (4, 4, None)
    assert text(await files.aread("/log", -5, 1)) == "one\n"


async def test_offset_behind_the_end_is_an_error_and_at_the_end_too(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put("one\ntwo\n", name="log")

    assert files.read("/log", 1).error is None
    assert files.read("/log", 2).error == (
        "There is no line 3 in a file of 2. Give a smaller offset."
    )


async def test_empty_file_and_a_window_of_no_lines_have_no_text(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put("", name="empty")
    await bank.put("one", name="log")

    empty, none = files.read("/empty"), files.read("/log", 0, 0)

    assert (text(empty), empty.no_lines_requested) == ("", False)
    assert (text(none), none.no_lines_requested) == ("", True)


async def test_window_is_at_most_a_page_of_whole_lines(bank: Bank) -> None:
    files = BankBackend(bank, limits=Limits(page_chars=100))
    lines = [f"line {number}\n" for number in range(100, 200)]
    await bank.put("".join(lines), name="log")

    window = files.read("/log")

    assert text(window) == "".join(lines[:11])  # nine characters each
    assert window.next_offset == 11


async def test_joined_windows_are_the_file(bank: Bank) -> None:
    files = BankBackend(bank, limits=Limits(page_chars=60))
    whole = "".join(f"{'é' * (number % 50)}\n" for number in range(300)) + "the end"
    await bank.put(whole, name="log")

    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        window = files.read("/log", offset, 7)
        parts.append(text(window))
        offset = window.next_offset

    assert "".join(parts) == whole


async def test_line_longer_than_a_page_says_where_it_goes_on(bank: Bank) -> None:
    files = BankBackend(bank, limits=Limits(page_chars=10))
    pointer = (await bank.put("short\nabcdefghijklmnopqrstu\nlast", name="log")).pointer

    window = files.read("/log", 1)

    assert text(window) == f"abcdefghij\n[line 2 goes on: read /{pointer}#char=16,26]\n"
    assert (window.start_line, window.end_line, window.next_offset) == (2, 2, 2)
    assert text(files.read(f"/{pointer}#char=16,26")) == "klmnopqrst"
    assert "[line 1 goes on: ask for less of it]" in text(files.read(f"/{pointer}#char=6,20"))


async def test_line_longer_than_what_a_bank_reads_at_once_is_cut_too(bank: Bank) -> None:
    limits = Limits(page_chars=300, page_cap_chars=100)
    bank = Bank(MemoryStore(), limits=limits)
    pointer = (await bank.put("x" * 1_000, name="log")).pointer

    window = BankBackend(bank).read("/log")

    assert text(window) == "x" * 100 + f"\n[line 1 goes on: read /{pointer}#char=100,200]\n"


async def test_rows_of_a_frame_are_lines_and_a_picture_is_a_clear_error(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put(pa.table({"id": [1, 2, 3]}), name="table")
    await bank.put(b"\x89PNG\r\n\x1a\n\x00\xff", name="dot.png")

    window = files.read("/table", 1)

    assert text(window) == '{"id":2}\n{"id":3}\n'
    assert (window.start_line, window.total_lines) == (2, 3)
    assert "is binary" in str(files.read("/dot.png").error)


async def test_lone_surrogates_are_shown_as_what_a_request_can_carry(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put("a\ud800b", name="odd")

    assert text(files.read("/odd")) == "a\ufffdb"
    assert [each["text"] for each in files.grep("a").matches or []] == ["a\ufffdb"]


async def test_pattern_fits_names_at_any_depth_and_paths_from_the_folder(
    bank: Bank, files: BankBackend
) -> None:
    for name in ("a.md", "in/b.md", "in/deep/c.md", "in/d.txt"):
        await bank.put(name, name=name)

    async def found(pattern: str, path: str | None = None) -> list[str]:
        matches = (await files.aglob(pattern, path)).matches or []
        return sorted(each["path"] for each in matches)

    assert await found("*.md") == ["/a.md", "/in/b.md", "/in/deep/c.md"]
    assert await found("*.md", "/in") == ["/in/b.md", "/in/deep/c.md"]
    assert await found("deep/*", "/in") == ["/in/deep/c.md"]
    assert await found("/*.md") == ["/a.md"]
    assert await found("*.md", "/in/b.md") == ["/in/b.md"]
    assert "not allowed" in str(files.glob("../*").error)


async def test_search_tells_lines_and_what_is_around_a_place_of_a_long_one(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put("one\ntwo\nthree\n", name="in/log")
    await bank.put("x" * 5_000 + "two" + "y" * 5_000, name="long")
    await bank.put(b"\x89PNG two \x00\xff", name="dot.png")

    found = await files.agrep("two")

    matches = {each["path"]: each for each in found.matches or []}
    assert matches["/in/log"] == {"path": "/in/log", "line": 2, "text": "two"}
    assert matches["/long"]["line"] == 1
    assert "xtwoy" in matches["/long"]["text"]
    assert len(matches["/long"]["text"]) < 500
    assert set(matches) == {"/in/log", "/long"}
    assert not found.truncated
    assert [each["path"] for each in files.grep("two", "/in").matches or []] == ["/in/log"]
    assert files.grep("two", glob="*.md").matches == []
    assert files.grep("Two").matches == []


async def test_search_stops_at_its_limit_and_says_whether_there_was_more(
    bank: Bank, files: BankBackend
) -> None:
    await bank.put("hit\n" * 60, name="a")
    await bank.put("hit\n" * 60, name="b")

    exact, less = files.grep("hit", max_count=120), files.grep("hit", max_count=119)

    assert (len(exact.matches or []), exact.truncated) == (120, False)
    assert (len(less.matches or []), less.truncated) == (119, True)


def test_search_for_nothing_is_an_error_that_names_the_rule(files: BankBackend) -> None:
    portal().run(files.bank_for().put("a", name="a"))

    assert "1 to 200" in str(files.grep("").error)


async def test_what_is_written_is_banked_whole_and_the_text_before_stays(
    bank: Bank, files: BankBackend
) -> None:
    assert (await files.awrite("/notes/a.md", "one\n")).path == "/notes/a.md"
    before = await bank.find("notes/a.md")
    assert files.write("/notes/a.md", "two\n").error is None

    assert before is not None
    assert before.kind == "file"
    assert await bank.get("notes/a.md") == "two\n"
    assert await bank.get(before.pointer) == "one\n"


async def test_edit_replaces_words_by_deepagents_own_rules(bank: Bank, files: BankBackend) -> None:
    files.write("/a.md", "one two two\n")

    several = files.edit("/a.md", "two", "2")
    once = files.edit("/a.md", "one", "1")
    all_of_them = await files.aedit("/a.md", "two", "2", replace_all=True)
    none = files.edit("/a.md", "three", "3")

    assert "2 times" in str(several.error)
    assert (once.path, once.occurrences, all_of_them.occurrences) == ("/a.md", 1, 2)
    assert "not found" in str(none.error)
    assert await bank.get("a.md") == "1 2 2\n"


async def test_edit_that_would_fill_the_memory_is_refused(bank: Bank, files: BankBackend) -> None:
    text = "a" * 32 * 1024
    files.write("/a.md", text)

    refused = files.edit("/a.md", "a", "a" * 1_026, replace_all=True)
    assert "longer. Replace fewer places" in str(refused.error)
    assert await bank.get("a.md") == text

    assert files.edit("/a.md", "a", "a" * 1_025, replace_all=True).occurrences == len(text)
    assert files.edit("/a.md", "a" * 1_025, "", replace_all=True).occurrences == len(text)


async def test_what_cannot_be_is_answered_with_a_clear_error(
    bank: Bank, files: BankBackend
) -> None:
    pointer = (await bank.put("a", name="a")).pointer
    unknown = "art:00000000-0000-4000-8000-000000000005"
    await bank.put(b"\xff", name="b")

    assert "never changes" in str(files.edit(f"/{pointer}", "a", "b").error)
    assert "is no pointer" in str(files.write(f"/{unknown}", "a").error)
    assert "1 to 200" in str(files.write("/" + "x" * 201, "a").error)
    assert "binary" in str(files.edit("/b", "a", "b").error)
    for missing in ("/none", f"/{unknown}"):
        assert "No artifact behind" in str(files.read(missing).error)
        assert "No artifact behind" in str(files.edit(missing, "a", "b").error)
    assert "selector" in str(files.read(f"/{pointer}#the first").error)
    assert "selects nothing" in str(files.read(f"/{pointer}#char=9,10").error)


def test_nothing_can_be_deleted(files: BankBackend) -> None:
    with pytest.raises(NotImplementedError):
        files.delete("/a")


async def test_host_puts_and_takes_files_byte_for_byte(bank: Bank, files: BankBackend) -> None:
    up = await files.aupload_files([("/a.txt", "né".encode()), ("/b.bin", b"\x00\xff")])
    down = await files.adownload_files(["/a.txt", "/b.bin", "/none"])

    assert [each.error for each in up] == [None, None]
    assert await bank.get("a.txt") == "né"
    assert [(each.content, each.error) for each in down] == [
        ("né".encode(), None),
        (b"\x00\xff", None),
        (None, "file_not_found"),
    ]


@pytest.mark.parametrize("raised", [StoreUnavailableError("it is out"), RuntimeError("a secret")])
def test_store_that_is_out_is_an_error_of_each_file_tool(raised: Exception) -> None:
    class Out(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise raised

        async def put(self, key: str, payload: bytes) -> None:
            raise raised

        async def keys(self, folder: str) -> AsyncIterator[str]:
            raise raised
            yield folder

    files = BankBackend(Bank(Out()))
    errors = [
        files.ls("/").error,
        files.read("/a").error,
        files.glob("*").error,
        files.grep("a").error,
        files.write("/a", "a").error,
        files.edit("/a", "a", "b").error,
        files.upload_files([("/a", b"a")])[0].error,
        files.download_files(["/a"])[0].error,
    ]

    assert all("store" in str(error).lower() for error in errors), errors
    assert "secret" not in str(errors)


def test_argument_of_another_type_is_told_as_what_it_is_and_not_as_an_outage(
    files: Any, caplog: pytest.LogCaptureFixture
) -> None:
    secret = {"pin": 70_000_037}
    errors = {
        "path": [files.ls(secret), files.glob("*", secret), files.grep("a", secret)],
        "file_path": [
            files.read(secret),
            files.write(secret, "a"),
            files.edit(secret, "a", "b"),
            files.upload_files([(secret, b"a")])[0],
        ],
        "offset": [files.read("/a", "first")],
        "limit": [files.read("/a", limit=None)],
        "pattern": [files.glob(secret), files.grep(secret)],
        "glob": [files.grep("a", glob=secret)],
        "max_count": [files.grep("a", max_count="all")],
        "content": [files.write("/a", secret)],
        "old_string": [files.edit("/a", secret, "b")],
        "new_string": [files.edit("/a", "a", secret)],
        "replace_all": [files.edit("/a", "a", "b", secret)],
    }

    for name, results in errors.items():
        for result in results:
            assert f"'{name}'" in result.error
            assert "does not fit its type" in result.error
            assert "pin" not in result.error
    assert files.ls("/").entries == []
    assert not caplog.records


def agent_over(bank: Bank, *turns: Any, tools: Sequence[Any] = (), **how: Any) -> Any:
    """Return an agent of deepagents whose files are the bank's, and whose results go there."""
    limits = Limits(inline_bytes=1_000, never=frozenset(PATHS))
    return create_deep_agent(
        Scripted(messages=iter([*turns])),
        tools=[*tools],
        backend=how.pop("backend", BankBackend(bank)),
        middleware=[CoatcheckMiddleware(bank, limits=limits, verbatim=PATHS)],
        **how,
    )


def ask(agent: Any, config: Any = THREAD) -> dict[str, ToolMessage]:
    """Run an agent to its end, and return the tools' messages by the name of the tool."""
    messages = agent.invoke({"messages": [("user", "Go.")]}, config)["messages"]
    return {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}


def rows(n: int) -> list[dict[str, int]]:
    """Return rows."""
    return [{"id": number} for number in range(n)]


def test_agent_reads_what_its_tools_returned_with_its_file_tools(bank: Bank) -> None:
    agent = agent_over(
        bank,
        call("rows", n=1_000),
        call("ls", path="/"),
        call("read_file", file_path="/rows_rows"),
        call("grep", pattern='"id":77}', output_mode="content"),
        "done",
        tools=[rows],
    )
    seen = ask(agent)

    own = BankBackend(bank).bank_for("one")
    assert portal().run(own.get(json.loads(seen["rows"].text)["pointer"])) == rows(1_000)
    assert "/rows_rows" in seen["ls"].text
    assert '{"id":999}]' in seen["read_file"].text
    assert '"id":77}' in seen["grep"].text


async def test_pointer_is_a_file_where_a_path_is_asked_for_and_a_value_elsewhere(
    bank: Bank,
) -> None:
    own = BankBackend(bank).bank_for("one")
    pointer = (await own.put("first line\n" + "x" * 2_000)).pointer
    agent = agent_over(
        bank,
        call("read_file", file_path=pointer, limit=1),
        call("write_file", file_path="/copy.txt", content=pointer),
        "done",
    )
    state = await agent.ainvoke({"messages": [("user", "Go.")]}, THREAD)

    seen = {each.tool_call_id: each for each in state["messages"] if each.type == "tool"}
    assert "first line" in seen["read_file"].text
    assert "xxx" not in seen["read_file"].text
    assert await own.get("copy.txt") == "first line\n" + "x" * 2_000
    assert "xxx" not in str(state["messages"])


def test_threads_have_files_of_their_own_and_runs_without_one_the_banks(bank: Bank) -> None:
    two: Any = {"configurable": {"thread_id": "two"}}
    for config, said in ((THREAD, "one"), (two, "two"), (None, "none")):
        ask(agent_over(bank, call("write_file", file_path="/a", content=said), "done"), config)
    seen = ask(agent_over(bank, call("read_file", file_path="/a"), "done"), two)

    assert "two" in seen["read_file"].text
    files = BankBackend(bank)
    found = [portal().run(files.bank_for(thread).get("a")) for thread in ("one", "two", None)]
    assert found == ["one", "two", "none"]


def test_bank_is_one_folder_beside_others(bank: Bank) -> None:
    backend = CompositeBackend(default=StateBackend(), routes={"/bank/": BankBackend(bank)})
    agent = agent_over(
        bank,
        call("write_file", file_path="/draft", content="of the state"),
        call("rows", n=1_000),
        call("glob", pattern="*"),
        call("read_file", file_path="/bank/rows_rows"),
        "done",
        tools=[rows],
        backend=backend,
    )
    seen = ask(agent)

    assert all(path in seen["glob"].text for path in ("/draft", "/bank/rows_rows"))
    assert '{"id":999}]' in seen["read_file"].text


def test_permissions_of_deepagents_hold_for_artifacts(bank: Bank) -> None:
    portal().run(BankBackend(bank).bank_for("one").put("hidden", name="private/a"))
    rule = FilesystemPermission(operations=["read"], paths=["/private/**"], mode="deny")
    script = [call("read_file", file_path="/private/a"), call("grep", pattern="hidden"), "done"]
    seen = ask(agent_over(bank, *script, permissions=[rule]))

    assert "permission denied" in seen["read_file"].text
    assert "hidden" not in seen["grep"].text


def test_subagent_of_a_thread_has_its_pointers_where_it_has_the_middleware(bank: Bank) -> None:
    counted: list[int] = []

    def count(items: list[dict[str, int]]) -> int:
        """Count rows."""
        counted.append(len(items))
        return len(items)

    limits = Limits(inline_bytes=1_000, never=frozenset(PATHS))
    pointer = portal().run(BankBackend(bank).bank_for("one").put(rows(500))).pointer
    clerk = {
        "name": "clerk",
        "description": "Counts.",
        "system_prompt": "Count.",
        "tools": [count],
        "middleware": [CoatcheckMiddleware(bank, limits=limits, verbatim=PATHS)],
        "model": Scripted(messages=iter([call("count", items=pointer), "Done. " * 500])),
    }
    task = call("task", description="Count.", subagent_type="clerk")
    seen = ask(agent_over(bank, task, "done", subagents=[clerk]))

    assert counted == [500]
    # What it answers is a result like any other.
    assert json.loads(seen["task"].text)["pointer"].startswith("art:")


def test_result_that_deepagents_would_move_to_a_file_is_a_pointer_before(bank: Bank) -> None:
    def flood() -> str:
        """Return much."""
        return "x" * 200_000

    agent = agent_over(bank, call("flood"), "done", tools=[flood], checkpointer=InMemorySaver())
    seen = ask(agent)

    assert json.loads(seen["flood"].text)["sizeBytes"] == 200_000
    assert portal().run(BankBackend(bank).bank_for("one").usage()).artifacts == 1
