"""`coatcheck migrate`, for people and for programs: between files and S3, killed and run again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coatcheck import BlockingBank
from coatcheck.testing import S3Server

from .conftest import Run


@pytest.fixture
def filled(tmp_path: Path) -> str:
    address = f"file:{tmp_path / 'from'}"
    for scope in ("default", "run 7"):
        with BlockingBank(address, scope=scope) as bank:
            for number in range(5):
                bank.put(f"value {number} " * 1_000, name=f"name {number}")
    return address


def test_artifacts_are_copied_and_counted(coatcheck: Run, filled: str, tmp_path: Path) -> None:
    target = f"file:{tmp_path / 'to'}"
    done = coatcheck("migrate", filled, target)

    assert (done.code, done.err) == (0, "")
    assert done.text == "copied 10 artifacts, 80.0 kB; 0 were there, 0 had expired\n"
    with BlockingBank(target, scope="run 7") as bank:
        assert bank.get("name 3") == "value 3 " * 1_000

    again = coatcheck("migrate", filled, target, "--verify", "--json")
    assert again.json == {
        "copied": 0, "skipped": 10, "expired": 0, "sizeBytes": 0, "limited": 0, "damaged": [],
        "kept": [], "hasOwnSecret": False,
    }  # fmt: skip


def test_one_scope_is_copied_and_an_unknown_one_is_not_found(
    coatcheck: Run, filled: str, tmp_path: Path
) -> None:
    target = f"file:{tmp_path / 'to'}"

    assert coatcheck("migrate", filled, target, "--scope", "run 7", "--json").json["copied"] == 5
    missing = coatcheck("migrate", filled, target, "--scope", "run 8", "--json")
    assert missing.code == 1
    assert missing.failure["error"] == "not-found"
    assert "run 8" in missing.failure["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory:", "file:x"),
        ("file:x", "memory:"),
        ("file:x", "file:x"),
        ("ftp:x", "file:x"),
        ("file:x", "s3://"),
        ("file:x",),
    ],
)
def test_what_cannot_be_copied_is_wrong_usage(coatcheck: Run, arguments: tuple[str, ...]) -> None:
    done = coatcheck("migrate", *arguments, "--json")

    assert done.code == 2
    assert done.failure["error"] == "invalid-argument"


def test_what_is_damaged_is_named_and_ends_with_3(
    coatcheck: Run, filled: str, tmp_path: Path
) -> None:
    payload = next((tmp_path / "from" / "s" / "default" / "payloads").iterdir())
    payload.write_bytes(b"torn")

    done = coatcheck("migrate", filled, f"file:{tmp_path / 'to'}")

    assert done.code == 3
    assert "copied 9 artifacts" in done.text
    assert f"art:{payload.name[:36]}: damaged in FROM, and not copied" in done.err


def test_a_target_with_a_secret_of_its_own_is_told(
    coatcheck: Run, filled: str, tmp_path: Path
) -> None:
    target = f"file:{tmp_path / 'to'}"
    for address in (filled, target):
        with BlockingBank(address) as bank:
            bank.put("keyed", key="call")

    done = coatcheck("migrate", filled, target)

    assert done.code == 0
    assert f"{target} has a secret of its own" in done.err


def test_what_stays_in_files_and_goes_from_redis_by_itself_is_told(
    coatcheck: Run, filled: str, redis_url: str
) -> None:
    with BlockingBank(filled) as bank:
        bank.put("goes anyway", ttl_seconds=1_000)

    done = coatcheck("migrate", filled, redis_url)
    again = coatcheck("migrate", filled, redis_url, "--json")

    assert done.code == 0
    assert done.err.startswith("10 that stay in FROM go in TO after its own time to live")
    assert again.json["limited"] == 0


def test_a_store_that_fails_is_told_without_secrets_and_what_to_do(
    coatcheck: Run, filled: str, s3: S3Server
) -> None:
    done = coatcheck("migrate", filled, s3.address("cli", secret="hush"), "--json")

    assert done.code == 3
    assert done.failure["error"] == "store-unavailable"
    assert "Run it again" in done.failure["hint"]
    assert "hush" not in done.err


def test_a_terminal_sees_how_far_it_is(in_terminal: Run, filled: str, tmp_path: Path) -> None:
    done = in_terminal("migrate", filled, f"file:{tmp_path / 'to'}")

    assert done.code == 0
    assert "5/10" in done.err or "10/10" in done.err


def test_a_killed_copy_to_s3_is_finished_by_the_next(
    coatcheck: Run, s3: S3Server, tmp_path: Path
) -> None:
    source, target = f"file:{tmp_path / 'from'}", s3.address("cli/killed")
    with BlockingBank(source) as bank:
        values = {bank.put(os.urandom(700_000)).pointer: None for _ in range(30)}
    command: list[str | Path] = [
        Path(sys.executable).with_name("coatcheck"),
        "migrate",
        source,
        target,
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        with BlockingBank(target) as bank:
            while killed.poll() is None and not any(True for _ in bank.list()):
                pass
        killed.kill()

    with BlockingBank(target) as bank:
        for artifact in bank.list():
            assert len(bank.payload(artifact.pointer)) == 700_000
    done = coatcheck("migrate", source, target, "--verify", "--json")

    assert done.code == 0
    assert done.json["copied"] + done.json["skipped"] == 30
    assert done.json["skipped"] >= 1
    with BlockingBank(source) as old, BlockingBank(target) as new:
        assert all((old.payload(pointer) == new.payload(pointer)) is True for pointer in values)


def test_a_folder_that_is_not_there_is_no_store_to_copy(coatcheck: Run, tmp_path: Path) -> None:
    done = coatcheck("migrate", f"file:{tmp_path / 'typo'}", f"file:{tmp_path / 'to'}", "--json")

    assert (done.code, done.failure["error"]) == (1, "not-found")
    assert "typo" in done.failure["message"]
    assert not (tmp_path / "to").exists()
