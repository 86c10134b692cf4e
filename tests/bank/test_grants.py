"""What one scope grants another: readable by every route, nowhere else, and only until revoked."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from coatcheck import (
    Bank,
    BlockingBank,
    Envelope,
    Kind,
    Mirror,
    Pointer,
    UnknownPointerError,
    mirror,
    open_bank,
)
from coatcheck.bank._grants import Granting
from coatcheck.bank._keys import ScopeKeys
from coatcheck.bank._seat import Seated
from coatcheck.bank.collection import collect
from coatcheck.bank.migration import migrate
from coatcheck.errors import ExpiredPointerError, InvalidArgumentError
from coatcheck.stores import MemoryStore, RedisStore, Store
from coatcheck.testing import ManualClock
from coatcheck.tools import artifact_tools, retrieval_tools

DAY = 24 * 3_600
ROWS = [{"id": number, "city": "Lyon" if number % 2 else "Oslo"} for number in range(40)]


@pytest.fixture
def owner(store: Store) -> Bank:
    return Bank(store, scope="Owner 1")


@pytest.fixture
def reader(store: Store) -> Bank:
    """Returns a bank of its own on the same store, as another process has it."""
    return Bank(store, scope="reader")


async def listed(bank: Bank, *, granted: bool = False, kind: str | None = None) -> list[str]:
    return [artifact.pointer async for artifact in bank.list(kind, granted=granted)]


async def test_what_was_granted_is_read_by_every_route(owner: Bank, reader: Bank) -> None:
    pointer = (await owner.put(ROWS, name="rows")).pointer
    own = await reader.put([{"city": "Lyon", "country": "fr"}], name="countries")

    def tool(rows: list[dict[str, object]], cities: list[str]) -> list[object]:
        return [len(rows), sorted(set(cities))]

    await owner.grant(pointer, to_scope="reader")

    assert await reader.get(pointer) == await reader.get(Pointer.parse(pointer).id) == ROWS
    assert await reader.payload(f"{pointer}#/0") == b'{"id":0,"city":"Oslo"}'
    assert (await reader.read(pointer, 1, 1, "rows")).content == '[{"id":1,"city":"Lyon"}]'
    assert (await reader.search(pointer, "lyon")).total_matches == 20
    assert [value async for value, _ in reader.get_each([f"{pointer}#/1/city"])] == ["Lyon"]
    joined = await reader.query(
        own.pointer, f'SELECT count(*) AS n FROM data JOIN "{pointer}" AS rows USING (city)'
    )
    assert joined.value == [{"n": 20}]
    assert (await reader.query({"rows": pointer}, "SELECT max(id) AS m FROM rows")).value == [
        {"m": 39}
    ]
    assert (await reader.query(pointer, "$[3].id")).value == 3
    assert (await reader.query(pointer, "length(@)")).value == 40
    assert mirror(tool, reader)(pointer, f"{pointer}#$[*].city") == [40, ["Lyon", "Oslo"]]
    resolved = await Mirror(reader).resolve({"deep": [f"{pointer}#/2/id"]})
    assert resolved == {"deep": [2]}
    (retrieve,) = retrieval_tools(reader)
    page = json.loads(await retrieve.call({"artifactId": pointer}))
    assert json.loads(page["content"]) == ROWS
    _, get_artifact, _ = artifact_tools(reader)
    assert json.loads(await get_artifact.call({"pointerOrName": pointer})) == ROWS


async def test_a_pointer_of_a_kind_is_granted_as_it_is(store: Store) -> None:
    kinds = [Kind(name="product set", prefix="ps")]
    owner = Bank(store, scope="owner", kinds=kinds)
    reader = Bank(store, scope="reader")
    pointer = (await owner.put([1, 2, 3], kind="product set")).pointer

    await owner.grant(pointer, to_scope="reader")

    assert pointer.startswith("ps-")
    assert mirror(len, reader)(pointer) == 3


async def test_a_grant_is_listed_only_where_that_is_asked_for(owner: Bank, reader: Bank) -> None:
    first = await reader.put("first", kind="log")
    second = await owner.put("second", kind="report", name="n")
    third = await reader.put("third", kind="report")
    fourth = await owner.put("fourth", kind="log")
    await owner.put("never granted")
    for artifact in (fourth, second):
        await owner.grant(artifact.pointer, to_scope="reader")
    expected = [fourth.pointer, third.pointer, second.pointer, first.pointer]

    assert await listed(reader) == [third.pointer, first.pointer]
    assert await listed(reader, granted=True) == expected
    assert await listed(reader, granted=True, kind="report") == expected[1:3]
    _, _, list_artifacts = artifact_tools(reader)
    assert second.id not in await list_artifacts.call({})


async def test_a_grant_leaves_names_and_hints_within_the_scope(owner: Bank, reader: Bank) -> None:
    artifact = await owner.put("x", name="shared plan")
    await owner.grant("shared plan", to_scope="reader")

    assert await reader.find(artifact.pointer) == artifact
    assert await reader.find("shared plan") is None
    with pytest.raises(UnknownPointerError) as unknown:
        await reader.get("shared plans")
    assert unknown.value.nearest == ()


async def test_a_grant_is_read_only(owner: Bank, reader: Bank, store: Store) -> None:
    artifact = await owner.put("x")
    await owner.grant(artifact.pointer, to_scope="reader")
    third = Bank(store, scope="third")

    assert await reader.delete(artifact.pointer) is False
    assert await reader.cleanup(older_than_seconds=0) == 0
    with pytest.raises(InvalidArgumentError, match="Only the scope that owns an artifact"):
        await reader.grant(artifact.pointer, to_scope="third")
    assert await reader.revoke(artifact.pointer, from_scope="reader") is False
    assert await third.find(artifact.pointer) is None
    assert await reader.get(artifact.pointer) == await owner.get(artifact.pointer) == "x"


async def test_a_grant_opens_nothing_else(owner: Bank, reader: Bank, store: Store) -> None:
    granted, other = await owner.put("granted"), await owner.put("other")
    await owner.grant(granted.pointer, to_scope="reader")

    assert await reader.find(other.pointer) is None
    assert await Bank(store, scope="reader-2").find(granted.pointer) is None
    assert await Bank(store, scope="Reader").find(granted.pointer) is None
    assert await owner.scoped("else").find(granted.pointer) is None


async def test_what_was_revoked_is_unknown_to_whoever_read_it_before(
    owner: Bank, reader: Bank
) -> None:
    pointer = (await owner.put("secret " * 10_000)).pointer
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: reader.get(pointer),
        lambda: reader.payload(pointer),
        lambda: reader.read(pointer, 7),
        lambda: reader.read(f"{pointer}#char=0,9"),
        lambda: reader.search(pointer, "secret"),
        lambda: reader.query(pointer, "SELECT count(*) FROM data"),
    ]
    for call in calls:
        await owner.grant(pointer, to_scope="reader")
        await call()

        assert await owner.revoke(pointer, from_scope="reader") is True

        with pytest.raises(UnknownPointerError):
            await call()
    assert await reader.find(pointer) is None
    assert await listed(reader, granted=True) == []
    assert await owner.revoke(pointer, from_scope="reader") is False
    assert await owner.get(pointer) == "secret " * 10_000


async def test_what_was_derived_from_a_grant_belongs_to_who_asked(
    owner: Bank, reader: Bank
) -> None:
    pointer = (await owner.put(ROWS)).pointer
    await owner.grant(pointer, to_scope="reader")

    answer = await reader.query(pointer, "$[?@.city=='Oslo']", save_as="oslo")

    assert answer.artifact is not None
    assert answer.artifact.source is not None
    assert answer.artifact.source["pointers"] == [pointer]
    assert await owner.find(answer.artifact.pointer) is None
    assert await listed(reader) == [answer.artifact.pointer]
    await owner.revoke(pointer, from_scope="reader")
    assert await reader.get("oslo") == ROWS[::2]
    with pytest.raises(UnknownPointerError):
        await reader.query(pointer, "$[?@.city=='Oslo']", save_as="oslo")
    assert await reader.delete("oslo") is True


async def test_an_offloaded_result_is_granted_by_the_pointer_in_its_envelope(
    owner: Bank, reader: Bank
) -> None:
    envelope = await Mirror(owner).offload("x" * 60_000, tool="dump")
    assert isinstance(envelope, Envelope)

    await owner.grant(envelope.pointer, to_scope="reader")

    assert (await reader.read(envelope.pointer, 59_990)).content == "x" * 10


async def test_an_artifact_put_anew_under_the_same_key_was_granted_to_nobody(
    owner: Bank, reader: Bank
) -> None:
    first = await owner.put("first", key="call-1")
    await owner.grant(first.pointer, to_scope="reader")
    await owner.delete(first.pointer)

    second = await owner.put("second", key="call-1")

    assert second.pointer == first.pointer
    assert await reader.find(second.pointer) is None
    assert await listed(reader, granted=True) == []
    await owner.grant(second.pointer, to_scope="reader")
    assert await reader.get(second.pointer) == "second"


async def test_a_grant_of_what_is_deleted_can_still_be_revoked(
    owner: Bank, reader: Bank, store: Store
) -> None:
    artifact = await owner.put("x", name="n")
    await owner.grant(artifact.pointer, to_scope="reader")
    await owner.delete(artifact.pointer)

    assert await reader.find(artifact.pointer) is None
    assert await owner.revoke("n", from_scope="reader") is False
    assert await owner.revoke(artifact.id, from_scope="reader") is True
    assert [key async for key in store.keys("s/reader/grants/")] == []


async def test_a_grant_to_the_own_scope_changes_nothing(owner: Bank) -> None:
    artifact = await owner.put("x")

    await owner.grant(artifact.pointer, to_scope=owner.scope)

    assert await listed(owner, granted=True) == [artifact.pointer]


async def test_a_grant_given_twice_is_one(owner: Bank, reader: Bank) -> None:
    artifact = await owner.put("x")
    for _ in range(2):
        await owner.grant(artifact.pointer, to_scope="reader")

    assert await listed(reader, granted=True) == [artifact.pointer]
    assert await owner.revoke(artifact.pointer, from_scope="reader") is True
    assert await owner.revoke(artifact.pointer, from_scope="reader") is False


@pytest.mark.parametrize("method", ["grant", "revoke"])
async def test_a_part_is_neither_granted_nor_revoked(owner: Bank, method: str) -> None:
    artifact = await owner.put("x")

    with pytest.raises(InvalidArgumentError, match="A part of an artifact cannot be granted"):
        await getattr(owner, method)(f"{artifact.pointer}#char=0,1", "reader")


@pytest.mark.parametrize("method", ["grant", "revoke"])
async def test_a_grant_needs_a_scope(owner: Bank, method: str) -> None:
    artifact = await owner.put("x")

    with pytest.raises(ValueError, match="a scope needs a name"):
        await getattr(owner, method)(artifact.pointer, "")


async def test_who_inherits_reads_what_was_granted_above_and_cannot_grant_it(
    owner: Bank, reader: Bank
) -> None:
    pointer = (await owner.put("x")).pointer
    await owner.grant(pointer, to_scope="reader")
    child = reader.scoped("child", inherit=True)
    parents = await reader.put("parent's", name="n")

    assert await child.get(pointer) == "x"
    for asked in (pointer, parents.pointer, "n"):
        with pytest.raises(InvalidArgumentError, match="Only the scope that owns"):
            await child.grant(asked, to_scope="other")
    await owner.revoke(pointer, from_scope="reader")
    assert await child.find(pointer) is None
    assert await reader.scoped("child").find(parents.pointer) is None


async def test_an_inheriting_scope_reads_by_every_route_and_writes_below(store: Store) -> None:
    parent = Bank(store, scope="parent")
    child = parent.scoped("child", inherit=True)
    rows = await parent.put(ROWS, name="rows")

    answer = await child.query("rows", "SELECT * FROM data WHERE id < 2", save_as="two")

    assert answer.artifact is not None
    assert await parent.find(answer.artifact.pointer) is None
    assert await parent.find("two") is None
    assert await child.get("two") == ROWS[:2]
    assert await listed(child) == [answer.artifact.pointer]
    (retrieve,) = retrieval_tools(child)
    found = json.loads(await retrieve.call({"artifactId": "rows", "search": "Oslo"}))
    assert found["totalMatches"] == 20
    assert mirror(len, child)(f"{rows.pointer}#$[*].id") == 40
    table = await child.query("two", 'SELECT count(*) AS n FROM data JOIN "rows" USING (id)')
    assert table.value == [{"n": 2}]
    assert await child.delete("rows") is False
    assert await parent.find("rows") == rows


async def test_an_expired_artifact_is_expired_to_whom_it_was_granted_and_unknown_to_others(
    store: Store, clock: ManualClock
) -> None:
    owner = Bank(store, scope="owner", clock=clock)
    pointer = (await owner.put("x", ttl_seconds=60)).pointer
    await owner.grant(pointer, to_scope="reader")
    clock.advance(61)

    with pytest.raises(ExpiredPointerError):
        await owner.scoped("reader").get(pointer)
    with pytest.raises(UnknownPointerError):
        await owner.scoped("stranger").get(pointer)
    with pytest.raises(ExpiredPointerError):
        await owner.grant(pointer, to_scope="late")
    assert await listed(owner.scoped("reader"), granted=True) == []
    assert await owner.revoke(pointer, from_scope="reader") is True
    with pytest.raises(UnknownPointerError):
        await owner.scoped("reader").get(pointer)


async def test_a_damaged_artifact_hides_no_other_grant(
    owner: Bank, reader: Bank, store: Store
) -> None:
    good, bad = await owner.put("good"), await owner.put("bad")
    for artifact in (good, bad):
        await owner.grant(artifact.pointer, to_scope="reader")
    await store.put(ScopeKeys.of("Owner 1").record(bad.id), b"damaged")
    await store.put("s/reader/grants/planted", b"Owner/1")

    assert await listed(reader, granted=True) == [good.pointer]


PLANTED = [b"owner", b"owner/", b"owner/x", b"owner/-1", b"../x/5", b"a/b/5", b"", b"\xff/5"]


@pytest.mark.parametrize("planted", [*PLANTED, b"owner/" + b"9" * 5_000, "owner/٣".encode()])
async def test_a_planted_grant_opens_nothing(store: Store, planted: bytes) -> None:
    artifact = await Bank(store, scope="owner").put("x")
    reader = Bank(store, scope="reader")
    await store.put(f"s/reader/grants/{artifact.id}", planted)

    assert await reader.find(artifact.pointer) is None
    assert await listed(reader, granted=True) == []
    assert await Bank(store, scope="owner").revoke(artifact.pointer, "reader") is False


async def test_a_store_that_was_copied_keeps_its_grants(owner: Bank, store: Store) -> None:
    pointer = (await owner.put("x", name="n")).pointer
    await owner.grant(pointer, to_scope="reader")
    target = MemoryStore()

    await migrate(store, target)

    # Nothing was ever put there, and yet the scope is known.
    assert await Bank(target, scope="reader").get(pointer) == "x"
    assert await Bank(target, scope="Owner 1").revoke(pointer, from_scope="reader") is True


def test_code_without_a_loop_grants_lists_and_revokes(tmp_path: Path) -> None:
    address = str(tmp_path / "store")
    with BlockingBank(address, scope="owner") as owner, BlockingBank(address, scope="b") as reader:
        pointer = owner.put("x").pointer

        owner.grant(pointer, to_scope="b")
        read = reader.get(pointer)
        seen = [[each.pointer for each in reader.list(granted=on)] for on in (False, True)]
        revoked = owner.revoke(pointer, from_scope="b")

        assert read == "x"
        assert seen == [[], [pointer]]
        assert revoked is True
        assert reader.find(pointer) is None


def test_code_without_a_loop_has_other_scopes_that_inherit_or_do_not(tmp_path: Path) -> None:
    with BlockingBank(tmp_path, scope="lead") as lead:
        plan = lead.put("the plan", name="plan")
        heir, stranger = lead.scoped("heir", inherit=True), lead.scoped("stranger")

        with heir:  # to leave it closes nothing: the store is the lead's
            below = heir.put("note")

        assert heir.get("plan") == "the plan"
        assert [each.pointer for each in heir.list()] == [below.pointer]
        assert heir.delete("plan") is False
        assert lead.find(below.pointer) is None
        assert stranger.find(plan.pointer) is stranger.find("plan") is None


PUBLIC = {name for name in vars(Bank) | vars(Granting) | vars(Seated) if not name.startswith("_")}
ASYNC_ONLY = {
    *("get_each", "end_queries", "knows_prefix", "owning", "current_run"),
    *("cells_in", "ends_with_process"),
}
"""What mirrors, memory, the runtime and `open_bank` need of a bank."""


def test_code_without_a_loop_has_what_all_other_code_has() -> None:
    assert set(vars(BlockingBank)) >= PUBLIC - ASYNC_ONLY


async def test_what_was_collected_is_expired_to_whom_it_was_granted_and_unknown_to_others(
    store: Store, clock: ManualClock
) -> None:
    owner = Bank(store, scope="owner", clock=clock)
    reader, stranger = owner.scoped("reader"), owner.scoped("stranger")
    artifact = await owner.put("x", ttl_seconds=60, tool="rows", name="n")
    await owner.grant(artifact.pointer, to_scope="reader")
    clock.advance(61)
    await collect(store, clock=clock)

    with pytest.raises(ExpiredPointerError) as told:
        await reader.get(artifact.pointer)
    with pytest.raises(UnknownPointerError):
        await stranger.get(artifact.pointer)
    assert (told.value.tool, told.value.size_bytes) == ("rows", 1)

    assert await owner.revoke(artifact.pointer, from_scope="reader") is True
    with pytest.raises(UnknownPointerError):
        await reader.get(artifact.pointer)

    await owner.grant((await owner.put("y", ttl_seconds=60)).pointer, to_scope="reader")
    for seconds in (61, 8 * DAY):  # what it was is told for a week more
        clock.advance(seconds)
        await collect(store, clock=clock)
    assert [key async for key in store.keys("s/reader/grants/")] == []


async def lives_seconds(redis_url: str, folder: str, id_: str) -> float:
    """Return how long the key of an artifact in a folder still lives on a Redis server."""
    address, _, prefix = redis_url.partition("?prefix=")
    client: Any = Redis  # its hints are partial
    async with client.from_url(address) as server:
        (name,) = [name async for name in server.scan_iter(f"{prefix}*/{folder}/{id_}")]
        milliseconds: int = await server.pttl(name)
    return milliseconds / 1_000


@pytest.fixture
async def forgetful(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_url)
    yield store
    await store.close()


async def test_on_redis_a_grant_outlives_its_artifact_and_goes_too(
    forgetful: RedisStore, redis_url: str
) -> None:
    owner = Bank(forgetful, scope="owner")
    artifact = await owner.put("x", ttl_seconds=3 * DAY)

    await owner.grant(artifact.pointer, to_scope="reader")

    async with open_bank(redis_url, scope="reader") as reader:
        assert await reader.get(artifact.pointer) == "x"
        assert await listed(reader, granted=True) == [artifact.pointer]
        assert 3 * DAY - 60 < await lives_seconds(redis_url, "records", artifact.id) <= 3 * DAY
        assert 10 * DAY - 60 < await lives_seconds(redis_url, "grants", artifact.id) <= 10 * DAY
        assert await owner.revoke(artifact.pointer, from_scope="reader") is True
        assert await reader.find(artifact.pointer) is None
        assert await listed(reader, granted=True) == []


async def test_a_grant_that_is_copied_to_redis_lives_as_long_as_its_artifact(
    forgetful: RedisStore, redis_url: str
) -> None:
    source = MemoryStore()
    owner = Bank(source, scope="owner")
    artifact = await owner.put("x", ttl_seconds=3 * DAY)
    await owner.grant(artifact.pointer, to_scope="reader")

    await migrate(source, forgetful)

    assert await Bank(forgetful, scope="reader").get(artifact.pointer) == "x"
    assert 10 * DAY - 60 < await lives_seconds(redis_url, "grants", artifact.id) <= 10 * DAY
