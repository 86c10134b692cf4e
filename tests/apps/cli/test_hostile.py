"""Whatever an artifact, a journal or an argument holds: no command lets it drive a terminal."""

import asyncio
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from coatcheck import Bank, BlockingBank
from coatcheck.apps.cli._program import app
from coatcheck.bank import Journal
from coatcheck.stores import FileStore

from .conftest import Done, Run

BIDI = "\u202e\u202d\u2066\u2067\u2069\u200f\u061c"
CONTROLS = "\x07\x08\x0b\x0c\r\x7f\x00\x84\x85\x90\x9b\x9c\x9d\u2028\u2029"
SEQUENCES = (
    "\x1b]0;title\x07 \x1b]52;c;cm0=\x1b\\ \x1b[2J \x1b[58;5;199m \x1bc \x1b]8;;https://evil.example\x1b\\"
    "click\x1b]8;;\x1b\\ \x1bPq\x1b\\ \x9b58;5;199m \x9d0;title\x9c"
)
MARKUP = "[link=https://evil.example]click[/link] [red]red[/] [/] :warning:"
FORGED = "art:00000000-0000-4000-8000-0000000f0f0f"
HOSTILE = "".join(f"{end}{FORGED}\tforged" for end in ("\n", *CONTROLS)) + SEQUENCES + BIDI + MARKUP
NAME = f"name\u202e\u2028{FORGED}\u2029{FORGED}{MARKUP}"
"""A name has no control characters; all else it may have."""
SCOPE = f"scope{HOSTILE}"

_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\r(?:\x1b\[1A)*\x1b\[2K")
"""Colours, and what draws a progress bar."""
_DRIVES = re.compile("[^\n\t -~\u00a0-\U0010ffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in the store that all commands are run on, and the journal beside it."""

    pointers: dict[str, str]
    journal: Path

    def __getitem__(self, what: str) -> str:
        return self.pointers[what]

    def file(self, name: str, text: str) -> str:
        """Write a file beside the journal, and return its path."""
        file = self.journal.parent / name
        file.write_text(text)
        return str(file)


PAYLOADS: dict[str, object] = {
    "text": HOSTILE * 3,
    "bytes": HOSTILE.encode() + b"\xff",
    "rows": [{HOSTILE: HOSTILE, "n": number, MARKUP: [HOSTILE]} for number in range(12)],
    "csv": f'"{MARKUP}","a\x1b[2J\u202e"\n' + '"x\x1b]0;t\x07","y\x9b2J"\n' * 30,
    "tree": {HOSTILE: {"deep": [HOSTILE, {MARKUP: HOSTILE}]}},
    "log": "".join(
        f"2026-01-02T03:04:{second:02} {level} {HOSTILE!r} {SEQUENCES}\n"
        for second in range(60)
        for level in ("INFO", "ERROR")
    ),
}


async def filled(folder: str) -> dict[str, str]:
    """Bank each payload with every label of it hostile; return the pointers."""
    bank = Bank(FileStore(folder))
    await bank.scoped(SCOPE).put("x", name=NAME)
    pointers: dict[str, str] = {}
    for what, payload in PAYLOADS.items():
        artifact = await bank.put(
            payload,
            name=f"{what} {NAME}",
            label=HOSTILE,
            kind=HOSTILE,
            tool=HOSTILE,
            run=HOSTILE,
            source={HOSTILE: HOSTILE},
            content_type="text/csv" if what == "csv" else None,
        )
        pointers[what] = artifact.pointer
    return pointers


@pytest.fixture
def stored(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stored:
    pointers = asyncio.run(filled(store.removeprefix("file:")))
    journal = tmp_path / "calls.jsonl"
    monkeypatch.setenv("COATCHECK_JOURNAL", str(journal))
    with Journal(journal) as opened:
        for verb in ("tool", "read", HOSTILE):
            opened.note(
                verb=verb,
                tool=HOSTILE,
                run=HOSTILE,
                scope=SCOPE,
                pointers_in=(pointers["text"], HOSTILE),
                pointers_out=(HOSTILE,),
                tokens=9_000,
            )
    return Stored(pointers, journal)


LISTING = Path(__file__).parent / "listing_server.py"
TOOL = {"name": HOSTILE, "description": HOSTILE, "inputSchema": {"type": "object"}}
LISTS = [sys.executable, "-I", "-S", str(LISTING), json.dumps([TOOL])]
"""A server whose only tool is hostile."""


def servers(stored: Stored, *, remote: bool = False, starts: bool = False) -> str:
    """Return a file of servers with hostile names, of which one starts, or all are elsewhere."""
    command = {"command": LISTS[0], "args": LISTS[1:]} if starts else {"command": HOSTILE}
    entries: dict[str, object] = {
        HOSTILE: command | {"env": {HOSTILE: HOSTILE}},
        NAME: {"command": NAME, "args": [HOSTILE]},
        f"far{HOSTILE}": {"url": "https://example.org/mcp", "headers": {"X": HOSTILE}},
    }
    chosen = {name: each for name, each in entries.items() if remote or name == HOSTILE}
    return stored.file("servers.json", json.dumps({"mcpServers": chosen}))


def proxied(stored: Stored) -> list[list[str]]:
    """Return calls of a proxy that start none, or one whose client has gone already."""
    settings = (
        HOSTILE,
        f"{json.dumps(NAME)} = 1",
        f"inline_bytes = {json.dumps(HOSTILE)}",
        f"[tools.{json.dumps(HOSTILE)}]\nexclude = 1",
        f"[principals]\n{json.dumps(HOSTILE)} = 'NOT_SET'",
    )
    named = [stored.file(f"{at}.toml", text) for at, text in enumerate(settings)]
    unknown = json.dumps({"mcpServers": {HOSTILE: {"command": "x", "args": HOSTILE}}})
    unset = json.dumps({"mcpServers": {HOSTILE: {"command": "${NOT_SET}", "url": HOSTILE}}})
    return [
        [HOSTILE],
        ["--", HOSTILE, HOSTILE],
        ["--dry-run", "--", HOSTILE],
        ["--scope", SCOPE, "--", *LISTS],
        ["--config", servers(stored)],
        ["--config", servers(stored, remote=True)],
        ["--config", HOSTILE],
        ["--config", stored.file("unknown.json", unknown)],
        ["--config", stored.file("unset.json", unset)],
        ["--config", stored.file("text.json", HOSTILE)],
        *(["--settings", file, "--http", "127.0.0.1:0", "--", "x"] for file in named),
        ["--settings", HOSTILE, "--", "x"],
        ["--http", HOSTILE, "--", "x"],
        ["--store", f"nothing{HOSTILE}:x", "--", "x"],
        ["--journal", HOSTILE, "--", "x"],
        ["--wrap", HOSTILE],
        ["--wrap", servers(stored, remote=True), "--scope", SCOPE, "--yes"],
        ["--unwrap", servers(stored), "--yes"],
        ["--unwrap", HOSTILE],
    ]


WALK: dict[str, Callable[[Stored], list[list[str]]]] = {
    "put": lambda _: [["-", "--name", NAME, "--label", HOSTILE, "--kind", HOSTILE], [HOSTILE]],
    "ls": lambda _: [[], ["--kind", HOSTILE], ["--scope", SCOPE]],
    "show": lambda stored: [
        *([pointer] for pointer in stored.pointers.values()),
        [stored["rows"], "--facts"],
        [f"{stored['rows']}#/0"],
        [NAME, "--scope", SCOPE],
    ],
    "read": lambda stored: [
        [stored["text"]],
        [stored["text"], "--all"],
        [stored["text"], "--lines", "1-2"],
        [stored["bytes"], "--unit", "bytes"],
        [stored["rows"], "--unit", "rows"],
        [f"{stored['tree']}#/nothing"],
    ],
    "search": lambda stored: [[stored["text"], "forged"], [stored["log"], "e[rR]+or", "--regex"]],
    "query": lambda stored: [
        [stored["rows"], "SELECT * FROM data"],
        [stored["csv"], "SELECT * FROM data LIMIT 3"],
        [stored["rows"], "$[*]"],
        [stored["rows"], "$[*].nothing"],
        [stored["tree"], "keys(@)"],
        [stored["rows"], 'SELECT "nothing" FROM data'],
        [stored["rows"], "SELECT CAST(x AS INT) FROM (SELECT unnest(['\x1b[2J']) AS x)"],
        [stored["tree"], "$", "--save-as", NAME],
    ],
    "rm": lambda stored: [[HOSTILE, NAME, f"csv {NAME}"], [stored["log"]]],
    "migrate": lambda stored: [
        [f"file:{stored.journal.parent / 'store'}", f"file:{stored.journal.parent / 'copy'}"],
        [f"file:{HOSTILE}", f"file:{stored.journal.parent / 'copy'}"],
        [
            f"file:{stored.journal.parent / 'store'}",
            f"file:{stored.journal.parent / 'copy'}",
            "--scope",
            HOSTILE,
        ],
    ],
    "gc": lambda _: [["--dry-run"], ["--scope", SCOPE], ["--scope", HOSTILE], ["--quota", HOSTILE]],
    "stats": lambda _: [[], ["--run", HOSTILE], ["--journal", HOSTILE]],
    "log": lambda stored: [[], [stored["text"]], ["--run", HOSTILE], [HOSTILE]],
    "doctor": lambda stored: [
        [],
        ["--store", f"nothing{HOSTILE}:x"],
        ["--", HOSTILE],
        ["--config", HOSTILE],
        ["--config", servers(stored, starts=True)],
    ],
    "demo": lambda stored: [
        [str(stored.journal)],
        [HOSTILE],
        ["--root", HOSTILE],
        ["--call", HOSTILE, "--", *LISTS],
        ["--", HOSTILE.replace("\0", "")],  # which no program can be given
    ],
    "proxy": proxied,
}
"""Calls of each command, with all that it takes hostile."""
ANY_LINES = {"read", "demo"}
"""Commands that show payloads as they are."""

ERRORS = [
    ["read", HOSTILE],
    ["show", NAME],
    ["search", NAME, HOSTILE],
    ["query", NAME, HOSTILE],
    ["read", "x", "--scope", SCOPE],
    ["read", "x", "--unit", HOSTILE],
    ["read", "x", "--lines", HOSTILE],
    ["read", "x", "--limit", HOSTILE],
    ["ls", "--store", f"s3://{HOSTILE}"],
    ["ls", "--limit", HOSTILE],
    [HOSTILE],
    ["ls", f"--{HOSTILE}"],
    ["ls", HOSTILE],
]


def check(done: Done, *, of_lines: bool) -> None:
    """Fail where anything but our own styles can drive a terminal, or a line is forged."""
    for text in (done.text, done.err):
        shown = _OURS.sub("", text)
        assert not _DRIVES.findall(shown)
        assert "58;5;199" not in "".join(_OURS.findall(text))
        if of_lines:
            assert not [line for line in shown.split("\n") if line.startswith(FORGED)]


def test_the_walk_knows_every_command() -> None:
    commands = {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback is not None
    }

    assert commands == set(WALK)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("command", WALK)
def test_no_command_lets_hostile_text_drive_a_terminal(
    stored: Stored, in_terminal: Run, command: str, as_json: bool
) -> None:
    flags = ["--json"] if as_json else []
    for arguments in WALK[command](stored):
        for columns in (80, 10_000):
            done = in_terminal(command, *arguments, *flags, columns=columns, given=HOSTILE.encode())

            # A payload that is read may have any line; and any text a narrow terminal can break.
            check(done, of_lines=as_json or (command not in ANY_LINES and columns > 80))


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("command", sorted(WALK.keys() - {"read"}))
def test_no_command_but_read_passes_hostile_text_on_to_a_pipe(
    stored: Stored, coatcheck: Run, command: str, as_json: bool
) -> None:
    flags = ["--json"] if as_json else []
    for arguments in WALK[command](stored):
        done = coatcheck(command, *arguments, *flags, given=HOSTILE.encode())

        check(done, of_lines=as_json or command not in ANY_LINES)


@pytest.mark.parametrize("arguments", ERRORS)
def test_no_error_lets_hostile_text_drive_a_terminal(
    stored: Stored, in_terminal: Run, coatcheck: Run, arguments: list[str]
) -> None:
    for run in (in_terminal, coatcheck):
        for flags in ([], ["--json"]):
            done = run(*arguments, *flags)

            assert done.code in {0, 1, 2, 3}
            check(done, of_lines=True)


@pytest.mark.parametrize("what", ["text", "bytes", "csv", "log"])
def test_read_into_a_pipe_is_the_payload_byte_for_byte(
    stored: Stored, coatcheck: Run, what: str
) -> None:
    payload = PAYLOADS[what]
    expected = payload if isinstance(payload, bytes) else str(payload).encode()

    for options in (["--all"], ["--unit", "bytes", "--limit", "1000000"]):
        assert coatcheck("read", stored[what], *options).out == expected
    if what != "bytes":
        assert coatcheck("read", stored[what], "--limit", "200000").out == expected


def test_markup_in_what_is_shown_is_text_like_any_other(stored: Stored, in_terminal: Run) -> None:
    drawn = in_terminal("query", stored["rows"], f'SELECT "{MARKUP}", n FROM data', columns=4_000)
    stats = in_terminal("stats", columns=10_000)

    assert "\x1b]8" not in drawn.text + stats.text
    for text in (drawn.text, stats.text):
        assert "[link=https://evil.example]click[/link]" in _OURS.sub("", text)


def test_json_says_the_same_where_nothing_may_drive_a_terminal(
    stored: Stored, in_terminal: Run, coatcheck: Run
) -> None:
    for run in (in_terminal, coatcheck):
        assert run("read", stored["text"], "--json").json["content"] == HOSTILE * 3
        wire = run("show", stored["text"], "--json").json
        assert (wire["kind"], wire["tool"], wire["run"]) == (HOSTILE, HOSTILE, HOSTILE)
        calls = [json.loads(line) for line in run("log", "--json").out.splitlines()]
        assert [call["tool"] for call in calls] == [HOSTILE] * 3
        rows = run("query", stored["rows"], "$[0]", "--json").json
        assert rows["value"][HOSTILE] == HOSTILE


def test_an_error_in_json_says_what_was_asked_for(stored: Stored, in_terminal: Run) -> None:
    done = in_terminal("read", "\u202etxt.\x9b2J", "--json")

    assert done.failure["error"] == "unknown-pointer"
    assert "\\u202etxt." in done.failure["message"]


def test_a_bank_s_own_rule_keeps_controls_out_of_names(store: str) -> None:
    with BlockingBank(store) as bank:
        artifact = bank.put("x", name=NAME)

        assert bank.find(NAME) == artifact
