"""How an artifact comes to be, and goes: payload, record (the commit), listing, name."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import cast

from ..content import (
    Encoding,
    StreamEncoding,
    glimpse,
    head_chars,
    host_glimpse,
    preview,
    shown_preview,
)
from ..errors import (
    DamagedRecordError,
    StoreError,
    StoreUnavailableError,
)
from ..records import Artifact, Glimpse, Pointer
from ..stores import SupportsBatch
from ._asked import Asked
from ._ids import random_id
from ._keys import ScopeKeys
from ._quota import check_quota
from ._record import Record, as_time
from ._removal import Remover, entries_of
from ._run import renew_runs
from ._shared import Shared
from ._stream import Stream
from ._threads import to_end, work_on
from ._tombstone import TOLD_NS, Tombstone

_MOST_TRIES = 32
_NO_RECORD = "ids that it calls taken hold no record"
_ROWS_PREVIEW_CHARS = 120
_NUMBERS_PREVIEW_CHARS = 40
_NUMBERS = frozenset({"int", "float"})
_SECOND_NS = 1_000_000_000


class Writer:
    """Writes artifacts of one scope in an order that no crash can turn into a false pointer.

    Args:
        shared: What all scopes of the bank share.
        scope: The plain name of the scope.
        keys: The keys of the scope.
        record_of: Looks an id up in the scope.
        is_live: Whether an artifact's time has not passed, or a run holds it.
        remover: Takes back what must not stand.
    """

    def __init__(
        self,
        shared: Shared,
        scope: str,
        keys: ScopeKeys,
        *,
        record_of: Callable[[str], Awaitable[Record | None]],
        is_live: Callable[[Record], Awaitable[bool]],
        remover: Remover,
    ) -> None:
        self._shared = shared
        self._scope = scope
        self._keys = keys
        self._record_of = record_of
        self._is_live = is_live
        self._remover = remover

    async def write(self, encoding: Encoding, asked: Asked, key: str | None) -> tuple[Record, bool]:
        """Write an artifact, or find the one that the same key and value already gave.

        Returns the record, and whether this call wrote it.
        """
        check_quota(self._shared, encoding.size_hint)  # at the least it takes so much
        await self._shared.mark(self._scope, self._keys, asked.ttl_ns)
        for _ in range(_MOST_TRIES):
            id_, known = await self._place(encoding, key)
            if known is not None:
                return known, False
            record = await self._commit(id_, encoding, asked)
            if record is not None:
                return record, True
            # Another writer won the id just now, or removed what we wrote: look what is there.
        raise StoreUnavailableError(_NO_RECORD)

    async def write_stream(
        self, stream: Stream, asked: Asked, key: str | None
    ) -> tuple[Record, bool]:
        """Write the artifact of a stream, or return the one its key and payload already gave."""
        await self._shared.mark(self._scope, self._keys, asked.ttl_ns)
        if not stream.is_begun and not self._shared.copies(stream):
            await stream.begins()
        # On the way, as nobody knows how long it is, or whether it ends.
        stream.check = partial(check_quota, self._shared, is_all=False)
        encoding = stream.encoding
        id_ = random_id() if key is None else await self._shared.keyed_id(self._scope, key)
        payload_key = self._payload_key(id_, encoding)
        record: Record | None = None
        try:
            await self._shared.put_stream(payload_key, stream)
            if key is None:
                record = await self._enter(id_, payload_key, encoding, asked)
            tries = _MOST_TRIES
            while record is None and key is not None and tries:
                id_, known = await self._place(encoding, key)
                if known is not None:
                    await self._shared.store.delete(payload_key)
                    return known, False
                if not self._keys.is_payload_of(id_, payload_key):
                    # Only the digest, known at the end, tells under which id it belongs.
                    there = self._payload_key(id_, encoding)
                    await self._shared.move(payload_key, there, encoding.size_bytes)
                    payload_key = there
                record = await self._enter(id_, payload_key, encoding, asked)
                tries -= 1
        except BaseException as error:
            await to_end(self._withdraw(id_, payload_key, error))
            raise
        if record is None:
            await to_end(self._withdraw(id_, payload_key))
            raise StoreUnavailableError(_NO_RECORD)
        return record, True

    async def _place(
        self, encoding: Encoding | StreamEncoding, key: str | None
    ) -> tuple[str, Record | None]:
        """Return the id to write under, and what stands there already with the same digest."""
        if key is None:
            return random_id(), None
        await renew_runs(self._shared)  # what stands under the key may be theirs
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
            await self._remover.discard(id_)
            return None
        if record is None:
            return None
        if (
            await self._is_live(record)
            and await self._shared.fetch(record.payload_key, 0, 1) is not None
        ):
            return record
        await self._remover.remove(record)
        return None

    async def _commit(self, id_: str, encoding: Encoding, asked: Asked) -> Record | None:
        """Write payload, record, listing and name; None where the id was taken meanwhile."""
        payload_key = self._payload_key(id_, encoding)
        try:
            payload = await self._shared.put_payload(payload_key, encoding)
            record = await self._enter(id_, payload_key, encoding, asked, payload)
        except BaseException as error:
            await to_end(self._withdraw(id_, payload_key, error))
            raise
        if record is None:
            await to_end(self._withdraw(id_, payload_key))
        return record

    def _payload_key(self, id_: str, encoding: Encoding | StreamEncoding) -> str:
        """Return a key for a payload that no other has."""
        return self._keys.payload(f"{id_}-{secrets.token_hex(4)}.{encoding.extension}")

    async def _enter(
        self,
        id_: str,
        payload_key: str,
        encoding: Encoding | StreamEncoding,
        asked: Asked,
        payload: bytes | None = None,
    ) -> Record | None:
        """Write record, listing and name, with the payload where that is not stored yet.

        Returns None where the id was taken.
        """
        store = self._shared.store
        index = encoding.index
        check_quota(self._shared, index.size_bytes)
        # Of bytes that are neither text nor rows only the head is looked at.
        is_blob = index.length_chars is None and index.rows is None
        work_bytes = 0 if is_blob else encoding.size_hint
        record = await work_on(work_bytes, self._record, id_, payload_key, encoding, asked)
        stored = record.to_bytes()
        if self._shared.batches is not None:
            lives_ns = self._shared.lives_ns(asked.ttl_ns)
            is_ours = await self._enter_at_once(
                self._shared.batches, record, stored, payload, lives_ns
            )
            return record if is_ours else None
        if not await self._shared.create(self._keys.record(id_), stored):
            return None
        try:
            for entry in entries_of(self._shared, self._keys, record):
                await store.put(entry, b"")
            stands = await store.get(self._keys.record(id_)) == stored
        except BaseException:
            await to_end(self._take_back(record))
            raise
        if not stands:  # removed meanwhile by another, who may not have seen our entries
            await to_end(self._take_back(record))
            # A stream cannot be written anew: it was put, and then removed.
            is_over = record.is_expired(self._shared.now_ns()) or isinstance(
                encoding, StreamEncoding
            )
            return record if is_over else None
        return record

    async def _enter_at_once(
        self,
        store: SupportsBatch,
        record: Record,
        stored: bytes,
        payload: bytes | None,
        lives_ns: int | None,
    ) -> bool:
        """Write all of an artifact, or nothing where the id was taken; return whether it was free.

        What lives for a time goes by itself, the record never after its payload, and leaves a
        tombstone for a week.
        """
        key = self._keys.record(record.artifact.id)
        payloads = {key: stored, **dict.fromkeys(entries_of(self._shared, self._keys, record), b"")}
        ttl_seconds: dict[str, float] = {}
        if record.expires_ns is not None and lives_ns is not None and self._shared.expires:
            lives_seconds = lives_ns / _SECOND_NS
            ttl_seconds = dict.fromkeys((*payloads, record.payload_key), lives_seconds)
            gone = self._keys.gone(record.artifact.id)
            payloads[gone] = Tombstone.of(record, record.expires_ns).to_bytes()
            ttl_seconds[gone] = lives_seconds + TOLD_NS / _SECOND_NS
        if payload is not None:
            payloads[record.payload_key] = payload
        return await store.put_many(payloads, ttl_seconds=ttl_seconds, unless=key)

    async def _withdraw(
        self, id_: str, payload_key: str, error: BaseException | None = None
    ) -> None:
        """Take back what was not committed. What cannot be removed now is left, and not seen."""
        if isinstance(error, StoreUnavailableError) and error.unsettled:
            return  # The record may still come, and must never name a payload that is gone.
        with suppress(StoreError):
            # A store may fail after it wrote the record. That goes first, or goes on standing
            # with its payload: it must never name one that is gone.
            record = await self._record_of(id_)
            if record is not None and record.payload_key == payload_key:
                await self._remover.remove(record)
            else:
                await self._shared.store.delete(payload_key)

    async def _take_back(self, record: Record) -> None:
        with suppress(StoreError):
            await self._remover.remove(record)

    def _record(
        self, id_: str, payload_key: str, encoding: Encoding | StreamEncoding, asked: Asked
    ) -> Record:
        index = encoding.index
        stored_ns = self._shared.stamp_ns()
        lives_ns = self._shared.lives_ns(asked.ttl_ns)
        expires_ns = None if lives_ns is None else self._begins_ns(stored_ns) + lives_ns
        head = encoding.head(head_chars(max(asked.preview_chars, asked.shown_chars))) or ""
        length_chars = index.length_chars
        told = self._glimpse(id_, encoding, asked)
        shown_chars = _shown_chars(asked.shown_chars, told)
        artifact = Artifact(
            pointer=str(Pointer(id_, self._shared.prefix_of(asked.kind))),
            id=id_,
            name=asked.name,
            label=asked.label,
            kind=asked.kind,
            content_type=encoding.content_type,
            size_bytes=index.size_bytes,
            length_chars=length_chars,
            row_count=index.row_count,
            preview=preview(head, asked.preview_chars),
            shown_preview=_shown_rows(head, index.row_count, shown_chars)
            if length_chars is None
            else shown_preview(head, length_chars, shown_chars),
            glimpse=told,
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
            store_decides=asked.ttl_ns is None and lives_ns is not None,
        )

    def _begins_ns(self, stored_ns: int) -> int:
        """Return since when an artifact lives: its stamp, or now where the clock was set back.

        A stamp that is ahead by less than a second is only after others of the same moment.
        """
        now_ns = self._shared.now_ns()
        return stored_ns if stored_ns - now_ns < _SECOND_NS else now_ns

    def _glimpse(
        self, id_: str, encoding: Encoding | StreamEncoding, asked: Asked
    ) -> Glimpse | None:
        budget_tokens = self._shared.limits.glimpse_tokens
        make = self._shared.glimpse_of(asked.kind)
        if make is not None and isinstance(encoding, Encoding):
            value = encoding.value
            told = _unless_it_fails(id_, asked, lambda: host_glimpse(make, value, budget_tokens))
            if told is not None:
                return told
        return _unless_it_fails(id_, asked, lambda: _own_glimpse(encoding, asked, budget_tokens))


def _own_glimpse(
    encoding: Encoding | StreamEncoding, asked: Asked, budget_tokens: int
) -> Glimpse | None:
    index, head_length = encoding.index, None
    if isinstance(encoding, StreamEncoding):
        value, head_length = encoding.sample()
    else:
        value = encoding.value
    return glimpse(
        value,
        content_type=encoding.content_type,
        size_bytes=index.size_bytes,
        budget_tokens=budget_tokens,
        line_count=index.line_count,
        length_chars=index.length_chars,
        row_count=index.row_count,
        head_length=head_length,
        is_error=asked.is_error,
    )


def _unless_it_fails(id_: str, asked: Asked, make: Callable[[], Glimpse | None]) -> Glimpse | None:
    """Return a glimpse, None where making it raised: a summary is worth no result."""
    try:
        return make()
    except Exception:  # the host's code, or whatever in the value ours was not ready for
        import logging

        message = "the glimpse of kind %r failed on artifact %s"
        logging.getLogger(__name__).warning(message, asked.kind, id_, exc_info=True)
        return None


def _digest(encoding: Encoding | StreamEncoding) -> str:
    if isinstance(encoding, Encoding):
        for _ in encoding.chunks():
            pass
    return encoding.digest


def _shown_rows(head: str, row_count: int | None, limit_chars: int) -> str:
    """Return the first rows of a frame, with the count of all where they are cut."""
    text = preview(head, limit_chars)
    is_whole = text == head and head.endswith("]")
    return text if is_whole or not text else f"{text} … ({row_count or 0:,} rows)"


def _shown_chars(asked_chars: int, told: Glimpse | None) -> int:
    """Return how much of the head is worth showing beside what the glimpse tells."""
    facts: Mapping[str, object] = {} if told is None else told.facts
    if facts.get("format") == "table" or "levels" in facts:
        # Columns, or the levels of a log, are told; a row or two show how they are written.
        return min(asked_chars, _ROWS_PREVIEW_CHARS)
    values = facts.get("values")
    kind = cast("Mapping[str, object]", values).get("type") if isinstance(values, Mapping) else None
    return min(asked_chars, _NUMBERS_PREVIEW_CHARS) if kind in _NUMBERS else asked_chars
