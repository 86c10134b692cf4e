"""Configurations on disk: backups, rights, and files that are never harmed."""

import stat
from pathlib import Path

import pytest

from coatcheck.apps.proxy._jsonc import parse_jsonc
from coatcheck.apps.proxy._wrap_files import plan_unwrap, plan_wrap
from coatcheck.errors import InvalidArgumentError

START = ["/bin/coatcheck", "proxy"]
TEXT = '{\r\n  "mcpServers": {"a": {"command": "x", "env": {"T": "s3cret"}}} // ä\r\n}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_bytes(TEXT.encode())
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_plan_alone_writes_nothing(file: Path) -> None:
    plan = plan_wrap(file, START)

    assert plan.is_needed
    assert plan.diff()
    assert contents(file.parent) == {"mcp.json": TEXT.encode()}


def test_a_backup_holds_what_was_there(file: Path) -> None:
    plan_wrap(file, START).carry_out()

    assert (file.parent / "mcp.json.before-coatcheck").read_bytes() == TEXT.encode()


def test_unwrapping_leaves_the_same_bytes_and_no_other_file(file: Path) -> None:
    plan_wrap(file, START).carry_out()

    plan_unwrap(file).carry_out()

    assert contents(file.parent) == {"mcp.json": TEXT.encode()}


def test_wrapping_again_changes_nothing(file: Path) -> None:
    plan_wrap(file, START).carry_out()
    before = contents(file.parent)

    plan = plan_wrap(file, START)
    needed = plan.is_needed
    plan.carry_out()

    assert not needed
    assert contents(file.parent) == before


def test_wrapping_again_with_other_options_changes_only_those(file: Path) -> None:
    plan_wrap(file, START).carry_out()

    plan = plan_wrap(file, [*START, "--scope", "me"])
    plan.carry_out()

    assert '"--scope"' in file.read_text()
    assert plan.moved == ("a",)
    plan_unwrap(file).carry_out()
    assert contents(file.parent) == {"mcp.json": TEXT.encode()}


def test_a_server_that_came_since_moves_behind_the_proxy_too(file: Path) -> None:
    plan_wrap(file, START).carry_out()
    file.write_text(
        file.read_text().replace('"mcpServers": {', '"mcpServers": {"b": {"command": "y"},')
    )

    plan = plan_wrap(file, START)
    plan.carry_out()

    assert plan.moved == ("b", "a")
    assert "y" in (file.parent / "mcp.coatcheck.json").read_text()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (".claude.json", "coatcheck-user"),
        (".cursor/mcp.json", "coatcheck-user"),
        (".config/Code/User/mcp.json", "coatcheck-user"),
        ("Library/Application Support/Claude/claude_desktop_config.json", "coatcheck-user"),
        (".mcp.json", "coatcheck"),
        ("work/p/.mcp.json", "coatcheck"),
        ("work/p/.cursor/mcp.json", "coatcheck"),
        ("work/p/.vscode/mcp.json", "coatcheck"),
    ],
)
def test_a_file_of_the_user_has_another_entry_than_one_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TEXT)

    plan_wrap(file, START).carry_out()

    assert list(parse_jsonc(file.read_text()).members["mcpServers"].members) == [name]


def test_an_older_backup_that_stays_after_unwrapping_is_told(file: Path) -> None:
    plan_wrap(file, START).carry_out()
    added = file.read_text().replace('"mcpServers": {', '"mcpServers": {"b": {"command": "y"},')
    file.write_text(added)
    plan_wrap(file, START).carry_out()

    plan = plan_unwrap(file)
    plan.carry_out()

    assert [path.name for path in plan.left] == ["mcp.json.before-coatcheck"]
    assert set(contents(file.parent)) == {"mcp.json", "mcp.json.before-coatcheck"}


def test_a_backup_is_never_overwritten(file: Path) -> None:
    first = file.parent / "mcp.json.before-coatcheck"
    first.write_text("something else")

    plan_wrap(file, START).carry_out()

    assert first.read_text() == "something else"
    assert (file.parent / "mcp.json.before-coatcheck-2").read_bytes() == TEXT.encode()
    plan_unwrap(file).carry_out()
    assert set(contents(file.parent)) == {"mcp.json", first.name}


def test_only_the_owner_may_read_what_holds_secrets_and_the_file_keeps_its_mode(file: Path) -> None:
    file.chmod(0o640)

    plan_wrap(file, START).carry_out()

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == {
        "mcp.json": 0o640,
        "mcp.coatcheck.json": 0o600,
        "mcp.json.before-coatcheck": 0o600,
    }


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    link = folder / "mcp.json"
    link.symlink_to(file)

    plan_wrap(link, START).carry_out()

    assert link.is_symlink()
    assert "coatcheck" in file.read_text()


def test_a_folder_that_moved_can_still_be_unwrapped(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    moved = file.rename(folder / "mcp.json")
    plan_wrap(moved, START).carry_out()
    folder = folder.rename(tmp_path / "two")

    plan_unwrap(folder / "mcp.json").carry_out()

    assert contents(folder) == {"mcp.json": TEXT.encode()}


def test_what_was_changed_meanwhile_is_left_as_it_is(file: Path) -> None:
    plan = plan_wrap(file, START)
    file.write_text("{}")

    with pytest.raises(InvalidArgumentError, match="was changed meanwhile"):
        plan.carry_out()

    assert contents(file.parent) == {"mcp.json": b"{}"}


@pytest.mark.parametrize("broken", [b"{", b"", b"\xff", b'{"mcpServers": {"a": }}', b"[]"])
def test_a_file_that_cannot_be_understood_is_never_touched(file: Path, broken: bytes) -> None:
    file.write_bytes(broken)

    with pytest.raises(InvalidArgumentError):
        plan_wrap(file, START)
    with pytest.raises(InvalidArgumentError):
        plan_unwrap(file)

    assert contents(file.parent) == {"mcp.json": broken}


def test_what_is_not_wrapped_cannot_be_unwrapped(file: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="has no proxy in it"):
        plan_unwrap(file)


def test_where_the_servers_are_lost_the_backup_is_named(file: Path) -> None:
    plan_wrap(file, START).carry_out()
    (file.parent / "mcp.coatcheck.json").unlink()

    with pytest.raises(InvalidArgumentError) as caught:
        plan_unwrap(file)

    assert "mcp.json.before-coatcheck" in caught.value.hint


def test_a_difference_shows_no_secret(file: Path) -> None:
    plan = plan_wrap(file, START)
    plan.carry_out()

    assert "s3cret" not in "".join([*plan.diff(), *plan_unwrap(file).diff()])
    assert any("•••" in line for line in plan.diff())


def test_a_folder_that_may_not_be_written_is_an_error_with_its_reason(file: Path) -> None:
    plan = plan_wrap(file, START)
    plan.file.parent.joinpath("mcp.coatcheck.json").mkdir()

    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        plan.carry_out()

    assert file.read_bytes() == TEXT.encode()
    assert not [path for path in file.parent.iterdir() if path.name.startswith(".")]
