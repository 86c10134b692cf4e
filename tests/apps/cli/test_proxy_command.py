"""`coatcheck proxy`: how it starts, what it says, and what it does to a host's configuration."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coatcheck.bank import read_journal

from .conftest import Run

PLAIN = Path(__file__).parents[1] / "proxy" / "servers" / "plain.py"
SERVER = [sys.executable, str(PLAIN), "--era", "handshake"]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a proxy left when its client went: its exit code, what it said, its answers by id."""

    code: int
    said: list[str]
    answers: dict[Any, Any]


def started(*arguments: str, messages: list[dict[str, Any]], **variables: str) -> Ended:
    """Run a proxy for a client that sends messages, waits for the answers, and goes."""
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    sent: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        *messages,
    ]
    awaited = {message["id"] for message in sent if "id" in message}
    answers: dict[Any, Any] = {}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "coatcheck.apps.cli", "proxy", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | variables,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in sent]
        process.stdin.write("".join(lines))
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            answers |= {answer["id"]: answer} if "id" in answer else {}
            if awaited <= set(answers):
                break
        process.stdin.close()
        rest = process.stdout.read()
        process.stdout.close()
        code = process.wait(60)
        assert rest == ""
        errors.seek(0)
        return Ended(code, errors.read().splitlines(), answers)


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return {"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return a configuration of a host, with a secret in it."""
    file = tmp_path / "mcp.json"
    entry = {"command": SERVER[0], "args": SERVER[1:], "env": {"TOKEN": "s3cret"}}
    remote = {"url": "https://example.org/mcp"}
    file.write_text(json.dumps({"mcpServers": {"own": entry, "far": remote}}, indent=2))
    return file


def test_a_start_says_one_line_on_standard_error_and_only_messages_on_the_other(
    store: str, tmp_path: Path
) -> None:
    done = started(
        "--journal",
        str(tmp_path / "j"),
        "--scope",
        "me",
        "--",
        *SERVER,
        messages=[call("echo", text="hi")],
    )

    assert done.code == 0
    assert done.said == [
        f"coatcheck proxy: {Path(sys.executable).name} over stdio; artifacts in {store}, scope me"
    ]
    assert list(done.answers) == [0, 1]
    assert done.answers[1]["result"]["content"][0]["text"] == "hi"


def test_the_journal_that_it_opens_is_the_one_that_stats_read(
    coatcheck: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    started("--", *SERVER, messages=[call("echo", text="x" * 60_000)])

    (one,) = coatcheck("stats", "--json").json["tools"]
    assert (one["tool"], one["calls"], one["banked"]) == ("echo", 1, 1)
    assert (tmp_path / "state" / "coatcheck").stat().st_mode & 0o777 == 0o700


def test_without_a_journal_none_is_written(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    started("--no-journal", "--", *SERVER, messages=[call("echo", text="hi")])

    assert not (tmp_path / "state").exists()


def test_a_dry_run_passes_all_on_keeps_nothing_and_tells_what_it_would_save(
    store: str, tmp_path: Path
) -> None:
    text = "x" * 60_000
    journal = tmp_path / "calls.jsonl"

    done = started(
        "--dry-run", "--journal", str(journal), "--", *SERVER, messages=[call("echo", text=text)]
    )

    first, second, third = done.said
    assert done.answers[1]["result"]["content"][0]["text"] == text
    assert "a dry run, which keeps nothing" in first
    assert "dry run, 1 calls; 1 results would have been pointers" in second
    assert third.startswith("  echo: 60.0 kB in 1 calls, ")
    assert not Path(store.removeprefix("file:")).exists()
    assert not journal.exists()


def test_settings_decide_what_is_large(store: str, tmp_path: Path) -> None:
    assert store
    settings = tmp_path / "limits.toml"
    settings.write_text("[tools.echo]\ninline_bytes = 0\n")

    done = started(
        "--no-journal", "--settings", str(settings), "--", *SERVER,
        messages=[call("echo", text="a few words, and no more than these are here to be seen")],
    )  # fmt: skip

    assert done.answers[1]["result"]["content"][0]["text"].startswith('{"pointer":"art:')


def test_a_server_of_a_configuration_gets_its_own_variables_and_no_others(
    store: str, tmp_path: Path
) -> None:
    assert store
    show = "import json, os; print(json.dumps({'jsonrpc': '2.0', 'id': 1}), flush=True); "
    show += f"open({str(tmp_path / 'seen')!r}, 'w').write(json.dumps(dict(os.environ)))"
    entry = {
        "command": sys.executable,
        "args": ["-c", show],
        "env": {"MINE": "${COATCHECK_HANDED_1}"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"one": entry}}))

    started(
        "--no-journal", "--config", str(tmp_path / "mcp.json"),
        messages=[{"id": 1, "method": "tools/list"}],
        COATCHECK_HANDED_1="of one", COATCHECK_HANDED_2="of another",
    )  # fmt: skip

    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["MINE"] == "of one"
    assert not [name for name in seen if name.startswith("COATCHECK_HANDED")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "It takes one of: -- CMD"),
        (("--config", "x.json", "--wrap", "y.json"), "It takes one of"),
        (("--config", "none.json"), "none.json' cannot be read"),
        (("--settings", "none.toml", "--", "x"), "none.toml' cannot be read"),
        (("--http", "8000", "--", "x"), "--http is HOST:PORT, got '8000'"),
        (("--http", "localhost:99999", "--", "x"), "--http is HOST:PORT"),
        (("--journal", "/none/at/all", "--", "x"), "The journal '/none/at/all' cannot be written"),
        (("--store", "nothing:at-all", "--no-journal", "--", "x"), "no store at 'nothing:at-all'"),
        (("--unwrap", "none.json"), "cannot be read"),
        (("--name", "mine", "--", "x"), "--name goes with --wrap"),
    ],
)
def test_what_is_wrong_is_wrong_usage_with_a_remedy(
    coatcheck: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = coatcheck("proxy", *arguments)

    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert len(done.err.splitlines()) >= 2


@pytest.mark.parametrize("token", ["", "short", "x" * 15])
def test_a_token_that_can_be_guessed_is_refused_and_not_shown(
    coatcheck: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("ALICE", token)
    settings = tmp_path / "own.toml"
    settings.write_text('[principals]\nalice = "ALICE"\n')

    done = coatcheck(
        "proxy", "--settings", str(settings), "--http", "127.0.0.1:1", "--no-journal", "--", "x"
    )

    assert done.code == 2
    assert "The variable ALICE holds the token of 'alice'" in done.err
    assert not token or token not in done.err


def test_wrapping_shows_the_difference_without_secrets_and_says_what_stays(
    coatcheck: Run, host: Path
) -> None:
    done = coatcheck("proxy", "--wrap", str(host), "--yes", "--scope", "me")

    assert done.code == 0
    assert '+    "coatcheck": {' in done.text
    assert '-      "env": {' in done.text
    assert "s3cret" not in done.text + done.err
    assert "far stays where it is: it is remote" in done.err
    assert "behind the proxy: own" in done.err
    entry = json.loads(host.read_text())["mcpServers"]["coatcheck"]
    assert entry["args"][-4:-2] == ["--scope", "me"]
    assert Path(entry["command"]).is_absolute()


def test_after_wrapping_it_is_said_what_is_of_this_machine_and_to_restart_the_host(
    coatcheck: Run, host: Path
) -> None:
    done = coatcheck("proxy", "--wrap", str(host), "--yes", "--name", "mine")

    assert list(json.loads(host.read_text())["mcpServers"]) == ["mine", "far"]
    assert "for .gitignore, as they may hold secrets: mcp.coatcheck.json mcp.json.be" in done.err
    assert "mcp.json itself now names paths of this machine" in done.err
    assert "now restart the host" in done.err


def test_a_backup_that_unwrapping_leaves_is_told(coatcheck: Run, host: Path) -> None:
    coatcheck("proxy", "--wrap", str(host), "--yes")
    host.write_text(host.read_text().replace('"far"', '"b": {"command": "y"}, "far"'))
    coatcheck("proxy", "--wrap", str(host), "--yes")

    done = coatcheck("proxy", "--unwrap", str(host), "--yes")

    assert f"may hold secrets: rm {host}.before-coatcheck" in done.err
    assert Path(f"{host}.before-coatcheck").exists()


def test_a_server_that_cannot_be_started_is_told_and_the_others_keep_their_names(
    store: str, tmp_path: Path
) -> None:
    assert store
    file = tmp_path / "mcp.json"
    own = {"command": SERVER[0], "args": SERVER[1:]}
    file.write_text(json.dumps({"mcpServers": {"own": own, "b": {"command": "${NO_SUCH}"}}}))

    done = started(
        "--no-journal", "--config", str(file),
        messages=[call("own_echo", text="hi")],
    )  # fmt: skip

    assert done.code == 0
    assert done.answers[1]["result"]["content"][0]["text"] == "hi"
    assert "left out: " in done.said[0]
    assert "the server 'b' asks for the variable NO_SUCH, which is not set" in done.said[0]


def test_where_no_server_can_be_started_it_is_wrong_usage(coatcheck: Run, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"b": {"command": "${NO_SUCH}"}}}')

    done = coatcheck("proxy", "--no-journal", "--config", str(file))

    assert done.code == 2
    assert "NO_SUCH" in done.err


def test_without_an_answer_nothing_is_changed(coatcheck: Run, host: Path) -> None:
    before = host.read_bytes()

    done = coatcheck("proxy", "--wrap", str(host))

    assert done.code == 2
    assert "Nothing was changed" in done.err
    assert host.read_bytes() == before
    assert [path.name for path in host.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_in_a_terminal_it_is_asked_whether_the_file_may_change(
    in_terminal: Run, host: Path, typed: bytes, code: int
) -> None:
    before = host.read_bytes()

    done = in_terminal("proxy", "--wrap", str(host), given=typed)

    assert done.code == code
    assert f"Write {host}?" in done.err
    assert (host.read_bytes() == before) == bool(code)


def test_what_was_wrapped_starts_and_is_unwrapped_byte_for_byte(coatcheck: Run, host: Path) -> None:
    before = host.read_bytes()
    coatcheck("proxy", "--wrap", str(host), "--yes", "--no-journal")
    entry = json.loads(host.read_text())["mcpServers"]["coatcheck"]
    again = coatcheck("proxy", "--wrap", str(host), "--yes", "--no-journal")

    done = started(*entry["args"][1:], messages=[call("echo", text="hi")])
    undone = coatcheck("proxy", "--unwrap", str(host), "--yes")

    assert "is wrapped already" in again.err
    assert done.answers[1]["result"]["content"][0]["text"] == "hi"
    assert undone.code == 0
    assert host.read_bytes() == before
    assert [path.name for path in host.parent.iterdir()] == ["mcp.json"]


def test_a_store_of_the_environment_is_not_written_down(coatcheck: Run, host: Path) -> None:
    coatcheck("proxy", "--wrap", str(host), "--yes")

    assert "--store" not in host.read_text()


def test_options_that_are_typed_are_written_down(
    coatcheck: Run, host: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text("")
    named = ["--settings", str(settings), "--store", f"file:{tmp_path}/kept", "--scope", "me"]
    named += ["--journal", "calls.jsonl", "--dry-run"]

    coatcheck("proxy", "--wrap", str(host), "--yes", *named)

    entry = json.loads(host.read_text())["mcpServers"]["coatcheck"]
    assert entry["args"] == ["proxy", *named, "--config", str(tmp_path / "mcp.coatcheck.json")]


def test_a_host_starts_no_proxy_over_http(coatcheck: Run, host: Path) -> None:
    done = coatcheck("proxy", "--wrap", str(host), "--yes", "--http", "127.0.0.1:1")

    assert done.code == 2
    assert "A host starts the proxy over stdio" in done.err


def test_a_configuration_of_remote_servers_alone_is_left_as_it_is(
    coatcheck: Run, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"far": {"url": "https://example.org/mcp"}}}')

    done = coatcheck("proxy", "--wrap", str(file), "--yes")

    assert done.code == 2
    assert "has no server that speaks over stdio" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["mcp.json"]


def test_calls_are_noted_without_their_arguments(store: str, tmp_path: Path) -> None:
    assert store
    journal = tmp_path / "calls.jsonl"

    started("--journal", str(journal), "--", *SERVER, messages=[call("echo", text="a secret")])

    (noted,) = read_journal(journal)
    assert (noted.tool, noted.verb, noted.is_error) == ("echo", "tool", False)
    assert "secret" not in journal.read_text()


def test_calls_of_several_servers_are_noted_by_the_names_that_the_host_sees(
    store: str, tmp_path: Path
) -> None:
    assert store
    journal, file = tmp_path / "calls.jsonl", tmp_path / "mcp.json"
    own = {"command": SERVER[0], "args": SERVER[1:]}
    file.write_text(json.dumps({"mcpServers": {"a": own, "b": own}}))
    unknown = "art:00000000-0000-4000-8000-00000000000a"
    calls = [call("a_echo", text="1"), call("b_echo", text="2"), call("b_echo", text=unknown)]
    for number, each in enumerate(calls, 1):
        each["id"] = number

    started("--journal", str(journal), "--config", str(file), messages=calls)

    noted = sorted((each.tool, each.is_error) for each in read_journal(journal))
    assert noted == [("a_echo", False), ("b_echo", False), ("b_echo", True)]
