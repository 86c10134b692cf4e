"""Object stores below a bank: what a window costs, and how a bank is opened on one."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coatcheck import Bank, BlockingBank, open_bank
from coatcheck.bank import store_at, without_secrets
from coatcheck.stores import ObjectStore
from coatcheck.testing import S3Server

TEXT = "zażółć gęślą jaźń 🚀\n" * 400_000


class Counting:
    """An object store that writes down what it was asked."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.asked: list[str] = []

    def take(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked

    async def put(self, key: str, payload: bytes) -> None:
        self.asked.append(f"put {key.split('/')[-2]}")
        await self.store.put(key, payload)

    async def create(self, key: str, payload: bytes) -> bool:
        self.asked.append(f"create {key.split('/')[-2]}")
        return await self.store.create(key, payload)

    async def get(self, key: str) -> bytes | None:
        self.asked.append(f"get {key.split('/')[-2]}")
        return await self.store.get(key)

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        self.asked.append(f"range {key.split('/')[-2]}")
        return await self.store.get_range(key, start_byte, stop_byte)

    async def delete(self, key: str) -> None:
        self.asked.append(f"delete {key.split('/')[-2]}")
        await self.store.delete(key)

    async def keys(self, folder: str) -> AsyncIterator[str]:
        self.asked.append(f"keys {folder.split('/')[-2]}")
        async for key in self.store.keys(folder):
            yield key

    async def close(self) -> None:
        await self.store.close()


async def test_a_window_is_one_range_and_with_an_unknown_record_two_requests(s3: S3Server) -> None:
    store = Counting(ObjectStore(s3.address("counted")))
    writer = Bank(store)
    pointer = (await writer.put(TEXT)).pointer
    other = (await writer.put(TEXT[:100_000])).pointer
    bank = Bank(store)
    await bank.find(other)  # sees the format of the store, once for each bank
    store.take()

    for offset in (0, 4_000_000, len(TEXT) - 50_000):
        page = await bank.read(pointer, offset, 50_000)
        assert page.content == TEXT[offset : offset + 50_000]
        asked = store.take()
        assert asked == [*(["get records"] if not offset else []), "range payloads"]


async def test_a_put_is_payload_record_by_create_listing_and_a_look(s3: S3Server) -> None:
    store = Counting(ObjectStore(s3.address("counted")))
    bank = Bank(store)
    await bank.put("first")
    store.take()

    await bank.put(TEXT)

    assert store.take() == ["put payloads", "create records", "put listing", "get records"]


async def test_artifacts_are_listed_newest_first(s3: S3Server) -> None:
    store = ObjectStore(s3.address("page"))
    bank = Bank(store)
    artifacts = [await bank.put(f"value {number}") for number in range(30)]

    listed = [artifact.id async for artifact in Bank(store).list()]

    assert listed == [artifact.id for artifact in reversed(artifacts)]


async def test_a_bank_is_opened_by_address(s3: S3Server) -> None:
    async with open_bank(s3.address("opened"), scope="a") as bank:
        artifact = await bank.put({"a": 1}, name="it")

    with BlockingBank(s3.address("opened"), scope="a") as blocking:
        assert blocking.get(artifact.pointer) == blocking.get("it") == {"a": 1}


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/a", "gs://bucket/a?skip_signature=true", "az://container/a?account_name=x"],
)
def test_addresses_of_services_are_object_stores(address: str) -> None:
    assert isinstance(store_at(address), ObjectStore)


def test_a_path_that_looks_like_a_bucket_is_a_folder(tmp_path: Path) -> None:
    assert not isinstance(store_at(tmp_path / "s3:"), ObjectStore)
    assert not isinstance(store_at("./s3:bucket"), ObjectStore)


@pytest.mark.parametrize("address", ["s3:bucket", "s4://bucket?key=hush", "s4://hush@host/0"])
def test_an_address_that_is_none_is_refused_without_its_secrets(address: str) -> None:
    with pytest.raises(ValueError, match=r"no (object )?store at") as caught:
        store_at(address)

    assert "hush" not in str(caught.value)


def test_an_address_is_shown_without_its_secrets() -> None:
    assert without_secrets("s3://bucket/a?secret_access_key=hush") == "s3://bucket/a"
    assert without_secrets("redis://user:hush@host:1/0?password=hush") == "redis://…@host:1/0"
    assert without_secrets("file:/a/b@c") == "file:/a/b@c"
    assert without_secrets(Path("/a/b")) == "/a/b"


def test_without_the_extra_an_object_store_says_which_one_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)

    for make in (ObjectStore, store_at):
        with pytest.raises(ImportError, match=r"coatcheck\[object\]"):
            make("s3://bucket/a")
