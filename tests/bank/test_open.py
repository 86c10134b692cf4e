from pathlib import Path

import pytest

from coatcheck import BlockingBank, mirror, open_bank
from coatcheck.bank import read_journal, store_at
from coatcheck.stores import FileStore, MemoryStore, RedisStore


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
async def test_a_folder_is_opened_by_path_and_by_address(tmp_path: Path, form: str) -> None:
    address = form.format(tmp_path / "a store")
    async with open_bank(address) as bank:
        artifact = await bank.put("kept")

    async with open_bank(tmp_path / "a store") as bank:
        assert await bank.get(artifact.pointer) == "kept"
    assert [folder.name for folder in tmp_path.iterdir()] == ["a store"]


def test_each_memory_address_is_a_store_of_its_own() -> None:
    assert isinstance(store_at("memory:"), MemoryStore)
    assert store_at("memory:") is not store_at("memory:")


def test_a_path_is_never_taken_for_a_scheme() -> None:
    assert isinstance(store_at("./a:b"), FileStore)
    assert isinstance(store_at(Path("redis:x")), FileStore)
    assert isinstance(store_at("plain"), FileStore)


@pytest.mark.parametrize("address", ["~/a", "file:~/a", Path("~/a")])
async def test_a_leading_tilde_is_the_users_home(
    address: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_bank(address) as bank:
        await bank.put("x")

    assert [folder.name for folder in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("address", ["", "memory", "file", "file:", "memory:x", "ftp:x"])
def test_an_address_without_a_store_is_refused_by_what_there_is(address: str) -> None:
    with pytest.raises(ValueError, match="use memory:, file:DIR or a path"):
        store_at(address)


@pytest.mark.parametrize("address", ["redis://h", "rediss://u:p@h:1/2", "unix:///tmp/s?db=1"])
def test_an_address_of_redis_is_a_redis_store_with_what_it_says(address: str) -> None:
    separator = "&" if "?" in address else "?"
    store = store_at(f"{address}{separator}ttl_seconds=60")

    assert isinstance(store, RedisStore)
    assert store.ttl_seconds == 60


def test_a_blocking_bank_has_the_methods_of_a_bank(tmp_path: Path) -> None:
    with BlockingBank(tmp_path) as bank:
        artifact = bank.put("alpha beta", name="greek", key="k", source={"of": []})

        assert bank.find("greek") == artifact
        assert bank.get("greek") == "alpha beta"
        assert bank.get("greek", bytes) == b"alpha beta"
        assert bank.payload("greek") == b"alpha beta"
        assert bank.read("greek", 6, unit="chars").content == "beta"
        assert bank.search("greek", "BETA").matches[0].offset == 6
        assert [each.pointer for each in bank.list()] == [artifact.pointer]
        assert bank.cleanup(older_than_seconds=3_600) == 0
        assert bank.delete("greek") is True
    bank.close()


async def test_a_blocking_bank_works_inside_a_running_loop() -> None:
    with BlockingBank("memory:") as bank:
        assert bank.get(bank.put([1, 2]).pointer) == [1, 2]


def test_an_error_reaches_the_caller_of_a_blocking_bank() -> None:
    with BlockingBank("memory:") as bank, pytest.raises(LookupError):
        bank.get("nothing")


async def test_a_journal_is_opened_with_the_bank_and_closed_with_it(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"

    async with open_bank("memory:", scope="s", journal=file) as bank:
        mirror(lambda: "small", bank)()
        assert bank.scoped("other").journal is bank.journal

    assert [call.scope for call in read_journal(file)] == ["s"]


async def test_a_journal_that_cannot_be_opened_opens_no_store(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with open_bank(tmp_path / "store", journal=tmp_path / "none" / "calls.jsonl"):
            pass

    assert not (tmp_path / "store").exists()
