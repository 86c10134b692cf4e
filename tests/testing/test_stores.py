"""The suite and the machine are worth something only where they fail on a store that is wrong."""

import math
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from coatcheck.stores import MemoryStore, Store
from coatcheck.testing import ManualClock, StoreMachine, check_store, store_machine

pytest_plugins = ["pytester"]

# Found is enough here; to shrink what was found takes longer.
FIND = (Phase.generate,)


class Forgetful(MemoryStore):
    async def get(self, key: str) -> bytes | None:
        payload = await super().get(key)
        return payload[:65_536] if payload else payload


class Deep(MemoryStore):
    async def keys(self, folder: str) -> AsyncIterator[str]:
        async for key in super().keys(folder):
            yield key
        if folder == "a/":
            async for key in super().keys("a/b/"):
                yield key


class Stubborn(MemoryStore):
    async def create(self, key: str, payload: bytes) -> bool:
        await self.put(key, payload)
        return True


class Leaky(MemoryStore):
    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        whole = b""
        for chunk in chunks:
            whole += chunk
            await self.put(key, whole)


class OffByOne(MemoryStore):
    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        return await super().get_range(key, start_byte, stop_byte + 1)


class Undying(MemoryStore):
    async def delete(self, key: str) -> None:
        await self.get(key)


class Plain:
    """The least a store can be: no capability at all."""

    def __init__(self) -> None:
        self.inner = MemoryStore()

    async def put(self, key: str, payload: bytes) -> None:
        await self.inner.put(key, payload)

    async def get(self, key: str) -> bytes | None:
        return await self.inner.get(key)

    async def delete(self, key: str) -> None:
        await self.inner.delete(key)

    def keys(self, folder: str) -> AsyncIterator[str]:
        return self.inner.keys(folder)

    async def close(self) -> None:
        await self.inner.close()


BROKEN: dict[type[Store], str] = {
    Forgetful: "put",
    Deep: "keys",
    Stubborn: "create",
    Leaky: "stream",
    OffByOne: "range",
    Undying: "delete",
}
"""Each with the word for the tests that must find it."""


def test_machine_passes_a_store_without_capabilities() -> None:
    check_store(Plain, runs=5, steps=10)


@pytest.mark.parametrize("make_store", BROKEN)
def test_machine_finds_what_is_wrong(make_store: type[Store]) -> None:
    quick = settings(max_examples=60, database=None, report_multiple_bugs=False, phases=FIND)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(store_machine(make_store), settings=quick)


def test_suite_passes_a_store_without_capabilities_and_skips_what_needs_them(
    pytester: pytest.Pytester,
) -> None:
    done = run_suite(pytester, fixture(Plain))

    assert done["failed"] == done["errors"] == 0
    assert done["passed"] > 20
    assert done["skipped"] > 20


@pytest.mark.parametrize("make_store", BROKEN)
def test_suite_finds_what_is_wrong(make_store: type[Store], pytester: pytest.Pytester) -> None:
    done = run_suite(pytester, fixture(make_store), BROKEN[make_store])

    assert done["failed"] > 0


def test_suite_without_a_store_fixture_says_what_to_return(pytester: pytest.Pytester) -> None:
    done = run_suite(pytester, "    pass", "range")

    assert done["passed"] == 0
    assert done["errors"] > 5


def test_machine_without_a_store_says_where_to_get_one() -> None:
    with pytest.raises(NotImplementedError, match="store_machine"):
        StoreMachine()


def test_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(100)
    before = clock(), clock()
    clock.advance(0.5)

    assert before == (100, 100)
    assert math.isclose(clock(), 100.5)


def fixture(make_store: type[Store]) -> str:
    return f"    @pytest.fixture\n    def store(self): return stores.{make_store.__name__}()"


def run_suite(pytester: pytest.Pytester, body: str, only: str = "") -> dict[str, int]:
    """Return how the suite ends for a test class of an outsider, with no setting of ours."""
    pytester.makepyfile(
        f"""
import importlib.util
import pytest
from coatcheck.testing import StoreSuite

spec = importlib.util.spec_from_file_location("stores", {str(Path(__file__))!r})
stores = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stores)

@pytest.fixture
def anyio_backend():
    return "asyncio"

class TestOutside(StoreSuite):
{body}
"""
    )
    done = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", only)
    outcomes = done.parseoutcomes()
    return {name: outcomes.get(name, 0) for name in ("passed", "failed", "errors", "skipped")}
