import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")


@pytest.fixture(params=["memory", "file", "redis", "s3"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return an empty store of each kind there is, the services real ones."""
    store: Store
    if request.param == "redis":
        store = RedisStore(request.getfixturevalue("redis_url"))
    elif request.param == "s3":
        store = ObjectStore(request.getfixturevalue("s3").address(secrets.token_hex(6)))
    else:
        store = MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")
    yield store
    asyncio.run(store.close())
