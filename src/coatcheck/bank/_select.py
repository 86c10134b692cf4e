"""What selectors pick: values out of parsed payloads, windows out of texts, rows out of tables."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from xxhash import xxh3_128

from ..content import (
    EachRow,
    Index,
    PartialPayload,
    PieceIndexer,
    Rows,
    Section,
    Selector,
    chars_section,
    decode,
    encode,
    has_binary_rows,
    lines_section,
    outline,
    parse_rows,
    parse_selector,
    pick,
    pick_of_row,
    rows_span,
    section_page,
    single_row,
    slice_rows,
    take_rows,
)
from ..errors import DamagedPayloadError, NothingSelectedError
from ..records import Page, Pointer, names_pointer
from ._reader import Reader, View, damaged, page_of
from ._record import Record
from ._rows import Fetch, asked_of
from ._shared import Shared
from ._threads import work_on
from ._trees import TREE_FORMS, HeldTrees, Trees, nothing_in

T = TypeVar("T")

_WINDOW_BYTES = 1024 * 1024
_TEXT_FORMS = frozenset({"chars", "lines"})


def selector_of(text: str) -> Selector | None:
    """Return the selector of a pointer; None for a whole one, an id or a name.

    Raises:
        InvalidPointerError: What follows the ``#`` of a pointer is no selector.
        InvalidArgumentError: It is one, but breaks its rule.
    """
    if "#" not in text or not names_pointer(text):
        return None
    selector = Pointer.parse(text).selector
    return None if selector is None else parse_selector(selector)


def is_window(selector: Selector | None) -> bool:
    """Return whether it is a window of text: then each read sees whether the payload is gone."""
    return selector is not None and selector.form in _TEXT_FORMS


class Selections:
    """Reads artifacts, or what selectors pick of them. Without a selector all is read.

    A selection is read like an artifact of its own. Windows of text cost what they hold, found
    through the index, and rows at most two blocks of 1,024 more; so does a path that begins with
    the number of a row. For other paths the payload is parsed: a small one once, as its tree is
    remembered; a large table block by block where each row answers for itself.

    Args:
        shared: What all scopes of the bank share.
        reader: Reads payloads.
    """

    def __init__(self, shared: Shared, reader: Reader) -> None:
        self._shared = shared
        self._reader = reader
        self._trees = Trees(shared, reader)

    async def tree(self, record: Record) -> object:
        """Return a payload as plain values. Never change it, and hand out no list or dict of it.

        Raises:
            NothingSelectedError: It is text or bytes without a structure.
            DamagedPayloadError: It is not what was stored.
            GoneError: It is gone; `Reader.found` knows what to do.
        """
        return (await self._trees.tree(record)).value

    async def value(
        self, record: Record, *, selector: Selector | None, held: HeldTrees | None = None
    ) -> tuple[object, int] | None:
        """Return a value that the caller may change, and how many bytes had to be read for it."""
        if selector is None:
            return await self._reader.value(record)
        if selector.form in TREE_FORMS:
            return await self._picked(record, selector, held), record.index.size_bytes
        if selector.form == "rows":
            return await self._rows(record, selector), record.index.size_bytes
        piece = await self._text(record, selector)
        with damaged(record.artifact.pointer):
            return await work_on(len(piece), decode, piece, "text"), len(piece)

    async def payload(self, record: Record, *, selector: Selector | None) -> bytes | None:
        """Return the payload; of a selection the UTF-8 of its text, or its compact JSON."""
        if selector is None:
            return await self._reader.payload(record)
        if selector.form in _TEXT_FORMS:
            return await self._text(record, selector)
        view = await self._encoded(record, selector)
        return await view.fetch(0, view.index.size_bytes)

    async def page(
        self,
        record: Record,
        *,
        selector: Selector | None,
        offset: int,
        limit: int | None,
        unit: str,
    ) -> Page | None:
        """Return one window, as `Bank.read`."""
        limits = self._shared.limits
        if selector is None or selector.form not in _TEXT_FORMS:
            view = await self.view(record, selector=selector)
            return await page_of(view, offset, limit, unit, limits)
        locate = self._locating(record, selector)

        def cut(payload: PartialPayload) -> Page:
            return section_page(
                locate(payload), payload, unit=unit, offset=offset, limit=limit, limits=limits
            )

        return await self._asked(record, cut)

    async def view(self, record: Record, *, selector: Selector | None) -> View:
        """Return what is read, with an index of its own."""
        if selector is None:
            return self._reader.view(record)
        if selector.form in _TEXT_FORMS:
            return await self._window(record, selector)
        return await self._encoded(record, selector)

    async def _picked(
        self,
        record: Record,
        selector: Selector,
        held: HeldTrees | None = None,
        *,
        only_read: bool = False,
    ) -> object:
        rows = record.index.rows
        with _naming(record, selector):
            if rows is not None and not self._trees.may_keep(record):
                number = single_row(selector, rows)
                if number is not None:
                    _left(held, record)
                    (row,) = await self._some_rows(record, rows, number, number + 1)
                    return pick_of_row(row, number, selector)
                if EachRow.is_of(selector, rows):
                    _left(held, record)
                    return await self._of_each_row(
                        record, EachRow(selector, rows, record.index.size_bytes)
                    )
            tree = await self._trees.tree(record, held)
            is_shared = tree.is_shared and not only_read
            return await work_on(
                record.index.size_bytes, partial(pick, tree.value, selector, is_shared=is_shared)
            )

    async def _rows(self, record: Record, selector: Selector) -> list[object]:
        index, start = record.index, selector.start
        with _naming(record, selector):
            if index.rows is None:
                tree = await self._trees.tree(record)
                found = slice_rows(tree.value, start, selector.stop, is_shared=tree.is_shared)
                if not found:
                    hint = f"It is {outline(tree.value)}."
                    raise nothing_in(record, "there are no such rows", hint)
                return found
            rows, stop = index.rows, index.rows.count
            if start >= stop:
                raise nothing_in(record, "there are no such rows")
        stop = stop if selector.stop is None else min(stop, selector.stop)
        return await self._some_rows(record, rows, start, stop)

    async def _some_rows(self, record: Record, rows: Rows, start: int, stop: int) -> list[object]:
        """Return rows ``[start, stop)``, of which there is at least one."""
        if has_binary_rows(record.index):
            return await self._asked(record, lambda payload: take_rows(rows, payload, start, stop))
        span = rows_span(rows, record.index.size_bytes, start, stop)
        piece = await self._reader.fetched(record, *span)
        with damaged(record.artifact.pointer):
            return await work_on(len(piece), parse_rows, rows, piece, start, stop)

    async def _of_each_row(self, record: Record, picks: EachRow) -> list[object]:
        """Return what is picked out of all rows, of which but one window is in memory."""
        digest = xxh3_128()

        def pass_over(first: int, stop: int, piece: bytes) -> None:
            digest.update(piece)
            picks.feed(first, stop, piece)

        for first, stop in picks.spans():
            piece = await self._reader.fetched(record, *picks.span_bytes(first, stop))
            with damaged(record.artifact.pointer):
                await work_on(len(piece), pass_over, first, stop, piece)
            del piece
        if f"xxh3:{digest.hexdigest()}" != record.artifact.digest:
            raise DamagedPayloadError(record.artifact.pointer)
        return picks.result()

    async def _encoded(self, record: Record, selector: Selector) -> View:
        """Return what is picked as the payload that it would be."""
        key = f"{record.payload_key}#{selector.text}"
        kept = self._shared.cache.get(key)
        if isinstance(kept, View):
            return kept
        if selector.form == "rows":
            value: object = await self._rows(record, selector)
        else:
            value = await self._picked(record, selector, only_read=True)

        def encoded() -> tuple[bytes, Index, str]:
            encoding = encode(value)
            return encoding.whole(), encoding.index, encoding.content_type

        payload, index, content_type = await work_on(record.index.size_bytes, encoded)
        view = View(_named(record, selector), content_type, index, _fetch_of(payload))
        self._shared.cache.put(key, view, len(payload) + len(index.arrays()))
        return view

    async def _window(self, record: Record, selector: Selector) -> View:
        """Return a window of text with an index of its own, made in one pass over it."""
        section = await self._asked(record, self._locating(record, selector))
        first, stop = section.start.byte, section.stop.byte

        async def fetch(start_byte: int, stop_byte: int) -> bytes | None:
            return await self._reader.fetch(record, first + start_byte, first + stop_byte)

        key = f"{record.payload_key}#{selector.text}"
        index = self._shared.cache.get(key)
        if not isinstance(index, Index):
            index = await self._index_of(record, first, stop)
            self._shared.cache.put(key, index, len(index.arrays()))
        return View(_named(record, selector), "text/plain", index, fetch)

    async def _index_of(self, record: Record, first: int, stop: int) -> Index:
        """Return the index of a part of a text, of which but one piece is in memory."""
        from anyio.lowlevel import checkpoint

        indexer = PieceIndexer()
        for start_byte in range(first, stop, _WINDOW_BYTES):
            stop_byte = min(start_byte + _WINDOW_BYTES, stop)
            indexer.add(await self._reader.fetched(record, start_byte, stop_byte))
            await checkpoint()  # others get their turn
        return indexer.index()

    async def _text(self, record: Record, selector: Selector) -> bytes:
        section = await self._asked(record, self._locating(record, selector))
        return await self._reader.fetched(record, section.start.byte, section.stop.byte)

    def _locating(self, record: Record, selector: Selector) -> Callable[[PartialPayload], Section]:
        """Return what finds the window of a selector.

        Raises:
            NothingSelectedError: The payload is no text, or ends before the window.
        """
        index = record.index
        if index.length_chars is None:
            with _naming(record, selector):
                raise nothing_in(record, "it is no text")
        find = chars_section if selector.form == "chars" else lines_section

        def locate(payload: PartialPayload) -> Section:
            section = find(index, payload, selector.start, selector.stop)
            if section is None:
                with _naming(record, selector):
                    raise nothing_in(record, "it ends before that")
            return section

        return locate

    async def _asked(self, record: Record, ask: Callable[[PartialPayload], T]) -> T:
        with damaged(record.artifact.pointer):
            return await asked_of(record.index.size_bytes, partial(self._reader.fetch, record), ask)


def _named(record: Record, selector: Selector) -> str:
    return f"{record.artifact.pointer}#{selector.text}"


@contextmanager
def _naming(record: Record, selector: Selector) -> Generator[None]:
    """Let an error name the pointer with its selector."""
    try:
        yield
    except NothingSelectedError as error:
        pointer = _named(record, selector)
        raise NothingSelectedError(pointer, error.reason, error.hint) from None


def _left(held: HeldTrees | None, record: Record) -> None:
    if held is not None:
        held.leave(record)


def _fetch_of(payload: bytes) -> Fetch:
    async def fetch(start_byte: int, stop_byte: int) -> bytes:
        return payload[start_byte:stop_byte]

    return fetch
