"""The address of a Redis server: what may stand in it, and what of it is ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

REDIS_SCHEMES = frozenset({"redis", "rediss", "unix"})

_FORMS = "redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB"
_OURS = frozenset({"prefix", "ttl_seconds"})
_OF_THE_CLIENT = frozenset(
    {
        *("db", "password", "username", "client_name"),
        *("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"),
        *("ssl_cert_reqs", "ssl_check_hostname"),
    }
)
_LEFT_OUT = frozenset(
    {
        *("decode_responses", "encoding", "encoding_errors", "health_check_interval"),
        *("legacy_responses", "max_connections", "protocol", "retry_on_timeout"),
        *("socket_connect_timeout", "socket_keepalive", "socket_read_size", "socket_timeout"),
        "timeout",
    }
)
"""Of other programs that use the same address. How a store talks is its own affair."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """An address, taken apart."""

    url: str
    """For the client; may hold a password."""
    prefix: str | None
    ttl_seconds: float | None

    @classmethod
    def parse(cls, address: str) -> "RedisAddress":
        """Read an address. No error shows any of it but the names of options: it holds passwords.

        Raises:
            ValueError: It is no address of a Redis server.
        """
        try:
            parts = urlsplit(address)
            _check_place(parts.scheme, parts.path, parts.port)
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError as error:
            reason = str(error) if isinstance(error, _NotRedisError) else "it is no URL"
            raise ValueError(f"a Redis address is {_FORMS}: {reason}") from None
        for name in options.keys() - _OURS - _OF_THE_CLIENT - _LEFT_OUT:
            known = ", ".join(sorted(_OURS | _OF_THE_CLIENT))
            raise ValueError(f"a Redis address has no option {name[:40]!r}; it has {known}")
        rest = {name: option for name, option in options.items() if name in _OF_THE_CLIENT}
        return cls(
            url=urlunsplit(parts._replace(query=urlencode(rest))),
            prefix=options.get("prefix"),
            ttl_seconds=_number(options, "ttl_seconds"),
        )


class _NotRedisError(ValueError):
    """What is wrong with an address, in words that show none of it."""


def _check_place(scheme: str, path: str, _port: int | None) -> None:
    """Look at scheme, path and port, the last of which is checked by being asked for."""
    if scheme not in REDIS_SCHEMES:
        raise _NotRedisError("it has another scheme")
    if scheme == "unix":
        if not path.startswith("/"):
            raise _NotRedisError("a socket has an absolute path")
    elif path.strip("/") and not path.strip("/").isdecimal():
        raise _NotRedisError("its path is the number of a database")


def _number(options: Mapping[str, str], name: str) -> float | None:
    try:
        return float(options[name]) if name in options else None
    except ValueError:
        raise ValueError(f"the option {name} of a Redis address is a number") from None
