"""Commands on a store that the environment names, and on Redis."""

from pathlib import Path
from typing import Any

import pytest

from coatcheck.testing import Server


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, coatcheck: Any) -> Any:
    """Return what runs a command where no variable names a store yet."""
    for name in ("COATCHECK_STORE", "REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_TTL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return coatcheck


def test_what_one_command_banks_on_redis_the_next_ones_read_list_and_remove(
    free: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COATCHECK_STORE", redis_url)

    put = free("put", "-", "--name", "report", given=b"line\n" * 20_000)
    assert put.code == 0
    pointer = put.text.strip()
    assert free("read", "report", "--lines", "7-8").text == "line\nline\n"
    assert pointer in free("ls").text
    assert free("show", pointer, "--json").json["expiresAt"]
    assert free("rm", pointer).code == 0
    assert free("read", pointer).code == 1
    assert not (tmp_path / "data").exists()


def test_the_option_goes_before_every_variable_and_each_before_the_next(
    free: Any, redis: Server, redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis.port)}
    places = {
        "data folder": {},
        "redis host": host,
        "redis url": {"REDIS_URL": redis_url},
        "variable": {"COATCHECK_STORE": f"file:{tmp_path / 'variable'}"},
    }
    for place, more in places.items():
        for name, text in more.items():
            monkeypatch.setenv(name, text)
        assert free("put", "-", "--name", place, given=place.encode()).code == 0
    option = ("--store", str(tmp_path / "option"))
    assert free("put", "-", "--name", "option", *option, given=b"option").code == 0

    names = [*places, "option"]
    for names_before, name in ((names[:-1], "option"),):
        assert [each["name"] for each in free("ls", "--json", *option).json] == [name]
        assert all(free("read", other, *option).code == 1 for other in names_before)
    for name in ("COATCHECK_STORE", "REDIS_URL", "REDIS_HOST"):
        place = names.pop(-2)
        assert [each["name"] for each in free("ls", "--json").json] == [place]
        monkeypatch.delenv(name)
    assert [each["name"] for each in free("ls", "--json").json] == ["data folder"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("REDIS_URL", "http://:hunter2@host", "REDIS_URL is one of redis://"),
        ("REDIS_URL", "redis://:hunter2@host?colour=1", "no option 'colour'"),
        ("COATCHECK_STORE", "rediss://:hunter2@host/x", "number of a database"),
        ("REDIS_PORT", "hunter", "REDIS_PORT is a number"),
    ],
)
def test_a_variable_that_names_no_store_is_told_by_its_name_without_its_password(
    free: Any, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.setenv("REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv(name, text)

    done = free("ls", "--json")

    assert done.code == 2
    assert said in done.failure["message"]
    assert name in done.failure["hint"] or name == "COATCHECK_STORE"
    assert "hunter2" not in done.err


def test_a_redis_that_is_out_of_reach_is_told_without_its_password(
    free: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2@127.0.0.1:1/0?prefix=a")

    done = free("ls", "--json")

    assert done.code == 3
    assert done.failure["error"] == "store-unavailable"
    assert "redis://…@127.0.0.1:1/0" in done.failure["hint"]
    assert "hunter2" not in done.err


_READING = [
    ["ls"],
    ["show", "report"],
    ["read", "report"],
    ["search", "report", "text"],
    ["query", "report", "$"],
    ["rm", "report"],
]


@pytest.mark.parametrize("command", _READING, ids=lambda command: command[0])
def test_a_mistyped_store_is_told_by_every_command_that_reads(
    free: Any, command: list[str], tmp_path: Path
) -> None:
    typo, folder = tmp_path / "typo", tmp_path / "no-store"
    folder.mkdir()
    (folder / "report").write_text("of somebody else")

    for place in (typo, folder):
        done = free(*command, "--store", str(place), "--json")
        assert (done.code, done.out) == (1, b"")
        assert done.failure["error"] == "not-found"
        assert f"There is no store at '{place}'" in done.failure["message"]
        assert "coatcheck put" in done.failure["hint"]
    assert not typo.exists()
    assert [each.name for each in folder.iterdir()] == ["report"]


@pytest.mark.parametrize("command", _READING, ids=lambda command: command[0])
def test_a_server_that_holds_no_store_is_told_without_its_password(
    free: Any, command: list[str], redis_url: str
) -> None:
    done = free(*command, "--store", redis_url, "--json")

    assert (done.code, done.failure["error"]) == (1, "not-found")
    assert "There is no store at 'redis://" in done.failure["message"]
    assert "prefix" not in done.err


def test_a_store_whose_artifacts_are_all_gone_is_there(free: Any, tmp_path: Path) -> None:
    where = ("--store", str(tmp_path / "store"))
    free("put", "-", "--name", "report", *where, given=b"text")
    free("rm", "report", *where)

    done = free("ls", *where)

    assert (done.code, done.text) == (0, "")
    assert "nothing is banked here" in done.err
