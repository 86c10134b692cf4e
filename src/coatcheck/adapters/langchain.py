"""LangChain agents: pointers for all their tools, by a middleware. Needs the `langchain` extra."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias, cast

from ..bank import Bank, BlockingBank, portal
from ..mirror import holds_pointer
from ..records import Limits
from ..tools import Failure
from ._history import History
from ._sessions import Session, Sessions, check_names

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.config import get_config
    from langgraph.types import Command

    from ._langchain_messages import Call, shown_history, shown_result, told
    from ._langchain_tools import OwnTool, Schemas, made_by, noting, own_tool
except ImportError as error:
    message = "coatcheck.adapters.langchain needs an extra: pip install 'coatcheck[langchain]'"
    raise ImportError(message) from error

_Request: TypeAlias = "ModelRequest[Any]"
_Response: TypeAlias = "ModelResponse[Any]"
_Result: TypeAlias = ToolMessage | Command[Any]


class CoatcheckMiddleware(AgentMiddleware[Any, Any, Any]):
    """Lets every tool of an agent take pointers, and offloads their large results.

    Args:
        bank: Where results are kept; it stays its owner's. Each thread of the agent has a scope
            of its own there, a run without a thread the bank's.
        limits: When a result is offloaded; None takes the bank's.
        verbatim: By the name of a tool, those of its arguments that get pointers as text.
        history_bytes: What older results may take in a request, until all of them are sent as
            pointers. None sends them as they were.
        keep_turns: So many last turns are always sent as they were.

    >>> from coatcheck.stores import MemoryStore
    >>> middleware = CoatcheckMiddleware(Bank(MemoryStore(), scope="shop"))
    >>> middleware.bank_for("thread 1").scope, [tool.name for tool in middleware.tools]
    ('shop/session/thread%201', ['retrieve_context'])
    """

    def __init__(
        self,
        bank: Bank | BlockingBank,
        *,
        limits: Limits | None = None,
        verbatim: Mapping[str, Collection[str]] | None = None,
        history_bytes: int | None = None,
        keep_turns: int = 3,
    ) -> None:
        super().__init__()
        self._sessions = Sessions(bank, limits)
        self._schemas = Schemas(self._sessions.of().mirror)
        self._verbatim = verbatim or {}
        self._history = (
            None if history_bytes is None else History(history_bytes, keep_turns=keep_turns)
        )
        self.tools = [own_tool(tool, self._session) for tool in self._sessions.tools.values()]

    def bank_for(self, thread_id: object = None) -> Bank:
        """Return the bank that the tools of a thread use; None is a run without one."""
        return self._session({"configurable": {"thread_id": thread_id}}).bank

    def wrap_model_call(
        self, request: _Request, handler: Callable[[_Request], _Response]
    ) -> _Response:
        """Tell the model of pointers, and ask it."""
        return handler(portal().run(self._told(request)))

    async def awrap_model_call(
        self, request: _Request, handler: Callable[[_Request], Awaitable[_Response]]
    ) -> _Response:
        """Tell the model of pointers, and ask it."""
        return await handler(await self._told(request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]
    ) -> _Result:
        """Run a tool on what its pointers stand for, and return what to show of its result."""
        resolved = portal().run(self._resolved(request))
        if isinstance(resolved, ToolMessage):
            return resolved
        return portal().run(self._shown(request, resolved, handler(resolved)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Run a tool on what its pointers stand for, and return what to show of its result."""
        resolved = await self._resolved(request)
        if isinstance(resolved, ToolMessage):
            return resolved
        return await self._shown(request, resolved, await handler(resolved))

    def _session(self, config: RunnableConfig) -> Session:
        thread_id = config.get("configurable", {}).get("thread_id")
        return self._sessions.of(None if thread_id is None else str(thread_id))

    async def _told(self, request: _Request) -> _Request:
        messages = request.messages
        if self._history is not None:
            messages = await shown_history(self._history, self._session(get_config()), messages)
        tools = self._schemas.listed(request.tools, self._sessions.tools)
        system = told(request.system_message)
        return request.override(messages=messages, system_message=system, tools=tools)

    async def _resolved(self, request: ToolCallRequest) -> ToolCallRequest | ToolMessage:
        """Return a request with what its pointers stand for, or why there is nothing."""
        call, tool = request.tool_call, request.tool
        name, verbatim = call["name"], self._verbatim.get(call["name"], ())
        given = {key: value for key, value in call["args"].items() if key not in verbatim}
        if isinstance(tool, OwnTool):
            return request
        if tool is not None:
            check_names([name], self._sessions.tools)
            request = request.override(tool=noting(tool))
        if not holds_pointer(given):
            return request
        schema = None if tool is None else self._schemas.of(tool)
        found = await self._session(_config(request)).arguments(name, given, schema)
        if isinstance(found, Failure):
            return ToolMessage(str(found), tool_call_id=call["id"], name=name, status="error")
        return request.override(tool_call={**call, "args": {**call["args"], **found}})

    async def _shown(
        self, given: ToolCallRequest, resolved: ToolCallRequest, result: _Result
    ) -> _Result:
        """Return a tool's result as the model should see it; the same object where it is small."""
        call, tool = given.tool_call, given.tool
        if isinstance(tool, OwnTool) or (tool is not None and tool.return_direct):
            return result  # bounded, or the answer to the user
        made = Call(
            mirror=self._session(_config(given)).mirror,
            tool=call["name"],
            given=call["args"],
            resolved=resolved.tool_call["args"],
            made=made_by(resolved.tool),
        )
        return cast("_Result", await shown_result(made, result))


def _config(request: ToolCallRequest) -> RunnableConfig:
    return cast("RunnableConfig", cast("Any", request.runtime).config)
