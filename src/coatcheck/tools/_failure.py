"""Errors as a model reads them. The one place where an error becomes a reply."""

import json
from dataclasses import dataclass

from ..content import visible
from ..errors import CoatcheckError


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, as its reply. `str()` is its JSON."""

    error: str
    """What kind: ``unknown-pointer``, ``invalid-argument``, ``store-unavailable`` …"""
    message: str
    """What happened."""
    hint: str
    """What to do next."""

    def to_wire(self) -> dict[str, str]:
        """Return the failure as a JSON object."""
        return {"error": self.error, "message": self.message, "hint": self.hint}

    def __str__(self) -> str:
        return json.dumps(self.to_wire(), ensure_ascii=False, separators=(",", ":"))


def as_failure(error: CoatcheckError) -> Failure:
    """Return an error as a model reads it. Neither text quotes a payload.

    >>> from coatcheck import UnknownPointerError
    >>> as_failure(UnknownPointerError("art:x")).error
    'unknown-pointer'
    """
    return Failure(error.code, visible(str(error)), visible(error.hint))
