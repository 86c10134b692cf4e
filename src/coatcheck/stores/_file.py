"""A store of plain files, which other programs may open, and several processes share."""

import fcntl
import itertools
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest
from pathlib import Path

from ._draft import Draft, place_empty, sweep
from ._folders import Folders, find_file, open_file, unavailable
from ._keys import check_window, keys_in, split_folder, split_key
from ._pages import drop_if_empty, homes, page_paths
from ._protocols import Vitals
from ._thread import in_own_thread, in_thread

# Up to these, work is done on the loop: the way to a thread and back costs 0.1 ms.
_INLINE_READ_BYTES = 4 * 1024 * 1024
_INLINE_WRITE_BYTES = 1024 * 1024
_INLINE_NAMES = 2_000
_INLINE_FOLDER_BYTES = 160 * 1024
"""Of a folder itself, where its file system says so: that of more names than may be read inline."""
_FIRST_NAMES = 128
"""Found in a long listing without sorting all of it, as most readers want its beginning."""

_CALL_BYTES = 1 << 30
"""Most that is read by one call of the system; none takes 2 GiB."""
_LOCK_TRIES = 100
_LOCK_PAUSE_SECONDS = 0.01


class FileStore:
    """Payloads as plain files, `root`/`key`, for any number of threads and processes at once.

    Of a folder with more than some 500 keys whose last segment begins with a time, 16 hex digits
    and a hyphen, later ones lie in ``.pages/`` below it: so the first ones are found quickly.

    Folders are made at the first write, with mode 0700, and stay when they are empty; files have
    mode 0600. `root` may be a symlink; below it none is followed: what lies behind one reads as
    missing and cannot be written. A payload is written to ``tmp/`` and then renamed, so it is
    visible whole or not at all, whatever dies in between; what a killed writer left in ``tmp/`` is
    removed by the first write of a later store, once it is a minute old. `root` must be on a file
    system with ``flock`` and, for `create`, hard links.

    Args:
        root: Folder of the store.
        durable: Force each write to disk before it is answered (``fsync`` of file and folder:
            milliseconds). Else a power cut may lose what was written last.
        clock: Seconds since the epoch, to tell the age of files.

    Raises:
        ValueError: From the constructor: the path has a NUL in it. From every method: the key is
            none. No file is opened then.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        durable: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        folder = Path(root).absolute()
        if "\0" in str(folder):
            raise ValueError("a folder's path has no NUL in it")
        self._folders = Folders(folder, durable=durable)
        self._clock = clock
        self._swept = False

    async def put(self, key: str, payload: bytes) -> None:
        await self._put(key, payload, replace=True)

    async def create(self, key: str, payload: bytes) -> bool:
        return await self._put(key, payload, replace=False)

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        segments = split_key(key)
        await in_own_thread(partial(self._write, segments, chunks, replace=True))

    async def put_copy(self, key: str, path: Path, look: Callable[[bytes], object]) -> None:
        await in_thread(partial(self._copy, split_key(key), path, look))

    async def get(self, key: str) -> bytes | None:
        return await self._get(key, 0, sys.maxsize)

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        read = partial(self._read_many, [split_key(key) for key in keys])
        try:
            return read(_INLINE_READ_BYTES)
        except _TooLargeError:
            return await in_thread(partial(read, sys.maxsize))

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        """As the Protocol says.

        Raises:
            ValueError: `start_byte` is negative or past `stop_byte`.
        """
        check_window(start_byte, stop_byte)
        return await self._get(key, start_byte, stop_byte)

    async def path(self, key: str) -> Path | None:
        with unavailable, self._found(split_key(key)) as (home, file):
            name = key.rpartition("/")[2]
            return None if file is None else self._folders.root.joinpath(*home, name)

    async def age_seconds(self, key: str) -> float | None:
        with unavailable, self._found(split_key(key)) as (_, file):
            return None if file is None else self._clock() - os.fstat(file).st_mtime

    async def delete(self, key: str) -> None:
        await self.delete_many([key])

    async def delete_many(self, keys: Sequence[str]) -> None:
        with unavailable:
            for home, names in homes(self._folders, sorted(split_key(key) for key in keys)):
                with self._folders.find(home) as folder:
                    for name in names:
                        if folder is not None:
                            with suppress(FileNotFoundError, IsADirectoryError):
                                os.unlink(name, dir_fd=folder)
                drop_if_empty(self._folders, home)

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        paths = [(split_key(key), key) for key in payloads]
        with unavailable:
            return {key for path, key in paths if not await self._remove_same(path, payloads[key])}

    async def keys(self, folder: str) -> AsyncIterator[str]:
        with unavailable:
            pages = page_paths(self._folders, split_folder(folder))
        count = 0
        while pages and count < _FIRST_NAMES:
            few = self._list(pages[0], _INLINE_NAMES)
            if few is None:
                break
            for key in keys_in(folder, sorted(few)):
                yield key
            count += len(few)
            del pages[0]
        if not pages:
            return
        first, names = await in_thread(partial(self._list_long, pages))
        for key in keys_in(folder, first):
            yield key
        for key in await in_thread(partial(_rest_of, folder, names, len(first))):
            yield key

    async def vitals(self) -> Vitals:
        return await in_thread(self._look)

    async def close(self) -> None:
        """Do nothing: no file stays open between calls."""

    async def _put(self, key: str, payload: bytes, *, replace: bool) -> bool:
        segments = split_key(key)
        if not payload and not self._folders.durable and place_empty(self._folders, segments):
            return True
        write = partial(self._write, segments, (payload,), replace=replace)
        # Forcing to disk waits for it, however little is written.
        small = len(payload) <= _INLINE_WRITE_BYTES and not self._folders.durable
        return write() if small else await in_thread(write)

    def _write(
        self, segments: list[str], chunks: Iterable[bytes | memoryview], *, replace: bool
    ) -> bool:
        with self._draft() as draft:
            draft.write_all(chunks)
            return draft.publish(segments, replace=replace)

    def _copy(self, segments: list[str], path: Path, look: Callable[[bytes], object]) -> None:
        with path.open("rb", buffering=0) as source, self._draft() as draft:
            draft.copy(source.fileno())
            # The copy, as the file may change meanwhile.
            for piece in draft.pieces():
                look(piece)
            draft.publish(segments, replace=True)

    def _look(self) -> Vitals:
        with self._draft() as draft:
            draft.write(b"x")
            free_bytes, total_bytes = draft.room()
            now = datetime.fromtimestamp(draft.stamp(), UTC)
        return Vitals(now=now, free_bytes=free_bytes, total_bytes=total_bytes)

    def _draft(self) -> Draft:
        if not self._swept:
            self._swept = True
            sweep(self._folders, self._clock)
        return Draft(self._folders)

    async def _get(self, key: str, start: int, stop: int) -> bytes | None:
        read = partial(self._read, split_key(key), start, stop)
        try:
            return read(_INLINE_READ_BYTES)
        except _TooLargeError:
            return await in_thread(partial(read, sys.maxsize))

    def _read(self, segments: list[str], start: int, stop: int, most: int) -> bytes | None:
        with unavailable:
            ((home, (name,)),) = homes(self._folders, [segments])
            with self._folders.find(home) as folder:
                return _read_file(name, folder, start, stop, most)

    def _read_many(self, paths: Iterable[list[str]], most: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        with unavailable:
            for home, names in homes(self._folders, paths):
                with self._folders.find(home) as folder:
                    for name in names:
                        payload = _read_file(name, folder, 0, sys.maxsize, most)
                        most -= len(payload or b"")
                        found.append(payload)
        return found

    @contextmanager
    def _found(self, path: list[str]) -> Generator[tuple[list[str], int | None]]:
        """Open a file for the time of a `with`: the folder it is in, and its descriptor."""
        ((home, (name,)),) = homes(self._folders, [path])
        with self._folders.find(home) as folder:
            if folder is None:
                yield home, None
            else:
                with find_file(name, folder) as file:
                    yield home, file

    async def _remove_same(self, path: list[str], payload: bytes) -> bool:
        """Remove a file that holds `payload`; return False where it holds something else."""
        with self._found(path) as (home, file):
            if file is None:
                return True
            # Whoever else compares this very file waits here, and finds it removed.
            await _lock(file)
            if _pread(file, 0, os.fstat(file).st_size) != payload:
                return False
            if not self._unlink_same(file, home, path[-1]):
                return False
        drop_if_empty(self._folders, home)
        return True

    def _unlink_same(self, file: int, home: list[str], name: str) -> bool:
        """Remove a name of an open file; return False where another file has it now."""
        with self._folders.find(home) as folder:
            if folder is None:
                return True
            with find_file(name, folder) as standing:
                if standing is None or not os.path.sameopenfile(file, standing):
                    return standing is None
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        return True

    def _list(self, segments: list[str], most: int) -> list[str] | None:
        """Return the names of files in a folder, None where it holds more than `most`."""
        with unavailable, self._folders.find(segments) as opened:
            if opened is None:
                return []
            if most < sys.maxsize and os.fstat(opened).st_size > _INLINE_FOLDER_BYTES:
                return None
            with os.scandir(opened) as entries:
                names = [
                    entry.name
                    for entry in itertools.islice(entries, most)
                    if entry.is_file(follow_symlinks=False)
                ]
                return None if next(entries, None) is not None else names

    def _list_long(self, pages: Iterable[list[str]]) -> tuple[list[str], list[str]]:
        """Return the first names of some folders, in order, and all of them."""
        names = [name for page in pages for name in self._list(page, sys.maxsize) or ()]
        return nsmallest(_FIRST_NAMES, names), names


def _rest_of(folder: str, names: list[str], skipped: int) -> list[str]:
    """Return the keys of a folder that come after its first names."""
    return [*keys_in(folder, itertools.islice(sorted(names), skipped, None))]


class _TooLargeError(Exception):
    """The window is too large to be read on the loop."""


def _read_file(name: str, folder: int | None, start: int, stop: int, most: int) -> bytes | None:
    file = None if folder is None else open_file(name, folder)
    if file is None:
        return None
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            return None
        stop = min(stop, facts.st_size)
        start = min(start, stop)
        if stop - start > most:
            raise _TooLargeError
        return _pread(file, start, stop)
    finally:
        os.close(file)


async def _lock(file: int) -> None:
    """Lock an open file against others who compare it. They are done in a moment."""
    from anyio import sleep

    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await sleep(_LOCK_PAUSE_SECONDS)
        else:
            return
    # Held by a program that is no store, or that was stopped: without it there is but the gap of
    # a few calls that stores without such a lock have.


def _pread(file: int, start: int, stop: int) -> bytes:
    parts: list[bytes] = []
    while start < stop and (part := os.pread(file, min(stop - start, _CALL_BYTES), start)):
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
