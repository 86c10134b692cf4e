"""Runs: while one goes on, what it was shown neither expires nor makes room for others."""

import secrets
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from ..content import dumps, loads
from ..errors import InvalidArgumentError, StoreError, StoreFormatError, shown
from ..records import dataclass, is_id
from ._keys import ScopeKeys, owner_of
from ._record import Record, own_record
from ._removal import AT_ONCE, prolong
from ._shared import Shared
from ._threads import to_end

if TYPE_CHECKING:
    from ._seat import Seat

LEASE_NS = 15 * 60 * 1_000_000_000
"""How long a run holds what it was shown without a call of its own."""

_LONGEST_NAME = 200
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Held:
    """An artifact that a run was shown, and its pin, where it has one."""

    record: Record
    pin: str | None


class Run:
    """One run of an agent: what its calls put, or were shown, stays for as long as it goes on.

    Use it in ``async with``. Within the block, in its task and in those started there, it is the
    run of the bank that made it: what is put belongs to it, and what another run put is pinned
    once it is shown. A lease says that the run goes on; its own calls renew it. That of a process
    that died lapses after 15 minutes without a call, and what it held is what its time says.

    Several processes may hold the same run: it goes on until the last one leaves it.

    Args:
        seat: The store of the bank.
        scope: The plain name of the scope.
        keys: The keys of the scope.
        name: 1 to 200 characters.

    Raises:
        InvalidArgumentError: The name is empty or longer.
    """

    def __init__(self, seat: "Seat", scope: str, keys: ScopeKeys, name: str) -> None:
        if not 0 < len(name) <= _LONGEST_NAME:
            raise InvalidArgumentError(
                f"the name of a run has 1 to {_LONGEST_NAME} characters, got {shown(name)}",
                "Choose a short name, or an id.",
            )
        self.name = name
        self._seat = seat
        self._scope = scope
        self._keys = keys
        self.segment = keys.run_segment(name)
        self._holder = secrets.token_hex(8)
        self._blocks = 0
        self._on: Shared | None = None
        self._renewed_ns: int | None = None
        self._latest_ns = 0
        self._tries = 0
        self._places: dict[str, ScopeKeys] = {}
        self._held: dict[str, _Held] = {}

    async def __aenter__(self) -> Self:
        await self.begin()
        # A block that ended in another context was not taken out of this one.
        _RUNNING.set((*(run for run in _RUNNING.get() if run.goes_on), self))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Not by a token: the block may end in another context than it began in.
        runs = list(_RUNNING.get())
        if self in runs:
            del runs[len(runs) - 1 - runs[::-1].index(self)]
        _RUNNING.set(tuple(runs))
        await self.end()

    @contextmanager
    def current(self) -> Generator[None]:
        """Let it be the current run for the time of a `with`, in code without an event loop."""
        before = _RUNNING.get()
        _RUNNING.set((*before, self))
        try:
            yield
        finally:
            _RUNNING.set(before)

    async def begin(self) -> None:
        """Take the lease.

        Raises:
            StoreError: It could not be written.
        """
        self._blocks += 1
        try:
            await self._renew(self._seat.shared)
        except BaseException:
            self._blocks -= 1
            raise

    async def end(self) -> None:
        """Give the lease back, at the end of the last block of several.

        Where the store is out of reach, it lapses by itself.
        """
        self._blocks -= 1
        if self.goes_on:
            return
        shared = self._seat.shared
        with suppress(StoreError):
            if shared.is_passing:  # nothing waits there, so nothing can be cancelled
                await self._leave(shared)
            else:
                await to_end(self._leave(shared))

    @property
    def goes_on(self) -> bool:
        """Whether one of its blocks has not ended."""
        return self._blocks > 0

    def is_on(self, shared: Shared) -> bool:
        """Return whether it goes on, on this store."""
        return self.goes_on and self._seat.shared is shared

    def is_of(self, shared: Shared, keys: ScopeKeys) -> bool:
        """Return whether it goes on in this scope of this store."""
        return self._keys == keys and self.is_on(shared)

    async def renew(self) -> None:
        """Renew the lease where that is due, in each call of the run.

        A store that fails loses what the run holds, never the answer of a call.
        """
        shared = self._seat.shared
        if not self._is_renewed(shared):
            with self._quiet():
                await self._renew(shared)

    async def show(self, record: Record) -> bool:
        """Hold an artifact that is shown; return whether that began just now."""
        if self._on is None or record.payload_key in self._held:
            return False
        with self._quiet():
            return await self._hold(self._on, record)
        return False

    def forget(self, record: Record) -> None:
        """Take an artifact for one that was not shown: it goes just now, whatever pins it."""
        self._held.pop(record.payload_key, None)

    @contextmanager
    def _quiet(self) -> Generator[None]:
        try:
            yield
        except StoreError as failure:
            import logging

            message = "what run %r was shown is not held: %s"
            logging.getLogger("coatcheck.bank").warning(message, self.name, failure)

    async def _hold(self, shared: Shared, record: Record) -> bool:
        owner, id_ = owner_of(record.payload_key), record.artifact.id
        is_own = owner == self._keys and record.artifact.run == self.name
        # Where all goes by itself, other holders keep it, and know of it by its pin alone.
        needs_pin = not is_own or shared.expires is not None
        pin = owner.pin(self.segment, id_) if needs_pin else None
        if pin is not None:
            if owner.segment not in self._places:
                await self._put_lease(shared, owner)
                self._places[owner.segment] = owner
            await shared.put_for(pin, b"", 2 * LEASE_NS)
            if not self.goes_on:  # meanwhile: nothing leads to this pin any more
                await shared.store.delete(pin)
                return False
        held = _Held(record, pin)
        await self._keep(shared, [held])
        self._held[record.payload_key] = held
        return True

    async def _renew(self, shared: Shared) -> None:
        if self._is_renewed(shared):
            return
        tries = self._tries
        # Of many calls at once the first renews, or fails, for all: none goes on before.
        async with shared.alone(f"lease {self.segment}-{self._holder}"):
            if self._is_renewed(shared) or self._tries != tries:
                return
            self._tries += 1
            if self._on is not shared:  # what was shown there is unknown here
                self._held.clear()
                self._places = {self._keys.segment: self._keys}
            # What was shown meanwhile is held, and one that fails is tried again.
            self._on, self._renewed_ns, now_ns = shared, None, shared.now_ns()
            await shared.mark(self._scope, self._keys, LEASE_NS)
            for keys in list(self._places.values()):
                await self._put_lease(shared, keys)
            await self._learn(shared)
            await self._keep(shared, list(self._held.values()))
            self._renewed_ns = now_ns

    def _is_renewed(self, shared: Shared) -> bool:
        if self._on is not shared or self._renewed_ns is None:
            return False
        return 0 <= shared.now_ns() - self._renewed_ns < LEASE_NS // 3

    async def _put_lease(self, shared: Shared, keys: ScopeKeys) -> None:
        lease = dumps({"run": self.name, "until": shared.now_ns() + LEASE_NS})
        await shared.put_for(keys.lease(self.segment, self._holder), lease, LEASE_NS)

    async def _learn(self, shared: Shared) -> None:
        """Where keys go by themselves, hold too what other holders of the run have pinned."""
        if shared.expires is None:
            return
        known = {each.pin for each in self._held.values()}
        for keys in list(self._places.values()):
            folder = keys.pin(self.segment, "")
            pins = [pin async for pin in shared.store.keys(folder) if pin not in known]
            ids = [id_ for pin in pins if is_id(id_ := pin.removeprefix(folder))]
            stored = await shared.get_each([keys.record(id_) for id_ in ids])
            for id_, each in zip(ids, stored, strict=True):
                if each is None:
                    continue
                with suppress(StoreFormatError):
                    record = own_record(each, id_, keys)
                    self._held.setdefault(record.payload_key, _Held(record, folder + id_))

    async def _keep(self, shared: Shared, held: Sequence["_Held"]) -> None:
        """Where keys go by themselves, let those go on that would not see the next renewal."""
        if shared.expires is None:
            return
        now_ns = shared.now_ns()
        soon_ns = now_ns + 2 * LEASE_NS
        self._latest_ns = max(self._latest_ns, now_ns)
        # A clock that was set back tells of none how long the store still has it.
        is_set_back = now_ns < self._latest_ns
        pins = [each.pin for each in held if each.pin is not None]
        for start in range(0, len(pins), AT_ONCE):
            some = pins[start : start + AT_ONCE]
            await shared.expires.keep(some, 2 * LEASE_NS / _SECOND_NS)
        records = [each.record for each in held]
        short = [each for each in records if is_set_back or (each.expires_ns or soon_ns) < soon_ns]
        await prolong(shared, short, LEASE_NS)

    async def _leave(self, shared: Shared) -> None:
        self._on = None
        for keys in list(self._places.values()):
            pins = [pin async for pin in shared.store.keys(keys.pin(self.segment, ""))]
            if pins and not await self._is_shared(shared, keys):
                for pin in pins:
                    await shared.store.delete(pin)
            # Last: no pin is left behind that no lease leads to.
            await shared.store.delete(keys.lease(self.segment, self._holder))

    async def _is_shared(self, shared: Shared, keys: ScopeKeys) -> bool:
        """Return whether another one holds the run too, in this scope."""
        own = f"{self.segment}-{self._holder}"
        others = [
            is_live
            async for segment, key, is_live in leases(shared, keys)
            if segment == self.segment and not key.endswith(own)
        ]
        return any(others)


_RUNNING: ContextVar[tuple[Run, ...]] = ContextVar("coatcheck runs", default=())


def current_run(shared: Shared, keys: ScopeKeys) -> Run | None:
    """Return the run that goes on here, in this scope of this store; None where none does."""
    runs = _RUNNING.get()
    return next((run for run in reversed(runs) if run.is_of(shared, keys)), None) if runs else None


async def renew_runs(shared: Shared) -> None:
    """Renew the leases of all runs of this task on a store, those around the innermost too."""
    for run in _RUNNING.get():
        if run.is_on(shared):
            await run.renew()


async def leases(
    shared: Shared, keys: ScopeKeys, *, since_ns: int = 0
) -> AsyncGenerator[tuple[str, str, bool], None]:
    """Yield the leases of a scope: the segment of the run, the key, and whether it is live.

    Args:
        shared: What all scopes share.
        keys: Those of the scope.
        since_ns: How much longer one counts as live than it says.
    """
    now_ns = shared.now_ns()
    async for key in shared.store.keys(keys.lease_folder):
        stored = await shared.store.get(key)
        if stored is not None:
            segment = key.removeprefix(keys.lease_folder).partition("-")[0]
            yield segment, key, now_ns < _until_ns(stored) + since_ns


def _until_ns(stored: bytes) -> int:
    """Return until when a stored lease holds; 0 where it is none."""
    try:
        until = cast("dict[str, object]", loads(stored))["until"]
    except (ValueError, KeyError, TypeError):
        return 0
    return until if isinstance(until, int) else 0
