"""What the bank writes down of an artifact: a header, JSON facts, then the index as arrays."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from ..content import Index, dumps, loads
from ..errors import StoreFormatError
from ..records import Artifact, Glimpse, Pointer

_HEADER = struct.Struct("<4sHHI")
_MAGIC = b"coat"
_VERSION = 1
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An artifact, and what only the bank needs to know of its payload."""

    artifact: Artifact
    stored_ns: int
    expires_ns: int | None
    payload_key: str
    """Whole key, in the owner's scope."""
    form: str
    """What decoding makes of the payload: ``text``, ``bytes`` or ``json``."""
    index: Index

    def to_bytes(self) -> bytes:
        """Return the record as it is stored."""
        facts = dumps(self._facts())
        return _HEADER.pack(_MAGIC, _VERSION, 0, len(facts)) + facts + self.index.arrays()

    def _facts(self) -> dict[str, object]:
        artifact, glimpse = self.artifact, self.artifact.glimpse
        return {
            "id": artifact.id,
            "prefix": Pointer.parse(artifact.pointer).prefix,
            "name": artifact.name,
            "label": artifact.label,
            "kind": artifact.kind,
            "contentType": artifact.content_type,
            "preview": artifact.preview,
            "shownPreview": artifact.shown_preview,
            "glimpse": None
            if glimpse is None
            else {"text": glimpse.text, "facts": dict(glimpse.facts)},
            "storedNs": self.stored_ns,
            "expiresNs": self.expires_ns,
            "digest": artifact.digest,
            "source": None if artifact.source is None else dict(artifact.source),
            "tool": artifact.tool,
            "run": artifact.run,
            "payload": self.payload_key,
            "form": self.form,
            "index": self.index.facts(),
        }

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Record":
        """Read a stored record.

        Raises:
            StoreFormatError: It is damaged, or of a version this one does not know.
        """
        try:
            magic, version, _, facts_bytes = _HEADER.unpack_from(stored)
        except struct.error as error:
            raise StoreFormatError("a record is damaged") from error
        if magic != _MAGIC or version != _VERSION:
            raise StoreFormatError(f"a record of version {version}, this one reads {_VERSION}")
        end = _HEADER.size + facts_bytes
        try:
            facts = cast("dict[str, Any]", loads(stored[_HEADER.size : end]))
            index = Index.load(facts["index"], memoryview(stored)[end:])
            return cls(
                artifact=_artifact(facts, index),
                stored_ns=facts["storedNs"],
                expires_ns=facts["expiresNs"],
                payload_key=facts["payload"],
                form=facts["form"],
                index=index,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise StoreFormatError("a record is damaged") from error


def as_time(nanoseconds: int) -> datetime:
    """Return a moment in nanoseconds since 1970 as an aware time in UTC."""
    seconds, rest = divmod(nanoseconds, _NANOSECONDS)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)


def _artifact(facts: Mapping[str, Any], index: Index) -> Artifact:
    expires_ns, glimpse = facts["expiresNs"], facts["glimpse"]
    return Artifact(
        pointer=str(Pointer(facts["id"], facts["prefix"])),
        id=facts["id"],
        name=facts["name"],
        label=facts["label"],
        kind=facts["kind"],
        content_type=facts["contentType"],
        size_bytes=index.size_bytes,
        length_chars=index.length_chars,
        preview=facts["preview"],
        shown_preview=facts["shownPreview"],
        glimpse=None if glimpse is None else Glimpse(glimpse["text"], glimpse["facts"]),
        stored_at=as_time(facts["storedNs"]),
        expires_at=None if expires_ns is None else as_time(expires_ns),
        digest=facts["digest"],
        source=facts["source"],
        tool=facts["tool"],
        run=facts["run"],
    )
