"""What is in memory under one key, and how that lies in a cell. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self, cast, get_args

from ..content import dumps, loads
from ..errors import InvalidArgumentError, StoreFormatError, shown

Kinds = Literal["task_result", "step_result", "input", "shared"]
KINDS: tuple[str, ...] = get_args(Kinds)
"""What an entry may be."""

_KIND_OF: Mapping[str, Kinds] = {
    "task": "task_result",
    "step": "step_result",
    "input": "input",
    "shared": "shared",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One entry of memory. Immutable: `AgentMemory.set` writes another in its place."""

    key: str
    kind: Kinds
    value: object
    """Plain JSON values; where `pointer` is set, that."""
    source: str | None = None
    """Who made it: a task, step, agent or tool."""
    title: str | None = None
    description: str | None = None
    created_at: datetime
    """When the key was first written: aware, in whole milliseconds."""
    pointer: str | None = None
    """Of the artifact that holds the value, None where the entry itself does."""
    size_bytes: int = 0
    """Of the value as JSON; of one that was banked by others, of its payload."""
    plan_hash: str | None = None
    """Of the plan whose step or task this finishes, in a run that can be resumed."""

    @property
    def created_ms(self) -> int:
        """When the key was first written, in milliseconds since 1970."""
        return (self.created_at - _EPOCH) // _MILLISECOND

    def to_wire(self) -> dict[str, object]:
        """Return the entry as a JSON object; what is None is left out, but for the value."""
        wire: dict[str, object] = {"key": self.key, "kind": self.kind, "value": self.value}
        told = {"source": self.source, "title": self.title, "description": self.description}
        wire |= {name: text for name, text in told.items() if text is not None}
        wire["createdAt"] = self.created_ms
        kept = {"pointer": self.pointer, "planHash": self.plan_hash}
        return wire | {name: text for name, text in kept.items() if text is not None}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the entry that `to_wire` gave.

        Raises:
            InvalidArgumentError: It is none.
        """
        try:
            return cls(
                key=wire["key"],
                kind=checked_kind(wire["kind"], wire["key"]),
                value=wire["value"],
                source=wire.get("source"),
                title=wire.get("title"),
                description=wire.get("description"),
                created_at=at_ms(wire["createdAt"]),
                pointer=wire.get("pointer"),
                plan_hash=wire.get("planHash"),
            )
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise InvalidArgumentError(
                f"this is no entry of memory: {shown(wire)}", "Restore what `snapshot` gave."
            ) from error


@dataclass(frozen=True, slots=True)
class Cell:
    """An entry, and its place among the others."""

    entry: MemoryEntry
    order_ns: int
    """When its key was first written, no two alike in one process."""

    def to_bytes(self, written: bytes) -> bytes:
        """Return the cell as it is stored: a line of facts, then the value.

        Args:
            written: The entry's value as JSON.
        """
        entry = self.entry
        facts = {
            "key": entry.key,
            "kind": entry.kind,
            "source": entry.source,
            "title": entry.title,
            "description": entry.description,
            "createdMs": entry.created_ms,
            "pointer": entry.pointer,
            "sizeBytes": entry.size_bytes,
            "planHash": entry.plan_hash,
            "orderNs": self.order_ns,
        }
        return dumps(facts) + b"\n" + written

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Read a stored cell.

        Raises:
            StoreFormatError: It is not as it was written.
        """
        first, _, written = stored.partition(b"\n")
        try:
            facts = cast("dict[str, Any]", loads(first))
            entry = MemoryEntry(
                key=facts["key"],
                kind=facts["kind"],
                value=loads(written),
                source=facts["source"],
                title=facts["title"],
                description=facts["description"],
                created_at=at_ms(facts["createdMs"]),
                pointer=facts["pointer"],
                size_bytes=int(facts["sizeBytes"]),
                plan_hash=facts["planHash"],
            )
            return cls(entry, int(facts["orderNs"]))
        except (ValueError, KeyError, TypeError, OverflowError):
            raise StoreFormatError("an entry of memory is damaged") from None


def at_ms(milliseconds: int) -> datetime:
    """Return a moment in milliseconds since 1970 as an aware time in UTC."""
    return _EPOCH + milliseconds * _MILLISECOND


def checked_kind(kind: str | None, key: str) -> Kinds:
    """Return the kind of an entry; where none is given, that of its key's namespace.

    Raises:
        InvalidArgumentError: It is none of the four, or the key has no namespace of ours.
    """
    known = _KIND_OF.get(key.partition(":")[0]) if kind is None else kind
    if known not in KINDS:
        raise InvalidArgumentError(
            f"the kind of an entry is one of {', '.join(KINDS)}, got {shown(kind)}",
            "Give its kind, or make its key with memory_keys.",
        )
    return cast("Kinds", known)
