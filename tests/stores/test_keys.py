"""What a key may be, on both sides of each rule, for every store of ours."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coatcheck.stores import FileStore, MemoryStore, ObjectStore

HOSTILE = [
    "",
    "/",
    "//",
    ".",
    "..",
    "../x",
    "a/../b",
    "a/./b",
    "a/..",
    "/etc/passwd",
    "a//b",
    "a/",
    ".hidden",
    "a/.hidden",
    "tmp",
    "tmp/x",
    "TMP/x",
    "Tmp",
    "a\0b",
    "a\\b",
    "C:\\x",
    "C:/x",
    "a b",
    "a\n",
    "a\nb",
    "~root:x",
    "é",
    "ａ",
    "٣",
    "\ud800",
    "x" * 201,
    "x" * 4_000,
    "/".join(["x" * 150] * 6),
]
ALLOWED = [
    "x" * 200,
    "/".join(["x" * 149] * 6) + "x",
    "tmpx/1",
    "tmp-",
    "a/tmp/1",
    "a/TMP",
    "-rf",
    "~",
    "~root",
    "%00",
    "%2e%2e/x",
    "a..b",
    "x.",
    "0",
]

Operation = Callable[[FileStore | MemoryStore | ObjectStore, str], Awaitable[object]]


async def keys(store: FileStore | MemoryStore | ObjectStore, key: str) -> object:
    return [each async for each in store.keys(key + "/")]


OPERATIONS: dict[str, Operation] = {
    "put": lambda store, key: store.put(key, b"x"),
    "put large": lambda store, key: store.put(key, bytes(2_000_000)),
    "put_stream": lambda store, key: store.put_stream(key, [b"x"]),
    "create": lambda store, key: store.create(key, b"x"),
    "get": lambda store, key: store.get(key),
    "get_range": lambda store, key: store.get_range(key, 0, 1),
    "delete": lambda store, key: store.delete(key),
    "keys": keys,
}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_hostile_key_is_a_value_error_and_opens_no_file(
    operation: str, tmp_path: Path, opened: list[str]
) -> None:
    for store in (MemoryStore(), FileStore(tmp_path / "root"), ObjectStore("memory:")):
        for key in HOSTILE:
            opened.clear()
            with pytest.raises(ValueError, match="is 1 to 200") as caught:
                await OPERATIONS[operation](store, key)
            assert opened == [], key
            assert len(str(caught.value)) < 400

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ALLOWED, ids=lambda key: key[:30])
async def test_odd_but_allowed_key_is_kept(key: str, tmp_path: Path, opened: list[str]) -> None:
    objects = (ObjectStore("memory:"), ObjectStore(f"file:{tmp_path / 'objects'}"))
    for store in (MemoryStore(), FileStore(tmp_path), *objects):
        await store.put(key, b"x")
        assert await store.get(key) == b"x"

    assert opened  # by the file store: the hook does see what is opened


async def test_expiring_with_a_hostile_key_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="a key is"):
        await MemoryStore().put_expiring("../x", b"x", 10)


@pytest.mark.parametrize("folder", ["", "a", "/", "a//", "../", "tmp/", "a/.."])
async def test_folder_that_is_none_is_a_value_error(folder: str, tmp_path: Path) -> None:
    for store in (MemoryStore(), FileStore(tmp_path), ObjectStore("memory:")):
        with pytest.raises(ValueError, match="a folder ends in /"):
            await anext(store.keys(folder))
