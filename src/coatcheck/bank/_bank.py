"""The one door to artifacts: put a value whole, show little of it, read on."""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar, overload

from ..content import Encoding, Selector
from ..errors import ExpiredPointerError
from ..records import Answer, Artifact, Kind, Limits, Matches, Page, Pointer
from ..stores import Store
from ._asked import Asked, encoded
from ._journal import Journal
from ._lifetimes import Lifetimes
from ._own_puts import OwnPuts
from ._reader import searched
from ._record import Record
from ._seat import Seat
from ._select import is_window, selector_of
from ._shared import Shared
from ._stream import Stream
from ._threads import work_on
from ._trees import HeldTrees
from ._typed import as_declared

T = TypeVar("T")


class Bank(Lifetimes):
    """Keeps values whole in a store, within one scope, and gives them back by pointer.

    Safe to use from several tasks, threads and event loops at once. The store stays the
    property of the caller, who closes it; `open_bank` builds and closes one for you.

    Args:
        store: Where payloads lie.
        scope: Whose data it is: a run, session or user. Pointers and names of other
            scopes are unknown here.
        limits: How much is shown, and when.
        kinds: Kinds with a pointer prefix of their own.
        secret: 32 bytes for the ids of keyed puts; None uses the store's own.
        clock: Seconds since 1970.
        journal: Where calls are noted, of tools and of what reads back; its owner closes it.

    Raises:
        ValueError: An empty scope, or a secret of another length.

    >>> import asyncio
    >>> from coatcheck.stores import MemoryStore
    >>> async def example() -> tuple[object, str]:
    ...     bank = Bank(MemoryStore())
    ...     artifact = await bank.put("alpha beta " * 10_000, name="greek")
    ...     page = await bank.read(artifact.pointer, offset=6, limit=4)
    ...     return await bank.get("greek") == "alpha beta " * 10_000, page.content
    >>> asyncio.run(example())
    (True, 'beta')
    """

    def __init__(
        self,
        store: Store,
        *,
        scope: str = "default",
        limits: Limits | None = None,
        kinds: Iterable[Kind] = (),
        secret: bytes | None = None,
        clock: Callable[[], float] = time.time,
        journal: Journal | None = None,
    ) -> None:
        shared = Shared(store, limits=limits or Limits(), kinds=kinds, secret=secret, clock=clock)
        shared.journal = journal
        self._join(Seat(shared), scope, None)

    def _join(self, seat: Seat, scope: str, parent: "Bank | None") -> None:
        if not scope:
            raise ValueError("a scope needs a name")
        self._sit(seat, scope, parent)
        self._own_puts = OwnPuts()
        self.limits = seat.shared.limits
        self.journal = seat.shared.journal

    def scoped(self, scope: str, *, inherit: bool = False) -> "Bank":
        """Return a bank for another scope on the same store.

        Args:
            scope: An absolute name; it is not put below this bank's scope.
            inherit: Whether reads that miss there go on to this bank. Writes never do.
        """
        other = Bank.__new__(Bank)
        other._join(self._seat, scope, self if inherit else None)  # noqa: SLF001 - same class
        return other

    async def put(
        self,
        value: object,
        *,
        name: str | None = None,
        label: str | None = None,
        kind: str = "other",
        content_type: str | None = None,
        preview_chars: int | None = None,
        key: str | None = None,
        ttl_seconds: float | None = None,
        source: Mapping[str, object] | None = None,
        tool: str | None = None,
        run: str | None = None,
        shown_chars: int | None = None,
        is_error: bool = False,
        owned: bool = False,
    ) -> Artifact:
        """Store `value` whole, and return what may be shown of it.

        Args:
            value: Text, bytes, or plain JSON values; or an `Encoding` made of one.
            name: Up to 200 characters that also find the artifact, newest first.
            label: What a reader calls it; blank means the kind.
            kind: Who made it and why. A registered kind decides the pointer's prefix.
            content_type: A MIME type, where the value's own is not right.
            preview_chars: Longest `Artifact.preview`, at most 4,000; more is clamped.
            key: The same key and value give the same artifact; the first write wins, its
                name and label too.
            ttl_seconds: How long it lives; None means until it is deleted, or makes room.
            source: Lineage, as plain JSON values.
            tool: The tool that returned it.
            run: The run it belongs to; None is the one that goes on, see `run`.
            shown_chars: Longest preview in an envelope; None as in the bank's limits.
            is_error: Whether it is the text of a failure, of which the end counts most.
            owned: A numpy array is the bank's from now on and nobody changes it: it is handed on
                as it lies in memory. Else it is copied once.

        Raises:
            InvalidArgumentError: A name, content type, length or time outside its rule.
            UnencodableValueError: The value has no lossless encoding.
            QuotaError: Alone it takes more than the limits let a scope or the store hold.
            StoreError: It could not be kept. Then nothing of it is visible.
            ValueError: A content type beside an `Encoding`, which has its own.
        """
        asked = Asked.checked(
            self.limits,
            name=name,
            label=label,
            kind=kind,
            content_type=content_type,
            preview_chars=preview_chars,
            shown_chars=shown_chars,
            ttl_seconds=ttl_seconds,
            source=source,
            tool=tool,
            run=self.current_run if run is None else run,
            is_error=is_error,
        )
        return await self._put(value, asked, key, content_type, owned=owned)

    async def _put(
        self, value: object, asked: Asked, key: str | None, content_type: str | None, *, owned: bool
    ) -> Artifact:
        if isinstance(value, Stream):
            return await self._put_stream(value, asked, key)
        stream = None if isinstance(value, Encoding) else Stream.of(value, content_type)
        if stream is not None:
            return await stream.run(partial(self._put_stream, stream, asked, key))
        encoding = await encoded(value, content_type, owned=owned)
        if content_type is not None:
            await work_on(encoding.size_hint, encoding.check)
        desk = self._desk
        record, is_new = await desk.writer.write(encoding, asked, key)
        desk.reader.keep(record, encoding.value)
        await self._is_put(desk, record, is_new=is_new)
        return record.artifact

    async def _put_stream(self, stream: Stream, asked: Asked, key: str | None) -> Artifact:
        desk = self._desk
        record, is_new = await desk.writer.write_stream(stream, asked, key)
        await self._is_put(desk, record, is_new=is_new)
        return record.artifact

    async def find(self, pointer_or_name: str | Pointer) -> Artifact | None:
        """Return the artifact behind a pointer, a bare id or a name; None where there is none.

        A selector makes no difference: it picks a part of the same artifact.
        """
        try:
            record = await self._desk.lookup.live(str(pointer_or_name))
        except ExpiredPointerError:
            return None
        return None if record is None else record.artifact

    @overload
    async def get(self, pointer_or_name: str | Pointer, as_type: type[T]) -> T: ...
    @overload
    async def get(self, pointer_or_name: str | Pointer, as_type: object = None) -> object: ...
    async def get(self, pointer_or_name: str | Pointer, as_type: object = None) -> object:
        """Return the value as it was put, or as a declared type.

        Args:
            pointer_or_name: A pointer, a bare id or a name. With a selector, what it picks is
                taken for the value: text, or plain JSON values.
            as_type: `str` gives the payload's text, `bytes` the payload, any other type
                the payload parsed by its format and validated.

        Raises:
            UnknownPointerError, ExpiredPointerError: Nothing is behind it.
            NothingSelectedError: Its selector picks nothing, or is none for what is there.
            InvalidPointerError, InvalidQueryError: Its selector is wrong.
            DeadlineError: Its selector takes too long.
            InvalidArgumentError: The value does not fit `as_type`.
            StoreError: The store failed, or the payload is damaged.
        """
        text = str(pointer_or_name)
        value, size_bytes, content_type = await self._value(text, selector_of(text))
        if as_type is None:
            return value
        return await work_on(size_bytes, as_declared, value, as_type, content_type)

    async def get_each(
        self, pointers: Sequence[str]
    ) -> AsyncGenerator[tuple[object, str | None], None]:
        """Yield what stands behind each of several pointers, in their order. Raises as `get`.

        With its content type, which is None of what a selector picks.

        As `get` of each, and every list and dict is the caller's own; but a payload that many
        selectors pick from is parsed once, and text that is asked for twice is fetched once.
        """
        selectors = [selector_of(pointer) for pointer in pointers]
        held = HeldTrees.of(pointers, selectors)
        unchanging: dict[str, tuple[object, str | None]] = {}
        for pointer, selector in zip(pointers, selectors, strict=True):
            found = unchanging.get(pointer)
            if found is None:
                value, _, content_type = await self._value(pointer, selector, held)
                found = value, content_type
            if isinstance(found[0], str | bytes):
                unchanging[pointer] = found
            yield found

    async def _value(
        self, text: str, selector: Selector | None, held: HeldTrees | None = None
    ) -> tuple[object, int, str | None]:
        async def value(record: Record) -> tuple[object, int, str | None] | None:
            found = await self._desk.selections.value(record, selector=selector, held=held)
            content_type = record.artifact.content_type if selector is None else None
            return None if found is None else (*found, content_type)

        return await self._desk.reader.found(text, value, recall=is_window(selector))

    async def payload(self, pointer_or_name: str | Pointer) -> bytes:
        """Return the exact bytes that were stored. Raises as `get`.

        With a selector: the UTF-8 of the text that it picks, else the compact JSON.
        """
        text = str(pointer_or_name)
        selector = selector_of(text)
        payload = partial(self._desk.selections.payload, selector=selector)
        return await self._desk.reader.found(text, payload, recall=is_window(selector))

    async def read(
        self,
        pointer_or_name: str | Pointer,
        offset: int = 0,
        limit: int | None = None,
        unit: str = "chars",
    ) -> Page:
        r"""Return one window of the payload; its cost does not grow with the payload.

        Args:
            pointer_or_name: A pointer, a bare id or a name. What a selector picks is read like
                an artifact of its own: all is counted within it.
            offset: First character, line or byte, from 0.
            limit: How many, at least 1. More than the cap is clamped, and the page says
                so; None is a page by `Limits`.
            unit: ``chars``, ``lines`` (ended by ``\n`` only), ``rows`` or ``bytes``. A page of
                rows is a JSON list of them; tables, arrays and frames have them.

        Raises:
            InvalidArgumentError: A negative offset, a limit below 1, an unknown unit.
            BinaryPayloadError: Characters or lines were asked of a binary payload.
            UnknownPointerError, ExpiredPointerError, StoreError: As `get`, and all that
                comes of a selector.
        """
        text = str(pointer_or_name)
        selector = selector_of(text)
        page = partial(
            self._desk.selections.page, selector=selector, offset=offset, limit=limit, unit=unit
        )
        recall = selector is None or is_window(selector)
        return await self._desk.reader.found(text, page, recall=recall)

    async def search(
        self,
        pointer_or_name: str | Pointer,
        needle: str,
        offset: int = 0,
        limit: int = 50,
        *,
        regex: bool = False,
        ignore_case: bool = True,
    ) -> Matches:
        """Return where `needle` stands, literally, as `str.casefold` compares, or as a pattern.

        Args:
            pointer_or_name: A pointer, also with a selector, a bare id or a name.
            needle: 1 to 200 characters.
            offset: First character to look at, from 0.
            limit: Most matches to return, 1 or more; above 50 means 50. All are counted,
                unless a pattern takes too long.
            regex: Whether it is a regular expression, by the rules of ``docs/reading.md``: those
                that `re` and RE2 share. A match lies within one line.
            ignore_case: False compares exactly.

        Raises:
            InvalidArgumentError: A needle, offset or limit outside its rule.
            DeadlineError: A regular expression took longer than 10 seconds, and by then `limit`
                matches were not found.
            BinaryPayloadError: The payload is no text.
            UnknownPointerError, ExpiredPointerError, StoreError: As `get`, and all that
                comes of a selector.
        """
        text = str(pointer_or_name)
        selector = selector_of(text)

        async def matches(record: Record) -> Matches | None:
            view = await self._desk.selections.view(record, selector=selector)
            return await searched(view, needle, offset, limit, regex=regex, ignore_case=ignore_case)

        return await self._desk.reader.found(
            text, matches, recall=selector is None or is_window(selector)
        )

    async def query(
        self,
        pointer_or_mapping: str | Pointer | Mapping[str, str | Pointer],
        expression: str,
        save_as: str | None = None,
    ) -> Answer:
        """Answer a question in SQL (one SELECT), JSONPath (``$…``) or JMESPath.

        In SQL the artifact is the table ``data``, or has the name given; others are tables by
        pointer or name in quotes. With `save_as` the answer is banked however small, by that name.

        Raises:
            CoatcheckError: The query is wrong, or takes too much; and as `get` and `put` raise.
        """
        from ._query import Queries  # many hosts never need it

        desk = self._desk
        reads = desk.lookup, desk.reader, desk.selections
        queries = Queries(desk.shared, self.scope, reads, self.put)
        return await queries.answer(pointer_or_mapping, expression, save_as)

    def end_queries(self) -> None:
        """End the processes that run SQL. The next query starts one again."""
        self._shared.end_databases()

    async def knows_prefix(self, prefix: str) -> bool:
        """Return whether pointers with this prefix are ours: registered here or on the store."""
        return await self._shared.knows_prefix(prefix)
