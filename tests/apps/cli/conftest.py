"""What the tests of the command line share: a store of their own, a pipe and a terminal."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from coatcheck.apps.cli._program import app


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its exit code and both streams."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def failure(self) -> dict[str, str]:
        failure: dict[str, str] = json.loads(self.err)
        return failure


Run = Callable[..., Done]


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = f"file:{tmp_path / 'store'}"
    monkeypatch.setenv("COATCHECK_STORE", address)
    monkeypatch.setenv("COLUMNS", "80")
    return address


@pytest.fixture
def coatcheck(store: str) -> Run:
    """Runs a command with pipes for its streams."""
    assert store

    def run(*arguments: str, given: bytes = b"") -> Done:
        done = CliRunner().invoke(app, list(arguments), input=given, prog_name="coatcheck")
        return Done(done.exit_code, done.stdout_bytes, done.stderr)

    return run


@pytest.fixture
def in_terminal(store: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a terminal, in which `given` is typed."""
    assert store
    monkeypatch.setenv("TERM", "xterm-256color")

    def run(*arguments: str, columns: int = 80, given: bytes = b"") -> Done:
        outputs = (io.BytesIO(), io.BytesIO())
        streams = [_Terminal(output, encoding="utf-8", write_through=True) for output in outputs]
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        monkeypatch.setattr(sys, "stdin", _Terminal(io.BytesIO(given), encoding="utf-8"))
        code = _code_of(arguments)
        out, err = (output.getvalue() for output in outputs)
        return Done(code, out, err.decode())

    return run


def _code_of(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        typer.main.get_command(app).main(args=list(arguments), prog_name="coatcheck")
    return ended.value.code if isinstance(ended.value.code, int) else 0
