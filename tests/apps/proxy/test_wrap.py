"""A host's configuration with one proxy in place of its servers, and back, byte for byte."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._jsonc import parse_jsonc
from coatcheck.apps.proxy._servers_file import Refused, read_servers
from coatcheck.apps.proxy._wrap import Change, servers_file, unwrapped, wrapped
from coatcheck.errors import InvalidArgumentError

FILE = Path("/srv/shop/.mcp.json")
BESIDE = Path("/srv/shop/.mcp.coatcheck.json")
START = ["/bin/coatcheck", "proxy"]

CLAUDE_CODE = """{
  "mcpServers": {
    "files": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "."],
      "env": {"TOKEN": "s3cret", "HOME_OF": "${HOME}"}
    },
    "issues": {"type": "http", "url": "https://example.org/mcp"},
    "time": {"command": "uvx", "args": ["mcp-server-time"]}
  }
}
"""

VS_CODE = """{
\t// asked for once
\t"inputs": [{"type": "promptString", "id": "key", "password": true}],
\t"servers": {
\t\t"db": {
\t\t\t"command": "uvx",
\t\t\t"args": ["db", "${workspaceFolder}/x.db"], /* here */
\t\t\t"env": {"KEY": "${input:key}"},
\t\t},
\t},
}"""

CURSOR = '{"mcpServers":{"a":{"command":"x","env":{"K":"${env:K}"}},"b":{"url":"https://b/mcp"}}}'

DESKTOP = (
    '{\r\n  "globalShortcut": "",\r\n  "mcpServers": {\r\n    "a": {"command": "x"}\r\n  }\r\n}'
)

OWN_FILE_OF_CLAUDE_CODE = """{
  "numStartups": 12,
  "oauthAccount": {"secret": "stays"},
  "mcpServers": {"one": {"command": "a"}},
  "projects": {
    "/home/me/p": {"mcpServers": {"two": {"command": "b"}}, "history": []},
    "/home/me/q": {"mcpServers": {}, "history": []},
    "/home/me/r": {"mcpServers": {"three": {"command": "c"}}}
  }
}"""

ALL = [CLAUDE_CODE, VS_CODE, CURSOR, DESKTOP, OWN_FILE_OF_CLAUDE_CODE]


def undone(text: str, beside: Mapping[Path, str]) -> str:
    return unwrapped(text, FILE, lambda path: beside[path])


def servers(change: Change, key: str = "mcpServers") -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, dict[str, object]]] = json.loads(
        json.dumps(parse_jsonc(change.text).plain)
    )
    return found[key]


@pytest.mark.parametrize("text", ALL)
def test_unwrapping_gives_the_same_bytes_again(text: str) -> None:
    change = wrapped(text, FILE, START)

    assert change.text != text
    assert undone(change.text, change.beside) == text


@pytest.mark.parametrize("text", ALL)
def test_what_is_around_the_servers_stays_as_it_is(text: str) -> None:
    change = wrapped(text, FILE, START)
    rest = {
        key: node.plain
        for key, node in parse_jsonc(text).members.items()
        if key not in {"mcpServers", "servers", "projects"}
    }

    changed = parse_jsonc(change.text)

    assert {key: changed.members[key].plain for key in rest} == rest
    assert ("\r\n" in text) == ("\r\n" in change.text)
    assert "\n" not in change.text.replace("\r\n", "") or "\r\n" not in text


def test_one_proxy_stands_in_place_of_all_servers_over_stdio() -> None:
    change = wrapped(CLAUDE_CODE, FILE, [*START, "--scope", "me"])

    assert list(servers(change)) == ["coatcheck", "issues"]
    assert servers(change)["coatcheck"] == {
        "type": "stdio",
        "command": "/bin/coatcheck",
        "args": ["proxy", "--scope", "me", "--config", str(BESIDE)],
        "env": {"COATCHECK_HANDED_1": "${HOME}"},
    }
    assert change.moved == ("files", "time")


def test_a_remote_server_stays_and_it_is_said_why() -> None:
    change = wrapped(CLAUDE_CODE, FILE, START)

    assert servers(change)["issues"] == {"type": "http", "url": "https://example.org/mcp"}
    assert change.stayed == (("issues", "it is remote, and your host signs in there itself"),)


def test_what_moved_is_what_the_proxy_reads(tmp_path: Path) -> None:
    change = wrapped(CLAUDE_CODE, tmp_path / ".mcp.json", START)
    ((path, text),) = change.beside.items()
    path.write_text(text)

    files, time = read_servers(path, {"COATCHECK_HANDED_1": "/home/me"})

    assert not isinstance(files, Refused)
    assert not isinstance(time, Refused)
    assert files.args == ("-y", "@modelcontextprotocol/server-filesystem", ".")
    assert files.env == {"TOKEN": "s3cret", "HOME_OF": "/home/me"}
    assert time.command == "uvx"


def test_what_only_a_host_fills_in_it_still_fills_in() -> None:
    change = wrapped(VS_CODE, FILE, START)

    assert servers(change, "servers")["coatcheck"]["env"] == {
        "COATCHECK_HANDED_1": "${workspaceFolder}",
        "COATCHECK_HANDED_2": "${input:key}",
    }
    moved = json.loads(change.beside[BESIDE])["mcpServers"]["db"]
    assert moved["args"] == ["db", "${COATCHECK_HANDED_1}/x.db"]
    assert moved["env"] == {"KEY": "${COATCHECK_HANDED_2}"}


def test_each_place_of_servers_gets_a_proxy_of_its_own() -> None:
    change = wrapped(OWN_FILE_OF_CLAUDE_CODE, FILE, START, is_of_user=True)

    found = json.loads(change.text)
    assert list(found["mcpServers"]) == ["coatcheck-user"]
    assert list(found["projects"]["/home/me/p"]["mcpServers"]) == ["coatcheck-local"]
    assert found["projects"]["/home/me/q"]["mcpServers"] == {}
    moved = [list(json.loads(text)["mcpServers"]) for text in change.beside.values()]
    assert moved == [["one"], ["two"], ["three"]]


def test_no_two_files_that_a_host_joins_have_an_entry_of_the_same_name() -> None:
    of_project = wrapped(CLAUDE_CODE, FILE, START)
    of_user = wrapped(OWN_FILE_OF_CLAUDE_CODE, FILE, START, is_of_user=True)

    own = [
        *servers(of_project),
        *servers(of_user),
        *json.loads(of_user.text)["projects"]["/home/me/p"]["mcpServers"],
    ]

    assert len(own) == len(set(own))


def test_an_entry_is_called_as_was_said() -> None:
    change = wrapped(OWN_FILE_OF_CLAUDE_CODE, FILE, START, "mine", is_of_user=True)

    assert list(servers(change)) == ["mine"]
    assert list(json.loads(change.text)["projects"]["/home/me/p"]["mcpServers"]) == ["mine-local"]
    assert undone(change.text, change.beside) == OWN_FILE_OF_CLAUDE_CODE


def test_comments_and_commas_around_what_stays_are_kept() -> None:
    text = """{
  "mcpServers": {
    "one": {"command": "a"},
    // of everybody
    "far": {"url": "https://x"}, // signs in, itself
    /* last, "not": {} */
    "two": {"command": "b"}, // two
  }
}"""

    change = wrapped(text, FILE, START)

    assert list(servers(change)) == ["coatcheck", "far"]
    for kept in (
        '    // of everybody\n    "far": {"url": "https://x"}, // signs in, itself\n',
        '/* last, "not": {} */',
    ):
        assert kept in change.text
    assert "// two" not in change.text
    later = change.text.replace("https://x", "https://y")
    assert "// signs in, itself" in undone(later, change.beside)


def test_a_server_that_is_called_coatcheck_keeps_its_name() -> None:
    text = '{"mcpServers": {"coatcheck": {"url": "https://x"}, "a": {"command": "x"}}}'

    assert list(servers(wrapped(text, FILE, START))) == ["coatcheck", "coatcheck-2"]


def test_servers_that_the_proxy_cannot_start_stay() -> None:
    entries = {
        "off": {"command": "x", "disabled": True},
        "odd": {},
        "ws": {"command": "x", "type": "ws"},
        "no": 1,
    }

    change = wrapped(json.dumps({"mcpServers": entries}), FILE, START)

    assert change.moved == ()
    assert change.beside == {}
    assert dict(change.stayed) == {
        "off": "it is disabled",
        "odd": "it has neither a command nor a url",
        "ws": "it does not speak over stdio",
        "no": "it is no object",
    }


def test_what_changed_around_the_servers_since_is_kept() -> None:
    change = wrapped(OWN_FILE_OF_CLAUDE_CODE, FILE, START)
    later = change.text.replace('"numStartups": 12', '"numStartups": 13')

    assert undone(later, change.beside) == OWN_FILE_OF_CLAUDE_CODE.replace("12", "13")


def test_servers_that_came_since_are_kept_and_the_moved_ones_stand_where_the_proxy_stood() -> None:
    change = wrapped(CLAUDE_CODE, FILE, START)
    later = change.text.replace(
        '"issues": {', '"new": {"command": "n", "args": []},\n    "issues": {'
    ).replace("https://example.org", "https://example.com")

    found = json.loads(undone(later, change.beside))

    before = json.loads(CLAUDE_CODE)["mcpServers"]
    assert list(found["mcpServers"]) == ["files", "time", "new", "issues"]
    assert found["mcpServers"]["files"] == before["files"]
    assert found["mcpServers"]["issues"]["url"] == "https://example.com/mcp"


def test_a_server_that_was_written_anew_since_is_not_overwritten() -> None:
    change = wrapped(CURSOR, FILE, START)
    later = change.text.replace('"b":', '"a": {"command": "newer"}, "b":')

    found = json.loads(undone(later, change.beside))

    assert found["mcpServers"]["a"] == {"command": "newer"}


def test_a_configuration_that_is_not_wrapped_stays_as_it_is() -> None:
    assert undone(CLAUDE_CODE, {}) == CLAUDE_CODE


def test_a_file_of_servers_that_does_not_tell_what_was_there_is_an_error() -> None:
    change = wrapped(CURSOR, FILE, START)

    with pytest.raises(InvalidArgumentError, match="does not tell what stood there before"):
        undone(change.text, {BESIDE: '{"mcpServers": {}}'})


@pytest.mark.parametrize("text", ["{}", "[]", '{"mcpServers": 1}', '{"mcpServers": {}, }x'])
def test_what_is_no_configuration_is_an_error(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        wrapped(text, FILE, START)


@pytest.mark.parametrize(
    "entry",
    [
        1,
        {},
        {"args": "proxy --config"},
        {"args": ["proxy", "--config"]},
        {"args": ["proxy", "--config", "a.json"]},
        {"args": ["--config", f"a{BESIDE.name}"]},
    ],
)
def test_an_entry_of_somebody_else_is_no_proxy_of_ours(entry: object) -> None:
    assert servers_file(entry) is None


NAMES = st.text("abc-", min_size=1, max_size=4)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "command": st.text(max_size=3),
        "url": st.just("https://x"),
        "type": st.sampled_from(["stdio", "http"]),
        "args": st.lists(st.sampled_from(["${a}", "${input:b}", "c"]), max_size=2),
        "disabled": st.booleans(),
    },
)


@given(
    entries=st.dictionaries(NAMES, ENTRIES, max_size=5),
    indent=st.sampled_from([None, 1, 2, "\t"]),
    key=st.sampled_from(["mcpServers", "servers"]),
)
def test_whatever_the_servers_are_unwrapping_gives_the_same_bytes_again(
    entries: dict[str, object], indent: int | str | None, key: str
) -> None:
    text = json.dumps({key: entries, "z": 1}, indent=indent)

    change = wrapped(text, FILE, START)

    assert undone(change.text, change.beside) == text
    assert json.loads(undone(change.text + " ", change.beside)) == json.loads(text)
    assert set(change.moved) | {name for name, _ in change.stayed} == set(entries)
