"""A request of a client while it is answered, and where what belongs to it is sent."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from ._eras import LEVEL_KEY, meta_of
from ._messages import Json, RequestId, as_id, notification_line


class Outlet(Protocol):
    """Takes messages for one client: its only stream, or that of one of its requests."""

    async def send(self, line: bytes) -> None:
        """Send one message.

        Raises:
            ConnectionError: The client has gone, or listens here no more.
        """
        ...


@dataclass(slots=True, eq=False)
class Call:
    """A request of a client while it is answered."""

    id: RequestId
    method: str
    params: Json
    outlet: Outlet

    @property
    def meta(self) -> Mapping[str, object]:
        """Its `_meta`, empty where it has none."""
        return meta_of(self.params)

    @property
    def level(self) -> str | None:
        """From which severity on the request wants log messages, in the modern era."""
        level = self.meta.get(LEVEL_KEY)
        return level if isinstance(level, str) else None

    @property
    def wants_progress(self) -> bool:
        """Whether it asked to be told how far it is."""
        return as_id(self.meta.get("progressToken")) is not None

    async def tell_progress(self, params: Json) -> None:
        """Pass on how far the server is, under the client's own token."""
        if self.wants_progress:
            own = {**params, "progressToken": self.meta["progressToken"]}
            await self.tell("notifications/progress", own)

    async def tell(self, method: str, params: Json) -> None:
        """Send a notification that belongs to this request."""
        with suppress(ConnectionError):
            await self.outlet.send(notification_line(method, params))
