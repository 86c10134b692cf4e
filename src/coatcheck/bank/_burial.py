"""How artifacts go whose time has come: several at once, and no store is asked for each."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from ..errors import StoreFormatError
from ._holds import Holds
from ._keys import ScopeKeys
from ._record import Record, own_record
from ._removal import Remover
from ._shared import Shared

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
            await self._shared.delete_each([key for id_ in late for key in told[id_]])
            going = await self._remover.take(
                [record for record in going if record.artifact.id not in late]
            )
        return going, [record for record in records if record.artifact.id in held]


def together(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield items by as many as are buried at once."""
    waiting = iter(items)
    while some := list(islice(waiting, _TOGETHER)):
        yield some
