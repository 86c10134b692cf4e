"""What is known of an artifact once it is gone: its tombstone, which lies a week longer."""

from collections.abc import Mapping
from typing import Any, Self, cast

from ..content import dumps, loads
from ..errors import ExpiredPointerError
from ..records import dataclass
from ._record import Record

TOLD_NS = 7 * 24 * 3_600 * 1_000_000_000
"""How long it is told that an artifact is gone, and what it was."""

_BURIAL_NS = 60 * 1_000_000_000
"""As long it may take from a tombstone until the artifact is gone."""
_LIMIT = 2**64

_FACTS: Mapping[str, type | tuple[type, ...]] = {
    "name": (str, type(None)),
    "kind": str,
    "tool": (str, type(None)),
    "sizeBytes": int,
    "glimpse": (str, type(None)),
    "storedNs": int,
    "expiresNs": int,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Says what an artifact was, and when it went."""

    name: str | None
    kind: str
    tool: str | None
    size_bytes: int
    glimpse: str | None
    stored_ns: int
    gone_ns: int

    @classmethod
    def of(cls, record: Record, gone_ns: int) -> Self:
        """Return the tombstone of an artifact that goes at a time."""
        artifact = record.artifact
        return cls(
            name=artifact.name,
            kind=artifact.kind,
            tool=artifact.tool,
            size_bytes=artifact.size_bytes,
            glimpse=None if artifact.glimpse is None else artifact.glimpse.text,
            stored_ns=record.stored_ns,
            gone_ns=gone_ns,
        )

    def to_bytes(self) -> bytes:
        """Return the tombstone as it is stored."""
        return dumps(
            {
                "name": self.name,
                "kind": self.kind,
                "tool": self.tool,
                "sizeBytes": self.size_bytes,
                "glimpse": self.glimpse,
                "storedNs": self.stored_ns,
                "expiresNs": self.gone_ns,
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self | None:
        """Return a stored tombstone, None where it is none."""
        try:
            facts = loads(stored)
        except ValueError:
            return None
        if not isinstance(facts, dict):
            return None
        known = cast("dict[str, Any]", facts)
        if not all(isinstance(known.get(name), kind) for name, kind in _FACTS.items()):
            return None
        # Whoever can write to the store can write numbers that no text can be made of.
        if not all(0 <= known[name] < _LIMIT for name, kind in _FACTS.items() if kind is int):
            return None
        return cls(
            name=known["name"],
            kind=known["kind"],
            tool=known["tool"],
            size_bytes=known["sizeBytes"],
            glimpse=known["glimpse"],
            stored_ns=known["storedNs"],
            gone_ns=known["expiresNs"],
        )

    def is_of_burial(self, record: Record, now_ns: int) -> bool:
        """Return whether an artifact that may still be there is just being removed.

        One that is older was left by who died over it, or was written together with the artifact.
        """
        is_young = abs(now_ns - self.gone_ns) < _BURIAL_NS
        return is_young and self.stored_ns == record.stored_ns and self.gone_ns != record.expires_ns

    def expired(self, pointer: str) -> ExpiredPointerError:
        """Return the error that tells what stood behind a pointer, as it was asked for."""
        return ExpiredPointerError(
            pointer,
            name=self.name,
            size_bytes=self.size_bytes,
            tool=self.tool,
            glimpse=self.glimpse,
        )
