"""What stands behind a pointer, an id or a name: in a scope, by grant, and above it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from difflib import SequenceMatcher

from ..errors import ExpiredPointerError, StoreFormatError, UnknownPointerError, shown
from ..records import Pointer, is_id, is_pointer
from ._keys import ScopeKeys, is_name, is_segment, listed_id
from ._record import Record
from ._shared import Shared

_LOOKED_AT = 50
_NAMED = 5
_LONGEST_COMPARED = 200


class Lookup:
    """Finds records of one scope, and what another scope granted to it.

    Args:
        shared: What all handles of the bank share.
        keys: The keys of the scope.
        parent: Where reads go on that miss here, None for nowhere.
    """

    def __init__(self, shared: Shared, keys: ScopeKeys, parent: "Lookup | None") -> None:
        self._shared = shared
        self._keys = keys
        self._parent = parent

    async def found(self, text: str, *, recall: bool = False) -> Record:
        """Return the record behind `text`.

        Raises:
            UnknownPointerError, ExpiredPointerError: Nothing is behind it.
        """
        record = await self.live(text, recall=recall)
        if record is None:
            raise UnknownPointerError(text, await self._nearest(text))
        return record

    async def live(self, text: str, *, recall: bool = False) -> Record | None:
        """Return the record behind `text` here or above, None where there is none.

        Raises:
            ExpiredPointerError: There was one, but its time has passed.
        """
        await self._shared.check_format()
        lookup: Lookup | None = self
        while lookup is not None:
            record = await lookup.here(text, recall=recall)
            if record is not None and self.is_expired(record):
                raise ExpiredPointerError(text)
            if record is not None:
                return record
            lookup = lookup._parent  # noqa: SLF001 - same class
        return None

    async def here(self, text: str, *, recall: bool = False) -> Record | None:
        """Return the record behind `text` in this scope alone: a pointer, an id, else a name."""
        if is_pointer(text):
            return await self.record_of(Pointer.parse(text).id, recall=recall)
        if is_id(text):
            return await self.record_of(text, recall=recall)
        if not is_name(text):
            return None
        last: Record | None = None
        async for key in self._shared.store.keys(self._keys.name_folder(text)):
            record = await self._listed(key, recall=recall)
            if record is not None and not self.is_expired(record):
                return record
            last = record or last
        return last

    async def own(self, text: str) -> Record | None:
        """Return the record behind `text` where this scope owns it."""
        record = await self.here(text)
        if record is None or not self._keys.is_payload_of(record.artifact.id, record.payload_key):
            return None
        return record

    async def record_of(self, id_: str, *, recall: bool = False) -> Record | None:
        """Return the record of an id in this scope, or of what another scope granted to it.

        With `recall`, one that this bank has seen before will do: records never change, and
        whoever goes on to the payload finds out when it is gone.

        Raises:
            StoreFormatError: The record is damaged, or planted.
        """
        key, owner = self._keys.record(id_), self._keys
        if recall:
            seen = self._shared.cache.get(key)
            if isinstance(seen, Record):
                return seen
        stored = await self._shared.store.get(key)
        if stored is None:
            # Always both look-ups, so that a foreign id costs what an unknown one does.
            grant = await self._shared.store.get(self._keys.grant(id_))
            if grant is not None and is_segment(grant.decode("ascii", "replace")):
                owner = ScopeKeys(grant.decode())
                stored = await self._shared.store.get(owner.record(id_))
        if stored is None:
            self._shared.cache.drop(key)
            return None
        record = Record.from_bytes(stored)
        # Whatever was planted here, a record opens no payload but its own.
        if record.artifact.id != id_ or not owner.is_payload_of(id_, record.payload_key):
            raise StoreFormatError("a record is damaged")
        self._shared.cache.put(key, record, len(stored))
        return record

    def is_expired(self, record: Record) -> bool:
        """Return whether the record's time has passed."""
        return record.expires_ns is not None and record.expires_ns <= self._shared.now_ns()

    async def newest(self) -> AsyncGenerator[Record, None]:
        """Yield the scope's live records, newest first."""
        await self._shared.check_format()
        async for key in self._shared.store.keys(self._keys.listing_folder):
            record = await self._listed(key, recall=True)
            if record is not None and not self.is_expired(record):
                yield record

    async def _listed(self, key: str, *, recall: bool) -> Record | None:
        id_ = listed_id(key)
        return None if id_ is None else await self.record_of(id_, recall=recall)

    async def _nearest(self, text: str) -> list[str]:
        """Return at most 5 pointers among the newest 50, the most alike to `text` first."""
        wanted = text[:_LONGEST_COMPARED]
        alike: list[tuple[float, int, str]] = []
        async with aclosing(self.newest()) as newest:
            async for record in newest:
                artifact = record.artifact
                known = [each for each in (artifact.pointer, artifact.name) if each is not None]
                likeness = max(SequenceMatcher(None, wanted, each).ratio() for each in known)
                name = "" if artifact.name is None else f" ({shown(artifact.name)})"
                alike.append((-likeness, len(alike), artifact.pointer + name))
                if len(alike) == _LOOKED_AT:
                    break
        return [each for _, _, each in sorted(alike)[:_NAMED]]
