"""How the bank reads what it stored: the value, the payload, a range; and anew where it is gone."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from ..content import (
    Index,
    binary_page,
    decode,
    digest_of,
    has_binary_rows,
    is_array,
    plan_page,
    search_for,
)
from ..errors import BinaryPayloadError, CoatcheckError, DamagedPayloadError
from ..records import Limits, Matches, Page, dataclass
from ._lookup import Lookup
from ._record import Record
from ._rows import Fetch, GoneError, asked_of, handed_on
from ._shared import Shared
from ._threads import work_on

T = TypeVar("T")

_MOST_TRIES = 8


@dataclass(frozen=True, slots=True)
class View:
    """What is read and searched as one text or table: a payload, or what a selector picks."""

    pointer: str
    content_type: str
    index: Index
    fetch: Fetch
    glimpse: str = ""

    def check_text(self) -> None:
        """Pass where it is text.

        Raises:
            BinaryPayloadError: It is none.
        """
        if self.index.length_chars is None:
            raise BinaryPayloadError(
                self.pointer, self.content_type, self.index.size_bytes, self.glimpse
            )


class Reader:
    """Reads payloads of one scope. Each method that returns None says that the payload is gone.

    Args:
        shared: What all scopes of the bank share.
        lookup: Finds the records.
    """

    def __init__(self, shared: Shared, lookup: Lookup) -> None:
        self._shared = shared
        self._lookup = lookup

    async def found(
        self, text: str, work: Callable[[Record], Awaitable[T | None]], *, recall: bool = False
    ) -> T:
        """Return what `work` makes of the record behind `text`.

        Raises:
            UnknownPointerError, ExpiredPointerError: Nothing is behind it.
            DamagedPayloadError: The record stands, but its payload is gone.
        """
        record = await self._lookup.found(text, recall=recall)
        for _ in range(_MOST_TRIES):
            try:
                done = await work(record)
            except GoneError:
                done = None
            if done is not None:
                return done
            lost, record = record, await self._lookup.found(text)
            # A delete takes the record first: where that still stands, the payload is lost.
            if record.payload_key == lost.payload_key:
                break
        raise DamagedPayloadError(record.artifact.pointer)

    async def value(self, record: Record) -> tuple[object, int] | None:
        """Return the value as it was put, and the size of its payload."""
        size_bytes = record.index.size_bytes
        value = self._shared.cache.get(record.payload_key)
        if value is not None:
            return handed_on(value), size_bytes
        payload = await self.payload(record)
        if payload is None:
            return None
        value = await work_on(size_bytes, decode, payload, record.form)
        self.keep(record, value)
        return handed_on(value), size_bytes

    def keep(self, record: Record, value: object) -> None:
        """Remember a value, where no tool that it is handed to can change it."""
        if isinstance(value, str | bytes):
            self._shared.cache.put(record.payload_key, value, sys.getsizeof(value))
        elif is_array(value):
            self._shared.cache.put(record.payload_key, value, record.index.size_bytes)

    async def payload(self, record: Record) -> bytes | None:
        """Return the payload, compared with its digest.

        Raises:
            DamagedPayloadError: It is not what was stored.
        """
        payload = await self._shared.store.get(record.payload_key)
        if payload is None:
            return None
        if await work_on(len(payload), digest_of, payload) != record.artifact.digest:
            raise DamagedPayloadError(record.artifact.pointer)
        return payload

    async def fetch(self, record: Record, start_byte: int, stop_byte: int) -> bytes | None:
        """Return bytes of a payload.

        Raises:
            DamagedPayloadError: They are fewer than there should be.
        """
        if start_byte == stop_byte:
            return b""
        piece = await self._shared.fetch(record.payload_key, start_byte, stop_byte)
        if piece is not None and len(piece) != stop_byte - start_byte:
            raise DamagedPayloadError(record.artifact.pointer)
        return piece

    async def fetched(self, record: Record, start_byte: int, stop_byte: int) -> bytes:
        """Return bytes of a payload that is there.

        Raises:
            GoneError: It is gone; `found` knows what to do.
        """
        piece = await self.fetch(record, start_byte, stop_byte)
        if piece is None:
            raise GoneError
        return piece

    def view(self, record: Record) -> View:
        """Return the whole of an artifact, as it is read and searched."""
        artifact = record.artifact
        return View(
            artifact.pointer,
            artifact.content_type,
            record.index,
            partial(self.fetch, record),
            "" if artifact.glimpse is None else str(artifact.glimpse),
        )


class damaged:  # noqa: N801 - a context, as those of contextlib, which are slower
    """Tell of what cannot be read as it was indexed as damage.

    Raises:
        DamagedPayloadError: The block raised a ValueError that is none of our own errors.
    """

    def __init__(self, pointer: str) -> None:
        self._pointer = pointer

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        if isinstance(error, ValueError) and not isinstance(error, CoatcheckError):
            raise DamagedPayloadError(self._pointer) from None


async def page_of(
    view: View, offset: int, limit: int | None, unit: str, limits: Limits
) -> Page | None:
    """Return one window of a view, as `Bank.read`."""
    index, rows = view.index, view.index.rows
    with damaged(view.pointer):
        if unit == "rows" and rows is not None and has_binary_rows(index):
            ask = partial(binary_page, rows, offset=offset, limit=limit, limits=limits)
            return await asked_of(index.size_bytes, view.fetch, ask)
        if unit != "bytes":
            view.check_text()
        plan = plan_page(index, unit=unit, offset=offset, limit=limit, limits=limits)
        piece = await view.fetch(plan.start_byte, plan.stop_byte)
        return None if piece is None else plan.cut(piece)


async def searched(
    view: View, needle: str, offset: int, limit: int, *, regex: bool, ignore_case: bool
) -> Matches | None:
    """Return what a search finds in a view, as `Bank.search`.

    For a literal text on the loop, window by window: its engine holds the GIL, so a thread would
    not free the loop any sooner than the pause between two windows does. A regular expression may
    take much longer for a window, and its engine lets go of the GIL.
    """
    from anyio import to_thread
    from anyio.lowlevel import checkpoint

    view.check_text()
    search = search_for(view.index, needle, offset, limit, regex=regex, ignore_case=ignore_case)
    for start_byte, stop_byte in search.windows():
        piece = await view.fetch(start_byte, stop_byte)
        if piece is None:
            return None
        if search.leaves_loop:
            await to_thread.run_sync(search.feed, piece)
        else:
            search.feed(piece)
        # Else two windows are held at once, and each is fetched into memory new to us.
        del piece
        await checkpoint()
    return search.result()
