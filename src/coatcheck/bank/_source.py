"""Where a stream comes from: paths, open files and iterators, each as an iterator of pieces."""

import codecs
import io
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from os import PathLike, fsdecode
from pathlib import Path
from typing import Protocol, cast

from ..content import PIECE_BYTES, Items, names_text, type_of_name

_TELLABLE = frozenset({"ascii", "iso8859-1", "utf-8"})
"""Encodings that can be decoded from any character on."""


class ReadableFile(Protocol):
    """An open file, of text or of bytes."""

    def read(self, size: int, /) -> object:
        """Return up to `size` characters or bytes, nothing at the end."""
        ...


class Pieces:
    """A source that is read by calls that may block.

    Args:
        pieces: Yields the items, or the pieces of a file.
        items: Makes a payload of them.
        path: Of the regular file that it is, where it is one that is not open yet.
        file: The file that it is, where it is an open one.
    """

    def __init__(
        self,
        pieces: Iterator[object],
        items: Items,
        *,
        path: Path | None = None,
        file: ReadableFile | None = None,
    ) -> None:
        self.pieces = pieces
        self.items = items
        self.path = path
        self.file = file


class AwaitedPieces:
    """A source that is awaited.

    Args:
        pieces: Yields the items.
        items: Makes a payload of them.
    """

    path = None

    def __init__(self, pieces: AsyncIterator[object], items: Items) -> None:
        self.pieces = pieces
        self.items = items


def source_of(
    value: object, content_type: str | None, *, with_paths: bool
) -> Pieces | AwaitedPieces | None:
    """Return a value as the source of a stream, None where it is a plain value.

    Args:
        value: A path, an open file, an iterator or async iterator, or anything else.
        content_type: As the caller gave it, None where it gave none.
        with_paths: Whether a path stands for the file.
    """
    kind = type(value)
    if isinstance(value, PathLike):
        if not with_paths:
            return None
        path = Path(fsdecode(cast("PathLike[str] | PathLike[bytes]", value)))
        guessed = content_type or type_of_name(path.name)
        # A pipe may have nothing yet: who reads it must be one that can be left waiting.
        whole = path if path.is_file() else None
        return Pieces(_of_path(path), Items(guessed, form="bytes"), path=whole)
    if _is_file(value):
        return _of_file(cast("ReadableFile", value), content_type)
    if hasattr(kind, "__aiter__"):
        items = cast("AsyncIterator[object]", value).__aiter__()
        return AwaitedPieces(items, Items(content_type))
    if hasattr(kind, "__next__"):
        return Pieces(cast("Iterator[object]", value), Items(content_type))
    return None


def _is_file(value: object) -> bool:
    if isinstance(value, io.IOBase):
        return True
    # The temporary files of the standard library are none, nor are those of other packages.
    return (
        hasattr(type(value), "__iter__")
        and not isinstance(value, Mapping | Sequence)
        and callable(getattr(value, "read", None))
    )


def _of_file(file: ReadableFile, content_type: str | None) -> Pieces:
    name: object = getattr(file, "name", None)
    guessed = content_type or (type_of_name(name) if isinstance(name, str) else None)
    if not isinstance(file.read(0), str):
        return Pieces(_read(file), Items(guessed, form="bytes"), file=file)
    if guessed is None or (content_type is None and not names_text(guessed)):
        guessed = "text/plain"
    return Pieces(_of_text_file(file), Items(guessed, form="text"), file=file)


def _of_path(path: Path) -> Iterator[object]:
    with path.open("rb", buffering=0) as file:
        yield from _read(file)


def _read(file: ReadableFile) -> Iterator[object]:
    while (piece := file.read(PIECE_BYTES)) not in ("", b""):
        if piece is None:
            raise BlockingIOError("the file is not ready, and is not one to wait for")
        yield piece


def _of_text_file(file: ReadableFile) -> Iterator[object]:
    """Yield the text of a file from where it stands, with the newlines that are in the file."""
    buffer = _buffer_at_position(file)
    if buffer is None:
        yield from _read(file)
        return
    text = cast("io.TextIOWrapper", file)
    decoder = codecs.getincrementaldecoder(text.encoding)(text.errors or "strict")
    for piece in _read(buffer):
        yield decoder.decode(cast("bytes", piece))
    yield decoder.decode(b"", final=True)


def _buffer_at_position(file: ReadableFile) -> ReadableFile | None:
    """Return the bytes under a text file, set to its position, where that can be told."""
    if not isinstance(file, io.TextIOWrapper) or not file.seekable():
        return None
    text = cast("io.TextIOWrapper[io.BufferedReader]", file)
    try:
        position = text.tell()
    except OSError:  # its lines are being iterated over
        return None
    if position and codecs.lookup(text.encoding).name not in _TELLABLE:
        return None
    try:
        # More than a position is in the number where characters were decoded but not read.
        text.buffer.seek(position)
    except (OverflowError, OSError):
        return None
    return text.buffer
