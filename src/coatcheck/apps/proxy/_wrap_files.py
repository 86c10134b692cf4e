"""Wraps and unwraps the configuration of a host on disk: planned first, shown, then written."""

import difflib
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InvalidArgumentError
from ._masked import masked
from ._servers_file import read_text
from ._wrap import is_wrapped, object_spans, servers_files, unwrapped, wrapped

_BACKUP = ".before-coatcheck"
_OWNER_ONLY = 0o600
_OF_PROGRAMS = ("Library", "AppData")
_OF_CLAUDE_CODE = ".claude.json"
_OF_PROJECT = ".mcp.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a wrap or unwrap is going to do. Nothing is written before `carry_out`."""

    file: Path
    before: str
    after: str
    beside: dict[Path, str]
    """Files of servers to write."""
    gone: tuple[Path, ...] = ()
    """Files to remove at the end."""
    backup: Path | None = None
    """Where what was there before is kept."""
    backed_up: str = ""
    moved: tuple[str, ...] = ()
    stayed: tuple[tuple[str, str], ...] = ()
    left: tuple[Path, ...] = ()
    """Older backups, which stay: what they hold is nowhere else."""

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        old = {path: path.read_text("utf-8") for path in self.beside if path.exists()}
        return self.before != self.after or old != self.beside

    def diff(self) -> list[str]:
        """Return the lines that change, without what may be a secret."""
        spans = zip(
            object_spans(self.before, self.file), object_spans(self.after, self.file), strict=True
        )
        lines: list[str] = []
        for old, new in spans:
            two = (masked(old).splitlines(), masked(new).splitlines())
            lines += difflib.unified_diff(*two, self.file.name, self.file.name, lineterm="")
        return lines

    def carry_out(self) -> None:
        """Write it all, the configuration whole or not at all.

        Raises:
            InvalidArgumentError: The configuration was changed since the plan was made, or cannot
                be written.
        """
        if read_text(self.file) != self.before:
            raise InvalidArgumentError(
                f"{self.file} was changed meanwhile, and is left as it is.", "Try again."
            )
        try:
            if self.backup is not None:
                _write(self.backup, self.backed_up, _OWNER_ONLY)
            for path, text in self.beside.items():
                _write(path, text, _OWNER_ONLY)
            _write(self.file, self.after, stat.S_IMODE(self.file.stat().st_mode))
            for path in self.gone:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidArgumentError(
                f"{error.filename or self.file} cannot be written: {error.strerror}.",
                "Look at who owns it.",
            ) from error


def plan_wrap(file: Path, start: Sequence[str], name: str | None = None) -> Plan:
    """Return how the stdio servers of a configuration get behind one proxy.

    Args:
        file: A host's configuration. Where it is wrapped, what came since is wrapped too.
        start: What starts the proxy: the program, ``proxy``, and options.
        name: Of its entry; None is one that another file of the same host does not have.

    Raises:
        InvalidArgumentError: It cannot be read, or is no configuration.
    """
    # Whose it is tells the path that was named, not what that links to.
    is_of_user = _is_of_user(file.expanduser().absolute())
    file, before = _opened(file)
    own = _unwrapped(before, file)
    change = wrapped(own, file, start, name, is_of_user=is_of_user)
    # The servers may have moved to other files, where places came or went.
    gone = set(_beside(before, file)) - set(change.beside)
    backup = None if change.text == before else _free_backup(file, own)
    return Plan(
        file=file,
        before=before,
        after=change.text,
        beside=dict(change.beside),
        gone=tuple(sorted(gone)),
        backup=backup,
        backed_up=own,
        moved=change.moved,
        stayed=change.stayed,
    )


def plan_unwrap(file: Path) -> Plan:
    """Return how the servers of a configuration get back where they were.

    Raises:
        InvalidArgumentError: It cannot be read, is no configuration, or is not wrapped.
    """
    file, before = _opened(file)
    if not is_wrapped(before, file):
        raise InvalidArgumentError(
            f"{file} has no proxy in it.", "There is nothing to undo: --wrap puts one in."
        )
    after = _unwrapped(before, file)
    backups = _backups(file)
    same = [backup for backup in backups if backup.read_bytes() == after.encode()]
    return Plan(
        file=file,
        before=before,
        after=after,
        beside={},
        gone=tuple(_beside(before, file) + same),
        left=tuple(backup for backup in backups if backup not in same),
    )


def _is_of_user(file: Path) -> bool:
    """Return whether a configuration is one for all that a user works on, not of a project."""
    if file.name in {_OF_CLAUDE_CODE, _OF_PROJECT}:
        return file.name == _OF_CLAUDE_CODE
    try:
        first = file.relative_to(Path.home()).parts[0]
    except (ValueError, RuntimeError):  # elsewhere, or nobody is at home
        return False
    return first.startswith(".") or first in _OF_PROGRAMS


def _opened(file: Path) -> tuple[Path, str]:
    # What it links to is written, not the link.
    real = file.expanduser().resolve()
    return real, read_text(real)


def _unwrapped(text: str, file: Path) -> str:
    try:
        return unwrapped(text, file, lambda path: read_text(_found(path, file)))
    except InvalidArgumentError as error:
        kept = [str(backup) for backup in _backups(file)]
        hint = f"What was there before: {', '.join(kept)}." if kept else error.hint
        raise InvalidArgumentError(f"{file}: {error}", hint) from error


def _beside(text: str, file: Path) -> list[Path]:
    return [_found(path, file) for path in servers_files(text, file)]


def _found(path: Path, file: Path) -> Path:
    """Return where a file of servers is: where it was written, else beside the configuration."""
    return path if path.exists() else file.with_name(path.name)


def _backups(file: Path) -> list[Path]:
    return sorted(file.parent.glob(f"{_escaped(file.name)}{_BACKUP}*"))


def _escaped(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def _free_backup(file: Path, text: str) -> Path:
    """Return where a text is kept: where it is already, else where nothing is."""
    number = 1
    while True:
        path = file.with_name(f"{file.name}{_BACKUP}{'' if number == 1 else f'-{number}'}")
        if not path.exists() or path.read_bytes() == text.encode():
            return path
        number += 1


def _write(file: Path, text: str, mode: int) -> None:
    """Write a file whole or not at all."""
    aside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    opened = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(opened, "wb") as out:
            out.write(text.encode())
        aside.chmod(mode)
        aside.replace(file)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
