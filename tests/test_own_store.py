"""The store of docs/your-own-store.md passes the suite, as the page says, and on a real S3 too."""

import itertools
import unittest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from obstore.store import MemoryStore, S3Store

from coatcheck.stores import Store
from coatcheck.testing import S3Server, StoreSuite

PAGE = Path(__file__).parents[1] / "docs" / "your-own-store.md"

_numbers = itertools.count()


def blocks() -> list[str]:
    return [part.partition("\n```")[0] for part in PAGE.read_text("utf-8").split("```python\n")[1:]]


_names: dict[str, Any] = {"__name__": __name__, "MemoryStore": MemoryStore}
for _number in (0, 2):
    exec(compile(blocks()[_number], str(PAGE), "exec"), _names)
BucketStore: Any = _names["BucketStore"]
TestBucketStore: Any = _names["TestBucketStore"]


def test_the_machine_of_the_page_drives_its_store() -> None:
    machine: Any = _names["TestBucketStoreSteps"]
    machine.settings = settings(max_examples=5, stateful_step_count=10)

    result = unittest.TestResult()
    machine("runTest").run(result)

    assert result.testsRun == 1
    assert not result.errors + result.failures


class TestBucketStoreOnS3(StoreSuite):
    @pytest.fixture
    def store(self, s3: S3Server) -> Store:
        bucket = S3Store(
            s3.bucket,
            prefix=f"own/{next(_numbers)}",
            endpoint=s3.url,
            access_key_id="test",
            secret_access_key="testsecret",
            region="us-east-1",
            client_options={"allow_http": True},
        )
        store: Store = BucketStore(bucket)
        return store


def test_the_store_of_the_page_has_about_fifty_lines() -> None:
    lines = [line for line in blocks()[0].splitlines() if line.strip()]

    assert len(lines) <= 60
