"""Who calls an MCP server, for adapters that serve: whose artifacts a call may put and see."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import CoatcheckError, UnknownPointerError
from ..tools import (
    Failure,
    as_failure,
    check_unnamed,
    is_failure,
    stated_scope,
    without_neighbours,
)
from ._sessions import Session, Sessions


@dataclass(frozen=True, slots=True)
class Caller:
    """What serves one caller."""

    session: Session
    ttl_seconds: float | None = None
    """How long what it puts lives. Only for those that nothing tells apart: to them each pointer
    alone opens what it names, there are no names, and no failure tells of another pointer."""

    @property
    def is_anonymous(self) -> bool:
        """Whether nothing tells the caller from others."""
        return self.ttl_seconds is not None

    async def arguments(
        self, tool: str, arguments: Mapping[str, object], schema: Mapping[str, Any] | None
    ) -> Mapping[str, object] | Failure:
        """Return a call's arguments with what each pointer stands for; see `Session.arguments`."""
        found = await self.session.arguments(tool, arguments, schema)
        return self._told(found) if isinstance(found, Failure) else found

    async def reply(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return what one of our own tools replies."""
        if self.is_anonymous:
            try:
                check_unnamed(arguments)
            except CoatcheckError as error:
                return str(as_failure(error))
        reply = await self.session.tools[tool].call(arguments)
        if not self.is_anonymous or not is_failure(reply):
            return reply
        return without_neighbours(reply, arguments)

    def failure(self, error: CoatcheckError | OSError) -> Failure:
        """Return an error as this caller may read it."""
        return self._told(as_failure(error))

    def _told(self, failure: Failure) -> Failure:
        if self.is_anonymous and failure.error == UnknownPointerError.code:
            return replace(failure, hint=UnknownPointerError("").hint)
        return failure


def caller_of(
    sessions: Sessions,
    *,
    principal: str | None = None,
    meta: Mapping[str, object] | None = None,
    session_id: str | None = None,
    is_local: bool,
    anonymous_ttl_seconds: float,
) -> Caller:
    """Return what serves a caller, told by the first of these that is known.

    What each of them says is a scope of its own kind, so that nobody can name another's.

    Args:
        sessions: Of the adapter.
        principal: Who signed in.
        meta: The `_meta` of the request, with or without a scope.
        session_id: Of a session of the handshake era, over HTTP.
        is_local: Whether the server is its one user's, as over stdio: the bank's own scope.
        anonymous_ttl_seconds: How long artifacts of a caller without any of it live.

    Raises:
        InvalidArgumentError: The scope in `meta` is no text of 1 to 200 characters.
    """
    if principal is not None:
        return Caller(sessions.of("principal", principal))
    stated = stated_scope(meta)
    if stated is not None:
        return Caller(sessions.of("meta", stated))
    if session_id is not None:
        return Caller(sessions.of("session", session_id))
    if is_local:
        return Caller(sessions.of())
    return Caller(sessions.of("anonymous"), anonymous_ttl_seconds)
