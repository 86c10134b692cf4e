"""How the file store keeps long listings: in pages, whatever is put and removed at once."""

import fcntl
import os
import random
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import FileStore

FOLDER = "s/a/listing/"
FULL = 512
LONGEST = 1_100
"""No page gets so long from names that come newest first: one in 64 looks whether it is full."""


def key(number: int) -> str:
    """Return the key that comes as the `number`th: each before all earlier ones."""
    return f"{FOLDER}{2**64 - 1 - number:016x}-{number}"


def newest_first(numbers: range) -> list[str]:
    return [key(number) for number in reversed(numbers)]


def pages(root: Path) -> dict[str, int]:
    """Return how many files each page has, and under "" those of the folder itself."""
    folder = root / FOLDER
    found = {"": sum(each.is_file() for each in folder.iterdir())}
    for page in sorted((folder / ".pages").glob("*")):
        found[page.name] = len(list(page.iterdir()))
    return found


async def filled(root: Path, count: int) -> FileStore:
    store = FileStore(root)
    for number in range(count):
        await store.put(key(number), b"")
    return store


async def listing(store: FileStore) -> list[str]:
    return [each async for each in store.keys(FOLDER)]


async def test_up_to_512_names_lie_in_the_folder_itself(tmp_path: Path) -> None:
    store = await filled(tmp_path, FULL)

    assert pages(tmp_path) == {"": FULL}
    assert await listing(store) == newest_first(range(FULL))


async def test_many_names_lie_in_pages_and_the_first_hundred_are_found_in_two_of_them(
    tmp_path: Path, opened: list[str]
) -> None:
    store = await filled(tmp_path, 4_000)
    found = pages(tmp_path)
    opened.clear()

    keys = store.keys(FOLDER)
    first = [await anext(keys) for _ in range(100)]

    assert first == newest_first(range(4_000))[:100]
    assert sum(event.startswith("os.scandir") for event in opened) in {1, 2}
    assert len(found) > 3
    assert max(found.values()) < LONGEST
    assert sum(found.values()) == 4_000
    assert await listing(store) == newest_first(range(4_000))


async def test_a_name_in_a_page_is_read_replaced_and_removed_as_any_other(tmp_path: Path) -> None:
    store = await filled(tmp_path, 2_000)
    for number in (0, 700, 1_999):  # of the folder itself, a page in the middle, the first one
        await store.put(key(number), b"0123")
        assert await store.get(key(number)) == b"0123"
        assert await store.get_range(key(number), 1, 3) == b"12"
        assert await store.age_seconds(key(number)) is not None
        path = await store.path(key(number))
        assert path is not None
        assert path.read_bytes() == b"0123"
        assert not await store.create(key(number), b"other")
        await store.put(key(number), b"")
        assert await store.get_many([key(number), "s/a/records/1", key(5)]) == [b"", None, b""]
        await store.put_stream(key(number), [b"a", b"b"])
        assert await store.get(key(number)) == b"ab"
    assert await listing(store) == newest_first(range(2_000))

    for number in (0, 700, 1_999):
        await store.delete(key(number))
        assert await store.get(key(number)) is None
        assert await store.path(key(number)) is None
        assert await store.age_seconds(key(number)) is None
    left = [each for each in newest_first(range(2_000)) if each not in map(key, (0, 700, 1_999))]
    assert await listing(store) == left

    assert await store.create(key(700), b"anew")
    assert await store.get(key(700)) == b"anew"


async def test_folder_that_was_filled_without_pages_is_read_and_goes_on_with_them(
    tmp_path: Path,
) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    for number in range(3_000):
        (tmp_path / key(number)).touch()
    store = FileStore(tmp_path)
    assert await listing(store) == newest_first(range(3_000))

    for number in range(3_000, 4_500):
        await store.put(key(number), b"")
    await store.delete_many([key(number) for number in range(10, 3_010)])

    left = [*newest_first(range(3_010, 4_500)), *newest_first(range(10))]
    assert await listing(store) == left
    assert pages(tmp_path)[""] < 200


async def test_page_goes_with_its_last_file_and_its_names_belong_in_the_next_one(
    tmp_path: Path,
) -> None:
    store = await filled(tmp_path, 2_500)
    before = pages(tmp_path)
    second = list(before)[2]
    lost = [each.name for each in (tmp_path / FOLDER / ".pages" / second).iterdir()]
    await store.delete_many([FOLDER + name for name in lost])

    assert list(pages(tmp_path)) == [page for page in before if page != second]
    assert not set(await listing(store)) & {FOLDER + name for name in lost}

    for name in lost:
        await store.put(FOLDER + name, b"")
    assert await listing(store) == newest_first(range(2_500))
    await store.delete_many(newest_first(range(2_500)))
    assert pages(tmp_path) == {"": 0}


@pytest.mark.parametrize("order", ["ascending", "random", "nearly newest first"])
async def test_in_whatever_order_names_come_and_go_the_listing_is_as_of_a_set(
    order: str, tmp_path: Path
) -> None:
    chance = random.Random(order)
    numbers = list(range(2_400))
    if order == "ascending":
        numbers.reverse()
    elif order == "random":
        chance.shuffle(numbers)
    else:
        numbers.sort(key=lambda number: number + chance.randrange(300))
    store = FileStore(tmp_path)
    there: set[str] = set()
    for count, number in enumerate(numbers):
        await store.put(key(number), b"")
        there.add(key(number))
        if count % 3 == 2:
            gone = [key(chance.choice(numbers[: count + 1])) for _ in range(2)]
            await store.delete_many(gone)
            there.difference_update(gone)
        if count % 400 == 399:
            assert await listing(store) == sorted(there)
    some = chance.sample(numbers, 200)
    assert await store.get_many([key(number) for number in some]) == [
        b"" if key(number) in there else None for number in some
    ]


async def test_one_name_far_before_all_others_hides_none(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put(f"{FOLDER}{'0' * 16}-early", b"")  # of a clock that was wrong
    for number in range(2_000):
        await store.put(key(number), b"")

    assert await listing(store) == [f"{FOLDER}{'0' * 16}-early", *newest_first(range(2_000))]


async def test_pages_that_are_a_symlink_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    store = await filled(root, FULL)
    (root / FOLDER / ".pages").symlink_to(outside)
    page = outside / ("f" * 16)
    page.mkdir()
    (page / "0000000000000000-planted").touch()

    assert await listing(store) == newest_first(range(FULL))
    for number in range(FULL, FULL + 1_000):
        with suppress(StoreUnavailableError):  # of those that look whether the folder is full
            await store.put(key(number), b"")
    assert FULL < len(await listing(store)) < FULL + 1_000
    assert [each.name for each in outside.rglob("*")] == [page.name, "0000000000000000-planted"]
    assert await store.get(f"{FOLDER}0000000000000000-planted") is None


async def test_file_in_place_of_a_page_is_missing_and_cannot_be_written_below(
    tmp_path: Path,
) -> None:
    store = await filled(tmp_path, 1)
    (tmp_path / FOLDER / ".pages").mkdir()
    (tmp_path / FOLDER / ".pages" / ("f" * 16)).touch()
    (tmp_path / FOLDER / ".pages" / "no page").touch()

    assert await store.get(key(1)) is None
    await store.delete(key(1))
    with pytest.raises(StoreUnavailableError, match="other than a folder"):
        await store.put(key(1), b"")
    assert await listing(store) == newest_first(range(1))

    (tmp_path / FOLDER / ".pages" / ("f" * 16)).unlink()
    await store.put(key(1), b"")
    assert await listing(store) == newest_first(range(2))


async def test_writer_waits_for_who_begins_a_page_but_not_for_ever(tmp_path: Path) -> None:
    store = await filled(tmp_path, 1)
    folder = os.open(tmp_path / FOLDER, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    timer = threading.Timer(0.05, os.close, [folder])
    timer.start()
    await store.put(key(1), b"")
    timer.join()
    assert await listing(store) == newest_first(range(2))

    folder = os.open(tmp_path / FOLDER, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(StoreUnavailableError, match="another process stopped"):
        await store.put(key(2), b"")
    os.close(folder)
    assert await listing(store) == newest_first(range(2))


WRITER = """
import asyncio, itertools, sys, time
from coatcheck.stores import FileStore

async def main(root, name):
    store = FileStore(root)
    for number in itertools.count():
        key = f"s/a/listing/{2**64 - 1 - time.time_ns():016x}-{name}-{number}"
        await store.put(key, b"")
        print(key, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

TAKER = """
import asyncio, sys
from coatcheck.stores import FileStore

async def main(root):
    store = FileStore(root)
    for line in sys.stdin:
        await store.delete_many(line.split())
        print(len(line), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def start(source: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def killed(process: subprocess.Popen[str]) -> list[str]:
    """Kill a process; return what it still said."""
    process.kill()
    with process:
        assert process.stdout is not None
        return [line.strip() for line in process.stdout]


async def test_processes_that_put_are_killed_and_remove_at_once_lose_no_name(
    tmp_path: Path,
) -> None:
    store = FileStore(tmp_path)
    writers = [start(WRITER, tmp_path, name) for name in range(3)]
    taker = start(TAKER, tmp_path)
    acknowledged: list[str] = []
    taken: set[str] = set()
    for turn in range(16):
        before = set(acknowledged) - taken
        listed = await listing(store)
        assert listed == sorted(set(listed))
        assert before <= set(listed)
        for writer in writers:
            assert writer.stdout is not None
            acknowledged += [writer.stdout.readline().strip() for _ in range(50)]
        # From the front of what there is, as pages there are the ones that are begun.
        going = sorted(set(acknowledged) - taken)[: 50 if turn % 2 else 1]
        taken.update(going)
        assert taker.stdin is not None
        assert taker.stdout is not None
        taker.stdin.write(" ".join(going) + "\n")
        taker.stdin.flush()
        taker.stdout.readline()
        if turn % 4 == 3:
            acknowledged += killed(writers.pop(0))
            writers.append(start(WRITER, tmp_path, f"later{turn}"))
    for writer in writers:
        acknowledged += killed(writer)
    killed(taker)

    listed = await listing(store)
    standing = set(acknowledged) - taken
    assert listed == sorted(set(listed))
    assert standing <= set(listed)
    assert not taken & set(listed)
    assert len(set(listed) - standing) <= 7  # put, but its writer was killed before it said so
    assert await store.get_many(listed) == [b""] * len(listed)
    found = pages(tmp_path)
    assert len(found) > 3
    assert max(found.values()) < 2 * LONGEST
    await store.delete_many(listed)
    assert await listing(store) == []
