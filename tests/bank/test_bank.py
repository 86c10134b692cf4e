import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from coatcheck import Bank, Kind, Limits, Pointer, UnknownPointerError
from coatcheck.content import encode
from coatcheck.errors import (
    BinaryPayloadError,
    DamagedPayloadError,
    ExpiredPointerError,
    InvalidArgumentError,
    StoreFormatError,
    StoreUnavailableError,
    UnencodableValueError,
)
from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.testing import ManualClock

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
TEXT = "żółć needle\n" * 20_000


class Plain:
    """A store without any capability: the least that a stranger implements."""

    def __init__(self) -> None:
        self.inside = MemoryStore()

    async def put(self, key: str, payload: bytes) -> None:
        await self.inside.put(key, payload)

    async def get(self, key: str) -> bytes | None:
        return await self.inside.get(key)

    async def delete(self, key: str) -> None:
        await self.inside.delete(key)

    def keys(self, folder: str) -> AsyncIterator[str]:
        return self.inside.keys(folder)

    async def close(self) -> None:
        await self.inside.close()


class Failing(Plain):
    """A store that is out of reach for keys with a certain part."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self.part: str | None = part

    async def put(self, key: str, payload: bytes) -> None:
        if self.part is not None and self.part in key:
            raise StoreUnavailableError("No space left on device")
        await super().put(key, payload)


async def all_keys(store: Store) -> list[str]:
    folders = ["records", "payloads", "listing"]
    return [key for name in folders async for key in store.keys(f"s/default/{name}/")]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values | st.binary() | st.text(max_size=300))
async def test_get_gives_back_what_was_put_with_its_types(value: object) -> None:
    for store in (MemoryStore(), Plain()):
        artifact = await Bank(store).put(value)

        again = await Bank(store).get(artifact.pointer)

        assert again == value
        assert repr(again) == repr(value)  # 1 is not True, and 1.0 not 1


async def test_text_and_bytes_are_handed_on_as_they_are(store: Store) -> None:
    bank = Bank(store)
    text, payload = "x" * 100_000, b"\x00" * 100_000

    assert await bank.get((await bank.put(text)).pointer) is text
    assert await bank.get((await bank.put(payload)).pointer) is payload


async def test_two_readers_of_a_list_share_no_object(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put([{"id": 1}])

    first = await bank.get(artifact.pointer, list[dict[str, int]])
    first[0]["id"] = 2

    assert await bank.get(artifact.pointer) == [{"id": 1}]


async def test_a_value_changed_after_the_put_stays_as_it_was_put(store: Store) -> None:
    value = bytearray(b"abc")
    rows = [1]
    bank = Bank(store)
    artifact, listed = await bank.put(value), await bank.put(rows)

    value[0] = 0
    rows.append(2)

    assert await bank.get(artifact.pointer) == b"abc"
    assert await bank.get(listed.pointer) == [1]


async def test_a_source_changed_after_the_put_stays_as_it_was_put(store: Store) -> None:
    of = ["x"]
    source = {"of": of, "n": 1.0}

    artifact = await Bank(store).put("x", source=source)
    of.append("y")
    source["n"] = 2.0

    assert artifact.source == {"of": ["x"], "n": 1.0}
    assert await Bank(store).find(artifact.pointer) == artifact


async def test_an_encoding_keeps_its_content_type_and_takes_no_other(store: Store) -> None:
    bank = Bank(store)

    with pytest.raises(ValueError, match="has its content type"):
        await bank.put(encode("a,b", "text/csv"), content_type="text/plain")
    assert await all_keys(store) == []
    assert (await bank.put(encode("a,b", "text/csv"))).content_type == "text/csv"


@pytest.mark.parametrize(("chars", "is_inline"), [(256 * 1024, True), (256 * 1024 + 1, False)])
async def test_large_text_is_encoded_off_the_loop(chars: int, is_inline: bool) -> None:
    text, called = "[1]".ljust(chars), set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code.co_name)

    bank, before = Bank(MemoryStore()), sys.getprofile()
    sys.setprofile(note)  # of this thread, which is the loop's
    try:
        artifact = await bank.put(text)
    finally:
        sys.setprofile(before)

    assert artifact.length_chars == len(text)
    assert ("encode" in called) is is_inline


@pytest.mark.parametrize("seconds", [-1.0, 2e10])
async def test_a_clock_that_is_off_by_centuries_still_names_and_lists(
    store: Store, seconds: float
) -> None:
    bank = Bank(store, clock=lambda: seconds)
    artifact = await bank.put("x", name="n")

    assert await bank.find("n") == artifact
    assert [each async for each in bank.list()] == [artifact]
    assert await bank.delete("n")
    assert await all_keys(store) == []


async def test_an_artifact_states_its_facts(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock)

    artifact = await bank.put(
        TEXT,
        name="report",
        label=" delegate ",
        kind="report",
        ttl_seconds=60,
        source={"of": ["x"]},
        tool="rows",
        run="r1",
    )

    assert Pointer.parse(artifact.pointer).id == artifact.id
    assert (artifact.name, artifact.label, artifact.kind) == ("report", "delegate", "report")
    assert artifact.size_bytes == len(TEXT.encode())
    assert artifact.length_chars == len(TEXT)
    assert artifact.preview == TEXT[:1_000]
    assert artifact.stored_at.timestamp() == clock.now
    assert artifact.expires_at is not None
    assert artifact.expires_at.timestamp() == clock.now + 60
    assert (artifact.source, artifact.tool, artifact.run) == ({"of": ["x"]}, "rows", "r1")
    assert await Bank(store, clock=clock).find("report") == artifact


@pytest.mark.parametrize(
    ("asked", "chars"), [(None, 1_000), (0, 0), (50, 50), (4_000, 4_000), (4_001, 4_000)]
)
async def test_a_preview_has_the_length_asked_for_up_to_4000(asked: int | None, chars: int) -> None:
    artifact = await Bank(MemoryStore()).put("x" * 20_000, preview_chars=asked)

    assert artifact.preview == "x" * chars


@pytest.mark.parametrize("asked", [-1, True, 1.5, "5"])
async def test_a_preview_of_another_length_is_refused(asked: object) -> None:
    with pytest.raises(InvalidArgumentError, match="preview_chars must be a whole number"):
        await Bank(MemoryStore()).put("x", preview_chars=asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("find", ["pointer", "id", "name", "Pointer"])
async def test_an_artifact_is_found_by_pointer_id_and_name(store: Store, find: str) -> None:
    bank = Bank(store)
    artifact = await bank.put("x", name="logs")
    texts: dict[str, str | Pointer] = {
        "pointer": artifact.pointer,
        "id": artifact.id,
        "name": "logs",
        "Pointer": Pointer.parse(artifact.pointer),
    }

    assert await bank.find(texts[find]) == artifact
    assert await bank.get(texts[find]) == "x"


async def test_a_name_finds_the_newest_and_the_older_stays(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    first = await bank.put("good", name="n")
    second = await bank.put("", name="n")

    assert await bank.get("n") == ""
    assert await bank.get(first.pointer) == "good"

    await bank.delete(second.pointer)

    assert await bank.get("n") == "good"


@pytest.mark.parametrize(
    "name", ["", "x" * 201, UNKNOWN, UNKNOWN[4:], "a\nb", "a\x00", "a\x1b[0m", "a\ud83d"]
)
async def test_what_cannot_be_told_from_a_pointer_or_shown_is_no_name(name: str) -> None:
    bank = Bank(MemoryStore())

    with pytest.raises(InvalidArgumentError, match="a name has 1 to 200 printable characters"):
        await bank.put("x", name=name)

    assert [artifact async for artifact in bank.list()] == []
    assert await bank.find(name) is None


@pytest.mark.parametrize(
    "name", ["x" * 200, "a#b", "art:deco posters", "../../etc/passwd", "名前", "a b"]
)
async def test_any_other_text_is_a_name_and_taken_whole(store: Store, name: str) -> None:
    bank = Bank(store)
    await bank.put("x", name=name)

    assert await bank.get(name) == "x"


@pytest.mark.parametrize(
    "asked", [UNKNOWN, UNKNOWN[4:], "no-such-name", "ps-" + "0" * 32, "x" * 4_000, "", "\x00"]
)
async def test_what_is_not_there_is_none_to_find_and_an_error_to_the_rest(
    store: Store, asked: str
) -> None:
    bank = Bank(store)

    assert await bank.find(asked) is None
    assert await bank.delete(asked) is False
    for call in (bank.get(asked), bank.payload(asked), bank.read(asked), bank.search(asked, "x")):
        with pytest.raises(UnknownPointerError):
            await call


async def test_the_nearest_pointers_of_the_own_scope_are_named(store: Store) -> None:
    bank = Bank(store)
    artifacts = [await bank.put("x", name=f"report-{number}") for number in range(7)]
    foreign = await bank.scoped("other").put("x", name="report-3")
    mistyped = artifacts[3].pointer[:-1] + ("0" if artifacts[3].pointer[-1] != "0" else "1")

    with pytest.raises(UnknownPointerError) as caught:
        await bank.get(mistyped)

    assert len(caught.value.nearest) == 5
    assert caught.value.nearest[0].startswith(artifacts[3].pointer)
    assert foreign.pointer not in str(caught.value.nearest)


async def test_scopes_share_nothing(store: Store) -> None:
    bank, other = Bank(store, scope="a"), Bank(store, scope="b")
    artifact = await bank.put("secret", name="n")

    assert await other.find(artifact.pointer) is None
    assert await other.find("n") is None
    assert [each async for each in other.list()] == []
    assert await other.delete(artifact.pointer) is False
    assert await bank.get("n") == "secret"


async def test_an_inheriting_scope_reads_its_parent_and_writes_its_own(store: Store) -> None:
    parent = Bank(store)
    child = parent.scoped("worker", inherit=True)
    above = await parent.put("above", name="n")
    below = await child.put("below")

    assert await child.get(above.pointer) == "above"
    assert await child.get("n") == "above"
    assert (await child.read(above.pointer)).content == "above"
    assert (await child.search(above.pointer, "ABOVE")).total_matches == 1
    assert await parent.find(below.pointer) is None
    assert await child.delete(above.pointer) is False
    assert await parent.scoped("worker").find(above.pointer) is None


async def test_what_another_scope_granted_is_read_and_not_deleted(store: Store) -> None:
    owner, reader = Bank(store, scope="Owner"), Bank(store, scope="reader")
    artifact = await owner.put("shared")
    await owner.grant(artifact.pointer, to_scope="reader")

    assert await reader.get(artifact.pointer) == "shared"
    assert await reader.delete(artifact.pointer) is False
    assert await owner.get(artifact.pointer) == "shared"


@pytest.mark.parametrize("grant", [b"../x", b"", b"\xff", b"a/b", b"nobody"])
async def test_a_planted_grant_opens_nothing(store: Store, grant: bytes) -> None:
    bank = Bank(store)
    await store.put("s/default/grants/00000000-0000-4000-8000-000000000005", grant)

    assert await bank.find(UNKNOWN) is None


async def test_a_planted_listing_entry_is_passed_over(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put("x", name="n")
    await store.put("s/default/listing/0000000000000000-planted-5", b"")
    (folder,) = {key.rpartition("/")[0] async for key in store.keys("s/default/listing/")}

    assert folder == "s/default/listing"
    assert [each async for each in bank.list()] == [artifact]


async def test_an_empty_scope_is_refused() -> None:
    with pytest.raises(ValueError, match="a scope needs a name"):
        Bank(MemoryStore(), scope="")
    with pytest.raises(ValueError, match="a scope needs a name"):
        Bank(MemoryStore()).scoped("")


async def test_the_same_key_and_value_give_the_same_artifact(store: Store) -> None:
    first = await Bank(store).put("a", key="run/call_0")

    again = await Bank(store).put("a", key="run/call_0")

    assert again == first
    assert Pointer.parse(first.pointer).id[14] == "8"  # a UUIDv8
    assert len(await all_keys(store)) == 3


async def test_a_key_that_meets_another_value_gives_that_its_own_artifact(store: Store) -> None:
    bank = Bank(store)
    first = await bank.put("a", key="call_0")
    second = await bank.put("b", key="call_0")

    assert second.pointer != first.pointer
    assert (await bank.put("b", key="call_0")).pointer == second.pointer
    assert await bank.get(first.pointer) == "a"
    assert await bank.get(second.pointer) == "b"


async def test_a_key_is_of_its_scope_and_of_the_store_s_secret(store: Store) -> None:
    bank = Bank(store)
    pointers = {
        (await bank.put("a", key="k")).pointer,
        (await bank.scoped("other").put("a", key="k")).pointer,
        (await Bank(MemoryStore()).put("a", key="k")).pointer,
    }

    assert len(pointers) == 3


async def test_a_given_secret_makes_ids_equal_on_any_store() -> None:
    one, other = (Bank(MemoryStore(), secret=b"s" * 32) for _ in range(2))

    assert (await one.put("a", key="k")).pointer == (await other.put("a", key="k")).pointer


def test_a_secret_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="the secret has 32 bytes, got 31"):
        Bank(MemoryStore(), secret=b"s" * 31)


async def test_twenty_writers_of_one_key_leave_one_artifact(store: Store) -> None:
    banks = [Bank(store) for _ in range(20)]

    artifacts = await asyncio.gather(*(bank.put("same", key="k") for bank in banks))

    assert len({artifact.pointer for artifact in artifacts}) == 1
    assert len(await all_keys(store)) == 3


async def test_twenty_values_under_one_key_are_all_kept(store: Store) -> None:
    banks = [Bank(store) for _ in range(20)]

    artifacts = await asyncio.gather(
        *(bank.put(f"value {number}", key="k") for number, bank in enumerate(banks))
    )

    assert len({artifact.pointer for artifact in artifacts}) == 20
    values = [await banks[0].get(artifact.pointer) for artifact in artifacts]
    assert values == [f"value {number}" for number in range(20)]


async def test_an_artifact_expires_when_its_time_has_passed(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    artifact = await bank.put("x", name="n", ttl_seconds=60)
    clock.advance(59.9)
    assert await bank.get("n") == "x"

    clock.advance(0.2)

    assert await bank.find(artifact.pointer) is None
    assert [each async for each in bank.list()] == []
    for call in (bank.get(artifact.pointer), bank.get("n"), bank.read("n"), bank.search("n", "x")):
        with pytest.raises(ExpiredPointerError):
            await call


async def test_a_name_passes_over_what_has_expired(store: Store, clock: ManualClock) -> None:
    bank = Bank(store, clock=clock)
    await bank.put("older", name="n")
    await bank.put("newer", name="n", ttl_seconds=60)
    clock.advance(61)

    assert await bank.get("n") == "older"


async def test_a_key_whose_artifact_expired_is_written_anew(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    first = await bank.put("x", key="k", ttl_seconds=60)
    clock.advance(61)

    again = await bank.put("x", key="k")

    assert again.pointer == first.pointer
    assert await bank.get(first.pointer) == "x"
    assert len(await all_keys(store)) == 3


@pytest.mark.parametrize("ttl_seconds", [0, -1, float("nan"), float("inf")])
async def test_a_time_to_live_that_is_none_is_refused(ttl_seconds: float) -> None:
    with pytest.raises(InvalidArgumentError, match="ttl_seconds must be more than 0"):
        await Bank(MemoryStore()).put("x", ttl_seconds=ttl_seconds)


async def test_listing_is_newest_first_even_when_the_clock_stands_still(
    store: Store, clock: ManualClock
) -> None:
    bank = Bank(store, clock=clock)
    names = [f"n{number}" for number in range(30)]
    for name in names:
        await bank.put("x", name=name, kind="log" if name == "n3" else "other")

    assert [artifact.name async for artifact in bank.list()] == names[::-1]
    assert [artifact.name async for artifact in bank.list(kind="log")] == ["n3"]


async def test_a_deleted_artifact_leaves_nothing(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put("x", name="n")

    assert await bank.delete("n") is True

    assert await bank.delete(artifact.pointer) is False
    assert await bank.find("n") is None
    assert await all_keys(store) == []


async def test_what_another_process_deleted_is_unknown_here_too(store: Store) -> None:
    here, there = Bank(store), Bank(store)
    text, rows = await here.put(TEXT), await here.put([1, 2])
    for artifact in (text, rows):
        await here.read(artifact.pointer, limit=1)
        await there.delete(artifact.pointer)

    for call in (
        here.get(text.pointer),
        here.get(rows.pointer),
        here.read(text.pointer),
        here.read(rows.pointer),
        here.search(text.pointer, "needle"),
    ):
        with pytest.raises(UnknownPointerError):
            await call


async def test_what_another_process_wrote_anew_under_its_key_is_read_anew(store: Store) -> None:
    here, there = Bank(store), Bank(store)
    artifact = await here.put(TEXT, key="k")
    await here.read(artifact.pointer, limit=1)
    await there.delete(artifact.pointer)
    await there.put(TEXT, key="k")

    assert (await here.read(artifact.pointer, limit=4)).content == "żółć"
    assert (await here.search(artifact.pointer, "NEEDLE")).total_matches == 20_000


async def test_cleanup_takes_what_this_object_put_longer_ago(
    store: Store, clock: ManualClock
) -> None:
    bank, other = Bank(store, clock=clock), Bank(store, clock=clock)
    foreign, old = await other.put("foreign"), await bank.put("old")
    clock.advance(100)
    fresh = await bank.put("fresh")
    await bank.get(foreign.pointer)

    assert await bank.cleanup(older_than_seconds=50) == 1
    assert await bank.cleanup(older_than_seconds=50) == 0
    assert await bank.find(old.pointer) is None
    assert await bank.get(fresh.pointer) == "fresh"
    assert await bank.get(foreign.pointer) == "foreign"


async def test_cleanup_keeps_what_another_handle_put_under_the_same_key(
    store: Store, clock: ManualClock
) -> None:
    first, second = Bank(store, clock=clock), Bank(store, clock=clock)
    artifact = await first.put("x", key="k")
    clock.advance(100)
    assert await second.put("x", key="k") == artifact

    assert await second.cleanup(older_than_seconds=50) == 0
    assert await first.get(artifact.pointer) == "x"

    await second.delete(artifact.pointer)
    clock.advance(1)
    await second.put("x", key="k")

    assert await first.cleanup(older_than_seconds=0) == 0
    assert await first.get(artifact.pointer) == "x"
    clock.advance(1)
    assert await second.cleanup(older_than_seconds=0) == 1


async def test_cleanup_goes_on_while_other_threads_put() -> None:
    bank = Bank(MemoryStore())

    async def put() -> None:
        for _ in range(300):
            await bank.put("x")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: asyncio.run(put())) for _ in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert await bank.cleanup(older_than_seconds=3_600) == 0
    finally:
        sys.setswitchinterval(interval)
    for thread in threads:
        thread.join()

    assert len([artifact async for artifact in bank.list()]) == 600


async def test_cleanup_refuses_a_negative_age() -> None:
    with pytest.raises(ValueError, match="older_than_seconds must be 0 or more, got -1"):
        await Bank(MemoryStore()).cleanup(-1)


@pytest.mark.parametrize("part", ["payloads", "records", "listing", "names"])
async def test_a_put_that_fails_half_way_leaves_nothing_visible(part: str) -> None:
    store = Failing(part)
    bank = Bank(store)

    with pytest.raises(StoreUnavailableError):
        await bank.put("x", name="n")

    assert await all_keys(store) == []
    store.part = None
    assert await bank.get((await bank.put("x", name="n")).pointer) == "x"


async def test_a_put_that_is_cancelled_leaves_nothing_visible() -> None:
    class Slow(Plain):
        async def put(self, key: str, payload: bytes) -> None:
            await super().put(key, payload)
            if "records" in key:
                await asyncio.sleep(60)

    store = Slow()
    put = asyncio.create_task(Bank(store).put("x"))
    while not [key async for key in store.keys("s/default/records/")]:
        await asyncio.sleep(0)
    put.cancel()

    with pytest.raises(asyncio.CancelledError):
        await put
    assert [key async for key in store.keys("s/default/payloads/")] == []


async def test_a_cut_or_altered_payload_is_told_and_never_returned(store: Store) -> None:
    artifact = await Bank(store).put(TEXT)
    (key,) = [key async for key in store.keys("s/default/payloads/")]
    payload = await store.get(key)
    assert payload is not None

    await store.put(key, payload[:-1] + b"?")
    for call in (Bank(store).get(artifact.pointer), Bank(store).payload(artifact.pointer)):
        with pytest.raises(DamagedPayloadError):
            await call

    await store.put(key, payload.replace("żółć".encode(), b"\xff" * 8))
    with pytest.raises(DamagedPayloadError):
        await Bank(store).read(artifact.pointer, offset=100_000)

    await store.put(key, payload[:1_000])
    with pytest.raises(DamagedPayloadError):
        await Bank(store).read(artifact.pointer, offset=100_000)

    await store.delete(key)
    for call in (Bank(store).get(artifact.pointer), Bank(store).read(artifact.pointer),
                 Bank(store).search(artifact.pointer, "needle")):  # fmt: skip
        with pytest.raises(DamagedPayloadError):
            await call


@pytest.mark.parametrize("stored", [b'{"format":2}', b"", b"\xff", b"[]"])
async def test_a_store_of_another_format_is_refused_before_it_is_touched(stored: bytes) -> None:
    store = MemoryStore()
    await store.put("store/format", stored)

    for call in (Bank(store).put("x"), Bank(store).find("x"), anext(Bank(store).list())):
        with pytest.raises(StoreFormatError, match="not format 1"):
            await call
    assert await all_keys(store) == []


async def test_a_store_says_its_format_and_the_plain_names_of_its_scopes(store: Store) -> None:
    await Bank(store, scope="Review 1421").put("x")

    assert await store.get("store/format") == b'{"format":1}'
    assert await store.get("store/scopes/%52eview%201421") == b"Review 1421"


async def test_a_kind_with_a_prefix_gives_typed_pointers_every_process_knows(store: Store) -> None:
    bank = Bank(store, kinds=[Kind("product set", "ps"), Kind("report")])
    artifact = await bank.put([1], kind="product set")

    assert artifact.pointer == f"ps-{artifact.id.replace('-', '')}"
    assert await Bank(store).get(artifact.pointer) == [1]
    assert await Bank(store).knows_prefix("ps")
    assert not await Bank(store).knows_prefix("qs")
    assert await Bank(MemoryStore()).knows_prefix("plan")
    assert (await bank.put("x", kind="report")).pointer.startswith("art:")


async def test_a_label_of_spaces_is_the_kind(store: Store) -> None:
    artifact = await Bank(store).put("x", label="  ", kind="command-output")

    assert artifact.label == "command-output"


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ({"offset": -1}, "offset must be"),
        ({"limit": 0}, "limit must be"),
        ({"unit": "words"}, "unit"),
        ({"unit": "rows"}, "rows"),
    ],
)
async def test_a_window_outside_its_rule_is_refused_by_the_rule(
    call: dict[str, object], rule: str
) -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put(TEXT)

    with pytest.raises(InvalidArgumentError, match=rule) as caught:
        await bank.read(artifact.pointer, **call)  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize("needle", ["", "x" * 201])
async def test_a_needle_outside_its_rule_is_refused(needle: str) -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put(TEXT)

    with pytest.raises(InvalidArgumentError, match="1 to 200"):
        await bank.search(artifact.pointer, needle)


async def test_binary_is_read_by_bytes_only(store: Store) -> None:
    bank = Bank(store)
    artifact = await bank.put(bytes(range(256)) * 1_000)

    page = await bank.read(artifact.pointer, 256, 4, unit="bytes")

    assert page.content == b"\x00\x01\x02\x03"
    assert artifact.length_chars is None
    for call in (bank.read(artifact.pointer), bank.read(artifact.pointer, unit="lines"),
                 bank.search(artifact.pointer, "x")):  # fmt: skip
        with pytest.raises(BinaryPayloadError):
            await call


class Row(BaseModel):
    id: int


@pytest.mark.parametrize(
    ("value", "declared", "expected"),
    [
        ([{"id": 1}], str, '[{"id":1}]'),
        ([{"id": 1}], bytes, b'[{"id":1}]'),
        ([{"id": 1}], list[Row], [Row(id=1)]),
        ('[{"id": 1}]', list[Row], [Row(id=1)]),
        ('[{"id": 1}]', str, '[{"id": 1}]'),
        ('[{"id": 1}]', str | None, '[{"id": 1}]'),
        ('[{"id": 1}]', object, '[{"id": 1}]'),
        ("[1,2]", str | list[int], [1, 2]),
        ("not json", str | list[int], "not json"),
        ("12", int, 12),
        ("żółć", bytes, "żółć".encode()),
        (b"12", int, 12),
        (b"abc", str, "abc"),
        (b"\xff", bytes, b"\xff"),
        ({"a": 1}, dict[str, float], {"a": 1.0}),
    ],
)
async def test_a_declared_type_decides_how_a_payload_is_read(
    value: object, declared: object, expected: object
) -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put(value)

    assert await bank.get(artifact.pointer, declared) == expected


@pytest.mark.parametrize(("value", "declared"), [("secret text", int), (b"\xff", str), ([1], dict)])
async def test_a_payload_that_does_not_fit_is_refused_without_being_quoted(
    value: object, declared: type
) -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put(value)

    with pytest.raises(InvalidArgumentError) as caught:
        await bank.get(artifact.pointer, declared)
    assert "secret" not in str(caught.value)


async def test_a_value_without_an_encoding_is_refused_before_anything_is_written() -> None:
    store = MemoryStore()
    circle: list[object] = []
    circle.append(circle)

    with pytest.raises(UnencodableValueError):
        await Bank(store).put(circle)
    with pytest.raises(UnencodableValueError):
        await Bank(store).put("x", source={"at": 1j})
    assert await all_keys(store) == []


async def test_a_bank_serves_several_threads_and_loops_at_once(tmp_path: Path) -> None:
    bank = Bank(FileStore(tmp_path))
    failures: list[BaseException] = []

    async def work(number: int) -> None:
        for turn in range(10):
            text = f"{number}-{turn} " * 60_000
            artifact = await bank.put(text, name=f"{number}")
            assert await bank.get(artifact.pointer) == text
            assert (await bank.read(f"{number}", limit=3)).content == text[:3]

    def run(number: int) -> None:
        try:
            asyncio.run(work(number))
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len([artifact async for artifact in bank.list()]) == 40


async def test_no_value_stays_in_memory_beyond_the_cache(store: Store) -> None:
    bank = Bank(store, limits=Limits(cache_bytes=0))
    text = "x" * 100_000
    artifact = await bank.put(text)

    again = await bank.get(artifact.pointer)

    assert again == text
    assert again is not text
