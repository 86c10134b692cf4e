"""Whose artifacts a call may see: told by who calls, and over what."""

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ...tools import stated_scope


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose artifacts a call puts and sees."""

    name: str
    """Of the scope of the bank."""
    ttl_seconds: float | None = None
    """How long what is put lives. Only for callers that nothing tells apart: to them each pointer
    alone opens what it names, there are no names, and no failure tells of another pointer."""

    @property
    def is_anonymous(self) -> bool:
        """Whether nothing tells the caller from others."""
        return self.ttl_seconds is not None


def local_scope() -> str:
    """Return the name of a scope that is the same for the same user in the same folder.

    So a chat that is resumed, and a second proxy beside the first, find their pointers.
    """
    user = str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
    where = f"{user}\n{Path.cwd().resolve()}".encode("utf-8", "surrogateescape")
    return f"local-{blake2b(where, digest_size=8).hexdigest()}"


def scope_of(
    *,
    principal: str | None,
    meta: Mapping[str, object] | None,
    session_id: str | None,
    transport: str,
    local: str,
    anonymous_ttl_seconds: float,
) -> Scope:
    """Return the scope of a request: by the first of these that is known.

    Over HTTP what each of them says is a scope of its own kind, so that no client can name the
    scope of another's principal, session or folder.

    Args:
        principal: Who signed in.
        meta: The `_meta` of the request, with or without a scope.
        session_id: Of a session of the handshake era.
        transport: ``stdio`` or ``http``.
        local: The scope of a proxy that one user started, over stdio.
        anonymous_ttl_seconds: How long artifacts of a caller without any of it live.

    Raises:
        InvalidArgumentError: The scope in `meta` is no text of 1 to 200 characters.
    """
    over_http = transport != "stdio"
    if principal is not None:
        return Scope(f"principal:{principal}")
    stated = stated_scope(meta)
    if stated is not None:
        return Scope(f"meta:{stated}" if over_http else stated)
    if session_id is not None and over_http:
        return Scope(f"session:{session_id}")
    if not over_http:
        return Scope(local)
    return Scope("anonymous", anonymous_ttl_seconds)
