"""What one bank object put: never more of it than the scope itself still lists."""

from contextlib import suppress

from ..errors import StoreError
from ._keys import ScopeKeys
from ._quota import listed
from ._record import Record
from ._shared import Shared

_FIRST_LOOK = 10_000


class OwnPuts:
    """When an object put what is still there, by id; what others removed it forgets in time.

    Args:
        look_after: How many puts there are at the least between two looks at what is listed.
    """

    def __init__(self, look_after: int = _FIRST_LOOK) -> None:
        self._look_after = look_after
        self._most = look_after
        self._stored_ns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._stored_ns)

    def before(self, time_ns: int) -> list[tuple[str, int]]:
        """Return the ids of what was put before a time, and when that was."""
        # A copy, as other threads put meanwhile.
        return [(id_, put_ns) for id_, put_ns in self._stored_ns.copy().items() if put_ns < time_ns]

    def drop(self, id_: str) -> None:
        """Forget what is gone."""
        self._stored_ns.pop(id_, None)

    async def add(self, record: Record, shared: Shared, keys: ScopeKeys) -> None:
        """Note what was put just now, and is listed; now and then forget what is not any more.

        A store that fails leaves that to a later put.
        """
        self._stored_ns[record.artifact.id] = record.stored_ns
        if len(self._stored_ns) <= self._most:
            return
        # Before the first wait: of many puts at once, one looks.
        self._most = len(self._stored_ns) + self._look_after
        with suppress(StoreError):
            before = self._stored_ns.copy()
            there = {each.id async for each in listed(shared, keys)}
            for id_ in before.keys() - there:
                self.drop(id_)
            # As many puts later as there are keys to look at, so that a put costs what it did.
            self._most = len(self._stored_ns) + max(self._look_after, len(there))
