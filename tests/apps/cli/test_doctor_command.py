"""`coatcheck doctor`: what is well, what is wrong and its remedy, on real stores of each kind."""

import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from coatcheck.apps.cli._doctor import Finding, examine
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore, Store, Vitals
from coatcheck.testing import S3Server, redis_server

from .conftest import Run

BARE: Any = redis.Redis
GB = 1_000_000_000


async def findings(store: Store) -> dict[str, Finding]:
    return {found.check: found async for found in examine(store, "memory:", None)}


def test_a_new_folder_is_well_and_left_empty(coatcheck: Run, tmp_path: Path) -> None:
    done = coatcheck("doctor", "--json")

    assert (done.code, done.err, done.json["ok"]) == (0, "", True)
    checks = {each["check"]: each for each in done.json["checks"]}
    assert list(checks) == [
        "versions", "extras", "reached", "permissions", "create", "privacy", "room", "clock",
    ]  # fmt: skip
    assert {each["state"] for each in checks.values()} <= {"ok", "warning"}
    assert "Python" in checks["versions"]["told"]
    assert "object" in checks["extras"]["told"]
    assert " free of " in checks["room"]["told"]
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("kind", ["s3", "redis"])
def test_servers_are_well(kind: str, coatcheck: Run, request: pytest.FixtureRequest) -> None:
    address: str = (
        request.getfixturevalue("s3").address("doctor")
        if kind == "s3"
        else request.getfixturevalue("redis_url")
    )
    done = coatcheck("doctor", "--store", address)

    assert done.code == 0
    lines = [line.split("\t") for line in done.text.splitlines()]
    assert {state for state, *_ in lines} == {"ok"}
    assert {"reached", "permissions", "create", "clock"} < {check for _, check, *_ in lines}
    assert "testsecret" not in done.text


def test_what_fails_is_told_with_its_remedy_and_without_secrets(
    coatcheck: Run, s3: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    for address, told, remedy in (
        (s3.address("doctor", secret="hush"), "denies access", "Check the credentials"),
        (s3.address("doctor").replace("//artifacts", "//nowhere"), "no such bucket", "Make it"),
        ("s3://a?endpoint=http://127.0.0.1:9&region=x&access_key_id=a&secret_access_key=hush",
         "did not answer", "Look at endpoint"),
        (f"file:{tmp_path / 'file'}", "Not a directory", "is its address right"),
    ):  # fmt: skip
        done = coatcheck("doctor", "--store", address, "--json")

        assert (done.code, done.json["ok"]) == (3, False)
        last = done.json["checks"][-1]
        assert (last["check"], last["state"]) == ("reached", "failed")
        assert told in last["told"]
        assert remedy in last["remedy"]
        assert "hush" not in done.text


def test_what_a_redis_refuses_has_a_remedy_of_its_own(coatcheck: Run, tmp_path: Path) -> None:
    allowed = ("~coatcheck:*", "+@all", "-@dangerous", "+info")  # as the remedy says
    with redis_server(tmp_path, "--maxmemory", "100mb") as own:

        def as_user(name: str) -> str:
            return own.url.replace("//", f"//{name}:hush@")

        with BARE.from_url(own.url) as server:
            for name, rules in (("reader", ("~*", "+get")), ("writer", allowed)):
                server.execute_command("ACL", "SETUSER", name, "on", ">hush", *rules)
            assert "USER:PASSWORD" in failed_remedy(coatcheck, as_user("nobody"))
            assert "ACL SETUSER" in failed_remedy(coatcheck, as_user("reader"))
            assert coatcheck("doctor", "--store", as_user("writer")).code == 0
            server.config_set("maxmemory", 1)
            assert "maxmemory" in failed_remedy(coatcheck, own.url)
            server.config_set("maxmemory", "100mb")
            server.execute_command("REPLICAOF", "127.0.0.1", "1")
            assert "replica" in failed_remedy(coatcheck, own.url)


def failed_remedy(coatcheck: Run, address: str) -> str:
    done = coatcheck("doctor", "--store", address, "--json")

    assert (done.code, done.json["ok"]) == (3, False)
    assert "hush" not in done.text
    remedy: str = done.json["checks"][-1]["remedy"]
    return remedy


def test_a_missing_extra_is_told_with_its_name(
    coatcheck: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)

    done = coatcheck("doctor", "--store", "s3://bucket", "--json")

    assert done.code == 3
    assert "coatcheck[object]" in done.json["checks"][-1]["remedy"]


@pytest.mark.parametrize("address", ["memory:", "ftp://x", "s3:bucket"])
def test_an_address_without_a_store_is_wrong_usage(address: str, coatcheck: Run) -> None:
    assert coatcheck("doctor", "--store", address).code == 2


def test_a_folder_that_others_may_open_is_a_warning(coatcheck: Run, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o755)

    done = coatcheck("doctor")

    assert done.code == 0
    assert "warning\tprivacy\tother users" in done.text
    assert f"chmod 700 {folder}" in done.text


def test_a_terminal_gets_a_sign_for_each_check(in_terminal: Run) -> None:
    done = in_terminal("doctor")

    assert done.code == 0
    assert "✓" in done.text
    assert "reached" in done.text


async def test_another_format_is_told_as_such() -> None:
    store = MemoryStore()
    await store.put("store/format", b'{"format":99}')

    assert (await findings(store))["reached"].state == "failed"
    assert "another format" in (await findings(store))["reached"].told


async def test_a_create_that_overwrites_has_failed() -> None:
    class Overwriting(MemoryStore):
        async def create(self, key: str, payload: bytes) -> bool:
            await self.put(key, payload)
            return True

    found = (await findings(Overwriting()))["create"]

    assert found.state == "failed"
    assert "conditional puts" in found.remedy


async def test_a_store_without_create_is_for_one_process() -> None:
    class Plain:
        def __init__(self) -> None:
            inner = MemoryStore()
            self.put, self.get, self.delete = inner.put, inner.get, inner.delete
            self.keys, self.close = inner.keys, inner.close

    found = (await findings(Plain()))["create"]

    assert found.state == "warning"
    assert "One process" in found.remedy


async def test_a_listing_that_lags_has_failed() -> None:
    class Lagging(MemoryStore):
        async def keys(self, folder: str) -> AsyncIterator[str]:
            nothing: tuple[str, ...] = ()
            for key in nothing:
                yield key

    found = await findings(Lagging())

    assert found["list"].state == "failed"
    assert list(found) == ["reached", "list"]


class Telling(MemoryStore):
    """A store in memory that says of itself what a test wants."""

    def __init__(self, vitals: Vitals) -> None:
        super().__init__()
        self.told = vitals

    async def vitals(self) -> Vitals:
        return self.told


@pytest.mark.parametrize(
    ("seconds", "state", "told"),
    [
        (0, "ok", "agrees"),
        (-1, "ok", "agrees"),
        (3.9, "warning", "ahead"),
        (-10, "warning", "behind"),
        (100, "failed", "ahead"),
        (-3_600, "failed", "3,600 s behind"),
    ],
)
async def test_a_clock_that_is_off_is_told(seconds: float, state: str, told: str) -> None:
    now = datetime.now(UTC) + timedelta(seconds=seconds)

    found = (await findings(Telling(Vitals(now=now))))["clock"]

    assert found.state == state
    assert told in found.told
    assert ("NTP" in found.remedy) == (state != "ok")


async def test_a_clock_in_whole_seconds_is_not_behind() -> None:
    now = datetime.now(UTC) - timedelta(seconds=2.5)
    vitals = Vitals(now=now, now_within_seconds=1.0)

    assert (await findings(Telling(vitals)))["clock"].state == "ok"


@pytest.mark.parametrize(
    ("free_bytes", "state"),
    [
        (None, "ok"),
        (GB, "ok"),
        (GB - 1, "warning"),
        (50_000_000, "warning"),
        (49_999_999, "failed"),
    ],
)
async def test_room_that_runs_out_is_told(free_bytes: int | None, state: str) -> None:
    vitals = Vitals(free_bytes=free_bytes, total_bytes=10 * GB)

    assert (await findings(Telling(vitals)))["room"].state == state


class Refusing(MemoryStore):
    """A store in memory that refuses one kind of call on the doctor's own keys."""

    def __init__(self, refused: str) -> None:
        super().__init__()
        self.refused = refused

    def look(self, call: str, key: str) -> None:
        if call == self.refused and "doctor" in key:
            raise StoreUnavailableError("no, hush")

    async def put(self, key: str, payload: bytes) -> None:
        self.look("write", key)
        await super().put(key, payload)

    async def get(self, key: str) -> bytes | None:
        self.look("read", key)
        return await super().get(key)

    async def keys(self, folder: str) -> AsyncIterator[str]:
        self.look("list", folder)
        async for key in super().keys(folder):
            yield key

    async def delete(self, key: str) -> None:
        self.look("delete", key)
        await super().delete(key)

    async def create(self, key: str, payload: bytes) -> bool:
        self.look("create", key)
        return await super().create(key, payload)

    async def vitals(self) -> Vitals:
        self.look("room", "doctor")
        return Vitals()


@pytest.mark.parametrize("step", ["write", "read", "list", "delete", "create", "room"])
async def test_whichever_call_is_refused_is_named(step: str) -> None:
    found = await findings(Refusing(step))

    assert [check for check, each in found.items() if each.state == "failed"] == [step]
    assert found[step].remedy


async def test_what_a_store_does_not_tell_is_well() -> None:
    found = await findings(Refusing("nothing"))

    assert {each.state for each in found.values()} == {"ok"}
    assert "tells no time" in found["clock"].told
