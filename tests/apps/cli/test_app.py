"""The program around the commands: help, version, usage, pipes, interruption, what is missing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coatcheck import apps
from coatcheck.apps.cli import main
from coatcheck.apps.cli._app import default_store

from .conftest import Run

PROGRAM = [sys.executable, "-m", "coatcheck.apps.cli"]
COMMANDS = ["put", "ls", "show", "read", "search", "rm", "demo"]


def test_help_lists_every_command(coatcheck: Run) -> None:
    done = coatcheck("--help")

    assert done.code == 0
    assert all(f"│ {command} " in done.text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(coatcheck: Run, command: str) -> None:
    done = coatcheck(command, "-h")

    assert done.code == 0
    assert f"coatcheck {command} " in done.text.replace("P=$(", "").rpartition("╯")[2]
    assert "--json" in done.text


def test_no_command_shows_the_help_and_is_wrong_usage(coatcheck: Run) -> None:
    done = coatcheck()

    assert done.code == 2
    assert "Commands" in done.text


def test_version_is_that_of_the_package(coatcheck: Run) -> None:
    assert coatcheck("--version").text.startswith("coatcheck 0.")


def test_unknown_command_or_option_is_wrong_usage_in_both_forms(coatcheck: Run) -> None:
    assert coatcheck("frobnicate").err == (
        "coatcheck: No such command 'frobnicate'.\n  `coatcheck --help` explains the command.\n"
    )
    assert coatcheck("read", "x", "--frob").code == 2
    assert coatcheck("read", "--json").failure["error"] == "invalid-argument"
    assert "coatcheck read --help" in coatcheck("read", "--json").failure["hint"]


def test_default_store_lies_in_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, coatcheck: Run
) -> None:
    monkeypatch.delenv("COATCHECK_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))

    coatcheck("put", "-", given=b"x")

    folder = Path(default_store().removeprefix("file:"))
    assert folder.is_relative_to(tmp_path)
    assert (folder / "store" / "format").is_file()


def test_main_runs_the_arguments_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["coatcheck", "--version"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code in (0, None)
    assert capsys.readouterr().out.startswith("coatcheck 0.")


def test_main_names_the_extra_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(apps.__file__).parents[2])])
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[-1:])
    for module in ("typer", "rich", "rs_bpe"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert "pip install 'coatcheck[cli]'" in capsys.readouterr().err


def test_closed_pipe_ends_without_a_traceback(store: str) -> None:
    environment = os.environ | {"COATCHECK_STORE": store}
    put = subprocess.run(
        [*PROGRAM, "put", "-", "--name", "big"],
        input=b"x" * 2_000_000,
        env=environment,
        capture_output=True,
        check=True,
    )

    reading = subprocess.Popen(
        [*PROGRAM, "read", "big", "--all"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert reading.stdout is not None
    assert reading.stderr is not None
    assert reading.stdout.read(1) == b"x"
    reading.stdout.close()
    error = reading.stderr.read()
    reading.stderr.close()

    assert put.stdout.startswith(b"art:")
    assert (reading.wait(), error) == (141, b"")


def test_interruption_ends_with_130_and_without_a_traceback(store: str) -> None:
    # Waits on its standard input, which stays open.
    waiting = subprocess.Popen(
        [sys.executable, "-c", _TELL_WHEN_READY],
        env=os.environ | {"COATCHECK_STORE": store},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"ready\n"
    waiting.send_signal(signal.SIGINT)
    _, error = waiting.communicate()

    assert (waiting.returncode, error) == (130, b"")


_TELL_WHEN_READY = """
import signal
import sys
from coatcheck.apps.cli import main

# Ignored from the start where the tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Telling:
    def read(self):
        print("ready", flush=True)
        return real.read()

real = sys.stdin.buffer
sys.stdin = type("Stdin", (), {"buffer": Telling()})()
sys.argv = ["coatcheck", "put", "-"]
main()
"""


@pytest.mark.parametrize("command", [["put", "README.md"], ["ls"], ["show", "x"]])
def test_a_store_that_ends_with_the_command_is_wrong_usage(
    coatcheck: Run, command: list[str]
) -> None:
    done = coatcheck(*command, "--store", "memory:")

    assert done.code == 2
    assert done.out == b""
    assert "ends with this command" in done.err
