"""How artifacts go whose time has come: several at once, and no store is asked for each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from ..errors import StoreFormatError
from ._holds import Holds
from ._keys import ScopeKeys
from ._record import Record, own_record
from ._removal import Remover
from ._run import LEASE_NS
from ._shared import Shared
from ._tombstone import TOLD_NS, Tombstone

T = TypeVar("T")

_TOGETHER = 32
"""More make the time longer between a look at who holds an artifact and its removal."""
BATCHES_AT_ONCE = 4
"""Within each, a store that can works on many keys at once."""


class Burial:
    """Removes artifacts of one scope that no live run holds, and leaves their tombstones.

    Args:
        shared: What all scopes share.
        keys: Those of the scope.
        dry_run: Only look, and change nothing.
    """

    def __init__(self, shared: Shared, keys: ScopeKeys, *, dry_run: bool = False) -> None:
        self._shared = shared
        self._keys = keys
        self._dry_run = dry_run
        self._holds = Holds(shared, keys)
        self._remover = Remover(shared, keys)

    async def records(self, ids: Sequence[str]) -> dict[str, Record | StoreFormatError | None]:
        """Return the record of each id, None where there is none, or why it cannot be read."""
        stored = await self._shared.get_each([self._keys.record(id_) for id_ in ids])
        found: dict[str, Record | StoreFormatError | None] = {}
        for id_, each in zip(ids, stored, strict=True):
            try:
                found[id_] = None if each is None else own_record(each, id_, self._keys)
            except StoreFormatError as error:
                found[id_] = error
        return found

    async def bury(self, records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
        """Return which of some artifacts went, and which stay, as a live run holds them."""
        held = await self._holds.held(records)
        going = [record for record in records if record.artifact.id not in held]
        if going and not self._dry_run:
            told = await self._remover.tell(going)
            # Again, as the writing took a while: a run may have been shown one of them.
            held |= (late := await self._holds.held(going))
            await self._spare([record for record in going if record.artifact.id in late], told)
            going = await self._remover.take(
                [record for record in going if record.artifact.id not in late]
            )
        return going, [record for record in records if record.artifact.id in held]

    async def _spare(self, records: Sequence[Record], told: Mapping[str, tuple[str, str]]) -> None:
        """Take back what was told of artifacts that stay after all.

        Where they go by themselves, each has the tombstone again that was put with it.
        """
        shared = self._shared
        if shared.expires is None:
            await shared.delete_each([key for each in records for key in told[each.artifact.id]])
            return
        for record in records:
            gone, _ = told[record.artifact.id]
            if record.expires_ns is None:
                await shared.store.delete(gone)
                continue
            # Who holds it may let it live longer than its own time: a lease, or as a cell does.
            left_ns = record.expires_ns - shared.now_ns()
            lives_ns = max(left_ns, LEASE_NS, shared.lives_ns(None) or 0) + TOLD_NS
            await shared.put_for(gone, Tombstone.of(record, record.expires_ns).to_bytes(), lives_ns)


def together(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items by as many as are buried at once."""
    waiting = iter(items)
    while some := list(islice(waiting, _TOGETHER)):
        yield some
