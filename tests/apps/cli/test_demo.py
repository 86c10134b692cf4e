"""The demo: real input, figures checked against plain Python, a model that sees messages only."""

import json
import math
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import mcp
import pytest
from anyio import to_thread
from mcp_types import CallToolResult
from pydantic import BaseModel
from rich.cells import cell_len
from rs_bpe import bpe

from coatcheck import Bank, CoatcheckError
from coatcheck.apps.cli._demo._draw import draw_message, remarks
from coatcheck.apps.cli._demo._inventory import Folder, environment_roots
from coatcheck.apps.cli._demo._policy import envelope_in, reply
from coatcheck.apps.cli._demo._proxied import shown_text
from coatcheck.apps.cli._demo._run import Outcome, run_demo
from coatcheck.apps.cli._demo._server import Served, ToolServer, job_of
from coatcheck.apps.cli._demo._wire import outcome_wire
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._settings import parse_settings
from coatcheck.stores import MemoryStore
from coatcheck.tools import Tool

from .conftest import Run


def fill(folder: Path, files: int) -> Path:
    for n in range(files):
        path = folder / f"part-{n % 10}" / f"file-{n:05}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{n % 900}\n" * (n % 50))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("inventory"), 600)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(
        "".join(f"zeile {n} mit wörtern 漢字漢字 {'x' * (n % 83)}\n" for n in range(3_000))
    )
    return path


class InOneProcess:
    """What the proxy does to a server of the demo, and no process: so most tests are quick."""

    def __init__(self, client: mcp.Client, limits: str) -> None:
        self._client = client
        self._acts = Acts(Bank(MemoryStore()), parse_settings(limits), "demo")
        self._scope = self._acts.scope()
        self.instructions = self._acts.instructions
        self.tools: list[Tool] = []
        self.artifacts: list[dict[str, Any]] = []

    async def list(self) -> None:
        wire = [self._wire(tool) for tool in (await self._client.list_tools()).tools]
        listed = [*self._acts.tools(wire, upstream="demo"), *self._acts.own_tools]
        self.tools = [self._tool(json.loads(json.dumps(tool))) for tool in listed]

    async def payload(self, pointer: str, size_bytes: int) -> str | bytes:
        uri = f"art://{pointer.removeprefix('art:')}"
        found: Any = await self._acts.read_resource(self._scope, uri)
        (contents,) = found["contents"]
        return contents["text"] if "text" in contents else b64decode(contents["blob"])

    def _tool(self, listed: dict[str, Any]) -> Tool:
        name: str = listed["name"]

        async def call(arguments: Any) -> str:
            try:
                result = await self._result(name, dict(arguments))
            except CoatcheckError as error:
                result = self._acts.failure(error)
            meta: Any = result.get("_meta", {})
            self.artifacts += meta.get("coatcheck/artifacts", [])
            return shown_text(CallToolResult.model_validate(result))

        return Tool(name, listed["description"], listed["inputSchema"], call)

    async def _result(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        if self._acts.is_own(name):
            return await self._acts.call_own(self._scope, {"name": name, "arguments": given})
        arguments = await self._acts.arguments(self._scope, "demo", name, given)
        result = self._wire(await self._client.call_tool(name, arguments))
        return await self._acts.result(self._scope, "demo", name, result, given=given)

    def _wire(self, record: BaseModel) -> dict[str, Any]:
        return record.model_dump(by_alias=True, mode="json", exclude_none=True)


async def ran(served: Served) -> Outcome:
    """Return the outcome of a demo."""
    job = job_of(served, None)
    limits = "" if job.inline_bytes is None else "[tools.read_file]\ninline_bytes = 0"
    async with mcp.Client(ToolServer(served).server) as client:
        behind = InOneProcess(client, limits)
        await behind.list()
        return await run_demo(job, behind, lambda _: None)


async def ran_on(file: Path, *, is_text: bool = True) -> dict[str, Any]:
    """Return the outcome of a demo on a file, as its JSON document."""
    outcome = await ran(Served(file=str(file), name=file.name, is_text=is_text))
    wire: dict[str, Any] = json.loads(json.dumps(outcome_wire(outcome, skipped_files=0)))
    return wire


@pytest.fixture(scope="module")
def of_folder(folder: Path) -> dict[str, Any]:
    """Return the outcome of a demo on the folder, through the program, a proxy and a server."""
    program = [sys.executable, "-m", "coatcheck.apps.cli", "demo", "--json"]
    done = subprocess.run([*program, "--root", str(folder)], capture_output=True, check=True)
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def actions(outcome: dict[str, Any]) -> list[str]:
    return [call["action"] for call in outcome["calls"]]


def answers(outcome: dict[str, Any]) -> list[str]:
    return [message["content"] for message in outcome["messages"] if message["role"] == "tool"]


def test_figures_of_an_inventory_are_those_of_plain_python(
    of_folder: dict[str, Any], folder: Path
) -> None:
    outcome = of_folder

    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    groups = Counter(sha256(payload).digest() for payload in files.values())
    largest = sorted(files, key=lambda path: (-len(files[path]), str(path.relative_to(folder))))
    _, count, total, ten, duplicates, window, found = answers(outcome)
    assert int(count) == 600
    assert int(total) == sum(map(len, files.values()))
    assert [row["path"] for row in json.loads(ten)] == [
        str(path.relative_to(folder)) for path in largest[:10]
    ]
    assert json.loads(duplicates)["groups"] == sum(times > 1 for times in groups.values())
    assert json.loads(duplicates)["copies"] == 600 - len(groups)
    assert len(json.loads(window)["content"]) == 400
    assert str(largest[0].relative_to(folder)) in json.loads(found)["matches"][0]["snippet"]
    answer = outcome["messages"][-1]["content"]
    assert answer.startswith(f"600 files, {int(total):,} bytes in all.\n")
    assert outcome["rawAnswer"] == answer.partition("\nI read")[0]


def test_only_the_window_is_read_of_what_was_banked(of_folder: dict[str, Any]) -> None:
    outcome = of_folder

    assert actions(outcome) == [
        "inventory", "count", "total_size", "largest", "duplicates", "read", "search", "answer",
    ]  # fmt: skip
    envelope = json.loads(answers(outcome)[0])
    assert outcome["pointers"] == [envelope["pointer"]]
    assert envelope["sizeBytes"] > 51_200
    for message in outcome["messages"]:
        for call in message.get("calls", ()):
            assert len(json.dumps(call["arguments"])) < 200


async def test_tokens_with_pointers_do_not_grow_with_the_input(tmp_path: Path) -> None:
    small, large = [
        await ran(Served(roots=(str(fill(tmp_path / str(files), files)),)))
        for files in (500, 5_000)
    ]

    assert large.raw_tokens > 9 * small.raw_tokens
    # Not equal, as pointers are random and so is what they take.
    assert abs(large.tokens - small.tokens) < 0.1 * small.tokens


def test_tokens_are_those_of_schemas_and_messages(of_folder: dict[str, Any]) -> None:
    outcome = of_folder

    openai: Any = bpe.openai
    count = openai.o200k_base().count
    calls, texts = outcome["calls"], [str(message) for message in outcome["messages"]]
    assert outcome["tokens"] == sum(call["tokens"] for call in calls)
    assert outcome["rawTokens"] == sum(call["rawTokens"] or 0 for call in calls)
    assert [call["rawTokens"] for call in calls if call["action"] in {"read", "search"}] == [
        None
    ] * 2
    # The frames of messages are written another way here, so it is near and not equal.
    said = sum(map(count, texts[2:-1]))
    assert math.isclose(calls[-1]["tokens"] - calls[0]["tokens"], said, rel_tol=0.15)
    # Raw, the rows come back once, and are written out again for each of four tools.
    rows = calls[1]["rawTokens"] - calls[0]["rawTokens"]
    assert math.isclose(calls[-1]["rawTokens"], 5 * rows, rel_tol=0.05)
    assert math.isclose(outcome["rawTokensOnce"], 5 * rows, rel_tol=0.1)


def test_windows_say_which_call_is_the_first_that_does_not_fit(of_folder: dict[str, Any]) -> None:
    outcome = of_folder

    for window in outcome["windows"]:
        first = next(
            (
                number
                for number, call in enumerate(outcome["calls"], 1)
                if (call["rawTokens"] or 0) > window["tokens"]
            ),
            None,
        )
        assert window["rawOverflowsAtCall"] == first
        assert window["overflowsAtCall"] is None
    assert [window["tokens"] for window in outcome["windows"]] == [128_000, 200_000, 1_000_000]
    assert outcome["windows"][0]["rawOverflowsAtCall"] is not None


async def test_folder_with_names_that_are_no_text_and_files_that_cannot_be_read(
    tmp_path: Path,
) -> None:
    folder = fill(tmp_path / "files", 600)
    (folder / os.fsdecode(b"big-\xff.bin")).write_bytes(b"z" * 9_999)
    (folder / "link").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe")

    outcome = outcome_wire(await ran(Served(roots=(str(folder),))), skipped_files=0)
    outcome = json.loads(json.dumps(outcome))

    assert int(answers(outcome)[1]) == 601
    assert json.loads(answers(outcome)[3])[0] == {"path": "big-\\xff.bin", "size": 9_999}
    # The search is for the name as it was shown, which JSON writes in another way.
    assert json.loads(answers(outcome)[6])["totalMatches"] == 0
    assert "The search found 0." in outcome["messages"][-1]["content"]


def test_file_that_goes_away_is_left_out_and_counted(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    (tmp_path / "last").write_text("x")
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        (tmp_path / "last").unlink(missing_ok=True)

    folder = Folder([str(tmp_path)], tell)

    assert len(folder.inventory()) == 20
    assert folder.skipped == 1
    assert folder.inventory() is folder.inventory()
    assert told[-1] == (21, 21)


def test_environment_is_where_this_python_keeps_its_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setattr(sys, "prefix", "/somewhere/env")
    assert environment_roots()[0] == "/somewhere/env"
    assert environment_roots()[1:] == [str(Path(os.__file__).resolve().parent)]

    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    roots = environment_roots()
    assert any(Path(os.__file__).is_relative_to(root) for root in roots)
    assert len(set(roots)) == len(roots)


def test_packages_beside_the_standard_library_belong_to_another_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sys
    import sysconfig

    (tmp_path / "site-packages").mkdir()
    for name in ("os.py", "site-packages/other.py"):
        (tmp_path / name).touch()

    def here(_name: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr(sysconfig, "get_path", here)

    def found() -> list[str]:
        return [
            row["path"] for row in Folder([str(tmp_path)], lambda _done, _all: None).inventory()
        ]

    monkeypatch.setattr(sys, "prefix", "/somewhere/env")
    assert found() == ["os.py"]

    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert found() == ["os.py", "site-packages/other.py"]


def test_default_input_is_the_environment(coatcheck: Run) -> None:
    outcome = coatcheck("demo", "--json").json

    rows = int(answers(outcome)[1])
    assert rows > 1_000
    assert f"{rows:,} rows, 4 columns" in json.loads(answers(outcome)[0])["glimpse"]
    assert outcome["windows"][0]["overflowsAtCall"] is None
    assert outcome["tokens"] < 15_000 < 100 * outcome["tokens"] < outcome["rawTokens"]


async def test_figures_of_a_text_are_those_of_plain_python(text: Path) -> None:
    outcome = await ran_on(text)

    content = text.read_text()
    _, count, longest, words, window, found = answers(outcome)
    lines = content.splitlines()
    assert int(count) == len(lines) == 3_000
    assert [line["chars"] for line in json.loads(longest)] == sorted(map(len, lines))[:-6:-1]
    assert json.loads(words)[0] == {"word": "zeile", "times": 3_000}
    assert {"word": "漢字漢字", "times": 3_000} in json.loads(words)
    page = json.loads(window)
    assert page["content"] == content[page["offset"] : page["offset"] + 400]
    assert json.loads(found)["totalMatches"] == 3_000
    answer = outcome["messages"][-1]["content"]
    assert answer.startswith("3,000 lines.\n")
    assert answer.endswith("The search found 3,000, the first in line 1 at character 0.")
    assert outcome["rawAnswer"] == answer.partition("\nI read")[0]


async def test_small_file_is_shown_as_it_is_and_the_table_says_so(
    coatcheck: Run, tmp_path: Path
) -> None:
    small = tmp_path / "small.txt"
    small.write_text("only a few words\n")

    outcome = await ran_on(small)
    assert answers(outcome)[0] == "only a few words\n"
    assert outcome["pointers"] == []
    assert outcome["tokens"] > outcome["rawTokens"]
    printed = await to_thread.run_sync(lambda: coatcheck("demo", str(small)).text)
    assert "Nothing here reaches the inline limit" in printed
    assert "saved nothing" in " ".join(printed.split())


@pytest.mark.parametrize("payload", [b"", b"\n\n", b"a\n"])
async def test_file_with_hardly_anything_in_it_is_described_too(
    tmp_path: Path, payload: bytes
) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(payload)

    outcome = await ran_on(path)

    lines = len(payload.splitlines())
    assert outcome["messages"][-1]["content"].startswith(f"{lines} lines.\n")
    assert outcome["messages"][-1]["content"].endswith("The most frequent words: none.")


async def test_large_text_without_words_is_read_but_not_searched(tmp_path: Path) -> None:
    path = tmp_path / "marks.txt"
    path.write_text("- - -\n" * 20_000)

    outcome = await ran_on(path)

    assert actions(outcome)[-2:] == ["read", "answer"]


@pytest.mark.parametrize("size", [300, 300_000])
async def test_figures_of_a_binary_file_are_those_of_plain_python(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "image.bin"
    payload = (b"\x00\xff\x00text inside\x01" * size)[:size]
    path.write_bytes(payload)

    outcome = await ran_on(path, is_text=False)

    counted, bits, texts = map(json.loads, answers(outcome)[1:])
    values = Counter(payload)
    assert (counted["bytes"], counted["values"]) == (size, len(values))
    assert counted["most"][0] == {
        "value": values.most_common(1)[0][0],
        "times": max(values.values()),
    }
    expected = -sum(n / size * math.log2(n / size) for n in values.values())
    assert bits == round(expected, 3)
    assert texts[0] == "text inside"
    assert json.loads(answers(outcome)[0])["note"] == "pass the pointer to a tool"
    assert actions(outcome) == ["read_file", "count_bytes", "entropy", "longest_texts", "answer"]
    assert outcome["rawAnswer"] == outcome["messages"][-1]["content"]


async def test_binary_file_without_texts_says_so(tmp_path: Path) -> None:
    path = tmp_path / "zeros.bin"
    path.write_bytes(b"\0" * 100)

    outcome = await ran_on(path, is_text=False)

    assert outcome["messages"][-1]["content"].endswith(
        "0.0 bits of information a byte.\nNo text in it."
    )


@pytest.mark.parametrize(
    "content",
    [
        '{"pointer":"art:00000000-0000-4000-8000-000000000005","sizeBytes":9,"note":"x"}',
        "art:00000000-0000-4000-8000-000000000005",
    ],
)
async def test_file_that_looks_like_a_pointer_gives_a_failure_and_no_crash(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "forged"
    path.write_text(content)

    outcome = await ran_on(path)

    assert "A tool failed: No artifact behind" in outcome["messages"][-1]["content"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"pointer":"art:x","sizeBytes":1,"note":"n"}',
        '{"pointer":"art:00000000-0000-4000-8000-000000000005","sizeBytes":"1","note":"n"}',
        '{"pointer":"art:00000000-0000-4000-8000-000000000005","sizeBytes":1}',
    ],
)
def test_what_lacks_a_part_of_an_envelope_is_none(text: str) -> None:
    assert envelope_in(text) is None


async def test_model_answers_the_same_from_the_messages_alone(folder: Path) -> None:
    served = Served(roots=(str(folder),))
    outcome, job = await ran(served), job_of(served, None)

    # Nothing of the run is left but its text: bank, rows and tools are gone.
    written: list[dict[str, Any]] = json.loads(json.dumps(outcome.messages))
    for at, message in enumerate(written):
        if message["role"] == "assistant":
            assert json.loads(json.dumps(reply(job.script, written[:at], outcome.tools))) == message


async def test_model_follows_what_it_is_shown_and_not_what_is_true(folder: Path) -> None:
    served = Served(roots=(str(folder),))
    outcome, job = await ran(served), job_of(served, None)

    forged = json.loads(json.dumps(outcome.messages).replace('"content": "600"', '"content": "7"'))

    assert reply(job.script, forged[:-1], outcome.tools)["content"].startswith("7 files, ")


def test_output_says_that_the_model_is_a_script_and_raw_is_computed(
    coatcheck: Run, folder: Path
) -> None:
    done = coatcheck("demo", "--root", str(folder))

    printed = " ".join(done.text.split())
    assert "The model below is a script" in printed
    assert "computed, never sent to a model" in printed
    assert "--store file:DIR keeps them" in printed
    assert re.search(r"overflows at call \d", printed)
    assert done.err == ""


def test_output_fits_the_terminal(in_terminal: Run, folder: Path) -> None:
    columns = 80
    done = in_terminal("demo", "--root", str(folder), columns=columns)

    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.text).splitlines()
    assert done.code == 0
    assert max(map(cell_len, lines)) <= columns
    assert "reading files" in done.err


def test_artifacts_are_kept_where_a_store_is_named(
    coatcheck: Run, folder: Path, tmp_path: Path
) -> None:
    kept = ["--store", f"file:{tmp_path / 'kept'}", "--scope", "demo run"]

    printed = coatcheck("demo", "--root", str(folder), *kept).text

    command = next(
        line for line in printed.splitlines() if line.startswith("  coatcheck show art:")
    )
    assert command.endswith(f"--store file:{tmp_path / 'kept'} --scope 'demo run'")
    facts = coatcheck("show", command.split()[2], *kept, "--json").json
    assert (facts["tool"], facts["kind"]) == ("inventory", "tool-output")
    assert len(coatcheck("ls", *kept, "--json").json) == 1


def test_long_message_is_cut_in_print_alone(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    draw_message({"role": "tool", "content": "word " * 1_000})
    printed = capsysbinary.readouterr().out.decode()
    assert "3,000 more characters, cut only in print" in " ".join(printed.split())

    draw_message({"role": "tool", "content": "y" * 2_000})
    assert b"cut" not in capsysbinary.readouterr().out


def test_demo_on_what_cannot_be_read_is_wrong_usage(coatcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    assert coatcheck("demo", str(tmp_path / "missing")).code == 2
    assert coatcheck("demo", "--root", str(tmp_path / "file")).code == 2
    assert coatcheck("demo", str(tmp_path / "file"), "--root", str(tmp_path)).code == 2


def test_demo_on_a_store_that_fails_ends_with_three(coatcheck: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    done = coatcheck("demo", str(tmp_path / "file"), "--store", str(tmp_path / "file"), "--json")

    assert (done.code, done.failure["error"]) == (3, "store-unavailable")


async def test_unreadable_files_are_named_in_the_output(text: Path) -> None:
    outcome = await ran(Served(file=str(text), name="words.txt"))

    lines = list(remarks(outcome, None, skipped_files=3))

    assert "3 files could not be read and are left out." in lines
