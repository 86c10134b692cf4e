"""Agent memory: entries that all agents, tasks and steps of a run read and write."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypedDict, Unpack

from ..bank import PLAIN_TYPES, Bank, Cells, Stream
from ..content import dumps, encode, encoded_size, loads
from ..errors import StoreFormatError, UnknownPointerError
from ..records import Artifact
from ..stores import MemoryStore
from ._entry import Cell, Kinds, MemoryEntry, at_ms, checked_kind
from ._keys import check_key
from ._prompt import as_prompt

Entries = list[MemoryEntry]
Listener = Callable[[MemoryEntry], object]

_MS_NS = 1_000_000


class Filters(TypedDict, total=False):
    """Which entries are meant: those that pass each filter that is given.

    An empty collection lets nothing pass, an empty prefix everything.
    """

    kind: Kinds | Collection[Kinds]
    """One kind or several."""
    keys: Collection[str]
    key_prefix: str
    sources: Collection[str]


@dataclass(frozen=True, slots=True)
class _Held:
    """A value as an entry holds it."""

    value: object
    written: bytes
    size_bytes: int
    artifact: Artifact | None = None


class _Facts(NamedTuple):
    """What a writer says of an entry beside its value."""

    kind: Kinds
    source: str | None
    title: str | None
    description: str | None
    plan_hash: str | None


class AgentMemory:
    r"""Entries under keys, which all that share a bank and a scope see.

    A value is kept in its entry, or banked whole from `Limits.inline_bytes` on: then the entry
    holds its pointer, and `get_value` gives the value all the same. Safe to use from several tasks
    and processes at once; of two that write one key the last wins.

    Args:
        bank: Where values are banked; its store holds the entries too. None takes a bank of its
            own, which ends with the process.
        scope: Where the entries lie, if not in the bank's scope.

    >>> import asyncio
    >>> async def example() -> object:
    ...     memory = AgentMemory()
    ...     await memory.set("task:research", {"findings": ["alpha"]}, title="Research findings")
    ...     await memory.set("shared:log", "a line\n" * 20_000)
    ...     entry = await memory.get("shared:log")
    ...     return await memory.get_value("task:research"), entry.value == entry.pointer
    >>> asyncio.run(example())
    ({'findings': ['alpha']}, True)
    """

    def __init__(self, bank: Bank | None = None, *, scope: str | None = None) -> None:
        self.bank = Bank(MemoryStore()) if bank is None else bank
        self.scope = self.bank.scope if scope is None else scope
        # Its own, so that `cleanup` of the host's bank leaves alone what entries hold.
        self._values = self.bank.scoped(self.bank.scope)
        self._cells: Cells = self._values.cells_in(self.scope)
        self._listeners: dict[object, Listener] = {}

    async def set(
        self,
        key: str,
        value: object,
        *,
        kind: str | None = None,
        source: str | None = None,
        title: str | None = None,
        description: str | None = None,
        created_at: datetime | None = None,
        plan_hash: str | None = None,
        only_if_absent: bool = False,
    ) -> MemoryEntry:
        """Write an entry whole, and return it as it stands.

        Written again, a key keeps its place and `created_at`; all else is what this call gives.

        Args:
            key: 1 to 500 characters; `memory_keys` makes those of the four namespaces.
            value: As for `Bank.put`; or an `Artifact`, of which the entry holds the pointer.
            kind: ``task_result``, ``step_result``, ``input`` or ``shared``; None is that of the
                key's namespace.
            source: Who made it.
            title: What `memory_list` calls it.
            description: What more it says of it.
            created_at: An aware time; None keeps that of the entry, and of a new one is now.
            plan_hash: Of the plan whose step or task it finishes; for executors.
            only_if_absent: Leave an entry that is there as it is, and return that. Of several
                processes one wins where the store has `SupportsCreate`; elsewhere the last does.

        Raises:
            InvalidArgumentError: A key or kind outside its rule.
            UnencodableValueError: The value has no lossless encoding.
            UnknownPointerError, ExpiredPointerError: The value is an artifact that is gone.
            ValueError: `created_at` has no time zone.
            StoreError: It could not be kept.
        """
        check_key(key)
        stated_at = _whole_ms(created_at)
        facts = _Facts(checked_kind(kind, key), source, title, description, plan_hash)
        standing = await self._standing(key)
        if standing is not None and only_if_absent:
            return standing.entry
        # Banked first: an entry never holds a pointer to bytes that were not kept.
        held = await self._held(key, value)
        stamp_ns = self._cells.stamp_ns()
        first_at = at_ms(stamp_ns // _MS_NS) if standing is None else standing.entry.created_at
        entry = _entry(key, held, facts, stated_at or first_at)
        once = {"only_if_absent": only_if_absent, "keeps_time": created_at is None}
        return await self._written(entry, held, stamp_ns, standing, **once)

    async def _written(
        self,
        entry: MemoryEntry,
        held: _Held,
        stamp_ns: int,
        standing: Cell | None,
        *,
        only_if_absent: bool,
        keeps_time: bool,
    ) -> MemoryEntry:
        """Write an entry where there is none, else over the one that stands."""
        key = entry.key
        while standing is None:
            written = Cell(entry, stamp_ns).to_bytes(held.written)
            if await self._cells.create(key, written, held.artifact):
                return self._told(entry)
            # Another writer was first, or removed what it wrote: look what is there.
            standing = await self._standing(key)
        if only_if_absent:
            return standing.entry
        if keeps_time and entry.created_at != standing.entry.created_at:
            entry = replace(entry, created_at=standing.entry.created_at)
        written = Cell(entry, standing.order_ns).to_bytes(held.written)
        await self._cells.put(key, written, held.artifact)
        return self._told(entry)

    async def get(self, key: str) -> MemoryEntry | None:
        """Return the entry under `key`, None where there is none."""
        standing = await self._standing(key)
        return None if standing is None else standing.entry

    async def get_value(self, key: str) -> object:
        """Return the value under `key`, fetched where it was banked; None where there is none.

        Raises:
            UnknownPointerError, ExpiredPointerError: It was banked, and deleted since.
            StoreError: The store failed, or the value is damaged.
        """
        entry = await self.get(key)
        return None if entry is None else await self.value_of(entry)

    async def value_of(self, entry: MemoryEntry) -> object:
        """Return the value of an entry, fetched where it was banked. Raises as `get_value`."""
        return entry.value if entry.pointer is None else await self.bank.get(entry.pointer)

    async def pointer_of(self, entry: MemoryEntry) -> str:
        """Return a pointer to the value of an entry, which is banked for it where it is not yet."""
        if entry.pointer is not None:
            return entry.pointer
        return (await self._banked(entry.key, entry.value, replay=f"memory\n{entry.key}")).pointer

    async def has(self, key: str) -> bool:
        """Return whether there is an entry under `key`."""
        return await self._cells.get(key) is not None

    async def delete(self, key: str) -> bool:
        """Remove an entry; return whether there was one. What it held stays banked."""
        return await self._cells.delete(key)

    async def size(self) -> int:
        """Return how many entries there are."""
        return await self._cells.count()

    async def list(self, **filters: Unpack[Filters]) -> Entries:
        """Return the entries that pass all filters, in the order in which their keys came.

        Values that were banked are not fetched.
        """
        keys = filters.get("keys")
        if keys is None:
            cells = [cell async for cell in self._all()]
        else:
            found = [await self._standing(key) for key in dict.fromkeys(keys)]
            cells = [cell for cell in found if cell is not None]
        cells.sort(key=lambda cell: (cell.order_ns, cell.entry.key))
        return [cell.entry for cell in cells if _passes(cell.entry, filters)]

    async def clear(self, **filters: Unpack[Filters]) -> None:
        """Remove the entries that pass all filters; without one, all. What they held stays banked.

        So pointers in prompts and snapshots go on working; `bank.delete` removes an artifact.
        """
        for entry in await self.list(**filters):
            await self._cells.delete(entry.key)

    async def snapshot(self, *, inline: bool = False) -> Entries:
        """Return all entries, in the order in which their keys came.

        Args:
            inline: Whether entries hold their values in place of pointers, for a memory on
                another store.
        """
        entries = await self.list()
        if not inline:
            return entries
        return [replace(each, value=await self.value_of(each), pointer=None) for each in entries]

    async def restore(self, entries: Iterable[MemoryEntry]) -> None:
        """Write entries of a snapshot, over those with the same keys, and tell subscribers.

        Raises:
            UnknownPointerError: A pointer of theirs has nothing behind it here. Nothing was
                written then: take the snapshot with `inline`.
        """
        values: list[tuple[MemoryEntry, object]] = []
        for entry in entries:
            value = entry.value
            if entry.pointer is not None:
                value = await self.bank.find(entry.pointer)
                if value is None:
                    raise UnknownPointerError(entry.pointer)
            values.append((entry, value))
        for entry, value in values:
            await self.set(
                entry.key,
                value,
                kind=entry.kind,
                source=entry.source,
                title=entry.title,
                description=entry.description,
                created_at=entry.created_at,
                plan_hash=entry.plan_hash,
            )

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each entry that this object writes; return what ends that.

        What it raises is logged, and holds up neither the write nor other listeners. Writes of
        other processes are not told.
        """
        mark = object()  # the same function may listen twice
        self._listeners = {**self._listeners, mark: listener}

        def unsubscribe() -> None:
            self._listeners = {at: each for at, each in self._listeners.items() if at is not mark}

        return unsubscribe

    async def format_for_prompt(self, **filters: Unpack[Filters]) -> str:
        """Return the entries that pass all filters as Markdown, the oldest first.

        Of a banked value the envelope is shown. Without entries the text is empty.
        """
        entries = await self.list(**filters)
        entries.sort(key=lambda entry: entry.created_at)
        shown: list[tuple[MemoryEntry, Artifact | None]] = [
            (each, None if each.pointer is None else await self.bank.find(each.pointer))
            for each in entries
        ]
        return as_prompt(shown)

    def _told(self, entry: MemoryEntry) -> MemoryEntry:
        """Tell subscribers of an entry, and return it."""
        for listener in self._listeners.values():
            try:
                listener(entry)
            except Exception:  # whatever a subscriber does, the entry is written
                import logging

                message = "a subscriber failed on entry %s"
                logging.getLogger("coatcheck.memory").warning(message, entry.key, exc_info=True)
        return entry

    async def _standing(self, key: str) -> Cell | None:
        stored = await self._cells.get(key)
        return None if stored is None else Cell.from_bytes(stored)

    async def _all(self) -> AsyncGenerator[Cell, None]:
        async for stored in self._cells.all():
            try:
                yield Cell.from_bytes(stored)
            except StoreFormatError:  # one that is damaged must not hide all others
                continue

    async def _held(self, key: str, value: object) -> _Held:
        """Return a value as its entry will hold it; banked where it is large, or no JSON."""
        limit_bytes = self.bank.limits.inline_bytes
        if isinstance(value, Artifact):
            return _pointing(value, value.size_bytes)
        if isinstance(value, str):
            written = dumps(value)
            if encoded_size(value) < limit_bytes:
                return _Held(value, written, len(written))
            return _pointing(await self._banked(key, value), len(written))
        if type(value) in PLAIN_TYPES or Stream.of(value) is None:
            encoding = encode(value)
            if encoding.form == "json" and encoding.size_hint < limit_bytes:
                # Once more, as that is quicker than the pass that a payload is measured in.
                written = dumps(value)
                # As others will read it: text for a date, a list for a tuple.
                return _Held(loads(written), written, len(written))
            value = encoding
        artifact = await self._banked(key, value)
        return _pointing(artifact, artifact.size_bytes)

    async def _banked(self, key: str, value: object, replay: str | None = None) -> Artifact:
        return await self._values.put(value, key=replay, kind="memory", source={"memory": key})


def _entry(key: str, held: _Held, facts: _Facts, created_at: datetime) -> MemoryEntry:
    return MemoryEntry(
        key=key,
        kind=facts.kind,
        value=held.value,
        source=facts.source,
        title=facts.title,
        description=facts.description,
        created_at=created_at,
        pointer=None if held.artifact is None else held.artifact.pointer,
        size_bytes=held.size_bytes,
        plan_hash=facts.plan_hash,
    )


def _pointing(artifact: Artifact, size_bytes: int) -> _Held:
    pointer = artifact.pointer
    return _Held(pointer, dumps(pointer), size_bytes, artifact)


def _whole_ms(at: datetime | None) -> datetime | None:
    """Return a time as it is stored.

    Raises:
        ValueError: It has no time zone.
    """
    if at is not None and at.tzinfo is None:
        raise ValueError("created_at needs a time zone")
    return None if at is None else at.replace(microsecond=at.microsecond // 1_000 * 1_000)


def _passes(entry: MemoryEntry, filters: Filters) -> bool:
    kind, sources = filters.get("kind"), filters.get("sources")
    kinds = (kind,) if isinstance(kind, str) else kind
    return (
        (kinds is None or entry.kind in kinds)
        and (sources is None or entry.source in sources)
        and entry.key.startswith(filters.get("key_prefix", ""))
    )
