"""Which servers stand behind a proxy, and how it is reached: records, without any I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ._settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSpec:
    """One server behind the proxy: a program over stdio, or an address of streamable HTTP.

    What may hold a secret is left out of its `repr`.
    """

    name: str
    """By which its tools are prefixed, where there are several servers."""
    command: str | None = None
    """The program; None of a server that is reached by `url`."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables on top of the environment of the proxy."""
    cwd: Path | None = None
    """Where the program runs; None is where the proxy does."""
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with each request to `url`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFront:
    """Where hosts reach a proxy over streamable HTTP, at the path ``/mcp``."""

    host: str
    port: int
    """0 takes a free one."""
    principals: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """By bearer token, whose it is. Where there is any, a request without one is refused; where
    there is none, whoever reaches the port may call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyConfig:
    """All that a proxy is started with."""

    upstreams: tuple[UpstreamSpec, ...]
    prefixed: bool
    """Whether tools are listed as ``server_tool``."""
    store: str
    """The address of the store."""
    settings: Settings = field(default_factory=Settings)
    scope: str | None = None
    """Whose artifacts they are, on stdio; None is a scope of the user and the working folder."""
    front: Literal["stdio"] | HttpFront = "stdio"
    journal: Path | None = None
    """Where calls are noted, for ``coatcheck stats``."""
