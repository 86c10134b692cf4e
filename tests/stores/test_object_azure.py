"""The whole suite on Azure's protocol, as Azurite speaks it; left out where that is not installed.

`make azure` installs it with npm, and runs these tests.
"""

import base64
import hashlib
import hmac
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from coatcheck import Bank
from coatcheck.stores import ObjectStore
from coatcheck.testing import StoreSuite, check_store, free_port, running

PROGRAM = shutil.which("azurite-blob")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no azurite-blob here: make azure")

ACCOUNT, KEY = "tests", base64.b64encode(b"of tests alone").decode()
CONTAINER = "artifacts"

_numbers = itertools.count()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of an Azurite with one empty container."""
    port = free_port()
    at = f"http://127.0.0.1:{port}/{ACCOUNT}"
    command = [str(PROGRAM), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    environment = {
        "PATH": os.environ["PATH"],
        "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}",
    }
    log = tmp_path_factory.mktemp("azure") / "azurite.log"
    with running(command, partial(_has_container, at), log, environment=environment):
        yield at


def _has_container(endpoint: str) -> bool:
    """Make the container; return whether that could be done."""
    date, version = formatdate(usegmt=True), "2021-08-06"
    signed = (
        f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{version}\n"
        f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    )
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
        "Content-Length": "0",
        "x-ms-date": date,
        "x-ms-version": version,
    }
    url = f"{endpoint}/{CONTAINER}?restype=container"
    with suppress(URLError, OSError), urlopen(Request(url, method="PUT", headers=headers)) as done:
        return bool(done.status == 201)
    return False


def _fresh(endpoint: str) -> ObjectStore:
    """Return a store in the container where nothing lies yet."""
    options = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": endpoint}
    return ObjectStore(f"az://{CONTAINER}/{next(_numbers)}?{urlencode(options)}")


class TestObjectsInAzure(StoreSuite):
    @pytest.fixture
    def store(self, endpoint: str) -> ObjectStore:
        return _fresh(endpoint)


def test_objects_in_azure_behave_as_a_dict_over_random_steps(endpoint: str) -> None:
    check_store(lambda: _fresh(endpoint), runs=5, steps=12)


async def test_a_bank_on_azure_reads_windows_and_finds_names_in_another_store(
    endpoint: str,
) -> None:
    store = _fresh(endpoint)
    text = "zażółć gęślą jaźń 🚀\n" * 400_000
    made = await Bank(store).put(text, name="text")

    bank = Bank(store)
    page = await bank.read(made.pointer, 7_000_000, 40)

    assert made.size_bytes > 5 * 1024 * 1024  # sent in parts
    assert page.content == text[7_000_000:7_000_040]
    assert (await bank.get("text")) == text
    assert [each.pointer async for each in bank.list()] == [made.pointer]
    assert await bank.delete("text")
    assert [each async for each in bank.list()] == []
    await store.close()
