"""What files a folder holds: the demo's default input, collected by one of its tools."""

import os
import stat
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xxhash import xxh3_128

_PIECE_BYTES = 1024 * 1024


class Folder:
    """One or more folders, whose regular files are listed once.

    Args:
        roots: Paths of rows are relative to the first that has them.
        tell: Is told how many of how many files are done.
    """

    def __init__(self, roots: Sequence[str], tell: Callable[[int, int], object]) -> None:
        self._roots = roots
        self._tell = tell
        self._rows: list[dict[str, Any]] | None = None
        self.skipped = 0
        """Files that could not be read."""

    def inventory(self) -> list[dict[str, Any]]:
        """List the files of the folder."""
        if self._rows is None:
            self._rows = self._collected()
        return self._rows

    def _collected(self) -> list[dict[str, Any]]:
        files = [(root, path) for root in self._roots for path in _files(root)]
        rows: list[dict[str, Any]] = []
        for done, (root, path) in enumerate(files):
            self._tell(done, len(files))
            try:
                row = _row(root, path)
            except (OSError, OverflowError, ValueError):  # the last two: a time out of range
                self.skipped += 1
            else:
                rows.extend(row)
        self._tell(len(files), len(files))
        return rows


def environment_roots() -> list[str]:
    """Return the folders of the Python environment this process runs in, standard library too."""
    if _is_environment():
        return [sys.prefix, _stdlib()]
    # Without an environment of its own the prefix may be all of /usr.
    paths = {
        os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")
    }
    return sorted(
        path for path in paths if not any(path.startswith(f"{other}{os.sep}") for other in paths)
    )


def _is_environment() -> bool:
    return sys.prefix != sys.base_prefix


def _stdlib() -> str:
    return os.path.realpath(sysconfig.get_path("stdlib"))


def _files(root: str) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        if folder == root == _stdlib() and _is_environment():
            # What is installed beside the standard library belongs to another environment.
            folders[:] = [name for name in folders if name != "site-packages"]
        folders.sort()
        for name in sorted(names):
            yield Path(folder, name)


def _row(root: str, path: Path) -> list[dict[str, Any]]:
    """Return one row, or none for what is no regular file: a link, a pipe, a socket."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return []
    digest = xxh3_128()
    with path.open("rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        size = 0
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
    # A name need not be text; what a model reads must.
    shown = os.fsencode(path.relative_to(root)).decode("utf-8", "backslashreplace")
    return [
        {
            "path": shown,
            "size": size,
            "modified": datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(timespec="seconds"),
            "digest": digest.hexdigest(),
        }
    ]
