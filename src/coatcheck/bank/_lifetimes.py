"""How long artifacts of a bank live: runs that hold them, what removes them, what they take."""

from ..errors import DamagedRecordError, InvalidArgumentError
from ..records import Pointer, dataclass
from ._grants import Granting
from ._holds import Holds
from ._own_puts import OwnPuts
from ._quota import listed, make_room
from ._record import Record
from ._run import Run, current_run, renew_runs
from ._seat import Desk
from ._select import selector_of


@dataclass(frozen=True, slots=True)
class Usage:
    """What a scope takes in its store; what has expired counts until it is removed."""

    artifacts: int
    size_bytes: int
    """Of all payloads."""


class Lifetimes(Granting):
    """The part of a bank that knows how long an artifact lives."""

    _own_puts: OwnPuts

    def run(self, name: str) -> Run:
        """Return a run of this scope, for ``async with``: what it is shown stays while it goes on.

        What is put in the block belongs to the run, and what another run put is pinned once a
        call of this one has shown it. Neither expires nor is evicted until the block ends, or
        15 minutes pass without a call. Afterwards each is what its own time says.

        Args:
            name: 1 to 200 characters. Several processes may be the same run.

        Raises:
            InvalidArgumentError: The name is empty or longer.
            StoreError: From entering the block: the lease could not be written.

        >>> import asyncio
        >>> from coatcheck import open_bank
        >>> async def example() -> tuple[str | None, str | None]:
        ...     async with open_bank("memory:") as bank:
        ...         async with bank.run("review-1421"):
        ...             inside = await bank.put("x" * 60_000, ttl_seconds=600)
        ...         outside = await bank.put("y" * 60_000)
        ...         return inside.run, outside.run
        >>> asyncio.run(example())
        ('review-1421', None)
        """
        return Run(self._seat, self.scope, self._scope_keys, name)

    @property
    def current_run(self) -> str | None:
        """The name of the run that goes on here, in this task; None where none does."""
        run = current_run(self._shared, self._scope_keys)
        return None if run is None else run.name

    async def delete(self, pointer_or_name: str | Pointer) -> bool:
        """Remove an artifact of this scope; return whether there was one.

        What a parent scope holds, or another one granted, stays. Of a damaged artifact the
        record goes, so that nothing of it is found any more. No run keeps from it.

        Raises:
            InvalidArgumentError: The pointer has a selector: a part cannot be deleted.
        """
        text = str(pointer_or_name)
        if selector_of(text) is not None:
            raise InvalidArgumentError(
                "A part of an artifact cannot be deleted.",
                "Delete the whole, by the pointer without # and what follows it.",
            )
        desk = self._desk
        try:
            record = await desk.lookup.own(text)
        except DamagedRecordError as error:
            return await desk.remover.discard(Pointer.parse(error.pointer).id)
        if record is None:
            return False
        return await self._remove(desk, record)

    async def cleanup(self, older_than_seconds: float = 3_600) -> int:
        """Delete what this object put longer ago than that; return how many.

        What a live run holds stays, and goes with a later call.

        Raises:
            ValueError: `older_than_seconds` is negative.
        """
        if older_than_seconds < 0:
            raise ValueError(f"older_than_seconds must be 0 or more, got {older_than_seconds}")
        desk = self._desk
        before_ns = desk.shared.now_ns() - int(older_than_seconds * 1_000_000_000)
        holds = Holds(desk.shared, self._scope_keys)
        removed = 0
        for id_, stored_ns in self._own_puts.before(before_ns):
            try:
                record = await desk.lookup.own(id_)
            except DamagedRecordError:
                removed += await desk.remover.discard(id_)
                record = None
            if record is None or record.stored_ns != stored_ns:
                self._own_puts.drop(id_)
            elif not await holds.holds(record):
                removed += await self._remove(desk, record)
        return removed

    async def usage(self) -> Usage:
        """Return how many artifacts this scope has, and what their payloads take."""
        desk = self._desk
        await desk.shared.check_format()
        sizes = [each.size_bytes async for each in listed(desk.shared, self._scope_keys)]
        return Usage(len(sizes), sum(sizes))

    async def _remove(self, desk: Desk, record: Record) -> bool:
        await desk.remover.remove(record)
        self._own_puts.drop(record.artifact.id)
        return True

    async def _is_put(self, desk: Desk, record: Record, *, is_new: bool) -> None:
        """Note what was put: for `cleanup`, for the run, and for the quotas."""
        if is_new:
            await self._own_puts.add(record, desk.shared, self._scope_keys)
        await renew_runs(desk.shared)
        run = current_run(desk.shared, self._scope_keys)
        if run is not None:
            await run.show(record)
        if is_new and desk.shared.has_quota:
            for id_ in await make_room(desk.shared, self._scope_keys, record):
                self._own_puts.drop(id_)
