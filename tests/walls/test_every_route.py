"""By every route another scope's artifact is what never was: in words, and in what a store sees."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner

from coatcheck import Bank, CoatcheckError, Kind, Limits
from coatcheck.apps.cli._program import app
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank.collection import collect
from coatcheck.bank.migration import migrate
from coatcheck.errors import ExpiredPointerError
from coatcheck.stores import FileStore, MemoryStore
from coatcheck.testing import ManualClock
from coatcheck.tools import as_failure

from .conftest import Recorded
from .routes import HANDLES, OWN, ROUTES, SELECTORS, THIRD, TYPED, WHOLE, Route, tool_reply

SECRET = "the secret of A"
ROWS = [{"id": number, "secret": SECRET} for number in range(30)]
KINDS = [Kind(name="product set", prefix="ps")]
MINE, THEIRS = "A's own", "b"
UNISSUED = "00000000-0000-4000-8000-000000000005"


@dataclass(frozen=True, slots=True)
class Walls:
    """Two scopes on one store that writes down its calls."""

    record: Recorded
    mine: Bank
    theirs: Bank
    clock: ManualClock
    run: str | None = None
    """Of whoever asks."""

    async def answers(self, route: Route, asked: str) -> tuple[str, list[tuple[str, ...]]]:
        """Return how a route answers, and what the store was asked for, all ids masked."""
        self.record.calls.clear()
        try:
            async with nullcontext() if self.run is None else self.theirs.run(self.run):
                answer = repr(await route(self.theirs, asked))
        except CoatcheckError as error:
            answer = f"{type(error).__name__} {as_failure(error)}"
        masked = [(name, *(mask(key, asked) for key in keys)) for name, keys in self.record.calls]
        return mask(answer, asked), masked


def mask(text: str, asked: str) -> str:
    """Return a text with what was asked for, and all ids and hashes, masked."""
    id_ = re.search("[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", asked)
    parts = [asked, *([] if id_ is None else [id_[0], str(UUID(id_[0]))])]
    for part in parts:  # the longest first
        text = text.replace(part, "<asked>")
    text = re.sub("[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "<id>", text)
    text = re.sub("/names/[0-9a-f]{32}/", "/names/<hash>/", text)
    # A put has a time, and a payload key that no other has; a lease a holder.
    return re.sub(r"/[0-9a-f]{16}-<id>|<id>-[0-9a-f]{8}\.|(?<=-)[0-9a-f]{16}$", "<new>", text)


@pytest.fixture(params=["two banks", "one bank", "in a run"])
async def walls(
    request: pytest.FixtureRequest, record: Recorded, clock: ManualClock
) -> AsyncIterator[Walls]:
    """Returns two scopes, as two processes have them, and as one bank has that knows both."""
    mine = Bank(record.store, scope=MINE, clock=clock, kinds=KINDS)
    theirs = Bank(record.store, scope=THEIRS, clock=clock)
    if request.param == "one bank":
        theirs = mine.scoped(THEIRS)
    await theirs.put([{"id": 1}], name=OWN)
    yield Walls(record, mine, theirs, clock, "r1" if request.param == "in a run" else None)
    theirs.end_queries()
    mine.end_queries()


async def put(walls: Walls) -> str:
    return (await walls.mine.put(ROWS)).pointer


async def put_as_a_kind(walls: Walls) -> str:
    return (await walls.mine.put(ROWS, kind="product set")).pointer


async def put_by_id(walls: Walls) -> str:
    return (await walls.mine.put(ROWS)).id


async def put_by_name(walls: Walls) -> str:
    await walls.mine.put(ROWS, name="plans of A")
    return "plans of A"


async def expired(walls: Walls) -> str:
    pointer = (await walls.mine.put(ROWS, ttl_seconds=60)).pointer
    walls.clock.advance(61)
    return pointer


async def collected(walls: Walls) -> str:
    pointer = await expired(walls)
    await collect(walls.record.store, clock=walls.clock)
    with pytest.raises(ExpiredPointerError):
        await walls.mine.get(pointer)
    return pointer


async def evicted(walls: Walls) -> str:
    limits = Limits(scope_bytes=3_000)
    mine = Bank(walls.record.store, scope=MINE, clock=walls.clock, limits=limits)
    pointer = (await mine.put(ROWS)).pointer
    walls.clock.advance(60)
    await mine.put("x" * 2_500)
    with pytest.raises(ExpiredPointerError):
        await walls.mine.get(pointer)
    return pointer


async def held_by_a_run(walls: Walls) -> str:
    async with walls.mine.run("r1"):
        return (await walls.mine.put(ROWS)).pointer


async def deleted(walls: Walls) -> str:
    pointer = await put(walls)
    await walls.mine.delete(pointer)
    return pointer


async def damaged(walls: Walls) -> str:
    artifact = await walls.mine.put(ROWS)
    await walls.record.store.put(ScopeKeys.of(MINE).record(artifact.id), b"damaged")
    return artifact.pointer


async def granted_to_a_third(walls: Walls) -> str:
    pointer = await put(walls)
    await walls.mine.grant(pointer, to_scope=THIRD)
    assert await walls.mine.scoped(THIRD).get(pointer) == ROWS
    return pointer


async def granted_then_revoked(walls: Walls) -> str:
    pointer = await put(walls)
    await walls.mine.grant(pointer, to_scope=THEIRS)
    for route in ROUTES.values():
        await route(walls.theirs, pointer)
    while await walls.theirs.delete("s"):
        pass  # what was derived from it stays theirs
    await walls.mine.revoke(pointer, from_scope=THEIRS)
    return pointer


async def granted_then_deleted(walls: Walls) -> str:
    pointer = await put(walls)
    await walls.mine.grant(pointer, to_scope=THEIRS)
    assert await walls.theirs.get(pointer) == ROWS
    await walls.mine.delete(pointer)
    await walls.mine.revoke(pointer, from_scope=THEIRS)
    return pointer


async def granted_then_expired_then_revoked(walls: Walls) -> str:
    pointer = (await walls.mine.put(ROWS, ttl_seconds=60)).pointer
    await walls.mine.grant(pointer, to_scope=THEIRS)
    walls.clock.advance(61)
    await walls.mine.revoke(pointer, from_scope=THEIRS)
    return pointer


NEVER: dict[Callable[[Walls], Awaitable[str]], str] = {
    put_as_a_kind: f"ps-{UUID(UNISSUED).hex}",
    put_by_id: UNISSUED,
    put_by_name: "roses of A",
}
"""What never was, in the same form; of all others a pointer."""
STATES = [
    *(put, put_as_a_kind, put_by_id, put_by_name, held_by_a_run),
    *(expired, collected, evicted, deleted, damaged),
    *(granted_to_a_third, granted_then_revoked, granted_then_deleted),
    granted_then_expired_then_revoked,
]


async def check_alike(walls: Walls, routes: dict[str, Route], foreign: str, never: str) -> None:
    """Fail where a route tells what is another's from what never was."""
    for name, route in routes.items():
        await walls.answers(route, never)  # what is loaded late is loaded now
        foreign_answer, foreign_calls = await walls.answers(route, foreign)
        named = walls.record.keys
        never_answer, never_calls = await walls.answers(route, never)

        assert foreign_answer == never_answer, name
        assert foreign_calls == never_calls, name
        assert SECRET not in foreign_answer
        assert not [key for key in named if key.startswith(f"s/{ScopeKeys.of(MINE).segment}/")]


BOTH = ("record", "walls")
IN_MEMORY = [("memory", "one bank"), ("memory", "in a run")]
ELSEWHERE = [("redis", "in a run"), *((store, "two banks") for store in ("file", "redis", "s3"))]
on_each_store = pytest.mark.parametrize(BOTH, [*IN_MEMORY, *ELSEWHERE], indirect=True)
on_other_stores = pytest.mark.parametrize(BOTH, ELSEWHERE, indirect=True)
in_memory = pytest.mark.parametrize(BOTH, IN_MEMORY, indirect=True)


@in_memory
@pytest.mark.parametrize("state", STATES)
async def test_another_s_artifact_is_what_never_was_by_every_route(
    walls: Walls, state: Callable[[Walls], Awaitable[str]]
) -> None:
    await check_walk(walls, state)


@on_other_stores
@pytest.mark.parametrize("state", [collected, granted_then_revoked])
async def test_on_other_stores_another_s_artifact_is_what_never_was(
    walls: Walls, state: Callable[[Walls], Awaitable[str]]
) -> None:
    await check_walk(walls, state)


async def check_walk(walls: Walls, state: Callable[[Walls], Awaitable[str]]) -> None:
    """Compare every route for an artifact in some state with what never was in the same form."""
    foreign = await state(walls)
    never = NEVER.get(state, f"art:{UNISSUED}")
    is_pointer = state not in {put_by_id, put_by_name}

    await check_alike(walls, ROUTES | WHOLE | (TYPED if is_pointer else {}), foreign, never)

    if state in {put, put_as_a_kind, put_by_id, granted_to_a_third}:
        assert await walls.mine.get(foreign) == ROWS
    assert await walls.theirs.get(OWN) == [{"id": 1}]


@pytest.mark.parametrize(BOTH, [("memory", "two banks")], indirect=True)
@pytest.mark.parametrize("state", [put, expired, granted_then_revoked])
@pytest.mark.parametrize("selector", SELECTORS)
async def test_with_a_selector_another_s_artifact_is_what_never_was(
    walls: Walls, state: Callable[[Walls], Awaitable[str]], selector: str
) -> None:
    foreign = await state(walls)
    never = f"art:{UNISSUED}"

    await check_alike(walls, ROUTES | WHOLE, f"{foreign}{selector}", f"{never}{selector}")


@in_memory
async def test_the_walk_tells_what_is_one_s_own_from_what_never_was(walls: Walls) -> None:
    foreign = await put(walls)
    walls = replace(walls, theirs=walls.mine)
    await walls.mine.put([{"id": 1}], name=OWN)
    routes = ROUTES | TYPED | {"grant": WHOLE["grant"], "delete": WHOLE["delete"]}

    for name, route in routes.items():
        own_answer, _ = await walls.answers(route, foreign)
        never_answer, _ = await walls.answers(route, f"art:{UNISSUED}")

        assert own_answer != never_answer, name


async def _work() -> object:
    return SECRET


async def handle_of(walls: Walls) -> str:
    handle = await walls.mine.handles.start(_work)
    assert (await walls.mine.handles.poll(handle, 5_000)).result == SECRET
    return handle


async def expired_handle_of(walls: Walls) -> str:
    handle = await handle_of(walls)
    walls.clock.advance(601)
    return handle


async def handle_of_what_goes_on(walls: Walls) -> str:
    return await walls.mine.handles.start(asyncio.Event().wait)


@on_each_store
@pytest.mark.parametrize("state", [handle_of, expired_handle_of, handle_of_what_goes_on])
async def test_another_s_handle_is_what_never_was(
    walls: Walls, state: Callable[[Walls], Awaitable[str]]
) -> None:
    foreign = await state(walls)

    await check_alike(walls, HANDLES, foreign, f"ah:{UNISSUED}")

    states = {"done": handle_of, "expired": expired_handle_of, "pending": handle_of_what_goes_on}
    assert states[(await walls.mine.handles.poll(foreign)).status] is state
    await walls.mine.handles.stop()


@in_memory
async def test_to_store_under_another_s_name_or_pointer_tells_nothing(walls: Walls) -> None:
    foreign = await put(walls)
    await put_by_name(walls)

    async def stores(bank: Bank, asked: str) -> object:
        return await tool_reply(bank, "storeArtifact", name=asked, value="own")

    async def stores_value(bank: Bank, asked: str) -> object:
        return await tool_reply(bank, "storeArtifact", name="n", value=asked)

    await check_alike(walls, {"name": stores}, "plans of A", "roses of A")
    await check_alike(walls, {"pointer": stores, "value": stores_value}, foreign, f"art:{UNISSUED}")

    assert await walls.mine.get("plans of A") == ROWS
    assert await walls.theirs.get("n") == f"art:{UNISSUED}"


@in_memory
async def test_another_s_key_gives_no_pointer_of_theirs(walls: Walls) -> None:
    for key in ("call_0", "query"):
        mine = await walls.mine.put(SECRET, key=key)
        theirs = await walls.theirs.put(SECRET, key=key)

        assert mine.id != theirs.id
        assert await walls.theirs.find(mine.pointer) is None


async def test_a_copy_of_one_scope_takes_nothing_of_another(
    record: Recorded, clock: ManualClock
) -> None:
    mine = Bank(record.store, scope=MINE, clock=clock)
    theirs = mine.scoped(THEIRS)
    own = await theirs.put("own")
    foreign = await mine.put(SECRET, name="plans")
    target = MemoryStore()
    record.calls.clear()

    done = await migrate(record.store, target, scope=THEIRS, clock=clock)

    segment = ScopeKeys.of(MINE).segment
    assert done.copied == 1
    assert not [key for key in record.keys if key.startswith(f"s/{segment}/")]
    assert [key async for key in target.keys(f"s/{segment}/records/")] == []
    copied = Bank(target, scope=THEIRS, clock=clock)
    assert await copied.find(own.pointer) is not None
    assert await copied.find(foreign.pointer) is None


COMMANDS = {
    "show": ["show", "ASKED"],
    "read": ["read", "ASKED"],
    "read all": ["read", "ASKED", "--all"],
    "read as JSON": ["read", "ASKED", "--json"],
    "read a part": ["read", "ASKED#/0"],
    "search": ["search", "ASKED", "secret"],
    "query": ["query", "ASKED", "SELECT * FROM data"],
    "query a table": ["query", OWN, 'SELECT * FROM "ASKED"'],
    "rm": ["rm", "ASKED"],
    "rm as JSON": ["rm", "ASKED", "--json"],
    "ls": ["ls"],
    "log": ["log", "ASKED"],
}


@pytest.mark.parametrize("command", COMMANDS)
async def test_on_the_command_line_another_s_artifact_is_what_never_was(
    tmp_path: Path, command: str
) -> None:
    store, journal = tmp_path / "store", tmp_path / "calls.jsonl"
    bank = Bank(FileStore(store), scope=MINE)
    foreign = (await bank.put(ROWS, name="plans")).pointer
    await bank.scoped(THEIRS).put([{"id": 1}], name=OWN)
    journal.touch()

    def ran(asked: str) -> list[str]:
        arguments = [part.replace("ASKED", asked) for part in COMMANDS[command]]
        if arguments[0] == "log":
            arguments += ["--journal", str(journal)]
        else:
            arguments += ["--scope", THEIRS, "--store", f"file:{store}"]
        done = CliRunner().invoke(app, arguments, prog_name="coatcheck")
        return [mask(text, asked) for text in (str(done.exit_code), done.stdout, done.stderr)]

    for of_others, never in ((foreign, f"art:{UNISSUED}"), (foreign[4:], UNISSUED)):
        answered = await asyncio.to_thread(ran, of_others)

        assert answered == await asyncio.to_thread(ran, never)
        assert SECRET not in "".join(answered)
        assert "plans" not in "".join(answered)
    assert await bank.get(foreign) == ROWS
