"""What the two ways to a server have in common: messages there and back, until it ends."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from ._messages import MalformedError, Message, RequestId

Log = Callable[[str], None]
"""Takes one line for the person who runs the proxy."""


class ServerDownError(Exception):
    """A server cannot be reached now. The message says which, and why."""


class ExpiredError(ServerDownError):
    """The server did not look at the request, as it has forgotten who asks. Ask again."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """One request gets no answer, though the server may be there."""

    id: RequestId
    reason: str


@dataclass(frozen=True, slots=True)
class ExpiredSession:
    """The server has forgotten the session of a request, and did not look at it."""

    id: RequestId


Received = Message | MalformedError | Unanswered | ExpiredSession
"""What a channel yields."""


class Channel(Protocol):
    """Messages to one server, and from it.

    Iterating ends when the server is gone, or after `close`; then `ended` says why. What it sent
    that is no message comes as the error that it is, so that its request can be answered.
    """

    @property
    def ended(self) -> str:
        """Why there are no more messages, in a few words."""
        ...

    async def send(self, line: bytes) -> None:
        """Send one message, a line of JSON.

        Raises:
            ConnectionError: The server is gone.
        """
        ...

    def messages(self) -> AsyncIterator[Received]:
        """Yield what the server sends. To be iterated over once."""
        ...

    async def close(self) -> None:
        """End the server, or leave it where it is not ours."""
        ...
