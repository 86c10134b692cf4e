"""What a scope lists, lets another one read, and takes back from it."""

from collections import deque
from collections.abc import AsyncGenerator

from ..errors import InvalidArgumentError
from ..records import Artifact, Pointer, is_id, is_pointer
from ._keys import ScopeKeys
from ._lookup import Lookup
from ._record import Grant, Record
from ._seat import Seated
from ._select import selector_of
from ._tombstone import TOLD_NS


class Granting(Seated):
    """The part of a bank that knows what is its own, and what other scopes may read of it."""

    async def list(
        self, kind: str | None = None, *, granted: bool = False
    ) -> AsyncGenerator[Artifact, None]:
        """Yield the scope's artifacts, newest first, each once; not those that are damaged.

        Args:
            kind: Only of this one.
            granted: Whether to yield those too that other scopes granted to this one.
        """
        lookup = self._desk.lookup
        async for record in _with_granted(lookup) if granted else lookup.newest():
            if kind is None or record.artifact.kind == kind:
                yield record.artifact

    async def grant(self, pointer: str | Pointer, to_scope: str) -> None:
        """Let another scope read an artifact of this one, by its pointer or bare id.

        It gets the payload and all facts, lineage included, and can neither delete the artifact
        nor grant it on. What it derives from it is its own. Names stay within this scope, and
        only ``list(granted=True)`` shows the artifact there. A second grant changes nothing, nor
        does one to this scope itself.

        Args:
            pointer: A pointer, a bare id or a name of this scope.
            to_scope: The plain name of the other one; nothing needs to be in it yet.

        Raises:
            UnknownPointerError, ExpiredPointerError: Nothing is behind it.
            InvalidArgumentError: It is of another scope, or has a selector.
            StoreError: The store failed.
            ValueError: An empty scope.

        >>> import asyncio
        >>> from coatcheck import open_bank
        >>> async def example() -> tuple[object, bool, object]:
        ...     async with open_bank("memory:", scope="lead") as bank:
        ...         worker = bank.scoped("worker-7")
        ...         pointer = (await bank.put("the plan", name="plan")).pointer
        ...         await bank.grant(pointer, to_scope="worker-7")
        ...         read = await worker.get(pointer)
        ...         revoked = await bank.revoke(pointer, from_scope="worker-7")
        ...         return read, revoked, await worker.find(pointer)
        >>> asyncio.run(example())
        ('the plan', True, None)
        """
        text = _whole(pointer)
        keys, desk = _keys_of(to_scope), self._desk
        record = await desk.lookup.found(text)
        if not self._scope_keys.is_payload_of(record.artifact.id, record.payload_key):
            raise InvalidArgumentError(
                "Only the scope that owns an artifact can grant it.",
                "Ask its owner to grant it, or bank a copy of it here.",
            )
        if keys == self._scope_keys:
            return
        shared = desk.shared
        lives_ns = None
        if record.expires_ns is not None:
            # As long as something tells that the artifact has expired.
            lives_ns = max(record.expires_ns - shared.now_ns(), 0) + TOLD_NS
        # Where nothing was put there yet, its name is known from now on, as of any other scope.
        await shared.mark(to_scope, keys, lives_ns)
        grant, stored = keys.grant(record.artifact.id), Grant(self._scope_keys, record.stored_ns)
        if lives_ns is None:
            await shared.store.put(grant, stored.to_bytes())
        else:
            await shared.put_for(grant, stored.to_bytes(), lives_ns)

    async def revoke(self, pointer: str | Pointer, from_scope: str) -> bool:
        """Take a grant back; return whether there was one that this scope gave.

        From the next call on the artifact is unknown there. What was read or derived before stays.
        The grant of an artifact that is gone can be taken back too, by pointer or id.

        Raises:
            InvalidArgumentError: The pointer has a selector.
            StoreError: The store failed.
            ValueError: An empty scope.
        """
        text = _whole(pointer)
        keys, desk = _keys_of(from_scope), self._desk
        await desk.shared.check_format()
        id_ = await _id_of(text, desk.lookup)
        if id_ is None:
            return False
        store, key = desk.shared.store, keys.grant(id_)
        stored = await store.get(key)
        grant = None if stored is None else Grant.from_bytes(stored)
        if grant is None or grant.owner != self._scope_keys:
            return False
        await store.delete(key)
        return True


async def _with_granted(lookup: Lookup) -> AsyncGenerator[Record, None]:
    """Yield a scope's live records and those that were granted to it, the newest first."""
    granted = deque(await lookup.granted())
    async for record in lookup.newest():
        while granted and granted[0].stored_ns > record.stored_ns:
            yield granted.popleft()
        yield record
    for record in granted:
        yield record


def _whole(pointer: str | Pointer) -> str:
    text = str(pointer)
    if selector_of(text) is not None:
        raise InvalidArgumentError(
            "A part of an artifact cannot be granted.",
            "Grant the whole, or bank the part: put what get gives for it.",
        )
    return text


def _keys_of(scope: str) -> ScopeKeys:
    if not scope:
        raise ValueError("a scope needs a name")
    return ScopeKeys.of(scope)


async def _id_of(text: str, lookup: Lookup) -> str | None:
    """Return the id that a pointer or bare id names, or an own artifact's that has this name."""
    if is_pointer(text):
        return Pointer.parse(text).id
    if is_id(text):
        return text
    record = await lookup.own(text)
    return None if record is None else record.artifact.id
