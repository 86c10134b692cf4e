"""What an HTTP request has to be before its message is looked at."""

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from ._config import HttpFront
from ._eras import HEADER_MISMATCH, NAMED, VERSION_KEY, meta_of
from ._http_reply import Headers, Receive
from ._messages import INVALID_REQUEST, PARSE_ERROR, Message, RpcError

EVENTS = "text/event-stream"

_LARGEST_BYTES = 128 * 1024 * 1024
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CODED = "=?base64?"


class RefusedError(Exception):
    """A request is answered before its message is looked at."""

    def __init__(self, status: int, error: RpcError, headers: Headers | None = None) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers or []


def check_origin(headers: Mapping[str, str], front: HttpFront) -> None:
    """Refuse what a page in a browser sends: it may have been led here by a name of its own.

    Raises:
        RefusedError: The request does not come from here.
    """
    host = _host_of(f"//{headers.get('host', '')}")
    origin = headers.get("origin")
    if front.host in _LOOPBACK and host not in _LOOPBACK:
        raise RefusedError(421, RpcError(INVALID_REQUEST, "The host is not this one."))
    if origin is not None and _host_of(origin) != host:
        raise RefusedError(403, RpcError(INVALID_REQUEST, "The origin is not this host."))


def principal_of(headers: Mapping[str, str], front: HttpFront) -> str | None:
    """Return who signed in, None where nobody has to.

    Raises:
        RefusedError: Someone has to, and did not.
    """
    if not front.principals:
        return None
    kind, _, token = headers.get("authorization", "").partition(" ")
    found = None
    for known, principal in front.principals.items():
        if hmac.compare_digest(known.encode(), token.strip().encode()):
            found = principal
    if found is None or kind.lower() != "bearer":
        error = RpcError(INVALID_REQUEST, "A bearer token is needed.")
        raise RefusedError(401, error, [(b"www-authenticate", b"Bearer")])
    return found


def check_routing(message: Message, headers: Mapping[str, str]) -> None:
    """Check that the headers of a modern request say what its message says.

    Raises:
        RpcError: They do not, so what routed it may have been deceived.
    """
    params = message.params or {}
    said = {"mcp-protocol-version": meta_of(params).get(VERSION_KEY), "mcp-method": message.method}
    for name, value in said.items():
        if headers.get(name) != value:
            raise RpcError(HEADER_MISMATCH, f"{name} is not what the message says.")
    named = params.get(NAMED.get(message.method or "", ""))
    if isinstance(named, str) and _decoded(headers.get("mcp-name")) != named:
        raise RpcError(HEADER_MISMATCH, "mcp-name is not what the message says.")


def _decoded(value: str | None) -> str | None:
    if value is None or not value.startswith(_CODED):
        return value
    from mcp.shared.inbound import decode_header_value  # half a second, for what is rare

    return decode_header_value(value)


def takes_events(headers: Mapping[str, str]) -> bool:
    accepted = {each.partition(";")[0].strip() for each in headers.get("accept", "").split(",")}
    return not accepted.isdisjoint({EVENTS, "text/*", "*/*"})


async def body_of(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise RefusedError(400, RpcError(PARSE_ERROR, "The request ended early."))
        parts.append(event.get("body", b""))
        size_bytes += len(parts[-1])
        if size_bytes > _LARGEST_BYTES:
            raise RefusedError(413, RpcError(INVALID_REQUEST, "The message is over 128 MiB."))
        if not event.get("more_body", False):
            return b"".join(parts)


async def gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # it is no address
        return None
