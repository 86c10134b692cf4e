"""A store that several users of a machine share, and one that belongs to a single user.

Only root may become another user, so elsewhere these tests are left out; that a pointer resolves
in another process and folder is tested beside each store.
"""

import asyncio
import os
import secrets
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck import Bank, BlockingBank
from coatcheck.bank import store_at
from coatcheck.testing import S3Server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")

NOBODY = 65_534

# All that is imported on the way is imported before: the other user may not reach this Python.
AS_ANOTHER = """
import os, sys
from coatcheck import BlockingBank, CoatcheckError

def work(address, scope, pointer=None):
    with BlockingBank(address, scope=scope) as bank:
        made = bank.put("né " * 40_000, name="text").pointer
        read = [bank.read(pointer or made, 90_000, 3).content, bank.find("text").name]
        list(bank.list())
        return [made, *read]

address, warm, pointer, folder = sys.argv[1:]
work(warm, "warm")
os.setgroups([])
os.setgid(65_534)
os.setuid(65_534)
os.chdir(folder)
os.environ["HOME"] = folder
try:
    print(os.getuid(), *work(address, "run", pointer))
except CoatcheckError as error:
    print(os.getuid(), type(error).__name__, error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return an empty folder that every user of the machine may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(params=["redis", "s3"])
def address(request: pytest.FixtureRequest) -> str:
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        return url
    s3: S3Server = request.getfixturevalue("s3")
    return s3.address(secrets.token_hex(6))


def _as_nobody(address: str, warm: str, pointer: str, folder: Path) -> list[str]:
    command = [sys.executable, "-c", AS_ANOTHER, address, warm, pointer, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


async def test_a_pointer_resolves_for_another_user_process_and_folder_both_ways(
    address: str, open_folder: Path
) -> None:
    store = store_at(address)
    bank = Bank(store, scope="run")
    here = (await bank.put("zażółć " * 40_000, name="here")).pointer

    uid, there, read, *name = await asyncio.to_thread(
        _as_nobody, address, address, here, open_folder
    )

    assert int(uid) == NOBODY != os.getuid()
    assert read == ("zażółć " * 40_000)[90_000:90_003]
    assert name == ["text"]
    assert await bank.get(there) == "né " * 40_000
    assert (await bank.find("text")) is not None
    await store.close()


def test_a_folder_of_one_user_is_refused_to_another_in_words_that_say_why(
    open_folder: Path,
) -> None:
    folder = open_folder / "store"
    with BlockingBank(f"file:{folder}", scope="run") as bank:
        pointer = bank.put("né " * 40_000, name="mine").pointer
    before = sorted(folder.rglob("*"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    uid, kind, *said = _as_nobody(
        f"file:{folder}", f"file:{open_folder / 'warm'}", pointer, open_folder
    )

    assert (int(uid), kind) == (NOBODY, "StoreUnavailableError")
    assert "Permission denied" in " ".join(said)
    assert str(folder) not in " ".join(said)
    assert sorted(folder.rglob("*")) == before
    with BlockingBank(f"file:{folder}", scope="run") as bank:
        assert bank.get(pointer) == "né " * 40_000
