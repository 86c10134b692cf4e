"""`coatcheck stats` and `coatcheck log`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from coatcheck.bank import Journal
from coatcheck.testing import ManualClock

from .conftest import Run

A = "art:00000000-0000-4000-8000-00000000000a"
B = "art:00000000-0000-4000-8000-00000000000b"


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "calls.jsonl"
    monkeypatch.setenv("COATCHECK_JOURNAL", str(file))
    with Journal(file, clock=ManualClock(1_700_000_000)) as opened:
        opened.note(
            verb="tool", tool="rows", run="r1", pointers_out=(A,), tokens=9_000, shown_tokens=300
        )
        opened.note(
            verb="query",
            tool="retrieve_context",
            run="r1",
            pointers_in=(f"{A}#/items",),
            pointers_out=(B,),
            shown_tokens=200,
        )
        opened.note(verb="tool", tool="bad\x1b[2J", run="r2", size_bytes=7, is_error=True)
    return file


def test_stats_add_up_each_tool_and_run(coatcheck: Run, journal: Path) -> None:
    done = coatcheck("stats", "--json")
    of_one_run = coatcheck("stats", "--json", "--run", "r2")

    assert [one["keptOutTokens"] for one in done.json["tools"]] == [8_700, 0, -200]
    assert done.json["total"]["keptOutTokens"] == 8_500
    assert of_one_run.json["total"]["calls"] == 1


def test_stats_in_a_pipe_are_fields_apart_by_tabs(coatcheck: Run, journal: Path) -> None:
    done = coatcheck("stats")

    assert done.text.splitlines()[0].split("\t") == [
        *("rows", "r1", "1", "1", "0", "9000", "300", "0", "0", "8700")
    ]
    assert "8,500 tokens kept out" in done.err
    assert "\x1b" not in done.text


def test_log_shows_the_newest_calls_with_what_they_were_given_and_banked(
    coatcheck: Run, journal: Path
) -> None:
    done = coatcheck("log", "--limit", "2")

    lines = done.text.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("2023-11-14T22:13:20+00:00\tr1\tretrieve_context query\t")
    assert lines[0].endswith(f"{A}#/items → {B}")
    assert "FAILED" in lines[1]
    assert "\x1b" not in lines[1]


def test_log_of_a_pointer_is_its_lineage(coatcheck: Run, journal: Path) -> None:
    done = coatcheck("log", A)
    as_json = coatcheck("log", A, "--json")

    assert len(done.text.splitlines()) == 2
    assert f"made of it: {B}" in done.err
    assert [json.loads(line)["verb"] for line in as_json.text.splitlines()] == ["tool", "query"]
    assert "nothing was made of it" in coatcheck("log", B).err


def test_log_follows_what_other_processes_note(journal: Path) -> None:
    command = [sys.executable, "-m", "coatcheck.apps.cli", "log", "--follow", "--limit", "1"]
    with subprocess.Popen(
        [*command, "--journal", str(journal)], stdout=subprocess.PIPE, text=True
    ) as follower:
        out = follower.stdout
        assert out is not None
        first = out.readline()
        with Journal(journal) as opened:
            opened.note(verb="tool", tool="later")
        second = out.readline()
        follower.terminate()

    assert "FAILED" in first
    assert "\tlater\t" in second


def test_log_follows_a_journal_that_is_full_into_the_next_file(journal: Path) -> None:
    command = [sys.executable, "-m", "coatcheck.apps.cli", "log", "--follow", "--limit", "1"]
    with subprocess.Popen(
        [*command, "--journal", str(journal)], stdout=subprocess.PIPE, text=True
    ) as follower:
        out = follower.stdout
        assert out is not None
        out.readline()
        with Journal(journal, limit_bytes=1) as opened:
            opened.note(verb="tool", tool="later")
        shown = out.readline()
        follower.terminate()

    assert "\tlater\t" in shown


def test_stats_and_log_read_what_was_noted_before_the_journal_was_full(
    coatcheck: Run, journal: Path
) -> None:
    with Journal(journal, limit_bytes=1) as opened:
        opened.note(verb="tool", tool="late", pointers_in=(A,))

    assert len(list(journal.parent.iterdir())) == 2
    assert coatcheck("stats", "--json").json["total"]["calls"] == 4
    assert len(coatcheck("log", A).text.splitlines()) == 3
    assert f"made of it: {B}" in coatcheck("log", A).err


def test_stats_say_why_a_row_is_below_zero_and_only_then(coatcheck: Run, journal: Path) -> None:
    below, above = coatcheck("stats"), coatcheck("stats", "--run", "r2")

    assert "-200" in below.text
    assert "below 0 where" in " ".join(below.err.split())
    assert "below 0" not in above.err


def test_a_journal_that_is_not_there_is_wrong_usage(coatcheck: Run, tmp_path: Path) -> None:
    missing = coatcheck("stats", "--journal", str(tmp_path / "none"), "--json")
    no_pointer = coatcheck("log", "report", "--json")

    assert (missing.code, no_pointer.code) == (2, 2)
    assert "open_bank" in missing.failure["hint"]


@pytest.mark.parametrize("command", ["stats", "log"])
def test_where_no_call_is_told_it_is_said_why(
    coatcheck: Run, journal: Path, tmp_path: Path, command: str
) -> None:
    other, fresh = tmp_path / "notes.txt", tmp_path / "fresh.jsonl"
    other.write_text("no call\n")
    fresh.touch()

    assert "none of the calls" in coatcheck(command, "--run", "r3").err
    assert "is no journal" in coatcheck(command, "--journal", str(other)).err
    assert coatcheck("log", A[:-1] + "c").err.splitlines() == [
        "none of the calls in the journal is one that was asked for"
    ]
    for told in (coatcheck(command), coatcheck(command, "--journal", str(fresh))):
        assert "none of the calls" not in told.err
        assert "is no journal" not in told.err


def test_stats_are_drawn_where_someone_looks(in_terminal: Run, journal: Path) -> None:
    done = in_terminal("stats", columns=120)

    headers = re.sub(r"\x1b\[[0-9;]*m", "", done.text).splitlines()[1].split()
    assert (headers[:2], headers[-1]) == (["Tool", "Run"], "out")
    assert "rows" in done.text
    assert "█" in done.text


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_no_number_of_stats_is_cut_however_narrow_the_terminal_is(
    in_terminal: Run, tmp_path: Path, columns: int
) -> None:
    file = tmp_path / "many.jsonl"
    with Journal(file, clock=ManualClock(1_700_000_000)) as opened:
        for tool in ("git_git_show_of_a_long_name", "x"):
            facts = {"size_bytes": 5_123_456, "tokens": 17_028_000, "shown_tokens": 147_600}
            opened.note(verb="tool", tool=tool, **facts)
        opened.note(verb="read", tool="retrieve_context", shown_tokens=112_200)

    done = in_terminal("stats", "--journal", str(file), columns=columns)

    table = re.sub(r"\x1b\[[0-9;]*m", "", done.text).splitlines()
    assert max(map(len, table)) <= columns
    assert "…" not in " ".join(line[line.find(" ") :] for line in table)
    assert sum("17,028,000" in line for line in table) == 2
    assert sum("34,056,000" in line for line in table) == 1
    assert sum("33,648,600" in line for line in table) == 1
    assert any(" 112,200 " in line for line in table) == (columns > 60)


def test_stats_draw_no_column_in_which_there_is_nothing(in_terminal: Run, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    with Journal(file, clock=ManualClock(1_700_000_000)) as opened:
        opened.note(verb="tool", tool="rows", tokens=9_000)

    done = in_terminal("stats", "--journal", str(file), columns=200)

    assert "Run" not in done.text
    assert "Failed" not in done.text
    assert "█" in done.text


def test_log_is_drawn_where_someone_looks(in_terminal: Run, journal: Path) -> None:
    done = in_terminal("log", columns=120)

    assert "\t" not in done.text
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.text).splitlines()
    assert lines[0] == "2023-11-14 22:13:20  rows  0 B  9,000 → 300 tokens  run r1"
    assert lines[1] == f"  → {A}"
    assert lines[3:5] == [f"  ← {A}#/items", f"  → {B}"]
    assert "FAILED" in lines[5]
    assert "[2J" not in done.text


def test_log_tells_a_scope_that_is_not_the_default(coatcheck: Run, tmp_path: Path) -> None:
    file = tmp_path / "scoped.jsonl"
    with Journal(file, clock=ManualClock(1_700_000_000)) as opened:
        opened.note(verb="tool", tool="rows", scope="local-1", pointers_out=(A,))
        opened.note(verb="tool", tool="rows")

    done = coatcheck("log", "--journal", str(file))

    first, second = done.text.splitlines()
    assert first.endswith(f"{A}\tscope local-1")
    assert "scope" not in second


def test_stats_and_log_take_the_calls_of_one_scope(coatcheck: Run, tmp_path: Path) -> None:
    file = tmp_path / "scoped.jsonl"
    with Journal(file, clock=ManualClock(1_700_000_000)) as opened:
        opened.note(verb="tool", tool="rows", scope="local-1", run="r1", tokens=9_000)
        opened.note(verb="tool", tool="late", scope="local-1")
        opened.note(verb="tool", tool="rows", run="r1", tokens=5)

    stats = coatcheck("stats", "--journal", str(file), "--scope", "local-1", "--json")
    of_a_run = coatcheck(
        "stats", "--journal", str(file), "--scope", "local-1", "--run", "r1", "--json"
    )
    log = coatcheck("log", "--journal", str(file), "--scope", "local-1")

    assert stats.json["total"]["resultTokens"] == 9_000
    assert [one["calls"] for one in (stats.json["total"], of_a_run.json["total"])] == [2, 1]
    assert [line.split("\t")[2] for line in log.text.splitlines()] == ["rows", "late"]
