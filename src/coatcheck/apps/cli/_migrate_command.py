"""`coatcheck migrate`: copies what is banked from one store to another."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from ...bank import is_begun, store_at, without_secrets
from ...bank.migration import Migrated, UnknownScopeError, migrate
from ...errors import InvalidArgumentError, StoreError, shown
from ...tools import Failure
from ._app import NOT_FOUND, STORE_FAILED, Json, NoStoreError, app, report
from ._lines import human_size
from ._out import note, write, write_json
from ._progress import artifacts_progress

_MOST_NAMED = 20


@app.command(
    name="migrate",
    epilog="Example: coatcheck migrate file:/var/lib/coatcheck s3://bucket/coatcheck",
)
def migrate_(
    from_store: Annotated[str, typer.Argument(metavar="FROM", help="The address that is read.")],
    to_store: Annotated[str, typer.Argument(metavar="TO", help="The address that is written.")],
    *,
    scope: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Copy one scope.", show_default="all of them"),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read back what lies in TO, and compare it too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy artifacts to another store; every pointer and name stays what it is.

    FROM is only read. Run again, it goes on where it was interrupted.
    """
    for address in (from_store, to_store):
        if address == "memory:":
            raise InvalidArgumentError("memory: holds nothing that another command could see.")
    if from_store == to_store:
        raise InvalidArgumentError("FROM and TO are the same store.")
    with artifacts_progress() as tell:
        try:
            done = asyncio.run(_run(from_store, to_store, scope, tell, verify=verify))
        except UnknownScopeError:
            message = f"There is no scope {shown(scope)} in {without_secrets(from_store)}."
            hint = "A scope is there from its first put on; without --scope all are copied."
            report(Failure("not-found", message, hint), as_json=as_json)
            raise typer.Exit(NOT_FOUND) from None
        except StoreError as error:
            error.hint = "Run it again, once the store is back: it goes on where it stopped."
            raise
    if as_json:
        write_json(_wire(done))
    else:
        _tell(done, to_store)
    if not done.is_whole:
        raise typer.Exit(STORE_FAILED)


async def _run(
    from_store: str,
    to_store: str,
    scope: str | None,
    tell: Callable[[int, int], object],
    *,
    verify: bool,
) -> Migrated:
    async with AsyncExitStack() as stack:
        try:
            source = store_at(from_store)
            stack.push_async_callback(source.close)
            target = store_at(to_store)
            stack.push_async_callback(target.close)
        except (ValueError, ImportError) as error:
            raise InvalidArgumentError(str(error), "Look at FROM and TO.") from error
        if not await is_begun(from_store):
            raise NoStoreError(from_store)
        return await migrate(source, target, scope=scope, verify=verify, tell=tell)


def _tell(done: Migrated, to_store: str) -> None:
    write(
        f"copied {done.copied:,} artifacts, {human_size(done.size_bytes)}; "
        f"{done.skipped:,} were there, {done.expired:,} had expired\n"
    )
    for pointers, what in (
        (done.damaged, "damaged in FROM, and not copied"),
        (done.kept, "something else in TO, which stays"),
    ):
        for pointer in pointers[:_MOST_NAMED]:
            note(f"{pointer}: {what}", "bold red")
        if len(pointers) > _MOST_NAMED:
            note(f"and {len(pointers) - _MOST_NAMED:,} more, which --json lists")
    if done.limited:
        note(
            f"{done.limited:,} that stay in FROM go in TO after its own time to live, "
            "which ?ttl_seconds=… in its address sets"
        )
    if done.has_own_secret:
        note(
            f"{without_secrets(to_store)} has a secret of its own: what is banked there again "
            "under the same key gets another pointer"
        )


def _wire(done: Migrated) -> dict[str, object]:
    return {
        "copied": done.copied,
        "skipped": done.skipped,
        "expired": done.expired,
        "sizeBytes": done.size_bytes,
        "limited": done.limited,
        "damaged": done.damaged,
        "kept": done.kept,
        "hasOwnSecret": done.has_own_secret,
    }
