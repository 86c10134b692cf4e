"""Which service an address names, and the clients that speak with it. Knows no key."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl

from ..errors import shown

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client
    from obstore.store import RetryConfig

SCHEMES = ("s3", "gs", "az")
"""Those of services; besides them there are ``file:`` and ``memory:``."""

_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,220}", re.ASCII)
_USER = re.compile("//[^/]*@")
_PREFIX = re.compile(r"(?:(?!\.{1,2}/)[A-Za-z0-9_~%.=+@-]{1,100}/)*", re.ASCII)
_LONGEST_PREFIX = 120
"""With the longest key it stays below the 1,024 bytes that services allow."""

# A write that fails is undone by a further call or two, which wait as well. Both together have to
# stay below the 10 seconds in which an outage is told.
_QUICK_SECONDS = 2.5
_CONNECT_SECONDS = 1.5
_STALLED_SECONDS = 4.0
_QUICK_RETRY_SECONDS = 5.0
_READ_RETRY_SECONDS = 3.0
_MOST_RETRIES = 2
_PART_SECONDS = 120.0
_LONGEST_READ_SECONDS = 24 * 3_600.0
_IDLE_SECONDS = 20.0

_NEEDS = {
    "s3": "s3://BUCKET/PREFIX",
    "gs": "gs://BUCKET/PREFIX",
    "az": "az://CONTAINER/PREFIX?account_name=NAME",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A bucket, a container, a folder or this process's memory. `str()` leaves the options out."""

    scheme: str
    place: str
    prefix: str = ""
    """Empty, or ends in a slash."""
    options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Of the service, by obstore's names. May hold credentials."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``s3://BUCKET/PREFIX?option=value``, ``gs:``, ``az:``, ``file:DIR``, ``memory:``.

        Raises:
            ValueError: It is none of these. The message has no option's value.
        """
        plain, _, query = text.partition("?")
        scheme, _, rest = plain.partition(":")
        if scheme == "memory" and rest in {"", "//", "///"} and not query:
            return cls(scheme=scheme, place="")
        if scheme == "file" and rest and not query:
            return cls(scheme=scheme, place=rest.removeprefix("//"))
        place, _, prefix = rest.removeprefix("//").partition("/")
        prefix = f"{prefix.strip('/')}/".removeprefix("/")
        if (
            scheme not in SCHEMES
            or not rest.startswith("//")
            or not _PLACE.fullmatch(place)
            or not _PREFIX.fullmatch(prefix)
            or len(prefix) > _LONGEST_PREFIX
        ):
            forms = ", ".join([*_NEEDS.values(), "file:DIR or memory:"])
            raise ValueError(f"no object store at {shown(_USER.sub('//…@', plain))}: use {forms}")
        return cls(scheme=scheme, place=place, prefix=prefix, options=_options(plain, query))

    def __str__(self) -> str:
        slashes = "" if self.scheme in {"file", "memory"} else "//"
        prefix = f"/{self.prefix[:-1]}" if self.prefix else ""
        return f"{self.scheme}:{slashes}{self.place}{prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of one place, which differ in how long they wait. A local form has one for all."""

    quick: "Client"
    """For what is small and may be sent again: an outage is told within 5.1 seconds."""
    reads: "Client"
    """For payloads on their way here, of any size: waits 4 seconds for each further piece."""
    writes: "Client"
    """For payloads on their way there, and for creates, which are not sent again. Waits long:
    whoever uses it has to watch the service."""
    probe: "Client"
    """To see whether the service is there: asks once, for 2.5 seconds."""


def connect(
    address: Address,
    *,
    options: Mapping[str, str],
    client_options: Mapping[str, Any],
    credential_provider: Callable[..., Any] | None,
) -> Clients:
    """Return clients. Nothing is sent yet.

    Raises:
        ImportError: obstore is not installed.
        ValueError: The service takes no such options, or needs further ones.
    """
    if find_spec("obstore") is None:
        raise ImportError("ObjectStore needs an extra: pip install 'coatcheck[object]'")
    from obstore.store import LocalStore, MemoryStore

    if address.scheme in {"file", "memory"}:
        local: Client = (
            LocalStore(Path(address.place)) if address.scheme == "file" else MemoryStore()
        )
        return Clients(quick=local, reads=local, writes=local, probe=local)

    steady = {**_steady(address, options), **client_options}
    build = partial(
        _client,
        address,
        options={**address.options, **options},
        credential_provider=credential_provider,
    )
    quick = steady | {"timeout": timedelta(seconds=_QUICK_SECONDS)}
    reads = steady | {
        "timeout": timedelta(seconds=_LONGEST_READ_SECONDS),
        "read_timeout": timedelta(seconds=_STALLED_SECONDS),
    }
    writes = steady | {"timeout": timedelta(seconds=_PART_SECONDS)}
    return Clients(
        quick=build(client_options=quick, retry_config=_retries(_QUICK_RETRY_SECONDS)),
        reads=build(client_options=reads, retry_config=_retries(_READ_RETRY_SECONDS)),
        writes=build(client_options=writes, retry_config=_retries(_QUICK_RETRY_SECONDS)),
        probe=build(client_options=quick, retry_config={"max_retries": 0}),
    )


def _options(plain: str, query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        pairs = []
    options = dict(pairs)
    if len(options) != len(pairs) or bool(query) != bool(pairs):
        raise ValueError(f"{shown(plain)} has options that are no ?name=value&name=value")
    return options


def _steady(address: Address, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the client options that all clients of an address share."""
    named = {**address.options, **options}
    endpoint = named.get("endpoint") or named.get("base_url") or ""
    return {
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        "pool_idle_timeout": timedelta(seconds=_IDLE_SECONDS),
        # Whoever writes http:// wants it; what comes from the environment needs AWS_ALLOW_HTTP.
        **({"allow_http": True} if endpoint.startswith("http://") else {}),
    }


def _retries(seconds: float) -> "RetryConfig":
    return {
        "max_retries": _MOST_RETRIES,
        "retry_timeout": timedelta(seconds=seconds),
        "backoff": {
            "init_backoff": timedelta(milliseconds=50),
            "max_backoff": timedelta(milliseconds=500),
            "base": 2,
        },
    }


def _client(
    address: Address,
    *,
    options: Mapping[str, str],
    client_options: Mapping[str, Any],
    retry_config: "RetryConfig",
    credential_provider: Callable[..., Any] | None,
) -> "Client":
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store

    config: Any = dict(options)
    if address.scheme == "s3":
        # One request a key, which every service knows, and which may be sent again.
        config.setdefault("disable_bulk_delete", "true")
    kinds = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
    further: dict[str, Any] = {"client_options": dict(client_options), "retry_config": retry_config}
    if credential_provider is not None:
        further["credential_provider"] = credential_provider
    try:
        client: Client = kinds[address.scheme](address.place, config=config, **further)
    except (BaseError, TypeError, ValueError) as error:
        failure = _wrong_options(address, options, error)
    else:
        return client
    raise failure  # out here: the error of obstore may show a value


def _wrong_options(address: Address, options: Mapping[str, str], error: Exception) -> ValueError:
    names = ", ".join(sorted(options)) or "none"
    kind = type(error).__name__
    return ValueError(
        f"{address} cannot be opened with these options: {names} ({kind}); "
        f"use {_NEEDS[address.scheme]} and the names that obstore has for them"
    )
