"""Reports on stores out of reach: it is said, no result is lost, and nothing goes elsewhere."""

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from coatcheck import Bank, BlockingBank, Envelope, Limits, Mirror, mirror
from coatcheck.errors import StoreError, StoreUnavailableError
from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.tools import artifact_tools, retrieval_tools


@pytest.fixture(params=["memory", "file", "redis", "s3"])
def reopen(
    request: pytest.FixtureRequest, opening: Callable[[str], Callable[[], Store]]
) -> Callable[[], Store]:
    return opening(request.param)


async def listed(bank: Bank) -> list[str]:
    return [artifact.pointer async for artifact in bank.list()]


class Outage:
    """A store that can be out of reach. Counts what it was asked meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_down = False

    def _reach(self) -> None:
        if self.is_down:
            raise StoreUnavailableError("no answer")

    async def put(self, key: str, payload: bytes) -> None:
        self._reach()
        await self._store.put(key, payload)

    async def get(self, key: str) -> bytes | None:
        self._reach()
        return await self._store.get(key)

    async def delete(self, key: str) -> None:
        self._reach()
        await self._store.delete(key)

    async def keys(self, folder: str) -> AsyncIterator[str]:
        self._reach()
        async for key in self._store.keys(folder):
            yield key

    async def close(self) -> None:
        await self._store.close()


LARGE: list[tuple[object, Callable[[Any], bool]]] = [
    ("x" * 60_000, lambda shown: shown == "x" * 60_000),
    ("x" * 200_000, lambda shown: shown == "x" * 200_000),
    ("é" * 200_001, lambda shown: "was not kept" in shown and len(shown) < 51_000),
    ({"k": ["x" * 60_000]}, lambda shown: shown == {"k": ["x" * 60_000]}),
    ({"k": ["x" * 300_000]}, lambda shown: "was not kept" in shown and len(shown) < 51_000),
    (b"\0" * 60_000, lambda shown: shown == b"\0" * 60_000),
    (b"\0" * 200_001, lambda shown: "200,001 bytes" in shown and "not kept" in shown),
]


@pytest.mark.parametrize(("value", "is_right"), LARGE, ids=range(len(LARGE)))
async def test_br_089_in_an_outage_a_result_passes_inline_and_nothing_is_written_elsewhere(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: object,
    is_right: Callable[[Any], bool],
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.setattr(tempfile, "tempdir", None)
    outage = Outage(store)
    bank = Bank(outage)
    kept = (await bank.put("kept before", name="before")).pointer

    def tool() -> object:
        return value

    async def waiting() -> object:
        return value

    outage.is_down = True
    shown = [
        mirror(tool, bank)(),
        await mirror(waiting, bank)(),
        await Mirror(bank).offload(value, tool="t", call_id="call_0"),
        await Mirror(bank, Limits(per_tool={"t": 0})).offload(value, tool="t", is_error=True),
    ]

    for reply in shown:
        assert not isinstance(reply, Envelope)
        assert is_right(reply)
        assert "art:" not in str(reply)
    with pytest.raises(StoreUnavailableError, match="no answer"):
        await bank.put(value)
    assert list(elsewhere.iterdir()) == []
    outage.is_down = False
    assert await listed(bank) == [kept]
    again = await mirror(waiting, bank)()
    assert isinstance(again, Envelope)
    assert await bank.get(again.pointer) == value
    assert await bank.get(kept) == "kept before"


async def test_br_089_each_call_of_the_bank_says_that_the_store_is_out_of_reach(
    store: Store,
) -> None:
    outage = Outage(store)
    bank = Bank(outage, limits=Limits(cache_bytes=0))
    pointer = (await bank.put("kept " * 20_000, name="n")).pointer
    (reader,) = retrieval_tools(bank)
    _, get_artifact, list_artifacts = artifact_tools(bank)

    def tool(text: str) -> str:
        return text[:4]

    outage.is_down = True
    for asked in (pointer, "n"):
        for call in (bank.get, bank.payload, bank.read, bank.find, bank.delete):
            with pytest.raises(StoreUnavailableError):
                await call(asked)
        with pytest.raises(StoreUnavailableError):
            await bank.search(asked, "kept")
    with pytest.raises(StoreUnavailableError):
        mirror(tool, bank)(pointer)
    with pytest.raises(StoreUnavailableError):
        await Mirror(bank).resolve({"text": [pointer]})
    for reply in (
        await reader.call({"artifactId": pointer}),
        await reader.call({"artifactId": pointer, "search": "kept"}),
        await get_artifact.call({"pointerOrName": pointer}),
        await list_artifacts.call({}),
    ):
        failure = json.loads(reply)
        assert failure["error"] == "store-unavailable"
        assert "unknown" not in reply
        assert failure["hint"]
    outage.is_down = False
    assert mirror(tool, bank)(pointer) == "kept"
    assert json.loads(await reader.call({"artifactId": pointer, "limit": 4}))["content"] == "kept"


async def test_br_089_a_small_result_needs_no_store(store: Store) -> None:
    outage = Outage(store)
    outage.is_down = True

    def tool() -> str:
        return "x" * 51_199

    assert mirror(tool, Bank(outage))() == "x" * 51_199


async def test_br_089_what_was_not_kept_is_said_in_the_log(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    outage = Outage(store)
    outage.is_down = True

    await Mirror(Bank(outage)).offload("x" * 60_000, tool="deploy")

    (record,) = caplog.records
    assert record.name == "coatcheck.mirror"
    assert record.levelname == "WARNING"
    assert "deploy" in record.getMessage()
    assert "x" * 100 not in record.getMessage()


class NthCall:
    """A store that fails once, at its n-th call, before or after doing what it was asked."""

    def __init__(self, number: int, *, after: bool) -> None:
        self.store = MemoryStore()
        self.left = number
        self._after = after

    async def _do(self, work: Any) -> Any:
        self.left -= 1
        fails = self.left == 0
        if fails and not self._after:
            work.close()
            raise StoreUnavailableError("no answer")
        result = await work
        if fails:
            raise StoreUnavailableError("no answer")
        return result

    async def put(self, key: str, payload: bytes) -> None:
        await self._do(self.store.put(key, payload))

    async def get(self, key: str) -> bytes | None:
        found: bytes | None = await self._do(self.store.get(key))
        return found

    async def create(self, key: str, payload: bytes) -> bool:
        created: bool = await self._do(self.store.create(key, payload))
        return created

    async def delete(self, key: str) -> None:
        await self._do(self.store.delete(key))

    def keys(self, folder: str) -> AsyncIterator[str]:
        return self.store.keys(folder)

    async def close(self) -> None:
        await self.store.close()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 11))
async def test_br_089_a_store_that_fails_at_any_one_call_never_leaves_a_false_pointer(
    number: int, after: bool
) -> None:
    store = NthCall(number, after=after)
    bank = Bank(store)

    shown = await Mirror(bank).offload("x" * 60_000, tool="t", call_id="call_0")

    failed = store.left <= 0
    assert isinstance(shown, Envelope) == (not failed)
    assert "art:" not in str(shown) or not failed
    later = Bank(store.store, limits=Limits(cache_bytes=0))
    for pointer in await listed(later):
        assert await later.get(pointer) == "x" * 60_000
    again = await Mirror(later).offload("x" * 60_000, tool="t", call_id="call_0")
    assert isinstance(again, Envelope)
    assert await later.get(again.pointer) == "x" * 60_000
    assert await listed(later) == [again.pointer]


async def test_br_089_a_store_whose_folder_is_gone_works_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    root = tmp_path / "store"
    bank = Bank(FileStore(root), limits=Limits(cache_bytes=0))
    kept = (await bank.put("kept " * 20_000)).pointer
    root.rename(tmp_path / "away")
    root.write_text("a file where the folder was")

    with pytest.raises(StoreError):
        await bank.put("x")
    assert await Mirror(bank).offload("x" * 60_000) == "x" * 60_000
    assert root.read_text() == "a file where the folder was"

    root.unlink()
    (tmp_path / "away").rename(root)
    assert await bank.get(kept) == "kept " * 20_000
    assert isinstance(await Mirror(bank).offload("x" * 60_000), Envelope)


def test_br_089_without_an_event_loop_an_outage_is_the_same_error(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.write_text("a file where the folder should be")

    with BlockingBank(root) as bank:
        with pytest.raises(StoreError):
            bank.put("x")
        assert mirror(lambda: "x" * 60_000, bank.bank)() == "x" * 60_000
        root.unlink()
        assert bank.get(bank.put("x").pointer) == "x"
