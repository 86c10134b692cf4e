"""What live runs and cells hold of a scope: it neither expires, nor makes room."""

from collections.abc import Sequence

from ..records import dataclass
from ._keys import ScopeKeys, held_id
from ._record import Record
from ._run import leases
from ._shared import Shared


@dataclass(frozen=True, slots=True)
class Holders:
    """Who held something of a scope at one moment."""

    runs: frozenset[str]
    """The segments of the runs that have a live lease."""
    in_cells: frozenset[str]
    """The ids of the artifacts that cells hold."""


class Holds:
    """Tells what cells, and the live runs of a scope and of those that read in it, hold.

    It is asked only of artifacts that are to go: nobody else pays for it.

    Args:
        shared: What all scopes of the bank share.
        keys: The keys of the scope whose artifacts are asked about.
    """

    def __init__(self, shared: Shared, keys: ScopeKeys) -> None:
        self._shared = shared
        self._keys = keys

    async def holders(self) -> Holders:
        """Return who holds something here."""
        found = leases(self._shared, self._keys)
        runs = frozenset([segment async for segment, _, is_live in found if is_live])
        held = self._shared.store.keys(self._keys.held_folder)
        return Holders(runs, frozenset([held_id(key) async for key in held]))

    async def holds(self, record: Record, holders: Holders | None = None) -> bool:
        """Return whether an artifact of this scope is held.

        Args:
            record: That of the artifact.
            holders: What `holders` gave, where it was asked just now.
        """
        return bool(await self.held([record], holders))

    async def held(self, records: Sequence[Record], holders: Holders | None = None) -> set[str]:
        """Return the ids of those of some artifacts that are held. Arguments as of `holds`."""
        if holders is None:
            holders = await self.holders()
        held = {each.artifact.id for each in records if each.artifact.id in holders.in_cells}
        if not holders.runs:
            return held
        own = {segment: self._keys.run_segment(segment) for segment in _runs_of(records)}
        held |= {
            each.artifact.id for each in records if own.get(each.artifact.run or "") in holders.runs
        }
        pins = {
            self._keys.pin(segment, id_): id_
            for segment in holders.runs
            for id_ in (each.artifact.id for each in records)
            if id_ not in held
        }
        found = await self._shared.get_each(list(pins))
        pinned = zip(pins.values(), found, strict=True)
        return held | {id_ for id_, pin in pinned if pin is not None}


def _runs_of(records: Sequence[Record]) -> set[str]:
    return {each.artifact.run for each in records if each.artifact.run is not None}
