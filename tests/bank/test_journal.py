"""The journal: what is written, by whom, and what is left when something goes wrong."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from coatcheck.bank._journal import Call, Journal, parse_call, read_journal
from coatcheck.testing import ManualClock


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def test_a_call_is_read_back_as_it_was_noted(file: Path) -> None:
    with Journal(file, clock=ManualClock(1_000.5)) as journal:
        journal.schemas |= {"retrieve_context": 1, "listArtifacts": 1}
        journal.note(
            verb="query",
            tool="retrieve_context",
            scope="s",
            run="r1",
            pointers_in=("art:a#/0", "b"),
            pointers_out=("art:c",),
            size_bytes=5,
            tokens=4,
            shown_tokens=3,
            is_error=True,
        )

    assert list(read_journal(file)) == [
        Call(
            at_ns=1_000_500_000_000,
            verb="query",
            tool="retrieve_context",
            scope="s",
            run="r1",
            pointers_in=("art:a#/0", "b"),
            pointers_out=("art:c",),
            size_bytes=5,
            tokens=4,
            shown_tokens=3,
            schema_tokens=2,
            is_error=True,
        )
    ]


def test_calls_are_kept_in_order_and_added_to_what_is_there(file: Path) -> None:
    for run in ("first", "second"):
        with Journal(file) as journal:
            for number in range(100):
                journal.note(verb="tool", tool=f"{run} {number}")

    tools = [call.tool for call in read_journal(file)]
    assert tools == [f"{run} {number}" for run in ("first", "second") for number in range(100)]


def test_a_journal_is_readable_for_its_owner_only(file: Path) -> None:
    Journal(file).close()

    assert file.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Journal(tmp_path / "missing" / "calls.jsonl")


def test_what_is_noted_after_the_end_is_lost_without_an_error(file: Path) -> None:
    journal = Journal(file)
    journal.close()
    journal.close()

    journal.note(verb="tool")

    assert list(read_journal(file)) == []


def test_a_disk_that_refuses_fails_no_call_and_is_counted() -> None:
    with Journal("/dev/full") as journal:
        journal.note(verb="tool")
        journal.note(verb="tool")
        journal.flush()

        assert journal.dropped == 2


def test_a_disk_that_stands_still_holds_up_no_call_and_the_oldest_are_dropped(file: Path) -> None:
    os.mkfifo(file)
    stuck = os.open(file, os.O_RDONLY | os.O_NONBLOCK)  # takes 64 KiB, then no more
    journal = Journal(file)

    for number in range(150_000):
        journal.note(verb="tool", size_bytes=number)

    dropped = journal.dropped
    closing = threading.Thread(target=journal.close)
    closing.start()
    os.set_blocking(stuck, True)
    with os.fdopen(stuck, "rb") as pipe:
        calls = [parse_call(line) for line in pipe]
    closing.join()
    assert dropped > 0
    assert len(calls) == 150_000 - dropped
    last = calls[-1]
    assert last is not None
    assert last.size_bytes == 149_999


def test_lines_that_are_cut_damaged_or_of_others_are_passed_over(file: Path) -> None:
    with Journal(file) as journal:
        journal.note(verb="tool", tool="whole")
    whole = file.read_bytes()
    lines = [
        b"{}\n",
        b"[]\n",
        b"\xff\n",
        whole.replace(b'"verb":"tool"', b'"verb":1'),
        whole.replace(b'"pointers_in":[]', b'"pointers_in":[1]'),
        whole.replace(b'"size_bytes":0', b'"size_bytes":-1'),
        whole.replace(b'"size_bytes":0', b'"size_bytes":9223372036854775808'),
        whole.replace(b'{"at_ns":', b'{"at_ns":99'),
        whole.replace(b'{"at_ns"', b'{"later":1,"at_ns"'),
        whole[:-20],
    ]
    file.write_bytes(b"".join(lines))

    assert [call.tool for call in read_journal(file)] == ["whole"]
    assert parse_call(b"") is None


def test_two_processes_share_a_file_and_a_process_that_just_ends_loses_nothing(file: Path) -> None:
    code = textwrap.dedent(
        """
        import sys
        from coatcheck.bank._journal import Journal
        journal = Journal(sys.argv[1])
        for number in range(2_000):
            journal.note(verb="tool", tool=sys.argv[2], size_bytes=number)
        """
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(file), name]) for name in ("a", "b")
    ]

    assert [writer.wait() for writer in writers] == [0, 0]
    calls = list(read_journal(file))
    for name in ("a", "b"):
        sizes = [call.size_bytes for call in calls if call.tool == name]
        assert sizes == list(range(2_000))


def test_a_forked_child_notes_its_own_calls_and_none_of_its_parent_twice(file: Path) -> None:
    code = textwrap.dedent(
        """
        import os, sys
        from coatcheck.bank._journal import Journal
        journal = Journal(sys.argv[1])
        journal.note(verb="tool", tool="parent")
        child = os.fork()
        if child == 0:
            journal.note(verb="tool", tool="child")
            journal.close()
            os._exit(0)
        os.waitpid(child, 0)
        journal.close()
        """
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(file)], check=True)

    tools = [call.tool for call in read_journal(file)]
    assert sorted(str(tool) for tool in tools) == ["child", "parent"]
