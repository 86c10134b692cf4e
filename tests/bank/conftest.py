from pathlib import Path

import pytest

from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")
