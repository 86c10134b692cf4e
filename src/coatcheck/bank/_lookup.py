"""What stands behind a pointer, an id or a name: in a scope, by grant, and above it."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from difflib import SequenceMatcher

from ..errors import (
    DamagedRecordError,
    ExpiredPointerError,
    StoreFormatError,
    UnknownPointerError,
    shown,
)
from ..records import Artifact, Pointer, is_id, is_pointer, names_pointer
from ._keys import ScopeKeys, is_name, is_segment, is_stamped, listed_id
from ._record import Record, is_due
from ._shared import Shared

_LOOKED_AT = 50
_NAMED = 5
_MEASURED = 8
_LONGEST_COMPARED = 60


class Lookup:
    """Finds records of one scope, and what another scope granted to it.

    Args:
        shared: What all scopes of the bank share.
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
            if record is not None and record.is_expired(self._shared.now_ns()):
                raise ExpiredPointerError(text)
            if record is not None:
                return record
            lookup = lookup._parent  # noqa: SLF001 - same class
        if await self._is_gone(text):
            raise ExpiredPointerError(text)
        return None

    async def _is_gone(self, text: str) -> bool:
        """Return whether a tombstone here or above says that there was an artifact behind an id."""
        id_ = Pointer.parse(text).id if is_pointer(text) else text
        if self._shared.expires is None or not is_id(id_):
            return False
        tombstone = await self._shared.store.get(self._keys.gone(id_))
        # It is written with the artifact. One that is not due is of what was just put, or removed.
        if tombstone is not None and is_due(tombstone, self._shared.now_ns()):
            return True
        return self._parent is not None and await self._parent._is_gone(text)  # noqa: SLF001 - same class

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
            if record is not None and not record.is_expired(self._shared.now_ns()):
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
            DamagedRecordError: The record is damaged, or planted.
            StoreFormatError: It is of a later version.
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
        record = Record.from_bytes(stored, str(Pointer(id_)))
        # Whatever was planted here, a record opens no payload but its own.
        if record.artifact.id != id_ or not owner.is_payload_of(id_, record.payload_key):
            raise DamagedRecordError(str(Pointer(id_)))
        self._shared.cache.put(key, record, len(stored))
        return record

    async def newest(self) -> AsyncGenerator[Record, None]:
        """Yield the scope's live records, newest first, without those that cannot be read."""
        await self._shared.check_format()
        async for key in self._shared.store.keys(self._keys.listing_folder):
            try:
                record = await self._listed(key, recall=True)
            except StoreFormatError:  # one damaged record must not hide all others
                continue
            if record is not None and not record.is_expired(self._shared.now_ns()):
                yield record

    async def _listed(self, key: str, *, recall: bool) -> Record | None:
        """Return what a listing or name entry stands for, None where that is gone.

        An id may have been written anew, with an entry of its own: each stands for one writing.
        """
        id_ = listed_id(key)
        if id_ is None:
            return None
        record = await self.record_of(id_, recall=recall)
        if recall and record is not None and not is_stamped(key, record.stored_ns):
            record = await self.record_of(id_)  # what we remember may be older than the entry
        return record if record is not None and is_stamped(key, record.stored_ns) else None

    async def _nearest(self, text: str) -> list[str]:
        """Return at most 5 pointers among the newest 50, the most alike to `text` first."""
        looked_at: list[Artifact] = []
        async with aclosing(self.newest()) as newest:
            async for record in newest:
                looked_at.append(record.artifact)
                if len(looked_at) == _LOOKED_AT:
                    break
        return [
            artifact.pointer + ("" if artifact.name is None else f" ({shown(artifact.name)})")
            for artifact in _most_alike(text, looked_at)
        ]


def _most_alike(text: str, artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return at most 5 artifacts. Only 8 are measured exactly, which takes up to 1 ms each.

    Those are told by the runs of three characters that they share with `text`: of ids, which have
    digits only, the characters alone tell little.
    """
    if names_pointer(text):
        text = text.partition("#")[0]
    wanted = _runs(text)
    matcher = SequenceMatcher(None, b=text[:_LONGEST_COMPARED])

    def shared(known: str) -> tuple[float, float]:
        matcher.set_seq1(known[:_LONGEST_COMPARED])
        return len(wanted & _runs(known)), matcher.quick_ratio()

    def exact(known: str) -> float:
        matcher.set_seq1(known[:_LONGEST_COMPARED])
        return matcher.ratio()

    likely = sorted(artifacts, key=lambda each: max(map(shared, _called(each))), reverse=True)
    return sorted(likely[:_MEASURED], key=lambda each: -max(map(exact, _called(each))))[:_NAMED]


def _called(artifact: Artifact) -> tuple[str, str]:
    return artifact.pointer, artifact.name or artifact.pointer


def _runs(text: str) -> set[str]:
    """Return the runs of three characters in a text, those at its beginning among them."""
    text = f"  {text[:_LONGEST_COMPARED]}"
    return {text[at : at + 3] for at in range(len(text) - 2)}
