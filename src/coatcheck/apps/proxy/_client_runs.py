"""What a client was shown stays while it is there: in each scope that it uses it is a run."""

import asyncio
import secrets
from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext

from ...bank import Bank, Run
from ...errors import StoreError
from ._channel import Log
from ._scope import Scope

_RENEW_SECONDS = 5 * 60.0
"""A lease holds for three times as long: a person may think for an hour between two calls."""
_PAUSE_SECONDS = 60.0
"""After a store failed: no call waits for it again just to hold what it was shown."""
_SCOPES = 256
"""Of one client. Beyond them the one that it used least recently is let go."""


class ClientRuns:
    """The runs of one client, all of the same name, from its first call on until it goes.

    Args:
        bank: Of any scope.
        log: Told where the store fails.
        renew_seconds: How often leases are renewed while the client calls nothing.
    """

    def __init__(self, bank: Bank, log: Log, *, renew_seconds: float = _RENEW_SECONDS) -> None:
        self.name = f"client-{secrets.token_hex(8)}"
        self._bank = bank
        self._log = log
        self._renew_seconds = renew_seconds
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._renewing: asyncio.Task[None] | None = None
        self._failed_at: float | None = None

    async def within(self, scope: Scope) -> AbstractContextManager[None]:
        """Return the block in which the calls of a request belong to the client's run.

        Callers that nothing tells apart have none: what they are shown has its time, and goes.
        A store that fails loses what the run would hold, never the answer of a call.
        """
        if scope.is_anonymous:
            return nullcontext()
        run = self._runs.get(scope.name)
        if run is None:
            run = await self._begun(scope.name)
            if run is None:
                return nullcontext()
        else:
            self._runs.move_to_end(scope.name)
        return run.current()

    async def close(self) -> None:
        """Let go of all that the client was shown."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            self._renewing = None
        runs = [*self._runs.values()]
        self._runs.clear()
        await asyncio.gather(*(run.end() for run in runs))

    async def _begun(self, scope: str) -> Run | None:
        now = asyncio.get_running_loop().time()
        if self._failed_at is not None and now - self._failed_at < _PAUSE_SECONDS:
            return None
        run = self._runs[scope] = self._bank.scoped(scope).run(self.name)
        try:
            await run.begin()
        except StoreError as failure:
            self._failed_at = now
            self._log(f"what clients are shown is not held: {failure}")
            if self._runs.get(scope) is run:
                del self._runs[scope]
            return None
        except BaseException:
            if self._runs.get(scope) is run:
                del self._runs[scope]
            raise
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        if len(self._runs) > _SCOPES:
            _, oldest = self._runs.popitem(last=False)
            await oldest.end()
        return run

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._renew_seconds)
            for run in list(self._runs.values()):
                await run.renew()
