"""`coatcheck doctor` looks at MCP servers as the proxy would start them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from coatcheck.apps.cli._doctor_upstreams import examine_upstreams
from coatcheck.apps.proxy._config import UpstreamSpec

from .conftest import Run

PLAIN = Path(__file__).parents[1] / "proxy" / "servers" / "plain.py"
LISTING = Path(__file__).with_name("listing_server.py")


def program(name: str, *arguments: str) -> UpstreamSpec:
    return UpstreamSpec(name=name, command=sys.executable, args=arguments)


@pytest.mark.parametrize(
    ("era", "version"), [("handshake", "2025-11-25"), ("modern", "2026-07-28")]
)
async def test_a_server_of_either_era_is_well(era: str, version: str) -> None:
    (found,) = await examine_upstreams([program("own", str(PLAIN), "--era", era)])

    assert (found.check, found.state, found.remedy) == ("server own", "ok", "")
    assert found.told.endswith(f"speaks {version}")
    assert " tools, there after " in found.told


@pytest.mark.parametrize(
    ("spec", "told", "remedy"),
    [
        (UpstreamSpec(name="a", command="/none"), "No such file", "Is it installed"),
        (UpstreamSpec(name="a", command="/"), "Permission denied", "chmod +x"),
        (
            program("a", "-c", "import sys; print('no key', file=sys.stderr); sys.exit(3)"),
            "status 3; it said: a: no key",
            "Start it by hand",
        ),
        (UpstreamSpec(name="a", url="http://127.0.0.1:9/mcp"), "did not start", "Is it running"),
    ],
)
async def test_a_server_that_does_not_start_is_told_with_its_remedy(
    spec: UpstreamSpec, told: str, remedy: str
) -> None:
    (found,) = await examine_upstreams([spec])

    assert found.state == "failed"
    assert told in found.told
    assert remedy in found.remedy


async def test_a_server_that_is_silent_is_given_up() -> None:
    silent = program("a", "-c", "import sys; sys.stdin.read()")

    (found,) = await examine_upstreams([silent], longest_seconds=0.5)

    assert found.state == "failed"
    assert "did not answer within 0.5 seconds" in found.told
    assert "Does it wait for something" in found.remedy


async def test_a_server_without_tools_is_a_warning() -> None:
    (found,) = await examine_upstreams([program("a", str(LISTING), "[]")])

    assert found.state == "warning"
    assert found.told.startswith("0 tools")


async def test_a_tool_with_the_name_of_ours_is_a_warning() -> None:
    tools = "echo,retrieve_context"
    (found,) = await examine_upstreams([program("a", str(PLAIN), "--tools", tools)])

    assert found.state == "warning"
    assert "retrieve_context" in found.told


def test_doctor_looks_at_a_configuration_and_ends_with_three_where_one_fails(
    coatcheck: Run, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    servers: dict[str, Any] = {
        "good": {"command": sys.executable, "args": [str(PLAIN)], "env": {"TOKEN": "s3cret"}},
        "bad": {"command": "/none"},
    }
    file.write_text(json.dumps({"mcpServers": servers}))

    done = coatcheck("doctor", "--config", str(file), "--json")

    states = {each["check"]: each["state"] for each in done.json["checks"]}
    assert (done.code, done.json["ok"]) == (3, False)
    assert (states["server good"], states["server bad"]) == ("ok", "failed")
    assert "s3cret" not in done.text


@pytest.mark.parametrize("name", ["mcp.json", "mcp.coatcheck.json"])
def test_doctor_looks_at_each_server_behind_a_proxy_that_was_put_into_a_host(
    coatcheck: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PLAIN", str(PLAIN))
    servers: dict[str, Any] = {
        "good": {"command": sys.executable, "args": ["${PLAIN}"]},
        "keyed": {"command": sys.executable, "args": ["${input:key}"]},
        "unset": {"command": sys.executable, "args": ["${NO_SUCH}"]},
        "remote": {"url": "http://127.0.0.1:9/mcp"},  # the host's own to reach
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    coatcheck("proxy", "--wrap", str(tmp_path / "mcp.json"), "--yes")

    done = coatcheck("doctor", "--config", str(tmp_path / name), "--json")

    looks = {each["check"]: each for each in done.json["checks"]}
    states = {look: looks[look]["state"] for look in looks if look.startswith("server ")}
    assert done.code == 3
    assert states == {"server good": "ok", "server keyed": "failed", "server unset": "failed"}
    assert "asks for ${input:key}, which your host fills in" in looks["server keyed"]["told"]
    assert "asks for ${NO_SUCH}" in looks["server unset"]["told"]
    assert looks["server unset"]["remedy"]


def test_doctor_looks_at_one_server_behind_two_dashes(coatcheck: Run) -> None:
    done = coatcheck("doctor", "--", sys.executable, str(PLAIN))

    assert done.code == 0
    assert "\tserver " in done.text


def test_doctor_takes_a_configuration_or_a_command(coatcheck: Run) -> None:
    done = coatcheck("doctor", "--config", "x.json", "--", "y")

    assert done.code == 2
    assert "exclude each other" in done.err
