"""However a proxy ends, nothing of it stays: the program itself, as hosts start it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

SERVER = Path(__file__).parents[1] / "servers" / "plain.py"
PLAIN = [sys.executable, "-I", "-S", str(SERVER)]
WITHIN_SECONDS = 20.0


class Program:
    """A proxy as hosts start it, before one server."""

    def __init__(self, *server: str) -> None:
        command = [sys.executable, "-m", "coatcheck.apps.cli", "proxy", "--store", "memory:"]
        self.process = subprocess.Popen(
            [*command, "--no-journal", "--", *server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def send(self, method: str, **params: object) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        self.send(method, **params)
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def call(self, tool: str, **arguments: object) -> Any:
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return json.loads(result["content"][0]["text"])

    def introduce(self, *can: str) -> list[psutil.Process]:
        """Introduce a host. Return all processes that there are now."""
        opening: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {name: {} for name in can},
            "clientInfo": {"name": "host", "version": "1"},
        }
        self.ask("initialize", **opening)
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]


@pytest.fixture
def start() -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def one(*server: str) -> Program:
        started.append(Program(*server))
        return started[-1]

    yield one
    for program in started:
        with suppress(ProcessLookupError):
            os.killpg(program.process.pid, signal.SIGKILL)
        program.process.wait()
        for pipe in (program.process.stdin, program.process.stdout, program.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def gone(processes: list[psutil.Process]) -> bool:
    """Return whether all have ended, after a while."""
    until = time.monotonic() + WITHIN_SECONDS
    while time.monotonic() < until:
        if not any(each.is_running() and each.status() != "zombie" for each in processes):
            return True
        psutil.wait_procs(processes, timeout=0.05)
    return False


STUBBORN = "import signal,time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def test_client_that_leaves_ends_all(start: Callable[..., Program]) -> None:
    program = start(*PLAIN)
    processes = program.introduce()
    assert program.process.stdin is not None

    program.process.stdin.close()

    assert program.process.wait(WITHIN_SECONDS) == 0
    assert gone(processes)
    assert len(processes) >= 3  # proxy, server, guard


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_all_while_a_call_is_under_way(
    start: Callable[..., Program], number: signal.Signals
) -> None:
    program = start(*PLAIN)
    processes = program.introduce()
    program.send("tools/call", name="sleep", arguments={"text": "600"})

    program.process.send_signal(number)

    assert program.process.wait(WITHIN_SECONDS) == 0
    assert gone(processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_server_that_does_not_leave_by_itself_is_ended(
    start: Callable[..., Program], number: signal.Signals
) -> None:
    program = start(*PLAIN, "--stay")
    processes = program.introduce()

    program.process.send_signal(number)

    program.process.wait(WITHIN_SECONDS)
    assert gone(processes)


def test_what_a_server_starts_is_ended_with_it(start: Callable[..., Program]) -> None:
    child = f"{STUBBORN}time.sleep(600)"
    program = start("/bin/sh", "-c", f"{sys.executable} -c '{child}' & exec {' '.join(PLAIN)}")
    processes = program.introduce()
    assert program.process.stdin is not None
    while len(processes) < 4:
        processes = [processes[0], *processes[0].children(recursive=True)]

    program.process.stdin.close()

    assert program.process.wait(WITHIN_SECONDS) == 0
    assert gone(processes)


def test_requests_that_were_sent_are_answered_before_it_leaves(
    start: Callable[..., Program],
) -> None:
    program = start(*PLAIN)
    program.introduce()
    program.send("tools/call", name="echo", arguments={"text": "last words"})

    out, err = program.process.communicate(timeout=WITHIN_SECONDS)

    assert b"last words" in out
    assert len(err.splitlines()) == 1  # the line that a start prints


def test_slow_answer_is_waited_for_when_the_client_sends_no_more(
    start: Callable[..., Program],
) -> None:
    program = start(*PLAIN)
    program.introduce()
    program.send("tools/call", name="sleep", arguments={"text": "1.5"})

    out, _ = program.process.communicate(timeout=WITHIN_SECONDS)

    assert [json.loads(line)["id"] for line in out.splitlines()] == ["tools/call"]
    assert program.process.returncode == 0


def left_with(program: Program, method: str, **params: object) -> list[psutil.Process]:
    """Send no more than one request, which takes long, and return what runs meanwhile."""
    processes = program.introduce("elicitation")
    program.send(method, **params)
    assert program.process.stdin is not None
    program.process.stdin.close()
    program.process.stdin = None  # else `communicate` would close it again
    return processes


def test_signal_ends_it_at_once_while_an_answer_is_waited_for(
    start: Callable[..., Program],
) -> None:
    program = start(*PLAIN)
    processes = left_with(program, "tools/call", name="sleep", arguments={"text": "600"})

    program.process.send_signal(signal.SIGTERM)

    assert program.process.wait(WITHIN_SECONDS) == 0
    assert gone(processes)


def test_client_that_reads_no_more_ends_it_at_once_while_an_answer_is_waited_for(
    start: Callable[..., Program],
) -> None:
    program = start(*PLAIN)
    processes = left_with(program, "tools/call", name="sleep", arguments={"text": "600"})
    assert program.process.stdout is not None

    program.process.stdout.close()

    assert program.process.wait(WITHIN_SECONDS) == 0
    assert gone(processes)


def test_question_to_a_client_that_sends_no_more_is_not_waited_for(
    start: Callable[..., Program],
) -> None:
    program = start(*PLAIN)
    processes = left_with(program, "tools/call", name="elicit", arguments={})

    out, _ = program.process.communicate(timeout=WITHIN_SECONDS)

    assert json.loads(out.splitlines()[-1])["id"] == "tools/call"
    assert gone(processes)


def test_what_only_listens_is_answered_when_the_client_sends_no_more(
    start: Callable[..., Program],
) -> None:
    meta = "io.modelcontextprotocol/"
    own: dict[str, Any] = {f"{meta}protocolVersion": "2026-07-28", f"{meta}clientCapabilities": {}}
    program = start(*PLAIN)
    wanted = {"toolsListChanged": True}
    program.send("subscriptions/listen", notifications=wanted, _meta=own)

    out, _ = program.process.communicate(timeout=WITHIN_SECONDS)

    acknowledged, answer = (json.loads(line) for line in out.splitlines())
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert answer["result"]["resultType"] == "complete"
    assert program.process.returncode == 0


def test_standard_output_holds_messages_alone(start: Callable[..., Program]) -> None:
    program = start(*PLAIN)
    program.introduce()
    program.call("facts")
    program.send("tools/call", name="say", arguments={"text": "I am no message"})

    out, err = program.process.communicate(timeout=WITHIN_SECONDS)

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert b"I am no message" in err


def test_what_a_server_writes_to_standard_error_is_passed_on_under_its_name(
    start: Callable[..., Program],
) -> None:
    program = start("/bin/sh", "-c", f"echo 'a warning' >&2; exec {' '.join(PLAIN)}")
    program.introduce()

    _, err = program.process.communicate(timeout=WITHIN_SECONDS)

    assert b"sh: a warning" in err.splitlines()


def test_what_a_server_writes_to_standard_error_drives_no_terminal(
    start: Callable[..., Program],
) -> None:
    hostile = r"\033[2Jred\033]0;title\007 \010alert\015forged\302\233"
    program = start("/bin/sh", "-c", f"printf '{hostile}\n' >&2; exec {' '.join(PLAIN)}")
    program.introduce()

    _, err = program.process.communicate(timeout=WITHIN_SECONDS)

    (line,) = [each for each in err.decode().splitlines() if each.startswith("sh: ")]
    assert line == "sh: red ␈alert␍forged"


def test_client_that_reads_no_more_ends_all(start: Callable[..., Program]) -> None:
    program = start(*PLAIN)
    processes = program.introduce()
    assert program.process.stdout is not None

    program.process.stdout.close()
    program.send("tools/call", name="echo", arguments={"text": "nobody reads this"})

    assert program.process.wait(WITHIN_SECONDS) == 0
    assert gone(processes)


def test_requests_may_come_from_a_file(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    line = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    requests.write_text(json.dumps(line) + "\n")
    command = [sys.executable, "-m", "coatcheck.apps.cli", "proxy", "--store", "memory:"]

    with requests.open("rb") as file, (tmp_path / "answers").open("wb") as answers:
        done = subprocess.run(
            [*command, "--no-journal", "--", *PLAIN],
            stdin=file,
            stdout=answers,
            stderr=subprocess.PIPE,
            timeout=WITHIN_SECONDS,
            check=True,
        )

    assert json.loads((tmp_path / "answers").read_text()) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {},
    }
    assert b"Traceback" not in done.stderr
