"""`coatcheck demo -- CMD`: the proxy before a server of somebody's own."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from coatcheck.apps.cli._demo._proxied import proxied

from .conftest import Run

PLAIN = Path(__file__).parents[1] / "proxy" / "servers" / "plain.py"
LISTING = Path(__file__).with_name("listing_server.py")
SERVER = ("--", sys.executable, str(PLAIN))


def test_calls_that_are_asked_for_are_made_and_counted(coatcheck: Run) -> None:
    call = f"echo={json.dumps({'text': 'some words ' * 10_000})}"

    done = coatcheck("demo", "--json", "--call", call, "--call", 'echo={"text": "hi"}', *SERVER)

    large, small = done.json["calls"]
    assert large["sizeBytes"] == 110_000
    assert large["rawTokens"] > 20_000 > 40 * large["tokens"]
    assert large["pointers"] == [json.loads(large["shown"])["pointer"]]
    assert (small["shown"], small["pointers"]) == ("hi", [])
    assert small["tokens"] == small["rawTokens"]
    assert done.json["schemaTokens"] <= 130


def test_what_the_calls_take_is_drawn_as_a_table(coatcheck: Run) -> None:
    call = f"echo={json.dumps({'text': 'some words ' * 10_000})}"

    printed = coatcheck("demo", "--call", call, *SERVER).text

    assert "110.0 kB" in printed
    assert '{"pointer":"art:' in printed
    assert "was kept out" in " ".join(printed.split())


def test_tools_that_only_read_and_need_nothing_are_called_unasked(coatcheck: Run) -> None:
    reads, nothing = {"annotations": {"readOnlyHint": True}}, {"type": "object"}
    needs: dict[str, Any] = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    tools: list[dict[str, Any]] = [
        {"name": "look", "inputSchema": nothing, **reads},
        {"name": "needs", "inputSchema": needs, **reads},
        {"name": "changes", "inputSchema": nothing},
    ]

    done = coatcheck("demo", "--json", "--", sys.executable, str(LISTING), json.dumps(tools))

    assert [call["tool"] for call in done.json["calls"]] == ["look"]
    assert done.json["calls"][0]["shown"] == "called"
    assert done.json["tools"] == ["look", "needs", "changes", "retrieve_context"]


def test_without_a_harmless_tool_none_is_called_and_it_is_said_how(coatcheck: Run) -> None:
    done = coatcheck("demo", "--", sys.executable, str(PLAIN), "--tools", "echo")

    assert done.code == 1
    assert "echo, retrieve_context" in done.text
    line = done.text.splitlines()[-1].strip()
    assert line == (
        "coatcheck demo --call echo -- "
        f"{shlex.join([sys.executable, str(PLAIN), '--tools', 'echo'])}"
    )


def test_what_a_tool_must_be_given_is_taken_from_its_schema_and_the_command(
    coatcheck: Run, tmp_path: Path
) -> None:
    reads = {"annotations": {"readOnlyHint": True}}
    each: dict[str, dict[str, Any]] = {
        "log": {"repo_path": {"type": "string"}},
        "branch": {"repo_path": {"type": "string"}, "kind": {"enum": ["local", "remote"]}},
        "show": {"repo_path": {"type": "string"}, "revision": {"type": "string"}},
        "depth": {"depth": {"type": "integer", "default": 2}},
        "count": {"path": {"type": "integer"}},
    }
    tools = [
        {
            "name": name,
            "inputSchema": {"type": "object", "properties": given, "required": list(given)},
            **reads,
        }
        for name, given in each.items()
    ]
    server = (sys.executable, str(LISTING), json.dumps(tools), f"--repository={tmp_path}")

    done = coatcheck("demo", "--json", "--", *server)

    folder = str(tmp_path)
    assert [(call["tool"], call["arguments"]) for call in done.json["calls"]] == [
        ("log", {"repo_path": folder}),
        ("branch", {"repo_path": folder, "kind": "local"}),
        ("depth", {"depth": 2}),
    ]


def test_lines_to_try_begin_with_what_only_reads_and_leave_out_what_destroys(
    coatcheck: Run,
) -> None:
    needs: dict[str, Any] = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    tools: list[dict[str, Any]] = [
        {"name": "drop", "inputSchema": needs, "annotations": {"destructiveHint": True}},
        {"name": "plain", "inputSchema": needs},
        {"name": "look", "inputSchema": needs, "annotations": {"readOnlyHint": True}},
    ]

    done = coatcheck("demo", "--", sys.executable, str(LISTING), json.dumps(tools))

    lines = [line for line in done.text.splitlines() if line.startswith("  coatcheck demo")]
    assert done.code == 1
    assert [line.split("'")[1] for line in lines] == ['look={"a": "…"}', 'plain={"a": "…"}']


def test_a_tool_that_is_not_there_is_named_with_those_that_are(coatcheck: Run) -> None:
    done = coatcheck("demo", "--call", "nothing", *SERVER)

    assert done.code == 2
    assert "The server has no tool 'nothing'." in done.err
    assert "echo" in done.err


def test_arguments_that_are_no_object_are_wrong_usage(coatcheck: Run) -> None:
    done = coatcheck("demo", "--call", 'echo={"text"', *SERVER)

    assert done.code == 2
    assert "no JSON object" in done.err


def test_a_server_that_does_not_start_is_told(coatcheck: Run) -> None:
    done = coatcheck("demo", "--json", "--", "/none")

    assert done.code == 2
    assert done.failure["error"] == "server-failed"
    assert "No such file" in done.failure["message"]


async def test_a_payload_too_large_to_be_sent_whole_is_read_in_windows() -> None:
    text = "".join(f"{number:09} ä\n" for number in range(40_000))
    server = SERVER[1:]

    async with proxied(server, ["--store", "memory:"], lambda _done, _all: None) as behind:
        envelope = json.loads(await behind.call("echo", {"text": text}))
        whole = await behind.payload(envelope["pointer"], envelope["sizeBytes"])
        windows = await behind.payload(envelope["pointer"], 1 << 30)

    assert whole == text
    assert windows == text


def test_calls_go_with_a_server_alone(coatcheck: Run) -> None:
    assert coatcheck("demo", "--call", "echo").code == 2
    assert coatcheck("demo", "README.md", *SERVER).code == 2
