"""Each command, for people and for programs, and every exit code."""

import base64
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text

from coatcheck import BlockingBank, is_pointer

from .conftest import Run

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
HOSTILE = (
    b"ok \x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x08end\r\nnext \xc2\x9b31m \xe2\x80\xaeback\n"
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "server.log"
    path.write_text("".join(f"line {n}\n" for n in range(1, 1_001)))
    return str(path)


def test_put_prints_the_pointer_alone_and_keeps_every_byte(coatcheck: Run, log: str) -> None:
    done = coatcheck("put", log)

    assert done.code == 0
    pointer = done.text.removesuffix("\n")
    assert is_pointer(pointer)
    assert coatcheck("read", pointer, "--all").out == Path(log).read_bytes()
    assert "8.9 kB (8,893 bytes), text/plain" in done.err


def test_put_as_json_gives_all_facts_under_the_same_keys(coatcheck: Run, log: str) -> None:
    done = coatcheck("put", log, "--name", "log", "--kind", "report", "--ttl", "3600", "--json")

    facts: dict[str, Any] = done.json
    assert list(facts) == [
        "pointer", "name", "label", "kind", "contentType", "sizeBytes", "lengthChars", "preview",
        "glimpse", "note", "storedAt", "expiresAt", "digest", "source", "tool", "run",
    ]  # fmt: skip
    assert (facts["name"], facts["kind"], facts["sizeBytes"]) == ("log", "report", 8_893)
    assert facts["label"] == "server.log"
    assert facts["note"] == f'retrieve_context({{"artifactId":"{facts["pointer"]}"}})'
    assert facts["expiresAt"] > facts["storedAt"]
    assert done.err == ""
    assert coatcheck("show", "log", "--json").json == facts
    assert coatcheck("ls", "--json").json == [facts]


def test_put_reads_standard_input(coatcheck: Run) -> None:
    pointer = coatcheck("put", "--label", "from a pipe", given=b'{"a": 1}').text.strip()

    facts = coatcheck("show", pointer, "--json").json
    assert facts["contentType"] == "application/json"
    assert facts["label"] == "from a pipe"
    assert coatcheck("put", "-", given=b"\xff").code == 0


def test_put_takes_the_content_type_it_is_given(coatcheck: Run, log: str) -> None:
    assert (
        coatcheck("put", log, "--content-type", "text/x-log", "--json").json["contentType"]
        == "text/x-log"
    )


def test_put_takes_a_file_whose_name_is_not_text(coatcheck: Run, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/na\xffme.txt")
    Path(path).write_text("inside")

    facts = coatcheck("put", path, "--json").json

    assert facts["label"] == "na\ufffdme.txt"
    assert facts["preview"] == "inside"


def test_put_of_what_cannot_be_read_is_wrong_usage(coatcheck: Run, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        done = coatcheck("put", str(path), "--json")
        assert done.code == 2
        assert done.failure["error"] == "invalid-argument"
        assert "cannot be read" in done.failure["message"]
    assert coatcheck("put", "a\0b").code == 2


def test_put_of_a_bad_name_or_time_is_wrong_usage(coatcheck: Run, log: str) -> None:
    assert coatcheck("put", log, "--name", UNKNOWN).code == 2
    assert coatcheck("put", log, "--ttl", "-1").code == 2
    assert coatcheck("put", log, "--ttl", "soon").code == 2
    assert coatcheck("ls", "--json").code == 1


def test_large_put_in_a_terminal_shows_its_progress(in_terminal: Run) -> None:
    done = in_terminal("put", "-", given=b"x" * 16 * 1024 * 1024)

    assert done.code == 0
    assert is_pointer(done.text.strip())
    assert "16.8/16.8 MB" in done.err


def test_ls_in_a_pipe_is_a_line_each_newest_first(coatcheck: Run) -> None:
    first = coatcheck("put", "-", "--kind", "log", given=b"one\ntwo\t!").text.strip()
    second = coatcheck("put", "-", "--name", "b", given=b"three").text.strip()

    lines = [line.split("\t") for line in coatcheck("ls").text.splitlines()]

    assert [line[0] for line in lines] == [second, first]
    assert lines[0][5:] == ["b", "three"]
    assert (lines[1][1], lines[1][3], lines[1][6]) == ("9", "log", "one↵two !")
    assert [line[:44] for line in coatcheck("ls", "--kind", "log").text.splitlines()] == [
        f"{first}\t9\t2"
    ]


def test_ls_says_where_there_is_more(coatcheck: Run) -> None:
    for text in (b"one", b"two"):
        coatcheck("put", "-", given=text)

    assert "--limit" in coatcheck("ls", "--limit", "1").err
    assert coatcheck("ls", "--limit", "2").err == ""
    assert coatcheck("ls", "--limit", "0").code == 2


def test_ls_of_nothing_says_so(coatcheck: Run, in_terminal: Run) -> None:
    coatcheck("put", "-", "--scope", "other", given=b"one")

    assert coatcheck("ls", "--json").json == []
    assert coatcheck("ls").text == ""
    assert "nothing is banked here" in coatcheck("ls").err
    assert in_terminal("ls").out == b""


@pytest.mark.parametrize("columns", [80, 120])
def test_ls_in_a_terminal_never_cuts_a_pointer(
    coatcheck: Run, in_terminal: Run, columns: int
) -> None:
    pointer = coatcheck(
        "put", "-", "--name", "表" * 60, given="日本語の表 ".encode() * 99
    ).text.strip()

    table = in_terminal("ls", columns=columns).text

    assert pointer in table
    assert "1,584" in table
    assert "表表" in table
    assert ("日本語の表" in table) == (columns == 120)
    assert all(cell_len(Text.from_ansi(line).plain) <= columns for line in table.splitlines())


def test_show_in_a_terminal_has_facts_glimpse_and_preview(coatcheck: Run, in_terminal: Run) -> None:
    rows = b"[" + b",".join(b'{"id":%d}' % n for n in range(3_000)) + b"]"
    coatcheck("put", "-", "--name", "rows", "--ttl", "60", given=rows)

    shown = in_terminal("show", "rows").text

    for part in (
        "application/json",
        "glimpse",
        "3,000",
        "preview",
        "coatcheck read art:",
        "expires",
    ):
        assert part in shown


def test_show_reads_on_in_the_store_and_scope_it_was_asked_for(
    coatcheck: Run, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    coatcheck("put", "-", "--name", "rows", "--scope", "b c", given=b"[1, 2]")
    pointer = coatcheck("ls", "--scope", "b c", "--json").json[0]["pointer"]

    for where in (["--scope", "b c"], ["--scope", "b c", "--store", store]):
        lines = coatcheck("show", f"{pointer}#$[1]", *where).text.splitlines()
        (line,) = (line for line in lines if line.startswith("read on"))
        program, *command = shlex.split(line.removeprefix("read on"))
        assert program == "coatcheck"
        assert coatcheck(*command).text == "2"


def test_show_of_bytes_has_no_preview(coatcheck: Run) -> None:
    coatcheck("put", "-", "--name", "bytes", given=b"\x00\xff")

    assert "preview" not in coatcheck("show", "bytes").text


@pytest.mark.parametrize("part", ["records", "payloads"])
def test_what_is_damaged_is_told_with_the_command_that_removes_it(
    coatcheck: Run, tmp_path: Path, part: str
) -> None:
    coatcheck("put", "-", "--name", "torn", given=b"whole")
    (torn,) = (tmp_path / "store" / "s" / "default" / part).iterdir()
    torn.write_bytes(b"x")

    done = coatcheck("read", "torn", "--json")

    assert done.code == 3
    assert "`coatcheck rm`" in done.failure["hint"]
    assert coatcheck("rm", "torn").code == 0
    assert coatcheck("read", "torn").code == 1


@pytest.mark.parametrize("command", [["show"], ["read"], ["search"]])
def test_unknown_pointer_is_not_found(coatcheck: Run, command: list[str]) -> None:
    more = ["x"] if command == ["search"] else []
    coatcheck("put", "-", "--name", "near", given=b"x")

    done = coatcheck(*command, UNKNOWN, *more, "--json")

    assert (done.code, done.out) == (1, b"")
    assert done.failure["error"] == "unknown-pointer"
    assert "coatcheck ls" in done.failure["hint"]
    assert "coatcheck ls" in coatcheck(*command, "nears", *more).err


async def test_expired_pointer_is_not_found_and_says_that_it_expired(
    coatcheck: Run, store: str
) -> None:
    with BlockingBank(store) as bank:
        pointer = bank.put("gone", ttl_seconds=0.000_001).pointer

    done = coatcheck("show", pointer, "--json")

    assert done.code == 1
    assert done.failure["error"] == "expired"


def test_read_gives_a_window_and_says_where_it_goes_on(coatcheck: Run, log: str) -> None:
    coatcheck("put", log, "--name", "log")

    done = coatcheck("read", "log", "--offset", "5", "--limit", "8")

    assert done.out == b"1\nline 2"
    assert done.err == "characters 5-13 of 8,893; next: --offset 13\n"


def test_read_by_lines_counts_from_one_and_includes_the_last(coatcheck: Run, log: str) -> None:
    coatcheck("put", log, "--name", "log")

    done = coatcheck("read", "log", "--lines", "10-12")

    assert done.out == b"line 10\nline 11\nline 12\n"
    assert done.err == "lines 10-12 of 1,000; next: --unit lines --offset 12\n"
    assert coatcheck("read", "log", "--lines", "1000").out == b"line 1000\n"
    assert coatcheck("read", "log", "--lines", "1000").err == "lines 1,000-1,000 of 1,000\n"
    assert coatcheck("read", "log", "--unit", "lines", "--offset", "1000").err == (
        "nothing from lines 1,001 on: there are 1,000\n"
    )


def test_read_of_a_line_longer_than_a_page_goes_on_by_characters(coatcheck: Run) -> None:
    coatcheck("put", "-", "--name", "long", given=b"x" * 200_001)

    done = coatcheck("read", "long", "--lines", "1")

    assert len(done.out) == 200_000
    assert done.err.endswith("next: --offset 200000\n")
    assert coatcheck("read", "long", "--lines", "1", "--json").json["nextOffsetChars"] == 200_000


def test_read_as_json_has_the_keys_that_models_see(coatcheck: Run) -> None:
    coatcheck("put", "-", "--name", "text", given="né\n".encode())

    assert coatcheck("read", "text", "--limit", "1", "--json").json == {
        "content": "n",
        "totalSize": 3,
        "hasMore": True,
        "offset": 0,
        "limit": 1,
        "unit": "chars",
        "nextOffset": 1,
        "nextOffsetChars": 1,
    }


def test_read_of_bytes_is_exact(coatcheck: Run) -> None:
    payload = bytes(range(256)) * 8_000
    coatcheck("put", "-", "--name", "bytes", given=payload)

    assert coatcheck("read", "bytes", "--all").out == payload
    window = coatcheck("read", "bytes", "--unit", "bytes", "--offset", "100", "--limit", "300")
    assert window.out == payload[100:400]
    assert window.err.endswith("next: --unit bytes --offset 400\n")
    page = coatcheck("read", "bytes", "--unit", "bytes", "--limit", "3", "--json").json
    assert base64.b64decode(page["contentBase64"]) == payload[:3]


def test_read_of_bytes_as_text_is_wrong_usage_and_says_what_to_do(coatcheck: Run) -> None:
    coatcheck("put", "-", "--name", "bytes", given=b"\x00\xff")

    done = coatcheck("read", "bytes", "--json")

    assert (done.code, done.out) == (2, b"")
    assert done.failure["error"] == "binary"
    assert "--unit bytes" in done.failure["hint"]


@pytest.mark.parametrize(
    "window",
    [
        ["--offset", "-1"],
        ["--limit", "0"],
        ["--limit", "many"],
        ["--unit", "pages"],
        ["--lines", "0"],
        ["--lines", "7-6"],
        ["--lines", "a-b"],
        ["--lines", "5-"],
        ["--lines", ""],
        ["--lines", "1", "--offset", "3"],
        ["--all", "--limit", "3"],
        ["--all", "--lines", "1"],
        ["--all", "--json"],
    ],
)
def test_bad_window_is_wrong_usage(coatcheck: Run, window: list[str]) -> None:
    coatcheck("put", "-", "--name", "text", given=b"text")

    done = coatcheck("read", "text", *window)

    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(("coatcheck: ", "{"))


def test_hostile_text_cannot_drive_a_terminal_but_passes_a_pipe_whole(
    coatcheck: Run, in_terminal: Run
) -> None:
    coatcheck("put", "-", "--name", "hostile", "--label", "\x1b[2J\u202e", given=HOSTILE)

    assert coatcheck("read", "hostile").out == HOSTILE
    for command in (["read"], ["read", "--all"], ["read", "--unit", "bytes"], ["show"]):
        shown = in_terminal(command[0], "hostile", *command[1:]).text
        assert "red" in shown
        assert not set(shown) & set("\x07\x08\r\x9b\u202e")
        assert "\x1b]" not in shown
        assert "\x1b[2J" not in shown
    for done in (in_terminal("ls"), in_terminal("search", "hostile", "end")):
        assert not set(done.text) & set("\x07\x08\r\x9b\u202e")
        assert "\x1b[2J" not in done.text


def test_read_in_a_terminal_ends_its_last_line(coatcheck: Run, in_terminal: Run) -> None:
    coatcheck("put", "-", "--name", "text", given=b"no end")

    assert in_terminal("read", "text").out == b"no end\n"
    assert coatcheck("read", "text").out == b"no end"


def test_search_prints_line_offset_and_snippet(coatcheck: Run, log: str) -> None:
    coatcheck("put", log, "--name", "log")

    done = coatcheck("search", "log", "LINE 77", "--limit", "2")

    text = Path(log).read_text()
    lines = done.text.splitlines()
    assert lines[0].startswith(f"77:{text.index('line 77')}: ")
    assert "↵line 77↵" in lines[0]
    assert lines[1].startswith("770:")
    assert done.err == f"2 of 11 matches; next: --offset {text.index('line 771')}\n"
    assert coatcheck("search", "log", "LINE 77", "--case-sensitive").err == "no match\n"
    assert (
        coatcheck("search", "log", "line 77", "--offset", str(text.index("line 771"))).err
        == "9 of 9 matches\n"
    )


def test_search_as_json_has_the_keys_that_models_see(coatcheck: Run, log: str) -> None:
    coatcheck("put", log, "--name", "log")

    found = coatcheck("search", "log", "line 77", "--limit", "1", "--json").json

    assert {key: found[key] for key in found if key != "matches"} == {
        "matchCount": 1,
        "totalMatches": 11,
        "truncated": True,
        "nextSearchOffset": Path(log).read_text().index("line 770"),
    }
    assert list(found["matches"][0]) == ["offset", "line", "snippetOffset", "snippet"]
    assert "nextSearchOffset" not in coatcheck("search", "log", "line 999", "--json").json


def test_search_outside_its_rules_is_wrong_usage(coatcheck: Run, log: str) -> None:
    coatcheck("put", log, "--name", "log")

    assert coatcheck("search", "log", "").code == 2
    assert coatcheck("search", "log", "x" * 201).code == 2
    assert coatcheck("search", "log", "x", "--offset", "-1").code == 2


@pytest.mark.parametrize(
    ("text", "needle", "flags", "hit"),
    [
        ("Große STRASSE", "strasse", [], "STRASSE"),
        ("eine Straße hier", "strasse", [], "Straße"),
        ("ends in STRA", "stra", [], "STRA"),
        ("Case case", "case", ["--case-sensitive"], "case"),
    ],
)
def test_hit_is_marked_in_a_terminal(
    coatcheck: Run, in_terminal: Run, text: str, needle: str, flags: list[str], hit: str
) -> None:
    coatcheck("put", "-", "--name", "text", given=text.encode())

    assert f"\x1b[1;7m{hit}\x1b[0m" in in_terminal("search", "text", needle, *flags).text


def test_rm_removes_what_is_there_and_reports_what_is_not(coatcheck: Run) -> None:
    first = coatcheck("put", "-", given=b"one").text.strip()
    coatcheck("put", "-", "--name", "two", given=b"two")

    done = coatcheck("rm", first, UNKNOWN, "two", "two")

    assert done.code == 1
    assert done.text == f"{first}\ntwo\n"
    assert UNKNOWN in done.err
    assert coatcheck("ls", "--json").json == []


def test_rm_as_json_names_both(coatcheck: Run) -> None:
    pointer = coatcheck("put", "-", given=b"one").text.strip()

    done = coatcheck("rm", pointer, UNKNOWN, "--json")

    assert (done.code, done.json) == (1, {"removed": [pointer], "missing": [UNKNOWN]})
    assert done.failure["error"] == "unknown-pointer"
    again = coatcheck("put", "-", given=b"one").text.strip()
    assert coatcheck("rm", again).code == 0


def test_scopes_do_not_see_each_other(coatcheck: Run) -> None:
    pointer = coatcheck("put", "-", "--scope", "mine", given=b"one").text.strip()

    assert coatcheck("read", pointer, "--scope", "mine").out == b"one"
    assert coatcheck("read", pointer).code == 1
    assert coatcheck("ls", "--scope", "").code == 2


@pytest.mark.parametrize(
    "command",
    [["put", "-"], ["ls"], ["show", "x"], ["read", "x"], ["search", "x", "y"], ["rm", "x"]],
)
def test_store_that_fails_ends_with_three(
    coatcheck: Run, tmp_path: Path, command: list[str]
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("a file where the folder should be")

    done = coatcheck(*command, "--store", f"file:{in_the_way}", "--json")

    assert (done.code, done.out) == (3, b"")
    assert done.failure["error"] == "store-unavailable"
    assert str(in_the_way) in done.failure["hint"]


def test_address_of_no_store_is_wrong_usage(coatcheck: Run) -> None:
    assert coatcheck("ls", "--store", "ftp:x").code == 2
    assert coatcheck("ls", "--store", "").code == 2


def test_an_empty_scope_says_what_others_hold(coatcheck: Run) -> None:
    for _ in range(2):
        coatcheck("put", "-", "--scope", "local-1", given=b"one")
    one = coatcheck("put", "-", "--scope", "a chat", given=b"two")

    done = coatcheck("ls")
    nowhere = coatcheck("ls", "--scope", "local-1", "--kind", "none")

    assert done.out == b""
    assert "nothing is banked here; 3 artifacts in 2 other scopes: " in done.err
    assert "--scope local-1 (2), --scope 'a chat' (1)" in done.err
    assert "1 artifact in 1 other scope: --scope 'a chat' (1)" in nowhere.err
    assert one.text.strip() not in done.err


@pytest.mark.parametrize("command", ["show", "read"])
def test_other_scopes_are_named_whether_or_not_they_hold_what_was_asked_for(
    coatcheck: Run, command: str
) -> None:
    put = coatcheck("put", "-", "--scope", "local-1", "--name", "far", given=b"one\ntwo\n")
    pointer = put.text.strip()

    for asked in (pointer, f"{pointer}#L1", "far"):
        done = coatcheck(command, asked)

        assert (done.code, done.out) == (1, b"")
        assert "Other scopes: --scope local-1." in done.err
    assert "Other scopes: --scope local-1." in coatcheck(command, "nothing").err


@pytest.mark.parametrize("command", ["show", "read"])
def test_a_name_with_a_selector_is_answered_with_its_pointer(coatcheck: Run, command: str) -> None:
    pointer = coatcheck("put", "-", "--name", "nd", given=b"one\ntwo\n").text.strip()

    done = coatcheck(command, "nd#L1")

    assert done.code == 1
    assert f"A name takes no selector, its pointer does: '{pointer}#L1'" in done.err


def test_what_was_put_is_told_as_it_is_written(coatcheck: Run) -> None:
    done = coatcheck("put", "-", given=b"one\n" * 2_000 + b"see `ls`\n")

    assert "`ls`" in done.err
    assert "x60" not in done.err
