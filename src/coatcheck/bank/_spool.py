"""Files that are written only to be read by a database: private, and soon gone."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ..content import Rows, rows_span
from ..content.sql import CsvLook, CsvSource, dump_records, parse_csv

PIECE_BYTES = 8 * 1024 * 1024
"""As much of a file is held at once."""
SAMPLE_BYTES = 1024 * 1024
"""A block of rows that is longer is no sample: parsing it would take longer than it saves."""
BLOCK_ROWS = 1_024
_BLOCKS = 64
_GLOB = frozenset("*?[")


class Spool:
    """A folder of this user's alone, made once something is written to it."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._count = 0

    def open(self) -> BinaryIO:
        """Return a new file, open to be written."""
        # Not by Path: the file is to be private from its first moment on.
        return open(self._new(), "xb", opener=_private)

    def write(self, payload: bytes) -> str:
        """Write a file, and return its path."""
        with self.open() as file:
            file.write(payload)
        return str(file.name)

    def link(self, path: Path) -> str:
        """Return the path of a file in a form in which nothing is a pattern."""
        if _GLOB.isdisjoint(str(path)):
            return str(path)
        linked = self._new()
        linked.symlink_to(path)
        return str(linked)

    def close(self) -> None:
        """Remove all that was written."""
        if self.folder is not None:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)

    def _new(self) -> Path:
        if self.folder is None:
            import tempfile  # few need a file of their own

            self.folder = Path(tempfile.mkdtemp(prefix="coatcheck-"))
        self._count += 1
        return self.folder / str(self._count)


def first_records(path: str, rows: Rows, size_bytes: int) -> Sequence[Sequence[str]]:
    """Return the first records of CSV."""
    if not rows.count:
        return ()
    first, end = rows_span(rows, size_bytes, 0, min(BLOCK_ROWS, rows.count))
    if end - first > SAMPLE_BYTES:
        return ()
    with Path(path).open("rb") as file:
        file.seek(first)
        return parse_csv(file.read(end - first).decode("utf-8", "replace"), rows.format)


def is_simple(path: str) -> bool:
    """Return whether each line of CSV is one record, whoever reads it."""
    look = CsvLook()
    with Path(path).open("rb", buffering=0) as file:
        while look.is_simple and (piece := file.read(PIECE_BYTES)):
            look.feed(piece)
    return look.is_simple


def as_arrays(source: CsvSource, rows: Rows, spool: Spool) -> CsvSource:
    """Write the records of CSV anew, as JSON that leaves nothing open."""
    has_extra = False
    with Path(source.path).open("rb") as text, spool.open() as file:
        file.write(b"[")
        for piece in _blocks(text, rows):
            records, is_over = dump_records(piece, rows.format, len(rows.columns))
            has_extra |= is_over
            if len(records) > len(b"[]"):
                file.write(b"," if file.tell() > 1 else b"")
                file.write(memoryview(records)[1:-1])
        file.write(b"]")
    return replace(source, path=str(file.name), are_arrays=True, has_extra=has_extra)


def _blocks(text: BinaryIO, rows: Rows) -> Iterator[bytes]:
    if not rows.count:
        return
    text.seek(rows.starts[0])
    for end in [*rows.starts[::_BLOCKS]][1:]:
        yield text.read(end - text.tell())
    yield text.read()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
