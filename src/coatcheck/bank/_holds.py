"""What live runs hold of a scope: it neither expires, nor makes room."""

from collections.abc import Sequence

from ._keys import ScopeKeys
from ._record import Record
from ._run import leases
from ._shared import Shared


class Holds:
    """Tells what the live runs of a scope, and of those that read in it, were shown.

    Args:
        shared: What all scopes of the bank share.
        keys: The keys of the scope whose artifacts are asked about.
    """

    def __init__(self, shared: Shared, keys: ScopeKeys) -> None:
        self._shared = shared
        self._keys = keys

    async def runs(self) -> frozenset[str]:
        """Return the segments of the runs that have a live lease here."""
        found = leases(self._shared, self._keys)
        return frozenset([segment async for segment, _, is_live in found if is_live])

    async def holds(self, record: Record, runs: frozenset[str] | None = None) -> bool:
        """Return whether a run holds an artifact of this scope.

        Args:
            record: That of the artifact.
            runs: What `runs` gave, where it was asked just now.
        """
        return bool(await self.held([record], runs))

    async def held(self, records: Sequence[Record], runs: frozenset[str] | None = None) -> set[str]:
        """Return the ids of those of some artifacts that a run holds. Arguments as of `holds`."""
        if runs is None:
            runs = await self.runs()
        if not runs:
            return set()
        own = {segment: self._keys.run_segment(segment) for segment in _runs_of(records)}
        held = {each.artifact.id for each in records if own.get(each.artifact.run or "") in runs}
        pins = {
            self._keys.pin(segment, id_): id_
            for segment in runs
            for id_ in (each.artifact.id for each in records)
            if id_ not in held
        }
        found = await self._shared.get_each(list(pins))
        pinned = zip(pins.values(), found, strict=True)
        return held | {id_ for id_, pin in pinned if pin is not None}


def _runs_of(records: Sequence[Record]) -> set[str]:
    return {each.artifact.run for each in records if each.artifact.run is not None}
