"""Cells: bytes under names, which may be overwritten. Agent memory lies in them."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ._keys import ScopeKeys
from ._shared import Shared

if TYPE_CHECKING:
    from ._seat import Seat

_AT_ONCE = 32
_SECOND_NS = 1_000_000_000


class Cells:
    """The cells of one scope, each one key of the store. Any process that has the store sees them.

    Args:
        seat: The store of the bank.
        scope: The plain name of the scope.
        keys: The keys of the scope.
    """

    def __init__(self, seat: "Seat", scope: str, keys: ScopeKeys) -> None:
        self._seat = seat
        self._scope = scope
        self._keys = keys

    @property
    def _shared(self) -> Shared:
        return self._seat.shared  # Cells go on in another store, when the bank does.

    def stamp_ns(self) -> int:
        """Return the time, and never the same one twice."""
        return self._shared.stamp_ns()

    async def get(self, name: str) -> bytes | None:
        """Return what is in a cell, None where there is none of this name.

        Raises:
            StoreError: The store failed, or is of another version.
        """
        await self._shared.check_format()
        return await self._shared.store.get(self._keys.cell(name))

    async def create(self, name: str, payload: bytes, until: datetime | None = None) -> bool:
        """Write a cell where there is none; return whether this call wrote it.

        Of several processes exactly one wins where the store has `SupportsCreate`; elsewhere two
        may, and the last one stands.

        Args:
            name: Any text.
            payload: What it holds from now on.
            until: When what it speaks of goes; a store that can forgets the cell with it.
        """
        shared, key = self._shared, self._keys.cell(name)
        await shared.mark(self._scope, self._keys)
        lives_seconds = self._lives_seconds(until)
        if lives_seconds is None or shared.batches is None:
            return await shared.create(key, payload)
        return await shared.batches.put_many(
            {key: payload}, ttl_seconds={key: lives_seconds}, unless=key
        )

    async def put(self, name: str, payload: bytes, until: datetime | None = None) -> None:
        """Write a cell, over what is in it. Arguments are those of `create`."""
        shared, key = self._shared, self._keys.cell(name)
        await shared.mark(self._scope, self._keys)
        lives_seconds = self._lives_seconds(until)
        if lives_seconds is None or shared.expires is None:
            await shared.store.put(key, payload)
        else:
            await shared.expires.put_expiring(key, payload, lives_seconds)

    def _lives_seconds(self, until: datetime | None) -> float | None:
        """Return how long a cell lives, None as long as any key of a store that forgets."""
        if until is None or self._shared.expires is None:
            return None
        left_seconds = until.timestamp() - self._shared.now_ns() / _SECOND_NS
        return left_seconds if left_seconds > 0 else None

    async def delete(self, name: str) -> None:
        """Remove a cell. One that is not there is no error."""
        await self._shared.store.delete(self._keys.cell(name))

    async def count(self) -> int:
        """Return how many there are."""
        await self._shared.check_format()
        return len([key async for key in self._shared.store.keys(self._keys.cell_folder)])

    async def all(self) -> AsyncGenerator[bytes, None]:
        """Yield what is in each cell, in no order that means anything."""
        await self._shared.check_format()
        keys = [key async for key in self._shared.store.keys(self._keys.cell_folder)]
        for start in range(0, len(keys), _AT_ONCE):
            for payload in await self._each(keys[start : start + _AT_ONCE]):
                if payload is not None:  # removed meanwhile
                    yield payload

    async def _each(self, keys: Sequence[str]) -> list[bytes | None]:
        from asyncio import gather

        # At once, as each may be a way to another machine.
        return await gather(*map(self._shared.store.get, keys))
