"""The sessions of clients that come over HTTP, of both eras."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ._answers import Identity, Proxy
from ._client_runs import ClientRuns
from ._eras import Opening
from ._http_streams import Stream, Streams
from ._messages import Json, RpcError, encode
from ._session import Session

_IDLE_SECONDS = 30 * 60.0
_LOOK_SECONDS = 30.0
_IN_USE_SECONDS = 60.0
"""How long a session that does nothing is still in use, where others want its room."""
_MOST_SESSIONS = 256
"""Each may run servers of its own."""
_MOST_WAITING = 16
"""Sessions of one principal that do nothing but wait for answers to questions."""
_MOST_ENDING = 32
"""At once: a server may take seconds to leave, and sessions must not come faster than they go."""
FULL = -32000
"""Code of the error where there is no room for one more."""
_QUESTIONS = ("elicitation", "sampling", "roots")


@dataclass(slots=True, eq=False)
class Seat:
    """A session, and who uses it."""

    session: Session
    principal: str | None
    stream: Stream
    """What the client is told outside requests."""
    used_at: float
    runs: ClientRuns | None = None
    users: int = 0
    has_returned: bool = False
    """Whether its client came again, after it had introduced itself."""
    listeners: int = 0
    """Those of them who only listen to `stream`."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way; to listen is no work."""
        return self.users <= self.listeners and not self.session.is_waiting


class HttpSessions:
    """All sessions of a front. Those that nobody has used for long are ended.

    In the handshake era a client has one, by its id. In the modern one there is no telling who
    calls: clients that introduce themselves alike share one, but where servers may ask the client
    each call has one to itself, so that nobody is asked what another's call wants to know.
    """

    def __init__(self, proxy: Proxy, clock: Callable[[], float]) -> None:
        self._proxy = proxy
        self._clock = clock
        self._by_id: dict[str, Seat] = {}
        self._alike: dict[bytes, list[Seat]] = {}
        self._by_key: dict[str, Seat] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self.streams = Streams()
        """What clients of the handshake era may come back to."""

    def begin(self, opening: Opening, principal: str | None) -> tuple[str, Seat]:
        """Return a session of the handshake era, and its id.

        Raises:
            RpcError: There are too many.
        """
        id_ = secrets.token_hex(16)
        seat = self._by_id[id_] = self._seat(opening, principal, session_id=id_)
        return id_, seat

    def find(self, id_: str, principal: str | None) -> Seat | None:
        """Return the session with an id, where it is this principal's."""
        seat = self._by_id.get(id_)
        if seat is None or seat.principal != principal:
            return None
        seat.has_returned = True
        return seat

    async def end(self, id_: str) -> None:
        """End a session of the handshake era."""
        seat = self._by_id.pop(id_, None)
        if seat is not None:
            await self._close(seat)

    def share(
        self, opening: Opening, principal: str | None, state: object, *, may_ask: bool
    ) -> Seat:
        """Return a session for one request of the modern era.

        Args:
            opening: How its client introduced itself.
            principal: Who signed in.
            state: What the request goes on with, where it does.
            may_ask: Whether servers may answer such a request with questions.

        Raises:
            RpcError: There are too many.
        """
        if isinstance(state, str):
            parked = self._by_key.get(state.partition(".")[0])
            if parked is not None and parked.principal == principal:
                return parked
        own: Json = {"capabilities": opening.capabilities, "client": opening.client}
        kind = encode([principal, own])
        alike = self._alike.get(kind, [])
        alone = may_ask and any(each in opening.capabilities for each in _QUESTIONS)
        for seat in alike:
            if not alone or (seat.users == 0 and not seat.session.is_waiting):
                return seat
        if alone:
            self._park_less(principal)
        seat = self._seat(opening, principal)
        # What was given up just now may have been the last one alike.
        self._alike.setdefault(kind, []).append(seat)
        return seat

    async def run(self) -> None:
        """End what nobody has used for long, until cancelled; then end all."""
        try:
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                await self.sweep()
        finally:
            await self.end_all()

    async def end_all(self) -> None:
        """End all sessions."""
        seats = self._seats()
        for by in (self._by_id, self._by_key, self._alike):
            by.clear()
        await asyncio.gather(*(self._close(seat) for seat in seats))
        if self._ending:
            await asyncio.wait(self._ending)

    async def sweep(self) -> None:
        """End what nobody has used for long."""
        until = self._clock() - _IDLE_SECONDS
        for seat in [each for each in self._seats() if not each.users and each.used_at < until]:
            self._forget(seat)
            await self._close(seat)

    def touch(self, seat: Seat, users: int, *, only_listens: bool = False) -> None:
        """Note that one more, or one less, uses a session, or only listens to it."""
        seat.users += users
        seat.listeners += users if only_listens else 0
        seat.used_at = self._clock()

    def _seats(self) -> list[Seat]:
        return [*self._by_id.values(), *self._by_key.values()]

    def _seat(self, opening: Opening, principal: str | None, session_id: str | None = None) -> Seat:
        if len(self._seats()) >= _MOST_SESSIONS and not self._make_room():
            raise RpcError(FULL, "There are too many sessions: try again later.")
        key = secrets.token_hex(16)
        stream = Stream() if session_id is None else self.streams.new()
        # In the modern era clients share a session, and none says when it goes.
        runs = None if session_id is None else self._proxy.acts.client_runs(self._proxy.log)
        identity = Identity(
            transport="http", principal=principal, session_id=session_id, key=key, runs=runs
        )
        session = Session(self._proxy, opening=opening, outlet=stream, identity=identity)
        seat = Seat(session, principal, stream, self._clock(), runs)
        if session_id is None:
            self._by_key[key] = seat
        return seat

    def _make_room(self) -> bool:
        """Give up the session that was idle for longest, of whoever has most.

        Those of the modern era go first: their clients do not notice. One that its client used
        just now stays, as it may only be between two calls.
        """
        if len(self._ending) >= _MOST_ENDING:
            return False
        in_use = self._clock() - _IN_USE_SECONDS
        held = Counter(seat.principal for seat in self._seats())
        modern, handshake = self._by_key.values(), self._by_id.values()
        free = [
            (-held[seat.principal], era, seat.used_at, at, seat)
            for era, seats in enumerate((modern, handshake))
            for at, seat in enumerate(seats)
            if seat.is_idle and not (seat.has_returned and seat.used_at > in_use)
        ]
        if not free:
            return False
        self._give_up(min(free)[-1])
        return True

    def _park_less(self, principal: str | None) -> None:
        """Give up who waits for longest for the answers of one who lets too many wait."""
        waiting = [
            seat
            for seat in self._by_key.values()
            if seat.principal == principal and seat.session.is_waiting and not seat.users
        ]
        if len(waiting) >= _MOST_WAITING:
            self._give_up(min(waiting, key=lambda each: each.used_at))

    def _give_up(self, seat: Seat) -> None:
        self._forget(seat)
        task = asyncio.create_task(self._close(seat))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _forget(self, seat: Seat) -> None:
        for by in (self._by_id, self._by_key):
            for key in [key for key, each in by.items() if each is seat]:
                del by[key]
        for alike, seats in list(self._alike.items()):
            with suppress(ValueError):
                seats.remove(seat)
            if not seats:
                del self._alike[alike]

    async def _close(self, seat: Seat) -> None:
        await seat.session.close()
        seat.stream.close()
        self.streams.forget(seat)
        if seat.runs is not None:
            await seat.runs.close()
