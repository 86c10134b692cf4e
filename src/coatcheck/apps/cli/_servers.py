"""The servers that a command is about: one behind ``--``, or those of a configuration."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..proxy._config import UpstreamSpec
    from ..proxy._servers_file import Refused

_NEEDED = ("mcp", "jsonschema_rs")


def needs_extra() -> None:
    """Do nothing where what the proxy is built on is installed.

    Raises:
        InvalidArgumentError: It is not.
    """
    if any(find_spec(module) is None for module in _NEEDED):
        raise InvalidArgumentError("This needs an extra.", "pip install 'coatcheck[proxy]'")


def spec_of_command(command: list[str]) -> "tuple[UpstreamSpec, ...]":
    """Return the server that a command starts, or that an address names."""
    from ..proxy._config import UpstreamSpec

    first, *others = command
    if first.startswith(("http://", "https://")) and not others:
        return (UpstreamSpec(name="server", url=first),)
    return (UpstreamSpec(name=Path(first).name, command=first, args=tuple(others)),)


def specs_of(config: Path) -> "tuple[UpstreamSpec | Refused, ...]":
    """Return the servers of a configuration, filled in from the environment.

    Raises:
        InvalidArgumentError: It is none.
    """
    from ..proxy._servers_file import HANDED, read_servers

    specs = read_servers(config, os.environ)
    # They hold secrets of single servers, and each server inherits what is left here.
    for name in [name for name in os.environ if name.startswith(HANDED)]:
        del os.environ[name]
    return specs


def behind_proxies(config: Path) -> "tuple[UpstreamSpec | Refused, ...]":
    """Return the servers of a configuration; where a proxy was put into it, those behind that.

    What stands beside such a proxy is the host's own to reach, as it signs in there itself.

    Raises:
        InvalidArgumentError: It is none.
    """
    from ..proxy._servers_file import servers_of_file
    from ..proxy._wrap import servers_file

    entries = servers_of_file(config)
    files = [file for entry in entries.values() if (file := servers_file(entry))]
    return tuple(each for file in files or [config] for each in specs_of(file))
