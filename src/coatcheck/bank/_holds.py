"""What live runs hold of a scope: it neither expires, nor makes room."""

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
        if runs is None:
            runs = await self.runs()
        run = record.artifact.run
        if run is not None and self._keys.run_segment(run) in runs:
            return True
        pins = [self._keys.pin(segment, record.artifact.id) for segment in runs]
        return any([await self._shared.store.get(pin) is not None for pin in pins])
