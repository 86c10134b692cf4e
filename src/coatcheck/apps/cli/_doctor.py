"""What can be wrong with an installation and its store, and the remedy for each."""

import platform
import re
import secrets
import stat
import sys
import time
from collections.abc import AsyncGenerator
from importlib import metadata
from pathlib import Path
from typing import Literal

from ...bank import Bank, without_secrets
from ...errors import StoreError, StoreFormatError, StoreUnavailableError
from ...records import dataclass
from ...stores import FileStore, Store, SupportsCreate, SupportsRange, SupportsVitals, Vitals
from ._lines import human_size

State = Literal["ok", "warning", "failed"]

_TESTED = frozenset({"linux", "darwin"})
_EXTRA = re.compile(r"""^([A-Za-z0-9._-]+).*;\s*extra\s*==\s*['"]([a-z0-9]+)['"]""")
_OTHERS_BITS = 0o077
_SKEW_WARNING_SECONDS = 2.0
_SKEW_FAILED_SECONDS = 60.0
_ROOM_WARNING_BYTES = 1_000_000_000
_ROOM_FAILED_BYTES = 50_000_000

_REMEDIES = {
    "the service denies access": "Check the credentials, and that they may read, write, list and "
    "delete there.",
    "there is no such bucket or container": "Make it, or look at its name and region in the "
    "address.",
    "the service did not answer": "Look at endpoint and region in the address, and whether this "
    "machine reaches it.",
    "the service has no room": "Remove what is not needed, or raise the quota.",
    "No space left on device": "Remove what is not needed, or name a store on another disk.",
    "Permission denied": "Let this user own the folder, or name another one with --store.",
    "Read-only file system": "Name a store on another disk with --store.",
    "the service cannot create a key only where there is none": "Coatcheck rests on conditional "
    "puts (If-None-Match): use a service that has them.",
    "the Redis server refuses the user name or password": "Put both into the address: "
    "redis://USER:PASSWORD@HOST, or into REDIS_USERNAME and REDIS_PASSWORD.",
    "the Redis server does not permit this user to do that": "Permit it, with the prefix of the "
    "store: ACL SETUSER NAME ~coatcheck:* +@all -@dangerous +info",
    "the Redis server can only be read": "It is a replica: name the server that it follows.",
    "the Redis server has no memory left": "Remove what is not needed, or raise `maxmemory`.",
    "the Redis server cannot write to its disk": "Look at its log and the room on its disk.",
    "this Redis server is a cluster, which is not supported": "Name one that is no cluster.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look has found."""

    check: str
    state: State
    told: str
    remedy: str = ""


def installation() -> list[Finding]:
    """Look at what is installed here."""
    system = f"{platform.system()} {platform.machine()}"
    versions = f"coatcheck {metadata.version('coatcheck')}, Python {platform.python_version()}"
    is_tested = sys.platform in _TESTED
    return [
        Finding(
            "versions",
            "ok" if is_tested else "warning",
            f"{versions}, {system}",
            "" if is_tested else "Coatcheck is tested on Linux and macOS only.",
        ),
        _extras(),
    ]


async def examine(store: Store, address: str, folder: Path | None) -> AsyncGenerator[Finding, None]:
    """Look at a store: whether it answers, what may be done there, its room and its clock.

    Args:
        store: Written to under ``store/doctor/``; what is written is removed again.
        address: As it was given.
        folder: Where a file store lies, None of others.
    """
    try:
        # Looks at the format first, and finds nothing then.
        await Bank(store).find("doctor")
    except StoreError as error:
        yield _failed("reached", error)
        return
    yield Finding("reached", "ok", f"{without_secrets(address)} answers")
    may_write = True
    async for finding in _permissions(store):
        may_write = may_write and finding.state != "failed"
        yield finding
    if not may_write:
        return
    if folder is not None:
        yield _privacy(folder)
    if not isinstance(store, SupportsVitals):
        return
    before = time.time()
    try:
        vitals = await store.vitals()
    except StoreError as error:
        yield _failed("room", error)
        return
    yield _room(vitals)
    yield _clock(vitals, before, time.time(), is_file=isinstance(store, FileStore))


def skew_seconds(vitals: Vitals, before: float, after: float) -> float:
    """Return by how much the clock of a store is ahead of ours, below 0 where it is behind.

    Args:
        vitals: What it said.
        before: Our clock when it was asked.
        after: Our clock when it had answered.
    """
    if vitals.now is None:
        return 0.0
    earliest = vitals.now.timestamp()
    latest = earliest + vitals.now_within_seconds
    # What is asked for between two looks at our clock is told for some moment in between.
    return earliest - after if earliest > after else min(latest - before, 0.0)


def _extras() -> Finding:
    missing: set[str] = set()
    known: set[str] = set()
    for requirement in metadata.requires("coatcheck") or ():
        match = _EXTRA.match(requirement)
        if match is None or match[2] == "all":
            continue
        known.add(match[2])
        try:
            metadata.version(match[1])
        except metadata.PackageNotFoundError:
            missing.add(match[2])
    told = f"installed: {', '.join(sorted(known - missing)) or 'none'}"
    if not missing:
        return Finding("extras", "ok", told)
    names = ",".join(sorted(missing))
    return Finding(
        "extras",
        "ok",
        f"{told}; not installed: {', '.join(sorted(missing))}",
        f"Where they are needed: pip install 'coatcheck[{names}]'",
    )


async def _permissions(store: Store) -> AsyncGenerator[Finding, None]:
    folder = "store/doctor/"
    key, payload = f"{folder}{secrets.token_hex(8)}", secrets.token_bytes(32)
    step = "write"
    try:
        await store.put(key, payload)
        step = "read"
        found = await store.get(key)
        if isinstance(store, SupportsRange):
            found = found and await store.get_range(key, 0, len(payload))
        step = "list"
        is_listed = key in [each async for each in store.keys(folder)]
        step = "delete"
        await store.delete(key)
        is_gone = await store.get(key) is None
    except StoreError as error:
        yield _failed(step, error)
        return
    if found != payload or not is_listed or not is_gone:
        what = "read" if found != payload else "list" if not is_listed else "delete"
        yield Finding(
            what,
            "failed",
            "what was written does not come back as it should",
            "This store is not consistent: no list, read or delete may lag behind a write.",
        )
        return
    yield Finding("permissions", "ok", "may write, read, list and delete")
    yield await _exclusive(store, f"{key}-create")


async def _exclusive(store: Store, key: str) -> Finding:
    if not isinstance(store, SupportsCreate):
        return Finding(
            "create",
            "warning",
            "this store cannot create a key only where there is none",
            "One process at a time may write to it.",
        )
    try:
        first, second = await store.create(key, b"1"), await store.create(key, b"2")
        kept = await store.get(key)
        await store.delete(key)
    except StoreError as error:
        return _failed("create", error)
    if (first, second, kept) == (True, False, b"1"):
        return Finding("create", "ok", "of several writers exactly one wins")
    return Finding(
        "create",
        "failed",
        "a second writer overwrites what a first one created",
        "The service ignores If-None-Match: use one that has conditional puts.",
    )


def _privacy(folder: Path) -> Finding:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & _OTHERS_BITS:
        return Finding("privacy", "ok", "only this user may open the folder")
    return Finding(
        "privacy",
        "warning",
        f"other users of this machine may open the folder, its mode is {mode:04o}",
        f"chmod 700 {folder}",
    )


def _room(vitals: Vitals) -> Finding:
    free_bytes = vitals.free_bytes
    if free_bytes is None:
        return Finding("room", "ok", "the store tells no limit")
    told = f"{human_size(free_bytes)} free of {human_size(vitals.total_bytes or 0)}"
    if free_bytes >= _ROOM_WARNING_BYTES:
        return Finding("room", "ok", told)
    state: State = "failed" if free_bytes < _ROOM_FAILED_BYTES else "warning"
    return Finding("room", state, told, "Remove what is not needed, or give the store more room.")


def _clock(vitals: Vitals, before: float, after: float, *, is_file: bool) -> Finding:
    if vitals.now is None:
        return Finding("clock", "ok", "the store tells no time")
    signed = skew_seconds(vitals, before, after)
    skew, ahead = abs(signed), "ahead of" if signed > 0 else "behind"
    if skew <= _SKEW_WARNING_SECONDS:
        return Finding("clock", "ok", "agrees with that of the store")
    state: State = "failed" if skew > _SKEW_FAILED_SECONDS else "warning"
    whose = "of the folder's file system" if is_file else "of the store"
    return Finding(
        "clock",
        state,
        f"the clock {whose} is {skew:,.0f} s {ahead} this machine's",
        "Let both follow a time server (NTP): lives end, and the newest is found, by the clock.",
    )


def _failed(check: str, error: StoreError) -> Finding:
    if isinstance(error, StoreFormatError):
        return Finding(check, "failed", str(error), error.hint)
    reason = error.reason if isinstance(error, StoreUnavailableError) else ""
    return Finding(
        check,
        "failed",
        str(error),
        _REMEDIES.get(reason, "Is the store running, and is its address right? See --store."),
    )
