"""What a store promises that writes or removes on a condition, as tests: skipped elsewhere."""

import anyio
import pytest

from ..stores import Store, SupportsCompare, SupportsCreate
from ._lasting import LastingSuite, listing


class ConditionSuite(LastingSuite):
    """The part of `StoreSuite` for stores that create if absent, or remove what is unchanged."""

    @pytest.fixture
    def comparing(self, store: Store) -> SupportsCompare:
        """Return the store where it has this capability."""
        if not isinstance(store, SupportsCompare):
            pytest.skip("this store has no delete_unchanged")
        return store

    async def test_create_writes_where_nothing_is_and_nowhere_else(
        self, store: Store, creating: SupportsCreate
    ) -> None:
        assert await creating.create("a/1", b"first")
        assert not await creating.create("a/1", b"second")
        assert await store.get("a/1") == b"first"

        await store.delete("a/1")
        assert await creating.create("a/1", b"third")
        assert await store.get("a/1") == b"third"

    async def test_create_does_not_replace_what_was_put_and_put_replaces(
        self, store: Store, creating: SupportsCreate
    ) -> None:
        await store.put("a/1", b"")

        assert not await creating.create("a/1", b"second")
        assert await store.get("a/1") == b""

        await store.put("a/1", b"third")
        assert await store.get("a/1") == b"third"

    @pytest.mark.parametrize("size", [1, 1_100_000])
    async def test_only_what_is_as_it_was_read_is_removed(
        self, store: Store, comparing: SupportsCompare, size: int
    ) -> None:
        same, other = b"s" * size, b"s" * (size - 1) + b"o"
        await store.put("a/same", same)
        await store.put("a/longer", same + b"s")
        await store.put("a/other", other)
        await store.put("a/empty", b"")

        names = ["a/same", "a/longer", "a/other", "a/empty", "a/missing", "b/missing"]
        others = await comparing.delete_unchanged(dict.fromkeys(names, same))

        assert others == {"a/longer", "a/other", "a/empty"}
        assert await store.get("a/same") is None
        assert await store.get("a/longer") == same + b"s"
        assert await store.get("a/other") == other
        assert await listing(store, "a/") == ["a/empty", "a/longer", "a/other"]
        assert await comparing.delete_unchanged({"a/empty": b""}) == set()
        assert await store.get("a/empty") is None
        assert await comparing.delete_unchanged({}) == set()

    async def test_what_is_no_key_is_refused_among_those_to_compare_and_none_goes(
        self, store: Store, comparing: SupportsCompare
    ) -> None:
        await store.put("a/1", b"1")

        with pytest.raises(ValueError, match="key"):
            await comparing.delete_unchanged({"a/1": b"1", "../etc/passwd": b"1"})

        assert await store.get("a/1") == b"1"

    async def test_any_number_is_compared_at_once(
        self, store: Store, comparing: SupportsCompare
    ) -> None:
        keys = {f"a/{number}": f"{number}".encode() for number in range(130)}
        for key, payload in keys.items():
            await store.put(key, payload)
        await store.put("a/7", b"another")
        await store.put("a/129", b"another")

        assert await comparing.delete_unchanged(keys) == {"a/7", "a/129"}
        assert [key async for key in store.keys("a/")] == ["a/129", "a/7"]

    async def test_what_is_created_behind_a_removal_is_not_removed_by_another(
        self, store: Store, comparing: SupportsCompare, creating: SupportsCreate
    ) -> None:
        async def remove_and_create(payload: bytes, new: bytes) -> None:
            assert await comparing.delete_unchanged({"a/1": payload}) == set()
            assert await creating.create("a/1", new)

        for number in range(20):
            payload, new = b"%d" % number, b"%d" % (number + 1)
            await store.put("a/1", payload)
            async with anyio.create_task_group() as group:
                group.start_soon(remove_and_create, payload, new)
                for _ in range(3):
                    group.start_soon(comparing.delete_unchanged, {"a/1": payload})
            assert await store.get("a/1") == new

    @pytest.mark.parametrize("size", [10, 1_100_000])
    async def test_one_of_twenty_that_create_at_once_wins(
        self, store: Store, creating: SupportsCreate, size: int
    ) -> None:
        payloads = [bytes([number]) * size for number in range(20)]
        won: list[bytes] = []

        async def race(payload: bytes) -> None:
            if await creating.create("a/1", payload):
                won.append(payload)

        async with anyio.create_task_group() as group:
            for payload in payloads:
                group.start_soon(race, payload)

        assert len(won) == 1
        assert await store.get("a/1") == won[0]
