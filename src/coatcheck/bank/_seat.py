"""Which store a bank is on: one for all its scopes, and another one from one moment on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ..records import dataclass
from ..stores import EndsWithProcess, Store
from ._cells import Cells
from ._handles import Handles
from ._keys import ScopeKeys
from ._lookup import Lookup
from ._reader import Reader
from ._removal import Remover
from ._select import Selections
from ._shared import Shared
from ._write import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What works for one scope on one store."""

    shared: Shared
    lookup: Lookup
    reader: Reader
    selections: Selections
    writer: Writer
    remover: Remover


class Seat:
    """The store of a bank, and of all banks scoped from it.

    Args:
        shared: What there is on that store.
    """

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.owns_store = False
        """Whether the store was built for this bank, and is to be closed with it."""

    async def swap(self, store: Store) -> None:
        """Work on another store from now on; close the one before where it was built here."""
        before = self.shared
        if store is before.store:
            return
        self.shared = before.on(store)
        if self.owns_store:
            self.owns_store = False
            await before.store.close()

    async def close(self) -> None:
        """Close the store where it was built here."""
        if self.owns_store:
            self.owns_store = False
            await self.shared.store.close()


class Seated:
    """The part of a bank that knows where it is: on which store, and in which scope."""

    def _sit(self, seat: Seat, scope: str, above: "Seated | None") -> None:
        self._seat = seat
        self._above = above
        self._scope_keys = ScopeKeys.of(scope)
        self.scope = scope
        self.handles = Handles(seat, scope, self._scope_keys)
        self.cells = self.cells_in(scope)
        self._last_desk = self._sat_down()

    def cells_in(self, scope: str) -> Cells:
        """Return the cells of a scope, which hold what this bank can read."""
        return Cells(self._seat, scope, ScopeKeys.of(scope), lambda: self._desk.lookup)

    @property
    def _shared(self) -> Shared:
        return self._seat.shared

    @property
    def _desk(self) -> Desk:
        # A whole call stays on one store, whatever is swapped meanwhile.
        if self._last_desk.shared is not self._seat.shared:
            self._last_desk = self._sat_down()
        return self._last_desk

    def _sat_down(self) -> Desk:
        shared = self._seat.shared
        above = None if self._above is None else self._above._desk.lookup  # noqa: SLF001 - same class
        lookup = Lookup(shared, self._scope_keys, above)
        remover = Remover(shared, self._scope_keys)
        reader = Reader(shared, lookup)
        return Desk(
            shared=shared,
            lookup=lookup,
            reader=reader,
            selections=Selections(shared, reader),
            writer=Writer(
                shared,
                self.scope,
                self._scope_keys,
                record_of=lookup.own_record_of,
                is_live=lookup.is_live,
                remover=remover,
            ),
            remover=remover,
        )

    @property
    def ends_with_process(self) -> bool:
        """Whether what is put here is gone when this process ends."""
        store = self._shared.store
        return isinstance(store, EndsWithProcess) and store.ends_with_process

    @asynccontextmanager
    async def owning(self) -> AsyncGenerator[None, None]:
        """Hold the store as this bank's own. At the end stop its work, and close that store."""
        seat = self._seat
        seat.owns_store = True
        try:
            yield
        finally:
            seat.shared.end_databases()
            try:
                await self.handles.stop()
            finally:
                await seat.close()

    async def use_store(self, store: Store) -> None:
        """Put into `store` from now on, and read from there alone; so do all scopes of this bank.

        Nothing is moved: a pointer from before is unknown, until its store is used again.
        Background work goes on, and its outcome lands in the new store; calls under way end where
        they began. The store before is closed where `open_bank` built it, else it stays open, and
        the property of who did. To use the same store twice does nothing.

        >>> import asyncio
        >>> from coatcheck import open_bank
        >>> from coatcheck.stores import MemoryStore
        >>> async def example() -> tuple[bool, bool]:
        ...     async with open_bank("memory:") as bank:
        ...         before = await bank.put("alpha")
        ...         await bank.use_store(MemoryStore())
        ...         after = await bank.put("beta")
        ...         return await bank.find(before.pointer) is None, await bank.get(
        ...             after.id
        ...         ) == "beta"
        >>> asyncio.run(example())
        (True, True)
        """
        await self._seat.swap(store)
