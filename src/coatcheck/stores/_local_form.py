"""How obstore's files lie on this machine: modes, and what killed writers left behind."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar

from ._folders import unavailable

_Result = TypeVar("_Result")

_LEFT = re.compile(r".+#[0-9]+")
"""What obstore calls a file that it is still writing. No key has a ``#``."""
_SWEEP_AGE_SECONDS = 24 * 3_600.0
"""obstore locks nothing: a stream that waits for its source must not look dead."""


class LocalForm:
    """A folder that obstore writes to: folders get mode 0700, files 0600.

    Args:
        root: Made where it is missing.
        clock: Seconds since the epoch, to tell the age of files.
    """

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.root = root
        self._clock = clock
        self._swept = False
        self._lock = Lock()
        with unavailable:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, key: str, call: Callable[[], _Result]) -> _Result:
        """Return what `call` returns, which writes the file of `key`."""
        self._sweep_once()
        with unavailable:
            self._make_folders(key)
        written = call()
        # Another writer may have removed it; below folders of mode 0700 nobody else saw it before.
        with unavailable, suppress(FileNotFoundError):
            (self.root / key).chmod(0o600)
        return written

    def is_folder(self, key: str) -> bool:
        """Return whether a folder lies where the file of `key` would."""
        return (self.root / key).is_dir()

    def _make_folders(self, key: str) -> None:
        folder = self.root
        for segment in key.split("/")[:-1]:
            folder /= segment
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)  # the umask may have taken bits away

    def _sweep_once(self) -> None:
        with self._lock:
            if self._swept:
                return
            self._swept = True
        before = self._clock() - _SWEEP_AGE_SECONDS
        for folder, _, names in os.walk(self.root):
            for name in filter(_LEFT.fullmatch, names):
                path = Path(folder, name)
                with suppress(OSError):  # gone by another sweep
                    if path.lstat().st_mtime < before:
                        path.unlink()
