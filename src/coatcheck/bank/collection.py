"""Removes from a store what has had its time, and mends what killed writers left."""

import time
from collections.abc import Callable

from ..records import Limits
from ..stores import Store
from ._collecting import Collected, Collecting, Progress
from ._keys import ScopeKeys
from ._quota import evict
from ._scopes import UnknownScopeError, scope_keys, scopes
from ._shared import Shared

__all__ = ["Collected", "UnknownScopeError", "collect", "scopes"]


async def collect(
    store: Store,
    *,
    scope: str | None = None,
    older_than_seconds: float | None = None,
    quota_bytes: int | None = None,
    dry_run: bool = False,
    tell: Callable[[int, int], object] = lambda _done, _total: None,
    clock: Callable[[], float] = time.time,
) -> Collected:
    """Remove what has expired, and on demand what is old or too much; mend what was left undone.

    Safe beside any number of writers and readers, and when it is killed. What a live run holds
    stays. What goes leaves a tombstone for a week, so that its pointer answers as expired. A store
    that forgets by itself has nothing left over; there only age and quota remove.

    Args:
        store: May be in use.
        scope: Plain name; None takes all scopes.
        older_than_seconds: Remove what was stored longer ago.
        quota_bytes: Remove the least recently used until payloads take no more: of the scope, or
            without one of the store.
        dry_run: Only count; nothing is written.
        tell: Called with how much of how much work is done, by the artifact.
        clock: Seconds since 1970.

    Raises:
        UnknownScopeError: The store has no such scope.
        ValueError: A negative age or quota.
        StoreError: The store failed. What was done until then is right.

    >>> import asyncio
    >>> from coatcheck import Bank
    >>> from coatcheck.stores import MemoryStore
    >>> async def example() -> int:
    ...     store, clock = MemoryStore(), lambda: 1_000.0
    ...     await Bank(store, clock=clock).put("short", ttl_seconds=60)
    ...     return (await collect(store, clock=lambda: 1_060.0)).expired
    >>> asyncio.run(example())
    1
    """
    for name, number in (("older_than_seconds", older_than_seconds), ("quota_bytes", quota_bytes)):
        if number is not None and number < 0:
            raise ValueError(f"{name} must be 0 or more, got {number}")
    shared = Shared(store, limits=Limits(cache_bytes=0), kinds=[], secret=None, clock=clock)
    await shared.check_format()
    found, progress = await _found(store, scope), Progress(tell)
    return await _collected(
        shared,
        found,
        progress,
        older_than_seconds=older_than_seconds,
        quota_bytes=quota_bytes,
        dry_run=dry_run,
    )


async def _collected(
    shared: Shared,
    found: list[ScopeKeys],
    progress: Progress,
    *,
    older_than_seconds: float | None,
    quota_bytes: int | None,
    dry_run: bool,
) -> Collected:
    """Return what was collected in some scopes."""
    done = Collected(scopes=len(found))
    held, went = set[str](), set[str]()
    for keys in found:
        collection = Collecting(shared, keys, done, progress, held=held, went=went, dry_run=dry_run)
        await collection.run(older_than_seconds)
    if quota_bytes is not None:
        room = await evict(
            shared,
            found,
            quota_bytes,
            without=went if dry_run else (),
            dry_run=dry_run,
            expect=progress.expect,
            advance=progress.advance,
        )
        done.evicted += len(room.evicted)
        done.size_bytes += room.evicted_bytes
        held.update(room.held)
    done.held = len(held)
    return done


async def _found(store: Store, scope: str | None) -> list[ScopeKeys]:
    """Return the keys of a scope, or of all.

    Raises:
        UnknownScopeError: The store has no such scope.
    """
    # By their keys: a plain name that is damaged keeps nothing from being removed.
    found = [keys async for keys in scope_keys(store)]
    if scope is None:
        return found
    found = [keys for keys in found if keys == ScopeKeys.of(scope)]
    if not found:
        raise UnknownScopeError("the store has no such scope")
    return found
