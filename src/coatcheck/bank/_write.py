"""How an artifact comes to be, and goes: payload, record (the commit), listing, name."""

import re
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self, cast

from ..content import (
    Encoding,
    dumps,
    glimpse,
    head_chars,
    loads,
    preview,
    shown_preview,
)
from ..errors import (
    DamagedRecordError,
    InvalidArgumentError,
    StoreError,
    StoreUnavailableError,
    shown,
)
from ..records import Artifact, Limits, Pointer
from ._keys import LONGEST_NAME, ScopeKeys, is_name
from ._record import Record, as_time
from ._shared import Shared
from ._threads import to_end, work_on

_MOST_TRIES = 32
_LONGEST_PREVIEW = 4_000
_LONGEST_TTL_SECONDS = 100 * 365 * 24 * 3_600
_CONTENT_TYPE = re.compile("[!-~][ -~]{0,199}")
"""Printable, and short: it stands in envelopes and listings, and a model may give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the caller of a put asked for, checked."""

    name: str | None
    label: str | None
    kind: str
    preview_chars: int
    shown_chars: int
    ttl_ns: int | None
    source: Mapping[str, object] | None
    tool: str | None
    run: str | None
    is_error: bool

    @classmethod
    def checked(
        cls,
        limits: Limits,
        *,
        name: str | None,
        label: str | None,
        kind: str,
        content_type: str | None,
        preview_chars: int | None,
        shown_chars: int | None,
        ttl_seconds: float | None,
        source: Mapping[str, object] | None,
        tool: str | None,
        run: str | None,
        is_error: bool,
    ) -> Self:
        """Check what a put was asked for, before anything is written.

        Raises:
            InvalidArgumentError: A name, content type, length or time outside its rule.
            UnencodableValueError: `source` is not plain JSON.
        """
        if name is not None and not is_name(name):
            raise InvalidArgumentError(
                f"a name has 1 to {LONGEST_NAME} printable characters and is no pointer, "
                f"got {shown(name)}",
                "Leave the name out, or choose a short label.",
            )
        if content_type is not None and not _CONTENT_TYPE.fullmatch(content_type):
            raise InvalidArgumentError(
                f"a content type has 1 to 200 printable ASCII characters, got "
                f"{shown(content_type)}",
                "Give a MIME type such as text/plain, or leave the content type out.",
            )
        if ttl_seconds is not None and not 0 < ttl_seconds <= _LONGEST_TTL_SECONDS:
            raise InvalidArgumentError(
                f"ttl_seconds must be more than 0 and at most 100 years, got {ttl_seconds}"
            )
        # A copy: what the caller changes in it later was not stored.
        lineage = cast("Mapping[str, object] | None", loads(dumps(source)))
        return cls(
            name=name,
            label=None if label is None else label.strip() or kind,
            kind=kind,
            preview_chars=_length("preview_chars", preview_chars, limits.banked_preview_chars),
            shown_chars=_length("shown_chars", shown_chars, limits.preview_chars),
            ttl_ns=None if ttl_seconds is None else int(ttl_seconds * 1_000_000_000),
            source=lineage,
            tool=tool,
            run=run,
            is_error=is_error,
        )


class Writer:
    """Writes artifacts of one scope in an order that no crash can turn into a false pointer.

    Args:
        shared: What all handles of the bank share.
        scope: The plain name of the scope.
        keys: The keys of the scope.
        record_of: Looks an id up in the scope.
    """

    def __init__(
        self,
        shared: Shared,
        scope: str,
        keys: ScopeKeys,
        record_of: Callable[[str], Awaitable[Record | None]],
    ) -> None:
        self._shared = shared
        self._scope = scope
        self._keys = keys
        self._record_of = record_of

    async def write(self, encoding: Encoding, asked: Asked, key: str | None) -> tuple[Record, bool]:
        """Write an artifact, or find the one that the same key and value already gave.

        Returns the record, and whether this call wrote it.
        """
        await self._shared.mark(self._scope, self._keys)
        for _ in range(_MOST_TRIES):
            id_, known = await self._place(encoding, key)
            if known is not None:
                return known, False
            record = await self._commit(id_, encoding, asked)
            if record is not None:
                return record, True
            # Another writer won the id just now, or removed what we wrote: look what is there.
        raise StoreUnavailableError("ids that it calls taken hold no record")

    async def _place(self, encoding: Encoding, key: str | None) -> tuple[str, Record | None]:
        """Return the id to write under, and what stands there already with the same digest."""
        if key is None:
            return str(uuid.uuid4()), None
        first = await self._shared.keyed_id(self._scope, key)
        known = await self._living(first)
        if known is None:
            return first, None
        digest = await work_on(encoding.size_hint, _digest, encoding)
        if known.artifact.digest == digest:
            return first, known
        second = await self._shared.keyed_id(self._scope, key, digest)
        return second, await self._living(second)

    async def _living(self, id_: str) -> Record | None:
        """Return what stands under an id; what is expired, damaged or bare of a payload goes."""
        try:
            record = await self._record_of(id_)
        except DamagedRecordError:
            await self.discard(id_)
            return None
        if record is None:
            return None
        if (
            not self._is_expired(record)
            and await self._shared.fetch(record.payload_key, 0, 1) is not None
        ):
            return record
        await self.remove(record)
        return None

    async def _commit(self, id_: str, encoding: Encoding, asked: Asked) -> Record | None:
        """Write payload, record, listing and name; None where the id was taken meanwhile."""
        store = self._shared.store
        file = f"{id_}-{secrets.token_hex(4)}.{encoding.extension}"
        payload_key = self._keys.payload(file)
        try:
            await self._shared.put_payload(payload_key, encoding)
            work_bytes = 0 if encoding.index.length_chars is None else encoding.size_hint
            record = await work_on(work_bytes, self._record, id_, payload_key, encoding, asked)
            stored = record.to_bytes()
            created = await self._shared.create(self._keys.record(id_), stored)
        except BaseException:
            await to_end(self._withdraw(id_, payload_key))
            raise
        if not created:
            await to_end(self._withdraw(id_, payload_key))
            return None
        try:
            for entry in self._entries(record):
                await store.put(entry, b"")
            stands = await store.get(self._keys.record(id_)) == stored
        except BaseException:
            await to_end(self._take_back(record))
            raise
        if not stands:  # removed meanwhile by another, who may not have seen our entries
            await to_end(self._take_back(record))
            return record if self._is_expired(record) else None
        return record

    def _is_expired(self, record: Record) -> bool:
        return record.expires_ns is not None and record.expires_ns <= self._shared.now_ns()

    async def _withdraw(self, id_: str, payload_key: str) -> None:
        """Take back what was not committed. What cannot be removed now is left, and not seen."""
        with suppress(StoreError):
            # A store may fail after it wrote the record. That goes first, or goes on standing
            # with its payload: it must never name one that is gone.
            record = await self._record_of(id_)
            if record is not None and record.payload_key == payload_key:
                await self.remove(record)
            else:
                await self._shared.store.delete(payload_key)

    async def _take_back(self, record: Record) -> None:
        with suppress(StoreError):
            await self.remove(record)

    async def remove(self, record: Record) -> None:
        """Remove an artifact: the reverse of its writing, so that no entry points at nothing.

        What another writer put under the same id since `record` was read stays.
        """
        store, key = self._shared.store, self._keys.record(record.artifact.id)
        entries = self._entries(record)[::-1]
        for entry in entries:
            await store.delete(entry)
        # A store cannot delete on a condition. Between processes the gap is two calls wide.
        async with self._shared.alone(key):
            standing = await self._record_of(record.artifact.id)
            is_ours = standing is not None and standing.payload_key == record.payload_key
            if is_ours:
                await store.delete(key)
        if is_ours:
            # Again: its writer may have listed it meanwhile, and found the record still there.
            for entry in entries:
                await store.delete(entry)
        await store.delete(record.payload_key)
        self._shared.cache.drop(key)
        self._shared.cache.drop(record.payload_key)

    async def discard(self, id_: str) -> bool:
        """Remove a record that cannot be read; return whether one was there.

        What it named is unknown: its payload and entries stay, and nobody sees them.
        """
        key = self._keys.record(id_)
        is_there = await self._shared.store.get(key) is not None
        await self._shared.store.delete(key)
        self._shared.cache.drop(key)
        return is_there

    def _entries(self, record: Record) -> list[str]:
        """Return the keys of its listing and, where it has one, its name."""
        artifact, stored_ns = record.artifact, record.stored_ns
        entries = [self._keys.listing(stored_ns, artifact.id, artifact.size_bytes)]
        if artifact.name is not None:
            entries.append(self._keys.name(artifact.name, stored_ns, artifact.id))
        return entries

    def _record(self, id_: str, payload_key: str, encoding: Encoding, asked: Asked) -> Record:
        index, limits = encoding.index, self._shared.limits
        stored_ns = self._shared.stamp_ns()
        expires_ns = None if asked.ttl_ns is None else stored_ns + asked.ttl_ns
        head = encoding.head(head_chars(max(asked.preview_chars, asked.shown_chars))) or ""
        length_chars = index.length_chars
        artifact = Artifact(
            pointer=str(Pointer(id_, self._shared.prefix_of(asked.kind))),
            id=id_,
            name=asked.name,
            label=asked.label,
            kind=asked.kind,
            content_type=encoding.content_type,
            size_bytes=index.size_bytes,
            length_chars=length_chars,
            preview=preview(head, asked.preview_chars),
            shown_preview=""
            if length_chars is None
            else shown_preview(head, length_chars, asked.shown_chars),
            glimpse=glimpse(
                encoding.value,
                content_type=encoding.content_type,
                size_bytes=index.size_bytes,
                budget_tokens=limits.glimpse_tokens,
                line_count=index.line_count,
                is_error=asked.is_error,
            ),
            stored_at=as_time(stored_ns),
            expires_at=None if expires_ns is None else as_time(expires_ns),
            digest=encoding.digest,
            source=asked.source,
            tool=asked.tool,
            run=asked.run,
        )
        return Record(
            artifact=artifact,
            stored_ns=stored_ns,
            expires_ns=expires_ns,
            payload_key=payload_key,
            form=encoding.form,
            index=index,
        )


def _digest(encoding: Encoding) -> str:
    for _ in encoding.chunks():
        pass
    return encoding.digest


def _length(what: str, asked: int | None, default: int) -> int:
    if asked is None:
        return min(default, _LONGEST_PREVIEW)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 0:
        raise InvalidArgumentError(f"{what} must be a whole number, 0 or more, got {shown(asked)}")
    return min(asked, _LONGEST_PREVIEW)
