"""The S3 for tests: takes objects at once, comes back where it was, and leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import ObjectStore
from coatcheck.testing import S3Server, ServerStartError, s3_server

OWNER = """
import sys, time
from pathlib import Path
from coatcheck.testing import s3_server

with s3_server(Path(sys.argv[1])) as server:
    print(server.child.pid, flush=True)
    time.sleep(60)
"""


async def test_a_server_has_its_bucket_and_no_other(s3: S3Server) -> None:
    store = ObjectStore(s3.address("server"))
    await store.put("a/1", b"x")

    assert await store.get("a/1") == b"x"
    with pytest.raises(StoreUnavailableError, match="no such bucket"):
        await ObjectStore(s3.address().replace("//artifacts", "//other")).put("a/1", b"x")


async def test_a_killed_server_comes_back_with_what_it_had(tmp_path: Path) -> None:
    with s3_server(tmp_path, bucket="mine") as server:
        store = ObjectStore(server.address())
        await store.put("a/1", b"x" * 100_000)
        server.kill()

    with s3_server(tmp_path, bucket="mine", ports=server.ports) as again, anyio.fail_after(30):
        assert again.url == server.url
        kept: bytes | None = None
        while kept is None:  # the service needs a moment to find what it had
            try:
                kept = await store.get("a/1")
            except StoreUnavailableError:
                await anyio.sleep(0.1)
        assert kept == b"x" * 100_000

    sockets = [
        path for port in server.ports.values() for path in Path("/tmp").glob(f"*-{port}.sock")
    ]
    assert sockets == []


def test_a_server_goes_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        server = psutil.Process(int(owner.stdout.readline()))
        assert server.is_running()
        owner.kill()
        owner.wait()

    psutil.wait_procs([server], timeout=10)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


def test_a_server_that_does_not_start_is_told_with_its_log(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerStartError, match="did not start"),
        s3_server(tmp_path, "-no-such-option"),
    ):
        raise AssertionError("it started")
