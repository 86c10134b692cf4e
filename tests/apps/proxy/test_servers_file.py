"""Servers as hosts write them down."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from coatcheck.apps.proxy._config import UpstreamSpec
from coatcheck.apps.proxy._servers_file import Refused, read_servers
from coatcheck.errors import InvalidArgumentError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def server(file: Path, variables: dict[str, str], entry: Mapping[str, object]) -> UpstreamSpec:
    """Return what the only server of a file is read as."""
    file.write_text(json.dumps({"mcpServers": {"one": entry}}))
    (spec,) = read_servers(file, variables)
    if isinstance(spec, Refused):
        raise spec.error
    return spec


def test_a_program_is_read_with_all_that_it_is_started_with(file: Path) -> None:
    spec = server(
        file,
        {},
        {"command": "uvx", "args": ["x", 1, True], "env": {"A": "b", "N": 7}, "cwd": "/srv"},
    )

    assert spec == UpstreamSpec(
        name="one",
        command="uvx",
        args=("x", "1", "true"),
        env={"A": "b", "N": "7"},
        cwd=Path("/srv"),
    )


@pytest.mark.parametrize("kind", [{}, {"type": "http"}, {"type": "streamable-http"}])
def test_an_address_is_read_with_its_headers(file: Path, kind: dict[str, str]) -> None:
    spec = server(file, {}, {"url": "https://x/mcp", "headers": {"A": "b"}, **kind})

    assert spec == UpstreamSpec(name="one", url="https://x/mcp", headers={"A": "b"})


def test_the_form_of_vs_code_is_read_with_its_comments(file: Path) -> None:
    file.write_text('{"inputs": [], "servers": {"a": {"type": "stdio", "command": "x"},}} // end')

    assert read_servers(file, {}) == (UpstreamSpec(name="a", command="x"),)


def test_a_server_that_is_disabled_is_left_out(file: Path) -> None:
    servers = {"a": {"command": "x", "disabled": True}, "b": {"command": "y"}}
    file.write_text(json.dumps({"mcpServers": servers}))

    assert [spec.name for spec in read_servers(file, {})] == ["b"]


def test_what_is_wrong_with_a_server_is_no_matter_of_the_others(file: Path) -> None:
    servers: dict[str, object] = {
        "a": {"command": "x", "args": ["${NONE}"]},
        "b": {"command": "y"},
        "c": 1,
    }
    file.write_text(json.dumps({"mcpServers": servers}))

    first, second, third = read_servers(file, {})

    assert isinstance(first, Refused)
    assert "the server 'a' asks for the variable NONE, which is not set" in str(first.error)
    assert second == UpstreamSpec(name="b", command="y")
    assert isinstance(third, Refused)


@pytest.mark.parametrize(
    ("variables", "filled"),
    [({"COATCHECK_HANDED_1": "told", "HOME": "/me"}, "told"), ({"HOME": "/me"}, "/me")],
)
def test_what_a_host_was_to_hand_over_is_found_without_it(
    file: Path, variables: dict[str, str], filled: str
) -> None:
    written = {"coatcheck": {"env": {"COATCHECK_HANDED_1": "${HOME}"}}, "far": {"url": "x"}}
    moved = {"a": {"command": "x", "args": ["${COATCHECK_HANDED_1}"]}}
    file.write_text(json.dumps({"mcpServers": moved, "written": json.dumps(written)}))

    (spec,) = read_servers(file, variables)

    assert spec == UpstreamSpec(name="a", command="x", args=(filled,))


@pytest.mark.parametrize("asked", ["${input:key}", "${NONE}", "${COATCHECK_HANDED_1}"])
def test_what_only_a_host_hands_over_is_named_as_it_was_written_there(
    file: Path, asked: str
) -> None:
    written = {"coatcheck": {"env": {"COATCHECK_HANDED_1": asked}}}
    moved = {"a": {"command": "x", "args": ["${COATCHECK_HANDED_1}"]}}
    file.write_text(json.dumps({"mcpServers": moved, "written": json.dumps(written)}))

    (refused,) = read_servers(file, {})

    assert isinstance(refused, Refused)
    assert f"the server 'a' asks for {asked}, which your host fills in" in str(refused.error)
    assert "COATCHECK_HANDED_1=… in front" in refused.error.hint


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "1"),
        ("${env:A}", "1"),
        ("x${A}y${B}", "x1y"),
        ("${C:-d}", "d"),
        ("${C:-}", ""),
        ("${A:-d}", "1"),
        ("$A", "$A"),
        ("${C:-a:b}", "a:b"),
    ],
)
def test_variables_are_filled_in(file: Path, text: str, filled: str) -> None:
    variables = {"A": "1", "B": ""}

    spec = server(file, variables, {"command": "x", "args": [text], "env": {"V": text}})

    assert spec.args == (filled,)
    assert spec.env == {"V": filled}


def test_what_a_variable_holds_is_not_filled_in_again(file: Path) -> None:
    assert server(file, {"A": "${B}"}, {"command": "x", "args": ["${A}"]}).args == ("${B}",)


def test_variables_of_an_env_file_come_before_those_of_the_server(file: Path) -> None:
    (file.parent / ".env").write_text("A=1\nexport B = 'two'\n# C=3\n\nD=\"4\n")

    spec = server(file, {}, {"command": "x", "envFile": ".env", "env": {"A": "own"}})

    assert spec.env == {"A": "own", "B": "two", "D": '"4'}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "has either a command or a url"),
        ({"command": "x", "url": "y"}, "has either a command or a url"),
        ({"command": ""}, "has a text as its command"),
        ({"command": ["x"]}, "has a text as its command"),
        ({"command": "x", "args": "y"}, "has a list as its args"),
        ({"command": "x", "args": [None]}, "has texts in its args"),
        ({"command": "x", "env": ["A"]}, "has an object as its env"),
        ({"command": "x", "env": {"A": []}}, "has texts in its env"),
        ({"url": "x", "type": "sse"}, "speaks the old HTTP+SSE"),
        ({"url": "x", "type": "ws"}, "has the type 'ws'"),
        ({"command": "x", "args": ["${NONE}"]}, "the variable NONE, which is not set"),
        ({"command": "x", "args": ["${input:key}"]}, "${input:key}, which only a host fills in"),
        ({"command": "x", "envFile": "none.env"}, "has an envFile"),
    ],
)
def test_a_server_that_is_wrong_is_named_with_the_rule(
    file: Path, entry: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        server(file, {}, entry)

    assert str(caught.value).startswith(f"{file}: the server 'one' ")
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["{}", "[]", '{"mcpServers": []}', '{"mcpServers": {}}', "{"])
def test_a_file_without_servers_is_an_error_that_names_it(file: Path, text: str) -> None:
    file.write_text(text)

    with pytest.raises(InvalidArgumentError) as caught:
        read_servers(file, {})

    assert str(file) in str(caught.value)
    assert caught.value.hint


def test_a_server_that_is_no_object_is_an_error(file: Path) -> None:
    file.write_text('{"mcpServers": {"a": 1}}')

    (refused,) = read_servers(file, {})

    assert isinstance(refused, Refused)
    assert "'a' is an object with a name" in str(refused.error)


def test_a_file_that_cannot_be_read_is_an_error_with_its_reason(file: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        read_servers(file, {})

    file.write_bytes(b"\xff")
    with pytest.raises(InvalidArgumentError, match="no UTF-8"):
        read_servers(file, {})


def test_no_error_and_no_repr_shows_what_may_be_a_secret(file: Path) -> None:
    variables = {"T": "s3cret"}
    secrets: dict[str, object] = {"args": ["${T}"], "env": {"A": "${T}"}, "headers": {"B": "${T}"}}
    spec = server(file, variables, {"command": "x", **secrets})
    with pytest.raises(InvalidArgumentError) as caught:
        server(file, variables, {"command": "x", "env": {"A": "${T}", "B": ["s3cret"]}})

    assert "s3cret" not in repr(spec)
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
