"""`coatcheck gc`: removes what has had its time, and mends what killed writers left."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from ...bank import is_begun, store_at, without_secrets
from ...bank.collection import Collected, UnknownScopeError, collect
from ...errors import InvalidArgumentError, StoreError, shown
from ...stores import Store as StoreObject
from ...stores import SupportsVitals
from ...tools import Failure
from .._amounts import age_seconds, size_bytes
from ._app import NOT_FOUND, Json, NoStoreError, Store, app, default_store, report
from ._doctor import skew_seconds
from ._lines import human_size
from ._out import note, write, write_json
from ._progress import artifacts_progress

_MOST_NAMED = 20
_MOST_SKEW_SECONDS = 60.0


@app.command(name="gc", epilog="Example: coatcheck gc --older-than 7d --quota 10GB --dry-run")
def gc_(
    *,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Remove what is older: 12h, 7d, 4w."),
    ] = None,
    quota: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Remove the least recently used above it: 10GB, 64MiB."),
    ] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="NAME", help="In one scope.", show_default="in all")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Remove what has expired and, on demand, what is old or too much.

    What a live run holds stays. What goes is told as expired for a week. Also mended is what
    killed writers left. Safe while others use the store.
    """
    older_than_seconds = None if older_than is None else age_seconds(older_than)
    quota_bytes = None if quota is None else size_bytes(quota)
    address = default_store() if store is None else store
    if address == "memory:":
        raise InvalidArgumentError("memory: holds nothing that a command could see.")

    async def run(tell: Callable[[int, int], object]) -> Collected:
        async with _opened(address) as opened:
            # The default one may be empty yet where cron runs this; a name is more often mistyped.
            if store is not None and not await is_begun(address):
                raise NoStoreError(address)
            if not dry_run:
                await _check_clock(opened)
            return await collect(
                opened,
                scope=scope,
                older_than_seconds=older_than_seconds,
                quota_bytes=quota_bytes,
                dry_run=dry_run,
                tell=tell,
            )

    with artifacts_progress() as tell:
        try:
            done = asyncio.run(run(tell))
        except UnknownScopeError:
            message = f"There is no scope {shown(scope)} in {without_secrets(address)}."
            hint = "A scope is there from its first put on; without --scope all are looked at."
            report(Failure("not-found", message, hint), as_json=as_json)
            raise typer.Exit(NOT_FOUND) from None
        except StoreError as error:
            error.hint = f"The store is {without_secrets(address)}; what was done so far is right."
            raise
    if as_json:
        write_json(_wire(done, dry_run=dry_run))
    else:
        _tell(done, dry_run=dry_run)


@asynccontextmanager
async def _opened(address: str) -> AsyncGenerator[StoreObject, None]:
    try:
        store = store_at(address)
    except (ValueError, ImportError) as error:
        raise InvalidArgumentError(str(error), "Look at --store.") from error
    try:
        yield store
    finally:
        await store.close()


async def _check_clock(store: StoreObject) -> None:
    """Pass where this machine's clock and that of the store agree.

    Raises:
        InvalidArgumentError: They do not: what is young here may be old there.
    """
    if not isinstance(store, SupportsVitals):
        return
    before = time.time()
    skew = skew_seconds(await store.vitals(), before, time.time())
    if abs(skew) > _MOST_SKEW_SECONDS:
        side = "ahead of" if skew > 0 else "behind"
        raise InvalidArgumentError(
            f"the clock of the store is {abs(skew):,.0f} s {side} this machine's",
            "Let both follow a time server (NTP): what is removed, is by the clock.",
        )


def _tell(done: Collected, *, dry_run: bool) -> None:
    write(
        f"{'would remove' if dry_run else 'removed'} {done.expired:,} expired and "
        f"{done.evicted:,} other artifacts, {human_size(done.size_bytes)}, "
        f"of {done.artifacts:,} in {done.scopes:,} scopes\n"
    )
    rest = (
        (done.held, "held by live runs"),
        (done.relisted, "listed anew"),
        (done.payloads, "payloads of writers that died"),
        (done.tombstones, "tombstones past their week"),
        (done.leftovers, "other leftovers"),
    )
    told = ", ".join(f"{count:,} {what}" for count, what in rest if count)
    if told:
        note(told)
    for pointer in done.damaged[:_MOST_NAMED]:
        note(f"{pointer}: its record is damaged; `coatcheck rm` removes it", "bold red")
    if len(done.damaged) > _MOST_NAMED:
        note(f"and {len(done.damaged) - _MOST_NAMED:,} more, which --json lists")


def _wire(done: Collected, *, dry_run: bool) -> dict[str, object]:
    return {
        "dryRun": dry_run,
        "scopes": done.scopes,
        "artifacts": done.artifacts,
        "expired": done.expired,
        "evicted": done.evicted,
        "sizeBytes": done.size_bytes,
        "held": done.held,
        "relisted": done.relisted,
        "payloads": done.payloads,
        "tombstones": done.tombstones,
        "leftovers": done.leftovers,
        "damaged": done.damaged,
    }
