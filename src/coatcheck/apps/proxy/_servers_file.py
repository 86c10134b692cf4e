"""Servers as hosts write them down: `mcpServers` or `servers` in JSON, variables filled in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from ...errors import InvalidArgumentError, shown
from ._config import UpstreamSpec
from ._jsonc import parse_jsonc

KEYS = ("mcpServers", "servers")
"""Under which hosts keep their servers; the second is that of VS Code."""

VARIABLE = re.compile(r"\$\{([^{}]*)\}")
"""What a host, or this program, fills in."""

HANDED = "COATCHECK_HANDED_"
"""Begins the variables by which a host hands over what only it can fill in."""

_NAMED = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_HTTP = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http"})
_QUOTES = ("'", '"')
_TWO = 2


@dataclass(frozen=True, slots=True)
class Refused:
    """A server of a file that cannot be started as it is written down."""

    name: str
    error: InvalidArgumentError
    """What is wrong with it. No value of a variable, of `env` or of `headers` is quoted."""


def read_servers(file: Path, environment: Mapping[str, str]) -> tuple[UpstreamSpec | Refused, ...]:
    """Return the servers of a file, those that are disabled left out.

    What is wrong with one of them is no matter of the others. What only a host fills in is asked
    for where a host was wrapped; started without it, the texts that it was to fill in are taken.

    Args:
        file: In the form of any host: Claude Code, Claude Desktop, Cursor, VS Code.
        environment: What fills in ``${NAME}``, ``${NAME:-default}`` and ``${env:NAME}``.

    Raises:
        InvalidArgumentError: It cannot be read, is no JSON, or has no server in it.
    """
    text = read_text(file)
    try:
        found = parse_jsonc(text).plain
        servers = servers_of(found)
        handed = _handed(found)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{file}: {error}", error.hint) from error
    each = [
        _read(_Entry(name, entry, environment, file.parent, handed), file)
        for name, entry in servers.items()
        if not is_disabled(entry)
    ]
    if not each:
        raise InvalidArgumentError(f"{file}: there is no server in it.", f"Add one to {KEYS[0]}.")
    return tuple(each)


def read_text(file: Path) -> str:
    """Return the text of a configuration, its line ends as they are.

    Raises:
        InvalidArgumentError: It cannot be read, or is no UTF-8.
    """
    try:
        return file.read_bytes().decode()
    except OSError as error:
        raise InvalidArgumentError(
            f"{shown(str(file))} cannot be read: {error.strerror}.", "Name another file."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{shown(str(file))} cannot be read: it is no UTF-8 text.", "Name another file."
        ) from error


def servers_of(found: object) -> dict[str, object]:
    """Return the servers of a configuration by name.

    Raises:
        InvalidArgumentError: There are none.
    """
    if isinstance(found, dict):
        for key in KEYS:
            servers = cast("dict[str, object]", found).get(key)
            if isinstance(servers, dict):
                return cast("dict[str, object]", servers)
    raise InvalidArgumentError(
        f"there is no object {KEYS[0]!r} or {KEYS[1]!r} in it.",
        '{"mcpServers": {"NAME": {"command": "…", "args": []}}}',
    )


def servers_of_file(file: Path) -> dict[str, object]:
    """Return the servers of a file by name, as they are written down.

    Raises:
        InvalidArgumentError: It cannot be read, is no JSON, or has no server in it.
    """
    text = read_text(file)
    try:
        return servers_of(parse_jsonc(text).plain)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{file}: {error}", error.hint) from error


def is_disabled(entry: object) -> bool:
    """Return whether a host was told not to start a server."""
    return isinstance(entry, dict) and bool(cast("dict[str, object]", entry).get("disabled"))


def _read(entry: "_Entry", file: Path) -> UpstreamSpec | Refused:
    try:
        return entry.spec()
    except InvalidArgumentError as error:
        return Refused(entry.name, InvalidArgumentError(f"{file}: {error}", error.hint))


def _handed(found: object) -> dict[str, str]:
    """Return what a host was asked to hand over for the servers that moved here, by variable."""
    written = cast("dict[str, object]", found).get("written")
    if not isinstance(written, str):
        return {}
    handed: dict[str, str] = {}
    for entry in parse_jsonc(written).members.values():
        for name, asked in entry.members["env"].members.items() if "env" in entry.members else ():
            if name.startswith(HANDED) and isinstance(asked.content, str):
                handed[name] = asked.content
    return handed


@dataclass(frozen=True, slots=True)
class _Entry:
    """One server, as it was written down."""

    name: str
    entry: object
    environment: Mapping[str, str]
    folder: Path
    handed: Mapping[str, str]
    """What fills in variables that a host did not."""

    def spec(self) -> UpstreamSpec:
        if not self.name or not isinstance(self.entry, dict):
            raise self._wrong("is an object with a name")
        kind = self._text("type")
        command, url = self._text("command"), self._text("url")
        if kind == "sse":
            raise self._wrong(
                "speaks the old HTTP+SSE, which the proxy does not", "Use its streamable HTTP."
            )
        if kind is not None and kind != "stdio" and kind not in _HTTP:
            raise self._wrong(f"has the type {shown(kind)}, which is not stdio or http")
        if (command is None) == (url is None):
            raise self._wrong("has either a command or a url")
        cwd = self._text("cwd")
        return UpstreamSpec(
            name=self.name,
            command=command,
            args=self._args(),
            env={**self._env_file(), **self._texts("env")},
            cwd=None if cwd is None else Path(cwd).expanduser(),
            url=url,
            headers=self._texts("headers"),
        )

    def _get(self, key: str) -> object:
        return cast("dict[str, object]", self.entry).get(key)

    def _text(self, key: str) -> str | None:
        found = self._get(key)
        if found is None:
            return None
        if not isinstance(found, str) or not found:
            raise self._wrong(f"has a text as its {key}")
        return self.filled(found)

    def _args(self) -> tuple[str, ...]:
        found = self._get("args")
        if found is None:
            return ()
        if not isinstance(found, list):
            raise self._wrong('has a list as its args: ["-y", "some-server"]')
        return tuple(self._as_text(each, "args") for each in cast("list[object]", found))

    def _texts(self, key: str) -> dict[str, str]:
        found = self._get(key)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._wrong(f'has an object as its {key}: {{"NAME": "value"}}')
        of_host = cast("dict[str, object]", found)
        return {
            name: self._as_text(value, key) for name, value in of_host.items() if value is not None
        }

    def _as_text(self, value: object, key: str) -> str:
        if isinstance(value, str):
            return self.filled(value)
        if isinstance(value, int | float):  # hosts take numbers too
            return str(value).lower() if isinstance(value, bool) else str(value)
        raise self._wrong(f"has texts in its {key}")

    def _env_file(self) -> dict[str, str]:
        """Return the variables of a file that VS Code and Cursor name in ``envFile``."""
        named = self._text("envFile")
        if named is None:
            return {}
        try:
            text = read_text(self.folder / Path(named).expanduser())
        except InvalidArgumentError as error:
            raise self._wrong(f"has an envFile, and {error}", "Look at its path.") from error
        lines = (_LINE.fullmatch(line) for line in text.splitlines())
        return {line[1]: _unquoted(line[2]) for line in lines if line}

    def filled(self, text: str) -> str:
        return VARIABLE.sub(self._variable, text)

    def _variable(self, match: re.Match[str]) -> str:
        named = _NAMED.fullmatch(match[1])
        if named is None:
            raise self._wrong(
                f"asks for {match[0]}, which only a host fills in",
                "`coatcheck proxy --wrap FILE` lets the host do that; or name a variable.",
            )
        if named[1] in self.environment:
            return self.environment[named[1]]
        if named[1] in self.handed:
            return self._asked_for(named[1])
        if named.lastindex == _TWO:
            return named[_TWO]
        raise self._wrong(
            f"asks for the variable {named[1]}, which is not set",
            f"Set it, or write ${{{named[1]}:-default}}.",
        )

    def _asked_for(self, variable: str) -> str:
        """Return what a host would hand over, as far as it is found without one."""
        asked = self.handed[variable]
        try:
            return replace(self, handed={}).filled(asked)
        except InvalidArgumentError as error:
            raise self._wrong(
                f"asks for {asked}, which your host fills in",
                f"In your host it is there. To start it without: {variable}=… in front.",
            ) from error

    def _wrong(self, what: str, hint: str = "") -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the server {shown(self.name)} {what}.", hint or "Mend it in the file."
        )


def _unquoted(text: str) -> str:
    is_quoted = len(text) >= _TWO and text[0] == text[-1] and text[0] in _QUOTES
    return text[1:-1] if is_quoted else text
