"""A file that nobody sees until it is whole, and the sweep of those that never were."""

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Self

from ._folders import Folders, find_file, refuse_foreign, unavailable

TMP = "tmp"
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
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

    def publish(self, segments: Sequence[str], *, replace: bool) -> bool:
        """Make the draft visible under a key, at once and whole.

        Returns False where the key is taken and `replace` is not wanted.
        """
        with unavailable:
            if self._folders.durable:
                os.fsync(self._file)
            try:
                return self._place(segments, replace=replace)
            except FileNotFoundError:  # another process removed the folder under our hands
                return self._place(segments, replace=replace)

    def _place(self, segments: Sequence[str], *, replace: bool) -> bool:
        *parents, name = segments
        with self._folders.make(parents, self._root) as folder:
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


def sweep(folders: Folders, clock: Callable[[], float]) -> None:
    """Remove the drafts of writers that died: older than a minute, and locked by nobody."""
    with unavailable, folders.find([TMP]) as tmp:
        if tmp is None:
            return
        with os.scandir(tmp) as entries:
            for entry in entries:
                with suppress(OSError):  # locked by its writer, or gone by another sweep
                    _sweep_one(entry.name, tmp, clock() - _SWEEP_AGE_SECONDS)


def _sweep_one(name: str, tmp: int, before: float) -> None:
    with find_file(name, tmp) as file:
        if file is None or os.fstat(file).st_mtime >= before:
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=tmp)
