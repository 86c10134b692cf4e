"""The file of a journal: its bound, and that no line is lost where several processes share it."""

import fcntl
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from coatcheck.bank._journal import Journal, parse_call, read_journal
from coatcheck.bank._journal_file import JournalFile, previous

_LINE = b"x" * 99 + b"\n"

_WRITER = textwrap.dedent(
    """
    import sys
    from coatcheck.bank._journal import Journal
    with Journal(sys.argv[1], limit_bytes=int(sys.argv[3])) as journal:
        for number in range(2_000):
            journal.note(verb="tool", tool=sys.argv[2], size_bytes=number)
            if number % 50 == 0:
                journal.flush()
    """
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def _written(file: Path, limit_bytes: int) -> dict[str, list[int]]:
    """Return what is left of what two processes wrote, by the process."""
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(file), name, str(limit_bytes)])
        for name in ("a", "b")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    calls = list(read_journal(file))
    return {name: [call.size_bytes for call in calls if call.tool == name] for name in ("a", "b")}


@pytest.mark.parametrize(("limit_bytes", "is_renamed"), [(301, False), (300, True), (299, True)])
def test_a_file_is_renamed_once_it_has_reached_its_limit(
    file: Path, limit_bytes: int, is_renamed: bool
) -> None:
    journal = JournalFile(file, limit_bytes)

    journal.append(_LINE * 3)
    journal.append(_LINE)

    journal.close()
    assert previous(file).exists() is is_renamed
    assert file.read_bytes() == (_LINE if is_renamed else _LINE * 4)


def test_the_previous_file_is_kept_and_the_one_before_that_is_gone(file: Path) -> None:
    journal = JournalFile(file, 100)

    for line in (b"1" * 99, b"2" * 99, b"3" * 99, b"4"):
        journal.append(line + b"\n")

    journal.close()
    assert previous(file).read_bytes() == b"3" * 99 + b"\n"
    assert file.read_bytes() == b"4\n"
    assert {each.name for each in file.parent.iterdir()} == {"calls.jsonl", "calls.jsonl.1"}
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_reader_gets_both_files_the_older_one_first(file: Path) -> None:
    with Journal(file, limit_bytes=1_000) as journal:
        for number in range(10):
            journal.note(verb="tool", size_bytes=number)
            journal.flush()

    assert previous(file).exists()
    assert [call.size_bytes for call in read_journal(file)] == list(range(10))


def test_a_file_that_is_renamed_while_it_is_opened_is_read_once(file: Path) -> None:
    with Journal(file) as journal:
        journal.note(verb="tool")
    os.link(file, previous(file))  # as it looks between the two openings of a reader

    assert len(list(read_journal(file))) == 1


def test_two_processes_lose_no_line_where_the_file_is_renamed_between(file: Path) -> None:
    left = _written(file, 500_000)

    assert previous(file).exists()
    assert left == {"a": list(range(2_000)), "b": list(range(2_000))}


def test_of_many_files_that_two_processes_fill_the_newest_lines_are_left_whole(
    file: Path,
) -> None:
    left = _written(file, 20_000)

    sizes = [file.stat().st_size, previous(file).stat().st_size]
    lines = [line for each in (previous(file), file) for line in each.read_bytes().splitlines()]
    assert all(parse_call(line) for line in lines)
    assert 20_000 <= sizes[1] < 100_000
    assert sizes[0] < 100_000
    assert 1_999 in left["a"] + left["b"]
    for numbers in left.values():  # what is gone are the oldest
        assert numbers == list(range(2_000))[-len(numbers) :] or not numbers


def test_while_another_process_writes_a_file_is_not_renamed(file: Path) -> None:
    journal = JournalFile(file, 100)
    writing = os.open(file, os.O_RDONLY)
    fcntl.flock(writing, fcntl.LOCK_SH)

    journal.append(_LINE)
    journal.append(_LINE)
    assert not previous(file).exists()

    os.close(writing)
    journal.append(_LINE)
    journal.close()
    assert previous(file).read_bytes() == _LINE * 2
    assert file.read_bytes() == _LINE


def test_a_file_that_somebody_removed_is_begun_anew(file: Path) -> None:
    journal = JournalFile(file, 10_000)
    journal.append(_LINE)
    file.unlink()

    journal.append(b"later\n")

    journal.close()
    assert file.read_bytes() == b"later\n"


def test_a_symlink_stays_and_what_it_leads_to_is_renamed(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "disk" / "real.jsonl"
    real.parent.mkdir()
    file.symlink_to(real)
    with Journal(file, limit_bytes=100) as journal:
        journal.note(verb="tool", size_bytes=1)
        journal.flush()
        journal.note(verb="tool", size_bytes=2)

    assert file.is_symlink()
    assert [call.size_bytes for call in read_journal(file)] == [1, 2]
    assert {each.name for each in real.parent.iterdir()} == {"real.jsonl", "real.jsonl.1"}


def test_where_it_cannot_be_renamed_it_grows_and_loses_nothing(file: Path) -> None:
    previous(file).mkdir()
    journal = Journal(file, limit_bytes=100)
    for number in range(3):
        journal.note(verb="tool", size_bytes=number)
        journal.flush()

    journal.close()
    assert journal.dropped == 0
    assert [call.size_bytes for call in read_journal(file)] == [0, 1, 2]


@pytest.mark.parametrize("limit_bytes", [0, -1])
def test_a_limit_is_more_than_nothing(file: Path, limit_bytes: int) -> None:
    with pytest.raises(ValueError, match="limit_bytes"):
        Journal(file, limit_bytes=limit_bytes)
    assert not file.exists()
