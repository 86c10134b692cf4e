"""Folders below one root, opened by descriptor, so that no symlink is ever followed."""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import StoreUnavailableError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK the opening of a pipe would wait for its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# No such thing, a symlink or a file in place of a folder, a symlink or a socket in place of a file.
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})


class _Unavailable:
    """Turns what the system refuses into a `StoreUnavailableError` that names no path."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreUnavailableError):
            raise StoreUnavailableError(error.strerror or type(error).__name__) from error


# One object without state for all, as a `with` on it stands in each write of a chunk.
unavailable = _Unavailable()


class Folders:
    """The folders below `root`, which itself may be a symlink; nothing below it may.

    Each component is opened in its parent's descriptor, so nothing that another process moves
    or plants in between leads elsewhere.

    Args:
        root: Absolute path. Made at the first `make`.
        durable: Force new folders to disk.
    """

    def __init__(self, root: Path, *, durable: bool) -> None:
        self.root = root
        self.durable = durable

    @contextmanager
    def find(self, segments: Sequence[str]) -> Generator[int | None]:
        """Open a folder for the time of a `with`: its descriptor, or None where there is none."""
        folder = self._find(segments)
        try:
            yield folder
        finally:
            if folder is not None:
                os.close(folder)

    def open_root(self) -> int:
        """Return the descriptor of the root, made where it is missing. The caller closes it."""
        try:
            return os.open(self.root, _FOLDER)
        except FileNotFoundError:
            _make_root(self.root)
            return os.open(self.root, _FOLDER)

    @contextmanager
    def make(self, segments: Sequence[str], root: int) -> Generator[int]:
        """Open a folder for the time of a `with`, made where it is missing."""
        folder = root
        try:
            for segment in segments:
                inner = self._open_or_make(segment, folder)
                if folder != root:
                    os.close(folder)
                folder = inner
            yield folder
        finally:
            if folder != root:
                os.close(folder)

    def _find(self, segments: Sequence[str]) -> int | None:
        try:
            folder = os.open(self.root, _FOLDER)
        except FileNotFoundError:
            return None
        for segment in segments:
            try:
                inner = open_folder(segment, folder)
            finally:
                os.close(folder)
            if inner is None:
                return None
            folder = inner
        return folder

    def _open_or_make(self, segment: str, parent: int) -> int:
        try:
            return os.open(segment, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another writer was faster
                _make_folder(segment, parent)
            if self.durable:
                os.fsync(parent)
        return os.open(segment, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)


def open_folder(name: str, parent: int) -> int | None:
    """Return the descriptor of a folder, None where there is none. The caller closes it."""
    return _open(name, _FOLDER | os.O_NOFOLLOW, parent)


def open_file(name: str, folder: int) -> int | None:
    """Return the descriptor of a file, or of what lies in its place; None where there is nothing.

    The caller closes it.
    """
    return _open(name, _FILE, folder)


@contextmanager
def find_file(name: str, folder: int) -> Generator[int | None]:
    """Open a regular file for the time of a `with`: its descriptor, or None where there is none."""
    file = open_file(name, folder)
    try:
        regular = file is not None and stat.S_ISREG(os.fstat(file).st_mode)
        yield file if regular else None
    finally:
        if file is not None:
            os.close(file)


def refuse_foreign(name: str, folder: int) -> None:
    """Pass where `name` is missing or a regular file.

    Raises:
        StoreUnavailableError: It is a symlink, a folder, a pipe, a socket or a device.
    """
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            raise StoreUnavailableError("something other than a file lies where one belongs")


def _open(name: str, flags: int, parent: int) -> int | None:
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if error.errno in _MISSING:
            return None
        raise


def _make_root(path: Path) -> None:
    if not os.path.lexists(path.parent):
        _make_root(path.parent)
    with suppress(FileExistsError):  # another writer was faster
        _make_folder(path)


def _make_folder(name: str | Path, parent: int | None = None) -> None:
    os.mkdir(name, 0o700, dir_fd=parent)
    os.chmod(name, 0o700, dir_fd=parent)  # the umask may have taken bits away
