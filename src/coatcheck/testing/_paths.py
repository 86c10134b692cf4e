"""What a store whose payloads are files of this machine promises, as tests."""

import pytest

from ..stores import Store, SupportsPath
from ._capabilities import CapabilitySuite
from ._lasting import EVERY_BYTE


class PathSuite(CapabilitySuite):
    """The part of `StoreSuite` that only a store of files can pass."""

    @pytest.fixture
    def on_paths(self, store: Store) -> SupportsPath:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsPath):
            pytest.skip("this store has no path")
        return store

    async def test_path_holds_the_payload(self, store: Store, on_paths: SupportsPath) -> None:
        await store.put("a/b/k.json", EVERY_BYTE)

        path = await on_paths.path("a/b/k.json")

        assert path is not None
        assert path.is_absolute()
        assert path.read_bytes() == EVERY_BYTE

    async def test_path_of_what_is_missing_is_none(
        self, store: Store, on_paths: SupportsPath
    ) -> None:
        await store.put("a/k", b"x")
        assert await on_paths.path("a/other") is None
        assert await on_paths.path("other/k") is None
        assert await on_paths.path("a") is None

        await store.delete("a/k")

        assert await on_paths.path("a/k") is None
