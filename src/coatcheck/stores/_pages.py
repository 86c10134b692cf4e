"""Folders of many timed names, in pages: the first ones are found without reading all.

A timed name begins with 16 hex digits and a hyphen. Those of a listing come newest first, so each
new one goes before all others. The first few hundred lie in the folder itself. Then a page is
begun, and so on: ``.pages/<16 hex>/`` has the names before these digits that are in no earlier
page. So no file ever moves, and a folder that was filled without pages is one whose last page is
long.

Whoever makes a file shares a lock on the folder, and whoever begins a page has it alone. So a file
lies where its name belongs, and who reads or removes it needs no lock. A page is removed with its
last file, and then its names belong in the next one.
"""

import fcntl
import itertools
import os
import re
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from zlib import crc32

from ..errors import StoreUnavailableError
from ._folders import Folders, open_folder

_PAGES = ".pages"
"""No key has a segment like it."""
_TIMED = re.compile(r"[0-9a-f]{16}-", re.ASCII)
_START = re.compile(r"[0-9a-f]{16}", re.ASCII)
_DIGITS = 16
_PAGE_NAMES = 512
"""A page is full that has so many."""
_WRITERS = 64
"""One in so many writers looks whether a page is full."""
_TRIES, _PAUSE_SECONDS = 1_000, 0.001


def page_paths(folders: Folders, folder: list[str]) -> list[list[str]]:
    """Return the folders that have the names of one, in order: its pages, then itself."""
    with folders.find([*folder, _PAGES]) as pages:
        starts = [] if pages is None else list(_starts(pages))
    return [*([*folder, _PAGES, start] for start in starts), folder]


def homes(folders: Folders, paths: Iterable[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each folder that some of `paths` lie in, in their order, and the names in it."""
    for parents, inside in itertools.groupby(paths, key=lambda path: path[:-1]):
        names = [path[-1] for path in inside]
        pages = page_paths(folders, parents) if any(map(_TIMED.match, names)) else []
        for home, some in itertools.groupby(names, key=lambda name: _home(name, pages)):
            yield home or parents, list(some)


@contextmanager
def make_home(folders: Folders, path: Sequence[str], root: int) -> Generator[int]:
    """Open the folder that a file belongs in for the time of a `with`, made where it is missing.

    Raises:
        StoreUnavailableError: A process was stopped while it began a page, or something that is
            no folder lies where a page belongs.
    """
    *parents, name = path
    with folders.make(parents, root) as folder:
        if not _TIMED.match(name):
            yield folder
            return
        try:
            if not crc32(name.encode()) % _WRITERS and _is_locked(folder, fcntl.LOCK_EX):
                _begin_page(name, folder, folders)
            else:
                _share(folder)
            with _page(name, folder) as page:
                yield page
        finally:
            # Closing it would do, but for a process that was forked meanwhile.
            fcntl.flock(folder, fcntl.LOCK_UN)


def drop_if_empty(folders: Folders, home: list[str]) -> None:
    """Remove a page that has no file any more. Other folders stay."""
    if _is_page(home):
        with folders.find(home[:-1]) as pages:
            if pages is not None:
                with suppress(OSError):  # it has files, or another process was faster
                    os.rmdir(home[-1], dir_fd=pages)


def _home(name: str, pages: Iterable[list[str]]) -> list[str] | None:
    """Return the first of the `pages` of a folder that has a name, None for the folder itself."""
    if _TIMED.match(name):
        for page in pages:
            if _is_page(page) and name[:_DIGITS] < page[-1]:
                return page
    return None


def _is_page(path: list[str]) -> bool:
    return path[-2:-1] == [_PAGES]


@contextmanager
def _page(name: str, folder: int) -> Generator[int]:
    """Open the page of a locked folder that a name belongs in, for the time of a `with`."""
    pages = open_folder(_PAGES, folder)
    page = None
    try:
        page = None if pages is None else _open_page(name, pages)
        yield folder if page is None else page
    finally:
        for opened in (pages, page):
            if opened is not None:
                os.close(opened)


def _open_page(name: str, pages: int) -> int | None:
    for _ in range(_TRIES):
        start = next(_starts(pages, after=name[:_DIGITS]), None)
        if start is None:
            return None
        page = open_folder(start, pages)
        if page is not None:  # else it was just removed
            return page
    raise StoreUnavailableError("something other than a folder lies where one belongs")


def _starts(pages: int, *, after: str = "") -> Iterator[str]:
    names = sorted(name for name in os.listdir(pages) if name > after)
    return filter(_START.fullmatch, names)


def _begin_page(name: str, folder: int, folders: Folders) -> None:
    """Begin a page with a name, where the one it belongs in is full and has none before it."""
    with _page(name, folder) as page, os.scandir(page) as entries:
        starts = (entry.name[:_DIGITS] for entry in entries if _TIMED.match(entry.name))
        some = list(itertools.islice(starts, _PAGE_NAMES))
        # Where these tell, no more are read: names in no order may be a million.
        if len(some) < _PAGE_NAMES or min(some) <= name[:_DIGITS]:
            return
        first = min(itertools.chain(some, starts))
    if name[:_DIGITS] < first:
        with folders.make([_PAGES, first], folder):
            pass


def _share(folder: int) -> None:
    for _ in range(_TRIES):
        if _is_locked(folder, fcntl.LOCK_SH):
            return
        time.sleep(_PAUSE_SECONDS)  # it takes less than a millisecond to begin a page
    raise StoreUnavailableError("another process stopped while it held a folder")


def _is_locked(folder: int, kind: int) -> bool:
    """Lock a folder until it is closed; return whether nobody else had it."""
    try:
        fcntl.flock(folder, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
