"""Errors as a model reads them. The one place where an error becomes a reply."""

import json
import os

from ..content import visible
from ..errors import CoatcheckError, ExpiredPointerError, StoreUnavailableError
from ..records import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, as its reply. `str()` is its JSON."""

    error: str
    """What kind: ``unknown-pointer``, ``invalid-argument``, ``store-unavailable`` …"""
    message: str
    """What happened."""
    hint: str
    """What to do next."""
    glimpse: str = ""
    """What is known of an artifact that has expired. It may tell of what a tool returned."""

    def to_wire(self) -> dict[str, str]:
        """Return the failure as a JSON object; a glimpse only where there is one."""
        wire = {"error": self.error, "message": self.message, "hint": self.hint}
        return {**wire, "glimpse": self.glimpse} if self.glimpse else wire

    def __str__(self) -> str:
        return json.dumps(self.to_wire(), ensure_ascii=False, separators=(",", ":"))


def as_failure(error: CoatcheckError | OSError) -> Failure:
    """Return an error as a model reads it. Neither text quotes a payload.

    What a store of another's making raises, such as `ConnectionError`, is told as an outage,
    in the system's words or by its type: its own may name what is no model's business.

    >>> from coatcheck import UnknownPointerError
    >>> as_failure(UnknownPointerError("art:x")).error
    'unknown-pointer'
    """
    if not isinstance(error, CoatcheckError):
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        error = StoreUnavailableError(reason)
    told = error.glimpse if isinstance(error, ExpiredPointerError) else None
    return Failure(error.code, visible(str(error)), visible(error.hint), visible(told or ""))


def is_failure(reply: str) -> bool:
    """Return whether a reply of one of our own tools is a failure.

    Only what we write ourselves has this beginning: content stands in no reply as its first key.

    >>> is_failure(str(Failure("deadline", "It was stopped.", "Ask for less.")))
    True
    """
    return reply.startswith('{"error":')
