"""`coatcheck gc`, for people and for programs."""

import json
import os
import time
from pathlib import Path

import pytest

from coatcheck import BlockingBank
from coatcheck.testing import S3Server

from .conftest import Run

NOTHING: dict[str, object] = {
    "dryRun": False, "scopes": 1, "artifacts": 0, "expired": 0, "evicted": 0, "sizeBytes": 0,
    "held": 0, "relisted": 0, "payloads": 0, "tombstones": 0, "leftovers": 0, "damaged": [],
}  # fmt: skip


@pytest.fixture
def filled(store: str) -> str:
    """Return the store, with two artifacts of ten, of which one has expired."""
    with BlockingBank(store) as bank:
        for number in range(10):
            bank.put(f"{number}" * 100, ttl_seconds=0.001 if number < 2 else None)
    time.sleep(0.002)
    return store


def count(store: str) -> int:
    with BlockingBank(store) as bank:
        return bank.usage().artifacts


def test_what_has_expired_is_removed_and_told(coatcheck: Run, filled: str) -> None:
    done = coatcheck("gc")

    assert (done.code, done.err) == (0, "")
    assert done.text == "removed 2 expired and 0 other artifacts, 200 B, of 10 in 1 scopes\n"
    assert count(filled) == 8
    assert coatcheck("gc", "--json").json == {**NOTHING, "artifacts": 8}


def test_what_is_old_or_too_much_goes_on_demand(coatcheck: Run, filled: str) -> None:
    assert coatcheck("gc", "--older-than", "1h", "--json").json["evicted"] == 0
    assert coatcheck("gc", "--quota", "500", "--json").json["evicted"] == 3
    assert coatcheck("gc", "--older-than", "0s").text.startswith("removed 0 expired and 5 other")
    assert count(filled) == 0


def test_a_dry_run_says_what_would_go(coatcheck: Run, filled: str) -> None:
    done = coatcheck("gc", "--older-than", "0s", "--dry-run")

    assert done.text == "would remove 2 expired and 8 other artifacts, 1.0 kB, of 10 in 1 scopes\n"
    assert count(filled) == 10
    assert coatcheck("gc", "--dry-run", "--json").json["dryRun"] is True


def test_one_scope_is_collected_and_an_unknown_one_is_not_found(
    coatcheck: Run, filled: str
) -> None:
    with BlockingBank(filled, scope="run 7") as bank:
        bank.put("x")

    assert coatcheck("gc", "--scope", "run 7", "--older-than", "0s", "--json").json["evicted"] == 1
    missing = coatcheck("gc", "--scope", "run 8", "--json")

    assert missing.code == 1
    assert missing.failure["error"] == "not-found"
    assert "run 8" in missing.failure["message"]
    assert count(filled) == 10


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--older-than", "7"), "an age is a number"),
        (("--quota", "much"), "a size is a number"),
        (("--store", "memory:"), "memory: holds nothing"),
        (("--store", "ftp:x"), "no store at"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    coatcheck: Run, arguments: tuple[str, str], told: str
) -> None:
    done = coatcheck("gc", *arguments)

    assert done.code == 2
    assert told in done.err


def test_what_was_removed_reads_as_expired_with_what_it_was(coatcheck: Run, store: str) -> None:
    with BlockingBank(store) as bank:
        pointer = bank.put("GET /health 200\n" * 900, name="access log").pointer
    coatcheck("gc", "--older-than", "0s")

    told = coatcheck("read", pointer)
    as_json = coatcheck("read", pointer, "--json").failure

    assert told.code == 1
    assert "has expired (named 'access log', 14,400 bytes)" in told.err
    assert "It was: 900 lines" in told.err
    assert as_json["error"] == "expired"
    assert as_json["glimpse"].startswith("900 lines")


def test_the_rest_is_told_beside_it_and_damage_by_pointer(
    coatcheck: Run, store: str, tmp_path: Path
) -> None:
    with BlockingBank(store) as bank:
        held, damaged = bank.put("held"), bank.put("damaged", ttl_seconds=0.001)
        with bank.run("r1"):
            bank.get(held.pointer)
            folder = tmp_path / "store" / "s" / "default"
            (folder / "records" / damaged.id).write_bytes(b"damaged")
            orphan = folder / "payloads" / "00000000-0000-4000-8000-000000000005-00000000.txt"
            orphan.write_bytes(b"x")
            old = time.time() - 86_401
            os.utime(orphan, (old, old))

            done = coatcheck("gc", "--older-than", "0s")

    assert "1 held by live runs, 1 payloads of writers that died" in done.err
    assert f"{damaged.pointer}: its record is damaged" in done.err


def test_a_terminal_is_shown_a_bar(in_terminal: Run, filled: str) -> None:
    done = in_terminal("gc", "--older-than", "0s")

    assert done.code == 0
    assert "artifacts" in done.err
    assert "18/18" in done.err  # ten were looked at, and eight of them are old


def test_a_store_whose_clock_differs_is_left_alone(
    coatcheck: Run, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 120)

    done = coatcheck("gc", "--older-than", "0s")

    monkeypatch.undo()
    assert done.code == 2
    assert "the clock of the store is 120 s behind" in done.err


def test_object_stores_are_collected_too(coatcheck: Run, s3: S3Server) -> None:
    address = s3.address("gc-command")
    with BlockingBank(address) as bank:
        bank.put("x" * 100)

    done = coatcheck("gc", "--older-than", "0s", "--store", address, "--json")

    assert json.loads(done.out) == {**NOTHING, "artifacts": 1, "evicted": 1, "sizeBytes": 100}


def test_where_no_store_is_that_is_told_and_none_is_made(coatcheck: Run, tmp_path: Path) -> None:
    done = coatcheck("gc", "--store", f"file:{tmp_path / 'typo'}")

    assert done.code == 1
    assert "There is no store at" in done.err
    assert not (tmp_path / "typo").exists()


def test_where_the_default_store_is_still_empty_there_is_nothing_to_do(
    coatcheck: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COATCHECK_STORE", "REDIS_URL", "REDIS_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    done = coatcheck("gc", "--json")

    assert done.json == {**NOTHING, "scopes": 0}


def test_a_store_that_fails_is_told_and_what_was_done_is_right(
    coatcheck: Run, filled: str, tmp_path: Path
) -> None:
    assert filled
    (tmp_path / "store" / "store" / "format").write_bytes(b'{"format":9}')

    done = coatcheck("gc")

    assert done.code == 3
    assert "what was done so far is right" in done.err
