"""Cells: bytes under names, which may be overwritten. Agent memory lies in them."""

import re
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import UnknownPointerError
from ..records import Artifact, dataclass
from ._keys import ScopeKeys, is_held_key, owner_of
from ._record import Record
from ._removal import WRITTEN_NS, prolong
from ._shared import Shared

if TYPE_CHECKING:
    from ._lookup import Lookup
    from ._seat import Seat

_AT_ONCE = 32
_SECOND_NS = 1_000_000_000
_HOLD = re.compile(rb"([0-9]{1,20}) ([!-~]{1,1000})")


@dataclass(frozen=True, slots=True)
class _Hold:
    """The key by which a cell holds an artifact, and what that is."""

    key: str
    record: Record


class Cells:
    """The cells of one scope, each one key of the store. Any process that has the store sees them.

    A cell may hold an artifact: that neither expires nor makes room for as long as the cell is
    not overwritten or deleted. A key beside the artifact says so. It is written before the cell,
    which names it, and removed after the cell; one whose cell does not name it is of a writer
    that was killed.

    Args:
        seat: The store of the bank.
        scope: The plain name of the scope.
        keys: The keys of the scope.
        lookup: Returns what finds artifacts that cells are to hold.
    """

    def __init__(
        self, seat: "Seat", scope: str, keys: ScopeKeys, lookup: "Callable[[], Lookup]"
    ) -> None:
        self._seat = seat
        self._scope = scope
        self._keys = keys
        self._lookup = lookup

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
        stored = await self._shared.store.get(self._keys.cell(name))
        return None if stored is None else _payload(stored)

    async def create(self, name: str, payload: bytes, held: Artifact | None = None) -> bool:
        """Write a cell where there is none; return whether this call wrote it.

        Of several processes exactly one wins where the store has `SupportsCreate`; elsewhere two
        may, and the last one stands.

        Args:
            name: Any text.
            payload: What it holds from now on.
            held: Stays for as long as the cell, also in a store that forgets by itself.

        Raises:
            UnknownPointerError, ExpiredPointerError: `held` is gone.
        """
        shared, key = self._shared, self._keys.cell(name)
        await shared.mark(self._scope, self._keys)
        hold = await self._hold(key, held)
        written, lives_ns = _stored(payload, hold), self._lives_ns(hold)
        if lives_ns is None or shared.batches is None:
            is_ours = await shared.create(key, written)
        else:
            is_ours = await shared.batches.put_many(
                {key: written}, ttl_seconds={key: lives_ns / _SECOND_NS}, unless=key
            )
        if not is_ours and hold is not None:
            await shared.store.delete(hold.key)
        return is_ours

    async def put(self, name: str, payload: bytes, held: Artifact | None = None) -> None:
        """Write a cell, over what is in it. Arguments and errors are those of `create`."""
        shared, key = self._shared, self._keys.cell(name)
        await shared.mark(self._scope, self._keys)
        hold = await self._hold(key, held)
        before = await shared.store.get(key)
        await self._write(key, _stored(payload, hold), self._lives_ns(hold))
        await self._let_go(before)

    async def delete(self, name: str) -> bool:
        """Remove a cell; return whether there was one."""
        key = self._keys.cell(name)
        before = await self._shared.store.get(key)
        if before is None:
            return False
        await self._shared.store.delete(key)
        await self._let_go(before)
        return True

    async def count(self) -> int:
        """Return how many there are."""
        await self._shared.check_format()
        return len([key async for key in self._shared.store.keys(self._keys.cell_folder)])

    async def all(self) -> AsyncGenerator[bytes, None]:
        """Yield what is in each cell, in no order that means anything."""
        await self._shared.check_format()
        keys = [key async for key in self._shared.store.keys(self._keys.cell_folder)]
        for start in range(0, len(keys), _AT_ONCE):
            for stored in await self._each(keys[start : start + _AT_ONCE]):
                if stored is not None:  # removed meanwhile
                    yield _payload(stored)

    async def _each(self, keys: Sequence[str]) -> list[bytes | None]:
        from asyncio import gather

        # At once, as each may be a way to another machine.
        return await gather(*map(self._shared.store.get, keys))

    async def _hold(self, cell: str, held: Artifact | None) -> _Hold | None:
        """Hold an artifact for a cell that is about to be written."""
        if held is None:
            return None
        shared, lookup = self._shared, self._lookup()
        record = await lookup.found(held.pointer, recall=True)
        # A key of this writing alone: who overwrites a cell lets go of what it found there, and
        # of nothing that another writer holds meanwhile.
        key = owner_of(record.payload_key).held(record.artifact.id, secrets.token_hex(8))
        hold = _Hold(key, record)
        await self._write(key, f"{shared.now_ns()} {cell}".encode(), self._lives_ns(hold))
        if not await lookup.stands(record):
            await shared.store.delete(key)
            raise UnknownPointerError(held.pointer)
        lasts_ns = shared.lives_ns(None)
        if lasts_ns is not None and record.expires_ns is not None:
            # As long as the cell, which is still to be written.
            await prolong(shared, [record], lasts_ns + WRITTEN_NS)
        return hold

    async def _write(self, key: str, payload: bytes, lives_ns: int | None) -> None:
        if lives_ns is None:
            await self._shared.store.put(key, payload)
        else:
            await self._shared.put_for(key, payload, lives_ns)

    async def _let_go(self, before: bytes | None) -> None:
        """Remove the key by which a cell that is no more held an artifact."""
        key = "" if before is None else _hold_key(before)
        if key:
            await self._shared.store.delete(key)

    def _lives_ns(self, hold: _Hold | None) -> int | None:
        """Return how long a cell lives, None as long as any key of the store."""
        shared = self._shared
        until_ns = None if hold is None else hold.record.expires_ns
        if until_ns is None or shared.expires is None or shared.lives_ns(None) is not None:
            return None
        # A store that can forget, and keeps the cell for ever: nothing lasts as long as that.
        left_ns = until_ns - self._shared.now_ns()
        return left_ns if left_ns > 0 else None


async def is_left_over(shared: Shared, key: str, stored: bytes) -> bool:
    """Return whether no cell names the key of a hold, and none is about to.

    Args:
        shared: What all scopes share.
        key: That of the hold.
        stored: What is stored under it.
    """
    match = _HOLD.fullmatch(stored)
    if match is None:
        return True
    if abs(shared.now_ns() - int(match[1])) < WRITTEN_NS:  # the writer's clock may be ahead
        return False
    cell = await shared.store.get(match[2].decode())
    return cell is None or _hold_key(cell) != key


def _stored(payload: bytes, hold: _Hold | None) -> bytes:
    """Return a cell as it is stored: a line that names its hold, then what is in it."""
    return (b"" if hold is None else hold.key.encode()) + b"\n" + payload


def _payload(stored: bytes) -> bytes:
    return stored.partition(b"\n")[2]


def _hold_key(stored: bytes) -> str:
    """Return the key of the hold that a cell names; empty where it names none."""
    named = stored.partition(b"\n")[0].decode("ascii", "replace")
    return named if is_held_key(named) else ""
