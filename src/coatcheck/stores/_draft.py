"""A file that nobody sees until it is whole, and the sweep of those that never were."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Self

from ._folders import Folders, find_file, refuse_foreign, unavailable
from ._pages import make_home

TMP = "tmp"
_PIECE_BYTES = 512 * 1024
_KERNEL_BYTES = 1 << 30
"""Most that is copied by one call of the system; none takes 2 GiB."""
_DRAFT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SWEEP_AGE_SECONDS = 60.0
"""Longer than any writer takes from the opening of its file to the lock on it."""


class Draft:
    """A file in ``tmp/``, locked while it is written. Leaving the `with` removes it.

    Every method raises `StoreUnavailableError`, and nothing of the draft is visible then.
    """

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._name = os.urandom(16).hex()
        self._renamed = False
        with unavailable, ExitStack() as stack:
            self._root = folders.open_root()
            stack.callback(os.close, self._root)
            self._tmp = stack.enter_context(folders.make([TMP], self._root))
            self._file = os.open(self._name, _DRAFT, 0o600, dir_fd=self._tmp)
            stack.callback(os.close, self._file)
            stack.callback(self._remove)
            os.fchmod(self._file, 0o600)  # the umask may have taken bits away
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with unavailable:
            self._stack.close()

    def write(self, chunk: bytes | memoryview) -> None:
        """Append all of `chunk`."""
        with unavailable:
            written = os.write(self._file, chunk)
            while written < len(chunk):
                written += os.write(self._file, memoryview(chunk)[written:])

    def write_all(self, chunks: Iterable[bytes | memoryview]) -> None:
        """Append all of `chunks`, small ones together. What raises in them is passed on."""
        waiting: list[bytes | memoryview] = []
        waiting_bytes = 0
        for chunk in chunks:
            waiting.append(chunk)
            waiting_bytes += len(chunk)
            if waiting_bytes >= _PIECE_BYTES:
                self.write(_joined(waiting))
                waiting, waiting_bytes = [], 0
        self.write(_joined(waiting))

    def copy(self, source: int) -> None:
        """Append what the open file `source` holds from where it stands, in the kernel if it can.

        Raises:
            OSError: `source` could not be read.
        """
        for copy in (_share, _send):
            with suppress(OSError):  # between these two files it cannot
                while copy(source, self._file):
                    pass
        # The rest, which most often is nothing.
        while piece := os.read(source, _PIECE_BYTES):
            self.write(piece)

    def pieces(self) -> Iterator[bytes]:
        """Yield what was written, from its start."""
        start = 0
        with unavailable:
            while piece := os.pread(self._file, _PIECE_BYTES, start):
                yield piece
                start += len(piece)

    def stamp(self) -> float:
        """Return when it was written last, in seconds since 1970 by the clock of the files."""
        with unavailable:
            return os.fstat(self._file).st_mtime

    def room(self) -> tuple[int, int]:
        """Return how many bytes are free to us where it lies, and how many there are in all."""
        with unavailable:
            disk = os.fstatvfs(self._file)
            return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize

    def publish(self, segments: Sequence[str], *, replace: bool) -> bool:
        """Make the draft visible under a key, at once and whole.

        Returns False where the key is taken and `replace` is not wanted.
        """
        with unavailable:
            if self._folders.durable:
                os.fsync(self._file)
            try:
                is_placed = self._place(segments, replace=replace)
            except FileNotFoundError:  # another process removed the folder under our hands
                is_placed = self._place(segments, replace=replace)
            # No draft any more; a process that was forked meanwhile would hold the lock on.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            return is_placed

    def _place(self, segments: Sequence[str], *, replace: bool) -> bool:
        name = segments[-1]
        with make_home(self._folders, segments, self._root) as folder:
            if replace:
                refuse_foreign(name, folder)
                os.rename(self._name, name, src_dir_fd=self._tmp, dst_dir_fd=folder)
                self._renamed = True
            else:
                try:
                    os.link(self._name, name, src_dir_fd=self._tmp, dst_dir_fd=folder)
                except FileExistsError:
                    refuse_foreign(name, folder)
                    return False
            if self._folders.durable:
                os.fsync(folder)
        return True

    def _remove(self) -> None:
        if not self._renamed:
            with suppress(OSError):  # should the system refuse, a later sweep takes it
                os.unlink(self._name, dir_fd=self._tmp)


def place_empty(folders: Folders, segments: Sequence[str]) -> bool:
    """Make an empty file visible under a key that is free; return whether it was.

    It takes no draft, as there is no part of it to be seen before the rest.
    """
    name = segments[-1]
    with unavailable, ExitStack() as stack:
        root = folders.open_root()
        stack.callback(os.close, root)
        folder = stack.enter_context(make_home(folders, segments, root))
        try:
            file = os.open(name, _DRAFT, 0o600, dir_fd=folder)
        except (FileExistsError, FileNotFoundError):  # or the folder was just removed
            return False
        stack.callback(os.close, file)
        os.fchmod(file, 0o600)  # the umask may have taken bits away
        return True


def sweep(folders: Folders, clock: Callable[[], float]) -> None:
    """Remove the drafts of writers that died: older than a minute, and locked by nobody."""
    with unavailable, folders.find([TMP]) as tmp:
        if tmp is None:
            return
        with os.scandir(tmp) as entries:
            for entry in entries:
                with suppress(OSError):  # locked by its writer, or gone by another sweep
                    _sweep_one(entry.name, tmp, clock() - _SWEEP_AGE_SECONDS)


def _joined(chunks: Sequence[bytes | memoryview]) -> bytes | memoryview:
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _share(source: int, target: int) -> int:
    """Return how many bytes were copied, or shared where the file system can; 0 at the end."""
    if sys.platform == "linux":
        return os.copy_file_range(source, target, _KERNEL_BYTES)
    return 0


def _send(source: int, target: int) -> int:
    """Return how many bytes were copied; 0 at the end."""
    if sys.platform == "linux":
        at = os.lseek(source, 0, os.SEEK_CUR)
        sent = os.sendfile(target, source, at, _KERNEL_BYTES)
        os.lseek(source, at + sent, os.SEEK_SET)
        return sent
    return 0


def _sweep_one(name: str, tmp: int, before: float) -> None:
    with find_file(name, tmp) as file:
        if file is None or os.fstat(file).st_mtime >= before:
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=tmp)
