"""Servers for tests: ready when they are handed over, and gone whatever becomes of the test."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from coatcheck.testing import (
    ServerStartError,
    Wire,
    free_port,
    redis_server,
    running,
    wire_to,
)

OWNER = """
import sys, time
from pathlib import Path
from coatcheck.testing import redis_server

with redis_server(Path(sys.argv[1])) as server:
    print(server.child.pid, flush=True)
    time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def answers(port: int) -> bool:
    return say(port, b"PING\r\n") == b"+PONG\r\n"


def say(port: int, words: bytes) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), 0.2) as connection:
            connection.sendall(words)
            return connection.recv(1_000)
    except OSError:
        return b""


async def gone(pid: int) -> None:
    """Wait until a process is, which takes a moment after the signal."""
    with anyio.fail_after(10):
        while is_alive(pid):
            await anyio.sleep(0.01)


def test_redis_answers_at_once_and_is_gone_after_the_block(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--maxmemory", "20mb") as server:
        assert answers(server.port)
        assert server.url == f"redis://127.0.0.1:{server.port}/0"
        assert b"20971520" in say(server.port, b"CONFIG GET maxmemory\r\n")
        pid = server.child.pid

    assert not is_alive(pid)
    assert [path.name for path in tmp_path.iterdir()] == [f"redis-{server.port}.log"]


def test_redis_that_was_paused_or_killed_by_its_test_is_gone_after_the_block(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path) as paused:
        paused.pause()
        assert not answers(paused.port)
        paused.resume()
        assert answers(paused.port)
        paused.pause()
    with redis_server(tmp_path) as killed:
        killed.kill()
        assert not answers(killed.port)
        with redis_server(tmp_path, port=killed.port) as again:
            assert answers(again.port)

    for server in (paused, killed, again):
        assert not is_alive(server.child.pid)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_server_ends_with_a_test_process_that_is_killed(
    tmp_path: Path, end: signal.Signals
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_alive(pid)
        owner.send_signal(end)

    await gone(pid)


def test_program_that_does_not_start_says_what_it_said(tmp_path: Path) -> None:
    ends = [sys.executable, "-c", "print('no such luck')"]
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    log = tmp_path / "log"

    for starting, said in (
        (redis_server(tmp_path, "--no-such-option", "1"), "no-such-option"),
        (running(ends, lambda: False, log), "no such luck"),
        (running(waits, lambda: False, log, within_seconds=0.2), "did not start"),
    ):
        with pytest.raises(ServerStartError, match=said), starting:
            raise AssertionError("it started")


async def test_server_ends_with_whatever_it_started(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal, subprocess, sys, time\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(other.pid))\n"
        "time.sleep(60)"
    )
    told = tmp_path / "told"

    def is_ready() -> bool:
        return told.exists() and told.read_text().isdecimal()

    command = [sys.executable, "-c", program, str(told)]
    with running(command, is_ready, tmp_path / "log", environment={"PATH": "/bin"}) as child:
        other = int(told.read_text())
        assert is_alive(other)

    assert not is_alive(child.pid)
    await gone(other)


def test_a_free_port_can_be_listened_on() -> None:
    port = free_port()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", port))

        assert listening.getsockname()[1] == port


async def test_wire_hands_on_and_loses_what_it_is_told_to(tmp_path: Path) -> None:
    async def say(wire: Wire, words: bytes) -> bytes:
        async with await anyio.connect_tcp("127.0.0.1", wire.port) as connection:
            await connection.send(words)
            try:
                return await connection.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return b"cut"

    with redis_server(tmp_path) as server:
        async with wire_to(server.port) as wire:
            assert await say(wire, b"INCR n\r\n") == b":1\r\n"
            wire.lose(b"INCR")
            assert await say(wire, b"PING\r\n") == b"+PONG\r\n"
            assert await say(wire, b"INCR n\r\n") == b"cut"
            assert await say(wire, b"INCR n\r\n") == b":2\r\n"
            wire.lose(b"INCR", answer=True, times=2)
            assert await say(wire, b"INCR n\r\n") == b"cut"
            assert await say(wire, b"INCR n\r\n") == b"cut"
            assert await say(wire, b"INCR n\r\n") == b":5\r\n"
            assert wire.lost == 3
