"""Strands agents: pointers for all their tools, by hooks. Needs the `strands` extra."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from ..bank import Bank, BlockingBank
from ..mirror import holds_pointer
from ..records import Limits
from ..tools import Failure, Tool, is_failure
from ._sessions import SYSTEM_TEXT, Session, Sessions, check_names, system_text

try:
    from strands.hooks import (
        AfterToolCallEvent,
        AgentInitializedEvent,
        BeforeToolCallEvent,
        HookOrder,
        HookProvider,
        HookRegistry,
    )
    from strands.middleware import InvokeModelContext, InvokeModelStage
    from strands.tools import PythonAgentTool
    from strands.types.tools import AgentTool, ToolResult, ToolSpec, ToolUse

    from ._strands_results import made_by, noting, schema_in, schema_of, shown_result, unquoted
except ImportError as error:
    message = "coatcheck.adapters.strands needs an extra: pip install 'coatcheck[strands]'"
    raise ImportError(message) from error


class CoatcheckHooks(HookProvider):
    """Lets every tool of an agent take pointers, and offloads their large results.

    Args:
        bank: Where results are kept; it stays its owner's. Each session of a session manager has
            a scope of its own there, an agent without one the bank's.
        limits: When a result is offloaded; None takes the bank's.

    >>> from coatcheck.stores import MemoryStore
    >>> hooks = CoatcheckHooks(Bank(MemoryStore(), scope="shop"))
    >>> hooks.bank_for("review-1421").scope
    'shop/session/review-1421'
    """

    def __init__(self, bank: Bank | BlockingBank, *, limits: Limits | None = None) -> None:
        self._sessions = Sessions(bank, limits)

    def bank_for(self, session_id: str | None = None) -> Bank:
        """Return the bank that the tools of a session use."""
        return self._sessions.of(session_id).bank

    def register_hooks(self, registry: HookRegistry, **_: object) -> None:
        """Register what is done before and after each call, ahead of what others do."""
        first = HookOrder.SDK_FIRST
        registry.add_callback(AgentInitializedEvent, self._join)
        registry.add_callback(BeforeToolCallEvent, self._resolve, order=first)
        registry.add_callback(AfterToolCallEvent, self._show, order=first)

    def _join(self, event: AgentInitializedEvent) -> None:
        """Give an agent our tools, and what its model is told."""
        agent, own = event.agent, self._sessions.tools
        known = agent.tool_registry.registry
        check_names([name for name in known if not isinstance(known[name], _OwnTool)], own)
        for tool in own.values():
            if tool.name not in known:
                agent.tool_registry.register_tool(self._own(tool))
        agent.add_middleware(InvokeModelStage.Input, self._told)

    def _told(self, request: InvokeModelContext) -> InvokeModelContext:
        """Return a request to a model that tells it of pointers; the agent stays as it is."""
        system: Any = request.system_prompt
        is_list = isinstance(system, list)
        system = [*system, {"text": SYSTEM_TEXT}] if is_list else system_text(system)
        tools: Mapping[str, AgentTool] = cast("Any", request.agent).tool_registry.registry
        specs = [self._opened(spec, tools.get(spec["name"])) for spec in request.tool_specs]
        return request.replace(system_prompt=system, tool_specs=specs)

    def _opened(self, spec: ToolSpec, tool: AgentTool | None) -> ToolSpec:
        if spec["name"] in self._sessions.tools:
            return spec
        known = schema_in(spec) if tool is None else schema_of(tool)
        schema = self._sessions.of().mirror.schema(known)
        return {**spec, "inputSchema": {"json": schema}}

    async def _resolve(self, event: BeforeToolCallEvent[Any]) -> None:
        call, tool = event.tool_use, event.selected_tool
        if tool is None or isinstance(tool, _OwnTool):
            return
        event.selected_tool = noting(tool)
        if not holds_pointer(call["input"]):
            return
        session, name = self._of(event.agent), call["name"]
        found = await session.arguments(name, call["input"], schema_of(tool))
        if isinstance(found, Failure):
            event.cancel_tool = str(found)
        else:
            # Another one: that which the conversation keeps is never touched.
            event.tool_use = {**call, "input": found}

    async def _show(self, event: AfterToolCallEvent[Any]) -> None:
        if isinstance(event.selected_tool, _OwnTool) or event.cancel_message is not None:
            return
        name, session = event.tool_use["name"], self._of(event.agent)
        result, given = event.result, _given(event)
        if event.exception is not None and given is not event.tool_use["input"]:
            result = unquoted(result, event.exception)
        made = made_by(event.selected_tool, result)
        event.result = await shown_result(session.mirror, name, result, given, made)

    def _of(self, agent: object) -> Session:
        # An agent without a manager has an id too, which is new each time.
        manager: object = getattr(agent, "_session_manager", None)
        return self._sessions.of(cast("str | None", getattr(manager, "session_id", None)))

    def _own(self, tool: Tool) -> "_OwnTool":
        schema = {"json": dict(tool.parameters)}
        spec: ToolSpec = {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": schema,
        }
        return _OwnTool(tool.name, spec, cast("Any", partial(self._answer, tool.name)))

    async def _answer(self, tool: str, call: ToolUse, **state: object) -> ToolResult:
        reply = await self._of(state["agent"]).tools[tool].call(call["input"])
        return {
            "toolUseId": call["toolUseId"],
            "status": "error" if is_failure(reply) else "success",
            "content": [{"text": reply}],
        }


class _OwnTool(PythonAgentTool):
    """One of ours."""


def _given(event: AfterToolCallEvent[Any]) -> object:
    """Return a call's arguments as the model wrote them."""
    call = event.tool_use
    for message in reversed(event.agent.messages):
        for block in message["content"]:
            written = block.get("toolUse")
            if written is not None and written["toolUseId"] == call["toolUseId"]:
                return written["input"]
    return call["input"]
