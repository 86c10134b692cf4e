"""The file of a journal: appended to by several processes, and begun anew when it is full."""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


def previous(path: str | os.PathLike[str]) -> Path:
    """Return where the file is found that was at `path` before it was full.

    >>> previous("/var/log/calls.jsonl")
    PosixPath('/var/log/calls.jsonl.1')
    """
    # A symlink stays where it is: what it leads to is renamed.
    return Path(f"{os.path.realpath(path)}.1")


class JournalFile:
    """Takes lines of text, and is renamed where it has reached its limit. For one thread at a time.

    Args:
        path: Made, readable for its owner only, where it is missing.
        limit_bytes: From this size on a file gets no further line.

    Raises:
        OSError: The file cannot be opened.
        ValueError: `limit_bytes` is not more than 0.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        if limit_bytes <= 0:
            raise ValueError(f"limit_bytes must be more than 0, got {limit_bytes}")
        self._path = Path(os.path.realpath(path))
        self._limit_bytes = limit_bytes
        self._file = self._opened()

    def append(self, text: bytes) -> None:
        """Write whole lines.

        Raises:
            OSError: They are not written, or not all of them.
        """
        if _is_full(self._file, self._limit_bytes):
            self._rename()
        # Who writes shares a lock, and who renames has it alone: so no line goes into a file that
        # has been renamed twice meanwhile, and is gone.
        while True:
            with _locked(self._file, fcntl.LOCK_SH):
                if self._is_at_path():
                    _write(self._file, text)
                    return
            self.open_anew()

    def open_anew(self) -> None:
        """Open what is at the path now. A forked child does, as a lock counts for both else."""
        before, self._file = self._file, self._opened()
        os.close(before)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)

    def _is_at_path(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._file))

    def _rename(self) -> None:
        with _locked(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
            # Else others write, and whoever comes next will do it; or another one has.
            if is_locked and self._is_at_path():
                with suppress(OSError):  # in a folder that this user cannot write to, it only grows
                    self._path.replace(previous(self._path))


@contextmanager
def _locked(file: int, how: int) -> Generator[bool]:
    """Lock a file for the time of a `with`; give whether that was done.

    On a file system that has no locks lines are written all the same, and nothing is renamed.
    """
    try:
        fcntl.flock(file, how)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _is_full(file: int, limit_bytes: int) -> bool:
    # A pipe or a device has no size, and is never renamed.
    found = os.fstat(file)
    return stat.S_ISREG(found.st_mode) and found.st_size >= limit_bytes


def _write(file: int, text: bytes) -> None:
    # One call for all: with O_APPEND, lines of several processes do not mix.
    written = os.write(file, text)
    while written < len(text):
        written += os.write(file, text[written:])
