"""FastMCP servers: pointers for all their tools, by a middleware. Needs the `fastmcp` extra."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, cast

from ..bank import Bank, BlockingBank, misfit
from ..mirror import holds_pointer
from ..records import Limits
from ..tools import RESOURCE_DESCRIPTION, RESOURCE_TEMPLATE, Failure, as_failure, is_failure
from ._sessions import Sessions, system_text

try:
    import mcp_types as mt
    from fastmcp.exceptions import FastMCPError, ToolError
    from fastmcp.resources import ResourceResult, ResourceTemplate
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
    from pydantic import ValidationError

    from ._fastmcp_calls import calling, listing, read_resource, shown_error, shown_result
except ImportError as error:
    message = "coatcheck.adapters.fastmcp needs an extra: pip install 'coatcheck[fastmcp]'"
    raise ImportError(message) from error

_Greeting = TypeVar("_Greeting")


class CoatcheckMiddleware(Middleware):
    """Lets every tool of a server take pointers, and offloads their large results.

    Give it where the server is made, so that it is the outermost: ``FastMCP(…, middleware=[…])``,
    and ``create_proxy(…, middleware=[…])`` for servers of others.

    Args:
        bank: Where results are kept; it stays its owner's. Who calls decides on the scope there:
            who signed in, else ``coatcheck/scope`` in the `_meta` of the request, else the
            session of the handshake era; over stdio it is the bank's own.
        limits: When a result is offloaded; None takes the bank's.
        anonymous_ttl_seconds: How long artifacts of callers live that nothing tells apart. To
            them a pointer alone opens what it names.

    >>> from fastmcp import FastMCP
    >>> from coatcheck.stores import MemoryStore
    >>> server = FastMCP("orders", middleware=[CoatcheckMiddleware(Bank(MemoryStore()))])
    """

    def __init__(
        self,
        bank: Bank | BlockingBank,
        *,
        limits: Limits | None = None,
        anonymous_ttl_seconds: float = 3_600,
    ) -> None:
        self._sessions = Sessions(bank, limits)
        self._anonymous_ttl_seconds = anonymous_ttl_seconds
        self._warned: set[str] = set()

    def bank_for(
        self, name: str | None = None, *, kind: Literal["meta", "principal", "session"] = "meta"
    ) -> Bank:
        """Return the bank that the tools of a caller use.

        Args:
            name: What tells the caller from others; None is the bank's own scope.
            kind: Where that stands: in the `_meta` of requests, in FastMCP's `current_principal`,
                or in the id of a session.
        """
        return (self._sessions.of() if name is None else self._sessions.of(kind, name)).bank

    async def on_initialize(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, _Greeting]
    ) -> _Greeting:
        """Append our line to the instructions of the server."""
        return _told(await call_next(context))

    async def on_discover(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, _Greeting]
    ) -> _Greeting:
        """Append our line to the instructions of the server."""
        return _told(await call_next(context))

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Sequence[Tool]]
    ) -> Sequence[Tool]:
        """List tools open to pointers, and our own behind them."""
        given, sessions = await call_next(context), self._sessions
        return listing(given, sessions.of().mirror, sessions.tools, self._warned)

    async def on_call_tool(
        self,
        context: MiddlewareContext[mt.CallToolRequestParams],
        call_next: CallNext[mt.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Run a tool on what its pointers stand for, and return what to show of its result."""
        asked = context.message
        name, given = asked.name, asked.arguments or {}
        caller = calling(self._sessions, context.fastmcp_context, self._anonymous_ttl_seconds)
        if name in self._sessions.tools:
            reply = await caller.reply(name, given)
            return ToolResult(content=reply, is_error=is_failure(reply))
        if holds_pointer(given):
            known = context.fastmcp_context and await context.fastmcp_context.fastmcp.get_tool(name)
            found = await caller.arguments(name, given, known.parameters if known else None)
            if isinstance(found, Failure):
                raise ToolError(str(found))
            context = context.copy(message=asked.model_copy(update={"arguments": dict(found)}))
        try:
            result = await call_next(context)
        except FastMCPError as error:
            if context.message is not asked and isinstance(error.__cause__, ValidationError):
                # Its own words quote what a pointer stands for.
                raise ToolError(str(as_failure(misfit(error.__cause__, "the arguments")))) from None
            text = await shown_error(caller, name, str(error), given)
            if text is None:
                raise
            raise ToolError(text) from error
        if not isinstance(result, ToolResult) or isinstance(result, InputRequiredToolResult):
            return result  # of a task; or of a tool that asks its client first
        return await shown_result(caller, name, result, given)

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Sequence[ResourceTemplate]]
    ) -> Sequence[ResourceTemplate]:
        """List how artifacts are read, behind the templates of the server."""
        own = ResourceTemplate(
            uri_template=RESOURCE_TEMPLATE,
            name="artifact",
            description=RESOURCE_DESCRIPTION,
            parameters={},
        )
        return [*await call_next(context), own]

    async def on_read_resource(
        self,
        context: MiddlewareContext[mt.ReadResourceRequestParams],
        call_next: CallNext[mt.ReadResourceRequestParams, ResourceResult],
    ) -> ResourceResult:
        """Read an artifact, or whatever else of the server's."""
        caller = calling(self._sessions, context.fastmcp_context, self._anonymous_ttl_seconds)
        read = await read_resource(caller, str(context.message.uri))
        return await super().on_read_resource(context, call_next) if read is None else read


def _told(greeting: _Greeting) -> _Greeting:
    if not isinstance(greeting, mt.InitializeResult | mt.DiscoverResult):
        return greeting
    told = system_text(greeting.instructions)
    return cast("_Greeting", greeting.model_copy(update={"instructions": told}))
