"""The demo: real input, figures checked against plain Python, a model that sees messages only."""

import json
import math
import os
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rs_bpe import bpe

from coatcheck import Bank
from coatcheck.apps.cli._demo._draw import draw_message, remarks
from coatcheck.apps.cli._demo._inventory import Folder, environment_roots
from coatcheck.apps.cli._demo._jobs import Job, inventory_job, text_job
from coatcheck.apps.cli._demo._policy import envelope_in, reply
from coatcheck.apps.cli._demo._run import run_demo
from coatcheck.stores import MemoryStore

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


def stock(files: int) -> Job:
    def inventory() -> list[dict[str, Any]]:
        """List files."""
        return [{"path": f"{n:09}", "size": n, "digest": f"{n:032}"} for n in range(files)]

    return inventory_job(inventory)


def actions(outcome: dict[str, Any]) -> list[str]:
    return [call["action"] for call in outcome["calls"]]


def answers(outcome: dict[str, Any]) -> list[str]:
    return [message["content"] for message in outcome["messages"] if message["role"] == "tool"]


def test_figures_of_an_inventory_are_those_of_plain_python(coatcheck: Run, folder: Path) -> None:
    outcome = coatcheck("demo", "--root", str(folder), "--json").json

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


def test_only_the_window_is_read_of_what_was_banked(coatcheck: Run, folder: Path) -> None:
    outcome = coatcheck("demo", "--root", str(folder), "--json").json

    assert actions(outcome) == [
        "inventory", "count", "total_size", "largest", "duplicates", "read", "search", "answer",
    ]  # fmt: skip
    envelope = json.loads(answers(outcome)[0])
    assert outcome["pointers"] == [envelope["pointer"]]
    assert envelope["sizeBytes"] > 51_200
    for message in outcome["messages"]:
        for call in message.get("calls", ()):
            assert len(json.dumps(call["arguments"])) < 200


async def test_tokens_with_pointers_do_not_grow_with_the_input() -> None:
    small, large = [
        await run_demo(stock(n), Bank(MemoryStore()), lambda _: None) for n in (1_000, 10_000)
    ]

    assert large.raw_tokens > 9 * small.raw_tokens
    # Not equal, as pointers are random and so is what they take.
    assert abs(large.tokens - small.tokens) < 0.1 * small.tokens


def test_tokens_are_those_of_schemas_and_messages(coatcheck: Run, folder: Path) -> None:
    outcome = coatcheck("demo", "--root", str(folder), "--json").json

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


def test_windows_say_which_call_is_the_first_that_does_not_fit(
    coatcheck: Run, folder: Path
) -> None:
    outcome = coatcheck("demo", "--root", str(folder), "--json").json

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


def test_folder_with_names_that_are_no_text_and_files_that_cannot_be_read(
    coatcheck: Run, tmp_path: Path
) -> None:
    folder = fill(tmp_path / "files", 600)
    (folder / os.fsdecode(b"big-\xff.bin")).write_bytes(b"z" * 9_999)
    (folder / "link").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe")

    outcome = coatcheck("demo", "--root", str(folder), "--json").json

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


def test_figures_of_a_text_are_those_of_plain_python(coatcheck: Run, text: Path) -> None:
    outcome = coatcheck("demo", str(text), "--json").json

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


def test_small_file_is_shown_as_it_is_and_the_table_says_so(coatcheck: Run, tmp_path: Path) -> None:
    small = tmp_path / "small.txt"
    small.write_text("only a few words\n")

    outcome = coatcheck("demo", str(small), "--json").json
    assert answers(outcome)[0] == "only a few words\n"
    assert outcome["pointers"] == []
    assert outcome["tokens"] > outcome["rawTokens"]
    printed = coatcheck("demo", str(small)).text
    assert "Nothing here reaches the inline limit" in printed
    assert "saved nothing" in " ".join(printed.split())


@pytest.mark.parametrize("payload", [b"", b"\n\n", b"a\n"])
def test_file_with_hardly_anything_in_it_is_described_too(
    coatcheck: Run, tmp_path: Path, payload: bytes
) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(payload)

    outcome = coatcheck("demo", str(path), "--json").json

    lines = len(payload.splitlines())
    assert outcome["messages"][-1]["content"].startswith(f"{lines} lines.\n")
    assert outcome["messages"][-1]["content"].endswith("The most frequent words: none.")


def test_large_text_without_words_is_read_but_not_searched(coatcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "marks.txt"
    path.write_text("- - -\n" * 20_000)

    outcome = coatcheck("demo", str(path), "--json").json

    assert actions(outcome)[-2:] == ["read", "answer"]


@pytest.mark.parametrize("size", [300, 300_000])
def test_figures_of_a_binary_file_are_those_of_plain_python(
    coatcheck: Run, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "image.bin"
    payload = (b"\x00\xff\x00text inside\x01" * size)[:size]
    path.write_bytes(payload)

    outcome = coatcheck("demo", str(path), "--json").json

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


def test_binary_file_without_texts_says_so(coatcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "zeros.bin"
    path.write_bytes(b"\0" * 100)

    outcome = coatcheck("demo", str(path), "--json").json

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
def test_file_that_looks_like_a_pointer_gives_a_failure_and_no_crash(
    coatcheck: Run, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "forged"
    path.write_text(content)

    outcome = coatcheck("demo", str(path), "--json").json

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
    job = inventory_job(Folder([str(folder)], lambda _done, _total: None).inventory)
    outcome = await run_demo(job, Bank(MemoryStore()), lambda _: None)

    # Nothing of the run is left but its text: bank, rows and tools are gone.
    written: list[dict[str, Any]] = json.loads(json.dumps(outcome.messages))
    for at, message in enumerate(written):
        if message["role"] == "assistant":
            assert json.loads(json.dumps(reply(job.script, written[:at], outcome.tools))) == message


async def test_model_follows_what_it_is_shown_and_not_what_is_true(folder: Path) -> None:
    job = inventory_job(Folder([str(folder)], lambda _done, _total: None).inventory)
    outcome = await run_demo(job, Bank(MemoryStore()), lambda _: None)

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


@pytest.mark.parametrize("columns", [80, 120])
def test_output_fits_the_terminal(in_terminal: Run, folder: Path, columns: int) -> None:
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
    plain = coatcheck("demo", "--root", str(folder), "--store", str(tmp_path / "kept")).text
    assert f"coatcheck ls --store {tmp_path / 'kept'}\n" in plain
    small = coatcheck("demo", __file__, "--store", str(tmp_path / "kept")).text
    assert "Look at what was kept" not in small


def test_long_message_is_cut_in_print_alone(
    coatcheck: Run, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "medium.txt"
    path.write_text("word " * 1_000)

    assert "3,000 more characters, cut only in print" in " ".join(
        coatcheck("demo", str(path)).text.split()
    )
    assert len(answers(coatcheck("demo", str(path), "--json").json)[0]) == 5_000
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
    job = text_job(text.read_text(), "words.txt")
    outcome = await run_demo(job, Bank(MemoryStore()), lambda _: None)

    lines = list(remarks(outcome, None, skipped_files=3))

    assert "3 files could not be read and are left out." in lines
