"""Memory on each kind of store."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coatcheck import AgentMemory, Bank
from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "file", "redis", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    if request.param == "redis":
        made = RedisStore(request.getfixturevalue("redis_url"))
    elif request.param == "s3":
        made = ObjectStore(request.getfixturevalue("s3").address(secrets.token_hex(6)))
    else:
        made = MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")
    yield made
    await made.close()


@pytest.fixture
def bank(store: Store, clock: ManualClock) -> Bank:
    return Bank(store, clock=clock)


@pytest.fixture
def memory(bank: Bank) -> AgentMemory:
    return AgentMemory(bank)
