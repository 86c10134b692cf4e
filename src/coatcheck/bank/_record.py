"""What the bank writes down of an artifact: a header, JSON facts, then the index as arrays."""

import re
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, Self, cast

from xxhash import xxh3_64_intdigest

from ..content import Index, dumps, loads
from ..errors import DamagedRecordError, StoreFormatError
from ..records import Artifact, Glimpse, Pointer, dataclass
from ._keys import ScopeKeys, is_segment

_HEADER = struct.Struct("<4sHHIQ")
"""Magic, version, zero, bytes of facts, XXH3 of all that follows."""
_MAGIC = b"coat"
_VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FACTS: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "prefix": str,
    "name": (str, NoneType),
    "label": (str, NoneType),
    "kind": str,
    "contentType": str,
    "preview": str,
    "shownPreview": str,
    "glimpse": (dict, NoneType),
    "storedNs": int,
    "expiresNs": (int, NoneType),
    "digest": str,
    "source": (dict, NoneType),
    "tool": (str, NoneType),
    "run": (str, NoneType),
    "payload": str,
    "form": str,
    "index": dict,
}
_GLIMPSE: Mapping[str, type] = {"text": str, "facts": dict}
_GRANT = re.compile(r"([^/]+)/([0-9]{1,20})")
_FORM = re.compile("text|bytes|json|npy|arrow-[a-z]+(?:-[a-z]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An artifact, and what only the bank needs to know of its payload."""

    artifact: Artifact
    stored_ns: int
    expires_ns: int | None
    payload_key: str
    """Whole key, in the owner's scope."""
    form: str
    """What decoding makes of the payload, as of an `Encoding`."""
    index: Index
    store_decides: bool = False
    """Whether it expires as nothing stays for ever in its store, and nobody asked for a time."""

    def is_expired(self, now_ns: int) -> bool:
        """Return whether its time has passed."""
        return self.expires_ns is not None and self.expires_ns <= now_ns

    def to_bytes(self) -> bytes:
        """Return the record as it is stored."""
        facts = dumps(self._facts())
        body = facts + self.index.arrays()
        # The seed, so that the length is covered too.
        checksum = xxh3_64_intdigest(body, len(facts))
        return _HEADER.pack(_MAGIC, _VERSION, 0, len(facts), checksum) + body

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
            **({"storeDecides": True} if self.store_decides else {}),
        }

    @classmethod
    def from_bytes(cls, stored: bytes, pointer: str = "an artifact") -> "Record":
        """Read a stored record, which `pointer` names in an error.

        Raises:
            DamagedRecordError: It is not as it was written.
            StoreFormatError: It is of a version this one does not know.
        """
        if len(stored) < _HEADER.size:
            raise DamagedRecordError(pointer)
        magic, version, zero, facts_bytes, checksum = _HEADER.unpack_from(stored)
        if magic != _MAGIC or zero:
            raise DamagedRecordError(pointer)
        if version != _VERSION:
            raise StoreFormatError(f"a record of version {version}, this one reads {_VERSION}")
        body = memoryview(stored)[_HEADER.size :]
        if xxh3_64_intdigest(body, facts_bytes) != checksum:
            raise DamagedRecordError(pointer)
        # Whoever can write to the store can write a checksum: nothing is taken as it says.
        try:
            facts = _facts(body[:facts_bytes])
            index = Index.load(facts["index"], body[facts_bytes:])
            return cls(
                artifact=_artifact(facts, index),
                stored_ns=facts["storedNs"],
                expires_ns=facts["expiresNs"],
                payload_key=facts["payload"],
                form=facts["form"],
                index=index,
                store_decides=facts.get("storeDecides") is True,
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise DamagedRecordError(pointer) from error


@dataclass(frozen=True, slots=True)
class Grant:
    """Says whose artifact another scope may read, and which writing of it.

    An id comes again where the same key is put anew; what is stored then, nobody granted.
    """

    owner: ScopeKeys
    stored_ns: int

    def to_bytes(self) -> bytes:
        """Return the grant as it is stored."""
        return f"{self.owner.segment}/{self.stored_ns}".encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self | None:
        """Return a stored grant, None where it is none."""
        match = _GRANT.fullmatch(stored.decode("ascii", "replace"))
        if match is None or not is_segment(match[1]):
            return None
        return cls(ScopeKeys(match[1]), int(match[2]))


def own_record(stored: bytes, id_: str, owner: ScopeKeys) -> Record:
    """Return a stored record. Whatever was planted there, it opens no payload but its owner's.

    Raises:
        DamagedRecordError: It is damaged, or planted.
        StoreFormatError: It is of a later version.
    """
    record = Record.from_bytes(stored, str(Pointer(id_)))
    if record.artifact.id != id_ or not owner.is_payload_of(id_, record.payload_key):
        raise DamagedRecordError(str(Pointer(id_)))
    return record


def as_time(nanoseconds: int) -> datetime:
    """Return a moment in nanoseconds since 1970 as an aware time in UTC."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1_000)


def _facts(stored: memoryview) -> dict[str, Any]:
    facts = cast("dict[str, Any]", loads(bytes(stored)))
    _check(facts, _FACTS)
    if facts["glimpse"] is not None:
        _check(facts["glimpse"], _GLIMPSE)
    if not _FORM.fullmatch(facts["form"]):
        raise ValueError("an unknown form")
    return facts


def _check(facts: Mapping[str, object], kinds: Mapping[str, type | tuple[type, ...]]) -> None:
    for name, kind in kinds.items():
        if not isinstance(facts[name], kind):
            raise TypeError(f"{name} is no {kind}")


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
        row_count=index.row_count,
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
