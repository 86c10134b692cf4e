"""Handles: each names work that goes on in the background, and what came of it, in the store."""

import re
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Literal, Self, cast

from ..content import dumps, loads, shown_preview
from ..errors import StoreFormatError, UnencodableValueError
from ..records import dataclass
from ._ids import random_id
from ._keys import ScopeKeys
from ._running import Running
from ._shared import Shared

if TYPE_CHECKING:
    import asyncio

    from ._seat import Seat

Status = Literal["pending", "done", "error", "expired", "not-found"]

_HANDLE = re.compile(r"ah:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.ASCII)
_STOPPED = "The work was stopped before it ended. Call its tool again."
_ERROR_CHARS = 1_000
_LOOK_MS = 100
"""How often the store is asked for work that another process does."""
_SECOND_NS = 1_000_000_000
_TOLD_NS = 24 * 3_600 * _SECOND_NS
"""How long a store that forgets still tells that work has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of background work, as its handle tells of it."""

    status: Status
    result: object = None
    """What it returned, as JSON values; None unless it is done."""
    error: str = ""
    """Why it failed: at most 1,000 characters, and a count of what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """Work as it lies in the store."""

    work: Work
    until_ns: int
    """When its process has to renew it; once it has ended, when it expires."""
    ttl_ns: int

    def to_bytes(self) -> bytes:
        work = self.work
        facts = {"status": work.status, "until": self.until_ns, "ttl": self.ttl_ns}
        return dumps({**facts, "result": work.result, "error": work.error})

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self:
        try:
            facts = cast("dict[str, object]", loads(payload))
            work = Work(
                status=cast("Status", facts["status"]),
                result=facts["result"],
                error=str(facts["error"]),
            )
            until_ns, ttl_ns = (int(cast("int", facts[name])) for name in ("until", "ttl"))
        except (KeyError, TypeError, ValueError):
            raise StoreFormatError("a handle is damaged") from None
        return cls(work=work, until_ns=until_ns, ttl_ns=ttl_ns)

    def at(self, now_ns: int) -> Work:
        """Return the work as it stands at a time."""
        if now_ns < self.until_ns:
            return self.work
        if self.work.status == "pending" and now_ns < self.until_ns + self.ttl_ns:
            return Work(status="error", error=_STOPPED)
        return Work(status="expired")


class Handles:
    """The background work of one scope. Any process that has the store can ask for it.

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
        return self._seat.shared  # Work that is running goes along to another store.

    async def start(
        self,
        call: Callable[[], Coroutine[object, object, object]],
        *,
        ttl_seconds: float = 600,
        lease_seconds: float = 60,
    ) -> str:
        """Start work on the running event loop, and return its handle: ``ah:`` and a UUID.

        Args:
            call: Does the work. What it returns is kept as JSON, of what it raises the message.
            ttl_seconds: How long its outcome is kept, from when it ended.
            lease_seconds: How long it still seems to go on once its process has died.

        Raises:
            ValueError: A time is not more than 0.
            StoreError: The handle could not be written down. Nothing was started.
        """
        for name, seconds in (("ttl_seconds", ttl_seconds), ("lease_seconds", lease_seconds)):
            if not seconds > 0:
                raise ValueError(f"{name} must be more than 0, got {seconds}")
        from asyncio import CancelledError

        lease_ns, ttl_ns = int(lease_seconds * _SECOND_NS), int(ttl_seconds * _SECOND_NS)
        id_ = random_id()
        key = self._keys.handle(id_)

        async def write(work: Work, lives_ns: int) -> _Kept:
            shared = self._shared
            kept = _Kept(work=work, until_ns=shared.now_ns() + lives_ns, ttl_ns=ttl_ns)
            await shared.mark(self._scope, self._keys)
            await shared.put_for(key, kept.to_bytes(), lives_ns + ttl_ns + _TOLD_NS)
            return kept

        async def renew() -> None:
            await write(Work(status="pending"), lease_ns)

        async def end(task: "asyncio.Task[object]") -> _Kept:
            work = _ended(task, f"ah:{id_}")
            try:
                kept = await write(work, ttl_ns)
            except (Exception, CancelledError) as error:  # noqa: BLE001 - waiters wait for an end
                _log("the outcome of %s is kept in memory only", f"ah:{id_}", error)
                until_ns = self._shared.now_ns() + ttl_ns
                return _Kept(work=work, until_ns=until_ns, ttl_ns=ttl_ns)
            del self._shared.running[key]
            return kept

        await renew()
        self._shared.running[key] = Running(call, renew, lease_seconds / 3, end)
        return f"ah:{id_}"

    async def poll(self, handle: str, wait_ms: int = 0) -> Work:
        """Return how the work stands; while it is pending, wait for up to `wait_ms`.

        Work of this bank wakes its waiters. For that of other processes the store is asked
        every 100 ms. One that expired is forgotten once that has been told.

        Raises:
            StoreError: The store failed, or holds something else under this handle.
        """
        match = _HANDLE.fullmatch(handle)
        if match is None:
            return Work(status="not-found")
        key = self._keys.handle(match[1])
        running = cast("Running[_Kept] | None", self._shared.running.get(key))
        if running is not None and running.is_alive():
            kept = await running.wait(wait_ms / 1_000)
            if kept is None:
                return Work(status="pending")
        else:
            kept = await self._look(key, wait_ms)
            if kept is None:
                return Work(status="not-found")
        work = kept.at(self._shared.now_ns())
        if work.status == "expired":
            self._shared.running.pop(key, None)
            await self._shared.store.delete(key)
        return work

    async def stop(self) -> None:
        """Cancel what goes on in this process, in any scope; its handles say so."""
        for running in list(self._shared.running.values()):
            await running.stop()

    async def _look(self, key: str, wait_ms: int) -> _Kept | None:
        """Return what the store holds, where it is pending after up to `wait_ms`."""
        from anyio import sleep

        await self._shared.check_format()
        while True:
            payload = await self._shared.store.get(key)
            kept = None if payload is None else _Kept.from_bytes(payload)
            if kept is None or wait_ms <= 0 or kept.at(self._shared.now_ns()).status != "pending":
                return kept
            await sleep(min(wait_ms, _LOOK_MS) / 1_000)
            wait_ms -= _LOOK_MS


def is_told(stored: bytes, now_ns: int) -> bool:
    """Return whether a stored handle still has something to tell."""
    try:
        kept = _Kept.from_bytes(stored)
    except StoreFormatError:
        return False
    return now_ns < kept.until_ns + kept.ttl_ns + _TOLD_NS


def _ended(task: "asyncio.Task[object]", handle: str) -> Work:
    """Return the outcome of a task that has ended."""
    if task.cancelled():
        return Work(status="error", error=_STOPPED)
    error = task.exception()
    if error is None:
        try:
            # As another process would read it.
            return Work(status="done", result=loads(dumps(task.result())))
        except UnencodableValueError as unencodable:
            error = unencodable
    else:
        _log("the work of %s failed", handle, error)
    text = str(error) or type(error).__name__
    return Work(status="error", error=shown_preview(text, len(text), _ERROR_CHARS))


def _log(message: str, handle: str, error: BaseException) -> None:
    import logging

    logging.getLogger("coatcheck.bank").warning(message, handle, exc_info=error)
